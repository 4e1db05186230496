//! Locks of one's own, of the standard library and of others, around a counter.

use core::hint::spin_loop;
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::Mutex;

use crossbeam_utils::Backoff;

use super::{Line, Program, rounds};

/// Threads that add to a counter in steps that lose updates unless `guard` keeps them apart.
fn counting(threads: usize, guard: impl Fn(usize, &mut dyn FnMut()) + Sync + 'static) -> Program {
    let counter = Box::new(Line::default());
    let all = (threads * rounds(threads)) as u64;
    let left = Box::new(Line(AtomicU64::new(all)));
    Program::new(move |thread| {
        for _ in 0..rounds(threads) {
            guard(thread, &mut || {
                let count = counter.0.load(Ordering::Relaxed);
                core::hint::black_box(count);
                counter.0.store(count + 1, Ordering::Relaxed);
            });
        }
        if left.0.fetch_sub(rounds(threads) as u64, Ordering::AcqRel) == rounds(threads) as u64 {
            assert_eq!(counter.0.load(Ordering::Acquire), all);
        }
        1
    })
}

pub(crate) fn tas(threads: usize) -> Program {
    let word = Box::new(Line::default());
    counting(threads, move |_, work| {
        while word.0.swap(1, Ordering::Acquire) != 0 {
            spin_loop();
        }
        work();
        word.0.store(0, Ordering::Release);
    })
}

pub(crate) fn ttas_backoff(threads: usize) -> Program {
    let word = Box::new(Line::default());
    counting(threads, move |_, work| {
        let mut pauses = 1;
        while word.0.swap(1, Ordering::Acquire) != 0 {
            while word.0.load(Ordering::Relaxed) != 0 {
                for _ in 0..pauses {
                    spin_loop();
                }
                pauses = (pauses * 2).min(64);
            }
        }
        work();
        word.0.store(0, Ordering::Release);
    })
}

pub(crate) fn backoff(threads: usize) -> Program {
    let word = Box::new(Line::default());
    counting(threads, move |_, work| {
        let backoff = Backoff::new();
        while word.0.swap(1, Ordering::Acquire) != 0 {
            backoff.snooze();
        }
        work();
        word.0.store(0, Ordering::Release);
    })
}

pub(crate) fn ticket(threads: usize) -> Program {
    let (next, serving) = (Box::new(Line::default()), Box::new(Line::default()));
    counting(threads, move |_, work| {
        let mine = next.0.fetch_add(1, Ordering::Relaxed);
        while serving.0.load(Ordering::Acquire) != mine {
            spin_loop();
        }
        work();
        serving.0.store(mine + 1, Ordering::Release);
    })
}

/// A waiter of MCS: who comes next (0 is nobody), and whether to wait.
#[derive(Default)]
#[repr(align(128))]
struct Waiter {
    next: AtomicUsize,
    waits: AtomicUsize,
}

pub(crate) fn mcs(threads: usize) -> Program {
    let waiters: Vec<Waiter> = (0..=threads).map(|_| Waiter::default()).collect();
    let tail = Box::new(Line::default());
    counting(threads, move |thread, work| {
        let me = &waiters[thread + 1];
        me.next.store(0, Ordering::Relaxed);
        me.waits.store(1, Ordering::Relaxed);
        let before = tail.0.swap(thread as u64 + 1, Ordering::AcqRel) as usize;
        if before != 0 {
            waiters[before].next.store(thread + 1, Ordering::Release);
            while me.waits.load(Ordering::Acquire) == 1 {
                spin_loop();
            }
        }
        work();
        let alone = thread as u64 + 1;
        if tail.0.compare_exchange(alone, 0, Ordering::AcqRel, Ordering::Relaxed).is_err() {
            while me.next.load(Ordering::Acquire) == 0 {
                spin_loop();
            }
            waiters[me.next.load(Ordering::Relaxed)].waits.store(0, Ordering::Release);
        }
    })
}

