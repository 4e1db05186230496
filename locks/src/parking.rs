//! Parking lock: one byte; waiters sleep in a table that all such locks share.
//! # Algorithm
//! `state` has the bits `LOCKED` and `PARKED`. `lock` sets `LOCKED` where it is clear; if the lock
//! stays taken it looks on for `SPINS` rounds while nobody is parked, then sets `PARKED` and parks
//! in the lot under the address of the byte. `unlock` exchanges `LOCKED` for 0; if `PARKED` is set
//! it wakes one sleeper and clears the bits, but `PARKED` if there are more. Each
//! `HAND_OVER_EVERY`-th wake-up leaves `LOCKED` set and gives the lock to whom it wakes
//! (0: none does).
//! # Why
//! Against `futex` it removes three bytes and knows whether there are more sleepers, so nobody is
//! woken in vain; with hand-over (row `parking_fair`) overtaking ends. It adds the table and its
//! locks to each slow path.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `ParkingLock` | 1 | 1 | 1 | holder and waiters |
//! | slot | 0 | 1 | 0 | nobody |
//! # Cost
//! Uncontended pair: 2 RMWs, 1 line, no system call. Contended hand-off: the lot's two visits, 1
//! wake, 1 wait.
//! # Progress
//! Blocking; unfair between hand-overs: a newcomer may overtake who was woken. With hand-over a
//! sleeper waits for at most `HAND_OVER_EVERY` wake-ups for each one before it in its bucket,
//! which locks with addresses of the same hash share. A preempted waiter stops nobody, unless the
//! lock was handed over to it.
//! # Invariants
//! - I1: `LOCKED` is set exactly while somebody holds the lock, a sleeper that it was handed to
//!   among them.
//! - I2: while somebody sleeps under the byte's address, `PARKED` is set; both change under the
//!   bucket's lock, but for setting `PARKED`, which the sleeper checks there again.
//! # Synchronization
//! | edge | release side | acquire side | publishes |
//! |---|---|---|---|
//! | E1 | exchange or store that clears `LOCKED` in `unlock` | exchange that set it in `lock`, `try_lock` | the critical section's writes |
//! | E2 | that of the lot (E1 there) | that of the lot | the same, when the lock is handed over |
//! # Errors and limits
//! Recursion deadlocks. The lock must not move while somebody sleeps, which borrowing sees to.
//! # References
//! F. Pizlo, "Locking in WebKit", 2016; A. d'Antras, `parking_lot`, 2016. Differs from them in:
//! hand-over counts wake-ups in place of time, since `no_std` has no clock.

use core::marker::PhantomData;

use super::contract::{Fairness, Properties, RawLock, ThreadOblivious, TryLock, Waiting};
use super::hot::{HotField, HotFields, Role};
use super::lot::{Found, Parking};
use super::relax::{Relax, Spin};
use super::sync::atomic::{AtomicU8, Ordering};
use super::sync::const_fn;

const FREE: u8 = 0;
const LOCKED: u8 = 1;
const PARKED: u8 = 2;

const WOKEN: u32 = 1;
const HANDED_OVER: u32 = 2;

/// Sleeps in a shared table when the lock stays taken; `L` says which one.
///
/// ```
/// # #[cfg(all(feature = "libc", target_os = "linux"))] {
/// use locks::{LinuxLot, Mutex, ParkingLock};
/// static TOTAL: Mutex<u64, ParkingLock<LinuxLot>> = Mutex::new(0);
/// *TOTAL.lock() += 1;
/// assert_eq!(*TOTAL.lock(), 1);
/// # }
/// ```
#[derive(Debug)]
pub struct ParkingLock<L, const HAND_OVER_EVERY: u32 = 0, const SPINS: u32 = 100, R = Spin> {
    state: AtomicU8,
    policy: PhantomData<fn() -> (L, R)>,
}

impl<L, const EVERY: u32, const SPINS: u32, R> ParkingLock<L, EVERY, SPINS, R> {
    const_fn! {
        /// Makes an unlocked lock.
        pub fn new() -> Self {
            Self { state: AtomicU8::new(FREE), policy: PhantomData }
        }
    }

    fn key(&self) -> usize {
        core::ptr::from_ref(&self.state).addr()
    }
}

impl<L, const EVERY: u32, const SPINS: u32, R> Default for ParkingLock<L, EVERY, SPINS, R> {
    fn default() -> Self {
        Self::new()
    }
}

