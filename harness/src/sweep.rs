//! A sweep: rows × threads × placements × memories, planned, measured in blocks, recorded.
//!
//! A block holds the points that differ in their row only. Its repetitions go round: each pass
//! visits every row, beginning with another one, so that what drifts meets all rows alike. A
//! block's records are complete before the next begins.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Map, Value};
use topology::Topology;

use crate::latency::Load;
use crate::native::{Conditions, Failure, LatencySummary, Make, Native, Repetition};
use crate::placement::{Placement, ThreadCounts, auto_threads};
use crate::records::{Metric, Point, Status};
use crate::unavailable::Unavailable;
use crate::workload::{Memory, Workload};

/// One row of a primitive's table, ready to be measured.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// counters, locks, queues or alloc-arena.
    pub primitive: &'static str,
    /// The row's name.
    pub id: &'static str,
    /// `baseline`, `variant` or `control`.
    pub kind: &'static str,
    /// Makes the experiment.
    pub make: Make,
}

/// What to sweep over, and how.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Rows, those of one primitive together.
    pub rows: Vec<Row>,
    /// Numbers of threads.
    pub threads: ThreadCounts,
    /// Placements, in order of preference.
    pub placements: Vec<Placement>,
    /// Memories.
    pub memories: Vec<Memory>,
    /// What the threads do.
    pub workload: Workload,
    /// Measured time of a point, all repetitions together; natively only.
    pub point: Duration,
    /// Repetitions of a point.
    pub repeat: u64,
    /// The seed of everything drawn at random.
    pub seed: u64,
    /// Whether there may be more threads than CPUs.
    pub oversubscribe: bool,
}

/// Where threads may go: this host's CPUs, or a simulated machine's cores.
pub trait Ground {
    /// Gives the most threads of which each has a CPU to itself.
    fn most(&self) -> usize;

    /// Gives the numbers of threads at which something may change.
    fn auto_threads(&self) -> Vec<usize>;

    /// Gives all CPUs that a placement may use, in the order in which threads get them; never
    /// empty.
    ///
    /// # Errors
    /// When the machine lacks what the placement needs, or a CPU is named that may not be used.
    fn order(&self, placement: &Placement) -> Result<Vec<u32>, Unavailable>;

    /// Says what limits the number of CPUs.
    fn limit(&self) -> String;
}

impl Ground for Topology {
    fn most(&self) -> usize {
        self.parallelism()
    }

    fn auto_threads(&self) -> Vec<usize> {
        auto_threads(self, self.parallelism())
    }

    fn order(&self, placement: &Placement) -> Result<Vec<u32>, Unavailable> {
        placement.order(self)
    }

    fn limit(&self) -> String {
        let usable = self.usable();
        let cut = if self.parallelism() < usable.len() { ", cut by a quota" } else { "" };
        format!("usable {usable}{cut}")
    }
}

/// Points that differ in their row only.
#[derive(Debug, Clone)]
pub struct Block {
    /// Their primitive.
    pub primitive: &'static str,
    /// Their number of threads.
    pub threads: usize,
    /// Their placement.
    pub placement: Placement,
    /// Their CPUs, or why the placement does not exist here.
    pub cpus: Result<Vec<u32>, Unavailable>,
    /// What their threads do.
    pub workload: Workload,
    /// Their rows.
    pub rows: Vec<Row>,
}

/// A sweep's blocks, and what was left out.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The blocks in order.
    pub blocks: Vec<Block>,
    /// Placements that give the same CPUs as one before them, with the number of blocks.
    pub same_as_before: BTreeMap<String, usize>,
}

/// Why a sweep cannot be laid out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlanError {
    /// More threads were asked for than there are CPUs.
    TooManyThreads {
        /// The number asked for.
        threads: usize,
        /// The CPUs there are.
        cpus: usize,
        /// Where the limit comes from.
        limit: String,
    },
    /// A CPU was named that may not be used.
    NotUsable(Unavailable),
}

