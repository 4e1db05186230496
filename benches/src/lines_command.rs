//! `manycore lines`: the hot lines of a simulated point, and what it would cost if fields lay apart.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use clap::Args;
use harness::native::Failure as Broken;
use harness::placement::Placement;
use harness::records::Run;
use harness::simulated::child::{Answer, Child, Ended, RANDOMISED};
use harness::simulated::{Apart, Border, Cores, HotLine, Watched, band, metrics};
use harness::sweep::Ground;
use serde_json::{Map, Value};
use topology::Topology;

use crate::cli::{self, WorkloadArgs};
use crate::exit::Failure;
use crate::line_files;
use crate::lines_report::{Figures, Found, WhatIf};
use crate::simulated_command::only;
use crate::simulated_sweep::OPS;
use crate::simulated_words::SimulatedWords;
use crate::stdout::{self, note};
use crate::sweep_command::{catch_signals, header};
use crate::sweep_records::MACHINE;
use crate::target::Target;

/// What stands below the flags.
pub(crate) const HELP: &str = "\
Examples:
  manycore lines counters/packed --threads 8
      counters side by side in one line: false sharing, and what padding would bring
  manycore lines locks/ticket --threads 64 --machine graviton2 --top 3
  manycore lines queues/spsc_ring_unpadded --threads 2 --json
  manycore lines locks/ticket --threads 128 --out results.jsonl
      adds the lines to these records too: `manycore report results.jsonl` draws them
  manycore lines locks/mcs --threads 16 --folded mcs.folded --timeline mcs.json
      stacks for a flame graph, and waits for a trace viewer

Maps show 64 bytes: r read, w written, x both, . untouched. Where bytes of different cores share a
line, the point is simulated once more with these bytes on lines of their own, and the difference is
told. docs/lines.md says what the words mean, and how to look at a program of your own.
Exit codes: 0 done, 1 the point cannot be simulated, 2 usage, 130 interrupted";

/// Waits that are kept for `--timeline`.
const EVENTS: usize = 50_000;

/// Lines for which a run is made with their bytes apart.
const TRIED: usize = 3;

/// The flags.
#[derive(Debug, Args)]
pub(crate) struct LinesArgs {
    /// The variant, as counters/packed or locks/mcs
    #[arg(value_name = "PRIMITIVE/VARIANT")]
    row: String,
    /// Number of threads
    #[arg(long, value_name = "N", default_value_t = 8, allow_hyphen_values = true, value_parser = threads)]
    threads: usize,
    /// The machine, by the name of one that is known here or by its file [default: epyc-7742-2s]
    #[arg(long, value_name = "NAME|FILE")]
    machine: Option<String>,
    /// Cut or grow the machine to so many cores
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = cli::cores)]
    cores: Option<usize>,
    /// Where threads go: compact, scatter, smt-last, same-l3, cross-l3, cross-node; or CPUs in
    /// order, cpus=0,3,5
    #[arg(long, value_name = "POLICY", default_value = "compact")]
    placement: Placement,
    /// Operations of each thread
    #[arg(long, value_name = "N", default_value_t = OPS, allow_hyphen_values = true, value_parser = cli::ops)]
    ops: u64,
    /// Lines to show
    #[arg(long, value_name = "K", default_value_t = 5, allow_hyphen_values = true, value_parser = top)]
    top: usize,
    /// Let threads outnumber cores
    #[arg(long)]
    oversubscribe: bool,
    #[command(flatten)]
    workload: WorkloadArgs,
    /// Seed of everything drawn at random
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Write how long threads waited in which functions to this file, one stack a line, for flame
    /// graphs
    #[arg(long, value_name = "FILE")]
    folded: Option<PathBuf>,
    /// Write what each core waited for and when to this file, as JSON for trace viewers
    #[arg(long, value_name = "FILE")]
    timeline: Option<PathBuf>,
    /// Add the lines to this file of records, for `manycore report`
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Give up after this much real time
    #[arg(long, value_name = "TIME", default_value = "10m", allow_hyphen_values = true, value_parser = cli::budget)]
    timeout: Duration,
    /// Print JSON, everything in one object
    #[arg(long)]
    json: bool,
}

