//! Mutual exclusion for `no_std`: one contract, many algorithms.
//!
//! # Which variant when
//! - Threads may outnumber CPUs, or critical sections may be long: `futex`; very many locks:
//!   `parking`; and nobody may be overtaken for ever: `parking_fair`; or at all: `mcs_park`.
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
//! | `mcs_try` | [`McsTryLock`] | FIFO | spins | no | 8 | 128 | variant |
//! | `mcs_k42` | [`K42Lock`] | FIFO | spins | no | 16 | 0 | variant |
//! | `qspin` | [`QSpinLock`] | FIFO | spins | no | 4 | 0 | variant |
//! | `clh` | [`ClhLock`] | FIFO | spins | no | 8 | 16 | variant |
//! | `cohort_bo_mcs` | [`CohortLock`] | bounded | spins | yes | 384 | 256 | variant |
//! | `cohort_ticket` | [`CohortLock`] | bounded | spins | yes | 4224 | 8 | variant |
//! | `hmcs` | [`HmcsLock`] | bounded | spins | yes | 24704 | 256 | variant |
//! | `rw_spin` | [`RwSpinLock`] | none | spins | no | 4 | 0 | variant |
//! | `rw_phase_fair` | [`RwPhaseFairLock`] | FIFO | spins | no | 16 | 0 | variant |
//! | `rw_big_reader` | [`RwBigReaderLock`] | FIFO | spins | no | 4352 | 0 | variant |
//! | `futex` | [`FutexLock`] | none | blocks | no | 4 | 0 | variant |
//! | `parking` | [`ParkingLock`] | none | blocks | no | 1 | 0 | variant |
//! | `parking_fair` | [`ParkingLock`] | eventual | blocks | no | 1 | 0 | variant |
//! | `ticket_park` | [`TicketParkLock`] | FIFO | blocks | no | 40 | 0 | variant |
//! | `mcs_park` | [`McsParkLock`] | FIFO | blocks | no | 8 | 128 | variant |
//! | `rw_futex` | [`RwFutexLock`] | none | blocks | no | 8 | 0 | variant |
//! | `tas_neighbour` | [`TasNeighbourLock`] | none | spins | no | 16 | 0 | control |
//!
//! There is no TWA lock (US 12,254,317), no BRAVO (US 10,535,368 and its continuations), no CNA
//! (US 10,949,264) and no Reciprocating lock (US 2026/0050478, applied for) here, though each would rank
//! high: they are patented. So is lock cohorting (US 8,694,706): ask before you ship `cohort_…`.
//!
//! The rows `rw_…` are the writers' sides of reader-writer locks, [`RawRwLock`]; [`RwLock`] is their
//! safe face. [`SeqLock`] is for words that are read far more often than written.
//!
//! The NUMA-aware rows know two sockets of 64 cores, four to an L3 cache; a lock of yours takes
//! your [`Topology`].
//!
//! Besides: [`Condvar`], [`Semaphore`], [`SpinBarrier`], [`OnceValue`] and [`Lazy`].
//!
//! # Use
//! [`Mutex`] is the safe face, [`PoisonMutex`] one that remembers panics. [`Checked`] finds misuse of
//! any lock, [`Pooled`] and [`Tls`] give guards to those with slots, `LockApi` (feature `lock_api`)
//! carries it into the crate of that name. [`RawLock`] is what drivers and builders of other locks use.
//! [`for_each_lock!`] enumerates the table, and [`conformance!`] (feature `std`) runs the suite
//! that every row passes over a lock of yours.
//!
//! # Features
//! None by default. `std`: the conformance suite, `clh` (a heap), [`Yield`], [`Checked`]. `libc`:
//! blocking locks (Linux). `lock_api`: the adapter `LockApi`.
#![no_std]
#![deny(clippy::std_instead_of_core, clippy::std_instead_of_alloc, clippy::alloc_instead_of_core)]

