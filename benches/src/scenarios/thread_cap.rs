//! As many workers as cores, and fewer.

use std::sync::Mutex;

use crossbeam_utils::CachePadded;

use super::effect::{Done, Effect};
use super::job::{Facts, Job};
use super::measured::Measured;
use super::reasons::{HARDLY, reason, waiting};
use super::scenario::{Parameter, Scenario, Step};
use super::text::{many, percent};
use super::turn::Turn;

pub(crate) const SCENARIO: Scenario = Scenario {
    name: "thread-cap",
    title: "fewer workers than cores serve more",
    what: "A request is work that any core can do, and a short part under a lock. Up to the number of \
           workers that keeps the lock busy, more of them serve more; beyond it they wait, sleep, are \
           woken, and take the lock's line farther, so that the part under the lock itself gets \
           longer. The best number lies where the lock is just busy, far below the number of cores.",
    reported: "128 workers, 64, 32 (best), 16 (worse) on 128 cores; CPU use 12 % → 40 %",
    threads: 128,
    ops: 96,
    native_ops: 8_000,
    parameters: &[
        Parameter {
            name: "think-ns",
            default: 4000.0,
            range: (0.0, 1e7),
            means: "nanoseconds of work outside of the lock",
        },
        Parameter {
            name: "service-ns",
            default: 200.0,
            range: (0.0, 1e6),
            means: "nanoseconds of work under the lock",
        },
    ],
    steps: |setting| {
        if setting.threads < 4 {
            return Err("numbers of workers are compared: at least 4 threads are needed".into());
        }
        let counts = (0..7).map(|power| setting.threads >> power).filter(|&threads| threads > 0);
        let mut counts: Vec<usize> = counts.collect();
        counts.reverse();
        let last = counts.len() - 1;
        let step = |(at, &workers): (usize, &usize)| {
            let step = Step::new(format!("workers_{workers}"), many(workers, "worker"), workers);
            if at == last { step.watched(4) } else { step }
        };
        Ok(counts.iter().enumerate().map(step).collect())
    },
    make: |setting, _| {
        Ok(Box::new(Requests {
            total: CachePadded::new(Mutex::new(0)),
            think_ns: setting.count("think-ns") as u64,
            service_ns: setting.count("service-ns") as u64,
        }))
    },
    effects,
};

/// The best number of workers, and what it brings over the largest one.
fn effects(done: &[Done<'_>]) -> Vec<Effect> {
    let served = |one: &Done<'_>| one.measured.and_then(Measured::throughput);
    let all = done.last();
    let best =
        done.iter().max_by(|a, b| served(a).unwrap_or(0.0).total_cmp(&served(b).unwrap_or(0.0)));
    let (Some(all), Some(best)) = (all, best) else { return Vec::new() };
    let name = |one: &Done<'_>| one.step.id.clone();
    let (best, all) = (name(best), name(all));
    let share = |measured: &Measured| {
        Some(measured.cpu_ns / (measured.ops.len() as f64 * measured.time_ns))
    };
    let (best, all): (&str, &str) = (&best, &all);
    let number = super::effect::counted("the best number of workers", done, best, |measured| {
        Some(measured.ops.len() as f64)
    });
    let free = format!("the lock is waited for {} of the time", percent(waiting(done, all)));
    let free = (waiting(done, all) < HARDLY, free);
    if best == all {
        let why = reason(done, &[all], [free]);
        let none = format!("all of them serve most: does not appear: {why}");
        let none = Effect::said("throughput of the best number of workers over all", none);
        return vec![number.reported(32.0), none];
    }
    vec![
        number.reported(32.0),
        super::effect::ratio(
            "throughput of the best number of workers over all",
            done,
            Measured::throughput,
            (best, all),
        )
        .shown_by(1.02, reason(done, &[best, all], [free])),
        super::effect::ratio(
            "share of its CPUs' time that a worker uses",
            done,
            share,
            (best, all),
        )
        .reported(40.0 / 12.0)
        .shown_by(1.05, reason(done, &[best, all], [])),
    ]
}

struct Requests {
    total: CachePadded<Mutex<u64>>,
    think_ns: u64,
    service_ns: u64,
}

impl Job for Requests {
    fn work(&self, turn: &mut Turn<'_>) {
        while turn.goes_on() {
            let began = turn.clock.now();
            turn.clock.work(self.think_ns);
            {
                let mut total = turn.lock(&self.total);
                *total += 1;
                turn.clock.work(self.service_ns);
            }
            turn.took(turn.clock.now() - began);
            turn.did(1);
        }
    }

    fn check(&self, done: &[u64]) -> Result<Facts, String> {
        let total = self.total.lock().map(|total| *total).unwrap_or(0);
        let done = done.iter().sum::<u64>();
        if total < done {
            Err(format!("{done} were served, {total} counted"))
        } else {
            Ok(Facts::new())
        }
    }
}
