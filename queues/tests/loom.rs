//! Every interleaving that loom can tell apart, on the shipped files.
//!
//! The variants import `super::sync`; here that module is made of loom's types, so the same files
//! are compiled again without a cfg or a feature. Slots are loom's cells: a push and a pop that
//! are not ordered are a race that it reports. The weakening of each ordering that these models
//! catch is listed by `scripts/mutants.sh`; what they cannot see stands in `survivors.toml`.
//!
//! Not compiled again, since there is nothing in them that threads could interleave: `contract.rs`
//! and `storage.rs` (traits), `inline.rs` and `boxed.rs` (slots, and `const` constructors that
//! loom's types do not have), `null.rs`.

use queues::contract;
use queues::hot;
mod storage {
    pub(super) use queues::Storage;
}
mod sync {
    pub(super) mod atomic {
        pub(in super::super) use loom::sync::atomic::Ordering;

        /// Loom remembers the last access to a word only, so a thread that loads a word before it
        /// stores to it hides another thread's earlier load from loom, which then never tries the
        /// store before that load: without a remedy it explores one execution of an SPSC ring.
        /// The remedy is a step in front of each load that changes nothing, orders nothing, and
        /// counts as an access that depends on all others of its kind.
        #[derive(Debug)]
        pub(in super::super) struct AtomicUsize {
            value: loom::sync::atomic::AtomicUsize,
            step: loom::sync::atomic::AtomicBool,
        }

