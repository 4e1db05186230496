//! Tasks of very different lengths, and who does them.

use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_utils::CachePadded;
use harness::report::number::short;
use harness::stats::SplitMix;
use queues::{Boxed, MpmcRingVyukov, WithCapacity};

use super::effect::{Done, Effect, Figure, ratio};
use super::global_lru::ZIPF;
use super::job::{Facts, Job, Round};
use super::measured::Measured;
use super::reasons::{figure, reason};
use super::scenario::{Parameter, Scenario, Setting, Step};
use super::turn::Turn;
use super::zipf::Zipf;

pub(crate) const SCENARIO: Scenario = Scenario {
    name: "steal-zipf",
    title: "tasks with lengths by Zipf's law: a static split, stealing, one shared pool",
    what: "Tasks are dealt out to workers in advance, the same number to each. When all are equally long \
           the workers end together; by Zipf's law a few tasks are hundreds of times longer, whoever \
           has them works on, and the others are idle. Who has nothing to do may steal from the \
           others, or all take from one pool, which evens the work out at the price of shared lines.",
    reported: "uniform → Zipf(1.2) under stealing: mean 0.8 → 12.6 ms; idle σ 0.03 → 0.41; 42.5 k → \
               18.9 k/s",
    threads: 16,
    ops: 64,
    native_ops: 512,
    parameters: &[
        Parameter { default: 1.2, ..ZIPF },
        Parameter {
            name: "service-ns",
            default: 200.0,
            range: (1.0, 1e6),
            means: "nanoseconds of the shortest task; the longest is a thousand times as long",
        },
    ],
    steps: |setting| {
        let threads = setting.threads;
        if threads < 2 {
            return Err("one worker has nobody to steal from; ask for two or more".into());
        }
        let step = |id: &str, title: &str, variant| Step::new(id, title, threads).variant(variant);
        let steps = [
            step("uniform_static", "equal tasks, dealt out", UNIFORM | STATIC),
            step("uniform_stealing", "equal tasks, and stealing", UNIFORM | STEALING),
            step("zipf_static", "uneven tasks, dealt out", STATIC),
            step("zipf_stealing", "uneven tasks, and stealing", STEALING).watched(1),
            step("zipf_shared", "uneven tasks in one pool", SHARED),
        ];
        Ok(steps.map(Step::whole).into())
    },
    make: |setting, step| Tasks::new(setting, step.variant).map(|tasks| Box::new(tasks) as _),
    effects,
};

const STATIC: usize = 0;
const STEALING: usize = 1;
const SHARED: usize = 2;
const UNIFORM: usize = 4;

/// Lengths are 1 to so many times the shortest.
const LENGTHS: usize = 1000;

