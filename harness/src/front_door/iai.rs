//! The cross-check: iai-callgrind counts the same loops, and must come to the same figures.
//!
//! iai-callgrind's own macros fix the rows at compile time and leave no way to choose some, and
//! its runner wants to be installed. So the benchmarks are given to the runner as data, and this
//! very program is the runner: it is started once more with the arguments that the runner expects.
//! The two ways to count share the loop and nothing else: iai-callgrind collects by a function's
//! name, in one process a run, and sums the functions up; ours collects between client requests,
//! both runs in one process, and reads totals.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Command, ExitCode, Stdio};

use clap::Parser;
use iai_callgrind::{Callgrind as Tool, EntryPoint, LibraryBenchmarkConfig, bincode};
use iai_callgrind_runner::api::{
    LibraryBenchmark, LibraryBenchmarkBench, LibraryBenchmarkGroup, LibraryBenchmarkGroups,
    ValgrindTool,
};
use serde_json::Value;

use super::flags::Flags;
use super::measured::{self, OPS};
use super::{Benches, FAILED, counts, features, grid, list, note, print_line, refuse, skipped};
use crate::callgrind::Callgrind;
use crate::counted::Counted;
use crate::sweep::Row;
use crate::workload::Workload;

/// The version of both crates; the runner refuses any other.
const VERSION: &str = "0.16.1";

/// The first argument with which the runner starts a benchmark; its group and the positions of the
/// function and of the benchmark follow.
const RUN: &str = "--iai-run";

/// The events compared: instructions, and locked instructions and exchanges.
const EVENTS: [&str; 2] = ["Ir", "Ge"];

/// Where the bench target is, which the runner looks up at cargo. Made in the target itself.
#[derive(Debug, Clone, Copy)]
pub struct Source {
    /// `env!("CARGO_MANIFEST_DIR")`.
    pub manifest_directory: &'static str,
    /// `file!()`.
    pub file: &'static str,
}

/// Counts each row by iai-callgrind too and prints both figures. Call it from `main` and return
/// what it gives: 0 they are equal, or nothing could be counted here; 1 they differ; 2 usage.
pub fn cross_check(benches: &Benches, source: Source) -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match &words[..] {
        [version, kind, ..] if version == VERSION && kind == "--lib-bench" => return runner(),
        [run, group, _, at, ..] if run == RUN => return benchmark(&benches.rows, group, at),
        _ => {}
    }
    if let Some(code) = measured::if_asked(&benches.rows) {
        return code;
    }
    let flags = Flags::parse();
    let id = |row: &Row| format!("{}/iai", grid::name(row));
    let rows = benches.rows.iter().filter(|row| flags.selects(&grid::name(row), &id(row)));
    let rows: Vec<Row> = rows.copied().collect();
    if flags.ignored {
        return ExitCode::SUCCESS;
    }
    if let Some(reason) = no_occasion(&flags) {
        skipped("cross-check by iai-callgrind", &reason);
        return ExitCode::SUCCESS;
    }
    if let Some(code) = features::with_all(benches, &flags) {
        return code;
    }
    if flags.list {
        list(rows.iter().map(id));
        return ExitCode::SUCCESS;
    }
    if rows.is_empty() {
        note("cross-check by iai-callgrind: the filter leaves no row of this part");
        return ExitCode::SUCCESS;
    }
    let callgrind = match Callgrind::find() {
        Ok(callgrind) => callgrind,
        Err(reason) => {
            skipped("cross-check by iai-callgrind", &reason);
            return ExitCode::SUCCESS;
        }
    };
    compare(benches, source, &callgrind, &rows, &flags)
}

/// Says why the flags leave nothing to check.
fn no_occasion(flags: &Flags) -> Option<&'static str> {
    if flags.profile_time.is_some() {
        Some("--profile-time is for the wall clock: counts have no profile")
    } else if flags.load_baseline.is_some() {
        Some("--load-baseline measures nothing")
    } else if flags.once() && !flags.list {
        Some("nothing is counted when each row runs once")
    } else {
        None
    }
}

