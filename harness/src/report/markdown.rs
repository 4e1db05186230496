//! The report as Markdown: verdicts and tables.

use std::fmt::Write;

use crate::records::{Metric, Point};
use crate::report::escape::Markdown;
use crate::report::model::{Family, Model, Panel, Section, told, words};
use crate::report::number::{cut, plural, short};
use crate::report::verdict::{Kind, interval};

/// Longer texts are cut.
const LONGEST: usize = 300;

fn cell(text: &str) -> String {
    Markdown(&cut(text, LONGEST)).to_string()
}

/// Gives the report.
pub fn text(model: &Model) -> String {
    let mut out = String::from("# Manycore report\n\n");
    for input in &model.inputs {
        let _ = writeln!(
            out,
            "- {}: {}, {} skipped",
            cell(&input.path.display().to_string()),
            plural(input.points, "point"),
            plural(input.skipped_lines, "line")
        );
    }
    if model.folded + model.left_out > 0 {
        let _ = writeln!(
            out,
            "- of points under the same conditions the newest is shown: {} folded; {} of further \
             conditions left out",
            plural(model.folded, "point"),
            plural(model.left_out, "point")
        );
    }
    for at in 0..model.hosts.len() {
        host(&mut out, model, at);
    }
    skipped(&mut out, model);
    out
}

fn host(out: &mut String, model: &Model, at: usize) {
    let sections = model.sections(at);
    if sections.is_empty() {
        return;
    }
    let host = &model.hosts[at];
    let _ = writeln!(out, "\n## {} ({})\n", cell(&host.name), cell(&host.cpu));
    if let Some(run) = host.runs.last() {
        out.push_str("| item | value |\n|---|---|\n");
        for (key, value) in &run.host {
            let _ = writeln!(out, "| {} | {} |", cell(key), cell(&told(value)));
        }
        for finding in run.spoilers() {
            let message = finding.get("message").unwrap_or(finding);
            let _ = writeln!(out, "| spoils measurements | {} |", cell(&told(message)));
        }
    }
    for section in &sections {
        let kind = match section.engine {
            "native" => "measured",
            "callgrind" => "counted",
            "simulated" => "predicted, not measured",
            _ => "as recorded",
        };
        let _ = writeln!(
            out,
            "\n### {}, {} ({kind})",
            cell(section.engine),
            cell(&section.machine.replace("this-host", "this host"))
        );
        for family in &section.families {
            self::family(out, model, family);
        }
        hot_lines(out, section);
    }
}

/// The hottest line of each point that was watched.
fn hot_lines(out: &mut String, section: &Section<'_>) {
    if section.lines.is_empty() {
        return;
    }
    out.push_str(
        "\n#### Hot lines\n\n| threads | row | sharing | what lies there | transfers | waited µs |\n\
         |--:|---|---|---|--:|--:|\n",
    );
    for lines in &section.lines {
        let Some(line) = lines.lines.first() else { continue };
        let _ = writeln!(
            out,
            "| {} | {}/{} | {} | {} | {} | {} |",
            lines.threads,
            cell(&lines.primitive),
            cell(&lines.variant),
            line.sharing.text(),
            cell(&line.object),
            line.all_transfers(),
            short(line.transfer_ns / 1e3)
        );
    }
}

fn family(out: &mut String, model: &Model, family: &Family<'_>) {
    let _ = writeln!(out, "\n#### {}\n", cell(family.primitive));
    for (workload, verdict) in family.verdicts(&model.kinds) {
        let _ = writeln!(out, "- {}: {}", cell(&words(&workload)), cell(&verdict.to_string()));
    }
    for panel in &family.panels {
        let _ = writeln!(
            out,
            "\nPlacement {}, {}:\n\n\
             | threads | variant | ns/op | low | high | Mops/s | fairness | instructions/op | RMWs/op | syscalls/op | status |\n\
             |--:|---|--:|--:|--:|--:|--:|--:|--:|--:|---|",
            cell(panel.placement),
            cell(&words(panel.workload))
        );
        rows(out, panel);
    }
}

fn rows(out: &mut String, panel: &Panel<'_>) {
    let mut rows: Vec<(usize, usize, Kind, &Point)> = panel
        .series
        .iter()
        .enumerate()
        .flat_map(|(at, series)| series.points.iter().map(move |(&n, p)| (n, at, series.kind, *p)))
        .collect();
    rows.sort_by_key(|&(threads, at, _, _)| (threads, at));
    for (threads, _, kind, point) in rows {
        let kind = if kind == Kind::Variant { String::new() } else { format!(" ({kind})") };
        let ns = interval(point, "ns_per_op");
        let end = |end: Option<f64>| end.map_or_else(String::new, short);
        let status = match point.reasons.is_empty() {
            true => point.status.to_string(),
            false => format!("{}: {}", point.status, point.reasons.join("; ")),
        };
        let figures = [
            figure(point, "ns_per_op", 1.0),
            end(ns.map(|(low, _, _)| low)),
            end(ns.map(|(_, _, high)| high)),
            figure(point, "ops_per_s", 1e-6),
            figure(point, "fairness_jain", 1.0),
            figure(point, "instructions_per_op", 1.0),
            figure(point, "rmw_per_op", 1.0),
            figure(point, "syscalls_per_op", 1.0),
        ];
        let _ = writeln!(
            out,
            "| {threads} | {}{kind} | {} | {} |",
            cell(&point.variant),
            figures.map(|figure| cell(&figure)).join(" | "),
            cell(&status)
        );
    }
}

/// A figure, or the code of the reason why there is none.
fn figure(point: &Point, metric: &str, factor: f64) -> String {
    match point.metrics.get(metric) {
        Some(Metric::Missing(reason)) => reason.code.clone(),
        Some(metric) => metric.value().map_or_else(|| "?".into(), |value| short(value * factor)),
        None => String::new(),
    }
}

fn skipped(out: &mut String, model: &Model) {
    if model.inputs.iter().all(|input| input.skipped.is_empty()) {
        return;
    }
    out.push_str("\n## Skipped lines\n\n| file | line | what is wrong |\n|---|--:|---|\n");
    for input in &model.inputs {
        for skipped in &input.skipped {
            let file = cell(&input.path.display().to_string());
            let _ = writeln!(out, "| {file} | {} | {} |", skipped.line, cell(&skipped.reason));
        }
        let more = input.skipped_lines.saturating_sub(input.skipped.len() as u64);
        if more > 0 {
            let _ = writeln!(out, "| | | and {} |", plural(more, "further line"));
        }
    }
}
