//! Null counter: counts nothing, the baseline of every measurement.
//! # Algorithm
//! `add` does nothing; `sum` and `take` return 0.
//! # Why
//! What a row costs beyond this one is the counter; what this row costs is the loop around it.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `NullCounter` | 0 | 1 | 0 | nobody |
//! # Cost
//! No instruction after inlining.
//! # Progress
//! Wait-free.
//! # Invariants
//! none
//! # Synchronization
//! none
//! # Errors and limits
//! Not a counter: it says so with `exact: false`, and the suite does not accept it.
//! # References
//! none

use core::fmt;

use super::contract::{Counter, Drain, Progress, Properties};
use super::hot::{HotField, HotFields};

/// Counts nothing; measures the loop without a counter.
///
/// ```
/// use counters::{Counter, NullCounter};
/// let counter = NullCounter::new();
/// counter.add(1);
/// assert_eq!(counter.sum(), 0);
/// ```
#[derive(Default)]
pub struct NullCounter(());

impl NullCounter {
    /// Makes the baseline.
    pub const fn new() -> Self {
        Self(())
    }
}

impl Counter for NullCounter {
    const PROPERTIES: Properties =
        Properties { progress: Progress::WaitFree, exact: false, linearizable: false, shards: 0 };

    #[inline(always)]
    fn add(&self, _n: i64) {}

    #[inline(always)]
    fn sum(&self) -> i64 {
        0
    }
}

impl Drain for NullCounter {
    #[inline(always)]
    fn take(&self) -> i64 {
        0
    }
}

impl HotFields for NullCounter {
    const ALIGNMENT: usize = 1;
    const ALONE: bool = false;

    fn hot_fields(&self, _visit: &mut dyn FnMut(HotField)) {}
}

impl fmt::Debug for NullCounter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NullCounter").field("sum", &self.sum()).finish()
    }
}
