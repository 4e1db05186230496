//! What must not be done with locks, and parkers that return for no reason.
#![cfg(all(feature = "std", feature = "libc", target_os = "linux"))]

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use locks::conformance::mutual_exclusion;
use locks::{
    Checked, ClhLock, FutexLock, LinuxFutex, Lot, McsLock, McsParkLock, McsTryLock, Mutex, Parker,
    Parking, ParkingLock, PoisonMutex, Poisoned, QSpinLock, QueueNode, QueueNodes, RawLock,
    RwFutexLock, RwLock, TicketLock, TicketParkLock, Timed, TimedParker, TryLock, TtasLock,
};

/// Three of four waits end at once, as after a signal or a value that has changed meanwhile.
struct Interrupted;

static WAITS: AtomicU64 = AtomicU64::new(0);

// SAFETY: returning early is allowed; the rest is the futex.
unsafe impl Parker for Interrupted {
    fn park(word: &AtomicU32, expected: u32) {
        if WAITS.fetch_add(1, Ordering::Relaxed).is_multiple_of(4) {
            LinuxFutex::park(word, expected);
        }
    }
    fn unpark_one(word: *const AtomicU32) {
        LinuxFutex::unpark_one(word);
    }
    fn unpark_all(word: *const AtomicU32) {
        LinuxFutex::unpark_all(word);
    }
}

// SAFETY: as above.
unsafe impl TimedParker for Interrupted {
    type Instant = <LinuxFutex as TimedParker>::Instant;
    fn after(patience: Duration) -> Option<Self::Instant> {
        LinuxFutex::after(patience)
    }
    fn park_until(word: &AtomicU32, expected: u32, end: Self::Instant) -> bool {
        WAITS.fetch_add(1, Ordering::Relaxed).is_multiple_of(4)
            && LinuxFutex::park_until(word, expected, end)
    }
}

/// Each wait ends at once and lasts a nanosecond of a clock of its own.
struct Restless;

thread_local! {
    static NANOSECONDS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: returning early is allowed, and nobody sleeps.
unsafe impl Parker for Restless {
    fn park(_word: &AtomicU32, _expected: u32) {
        NANOSECONDS.set(NANOSECONDS.get() + 1);
    }
    fn unpark_one(_word: *const AtomicU32) {}
    fn unpark_all(_word: *const AtomicU32) {}
}

// SAFETY: as above.
unsafe impl TimedParker for Restless {
    type Instant = u64;
    fn after(patience: Duration) -> Option<u64> {
        NANOSECONDS.get().checked_add(patience.as_nanos().try_into().ok()?)
    }
    fn park_until(word: &AtomicU32, expected: u32, end: u64) -> bool {
        Self::park(word, expected);
        NANOSECONDS.get() >= end
    }
}

struct InterruptedLot;

impl Parking for InterruptedLot {
    type Parker = Interrupted;
    fn lot() -> &'static Lot<Interrupted> {
        static LOT: Lot<Interrupted> = Lot::new();
        &LOT
    }
}

/// Holds the lock until three others have waited, more often in vain than not.
fn held_while_others_wait<L: RawLock + Default>() {
    let (lock, slot, served) = (L::default(), L::Slot::default(), AtomicU64::new(0));
    let before = WAITS.load(Ordering::Relaxed);
    // SAFETY: the slot stays in place and is unlocked below.
    unsafe { lock.lock(&slot) };
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let slot = L::Slot::default();
                // SAFETY: as above.
                unsafe { lock.lock(&slot) };
                served.fetch_add(1, Ordering::Relaxed);
                // SAFETY: taken above.
                unsafe { lock.unlock(&slot) };
            });
        }
        while WAITS.load(Ordering::Relaxed) < before + 3 {
            std::thread::yield_now();
        }
        // SAFETY: taken above.
        unsafe { lock.unlock(&slot) };
    });
    assert_eq!(served.into_inner(), 3);
}

#[test]
fn waits_that_return_for_no_reason_do_no_harm() {
    for _ in 0..50 {
        held_while_others_wait::<FutexLock<Interrupted, 0>>();
        held_while_others_wait::<McsParkLock<Interrupted, 0>>();
        held_while_others_wait::<TicketParkLock<Interrupted, 1, 0>>();
        held_while_others_wait::<RwFutexLock<Interrupted, 0>>();
        held_while_others_wait::<ParkingLock<InterruptedLot, 0, 0>>();
        held_while_others_wait::<ParkingLock<InterruptedLot, 2, 0>>();
    }
    for threads in [2, 3, 8] {
        mutual_exclusion::<FutexLock<Interrupted, 0>>(threads, 2_000).unwrap();
        mutual_exclusion::<McsParkLock<Interrupted, 0>>(threads, 500).unwrap();
        mutual_exclusion::<TicketParkLock<Interrupted, 2, 0>>(threads, 500).unwrap();
        mutual_exclusion::<RwFutexLock<Interrupted, 0>>(threads, 2_000).unwrap();
        mutual_exclusion::<ParkingLock<InterruptedLot, 0, 0>>(threads, 2_000).unwrap();
        mutual_exclusion::<ParkingLock<InterruptedLot, 2, 0>>(threads, 500).unwrap();
    }
}

