//! The front door: what `cargo bench -p locks` does, and likewise for the other three crates.
//!
//! One bench target reads criterion's flags once, then runs the wall-clock part over pinned
//! threads and the exact counts under valgrind, over the same rows with the same filter. It says
//! what it left out and why. A second target, `iai`, has the counts confirmed by iai-callgrind; a
//! third, `simulated`, runs the rows on 128 cores of a machine that is not here.
//! What a user types is in docs/benchmarks.md.

mod baseline;
mod counts;
mod features;
mod flags;
mod grid;
#[cfg(feature = "iai")]
mod iai;
mod measured;
mod shift;
mod simulated;
mod wall;

use std::fmt;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use clap::Parser;
use topology::Topology;

use crate::sweep::Row;
use flags::Flags;
use grid::Extent;

#[cfg(feature = "iai")]
pub use iai::{Source, cross_check};
pub use simulated::simulated;

/// One primitive crate's benchmarks.
#[derive(Debug, Clone)]
pub struct Benches {
    /// The crate, which is also the primitive: `locks` say.
    pub package: &'static str,
    /// The bench target that is running.
    pub target: &'static str,
    /// Every row of the crate's table.
    pub rows: Vec<Row>,
    /// The features on which rows depend, and whether this build has them.
    pub features: &'static [(&'static str, bool)],
}

/// Exit code when a benchmark failed.
const FAILED: u8 = 1;

/// Exit code when the command line asks for what cannot be.
const USAGE: u8 = 2;

/// Runs every part, as the command line says. Call it from `main` and return what it gives: 0
/// done, also when a part could not run here; 1 a benchmark was broken; 2 usage.
pub fn run(benches: &Benches) -> ExitCode {
    if let Some(code) = measured::if_asked(&benches.rows) {
        return code;
    }
    let flags = Flags::parse();
    if let Some(code) = features::with_all(benches, &flags) {
        return code;
    }
    let (topology, extent) = match (Topology::this_host(), Extent::from_environment()) {
        (Ok(topology), Ok(extent)) => (topology, extent),
        (Err(error), _) => return refuse(FAILED, &error),
        (_, Err(error)) => return refuse(USAGE, &error),
    };
    let points = extent.points(&topology, &benches.rows);
    let times = extent.times(points.len());
    let points: Vec<_> = points
        .into_iter()
        .filter(|point| flags.selects(&grid::name(&point.row), &point.id()))
        .collect();
    let counted: Vec<Row> = benches
        .rows
        .iter()
        .filter(|row| counts::ids(row).iter().any(|id| flags.selects(&grid::name(row), id)))
        .copied()
        .collect();
    // What the other targets call their benchmarks, which cargo starts after this one.
    let elsewhere = |row: &Row| {
        let name = grid::name(row);
        ["iai", "simulated"].iter().any(|part| flags.selects(&name, &format!("{name}/{part}")))
    };
    let nowhere = points.is_empty() && counted.is_empty() && !benches.rows.iter().any(elsewhere);
    if nowhere && !flags.ignored {
        let filter = flags.filter.as_ref().map_or("", |filter| filter.as_str());
        let rows: Vec<&str> = benches.rows.iter().map(|row| row.id).collect();
        let (package, rows) = (benches.package, rows.join(", "));
        return refuse(
            USAGE,
            &format!("no benchmark of {package} matches `{filter}`; there are {rows}"),
        );
    }
    if flags.list {
        list(points.iter().map(grid::Point::id));
        list(counted.iter().flat_map(counts::ids).filter(|id| flags.selects(row_of(id), id)));
        return ExitCode::SUCCESS;
    }
    if !flags.quiet {
        note(&header(benches, &topology, &flags, extent));
    }
    let broken = wall::run(&topology, &points, times, &flags);
    let broken = counts::run(benches.package, &counted, &flags) + broken;
    match broken {
        0 => ExitCode::SUCCESS,
        1 => refuse(FAILED, &"1 benchmark is broken"),
        broken => refuse(FAILED, &format!("{broken} benchmarks are broken")),
    }
}

/// The row's part of a benchmark's name.
fn row_of(id: &str) -> &str {
    id.rsplit_once('/').map_or(id, |(row, _)| row)
}

/// What the figures must be read with.
fn header(benches: &Benches, topology: &Topology, flags: &Flags, extent: Extent) -> String {
    let cpu = topology.cpuinfo.as_ref().and_then(|info| info.model_name.clone());
    let once = if flags.once() { ", each once" } else { "" };
    format!(
        "{}: {} rows{once}; {}; CPUs {} ({} usable), placement compact; {}; commit {}{}",
        benches.package,
        benches.rows.len(),
        cpu.as_deref().unwrap_or("CPU unknown"),
        topology.usable(),
        topology.parallelism(),
        says("rustc", &["--version"]),
        says("git", &["rev-parse", "--short", "HEAD"]),
        if extent == Extent::Full { "; the whole grid" } else { "" },
    )
}

/// The first line that a program prints, or `unknown`.
fn says(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().ok();
    let output = output.filter(|output| output.status.success());
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    text.and_then(|text| text.lines().next().map(str::to_owned)).unwrap_or("unknown".into())
}

/// Prints names as `cargo bench -- --list` does.
fn list(ids: impl Iterator<Item = String>) {
    ids.for_each(|id| print_line(&format!("{id}: benchmark")));
}

/// Prints a result.
fn print_line(line: &str) {
    // Whoever closed the pipe has read enough.
    let _ = writeln!(std::io::stdout(), "{line}");
}

/// Prints what is about the results.
fn note(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Prints what was left out, and why.
fn skipped(what: &str, reason: &dyn fmt::Display) {
    note(&format!("SKIPPED {what}: {reason}"));
}

fn refuse(code: u8, error: &dyn fmt::Display) -> ExitCode {
    note(&format!("error: {error}"));
    ExitCode::from(code)
}

/// The folder that holds what cargo builds: this program lies in `<target>/release/deps`, or one
/// folder deeper when it was built for a named target.
fn target_directory() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    let marked = program.ancestors().find(|folder| folder.join("CACHEDIR.TAG").exists());
    marked.or_else(|| program.ancestors().nth(3)).map(PathBuf::from)
}
