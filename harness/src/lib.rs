//! wip
pub mod affinity;
pub mod clock;
pub mod host;
pub mod memory;
pub mod native;
pub mod noise;
pub mod placement;
pub mod records;
pub mod spin;
pub mod stats;
pub mod sweep;
pub mod syscalls;
pub mod team;
pub mod unavailable;
pub mod valgrind;
pub mod window;
