//! The native engine: an experiment on this host's cores, repeated, checked and summarised.

mod latencies;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use topology::Topology;

use crate::clock::Clock;
use crate::memory::{Granted, Policy};
use crate::noise::{HostUsage, HostWatch};
use crate::pmu;
use crate::records::{Metric, Status};
use crate::spin::{StepRate, ticks_per_step};
use crate::stats::{jain, median, median_with_interval};
use crate::team::{Team, TeamError};
use crate::unavailable::Unavailable;
use crate::window::{self, Plan, ThreadWindow, Work, overlap, start_skew};
use crate::workload::Workload;

pub use crate::latency::LatencySummary;

/// Overlap below which a repetition is made again.
const LEAST_OVERLAP: f64 = 0.95;

/// How often a repetition is made again before it is kept as it is.
const ATTEMPTS: u32 = 4;

/// Relative width of the interval from which on a point is noisy.
const WIDEST_INTERVAL: f64 = 0.25;

/// Share of a window that a thread may wait for its CPU before the repetition counts as disturbed.
const LONGEST_WAIT: f64 = 0.005;

/// Relative change of the clock rate during a repetition from which on it counts as disturbed.
const LARGEST_DRIFT: f64 = 0.05;

/// Under which conditions an experiment runs; what its driver builds it from.
#[derive(Debug, Clone)]
pub struct Conditions {
    /// The CPU of each thread.
    pub cpus: Vec<u32>,
    /// The policy for memory that each thread has to itself.
    pub own_memory: Vec<Policy>,
    /// The policy for memory that the threads share: that of the first one.
    pub shared_memory: Policy,
    /// What the threads do.
    pub workload: Workload,
    /// Steps of work that fill a nanosecond.
    pub steps: StepRate,
    /// The seed of everything drawn at random.
    pub seed: u64,
}

impl Conditions {
    /// Gives the number of threads.
    pub fn threads(&self) -> usize {
        self.cpus.len()
    }
}

/// Figures that an experiment's own driver adds to the record.
pub type Facts = Vec<(&'static str, Metric)>;

type Verify = Box<dyn FnOnce(&[u64]) -> Result<Facts, String> + Send>;

/// Threads' works around one primitive, and the check that the primitive did its job.
pub struct Experiment {
    /// One work a thread.
    pub works: Vec<Box<dyn Work>>,
    /// Is given each thread's operations, warm-up included, when all have ended and their works
    /// are dropped. Gives further figures for the record: bytes of the object, say.
    ///
    /// Its error says what the primitive did wrong; the point is then broken.
    pub verify: Verify,
    /// What was granted to the memory that the threads share, if it was asked for.
    pub granted: Option<Granted>,
}

impl fmt::Debug for Experiment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Experiment").field("threads", &self.works.len()).finish_non_exhaustive()
    }
}

/// Makes an experiment anew for each repetition, so that addresses differ too.
pub type Make = fn(&Conditions) -> Result<Experiment, Unavailable>;

/// Why a repetition gave no figures.
#[derive(Debug)]
pub enum Failure {
    /// It cannot be run here.
    Unavailable(Unavailable),
    /// The primitive or the machinery broke a promise.
    Broken(String),
}

impl From<TeamError> for Failure {
    fn from(error: TeamError) -> Self {
        match error {
            TeamError::Pin(error) => {
                Self::Unavailable(Unavailable::because("not_pinned", error.to_string()))
            }
            TeamError::Spawn { .. } => {
                Self::Unavailable(Unavailable::because("no_thread", error.to_string()))
            }
            TeamError::Panicked { .. } => Self::Broken(error.to_string()),
        }
    }
}

/// One repetition's figures.
#[derive(Debug, Clone)]
pub struct Repetition {
    windows: Vec<ThreadWindow>,
    host: HostUsage,
    /// Ticks of a step of known work after the window, over those before it.
    drift: f64,
    granted: Option<Granted>,
    facts: Facts,
}

