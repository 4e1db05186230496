//! `manycore sweep`: the main job.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use harness::callgrind::Callgrind;
use harness::clock::Clock;
use harness::doctor::{Finding, Live, Look, Subject, Verdict, examine};
use harness::host::{self, Build};
use harness::native::Native;
use harness::placement::{Placement, ThreadCounts};
use harness::records::{Run, SCHEMA};
use harness::sweep::{self, Plan, Settings};
use harness::workload::{Memory, Workload};
use serde_json::{Map, Value, json};
use topology::Topology;

use crate::cli::{OPS, SweepArgs, load};
use crate::doctor_command::names;
use crate::exit::Failure;
use crate::stdout::{self, note};
use crate::sweep_follower::Follower;
use crate::sweep_records::{Records, TOPOLOGY};
use crate::{count, count_command, rows, select, simulated_sweep, table};

/// The shortest measured time of a point to which a budget may shorten it.
const SHORTEST_POINT: Duration = Duration::from_millis(50);

/// The measured time of a point, and its repetitions.
const POINT: Duration = Duration::from_millis(500);
const REPEAT: u64 = 5;

const BUILD: Build = Build { rustc: env!("MANYCORE_RUSTC"), commit: env!("MANYCORE_COMMIT") };

/// Runs the command.
///
/// # Errors
/// When the command line asks for what cannot be, the records cannot be written, or the sweep is
/// interrupted.
pub(crate) fn run(arguments: SweepArgs) -> Result<(), Failure> {
    let topology = Topology::this_host().map_err(|error| Failure::Failed(error.to_string()))?;
    let mut settings = settings(&arguments)?;
    match arguments.engine.as_str() {
        "callgrind" => return exact_counts(&arguments, &settings, &topology),
        "simulated" => return simulated_sweep::run(&arguments, settings, &topology),
        _ => {}
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
    let mut records = Records::open(&arguments)?;
    let mut native = Native::new(topology);
    let mut header =
        Run { doctor: doctor(native.topology(), native.clock()), ..header(native.topology()) };
    header.other.insert(TOPOLOGY.into(), json!(native.topology().plan()));
    let skip = records.measured_already(&arguments, &header)?;
    records.write(&header)?;
    let about = Some(plan.duration(settings.point, settings.repeat));
    let repeat = (settings.repeat, about);
    let mut follower = Follower::new(&arguments, &plan, repeat, records, interrupted);
    let outcome = sweep::run(&mut native, &plan, &settings, &header.run, &skip, &mut follower);
    follower.finish(outcome, &plan)
}

/// Refuses flags that the engine does not heed.
fn check_engine(arguments: &SweepArgs) -> Result<(), Failure> {
    const ENGINES: [&str; 3] = ["native", "callgrind", "simulated"];
    let engine = arguments.engine.as_str();
    if !ENGINES.contains(&engine) {
        return Err(Failure::Usage(format!(
            "unknown engine `{engine}`; there are {}",
            ENGINES.join(", ")
        )));
    }
    let given: [(bool, &str, &[&str]); 12] = [
        (arguments.machine.is_some(), "machine", &["simulated"]),
        (arguments.cores.is_some(), "cores", &["simulated"]),
        (arguments.timeout.is_some(), "timeout", &["simulated"]),
        (arguments.ops.is_some(), "ops", &["simulated", "callgrind"]),
        (arguments.seconds.is_some(), "seconds", &["native"]),
        (arguments.repeat.is_some(), "repeat", &["native"]),
        (arguments.budget.is_some(), "budget", &["native", "simulated"]),
        (arguments.latency.is_some(), "latency", &["native", "simulated"]),
        (arguments.rate.is_some(), "rate", &["native", "simulated"]),
        (!arguments.placement.is_empty(), "placement", &["native", "simulated"]),
        (!arguments.memory.is_empty(), "memory", &["native", "simulated"]),
        (arguments.oversubscribe, "oversubscribe", &["native", "simulated"]),
    ];
    let idle = given.iter().find(|(given, _, engines)| *given && !engines.contains(&engine));
    let Some((_, flag, engines)) = idle else { return Ok(()) };
    Err(Failure::Usage(format!("--{flag} is for --engine {}", engines.join(" or "))))
}

pub(crate) fn settings(arguments: &SweepArgs) -> Result<Settings, Failure> {
    check_engine(arguments)?;
    let latency = load(arguments.latency, arguments.rate).map_err(Failure::Usage)?;
    let chosen = select::variants(rows::all(), &arguments.primitive, &arguments.variant)?;
    let primitives: Vec<&str> = chosen.iter().map(|variant| variant.row.primitive).collect();
    arguments.workload.check(&primitives)?;
    let mut placements: Vec<Placement> =
        arguments.placement.iter().flat_map(|named| named.0.clone()).collect();
    if placements.is_empty() {
        placements.push(Placement::Compact);
    }
    let mut memories = arguments.memory.clone();
    if memories.is_empty() {
        memories.push(Memory::Local);
    }
    Ok(Settings {
        rows: chosen.iter().map(|variant| variant.row).collect(),
        threads: threads(arguments),
        placements,
        memories,
        workload: Workload { latency, ..arguments.workload.workload() },
        point: arguments.seconds.unwrap_or(POINT),
        repeat: arguments.repeat.unwrap_or(REPEAT),
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
    let engines = count::Engines { callgrind: Some(callgrind), simulator: false };
    let header = header(topology);
    let mut records = Records::open(arguments)?;
    let done = records.measured_already(arguments, &header)?;
    records.write(&header)?;
    let interrupted = Arc::new(AtomicBool::new(false));
    catch_signals(&interrupted)?;
    let ops = arguments.ops.unwrap_or(OPS);
    let mut counted = Vec::new();
    for row in &settings.rows {
        if interrupted.load(Ordering::Relaxed) {
            let kept = counted.len();
            return Err(Failure::Interrupted(format!("interrupted; kept {kept} points")));
        }
        if done.contains(&sweep::key(&count::blank(
            "callgrind",
            row,
            &settings.workload,
            &header.run,
        ))) {
            continue;
        }
        let row = count::row(&engines, row, &settings.workload, ops, &header.run);
        row.points.iter().try_for_each(|point| records.write(point))?;
        counted.push(row);
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
pub(crate) fn points(count: usize) -> String {
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
    list_points(plan, as_json)?;
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

/// Prints each point of a plan.
pub(crate) fn list_points(plan: &Plan, as_json: bool) -> Result<(), Failure> {
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
    stdout::print(&lines.join("\n"))
}

pub(crate) fn report_same_as_before(plan: &Plan) {
    for (placement, blocks) in &plan.same_as_before {
        note(&format!(
            "note: placement {placement} gives the same CPUs as one before it at {blocks} of the \
             thread counts; measured once"
        ));
    }
}

/// The first signal ends the sweep after the repetition under way, a second one at once.
pub(crate) fn catch_signals(interrupted: &Arc<AtomicBool>) -> Result<(), Failure> {
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

/// Examines the host briefly, says what is bad, and gives everything for the record.
pub(crate) fn doctor(host: &Topology, clock: &Clock) -> Vec<Value> {
    let live = Live::measured(host, clock, Look::Brief);
    let findings = match Subject::new(host, Ok(live)) {
        Ok(subject) => examine(&subject),
        Err(reason) => {
            note(&format!("note: the host could not be examined: {reason}"));
            return vec![];
        }
    };
    let unfit = findings.iter().filter(|finding| finding.verdict == Verdict::Unfit);
    unfit.for_each(|finding| note(&format!("note: unfit: {}", finding.message())));
    let warnings = names(&findings, Verdict::Warn);
    if !warnings.is_empty() {
        note(&format!("note: warnings about this host, see `manycore doctor`: {warnings}"));
    }
    findings.iter().map(Finding::to_json).collect()
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
        doctor: vec![],
        other: Map::new(),
    }
}
