//! What users of other mutexes and reader-writer locks rely on, over ours: values that go in and
//! come out, values without a size, locks inside locks, locks taken while a panic unwinds.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use locks::{McsLock, Mutex, RwLock, RwSpinLock, TicketLock};

/// Counts how often it is dropped.
struct Dropped(Arc<AtomicUsize>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_value_that_comes_out_is_dropped_once() {
    let drops = Arc::new(AtomicUsize::new(0));
    let count = || drops.load(Ordering::Relaxed);
    let mutex = Mutex::<_, TicketLock>::new(Dropped(drops.clone()));
    let value = mutex.into_inner();
    assert_eq!(count(), 0, "into_inner moves");
    drop(value);
    assert_eq!(count(), 1);
    drop(RwLock::<_, RwSpinLock>::new(Dropped(drops.clone())).into_inner());
    assert_eq!(count(), 2);
    drop(Mutex::<_, McsLock>::new(Dropped(drops.clone())));
    assert_eq!(count(), 3, "dropped with its mutex");
}

#[test]
fn who_borrows_exclusively_needs_no_lock() {
    let mut mutex = Mutex::<u32, TicketLock>::new(10);
    *mutex.get_mut() = 20;
    assert_eq!(mutex.into_inner(), 20);
    let mut words = RwLock::<u32, RwSpinLock>::new(10);
    *words.get_mut() = 20;
    assert_eq!(words.into_inner(), 20);
}

#[test]
fn values_may_have_no_size() {
    let mutex: &Mutex<[i32], TicketLock> = &Mutex::<[i32; 3], TicketLock>::new([1, 2, 3]);
    {
        let mut guard = mutex.lock();
        guard[0] = 4;
        guard[2] = 5;
    }
    let comparison: &[i32] = &[4, 2, 5];
    assert_eq!(&*mutex.lock(), comparison);
    mutex.with(|values| values[1] = 9);
    assert_eq!(mutex.lock()[1], 9);
    let words: &RwLock<[i32], RwSpinLock> = &RwLock::<[i32; 3], RwSpinLock>::new([1, 2, 3]);
    words.write()[0] = 4;
    assert_eq!(words.read_with(<[i32]>::len), 3);
    assert_eq!(&*words.read(), &[4, 2, 3]);
}

#[test]
fn locks_of_different_kinds_may_be_held_at_once() {
    let outer = Arc::new(Mutex::<_, McsLock>::new(Arc::new(Mutex::<i32, TicketLock>::new(1))));
    let total = thread::spawn(move || {
        outer.with(|inner| {
            let words = RwLock::<i32, RwSpinLock>::new(2);
            let (guard, read) = (inner.lock(), words.read());
            *guard + *read
        })
    });
    assert_eq!(total.join().unwrap(), 3);
}

/// Takes its lock when it is dropped, by a panic too.
struct AtTheEnd<'a> {
    mutex: &'a Mutex<i32, TicketLock>,
    words: &'a RwLock<i32, RwSpinLock>,
}

impl Drop for AtTheEnd<'_> {
    fn drop(&mut self) {
        *self.mutex.lock() += 1;
        *self.words.write() += 1;
    }
}

#[test]
fn a_destructor_may_lock_while_a_panic_unwinds() {
    let (mutex, words) = (Mutex::new(1), RwLock::new(1));
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let _at_the_end = AtTheEnd { mutex: &mutex, words: &words };
        panic!("on purpose");
    }));
    assert!(panicked.is_err());
    assert_eq!((*mutex.lock(), *words.read()), (2, 2));
}

/// Threads that try instead of waiting lose nothing either.
#[test]
fn whoever_tries_until_it_succeeds_is_counted() {
    const THREADS: u32 = 4;
    const EACH: u32 = 1000;
    let mutex = Mutex::<u32, TicketLock>::new(0);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let mutex = &mutex;
            scope.spawn(move || {
                for round in 0..EACH {
                    if (round + thread).is_multiple_of(2) {
                        *mutex.lock() += 1;
                        continue;
                    }
                    loop {
                        if let Some(mut total) = mutex.try_lock() {
                            *total += 1;
                            break;
                        }
                        thread::yield_now();
                    }
                }
            });
        }
    });
    assert_eq!(mutex.into_inner(), THREADS * EACH);
}

/// A lock that is held is no reason for `Debug` to wait.
#[test]
fn looking_at_a_held_mutex_does_not_wait() {
    let mutex = Mutex::<u32, TicketLock>::new(7);
    let guard = mutex.lock();
    assert!(format!("{mutex:?}").starts_with("Mutex"));
    assert_eq!(format!("{guard:?}"), "7");
    let words = RwLock::<u32, RwSpinLock>::new(8);
    let writer = words.write();
    assert!(format!("{words:?}").starts_with("RwLock"));
    assert_eq!(*writer, 8);
}
