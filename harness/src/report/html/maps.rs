//! Lines that cores share: which bytes each core read and wrote, what sharing that is, what it cost
//! and where in the source.

use std::fmt::Write as _;

use crate::line_records::{Bytes, Line, Lines, Row};
use crate::records::Metric;
use crate::report::escape::Html;
use crate::report::html::{Page, text};
use crate::report::model::{Section, words};
use crate::report::number::{grouped, plural, short};
use crate::simulated::Sharing;

/// Lines that are drawn of a point, and rows of a map.
const LINES: usize = 3;
const ROWS: usize = 24;

/// Sizes of a map.
const LEFT: usize = 112;
const CELL: usize = 9;
const ROW: usize = 17;
const TOP: usize = 20;

/// Writes the maps of a section. Gives the number of points whose maps were left out, because the
/// page had `most` bytes already.
pub(super) fn section(page: &mut Page, section: &Section<'_>, most: usize) -> u64 {
    if section.lines.is_empty() {
        return 0;
    }
    page.put(format_args!(
        "<section class=\"family\"><h4>Hot lines</h4><p class=\"note\">Each map is one cache line \
         of 64 bytes, a row for the cores that did the same. {}</p>",
        legend()
    ));
    let mut omitted = 0;
    for lines in &section.lines {
        let mut drawn = Page::default();
        point(&mut drawn, lines);
        if page.len() + drawn.len() > most {
            omitted += 1;
        } else {
            page.0.push_str(&drawn.0);
        }
    }
    page.put(format_args!("</section>"));
    omitted
}

/// What the marks mean; each differs in place, not in colour alone.
fn legend() -> String {
    let cells = [("m-read", 5, 4, "read: lower half"), ("m-written", 1, 4, "written: upper half")];
    let mut out = String::new();
    for (class, y, height, words) in cells {
        let _ = write!(
            out,
            "<svg class=\"swatch\" viewBox=\"0 0 10 10\" aria-hidden=\"true\"><rect class=\"m-cell\" \
             width=\"10\" height=\"10\"/><rect class=\"{class}\" y=\"{y}\" width=\"10\" \
             height=\"{height}\"/></svg> {words} · "
        );
    }
    out.push_str(
        "<svg class=\"swatch\" viewBox=\"0 0 10 10\" aria-hidden=\"true\"><rect class=\"m-cell\" \
         width=\"10\" height=\"10\"/><rect class=\"m-read\" y=\"5\" width=\"10\" height=\"4\"/><rect \
         class=\"m-written\" y=\"1\" width=\"10\" height=\"4\"/></svg> both · ▲ written by one core \
         and touched by another",
    );
    out
}

fn point(page: &mut Page, lines: &Lines) {
    let figure = |name: &str| lines.metrics.get(name).and_then(Metric::value);
    let told =
        |name: &str, unit: &str| figure(name).map(|value| format!("{} {unit}", short(value)));
    let figures = [told("transfers_per_op", "transfers"), told("ns_per_op", "ns")];
    let figures: Vec<String> = figures.into_iter().flatten().collect();
    let an_operation = if figures.is_empty() {
        String::new()
    } else {
        format!(": {} an operation", figures.join(" and "))
    };
    page.put(format_args!(
        "<figure class=\"lines\"><figcaption><b>{}/{}</b>, {}, placement {}, {}{}</figcaption>",
        text(&lines.primitive, 40),
        text(&lines.variant, 40),
        plural(lines.threads as u64, "thread"),
        text(&lines.placement, 60),
        text(&words(&lines.workload), 200),
        text(&an_operation, 80),
    ));
    let shown = lines.lines.iter().filter(|line| is_told(line)).take(LINES);
    let mut none = true;
    for line in shown {
        none = false;
        self::line(page, line);
    }
    if none {
        page.put(format_args!(
            "<p class=\"note\">No line went from core to core for what another had written: \
             nothing is shared.</p>"
        ));
    }
    page.put(format_args!("</figure>"));
}

/// Whether a line has something to tell: transfers, or a pair that is shared.
fn is_told(line: &Line) -> bool {
    line.all_transfers() > 0 && line.sharing != Sharing::Private || line.sharing == Sharing::Pair
}

fn line(page: &mut Page, line: &Line) {
    let class = match line.sharing {
        Sharing::False | Sharing::Mixed | Sharing::Pair => "noisy",
        _ => "ok",
    };
    page.put(format_args!(
        "<p class=\"verdict\"><span class=\"status {class}\">{}</span> {} <code>{}</code><br>{}</p>",
        line.sharing.text(),
        text(&line.object, 100),
        text(&line.address, 20),
        text(&facts(line), 300),
    ));
    let mut svg = String::new();
    map(&mut svg, line);
    page.put(format_args!("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Map of bytes\">{svg}</div><ul class=\"places\">"));
    for place in line.places.iter().take(4) {
        page.put(format_args!(
            "<li><code>{}</code> {}, {}, {} <span class=\"note\">{}</span></li>",
            text(&place.at, 100),
            plural(place.loads, "load"),
            plural(place.stores, "store"),
            plural(place.transfers, "transfer"),
            text(&place.function, 90),
        ));
    }
    page.put(format_args!("</ul>"));
    if !line.apart.is_empty() {
        let groups: Vec<String> = line.apart.iter().take(16).map(Bytes::to_string).collect();
        let more = if line.apart.len() > 16 { " | …" } else { "" };
        page.put(format_args!(
            "<p class=\"note\">To be put apart: bytes {}{more}{}</p>",
            text(&groups.join(" | "), 200),
            text(&tried(line), 120),
        ));
    }
}

