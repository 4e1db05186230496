//! Lossy counter: a load, an addition and a store on a word of everybody's: a negative control.
//! # Algorithm
//! `add` reads `total` and stores what it read plus `n`; `sum` reads it, `take` swaps 0 into it.
//! # Why
//! Shows what the RMW of `atomic` is for: two adds that read the same value leave one. It is not
//! even fast, since the line moves as for `atomic`. Nobody should use it.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `LossyCounter` | 8 | 8 | 1 | all adders and takers |
//! # Cost
//! Add: 1 load and 1 store, which x86-64 does in one instruction without a lock; 1 transfer if
//! another core wrote last. Sum: 1 load. Take: 1 RMW.
//! # Progress
//! Wait-free. A thread that is preempted between its load and its store undoes what the others
//! added meanwhile.
//! # Invariants
//! none
//! # Synchronization
//! none
//! # Errors and limits
//! **Loses adds** as soon as two threads add, and may bring back what was taken. Exact with one
//! thread.
//! # References
//! none; the mistake is the field's own.

use core::fmt;

use super::contract::{Counter, Drain, Progress, Properties};
use super::hot::{HotField, HotFields, Role};
use super::sync::atomic::{AtomicI64, Ordering};
use super::sync::const_fn;

/// Counts in one shared word without an atomic add, and so loses some.
///
/// ```
/// use counters::{Counter, LossyCounter};
/// const { assert!(!LossyCounter::PROPERTIES.exact) };
/// let counter = LossyCounter::new();
/// counter.add(2);
/// assert_eq!(counter.sum(), 2, "alone it is right");
/// ```
pub struct LossyCounter {
    total: AtomicI64,
}

impl LossyCounter {
    const_fn! {
        /// Makes a counter at zero.
        pub fn new() -> Self {
            Self { total: AtomicI64::new(0) }
        }
    }
}

impl Default for LossyCounter {
    fn default() -> Self {
        Self::new()
    }
}

impl Counter for LossyCounter {
    const PROPERTIES: Properties =
        Properties { progress: Progress::WaitFree, exact: false, linearizable: false, shards: 1 };

    #[inline]
    fn add(&self, n: i64) {
        // ORDERING: Relaxed - the mistake is that this and the store are two steps.
        let old = self.total.load(Ordering::Relaxed);
        // ORDERING: Relaxed - as above.
        self.total.store(old.wrapping_add(n), Ordering::Relaxed);
    }

    #[inline]
    fn sum(&self) -> i64 {
        // ORDERING: Relaxed - nothing is read through the value.
        self.total.load(Ordering::Relaxed)
    }
}

impl Drain for LossyCounter {
    #[inline]
    fn take(&self) -> i64 {
        // ORDERING: Relaxed - the count publishes nothing.
        self.total.swap(0, Ordering::Relaxed)
    }
}

impl HotFields for LossyCounter {
    const ALIGNMENT: usize = align_of::<AtomicI64>();
    const ALONE: bool = false;

    fn hot_fields(&self, visit: &mut dyn FnMut(HotField)) {
        let Self { total } = self;
        let total = HotField::of("total", total).written_by(Role::Many("adders"));
        visit(total.read_by(Role::Many("readers")));
    }
}

impl fmt::Debug for LossyCounter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LossyCounter").field("sum", &self.sum()).finish()
    }
}
