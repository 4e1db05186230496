//! `manycore calibrate`: this host as a machine file.

use std::fmt::Display;
use std::fs;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use clap::Args;
use comfy_table::{CellAlignment, Table, presets};
use harness::calibrate::{Calibration, Effort, calibrate};
use harness::report::number::short;
use harness::simulated::{FigureValue, Machine};
use serde_json::json;
use topology::Topology;

use crate::exit::Failure;
use crate::machines_command::json_value;
use crate::stdout;

pub(crate) const HELP: &str = "\
Examples:
  manycore calibrate
      measures this host and writes this-host.toml
  manycore calibrate --quick --out my-server.toml
  manycore sweep --engine simulated --machine ./this-host.toml --cores 64
      simulates it, grown to 64 cores
  manycore calibrate --like epyc-7742-2s --out like-rome.toml
      two sockets of 64 cores with this host's own times where it has them

Each figure is the median of several repetitions, with the least and the most. What this host cannot
tell is taken from the known machine that is nearest, is `assumed`, and says why.
Exit codes: 0 done, 1 cannot be measured or written, 2 usage";

#[derive(Debug, Args)]
pub(crate) struct CalibrateArgs {
    /// Write the machine file here, in place of what is there
    #[arg(long, value_name = "FILE", default_value = "this-host.toml")]
    out: PathBuf,
    /// Arrange the machine like a known one: its sockets, groups and cores, with this host's times
    /// where they were measured
    #[arg(long, value_name = "NAME")]
    like: Option<String>,
    /// Two or three seconds: three repetitions instead of nine, fewer pairs of CPUs, less memory
    #[arg(long)]
    quick: bool,
    /// Print JSON, one figure a line
    #[arg(long)]
    json: bool,
}

/// Runs the command.
///
/// # Errors
/// When the host cannot be measured, or the file or standard output cannot be written.
pub(crate) fn run(arguments: &CalibrateArgs) -> Result<(), Failure> {
    let like = arguments.like.as_deref().map(Machine::named).transpose();
    let like = like.map_err(|error| Failure::Usage(error.to_string()))?;
    // Before the measurement, which takes a while.
    try_out(&arguments.out)?;
    let host = Topology::this_host().map_err(|error| Failure::Failed(error.to_string()))?;
    let effort = if arguments.quick { Effort::Quick } else { Effort::Full };
    let mut step = |what: &str| {
        if io::stderr().is_terminal() {
            stdout::note(&format!("measuring {what}"));
        }
    };
    let calibration = calibrate(&host, effort, like.as_ref(), &mut step)
        .map_err(|error| Failure::Failed(format!("cannot calibrate this host: {error}")))?;
    write(&arguments.out, &calibration.text)?;
    for note in &calibration.notes {
        stdout::note(&format!("note: {note}"));
    }
    let out = arguments.out.display();
    if arguments.json {
        stdout::note(&format!("wrote {out}"));
        return stdout::print(&json_lines(&calibration));
    }
    let shown = arguments.out.parent().is_some_and(|folder| folder.as_os_str().is_empty());
    let path = if shown { format!("./{out}") } else { out.to_string() };
    stdout::print(&format!(
        "{}\n{}\nwrote {out}; `manycore sweep --engine simulated --machine {path}` simulates it",
        figures(&calibration),
        pairs(&calibration)
    ))
}

/// The file that is written and then put in place of the one that is asked for.
fn part(out: &Path) -> PathBuf {
    let mut name = out.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    out.with_file_name(name)
}

/// Makes sure that the file can be written, and leaves nothing behind.
fn try_out(out: &Path) -> Result<(), Failure> {
    if out.is_dir() || out.file_name().is_none() {
        return Err(refused(out, "it is a directory"));
    }
    let part = part(out);
    let tried = fs::write(&part, "").and_then(|()| fs::remove_file(&part));
    tried.map_err(|error| refused(out, error))
}

fn write(out: &Path, text: &str) -> Result<(), Failure> {
    let part = part(out);
    let written = fs::write(&part, text).and_then(|()| fs::rename(&part, out));
    written.map_err(|error| {
        // What was written of it is no machine file; it may also not be there.
        let _ = fs::remove_file(&part);
        refused(out, error)
    })
}

fn refused(out: &Path, why: impl Display) -> Failure {
    let out = out.display();
    Failure::Failed(format!("cannot write {out}: {why}; name another file with --out"))
}

fn shown(value: FigureValue) -> String {
    match value {
        FigureValue::Number(number) => short(number),
        other => other.to_string(),
    }
}

fn figures(calibration: &Calibration) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(["figure", "value", "confidence", "how"]);
    for figure in &calibration.figures {
        let (value, confidence) = (shown(figure.value), figure.confidence.to_string());
        table.add_row([figure.field, &value, &confidence, &figure.source]);
    }
    if let Some(column) = table.column_mut(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.trim_fmt()
}

fn pairs(calibration: &Calibration) -> String {
    let line = |pair: &harness::calibrate::Pair| {
        let (one, other) = pair.cpus;
        let ns = short(pair.transfer_ns.median());
        format!("CPUs {one} and {other}: {ns} ns one way; {}\n", pair.transfer_ns)
    };
    let lines: String = calibration.pairs.iter().map(line).collect();
    if lines.is_empty() { lines } else { format!("\n{lines}") }
}

fn json_lines(calibration: &Calibration) -> String {
    let figures = calibration.figures.iter().map(|figure| {
        json!({
            "field": figure.field,
            "value": json_value(figure.value),
            "source": figure.source,
            "confidence": figure.confidence.word(),
        })
    });
    let pairs = calibration.pairs.iter().map(|pair| {
        let (one, other) = pair.cpus;
        json!({"cpus": [one, other], "transfer_ns": pair.transfer_ns.values})
    });
    figures.chain(pairs).map(|line| line.to_string()).collect::<Vec<_>>().join("\n")
}
