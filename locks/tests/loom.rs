//! Every interleaving that loom can tell apart, on the shipped files.
//!
//! The variants import `super::sync`; here that module is made of loom's types, so the same files
//! are compiled again without a cfg or a feature. The weakening of each ordering that these models
//! catch is listed by `scripts/mutants.sh`; what they cannot see stands in `survivors.toml`.

extern crate alloc;

use locks::contract;
use locks::hot;
/// Constructors are not const here.
mod array {
    macro_rules! array_of {
        ($value:expr; $n:expr) => {
            core::array::from_fn::<_, { $n }, _>(|_| $value)
        };
    }
    pub(super) use array_of;
}
mod topology {
    pub(super) use locks::Topology;

    loom::thread_local! {
        /// The number of the thread in its model, counted from 0.
        pub(super) static NUMBER: std::cell::Cell<usize> = std::cell::Cell::new(0);
    }

    /// The first thread is alone in its group, the others are together, on every level.
    #[derive(Default)]
    pub(super) struct ByThread;

    impl Topology for ByThread {
        fn group(&self, _level: usize) -> usize {
            NUMBER.with(|number| number.get().min(1))
        }
    }
}
mod sync {
    pub(super) mod atomic {
        pub(in super::super) use loom::sync::atomic::{
            AtomicPtr, AtomicU32, AtomicUsize, Ordering,
        };

        /// Loom orders a store and another thread's exchange only partly, so a waiter that swaps
        /// `true` into `true` for ever never meets the holder's `false`. Such a swap is modelled
        /// as the failed exchange that it is for everyone who looks at values; its orderings are
        /// the weaker for it, never the stronger.
        #[derive(Debug, Default)]
        pub(in super::super) struct AtomicBool(loom::sync::atomic::AtomicBool);

        impl AtomicBool {
            pub(in super::super) fn new(value: bool) -> Self {
                Self(loom::sync::atomic::AtomicBool::new(value))
            }
            pub(in super::super) fn load(&self, order: Ordering) -> bool {
                self.0.load(order)
            }
            pub(in super::super) fn store(&self, value: bool, order: Ordering) {
                self.0.store(value, order);
            }
            pub(in super::super) fn swap(&self, value: bool, order: Ordering) -> bool {
                match self.0.compare_exchange(!value, value, order, Ordering::Relaxed) {
                    Ok(old) | Err(old) => old,
                }
            }
        }
    }
    std::thread_local! {
        /// Looks left in this execution before its remaining branches are no longer explored.
        pub(super) static SPINS_LEFT: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
    }
    /// Each look at a word that did not change is a new branch, so an unbounded wait is an
    /// unbounded model: the shim bounds the looks of all threads of one execution together.
    pub(super) fn spin_loop() {
        SPINS_LEFT.with(|left| match left.get() {
            0 => loom::skip_branch(),
            some => left.set(some - 1),
        });
        loom::thread::yield_now();
    }
    macro_rules! const_fn {
        ($($item:item)*) => { $($item)* };
    }
    pub(super) use const_fn;
}

#[path = "../src/anderson.rs"]
#[expect(unreachable_pub, reason = "the models use a part of the file")]
mod anderson;
#[path = "../src/backoff.rs"]
#[expect(unreachable_pub, reason = "the models use a part of the file")]
mod backoff;
#[path = "../src/clh.rs"]
#[expect(unreachable_pub, reason = "the models use a part of the file")]
mod clh;
#[path = "../src/cohort.rs"]
#[expect(dead_code, unreachable_pub, reason = "the models use a part of the file")]
mod cohort;
#[path = "../src/futex.rs"]
#[expect(unreachable_pub, reason = "the models use a part of the file")]
mod futex;
#[path = "../src/hmcs.rs"]
#[expect(dead_code, unreachable_pub, reason = "the models use a part of the file")]
mod hmcs;
#[path = "../src/mcs.rs"]
#[expect(unreachable_pub, reason = "the models use a part of the file")]
mod mcs;
#[path = "../src/mcs_k42.rs"]
#[expect(unreachable_pub, reason = "the models use a part of the file")]
mod mcs_k42;
#[path = "../src/parker.rs"]
#[expect(unreachable_pub, reason = "the models use a part of the file")]
mod parker;
#[path = "../src/relax.rs"]
#[expect(unreachable_pub, reason = "the models use a part of the file")]
mod relax;
#[path = "../src/tas.rs"]
#[expect(unreachable_pub, reason = "the models use a part of the file")]
mod tas;
#[path = "../src/tas_neighbour.rs"]
#[expect(dead_code, unreachable_pub, reason = "the models use a part of the file")]
mod tas_neighbour;
#[path = "../src/ticket.rs"]
#[expect(unreachable_pub, reason = "the models use a part of the file")]
mod ticket;
#[path = "../src/ticket_proportional.rs"]
#[expect(unreachable_pub, reason = "the models use a part of the file")]
mod ticket_proportional;
#[path = "../src/ticket_two_lines.rs"]
#[expect(unreachable_pub, reason = "the models use a part of the file")]
mod ticket_two_lines;
#[path = "../src/ttas.rs"]
#[expect(unreachable_pub, reason = "the models use a part of the file")]
mod ttas;

