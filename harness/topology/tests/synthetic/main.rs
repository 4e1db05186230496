//! Trees that this test builds itself, in temporary directories: machines, cgroups, damage; and
//! this host against what it says of itself.

mod archives;
mod builder;
mod cgroups;
mod damaged;
mod drawings;
mod host;
mod machines;
mod nodes;
mod sources;
