//! What was counted and where memory lay: a table a topic, a reason in the place of what is
//! missing.

use std::collections::BTreeMap;

use crate::glossary::{self, Topic};
use crate::records::{Metric, Point};
use crate::report::html::{Page, text};
use crate::report::model::Panel;
use crate::report::number::{align_points, exact, short};

/// So many numbers of threads have a column of their own.
const COLUMNS: usize = 4;
/// So many metrics of a topic are shown.
const METRICS: usize = 24;
/// Metrics that the plots show.
const PLOTTED: [&str; 4] = ["ops_per_s", "ns_per_op", "fairness_jain", "ops"];

/// Topics of the tables; metrics that this version does not know have one of their own.
fn topic(metric: &str) -> Option<Topic> {
    glossary::entry(metric).map(|entry| entry.topic)
}

pub(super) fn tables(page: &mut Page, panel: &Panel<'_>, engine: &str) {
    let points = || panel.series.iter().flat_map(|series| series.points.values().copied());
    let mut by_topic: BTreeMap<(bool, Option<Topic>), Vec<&str>> = BTreeMap::new();
    for name in points().flat_map(|point| point.metrics.keys()) {
        let topic = topic(name);
        let metrics = by_topic.entry((topic.is_none(), topic)).or_default();
        if !PLOTTED.contains(&name.as_str()) && !metrics.contains(&name.as_str()) {
            metrics.push(name);
        }
    }
    // Exact counts have their place even when nothing was counted.
    if engine == "native" && points().next().is_some() {
        by_topic.entry((false, Some(Topic::Counts))).or_default();
    }
    for ((_, topic), metrics) in by_topic {
        let title = topic.map_or("Figures that this version does not know", Topic::title);
        let open = matches!(topic, Some(Topic::Counts | Topic::Placement));
        if metrics.is_empty() && topic != Some(Topic::Counts) {
            continue;
        }
        let title = if topic == Some(Topic::Speed) { "More on speed" } else { title };
        page.put(format_args!(
            "<details{}><summary>{title}</summary>",
            if open { " open" } else { "" }
        ));
        let metrics: Vec<&str> = metrics.into_iter().take(METRICS).collect();
        table(page, panel, &metrics);
        page.put(format_args!("</details>"));
    }
}

/// A figure, or the code and the text of the reason why there is none.
type Cell = (String, Option<String>);

/// A column: a metric at a number of threads, or at all of them.
struct Column<'a> {
    metric: &'a str,
    threads: Option<usize>,
    cells: Vec<Cell>,
}

fn table(page: &mut Page, panel: &Panel<'_>, metrics: &[&str]) {
    let measured = |metric: &str| {
        let mut all = panel.series.iter().flat_map(|series| series.points.values());
        all.any(|point| matches!(point.metrics.get(metric), Some(m) if !matches!(m, Metric::Missing(_))))
    };
    let (shown, missing): (Vec<&str>, Vec<&str>) =
        metrics.iter().partition(|metric| measured(metric));
    let columns = shown.iter().flat_map(|metric| columns(panel, metric));
    let (same, columns): (Vec<Column>, Vec<Column>) = columns.partition(|column| {
        let first = &column.cells[0];
        column.threads.is_none() && column.cells.iter().all(|cell| cell == first)
    });
    if !columns.is_empty() {
        page.put(format_args!(
            "<div class=\"scroll\"><table class=\"figures\"><thead><tr><th \
            scope=\"col\">variant</th>"
        ));
        for column in &columns {
            let threads = match column.threads {
                Some(1) => "1 thread".into(),
                Some(threads) => format!("{threads} threads"),
                None => String::new(),
            };
            let means = glossary::entry(column.metric).map_or("", |entry| entry.means);
            page.put(format_args!(
                "<th scope=\"col\" title=\"{}\">{} <small>{threads}</small></th>",
                text(means, 300),
                text(&titled(column.metric), 60),
            ));
        }
        page.put(format_args!("</tr></thead><tbody>"));
        for (row, series) in panel.series.iter().enumerate() {
            page.put(format_args!("<tr><th scope=\"row\">{}</th>", text(series.variant, 40)));
            for column in &columns {
                match &column.cells[row] {
                    (cell, None) => page.put(format_args!("<td>{}</td>", text(cell, 40))),
                    (code, Some(reason)) => page.put(format_args!(
                        "<td class=\"missing\" title=\"{}\">{}</td>",
                        text(reason, 300),
                        text(code, 30)
                    )),
                }
            }
            page.put(format_args!("</tr>"));
        }
        page.put(format_args!("</tbody></table></div>"));
    }
    if !same.is_empty() {
        let told: Vec<String> = same.iter().map(told).collect();
        page.put(format_args!("<p class=\"note\">the same for all: {}</p>", told.join(", ")));
    }
    absent(page, panel, &missing);
    if metrics.is_empty() {
        page.put(format_args!("<p class=\"note\">not counted</p>"));
    }
}

