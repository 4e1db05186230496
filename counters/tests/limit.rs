//! Limits that hold exactly: never passed, never refused while there is room.
#![cfg(feature = "std")]

use counters::{AtLimit, HotFields, LimitCounter, TlsSlot};
use std::sync::atomic::{AtomicI64, Ordering};
use std::thread;

/// Numbers that look random, the same each time.
fn numbers(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut state = seed;
    move |below| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    }
}

/// One thread after the other, against a plain number.
#[test]
fn it_refuses_exactly_what_a_plain_number_would() {
    fn compare<const ALLOWANCE: i64>() {
        for seed in 0..200 {
            let mut number = numbers(seed);
            let limit = number(50);
            let counter = LimitCounter::<4, TlsSlot, ALLOWANCE>::new(limit);
            let mut plain = 0;
            for _ in 0..500 {
                let (shard, n) = (number(8) as usize, number(12));
                if number(2) == 0 {
                    let fits = plain + n <= limit;
                    assert_eq!(
                        counter.try_add_at(shard, n).is_ok(),
                        fits,
                        "{plain} + {n}, {limit}"
                    );
                    plain += if fits { n } else { 0 };
                } else {
                    let n = n.min(plain);
                    counter.sub_at(shard, n);
                    plain -= n;
                }
                if number(10) == 0 {
                    assert_eq!(counter.sum(), plain as i64);
                }
            }
            assert_eq!((counter.sum(), counter.limit()), (plain as i64, limit as i64));
        }
    }
    compare::<0>();
    compare::<1>();
    compare::<7>();
    compare::<1024>();
}

#[test]
fn threads_fill_it_to_the_last_one() {
    for limit in [0, 1, 2, 1000, 100_003] {
        let counter = LimitCounter::<4, TlsSlot, 64>::new(limit);
        let let_in: u64 = thread::scope(|scope| {
            let fill = || (0..).take_while(|_| counter.try_add(1).is_ok()).count() as u64;
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(fill)).collect();
            threads.into_iter().map(|it| it.join().unwrap()).sum()
        });
        assert_eq!((let_in, counter.sum()), (limit, limit as i64));
    }
}

/// As many threads as there is room for: each has room for one whenever it has none.
#[test]
fn nobody_is_refused_while_there_is_room() {
    let counter = LimitCounter::<4, TlsSlot, 2>::new(4);
    thread::scope(|scope| {
        for seed in 0..4 {
            let counter = &counter;
            scope.spawn(move || {
                let mut number = numbers(seed);
                for _ in 0..50_000 {
                    assert_eq!(counter.try_add_at(number(4) as usize, 1), Ok(()));
                    counter.sub_at(number(4) as usize, 1);
                }
            });
        }
    });
    assert_eq!(counter.sum(), 0);
}

#[test]
fn it_is_never_passed_while_threads_come_and_go() {
    const LIMIT: i64 = 100;
    let (counter, inside) = (LimitCounter::<4, TlsSlot, 8>::new(LIMIT as u64), AtomicI64::new(0));
    let refused: u64 = thread::scope(|scope| {
        let visit = |seed| {
            let (counter, inside) = (&counter, &inside);
            scope.spawn(move || {
                let (mut number, mut mine, mut refused) = (numbers(seed), 0, 0);
                for _ in 0..50_000 {
                    let n = number(40) as i64;
                    if mine > 0 && number(2) == 0 {
                        inside.fetch_sub(mine, Ordering::SeqCst);
                        counter.sub(mine as u64);
                        mine = 0;
                    } else if counter.try_add(n as u64).is_ok() {
                        mine += n;
                        let now = inside.fetch_add(n, Ordering::SeqCst) + n;
                        assert!(now <= LIMIT, "{now}");
                    } else {
                        refused += 1;
                    }
                }
                inside.fetch_sub(mine, Ordering::SeqCst);
                counter.sub(mine as u64);
                refused
            })
        };
        let threads: Vec<_> = (0..4).map(visit).collect();
        threads.into_iter().map(|it| it.join().unwrap()).sum()
    });
    assert!(refused > 0, "the limit was never felt");
    assert_eq!(counter.sum(), 0);
    counter.try_add(LIMIT as u64).unwrap();
}

/// What shards hold, of one whose limit is far away.
fn hoarded<const N: usize, const ALLOWANCE: i64>(
    counter: &LimitCounter<N, TlsSlot, ALLOWANCE>,
) -> i64 {
    let mut words = Vec::new();
    counter.hot_fields(&mut |field| words.extend((field.name == "allowances").then_some(field)));
    let base = core::ptr::from_ref(counter).cast::<u8>();
    let read = |field: &counters::HotField| {
        // SAFETY: a word of the counter, which is alive, and no other thread is here.
        unsafe { base.with_addr(field.start).cast::<i64>().read_volatile() }
    };
    words.iter().map(read).sum()
}

#[test]
fn shards_hoard_no_more_than_they_say() {
    let counter = LimitCounter::<4, TlsSlot, 100>::new(1_000_000);
    assert_eq!((counter.max_hoarded(), hoarded(&counter)), (400, 0));
    (0..4).for_each(|shard| counter.try_add_at(shard, 5000).unwrap());
    assert_eq!(hoarded(&counter), 400, "each an allowance");
    for n in [1, 60, 100, 4000] {
        (0..4).for_each(|shard| counter.sub_at(shard, n));
        assert!(hoarded(&counter) <= 400, "{}", hoarded(&counter));
    }
    assert_eq!(counter.sum(), 4 * (5000 - 4161));
    // Near the limit a shard gets a part of what is left.
    let counter = LimitCounter::<4, TlsSlot, 100>::new(41);
    counter.try_add_at(0, 1).unwrap();
    assert_eq!(hoarded(&counter), 10);
}

#[test]
fn numbers_that_are_too_large_are_refused() {
    let counter = LimitCounter::<1, TlsSlot>::new(u64::MAX);
    assert_eq!(counter.limit(), i64::MAX);
    assert_eq!(counter.try_add(u64::MAX), Err(AtLimit));
    counter.try_add(i64::MAX as u64).unwrap();
    assert_eq!(counter.try_add(1), Err(AtLimit));
    counter.try_add(0).unwrap();
    counter.sub(i64::MAX as u64);
    assert_eq!(counter.sum(), 0);
}
