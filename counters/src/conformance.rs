//! The suite that every exact counter passes; yours too.
//!
//! ```
//! # mod my {
//! // In a test file of your crate:
//! counters::conformance!(counters::AtomicCounter);
//! counters::conformance_drain!(counters::AtomicCounter);
//! type Mine = counters::ShardedCounter<8, counters::TlsSlot>;
//! counters::conformance!(mine: Mine); // a second one needs a name
//! # }
//! ```
//!
//! The functions return what they found instead of panicking, so that the suite itself can be
//! tested on counters that are broken.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cell::RefCell;
use core::fmt;
use core::sync::atomic::{AtomicBool, AtomicIsize, Ordering};
use std::sync::Barrier;
use std::thread;

use crate::contract::{Counter, Drain};

/// What a counter did that its contract forbids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation(String);

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn expect(sum: i64, expected: i64, after: &str) -> Result<(), Violation> {
    if sum == expected {
        return Ok(());
    }
    Err(Violation(format!("the sum is {sum} instead of {expected} after {after}")))
}

/// `threads` threads, started together, each add the numbers that `n` makes of 0 … `rounds` − 1.
fn add_from<C: Counter>(counter: &C, threads: i64, rounds: i64, n: impl Fn(i64) -> i64 + Sync) {
    let barrier = Barrier::new(threads as usize);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                barrier.wait();
                for round in 0..rounds {
                    counter.add(n(round));
                }
            });
        }
    });
}

/// `threads` threads each add 1 `rounds` times: the total is their product, again and again.
///
/// # Errors
/// When it is not.
pub fn keeps_every_add<C: Counter + Default>(threads: i64, rounds: i64) -> Result<(), Violation> {
    let counter = C::default();
    expect(counter.sum(), 0, "nothing")?;
    for time in 1..=2 {
        add_from(&counter, threads, rounds, |_| 1);
        let after = format!("{time} times {threads} threads adding 1 {rounds} times");
        expect(counter.sum(), time * threads * rounds, &after)?;
    }
    Ok(())
}

/// `threads` threads each add 3 and −5 in turn: the total goes below zero, exactly.
///
/// # Errors
/// When it does not.
pub fn counts_down<C: Counter + Default>(threads: i64, rounds: i64) -> Result<(), Violation> {
    let counter = C::default();
    add_from(&counter, threads, 2 * rounds, |round| if round % 2 == 0 { 3 } else { -5 });
    let after = format!("{threads} threads adding 3 and -5 {rounds} times");
    expect(counter.sum(), -2 * threads * rounds, &after)
}

/// The total wraps modulo 2⁶⁴, in both directions, whoever adds.
///
/// # Errors
/// When it does not; a panic on overflow is reported by the test that runs this.
pub fn wraps<C: Counter + Default>() -> Result<(), Violation> {
    let counter = C::default();
    add_from(&counter, 2, 1, |_| i64::MAX);
    expect(counter.sum(), -2, "adding the greatest number twice")?;
    let counter = C::default();
    counter.add(i64::MIN);
    thread::scope(|scope| {
        scope.spawn(|| counter.add(-1));
    });
    expect(counter.sum(), i64::MAX, "adding the least number and -1")
}

/// While `threads` threads add 1 `rounds` times each, a reader sees sums that hold every add that
/// happened before, never decrease, and never exceed what is added in all.
///
/// # Errors
/// When one of the three does not hold.
pub fn sums_are_one_sided<C: Counter + Default>(
    threads: i64,
    rounds: i64,
) -> Result<(), Violation> {
    let (counter, done, over) = (C::default(), AtomicIsize::new(0), AtomicBool::new(false));
    let (most, barrier) = (threads * rounds, Barrier::new(threads as usize + 1));
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut last = 0;
            barrier.wait();
            // ORDERING: Acquire - against the store of `over`: the last round sees every add.
            while !over.load(Ordering::Acquire) {
                // ORDERING: Acquire - against the add to `done`: these adds happened before the sum.
                let before = done.load(Ordering::Acquire) as i64;
                let sum = counter.sum();
                if sum < before {
                    return Err(format!(
                        "a sum of {sum} lacks some of the {before} adds before it"
                    ));
                }
                if sum < last {
                    return Err(format!("adding 1 made the sum fall from {last} to {sum}"));
                }
                if sum > most {
                    return Err(format!("the sum was {sum} while {most} adds were made in all"));
                }
                last = sum;
            }
            Ok(())
        });
        let adders: Vec<_> = (0..threads)
            .map(|_| {
                scope.spawn(|| {
                    barrier.wait();
                    for _ in 0..rounds {
                        counter.add(1);
                        // ORDERING: Release - who reads `done` has the add before it.
                        done.fetch_add(1, Ordering::Release);
                    }
                })
            })
            .collect();
        let ended = adders.into_iter().all(|adder| adder.join().is_ok());
        // ORDERING: Release - against the readers' look: all adds are over.
        over.store(true, Ordering::Release);
        match reader.join() {
            Ok(Ok(())) if ended => Ok(()),
            Ok(Err(found)) => Err(Violation(found)),
            _ => Err(Violation("an add or a sum panicked".into())),
        }
    })?;
    expect(counter.sum(), most, "the adds of all threads")
}

