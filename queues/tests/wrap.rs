//! Positions near their wrap, and what the public traits cannot see.

use queues::{
    DequeChaseLev, DequePackedFifo, Full, Inline, MpmcMichaelScott, MpmcRingRte, MpmcRingVyukov,
    MpmcScq, MpmcTicket, MutexRing, SpscFastForward, SpscLamport, SpscRingCached, SpscRingUnpadded,
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
        three_laps!(DequePackedFifo<u64, Inline<16>>, capacity);
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
        three_laps!(DequePackedFifo<u64, Boxed>, capacity);
        three_laps!(MpmcTicket<u64, Boxed>, capacity);
        three_laps!(MpmcRingRte<u64, Boxed>, capacity);
        three_laps!(MpmcScq<u64, Boxed>, capacity);
        three_laps!(MpmcScq<u64, Boxed, NARROW>, capacity);
        three_laps!(MpmcMichaelScott<u64, Boxed>, capacity);
    }
}

/// Lets a deque grow where its positions wrap, with elements taken from both ends.
#[test]
#[cfg(feature = "alloc")]
fn positions_wrap_while_a_deque_grows() {
    use queues::{DequeChaseLevGrowing, Steal};
    for (capacity, before) in (1..=17).flat_map(|c| (0..3 * c).map(move |b| (c, b))) {
        for stolen in [0, 1, capacity] {
            let start = 0usize.wrapping_sub(before);
            let mut deque = DequeChaseLevGrowing::starting_at(capacity, 0, start).unwrap();
            let (mut worker, thief) = deque.split();
            let (all, mut oldest) = (5 * capacity, 0);
            for value in 0..all {
                assert!(worker.try_push(value).is_ok());
                if value % 2 == 0 && oldest < stolen {
                    assert_eq!(thief.steal(), Steal::Success(oldest), "from {before} before");
                    oldest += 1;
                }
            }
            for value in (all / 2..all).rev() {
                assert_eq!(worker.pop(), Some(value), "{before} before the wrap");
            }
            for value in oldest..all / 2 {
                assert_eq!(thief.steal(), Steal::Success(value), "{before} before the wrap");
            }
            assert_eq!((worker.pop(), thief.steal()), (None, Steal::Empty));
        }
    }
}

/// A block without an element, one that is linked, and one that is used again, where positions wrap.
#[test]
#[cfg(feature = "alloc")]
fn positions_wrap_between_blocks() {
    use queues::SpscUnbounded;
    for (lap, index) in [0, 1, usize::MAX - 1, usize::MAX]
        .into_iter()
        .flat_map(|lap| (0..4).map(move |index| (lap, index)))
    {
        for inside in 0..=9 {
            let mut queue = SpscUnbounded::<u64, 4>::starting_at(1, lap, index).unwrap();
            let (mut producer, mut consumer) = queue.split();
            assert_eq!(consumer.try_pop(), None, "lap {lap}, index {index}: not empty at first");
            for value in 0..40 {
                producer.try_push(value).unwrap();
                let popped = value.checked_sub(inside);
                if popped.is_some() {
                    assert_eq!(consumer.try_pop(), popped, "lap {lap}, index {index}");
                }
            }
            for value in 40 - inside..40 {
                assert_eq!(consumer.try_pop(), Some(value), "lap {lap}, index {index}");
            }
            assert_eq!(consumer.try_pop(), None, "lap {lap}, index {index}: not empty at last");
        }
    }
}

/// Half, rounded up, and what there is room for, across the wrap of both deques.
#[test]
fn half_is_stolen_wherever_positions_are() {
    use queues::Steal;
    type Deque = DequePackedFifo<u64, Inline<8>>;
    let near = [0, 1, usize::MAX, usize::MAX / 2];
    for (lap, index) in near.into_iter().flat_map(|lap| (0..8).map(move |i| (lap, i))) {
        for (there, inside) in (0..=7).flat_map(|t| (0..=5).map(move |i| (t, i))) {
            let mut from = Deque::starting_at(7, lap, index).unwrap();
            let mut into = Deque::starting_at(5, lap, 7 - index).unwrap();
            let ((mut busy, thief), (mut mine, _)) = (from.split(), into.split());
            assert!((0..inside).all(|value| mine.try_push(value).is_ok()));
            assert!((100..100 + there).all(|value| busy.try_push(value).is_ok()));
            let half = there.div_ceil(2).min(5 - inside);
            let expected = if half == 0 { Steal::Empty } else { Steal::Success(half as usize) };
            assert_eq!(
                thief.steal_half_into(&mut mine),
                expected,
                "{there} there, {inside} inside"
            );
            let moved = (0..inside).chain(100..100 + half);
            assert!(moved.into_iter().all(|value| mine.pop() == Some(value)));
            assert!((100 + half..100 + there).all(|value| busy.pop() == Some(value)));
            assert_eq!((mine.pop(), busy.pop()), (None, None));
        }
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
