//! Mutual exclusion for `no_std`: one contract, many algorithms.
//!
//! # Which variant when
//! - Threads may outnumber CPUs, or critical sections may be long: `futex`.
//! - Pinned threads, few of them, tiny critical sections, one byte to spend: `tas`.
//! - The same, and nobody may starve: `ticket`.
//! - Pinned threads, many cores or several sockets: `mcs`.
//!
//! | id | type | fairness | waiting | NUMA-aware | bytes | bytes per waiter | kind |
//! |---|---|---|---|---|---|---|---|
//! | `null` | [`NullLock`] | - | - | no | 0 | 0 | baseline |
//! | `tas` | [`TasLock`] | none | spins | no | 1 | 0 | variant |
//! | `ticket` | [`TicketLock`] | FIFO | spins | no | 8 | 0 | variant |
//! | `mcs` | [`McsLock`] | FIFO | spins | no | 8 | 128 | variant |
//! | `futex` | [`FutexLock`] | none | blocks | no | 4 | 0 | variant |
//! | `tas_neighbour` | [`TasNeighbourLock`] | none | spins | no | 16 | 0 | control |
//!
//! # Use
//! [`Mutex`] is the safe face. [`RawLock`] is what drivers and builders of other locks use.
//! [`for_each_lock!`] enumerates the table, and [`conformance!`] (feature `std`) runs the suite
//! that every row passes over a lock of yours.
//!
//! # Features
//! None by default. `std`: the conformance suite. `libc`: the futex (Linux).
#![no_std]
#![deny(clippy::std_instead_of_core, clippy::std_instead_of_alloc, clippy::alloc_instead_of_core)]

#[cfg(feature = "std")]
extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

#[cfg(feature = "std")]
pub mod conformance;
pub mod contract;
mod futex;
pub mod hot;
#[cfg(all(feature = "libc", target_os = "linux"))]
mod linux_futex;
mod mcs;
mod mutex;
mod null;
mod parker;
mod relax;
#[doc(hidden)]
pub mod sync;
mod tas;
mod tas_neighbour;
mod ticket;
mod variants;

pub use contract::{ConstInit, Fairness, Properties, RawLock, TryLock, Waiting};
pub use futex::FutexLock;
pub use hot::{HotField, HotFields, Role, Sharing};
#[cfg(all(feature = "libc", target_os = "linux"))]
pub use linux_futex::LinuxFutex;
pub use mcs::{McsLock, McsSlot};
pub use mutex::{Mutex, MutexGuard};
pub use null::NullLock;
pub use parker::Parker;
pub use relax::{Relax, Spin};
pub use tas::TasLock;
pub use tas_neighbour::TasNeighbourLock;
pub use ticket::TicketLock;

#[cfg(not(feature = "std"))]
#[doc(hidden)]
#[macro_export]
macro_rules! conformance {
    ($($anything:tt)*) => {
        compile_error!("locks::conformance! starts threads: enable feature `std` of locks");
    };
}