        impl AtomicUsize {
            pub(in super::super) fn new(value: usize) -> Self {
                Self {
                    value: loom::sync::atomic::AtomicUsize::new(value),
                    step: loom::sync::atomic::AtomicBool::new(false),
                }
            }
            pub(in super::super) fn load(&self, order: Ordering) -> usize {
                let relaxed = Ordering::Relaxed;
                self.step.compare_exchange(true, true, relaxed, relaxed).unwrap_err();
                self.value.load(order)
            }
            pub(in super::super) fn store(&self, value: usize, order: Ordering) {
                self.value.store(value, order);
            }
            pub(in super::super) fn compare_exchange_weak(
                &self,
                old: usize,
                new: usize,
                success: Ordering,
                failure: Ordering,
            ) -> Result<usize, usize> {
                self.value.compare_exchange_weak(old, new, success, failure)
            }
        }

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
    pub(super) mod cell {
        pub(in super::super) use loom::cell::UnsafeCell;
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

#[path = "../src/drain.rs"]
mod drain;
#[path = "../src/mpmc_ring_vyukov.rs"]
#[expect(dead_code, unreachable_pub, reason = "the models use a part of the file")]
mod mpmc_ring_vyukov;
#[path = "../src/mutex_ring.rs"]
#[expect(dead_code, unreachable_pub, reason = "the models use a part of the file")]
mod mutex_ring;
#[path = "../src/relax.rs"]
#[expect(unreachable_pub, reason = "the models use a part of the file")]
mod relax;
#[path = "../src/shared.rs"]
#[expect(unreachable_pub, reason = "the models use a part of the file")]
mod shared;
#[path = "../src/slot.rs"]
mod slot;
#[path = "../src/spsc_ring_cached.rs"]
#[expect(dead_code, unreachable_pub, reason = "the models use a part of the file")]
mod spsc_ring_cached;
#[path = "../src/spsc_ring_unpadded.rs"]
#[expect(dead_code, unreachable_pub, reason = "the models use a part of the file")]
mod spsc_ring_unpadded;

use contract::{Consumer, Producer, Queue, WithCapacity};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Looks at unchanged words that one execution may make in all before its branches end.
const SPINS: u32 = 4;

/// An element: who pushed it, its number there, and a mark in the ledger when it is dropped.
struct Element {
    producer: usize,
    number: usize,
    drops: Arc<AtomicUsize>,
}

impl Drop for Element {
    fn drop(&mut self) {
        self.drops.fetch_add(1, Ordering::Relaxed);
    }
}

/// Pushes `attempts` elements, numbered from 0; a full ring ends an attempt, not the numbering.
fn push_all(mut producer: impl Producer<Element>, who: usize, attempts: usize) -> (usize, usize) {
    let (mut accepted, drops) = (0, Arc::new(AtomicUsize::new(0)));
    for _ in 0..attempts {
        let element = Element { producer: who, number: accepted, drops: Arc::clone(&drops) };
        accepted += usize::from(producer.try_push(element).is_ok());
    }
    (who, accepted)
}

/// Pops `attempts` times; what came out, in order.
fn pop_all(mut consumer: impl Consumer<Element>, attempts: usize) -> Vec<(usize, usize)> {
    let popped = (0..attempts).filter_map(|_| consumer.try_pop());
    popped.map(|element| (element.producer, element.number)).collect()
}

/// What a model does: threads, the attempts of each, and how the rest leaves the ring.
#[derive(Clone, Copy)]
struct Plan {
    capacity: usize,
    /// Pushes of each producer.
    producers: &'static [usize],
    /// Pops of each consumer.
    consumers: &'static [usize],
}

/// Both sides of a ring that is freed by hand: loom's threads are not scoped.
type Endpoints<Q> =
    (<Q as Queue<Element>>::Producer<'static>, <Q as Queue<Element>>::Consumer<'static>);

/// Runs all threads of `plan` (one of them is the main thread) and checks that every element that
/// went in came out once, in its producer's order for each consumer, or was left in the ring.
fn model<Q>(name: &str, plan: Plan, preemptions: Option<usize>)
where
    Q: Queue<Element> + WithCapacity + 'static,
    Q::Producer<'static>: 'static,
    Q::Consumer<'static>: 'static,
{
    let threads = plan.producers.len() + plan.consumers.len();
    explore(name, threads, preemptions, move || {
        let ring: *mut Q = Box::into_raw(Box::new(Q::with_capacity(plan.capacity).unwrap()));
        // SAFETY: just made by `Box`; freed below, when all threads and endpoints are gone.
        let (first_producer, first_consumer): Endpoints<Q> = unsafe { &mut *ring }.split();
        let mut producers: Vec<_> =
            plan.producers[1..].iter().map(|_| first_producer.try_clone().unwrap()).collect();
        let mut consumers: Vec<_> =
            plan.consumers[1..].iter().map(|_| first_consumer.try_clone().unwrap()).collect();
        producers.push(first_producer);
        consumers.push(first_consumer);
        let pushing: Vec<_> = producers
            .into_iter()
            .zip(plan.producers)
            .enumerate()
            .map(|(who, (producer, &pushes))| {
                loom::thread::spawn(move || push_all(producer, who, pushes))
            })
            .collect();
        let last = consumers.pop().unwrap();
        let popping: Vec<_> = consumers
            .into_iter()
            .zip(&plan.consumers[1..])
            .map(|(consumer, &pops)| loom::thread::spawn(move || pop_all(consumer, pops)))
            .collect();
        let mut histories = vec![pop_all(last, plan.consumers[0])];
        let accepted: Vec<_> = pushing.into_iter().map(|thread| thread.join().unwrap()).collect();
        histories.extend(popping.into_iter().map(|thread| thread.join().unwrap()));
        // SAFETY: all endpoints went into threads that have ended, or were dropped here.
        let mut ring = unsafe { Box::from_raw(ring) };
        let rest = pop_all(ring.split().1, plan.capacity + 1);
        judge(&accepted, histories, rest);
    });
}

fn judge(
    accepted: &[(usize, usize)],
    histories: Vec<Vec<(usize, usize)>>,
    rest: Vec<(usize, usize)>,
) {
    for history in &histories {
        for &(who, _) in accepted {
            let of_one = history.iter().chain(&rest).filter(|element| element.0 == who);
            assert!(of_one.is_sorted(), "{who} was overtaken in {history:?}, then {rest:?}");
        }
    }
    let mut out: Vec<_> = histories.into_iter().flatten().chain(rest).collect();
    out.sort_unstable();
    let mut expected: Vec<_> =
        accepted.iter().flat_map(|&(who, count)| (0..count).map(move |n| (who, n))).collect();
    expected.sort_unstable();
    assert_eq!(out, expected, "left: came out or was left, right: went in");
}

/// A producer and a consumer end with elements still inside: the ring drops each of them once.
fn model_drop<Q>(name: &str, capacity: usize, preemptions: Option<usize>)
where
    Q: Queue<Element> + WithCapacity + 'static,
    Q::Producer<'static>: 'static,
{
    explore(name, 2, preemptions, move || {
        let ring: *mut Q = Box::into_raw(Box::new(Q::with_capacity(capacity).unwrap()));
        let drops = Arc::new(AtomicUsize::new(0));
        // SAFETY: just made by `Box`; freed below, when the endpoints are gone.
        let (mut producer, mut consumer): Endpoints<Q> = unsafe { &mut *ring }.split();
        let pushing = {
            let drops = Arc::clone(&drops);
            loom::thread::spawn(move || {
                for number in 0..2 {
                    let element = Element { producer: 0, number, drops: Arc::clone(&drops) };
                    drop(producer.try_push(element));
                }
            })
        };
        drop(consumer.try_pop());
        drop(consumer);
        pushing.join().unwrap();
        // SAFETY: both endpoints are gone.
        drop(unsafe { Box::from_raw(ring) });
        assert_eq!(drops.load(Ordering::Relaxed), 2, "each element is dropped once");
    });
}

fn explore(
    name: &str,
    threads: usize,
    preemptions: Option<usize>,
    body: impl Fn() + Sync + Send + 'static,
) {
    let executions = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&executions);
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = preemptions;
    let start = std::time::Instant::now();
    builder.check(move || {
        counted.fetch_add(1, Ordering::Relaxed);
        sync::SPINS_LEFT.with(|left| left.set(SPINS));
        body();
    });
    let seconds = start.elapsed().as_secs_f64();
    let bound = preemptions.map_or("none".into(), |bound| bound.to_string());
    let executions = executions.load(Ordering::Relaxed);
    println!(
        "loom | {name} | threads {threads} | preemption bound {bound} | executions {executions} | \
         {seconds:.1} s"
    );
    assert!(executions > 1, "nothing was explored");
}

/// The models of one row: what two threads do, the ring's end, and if the sides are for many what
/// three threads do.
macro_rules! models {
    ($($id:ident $queue:ty, two threads at $two:expr $(, three threads at $three:expr)?;)*) => { $(
        mod $id {
            use super::*;

            #[test]
            fn one_slot() {
                let plan = Plan { capacity: 1, producers: &[3], consumers: &[2] };
                model::<$queue>(concat!(stringify!($id), " 1P1C capacity 1"), plan, $two);
            }
            #[test]
            fn two_slots() {
                let plan = Plan { capacity: 2, producers: &[4], consumers: &[2] };
                model::<$queue>(concat!(stringify!($id), " 1P1C capacity 2"), plan, $two);
            }
            #[test]
            fn dropped_with_elements_inside() {
                model_drop::<$queue>(concat!(stringify!($id), " drop"), 2, $two);
            }
            $(
                #[test]
                fn two_producers() {
                    let plan = Plan { capacity: 1, producers: &[1, 2], consumers: &[2] };
                    model::<$queue>(concat!(stringify!($id), " 2P1C capacity 1"), plan, $three);
                }
                #[test]
                fn two_producers_two_slots() {
                    let plan = Plan { capacity: 2, producers: &[1, 2], consumers: &[2] };
                    model::<$queue>(concat!(stringify!($id), " 2P1C capacity 2"), plan, $three);
                }
                #[test]
                fn two_consumers() {
                    let plan = Plan { capacity: 2, producers: &[3], consumers: &[2, 1] };
                    model::<$queue>(concat!(stringify!($id), " 1P2C capacity 2"), plan, $three);
                }
            )?
        }
    )* };
}

mod models {
    use super::*;
    use queues::Inline;

