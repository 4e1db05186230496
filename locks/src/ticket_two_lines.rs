//! Two-line ticket lock: arrivals and spinners use different lines.
//! # Algorithm
//! As `ticket`: `lock` draws the number `next` with one `fetch_add` and waits until `serving`
//! shows it; `unlock` adds one to `serving`. The two words stand on pairs of lines of their own.
//! # Why
//! Against `ticket` it removes the miss that each arrival costs every spinner; it adds a second
//! line to an uncontended pair, and 248 bytes.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `TwoLineTicketLock` | 256 | 128 | 4 | `next`: arrivals; `serving`: holder |
//! | slot | 0 | 1 | 0 | nobody |
//! # Cost
//! Uncontended pair: 1 RMW, 2 loads, 1 store, 2 lines. Hand-off with n waiters: 1 transfer for the
//! store, then n re-reads; an arrival invalidates nobody.
//! # Progress
//! Blocking; FIFO from the `fetch_add` on. A preempted waiter stops all waiters behind it.
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
//! Multiprocessors", ACM TOCS 9(1), 1991, section 2.2. Differs from the paper in: the words are
//! kept apart; no proportional back-off.

use core::marker::PhantomData;

use crossbeam_utils::CachePadded;

use super::contract::{Fairness, Properties, RawLock, ThreadOblivious, TryLock, Waiting};
use super::hot::{HotField, HotFields, Role};
use super::relax::{Relax, Spin};
use super::sync::atomic::{AtomicU32, Ordering};
use super::sync::const_fn;

/// Serves waiters in the order of their numbers; arrivals do not disturb those who wait.
///
/// ```
/// use locks::{Mutex, TwoLineTicketLock};
/// let total = Mutex::<u64, TwoLineTicketLock>::new(0);
/// *total.lock() += 1;
/// assert_eq!(total.into_inner(), 1);
/// ```
#[derive(Debug)]
#[repr(C)]
pub struct TwoLineTicketLock<R = Spin> {
    next: CachePadded<AtomicU32>,
    serving: CachePadded<AtomicU32>,
    relax: PhantomData<fn() -> R>,
}

impl<R> TwoLineTicketLock<R> {
    const_fn! {
        /// Makes an unlocked lock.
        pub fn new() -> Self {
            Self::starting_at(0)
        }

        /// Makes an unlocked lock whose first ticket is `first`; tests start near the wrap.
        pub fn starting_at(first: u32) -> Self {
            Self {
                next: CachePadded::new(AtomicU32::new(first)),
                serving: CachePadded::new(AtomicU32::new(first)),
                relax: PhantomData,
            }
        }
    }
}

impl<R> Default for TwoLineTicketLock<R> {
    fn default() -> Self {
        Self::new()
    }
}

impl<R> HotFields for TwoLineTicketLock<R> {
    const ALIGNMENT: usize = align_of::<CachePadded<u8>>();
    const ALONE: bool = true;

    fn hot_fields(&self, visit: &mut dyn FnMut(HotField)) {
        let Self { next, serving, relax: _ } = self;
        let arrivals = Role::Many("arrivals");
        visit(HotField::of("next", &**next).written_by(arrivals).padded_in(next));
        let holder = HotField::of("serving", &**serving).written_by(Role::One("holder"));
        visit(holder.read_by(Role::Many("waiters")).padded_in(serving));
    }
}

// SAFETY: by I2 `serving` equals one waiter's number only, so one caller at a time leaves the
// wait; E1 hands its writes on; the slot is empty.
unsafe impl<R: Relax> RawLock for TwoLineTicketLock<R> {
    type Slot = ();
    const PROPERTIES: Properties =
        Properties { fairness: Fairness::Fifo, waiting: Waiting::Spins, numa_aware: false };

    #[inline]
    unsafe fn lock(&self, _slot: &()) {
        // ORDERING: Relaxed - the number only needs atomicity; E1 orders the data.
        let ticket = self.next.fetch_add(1, Ordering::Relaxed);
        let mut relax = R::new();
        // ORDERING: Acquire, E1 - the holder sees the last holder's writes.
        while self.serving.load(Ordering::Acquire) != ticket {
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
unsafe impl<R: Relax> TryLock for TwoLineTicketLock<R> {
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
unsafe impl<R: Relax> ThreadOblivious for TwoLineTicketLock<R> {}