#[test]
fn readers_and_writers_that_are_interrupted_all_get_in() {
    let total = RwLock::<u64, RwFutexLock<Interrupted, 0>>::new(0);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| (0..1_000).for_each(|_| *total.write() += 1));
            scope.spawn(|| (0..1_000).for_each(|_| assert!(*total.read() <= 3_000)));
        }
    });
    assert_eq!(total.into_inner(), 3_000);
}

#[test]
fn numbers_of_sleepers_wrap() {
    type Lock = TicketParkLock<LinuxFutex, 2, 0>;
    for start in [u32::MAX / 2 - 1, u32::MAX / 2, u32::MAX] {
        let total = Mutex::<u64, Lock>::with_lock(Lock::starting_at(start), 0);
        std::thread::scope(|scope| {
            for _ in 0..5 {
                scope.spawn(|| (0..100).for_each(|_| *total.lock() += 1));
            }
        });
        assert!(total.try_lock().is_some_and(|total| *total == 500));
    }
}

#[test]
fn waiters_without_a_node_are_served() {
    struct TwoNodes;
    static NODES: [QueueNode; 2] = [const { QueueNode::new() }; 2];
    impl QueueNodes for TwoNodes {
        fn nodes() -> &'static [QueueNode] {
            &NODES
        }
        fn begin() -> usize {
            usize::MAX
        }
    }
    mutual_exclusion::<QSpinLock<TwoNodes, true, locks::Yield>>(6, 500).unwrap();
    mutual_exclusion::<QSpinLock<TwoNodes, false, locks::Yield>>(6, 500).unwrap();
}

#[test]
fn many_locks_share_one_table() {
    static TOTALS: [Mutex<u64, ParkingLock<InterruptedLot, 3, 0>>; 200] =
        [const { Mutex::new(0) }; 200];
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..4_000).for_each(|n| *TOTALS[n % 200].lock() += 1));
        }
    });
    assert!(TOTALS.iter().all(|total| *total.lock() == 80));
}

fn message(run: impl FnOnce()) -> String {
    let payload = catch_unwind(AssertUnwindSafe(run)).expect_err("went through");
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_default()
}

#[test]
fn recursion_is_refused() {
    let total = Mutex::<u64, Checked<TicketLock>>::new(0);
    let held = total.lock();
    assert!(message(|| drop(total.lock())).contains("would wait for itself"));
    assert!(total.try_lock().is_none());
    drop(held);
    *total.lock() += 1;
    let nested = Mutex::<u64, Checked<McsLock>>::new(0);
    assert!(message(|| nested.with(|_| nested.with(|_| ()))).contains("would wait for itself"));
    nested.with(|value| *value += 1); // the panic let go
    assert_eq!((total.into_inner(), nested.into_inner()), (1, 1));
}

#[test]
fn unlocking_what_one_does_not_hold_is_refused() {
    let lock = Checked::<TtasLock>::default();
    // SAFETY: wrong on purpose; the check stops it before the lock sees it.
    assert!(message(|| unsafe { lock.unlock(&()) }).contains("does not hold"));
    // SAFETY: unlocked below.
    unsafe { lock.lock(&()) };
    std::thread::scope(|scope| {
        let stranger = scope.spawn(|| {
            // SAFETY: wrong on purpose, as above.
            message(|| unsafe { lock.unlock(&()) })
        });
        assert!(stranger.join().unwrap().contains("does not hold"));
    });
    // SAFETY: locked above.
    unsafe { lock.unlock(&()) };
    // SAFETY: unlocked below.
    let again = unsafe { lock.try_lock(&()) };
    assert!(again);
    // SAFETY: locked above.
    unsafe { lock.unlock(&()) };
}

#[test]
fn poison_stays_until_it_is_healed() {
    let total = PoisonMutex::<Vec<u8>, ClhLock>::new(vec![1]);
    assert_eq!(total.with(|values| values.len()), Ok(1));
    let panicked = catch_unwind(|| {
        total.with(|values| {
            values.push(2);
            panic!("half done")
        })
    });
    assert!(panicked.is_err());
    for _ in 0..2 {
        assert_eq!(total.with(|values| values.len()), Err(Poisoned));
    }
    total.heal(|values| values.truncate(1));
    assert_eq!(total.with(|values| values.len()), Ok(1));
    assert_eq!(total.into_inner(), Ok(vec![1]));
}

