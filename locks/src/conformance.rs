//! The suite that every lock passes; yours too.
//!
//! ```
//! # mod my {
//! // In a test file of your crate:
//! locks::conformance!(locks::TicketLock);
//! locks::conformance!(tas: locks::TasLock); // a second one needs a name
//! # }
//! ```
//!
//! The functions return what they found instead of panicking, so that the suite itself can be
//! tested on locks that are broken.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;
use std::sync::Mutex as StdMutex;
use std::thread;

use crate::contract::{RawLock, TryLock};
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::spin_loop;

/// What a lock did that its contract forbids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation(String);

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Data that only a lock protects, made of atomics so that a broken lock gives a verdict instead
/// of undefined behaviour. Every access is relaxed: only the lock orders them.
#[derive(Default)]
struct Protected {
    inside: AtomicUsize,
    most_inside: AtomicUsize,
    words: [AtomicUsize; 4],
    torn: AtomicUsize,
}

impl Protected {
    /// The critical section: a read and a write of each word, far enough apart that two holders
    /// at once lose an update.
    fn visit(&self) {
        let inside = self.inside.fetch_add(1, Ordering::Relaxed) + 1;
        self.most_inside.fetch_max(inside, Ordering::Relaxed);
        let seen: [usize; 4] = core::array::from_fn(|i| self.words[i].load(Ordering::Relaxed));
        if seen.iter().any(|&word| word != seen[0]) {
            self.torn.fetch_add(1, Ordering::Relaxed);
        }
        spin_loop();
        for (word, old) in self.words.iter().zip(seen) {
            word.store(old + 1, Ordering::Relaxed);
        }
        self.inside.fetch_sub(1, Ordering::Relaxed);
    }

    fn judge(&self, acquisitions: usize) -> Result<(), Violation> {
        let most = self.most_inside.load(Ordering::Relaxed);
        let torn = self.torn.load(Ordering::Relaxed);
        let counted: [usize; 4] = core::array::from_fn(|i| self.words[i].load(Ordering::Relaxed));
        if most > 1 || torn > 0 || counted.iter().any(|&word| word != acquisitions) {
            return Err(Violation(format!(
                "{acquisitions} acquisitions left {counted:?} in the protected words, {torn} \
                 visits saw them differ, and {most} threads were inside at once"
            )));
        }
        Ok(())
    }
}

/// `threads` threads each take the lock `rounds` times and change shared words inside.
///
/// # Errors
/// When an update was lost, the words were seen half changed, or two threads were inside at once.
pub fn mutual_exclusion<L: RawLock + Default>(
    threads: usize,
    rounds: usize,
) -> Result<(), Violation> {
    let lock = L::default();
    let protected = Protected::default();
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let slot = L::Slot::default();
                for _ in 0..rounds {
                    // SAFETY: the slot is this thread's, stays in place, and is unlocked below.
                    unsafe { lock.lock(&slot) };
                    protected.visit();
                    // SAFETY: taken above with the same slot.
                    unsafe { lock.unlock(&slot) };
                }
            });
        }
    });
    protected.judge(threads * rounds)
}

/// One slot serves two locks in turn, nested slots serve them at once.
///
/// # Errors
/// When the protected words are not as the acquisitions left them.
pub fn slots_are_free_again<L: RawLock + Default>() -> Result<(), Violation> {
    let locks = [L::default(), L::default()];
    let protected = [Protected::default(), Protected::default()];
    let (outer, inner) = (L::Slot::default(), L::Slot::default());
    for round in 0..100 {
        let (first, second) = (round % 2, (round + 1) % 2);
        // SAFETY: the slots stay in place; each is unlocked before it is used again.
        unsafe { locks[first].lock(&outer) };
        // SAFETY: as above, with the other lock and the other slot.
        unsafe { locks[second].lock(&inner) };
        protected[first].visit();
        protected[second].visit();
        // SAFETY: taken above with this slot.
        unsafe { locks[first].unlock(&outer) };
        // SAFETY: taken above with this slot.
        unsafe { locks[second].unlock(&inner) };
    }
    protected[0].judge(100)?;
    protected[1].judge(100)
}

/// A lock that says it is FIFO serves waiters in the order of their arrival.
///
/// Arrivals are 40 ms apart while the lock is held. A scheduler that delays a thread for longer
/// looks like a violation, hence five attempts, three of which must be in order.
///
/// # Errors
/// When fewer than three attempts were in order.
pub fn first_come_first_served<L: RawLock + Default>() -> Result<(), Violation> {
    const WAITERS: usize = 3;
    let orders: Vec<Vec<usize>> = (0..5).map(|_| order_of_service::<L>(WAITERS)).collect();
    let in_order = orders.iter().filter(|order| order.is_sorted()).count();
    if in_order < 3 {
        return Err(Violation(format!("waiters that arrived in order were served as {orders:?}")));
    }
    Ok(())
}

