//! Queues for `no_std`: one contract, for every number of producers and consumers.
//!
//! # Which variant when
//! - One thread pushes and one pops: `spsc_ring_cached`; several of them, one for each pair of
//!   threads, beat one queue for all.
//!   `spsc_fastforward` where an element must be seen at once and the sides are mostly far apart;
//!   `spsc_lamport` is what both are measured against.
//!   `spsc_unbounded` where a push must not be refused.
//! - One worker that takes back its newest, and others that help out: `deque_chase_lev`;
//!   `deque_chase_lev_growing` where a push must not be refused; `deque_packed_fifo` where the oldest
//!   comes first for all, and who runs dry takes half.
//! - Any number on either side, and threads are not stopped in the middle for long: `mpmc_ring_vyukov`.
//! - Elements come and go many at a time, from any number of threads that all run: `mpmc_ring_rte`,
//!   in bulk (all or nothing) or in bursts (what fits).
//! - Many cores on either side, all running: `mpmc_ticket`, whose additions never fail.
//! - Nobody may be kept from elements by a thread that was stopped: `mpmc_scq`; `mpmc_michael_scott`
//!   is the list that it is measured against.
//! - A push must not be refused, from any number of threads to any number, or to workers that take
//!   batches into deques of their own: `mpmc_segmented`.
//! - The same to one thread, or of elements that have nodes of their own: [`MpscUnbounded`], which is
//!   not in the table: it calls the allocator for every element, whose instructions are not the same
//!   everywhere.
//! - Few operations, elements whose slots must not cost a word more, or an exact length: `mutex_ring`.
//!
//! | id | type | producers | consumers | order | progress | linearizable | bytes | bytes per slot | kind |
//! |---|---|---|---|---|---|---|---|---|---|
//! | `null` | [`NullQueue`] | multi | multi | - | wait-free | no | 8 | 0 | baseline |
//! | `spsc_ring_cached` | [`SpscRingCached`] | single | single | FIFO | wait-free | yes | 384 | 8 | variant |
//! | `spsc_lamport` | [`SpscLamport`] | single | single | FIFO | wait-free | yes | 384 | 8 | variant |
//! | `spsc_fastforward` | [`SpscFastForward`] | single | single | FIFO | wait-free | yes | 384 | 16 | variant |
//! | `spsc_unbounded` | [`SpscUnbounded`] | single | single | FIFO | wait-free | yes | 256 | 8 | variant |
//! | `deque_chase_lev` | [`DequeChaseLev`] | single | multi | FIFO | obstructed | no | 384 | 16 | variant |
//! | `deque_chase_lev_growing` | [`DequeChaseLevGrowing`] | single | multi | FIFO | lock-free | yes | 384 | 16 | variant |
//! | `deque_packed_fifo` | [`DequePackedFifo`] | single | multi | FIFO | obstructed | no | 384 | 8 | variant |
//! | `mpmc_ring_vyukov` | [`MpmcRingVyukov`] | multi | multi | FIFO | obstructed | no | 384 | 16 | variant |
//! | `mpmc_ring_rte` | [`MpmcRingRte`] | multi | multi | FIFO | blocking | no | 384 | 8 | variant |
//! | `mpmc_ticket` | [`MpmcTicket`] | multi | multi | FIFO | blocking | no | 640 | 16 | variant |
//! | `mpmc_scq` | [`MpmcScq`] | multi | multi | FIFO | lock-free | no | 896 | 40 | variant |
//! | `mpmc_michael_scott` | [`MpmcMichaelScott`] | multi | multi | FIFO | lock-free | no | 640 | 24 | variant |
//! | `mpmc_segmented` | [`MpmcSegmented`] | multi | multi | FIFO | blocking | yes | 384 | 16 | variant |
//! | `mutex_ring` | [`MutexRing`] | multi | multi | FIFO | blocking | yes | 256 | 8 | variant |
//! | `spsc_ring_unpadded` | [`SpscRingUnpadded`] | single | single | FIFO | wait-free | yes | 64 | 8 | control |
//!
//! Bytes are those of elements of 8 bytes on x86-64, with the slots on the heap (`Boxed`).
//! Obstructed: no operation waits, yet the queue is not lock-free; see [`Progress`].
//!
//! # Use
//! [`Queue::split`] gives the two sides; the queues for many threads also have `try_push` and
//! `try_pop` that take `&self`. [`Inline`] keeps the slots in the queue, which may then be a
//! `static`; `Boxed` (feature `alloc`) keeps any number of them on the heap.
//! [`SplitOnce`] gives out the sides of a single-sided queue that is a `static`.
//! [`SpscProducer::push_from`] and [`SpscConsumer::pop_each`] move batches;
//! [`SpscProducer::reserve`] and [`SpscConsumer::ready`] let the sides write and read slots in place. [`Blocking`] makes the
//! sides of any queue wait, by a policy ([`SpinWait`]; with `std` also `SpinYield` and `Park`), and
//! closes it when one side is gone.
//! [`for_each_queue!`] enumerates the table, and [`conformance!`] (feature `std`) runs the suite
//! that every row passes over a queue of yours.
//!
//! # Features
//! None by default. `alloc`: slots on the heap. `std`: the conformance suite, and waiting that leaves
//! the CPU.
#![no_std]
#![deny(clippy::std_instead_of_core, clippy::std_instead_of_alloc, clippy::alloc_instead_of_core)]

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

