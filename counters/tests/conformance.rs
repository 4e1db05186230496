//! The exported suite over every row of the table, and over counters that are broken.
#![cfg(feature = "std")]

use counters::conformance::{
    Violation, adds_from_destructors, counts_down, keeps_adds_of_exited_threads, keeps_every_add,
    sums_are_one_sided, takes_adds_of_exiting_threads_once, takes_every_add_once, takes_wrap,
    wraps,
};
use counters::{
    AtomicCounter, BatchedCounter, Counter, Drain, NodeCounter, PerCpuCounter, PerThreadCounter,
    Properties, Rseq, ShardIndex, ShardedCounter, StripedCounter, TlsProbe, TlsSlot,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

macro_rules! row {
    ($id:ident, $counter:ty, baseline) => {};
    (lossy, $counter:ty, control) => {}; // below: it must fail
    ($id:ident, $counter:ty, $kind:ident) => {
        mod $id {
            counters::conformance!($counter);
            counters::conformance_drain!($counter);
        }
    };
}

macro_rules! rows {
    ($($id:ident => $counter:ty, $kind:ident;)*) => { $( row!($id, $counter, $kind); )* };
}

counters::for_each_counter!(rows);

/// More threads than shards, places or CPUs, and numbers with gaps, none below the shards.
mod crowded {
    use super::*;

    struct Gaps;

    impl ShardIndex for Gaps {
        fn current() -> usize {
            usize::MAX - 1000 * TlsSlot::current()
        }
    }

    macro_rules! suites {
        ($($id:ident $counter:ty;)*) => { $( mod $id {
            use super::*;
            counters::conformance!($counter);
            counters::conformance_drain!($counter);
        } )* };
    }

    suites! {
        sharded ShardedCounter<2, TlsSlot>;
        sharded_gaps ShardedCounter<4, Gaps>;
        per_thread PerThreadCounter<1, TlsSlot>;
        per_cpu PerCpuCounter<1, Rseq>;
        per_node NodeCounter<2, Gaps>;
        batched BatchedCounter<2, 4, Gaps>;
        striped StripedCounter<2, TlsProbe>;
    }
}

#[test]
fn debug_prints_the_sum() {
    macro_rules! debug {
        ($($id:ident => $counter:ty, $kind:ident;)*) => { [$({
            let counter = <$counter>::default();
            counter.add(-4711);
            (stringify!($kind), format!("{counter:?}"))
        }),*] };
    }
    for (kind, text) in counters::for_each_counter!(debug) {
        let sum = if kind == "baseline" { "sum: 0" } else { "sum: -4711" };
        assert!(text.contains(sum), "{text}");
    }
}

#[test]
fn what_is_not_exact_is_a_baseline_or_a_control() {
    macro_rules! exact {
        ($($id:ident => $counter:ty, $kind:ident;)*) => {
            [$((stringify!($id), stringify!($kind), <$counter as Counter>::PROPERTIES.exact)),*]
        };
    }
    let rows = counters::for_each_counter!(exact);
    let inexact: Vec<_> = rows.iter().filter(|row| !row.2).map(|row| (row.0, row.1)).collect();
    assert_eq!(inexact, [("null", "baseline"), ("lossy", "control")]);
}

#[test]
fn the_lossy_control_is_right_alone_and_wrong_in_company() {
    keeps_every_add::<counters::LossyCounter>(1, 1_000).unwrap();
    wraps::<counters::LossyCounter>().unwrap();
    // On one CPU a loss needs a preemption between two steps that may be one instruction.
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    if cpus == 1 {
        println!("SKIPPED: one CPU, so that no two threads add at once");
        return;
    }
    assert_caught("threads adding 1", || keeps_every_add::<counters::LossyCounter>(4, 200_000));
}

/// Runs a test that needs luck until it finds what it must find.
fn assert_caught(found: &str, test: impl Fn() -> Result<(), Violation>) {
    let caught = |_| matches!(test(), Err(violation) if violation.to_string().contains(found));
    assert!((0..100).any(caught), "no run of 100 found that {found:?}");
}

/// What the broken ones say of themselves.
const CLAIMED: Properties = <AtomicCounter as Counter>::PROPERTIES;

/// Adds with a load and a store.
#[derive(Default)]
struct Racy(AtomicI64);

impl Counter for Racy {
    const PROPERTIES: Properties = CLAIMED;
    fn add(&self, n: i64) {
        let old = self.0.load(Ordering::Relaxed);
        std::thread::yield_now(); // so that one CPU is enough to see it
        self.0.store(old.wrapping_add(n), Ordering::Relaxed);
    }
    fn sum(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[test]
fn the_suite_catches_adds_that_are_not_atomic() {
    assert_caught("threads adding 1", || keeps_every_add::<Racy>(4, 1_000));
    assert_caught("adding 3 and -5", || counts_down::<Racy>(3, 1_000));
}

/// Takes with a sum and a store of zero.
#[derive(Default)]
struct SumThenZero(AtomicI64);

impl Counter for SumThenZero {
    const PROPERTIES: Properties = CLAIMED;
    fn add(&self, n: i64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }
    fn sum(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drain for SumThenZero {
    fn take(&self) -> i64 {
        let sum = self.sum();
        std::thread::yield_now();
        self.0.store(0, Ordering::Relaxed);
        sum
    }
}

#[test]
fn the_suite_catches_a_take_that_sums_and_then_zeroes() {
    assert_caught("in all takes", || takes_every_add_once::<SumThenZero>(2, 50_000));
}

/// Collects in one word and moves it to another, which a reader sees in both.
#[derive(Default)]
struct CountsFlushesTwice {
    collected: AtomicI64,
    total: AtomicI64,
}

impl Counter for CountsFlushesTwice {
    const PROPERTIES: Properties = CLAIMED;
    fn add(&self, n: i64) {
        self.total.fetch_add(self.collected.fetch_add(n, Ordering::SeqCst) + n, Ordering::SeqCst);
        std::thread::yield_now(); // a reader sees it twice here …
        self.collected.store(0, Ordering::SeqCst);
        std::thread::yield_now(); // … and once here
    }
    fn sum(&self) -> i64 {
        self.total.load(Ordering::SeqCst) + self.collected.load(Ordering::SeqCst)
    }
}

#[test]
fn the_suite_catches_a_flush_that_is_read_twice() {
    assert_caught("fall", || sums_are_one_sided::<CountsFlushesTwice>(1, 100));
}

/// Answers what the sum was when it was last read.
#[derive(Default)]
struct Stale(AtomicI64, AtomicI64);

impl Counter for Stale {
    const PROPERTIES: Properties = CLAIMED;
    fn add(&self, n: i64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }
    fn sum(&self) -> i64 {
        self.1.swap(self.0.load(Ordering::Relaxed), Ordering::Relaxed)
    }
}

#[test]
fn the_suite_catches_a_sum_that_lags() {
    assert_caught("lacks", || sums_are_one_sided::<Stale>(1, 50_000));
}

/// Saturates instead of wrapping.
#[derive(Default)]
struct Saturating(AtomicI64);

impl Counter for Saturating {
    const PROPERTIES: Properties = CLAIMED;
    fn add(&self, n: i64) {
        let _ = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |sum| Some(sum.saturating_add(n)));
    }
    fn sum(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drain for Saturating {
    fn take(&self) -> i64 {
        self.0.swap(0, Ordering::Relaxed)
    }
}

#[test]
fn the_suite_catches_a_total_that_does_not_wrap() {
    wraps::<Saturating>().unwrap_err();
    takes_wrap::<Saturating>().unwrap_err();
}

/// Keeps a thread's first adds in a thread-local value and never flushes them.
#[derive(Default)]
struct ForgetsTheDead(AtomicI64);

std::thread_local! {
    static KEPT: std::cell::Cell<i64> = const { std::cell::Cell::new(0) };
}

impl Counter for ForgetsTheDead {
    const PROPERTIES: Properties = CLAIMED;
    fn add(&self, n: i64) {
        let kept = KEPT.get() + n;
        if kept < 10 {
            return KEPT.set(kept);
        }
        self.0.fetch_add(kept, Ordering::Relaxed);
        KEPT.set(0);
    }
    fn sum(&self) -> i64 {
        self.0.load(Ordering::Relaxed) + KEPT.get()
    }
}

#[test]
fn the_suite_catches_a_counter_that_forgets_exited_threads() {
    let found = keeps_adds_of_exited_threads::<ForgetsTheDead>(20).unwrap_err().to_string();
    assert!(found.contains("have lived"), "{found}");
}

/// Moves what a thread added to the total when it ends, though somebody may have taken it by then.
#[derive(Default)]
struct TakesTheDeadTwice {
    total: Arc<AtomicI64>,
    living: Arc<AtomicI64>,
}

struct Own {
    added: i64,
    total: Arc<AtomicI64>,
    living: Arc<AtomicI64>,
}

impl Drop for Own {
    fn drop(&mut self) {
        let relaxed = Ordering::Relaxed;
        let _ = self.living.fetch_update(relaxed, relaxed, |n| Some((n - self.added).max(0)));
        self.total.fetch_add(self.added, relaxed);
    }
}

std::thread_local! {
    static OWN: std::cell::RefCell<Option<Own>> = const { std::cell::RefCell::new(None) };
}

impl Counter for TakesTheDeadTwice {
    const PROPERTIES: Properties = CLAIMED;
    fn add(&self, n: i64) {
        OWN.with_borrow_mut(|own| {
            let (total, living) = (Arc::clone(&self.total), Arc::clone(&self.living));
            own.get_or_insert(Own { added: 0, total, living }).added += n;
        });
        self.living.fetch_add(n, Ordering::Relaxed);
        std::thread::yield_now(); // so that it lives when it is taken from
    }
    fn sum(&self) -> i64 {
        self.total.load(Ordering::Relaxed) + self.living.load(Ordering::Relaxed)
    }
}

impl Drain for TakesTheDeadTwice {
    fn take(&self) -> i64 {
        self.total.swap(0, Ordering::Relaxed) + self.living.swap(0, Ordering::Relaxed)
    }
}

#[test]
fn the_suite_catches_a_take_of_what_a_thread_gives_again_when_it_ends() {
    assert_caught("threads that ended", || {
        takes_adds_of_exiting_threads_once::<TakesTheDeadTwice>(40, 100)
    });
}

/// Needs a thread-local value that has a destructor.
#[derive(Default)]
struct LosesAtExit(AtomicI64);

std::thread_local! {
    static BOXED: Box<i64> = Box::new(1);
}

impl Counter for LosesAtExit {
    const PROPERTIES: Properties = CLAIMED;
    fn add(&self, n: i64) {
        let one = BOXED.try_with(|one| **one).unwrap_or(0);
        self.0.fetch_add(n * one, Ordering::Relaxed);
    }
    fn sum(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[test]
fn the_suite_catches_adds_that_are_lost_in_destructors() {
    let found = adds_from_destructors::<LosesAtExit>().unwrap_err().to_string();
    assert!(found.contains("destructor"), "{found}");
}
