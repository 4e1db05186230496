//! Test-and-set lock: the smallest spin lock, one byte, no order among waiters.
//! # Algorithm
//! `locked` is one flag. `lock` swaps `true` into it until the old value was `false`; between two
//! swaps it relaxes. `unlock` stores `false`.
//! # Why
//! Against the null row it costs one RMW a pair. It removes every word of waiting state and adds
//! the worst behaviour under contention: each waiter's swap takes the line away from the holder.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `TasLock` | 1 | 1 | 1 | holder and all waiters |
//! | slot | 0 | 1 | 0 | nobody |
//! # Cost
//! Uncontended pair: 1 RMW, 1 store, 1 line. Hand-off with n waiters: the release store queues
//! behind up to n swaps, so about n transfers.
//! # Progress
//! Blocking; unfair: a waiter can starve. A preempted holder stops everyone; a preempted waiter
//! stops nobody.
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
//! Multiprocessors", IEEE TPDS 1(1), 1990, section "Spin on Test-and-Set". Differs from the paper
//! in: a relax policy between two attempts.

use core::marker::PhantomData;

use super::contract::{Fairness, Properties, RawLock, ThreadOblivious, TryLock, Waiting};
use super::hot::{HotField, HotFields, Role};
use super::relax::{Relax, Spin};
use super::sync::atomic::{AtomicBool, Ordering};
use super::sync::const_fn;

/// Spins on an atomic swap until the flag was clear.
///
/// ```
/// use locks::{Mutex, TasLock};
/// let total = Mutex::<u64, TasLock>::new(0);
/// *total.lock() += 1;
/// assert_eq!(total.into_inner(), 1);
/// ```
#[derive(Debug)]
pub struct TasLock<R = Spin> {
    locked: AtomicBool,
    relax: PhantomData<fn() -> R>,
}

impl<R> TasLock<R> {
    const_fn! {
        /// Makes an unlocked lock.
        pub fn new() -> Self {
            Self { locked: AtomicBool::new(false), relax: PhantomData }
        }
    }
}

impl<R> Default for TasLock<R> {
    fn default() -> Self {
        Self::new()
    }
}

impl<R> HotFields for TasLock<R> {
    const ALIGNMENT: usize = 1;
    const ALONE: bool = false;

    fn hot_fields(&self, visit: &mut dyn FnMut(HotField)) {
        let Self { locked, relax: _ } = self;
        visit(HotField::of("locked", locked).written_by(Role::Many("holder and waiters")));
    }
}

// SAFETY: by I1 one caller at a time is between the swap that returned `false` and the store of
// `false`; E1 hands its writes on; the slot is empty.
unsafe impl<R: Relax> RawLock for TasLock<R> {
    type Slot = ();
    const PROPERTIES: Properties =
        Properties { fairness: Fairness::None, waiting: Waiting::Spins, numa_aware: false };

    #[inline]
    unsafe fn lock(&self, _slot: &()) {
        let mut relax = R::new();
        // ORDERING: Acquire, E1 - the winner sees the last holder's writes.
        while self.locked.swap(true, Ordering::Acquire) {
            relax.relax();
        }
    }

    #[inline]
    unsafe fn unlock(&self, _slot: &()) {
        // ORDERING: Release, E1 - hands the critical section's writes to the next holder.
        self.locked.store(false, Ordering::Release);
    }
}

// SAFETY: as for `RawLock`: only a swap that returned `false` reports success.
unsafe impl<R: Relax> TryLock for TasLock<R> {
    #[inline]
    unsafe fn try_lock(&self, _slot: &()) -> bool {
        // ORDERING: Acquire, E1 - the winner sees the last holder's writes.
        !self.locked.swap(true, Ordering::Acquire)
    }
}

// SAFETY: nothing depends on which thread stores `false`.
unsafe impl<R: Relax> ThreadOblivious for TasLock<R> {}
