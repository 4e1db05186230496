//! `manycore sweep`: the main job.

use std::collections::BTreeSet;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use harness::callgrind::Callgrind;
use harness::host::{self, Build};
use harness::native::Native;
use harness::placement::ThreadCounts;
use harness::records::{Appender, Point, Record, Run, SCHEMA, Skipped, Status, read};
use harness::report::verdict::Kinds;
use harness::sweep::{self, Block, Observer, Plan, Row, Settings};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use serde_json::{Map, json};
use topology::Topology;

use crate::cli::{OPS, SweepArgs};
use crate::exit::Failure;
use crate::stdout::{self, note};
use crate::{count, count_command, rows, select, table};

/// The shortest measured time of a point to which a budget may shorten it.
const SHORTEST_POINT: Duration = Duration::from_millis(50);

const BUILD: Build = Build { rustc: env!("MANYCORE_RUSTC"), commit: env!("MANYCORE_COMMIT") };

/// Runs the command.
///
/// # Errors
/// When the command line asks for what cannot be, the records cannot be written, or the sweep is
/// interrupted.
pub(crate) fn run(arguments: SweepArgs) -> Result<(), Failure> {
    let topology = Topology::this_host().map_err(|error| Failure::Failed(error.to_string()))?;
    let mut settings = settings(&arguments)?;
    if arguments.engine == "callgrind" {
        return exact_counts(&arguments, &settings, &topology);
    }
    let plan =
        sweep::plan(&topology, &settings).map_err(|error| Failure::Usage(error.to_string()))?;
    if let Some(budget) = arguments.budget {
        settings.point = within_budget(&plan, &settings, budget)?;
    }
    if arguments.dry_run {
        return dry_run(&plan, &settings, arguments.json);
    }
    let interrupted = Arc::new(AtomicBool::new(false));
    catch_signals(&interrupted)?;
    let header = header(&topology);
    let mut records = Records::open(&arguments)?;
    let skip = records.measured_already(&arguments, &header)?;
    records.write(&header)?;
    let findings = header.doctor.iter().filter_map(|finding| finding["message"].as_str());
    findings.for_each(|message| note(&format!("note: {message}")));
    let mut follower = Follower::new(&arguments, &plan, &settings, records, interrupted);
    let mut native = Native::new(topology);
    let outcome = sweep::run(&mut native, &plan, &settings, &header.run, &skip, &mut follower);
    follower.finish(outcome, &plan)
}

fn settings(arguments: &SweepArgs) -> Result<Settings, Failure> {
    match arguments.engine.as_str() {
        "native" | "callgrind" => {}
        "simulated" => {
            return Err(Failure::Usage(
                "--engine simulated is not part of this version; there are native, callgrind"
                    .into(),
            ));
        }
        other => {
            return Err(Failure::Usage(format!(
                "unknown engine `{other}`; there are native, callgrind, simulated"
            )));
        }
    }
    let chosen = select::variants(rows::all(), &arguments.primitive, &arguments.variant)?;
    let placements = arguments.placement.iter().flat_map(|named| named.0.clone()).collect();
    Ok(Settings {
        rows: chosen.iter().map(|variant| variant.row).collect(),
        threads: threads(arguments),
        placements,
        memories: arguments.memory.clone(),
        workload: arguments.workload.workload(),
        point: arguments.seconds,
        repeat: arguments.repeat,
        seed: arguments.seed,
        oversubscribe: arguments.oversubscribe,
    })
}

/// Where both sides of a queue are given and nothing else is measured, there is one number of
/// threads to choose.
fn threads(arguments: &SweepArgs) -> ThreadCounts {
    let workload = &arguments.workload;
    let queues_only = arguments.primitive.iter().all(|name| name == "queues");
    match (&arguments.threads, workload.producers, workload.consumers) {
        (ThreadCounts::Auto, Some(producers), Some(consumers))
            if queues_only && !arguments.primitive.is_empty() =>
        {
            ThreadCounts::These(vec![producers + consumers])
        }
        (threads, ..) => threads.clone(),
    }
}

