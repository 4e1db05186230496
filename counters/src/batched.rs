//! Batched counter: shards that tell one word of each whole batch, which a reader may read alone.
//! # Algorithm
//! `shards` are as in `sharded`. `add_at` is one `fetch_add` on its shard, which tells the value
//! before and after; if the two differ when rounded down to multiples of `BATCH`, the difference
//! is added to `published`. So `published` is the sum of the shards, each rounded down. `sum` adds
//! the shards up, exactly; `estimate` is one load of `published`. `take` swaps 0 into each shard
//! and takes what it had published back.
//! # Why
//! Against `sharded` it adds a read that costs one load whatever `N`, with a known error; and an
//! `and`, an `xor` and a branch to an add, and one RMW on a line of everybody's in `BATCH` adds
//! of 1.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `BatchedCounter<N, BATCH, I>` | 128 (N + 1) | 128 | 2 (N + 1) | each shard: the threads whose index names it; `published`: whoever completes a batch |
//! | `BatchedCounter<128, 4096, I>` | 16512 | 128 | 258 | as above |
//!
//! 128 bytes are a pair of lines on x86-64 and AArch64; other targets pad to what their CPUs need.
//! # Cost
//! Add: the index, 1 RMW on 1 line, and 1 RMW and 1 transfer in each batch. Estimate: 1 load. Sum:
//! `N` loads on `N` lines. Take: up to 2 `N` RMWs. The shared line stays out of the way of `c`
//! cores if `BATCH` is more than `c` times the cost of a transfer over that of an add: some 4096
//! for 128 cores on two sockets.
//! # Progress
//! Wait-free where the CPU has an atomic add, otherwise lock-free. A thread that is stopped between
//! its two steps keeps one batch out of the estimate, never out of the sum.
//! # Invariants
//! - I1: each shard is the sum, modulo 2⁶⁴, of the adds that precede it in its modification order
//!   since the last swap of 0.
//! - I2: what the operations on a shard publish adds up to its value rounded down, because each
//!   publishes the difference between what it found and what it left.
//! # Synchronization
//! none: every access is relaxed. The sum is that of `sharded`, word by word. Who has synchronised
//! with an operation sees both its steps, by coherence of the two words; I2 gives the estimate's
//! error.
//! # Errors and limits
//! Once no operation is under way, 0 ≤ sum − estimate ≤ `N` (`BATCH` − 1). An operation under way
//! may add its own amount and a batch. Wraps modulo 2⁶⁴. `BATCH` is a power of two.
//! # References
//! The Linux kernel's percpu_counter (lib/percpu_counter.c): a batch for each CPU and a total.
//! Differs from it in: a shard is not emptied when its batch is full, so that the exact sum needs
//! no lock; the error is one-sided.

use core::fmt;
use core::marker::PhantomData;

use crossbeam_utils::CachePadded;

use super::contract::{Counter, Drain, Estimate, Explicit, Progress, Properties, ShardIndex};
use super::hot::{HotField, HotFields, Role};
use super::sync::atomic::{AtomicI64, Ordering};
use super::sync::const_fn;

/// Counts in `N` padded words and publishes whole batches; `I` names the calling thread's word.
///
/// ```
/// use counters::BatchedCounter;
/// let counter = BatchedCounter::<4, 64>::new();
/// (0..100).for_each(|_| counter.add_at(1, 1));
/// assert_eq!((counter.estimate(), counter.sum()), (64, 100));
/// assert_eq!(counter.max_error(), 4 * 63);
/// ```
///
/// A batch that is no power of two is refused when the program is compiled:
///
/// ```compile_fail,E0080
/// let counter = counters::BatchedCounter::<4, 100>::new();
/// ```
pub struct BatchedCounter<const N: usize, const BATCH: i64 = 4096, I = Explicit> {
    shards: [CachePadded<AtomicI64>; N],
    published: CachePadded<AtomicI64>,
    index: PhantomData<fn() -> I>,
}

impl<const N: usize, const BATCH: i64, I> BatchedCounter<N, BATCH, I> {
    const MASK: usize = {
        assert!(N.is_power_of_two(), "the number of shards is a power of two");
        N - 1
    };

    /// Clears what does not make a batch.
    const WHOLE: i64 = {
        assert!(BATCH > 0 && BATCH & (BATCH - 1) == 0, "the batch is a power of two");
        !(BATCH - 1)
    };