impl<L: Parking, const EVERY: u32, const SPINS: u32, R: Relax> ParkingLock<L, EVERY, SPINS, R> {
    fn exchange(&self, from: u8, to: u8) -> bool {
        // ORDERING: Acquire on success, E1 - the winner sees the last holder's writes; Relaxed on
        // failure - nothing is read.
        self.state.compare_exchange(from, to, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    #[cold]
    fn lock_contended(&self) {
        let (mut relax, mut left) = (R::new(), SPINS);
        loop {
            // ORDERING: Relaxed - a hint; the exchanges that follow decide.
            let state = self.state.load(Ordering::Relaxed);
            if state & LOCKED == 0 {
                if self.exchange(state, state | LOCKED) {
                    return;
                }
            } else if state & PARKED == 0 && left > 0 {
                relax.relax();
                left -= 1;
            } else if state & PARKED != 0 || self.exchange(LOCKED, LOCKED | PARKED) {
                if self.sleep() == Some(HANDED_OVER) {
                    return;
                }
                (relax, left) = (R::new(), SPINS);
            }
        }
    }

    /// Sleeps unless the state has changed; what the waker said.
    fn sleep(&self) -> Option<u32> {
        // ORDERING: Relaxed - only the value counts (I2); the bucket's lock orders it.
        L::lot().park(self.key(), || self.state.load(Ordering::Relaxed) == LOCKED | PARKED)
    }

    #[cold]
    fn unlock_contended(&self) {
        L::lot().unpark_one(self.key(), |found: Found| {
            let parked = if found.more { PARKED } else { FREE };
            if EVERY != 0 && found.one && found.wake_up.is_multiple_of(EVERY) {
                // ORDERING: Relaxed - the lock stays taken; the lot's E1 hands the writes on (E2).
                self.state.store(LOCKED | parked, Ordering::Relaxed);
                return HANDED_OVER;
            }
            // ORDERING: Release, E1 - hands the critical section's writes to the next holder.
            self.state.store(parked, Ordering::Release);
            WOKEN
        });
    }
}

impl<L, const EVERY: u32, const SPINS: u32, R> HotFields for ParkingLock<L, EVERY, SPINS, R> {
    const ALIGNMENT: usize = 1;
    const ALONE: bool = false;

    fn hot_fields(&self, visit: &mut dyn FnMut(HotField)) {
        let Self { state, policy: _ } = self;
        visit(HotField::of("state", state).written_by(Role::Many("holder and waiters")));
    }
}

// SAFETY: by I1 one caller at a time set `LOCKED` or was handed the lock; E1 and E2 hand the writes
// on; the slot is empty.
unsafe impl<L: Parking, const EVERY: u32, const SPINS: u32, R: Relax> RawLock
    for ParkingLock<L, EVERY, SPINS, R>
{
    type Slot = ();
    const PROPERTIES: Properties = Properties {
        fairness: if EVERY == 0 { Fairness::None } else { Fairness::Eventual },
        waiting: Waiting::Blocks,
        numa_aware: false,
    };

    #[inline]
    unsafe fn lock(&self, _slot: &()) {
        if !self.exchange(FREE, LOCKED) {
            self.lock_contended();
        }
    }

    #[inline]
    unsafe fn unlock(&self, _slot: &()) {
        // ORDERING: Release on success, E1 - hands the critical section's writes to the next
        // holder; Relaxed on failure - nothing is read.
        let left = self.state.compare_exchange(LOCKED, FREE, Ordering::Release, Ordering::Relaxed);
        if left.is_err() {
            self.unlock_contended();
        }
    }
}

// SAFETY: as for `RawLock`: only an exchange that set `LOCKED` reports success.
unsafe impl<L: Parking, const EVERY: u32, const SPINS: u32, R: Relax> TryLock
    for ParkingLock<L, EVERY, SPINS, R>
{
    #[inline]
    unsafe fn try_lock(&self, _slot: &()) -> bool {
        // ORDERING: Relaxed - a hint; the exchange decides.
        let state = self.state.load(Ordering::Relaxed);
        state & LOCKED == 0 && self.exchange(state, state | LOCKED)
    }
}

// SAFETY: nothing depends on which thread unlocks.
unsafe impl<L: Parking, const EVERY: u32, const SPINS: u32, R: Relax> ThreadOblivious
    for ParkingLock<L, EVERY, SPINS, R>
{
}
