//! Atomic counter: one word that everybody adds to.
//! # Algorithm
//! `add` is one `fetch_add` on `total`, `sum` one load of it, `take` one swap of 0 into it.
//! # Why
//! Against the null row it costs one RMW an add. It is the smallest counter, the only one here
//! whose read is one load, and the one that collapses: each add takes the line away from the last
//! adder's cache, so the cost of an add grows with the number of cores that add.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `AtomicCounter` | 8 | 8 | 1 | all adders and takers |
//!
//! It is not padded: it shares its line with what stands beside it.
//! # Cost
//! Add: 1 RMW, 1 line, 1 transfer if another core wrote last. Sum: 1 load. Take: 1 RMW.
//! # Progress
//! Wait-free where the CPU has an atomic add, otherwise lock-free. A preempted thread stops nobody.
//! # Invariants
//! - I1: `total` is the sum, modulo 2⁶⁴, of the adds that precede it in its modification order
//!   since the last swap of 0.
//! # Synchronization
//! none: every access is relaxed. I1 and coherence (a thread that has seen a value of one word, or
//! synchronised with someone who has, never sees an older one) give all that the contract
//! promises; there is no other data to publish.
//! # Errors and limits
//! Wraps modulo 2⁶⁴.
//! # References
//! P. E. McKenney, "Is Parallel Programming Hard, And, If So, What Can You Do About It?", chapter
//! "Counting", the atomic counter.

use core::fmt;

use super::contract::{Counter, Drain, Progress, Properties};
use super::hot::{HotField, HotFields, Role};
use super::sync::atomic::{AtomicI64, Ordering};
use super::sync::const_fn;

/// Counts in one shared word.
///
/// ```
/// use counters::{AtomicCounter, Counter};
/// static TOTAL: AtomicCounter = AtomicCounter::new();
/// TOTAL.add(3);
/// TOTAL.add(-1);
/// assert_eq!(TOTAL.sum(), 2);
/// ```
pub struct AtomicCounter {
    total: AtomicI64,
}

impl AtomicCounter {
    const_fn! {
        /// Makes a counter at zero.
        pub fn new() -> Self {
            Self { total: AtomicI64::new(0) }
        }
    }
}

impl Default for AtomicCounter {
    fn default() -> Self {
        Self::new()
    }
}

impl Counter for AtomicCounter {
    const PROPERTIES: Properties =
        Properties { progress: Progress::WaitFree, exact: true, linearizable: true, shards: 1 };

    #[inline]
    fn add(&self, n: i64) {
        // ORDERING: Relaxed - atomicity keeps I1; the count publishes nothing.
        self.total.fetch_add(n, Ordering::Relaxed);
    }

    #[inline]
    fn sum(&self) -> i64 {
        // ORDERING: Relaxed - coherence alone makes earlier adds visible; nothing is read through
        // the value.
        self.total.load(Ordering::Relaxed)
    }
}

impl Drain for AtomicCounter {
    #[inline]
    fn take(&self) -> i64 {
        // ORDERING: Relaxed - each add stands before or after the swap in the modification order,
        // so it is in exactly one take.
        self.total.swap(0, Ordering::Relaxed)
    }
}

impl HotFields for AtomicCounter {
    const ALIGNMENT: usize = align_of::<AtomicI64>();
    const ALONE: bool = false;

    fn hot_fields(&self, visit: &mut dyn FnMut(HotField)) {
        let Self { total } = self;
        let total = HotField::of("total", total).written_by(Role::Many("adders"));
        visit(total.read_by(Role::Many("readers")));
    }
}

impl fmt::Debug for AtomicCounter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AtomicCounter").field("sum", &self.sum()).finish()
    }
}
