//! Workers that take messages from one queue behind one lock.

use crossbeam_utils::CachePadded;
use harness::report::number::short;

use super::arrivals::{Arrivals, generate};
use super::effect::{Done, Effect, counted, ratio};
use super::global_lru::{SHARDS, shard_of};
use super::job::{Facts, Job};
use super::mailbox::Mailbox;
use super::measured::Measured;
use super::reasons::{HARDLY, figure, is_exceeded, parameter, reason, served, waiting};
use super::scenario::{Parameter, Scenario, Setting, Step};
use super::text::{many, percent};
use super::turn::Turn;

pub(crate) const SCENARIO: Scenario = Scenario {
    name: "shared-queue-spike",
    title: "workers on one queue behind a lock, against a queue each",
    what: "Messages arrive at random, most one by one, some in bursts, and any of the workers takes \
           the next from one queue. In a burst all workers are woken at once and meet at the \
           lock, so the queue is emptied at the pace of the lock and not of the workers, and those \
           who come last have waited for all. A queue for each worker, chosen by the message's hash, \
           is emptied by all at the same time.",
    reported: "P99 spikes above 200 ms with 32 workers, capacity 1024 and 50 k messages/s",
    threads: 33,
    ops: 200,
    native_ops: 1_600,
    parameters: &[
        RATE,
        Parameter {
            name: "capacity",
            default: 1024.0,
            range: (1.0, 1e6),
            means: "slots of all queues together, at least one of each",
        },
        Parameter {
            name: "burst",
            default: 256.0,
            range: (1.0, 1e5),
            means: "messages that come at once, after ten times as many one by one",
        },
        Parameter {
            name: "service-ns",
            default: 2000.0,
            range: (0.0, 1e7),
            means: "nanoseconds of work for a message",
        },
        Parameter { default: 32.0, ..SHARDS },
    ],
    steps: |setting| {
        let threads = setting.threads;
        if threads < 2 {
            return Err("a producer and a worker need two threads".into());
        }
        let (asked, workers) = (setting.count("shards"), threads - 1);
        let shards = asked.min(workers);
        let queues = match asked > workers {
            true => format!("{} of {asked}, as each has a worker", many(shards, "queue")),
            false => many(shards, "queue"),
        };
        Ok(vec![
            Step::new("one_queue", "one queue", threads).whole().watched(2),
            Step::new("sharded", queues, threads).variant(shards).whole(),
        ])
    },
    make: |setting, step| Ok(Box::new(Workers::new(setting, step.variant.max(1)))),
    effects,
};

const RATE: Parameter =
    Parameter { name: "rate", default: 50_000.0, range: (1.0, 1e8), means: "messages in a second" };

/// How far the slowest requests are from the usual ones.
fn spike(of: &Measured) -> Option<f64> {
    Some(of.p99()? / of.p50()?)
}

fn effects(done: &[Done<'_>]) -> Vec<Effect> {
    let burst = parameter(done, "burst");
    let messages = figure(done, "one_queue", |of| Some(of.ops_in_all as f64));
    let at_once = figure(done, "one_queue", |of| of.fact(AT_ONCE));
    let alone = if burst < 2.0 {
        "one message is no burst".to_owned()
    } else {
        format!(
            "no burst came: there were {messages} messages, and the first burst comes after {} of \
             them; ask for more --ops or a smaller --burst",
            10.0 * burst
        )
    };
    let few = format!(
        "{at_once} of {messages} messages came in bursts, fewer than the hundredth that P99 looks at"
    );
    let exceeded = format!(
        "one queue cannot carry this load, {}: all messages wait, not only those of a burst",
        served(done, "one_queue")
    );
    let free =
        format!("the lock is waited for {} of the time", percent(waiting(done, "one_queue")));
    let bursts = || {
        [
            (is_exceeded(done, "one_queue"), exceeded.clone()),
            (at_once < 1.0, alone.clone()),
            (at_once < 0.01 * messages, few.clone()),
        ]
    };
    let sharded = figure(done, "sharded", spike);
    let as_well = format!(
        "with a queue each P99 is {} times P50 as well: bursts wait for the one who sends and for \
         the workers, not for the lock",
        short(sharded)
    );
    let both = ["one_queue", "sharded"];
    let compared = || {
        let more = [(sharded >= 10.0, as_well.clone())];
        reason(done, &both, bursts().into_iter().chain(more))
    };
    let free = (waiting(done, "one_queue") < HARDLY, free);
    vec![
        counted("P99 over P50 with one queue", done, "one_queue", spike)
            .shown_by(10.0, reason(done, &both[..1], bursts().into_iter().chain([free]))),
        counted("P99 over P50 sharded", done, "sharded", spike),
        ratio("P99 over P50, one queue over sharded", done, spike, ("one_queue", "sharded"))
            .shown_by(1.5, compared()),
        ratio("P99, one queue over sharded", done, Measured::p99, ("one_queue", "sharded"))
            .shown_by(1.5, compared()),
    ]
}

/// The fact with the messages that came at once.
const AT_ONCE: &str = "in_bursts";

struct Workers {
    queues: Vec<CachePadded<Mailbox<u64>>>,
    rate: f64,
    burst: u64,
    service_ns: u64,
    workers: u64,
    seed: u64,
}

impl Workers {
    fn new(setting: &Setting, queues: usize) -> Self {
        let each = setting.count("capacity").div_ceil(queues);
        Self {
            queues: (0..queues).map(|_| CachePadded::new(Mailbox::new(each))).collect(),
            rate: setting.value("rate"),
            burst: setting.count("burst") as u64,
            service_ns: setting.count("service-ns") as u64,
            workers: setting.threads as u64 - 1,
            seed: setting.seed,
        }
    }
}

impl Job for Workers {
    fn begin(&self, _round: &super::job::Round) {
        self.queues.iter().for_each(|queue| queue.open());
    }

    fn work(&self, turn: &mut Turn<'_>) {
        if turn.thread == 0 {
            let messages = turn.round.ops * self.workers;
            let mut arrivals = Arrivals::new(self.rate, &turn.round, self.seed).bursts(self.burst);
            generate(turn, &mut arrivals, messages, |turn, then| {
                let key = turn.random.next_u64();
                self.queues[shard_of(key, self.queues.len())].push(turn, then);
            });
            self.queues.iter().for_each(|queue| queue.close());
            return;
        }
        let queue = &self.queues[(turn.thread - 1) % self.queues.len()];
        let mut message = Vec::with_capacity(1);
        while let Some(then) = queue.pop_one(turn, &mut message) {
            turn.clock.work(self.service_ns);
            turn.served(then);
            turn.did(1);
        }
    }

    fn check(&self, done: &[u64]) -> Result<Facts, String> {
        let full: u64 = self.queues.iter().map(|queue| queue.full()).sum();
        let messages = done.iter().sum::<u64>();
        if messages == 0 {
            return Err("no message was served".into());
        }
        Ok([
            ("no_room".to_owned(), full as f64),
            ("offered_per_s".to_owned(), self.rate),
            (AT_ONCE.to_owned(), Arrivals::in_bursts(self.burst, messages) as f64),
        ]
        .into())
    }
}
