//! Null lock: no lock at all, the baseline of every measurement.
//! # Algorithm
//! `lock` and `unlock` do nothing and return.
//! # Why
//! What a row costs beyond this one is the lock; what this row costs is the loop around it.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `NullLock` | 0 | 1 | 0 | nobody |
//! | slot | 0 | 1 | 0 | nobody |
//! # Cost
//! No instruction after inlining.
//! # Progress
//! Not a lock: it excludes nobody.
//! # Invariants
//! none
//! # Synchronization
//! none
//! # Errors and limits
//! Protects nothing. [`Mutex`](crate::Mutex) does not accept it, since it is no [`RawLock`] in
//! the sense of the trait's contract; only drivers whose threads share no data may use it.
//! # References
//! none

use super::contract::{Fairness, Properties, RawLock, Waiting};
use super::hot::{HotField, HotFields};

/// Excludes nobody; measures the loop without a lock.
///
/// ```
/// use locks::{NullLock, RawLock};
/// let lock = NullLock::new();
/// // SAFETY: nothing is shared here, so nothing needs protection.
/// unsafe { lock.lock(&()) };
/// ```
#[derive(Debug, Default)]
pub struct NullLock(());

impl NullLock {
    /// Makes the baseline.
    pub const fn new() -> Self {
        Self(())
    }
}

impl HotFields for NullLock {
    const ALIGNMENT: usize = 1;
    const ALONE: bool = false;

    fn hot_fields(&self, _visit: &mut dyn FnMut(HotField)) {}
}

// SAFETY: it breaks the first promise of the trait on purpose and is labelled `baseline` in the
// table; no safe face accepts it (`Mutex` asks for `Fairness` other than `NotALock`), and the
// drivers give each thread data of its own.
unsafe impl RawLock for NullLock {
    type Slot = ();
    const PROPERTIES: Properties =
        Properties { fairness: Fairness::NotALock, waiting: Waiting::Nothing, numa_aware: false };

    #[inline(always)]
    unsafe fn lock(&self, _slot: &()) {}

    #[inline(always)]
    unsafe fn unlock(&self, _slot: &()) {}
}