fn compare(
    benches: &Benches,
    source: Source,
    callgrind: &Callgrind,
    rows: &[Row],
    flags: &Flags,
) -> ExitCode {
    if !flags.quiet {
        let (package, version) = (benches.package, &callgrind.version);
        note(&format!("{package}: counts by ours and by iai-callgrind {VERSION}, {version}"));
    }
    let mut ours = BTreeMap::new();
    let mut countable = Vec::new();
    for (row, outcome) in rows.iter().zip(counts::count_all(callgrind, rows)) {
        match outcome {
            Ok(counts) => {
                ours.insert(row.id, [counts.instructions_per_op, counts.rmw_per_op]);
                countable.push(*row);
            }
            Err(reason) => skipped(&grid::name(row), &reason),
        }
    }
    let theirs = match by_iai(benches, source, &countable) {
        Ok(theirs) => theirs,
        Err(error) => return refuse(FAILED, &error),
    };
    let mut different = 0;
    if !flags.bencher() {
        let [ours, iai] = ["ours", "iai"].map(|who| format!("{who:>12} {:>8}", "RMWs"));
        print_line(&format!("{:<32} {ours} {iai}  equal", "instructions/op"));
    }
    for row in &countable {
        let ours = ours.get(row.id).copied().unwrap_or([f64::NAN; 2]);
        let iai = [0, 1].map(|at| per_op(&theirs, row, at));
        let equal = ours == iai;
        different += usize::from(!equal);
        let verdict = if equal { "yes" } else { "NO" };
        let name = grid::name(row);
        print_line(&if flags.bencher() {
            format!("test {name}/iai ... bench: {:>11} instr/op (+/- {})", iai[0], ours[0] - iai[0])
        } else {
            let columns = |of: [f64; 2]| format!("{:>12} {:>8}", of[0], of[1]);
            format!("{name:<32} {} {}  {verdict}", columns(ours), columns(iai))
        });
    }
    match different {
        0 => ExitCode::SUCCESS,
        different => refuse(FAILED, &format!("{different} rows are counted differently")),
    }
}

/// Events of the runs, by row, run (0: n operations, 1: 2n) and event.
type Events = BTreeMap<(String, usize), [u64; 2]>;

/// What an operation costs by iai-callgrind's figures; not a number if one is missing.
fn per_op(events: &Events, row: &Row, event: usize) -> f64 {
    let of_run = |run: usize| events.get(&(row.id.to_owned(), run)).map(|events| events[event]);
    match (of_run(0), of_run(1)) {
        (Some(once), Some(twice)) if twice >= once => (twice - once) as f64 / OPS as f64,
        _ => f64::NAN,
    }
}

/// Lets iai-callgrind's runner run each row with n and with 2n operations.
fn by_iai(benches: &Benches, source: Source, rows: &[Row]) -> Result<Events, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let encoded = bincode::serialize(&groups(rows)).map_err(|error| error.to_string())?;
    let mut runner = Command::new(&program)
        .args([VERSION, "--lib-bench", source.manifest_directory, benches.package, source.file])
        .args([benches.target.as_ref(), program.as_os_str(), encoded.len().to_string().as_ref()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("{}: {error}", program.display()))?;
    if let Some(mut stdin) = runner.stdin.take() {
        // The runner reads all of it before it writes anything.
        stdin.write_all(&encoded).map_err(|error| format!("iai-callgrind's runner: {error}"))?;
    }
    let output = runner.wait_with_output().map_err(|error| error.to_string())?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("iai-callgrind's runner ended with {}: {said}", output.status));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().filter(|line| line.starts_with('{')).map(events).collect()
}

