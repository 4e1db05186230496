//! Condition variable, semaphore, barrier and values made once, on the real futex.
#![cfg(all(feature = "libc", target_os = "linux"))]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use locks::{
    Condvar, DisseminationBarrier, FutexLock, Lazy, LinuxFutex, Mutex, OnceValue, Semaphore,
    SpinBarrier, TicketLock, TooManyPermits, Yield,
};

type Futex = FutexLock<LinuxFutex>;

#[test]
fn a_queue_of_one_goes_back_and_forth() {
    const ROUNDS: u32 = 2_000;
    let (cell, changed) = (Mutex::<Option<u32>, Futex>::new(None), Condvar::<LinuxFutex>::new());
    let received = thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..ROUNDS {
                let mut guard = cell.lock();
                while guard.is_some() {
                    guard = guard.wait(&changed);
                }
                *guard = Some(number);
                drop(guard);
                changed.notify_all();
            }
        });
        let mut received = Vec::new();
        for _ in 0..ROUNDS {
            let mut guard = cell.lock();
            while guard.is_none() {
                guard = guard.wait(&changed);
            }
            received.extend(guard.take());
            drop(guard);
            changed.notify_one();
        }
        received
    });
    assert!(received.into_iter().eq(0..ROUNDS));
}

#[test]
fn a_spinning_mutex_can_be_waited_with_too() {
    let (ready, changed) = (Mutex::<bool, TicketLock>::new(false), Condvar::<LinuxFutex>::new());
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut guard = ready.lock();
                while !*guard {
                    guard = guard.wait(&changed);
                }
            });
        }
        *ready.lock() = true;
        changed.notify_all();
    });
}

#[test]
fn no_more_are_inside_than_there_are_permits() {
    let seats = Semaphore::<LinuxFutex>::new(2);
    let (inside, most) = (AtomicU32::new(0), AtomicU32::new(0));
    thread::scope(|scope| {
        for _ in 0..5 {
            scope.spawn(|| {
                for _ in 0..500 {
                    seats.acquire();
                    most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    thread::yield_now();
                    inside.fetch_sub(1, Ordering::SeqCst);
                    seats.release().unwrap();
                }
            });
        }
    });
    assert_eq!((most.into_inner(), seats.permits()), (2, 2));
}

#[test]
fn permits_have_a_top() {
    const MOST: u32 = Semaphore::<LinuxFutex>::MOST;
    for (made, kept) in [(0, 0), (1, 1), (MOST, MOST), (MOST + 1, MOST), (u32::MAX, MOST)] {
        let seats = Semaphore::<LinuxFutex>::new(made);
        assert_eq!((seats.permits(), seats.try_acquire()), (kept, kept > 0));
        seats.release().unwrap();
    }
    let full = Semaphore::<LinuxFutex>::new(MOST);
    assert_eq!(full.release(), Err(TooManyPermits));
    assert_eq!(full.permits(), MOST);
}

#[test]
fn nobody_passes_a_barrier_early() {
    let barrier = SpinBarrier::<Yield>::new(3);
    let (arrivals, lasts) = (AtomicU32::new(0), AtomicU32::new(0));
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for round in 1..=300 {
                    arrivals.fetch_add(1, Ordering::Relaxed);
                    lasts.fetch_add(barrier.wait().into(), Ordering::Relaxed);
                    assert_eq!(arrivals.load(Ordering::Relaxed), 3 * round);
                    barrier.wait();
                }
            });
        }
    });
    assert_eq!(lasts.into_inner(), 300);
    for alone in [0, 1] {
        let barrier = <SpinBarrier>::new(alone);
        assert!(barrier.wait() && barrier.wait());
    }
}

#[test]
fn nobody_passes_a_dissemination_barrier_early() {
    fn of<const THREADS: usize>() {
        let barrier = DisseminationBarrier::<THREADS, Yield>::new();
        let arrivals = AtomicU32::new(0);
        thread::scope(|scope| {
            for rank in 0..THREADS {
                let mut party = barrier.join().unwrap_or_else(|| panic!("no place for {rank}"));
                let arrivals = &arrivals;
                scope.spawn(move || {
                    for round in 1..=100 {
                        arrivals.fetch_add(1, Ordering::Relaxed);
                        party.wait();
                        assert_eq!(arrivals.load(Ordering::Relaxed), THREADS as u32 * round);
                        party.wait();
                    }
                });
            }
        });
        assert!(barrier.join().is_none());
    }
    of::<1>();
    of::<2>();
    of::<3>();
    of::<5>();
    of::<8>();
}

#[test]
fn a_value_is_made_once() {
    let (value, made) = (OnceValue::<u32, LinuxFutex>::new(), AtomicU32::new(0));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let make = || {
                    thread::yield_now();
                    made.fetch_add(1, Ordering::Relaxed)
                };
                assert_eq!(*value.get_or_make(make), 0);
            });
        }
    });
    assert_eq!(made.into_inner(), 1);
}

#[test]
fn who_panics_while_making_leaves_it_to_the_next() {
    let value = OnceValue::<String, LinuxFutex>::new();
    for _ in 0..3 {
        let attempt = AssertUnwindSafe(|| value.get_or_make(|| panic!("making")).len());
        assert!(catch_unwind(attempt).is_err());
        assert_eq!(value.get(), None);
    }
    assert_eq!(value.get_or_make(|| "made".into()), "made");
    static LAZY: Lazy<String, LinuxFutex> = Lazy::new(|| "lazy".into());
    assert_eq!((LAZY.len(), &**LAZY), (4, "lazy"));
}
