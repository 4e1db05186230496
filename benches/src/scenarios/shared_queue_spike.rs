//! Workers that take messages from one queue behind one lock.

use crossbeam_utils::CachePadded;

use super::arrivals::{Arrivals, generate};
use super::effect::{Done, Effect, ratio};
use super::global_lru::{SHARDS, shard_of};
use super::job::{Facts, Job};
use super::mailbox::Mailbox;
use super::measured::Measured;
use super::scenario::{Parameter, Scenario, Setting, Step};
use super::turn::Turn;

pub(crate) const SCENARIO: Scenario = Scenario {
    name: "shared-queue-spike",
    title: "32 workers on one queue behind a lock, against a queue each",
    what: "Messages arrive at 50,000 a second, most one by one, some in bursts, and any of 32 workers \
           takes the next from one queue. In a burst all workers are woken at once and meet at the \
           lock, so the queue is emptied at the pace of the lock and not of the workers, and those \
           who come last have waited for all. A queue for each worker, chosen by the message's hash, \
           is emptied by all at the same time.",
    reported: "P99 spikes above 200 ms with 32 workers, capacity 1024 and 50 k messages/s",
    threads: 33,
    ops: 200,
    parameters: &[
        RATE,
        Parameter {
            name: "capacity",
            default: 1024.0,
            range: (1.0, 1e6),
            means: "slots of all queues together",
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
        let shards = setting.count("shards").min(threads - 1);
        Ok(vec![
            Step::new("one_queue", "one queue", threads).whole().watched(2),
            Step::new("sharded", format!("{shards} queues"), threads).variant(shards).whole(),
        ])
    },
    make: |setting, step| Ok(Box::new(Workers::new(setting, step.variant.max(1)))),
    effects,
};

const RATE: Parameter =
    Parameter { name: "rate", default: 50_000.0, range: (1.0, 1e8), means: "messages in a second" };

fn effects(done: &[Done<'_>]) -> Vec<Effect> {
    let spike = |what, of| {
        let figure = |measured: &Measured| Some(measured.p99()? / measured.p50()?);
        super::effect::counted(what, done, of, figure)
    };
    vec![
        spike("P99 over P50 with one queue", "one_queue")
            .shown_by(10.0, "the lock is not busy when a burst comes, or there are no bursts"),
        ratio("P99, one queue over sharded", done, Measured::p99, ("one_queue", "sharded"))
            .shown_by(
                1.5,
                "the workers, or the one who sends, are the bottleneck and not the lock",
            ),
    ]
}

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
            turn.took(turn.clock.now().saturating_sub(then));
            turn.did(1);
        }
    }

    fn check(&self, done: &[u64]) -> Result<Facts, String> {
        let full: u64 = self.queues.iter().map(|queue| queue.full()).sum();
        if done.iter().sum::<u64>() == 0 {
            return Err("no message was served".into());
        }
        Ok([("no_room".to_owned(), full as f64), ("offered_per_s".to_owned(), self.rate)].into())
    }
}
