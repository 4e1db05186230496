//! Test-and-test-and-set lock: one byte; waiters read and write only when the flag was clear.
//! # Algorithm
//! `locked` is one flag. `lock` swaps `true` into it; while the old value was `true` it relaxes
//! until a plain load shows `false`, and swaps again. `unlock` stores `false`. The policy `R` is
//! made once a wait, so that a back-off grows with each failed swap as well as with each look.
//! # Why
//! Against `tas` it removes the swaps of waiters while the lock is held: they read a shared copy
//! of the line. It adds a storm at each release, when all of them read, and swap, at once;
//! with [`Exponential`](crate::Exponential) (row `ttas_backoff`) they come back at different
//! times, at the price of a hand-off that may find everybody away.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `TtasLock` | 1 | 1 | 1 | holder, and waiters that saw it free |
//! | slot | 0 | 1 | 0 | nobody |
//! # Cost
//! Uncontended pair: 1 RMW, 1 store, 1 line. Hand-off with n waiters: 1 transfer for the store, n
//! re-reads, up to n swaps.
//! # Progress
//! Blocking; unfair: a waiter can starve, with back-off the sooner the longer it has waited. A
//! preempted holder stops everyone; a preempted waiter stops nobody.
//! # Invariants
//! - I1: `locked` is `true` exactly while some caller is between a successful swap and its
//!   release store.
//! # Synchronization
//! | edge | release side | acquire side | publishes |
//! |---|---|---|---|
//! | E1 | store `false` in `unlock` | swap that returned `false` in `lock`, `try_lock` | the critical section's writes |
//! # Errors and limits
//! Recursion deadlocks. `unlock` by someone who is not the holder lets two holders in.
//! # References
//! T. E. Anderson, "The Performance of Spin Lock Alternatives for Shared-Memory
//! Multiprocessors", IEEE TPDS 1(1), 1990, sections "Spin on Read" and "Delay". Differs from the
//! paper in: a first swap without a look; the delay is a policy and is not random.

use core::marker::PhantomData;

use super::contract::{Fairness, Properties, RawLock, ThreadOblivious, Timed, TryLock, Waiting};
use super::hot::{HotField, HotFields, Role};
use super::relax::{Relax, Spin};
use super::sync::atomic::{AtomicBool, Ordering};
use super::sync::const_fn;

/// Spins on reads until the flag is clear, then swaps.
///
/// ```
/// use locks::{Mutex, TtasLock};
/// let total = Mutex::<u64, TtasLock>::new(0);
/// *total.lock() += 1;
/// assert_eq!(total.into_inner(), 1);
/// ```
#[derive(Debug)]
pub struct TtasLock<R = Spin> {
    locked: AtomicBool,
    relax: PhantomData<fn() -> R>,
}

impl<R> TtasLock<R> {
    const_fn! {
        /// Makes an unlocked lock.
        pub fn new() -> Self {
            Self { locked: AtomicBool::new(false), relax: PhantomData }
        }
    }
}

impl<R> Default for TtasLock<R> {
    fn default() -> Self {
        Self::new()
    }
}

impl<R: Relax> TtasLock<R> {
    /// Tries again until the lock is taken or `expired` says so; whether it is taken.
    #[cold]
    fn lock_contended(&self, mut expired: impl FnMut() -> bool) -> bool {
        let mut relax = R::new();
        while !expired() {
            relax.relax();
            // ORDERING: Relaxed - a hint, so that looking takes the line from nobody. Acquire, E1
            // - the winner sees the last holder's writes.
            if !self.locked.load(Ordering::Relaxed) && !self.locked.swap(true, Ordering::Acquire) {
                return true;
            }
        }
        false
    }
}

impl<R> HotFields for TtasLock<R> {
    const ALIGNMENT: usize = 1;
    const ALONE: bool = false;

    fn hot_fields(&self, visit: &mut dyn FnMut(HotField)) {
        let Self { locked, relax: _ } = self;
        visit(HotField::of("locked", locked).written_by(Role::Many("holder and waiters")));
    }
}

// SAFETY: by I1 one caller at a time is between the swap that returned `false` and the store of
// `false`; E1 hands its writes on; the slot is empty.
unsafe impl<R: Relax> RawLock for TtasLock<R> {
    type Slot = ();
    const PROPERTIES: Properties =
        Properties { fairness: Fairness::None, waiting: Waiting::Spins, numa_aware: false };

    #[inline]
    unsafe fn lock(&self, _slot: &()) {
        // ORDERING: Acquire, E1 - the winner sees the last holder's writes.
        if self.locked.swap(true, Ordering::Acquire) {
            self.lock_contended(|| false);
        }
    }

    #[inline]
    unsafe fn unlock(&self, _slot: &()) {
        // ORDERING: Release, E1 - hands the critical section's writes to the next holder.
        self.locked.store(false, Ordering::Release);
    }
}

// SAFETY: as for `RawLock`: only a swap that returned `false` reports success.
unsafe impl<R: Relax> TryLock for TtasLock<R> {
    #[inline]
    unsafe fn try_lock(&self, _slot: &()) -> bool {
        // ORDERING: Relaxed - a look first, so that failing takes the line from nobody. Acquire,
        // E1 - the winner sees the last holder's writes.
        !self.locked.load(Ordering::Relaxed) && !self.locked.swap(true, Ordering::Acquire)
    }
}

// SAFETY: as for `RawLock`: only a swap that returned `false` reports success.
unsafe impl<R: Relax> Timed for TtasLock<R> {
    #[inline]
    unsafe fn lock_until(&self, _slot: &(), expired: impl FnMut() -> bool) -> bool {
        // ORDERING: Acquire, E1 - the winner sees the last holder's writes.
        !self.locked.swap(true, Ordering::Acquire) || self.lock_contended(expired)
    }
}

// SAFETY: nothing depends on which thread stores `false`.
unsafe impl<R: Relax> ThreadOblivious for TtasLock<R> {}