/// This host's cores, as an engine.
#[derive(Debug)]
pub struct Native {
    topology: Topology,
    clock: Clock,
    steps: StepRate,
    team: Team,
}

impl Native {
    /// Calibrates the clock and the work loop; takes about 70 ms.
    pub fn new(topology: Topology) -> Self {
        let clock = Clock::calibrated(&topology.cpuid);
        let steps = StepRate::measured(&clock);
        Self { topology, clock, steps, team: Team::new() }
    }

    /// Tells which clock is used.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Gives the host's topology.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// Gives the conditions for threads on `cpus`.
    ///
    /// # Errors
    /// When the machine lacks the node that the workload's memory asks for.
    pub fn conditions(
        &self,
        cpus: &[u32],
        workload: &Workload,
        seed: u64,
    ) -> Result<Conditions, Unavailable> {
        let own_memory = cpus
            .iter()
            .map(|&cpu| {
                let node = self.topology.pu(cpu).and_then(|pu| pu.node);
                workload.memory.policy(&self.topology, node)
            })
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Conditions {
            cpus: cpus.to_vec(),
            shared_memory: own_memory.first().cloned().unwrap_or(Policy::FirstTouch),
            own_memory,
            workload: workload.clone(),
            steps: self.steps,
            seed,
        })
    }

    /// Runs one repetition; makes it again when the threads did not run together.
    ///
    /// # Errors
    /// When the experiment cannot be made or run here, or is broken.
    pub fn repetition(
        &mut self,
        conditions: &Conditions,
        make: Make,
        window: Duration,
    ) -> Result<Repetition, Failure> {
        let plan = Plan { warm_up: window / 5, window, count_syscalls: false };
        let mut best: Option<Repetition> = None;
        // Threads that share CPUs never run all at once: another attempt would be no better.
        let distinct: std::collections::BTreeSet<u32> = conditions.cpus.iter().copied().collect();
        let attempts = if distinct.len() < conditions.threads() { 1 } else { ATTEMPTS };
        for _ in 0..attempts {
            let repetition = self.once(conditions, make, plan)?;
            let share = overlap(&repetition.windows);
            if best.as_ref().is_none_or(|best| share > overlap(&best.windows)) {
                best = Some(repetition);
            }
            if share >= LEAST_OVERLAP {
                break;
            }
        }
        best.ok_or_else(|| Failure::Broken("no attempt was made".into()))
    }

    /// Counts system calls in a pass of its own; per operation.
    ///
    /// # Errors
    /// As for [`repetition`](Self::repetition).
    pub fn syscalls_per_op(
        &mut self,
        conditions: &Conditions,
        make: Make,
        window: Duration,
    ) -> Result<Result<f64, Unavailable>, Failure> {
        let plan = Plan { warm_up: window / 5, window, count_syscalls: true };
        let counted = self.once(conditions, make, plan)?;
        let mut calls = 0;
        for window in &counted.windows {
            match &window.syscalls {
                Some(Ok(count)) => calls += count,
                Some(Err(reason)) => return Ok(Err(reason.clone())),
                None => return Ok(Err(Unavailable::new("not_counted"))),
            }
        }
        let ops: u64 = counted.windows.iter().map(|window| window.ops).sum();
        if ops == 0 {
            return Ok(Err(Unavailable::new("no_operations")));
        }
        Ok(Ok(calls as f64 / ops as f64))
    }

    fn once(
        &mut self,
        conditions: &Conditions,
        make: Make,
        plan: Plan,
    ) -> Result<Repetition, Failure> {
        let experiment = make(conditions).map_err(Failure::Unavailable)?;
        let watch = HostWatch::new(&conditions.cpus, self.cgroup_stat());
        let (before, rate_before) = (watch.now(), self.step_rate(conditions)?);
        let works = experiment.works;
        let windows = window::run(&mut self.team, &self.clock, &conditions.cpus, works, plan)?;
        let (rate_after, after) = (self.step_rate(conditions)?, watch.now());
        for window in &windows {
            window.verdict.clone().map_err(Failure::Broken)?;
        }
        let ops: Vec<u64> = windows.iter().map(|window| window.ops_in_all).collect();
        let facts = (experiment.verify)(&ops).map_err(Failure::Broken)?;
        Ok(Repetition {
            windows,
            host: after.since(before),
            drift: rate_after / rate_before,
            granted: experiment.granted,
            facts,
        })
    }

    /// Measures the clock rate where the first thread runs.
    fn step_rate(&mut self, conditions: &Conditions) -> Result<f64, Failure> {
        let clock = self.clock.clone();
        let cpus = conditions.cpus.get(..1).unwrap_or_default();
        let rates = self.team.run(cpus, vec![move || ticks_per_step(&clock)])?;
        Ok(rates.first().copied().unwrap_or(1.0))
    }

    /// The statistics of the cgroup whose quota could stop us.
    fn cgroup_stat(&self) -> Vec<PathBuf> {
        let quota = self.topology.cgroup.as_ref().and_then(|cgroup| cgroup.quota.as_ref());
        let file = quota.map(|quota| PathBuf::from(&quota.file).with_file_name("cpu.stat"));
        file.into_iter().collect()
    }

    /// Summarises the repetitions of a point.
    pub fn summary(
        &self,
        repetitions: &[Repetition],
        syscalls: Option<Result<f64, Unavailable>>,
        seed: u64,
    ) -> Summary {
        let mut metrics = BTreeMap::new();
        let samples =
            |of: &dyn Fn(&Repetition) -> f64| -> Vec<f64> { repetitions.iter().map(of).collect() };
        let ns_per_op = median_with_interval(&samples(&|r| self.ns_per_op(r)), seed);
        let mut estimate = |name: &str, of: &dyn Fn(&Repetition) -> f64| {
            let finite: Vec<f64> = samples(of).into_iter().filter(|x| x.is_finite()).collect();
            let estimate = median_with_interval(&finite, seed);
            metrics.insert(name.to_owned(), Metric::estimate(estimate, "no_operations"));
        };
        estimate("ns_per_op", &|r| self.ns_per_op(r));
        estimate("ops_per_s", &|r| self.ops_per_s(r));
        estimate("fairness_jain", &|r| jain(&r.shares()).unwrap_or(f64::NAN));
        estimate("overhead_ns_per_op", &|r| self.overhead_ns(r) / r.ops() as f64);
        estimate("overlap", &|r| overlap(&r.windows));
        estimate("clock_drift", &|r| r.drift);
        let skews = samples(&|r| start_skew(&r.windows) as f64);
        metrics.insert(
            "start_skew_ns".into(),
            median(&skews).map_or_else(
                || Metric::Missing(Unavailable::new("not_measured")),
                |skew| Metric::figure(self.clock.ns(skew)),
            ),
        );
        metrics.extend(totals(repetitions));
        metrics.extend(granted(repetitions));
        metrics.insert("syscalls_per_op".into(), syscalls_metric(syscalls));
        metrics.extend(events(repetitions));
        let reasons = self.disturbances(repetitions, ns_per_op.map(|e| e.relative_width()));
        Summary {
            status: if reasons.is_empty() { Status::Ok } else { Status::Noisy },
            reasons,
            metrics,
            ops_by_thread: ops_by_thread(repetitions),
        }
    }

    /// Gives one thread's time for an operation, in nanoseconds: the threads' times, less what
    /// reading the clock cost, over the operations of all.
    pub fn ns_per_op(&self, repetition: &Repetition) -> f64 {
        let ticks: u64 = repetition.windows.iter().map(|w| w.end - w.start).sum();
        (self.clock.ns(ticks as f64) - self.overhead_ns(repetition)) / repetition.ops() as f64
    }

    fn overhead_ns(&self, repetition: &Repetition) -> f64 {
        let batches: u64 = repetition.windows.iter().map(|w| w.batches).sum();
        self.clock.ns((batches * self.clock.reading_ticks) as f64)
    }

    /// Operations of all threads over the time from the first start to the last end.
    fn ops_per_s(&self, repetition: &Repetition) -> f64 {
        let first = repetition.windows.iter().map(|w| w.start).min().unwrap_or(0);
        let last = repetition.windows.iter().map(|w| w.end).max().unwrap_or(0);
        repetition.ops() as f64 * 1e9 / self.clock.ns((last - first) as f64)
    }
}