/// `threads` threads that live for one add each, a few at a time, keep the total.
///
/// # Errors
/// When an exited thread's add is gone.
pub fn keeps_adds_of_exited_threads<C: Counter + Default + 'static>(
    threads: i64,
) -> Result<(), Violation> {
    let counter = Arc::new(C::default());
    let mut started = 0;
    while started < threads {
        let batch: Vec<_> = (started..threads.min(started + 4))
            .map(|_| {
                let counter = Arc::clone(&counter);
                thread::spawn(move || counter.add(1))
            })
            .collect();
        started += batch.len() as i64;
        // `join` returns after the destructors of thread-local values, which `scope` does not.
        if batch.into_iter().any(|one| one.join().is_err()) {
            return Err(Violation("an add panicked".into()));
        }
        expect(counter.sum(), started, "as many threads have lived")?;
    }
    Ok(())
}

struct AtExit(RefCell<Option<Box<dyn FnOnce()>>>);

impl Drop for AtExit {
    fn drop(&mut self) {
        if let Some(run) = self.0.take() {
            run();
        }
    }
}

std::thread_local! {
    static AT_EXIT: AtExit = const { AtExit(RefCell::new(None)) };
}

/// A destructor of a thread-local value may add, whether it was registered before or after the
/// counter's own, and also if the thread never counted before.
///
/// # Errors
/// When such an add is lost or panics.
pub fn adds_from_destructors<C: Counter + Default + 'static>() -> Result<(), Violation> {
    let counter = Arc::new(C::default());
    for (adds_first, adds_last) in [(false, false), (true, false), (false, true), (true, true)] {
        let (before, at_exit) = (counter.sum(), Arc::clone(&counter));
        let counts = Arc::clone(&counter);
        let thread = thread::spawn(move || {
            if adds_first {
                counts.add(1);
            }
            AT_EXIT.with(|slot| {
                slot.0.replace(Some(Box::new(move || at_exit.add(10))));
            });
            if adds_last {
                counts.add(1);
            }
        });
        if thread.join().is_err() {
            return Err(Violation("an add panicked".into()));
        }
        let expected = before + 10 + i64::from(adds_first) + i64::from(adds_last);
        expect(counter.sum(), expected, "an add of 10 in a destructor")?;
    }
    Ok(())
}

/// While `threads` threads add 1 `rounds` times each, two others take: the takes and what is left
/// make up all the adds, and no take gives back less than nothing.
///
/// # Errors
/// When an add was taken twice or never.
pub fn takes_every_add_once<C: Counter + Drain + Default>(
    threads: i64,
    rounds: i64,
) -> Result<(), Violation> {
    let counter = C::default();
    counter.add(7);
    expect(counter.take(), 7, "a take of 7")?;
    expect(counter.take(), 0, "a take of what was taken")?;
    expect(counter.sum(), 0, "a take")?;
    let (taken, least, over) = (AtomicIsize::new(0), AtomicIsize::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                // ORDERING: Acquire - against the store of `over`.
                while !over.load(Ordering::Acquire) {
                    let some = counter.take();
                    taken.fetch_add(some as isize, Ordering::Relaxed);
                    least.fetch_min(some as isize, Ordering::Relaxed);
                }
            });
        }
        add_from(&counter, threads, rounds, |_| 1);
        // ORDERING: Release - against the takers' look: all adds are over.
        over.store(true, Ordering::Release);
    });
    if least.load(Ordering::Relaxed) < 0 {
        return Err(Violation(format!("a take gave {least:?} though only 1 was ever added")));
    }
    let after = format!("{threads} threads adding 1 {rounds} times, in all takes and at the end");
    expect(taken.into_inner() as i64 + counter.take(), threads * rounds, &after)
}