fn effects(done: &[Done<'_>]) -> Vec<Effect> {
    let spread: Figure = |measured| measured.fact("idle_spread");
    let spreads = |of: &str, over: &str| {
        let [of, over] = [of, over].map(|id| short(figure(done, id, |of| of.fact("idle_spread"))));
        format!("workers are idle with a spread of {of} against {over}")
    };
    let lines = ["zipf_shared", "zipf_stealing"].map(|id| figure(done, id, Measured::transfers));
    let taking = (
        lines[0] > lines[1],
        format!(
            "taking a task from one pool costs {} lines from other cores, and stealing {}",
            short(lines[0]),
            short(lines[1])
        ),
    );
    let stolen = figure(done, "zipf_stealing", |of| of.fact("idle_spread"));
    let kept = (
        stolen < 0.1,
        format!(
            "a thief takes a task at a time, and with uneven tasks workers are idle with a spread of \
             {} only",
            short(stolen)
        ),
    );
    vec![
        ratio(
            "spread of idle time dealt out, Zipf over uniform",
            done,
            spread,
            ("zipf_static", "uniform_static"),
        )
        .shown_by(5.0, spreads("zipf_static", "uniform_static")),
        ratio(
            "spread of idle time under stealing, Zipf over uniform",
            done,
            spread,
            ("zipf_stealing", "uniform_stealing"),
        )
        .reported(0.41 / 0.03)
        .shown_by(
            2.0,
            reason(done, &[], [kept, (true, spreads("zipf_stealing", "uniform_stealing"))]),
        ),
        ratio(
            "mean time until a task is done under stealing, Zipf over uniform",
            done,
            Measured::mean,
            ("zipf_stealing", "uniform_stealing"),
        )
        .reported(12.6 / 0.8)
        .shown_by(
            2.0,
            "both have the same work in sum here, and what waits behind a long task is stolen; in the \
             report throughput fell by half, so its uneven tasks were more work",
        ),
        ratio(
            "throughput under stealing, Zipf over uniform",
            done,
            Measured::throughput,
            ("zipf_stealing", "uniform_stealing"),
        )
        .reported(18.9 / 42.5)
        .shown_by(0.0, String::new()),
        ratio(
            "throughput, stealing over static split",
            done,
            Measured::throughput,
            ("zipf_stealing", "zipf_static"),
        )
        .shown_by(1.1, spreads("zipf_static", "zipf_stealing")),
        ratio(
            "throughput, shared pool over stealing",
            done,
            Measured::throughput,
            ("zipf_shared", "zipf_stealing"),
        )
        .shown_by(1.05, reason(done, &["zipf_shared", "zipf_stealing"], [taking])),
    ]
}

type Ring = MpmcRingVyukov<u64, Boxed>;

struct Tasks {
    /// A queue for each worker, or one.
    queues: Vec<CachePadded<Ring>>,
    steals: bool,
    uniform: bool,
    zipf: Zipf,
    shortest_ns: u64,
    workers: usize,
    seed: u64,
    /// Tasks that were dealt out.
    dealt: AtomicU64,
}

impl Tasks {
    fn new(setting: &Setting, variant: usize) -> Result<Self, String> {
        let (workers, how) = (setting.threads, variant & !UNIFORM);
        let queues = if how == SHARED { 1 } else { workers };
        let capacity = setting.ops as usize * workers / queues;
        let ring = || Ring::with_capacity(capacity.max(2)).map(CachePadded::new);
        let queues = (0..queues).map(|_| ring().map_err(|error| error.to_string()));
        Ok(Self {
            queues: queues.collect::<Result<_, _>>()?,
            steals: how == STEALING,
            uniform: variant & UNIFORM > 0,
            zipf: Zipf::new(LENGTHS, setting.value("zipf")),
            shortest_ns: setting.count("service-ns") as u64,
            workers,
            seed: setting.seed,
            dealt: AtomicU64::new(0),
        })
    }

    /// Gives the next task: of the own queue, then of the others.
    fn take(&self, worker: usize) -> Option<u64> {
        let own = worker % self.queues.len();
        let others = if self.steals { self.queues.len() } else { 1 };
        (0..others).find_map(|next| self.queues[(own + next) % self.queues.len()].try_pop())
    }
}

impl Job for Tasks {
    fn begin(&self, round: &Round) {
        let mut random = SplitMix(self.seed);
        let tasks = round.ops as usize * self.workers;
        let mut lengths: Vec<u64> =
            (0..tasks).map(|_| self.zipf.draw(&mut random) as u64 + 1).collect();
        if self.uniform {
            let mean = lengths.iter().sum::<u64>() / tasks as u64;
            lengths.fill(mean);
        }
        let mut dealt = 0;
        for (task, length) in lengths.into_iter().enumerate() {
            let ns = length * self.shortest_ns;
            dealt += u64::from(self.queues[task % self.queues.len()].try_push(ns).is_ok());
        }
        // ORDERING: Relaxed - before or after the round, when nobody else is at it.
        self.dealt.store(dealt, Ordering::Relaxed);
    }

    fn work(&self, turn: &mut Turn<'_>) {
        turn.works();
        turn.clock.sleep_until(turn.round.start);
        while let Some(ns) = self.take(turn.thread) {
            turn.clock.work(ns);
            turn.took(turn.clock.now().saturating_sub(turn.round.start));
            turn.did(1);
        }
    }

    fn check(&self, done: &[u64]) -> Result<Facts, String> {
        // ORDERING: Relaxed - before or after the round, when nobody else is at it.
        let (done, dealt) = (done.iter().sum::<u64>(), self.dealt.load(Ordering::Relaxed));
        if done != dealt {
            return Err(format!("{dealt} tasks were dealt out, {done} were done"));
        }
        Ok(Facts::new())
    }
}
