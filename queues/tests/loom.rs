//! Every interleaving that loom can tell apart, on the shipped files.
//!
//! The variants import `super::sync`; here that module is made of loom's types, so the same files
//! are compiled again without a cfg or a feature. Slots are loom's cells: a push and a pop that
//! are not ordered are a race that it reports. The weakening of each ordering that these models
//! catch is listed by `scripts/mutants.sh`; what they cannot see stands in `survivors.toml`.
//!
//! Not compiled again, since there is nothing in them that threads could interleave: `contract.rs`
//! and `storage.rs` (traits), `inline.rs` and `boxed.rs` (slots, and `const` constructors that
//! loom's types do not have), `spsc_slices.rs` (slices of cells, which loom's are larger than),
//! `null.rs`.

#[cfg(feature = "alloc")]
extern crate alloc;

#[cfg(feature = "alloc")]
mod boxed {
    pub(super) use queues::{Boxed, BoxedSlots};
}
use queues::contract;
use queues::hot;
mod storage {
    pub(super) use queues::Storage;
}
#[path = "loom/deques.rs"]
mod deques;
#[path = "loom/sync.rs"]
mod sync;
#[cfg(feature = "alloc")]
#[path = "loom/unbounded.rs"]
mod unbounded;

#[cfg(feature = "alloc")]
#[path = "../src/block.rs"]
mod block;
#[path = "../src/blocking.rs"]
#[expect(dead_code, unreachable_pub, reason = "the models use a part of the file")]
mod blocking;
#[path = "../src/burst.rs"]
#[expect(unreachable_pub, reason = "the models use a part of the file")]
mod burst;
#[path = "../src/deque_chase_lev.rs"]
#[expect(dead_code, unreachable_pub, reason = "the models use a part of the file")]
mod deque_chase_lev;
#[cfg(feature = "alloc")]
#[path = "../src/deque_chase_lev_growing.rs"]
#[expect(dead_code, unreachable_pub, reason = "the models use a part of the file")]
mod deque_chase_lev_growing;
#[path = "../src/deque_ends.rs"]
#[expect(unreachable_pub, reason = "the models use a part of the file")]
mod deque_ends;
#[path = "../src/deque_packed_fifo.rs"]
#[expect(dead_code, unreachable_pub, reason = "the models use a part of the file")]
mod deque_packed_fifo;
#[path = "../src/drain.rs"]
mod drain;
#[path = "../src/flag_slot.rs"]
mod flag_slot;
#[path = "../src/index_ring.rs"]
mod index_ring;
#[path = "../src/laps.rs"]
mod laps;
#[path = "../src/mpmc_michael_scott.rs"]
#[expect(dead_code, unreachable_pub, reason = "the models use a part of the file")]
mod mpmc_michael_scott;
#[path = "../src/mpmc_ring_rte.rs"]
#[expect(dead_code, unreachable_pub, reason = "the models use a part of the file")]
mod mpmc_ring_rte;
#[path = "../src/mpmc_ring_vyukov.rs"]
#[expect(dead_code, unreachable_pub, reason = "the models use a part of the file")]
mod mpmc_ring_vyukov;
#[path = "../src/mpmc_scq.rs"]
#[expect(dead_code, unreachable_pub, reason = "the models use a part of the file")]
mod mpmc_scq;
#[cfg(feature = "alloc")]
#[path = "../src/mpmc_segmented.rs"]
#[expect(dead_code, unreachable_pub, reason = "the models use a part of the file")]
mod mpmc_segmented;
#[path = "../src/mpmc_ticket.rs"]
#[expect(dead_code, unreachable_pub, reason = "the models use a part of the file")]
mod mpmc_ticket;
#[cfg(feature = "alloc")]
#[path = "../src/mpsc_unbounded.rs"]
#[expect(dead_code, unreachable_pub, reason = "the models use a part of the file")]
mod mpsc_unbounded;
#[path = "../src/mutex_ring.rs"]
#[expect(dead_code, unreachable_pub, reason = "the models use a part of the file")]
mod mutex_ring;
#[cfg(feature = "alloc")]
#[path = "../src/on_heap.rs"]
mod on_heap;
#[path = "../src/relax.rs"]
#[expect(unreachable_pub, reason = "the models use a part of the file")]
mod relax;
#[path = "../src/rounded.rs"]
mod rounded;
#[path = "../src/shared.rs"]
#[expect(unreachable_pub, reason = "the models use a part of the file")]
mod shared;
#[path = "../src/slot.rs"]
mod slot;
#[path = "../src/spsc_batch.rs"]
#[expect(unreachable_pub, reason = "the models use a part of the file")]
mod spsc_batch;
#[path = "../src/spsc_fastforward.rs"]
#[expect(dead_code, unreachable_pub, reason = "the models use a part of the file")]
mod spsc_fastforward;
#[path = "../src/spsc_lamport.rs"]
#[expect(dead_code, unreachable_pub, reason = "the models use a part of the file")]
mod spsc_lamport;
#[path = "../src/spsc_reserve.rs"]
#[expect(dead_code, unreachable_pub, reason = "the models use a part of the file")]
mod spsc_reserve;
#[path = "../src/spsc_ring_cached.rs"]
#[expect(dead_code, unreachable_pub, reason = "the models use a part of the file")]
mod spsc_ring_cached;
#[path = "../src/spsc_ring_unpadded.rs"]
#[expect(dead_code, unreachable_pub, reason = "the models use a part of the file")]
mod spsc_ring_unpadded;
#[cfg(feature = "alloc")]
#[path = "../src/spsc_unbounded.rs"]
#[expect(dead_code, unreachable_pub, reason = "the models use a part of the file")]
mod spsc_unbounded;
#[path = "../src/turn_slot.rs"]
mod turn_slot;
#[path = "../src/wait.rs"]
#[expect(unreachable_pub, reason = "the models use a part of the file")]
mod wait;

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
        let rest = pop_all(ring.split().1, plan.producers.iter().sum::<usize>() + 1);
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
    ($($id:ident $queue:ty, two threads at $two:expr
        $(, three threads at $three:expr)? $(, thieves at $thieves:expr)?
        $(, producers at $producers:expr)?;)*) => { $(
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
            $(
                #[test]
                fn two_producers_of_a_single_consumer() {
                    let plan = Plan { capacity: 2, producers: &[1, 2], consumers: &[2] };
                    model::<$queue>(concat!(stringify!($id), " 2P1C"), plan, $producers);
                }
            )?
            $(
                #[test]
                fn two_thieves() {
                    let plan = Plan { capacity: 2, producers: &[3], consumers: &[2, 1] };
                    model::<$queue>(concat!(stringify!($id), " 1P2C capacity 2"), plan, $thieves);
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
        spsc_lamport crate::spsc_lamport::SpscLamport<Element, Inline<2>>, two threads at Some(4);
        spsc_fastforward crate::spsc_fastforward::SpscFastForward<Element, Inline<2>>, two threads at None;
        deque_chase_lev crate::deque_chase_lev::DequeChaseLev<Element, Inline<2>>, two threads at None, thieves at Some(3);
        deque_packed_fifo crate::deque_packed_fifo::DequePackedFifo<Element, Inline<2>>, two threads at Some(3), thieves at Some(1);
        mpmc_ticket crate::mpmc_ticket::MpmcTicket<Element, Inline<2>>, two threads at Some(4), three threads at Some(2);
        mpmc_michael_scott crate::mpmc_michael_scott::MpmcMichaelScott<Element, Inline<2>>, two threads at Some(3), three threads at Some(1);
        mpmc_ring_rte crate::mpmc_ring_rte::MpmcRingRte<Element, Inline<2>>, two threads at Some(4), three threads at Some(2);
        mpmc_scq crate::mpmc_scq::MpmcScq<Element, Inline<2>>, two threads at Some(2), three threads at Some(1);
        mpmc_ring_vyukov crate::mpmc_ring_vyukov::MpmcRingVyukov<Element, Inline<2>>, two threads at None, three threads at Some(3);
        mutex_ring crate::mutex_ring::MutexRing<Element, Inline<2>>, two threads at Some(6), three threads at Some(3);
        spsc_ring_unpadded crate::spsc_ring_unpadded::SpscRingUnpadded<Element, Inline<2>>, two threads at Some(3);
    }
}

#[cfg(feature = "alloc")]
mod models_of_what_allocates {
    use super::*;

    models! {
        deque_chase_lev_growing crate::deque_chase_lev_growing::DequeChaseLevGrowing<Element>, two threads at Some(3), thieves at Some(1);
        mpmc_segmented crate::mpmc_segmented::MpmcSegmented<Element, 3>, two threads at Some(2), three threads at Some(1);
        spsc_unbounded crate::spsc_unbounded::SpscUnbounded<Element, 1>, two threads at Some(4);
        mpsc_unbounded crate::mpsc_unbounded::MpscUnbounded<Element>, two threads at Some(4), producers at Some(3);
    }
}

/// What the plans above do not do. Modules are named after files: `scripts/mutants.sh` runs those
/// of a file that it changes.
mod more {
    use super::*;

    mod spsc_batch {
        use super::*;

        /// Batches against single operations, across the wrap of a ring of two slots.
        #[test]
        fn batches_on_the_cached_ring() {
            type Ring = crate::spsc_ring_cached::SpscRingCached<Element, queues::Inline<2>>;
            explore("spsc_ring_cached batches", 2, Some(4), || {
                let ring: *mut Ring = Box::into_raw(Box::new(Ring::with_capacity(2).unwrap()));
                let drops = Arc::new(AtomicUsize::new(0));
                // SAFETY: just made by `Box`; freed below, when the endpoints are gone.
                let (mut producer, mut consumer) = unsafe { &mut *ring }.split();
                let ledger = Arc::clone(&drops);
                let pushing = loom::thread::spawn(move || {
                    let drops = &ledger;
                    let mut next = 0;
                    for most in [2, 1, 2] {
                        let batch = (next..next + most).map(|number| Element {
                            producer: 0,
                            number,
                            drops: Arc::clone(drops),
                        });
                        next += producer.push_from(batch);
                    }
                    next
                });
                let mut seen = Vec::new();
                for most in [1, 2] {
                    consumer.pop_each(most, |element| seen.push(element.number));
                }
                let pushed = pushing.join().unwrap();
                consumer.pop_each(3, |element| seen.push(element.number));
                // SAFETY: both endpoints are gone.
                drop(unsafe { Box::from_raw(ring) });
                assert_eq!(
                    seen,
                    (0..pushed).collect::<Vec<_>>(),
                    "in order, none lost, none twice"
                );
                assert_eq!(drops.load(Ordering::Relaxed), pushed, "each element is dropped once");
            });
        }
    }

    mod blocking {
        use super::*;
        use crate::blocking::Blocking;
        use crate::wait::SpinWait;
        use queues::Inline;

        /// Each sender sends one element and leaves; the receiver receives until the queue is closed.
        fn all_is_received<Q>(name: &str, senders: usize, bound: Option<usize>)
        where
            Q: Queue<Element> + WithCapacity + 'static,
            Q::Producer<'static>: 'static,
        {
            explore(name, senders + 1, bound, move || {
                let queue = Blocking::<Q, SpinWait>::new(Q::with_capacity(2).unwrap());
                let queue = Box::into_raw(Box::new(queue));
                let drops = Arc::new(AtomicUsize::new(0));
                // SAFETY: just made by `Box`; freed below, when the endpoints are gone.
                let (sender, mut receiver) = unsafe { &mut *queue }.split();
                let mut sending: Vec<_> =
                    (1..senders).map(|_| sender.try_clone().unwrap()).collect();
                sending.push(sender);
                let sending = sending.into_iter().enumerate().map(|(who, mut sender)| {
                    let element = Element { producer: who, number: 0, drops: Arc::clone(&drops) };
                    loom::thread::spawn(move || sender.send(element).is_ok())
                });
                let sending: Vec<_> = sending.collect();
                let received = std::iter::from_fn(|| receiver.receive()).count();
                assert_eq!(received, senders, "closed before all came out");
                assert!(sending.into_iter().all(|thread| thread.join().unwrap()));
                drop(receiver);
                // SAFETY: all endpoints are gone.
                drop(unsafe { Box::from_raw(queue) });
                assert_eq!(drops.load(Ordering::Relaxed), senders, "each element is dropped once");
            });
        }

        #[test]
        fn of_one_sender() {
            type Ring = crate::spsc_ring_cached::SpscRingCached<Element, Inline<2>>;
            all_is_received::<Ring>("blocking 1 sender 1 receiver", 1, Some(3));
        }

        #[test]
        fn of_two_senders() {
            type Ring = crate::mpmc_ring_vyukov::MpmcRingVyukov<Element, Inline<2>>;
            all_is_received::<Ring>("blocking 2 senders 1 receiver", 2, Some(2));
        }
    }
}

#[path = "loom/rings.rs"]
mod rings;

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