/// The benchmarks as the runner wants them: a group a row, in it one function with two runs.
fn groups(rows: &[Row]) -> LibraryBenchmarkGroups {
    let mut tool = Tool::with_args(["--collect-bus=yes", "--cache-sim=no"]);
    tool.entry_point(EntryPoint::Custom(format!("*{}*", ENTRY)));
    let mut config = LibraryBenchmarkConfig::default();
    config.tool(tool).env("GLIBC_TUNABLES", "glibc.pthread.rseq=0");
    let run = |id: &str| LibraryBenchmarkBench {
        args: None,
        config: None,
        function_name: "counted".into(),
        id: Some(id.into()),
    };
    let group = |row: &Row| LibraryBenchmarkGroup {
        id: row.id.into(),
        library_benchmarks: vec![LibraryBenchmark { benches: RUNS.map(run).into(), config: None }],
        ..LibraryBenchmarkGroup::default()
    };
    let home = super::target_directory().unwrap_or_default().join("iai");
    LibraryBenchmarkGroups {
        command_line_args: vec![
            "--output-format=json".into(),
            format!("--home={}", home.display()),
        ],
        config: config.into(),
        default_tool: ValgrindTool::Callgrind,
        groups: rows.iter().map(group).collect(),
        has_setup: false,
        has_teardown: false,
    }
}

/// The names of the runs with n and with 2n operations.
const RUNS: [&str; 2] = ["n", "twice"];

/// Reads one line of the runner's output.
fn events(line: &str) -> Result<((String, usize), [u64; 2]), String> {
    let bad = |what: &str| format!("no {what} in what iai-callgrind's runner says: {line}");
    let summary: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
    // `program::row::counted`
    let path = summary["module_path"].as_str().ok_or_else(|| bad("module_path"))?;
    let row = path.rsplit("::").nth(1).ok_or_else(|| bad("row"))?;
    let id = summary["id"].as_str().ok_or_else(|| bad("id"))?;
    let run = RUNS.iter().position(|run| *run == id).ok_or_else(|| bad("run"))?;
    let total = &summary["profiles"][0]["summaries"]["total"]["summary"]["Callgrind"];
    let mut found = [0; 2];
    for (value, event) in found.iter_mut().zip(EVENTS) {
        // `Left` is a first run, `Both` one with the figures of the last time after its own.
        let metrics = &total[event]["metrics"];
        let now = metrics.get("Left").or_else(|| metrics["Both"].get(0));
        let now = now.and_then(|now| now["Int"].as_u64());
        *value = now.ok_or_else(|| bad(event))?;
    }
    Ok(((row.to_owned(), run), found))
}

/// Is iai-callgrind's runner.
fn runner() -> ExitCode {
    match iai_callgrind_runner::runner::run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => refuse(FAILED, &error),
    }
}

/// Runs what the runner asks for under valgrind.
fn benchmark(rows: &[Row], group: &str, at: &str) -> ExitCode {
    let row = rows.iter().find(|row| row.id == group);
    let (Some(row), Ok(at)) = (row, at.parse::<u64>()) else {
        return refuse(FAILED, &format!("no row {group} or no run {at}"));
    };
    let outcome = Counted::prepare(row.make, &Workload::default()).and_then(|mut work| {
        // What is touched or initialised on first use is outside.
        work.run(OPS);
        counted(&mut work, OPS * (at + 1));
        work.finish()
    });
    outcome.map_or_else(measured::report, |()| ExitCode::SUCCESS)
}

/// Ends the name of [`counted`] as valgrind sees it.
const ENTRY: &str = "front_door::iai::counted";

/// What iai-callgrind collects. Not inlined: it is found by its name.
#[inline(never)]
fn counted(work: &mut Counted, ops: u64) {
    work.run(ops);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_runner() {
        let line = |metrics: &str| {
            format!(
                r#"{{"module_path":"iai::tas::counted","id":"twice","profiles":[{{"summaries":
                {{"total":{{"summary":{{"Callgrind":{{"Ir":{{"metrics":{metrics}}},
                "Ge":{{"metrics":{{"Left":{{"Int":7}}}}}}}}}}}}}}}}]}}"#
            )
        };
        let expected = (("tas".to_owned(), 1), [5, 7]);
        assert_eq!(events(&line(r#"{"Left":{"Int":5}}"#)).unwrap(), expected);
        assert_eq!(events(&line(r#"{"Both":[{"Int":5},{"Int":4}]}"#)).unwrap(), expected);
        assert!(events(&line(r#"{"Right":{"Int":5}}"#)).is_err());
        assert!(events("{}").is_err());
    }
}
