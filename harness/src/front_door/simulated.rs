//! The simulated part: each row on 1 to 128 cores of a machine that is not here.
//!
//! A bench target of its own, because its allocator must not lie under rows that are timed. Each
//! point runs in a process of its own: this very program, started once more.

use std::io;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;

use super::flags::Flags;
use super::grid::{self, Extent};
use super::{Benches, FAILED, USAGE, features, list, note, print_line, refuse, says, skipped};
use crate::native::Failure;
use crate::placement::Placement;
use crate::records::Metric;
use crate::report::number::short;
use crate::simulated::child::{Answer, Ended, Follow, Pool, RANDOMISED};
use crate::simulated::{
    Border, Cores, DEFAULT_MACHINE, Machine, Measured, Request, band, measure, metrics,
};
use crate::sweep::{Ground, Row};
use crate::workload::Workload;

/// The first argument of the hidden command; the row's name, the cores and the operations follow.
const WORD: &str = "--simulated-row";

/// Numbers of cores.
const CORES: [usize; 6] = [1, 2, 8, 32, 64, 128];
const ALL_CORES: [usize; 8] = [1, 2, 4, 8, 16, 32, 64, 128];

/// Operations of each thread: so many that all rows of a crate take less than a minute on two CPUs.
const OPS: u64 = 256;
const MORE_OPS: u64 = 1024;

/// Operations when each row only shall run, on two cores.
const OPS_OF_A_TEST: u64 = 16;

/// How long a point may take.
const LIMIT: Duration = Duration::from_secs(300);

/// Simulates each row. Call it from `main` of a program that declares
/// [`EngineHeap`](crate::simulated::EngineHeap), and return what it gives: 0 done, also when a point
/// could not be simulated; 1 one is broken; 2 usage.
pub fn simulated(benches: &Benches) -> ExitCode {
    if let Some(code) = if_asked(&benches.rows) {
        return code;
    }
    let flags = Flags::parse();
    if flags.ignored {
        return ExitCode::SUCCESS;
    }
    if let Some(reason) = no_occasion(&flags) {
        skipped("simulated", &reason);
        return ExitCode::SUCCESS;
    }
    if let Some(code) = features::with_all(benches, &flags) {
        return code;
    }
    let extent = match Extent::from_environment() {
        Ok(extent) => extent,
        Err(error) => return refuse(USAGE, &error),
    };
    let rows = benches.rows.iter().filter(|row| flags.selects(&grid::name(row), &id(row)));
    let rows: Vec<Row> = rows.copied().collect();
    if flags.list {
        list(rows.iter().map(id));
        return ExitCode::SUCCESS;
    }
    if rows.is_empty() {
        note("simulated: the filter leaves no row of this part");
        return ExitCode::SUCCESS;
    }
    match simulate(&rows, &flags, extent) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(broken) => refuse(FAILED, &format!("{broken} simulated points are broken")),
        Err(error) => refuse(FAILED, &error),
    }
}

/// The name of a row in this part.
fn id(row: &Row) -> String {
    format!("{}/simulated", grid::name(row))
}

/// Says why the flags leave nothing to simulate.
fn no_occasion(flags: &Flags) -> Option<&'static str> {
    if flags.profile_time.is_some() {
        Some("--profile-time is for the wall clock: what is simulated has no profile")
    } else if flags.load_baseline.is_some() {
        Some("--load-baseline measures nothing")
    } else {
        None
    }
}

fn machine() -> Result<Machine, String> {
    Machine::named(DEFAULT_MACHINE).map_err(|error| error.to_string())
}

/// Runs the hidden command if the command line holds it.
fn if_asked(rows: &[Row]) -> Option<ExitCode> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [word, id, cores, ops] = &words[..] else { return None };
    if word != WORD {
        return None;
    }
    let row = rows.iter().find(|row| row.id == *id);
    let (Some(row), Ok(cores), Ok(ops)) = (row, cores.parse(), ops.parse()) else {
        return Some(refuse(USAGE, &format!("no row {id}, or {cores} or {ops} is no number")));
    };
    let answer = Answer::new(point(row, cores, ops));
    print_line(&serde_json::to_string(&answer).unwrap_or_default());
    // After a run that was stopped, threads of it stand where they were for ever.
    std::process::exit(0)
}

fn point(row: &Row, threads: usize, ops: u64) -> Result<Measured, Failure> {
    let machine = machine().map_err(Failure::Broken)?;
    let mut cores = Cores::of(&machine).order(&Placement::Compact).map_err(Failure::Unavailable)?;
    cores.truncate(threads);
    let workload = Workload::default();
    measure(
        row.make,
        &Request { machine: &machine, cores: &cores, ops, seed: 1, workload: &workload },
    )
}

