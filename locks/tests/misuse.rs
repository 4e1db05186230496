//! What must not be done with locks, and parkers that return for no reason.
#![cfg(all(feature = "std", feature = "libc", target_os = "linux"))]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use locks::conformance::mutual_exclusion;
use locks::{
    Checked, ClhLock, FutexLock, LinuxFutex, Lot, McsLock, McsParkLock, Mutex, Parker, Parking,
    ParkingLock, PoisonMutex, Poisoned, RawLock, TicketLock, TryLock, TtasLock,
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
        held_while_others_wait::<ParkingLock<InterruptedLot, 0, 0>>();
        held_while_others_wait::<ParkingLock<InterruptedLot, 2, 0>>();
    }
    for threads in [2, 3, 8] {
        mutual_exclusion::<FutexLock<Interrupted, 0>>(threads, 2_000).unwrap();
        mutual_exclusion::<McsParkLock<Interrupted, 0>>(threads, 500).unwrap();
        mutual_exclusion::<ParkingLock<InterruptedLot, 0, 0>>(threads, 2_000).unwrap();
        mutual_exclusion::<ParkingLock<InterruptedLot, 2, 0>>(threads, 500).unwrap();
    }
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

#[test]
fn some_give_up_and_the_others_are_served() {
    let lock = ClhLock::<locks::Yield>::default();
    let served = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for patience in [0, 1, 3, u32::MAX] {
            let (lock, served) = (&lock, &served);
            scope.spawn(move || {
                use locks::Timed;
                let slot = locks::ClhSlot::default();
                for _ in 0..2_000 {
                    let mut left = patience;
                    let expired = || {
                        let over = left == 0;
                        left = left.saturating_sub(1);
                        over
                    };
                    // SAFETY: the slot stays in place and is unlocked below.
                    if unsafe { lock.lock_until(&slot, expired) } {
                        let count = served.load(Ordering::Relaxed);
                        served.store(count + u64::from(patience == u32::MAX), Ordering::Relaxed);
                        // SAFETY: taken above with this slot.
                        unsafe { lock.unlock(&slot) };
                    }
                }
            });
        }
    });
    assert_eq!(served.into_inner(), 2_000);
}
