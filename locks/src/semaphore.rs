//! Counting semaphore: as many inside as there are permits; the others sleep.
//! # Algorithm
//! `state` holds twice the number of permits, and 1 if somebody may sleep. `acquire` takes 2 away
//! where there are 2; otherwise it sets the lowest bit and parks. `release` adds 2; if the bit was
//! set it clears it and wakes all sleepers, who look again.
//! # Why
//! One word, and no system call while permits last. Waking all is one call too many now and then
//! and keeps no count of sleepers that could be wrong.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `Semaphore` | 4 | 4 | 1 | everybody |
//! # Cost
//! Uncontended pair: 2 RMWs, 1 load, 1 line, no system call.
//! # Progress
//! Blocking; unfair.
//! # Invariants
//! - I1: while somebody sleeps, the lowest bit is set or the caller that cleared it is about to
//!   wake all.
//! # Synchronization
//! | edge | release side | acquire side | publishes |
//! |---|---|---|---|
//! | E1 | addition in `release` | exchange in `acquire`, `try_acquire` | what was done before the release |
//! # Errors and limits
//! At most 2³¹ − 1 permits; a release beyond is refused. Permits are numbers: whoever has none may
//! release one.
//! # References
//! E. W. Dijkstra, "Cooperating Sequential Processes", EWD 123, 1965, section 4.

use core::fmt;
use core::marker::PhantomData;

use super::parker::Parker;
use super::sync::atomic::{AtomicU32, Ordering};
use super::sync::const_fn;

const SLEEPERS: u32 = 1;
const PERMIT: u32 = 2;

/// There are 2³¹ − 1 permits already; use fewer, or release only what was acquired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooManyPermits;

impl fmt::Display for TooManyPermits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a semaphore holds at most 2147483647 permits; release only what was acquired")
    }
}

impl core::error::Error for TooManyPermits {}

/// Hands out permits; `P` says how those sleep who get none.
///
/// ```
/// # #[cfg(all(feature = "libc", target_os = "linux"))] {
/// use locks::{LinuxFutex, Semaphore};
/// static SEATS: Semaphore<LinuxFutex> = Semaphore::new(2);
/// SEATS.acquire();
/// assert!(SEATS.try_acquire() && !SEATS.try_acquire());
/// SEATS.release().unwrap();
/// assert_eq!(SEATS.permits(), 1);
/// # }
/// ```
#[derive(Debug)]
pub struct Semaphore<P> {
    state: AtomicU32,
    parker: PhantomData<fn() -> P>,
}

impl<P> Semaphore<P> {
    /// The most permits that one holds.
    pub const MOST: u32 = u32::MAX / PERMIT;

    const_fn! {
        /// Makes a semaphore with so many permits, at most [`MOST`](Self::MOST).
        pub fn new(permits: u32) -> Self {
            let permits = if permits > Self::MOST { Self::MOST } else { permits };
            Self { state: AtomicU32::new(permits * PERMIT), parker: PhantomData }
        }
    }

    /// Permits that are free; may be stale.
    pub fn permits(&self) -> u32 {
        // ORDERING: Relaxed - a look.
        self.state.load(Ordering::Relaxed) / PERMIT
    }
}

impl<P: Parker> Semaphore<P> {
    /// Takes a permit if one is free.
    pub fn try_acquire(&self) -> bool {
        // ORDERING: Relaxed - a hint; the exchange decides.
        let mut state = self.state.load(Ordering::Relaxed);
        while state >= PERMIT {
            // ORDERING: Acquire on success, E1 - see what was done before the release; Relaxed on
            // failure - the value is compared again.
            let taken = self.state.compare_exchange(
                state,
                state - PERMIT,
                Ordering::Acquire,
                Ordering::Relaxed,
            );
            match taken {
                Ok(_) => return true,
                Err(now) => state = now,
            }
        }
        false
    }

    /// Waits for a permit and takes it.
    pub fn acquire(&self) {
        while !self.try_acquire() {
            // ORDERING: Relaxed on success and failure - only the value counts (I1).
            let said =
                self.state.compare_exchange(0, SLEEPERS, Ordering::Relaxed, Ordering::Relaxed);
            if said.is_ok() || said == Err(SLEEPERS) {
                P::park(&self.state, SLEEPERS);
            }
        }
    }

    /// Gives a permit back, or a new one.
    ///
    /// # Errors
    /// When there are [`MOST`](Self::MOST) already; nothing has changed.
    pub fn release(&self) -> Result<(), TooManyPermits> {
        // ORDERING: Relaxed - a hint; the exchange decides.
        let mut state = self.state.load(Ordering::Relaxed);
        loop {
            if state / PERMIT == Self::MOST {
                return Err(TooManyPermits);
            }
            let more = (state & !SLEEPERS) + PERMIT;
            // ORDERING: Release on success, E1 - hands on what was done before; Relaxed on failure
            // - the value is compared again.
            match self.state.compare_exchange(state, more, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => break,
                Err(now) => state = now,
            }
        }
        if state & SLEEPERS != 0 {
            P::unpark_all(&self.state);
        }
        Ok(())
    }
}