use contract::{RawLock, TryLock};
use loom::cell::UnsafeCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Looks at unchanged words that one execution may make in all before its branches end.
const SPINS: u32 = 4;

/// A futex made of loom's mutex and condition variable: looking and going to sleep are one step.
/// It neither wakes spuriously nor forgets, so a lost wake-up shows as a deadlock.
struct ModelFutex;

loom::lazy_static! {
    static ref SLEEPERS: (loom::sync::Mutex<()>, loom::sync::Condvar) =
        (loom::sync::Mutex::new(()), loom::sync::Condvar::new());
}

// SAFETY: the word is compared under the mutex that `unpark_one` takes before it notifies.
unsafe impl parker::Parker for ModelFutex {
    fn park(word: &sync::atomic::AtomicU32, expected: u32) {
        let guard = SLEEPERS.0.lock().unwrap();
        if word.load(sync::atomic::Ordering::Relaxed) == expected {
            drop(SLEEPERS.1.wait(guard).unwrap());
        }
    }
    fn unpark_one(_word: *const sync::atomic::AtomicU32) {
        let guard = SLEEPERS.0.lock().unwrap();
        SLEEPERS.1.notify_one();
        drop(guard);
    }
}

type Futex = futex::FutexLock<ModelFutex, 1>;
type Anderson = anderson::AndersonLock<2>;
type Proportional = ticket_proportional::ProportionalTicketLock<relax::Spin>;
type CohortBoMcs = cohort::CohortLock<ttas::TtasLock, mcs::McsLock, topology::ByThread, 2, 2>;
type CohortTicket =
    cohort::CohortLock<ticket::TicketLock, ticket::TicketLock, topology::ByThread, 2, 2>;
type Hmcs = hmcs::HmcsLock<topology::ByThread, 1, 2, 2>;
type HmcsTwoLevels = hmcs::HmcsLock<topology::ByThread, 2, 2, 1>;

/// Adds one to a plain cell under the lock; loom reports a race if two are inside or if a holder
/// does not see the last one's writes.
fn visit<L: RawLock>(shared: &(L, UnsafeCell<u64>), slot: &L::Slot) {
    // SAFETY: each slot is a local of its thread and is unlocked below.
    unsafe { shared.0.lock(slot) };
    // SAFETY: the lock is held; loom checks that claim.
    shared.1.with_mut(|value| unsafe { *value += 1 });
    // SAFETY: taken above with this slot.
    unsafe { shared.0.unlock(slot) };
}

/// `threads` threads (the main one among them) take the lock `rounds` times each, with one slot.
fn model<L: RawLock + Default + 'static>(
    name: &str,
    threads: u64,
    rounds: u64,
    preemptions: Option<usize>,
) {
    let executions = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&executions);
    explore(name, threads, preemptions, &executions, move || {
        counted.fetch_add(1, Ordering::Relaxed);
        let shared = loom::sync::Arc::new((L::default(), UnsafeCell::new(0)));
        let run = move |shared: &(L, UnsafeCell<u64>), number: u64| {
            topology::NUMBER.with(|own| own.set(number as usize));
            let slot = L::Slot::default();
            for _ in 0..rounds {
                visit(shared, &slot);
            }
        };
        let others: Vec<_> = (1..threads)
            .map(|number| {
                let shared = loom::sync::Arc::clone(&shared);
                loom::thread::spawn(move || run(&shared, number))
            })
            .collect();
        run(&shared, 0);
        for other in others {
            other.join().unwrap();
        }
        // SAFETY: all threads have ended.
        assert_eq!(shared.1.with(|value| unsafe { *value }), threads * rounds);
    });
}

/// Tries once, then locks: a slot is free again after success and after failure. Whether the first
/// attempt succeeded.
fn try_and_visit<L: TryLock>(shared: &(L, UnsafeCell<u64>)) -> bool {
    let slot = L::Slot::default();
    // SAFETY: the slot is a local and is unlocked below if it was taken.
    let taken = unsafe { shared.0.try_lock(&slot) };
    if taken {
        // SAFETY: the lock is held; loom checks that claim.
        shared.1.with_mut(|value| unsafe { *value += 1 });
        // SAFETY: taken above with this slot.
        unsafe { shared.0.unlock(&slot) };
    }
    visit(shared, &slot);
    taken
}