pub(crate) fn clh(threads: usize) -> Program {
    let nodes: Vec<Line> = (0..=threads).map(|_| Line::default()).collect();
    let mine: Vec<Line> = (0..threads as u64).map(|i| Line(AtomicU64::new(i))).collect();
    let tail = Box::new(Line(AtomicU64::new(threads as u64)));
    counting(threads, move |thread, work| {
        let node = mine[thread].0.load(Ordering::Relaxed);
        nodes[node as usize].0.store(1, Ordering::Relaxed);
        let before = tail.0.swap(node, Ordering::AcqRel);
        while nodes[before as usize].0.load(Ordering::Acquire) == 1 {
            spin_loop();
        }
        work();
        nodes[node as usize].0.store(0, Ordering::Release);
        mine[thread].0.store(before, Ordering::Relaxed);
    })
}

fn futex(word: &AtomicU32, operation: i32, value: u32) {
    let operation = operation | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: waits at a word that lives, or wakes who does.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, value, 0) };
}

/// Spins for a while, then sleeps: 0 is free, 1 is taken, 2 is taken with sleepers.
pub(crate) fn spin_then_sleep(threads: usize) -> Program {
    #[repr(align(128))]
    struct Word(AtomicU32);
    let word = Box::new(Word(AtomicU32::new(0)));
    counting(threads, move |_, work| {
        let mut spins = 0;
        while word.0.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_err() {
            if spins < 40 {
                spins += 1;
                spin_loop();
                continue;
            }
            while word.0.swap(2, Ordering::Acquire) != 0 {
                futex(&word.0, libc::FUTEX_WAIT, 2);
            }
            break;
        }
        work();
        if word.0.swap(0, Ordering::Release) == 2 {
            futex(&word.0, libc::FUTEX_WAKE, 1);
        }
    })
}

/// A queue of sleepers behind a small spin lock, as `parking_lot` has.
pub(crate) fn parking_lot_like(threads: usize) -> Program {
    #[derive(Default)]
    #[repr(align(128))]
    struct Bed(AtomicU32);
    let beds: Vec<Bed> = (0..threads).map(|_| Bed::default()).collect();
    let (small, held) = (Box::new(Line::default()), Box::new(Line::default()));
    let queue = Mutex::new(Vec::with_capacity(threads));
    let locked = move |work: &mut dyn FnMut(&mut Vec<usize>)| {
        while small.0.swap(1, Ordering::Acquire) != 0 {
            spin_loop();
        }
        if let Ok(mut queue) = queue.try_lock() {
            work(&mut queue);
        }
        small.0.store(0, Ordering::Release);
    };
    counting(threads, move |thread, work| {
        let mut slept = false;
        locked(&mut |queue| {
            slept = held.0.swap(1, Ordering::Relaxed) == 1;
            if slept {
                beds[thread].0.store(1, Ordering::Relaxed);
                queue.push(thread);
            }
        });
        while slept && beds[thread].0.load(Ordering::Acquire) == 1 {
            futex(&beds[thread].0, libc::FUTEX_WAIT, 1);
        }
        work();
        let mut next = None;
        locked(&mut |queue| {
            next = (!queue.is_empty()).then(|| queue.remove(0));
            held.0.store(u64::from(next.is_some()), Ordering::Relaxed);
        });
        if let Some(next) = next {
            beds[next].0.store(0, Ordering::Release);
            futex(&beds[next].0, libc::FUTEX_WAKE, 1);
        }
    })
}

pub(crate) fn std_mutex(threads: usize) -> Program {
    let lock = Mutex::new(());
    counting(threads, move |_, work| {
        let _held = lock.lock().unwrap();
        work();
    })
}

pub(crate) fn std_rwlock(threads: usize) -> Program {
    let lock = std::sync::RwLock::new(());
    counting(threads, move |_, work| {
        drop(lock.read().unwrap());
        let _held = lock.write().unwrap();
        work();
    })
}

pub(crate) fn other_mutex(threads: usize) -> Program {
    let lock = parking_lot::Mutex::new(());
    counting(threads, move |_, work| {
        let _held = lock.lock();
        work();
    })
}

pub(crate) fn other_rwlock(threads: usize) -> Program {
    let lock = parking_lot::RwLock::new(());
    counting(threads, move |_, work| {
        drop(lock.read());
        let _held = lock.write();
        work();
    })
}