/// Simulates all points of the rows, several at once, and gives the number of broken ones.
fn simulate(rows: &[Row], flags: &Flags, extent: Extent) -> Result<usize, String> {
    let machine = machine()?;
    let (cores, ops): (&[usize], u64) = match extent {
        _ if flags.once() => (&[2], OPS_OF_A_TEST),
        Extent::Short => (&CORES, OPS),
        Extent::Full => (&ALL_CORES, MORE_OPS),
    };
    let program = std::env::current_exe().map_err(|error| format!("this program: {error}"))?;
    let points: Vec<(Row, usize)> =
        rows.iter().flat_map(|row| cores.iter().map(|&cores| (*row, cores))).collect();
    let words = |(row, cores): &(Row, usize)| {
        Some(vec![WORD.into(), row.id.into(), cores.to_string(), ops.to_string()])
    };
    let jobs: Vec<Option<Vec<String>>> = points.iter().map(words).collect();
    if !flags.quiet && !flags.once() {
        note(&format!(
            "simulated: {} rows, {ops} operations of each thread, placement compact, on {} \
             ({}); {}",
            rows.len(),
            machine.name(),
            machine.title(),
            says("rustc", &["--version"]),
        ));
    }
    let mut printer = Printer { machine, points, flags, left_out: Vec::new(), broken: 0, ran: 0 };
    printer.head();
    let outcome = Pool::new(&program, None, LIMIT).run(&jobs, &mut printer);
    outcome.map_err(|error| error.to_string())?;
    if !flags.quiet {
        let (ran, all) = (printer.ran, printer.points.len());
        note(&format!("simulated: {ran} of {all} points ran"));
    }
    Ok(printer.broken)
}

/// Prints points in their order.
struct Printer<'a> {
    machine: Machine,
    points: Vec<(Row, usize)>,
    flags: &'a Flags,
    /// Numbers of cores at which the row under way could not be simulated, and why not at the
    /// first of them.
    left_out: Vec<(usize, String)>,
    broken: usize,
    ran: usize,
}

/// Columns after the name and the number of cores: a metric and its heading. Counts are those of an
/// operation.
const COLUMNS: [(&str, &str); 6] = [
    ("ns_per_op", "ns/op"),
    ("fairness_jain", "fairness"),
    ("instructions_per_op", "instructions"),
    ("transfers_per_op.", "transfers"),
    ("transfers_per_op.cross_socket", "cross-socket"),
    ("syscalls_per_op", "syscalls"),
];

impl Follow for Printer<'_> {
    fn stop(&mut self) -> bool {
        false
    }

    fn ended(&mut self, _: usize) {}

    fn result(&mut self, job: usize, ended: Ended) -> io::Result<()> {
        let (row, cores) = self.points[job];
        let answer = match ended {
            Ended::Answered(text) => Answer::<Measured>::parse(&text).map_err(Failure::Broken),
            Ended::Failed(reason) => Err(Failure::Broken(reason)),
            Ended::Killed | Ended::Nothing => Err(Failure::Broken("not simulated".into())),
        };
        if job == 0 && answer.as_ref().is_ok_and(|answer| !answer.fixed_addresses) {
            note(&format!("simulated: {RANDOMISED}"));
        }
        match answer.and_then(Answer::outcome) {
            Ok(measured) => {
                self.ran += 1;
                self.print(&row, cores, &measured);
            }
            Err(Failure::Unavailable(reason)) => self.left_out.push((cores, reason.to_string())),
            Err(Failure::Broken(reason)) => {
                note(&format!("BROKEN {} at {cores} cores: {reason}", id(&row)));
                self.broken += 1;
            }
        }
        if self.points.get(job + 1).is_none_or(|(next, _)| next.id != row.id) {
            self.say_left_out(&row);
        }
        Ok(())
    }
}

impl Printer<'_> {
    fn head(&self) {
        if self.flags.bencher() || self.flags.once() {
            return;
        }
        let heads: Vec<String> = COLUMNS.iter().map(|(_, head)| format!("{head:>14}")).collect();
        print_line(&format!("{:<36} cores {}  off up to", "simulated", heads.concat()));
    }

    fn print(&self, row: &Row, cores: usize, measured: &Measured) {
        let id = id(row);
        let cpus: Vec<u32> = (0..cores as u32).collect();
        let border = Border::of(&self.machine, &cpus);
        let band = band(self.machine.name(), row.primitive, border);
        let figures = metrics(measured, &self.machine, band);
        let value = |name: &str| figures.get(name).and_then(Metric::value);
        if self.flags.once() {
            if !self.flags.quiet {
                print_line(&format!("Testing {id}\nSuccess\n"));
            }
            return;
        }
        if self.flags.bencher() {
            let ns = value("ns_per_op").unwrap_or(f64::NAN);
            let off = ns * band - ns;
            print_line(&format!(
                "test {id}/cores={cores} ... bench: {ns:>11.2} ns/iter (+/- {off:.2})"
            ));
            return;
        }
        let cell = |(name, _): &(&str, &str)| {
            let value = if name.ends_with('.') {
                let members = figures.iter().filter(|(member, _)| member.starts_with(name));
                members.map(|(_, metric)| metric.value()).sum::<Option<f64>>()
            } else {
                value(name)
            };
            format!("{:>14}", value.map_or_else(|| "-".into(), short))
        };
        let cells: Vec<String> = COLUMNS.iter().map(cell).collect();
        print_line(&format!("{id:<36} {cores:>5} {} {band:>9.2}", cells.concat()));
    }

    fn say_left_out(&mut self, row: &Row) {
        let left_out = std::mem::take(&mut self.left_out);
        let Some((_, reason)) = left_out.first() else { return };
        let cores: Vec<String> = left_out.iter().map(|(cores, _)| cores.to_string()).collect();
        skipped(&format!("{} at {} cores", id(row), cores.join(", ")), reason);
    }
}