    const_fn! {
        /// Makes a counter at zero.
        pub fn new() -> Self {
            let _ = (Self::MASK, Self::WHOLE);
            Self {
                shards: [const { CachePadded::new(AtomicI64::new(0)) }; N],
                published: CachePadded::new(AtomicI64::new(0)),
                index: PhantomData,
            }
        }
    }

    /// Adds `n` to the shard `shard mod N`.
    #[inline]
    pub fn add_at(&self, shard: usize, n: i64) {
        // ORDERING: Relaxed - atomicity keeps I1; the count publishes nothing else.
        let old = self.shards[shard & Self::MASK].fetch_add(n, Ordering::Relaxed);
        self.publish(old, old.wrapping_add(n));
    }

    /// Publishes the whole batches between two values of a shard.
    #[inline(always)]
    fn publish(&self, old: i64, new: i64) {
        if (old ^ new) & Self::WHOLE != 0 {
            let batches = (new & Self::WHOLE).wrapping_sub(old & Self::WHOLE);
            // ORDERING: Relaxed - atomicity keeps I2; the count publishes nothing.
            self.published.fetch_add(batches, Ordering::Relaxed);
        }
    }

    /// Reads the total; may be stale, as [`Counter::sum`].
    #[inline]
    pub fn sum(&self) -> i64 {
        let mut sum = 0_i64;
        for shard in &self.shards {
            // ORDERING: Relaxed - coherence alone makes earlier adds visible; nothing is read
            // through the value.
            sum = sum.wrapping_add(shard.load(Ordering::Relaxed));
        }
        sum
    }

    /// Reads what was published, as [`Estimate::estimate`]; may be stale.
    #[inline]
    pub fn estimate(&self) -> i64 {
        // ORDERING: Relaxed - coherence alone makes earlier batches visible.
        self.published.load(Ordering::Relaxed)
    }

    /// The most that the sum exceeds the estimate by, as [`Estimate::max_error`].
    pub const fn max_error(&self) -> u64 {
        (N as u64).saturating_mul(BATCH as u64 - 1)
    }

    /// Where the word of the shard `shard mod N` lies: its offset in bytes from the counter's
    /// start.
    pub const fn offset_of_shard(shard: usize) -> usize {
        core::mem::offset_of!(Self, shards)
            + (shard & Self::MASK) * size_of::<CachePadded<AtomicI64>>()
    }
}

impl<const N: usize, const BATCH: i64, I> Default for BatchedCounter<N, BATCH, I> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const N: usize, const BATCH: i64, I: ShardIndex> Counter for BatchedCounter<N, BATCH, I> {
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

impl<const N: usize, const BATCH: i64, I: ShardIndex> Estimate for BatchedCounter<N, BATCH, I> {
    #[inline]
    fn estimate(&self) -> i64 {
        self.estimate()
    }

    fn max_error(&self) -> u64 {
        self.max_error()
    }
}

impl<const N: usize, const BATCH: i64, I> Drain for BatchedCounter<N, BATCH, I> {
    fn take(&self) -> i64 {
        let mut taken = 0_i64;
        for shard in &self.shards {
            // ORDERING: Relaxed - each add stands before or after one swap in one modification
            // order, so it is in exactly one take; I2 holds of the swap as of an add.
            let old = shard.swap(0, Ordering::Relaxed);
            self.publish(old, 0);
            taken = taken.wrapping_add(old);
        }
        taken
    }
}

impl<const N: usize, const BATCH: i64, I> HotFields for BatchedCounter<N, BATCH, I> {
    const ALIGNMENT: usize = align_of::<CachePadded<u8>>();
    const ALONE: bool = true;

    fn hot_fields(&self, visit: &mut dyn FnMut(HotField)) {
        let Self { shards, published, index: _ } = self;
        for (shard, padded) in shards.iter().enumerate() {
            let word = HotField::of("shards", &**padded).nth(shard).padded_in(padded);
            visit(word.written_by(Role::Nth("shard", shard)).read_by(Role::Many("readers")));
        }
        let word = HotField::of("published", &**published).padded_in(published);
        visit(word.written_by(Role::Many("adders")).read_by(Role::Many("readers")));
    }
}

impl<const N: usize, const BATCH: i64, I> fmt::Debug for BatchedCounter<N, BATCH, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BatchedCounter").field("sum", &self.sum()).finish_non_exhaustive()
    }
}
