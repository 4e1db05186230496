//! Counters of as many shards as there are workers.

use counters::ShardedCounter;

/// Shards of each part.
const PART: usize = 128;

/// Shards with lines of their own, at least as many as were asked for.
pub(crate) struct Shards(Vec<ShardedCounter<PART>>);

impl Shards {
    /// Makes them at zero.
    pub(crate) fn new(workers: usize) -> Self {
        Self((0..workers.div_ceil(PART)).map(|_| ShardedCounter::new()).collect())
    }

    /// Adds to a worker's shard.
    #[inline(always)]
    pub(crate) fn add_at(&self, worker: usize, n: i64) {
        self.0[worker / PART].add_at(worker, n);
    }

    /// Gives the sum of all.
    pub(crate) fn sum(&self) -> i64 {
        self.0.iter().map(|part| part.sum()).sum()
    }
}
