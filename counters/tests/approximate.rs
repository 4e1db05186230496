//! Approximate counts: exact at first, then right on average, with the error that is stated.
#![cfg(feature = "std")]

use counters::{ApproximateCounter, Random, TlsRandom};
use std::thread;

const N: i64 = 20_000;

#[test]
fn it_is_exact_up_to_the_bits() {
    let counter = ApproximateCounter::<13, TlsRandom>::new();
    for n in 1..=8192 {
        counter.inc();
        assert_eq!(counter.estimate(), n);
    }
    (0..8192).for_each(|_| counter.inc());
    assert_ne!(counter.estimate(), 16_384, "chance, of this seed");
}

/// Errors of counting to `N`, in parts of it, of different seeds.
fn errors<const BITS: u32>(seeds: u64) -> Vec<f64> {
    let one = |seed| {
        TlsRandom::seed(seed);
        let counter = ApproximateCounter::<BITS, TlsRandom>::new();
        (0..N).for_each(|_| counter.inc());
        counter.estimate() as f64 / N as f64 - 1.0
    };
    (0..seeds).map(one).collect()
}

#[test]
fn the_error_is_as_stated_and_has_no_side() {
    fn check<const BITS: u32>() {
        const SEEDS: u64 = 400;
        let stated = ApproximateCounter::<BITS>::new().relative_variance();
        let errors = errors::<BITS>(SEEDS);
        let mean = errors.iter().sum::<f64>() / SEEDS as f64;
        let variance = errors.iter().map(|error| error * error).sum::<f64>() / SEEDS as f64;
        println!("{BITS} bits: mean {mean:.5}, variance {variance:.2e}, stated {stated:.2e}");
        assert!(mean.abs() < 4.0 * (stated / SEEDS as f64).sqrt(), "{mean}");
        // The bound is for the worst count; the least of a doubling is 8/9 of it.
        let deviation = 4.0 * (2.0 / SEEDS as f64).sqrt();
        let (least, most) = (8.0 / 9.0 * (1.0 - deviation), 1.0 + deviation);
        assert!((least..most).contains(&(variance / stated)), "{variance} {stated}");
    }
    check::<6>();
    check::<8>();
    check::<10>();
}

#[test]
fn threads_together_are_as_good_as_one() {
    static COUNTER: ApproximateCounter<10, TlsRandom> = ApproximateCounter::new();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..N).for_each(|_| COUNTER.inc()));
        }
    });
    let error = COUNTER.estimate() as f64 / (4 * N) as f64 - 1.0;
    assert!(error.abs() < 5.0 * COUNTER.relative_variance().sqrt(), "{error}");
}

#[test]
fn it_stops_at_the_end_instead_of_wrapping() {
    let counter = ApproximateCounter::<1>::new();
    (0..200).for_each(|_| counter.inc_with(0));
    assert_eq!(counter.estimate(), 1 << 62);
}

#[test]
fn sequences_are_the_seeds_and_differ_from_thread_to_thread() {
    let draw = || (0..4).map(|_| TlsRandom::next()).collect::<Vec<_>>();
    let seeded = |seed| {
        TlsRandom::seed(seed);
        draw()
    };
    assert_eq!(seeded(3), seeded(3));
    assert_ne!(seeded(3), seeded(4));
    let (one, other) = (thread::spawn(draw).join().unwrap(), thread::spawn(draw).join().unwrap());
    assert_ne!(one, other);
}
