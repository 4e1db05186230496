//! The sweep on the terminal: a table a primitive, and a verdict of one line.

use std::time::Duration;

use comfy_table::{CellAlignment, Table, presets};
use harness::records::{Metric, Point};
use harness::report::number::short;
use harness::report::verdict::{Kinds, verdict};

/// Renders the points, primitive by primitive.
pub(crate) fn text(points: &[Point], kinds: &Kinds) -> String {
    let mut primitives: Vec<&str> = Vec::new();
    for point in points {
        if !primitives.contains(&point.primitive.as_str()) {
            primitives.push(&point.primitive);
        }
    }
    let sections: Vec<String> = primitives
        .into_iter()
        .map(|primitive| {
            let points: Vec<&Point> = points.iter().filter(|p| p.primitive == primitive).collect();
            let measured_on = measured_on(&points);
            let head = format!("{primitive} ({measured_on}{})", common_workload(&points));
            format!("{head}\n{}\n→ {}\n", table(&points), verdict(primitive, &points, kinds))
        })
        .collect();
    sections.join("\n")
}

/// What measured the points, and on which machine; those of a sweep have both in common.
fn measured_on(points: &[&Point]) -> String {
    points.first().map_or_else(String::new, |first| match first.machine.as_str() {
        "this-host" => format!("{}, this host", first.engine),
        machine => format!("{} {machine}", first.engine),
    })
}

fn is_simulated(point: &Point) -> bool {
    point.engine == "simulated"
}

/// The workload words that all points share.
fn common_workload(points: &[&Point]) -> String {
    let Some(first) = points.first() else { return String::new() };
    let words: Vec<String> = first
        .workload
        .iter()
        .filter(|(word, value)| points.iter().all(|p| p.workload.get(*word) == Some(value)))
        .map(|(word, value)| format!(", {word} {}", value.to_string().trim_matches('"')))
        .collect();
    words.concat()
}

fn table(points: &[&Point]) -> String {
    let several = |of: &dyn Fn(&Point) -> String| points.iter().any(|p| of(p) != of(points[0]));
    let memory = |p: &Point| p.workload.get("memory").map_or_else(String::new, |m| m.to_string());
    let (placements, memories) = (several(&|p| p.placement.clone()), several(&memory));
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    let mut header = vec!["threads", "variant"];
    header.extend(placements.then_some("placement"));
    header.extend(memories.then_some("memory"));
    let latencies = latencies(points);
    header.extend(match points.first().is_some_and(|first| is_simulated(first)) {
        true => SIMULATED,
        false => ["ns/op", "low–high", "Mops/s", "fairness", "syscalls/op", "status"].as_slice(),
    });
    let before_status = header.len() - 1;
    header.splice(before_status..before_status, latencies.iter().map(|(head, _)| *head));
    table.set_header(header.clone());
    let mut threads = 0;
    for point in points {
        let new_block = point.threads != threads;
        threads = point.threads;
        let mut cells = vec![
            if new_block { threads.to_string() } else { String::new() },
            point.variant.clone(),
        ];
        cells.extend(placements.then(|| point.placement.clone()));
        cells.extend(memories.then(|| memory(point).trim_matches('"').to_owned()));
        cells.extend(figures(point));
        let before_status = cells.len() - 1;
        let figures = latencies.iter().map(|(_, name)| figure(point, name));
        cells.splice(before_status..before_status, figures);
        table.add_row(cells);
    }
    let fixed = 2 + usize::from(placements) + usize::from(memories);
    let numbers = header.len() - fixed - 1;
    for column in table.column_iter_mut().skip(fixed).take(numbers) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    if let Some(column) = table.column_mut(0) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.trim_fmt()
}

/// Columns of what is simulated: there is no interval, and more is counted.
const SIMULATED: &[&str] = &[
    "ns/op",
    "Mops/s",
    "fairness",
    "instructions/op",
    "transfers/op",
    "cross-socket",
    "syscalls/op",
    "status",
];