fn order_of_service<L: RawLock + Default>(waiters: usize) -> Vec<usize> {
    let lock = L::default();
    let served = StdMutex::new(Vec::new());
    let slot = L::Slot::default();
    // SAFETY: the slot stays in place and is unlocked below.
    unsafe { lock.lock(&slot) };
    thread::scope(|scope| {
        for waiter in 0..waiters {
            let (lock, served) = (&lock, &served);
            scope.spawn(move || {
                let slot = L::Slot::default();
                // SAFETY: as above.
                unsafe { lock.lock(&slot) };
                if let Ok(mut served) = served.lock() {
                    served.push(waiter);
                }
                // SAFETY: taken above with this slot.
                unsafe { lock.unlock(&slot) };
            });
            thread::sleep(Duration::from_millis(40));
        }
        // SAFETY: taken above with this slot.
        unsafe { lock.unlock(&slot) };
    });
    served.into_inner().unwrap_or_default()
}

/// `try_lock` fails on a held lock without disturbing it, succeeds on a free one, and excludes
/// `lock`.
///
/// # Errors
/// When it does not.
pub fn try_lock_takes_free_locks_only<L: TryLock + Default>(
    rounds: usize,
) -> Result<(), Violation> {
    let lock = L::default();
    let (held, other) = (L::Slot::default(), L::Slot::default());
    for _ in 0..3 {
        // SAFETY: the slot stays in place and is unlocked below if it was taken.
        if !unsafe { lock.try_lock(&held) } {
            return Err(Violation("try_lock failed on a free lock".into()));
        }
        for _ in 0..300 {
            // SAFETY: as above; failure leaves the slot free.
            if unsafe { lock.try_lock(&other) } {
                return Err(Violation("try_lock succeeded on a held lock".into()));
            }
        }
        // SAFETY: taken above with this slot.
        unsafe { lock.unlock(&held) };
    }
    let (protected, taken) = (Protected::default(), AtomicUsize::new(0));
    thread::scope(|scope| {
        for trying in [true, false] {
            let (lock, protected, taken) = (&lock, &protected, &taken);
            scope.spawn(move || {
                let slot = L::Slot::default();
                for _ in 0..rounds {
                    if trying {
                        // SAFETY: the slot stays in place; unlocked below if taken.
                        if !unsafe { lock.try_lock(&slot) } {
                            continue;
                        }
                    } else {
                        // SAFETY: as above.
                        unsafe { lock.lock(&slot) };
                    }
                    protected.visit();
                    taken.fetch_add(1, Ordering::Relaxed);
                    // SAFETY: taken above with this slot.
                    unsafe { lock.unlock(&slot) };
                }
            });
        }
    });
    protected.judge(taken.into_inner())
}

/// Runs the suite over a type that implements [`RawLock`] and [`Default`].
///
/// `locks::conformance!(MyLock)` makes one module of tests; a second lock in the same module needs
/// a name: `locks::conformance!(other: OtherLock)`. For a lock that also implements [`TryLock`]
/// add `locks::conformance_try_lock!(MyLock)`.
#[macro_export]
macro_rules! conformance {
    ($lock:ty) => { $crate::conformance!(lock_conformance: $lock); };
    ($name:ident: $lock:ty) => {
        mod $name {
            #[allow(unused_imports, reason = "the type may be written with a full path")]
            use super::*;
            use $crate::conformance as suite;

            #[test]
            fn excludes_one_another() {
                suite::mutual_exclusion::<$lock>(2, 20_000).unwrap_or_else(|v| panic!("{v}"));
            }
            #[test]
            fn excludes_more_threads_than_cpus() {
                let threads = ::std::thread::available_parallelism().map_or(2, |n| n.get()) + 1;
                suite::mutual_exclusion::<$lock>(threads, 50)
                    .unwrap_or_else(|v| panic!("{v}"));
            }
            #[test]
            fn frees_its_slots() {
                suite::slots_are_free_again::<$lock>().unwrap_or_else(|v| panic!("{v}"));
            }
            #[test]
            fn is_fifo_if_it_says_so() {
                let properties = <$lock as $crate::RawLock>::PROPERTIES;
                if properties.fairness == $crate::Fairness::Fifo {
                    suite::first_come_first_served::<$lock>().unwrap_or_else(|v| panic!("{v}"));
                }
            }
        }
    };
}

/// Runs the suite's part on `try_lock` over a type that implements [`TryLock`] and [`Default`].
#[macro_export]
macro_rules! conformance_try_lock {
    ($lock:ty) => { $crate::conformance_try_lock!(try_lock_conformance: $lock); };
    ($name:ident: $lock:ty) => {
        mod $name {
            #[allow(unused_imports, reason = "the type may be written with a full path")]
            use super::*;

            #[test]
            fn takes_free_locks_only() {
                $crate::conformance::try_lock_takes_free_locks_only::<$lock>(20_000)
                    .unwrap_or_else(|v| panic!("{v}"));
            }
        }
    };
}
