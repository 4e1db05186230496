//! Random schedules of more threads than the models of `tests/loom.rs` can take, on the shipped
//! files: the queues for many on both sides, with four and five threads.
//!
//! Schedules are drawn by probabilistic concurrency testing (S. Burckhardt et al., "A Randomized
//! Scheduler with Probabilistic Guarantees of Finding Bugs", ASPLOS 2010), always the same ones;
//! `QUEUES_SCHEDULES` says how many a plan, and `scripts/nightly.sh` asks for 100 000 a row. Every
//! history is judged as those of `tests/linearizable.rs` are. Memory is sequentially consistent here:
//! orderings are the business of the models. A planted bug, read-modify-writes in two steps, must be
//! found in every row that counts on them.

use queues::contract;
use queues::hot;
mod storage {
    pub(super) use queues::Storage;
}
#[path = "shuttle/sync.rs"]
mod sync;

#[path = "../src/burst.rs"]
#[expect(unreachable_pub, reason = "the schedules use a part of the file")]
mod burst;
#[path = "../src/drain.rs"]
mod drain;
#[path = "linearizable/history.rs"]
mod history;
#[path = "../src/index_ring.rs"]
mod index_ring;
#[path = "../src/laps.rs"]
#[expect(dead_code, reason = "the schedules use a part of the file")]
mod laps;
#[path = "../src/mpmc_michael_scott.rs"]
#[expect(dead_code, unreachable_pub, reason = "the schedules use a part of the file")]
mod mpmc_michael_scott;
#[path = "../src/mpmc_ring_rte.rs"]
#[expect(dead_code, unreachable_pub, reason = "the schedules use a part of the file")]
mod mpmc_ring_rte;
#[path = "../src/mpmc_ring_vyukov.rs"]
#[expect(dead_code, unreachable_pub, reason = "the schedules use a part of the file")]
mod mpmc_ring_vyukov;
#[path = "../src/mpmc_scq.rs"]
#[expect(dead_code, unreachable_pub, reason = "the schedules use a part of the file")]
mod mpmc_scq;
#[path = "../src/mpmc_ticket.rs"]
#[expect(dead_code, unreachable_pub, reason = "the schedules use a part of the file")]
mod mpmc_ticket;
#[path = "../src/mutex_ring.rs"]
#[expect(dead_code, unreachable_pub, reason = "the schedules use a part of the file")]
mod mutex_ring;
#[path = "../src/relax.rs"]
#[expect(unreachable_pub, reason = "the schedules use a part of the file")]
mod relax;
#[path = "../src/rounded.rs"]
mod rounded;
#[path = "../src/shared.rs"]
#[expect(unreachable_pub, reason = "the schedules use a part of the file")]
mod shared;
#[path = "../src/slot.rs"]
#[expect(dead_code, reason = "the schedules use a part of the file")]
mod slot;
#[path = "../src/turn_slot.rs"]
mod turn_slot;

use contract::{CapacityError, Properties, Queue, SharedQueue, Side, WithCapacity};
use history::Answer::{Empty, Full, Popped, Pushed};
use history::{Answer, Event, is_linearizable};
use queues::Inline;
use shuttle::scheduler::PctScheduler;
use shuttle::{Config, MaxSteps, Runner, thread};
use std::panic::catch_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Producers, consumers, operations of each, capacity.
const PLANS: [[usize; 4]; 4] = [[2, 2, 3, 1], [2, 2, 4, 2], [3, 2, 3, 2], [2, 3, 3, 3]];

/// Schedules of each plan.
fn schedules() -> usize {
    let asked = std::env::var("QUEUES_SCHEDULES").ok();
    asked.map_or(500, |asked| asked.parse().expect("QUEUES_SCHEDULES is a number"))
}

/// One schedule: what the threads were told, in what times.
fn record<Q>([producers, consumers, ops, capacity]: [usize; 4]) -> Vec<Event>
where
    Q: SharedQueue<u64> + WithCapacity + 'static,
{
    let queue = Arc::new(Q::with_capacity(capacity).unwrap());
    let clock = Arc::new(AtomicU64::new(0));
    let threads: Vec<_> = (0..producers + consumers)
        .map(|who| {
            let (queue, clock) = (Arc::clone(&queue), Arc::clone(&clock));
            // ORDERING: Relaxed - all threads of a schedule are one.
            let now = move || clock.fetch_add(1, Ordering::Relaxed);
            thread::spawn(move || {
                let operation = |number: usize| -> Answer {
                    if who >= producers {
                        return queue.try_pop().map_or(Empty, Popped);
                    }
                    let value = (who * 100 + number) as u64;
                    queue.try_push(value).map_or(Full, |()| Pushed(value))
                };
                let timed = |number| {
                    let from = now();
                    let answer = operation(number);
                    Event { from, to: now(), answer }
                };
                (0..ops).map(timed).collect::<Vec<_>>()
            })
        })
        .collect();
    let mut history: Vec<Event> =
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
    let end = clock.load(Ordering::Relaxed);
    // What is left; more than the capacity is never there.
    for number in (0..=capacity as u64).map(|number| end + 2 * number) {
        let answer = queue.try_pop().map_or(Empty, Popped);
        history.push(Event { from: number, to: number + 1, answer });
    }
    history
}

