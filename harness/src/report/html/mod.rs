//! The page: one file with its style and its script, for the eye and for printing. Everything but
//! sorting and filtering works without the script.

mod facts;
mod host;
mod machine;
mod maps;
mod notes;
mod panel;
mod points;
mod verdicts;

use std::fmt::{self, Write};

use crate::report::escape::Html;
use crate::report::model::Model;
use crate::report::number::{cut, grouped, plural};
use crate::report::scan::ALL_SHOWN;

/// The page stays below 2 MB.
pub const PAGE_MOST: usize = 1_900_000;
/// The table of all points may take this much of it.
const TABLE_MOST: usize = 1_450_000;
/// Up to so many points, marks say what they are when they are pointed at.
const TIPS_MOST: usize = 1_200;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Nothing may be loaded from anywhere, whatever a record says.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; \
    base-uri 'none'; form-action 'none'";

/// Text that is being written. Writing to memory cannot fail.
#[derive(Default)]
struct Page(String);

impl Page {
    fn put(&mut self, piece: fmt::Arguments<'_>) {
        let _ = self.0.write_fmt(piece);
    }

    fn len(&self) -> usize {
        self.0.len()
    }
}

/// Shows a name or a sentence of a record, escaped and not longer than a person reads.
fn text(from: &str, most: usize) -> String {
    Html(&cut(from, most)).to_string()
}

/// Gives the page.
pub fn page(model: &Model) -> String {
    let mut page = Page::default();
    page.put(format_args!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\
         <meta name=\"generator\" content=\"manycore {}\"><title>{}</title>\
         <style>{STYLE}</style></head><body>",
        env!("CARGO_PKG_VERSION"),
        text(&title(model), 120),
    ));
    top(&mut page, model);
    verdicts::section(&mut page, model);
    // The table of all points comes before the plots when it comes to room.
    let (mut table, mut end) = (Page::default(), Page::default());
    points::section(&mut table, model, TABLE_MOST);
    notes::sections(&mut end, model);
    end.put(format_args!("<script>{SCRIPT}</script></body></html>\n"));
    let most = PAGE_MOST.saturating_sub(table.len() + end.len());
    let omitted: u64 =
        (0..model.hosts.len()).map(|at| host::section(&mut page, model, at, most)).sum();
    if omitted > 0 {
        page.put(format_args!(
            "<p class=\"notice\">{} not drawn: the page would grow beyond 2 MB. Make a report of \
             fewer records, or use <code>--format csv</code>.</p>",
            plural(omitted, "group of points")
        ));
    }
    page.0 + &table.0 + &end.0
}

fn title(model: &Model) -> String {
    let names: Vec<&str> = model.hosts.iter().map(|host| host.name.as_str()).collect();
    format!("Manycore report: {}", names.join(", "))
}

fn top(page: &mut Page, model: &Model) {
    page.put(format_args!(
        "<header class=\"top\"><div><h1>Manycore report</h1><p class=\"lede\">{}</p></div>\
         <fieldset class=\"theme\"><legend>Colours</legend>",
        lede(model)
    ));
    for (id, label) in [("auto", "as the system"), ("light", "light"), ("dark", "dark")] {
        let checked = if id == "auto" { " checked" } else { "" };
        page.put(format_args!(
            "<label><input type=\"radio\" name=\"theme\" id=\"theme-{id}\"{checked}> \
             {label}</label>"
        ));
    }
    page.put(format_args!("</fieldset></header><main>"));
    let notices = notices(model);
    if !notices.is_empty() {
        page.put(format_args!("<ul class=\"notices\">"));
        for notice in notices {
            page.put(format_args!("<li>{notice}</li>"));
        }
        page.put(format_args!("</ul>"));
    }
}

/// One sentence on what the page is about.
fn lede(model: &Model) -> String {
    let read: u64 = model.inputs.iter().map(|input| input.points).sum();
    let files: Vec<String> = model
        .inputs
        .iter()
        .take(6)
        .map(|input| {
            let name = input.path.file_name().unwrap_or(input.path.as_os_str()).to_string_lossy();
            format!("<code>{}</code>", text(&name, 60))
        })
        .collect();
    let more = if model.inputs.len() > 6 { " …" } else { "" };
    format!(
        "{} of {} from {}{more}{}",
        plural(read, "point"),
        plural(model.hosts.len() as u64, "host"),
        files.join(", "),
        dates(model)
    )
}

fn dates(model: &Model) -> String {
    let runs = model.hosts.iter().flat_map(|host| &host.runs);
    let dates = || runs.clone().filter_map(|run| run.host.get("date")?.as_str()?.get(..10));
    match (dates().min(), dates().max()) {
        (Some(first), Some(last)) if first == last => format!(", measured {}", text(first, 10)),
        (Some(first), Some(last)) => {
            format!(", measured {} to {}", text(first, 10), text(last, 10))
        }
        _ => String::new(),
    }
}

/// What the reader must know before anything else.
fn notices(model: &Model) -> Vec<String> {
    let mut notices = Vec::new();
    let skipped: u64 = model.inputs.iter().map(|input| input.skipped_lines).sum();
    if skipped > 0 {
        notices.push(format!(
            "{} of the input not understood and skipped: <a href=\"#skipped\">which and why</a>.",
            plural(skipped, "line")
        ));
    }
    if model.folded > 0 {
        notices.push(format!(
            "There are more than {} points: of points measured under the same conditions the \
             newest is shown, {} older are folded into it.",
            grouped(ALL_SHOWN as u64),
            grouped(model.folded)
        ));
    }
    if model.left_out > 0 {
        notices.push(format!(
            "{} of further conditions left out: give fewer records, or use \
             <code>--format csv</code>, which holds all.",
            plural(model.left_out, "point")
        ));
    }
    if model.withheld > 0 {
        notices.push(format!(
            "{} figures in the records all the same: these are not \
             shown.",
            match model.withheld {
                1 => "1 point is broken or unavailable and has".into(),
                points => format!("{} are broken or unavailable and have", plural(points, "point")),
            }
        ));
    }
    if model.hosts.len() > 1 {
        notices.push("Results of different hosts are shown apart.".into());
    }
    if model.points.iter().any(|shown| shown.point.engine == "simulated") {
        notices.push(
            "Simulated results are predictions and marked so; they are shown apart from \
             measured ones."
                .into(),
        );
    }
    notices
}