/// What the repetitions of a point come to.
#[derive(Debug, Clone)]
pub struct Summary {
    /// Whether the figures can be believed.
    pub status: Status,
    /// Why not, if not.
    pub reasons: Vec<String>,
    /// The figures.
    pub metrics: BTreeMap<String, Metric>,
    /// Operations of each thread over all repetitions.
    pub ops_by_thread: Vec<u64>,
}

impl Repetition {
    fn ops(&self) -> u64 {
        self.windows.iter().map(|window| window.ops).sum()
    }

    fn shares(&self) -> Vec<u64> {
        self.windows.iter().map(|window| window.ops).collect()
    }

    fn sum_of(&self, of: impl Fn(&crate::noise::ThreadUsage) -> u64) -> Option<u64> {
        self.windows.iter().map(|window| window.usage.as_ref().map(&of)).sum()
    }
}

fn ops_by_thread(repetitions: &[Repetition]) -> Vec<u64> {
    let threads = repetitions.first().map_or(0, |first| first.windows.len());
    (0..threads).map(|at| repetitions.iter().map(|r| r.windows[at].ops).sum()).collect()
}

/// Counts summed over the repetitions.
fn totals(repetitions: &[Repetition]) -> BTreeMap<String, Metric> {
    let sum = |of: &dyn Fn(&Repetition) -> Option<u64>, otherwise: &str| match repetitions
        .iter()
        .map(of)
        .sum::<Option<u64>>()
    {
        Some(value) => Metric::Count { value },
        None => Metric::Missing(Unavailable::new(otherwise)),
    };
    let usage = "no_rusage";
    let cpu_ns: Option<u64> = repetitions.iter().map(|r| r.sum_of(|u| u.cpu_ns)).sum();
    let cpu_seconds = match cpu_ns {
        Some(ns) => Metric::figure(ns as f64 / 1e9),
        None => Metric::Missing(Unavailable::new(usage)),
    };
    [
        ("ops", sum(&|r| Some(r.ops()), usage)),
        ("voluntary_switches", sum(&|r| r.sum_of(|u| u.voluntary_switches), usage)),
        ("involuntary_switches", sum(&|r| r.sum_of(|u| u.involuntary_switches), usage)),
        ("run_queue_wait_ns", sum(&|r| r.waited_ns(), "no_schedstat")),
        ("minor_faults", sum(&|r| r.sum_of(|u| u.minor_faults), usage)),
        ("major_faults", sum(&|r| r.sum_of(|u| u.major_faults), usage)),
        ("migrations", sum(&|r| Some(r.migrations()), usage)),
        ("steal_ticks", sum(&|r| r.host.steal_ticks, "no_steal_time")),
        ("throttled_us", sum(&|r| r.host.throttled_us, "no_quota")),
        ("cpu_seconds", cpu_seconds),
    ]
    .into_iter()
    .map(|(name, metric)| (name.to_owned(), metric))
    .collect()
}