#[cfg(feature = "std")]
extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod anderson;
mod array;
mod backoff;
mod barrier;
mod barrier_dissemination;
#[cfg(feature = "std")]
mod checked;
#[cfg(feature = "std")]
mod clh;
mod cohort;
mod condvar;
#[cfg(feature = "std")]
pub mod conformance;
pub mod contract;
mod cpu_rest;
mod futex;
mod hmcs;
pub mod hot;
mod in_statics;
#[cfg(all(feature = "libc", target_os = "linux"))]
mod linux_futex;
#[cfg(all(feature = "libc", target_os = "linux"))]
mod linux_lot;
#[cfg(feature = "lock_api")]
mod lock_api_face;
mod looping;
mod lot;
mod mcs;
mod mcs_k42;
mod mcs_park;
mod mcs_try;
mod mutex;
mod null;
mod once;
mod parker;
mod parking;
mod poison;
#[cfg(feature = "std")]
mod pooled;
mod process_nodes;
mod qspin;
mod queue_node;
mod relax;
mod rw_big_reader;
mod rw_futex;
mod rw_phase_fair;
mod rw_spin;
mod rwlock;
mod semaphore;
mod seqlock;
#[doc(hidden)]
pub mod sync;
mod tas;
mod tas_neighbour;
mod telling;
mod ticket;
mod ticket_park;
mod ticket_proportional;
mod ticket_two_lines;
#[cfg(feature = "std")]
mod tls;
#[cfg(feature = "std")]
mod tls_slots;
mod topology;
mod ttas;
mod variants;
#[cfg(feature = "std")]
mod yielding;

pub use anderson::AndersonLock;
pub use backoff::{Exponential, Proportional, RelaxBehind};
pub use barrier::SpinBarrier;
pub use barrier_dissemination::{DisseminationBarrier, Party};
#[cfg(feature = "std")]
pub use checked::Checked;
#[cfg(feature = "std")]
pub use clh::{ClhLock, ClhSlot};
pub use cohort::{CohortLock, CohortSlot};
pub use condvar::Condvar;
pub use contract::{
    ConstInit, Fairness, HasWaiters, Patient, Properties, RawLock, RawRwLock, TellsNext,
    ThreadOblivious, Timed, TryLock, Waiting,
};
pub use cpu_rest::{Mwaitx, Tpause, Wfe};
pub use futex::FutexLock;
pub use hmcs::{HmcsLock, HmcsSlot};
pub use hot::{HotField, HotFields, Role, Sharing};
#[cfg(all(feature = "libc", target_os = "linux"))]
pub use linux_futex::LinuxFutex;
#[cfg(all(feature = "libc", target_os = "linux"))]
pub use linux_lot::LinuxLot;
#[cfg(feature = "lock_api")]
pub use lock_api_face::LockApi;
pub use looping::Loop;
pub use lot::{Found, Lot, Parking};
pub use mcs::{McsLock, McsSlot};
pub use mcs_k42::K42Lock;
pub use mcs_park::{McsParkLock, McsParkSlot};
pub use mcs_try::{McsTryLock, McsTrySlot};
pub use mutex::{Mutex, MutexGuard};
pub use null::NullLock;
pub use once::{Lazy, OnceValue};
pub use parker::{Parker, TimedParker};
pub use parking::ParkingLock;
pub use poison::{PoisonMutex, Poisoned};
#[cfg(feature = "std")]
pub use pooled::Pooled;
pub use process_nodes::ProcessNodes;
pub use qspin::{QSpinLock, QueueNode, QueueNodes};
pub use relax::{Relax, Spin};
pub use rw_big_reader::{ReaderPlace, RwBigReaderLock};
pub use rw_futex::RwFutexLock;
pub use rw_phase_fair::RwPhaseFairLock;
pub use rw_spin::{PreferReaders, PreferWriters, Preference, RwSpinLock};
pub use rwlock::{ReadGuard, RwLock, WriteGuard};
pub use semaphore::{Semaphore, TooManyPermits};
pub use seqlock::SeqLock;
pub use tas::TasLock;
pub use tas_neighbour::TasNeighbourLock;
pub use telling::Telling;
pub use ticket::TicketLock;
pub use ticket_park::TicketParkLock;
pub use ticket_proportional::ProportionalTicketLock;
pub use ticket_two_lines::TwoLineTicketLock;
#[cfg(feature = "std")]
pub use tls::Tls;
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

/// Tests what the README shows.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;