fn threads(text: &str) -> Result<usize, String> {
    cli::size(text, "a number of threads", harness::simulated::MAX_CORES as u64)
}

fn top(text: &str) -> Result<usize, String> {
    cli::size(text, "a number of lines", 256)
}

/// Runs the command.
///
/// # Errors
/// When the command line names what does not exist, or the point cannot be simulated.
pub(crate) fn run(arguments: &LinesArgs) -> Result<(), Failure> {
    let (primitive, variant) = named(&arguments.row)?;
    only(primitive, variant)?;
    arguments.workload.check(&[primitive])?;
    let point = Point {
        arguments,
        target: Target::of(arguments.machine.as_deref(), arguments.cores)?,
        interrupted: Arc::new(AtomicBool::new(false)),
    };
    point.check_threads()?;
    catch_signals(&point.interrupted)?;
    let mut records = arguments.out.as_deref().map(line_files::records).transpose()?;
    let trace = (arguments.folded.is_some() || arguments.timeline.is_some()).then_some(EVENTS);
    let watched = point.watched(&[], trace)?;
    let figures = point.figures(&watched);
    if let Some(file) = &arguments.folded {
        line_files::folded(file, &watched.lines)?;
    }
    if let Some(file) = &arguments.timeline {
        line_files::timeline(file, &watched.lines)?;
    }
    let mut what_ifs = Vec::new();
    for line in watched.lines.lines.iter().take(arguments.top).filter(|line| worth_it(line)) {
        if let (Some(apart), true) = (&line.apart, what_ifs.len() < TRIED) {
            let better = point.watched(std::slice::from_ref(apart), None)?;
            let there = better.lines.lines.iter().find(|other| other.address == line.address);
            let same = there.is_some_and(|there| is_same(there, line));
            let figures = same.then(|| point.figures(&better));
            what_ifs.push(WhatIf { line: line.address, figures });
        }
    }
    let found = Found {
        row: &arguments.row,
        machine: point.target.name(),
        threads: arguments.threads,
        placement: arguments.placement.to_string(),
        ops: arguments.ops,
        seed: arguments.seed,
        pairs: point.target.machine.adjacent_line_prefetch(),
        figures,
        band: point.band()?,
        lines: &watched.lines,
        what_ifs,
    };
    if let Some(records) = &mut records {
        let mut header = point.header()?;
        line_files::append(records, &header)?;
        let run = std::mem::take(&mut header.run);
        line_files::append(records, &found.record(run, point.workload(), arguments.top))?;
    }
    stdout::print(&match arguments.json {
        true => found.json(arguments.top).to_string(),
        false => found.text(arguments.top),
    })
}

/// Whether a line came often enough from other cores for another run.
fn worth_it(line: &HotLine) -> bool {
    line.transfers.total() >= 2 * line.cores.len() as u64
}

/// Whether the same code on the same cores touched a line in two runs: then it holds the same object
/// in both.
fn is_same(one: &HotLine, other: &HotLine) -> bool {
    let cpus = |line: &HotLine| line.cores.iter().map(|core| core.cpu).collect::<Vec<_>>();
    let used = |rip: u64| other.places.iter().any(|place| place.rip == rip);
    cpus(one) == cpus(other) && one.places.iter().any(|place| used(place.rip))
}

/// Splits `locks/mcs`.
fn named(row: &str) -> Result<(&str, &str), Failure> {
    let wrong = || Failure::Usage(format!("`{row}` names no variant; write locks/mcs, say"));
    let (primitive, variant) = row.split_once('/').ok_or_else(wrong)?;
    let several = primitive.is_empty() || variant.is_empty() || variant.contains(['*', '?']);
    if several { Err(wrong()) } else { Ok((primitive, variant)) }
}

/// The point that is looked at.
struct Point<'a> {
    arguments: &'a LinesArgs,
    target: Target,
    interrupted: Arc<AtomicBool>,
}

