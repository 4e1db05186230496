//! The deque as schedulers use it: which end gives what, and every element to one thread.
#![cfg(feature = "std")]

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use queues::{Boxed, DequeChaseLev, Steal, WithCapacity};

type Deque<T> = DequeChaseLev<T, Boxed>;

#[test]
fn the_worker_takes_the_newest_and_a_thief_the_oldest() {
    let mut deque = Deque::with_capacity(8).unwrap();
    let (mut worker, thief) = deque.split();
    assert_eq!((worker.pop(), thief.steal()), (None, Steal::Empty));
    (0..5).for_each(|value| worker.try_push(value).unwrap());
    assert_eq!(thief.steal(), Steal::Success(0));
    assert_eq!(worker.pop(), Some(4));
    let second = thief.clone();
    assert_eq!(second.steal(), Steal::Success(1));
    worker.try_push(5).unwrap();
    assert_eq!([worker.pop(), worker.pop()], [Some(5), Some(3)]);
    assert_eq!(thief.steal(), Steal::Success(2));
    assert_eq!((worker.pop(), thief.steal()), (None, Steal::Empty));
}

/// All elements are there first; then everybody takes at once. Thieves see them go up, the worker
/// sees them go down, and together they take each once.
#[test]
fn a_stampede_takes_each_element_once_and_in_order() {
    const THIEVES: usize = 3;
    const COUNT: usize = 20_000;
    let mut deque = Deque::with_capacity(COUNT).unwrap();
    let (mut worker, thief) = deque.split();
    (1..=COUNT).for_each(|value| worker.try_push(Box::new(value)).unwrap());
    let left = AtomicUsize::new(COUNT);
    let sum = AtomicUsize::new(0);
    let took = |value: usize| {
        sum.fetch_add(value, Ordering::Relaxed);
        left.fetch_sub(1, Ordering::Relaxed);
    };
    thread::scope(|scope| {
        for _ in 0..THIEVES {
            let (thief, left, took) = (thief.clone(), &left, &took);
            scope.spawn(move || {
                let mut last = 0;
                while left.load(Ordering::Relaxed) > 0 {
                    if let Steal::Success(value) = thief.steal() {
                        assert!(last < *value, "{last} before {value}");
                        last = *value;
                        took(last);
                    }
                }
            });
        }
        let mut last = COUNT + 1;
        while left.load(Ordering::Relaxed) > 0 {
            if let Some(value) = worker.pop() {
                assert!(last > *value, "{last} before {value}");
                last = *value;
                took(last);
            }
        }
    });
    assert_eq!(sum.into_inner(), COUNT * (COUNT + 1) / 2);
}

/// The worker pushes and pops in an order drawn at random while thieves steal.
#[test]
fn pushes_pops_and_steals_in_any_order_lose_nothing() {
    const THIEVES: usize = 2;
    const COUNT: usize = 20_000;
    let mut deque = Deque::with_capacity(64).unwrap();
    let (mut worker, thief) = deque.split();
    let done = AtomicBool::new(false);
    let seen: Vec<AtomicUsize> = (0..COUNT).map(|_| AtomicUsize::new(0)).collect();
    let see = |value: usize| seen[value].fetch_add(1, Ordering::Relaxed);
    thread::scope(|scope| {
        for _ in 0..THIEVES {
            let (thief, done, see) = (thief.clone(), &done, &see);
            scope.spawn(move || {
                loop {
                    let over = done.load(Ordering::Acquire);
                    match thief.steal() {
                        Steal::Success(value) => drop(see(value)),
                        Steal::Empty if over => break,
                        Steal::Empty | Steal::Retry => thread::yield_now(),
                    }
                }
            });
        }
        let (mut next, mut random) = (0, 1_u64);
        while next < COUNT {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            if (random >> 62) == 0 {
                worker.pop().map(&see);
            } else if worker.try_push(next).is_ok() {
                next += 1;
            }
        }
        while let Some(value) = worker.pop() {
            see(value);
        }
        done.store(true, Ordering::Release);
    });
    let odd = seen.iter().position(|times| times.load(Ordering::Relaxed) != 1);
    assert_eq!(odd, None, "an element that was not taken once");
}

struct Dropped(usize, Arc<Mutex<Vec<usize>>>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.1.lock().unwrap().push(self.0);
    }
}

#[test]
fn what_nobody_took_is_dropped_with_the_deque_once() {
    const COUNT: usize = 200;
    let dropped = Arc::new(Mutex::new(Vec::new()));
    let mut deque = Deque::with_capacity(COUNT).unwrap();
    let (mut worker, thief) = deque.split();
    for value in 0..COUNT {
        assert!(worker.try_push(Dropped(value, dropped.clone())).is_ok());
    }
    for _ in 0..COUNT / 4 {
        drop((worker.pop(), thief.steal()));
    }
    assert_eq!(dropped.lock().unwrap().len(), COUNT / 2);
    drop(deque);
    let mut all = dropped.lock().unwrap().clone();
    all.sort_unstable();
    assert!(all.iter().copied().eq(0..COUNT), "{all:?}");
}