impl Repetition {
    /// Time for which threads could have run and waited for their CPUs.
    fn waited_ns(&self) -> Option<u64> {
        self.windows.iter().map(|window| window.usage.as_ref()?.run_queue_wait_ns).sum()
    }

    fn migrations(&self) -> u64 {
        self.windows.iter().filter(|window| window.migrated).count() as u64
    }
}

/// What hardware counters counted in all windows; missing if any window lacks it.
fn events(repetitions: &[Repetition]) -> BTreeMap<String, Metric> {
    let ops: u64 = repetitions.iter().map(Repetition::ops).sum();
    let windows = || repetitions.iter().flat_map(|repetition| &repetition.windows);
    let metric = |name: &str| match windows().map(|window| window.event(name)).sum() {
        Err(reason) => Metric::Missing(reason),
        Ok::<u64, _>(_) if ops == 0 => Metric::Missing(Unavailable::new("no_operations")),
        Ok(count) if name.contains("_per_op") => Metric::figure(count as f64 / ops as f64),
        Ok(value) => Metric::Count { value },
    };
    pmu::METRICS.iter().map(|&name| (name.to_owned(), metric(name))).collect()
}

/// What was granted to the memory, and the driver's own facts, from the last repetition.
fn granted(repetitions: &[Repetition]) -> BTreeMap<String, Metric> {
    let mut metrics = BTreeMap::new();
    let Some(last) = repetitions.last() else { return metrics };
    let flag = |granted: &Result<(), Unavailable>| match granted {
        Ok(()) => Metric::Count { value: 1 },
        Err(reason) => Metric::Missing(reason.clone()),
    };
    if let Some(granted) = &last.granted {
        let huge = match &granted.huge_bytes {
            Ok(bytes) => Metric::Count { value: *bytes },
            Err(reason) => Metric::Missing(reason.clone()),
        };
        metrics.insert("memory_huge_bytes".into(), huge);
        metrics.insert("memory_populated".into(), flag(&granted.populated));
        metrics.insert("memory_locked".into(), flag(&granted.locked));
        metrics.insert("memory_on_node".into(), flag(&granted.policy));
    }
    metrics.extend(last.facts.iter().map(|(name, metric)| ((*name).to_owned(), metric.clone())));
    metrics
}