impl Point<'_> {
    /// The cores in the order in which threads take them.
    fn order(&self) -> Result<Vec<u32>, Failure> {
        let order = Cores::of(&self.target.machine).order(&self.arguments.placement);
        order.map_err(|reason| Failure::Usage(reason.to_string()))
    }

    /// The factor by which times may be off.
    fn band(&self) -> Result<f64, Failure> {
        let cores = self.order()?;
        let used = &cores[..self.arguments.threads.min(cores.len())];
        let (primitive, _) = named(&self.arguments.row)?;
        Ok(band(&self.target.name(), primitive, Border::of(&self.target.machine, used)))
    }

    /// Looks whether there is a core for every thread.
    fn check_threads(&self) -> Result<(), Failure> {
        let LinesArgs { threads, oversubscribe, .. } = self.arguments;
        let order = self.order()?;
        if *threads > order.len() && !oversubscribe {
            return Err(Failure::Usage(format!(
                "{threads} threads on {} cores of {}; ask for fewer, or add --oversubscribe",
                order.len(),
                self.target.name()
            )));
        }
        Ok(())
    }

    /// Simulates it in a process of its own.
    fn watched(&self, apart: &[Apart], trace: Option<usize>) -> Result<Watched, Failure> {
        let failed = |text: String| Failure::Failed(format!("{}: {text}", self.arguments.row));
        let program = std::env::current_exe()
            .map_err(|error| failed(format!("cannot find this program: {error}")))?;
        let words = self.words(apart, trace)?;
        let stdin = self.target.stdin()?;
        let child =
            Child { program: &program, arguments: &words, environment: &[], stdin: stdin.as_ref() };
        let said = match child.run(self.arguments.timeout, &self.interrupted) {
            Ended::Answered(said) => said,
            Ended::Failed(reason) => return Err(failed(reason)),
            Ended::Killed | Ended::Nothing => {
                return Err(Failure::Interrupted("interrupted".into()));
            }
        };
        let answer = Answer::<Watched>::parse(&said).map_err(failed)?;
        if !answer.fixed_addresses {
            note(RANDOMISED);
        }
        answer.outcome().map_err(|broken| match broken {
            Broken::Broken(reason) => failed(reason),
            Broken::Unavailable(reason) => failed(reason.to_string()),
        })
    }

    /// The header of the records.
    fn header(&self) -> Result<Run, Failure> {
        let host = Topology::this_host().map_err(|error| Failure::Failed(error.to_string()))?;
        let mut header = header(&host);
        header.other.insert(MACHINE.into(), self.target.description());
        Ok(header)
    }

    /// What the threads do, in the words of a point.
    fn workload(&self) -> Map<String, Value> {
        let LinesArgs { row, workload, ops, .. } = self.arguments;
        let primitive = row.split('/').next().unwrap_or_default();
        let mut words = workload.workload().words(primitive);
        words.insert("ops".into(), (*ops).into());
        words
    }

    fn figures(&self, watched: &Watched) -> Figures {
        Figures::of(&metrics(&watched.measured, &self.target.machine, 1.0))
    }

    /// The hidden command for it.
    fn words(&self, apart: &[Apart], trace: Option<usize>) -> Result<Vec<String>, Failure> {
        let LinesArgs { row, threads, placement, ops, seed, workload, .. } = self.arguments;
        let (primitive, variant) = named(row)?;
        let apart =
            serde_json::to_string(apart).map_err(|error| Failure::Failed(error.to_string()))?;
        let words = SimulatedWords {
            target: &self.target,
            primitive,
            variant,
            threads: *threads,
            placement,
            ops: *ops,
            seed: *seed,
            workload: &workload.workload(),
        };
        let trace = trace.map(|most| ["--trace".to_owned(), most.to_string()]);
        let more = ["--watch".to_owned(), apart].into_iter().chain(trace.into_iter().flatten());
        Ok(words.words().into_iter().chain(more).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_named_by_primitive_and_variant() {
        assert_eq!(named("locks/mcs").unwrap(), ("locks", "mcs"));
        for bad in ["locks", "", "/", "locks/", "/mcs", "locks/*", "locks/t?s"] {
            assert!(named(bad).is_err(), "{bad}");
        }
    }
}
