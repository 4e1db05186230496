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
fn slots_of_threads_nest_are_forgotten_and_outlive_their_thread() {
    use locks::{ClhLock, Tls};
    let queues = [(); 12].map(|()| Mutex::<u32, Tls<McsLock>>::new(0));
    let other = Mutex::<u32, Tls<ClhLock>>::new(0);
    for _ in 0..3 {
        // More at once than a thread keeps, of two kinds, let go in another order.
        let mut guards: Vec<_> = queues.iter().map(Mutex::lock).collect();
        *other.lock() += 1;
        guards.iter_mut().for_each(|guard| **guard += 1);
        guards.swap(0, 7);
    }
    std::thread::scope(|scope| {
        // The thread ends while the queue names its slot.
        scope.spawn(|| std::mem::forget(queues[0].lock())).join().unwrap();
    });
    assert!(queues[0].try_lock().is_none() && queues[1].try_lock().is_some());
    assert!(queues.into_iter().all(|queue| queue.into_inner() == 3) && other.into_inner() == 3);
}

#[test]
#[cfg(feature = "std")]
fn a_destructor_of_a_thread_local_may_lock() {
    use locks::Tls;
    static ENDED: Mutex<u32, Tls<McsLock>> = Mutex::new(0);
    struct AtTheEnd;
    impl Drop for AtTheEnd {
        fn drop(&mut self) {
            *ENDED.lock() += 1;
        }
    }
    thread_local! {
        static END: AtTheEnd = const { AtTheEnd };
    }
    for first in [true, false] {
        std::thread::spawn(move || {
            if first {
                END.with(|_| ());
            }
            drop(ENDED.lock()); // registers the thread's slots before or after `END`
            END.with(|_| ());
        })
        .join()
        .unwrap();
    }
    assert_eq!(*ENDED.lock(), 2);
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
