//! `manycore explain`: what a metric means.

use clap::Args;
use comfy_table::{Table, presets};
use harness::glossary::{self, Entry, TABLE};
use serde_json::{Map, Value, json};

use crate::exit::Failure;
use crate::{select, stdout};

pub(crate) const HELP: &str = "\
Examples:
  manycore explain
  manycore explain fairness_jain
  manycore explain --markdown > docs/glossary.md

Exit codes: 0 done, 2 no metric has this name";

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// The metric's name, as records have it; without it all are listed
    #[arg(value_name = "METRIC")]
    metric: Option<String>,
    /// Print docs/glossary.md
    #[arg(long, conflicts_with = "metric")]
    markdown: bool,
    /// Print JSON, one metric a line
    #[arg(long, conflicts_with = "markdown")]
    json: bool,
}

/// Runs the command.
///
/// # Errors
/// When no metric has the name, or standard output cannot be written.
pub(crate) fn run(arguments: &ExplainArgs) -> Result<(), Failure> {
    if arguments.markdown {
        return stdout::print(glossary::markdown().trim_end());
    }
    let entries: Vec<&Entry> = match &arguments.metric {
        Some(metric) => vec![glossary::entry(metric).ok_or_else(|| unknown(metric))?],
        None => TABLE.iter().collect(),
    };
    if arguments.json {
        return stdout::print(&entries.into_iter().map(json_line).collect::<Vec<_>>().join("\n"));
    }
    match (entries.as_slice(), &arguments.metric) {
        ([entry], Some(_)) => stdout::print(glossary::text(entry).trim_end()),
        _ => stdout::print(&list(&entries)),
    }
}

fn unknown(metric: &str) -> Failure {
    let names: Vec<&str> = TABLE.iter().map(|entry| entry.name).collect();
    select::unknown("metric", metric, &names)
}

fn list(entries: &[&Entry]) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(["metric", "unit", "what it tells"]);
    for entry in entries {
        table.add_row([entry.name, entry.unit, entry.means]);
    }
    format!("{}\n\n`manycore explain METRIC` tells formula and method.", table.trim_fmt())
}

fn json_line(entry: &Entry) -> String {
    let engines: Map<String, Value> =
        entry.engines.iter().map(|(engine, how)| ((*engine).to_owned(), json!(how))).collect();
    json!({
        "metric": entry.name,
        "topic": entry.topic.title(),
        "unit": entry.unit,
        "formula": entry.formula,
        "means": entry.means,
        "beware": entry.beware,
        "engines": engines,
    })
    .to_string()
}