/// The callgrind engine: every row once, with one thread, since counts repeat and valgrind runs one
/// thread at a time.
fn exact_counts(
    arguments: &SweepArgs,
    settings: &Settings,
    topology: &Topology,
) -> Result<(), Failure> {
    match &settings.threads {
        ThreadCounts::Auto => {}
        ThreadCounts::These(counts) if *counts == [1] => {}
        ThreadCounts::These(_) => {
            return Err(Failure::Usage(
                "--engine callgrind counts one thread: valgrind runs threads one at a time, so \
                 that nobody contends; use --threads 1"
                    .into(),
            ));
        }
    }
    if arguments.dry_run {
        let rows = settings.rows.iter().map(|row| format!("{:<12} {}", row.primitive, row.id));
        return stdout::print(&rows.collect::<Vec<_>>().join("\n"));
    }
    let callgrind = Callgrind::find().map_err(|reason| Failure::Failed(reason.to_string()))?;
    let header = header(topology);
    let mut records = Records::open(arguments)?;
    let done = records.measured_already(arguments, &header)?;
    records.write(&header)?;
    let interrupted = Arc::new(AtomicBool::new(false));
    catch_signals(&interrupted)?;
    let mut counted = Vec::new();
    for row in &settings.rows {
        if interrupted.load(Ordering::Relaxed) {
            let kept = counted.len();
            return Err(Failure::Interrupted(format!("interrupted; kept {kept} points")));
        }
        if done.contains(&sweep::key(&count::blank(row, &settings.workload, &header.run))) {
            continue;
        }
        let (point, functions) =
            count::point(&callgrind, row, &settings.workload, OPS, &header.run);
        records.write(&point)?;
        counted.push((point, functions));
    }
    let text = count_command::table(&counted, false);
    if arguments.json {
        note(&text)
    } else {
        stdout::print(&text)?
    }
    if let Some(file) = &records.file {
        note(&format!("{} in {}", points(counted.len()), file.path().display()));
    }
    Ok(())
}

/// A number of points, in words.
fn points(count: usize) -> String {
    if count == 1 { "1 point".into() } else { format!("{count} points") }
}

fn within_budget(plan: &Plan, settings: &Settings, budget: Duration) -> Result<Duration, Failure> {
    if plan.duration(settings.point, settings.repeat) <= budget {
        return Ok(settings.point);
    }
    plan.point_within(budget, settings.repeat, SHORTEST_POINT).ok_or_else(|| {
        Failure::Usage(format!(
            "--budget {}: the {} points need {} at the least; choose fewer with --primitive, \
             --variant or --threads",
            table::duration(budget),
            plan.points(),
            table::duration(plan.duration(SHORTEST_POINT, settings.repeat)),
        ))
    })
}

fn dry_run(plan: &Plan, settings: &Settings, as_json: bool) -> Result<(), Failure> {
    let mut lines = Vec::new();
    for block in &plan.blocks {
        for row in &block.rows {
            let cpus = block.cpus.as_ref();
            lines.push(if as_json {
                json!({
                    "primitive": block.primitive, "variant": row.id, "threads": block.threads,
                    "placement": block.placement.to_string(), "cpus": cpus.unwrap_or(&Vec::new()),
                    "workload": block.workload.words(block.primitive),
                })
                .to_string()
            } else {
                let cpus = cpus.map_or_else(ToString::to_string, |cpus| table::cpus(cpus));
                format!(
                    "{:<12} {:<20} threads {:<4} {:<10} {:<10} CPUs {cpus}",
                    block.primitive,
                    row.id,
                    block.threads,
                    block.placement.to_string(),
                    block.workload.memory.to_string(),
                )
            });
        }
    }
    stdout::print(&lines.join("\n"))?;
    note(&format!(
        "{}, {} s measured each in {} repetitions: about {}",
        points(plan.points()),
        settings.point.as_secs_f64(),
        settings.repeat,
        table::duration(plan.duration(settings.point, settings.repeat)),
    ));
    report_same_as_before(plan);
    Ok(())
}

fn report_same_as_before(plan: &Plan) {
    for (placement, blocks) in &plan.same_as_before {
        note(&format!(
            "note: placement {placement} gives the same CPUs as one before it at {blocks} of the \
             thread counts; measured once"
        ));
    }
}