/// While threads live for `rounds` adds of 1 each, `threads` of them one after the other and a few
/// at a time, another takes: what a thread leaves behind when it ends is taken once.
///
/// # Errors
/// When an add of a thread that ended meanwhile was taken twice or never.
pub fn takes_adds_of_exiting_threads_once<C: Counter + Drain + Default + 'static>(
    threads: i64,
    rounds: i64,
) -> Result<(), Violation> {
    let counter = Arc::new(C::default());
    let over = Arc::new(AtomicBool::new(false));
    let taker = {
        let (counter, over) = (Arc::clone(&counter), Arc::clone(&over));
        thread::spawn(move || {
            let mut taken = 0;
            // ORDERING: Acquire - against the store of `over`.
            while !over.load(Ordering::Acquire) {
                taken += counter.take();
                thread::yield_now();
            }
            taken
        })
    };
    let mut panicked = false;
    for first in (0..threads).step_by(4) {
        let batch: Vec<_> = (first..threads.min(first + 4))
            .map(|_| {
                let counter = Arc::clone(&counter);
                thread::spawn(move || (0..rounds).for_each(|_| counter.add(1)))
            })
            .collect();
        panicked |= batch.into_iter().any(|one| one.join().is_err());
    }
    // ORDERING: Release - against the taker's look: all adds are over.
    over.store(true, Ordering::Release);
    let taken = taker.join();
    if panicked {
        return Err(Violation("an add panicked".into()));
    }
    let taken = taken.map_err(|_| Violation("a take panicked".into()))?;
    let after = format!("{threads} threads that ended, in all takes and at the end");
    expect(taken + counter.take(), threads * rounds, &after)
}

/// Takes wrap modulo 2⁶⁴ as sums do, and so does what is kept of earlier takes.
///
/// # Errors
/// When they do not; a panic on overflow is reported by the test that runs this.
pub fn takes_wrap<C: Counter + Drain + Default>() -> Result<(), Violation> {
    let counter = C::default();
    for n in [i64::MAX, i64::MAX, i64::MIN, -1, i64::MIN] {
        counter.add(n);
        expect(counter.take(), n, "a take of one number")?;
    }
    add_from(&counter, 2, 1, |_| i64::MAX);
    expect(counter.take(), -2, "a take of twice the greatest number")?;
    expect(counter.sum(), 0, "a take")
}

/// Runs the suite over a type that implements [`Counter`] and [`Default`] and says that it is
/// exact.
///
/// `counters::conformance!(MyCounter)` makes one module of tests; a second counter in the same
/// module needs a name: `counters::conformance!(other: OtherCounter)`. For a counter that also
/// implements [`Drain`] add `counters::conformance_drain!(MyCounter)`.
#[macro_export]
macro_rules! conformance {
    ($counter:ty) => { $crate::conformance!(counter_conformance: $counter); };
    ($name:ident: $counter:ty) => {
        mod $name {
            #[allow(unused_imports, reason = "the type may be written with a full path")]
            use super::*;
            use $crate::conformance as suite;

            const _: () = assert!(
                <$counter as $crate::Counter>::PROPERTIES.exact,
                "the suite is for counters that say they are exact"
            );

            #[test]
            fn keeps_every_add() {
                suite::keeps_every_add::<$counter>(4, 50_000).unwrap_or_else(|v| panic!("{v}"));
            }
            #[test]
            fn counts_down() {
                suite::counts_down::<$counter>(3, 20_000).unwrap_or_else(|v| panic!("{v}"));
            }
            #[test]
            fn wraps() {
                suite::wraps::<$counter>().unwrap_or_else(|v| panic!("{v}"));
            }
            #[test]
            fn sums_are_one_sided() {
                suite::sums_are_one_sided::<$counter>(2, 50_000).unwrap_or_else(|v| panic!("{v}"));
            }
            #[test]
            fn keeps_adds_of_exited_threads() {
                suite::keeps_adds_of_exited_threads::<$counter>(1_000)
                    .unwrap_or_else(|v| panic!("{v}"));
            }
            #[test]
            fn adds_from_destructors() {
                suite::adds_from_destructors::<$counter>().unwrap_or_else(|v| panic!("{v}"));
            }
        }
    };
}

/// Runs the suite's part on `take` over a type that implements [`Counter`], [`Drain`] and
/// [`Default`].
#[macro_export]
macro_rules! conformance_drain {
    ($counter:ty) => { $crate::conformance_drain!(drain_conformance: $counter); };
    ($name:ident: $counter:ty) => {
        mod $name {
            #[allow(unused_imports, reason = "the type may be written with a full path")]
            use super::*;
            use $crate::conformance as suite;

            #[test]
            fn takes_every_add_once() {
                suite::takes_every_add_once::<$counter>(2, 50_000)
                    .unwrap_or_else(|v| panic!("{v}"));
            }
            #[test]
            fn takes_adds_of_exiting_threads_once() {
                suite::takes_adds_of_exiting_threads_once::<$counter>(400, 100)
                    .unwrap_or_else(|v| panic!("{v}"));
            }
            #[test]
            fn takes_wrap() {
                suite::takes_wrap::<$counter>().unwrap_or_else(|v| panic!("{v}"));
            }
        }
    };
}
