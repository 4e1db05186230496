//! Scalable counters for `no_std`: one contract, many ways to count from many cores.
//!
//! # Which variant when
//! - Few threads, rare adds, many counters, or reads as frequent as adds: `atomic`.
//! - Many cores add all the time and somebody reads now and then: `sharded`, for 8 KiB a counter
//!   and 64 loads a read.
//!
//! | id | type | progress | exact | linearizable | shards | bytes | kind |
//! |---|---|---|---|---|---|---|---|
//! | `null` | [`NullCounter`] | wait-free | no | no | 0 | 0 | baseline |
//! | `atomic` | [`AtomicCounter`] | wait-free | yes | yes | 1 | 8 | variant |
//! | `sharded` | [`ShardedCounter`]`<64, TlsSlot>` | wait-free | yes | no | 64 | 8192 | variant |
//! | `packed` | [`PackedCounter`]`<64, TlsSlot>` | wait-free | yes | no | 64 | 512 | control |
//!
//! `exact`: once the adds are over and the reader has synchronised with them, the sum is exact.
//! `linearizable`: the sum is one atomic step also while the counter moves; where it is not, a
//! counter that goes up and down may be read as a value that it never had, negative ones among
//! them.
//!
//! # Use
//! [`Counter`] adds and sums, [`Drain`] takes and zeroes. Everything wraps modulo 2⁶⁴. Every
//! operation is relaxed: a count publishes nothing but itself, so who sees it has not thereby
//! synchronised with those who counted. A counter is not `Clone`: the copy would be a number.
//!
//! `add_at(shard, n)` is the core of the sharded ones; a [`ShardIndex`] names the shard for
//! [`Counter::add`], and [`Explicit`] leaves it to the caller:
//!
//! ```
//! use counters::ShardedCounter;
//! static REQUESTS: ShardedCounter<16> = ShardedCounter::new();
//! let worker = 3; // known to whoever started the thread
//! REQUESTS.add_at(worker, 1);
//! assert_eq!(REQUESTS.sum(), 1);
//! ```
//!
//! [`for_each_counter!`] enumerates the table, and [`conformance!`] (feature `std`) runs the suite
//! that every row passes over a counter of yours.
//!
//! # Features
//! None by default. `std`: shards chosen by thread-local slot (`TlsSlot`, the rows that use it,
//! and the crate's one piece of global state: the bitmap of the slots in use); the conformance
//! suite.
#![no_std]
#![deny(clippy::std_instead_of_core, clippy::std_instead_of_alloc, clippy::alloc_instead_of_core)]

#[cfg(feature = "std")]
extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod atomic;
#[cfg(feature = "std")]
pub mod conformance;
pub mod contract;
pub mod hot;
mod null;
mod packed;
mod sharded;
mod slots;
#[doc(hidden)]
pub mod sync;
#[cfg(feature = "std")]
mod tls_slot;
mod variants;

pub use atomic::AtomicCounter;
pub use contract::{Counter, Drain, Explicit, Progress, Properties, ShardIndex};
pub use hot::{HotField, HotFields, Role, Sharing};
pub use null::NullCounter;
pub use packed::PackedCounter;
pub use sharded::ShardedCounter;
pub use slots::Slots;
#[cfg(feature = "std")]
pub use tls_slot::TlsSlot;

#[cfg(not(feature = "std"))]
#[doc(hidden)]
#[macro_export]
macro_rules! conformance {
    ($($anything:tt)*) => {
        compile_error!("counters::conformance! starts threads: enable feature `std` of counters");
    };
}