/// The first signal ends the sweep after the repetition under way, a second one at once.
fn catch_signals(interrupted: &Arc<AtomicBool>) -> Result<(), Failure> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        let at_once =
            signal_hook::flag::register_conditional_shutdown(signal, 130, interrupted.clone());
        let flag = signal_hook::flag::register(signal, interrupted.clone());
        at_once.and(flag).map_err(|error| {
            Failure::Failed(format!("cannot set a handler for signal {signal}: {error}"))
        })?;
    }
    Ok(())
}

pub(crate) fn header(topology: &Topology) -> Run {
    let host = host::fingerprint(topology, BUILD);
    let date = host["date"].as_str().unwrap_or_default().replace(['-', ':'], "");
    Run {
        record: "run".into(),
        schema: SCHEMA,
        run: format!("{date}-{}", std::process::id()),
        argv: std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect(),
        host,
        doctor: host::findings(topology),
        other: Map::new(),
    }
}

/// Gives the keys of the points that `path` holds, measured on this host by this build.
fn measured_already(path: &Path, header: &Run) -> Result<BTreeSet<String>, Failure> {
    let mut same_build = BTreeSet::new();
    let mut keys = BTreeSet::new();
    let mut others = 0_u64;
    let each = |record| match record {
        Record::Run(run) => {
            let same = ["name", "cpu", "cpus_allowed", "commit", "rustc"]
                .iter()
                .all(|&field| run.host.get(field) == header.host.get(field));
            if same {
                same_build.insert(run.run);
            }
        }
        Record::Point(point) if same_build.contains(&point.run) => {
            if point.status != Status::Broken {
                keys.insert(sweep::key(&point));
            }
        }
        Record::Point(_) => others += 1,
    };
    let skipped = |Skipped { line, reason }| {
        note(&format!("note: {} line {line} skipped: {reason}", path.display()));
    };
    read(path, each, skipped)
        .map_err(|error| Failure::Failed(format!("cannot read {}: {error}", path.display())))?;
    if others > 0 {
        note(&format!("note: {others} points of other hosts or builds are measured again"));
    }
    Ok(keys)
}

/// Where records go.
struct Records {
    file: Option<Appender>,
    to_stdout: bool,
}

impl Records {
    fn open(arguments: &SweepArgs) -> Result<Self, Failure> {
        let path = match &arguments.out {
            Some(path) if path.as_os_str() == "-" => {
                return Err(Failure::Usage(
                    "--out -: records go to standard output with --json".into(),
                ));
            }
            Some(path) => Some(path.clone()),
            None if arguments.json => None,
            None => Some(default_path()),
        };
        let open = |path: PathBuf| {
            Appender::open(&path).map_err(|error| {
                Failure::Failed(format!(
                    "cannot write records to {}: {error}; choose another file with --out",
                    path.display()
                ))
            })
        };
        Ok(Self { file: path.map(open).transpose()?, to_stdout: arguments.json })
    }

    /// With --resume, the keys of the points that the file holds.
    fn measured_already(
        &self,
        arguments: &SweepArgs,
        header: &Run,
    ) -> Result<BTreeSet<String>, Failure> {
        match &self.file {
            Some(file) if arguments.resume => measured_already(file.path(), header),
            _ => Ok(BTreeSet::new()),
        }
    }

    fn write(&mut self, record: &impl Serialize) -> Result<(), Failure> {
        if let Some(file) = &mut self.file {
            file.append(record).map_err(|error| {
                Failure::Failed(format!(
                    "cannot add a record to {}: {error}; the records before it are whole, and \
                     --resume goes on from there",
                    file.path().display()
                ))
            })?;
        }
        if self.to_stdout {
            self.print(record)?;
        }
        Ok(())
    }

    /// Records on standard output are the result: whoever reads them going away ends the sweep.
    fn print(&self, record: &impl Serialize) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        let line = serde_json::to_string(record).map_err(io::Error::from);
        line.and_then(|line| writeln!(out, "{line}")).and_then(|()| out.flush()).map_err(|error| {
            Failure::Failed(format!("cannot write records to standard output: {error}"))
        })
    }
}

fn default_path() -> PathBuf {
    let host: String = host::host_name()
        .unwrap_or_else(|| "host".into())
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' })
        .collect();
    let date = host::date("%Y-%m-%dT%H%M%SZ");
    Path::new("results").join(host).join(format!("{date}-sweep.jsonl"))
}

