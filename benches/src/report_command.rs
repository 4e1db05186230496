//! `manycore report`: what files of records hold, as a page, as Markdown, as values.

use std::fs;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use harness::report::number::plural;
use harness::report::{self, Format};

use crate::exit::Failure;
use crate::rows;
use crate::stdout::{self, note};

pub(crate) const HELP: &str = "\
Examples:
  manycore report results.jsonl
      writes results.html beside it: one file, to be opened or sent as it is
  manycore report here.jsonl there.jsonl --out both.html
      several files, runs and hosts; each host is shown apart
  manycore report results.jsonl --format csv
      one row a point, every metric with its interval or the reason why it is missing
  manycore report results.jsonl --format markdown --out -
      tables and verdicts on standard output

Lines that are damaged or of a newer version are skipped and listed in the report.
Exit codes: 0 done, 1 a file cannot be read or written or holds no points, 2 usage";

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Files of records (JSON Lines), as `manycore sweep` writes them
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Write the report here; `-` is standard output [default: the first FILE with another ending]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// What to write
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = ReportFormat::Html)]
    format: ReportFormat,
}

/// What `--format` names.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum ReportFormat {
    /// One page with plots; nothing in it comes from elsewhere
    Html,
    /// Comma-separated values (RFC 4180)
    Csv,
    /// Tables and verdicts
    Markdown,
}

/// Runs the command.
///
/// # Errors
/// When a file cannot be read or holds no points, or the report cannot be written.
pub(crate) fn run(arguments: &ReportArgs) -> Result<(), Failure> {
    let format = match arguments.format {
        ReportFormat::Html => Format::Html,
        ReportFormat::Csv => Format::Csv,
        ReportFormat::Markdown => Format::Markdown,
    };
    let inputs = each_once(&arguments.files);
    let failed = |error: report::error::ReportError| Failure::Failed(error.to_string());
    if arguments.out.as_deref() == Some(Path::new("-")) {
        return stdout::stream(|out| report::to(&inputs, out, format, rows::kinds()))
            .map_err(failed);
    }
    let out = arguments.out.clone().unwrap_or_else(|| beside(&inputs[0], format));
    let made = report::make(&inputs, &out, format, rows::kinds()).map_err(failed)?;
    let mut message = format!("{} points", made.points);
    if made.watched > 0 {
        message.push_str(&format!(", {} of lines", plural(made.watched, "record")));
    }
    if made.skipped > 0 {
        message.push_str(&format!(", {} lines skipped", made.skipped));
    }
    if made.folded > 0 {
        message.push_str(&format!(", {} folded or left out", made.folded));
    }
    note(&message);
    stdout::print(&out.display().to_string())
}

/// A file that is named twice is read once.
fn each_once(files: &[PathBuf]) -> Vec<PathBuf> {
    let mut seen = Vec::new();
    let mut kept = Vec::new();
    for file in files {
        let real = fs::canonicalize(file).unwrap_or_else(|_| file.clone());
        if seen.contains(&real) {
            note(&format!("note: {} is named twice and read once", file.display()));
        } else {
            seen.push(real);
            kept.push(file.clone());
        }
    }
    kept
}

/// The input's place and name with the format's ending; what is no file gets one here.
fn beside(input: &Path, format: Format) -> PathBuf {
    if fs::metadata(input).is_ok_and(|input| !input.is_file() && !input.is_dir()) {
        return Path::new("report").with_extension(format.extension());
    }
    input.with_extension(format.extension())
}
