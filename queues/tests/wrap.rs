//! Positions near their wrap, and what the public traits cannot see.

use queues::{
    DequeChaseLev, Full, Inline, MpmcMichaelScott, MpmcRingRte, MpmcRingVyukov, MpmcScq,
    MpmcTicket, MutexRing, SpscFastForward, SpscLamport, SpscRingCached, SpscRingUnpadded,
};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Bits that positions do not use, so that 12 are left: they wrap after few operations.
const NARROW: u32 = usize::BITS - 12;

/// Fills and empties `ring` for three laps from a start near the wrap of its positions, with
/// `fill` elements inside when it wraps.
macro_rules! three_laps {
    ($ring:ty, $capacity:expr) => {
        for (lap, index, fill) in starts($capacity) {
            let mut ring = <$ring>::starting_at($capacity, lap, index).unwrap();
            let (mut producer, mut consumer) = queues::Queue::split(&mut ring);
            let (mut pushed, mut popped) = (0..3 * $capacity as u64, 0..);
            let mut push = |value| queues::Producer::try_push(&mut producer, value);
            let mut pop = || queues::Consumer::try_pop(&mut consumer);
            assert_eq!(pop(), None, "lap {lap}, index {index}: not empty at first");
            for value in pushed.by_ref().take(fill) {
                assert_eq!(push(value), Ok(()), "lap {lap}, index {index}");
            }
            for value in pushed {
                if fill == $capacity {
                    assert_eq!(push(value), Err(Full(value)), "lap {lap}, index {index}");
                    assert_eq!(pop(), popped.next(), "lap {lap}, index {index}");
                    assert_eq!(push(value), Ok(()), "lap {lap}, index {index}");
                } else {
                    assert_eq!(push(value), Ok(()), "lap {lap}, index {index}");
                    assert_eq!(pop(), popped.next(), "lap {lap}, index {index}");
                }
            }
            for _ in 0..fill {
                assert_eq!(pop(), popped.next(), "lap {lap}, index {index}");
            }
            assert_eq!(pop(), None, "lap {lap}, index {index}: not empty at last");
        }
    };
}

/// Laps around the wrap, each slot to begin at, each fill level.
fn starts(capacity: usize) -> impl Iterator<Item = (usize, usize, usize)> {
    let laps = [0, 1, usize::MAX - 1, usize::MAX, usize::MAX / 2, usize::MAX / 2 + 1];
    laps.into_iter().flat_map(move |lap| {
        (0..capacity).flat_map(move |index| (0..=capacity).map(move |fill| (lap, index, fill)))
    })
}

#[test]
fn positions_wrap_with_slots_inside() {
    for capacity in 1..=9 {
        three_laps!(SpscRingCached<u64, Inline<9>>, capacity);
        three_laps!(SpscRingUnpadded<u64, Inline<9>>, capacity);
        three_laps!(MpmcRingVyukov<u64, Inline<9>>, capacity);
        three_laps!(MutexRing<u64, Inline<9>>, capacity);
        three_laps!(SpscLamport<u64, Inline<9>>, capacity);
        three_laps!(SpscFastForward<u64, Inline<9>>, capacity);
        three_laps!(DequeChaseLev<u64, Inline<9>>, capacity);
        three_laps!(MpmcTicket<u64, Inline<16>>, capacity);
        three_laps!(MpmcRingRte<u64, Inline<16>>, capacity);
        three_laps!(MpmcScq<u64, Inline<16>>, capacity);
        three_laps!(MpmcScq<u64, Inline<16>, NARROW>, capacity);
        three_laps!(MpmcMichaelScott<u64, Inline<9>>, capacity);
    }
}

#[test]
#[cfg(feature = "alloc")]
fn positions_wrap_with_slots_on_the_heap() {
    use queues::Boxed;
    for capacity in 1..=17 {
        three_laps!(SpscRingCached<u64, Boxed>, capacity);
        three_laps!(SpscRingUnpadded<u64, Boxed>, capacity);
        three_laps!(MpmcRingVyukov<u64, Boxed>, capacity);
        three_laps!(MutexRing<u64, Boxed>, capacity);
        three_laps!(SpscLamport<u64, Boxed>, capacity);
        three_laps!(SpscFastForward<u64, Boxed>, capacity);
        three_laps!(DequeChaseLev<u64, Boxed>, capacity);
        three_laps!(MpmcTicket<u64, Boxed>, capacity);
        three_laps!(MpmcRingRte<u64, Boxed>, capacity);
        three_laps!(MpmcScq<u64, Boxed>, capacity);
        three_laps!(MpmcScq<u64, Boxed, NARROW>, capacity);
        three_laps!(MpmcMichaelScott<u64, Boxed>, capacity);
    }
}