fn judge(properties: Properties, mut history: Vec<Event>, capacity: usize) {
    let count = |of: fn(&Answer) -> bool| history.iter().filter(|it| of(&it.answer)).count();
    let pushed = count(|answer| matches!(answer, Pushed(_)));
    let popped = count(|answer| matches!(answer, Popped(_)));
    assert_eq!(pushed, popped, "left: went in, right: came out: {history:#?}");
    let mut room = capacity;
    if !properties.linearizable {
        // Spurious answers are left out, and with them what they say about room.
        history.retain(|event| matches!(event.answer, Pushed(_) | Popped(_)));
        room = usize::MAX;
    }
    assert!(is_linearizable(&history, room), "capacity {capacity}: {history:#?}");
}

/// Runs `count` schedules of each plan.
fn explore<Q>(name: &str, count: usize)
where
    Q: SharedQueue<u64> + WithCapacity + 'static,
{
    let start = std::time::Instant::now();
    for (seed, plan) in (0..).zip(PLANS) {
        let mut config = Config::new();
        config.max_steps = MaxSteps::FailAfter(50_000);
        let runner = Runner::new(PctScheduler::new_from_seed(seed, 3, count), config);
        let ran = runner.run(move || judge(Q::PROPERTIES, record::<Q>(plan), plan[3]));
        assert_eq!(ran, count, "{name}: schedules");
    }
    let seconds = start.elapsed().as_secs_f64();
    println!("shuttle | {name} | {} schedules | {seconds:.1} s", PLANS.len() * count);
}

/// An SCQ whose threshold is for five threads and whose positions wrap.
struct Scq(mpmc_scq::MpmcScq<u64, Inline<4>>);

impl WithCapacity for Scq {
    fn with_capacity(capacity: usize) -> Result<Self, CapacityError> {
        mpmc_scq::MpmcScq::for_threads(capacity, usize::MAX, 1, 5).map(Self)
    }
}

impl Queue<u64> for Scq {
    type Producer<'q> = <mpmc_scq::MpmcScq<u64, Inline<4>> as Queue<u64>>::Producer<'q>;
    type Consumer<'q> = <mpmc_scq::MpmcScq<u64, Inline<4>> as Queue<u64>>::Consumer<'q>;
    const PROPERTIES: Properties = <mpmc_scq::MpmcScq<u64, Inline<4>> as Queue<u64>>::PROPERTIES;
    const BYTES_PER_SLOT: usize = 0;

    fn split(&mut self) -> (Self::Producer<'_>, Self::Consumer<'_>) {
        self.0.split()
    }

    fn capacity(&self) -> usize {
        self.0.capacity()
    }
}

impl SharedQueue<u64> for Scq {
    fn try_push(&self, value: u64) -> Result<(), contract::Full<u64>> {
        self.0.try_push(value)
    }

    fn try_pop(&self) -> Option<u64> {
        self.0.try_pop()
    }
}

macro_rules! rows {
    ($($id:ident $queue:ty $(, $torn:ident)?;)*) => { $(
        mod $id {
            use super::*;

            #[test]
            fn histories_of_random_schedules_are_those_of_a_queue() {
                explore::<$queue>(stringify!($id), schedules());
            }

            $(
                #[test]
                fn the_planted_bug_is_found() {
                    sync::TORN.set(sync::Torn::$torn);
                    let found = catch_unwind(|| explore::<$queue>("torn", schedules().max(500)));
                    found.expect_err("steps in two halves went unnoticed");
                }
            )?
        }
    )* };
}

mod rows {
    use super::*;

    // `mpmc_michael_scott` with torn steps reaches beyond its slots, which is no verdict but a crash.
    rows! {
        mpmc_ring_vyukov crate::mpmc_ring_vyukov::MpmcRingVyukov<u64, Inline<4>>, Exchanges;
        mpmc_ring_rte crate::mpmc_ring_rte::MpmcRingRte<u64, Inline<4>>, Exchanges;
        mpmc_ticket crate::mpmc_ticket::MpmcTicket<u64, Inline<4>>, Additions;
        mpmc_scq crate::Scq, Exchanges;
        mpmc_michael_scott crate::mpmc_michael_scott::MpmcMichaelScott<u64, Inline<4>>;
        mutex_ring crate::mutex_ring::MutexRing<u64, Inline<4>>;
    }
}

/// Its shim lacks the atomic pointers that blocks are linked by; `loom.rs` explores it.
const WITHOUT_A_LINE: [&str; 1] = ["mpmc_segmented"];

#[test]
fn no_queue_for_many_on_both_sides_is_missing() {
    let here = include_str!("shuttle.rs");
    macro_rules! ids {
        ($($id:ident => $queue:ty, $kind:ident;)*) => { [$({
            type T = u64;
            let Properties { producers, consumers, .. } = <$queue as Queue<T>>::PROPERTIES;
            let many = producers == Side::Multi && consumers == Side::Multi;
            let counts = stringify!($kind) != "baseline" && !WITHOUT_A_LINE.contains(&stringify!($id));
            (stringify!($id), many && counts)
        }),*] };
    }
    for (id, many) in queues::for_each_queue!(ids) {
        let explored = here.contains(&format!("\n        {id} crate::"));
        assert_eq!(many, explored, "{id}: left: for many, right: has its line in rows!");
    }
}