/// A metric's name in words, with its unit where the name does not say it.
fn titled(metric: &str) -> String {
    let words = metric.replace("_per_op", "/op").replace('_', " ");
    match glossary::entry(metric).map_or("1", |entry| entry.unit) {
        "1" => words,
        unit if words.contains(unit) => words,
        unit => format!("{words}, {unit}"),
    }
}

fn told(column: &Column<'_>) -> String {
    let (figure, reason) = &column.cells[0];
    let shown = reason.as_ref().unwrap_or(figure);
    format!("{} <b>{}</b>", text(&titled(column.metric), 60), text(shown, 200))
}

/// Metrics without any figure, with the reason said once.
fn absent(page: &mut Page, panel: &Panel<'_>, missing: &[&str]) {
    let mut reasons: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for &metric in missing {
        let mut distinct: Vec<String> = Vec::new();
        for point in panel.series.iter().flat_map(|series| series.points.values()) {
            if let Some(Metric::Missing(reason)) = point.metrics.get(metric) {
                let reason = reason.to_string();
                if distinct.len() < 3 && !distinct.contains(&reason) {
                    distinct.push(reason);
                }
            }
        }
        reasons.entry(distinct.join("; or ")).or_default().push(metric);
    }
    for (reason, metrics) in reasons {
        let metrics: Vec<String> =
            metrics.iter().map(|name| format!("<code>{}</code>", text(name, 60))).collect();
        page.put(format_args!(
            "<p class=\"note\">{} unavailable: {}</p>",
            metrics.join(", "),
            text(&reason, 300)
        ));
    }
}

fn columns<'a>(panel: &Panel<'_>, metric: &'a str) -> Vec<Column<'a>> {
    let mut counts: Vec<usize> =
        panel.series.iter().flat_map(|series| series.points.keys().copied()).collect();
    counts.sort_unstable();
    counts.dedup();
    let at = |threads: usize| -> Vec<Cell> {
        let cell = |series: &crate::report::model::Series<'_>| {
            series.points.get(&threads).map_or_else(blank, |point| cell(point, metric))
        };
        panel.series.iter().map(cell).collect()
    };
    let mut all: Vec<(usize, Vec<Cell>)> =
        spread(&counts).into_iter().map(|threads| (threads, at(threads))).collect();
    let same = all.windows(2).all(|pair| pair[0].1 == pair[1].1);
    if same {
        all.truncate(1);
    }
    all.into_iter()
        .map(|(threads, mut cells)| {
            let mut figures: Vec<String> = cells.iter().map(|(figure, _)| figure.clone()).collect();
            align_points(&mut figures);
            cells.iter_mut().zip(figures).for_each(|(cell, figure)| cell.0 = figure);
            Column { metric, threads: (!same).then_some(threads), cells }
        })
        .collect()
}

fn blank() -> Cell {
    (String::new(), None)
}

fn cell(point: &Point, metric: &str) -> Cell {
    match point.metrics.get(metric) {
        Some(Metric::Count { value }) => (value.to_string(), None),
        Some(Metric::Figure { value, .. }) if topic(metric) == Some(Topic::Counts) => {
            (exact(*value), None)
        }
        Some(Metric::Figure { value, .. }) => (short(*value), None),
        Some(Metric::Missing(reason)) => (reason.code.clone(), Some(reason.to_string())),
        Some(Metric::Other(value)) => (value.to_string(), None),
        None => blank(),
    }
}

/// Up to `COLUMNS` of the counts, the ends among them.
fn spread(counts: &[usize]) -> Vec<usize> {
    if counts.len() <= COLUMNS {
        return counts.to_vec();
    }
    let place = |at: usize| counts[at * (counts.len() - 1) / (COLUMNS - 1)];
    (0..COLUMNS).map(place).collect()
}
