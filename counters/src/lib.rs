//! Scalable counters for `no_std`: one contract, many ways to count from many cores.
//!
//! # Which variant when
//! - Few threads, rare adds, many counters, or reads as frequent as adds: `atomic`.
//! - Many cores add all the time and somebody reads now and then: `per_thread`, which needs no
//!   RMW; `sharded`, where handlers of signals add too or there are thousands of threads.
//! - More threads than CPUs: `per_cpu`, which needs no RMW where the kernel has restartable
//!   sequences (feature `libc`); ask [`Rseq::way`] how it adds here.
//! - Reads are frequent too, and a node's threads may meet: `per_node`, or a [`NodeCounter`] by
//!   whatever shares a cache here.
//! - A reader wants an answer in one load and can live with a known error: `batched`.
//! - Nobody knows whether it is going to be contended: `striped`.
//! - There is a limit that must hold exactly: [`LimitCounter`], as long as it is seldom near.
//! - A percent more or less does not matter and bytes do: [`ApproximateCounter`].
//!
//! | id | type | progress | exact | linearizable | shards | bytes | kind |
//! |---|---|---|---|---|---|---|---|
//! | `null` | [`NullCounter`] | wait-free | no | no | 0 | 0 | baseline |
//! | `atomic` | [`AtomicCounter`] | wait-free | yes | yes | 1 | 8 | variant |
//! | `sharded` | [`ShardedCounter`]`<128, TlsSlot>` | wait-free | yes | no | 128 | 16384 | variant |
//! | `per_thread` | [`PerThreadCounter`]`<128, TlsSlot>` | wait-free | yes | no | 128 | 16640 | variant |
//! | `per_cpu` | [`PerCpuCounter`]`<128, Rseq>` | wait-free | yes | no | 256 | 16512 | variant |
//! | `per_node` | [`NodeCounter`]`<16, NodeId>` | wait-free | yes | no | 16 | 2048 | variant |
//! | `batched` | [`BatchedCounter`]`<128, 4096, TlsSlot>` | wait-free | yes | no | 128 | 16512 | variant |
//! | `striped` | [`StripedCounter`]`<128, TlsProbe>` | lock-free | yes | no | 128 | 16512 | variant |
//! | `packed` | [`PackedCounter`]`<64, TlsSlot>` | wait-free | yes | no | 64 | 512 | control |
//! | `lossy` | [`LossyCounter`] | wait-free | no | no | 1 | 8 | control |
//!
//! Two stand beside the table, since what they promise is not what [`Counter`] does:
//! [`LimitCounter`] refuses adds, exactly at its limit, and [`ApproximateCounter`] is right but for
//! a known standard error.
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
//! (`CpuId`, `Rseq`), and the rows that use them; the conformance suite. With it comes the crate's
//! global state: the bitmap of the slots in use, and where numbers of CPUs come from. `libc`, which
//! brings `std`: restartable sequences for `per_cpu`, and two more sources for `CpuId`, of which
//! `rseq` is the cheapest there is.
#![no_std]
#![deny(clippy::std_instead_of_core, clippy::std_instead_of_alloc, clippy::alloc_instead_of_core)]

#[cfg(feature = "std")]
extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod approximate;
mod atomic;
mod batched;
#[cfg(feature = "std")]
pub mod conformance;
pub mod contract;
#[cfg(feature = "std")]
mod cpu_id;
pub mod hot;
mod limit;
mod lossy;
#[cfg(feature = "std")]
mod node_id;
mod null;
mod packed;
mod per_cpu;
mod per_node;
mod per_thread;
#[cfg(feature = "std")]
mod rseq;
#[cfg(all(
    feature = "libc",
    target_os = "linux",
    target_arch = "x86_64",
    target_pointer_width = "64"
))]
mod rseq_area;
#[cfg(all(
    feature = "std",
    not(all(
        feature = "libc",
        target_os = "linux",
        target_arch = "x86_64",
        target_pointer_width = "64"
    ))
))]
#[path = "rseq_absent.rs"]
mod rseq_area;
mod sharded;
mod slots;
mod striped;
#[doc(hidden)]
pub mod sync;
#[cfg(feature = "std")]
mod tls_probe;
#[cfg(feature = "std")]
mod tls_random;
#[cfg(feature = "std")]
mod tls_slot;
mod variants;

pub use approximate::{ApproximateCounter, Random};
pub use atomic::AtomicCounter;
pub use batched::BatchedCounter;
pub use contract::{
    Counter, Drain, Estimate, Explicit, OwnPlace, PLACE_STRIDE, Progress, Properties, Reprobe,
    ShardIndex,
};
#[cfg(feature = "std")]
pub use cpu_id::{CpuId, CpuSource};
pub use hot::{HotField, HotFields, Role, Sharing};
pub use limit::{AtLimit, LimitCounter};
pub use lossy::LossyCounter;
#[cfg(feature = "std")]
pub use node_id::NodeId;
pub use null::NullCounter;
pub use packed::PackedCounter;
pub use per_cpu::{AddOnCpu, CpuRow, PerCpuCounter};
pub use per_node::NodeCounter;
pub use per_thread::PerThreadCounter;
#[cfg(feature = "std")]
pub use rseq::{AddWay, Rseq};
pub use sharded::ShardedCounter;
pub use slots::Slots;
pub use striped::StripedCounter;
#[cfg(feature = "std")]
pub use tls_probe::TlsProbe;
#[cfg(feature = "std")]
pub use tls_random::TlsRandom;
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