#[test]
fn positions_wrap_while_threads_use_them() {
    const ITEMS: u64 = 3_000;
    for index in 0..3 {
        let ring = MpmcRingVyukov::<u64, Inline<3>>::starting_at(3, usize::MAX - 20, index);
        let ring = ring.unwrap();
        let (sum, left) = std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for value in 1..=ITEMS {
                        while ring.try_push(value).is_err() {
                            std::thread::yield_now();
                        }
                    }
                });
            }
            let popping: Vec<_> = (0..2)
                .map(|_| {
                    scope.spawn(|| {
                        let mut sum = 0;
                        for _ in 0..ITEMS {
                            sum += loop {
                                match ring.try_pop() {
                                    Some(value) => break value,
                                    None => std::thread::yield_now(),
                                }
                            };
                        }
                        sum
                    })
                })
                .collect();
            let sum: u64 = popping.into_iter().map(|thread| thread.join().unwrap()).sum();
            (sum, ring.try_pop())
        });
        assert_eq!((sum, left), (ITEMS * (ITEMS + 1), None));
    }
}

#[test]
fn lengths_are_exact_when_nobody_is_inside() {
    let mutex = MutexRing::<usize, Inline<3>>::new();
    for (lap, index) in (0..2).flat_map(|lap| (0..3).map(move |index| (lap, index))) {
        let mut spsc = SpscRingCached::<usize, Inline<3>>::starting_at(3, lap, index).unwrap();
        let (mut producer, mut consumer) = spsc.split();
        for length in 0..=3 {
            assert_eq!((producer.len(), consumer.len(), mutex.len()), (length, length, length));
            assert_eq!((producer.is_empty(), mutex.is_empty()), (length == 0, length == 0));
            assert_eq!(producer.try_push(length).is_ok(), length < 3);
            assert_eq!(mutex.try_push(length).is_ok(), length < 3);
        }
        for length in (0..3).rev() {
            assert!(consumer.try_pop().is_some() && mutex.try_pop().is_some());
            assert_eq!((producer.len(), consumer.len(), mutex.len()), (length, length, length));
        }
        assert!(consumer.is_empty());
    }
}

#[test]
fn lengths_stay_within_the_capacity_while_threads_push_and_pop() {
    let mut ring = SpscRingCached::<u32, Inline<3>>::new();
    let (mut producer, mut consumer) = ring.split();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for value in 0..20_000 {
                let room = 3 - producer.len();
                assert!(producer.try_push(value).is_ok() || room == 0);
            }
        });
        for _ in 0..20_000 {
            let there = consumer.len();
            assert!(there <= 3);
            assert!(consumer.try_pop().is_some() || there == 0);
        }
    });
}

#[test]
fn the_first_drop_that_panics_does_not_keep_the_others() {
    struct Bomb<'a>(&'a Cell<u32>, bool);
    impl Drop for Bomb<'_> {
        fn drop(&mut self) {
            self.0.set(self.0.get() + 1);
            assert!(!self.1, "boom");
        }
    }
    let drops = Cell::new(0);
    let ring = MutexRing::<Bomb<'_>, Inline<4>>::new();
    for number in 0..4 {
        assert!(ring.try_push(Bomb(&drops, number == 1)).is_ok());
    }
    assert!(catch_unwind(AssertUnwindSafe(|| drop(ring))).is_err());
    assert_eq!(drops.get(), 4);
}

/// Positions of 12 bits wrap hundreds of times, at each fill level, with attempts that fail on both
/// sides.
#[test]
fn narrow_positions_of_index_rings_wrap_again_and_again() {
    for capacity in [1, 2, 3, 5, 8] {
        let ring = MpmcScq::<u64, Inline<8>, NARROW>::starting_at(capacity, 0, 0).unwrap();
        let (mut pushed, mut popped) = (0, 0);
        while pushed < 100_000 {
            for fill in 0..=capacity {
                for _ in 0..fill {
                    assert_eq!(ring.try_push(pushed), Ok(()), "capacity {capacity}");
                    pushed += 1;
                }
                if fill == capacity {
                    assert_eq!(ring.try_push(0), Err(Full(0)), "capacity {capacity}");
                }
                for _ in 0..fill {
                    assert_eq!(ring.try_pop(), Some(popped), "capacity {capacity}");
                    popped += 1;
                }
                assert_eq!(ring.try_pop(), None, "capacity {capacity}");
            }
        }
    }
}

/// After so many attempts that failed, index rings do not look any more; what is put in afterwards is
/// found all the same, on both sides.
#[test]
fn index_rings_find_what_comes_after_any_number_of_failures() {
    for (threads, attempts) in [(1, 40), (3, 40), (1 << 16, 70_000)] {
        for capacity in 1..=4 {
            let ring = MpmcScq::<u64, Inline<4>>::for_threads(capacity, 0, 0, threads).unwrap();
            for value in 0..3 * capacity as u64 {
                for _ in 0..attempts {
                    assert_eq!(ring.try_pop(), None, "{threads} threads");
                }
                for value in value..value + capacity as u64 {
                    assert_eq!(ring.try_push(value), Ok(()), "{threads} threads");
                }
                for _ in 0..attempts {
                    assert_eq!(ring.try_push(0), Err(Full(0)), "{threads} threads");
                }
                for value in value..value + capacity as u64 {
                    assert_eq!(ring.try_pop(), Some(value), "{threads} threads");
                }
            }
        }
    }
}