/// One thread locks, one tries: success must exclude and see the other's writes. Loom explores too
/// few orders if the main thread tries (with `ticket`, none in which it tries after the other's
/// unlock), so each of the two does in turn.
fn model_try<L: TryLock + Default + 'static>(name: &str, preemptions: Option<usize>) {
    for spawned_tries in [false, true] {
        let executions = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&executions);
        explore(name, 2, preemptions, &executions, move || {
            counted.fetch_add(1, Ordering::Relaxed);
            let shared = loom::sync::Arc::new((L::default(), UnsafeCell::new(0)));
            let run = move |shared: &(L, UnsafeCell<u64>), tries: bool| {
                if tries {
                    return try_and_visit(shared);
                }
                visit(shared, &L::Slot::default());
                false
            };
            let other = {
                let shared = loom::sync::Arc::clone(&shared);
                loom::thread::spawn(move || run(&shared, spawned_tries))
            };
            let taken = run(&shared, !spawned_tries) | other.join().unwrap();
            // SAFETY: all threads have ended.
            assert_eq!(shared.1.with(|value| unsafe { *value }), 2 + u64::from(taken));
        });
    }
}

fn explore(
    name: &str,
    threads: u64,
    preemptions: Option<usize>,
    executions: &AtomicU64,
    body: impl Fn() + Sync + Send + 'static,
) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = preemptions;
    builder.check(move || {
        sync::SPINS_LEFT.with(|left| left.set(SPINS));
        body();
    });
    let bound = preemptions.map_or("none".into(), |bound| bound.to_string());
    let executions = executions.load(Ordering::Relaxed);
    println!(
        "loom | {name} | threads {threads} | preemption bound {bound} | executions {executions}"
    );
    assert!(executions > 1, "nothing was explored");
}

macro_rules! models {
    ($($id:ident $lock:ty, three threads at $bound:expr $(, [$($try_lock:tt)+])?;)*) => { $( mod $id {
        use super::*;
        #[test]
        fn two_threads_twice() {
            model::<$lock>(concat!(stringify!($id), " twice"), 2, 2, Some(4));
        }
        #[test]
        fn three_threads() {
            model::<$lock>(concat!(stringify!($id), " once"), 3, 1, $bound);
        }
        try_model!($id $lock $(, $($try_lock)+)?);
    } )* };
}

macro_rules! try_model {
    ($id:ident $lock:ty, no try_lock) => {};
    ($id:ident $lock:ty) => {
        try_model!($id $lock, try_lock at None);
    };
    ($id:ident $lock:ty, try_lock at $bound:expr) => {
        #[test]
        fn lock_against_try_lock() {
            model_try::<$lock>(concat!(stringify!($id), " try_lock"), $bound);
        }
    };
}

mod models {
    use super::*;

    // One line a variant; the rows of the table that are missing here are named below, with reasons.
    models! {
        tas crate::tas::TasLock, three threads at Some(4);
        ttas crate::ttas::TtasLock, three threads at Some(4);
        ticket crate::ticket::TicketLock, three threads at Some(5);
        ticket_proportional Proportional, three threads at Some(5);
        ticket_two_lines crate::ticket_two_lines::TwoLineTicketLock, three threads at Some(5);
        anderson Anderson, three threads at Some(4);
        mcs crate::mcs::McsLock, three threads at Some(4);
        mcs_k42 crate::mcs_k42::K42Lock, three threads at Some(3), [try_lock at Some(4)];
        clh crate::clh::ClhLock, three threads at Some(4), [no try_lock];
        hmcs Hmcs, three threads at Some(3);
        futex Futex, three threads at Some(3);
        tas_neighbour crate::tas_neighbour::TasNeighbourLock, three threads at Some(4);
    }

    /// Two rows of one file, whose name the module has.
    mod cohort {
        use super::*;
        models! {
            cohort_bo_mcs CohortBoMcs, three threads at Some(3), [try_lock at Some(5)];
            cohort_ticket CohortTicket, three threads at Some(3);
        }
    }
}

/// Rows without a model: `null` has nothing to interleave; `ttas_backoff` is `ttas` with more spin
/// hints between two looks.
const WITHOUT_A_MODEL: [&str; 2] = ["null", "ttas_backoff"];

#[test]
fn hmcs_climbs_two_levels() {
    model::<HmcsTwoLevels>("hmcs, two levels", 3, 1, Some(2));
}

#[test]
fn no_row_is_missing() {
    macro_rules! ids {
        ($($id:ident => $lock:ty, $kind:ident;)*) => { [$(stringify!($id)),*] };
    }
    let here = include_str!("loom.rs");
    for id in locks::for_each_lock!(ids) {
        let line = format!("{id} ");
        let modelled = here
            .lines()
            .map(str::trim_start)
            .any(|text| text.starts_with(&line) && text.contains(", three threads at "));
        assert!(
            modelled != WITHOUT_A_MODEL.contains(&id),
            "{id}: add its line to models! in tests/loom.rs, or its reason"
        );
    }
}
