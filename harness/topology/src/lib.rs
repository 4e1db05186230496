//! Reads the topology of a Linux machine: CPUs, cores, packages, caches, NUMA nodes, distances,
//! cpusets and CPU quotas, from this host, from a saved tree under any directory, or from an archive
//! of one, which is read without unpacking it.
//!
//! The words are hwloc's: a *package* is a socket, a *PU* is a logical CPU, an *L3 group* is the
//! set of CPUs under one last-level cache.
//!
//! ```
//! use topology::Topology;
//!
//! let host = Topology::this_host()?;
//! println!("{host}");
//! for pu in host.pus() {
//!     println!("CPU {} is thread {:?} of core {:?} on node {:?}", pu.cpu, pu.smt_rank, pu.core, pu.node);
//! }
//! assert!(host.usable().len() <= host.cpus.online.len());
//! assert!(host.parallelism() >= 1);
//! # Ok::<(), topology::TopologyError>(())
//! ```
//!
//! # Sources
//! | what | from |
//! |---|---|
//! | online CPUs | `cpu/online`, else each CPU's `online`, else topology directories, else `cpuinfo` |
//! | packages | `physical_package_id`, else sibling sets |
//! | cores, dies, clusters | sibling sets: lists, else masks, newer names before older; else numbers |
//! | caches | `cache/index*`, grouped by who shares them |
//! | nodes | `node*`: `cpulist`, else `cpumap`; `meminfo`; `distance` with a column for each online node |
//! | cpuset, quota | `/proc/self/mountinfo` or `mounts`, `/proc/self/cgroup`, then every level from the process's own cgroup up to the mount |
//! | allowed CPUs | on this host `sched_getaffinity`; then `Cpus_allowed_list`, the cpuset |
//! | TSC, WAITPKG, hypervisor | CPUID, on this host only and never under valgrind |
//!
//! Topology never comes from CPUID. Every list is cut with the online set, because lists may name
//! CPUs that are offline. Numbers of packages, cores and nodes have gaps and repeat: nothing is
//! indexed by them.
//!
//! # What is not known
//! Missing information is `None`, or an empty list where the field says so; never 0 and never
//! guessed. What is missing, damaged, contradictory or unusual is a [`Finding`]. A tree without
//! any readable source of online CPUs is a [`TopologyError`].
//!
//! # Limits
//! CPU and node numbers up to [`MAX_CPU`]. Files longer than 1 MiB (`cpuinfo` and mount tables:
//! 16 MiB) are not read. Below a root other than `/`, symbolic links are followed only inside it.
//! Quotas of cgroups above a container's own mount cannot be seen. Archives are tar, compressed by
//! gzip or not, and hold at most 256 MiB; entries that lead out of the archive are findings.
//!
//! # JSON
//! Every type is `serde::Serialize`. A CPU set is the kernel's list as a string (`"0-3,8"`), an
//! unknown value is `null`, enums are `snake_case` words, and the fields are those of
//! [`Topology`] under their own names.

mod archive;
mod caches;
mod cgroup;
mod cores;
mod cpuid;
mod cpuinfo;
mod cpulist;
mod cpus;
mod cpuset;
mod drawing;
mod error;
mod files;
mod finding;
mod kinds;
mod nodes;
mod places;
mod process;
mod quota;
mod sysfs;
mod text;
mod topology;
mod valgrind;

pub use archive::ArchiveProblem;
pub use caches::{Cache, CacheKind};
pub use cgroup::{Cgroup, Cpuset};
pub use cores::{Core, CoreBasis, CpuGroup, Package};
pub use cpuid::{Cpuid, CpuidFacts, CpuidUnavailable, TscSource};
pub use cpuinfo::CpuInfo;
pub use cpulist::CpuSetError;
pub use cpus::{Allowed, AllowedSource, Cpus, OnlineSource};
pub use cpuset::{CpuSet, Iter, MAX_CPU, NodeSet};
pub use drawing::{CoreTile, Drawing, Part, PartKind, Plan, SvgStyle};
pub use error::TopologyError;
pub use finding::{Finding, FindingKind};
pub use kinds::{CpuKind, KindBasis, Smt, ValueGroup};
pub use nodes::{Distances, NodeSets, NumaNode};
pub use places::Pu;
pub use quota::Quota;
pub use topology::Topology;
pub use valgrind::running_under_valgrind;
