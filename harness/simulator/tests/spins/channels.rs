//! Threads that wait for each other's messages, phases and conditions.

use core::hint::spin_loop;
use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Barrier, Condvar, Mutex, Once, mpsc};

use crossbeam_queue::{ArrayQueue, SegQueue};

use super::{Line, Program, rounds};

/// Messages of the producers, all threads but the first, which sums them up.
fn messages(
    threads: usize,
    send: impl Fn(u64) + Sync + 'static,
    receive: impl Fn() -> u64 + Sync + 'static,
) -> Program {
    let each = rounds(threads) as u64;
    Program::new(move |thread| {
        if thread > 0 {
            (0..each).for_each(|i| send(thread as u64 * each + i));
            return 0;
        }
        let all = (threads as u64 - 1) * each;
        let sum: u64 = (0..all).map(|_| receive()).sum();
        assert_eq!(sum, (each..each + all).sum());
        sum
    })
}

/// A channel's ends, which threads share. Only one receives.
struct Ends<S, R>(S, R);

// SAFETY: the receiving end is used by the first thread alone.
unsafe impl<S: Sync, R> Sync for Ends<S, R> {}

pub(crate) fn std_channel(threads: usize) -> Program {
    let (send, receive) = mpsc::channel();
    let ends = std::sync::Arc::new(Ends(send, receive));
    let other = ends.clone();
    messages(
        threads,
        move |i| ends.0.send(i).unwrap(),
        move || {
            let Ends(_, receive) = &*other;
            receive.recv().unwrap()
        },
    )
}

pub(crate) fn std_bounded_channel(threads: usize) -> Program {
    let (send, receive) = mpsc::sync_channel(2);
    let ends = std::sync::Arc::new(Ends(send, receive));
    let other = ends.clone();
    messages(
        threads,
        move |i| ends.0.send(i).unwrap(),
        move || {
            let Ends(_, receive) = &*other;
            receive.recv().unwrap()
        },
    )
}

pub(crate) fn other_channel(threads: usize) -> Program {
    let (send, receive) = crossbeam_channel::bounded(4);
    messages(threads, move |i| send.send(i).unwrap(), move || receive.recv().unwrap())
}

pub(crate) fn array_queue(threads: usize) -> Program {
    let queue = std::sync::Arc::new(ArrayQueue::new(8));
    let other = queue.clone();
    let send = move |i| {
        while queue.push(i).is_err() {
            spin_loop();
        }
    };
    messages(threads, send, move || {
        loop {
            if let Some(i) = other.pop() {
                return i;
            }
            spin_loop();
        }
    })
}

pub(crate) fn segment_queue(threads: usize) -> Program {
    let queue = std::sync::Arc::new(SegQueue::new());
    let other = queue.clone();
    messages(
        threads,
        move |i| queue.push(i),
        move || {
            loop {
                if let Some(i) = other.pop() {
                    return i;
                }
            }
        },
    )
}

pub(crate) fn std_condition(threads: usize) -> Program {
    let (lock, condition) = (Mutex::new(0), Condvar::new());
    Program::new(move |thread| {
        for round in 0..rounds(threads) {
            let mut turn = lock.lock().unwrap();
            while *turn != round * threads + thread {
                turn = condition.wait(turn).unwrap();
            }
            *turn += 1;
            condition.notify_all();
        }
        1
    })
}

pub(crate) fn other_condition(threads: usize) -> Program {
    let (lock, condition) = (parking_lot::Mutex::new(0), parking_lot::Condvar::new());
    Program::new(move |thread| {
        for round in 0..rounds(threads) {
            let mut turn = lock.lock();
            while *turn != round * threads + thread {
                condition.wait(&mut turn);
            }
            *turn += 1;
            condition.notify_all();
        }
        1
    })
}

pub(crate) fn std_barrier(threads: usize) -> Program {
    let barrier = Barrier::new(threads);
    let phases: Vec<Line> = (0..4).map(|_| Line::default()).collect();
    Program::new(move |_| {
        let mut led = 0;
        for phase in &phases {
            phase.0.fetch_add(1, Ordering::Relaxed);
            led += u64::from(barrier.wait().is_leader());
            assert_eq!(phase.0.load(Ordering::Relaxed), threads as u64);
        }
        led
    })
}

/// A barrier whose threads spin until the sense changes.
pub(crate) fn spinning_barrier(threads: usize) -> Program {
    let (arrived, sense) = (Box::new(Line::default()), Box::new(Line::default()));
    Program::new(move |_| {
        for phase in 1..=4 {
            if arrived.0.fetch_add(1, Ordering::AcqRel) + 1 == phase * threads as u64 {
                sense.0.store(phase, Ordering::Release);
            }
            while sense.0.load(Ordering::Acquire) < phase {
                spin_loop();
            }
        }
        arrived.0.load(Ordering::Relaxed) / threads as u64
    })
}

pub(crate) fn std_once(_: usize) -> Program {
    let onces: Vec<(Once, AtomicU64)> = (0..6).map(|_| (Once::new(), AtomicU64::new(0))).collect();
    Program::new(move |_| {
        for (once, value) in &onces {
            once.call_once(|| {
                let sum = (0..2000_u64).fold(0, |sum, i| core::hint::black_box(sum + i));
                value.fetch_add(sum, Ordering::Relaxed);
            });
            assert_eq!(value.load(Ordering::Relaxed), 1_999_000);
        }
        1
    })
}

/// A writer changes two words; readers read them again until both are of one version.
pub(crate) fn sequence_lock(_: usize) -> Program {
    let version = Box::new(Line::default());
    let words = [Line::default(), Line::default()];
    Program::new(move |thread| {
        if thread == 0 {
            for i in 1..=20 {
                version.0.store(2 * i - 1, Ordering::Relaxed);
                core::sync::atomic::fence(Ordering::Release);
                words.iter().for_each(|word| word.0.store(i, Ordering::Relaxed));
                version.0.store(2 * i, Ordering::Release);
            }
            return 0;
        }
        let mut retries = 0;
        loop {
            let before = version.0.load(Ordering::Acquire);
            let [one, other] = [0, 1].map(|i: usize| words[i].0.load(Ordering::Acquire));
            if before % 2 == 1 || version.0.load(Ordering::Acquire) != before {
                retries += 1;
                continue;
            }
            assert_eq!(one, other);
            if before == 40 {
                return retries;
            }
        }
    })
}
