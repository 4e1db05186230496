//! A pool of very many workers for each core, and one that is as large as its load needs.

use super::arrivals::{Arrivals, generate};
use super::effect::{Done, Effect, ratio};
use super::job::{Facts, Job, Round};
use super::mailbox::Mailbox;
use super::measured::Measured;
use super::reasons::{is_carried, is_exceeded, reason, served, threads};
use super::scenario::{Parameter, Scenario, Setting, Step};
use super::text::many;
use super::turn::Turn;

pub(crate) const SCENARIO: Scenario = Scenario {
    name: "pool-oversize",
    title: "a pool of many workers a core against one sized by its load",
    what: "Tasks compute for a while and wait for somebody else for longer; a pool needs as many \
           workers as tasks are under way on average (rate times mean time), and some more. A pool of as \
           many as cores has all its workers waiting, and tasks queue up. Very many find their \
           core taken by each other when a burst comes, share it in time slices, and each new worker \
           that is woken brings a cold stack.",
    reported: "dispatch P99 0.15 → 8.7 ms with 100 workers a CPU; sized as 5000/s × 0.2 s = 1000",
    threads: 8,
    ops: 100,
    native_ops: 800,
    parameters: &[
        Parameter {
            name: "rate",
            default: 20_000.0,
            range: (1.0, 1e7),
            means: "tasks in a second",
        },
        Parameter {
            name: "service-ns",
            default: 100_000.0,
            range: (0.0, 1e8),
            means: "nanoseconds that a task computes",
        },
        Parameter {
            name: "wait-us",
            default: 400.0,
            range: (0.0, 1e6),
            means: "microseconds that a task then waits for somebody else",
        },
        Parameter {
            name: "pool",
            default: 100.0,
            range: (1.0, 120.0),
            means: "workers for each core in the pool that is too large",
        },
    ],
    steps: |setting| {
        let cores = setting.threads;
        let sized = sized(setting);
        let most = cores * setting.count("pool");
        if most.max(sized) > MOST_WORKERS {
            return Err(format!(
                "{} workers are more than {MOST_WORKERS}; choose fewer with --pool, --threads, \
                 --rate or --wait-us",
                most.max(sized)
            ));
        }
        let step = |id: &str, title: String, workers: usize| {
            let tasks = setting.ops * cores as u64;
            let each = tasks.div_ceil(workers as u64).max(1);
            // One thread more hands the tasks out, on a core of its own.
            Step::new(id, title, workers + 1).on((cores + 1).min(setting.cores())).ops(each).whole()
        };
        Ok(vec![
            step("per_core", format!("{}, one a core", many(cores, "worker")), cores)
                .no_line("no line or lock stands out: tasks wait until a worker is back"),
            step("oversized", many(most, "worker"), most).no_line(
                "no line or lock stands out: what workers share are the cores' time and caches",
            ),
            step("by_load", format!("{}: rate × mean time × 1.5", many(sized, "worker")), sized),
        ])
    },
    make: |setting, step| Ok(Box::new(Pool::new(setting, step.threads - 1))),
    effects,
};

fn effects(done: &[Done<'_>]) -> Vec<Effect> {
    let workers = |id: &str| threads(done, id).saturating_sub(1);
    let [per_core, most, sized] = ["per_core", "oversized", "by_load"].map(workers);
    let neither = (
        is_exceeded(done, "by_load"),
        format!("the cores cannot carry this load with any pool: {}", served(done, "by_load")),
    );
    let asleep = "who sleeps in a pool costs nothing here but its cold stack: the kernel that is \
                  simulated wakes one worker for one task, and a preempted one is back after a slice";
    let void = neither.0.then(|| format!("as {}", neither.1));
    let both = is_carried(done, "oversized") && is_carried(done, "by_load");
    let carries = format!("a worker a core carries this load: {}", served(done, "per_core"));
    let over = |what: &str, pair: (&str, &str)| {
        ratio(what, done, Measured::p99, pair).void_if(void.clone())
    };
    let what = "P99 of dispatch, oversized over sized by load";
    let large = match most > sized {
        true => over(what, ("oversized", "by_load"))
            .reported(8.7 / 0.15)
            .shown_by(2.0, reason(done, &["oversized", "by_load"], [(both, asleep.to_owned())])),
        false => Effect::said(
            what,
            format!(
                "no verdict, as {} in the pool that is to be too large are not more than the \
                 {sized} that the load needs; ask for more with --pool",
                many(most, "worker")
            ),
        ),
    };
    let what = "P99 of dispatch, one a core over sized by load";
    let small = match per_core == sized {
        false => over(what, ("per_core", "by_load")).shown_by(
            2.0,
            reason(done, &["per_core", "by_load"], [(is_carried(done, "per_core"), carries)]),
        ),
        true => Effect::said(what, format!("no verdict, as both are {}", many(sized, "worker"))),
    };
    vec![large, small]
}

/// Threads that a simulated machine may have, less the one that hands out.
const MOST_WORKERS: usize = 1023;

/// Workers that are busy on average, and half as many more.
fn sized(setting: &Setting) -> usize {
    let mean_s = setting.value("service-ns") / 1e9 + setting.value("wait-us") / 1e6;
    ((setting.value("rate") * mean_s * 1.5).ceil() as usize).max(1)
}

struct Pool {
    queue: Mailbox<u64>,
    rate: f64,
    service_ns: u64,
    wait_ns: u64,
    workers: u64,
    seed: u64,
}

impl Pool {
    fn new(setting: &Setting, workers: usize) -> Self {
        Self {
            queue: Mailbox::new(1 << 16),
            rate: setting.value("rate"),
            service_ns: setting.count("service-ns") as u64,
            wait_ns: setting.count("wait-us") as u64 * 1000,
            workers: workers as u64,
            seed: setting.seed,
        }
    }
}

impl Job for Pool {
    fn begin(&self, _round: &Round) {
        self.queue.open();
    }

    fn work(&self, turn: &mut Turn<'_>) {
        if turn.thread == 0 {
            let tasks = turn.round.ops * self.workers;
            let mut arrivals = Arrivals::new(self.rate, &turn.round, self.seed);
            generate(turn, &mut arrivals, tasks, |turn, then| self.queue.push(turn, then));
            self.queue.close();
            return;
        }
        super::clock::sleep_exactly();
        let mut task = Vec::with_capacity(1);
        while let Some(then) = self.queue.pop_one(turn, &mut task) {
            turn.served(then);
            turn.clock.work(self.service_ns);
            turn.clock.sleep_until(turn.clock.now() + self.wait_ns);
            turn.did(1);
        }
    }

    fn check(&self, done: &[u64]) -> Result<Facts, String> {
        match done.iter().sum::<u64>() {
            0 => Err("no task was done".into()),
            _ => Ok([("offered_per_s".to_owned(), self.rate)].into()),
        }
    }
}
