//! Ticket lock: FIFO spin lock on one line.
//! # Algorithm
//! `lock` draws the number `next` with one `fetch_add` and waits until `serving` shows it.
//! `unlock` adds one to `serving`, which only the holder writes.
//! # Why
//! Against `tas` it removes starvation and the waiters' RMWs (they only read); it adds a second
//! word, and a broadcast: each hand-off invalidates the line in every waiter's cache.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `TicketLock` | 8 | 4 | 1 | `next`: arrivals; `serving`: holder |
//! | slot | 0 | 1 | 0 | nobody |
//! # Cost
//! Uncontended pair: 1 RMW, 2 loads, 1 store, 1 line. Hand-off with n waiters: 1 transfer for the
//! store, then n re-reads; each arrival invalidates the spinners as well.
//! # Progress
//! Blocking; FIFO from the `fetch_add` on. A preempted waiter stops all waiters behind it, so
//! more threads than CPUs cost a scheduler's time slice a hand-off.
//! # Invariants
//! - I1: `serving` is written by the holder only.
//! - I2: while fewer than 2³² callers wait at once, the number drawn by each is unique among them.
//! # Synchronization
//! | edge | release side | acquire side | publishes |
//! |---|---|---|---|
//! | E1 | store of `serving` in `unlock` | load of `serving` that ends the wait in `lock`; load of `serving` in `try_lock` | the critical section's writes |
//! # Errors and limits
//! At most 2³² − 1 callers at once; both words wrap, which I2 allows. Recursion deadlocks.
//! # References
//! J. M. Mellor-Crummey, M. L. Scott, "Algorithms for Scalable Synchronization on Shared-Memory
//! Multiprocessors", ACM TOCS 9(1), 1991, section 2.2. Differs from the paper in: no
//! proportional back-off, which is the row `ticket_proportional`.

use core::marker::PhantomData;

use super::contract::{
    Fairness, HasWaiters, Properties, RawLock, ThreadOblivious, TryLock, Waiting,
};
use super::hot::{HotField, HotFields, Role};
use super::relax::{Relax, Spin};
use super::sync::atomic::{AtomicU32, Ordering};
use super::sync::const_fn;

/// Serves waiters in the order in which they drew their numbers.
///
/// ```
/// use locks::{Mutex, TicketLock};
/// let total = Mutex::<u64, TicketLock>::new(0);
/// *total.lock() += 1;
/// assert_eq!(total.into_inner(), 1);
/// ```
#[derive(Debug)]
#[repr(C)]
pub struct TicketLock<R = Spin> {
    next: AtomicU32,
    serving: AtomicU32,
    relax: PhantomData<fn() -> R>,
}

impl<R> TicketLock<R> {
    const_fn! {
        /// Makes an unlocked lock.
        pub fn new() -> Self {
            Self::starting_at(0)
        }

        /// Makes an unlocked lock whose first ticket is `first`; tests start near the wrap.
        pub fn starting_at(first: u32) -> Self {
            Self { next: AtomicU32::new(first), serving: AtomicU32::new(first), relax: PhantomData }
        }
    }
}

impl<R> TicketLock<R> {
    /// Draws the next number.
    #[inline]
    pub(super) fn draw(&self) -> u32 {
        // ORDERING: Relaxed - the number only needs atomicity; E1 orders the data.
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// How many numbers are served before `ticket`; after 0 its owner is the holder.
    #[inline]
    pub(super) fn ahead_of(&self, ticket: u32) -> u32 {
        // ORDERING: Acquire, E1 - the holder sees the last holder's writes.
        ticket.wrapping_sub(self.serving.load(Ordering::Acquire))
    }
}

impl<R> Default for TicketLock<R> {
    fn default() -> Self {
        Self::new()
    }
}

impl<R> HotFields for TicketLock<R> {
    const ALIGNMENT: usize = 4;
    const ALONE: bool = false;

    fn hot_fields(&self, visit: &mut dyn FnMut(HotField)) {
        const BECAUSE: &str = "an arrival that finds the lock free needs both words at once; \
                               spinners pay for it with a miss at each arrival";
        let Self { next, serving, relax: _ } = self;
        let next = HotField::of("next", next).written_by(Role::Many("arrivals"));
        visit(next.one_line("tickets", BECAUSE));
        let serving = HotField::of("serving", serving).written_by(Role::One("holder"));
        visit(serving.read_by(Role::Many("waiters")).one_line("tickets", BECAUSE));
    }
}

// SAFETY: by I2 `serving` equals one waiter's number only, so one caller at a time leaves the
// wait; E1 hands its writes on; the slot is empty.
unsafe impl<R: Relax> RawLock for TicketLock<R> {
    type Slot = ();
    const PROPERTIES: Properties =
        Properties { fairness: Fairness::Fifo, waiting: Waiting::Spins, numa_aware: false };

    #[inline]
    unsafe fn lock(&self, _slot: &()) {
        let ticket = self.draw();
        let mut relax = R::new();
        while self.ahead_of(ticket) != 0 {
            relax.relax();
        }
    }

    #[inline]
    unsafe fn unlock(&self, _slot: &()) {
        // ORDERING: Relaxed - by I1 the holder reads its own number back.
        let ticket = self.serving.load(Ordering::Relaxed);
        // ORDERING: Release, E1 - hands the critical section's writes to the next holder.
        self.serving.store(ticket.wrapping_add(1), Ordering::Release);
    }
}

// SAFETY: as for `RawLock`: success means having drawn the number that is being served.
unsafe impl<R: Relax> TryLock for TicketLock<R> {
    #[inline]
    unsafe fn try_lock(&self, _slot: &()) -> bool {
        // ORDERING: Acquire, E1 - if the exchange succeeds, the last holder's writes are visible.
        let ticket = self.serving.load(Ordering::Acquire);
        // ORDERING: Relaxed on success and failure - draws a number, as `lock` does; if `serving`
        // had moved on since the load, `next` would differ from `ticket`.
        self.next
            .compare_exchange(ticket, ticket.wrapping_add(1), Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
    }
}

// SAFETY: nothing depends on which thread writes `serving`.
unsafe impl<R: Relax> ThreadOblivious for TicketLock<R> {}

// SAFETY: a number that was drawn is waited for until it is served.
unsafe impl<R: Relax> HasWaiters for TicketLock<R> {
    #[inline]
    unsafe fn has_waiters(&self, _slot: &()) -> bool {
        // ORDERING: Relaxed - by I1 the holder reads its own number back.
        let ticket = self.serving.load(Ordering::Relaxed);
        // ORDERING: Relaxed - may be stale; nothing is read through it.
        self.next.load(Ordering::Relaxed) != ticket.wrapping_add(1)
    }
}
