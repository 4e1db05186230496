//! Mutual exclusion for `no_std`: one contract, many algorithms.
//!
//! # Which variant when
//! - Threads may outnumber CPUs, or critical sections may be long: `futex`.
//! - Pinned threads, few of them, tiny critical sections, one byte to spend: `ttas`; many of them
//!   that need no order: `ttas_backoff`.
//! - The same, and nobody may starve: `ticket`.
//! - Pinned threads, many cores: `mcs`; without a slot for each waiter: `mcs_k42`, or `anderson` with
//!   a large lock.
//! - Pinned threads on several sockets, or many L3 caches: `hmcs`, `cohort_bo_mcs`.
//!
//! | id | type | fairness | waiting | NUMA-aware | bytes | bytes per waiter | kind |
//! |---|---|---|---|---|---|---|---|
//! | `null` | [`NullLock`] | - | - | no | 0 | 0 | baseline |
//! | `tas` | [`TasLock`] | none | spins | no | 1 | 0 | variant |
//! | `ttas` | [`TtasLock`] | none | spins | no | 1 | 0 | variant |
//! | `ttas_backoff` | [`TtasLock`] | none | spins | no | 1 | 0 | variant |
//! | `ticket` | [`TicketLock`] | FIFO | spins | no | 8 | 0 | variant |
//! | `ticket_proportional` | [`ProportionalTicketLock`] | FIFO | spins | no | 8 | 0 | variant |
//! | `ticket_two_lines` | [`TwoLineTicketLock`] | FIFO | spins | no | 256 | 0 | variant |
//! | `anderson` | [`AndersonLock`] | FIFO | spins | no | 16640 | 0 | variant |
//! | `mcs` | [`McsLock`] | FIFO | spins | no | 8 | 128 | variant |
//! | `mcs_k42` | [`K42Lock`] | FIFO | spins | no | 16 | 0 | variant |
//! | `clh` | [`ClhLock`] | FIFO | spins | no | 8 | 16 | variant |
//! | `cohort_bo_mcs` | [`CohortLock`] | bounded | spins | yes | 640 | 256 | variant |
//! | `cohort_ticket` | [`CohortLock`] | bounded | spins | yes | 8320 | 8 | variant |
//! | `hmcs` | [`HmcsLock`] | bounded | spins | yes | 24704 | 256 | variant |
//! | `futex` | [`FutexLock`] | none | blocks | no | 4 | 0 | variant |
//! | `tas_neighbour` | [`TasNeighbourLock`] | none | spins | no | 16 | 0 | control |
//!
//! There is no TWA lock and no Reciprocating lock here, though both would rank high: the first is
//! patented (US 12,254,317), for the second a patent is applied for (US 2026/0050478).
//!
//! The NUMA-aware rows know two sockets of 64 cores, four to an L3 cache; a lock of yours takes
//! your [`Topology`].
//!
//! # Use
//! [`Mutex`] is the safe face. [`RawLock`] is what drivers and builders of other locks use.
//! [`for_each_lock!`] enumerates the table, and [`conformance!`] (feature `std`) runs the suite
//! that every row passes over a lock of yours.
//!
//! # Features
//! None by default. `std`: the conformance suite, `clh` (a heap), [`Yield`]. `libc`: the futex
//! (Linux).
#![no_std]
#![deny(clippy::std_instead_of_core, clippy::std_instead_of_alloc, clippy::alloc_instead_of_core)]

#[cfg(feature = "std")]
extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod anderson;
mod array;
mod backoff;
#[cfg(feature = "std")]
mod clh;
mod cohort;
#[cfg(feature = "std")]
pub mod conformance;
pub mod contract;
mod futex;
mod hmcs;
pub mod hot;
#[cfg(all(feature = "libc", target_os = "linux"))]
mod linux_futex;
mod mcs;
mod mcs_k42;
mod mutex;
mod null;
mod parker;
mod relax;
#[doc(hidden)]
pub mod sync;
mod tas;
mod tas_neighbour;
mod ticket;
mod ticket_proportional;
mod ticket_two_lines;
mod topology;
mod ttas;
mod variants;
#[cfg(feature = "std")]
mod yielding;

pub use anderson::AndersonLock;
pub use backoff::{Exponential, Loop, Proportional, RelaxBehind};
#[cfg(feature = "std")]
pub use clh::{ClhLock, ClhSlot};
pub use cohort::{CohortLock, CohortSlot};
pub use contract::{
    ConstInit, Fairness, HasWaiters, Properties, RawLock, ThreadOblivious, TryLock, Waiting,
};
pub use futex::FutexLock;
pub use hmcs::{HmcsLock, HmcsSlot};
pub use hot::{HotField, HotFields, Role, Sharing};
#[cfg(all(feature = "libc", target_os = "linux"))]
pub use linux_futex::LinuxFutex;
pub use mcs::{McsLock, McsSlot};
pub use mcs_k42::K42Lock;
pub use mutex::{Mutex, MutexGuard};
pub use null::NullLock;
pub use parker::Parker;
pub use relax::{Relax, Spin};
pub use tas::TasLock;
pub use tas_neighbour::TasNeighbourLock;
pub use ticket::TicketLock;
pub use ticket_proportional::ProportionalTicketLock;
pub use ticket_two_lines::TwoLineTicketLock;
pub use topology::{CpuBlocks, OneGroup, Topology};
pub use ttas::TtasLock;
#[cfg(feature = "std")]
pub use yielding::Yield;

#[cfg(not(feature = "std"))]
#[doc(hidden)]
#[macro_export]
macro_rules! conformance {
    ($($anything:tt)*) => {
        compile_error!("locks::conformance! starts threads: enable feature `std` of locks");
    };
}
