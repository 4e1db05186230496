//! A pool of connections behind a pool of workers.

use std::sync::{Condvar, Mutex};

use super::arrivals::{Arrivals, generate};
use super::effect::{Done, Effect, find, ratio};
use super::job::{Facts, Job, Round};
use super::mailbox::Mailbox;
use super::measured::Measured;
use super::reasons::{HARDLY, reason};
use super::scenario::{Parameter, Scenario, Setting, Step};
use super::text::{many, percent};
use super::turn::Turn;

pub(crate) const SCENARIO: Scenario = Scenario {
    name: "double-queue",
    title: "a connection pool behind a worker pool: cores and connections halved, connections again",
    what: "A request waits for a worker, and then the worker waits for a connection, computes and \
           holds the connection while somebody else answers. Each pool is a queue of its own, and \
           while a request waits in the second one it keeps a place of the first one. Halving the \
           cores and then the connections makes the second queue the bottleneck, and waiting \
           multiplies although each pool alone looks large enough.",
    reported: "P95 58 → 92 → 186 ms (1, 1.59, 3.21 times)",
    threads: 8,
    ops: 16,
    native_ops: 64,
    parameters: &[
        Parameter {
            name: "rate",
            default: 16_000.0,
            range: (1.0, 1e7),
            means: "requests in a second",
        },
        Parameter {
            name: "service-ns",
            default: 200_000.0,
            range: (0.0, 1e8),
            means: "nanoseconds that a request computes",
        },
        Parameter {
            name: "wait-us",
            default: 1550.0,
            range: (0.0, 1e6),
            means: "microseconds that a connection takes to answer",
        },
        Parameter {
            name: "pool",
            default: 128.0,
            range: (4.0, 1000.0),
            means: "workers, and connections in the first step; half and a quarter then",
        },
    ],
    steps: |setting| {
        let (cores, pool) = (setting.threads, setting.count("pool"));
        if cores < 2 {
            return Err("the second step halves the cores: at least 2 threads".into());
        }
        let step = |cores: usize, connections: usize| {
            Step::new(
                format!("cores_{cores}_connections_{connections}"),
                format!(
                    "{} on {}, {}",
                    many(pool, "worker"),
                    many(cores, "core"),
                    many(connections, "connection")
                ),
                pool + 1,
            )
            .on((cores + 1).min(setting.cores()))
            .variant(connections)
            .whole()
            .no_line("no line or lock stands out: hardly anybody waits for a connection")
        };
        Ok(vec![step(cores, pool), step(cores / 2, pool / 2), step(cores / 2, pool / 4)])
    },
    make: |setting, step| Ok(Box::new(Pools::new(setting, step))),
    effects,
};

fn effects(done: &[Done<'_>]) -> Vec<Effect> {
    let Some(first) = done.first().map(|one| one.step.id.clone()) else { return Vec::new() };
    let over = |one: &Done<'_>, reported: f64| {
        let what = format!("P95, {} over {first}", one.step.id);
        let steps = [first.as_str(), one.step.id.as_str()];
        let exceeded = steps.iter().filter_map(|id| find(done, id)).find(|one| one.is_exceeded());
        let exceeded = exceeded.map(|one| {
            let (id, served) = (&one.step.id, one.served());
            format!("as {id} cannot carry this load, {served}, and waits longer in longer runs")
        });
        let enough = format!(
            "workers wait {} of the time for connections and locks; offer more with --rate",
            percent(one.waiting())
        );
        ratio(what, done, Measured::p95, (&one.step.id, &first))
            .reported(reported)
            .shown_by(1.05, reason(done, &steps, [(one.waiting() < HARDLY, enough)]))
            .void_if(exceeded)
    };
    done.iter().skip(1).zip([92.0 / 58.0, 186.0 / 58.0]).map(|(one, r)| over(one, r)).collect()
}

struct Pools {
    requests: Mailbox<u64>,
    free: Mutex<usize>,
    came_back: Condvar,
    rate: f64,
    service_ns: u64,
    wait_ns: u64,
    workers: u64,
    seed: u64,
}

impl Pools {
    fn new(setting: &Setting, step: &Step) -> Self {
        Self {
            requests: Mailbox::new(1 << 16),
            free: Mutex::new(step.variant),
            came_back: Condvar::new(),
            rate: setting.value("rate"),
            service_ns: setting.count("service-ns") as u64,
            wait_ns: setting.count("wait-us") as u64 * 1000,
            workers: step.threads as u64 - 1,
            seed: setting.seed,
        }
    }

    fn serve(&self, turn: &mut Turn<'_>) {
        let free = turn.lock(&self.free);
        let mut free = turn.wait_while(&self.came_back, free, |free| *free == 0);
        *free -= 1;
        drop(free);
        turn.clock.work(self.service_ns);
        turn.clock.sleep_until(turn.clock.now() + self.wait_ns);
        *turn.lock(&self.free) += 1;
        self.came_back.notify_one();
    }
}

impl Job for Pools {
    fn begin(&self, _round: &Round) {
        self.requests.open();
    }

    fn work(&self, turn: &mut Turn<'_>) {
        if turn.thread == 0 {
            let requests = turn.round.ops * self.workers;
            let mut arrivals = Arrivals::new(self.rate, &turn.round, self.seed);
            generate(turn, &mut arrivals, requests, |turn, then| self.requests.push(turn, then));
            self.requests.close();
            return;
        }
        super::clock::sleep_exactly();
        let mut request = Vec::with_capacity(1);
        while let Some(then) = self.requests.pop_one(turn, &mut request) {
            self.serve(turn);
            turn.served(then);
            turn.did(1);
        }
    }

    fn check(&self, done: &[u64]) -> Result<Facts, String> {
        match done.iter().sum::<u64>() {
            0 => Err("no request was served".into()),
            _ => Ok([("offered_per_s".to_owned(), self.rate)].into()),
        }
    }
}
