//! Reader-writer locks: readers together, writers alone, and what happens at the top.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use locks::{
    OneGroup, PreferReaders, RawRwLock, RwBigReaderLock, RwLock, RwPhaseFairLock, RwSpinLock,
    SeqLock, TicketLock, TryLock,
};

type BigReader = RwBigReaderLock<TicketLock, OneGroup, 2>;

#[cfg(all(feature = "libc", target_os = "linux"))]
type Futex = locks::RwFutexLock<locks::LinuxFutex, 0>;

/// Three readers meet inside: a lock that lets one in at a time never ends.
fn readers_meet<L: RawRwLock + Default>() {
    let lock = RwLock::<u64, L>::with_lock(L::default(), 5);
    let meeting = Barrier::new(3);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                lock.read_with(|value| {
                    meeting.wait();
                    assert_eq!(*value, 5);
                });
            });
        }
    });
}

/// Two writers add to two words, two readers find them equal.
fn writers_are_alone<L: RawRwLock + Default>() {
    const ROUNDS: u64 = 2_000;
    let words = [AtomicU64::new(0), AtomicU64::new(0)];
    let lock = RwLock::<(), L>::with_lock(L::default(), ());
    let values = || [0, 1].map(|nth: usize| words[nth].load(Ordering::Relaxed));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..ROUNDS {
                    lock.write_with(|()| {
                        let [one, other] = values();
                        words[0].store(one + 1, Ordering::Relaxed);
                        words[1].store(other + 1, Ordering::Relaxed);
                    });
                }
            });
            scope.spawn(|| {
                for _ in 0..ROUNDS {
                    let [one, other] = lock.read_with(|()| values());
                    assert_eq!(one, other);
                }
            });
        }
    });
    assert_eq!(values(), [2 * ROUNDS; 2]);
}

/// What may be tried while others are inside.
fn tries<L: RawRwLock + TryLock + Default>() {
    let lock = L::default();
    let (write, read, other) = (L::Slot::default(), L::ReadSlot::default(), L::ReadSlot::default());
    // SAFETY: the slots stay in place; what was entered is left below.
    let entered = unsafe { lock.try_lock_shared(&read) };
    assert!(entered);
    // SAFETY: as above.
    let wrote = unsafe { lock.try_lock(&write) };
    assert!(!wrote, "a writer entered beside a reader");
    // SAFETY: as above.
    let entered = unsafe { lock.try_lock_shared(&other) };
    assert!(entered, "a writer that failed keeps readers out");
    // SAFETY: entered above.
    unsafe { lock.unlock_shared(&other) };
    // SAFETY: entered above.
    unsafe { lock.unlock_shared(&read) };
    // SAFETY: as above.
    let wrote = unsafe { lock.try_lock(&write) };
    assert!(wrote, "nobody was inside");
    // SAFETY: as above.
    let entered = unsafe { lock.try_lock_shared(&read) };
    assert!(!entered, "a reader entered beside a writer");
    // SAFETY: taken above.
    unsafe { lock.unlock(&write) };
    // SAFETY: as above.
    let entered = unsafe { lock.try_lock_shared(&read) };
    assert!(entered, "the writer has left");
    // SAFETY: entered above.
    unsafe { lock.unlock_shared(&read) };
}

/// Whoever panics inside lets go, on both sides.
fn panics_let_go<L: RawRwLock + Default>() {
    let lock = RwLock::<u64, L>::with_lock(L::default(), 1);
    let read = catch_unwind(AssertUnwindSafe(|| lock.read_with(|_| panic!("reading"))));
    let wrote = catch_unwind(AssertUnwindSafe(|| lock.write_with(|_| panic!("writing"))));
    assert!(read.is_err() && wrote.is_err());
    lock.write_with(|value| *value += 1); // would hang
    assert_eq!(lock.into_inner(), 2);
}

macro_rules! each {
    ($($id:ident $lock:ty;)*) => { $( mod $id {
        use super::*;
        #[test]
        fn readers_are_together() {
            readers_meet::<$lock>();
        }
        #[test]
        fn writers_are_alone() {
            super::writers_are_alone::<$lock>();
        }
        #[test]
        fn tries_do_not_wait() {
            tries::<$lock>();
        }
        #[test]
        fn who_panics_lets_go() {
            panics_let_go::<$lock>();
        }
    } )* };
}

