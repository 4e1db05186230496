//! Wait policies that leave the CPU to others.

use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;

use crate::sync::atomic::{AtomicUsize, Ordering, fence};
use crate::sync::spin_loop;
use crate::wait::Wait;

/// Looks before a waiter gives its CPU away; a hand-over between running threads takes fewer.
const SPINS: u32 = 64;

/// Spins for a while, then lets other threads run between two looks.
#[derive(Debug, Clone, Copy, Default)]
pub struct SpinYield;

impl Wait for SpinYield {
    fn new() -> Self {
        Self
    }

    fn until<R>(&self, mut attempt: impl FnMut() -> Option<R>) -> R {
        let mut spins = 0;
        loop {
            if let Some(result) = attempt() {
                return result;
            }
            if spins < SPINS {
                spins += 1;
                spin_loop();
            } else {
                thread::yield_now();
            }
        }
    }

    #[inline(always)]
    fn notify(&self) {}
}

/// Spins for a while, then sleeps until somebody announces a change.
///
/// Costs each operation of the other side a fence and a load while nobody sleeps; a sleeper costs it
/// a lock and a system call. All sleepers wake together: one alone may find that what was announced
/// is not for it, and must not keep the news to itself.
#[derive(Debug, Default)]
pub struct Park {
    sleepers: AtomicUsize,
    /// Held by a sleeper from its registration to its sleep, and by who wakes it.
    registering: Mutex<()>,
    changed: Condvar,
}

impl Wait for Park {
    fn new() -> Self {
        Self::default()
    }

    fn until<R>(&self, mut attempt: impl FnMut() -> Option<R>) -> R {
        for _ in 0..SPINS {
            if let Some(result) = attempt() {
                return result;
            }
            spin_loop();
        }
        let mut guard = self.registering.lock().unwrap_or_else(PoisonError::into_inner);
        // ORDERING: Relaxed - the fence orders it before the attempt.
        self.sleepers.fetch_add(1, Ordering::Relaxed);
        let result = loop {
            // ORDERING: SeqCst - store buffering: we have stored `sleepers` and read the queue, who
            // announces has changed the queue and reads `sleepers`; one of us sees the other.
            fence(Ordering::SeqCst);
            if let Some(result) = attempt() {
                break result;
            }
            guard = self.changed.wait(guard).unwrap_or_else(PoisonError::into_inner);
        };
        // ORDERING: Relaxed - too large a number costs a call that wakes nobody.
        self.sleepers.fetch_sub(1, Ordering::Relaxed);
        result
    }

    #[inline]
    fn notify(&self) {
        // ORDERING: SeqCst - as in `until`.
        fence(Ordering::SeqCst);
        // ORDERING: Relaxed - the fence is in front of it.
        if self.sleepers.load(Ordering::Relaxed) > 0 {
            // A sleeper that has registered and not seen the change is asleep when we have the lock.
            drop(self.registering.lock().unwrap_or_else(PoisonError::into_inner));
            self.changed.notify_all();
        }
    }
}