/// Shows progress, keeps the points for the table, and writes them down.
struct Follower {
    records: Records,
    points: Vec<Point>,
    kinds: Kinds,
    bar: ProgressBar,
    interrupted: Arc<AtomicBool>,
    deadline: Option<Instant>,
    out_of_budget: bool,
    failure: Option<Failure>,
    left_out: usize,
    repeat: u64,
    json: bool,
}

/// How far a sweep may exceed its budget before it is ended.
const BUDGET_SLACK: f64 = 1.25;

impl Follower {
    fn new(
        arguments: &SweepArgs,
        plan: &Plan,
        settings: &Settings,
        records: Records,
        interrupted: Arc<AtomicBool>,
    ) -> Self {
        let shown = !arguments.quiet && io::stderr().is_terminal();
        let target =
            if shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar =
            ProgressBar::with_draw_target(Some(plan.points() as u64 * settings.repeat), target);
        if let Ok(style) =
            ProgressStyle::with_template("{bar:30} {percent:>3}% {eta:>5} left  {msg}")
        {
            bar.set_style(style);
        }
        if !arguments.quiet && !shown {
            note(&format!(
                "measuring {}, about {}",
                points(plan.points()),
                table::duration(plan.duration(settings.point, settings.repeat))
            ));
        }
        Self {
            records,
            points: Vec::new(),
            kinds: rows::kinds(),
            bar,
            interrupted,
            deadline: arguments.budget.map(|budget| Instant::now() + budget.mul_f64(BUDGET_SLACK)),
            out_of_budget: false,
            failure: None,
            left_out: 0,
            repeat: settings.repeat,
            json: arguments.json,
        }
    }

    fn finish(mut self, outcome: io::Result<bool>, plan: &Plan) -> Result<(), Failure> {
        self.bar.finish_and_clear();
        report_same_as_before(plan);
        let text = table::text(&self.points, &self.kinds);
        if self.json {
            note(&text);
        } else {
            stdout::print(&text)?;
        }
        if self.left_out > 0 {
            let left_out = points(self.left_out);
            note(&format!("{left_out} in the file already, not measured again"));
        }
        let kept = match &self.records.file {
            Some(file) => format!("{} in {}", points(self.points.len()), file.path().display()),
            None => points(self.points.len()),
        };
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        match outcome {
            Err(error) => Err(Failure::Failed(error.to_string())),
            Ok(true) if self.out_of_budget => Err(Failure::Failed(format!(
                "the budget is used up; kept {kept}; --resume with the same --out measures the rest"
            ))),
            Ok(true) => Err(Failure::Interrupted(format!("interrupted; kept {kept}"))),
            Ok(false) => {
                note(&kept);
                self.judge()
            }
        }
    }

    /// A broken point is a failure of what was measured, and the exit code says so.
    fn judge(&self) -> Result<(), Failure> {
        let broken: Vec<String> = self
            .points
            .iter()
            .filter(|point| point.status == Status::Broken)
            .map(|point| format!("{} at {} threads", point.variant, point.threads))
            .collect();
        if broken.is_empty() {
            return Ok(());
        }
        Err(Failure::Failed(format!("broken points: {}", broken.join(", "))))
    }
}

impl Observer for Follower {
    fn stop(&mut self) -> bool {
        self.out_of_budget |= self.deadline.is_some_and(|deadline| Instant::now() > deadline);
        self.out_of_budget || self.interrupted.load(Ordering::Relaxed)
    }

    fn progress(&mut self, block: &Block, row: &Row) {
        self.bar.set_message(format!("{} {} × {}", block.primitive, row.id, block.threads));
        self.bar.inc(1);
    }

    fn left_out(&mut self, _: &Block, _: &Row) {
        self.left_out += 1;
        self.bar.inc(self.repeat);
    }

    fn record(&mut self, point: Point) -> io::Result<()> {
        let written = self.records.write(&point);
        self.points.push(point);
        written.map_err(|failure| {
            let error = io::Error::other(failure.to_string());
            self.failure = Some(failure);
            error
        })
    }
}
