//! `manycore compare`: two files of records, point by point, with an exit code for CI.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use comfy_table::{CellAlignment, Table, presets};
use harness::compare::rows::{self, Row};
use harness::compare::{Comparison, RULES, Settings, Verdict, compare, junit, lines, markdown};
use harness::glossary;

use crate::exit::Failure;
use crate::select;
use crate::stdout::{self, note};

pub(crate) const HELP: &str = "\
Examples:
  manycore compare old.jsonl new.jsonl
      what changed: counts exactly, times by their intervals
  manycore count --out base.jsonl, later manycore count --out now.jsonl, then
  manycore compare base.jsonl now.jsonl --counts-only --junit compare.xml
      a gate for CI that does not depend on the machine's load
  manycore compare old.jsonl new.jsonl --tolerance 'transfers_per_op.*=5,instructions_per_op=1'
      counts of several threads may differ by some per cent
  manycore compare old.jsonl new.jsonl --markdown summary.md --json > pairs.jsonl

Points are paired by primitive, variant, workload, threads, placement, engine, machine and seed; of
points that are in a file twice the last counts. Times measured on different hosts are not compared
unless --allow-different-hosts says so. docs/compare.md has a recipe for CI.
Exit codes: 0 no change or better, 1 a file cannot be read or written or holds no points, 2 usage,
3 regression, 4 inconclusive (or points are only in OLD, or lines cannot be understood)";

/// Rows that the terminal shows without --all.
const ROWS: usize = 40;
/// Points of one file alone that the terminal shows without --all.
const ALONE: usize = 20;

#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// The file to compare with
    #[arg(value_name = "OLD")]
    old: PathBuf,
    /// The file that is judged
    #[arg(value_name = "NEW")]
    new: PathBuf,
    /// Per cent by which counts may differ, for all (`1`) or for a metric or family
    /// (`transfers_per_op.*=5`); several with commas [default: 0]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = tolerance, allow_hyphen_values = true)]
    tolerance: Vec<(Option<String>, f64)>,
    /// Per cent by which times may differ and be called equal
    #[arg(long, value_name = "PERCENT", default_value = "5", value_parser = percent, allow_hyphen_values = true)]
    margin: f64,
    /// Probability of any false alarm among all times compared
    #[arg(long, value_name = "P", default_value = "0.05", value_parser = probability, allow_hyphen_values = true)]
    alpha: f64,
    /// By which factor simulated times without a band may differ; 1 compares them exactly
    #[arg(long, value_name = "F", default_value = "1.5", value_parser = factor, allow_hyphen_values = true)]
    model_factor: f64,
    /// Compare what is counted and leave out what is timed
    #[arg(long)]
    counts_only: bool,
    /// Compare times of different hosts, or of machines that are described differently
    #[arg(long)]
    allow_different_hosts: bool,
    /// Points that are only in OLD do not matter, nor lines that cannot be understood
    #[arg(long)]
    ignore_missing: bool,
    /// Write JUnit XML here
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Write Markdown here
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Print JSON, one pair a line and the sum last
    #[arg(long)]
    json: bool,
    /// Show every row, those of equal pairs too
    #[arg(long)]
    all: bool,
}

/// Runs the command.
///
/// # Errors
/// When a file cannot be read or written, or the verdict is not one of 0.
pub(crate) fn run(arguments: &CompareArgs) -> Result<(), Failure> {
    let settings = settings(arguments)?;
    for out in [&arguments.junit, &arguments.markdown].into_iter().flatten() {
        refuse_inputs(out, arguments)?;
    }
    if arguments.junit.is_some() && arguments.junit == arguments.markdown {
        return Err(Failure::Usage(
            "--junit and --markdown are two files: name another one".into(),
        ));
    }
    let comparison = compare(&arguments.old, &arguments.new, &settings)
        .map_err(|error| Failure::Failed(error.to_string()))?;
    let ignore = arguments.ignore_missing;
    if let Some(file) = &arguments.junit {
        write(file, &junit::xml(&comparison, ignore))?;
    }
    if let Some(file) = &arguments.markdown {
        write(file, &markdown::text(&comparison, ignore))?;
    }
    let sentence = rows::sentence(&comparison, ignore);
    if arguments.json {
        stdout::print(&lines::lines(&comparison, ignore).join("\n"))?;
    } else {
        print(&comparison, &sentence, arguments.all)?;
    }
    let sentence = if arguments.json { sentence } else { String::new() };
    match comparison.verdict(ignore) {
        Verdict::Regressed => Err(Failure::Regressed(sentence)),
        Verdict::Inconclusive => Err(Failure::Inconclusive(sentence)),
        _ => Ok(()),
    }
}

fn settings(arguments: &CompareArgs) -> Result<Settings, Failure> {
    let mut settings = Settings {
        margin: arguments.margin / 100.0,
        alpha: arguments.alpha,
        model_factor: arguments.model_factor,
        allow_different_hosts: arguments.allow_different_hosts,
        times: !arguments.counts_only,
        ..Settings::default()
    };
    let mut tolerances = BTreeMap::new();
    for (metric, part) in &arguments.tolerance {
        match metric {
            None => settings.tolerance = part / 100.0,
            Some(metric) => {
                known(metric)?;
                tolerances.insert(metric.clone(), part / 100.0);
            }
        }
    }
    settings.tolerances = tolerances;
    Ok(settings)
}

