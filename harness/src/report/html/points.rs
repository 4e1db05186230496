//! The table of all points. The script makes its headings buttons and its filter work.

use crate::records::{Metric, Point};
use crate::report::html::{Page, text};
use crate::report::model::{Model, Shown, words};
use crate::report::number::{align_points, exact, plural, short};
use crate::report::verdict::{Kind, interval};

/// Up to so many points, decimal points stand below each other and reasons are told in full.
const AT_LEISURE: usize = 1_000;

/// Longer texts are cut.
const CELL: usize = 80;

/// Heading, whether its column holds figures. The style aligns these by their place.
const COLUMNS: [(&str, bool); 17] = [
    ("primitive", false),
    ("variant", false),
    ("threads", true),
    ("placement", false),
    ("ns/op", true),
    ("low", true),
    ("high", true),
    ("Mops/s", true),
    ("Jain", true),
    ("min÷max", true),
    ("syscalls/op", true),
    ("instr/op", true),
    ("status", false),
    ("engine", false),
    ("host", false),
    ("workload", false),
    ("reasons", false),
];
const VARIANT: usize = 1;
const STATUS: usize = 12;
const HOST: usize = 14;
/// Of the columns of figures, those whose decimal points are aligned.
const ALIGNED: std::ops::Range<usize> = 4..12;

/// Writes the table, as many rows as fit in a page of `most` bytes.
pub(super) fn section(page: &mut Page, model: &Model, most: usize) {
    page.put(format_args!("<section id=\"points\"><h2>All points</h2>"));
    controls(page, model);
    page.put(format_args!(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"All points\">\
         <table class=\"points\" id=\"all-points\"><thead><tr>"
    ));
    let one_host = model.hosts.len() == 1;
    for (at, (name, figures)) in COLUMNS.into_iter().enumerate() {
        if at == HOST && one_host {
            continue;
        }
        let class = if figures { " class=\"n\"" } else { "" };
        page.put(format_args!("<th scope=\"col\"{class}>{name}</th>"));
    }
    page.put(format_args!("</tr></thead><tbody>"));
    let mut rows: Vec<Vec<String>> = model.points.iter().map(|shown| cells(model, shown)).collect();
    let reasons_most = if rows.len() <= AT_LEISURE { 240 } else { 40 };
    if rows.len() <= AT_LEISURE {
        for column in ALIGNED {
            let mut figures: Vec<String> = rows.iter().map(|row| row[column].clone()).collect();
            align_points(&mut figures);
            rows.iter_mut().zip(figures).for_each(|(row, figure)| row[column] = figure);
        }
    }
    let mut written = 0;
    for (row, shown) in rows.iter().zip(&model.points) {
        if page.len() + 1_000 > most {
            break;
        }
        self::row(page, row, shown, one_host, reasons_most);
        written += 1;
    }
    page.put(format_args!("</tbody></table></div>"));
    if written < rows.len() {
        page.put(format_args!(
            "<p class=\"notice\">{} more do not fit in a page of 2 MB: give fewer records, or use \
             <code>--format csv</code>.</p>",
            plural((rows.len() - written) as u64, "point")
        ));
    }
    page.put(format_args!("</section>"));
}

/// Filter and choice; only the script makes them useful, so only the script shows them.
fn controls(page: &mut Page, model: &Model) {
    let mut primitives: Vec<&str> =
        model.points.iter().map(|shown| shown.point.primitive.as_str()).collect();
    primitives.sort_unstable();
    primitives.dedup();
    // Cut as in the cells, which the script compares it with.
    let option = |name: &&str| {
        let name = text(name, CELL);
        format!("<option value=\"{name}\">{name}</option>")
    };
    let primitives: String = primitives.iter().take(50).map(option).collect();
    let statuses: String = ["ok", "noisy", "broken", "unavailable"].iter().map(option).collect();
    page.put(format_args!(
        "<form class=\"filter\" id=\"filter\" hidden>\
         <label>Filter <input type=\"search\" id=\"filter-text\" placeholder=\"mcs scatter\" autocomplete=\"off\"></label>\
         <label>Primitive <select id=\"filter-primitive\"><option value=\"\">all</option>{primitives}</select></label>\
         <label>Status <select id=\"filter-status\"><option value=\"\">all</option>{statuses}</select></label>\
         <button type=\"reset\">Show all</button><output id=\"filter-count\" aria-live=\"polite\"></output></form>"
    ));
}

fn cells(model: &Model, shown: &Shown) -> Vec<String> {
    let point = &shown.point;
    let engine = if point.machine == "this-host" {
        point.engine.clone()
    } else {
        format!("{} {}", point.engine, point.machine)
    };
    let ns = interval(point, "ns_per_op");
    let end = |end: fn((f64, f64, f64)) -> f64| ns.map_or_else(String::new, |ns| short(end(ns)));
    vec![
        point.primitive.clone(),
        point.variant.clone(),
        point.threads.to_string(),
        point.placement.clone(),
        figure(point, "ns_per_op", 1.0),
        end(|(low, _, _)| low),
        end(|(_, _, high)| high),
        figure(point, "ops_per_s", 1e-6),
        fairness(point),
        least_of_most(point),
        count(point, "syscalls_per_op"),
        count(point, "instructions_per_op"),
        point.status.to_string(),
        engine,
        model.hosts[shown.host].name.clone(),
        words(&point.workload),
        point.reasons.join("; "),
    ]
}

/// A figure, or the code of the reason why there is none.
fn figure(point: &Point, metric: &str, factor: f64) -> String {
    written(point, metric, |value| short(value * factor))
}

fn count(point: &Point, metric: &str) -> String {
    written(point, metric, exact)
}

fn written(point: &Point, metric: &str, write: impl Fn(f64) -> String) -> String {
    match point.metrics.get(metric) {
        Some(Metric::Missing(reason)) => reason.code.clone(),
        Some(metric) => metric.value().map_or_else(|| "?".into(), write),
        None => String::new(),
    }
}

fn fairness(point: &Point) -> String {
    let jain = point.metrics.get("fairness_jain").and_then(Metric::value);
    jain.map_or_else(String::new, |jain| format!("{jain:.3}"))
}

fn least_of_most(point: &Point) -> String {
    let ops = point.per_thread.get("ops").filter(|ops| ops.len() > 1);
    let ends = ops.and_then(|ops| Some((*ops.iter().min()?, *ops.iter().max()?)));
    match ends {
        Some((least, most)) if most > 0 => format!("{:.3}", least as f64 / most as f64),
        _ => String::new(),
    }
}

/// End tags that HTML lets go are left out: there may be thousands of rows.
fn row(page: &mut Page, cells: &[String], shown: &Shown, one_host: bool, reasons_most: usize) {
    let status = shown.point.status;
    page.put(format_args!("<tr class={status}>"));
    for (at, cell) in cells.iter().enumerate() {
        let most = if at == COLUMNS.len() - 1 { reasons_most } else { CELL };
        let cell = text(cell, most);
        match at {
            HOST if one_host => {}
            STATUS => page.put(format_args!("<td class=\"status {status}\">{cell}")),
            VARIANT if shown.kind != Kind::Variant => {
                page.put(format_args!("<td>{cell} <i>{}</i>", shown.kind));
            }
            _ => page.put(format_args!("<td>{cell}")),
        }
    }
}