#[cfg(all(doctest, feature = "std"))]
#[doc = include_str!("../README.md")]
mod readme {}

#[cfg(feature = "alloc")]
mod block;
mod blocking;
#[cfg(feature = "alloc")]
mod boxed;
mod burst;
#[cfg(feature = "std")]
pub mod conformance;
pub mod contract;
mod deque_chase_lev;
#[cfg(feature = "alloc")]
mod deque_chase_lev_growing;
mod deque_ends;
mod deque_packed_fifo;
mod drain;
mod flag_slot;
pub mod hot;
mod index_ring;
mod inline;
mod laps;
mod mpmc_michael_scott;
mod mpmc_ring_rte;
mod mpmc_ring_vyukov;
mod mpmc_scq;
#[cfg(feature = "alloc")]
mod mpmc_segmented;
mod mpmc_ticket;
#[cfg(feature = "alloc")]
mod mpsc_unbounded;
mod mutex_ring;
mod null;
#[cfg(feature = "alloc")]
mod on_heap;
#[cfg(feature = "std")]
mod park;
mod relax;
mod rounded;
mod shared;
mod slot;
mod split_once;
mod spsc_batch;
mod spsc_fastforward;
mod spsc_lamport;
mod spsc_reserve;
mod spsc_ring_cached;
mod spsc_ring_unpadded;
mod spsc_slices;
#[cfg(feature = "alloc")]
mod spsc_unbounded;
mod storage;
#[doc(hidden)]
pub mod sync;
mod turn_slot;
mod variants;
mod wait;

pub use blocking::{Blocking, Closed, Receiver, Sender};
#[cfg(feature = "alloc")]
pub use boxed::{Boxed, BoxedSlots};
pub use burst::Burst;
pub use contract::{
    CapacityError, Consumer, Full, Order, Pop, Producer, Progress, Properties, Queue, SharedQueue,
    Side, Steal, WithCapacity,
};
pub use deque_chase_lev::DequeChaseLev;
#[cfg(feature = "alloc")]
pub use deque_chase_lev_growing::DequeChaseLevGrowing;
pub use deque_ends::{Deque, Thief, Worker};
pub use deque_packed_fifo::DequePackedFifo;
pub use hot::{HotField, HotFields, Role, Sharing};
pub use inline::{Inline, InlineSlots};
pub use mpmc_michael_scott::MpmcMichaelScott;
pub use mpmc_ring_rte::MpmcRingRte;
pub use mpmc_ring_vyukov::MpmcRingVyukov;
pub use mpmc_scq::MpmcScq;
#[cfg(feature = "alloc")]
pub use mpmc_segmented::MpmcSegmented;
pub use mpmc_ticket::MpmcTicket;
#[cfg(feature = "alloc")]
pub use mpsc_unbounded::{MpscConsumer, MpscNode, MpscProducer, MpscUnbounded};
pub use mutex_ring::MutexRing;
pub use null::NullQueue;
#[cfg(feature = "std")]
pub use park::{Park, SpinYield};
pub use relax::{Relax, Spin};
pub use shared::{SharedConsumer, SharedProducer};
pub use split_once::SplitOnce;
pub use spsc_fastforward::{FastForwardConsumer, FastForwardProducer, SpscFastForward};
pub use spsc_lamport::{LamportConsumer, LamportProducer, SpscLamport};
pub use spsc_reserve::{Ready, Reserved};
pub use spsc_ring_cached::{SpscConsumer, SpscProducer, SpscRingCached};
pub use spsc_ring_unpadded::SpscRingUnpadded;
#[cfg(feature = "alloc")]
pub use spsc_unbounded::{SpscUnbounded, UnboundedConsumer, UnboundedProducer};
pub use storage::Storage;
pub use wait::{SpinWait, Wait};

#[cfg(not(feature = "std"))]
#[doc(hidden)]
#[macro_export]
macro_rules! conformance {
    ($($anything:tt)*) => {
        compile_error!("queues::conformance! starts threads: enable feature `std` of queues");
    };
}
