//! Futex mutex: one word; an uncontended pair stays in user space, waiters sleep in the kernel.
//! # Algorithm
//! `state` is `UNLOCKED`, `LOCKED` or `CONTENDED`. `lock` exchanges `UNLOCKED` for `LOCKED`; if
//! that fails it looks on for `SPINS` rounds while the holder runs alone, then swaps `CONTENDED`
//! in and, unless the old value was `UNLOCKED`, parks until the word changes. `unlock` takes
//! one away, which makes `LOCKED` `UNLOCKED`; if there were sleepers it swaps `UNLOCKED` in and
//! wakes one.
//! # Why
//! Against the spin locks it removes the waste of waiting CPUs, and the collapse when threads
//! outnumber CPUs; it adds an RMW to unlock and two system calls to a contended hand-off.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `FutexLock` | 4 | 4 | 1 | holder and waiters |
//! | slot | 0 | 1 | 0 | nobody |
//! # Cost
//! Uncontended pair: 2 RMWs, 1 line, no system call. Contended hand-off: 1 RMW more, 1 wake, 1 wait.
//! # Progress
//! Blocking; unfair: a newcomer may overtake the woken sleeper. A preempted waiter stops nobody.
//! # Invariants
//! - I1: `state` is `UNLOCKED` exactly while nobody holds the lock.
//! - I2: while a sleeper may exist, `state` is `CONTENDED` or the unlocker that took it away wakes
//!   one. A woken thread therefore locks with `CONTENDED`, never with `LOCKED`: there may be more
//!   sleepers behind it. For the same reason it gives up only after it has seen `CONTENDED`, or
//!   put it there: a wake-up that it has used up is owed to somebody else.
//! # Synchronization
//! | edge | release side | acquire side | publishes |
//! |---|---|---|---|
//! | E1 | subtraction in `unlock`, and through it the swap to `UNLOCKED` | exchange or swap that saw `UNLOCKED` in `lock`, `try_lock` | the critical section's writes |
//! # Errors and limits
//! Recursion deadlocks. Every return of the parker is treated as spurious (signals, `EAGAIN`). A
//! waiter that gives up leaves `CONTENDED` behind, which costs one wake-up in vain at most.
//! `lock_until` has no clock: it wakes up each millisecond to ask.
//! # References
//! U. Drepper, "Futexes Are Tricky", 2011, section 6 ("Mutex, Take 3"). Differs from the paper
//! in: a bounded look-on before sleeping; the parker is a type parameter; the unlocker of a lock
//! with sleepers swaps where the paper stores, which model checkers follow better.

use core::marker::PhantomData;
use core::time::Duration;

use super::contract::{Fairness, Patient, Properties, RawLock, Timed, TryLock, Waiting};
use super::hot::{HotField, HotFields, Role};
use super::parker::{Parker, TimedParker};
use super::relax::{Relax, Spin};
use super::sync::atomic::{AtomicU32, Ordering};
use super::sync::const_fn;

const UNLOCKED: u32 = 0;
const LOCKED: u32 = 1;
const CONTENDED: u32 = 2;

/// How long who has no clock sleeps before it asks.
const SLICE: Duration = Duration::from_millis(1);

/// Sleeps in the kernel when the lock stays taken; `P` says how, `SPINS` how long it looks on.
///
/// ```
/// # #[cfg(all(feature = "libc", target_os = "linux"))] {
/// use locks::{FutexLock, LinuxFutex, Mutex};
/// let total = Mutex::<u64, FutexLock<LinuxFutex>>::new(0);
/// *total.lock() += 1;
/// assert_eq!(total.into_inner(), 1);
/// # }
/// ```
#[derive(Debug)]
pub struct FutexLock<P, const SPINS: u32 = 100, R = Spin> {
    state: AtomicU32,
    policy: PhantomData<fn() -> (P, R)>,
}

impl<P, const SPINS: u32, R> FutexLock<P, SPINS, R> {
    const_fn! {
        /// Makes an unlocked lock.
        pub fn new() -> Self {
            Self { state: AtomicU32::new(UNLOCKED), policy: PhantomData }
        }
    }
}

