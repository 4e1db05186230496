//! Condition variable: sleeps until told that what a mutex protects has changed.
//! # Algorithm
//! `sequence` counts notifications. A waiter reads it while it holds the mutex, unlocks, and parks
//! on that value: a notification in between has changed it, so parking returns at once.
//! # Why
//! Waiting without looking again and again; one word, and no memory of who waits.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `Condvar` | 4 | 4 | 1 | notifiers |
//! # Cost
//! A notification: 1 RMW and 1 wake, whether somebody waits or not.
//! # Progress
//! Blocking; in the parker's order. Spurious returns happen: look at the condition again.
//! # Invariants
//! - I1: each notification changes `sequence`.
//! # Synchronization
//! none of its own: the mutex hands the condition on.
//! # Errors and limits
//! A waiter that is delayed between unlocking and parking for exactly 2³² notifications misses
//! them.
//! # References
//! M. Bos, "Rust Atomics and Locks", 2023, chapter 9 (Condition Variable); and its `std` form.

use core::marker::PhantomData;

use super::parker::Parker;
use super::sync::atomic::{AtomicU32, Ordering};
use super::sync::const_fn;

/// Lets holders of a mutex wait for one another; `P` says how they sleep.
///
/// ```
/// # #[cfg(all(feature = "libc", target_os = "linux"))] {
/// use locks::{Condvar, FutexLock, LinuxFutex, Mutex};
/// static READY: Mutex<bool, FutexLock<LinuxFutex>> = Mutex::new(false);
/// static CHANGED: Condvar<LinuxFutex> = Condvar::new();
/// std::thread::spawn(|| {
///     *READY.lock() = true;
///     CHANGED.notify_one();
/// });
/// let mut ready = READY.lock();
/// while !*ready {
///     ready = ready.wait(&CHANGED);
/// }
/// # }
/// ```
#[derive(Debug)]
pub struct Condvar<P> {
    sequence: AtomicU32,
    parker: PhantomData<fn() -> P>,
}

impl<P> Condvar<P> {
    const_fn! {
        /// Makes a condition variable for which nobody waits.
        pub fn new() -> Self {
            Self { sequence: AtomicU32::new(0), parker: PhantomData }
        }
    }
}

impl<P> Default for Condvar<P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: Parker> Condvar<P> {
    /// Calls `unlock` and sleeps until a notification that comes after it, or for no reason. For
    /// builders: the caller holds what `unlock` unlocks, and whoever notifies has changed the
    /// condition while holding it. [`MutexGuard::wait`](crate::MutexGuard::wait) is the safe face.
    pub fn sleep(&self, unlock: impl FnOnce()) {
        // ORDERING: Relaxed - read under the mutex: a notification for a change that the caller has
        // not seen is not counted yet.
        let seen = self.sequence.load(Ordering::Relaxed);
        unlock();
        P::park(&self.sequence, seen);
    }

    /// Wakes one waiter, if there is one.
    pub fn notify_one(&self) {
        // ORDERING: Relaxed - only the change of value counts.
        self.sequence.fetch_add(1, Ordering::Relaxed);
        P::unpark_one(&self.sequence);
    }

    /// Wakes all waiters.
    pub fn notify_all(&self) {
        // ORDERING: Relaxed - as in `notify_one`.
        self.sequence.fetch_add(1, Ordering::Relaxed);
        P::unpark_all(&self.sequence);
    }
}