impl std::fmt::Display for PlanError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::TooManyThreads { threads, cpus, limit } => write!(
                f,
                "--threads: {threads} threads on {cpus} CPU{} ({limit}); --oversubscribe lets \
                 threads share CPUs",
                if *cpus == 1 { "" } else { "s" }
            ),
            Self::NotUsable(reason) => write!(f, "--placement: {reason}"),
        }
    }
}

impl std::error::Error for PlanError {}

/// Lays out the sweep.
///
/// # Errors
/// When threads outnumber CPUs and may not, or a CPU is named that may not be used.
pub fn plan(ground: &impl Ground, settings: &Settings) -> Result<Plan, PlanError> {
    let counts = match &settings.threads {
        ThreadCounts::Auto => ground.auto_threads(),
        ThreadCounts::These(counts) => counts.clone(),
    };
    let mut plan = Plan { blocks: Vec::new(), same_as_before: BTreeMap::new() };
    let mut primitives: Vec<&str> = settings.rows.iter().map(|row| row.primitive).collect();
    primitives.dedup();
    for primitive in primitives {
        for &threads in &counts {
            let mut seen = BTreeSet::new();
            for placement in &settings.placements {
                let order = ground.order(placement);
                check(ground, placement, &order, threads, settings.oversubscribe)?;
                let deal = |order: Vec<u32>| -> Vec<u32> {
                    order.iter().copied().cycle().take(threads).collect()
                };
                let cpus = order.map(deal);
                if let Ok(cpus) = &cpus
                    && !seen.insert(cpus.clone())
                {
                    *plan.same_as_before.entry(placement.to_string()).or_default() += 1;
                    continue;
                }
                plan.blocks.extend(settings.memories.iter().map(|&memory| {
                    Block {
                        primitive,
                        threads,
                        placement: placement.clone(),
                        cpus: cpus.clone(),
                        workload: Workload { memory, ..settings.workload.clone() },
                        rows: settings
                            .rows
                            .iter()
                            .filter(|row| row.primitive == primitive)
                            .copied()
                            .collect(),
                    }
                }));
            }
        }
    }
    Ok(plan)
}

/// Refuses what cannot be meant: CPUs that may not be used, and threads that share CPUs unasked.
fn check(
    ground: &impl Ground,
    placement: &Placement,
    order: &Result<Vec<u32>, Unavailable>,
    threads: usize,
    oversubscribe: bool,
) -> Result<(), PlanError> {
    let most = ground.most();
    let (cpus, limit) = match order {
        Err(reason) if matches!(placement, Placement::Cpus(_)) => {
            return Err(PlanError::NotUsable(reason.clone()));
        }
        Ok(order) if order.len() < most => (order.len(), format!("placement {placement}")),
        _ => (most, ground.limit()),
    };
    if threads > cpus && !oversubscribe {
        return Err(PlanError::TooManyThreads { threads, cpus, limit });
    }
    Ok(())
}

/// Time that a point takes besides its measured time: making it, touching memory, the pass that
/// counts system calls.
const AROUND_A_REPETITION: Duration = Duration::from_millis(6);

impl Plan {
    /// Counts the points.
    pub fn points(&self) -> usize {
        self.blocks.iter().map(|block| block.rows.len()).sum()
    }

    /// Estimates how long the sweep takes.
    pub fn duration(&self, point: Duration, repeat: u64) -> Duration {
        let repetitions = u32::try_from(repeat).unwrap_or(u32::MAX);
        let one = point.mul_f64(1.2)
            + AROUND_A_REPETITION.saturating_mul(repetitions)
            + syscall_window(point, repeat)
            + AROUND_A_REPETITION;
        one.saturating_mul(u32::try_from(self.points()).unwrap_or(u32::MAX))
    }

    /// Gives the measured time of a point with which the sweep fits into `budget`, if that is
    /// not below `least`.
    pub fn point_within(&self, budget: Duration, repeat: u64, least: Duration) -> Option<Duration> {
        let fixed = self.duration(Duration::ZERO, repeat);
        let points = u32::try_from(self.points().max(1)).unwrap_or(u32::MAX);
        // The measured time costs itself, a fifth for warming up, and its share of the pass.
        let share = 1.2 + 0.5 / repeat.max(1) as f64;
        let point = budget.checked_sub(fixed)?.div_f64(f64::from(points) * share);
        (point >= least).then_some(point)
    }
}

