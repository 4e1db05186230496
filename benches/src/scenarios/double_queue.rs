//! A pool of connections behind a pool of workers.

use std::sync::{Condvar, Mutex, PoisonError};

use super::arrivals::{Arrivals, generate};
use super::effect::{Done, Effect, ratio};
use super::job::{Facts, Job, Round};
use super::mailbox::Mailbox;
use super::measured::Measured;
use super::scenario::{Parameter, Scenario, Setting, Step};
use super::turn::Turn;

pub(crate) const SCENARIO: Scenario = Scenario {
    name: "double-queue",
    title: "a connection pool behind a worker pool: 8 cores and 128, 4 and 64, 4 and 32",
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
                format!("{pool} workers on {cores} cores, {connections} connections"),
                pool + 1,
            )
            .on((cores + 1).min(setting.cores()))
            .variant(connections)
            .whole()
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
        ratio(what, done, Measured::p95, (&one.step.id, &first))
            .reported(reported)
            .shown_by(1.05, "half as much is still enough for this load; offer more with --rate")
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
        {
            let mut free = turn.lock(&self.free);
            while *free == 0 {
                free = self.came_back.wait(free).unwrap_or_else(PoisonError::into_inner);
            }
            *free -= 1;
        }
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
            turn.took(turn.clock.now().saturating_sub(then));
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