#[test]
fn who_waits_too_long_gives_up() {
    let (total, other) = (Mutex::<u64, ClhLock>::new(1), Mutex::<u64, TtasLock>::new(1));
    total.with(|_| {
        for looks in 1..20 {
            let mut left = looks;
            let expired = || {
                left -= 1;
                left == 0
            };
            assert_eq!(total.with_until(expired, |value| *value), None);
        }
    });
    let held = other.lock();
    assert_eq!(other.with_until(|| true, |value| *value), None);
    drop(held);
    assert_eq!(total.with_until(|| true, |value| *value), Some(1));
    assert_eq!(other.with_until(|| true, |value| *value), Some(1));
}

/// Four threads of different patience, one of which does not give up and is served each time.
fn some_give_up<L: Timed + Default>() {
    const ROUNDS: u64 = 1_000;
    let (lock, served) = (L::default(), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for patience in [0, 1, 3, u32::MAX] {
            let (lock, served) = (&lock, &served);
            scope.spawn(move || {
                let slot = L::Slot::default();
                for _ in 0..ROUNDS {
                    let mut left = patience;
                    let expired = || {
                        let over = left == 0;
                        left = left.saturating_sub(1);
                        over
                    };
                    // SAFETY: the slot stays in place and is unlocked below.
                    if unsafe { lock.lock_until(&slot, expired) } {
                        let count = served.load(Ordering::Relaxed);
                        std::thread::yield_now();
                        served.store(count + u64::from(patience == u32::MAX), Ordering::Relaxed);
                        // SAFETY: taken above with this slot.
                        unsafe { lock.unlock(&slot) };
                    }
                }
            });
        }
    });
    assert_eq!(served.into_inner(), ROUNDS);
    let slot = L::Slot::default();
    // SAFETY: the slot stays in place and is unlocked below.
    assert!(unsafe { lock.lock_until(&slot, || true) }, "those who gave up left something behind");
    // SAFETY: taken above.
    unsafe { lock.unlock(&slot) };
}

#[test]
fn some_give_up_and_the_others_are_served() {
    some_give_up::<ClhLock<locks::Yield>>();
    some_give_up::<McsTryLock<locks::Yield>>();
    some_give_up::<FutexLock<LinuxFutex, 0>>();
    some_give_up::<FutexLock<Interrupted, 0>>();
}

#[test]
fn slots_of_those_who_gave_up_are_free_at_once() {
    let lock = McsTryLock::<locks::Yield>::default();
    let (held, stays) = (locks::McsTrySlot::default(), AtomicU64::new(0));
    // SAFETY: the slot stays in place and is unlocked below.
    unsafe { lock.lock(&held) };
    std::thread::scope(|scope| {
        for patience in [2, 5, u32::MAX] {
            let (lock, stays) = (&lock, &stays);
            scope.spawn(move || {
                for _ in 0..if patience == u32::MAX { 1 } else { 500 } {
                    // A slot of its own each time, overwritten as soon as it is free again.
                    let mut slot = Box::new(locks::McsTrySlot::default());
                    let mut left = patience;
                    let expired = || {
                        left -= 1;
                        left == 0
                    };
                    // SAFETY: the slot is boxed, and unlocked below.
                    let taken = unsafe { lock.lock_until(&slot, expired) };
                    if taken {
                        stays.fetch_add(1, Ordering::Relaxed);
                        // SAFETY: taken above.
                        unsafe { lock.unlock(&slot) };
                    }
                    *slot = locks::McsTrySlot::default();
                }
            });
        }
        std::thread::yield_now();
        // SAFETY: taken above.
        unsafe { lock.unlock(&held) };
    });
    assert!(stays.into_inner() >= 1);
}

#[test]
fn a_deadline_is_kept_however_often_the_wait_is_interrupted() {
    let total = Mutex::<u64, FutexLock<Restless, 0>>::new(1);
    let held = total.lock();
    for patience in [1, 2, 3, 1_000] {
        let began = NANOSECONDS.get();
        assert_eq!(total.with_for(Duration::from_nanos(patience), |value| *value), None);
        assert_eq!(NANOSECONDS.get() - began, patience);
    }
    assert!(total.lock_for(Duration::ZERO).is_none());
    drop(held);
    assert_eq!(total.with_for(Duration::ZERO, |value| *value), Some(1));
    assert!(total.lock_for(Duration::MAX).is_some(), "an endless patience");
}

#[test]
fn a_wake_up_is_not_lost_with_who_gives_up() {
    let total = Mutex::<u64, FutexLock<Interrupted, 0>>::new(0);
    let given_up = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for patience_us in [20, 50, 100] {
            let (total, given_up) = (&total, &given_up);
            scope.spawn(move || {
                for _ in 0..1_000 {
                    let patience = Duration::from_micros(patience_us);
                    if total.with_for(patience, |value| *value += 1).is_none() {
                        given_up.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
        for _ in 0..2 {
            scope.spawn(|| (0..1_000).for_each(|_| *total.lock() += 1)); // would hang
        }
    });
    assert_eq!(total.into_inner() + given_up.into_inner(), 5_000);
}
