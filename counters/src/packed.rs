//! Packed counter: the shards of `sharded` side by side without padding: a negative control.
//! # Algorithm
//! As `sharded`; the array `shards` holds bare words.
//! # Why
//! Shows false sharing: threads add to words of their own and yet take each other's lines away,
//! eight words a line. It saves 120 bytes a shard and buys nothing with them but the sum's loads,
//! which touch an eighth of the lines. Nobody should use it.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `PackedCounter<N, I>` | 8 N, at least 64 | 64 | N / 8, at least 1 | each word: the threads whose index names it, takers |
//! | `PackedCounter<64, I>` | 512 | 64 | 8 | as above |
//!
//! The alignment makes the sharing the same in every place: words 8 k to 8 k + 7 share a line.
//! # Cost
//! Add: the index and 1 RMW on 1 line, 1 transfer if a thread of a neighbouring shard wrote last.
//! Sum: `N` loads on `N / 8` lines. Take: `N` RMWs.
//! # Progress
//! As `sharded`.
//! # Invariants
//! - I1, I2: as I1 and I2 of `sharded`.
//! # Synchronization
//! none, as in `sharded`.
//! # Errors and limits
//! As `sharded`.
//! # References
//! none; the mistake is the field's own.

use core::fmt;
use core::marker::PhantomData;

use super::contract::{Counter, Drain, Explicit, Progress, Properties, ShardIndex};
use super::hot::{HotField, HotFields, Role};
use super::sync::atomic::{AtomicI64, Ordering};
use super::sync::const_fn;

/// Counts in `N` words without padding; `I` names the word that the calling thread adds to.
///
/// ```
/// use counters::PackedCounter;
/// let counter = PackedCounter::<8>::new();
/// counter.add_at(7, 5);
/// assert_eq!(counter.sum(), 5);
/// ```
#[repr(C, align(64))]
pub struct PackedCounter<const N: usize, I = Explicit> {
    shards: [AtomicI64; N],
    index: PhantomData<fn() -> I>,
}

impl<const N: usize, I> PackedCounter<N, I> {
    const MASK: usize = {
        assert!(N.is_power_of_two(), "the number of shards is a power of two");
        N - 1
    };

    const_fn! {
        /// Makes a counter at zero.
        pub fn new() -> Self {
            let _ = Self::MASK;
            Self { shards: [const { AtomicI64::new(0) }; N], index: PhantomData }
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
        core::mem::offset_of!(Self, shards) + (shard & Self::MASK) * size_of::<AtomicI64>()
    }
}

impl<const N: usize, I> Default for PackedCounter<N, I> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const N: usize, I: ShardIndex> Counter for PackedCounter<N, I> {
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

impl<const N: usize, I> Drain for PackedCounter<N, I> {
    fn take(&self) -> i64 {
        // ORDERING: Relaxed - by I2 each add stands before or after one swap in one modification
        // order, so it is in exactly one take.
        self.shards.iter().fold(0, |sum, shard| sum.wrapping_add(shard.swap(0, Ordering::Relaxed)))
    }
}

impl<const N: usize, I> HotFields for PackedCounter<N, I> {
    const ALIGNMENT: usize = 64;
    const ALONE: bool = false;

    fn hot_fields(&self, visit: &mut dyn FnMut(HotField)) {
        let Self { shards, index: _ } = self;
        for (shard, word) in shards.iter().enumerate() {
            let word = HotField::of("shards", word).nth(shard);
            visit(word.written_by(Role::Nth("shard", shard)).read_by(Role::Many("readers")));
        }
        visit(HotField::rest(self, shards));
    }
}

impl<const N: usize, I> fmt::Debug for PackedCounter<N, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PackedCounter").field("sum", &self.sum()).finish_non_exhaustive()
    }
}