each! {
    spin RwSpinLock;
    spin_prefers_readers RwSpinLock<PreferReaders>;
    phase_fair RwPhaseFairLock;
    big_reader BigReader;
}

#[cfg(all(feature = "libc", target_os = "linux"))]
each! {
    futex Futex;
}

#[test]
fn guards_share_and_exclude() {
    let lock = RwLock::<u8, RwSpinLock>::new(1);
    let (one, two) = (lock.read(), lock.read());
    assert_eq!(*one + *two, 2);
    assert!(lock.try_write().is_none());
    drop((one, two));
    *lock.write() = 3;
    let written = lock.try_write().expect("free");
    assert!(lock.try_read().is_none());
    assert_eq!(*written, 3);
}

#[test]
fn one_reader_too_many_is_refused() {
    const TOP: u32 = (1 << 30) - 1;
    for (inside, more) in [(TOP, 0), (TOP - 1, 1), (TOP - 2, 2)] {
        let lock = RwLock::<(), RwSpinLock>::with_lock(RwSpinLock::with_readers(inside), ());
        let entered = (0..3).filter(|_| lock.try_read().map(std::mem::forget).is_some()).count();
        assert_eq!(entered, more, "{inside} inside");
        assert!(lock.try_write().is_none());
    }
}

#[test]
#[cfg(all(feature = "libc", target_os = "linux"))]
fn one_sleeping_reader_too_many_is_refused() {
    const TOP: u32 = (1 << 17) - 1;
    for (inside, more) in [(TOP, 0), (TOP - 1, 1), (TOP - 2, 2)] {
        let lock = RwLock::<(), _>::with_lock(Futex::with_readers(inside), ());
        let entered = (0..3).filter(|_| lock.try_read().map(std::mem::forget).is_some()).count();
        assert_eq!(entered, more, "{inside} inside");
        assert!(lock.try_write().is_none());
    }
}

#[test]
#[cfg(all(feature = "libc", target_os = "linux"))]
fn readers_do_not_pass_a_writer_that_waits() {
    let lock = RwLock::<u32, Futex>::new(0);
    let first = lock.read();
    thread::scope(|scope| {
        let writer = scope.spawn(|| *lock.write() += 1);
        while lock.try_read().is_some() {
            thread::yield_now(); // the writer has not come yet
        }
        let reader = scope.spawn(|| *lock.read());
        for _ in 0..100 {
            assert!(lock.try_read().is_none(), "a reader passed the writer");
            thread::yield_now();
        }
        drop(first);
        writer.join().unwrap();
        assert_eq!(reader.join().unwrap(), 1, "the reader was before the writer");
    });
}

#[test]
fn forgotten_guards_keep_writers_out() {
    let lock = RwLock::<u8, RwPhaseFairLock>::new(3);
    std::mem::forget(lock.read());
    assert!(lock.try_write().is_none());
    assert!(lock.try_read().is_some());
    assert_eq!(lock.into_inner(), 3);
}

#[test]
fn numbers_of_phases_wrap() {
    for visits in [u32::MAX, u32::MAX - 1, (1 << 30) - 1] {
        let lock = RwLock::<u32, _>::with_lock(<RwPhaseFairLock>::after(visits), 0);
        for _ in 0..4 {
            *lock.write() += 1;
            let (one, two) = (lock.read(), lock.try_read().expect("no writer"));
            assert_eq!(*one, *two);
        }
        assert_eq!(lock.into_inner(), 4);
    }
}

#[test]
fn sequence_locks_are_read_while_they_change() {
    static WORDS: SeqLock<TicketLock, 3> = SeqLock::new([0; 3]);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| (0..5_000).for_each(|_| WORDS.update(|words| words.map(|w| w + 1))));
        }
        for _ in 0..5_000 {
            let [first, second, third] = WORDS.read();
            assert!(first == second && second == third, "{first} {second} {third}");
        }
    });
    assert_eq!(WORDS.try_read(), Some([10_000; 3]));
    let panicked = catch_unwind(|| WORDS.update(|_| panic!("inside")));
    assert!(panicked.is_err());
    assert_eq!(WORDS.try_read(), Some([10_000; 3]), "nothing has changed");
}
