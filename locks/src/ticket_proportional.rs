//! Proportional ticket lock: a waiter looks the more seldom the more waiters are before it.
//! # Algorithm
//! A [`TicketLock`](crate::TicketLock) whose waiter knows how many numbers lie between the one
//! being served and its own, and relaxes for that many critical sections before it looks again.
//! # Why
//! Against `ticket` it removes most re-reads of a hand-off: only those whose turn is near look. It
//! adds a guess, `R`'s time for one critical section: too short and the waiters look too often,
//! too long and the lock stands free while its next holder waits.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `ProportionalTicketLock` | 8 | 4 | 1 | `next`: arrivals; `serving`: holder |
//! | slot | 0 | 1 | 0 | nobody |
//! # Cost
//! Uncontended pair: 1 RMW, 2 loads, 1 store, 1 line. Hand-off with n waiters: 1 transfer for the
//! store, then as many re-reads as waiters look before the next hand-off.
//! # Progress
//! Blocking; FIFO from the `fetch_add` on. A preempted waiter stops all waiters behind it.
//! # Invariants
//! - I1, I2: as those of `ticket`.
//! # Synchronization
//! | edge | release side | acquire side | publishes |
//! |---|---|---|---|
//! | E1 | that of `ticket` | load of `serving` that ends the wait in `lock`; that of `ticket` in `try_lock` | the critical section's writes |
//! # Errors and limits
//! As `ticket`.
//! # References
//! J. M. Mellor-Crummey, M. L. Scott, "Algorithms for Scalable Synchronization on Shared-Memory
//! Multiprocessors", ACM TOCS 9(1), 1991, section 2.2 (Algorithm 2.2).

use super::backoff::{Proportional, RelaxBehind};
use super::contract::{Properties, RawLock, ThreadOblivious, TryLock};
use super::hot::{HotField, HotFields};
use super::relax::Spin;
use super::sync::const_fn;
use super::ticket::TicketLock;

/// Serves waiters in the order of their numbers, and lets them look in proportion to their place.
///
/// ```
/// use locks::{Mutex, ProportionalTicketLock};
/// let total = Mutex::<u64, ProportionalTicketLock>::new(0);
/// *total.lock() += 1;
/// assert_eq!(total.into_inner(), 1);
/// ```
#[derive(Debug)]
pub struct ProportionalTicketLock<R = Proportional> {
    tickets: TicketLock<Spin>,
    relax: core::marker::PhantomData<fn() -> R>,
}

impl<R> ProportionalTicketLock<R> {
    const_fn! {
        /// Makes an unlocked lock.
        pub fn new() -> Self {
            Self { tickets: TicketLock::new(), relax: core::marker::PhantomData }
        }
    }
}

impl<R> Default for ProportionalTicketLock<R> {
    fn default() -> Self {
        Self::new()
    }
}

impl<R> HotFields for ProportionalTicketLock<R> {
    const ALIGNMENT: usize = 4;
    const ALONE: bool = false;

    fn hot_fields(&self, visit: &mut dyn FnMut(HotField)) {
        let Self { tickets, relax: _ } = self;
        tickets.hot_fields(visit);
    }
}

// SAFETY: one caller at a time has drawn the number that is being served, as in the inner lock,
// which unlocks; its E1 hands the writes on.
unsafe impl<R: RelaxBehind> RawLock for ProportionalTicketLock<R> {
    type Slot = ();
    const PROPERTIES: Properties = <TicketLock<Spin> as RawLock>::PROPERTIES;

    #[inline]
    unsafe fn lock(&self, _slot: &()) {
        let ticket = self.tickets.draw();
        let mut relax = R::new();
        loop {
            match self.tickets.ahead_of(ticket) {
                0 => return,
                ahead => relax.relax_behind(ahead),
            }
        }
    }

    #[inline]
    unsafe fn unlock(&self, slot: &()) {
        // SAFETY: the caller's promise, passed on.
        unsafe { self.tickets.unlock(slot) };
    }
}

// SAFETY: as for the inner lock.
unsafe impl<R: RelaxBehind> TryLock for ProportionalTicketLock<R> {
    #[inline]
    unsafe fn try_lock(&self, slot: &()) -> bool {
        // SAFETY: the caller's promise, passed on.
        unsafe { self.tickets.try_lock(slot) }
    }
}

// SAFETY: as for the inner lock.
unsafe impl<R: RelaxBehind> ThreadOblivious for ProportionalTicketLock<R> {}
