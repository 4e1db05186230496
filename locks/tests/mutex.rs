//! The safe face over every lock of the table.

use locks::{McsLock, Mutex, TasLock, TicketLock, TryLock};
use std::panic::{AssertUnwindSafe, catch_unwind};

macro_rules! with_rows {
    ($($id:ident => $lock:ty, $kind:ident;)*) => { $( with_row!($id, $lock, $kind); )* };
}

macro_rules! with_row {
    ($id:ident, $lock:ty, baseline) => {};
    ($id:ident, $lock:ty, $kind:ident) => {
        #[test]
        fn $id() {
            let mutex = Mutex::<Vec<u32>, $lock>::default();
            let panicked = catch_unwind(AssertUnwindSafe(|| {
                mutex.with(|values| {
                    values.push(1);
                    panic!("inside");
                })
            }));
            assert!(panicked.is_err());
            mutex.with(|values| values.push(2)); // would hang had the panic kept the lock
            assert_eq!(mutex.into_inner(), [1, 2]);
        }
    };
}

mod with {
    use super::*;
    locks::for_each_lock!(with_rows);
}

#[test]
fn guards_let_go_when_dropped() {
    static TOTAL: Mutex<u64, TicketLock> = Mutex::new(0);
    {
        let mut guard = TOTAL.lock();
        *guard += 1;
        assert!(TOTAL.try_lock().is_none());
    }
    assert_eq!(*TOTAL.try_lock().expect("free again"), 1);
}

#[test]
fn forgotten_guards_keep_the_lock() {
    let mutex = Mutex::<u8, TasLock>::new(3);
    std::mem::forget(mutex.lock());
    assert!(mutex.try_lock().is_none());
    assert_eq!(mutex.into_inner(), 3);
}

#[test]
fn a_slot_left_by_a_failed_try_lock_can_be_used() {
    let lock: McsLock = McsLock::new();
    let (first, second) = (locks::McsSlot::default(), locks::McsSlot::default());
    use locks::RawLock;
    // SAFETY: the slots stay in place, each is unlocked before it is used again.
    unsafe {
        lock.lock(&first);
    }
    // SAFETY: as above.
    assert!(!unsafe { lock.try_lock(&second) });
    // SAFETY: taken above.
    unsafe { lock.unlock(&first) };
    // SAFETY: the failed attempt left the slot free.
    unsafe { lock.lock(&second) };
    // SAFETY: taken above.
    unsafe { lock.unlock(&second) };
}

#[test]
fn ticket_numbers_wrap() {
    let mutex = Mutex::<u32, TicketLock>::with_lock(TicketLock::starting_at(u32::MAX - 1), 0);
    for _ in 0..4 {
        *mutex.lock() += 1;
        assert!(mutex.try_lock().is_some());
    }
    assert_eq!(mutex.into_inner(), 4);
}

#[test]
#[cfg(feature = "std")]
fn a_forgotten_guard_of_a_queue_lock_may_be_moved() {
    use locks::Pooled;
    let mutex = Mutex::<u8, Pooled<McsLock>>::new(3);
    std::mem::forget(mutex.lock()); // leaks the slot that the queue names
    let moved = Box::new(mutex);
    assert!(moved.try_lock().is_none());
    assert_eq!(moved.into_inner(), 3);
}
