//! Sharded counter: threads add to different words, each on a pair of lines of its own.
//! # Algorithm
//! `shards` is an array of `N` words, `N` a power of two. `add_at` is one `fetch_add` on the word
//! `shard mod N`; `add` asks the index `I` for the shard. `sum` adds the words up, one load each,
//! and `take` swaps 0 into each and adds up what came out.
//! # Why
//! Against `atomic` it removes the transfer from the add: threads in different shards never touch
//! the same line, so an add costs the same from 1 to `N` cores. It adds the index (one
//! thread-local read and one compare for `TlsSlot`), `N` loads to a read, the loss of the
//! snapshot, and a pair of lines a shard.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `ShardedCounter<N, I>` | 128 N | 128 | 2 N | each shard: the threads whose index names it, takers |
//! | `ShardedCounter<128, I>` | 16384 | 128 | 256 | as above |
//!
//! 128 bytes are a pair of lines on x86-64 and AArch64; other targets pad to what their CPUs need.
//! # Cost
//! Add: the index and 1 RMW on 1 line, no transfer while no other core uses the shard. Sum: `N`
//! loads on `N` lines, 1 transfer for each shard written since. Take: `N` RMWs.
//! # Progress
//! Wait-free where the CPU has an atomic add, otherwise lock-free. A preempted thread stops nobody.
//! # Invariants
//! - I1: each shard is the sum, modulo 2⁶⁴, of the adds that precede it in its modification order
//!   since the last swap of 0.
//! - I2: an add touches one shard, once.
//! # Synchronization
//! none: every access is relaxed. By I2 an add is in a sum or a take exactly if it stands before
//! the load or swap in the modification order of one word; I1 and coherence give the rest of the
//! contract, word by word. The words' orders are not tied together, and stronger orderings would
//! not make `sum` a snapshot either.
//! # Errors and limits
//! The shards and their sum wrap modulo 2⁶⁴; any shard number is accepted and reduced modulo `N`.
//! `sum` is no snapshot: while one thread adds 1 and then, in another shard, −1, a reader may see
//! −1. More threads than shards share them, which costs transfers, never counts.
//! # References
//! P. E. McKenney, "Is Parallel Programming Hard, And, If So, What Can You Do About It?", chapter
//! "Counting", statistical counters. Differs from the text in: atomic adds, since shards may be
//! shared, and a fixed number of them.

use core::fmt;
use core::marker::PhantomData;

use crossbeam_utils::CachePadded;

use super::contract::{Counter, Drain, Explicit, Progress, Properties, ShardIndex};
use super::hot::{HotField, HotFields, Role};
use super::sync::atomic::{AtomicI64, Ordering};
use super::sync::const_fn;

/// Counts in `N` padded words; `I` names the word that the calling thread adds to.
///
/// ```
/// # #[cfg(feature = "std")] {
/// use counters::{Counter, ShardedCounter, TlsSlot};
/// static TOTAL: ShardedCounter<64, TlsSlot> = ShardedCounter::new();
/// std::thread::scope(|scope| {
///     for _ in 0..4 {
///         scope.spawn(|| TOTAL.add(1));
///     }
/// });
/// assert_eq!(TOTAL.sum(), 4);
/// # }
/// ```
///
/// A number of shards that is no power of two is refused when the program is compiled:
///
/// ```compile_fail,E0080
/// let counter = counters::ShardedCounter::<48>::new();
/// ```
pub struct ShardedCounter<const N: usize, I = Explicit> {
    shards: [CachePadded<AtomicI64>; N],
    index: PhantomData<fn() -> I>,
}

impl<const N: usize, I> ShardedCounter<N, I> {
    const MASK: usize = {
        assert!(N.is_power_of_two(), "the number of shards is a power of two");
        N - 1
    };

    const_fn! {
        /// Makes a counter at zero.
        pub fn new() -> Self {
            let _ = Self::MASK;
            Self {
                shards: [const { CachePadded::new(AtomicI64::new(0)) }; N],
                index: PhantomData,
            }
        }
    }

    /// Adds `n` to the shard `shard mod N`.
    #[inline]
    pub fn add_at(&self, shard: usize, n: i64) {
        // ORDERING: Relaxed - atomicity keeps I1; the count publishes nothing.
        self.shards[shard & Self::MASK].fetch_add(n, Ordering::Relaxed);
    }

    /// Reads the shard `shard mod N`; may be stale, as [`Counter::sum`].
    #[inline]
    pub fn sum_at(&self, shard: usize) -> i64 {
        // ORDERING: Relaxed - coherence alone makes earlier adds visible; nothing is read through
        // the value.
        self.shards[shard & Self::MASK].load(Ordering::Relaxed)
    }

    /// Reads the total; may be stale, as [`Counter::sum`].
    #[inline]
    pub fn sum(&self) -> i64 {
        (0..N).fold(0, |sum, shard| sum.wrapping_add(self.sum_at(shard)))
    }

    /// Where the word of the shard `shard mod N` lies: its offset in bytes from the counter's
    /// start.
    pub const fn offset_of_shard(shard: usize) -> usize {
        core::mem::offset_of!(Self, shards)
            + (shard & Self::MASK) * size_of::<CachePadded<AtomicI64>>()
    }
}

impl<const N: usize, I> Default for ShardedCounter<N, I> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const N: usize, I: ShardIndex> Counter for ShardedCounter<N, I> {
    const PROPERTIES: Properties =
        Properties { progress: Progress::WaitFree, exact: true, linearizable: false, shards: N };

    #[inline]
    fn add(&self, n: i64) {
        self.add_at(I::current(), n);
    }

    #[inline]
    fn sum(&self) -> i64 {
        self.sum()
    }
}

impl<const N: usize, I> Drain for ShardedCounter<N, I> {
    fn take(&self) -> i64 {
        // ORDERING: Relaxed - by I2 each add stands before or after one swap in one modification
        // order, so it is in exactly one take.
        self.shards.iter().fold(0, |sum, shard| sum.wrapping_add(shard.swap(0, Ordering::Relaxed)))
    }
}

impl<const N: usize, I> HotFields for ShardedCounter<N, I> {
    const ALIGNMENT: usize = align_of::<CachePadded<u8>>();
    const ALONE: bool = true;

    fn hot_fields(&self, visit: &mut dyn FnMut(HotField)) {
        let Self { shards, index: _ } = self;
        for (shard, padded) in shards.iter().enumerate() {
            let word = HotField::of("shards", &**padded).nth(shard).padded_in(padded);
            visit(word.written_by(Role::Nth("shard", shard)).read_by(Role::Many("readers")));
        }
    }
}

impl<const N: usize, I> fmt::Debug for ShardedCounter<N, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShardedCounter").field("sum", &self.sum()).finish_non_exhaustive()
    }
}
