//! Bounded queues for `no_std`: one contract, rings for every number of producers and consumers.
//!
//! # Which variant when
//! - One thread pushes and one pops: `spsc_ring_cached`; several of them, one for each pair of
//!   threads, beat one queue for all.
//! - Any number on either side, and threads are not stopped in the middle for long: `mpmc_ring_vyukov`.
//! - Few operations, elements whose slots must not cost a word more, or an exact length: `mutex_ring`.
//!
//! | id | type | producers | consumers | order | progress | linearizable | bytes | bytes per slot | kind |
//! |---|---|---|---|---|---|---|---|---|---|
//! | `null` | [`NullQueue`] | multi | multi | - | wait-free | no | 8 | 0 | baseline |
//! | `spsc_ring_cached` | [`SpscRingCached`] | single | single | FIFO | wait-free | yes | 384 | 8 | variant |
//! | `mpmc_ring_vyukov` | [`MpmcRingVyukov`] | multi | multi | FIFO | obstructed | no | 384 | 16 | variant |
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
//! [`for_each_queue!`] enumerates the table, and [`conformance!`] (feature `std`) runs the suite
//! that every row passes over a queue of yours.
//!
//! # Features
//! None by default. `alloc`: slots on the heap. `std`: the conformance suite.
#![no_std]
#![deny(clippy::std_instead_of_core, clippy::std_instead_of_alloc, clippy::alloc_instead_of_core)]

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

#[cfg(feature = "alloc")]
mod boxed;
#[cfg(feature = "std")]
pub mod conformance;
pub mod contract;
mod drain;
pub mod hot;
mod inline;
mod mpmc_ring_vyukov;
mod mutex_ring;
mod null;
mod relax;
mod shared;
mod slot;
mod spsc_ring_cached;
mod spsc_ring_unpadded;
mod storage;
#[doc(hidden)]
pub mod sync;
mod variants;

#[cfg(feature = "alloc")]
pub use boxed::{Boxed, BoxedSlots};
pub use contract::{
    CapacityError, Consumer, Full, Order, Producer, Progress, Properties, Queue, SharedQueue, Side,
    WithCapacity,
};
pub use hot::{HotField, HotFields, Role, Sharing};
pub use inline::{Inline, InlineSlots};
pub use mpmc_ring_vyukov::MpmcRingVyukov;
pub use mutex_ring::MutexRing;
pub use null::NullQueue;
pub use relax::{Relax, Spin};
pub use shared::{SharedConsumer, SharedProducer};
pub use spsc_ring_cached::{SpscConsumer, SpscProducer, SpscRingCached};
pub use spsc_ring_unpadded::SpscRingUnpadded;
pub use storage::Storage;

#[cfg(not(feature = "std"))]
#[doc(hidden)]
#[macro_export]
macro_rules! conformance {
    ($($anything:tt)*) => {
        compile_error!("queues::conformance! starts threads: enable feature `std` of queues");
    };
}
