//! Scalable counters for `no_std`: one contract, many ways to count from many cores.
//!
//! # Which variant when
//! - Few threads, rare adds, many counters, or reads as frequent as adds: `atomic`.
//! - Many cores add all the time and somebody reads now and then: `per_thread`, which needs no
//!   RMW; `sharded`, where handlers of signals add too or there are thousands of threads.
//! - More threads than CPUs: `ShardedCounter<N, CpuId>`, no row of the table, and ask [`CpuId::source`] what it goes by here.
//! - A reader wants an answer in one load and can live with a known error: `batched`.
//! - Nobody knows whether it is going to be contended: `striped`.
//!
//! | id | type | progress | exact | linearizable | shards | bytes | kind |
//! |---|---|---|---|---|---|---|---|
//! | `null` | [`NullCounter`] | wait-free | no | no | 0 | 0 | baseline |
//! | `atomic` | [`AtomicCounter`] | wait-free | yes | yes | 1 | 8 | variant |
//! | `sharded` | [`ShardedCounter`]`<128, TlsSlot>` | wait-free | yes | no | 128 | 16384 | variant |
//! | `per_thread` | [`PerThreadCounter`]`<128, TlsSlot>` | wait-free | yes | no | 128 | 16640 | variant |
//! | `batched` | [`BatchedCounter`]`<128, 4096, TlsSlot>` | wait-free | yes | no | 128 | 16512 | variant |
//! | `striped` | [`StripedCounter`]`<128, TlsProbe>` | lock-free | yes | no | 128 | 16512 | variant |
//! | `packed` | [`PackedCounter`]`<64, TlsSlot>` | wait-free | yes | no | 64 | 512 | control |
//! | `lossy` | [`LossyCounter`] | wait-free | no | no | 1 | 8 | control |
//!
//! `exact`: once the adds are over and the reader has synchronised with them, the sum is exact.
//! `linearizable`: the sum is one atomic step also while the counter moves; where it is not, a
//! counter that goes up and down may be read as a value that it never had, negative ones among
//! them.
//!
//! # Use
//! [`Counter`] adds and sums, [`Drain`] takes and zeroes, [`Estimate`] answers at once with a known
//! error. Everything wraps modulo 2⁶⁴. Every
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
//! None by default. `std`: shards chosen by thread-local slot (`TlsSlot`, `TlsProbe`) or by CPU
//! (`CpuId`), and the rows that use them; the conformance suite. With it comes the crate's global
//! state: the bitmap of the slots in use, and where numbers of CPUs come from. `libc`, which brings
//! `std`: two more sources for `CpuId`, of which `rseq` is the cheapest there is.
#![no_std]
#![deny(clippy::std_instead_of_core, clippy::std_instead_of_alloc, clippy::alloc_instead_of_core)]

#[cfg(feature = "std")]
extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod atomic;
mod batched;
#[cfg(feature = "std")]
pub mod conformance;
pub mod contract;
#[cfg(feature = "std")]
mod cpu_id;
pub mod hot;
mod lossy;
mod null;
mod packed;
mod per_thread;
mod sharded;
mod slots;
mod striped;
#[doc(hidden)]
pub mod sync;
#[cfg(feature = "std")]
mod tls_probe;
#[cfg(feature = "std")]
mod tls_slot;
mod variants;

pub use atomic::AtomicCounter;
pub use batched::BatchedCounter;
pub use contract::{
    Counter, Drain, Estimate, Explicit, OwnPlace, PLACE_STRIDE, Progress, Properties, Reprobe,
    ShardIndex,
};
#[cfg(feature = "std")]
pub use cpu_id::{CpuId, CpuSource};
pub use hot::{HotField, HotFields, Role, Sharing};
pub use lossy::LossyCounter;
pub use null::NullCounter;
pub use packed::PackedCounter;
pub use per_thread::PerThreadCounter;
pub use sharded::ShardedCounter;
pub use slots::Slots;
pub use striped::StripedCounter;
#[cfg(feature = "std")]
pub use tls_probe::TlsProbe;
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
