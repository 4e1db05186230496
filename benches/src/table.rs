//! The sweep on the terminal: a table a primitive, and a verdict of one line.

use std::time::Duration;

use comfy_table::{CellAlignment, Table, presets};
use harness::records::{Metric, Point, Status};
use harness::sweep::Row;

/// Renders the points, primitive by primitive.
pub(crate) fn text(points: &[Point], rows: &[Row]) -> String {
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
            let head = format!("{primitive} (native, this host{})", common_workload(&points));
            format!("{head}\n{}\n{}\n", table(&points), verdict(primitive, &points, rows))
        })
        .collect();
    sections.join("\n")
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
    header.extend(["ns/op", "low–high", "Mops/s", "fairness", "syscalls/op", "status"]);
    table.set_header(header);
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
        table.add_row(cells);
    }
    let fixed = 2 + usize::from(placements) + usize::from(memories);
    for column in table.column_iter_mut().skip(fixed).take(5) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    if let Some(column) = table.column_mut(0) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.trim_fmt()
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
    vec![
        value("ns_per_op", 1.0),
        interval,
        value("ops_per_s", 1e-6),
        fairness,
        value("syscalls_per_op", 1.0),
        status,
    ]
}

/// Three significant digits.
fn short(value: f64) -> String {
    match value.abs() {
        0.0 => "0".into(),
        size if size < 0.01 => format!("{value:.1e}"),
        size if size < 10.0 => format!("{value:.2}"),
        size if size < 100.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// One line: who is first at the most threads, who ties with it, and what is cheapest alone.
fn verdict(primitive: &str, points: &[&Point], rows: &[Row]) -> String {
    let is_variant = |point: &Point| {
        rows.iter()
            .any(|r| r.primitive == primitive && r.id == point.variant && r.kind == "variant")
    };
    let measured: Vec<&Point> = points
        .iter()
        .copied()
        .filter(|p| matches!(p.status, Status::Ok | Status::Noisy) && is_variant(p))
        .filter(|p| interval(p, "ops_per_s").is_some())
        .collect();
    let Some(most) = measured.iter().map(|point| point.threads).max() else {
        return format!("→ {primitive}: no variant gave a figure");
    };
    let at = |threads: usize| measured.iter().copied().filter(move |p| p.threads == threads);
    let mut line = format!("→ {primitive}: {}", first_place(at(most), most));
    let least = measured.iter().map(|point| point.threads).min().unwrap_or(most);
    if least != most {
        line.push_str("; ");
        line.push_str(&first_place(at(least), least));
    }
    let noisy = measured.iter().filter(|point| point.status == Status::Noisy).count();
    if noisy > 0 {
        line.push_str(&format!(" ({noisy} of {} points noisy)", measured.len()));
    }
    line
}

fn first_place<'a>(points: impl Iterator<Item = &'a Point> + Clone, threads: usize) -> String {
    let speed = |point: &Point| interval(point, "ops_per_s").map_or(0.0, |(_, value, _)| value);
    let Some(best) = points.clone().max_by(|a, b| speed(a).total_cmp(&speed(b))) else {
        return String::new();
    };
    let (low, value, _) = interval(best, "ops_per_s").unwrap_or_default();
    let mut ties: Vec<&str> = points
        .filter(|p| p.variant != best.variant)
        .filter(|p| interval(p, "ops_per_s").is_some_and(|(_, _, high)| high >= low))
        .map(|p| p.variant.as_str())
        .collect();
    ties.dedup();
    let fairness = best.metrics.get("fairness_jain").and_then(Metric::value).unwrap_or(1.0);
    let tied =
        if ties.is_empty() { String::new() } else { format!(", tied with {}", ties.join(", ")) };
    let plural = if threads == 1 { "" } else { "s" };
    let fairness = if threads == 1 { String::new() } else { format!(", fairness {fairness:.2}") };
    format!(
        "{} is first at {threads} thread{plural} ({} Mops/s{fairness}){tied}",
        best.variant,
        short(value / 1e6)
    )
}

fn interval(point: &Point, metric: &str) -> Option<(f64, f64, f64)> {
    match point.metrics.get(metric)? {
        Metric::Figure { value, low, high } => {
            Some((low.unwrap_or(*value), *value, high.unwrap_or(*value)))
        }
        _ => None,
    }
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
    fn three_digits() {
        let shown: Vec<String> =
            [0.0, 0.001_234, 1.234_5, 12.345, 123.45, 123_456.7].into_iter().map(short).collect();
        assert_eq!(shown, ["0", "1.2e-3", "1.23", "12.3", "123", "123457"]);
    }

    #[test]
    fn times() {
        let shown: Vec<String> =
            [5, 119, 150, 8000].into_iter().map(|s| duration(Duration::from_secs(s))).collect();
        assert_eq!(shown, ["5 s", "119 s", "3 min", "2.2 h"]);
    }
}