/// Transfers, how many of them were needed, invalidations, time.
fn facts(line: &Line) -> String {
    let words = [
        ("smt", "on the same core"),
        ("same_l3", "under the same L3"),
        ("same_socket", "in the same socket"),
        ("cross_socket", "across sockets"),
    ];
    let known = |key: &str| words.iter().any(|(word, _)| *word == key);
    let others = line.transfers.keys().filter(|key| !known(key));
    let others = others.map(|key| (key.as_str(), key.replace('_', " ")));
    let near_first = words.into_iter().map(|(key, told)| (key, told.to_owned())).chain(others);
    let all = line.all_transfers();
    let by: Vec<String> = near_first
        .filter_map(|(key, told)| {
            let count = line.transfers.get(key).filter(|count| **count > 0)?;
            Some(format!("{} {told}", grouped(*count)))
        })
        .collect();
    let by = if by.is_empty() { String::new() } else { format!(" ({})", by.join(", ")) };
    format!(
        "{}{by}, {} of them for bytes that others had changed or used; {}; cores waited {} µs",
        plural(all, "transfer"),
        grouped(line.true_transfers),
        plural(line.invalidations, "invalidation"),
        short(line.transfer_ns / 1e3),
    )
}

fn tried(line: &Line) -> String {
    let figure = |name: &str| line.tried.get(name).and_then(Metric::value);
    match (figure("transfers_per_op"), figure("ns_per_op")) {
        (Some(transfers), Some(ns)) => {
            format!(
                "; simulated so: {} transfers and {} ns an operation",
                short(transfers),
                short(ns)
            )
        }
        _ => String::new(),
    }
}

fn map(out: &mut String, line: &Line) {
    let shown = line.rows.len().min(ROWS);
    let bottom = TOP + shown * ROW;
    let (width, height) = (LEFT + 64 * CELL + 2, bottom + 16);
    let _ = write!(
        out,
        "<svg class=\"bytes\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         height=\"{height}\" role=\"img\" aria-label=\"bytes read and written\"><rect \
         class=\"m-cell\" x=\"{LEFT}\" y=\"{TOP}\" width=\"{}\" height=\"{}\"/>",
        64 * CELL,
        shown * ROW
    );
    for byte in (0..=64).step_by(8) {
        let x = LEFT + byte * CELL;
        let _ = write!(out, "<path class=\"grid\" d=\"M{x} {}V{bottom}\"/>", TOP - 3);
        if byte < 64 {
            let _ = write!(out, "<text x=\"{}\" y=\"{}\">{byte}</text>", x + 2, TOP - 6);
        }
    }
    for (at, row) in line.rows.iter().take(shown).enumerate() {
        self::row(out, row, TOP + at * ROW);
    }
    for (first, length) in line.shared_bytes.runs() {
        for byte in first..first + length {
            let x = LEFT + byte as usize * CELL + CELL / 2;
            let _ = write!(out, "<path class=\"m-shared\" d=\"M{} {}l4 7h-8z\"/>", x, bottom + 2);
        }
    }
    let label = if line.rows.len() > shown {
        format!("{} more rows", line.rows.len() - shown)
    } else if line.shared_bytes == Bytes(0) {
        "no byte shared".to_owned()
    } else {
        "shared bytes".to_owned()
    };
    let _ = write!(out, "<text x=\"0\" y=\"{}\">{label}</text></svg>", bottom + 11);
}

fn row(out: &mut String, row: &Row, y: usize) {
    let _ = write!(
        out,
        "<g><title>{}: read bytes {}; written {}; {}</title><text x=\"0\" y=\"{}\">{}</text>",
        Html(&cores(&row.cores, 60)),
        row.read,
        row.written,
        plural(row.transfers, "transfer"),
        y + 12,
        Html(&cores(&row.cores, 16)),
    );
    let half = ROW / 2 - 1;
    for (class, bytes, top) in [("m-written", row.written, 1), ("m-read", row.read, 1 + half)] {
        let mut path = String::new();
        for (first, length) in bytes.runs() {
            let (x, width) = (LEFT + first as usize * CELL, length as usize * CELL);
            let _ = write!(path, "M{x} {}h{width}v{half}h-{width}z", y + top);
        }
        if !path.is_empty() {
            let _ = write!(out, "<path class=\"{class}\" d=\"{path}\"/>");
        }
    }
    let _ = write!(out, "<path class=\"grid\" d=\"M{LEFT} {}h{}\"/></g>", y + ROW, 64 * CELL);
}

/// Names cores, shortly: `core 3`, `cores 0-7`, `64 cores`.
fn cores(cores: &[u32], most: usize) -> String {
    let mut sorted = cores.to_vec();
    sorted.sort_unstable();
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for core in sorted {
        match runs.last_mut() {
            Some((_, last)) if core.checked_sub(1) == Some(*last) || core == *last => *last = core,
            _ => runs.push((core, core)),
        }
    }
    let told: Vec<String> = runs
        .into_iter()
        .map(|(a, b)| if a == b { a.to_string() } else { format!("{a}-{b}") })
        .collect();
    let word = if cores.len() == 1 { "core" } else { "cores" };
    let named = format!("{word} {}", told.join(","));
    if named.len() <= most { named } else { format!("{} cores", cores.len()) }
}
