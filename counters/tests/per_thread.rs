//! Places: one owner each, kept counts when threads end, drains while they do.
#![cfg(feature = "std")]

use counters::{Counter, Drain, OwnPlace, PLACE_STRIDE, PerThreadCounter, TlsSlot};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Barrier, Mutex, MutexGuard, PoisonError};
use std::thread;

/// Places are a matter of the process, so the tests take turns.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn a_thread_has_no_place_until_it_looks_for_one_and_then_keeps_it() {
    let _turn = alone();
    let places: Vec<usize> = (0..3)
        .map(|_| {
            let thread = thread::spawn(|| {
                assert_eq!(TlsSlot::cached(), usize::MAX);
                let place = TlsSlot::find();
                assert_eq!((TlsSlot::cached(), TlsSlot::find()), (place, place));
                place
            });
            thread.join().unwrap()
        })
        .collect();
    assert_eq!(places, [0; 3], "the lowest free number, times {PLACE_STRIDE}");
}

#[test]
fn threads_at_once_have_places_of_their_own() {
    let _turn = alone();
    let barrier: &Barrier = Box::leak(Box::new(Barrier::new(64)));
    let threads: Vec<_> = (0..64)
        .map(|_| {
            thread::spawn(move || {
                let place = TlsSlot::find();
                barrier.wait();
                place
            })
        })
        .collect();
    let mut places: Vec<usize> = threads.into_iter().map(|it| it.join().unwrap()).collect();
    places.sort_unstable();
    assert_eq!(places, Vec::from_iter((0..64).map(|number| number * PLACE_STRIDE)));
}

#[test]
fn threads_beyond_the_places_share_one_word_and_lose_nothing() {
    static COUNTER: PerThreadCounter<2, TlsSlot> = PerThreadCounter::new();
    let _turn = alone();
    let barrier: &Barrier = Box::leak(Box::new(Barrier::new(8)));
    let threads: Vec<_> = (0..8)
        .map(|_| {
            thread::spawn(move || {
                TlsSlot::find();
                barrier.wait();
                (0..10_000).for_each(|_| COUNTER.add(1));
                barrier.wait();
            })
        })
        .collect();
    threads.into_iter().for_each(|it| it.join().unwrap());
    assert_eq!(COUNTER.sum(), 80_000);
}

#[test]
fn drains_against_exits_give_each_add_once() {
    static COUNTER: PerThreadCounter<4, TlsSlot> = PerThreadCounter::new();
    static TAKEN: AtomicI64 = AtomicI64::new(0);
    static OVER: AtomicBool = AtomicBool::new(false);
    let _turn = alone();
    let takers: Vec<_> = (0..2)
        .map(|_| {
            thread::spawn(|| {
                while !OVER.load(Ordering::Acquire) {
                    let some = COUNTER.take();
                    assert!(some >= 0, "{some}");
                    TAKEN.fetch_add(some, Ordering::Relaxed);
                    thread::yield_now();
                }
            })
        })
        .collect();
    // More threads at a time than there are places, so that places and the shared word both serve.
    for _ in 0..250 {
        let threads: Vec<_> =
            (0..6).map(|n| thread::spawn(move || (0..n).for_each(|_| COUNTER.add(n)))).collect();
        threads.into_iter().for_each(|it| it.join().unwrap());
    }
    OVER.store(true, Ordering::Release);
    takers.into_iter().for_each(|it| it.join().unwrap());
    // 0² + 1² + … + 5² a round.
    assert_eq!(TAKEN.load(Ordering::Relaxed) + COUNTER.take(), 250 * 55);
    assert_eq!((COUNTER.sum(), COUNTER.take()), (0, 0));
}

/// Everybody believes to own the same place: the promise of `OwnPlace` broken.
struct Shared;

impl OwnPlace for Shared {
    fn cached() -> usize {
        0
    }
    fn find() -> usize {
        0
    }
}

/// Any number is a place or none: nothing panics, nothing is out of bounds.
struct Odd<const PLACE: usize>;

impl<const PLACE: usize> OwnPlace for Odd<PLACE> {
    fn cached() -> usize {
        PLACE
    }
    fn find() -> usize {
        PLACE
    }
}

#[test]
fn numbers_that_are_no_place_use_the_shared_word() {
    macro_rules! add {
        ($($place:expr)*) => { $({
            let counter = PerThreadCounter::<2, Odd<{ $place }>>::new();
            counter.add(5);
            assert_eq!((counter.sum(), counter.take(), counter.sum()), (5, 5, 0), "{}", $place);
        })* };
    }
    add!(0 16 32 33 1024 usize::MAX usize::MAX - 15 usize::MAX / 2);
}

#[test]
fn a_shared_place_is_noticed_by_the_suite() {
    if thread::available_parallelism().map_or(1, usize::from) == 1 {
        println!("SKIPPED: one CPU, so that no two threads add at once");
        return;
    }
    let lost = || counters::conformance::keeps_every_add::<PerThreadCounter<2, Shared>>(4, 200_000);
    assert!((0..100).any(|_| lost().is_err()), "places with two writers lost nothing");
}