/// The window of the pass that counts system calls.
fn syscall_window(point: Duration, repeat: u64) -> Duration {
    point.div_f64(repeat.max(1) as f64 * 2.0).min(Duration::from_millis(20))
}

/// What a point is, apart from its figures: two measurements of the same point have equal keys.
pub fn key(point: &Point) -> String {
    let workload = Value::Object(point.workload.clone());
    format!(
        "{} {} {} {} {workload} {} {} {:?} {} {}",
        point.engine,
        point.machine,
        point.primitive,
        point.variant,
        point.threads,
        point.placement,
        point.cpus,
        point.seed,
        point.repeat
    )
}

/// Follows a sweep and may end it.
pub trait Observer {
    /// Is told before each repetition; `true` ends the sweep after what was measured so far is
    /// recorded.
    fn stop(&mut self) -> bool;

    /// Is told when a repetition of a row has ended.
    fn progress(&mut self, block: &Block, row: &Row);

    /// Is told of each row that is left out because it was measured before.
    fn left_out(&mut self, block: &Block, row: &Row);

    /// Is given each point when its block has ended.
    ///
    /// # Errors
    /// Ends the sweep.
    fn record(&mut self, point: Point) -> std::io::Result<()>;
}

/// Runs the blocks. `skip` says which points need no measurement, by their keys.
///
/// Gives whether the observer ended it early.
///
/// # Errors
/// What the observer's `record` returned.
pub fn run(
    native: &mut Native,
    plan: &Plan,
    settings: &Settings,
    run_id: &str,
    skip: &BTreeSet<String>,
    observer: &mut dyn Observer,
) -> std::io::Result<bool> {
    for block in &plan.blocks {
        let rows: Vec<Row> = block
            .rows
            .iter()
            .filter(|row| {
                let done = skip.contains(&key(&blank(block, row, settings, run_id)));
                if done {
                    observer.left_out(block, row);
                }
                !done
            })
            .copied()
            .collect();
        let stopped = run_block(native, block, &rows, settings, run_id, observer)?;
        if stopped {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The window of a repetition; where latencies are asked for, their passes get as long.
fn window(settings: &Settings) -> Duration {
    let passes = if settings.workload.latency.is_some() { 2.0 } else { 1.0 };
    settings.point.div_f64(settings.repeat as f64 * passes)
}

/// Times single operations, in as many passes as there are repetitions.
fn latencies(
    native: &mut Native,
    conditions: &Conditions,
    row: &Row,
    settings: &Settings,
    load: Load,
) -> Result<LatencySummary, Failure> {
    let window = window(settings);
    let passes = (0..settings.repeat)
        .map(|pass| native.latencies(conditions, row.make, window, (load, pass)))
        .collect::<Result<Vec<_>, _>>()?;
    Ok(native.latency_summary(&passes, (load, window), settings.seed))
}

/// What became of a row in its block.
struct Progress {
    repetitions: Vec<Repetition>,
    failure: Option<Failure>,
}

fn run_block(
    native: &mut Native,
    block: &Block,
    rows: &[Row],
    settings: &Settings,
    run_id: &str,
    observer: &mut dyn Observer,
) -> std::io::Result<bool> {
    let conditions = block
        .cpus
        .clone()
        .and_then(|cpus| native.conditions(&cpus, &block.workload, settings.seed));
    let conditions = match conditions {
        Ok(conditions) => conditions,
        Err(reason) => {
            for row in rows {
                (0..settings.repeat).for_each(|_| observer.progress(block, row));
                let point = blank(block, row, settings, run_id);
                observer.record(without_figures(point, Status::Unavailable, reason.to_string()))?;
            }
            return Ok(observer.stop());
        }
    };
    let window = window(settings);
    let mut progress: Vec<Progress> =
        rows.iter().map(|_| Progress { repetitions: Vec::new(), failure: None }).collect();
    let mut stopped = false;
    'passes: for pass in 0..settings.repeat as usize {
        for turn in 0..rows.len() {
            let at = (pass + turn) % rows.len();
            if observer.stop() {
                stopped = true;
                break 'passes;
            }
            if progress[at].failure.is_none() {
                match native.repetition(&conditions, rows[at].make, window) {
                    Ok(repetition) => progress[at].repetitions.push(repetition),
                    Err(failure) => progress[at].failure = Some(failure),
                }
            }
            observer.progress(block, &rows[at]);
        }
    }
    for (row, progress) in rows.iter().zip(progress) {
        let blank = blank(block, row, settings, run_id);
        let finished = finish(native, &conditions, row, settings, blank, progress, stopped);
        if let Some(point) = finished {
            observer.record(point)?;
        }
    }
    Ok(stopped)
}

/// Makes a row's record; `None` when it was stopped before its first repetition.
fn finish(
    native: &mut Native,
    conditions: &Conditions,
    row: &Row,
    settings: &Settings,
    mut point: Point,
    progress: Progress,
    stopped: bool,
) -> Option<Point> {
    match progress.failure {
        Some(Failure::Unavailable(reason)) => {
            return Some(without_figures(point, Status::Unavailable, reason.to_string()));
        }
        Some(Failure::Broken(reason)) => {
            return Some(without_figures(point, Status::Broken, reason));
        }
        None if progress.repetitions.is_empty() => return None,
        None => {}
    }
    let syscalls = if stopped {
        Some(Err(Unavailable::new("interrupted")))
    } else {
        let window = syscall_window(settings.point, settings.repeat);
        match native.syscalls_per_op(conditions, row.make, window) {
            Ok(counted) => Some(counted),
            Err(Failure::Unavailable(reason)) => Some(Err(reason)),
            Err(Failure::Broken(reason)) => {
                return Some(without_figures(point, Status::Broken, reason));
            }
        }
    };
    let summary = native.summary(&progress.repetitions, syscalls, settings.seed);
    point.repeat = progress.repetitions.len() as u64;
    point.status = summary.status;
    point.reasons = summary.reasons;
    if point.repeat < settings.repeat {
        point.status = Status::Noisy;
        point.reasons.push(format!("interrupted after {} of {}", point.repeat, settings.repeat));
    }
    point.metrics = summary.metrics;
    point.per_thread.insert("ops".into(), summary.ops_by_thread);
    if let Some(load) = settings.workload.latency.filter(|_| !stopped) {
        match latencies(native, conditions, row, settings, load) {
            Ok(found) => {
                point.metrics.extend(found.metrics);
                if !found.reasons.is_empty() {
                    point.status = Status::Noisy;
                    point.reasons.splice(0..0, found.reasons);
                }
            }
            Err(Failure::Unavailable(reason)) => {
                point.metrics.insert("latency_ns.p50".into(), Metric::Missing(reason));
            }
            Err(Failure::Broken(reason)) => {
                return Some(without_figures(point, Status::Broken, reason));
            }
        }
    }
    Some(point)
}

/// Makes the record of a point that has no figures.
pub(crate) fn without_figures(mut point: Point, status: Status, reason: String) -> Point {
    point.status = status;
    point.reasons.push(reason);
    point
}

/// The record of a point before it is measured natively.
fn blank(block: &Block, row: &Row, settings: &Settings, run_id: &str) -> Point {
    blank_of(("native", "this-host"), block, row, settings, run_id)
}

/// The record of a point before an engine measures it on a machine.
pub(crate) fn blank_of(
    (engine, machine): (&str, &str),
    block: &Block,
    row: &Row,
    settings: &Settings,
    run_id: &str,
) -> Point {
    Point {
        record: "point".into(),
        run: run_id.into(),
        engine: engine.into(),
        machine: machine.into(),
        primitive: block.primitive.into(),
        variant: row.id.into(),
        workload: block.workload.words(block.primitive),
        threads: block.threads,
        placement: block.placement.to_string(),
        cpus: block.cpus.clone().unwrap_or_default(),
        seed: settings.seed,
        repeat: settings.repeat,
        status: Status::Ok,
        reasons: Vec::new(),
        metrics: BTreeMap::new(),
        per_thread: BTreeMap::new(),
        other: Map::new(),
    }
}