    // One line a variant; the rows of the table that are missing here are named below, with reasons.
    models! {
        spsc_ring_cached crate::spsc_ring_cached::SpscRingCached<Element, Inline<2>>, two threads at None;
        mpmc_ring_vyukov crate::mpmc_ring_vyukov::MpmcRingVyukov<Element, Inline<2>>, two threads at None, three threads at Some(3);
        mutex_ring crate::mutex_ring::MutexRing<Element, Inline<2>>, two threads at Some(6), three threads at Some(3);
        spsc_ring_unpadded crate::spsc_ring_unpadded::SpscRingUnpadded<Element, Inline<2>>, two threads at Some(3);
    }
}

/// Rows without a model: `null` has nothing to interleave.
const WITHOUT_A_MODEL: [&str; 1] = ["null"];

#[test]
fn no_row_is_missing() {
    macro_rules! ids {
        ($($id:ident => $queue:ty, $kind:ident;)*) => { [$(stringify!($id)),*] };
    }
    let here = include_str!("loom.rs");
    for id in queues::for_each_queue!(ids) {
        let modelled = here.contains(&format!("\n        {id} crate::{id}::"));
        assert!(
            modelled != WITHOUT_A_MODEL.contains(&id),
            "{id}: add its line to models! in tests/loom.rs, or its reason"
        );
    }
}