impl<P, const SPINS: u32, R> Default for FutexLock<P, SPINS, R> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: Parker, const SPINS: u32, R: Relax> FutexLock<P, SPINS, R> {
    fn try_acquire(&self) -> bool {
        // ORDERING: Acquire on success, E1 - the winner sees the last holder's writes; Relaxed on
        // failure - nothing is read.
        self.state.compare_exchange(UNLOCKED, LOCKED, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    #[cold]
    fn lock_contended(&self) {
        self.lock_or_give_up(|state| {
            P::park(state, CONTENDED);
            false
        });
    }

    /// Waits by `sleep`, which says whether to give up instead; whether the caller is the holder.
    #[inline]
    fn lock_or_give_up(&self, mut sleep: impl FnMut(&AtomicU32) -> bool) -> bool {
        let mut state = self.look_on();
        if state == UNLOCKED && self.try_acquire() {
            return true;
        }
        loop {
            // ORDERING: Acquire, E1 - if the old value was UNLOCKED we are the holder and see the
            // last one's writes. CONTENDED, because there may be sleepers (I2).
            if state != CONTENDED && self.state.swap(CONTENDED, Ordering::Acquire) == UNLOCKED {
                return true;
            }
            if sleep(&self.state) {
                return false;
            }
            state = self.look_on();
        }
    }

    /// CONTENDED has become LOCKED, so the caller is the holder still.
    #[cold]
    fn unlock_contended(&self) {
        let word = core::ptr::from_ref(&self.state);
        // ORDERING: Relaxed - all steps since the subtraction are exchanges, so its release sequence
        // goes on to the next holder (E1). From here on the lock may be freed by that holder: only
        // its address is used. Whoever has put CONTENDED in meanwhile finds another value when it
        // looks and is not asleep, or is woken by what follows (I2).
        self.state.swap(UNLOCKED, Ordering::Relaxed);
        P::unpark_one(word);
    }

    /// Looks until the lock is free, has sleepers, or `SPINS` looks are used up.
    fn look_on(&self) -> u32 {
        let mut relax = R::new();
        let mut left = SPINS;
        loop {
            // ORDERING: Relaxed - a hint; the exchange or swap that follows decides.
            let state = self.state.load(Ordering::Relaxed);
            if state != LOCKED || left == 0 {
                return state;
            }
            relax.relax();
            left -= 1;
        }
    }
}

impl<P, const SPINS: u32, R> HotFields for FutexLock<P, SPINS, R> {
    const ALIGNMENT: usize = 4;
    const ALONE: bool = false;

    fn hot_fields(&self, visit: &mut dyn FnMut(HotField)) {
        let Self { state, policy: _ } = self;
        visit(HotField::of("state", state).written_by(Role::Many("holder and waiters")));
    }
}

// SAFETY: by I1 one caller at a time saw UNLOCKED and left something else; E1 hands its writes
// on; the slot is empty.
unsafe impl<P: Parker, const SPINS: u32, R: Relax> RawLock for FutexLock<P, SPINS, R> {
    type Slot = ();
    const PROPERTIES: Properties =
        Properties { fairness: Fairness::None, waiting: Waiting::Blocks, numa_aware: false };

    #[inline]
    unsafe fn lock(&self, _slot: &()) {
        if !self.try_acquire() {
            self.lock_contended();
        }
    }

    #[inline]
    unsafe fn unlock(&self, _slot: &()) {
        // ORDERING: Release, E1 - hands the critical section's writes to the next holder. If that
        // was the last of it, the lock may be freed by that holder from here on.
        if self.state.fetch_sub(1, Ordering::Release) != LOCKED {
            self.unlock_contended();
        }
    }
}

// SAFETY: as for `RawLock`: only an exchange that saw UNLOCKED reports success.
unsafe impl<P: Parker, const SPINS: u32, R: Relax> TryLock for FutexLock<P, SPINS, R> {
    #[inline]
    unsafe fn try_lock(&self, _slot: &()) -> bool {
        self.try_acquire()
    }
}

// SAFETY: as for `RawLock`: success means to have seen UNLOCKED.
unsafe impl<P: TimedParker, const SPINS: u32, R: Relax> Patient for FutexLock<P, SPINS, R> {
    unsafe fn lock_for(&self, slot: &(), patience: Duration) -> bool {
        if self.try_acquire() {
            return true;
        }
        let Some(end) = P::after(patience) else {
            // SAFETY: the caller's promise, passed on.
            unsafe { self.lock(slot) };
            return true;
        };
        let mut over = false;
        self.lock_or_give_up(|state| {
            let give_up = over;
            over = give_up || P::park_until(state, CONTENDED, end);
            give_up
        })
    }
}

// SAFETY: as for `Patient`.
unsafe impl<P: TimedParker, const SPINS: u32, R: Relax> Timed for FutexLock<P, SPINS, R> {
    unsafe fn lock_until(&self, _slot: &(), mut expired: impl FnMut() -> bool) -> bool {
        self.try_acquire()
            || self.lock_or_give_up(|state| {
                if expired() {
                    return true;
                }
                match P::after(SLICE) {
                    Some(end) => drop(P::park_until(state, CONTENDED, end)),
                    None => P::park(state, CONTENDED),
                }
                false
            })
    }
}