/// Refuses names of metrics that are not compared.
fn known(metric: &str) -> Result<(), Failure> {
    let family = glossary::entry(metric).filter(|entry| entry.name == metric);
    let compared = |entry: &&glossary::Entry| {
        RULES.iter().any(|rule| glossary::entry(rule.metric).is_some_and(|e| e.name == entry.name))
    };
    if RULES.iter().any(|rule| rule.metric == metric) || family.filter(compared).is_some() {
        return Ok(());
    }
    let names: Vec<&str> = RULES.iter().map(|rule| rule.metric).collect();
    Err(select::unknown("compared metric", metric, &names))
}

fn refuse_inputs(out: &Path, arguments: &CompareArgs) -> Result<(), Failure> {
    let real = |path: &Path| fs::canonicalize(path).ok();
    let same = |input: &PathBuf| real(input).is_some() && real(input) == real(out);
    if same(&arguments.old) || same(&arguments.new) {
        let out = out.display();
        return Err(Failure::Usage(format!("{out} holds the records: name another file")));
    }
    Ok(())
}

fn write(file: &Path, text: &str) -> Result<(), Failure> {
    fs::write(file, text)
        .map_err(|error| Failure::Failed(format!("cannot write {}: {error}", file.display())))
}

fn print(comparison: &Comparison, sentence: &str, all: bool) -> Result<(), Failure> {
    let mut parts = Vec::new();
    let rows = rows::rows(comparison);
    let shown = if all { rows.len() } else { rows.len().min(ROWS) };
    if shown > 0 {
        parts.push(table(&rows[..shown]));
    }
    if shown < rows.len() {
        parts.push(format!("{} more rows; --all shows them", rows.len() - shown));
    }
    if all {
        let equal = comparison.pairs.iter().filter(|pair| pair.findings.is_empty());
        let line = |pair: &harness::compare::Pair| {
            format!("{}: {} ({} figures)", pair.verdict.word(), pair.name, pair.compared)
        };
        parts.extend(equal.map(line));
    }
    let most = if all { usize::MAX } else { ALONE };
    parts.extend(rows::alone(&comparison.only_old, "OLD", most));
    parts.extend(rows::alone(&comparison.only_new, "NEW", most));
    for line in rows::notes(comparison) {
        note(&format!("note: {line}"));
    }
    parts.push(sentence.to_owned());
    stdout::print(&parts.join("\n"))
}

fn table(rows: &[Row]) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(["verdict", "point", "metric", "old", "new", "change", "why"]);
    for Row { verdict, point, metric, old, new, change, why } in rows {
        table.add_row([verdict.word(), point, metric, old, new, change, why]);
    }
    for column in table.column_iter_mut().skip(3).take(3) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.trim_fmt()
}

/// A number within bounds, or what is wrong with it.
fn number(text: &str, least: f64, most: f64, what: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(number) if number >= least && number <= most => Ok(number),
        _ => Err(format!("`{text}` is not {what}")),
    }
}

fn percent(text: &str) -> Result<f64, String> {
    number(text, 0.0, 1000.0, "a number of per cent from 0 to 1000")
}

fn probability(text: &str) -> Result<f64, String> {
    number(text, 1e-9, 0.5, "a probability from 1e-9 to 0.5")
}

fn factor(text: &str) -> Result<f64, String> {
    number(text, 1.0, 1e6, "a factor from 1 to 1000000")
}

fn tolerance(text: &str) -> Result<(Option<String>, f64), String> {
    match text.split_once('=') {
        None => Ok((None, percent(text)?)),
        Some((metric, part)) => Ok((Some(metric.trim().to_owned()), percent(part)?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_numbers_are_refused() {
        for bad in ["", "x", "-1", "nan", "inf", "1e9", "5%", "1,5"] {
            assert!(percent(bad).is_err(), "{bad}");
        }
        for bad in ["0", "1", "-0.05", "nan", "", "0.6"] {
            assert!(probability(bad).is_err(), "{bad}");
        }
        for bad in ["0.9", "0", "nan", "inf", ""] {
            assert!(factor(bad).is_err(), "{bad}");
        }
        for bad in ["ns=", "=", "a=b=1", "rmw_per_op=-1", "rmw_per_op=nan"] {
            assert!(tolerance(bad).is_err(), "{bad}");
        }
        assert_eq!(tolerance("rmw_per_op=2.5"), Ok((Some("rmw_per_op".into()), 2.5)));
        assert_eq!(tolerance("1"), Ok((None, 1.0)));
    }

    #[test]
    fn only_compared_metrics_have_tolerances() {
        for good in ["instructions_per_op", "transfers_per_op.*", "transfers_per_op.same_l3"] {
            assert!(known(good).is_ok(), "{good}");
        }
        for bad in ["", "ops", "transfers_per_op", "transfers_per_op.moon", "instruction_per_op"] {
            assert!(known(bad).is_err(), "{bad}");
        }
    }
}