fn syscalls_metric(syscalls: Option<Result<f64, Unavailable>>) -> Metric {
    match syscalls {
        Some(Ok(per_op)) => Metric::figure(per_op),
        Some(Err(reason)) => Metric::Missing(reason),
        None => Metric::Missing(Unavailable::new("not_counted")),
    }
}

impl Native {
    /// Says why the figures are noisy: what hit more than half of the repetitions, and a wide
    /// interval.
    fn disturbances(&self, repetitions: &[Repetition], relative_width: Option<f64>) -> Vec<String> {
        let mut reasons = Vec::new();
        let mut often = |name: &str, hit: &dyn Fn(&Repetition) -> bool| {
            let hits = repetitions.iter().filter(|r| hit(r)).count();
            if hits * 2 > repetitions.len() {
                reasons.push(format!("{name} in {hits} of {} repetitions", repetitions.len()));
            }
        };
        often("waits for a CPU", &|r| r.windows.iter().any(|window| self.lost_its_cpu(window)));
        often("page faults", &|r| {
            r.sum_of(|usage| usage.minor_faults + usage.major_faults).is_some_and(|n| n > 0)
        });
        often("migrations", &|r| r.migrations() > 0);
        often("stolen time", &|r| r.host.steal_ticks.is_some_and(|n| n > 0));
        often("throttling by the quota", &|r| r.host.throttled_us.is_some_and(|n| n > 0));
        often("drift of the clock rate", &|r| (r.drift - 1.0).abs() > LARGEST_DRIFT);
        often("overlap below 0.95", &|r| overlap(&r.windows) < LEAST_OVERLAP);
        if let Some(width) = relative_width.filter(|&width| width > WIDEST_INTERVAL) {
            reasons.push(format!("the interval is {:.0} % of the median wide", width * 100.0));
        }
        reasons
    }

    /// Tells whether something disturbed a repetition.
    pub fn disturbed(&self, repetition: &Repetition) -> bool {
        !self.disturbances(std::slice::from_ref(repetition), None).is_empty()
    }

    /// Whether a thread waited for its CPU for a share of its window that shows in the figures.
    /// Where the kernel keeps no such books, any involuntary switch counts.
    fn lost_its_cpu(&self, window: &ThreadWindow) -> bool {
        let Some(usage) = &window.usage else { return false };
        match usage.run_queue_wait_ns {
            Some(waited) => {
                waited as f64 > self.clock.ns((window.end - window.start) as f64) * LONGEST_WAIT
            }
            None => usage.involuntary_switches > 0,
        }
    }
}
