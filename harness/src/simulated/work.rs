//! What each simulated thread does: its work in batches, and how far it is.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crossbeam_utils::CachePadded;

use crate::window::Work;

/// The largest batch of a thread that has company.
const MOST_OPS_A_BATCH: u64 = 64;

/// The part of what is left that a batch of a thread with company does: batches get smaller towards
/// the end, so that little is under way when the window closes.
const SHARE: u64 = 16;

/// How many operations a thread shall do, and in which pieces.
#[derive(Debug, Clone, Copy)]
pub(super) struct Quota {
    pub(super) ops: u64,
    share: u64,
    most: u64,
    /// Whether what was tried counts, and nobody is stopped; else what succeeded.
    attempts: bool,
}

impl Quota {
    /// All at once.
    pub(super) fn whole(ops: u64) -> Self {
        Self { ops, share: 1, most: u64::MAX, attempts: false }
    }

    /// In batches that get smaller.
    pub(super) fn batches(ops: u64) -> Self {
        Self { ops, share: SHARE, most: MOST_OPS_A_BATCH, attempts: false }
    }

    /// `total` operations in batches of `ops`.
    pub(super) fn pieces_of(ops: u64, total: u64) -> Self {
        Self { ops: total, share: 1, most: ops, attempts: false }
    }

    /// So many tries of every thread, whether they succeed or not.
    pub(super) fn attempts(ops: u64) -> Self {
        Self { ops, share: 1, most: MOST_OPS_A_BATCH, attempts: true }
    }
}

/// How far a thread is. On lines of its own: nobody else touches them while threads run.
#[derive(Debug, Default)]
pub(super) struct Progress {
    ops: AtomicU64,
    batches: AtomicU64,
}

impl Progress {
    /// Begins anew.
    pub(super) fn reset(&self) {
        self.ops.store(0, Ordering::Relaxed);
        self.batches.store(0, Ordering::Relaxed);
    }

    /// So many operations have ended, each a batch.
    pub(super) fn set(&self, ops: u64) {
        self.ops.store(ops, Ordering::Relaxed);
        self.batches.store(ops, Ordering::Relaxed);
    }

    /// Operations and batches that have ended.
    pub(super) fn now(&self) -> (u64, u64) {
        // Relaxed: read by the engine, which has stopped all threads, or after they have ended.
        (self.ops.load(Ordering::Relaxed), self.batches.load(Ordering::Relaxed))
    }
}

/// Works until the quota is done or somebody else's is.
///
/// Not inlined, so that each run of it costs the same instructions.
#[inline(never)]
pub(super) fn work_through(
    work: &mut dyn Work,
    quota: Quota,
    stop: &AtomicBool,
    progress: &Progress,
) {
    let (mut ops, mut batches, mut left) = (0, 0, quota.ops);
    // The flag is read in any case: where it lies is warm then.
    while left > 0 && (!stop.load(Ordering::Relaxed) || quota.attempts) {
        let batch = (left / quota.share).clamp(1, quota.most);
        let done = work.batch(batch);
        ops += done;
        batches += 1;
        left = left.saturating_sub(if quota.attempts { batch } else { done });
        progress.ops.store(ops, Ordering::Relaxed);
        progress.batches.store(batches, Ordering::Relaxed);
    }
}

/// A place for each thread's work. The place is the thread's alone while threads run.
pub(super) struct Places(Vec<CachePadded<UnsafeCell<Box<dyn Work>>>>);

// SAFETY: while places are shared, each is reached through `of` alone, whose callers promise to be
// the only one; what is in it may go to another thread, as `Work` is `Send`.
unsafe impl Sync for Places {}

impl Places {
    pub(super) fn new(works: Vec<Box<dyn Work>>) -> Self {
        Self(works.into_iter().map(|work| CachePadded::new(UnsafeCell::new(work))).collect())
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Gives the longest period of all works.
    pub(super) fn period(&mut self) -> u64 {
        self.0.iter_mut().map(|place| place.get_mut().period()).max().unwrap_or(1)
    }

    /// Gives the works, for as long as no thread runs.
    pub(super) fn works(&mut self) -> impl Iterator<Item = &dyn Work> {
        self.0.iter_mut().map(|place| &**place.get_mut() as &dyn Work)
    }

    /// Gives the works back.
    pub(super) fn into_works(self) -> impl Iterator<Item = Box<dyn Work>> {
        self.0.into_iter().map(|place| place.into_inner().into_inner())
    }

    /// Gives the work of a thread.
    ///
    /// # Safety
    /// Nobody else uses the work of this thread as long as the reference lives.
    #[expect(clippy::mut_from_ref, reason = "the caller promises what a lock would enforce")]
    pub(super) unsafe fn of(&self, thread: usize) -> &mut dyn Work {
        // SAFETY: the caller's promise.
        unsafe { &mut **self.0[thread].get() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Counts(Vec<u64>);

    impl Work for Counts {
        fn batch(&mut self, ops: u64) -> u64 {
            self.0.push(ops);
            ops
        }
    }

    fn batches(quota: Quota) -> Vec<u64> {
        let (mut work, progress) = (Counts(Vec::new()), Progress::default());
        work_through(&mut work, quota, &AtomicBool::new(false), &progress);
        let (ops, batches) = progress.now();
        assert_eq!(ops, work.0.iter().sum::<u64>());
        assert_eq!(batches, work.0.len() as u64);
        work.0
    }

    #[test]
    fn batches_are_whole_equal_or_get_smaller() {
        assert_eq!(batches(Quota::whole(1000)), [1000]);
        assert_eq!(batches(Quota::pieces_of(16, 64)), [16; 4]);
        let shrinking = batches(Quota::batches(2000));
        assert_eq!(shrinking[..2], [64, 64]);
        assert!(shrinking.is_sorted_by(|a, b| a >= b), "{shrinking:?}");
        assert_eq!(shrinking.iter().sum::<u64>(), 2000);
        assert_eq!(shrinking.last(), Some(&1));
        assert_eq!(batches(Quota::batches(1)), [1]);
    }

    /// Half of what it tries succeeds.
    struct Unlucky;

    impl Work for Unlucky {
        fn batch(&mut self, ops: u64) -> u64 {
            ops / 2
        }
    }

    #[test]
    fn tries_come_to_an_end_and_heed_no_stop() {
        let progress = Progress::default();
        work_through(&mut Unlucky, Quota::attempts(128), &AtomicBool::new(true), &progress);
        assert_eq!(progress.now(), (64, 2));
    }

    #[test]
    fn who_is_stopped_does_no_more() {
        let (mut work, progress) = (Counts(Vec::new()), Progress::default());
        work_through(&mut work, Quota::whole(5), &AtomicBool::new(true), &progress);
        assert_eq!(progress.now(), (0, 0));
    }
}