/// Columns of what was timed one by one; hand-offs where there were some.
const LATENCIES: [(&str, &str); 9] = [
    ("p50 ns", "latency_ns.p50"),
    ("p99 ns", "latency_ns.p99"),
    ("p99.9 ns", "latency_ns.p99.9"),
    ("max ns", "latency_ns.max"),
    ("hand-off same CPU", "handoff_ns.same"),
    ("hand-off SMT", "handoff_ns.smt"),
    ("hand-off L3", "handoff_ns.same_l3"),
    ("hand-off socket", "handoff_ns.same_socket"),
    ("hand-off cross", "handoff_ns.cross_socket"),
];

/// Gives the columns that these points have figures for.
fn latencies(points: &[&Point]) -> Vec<(&'static str, &'static str)> {
    let timed = points.iter().any(|point| point.workload.contains_key("latency"));
    let has = |name: &str| points.iter().any(|point| point.metrics.contains_key(name));
    let wanted = |(_, name): &(&str, &str)| timed && (name.starts_with("latency") || has(name));
    LATENCIES.into_iter().filter(wanted).collect()
}

fn figure(point: &Point, name: &str) -> String {
    match point.metrics.get(name) {
        Some(metric) => metric.value().map_or_else(|| "-".into(), short),
        None => String::new(),
    }
}

fn figures(point: &Point) -> Vec<String> {
    let metric = |name: &str| point.metrics.get(name);
    let interval = match metric("ns_per_op") {
        Some(Metric::Figure { low: Some(low), high: Some(high), .. }) => {
            format!("{}–{}", short(*low), short(*high))
        }
        _ => String::new(),
    };
    let value = |name: &str, scale: f64| match metric(name) {
        Some(metric) => metric.value().map_or_else(|| "-".into(), |value| short(value * scale)),
        None => String::new(),
    };
    let fairness = metric("fairness_jain")
        .and_then(Metric::value)
        .map_or_else(String::new, |fairness| format!("{fairness:.3}"));
    let status = match point.reasons.first() {
        Some(reason) => format!("{}: {reason}", point.status),
        None => point.status.to_string(),
    };
    if is_simulated(point) {
        let distances = ["smt", "same_l3", "same_socket", "cross_socket"];
        let transfers: Option<f64> = distances
            .iter()
            .map(|distance| metric(&format!("transfers_per_op.{distance}"))?.value())
            .sum();
        return vec![
            value("ns_per_op", 1.0),
            value("ops_per_s", 1e-6),
            fairness,
            value("instructions_per_op", 1.0),
            transfers.map_or_else(String::new, short),
            value("transfers_per_op.cross_socket", 1.0),
            value("syscalls_per_op", 1.0),
            status,
        ];
    }
    vec![
        value("ns_per_op", 1.0),
        interval,
        value("ops_per_s", 1e-6),
        fairness,
        value("syscalls_per_op", 1.0),
        status,
    ]
}

/// A length of time as people write it.
pub(crate) fn duration(time: Duration) -> String {
    match time.as_secs() {
        0..120 => format!("{:.0} s", time.as_secs_f64()),
        seconds @ 120..7200 => format!("{} min", seconds.div_ceil(60)),
        seconds => format!("{:.1} h", seconds as f64 / 3600.0),
    }
}

/// A list of CPUs, cut when it is long.
pub(crate) fn cpus(cpus: &[u32]) -> String {
    let shown: Vec<String> = cpus.iter().take(16).map(u32::to_string).collect();
    let rest = if cpus.len() > 16 { ",…" } else { "" };
    format!("{}{rest}", shown.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        let shown: Vec<String> =
            [5, 119, 150, 8000].into_iter().map(|s| duration(Duration::from_secs(s))).collect();
        assert_eq!(shown, ["5 s", "119 s", "3 min", "2.2 h"]);
    }
}
