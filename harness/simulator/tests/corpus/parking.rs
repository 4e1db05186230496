//! The locks of `parking_lot`, the queues and channels of `crossbeam`, uncontended.

use std::hint::black_box;

use crossbeam_channel::{TrySendError, bounded, select_biased, unbounded};
use crossbeam_queue::{ArrayQueue, SegQueue};
use parking_lot::{Condvar, FairMutex, Mutex, Once, ReentrantMutex, RwLock};

use super::mix;

#[inline(never)]
pub(crate) fn parking_mutex(ops: u64) -> u64 {
    let mutex = black_box(Mutex::new(0_u64));
    for round in 0..ops * 30 {
        let mut guard = mutex.lock();
        *guard = mix(*guard, round + u64::from(mutex.try_lock().is_none()));
    }
    black_box(mutex.into_inner())
}

#[inline(never)]
pub(crate) fn parking_fair_mutex(ops: u64) -> u64 {
    let mutex = black_box(FairMutex::new(0_u64));
    for round in 0..ops * 30 {
        let mut guard = mutex.lock();
        *guard = mix(*guard, round + u64::from(mutex.try_lock().is_none()));
    }
    black_box(mutex.into_inner())
}

#[inline(never)]
pub(crate) fn parking_reentrant_mutex(ops: u64) -> u64 {
    let mutex = black_box(ReentrantMutex::new(std::cell::Cell::new(0_u64)));
    for round in 0..ops * 20 {
        let outer = mutex.lock();
        outer.set(mix(outer.get(), round));
        let inner = mutex.lock();
        inner.set(mix(inner.get(), u64::from(mutex.try_lock().is_some())));
    }
    black_box(mutex.into_inner().get())
}

#[inline(never)]
pub(crate) fn parking_rwlock(ops: u64) -> u64 {
    let lock = black_box(RwLock::new(3_u64));
    for round in 0..ops * 20 {
        let seen = {
            let one = lock.read();
            let two = lock.try_read();
            *one ^ two.map_or(0, |guard| *guard >> 1) ^ u64::from(lock.try_write().is_none())
        };
        let upgradable = lock.upgradable_read();
        let mut guard = parking_lot::RwLockUpgradableReadGuard::upgrade(upgradable);
        *guard = mix(*guard, round) ^ seen;
        let reader = parking_lot::RwLockWriteGuard::downgrade(guard);
        black_box(*reader);
    }
    black_box(lock.into_inner())
}

#[inline(never)]
pub(crate) fn parking_condvar(ops: u64) -> u64 {
    let (mutex, condvar) = (Mutex::new(0_u64), Condvar::new());
    let mut sum = 0;
    for round in 0..ops * 30 {
        *mutex.lock() = round;
        sum = mix(sum, u64::from(condvar.notify_one()) + condvar.notify_all() as u64);
        condvar.wait_while(&mut mutex.lock(), |value| *value != round);
    }
    black_box(sum)
}

#[inline(never)]
pub(crate) fn parking_once(ops: u64) -> u64 {
    let mut sum = 0;
    for round in 0..ops * 20 {
        let once = black_box(Once::new());
        for turn in 0..4 {
            once.call_once(|| sum = mix(sum, round + turn));
        }
        sum += u64::from(once.state().done());
    }
    black_box(sum)
}

#[inline(never)]
pub(crate) fn array_queue(ops: u64) -> u64 {
    let queue = black_box(ArrayQueue::new(7));
    let mut sum = 0;
    for round in 0..ops * 4 {
        for turn in 0..5 {
            sum += u64::from(queue.push(round + turn).is_err());
        }
        sum = mix(sum, queue.force_push(round).unwrap_or(1));
        for _ in 0..4 {
            sum = mix(sum, queue.pop().unwrap_or(2));
        }
        sum = mix(sum, queue.len() as u64);
    }
    black_box(sum)
}

#[inline(never)]
pub(crate) fn seg_queue(ops: u64) -> u64 {
    let queue = black_box(SegQueue::new());
    let mut sum = 0;
    for round in 0..ops * 3 {
        for turn in 0..9 {
            queue.push([round, turn]);
        }
        while let Some([one, two]) = queue.pop() {
            sum = mix(sum, one + two);
        }
    }
    black_box(sum)
}

#[inline(never)]
pub(crate) fn crossbeam_bounded(ops: u64) -> u64 {
    let (sender, receiver) = bounded::<String>(3);
    let mut sum = 0;
    for round in 0..ops * 3 {
        for _ in 0..3 {
            let _ = sender.send(String::from("a message of some length"));
        }
        if let Err(TrySendError::Full(message)) = sender.try_send(String::from("one too many")) {
            sum += message.len() as u64 + round;
        }
        for message in receiver.try_iter() {
            sum = mix(sum, message.len() as u64);
        }
    }
    black_box(sum)
}

#[inline(never)]
pub(crate) fn crossbeam_unbounded(ops: u64) -> u64 {
    let (sender, receiver) = unbounded::<u64>();
    let mut sum = 0;
    for round in 0..ops * 3 {
        let (other, reader) = (sender.clone(), receiver.clone());
        for turn in 0..7 {
            let _ = other.send(round + turn);
        }
        while let Ok(value) = reader.try_recv() {
            sum = mix(sum, value);
        }
        let _ = sender.send(round);
        sum = mix(sum, reader.recv().unwrap_or(0));
    }
    black_box(sum)
}

#[inline(never)]
pub(crate) fn crossbeam_select(ops: u64) -> u64 {
    let ((one, first), (two, second)) = (unbounded::<u64>(), bounded::<u64>(2));
    let mut sum = 0;
    for round in 0..ops * 3 {
        let _ = if round % 3 == 0 { one.send(round) } else { two.send(round) };
        for _ in 0..2 {
            select_biased! {
                recv(first) -> value => sum = mix(sum, value.unwrap_or(1)),
                recv(second) -> value => sum = mix(sum, value.unwrap_or(2) * 3),
                default => sum = mix(sum, 5),
            }
        }
    }
    black_box(sum)
}
