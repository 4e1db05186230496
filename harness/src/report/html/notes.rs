//! The end of the page: reasons, skipped lines, what is not known, what the metrics mean.

use std::collections::{BTreeMap, BTreeSet};

use crate::glossary;
use crate::records::Status;
use crate::report::html::{Page, text};
use crate::report::model::Model;
use crate::report::number::{grouped, plural};

/// So many rows of each kind are listed.
const LISTED: usize = 60;

pub(super) fn sections(page: &mut Page, model: &Model) {
    reasons(page, model);
    skipped(page, model);
    unknown(page, model);
    metrics(page, model);
    page.put(format_args!(
        "</main><footer><p>Made by manycore {} from records alone. Figures are rounded to three \
         digits here; the records and <code>manycore report --format csv</code> have them in \
         full.</p></footer>",
        env!("CARGO_PKG_VERSION")
    ));
}

/// Reasons that differ in their numbers only are one.
pub(super) fn shape(reason: &str) -> String {
    let mut shape = String::new();
    for c in reason.chars().take(300) {
        match c {
            '0'..='9' | '.' if shape.ends_with('#') => {}
            '0'..='9' => shape.push('#'),
            c => shape.push(c),
        }
    }
    shape
}

/// Points that have one reason.
struct Seen {
    status: Status,
    example: String,
    points: u64,
    variants: BTreeSet<String>,
}

fn reasons(page: &mut Page, model: &Model) {
    let mut by_shape: BTreeMap<(u8, String), Seen> = BTreeMap::new();
    for point in model.points.iter().map(|shown| &shown.point) {
        let order = match point.status {
            Status::Broken => 0,
            Status::Unavailable => 1,
            Status::Noisy => 2,
            Status::Ok => 3,
        };
        for reason in &point.reasons {
            let seen = by_shape.entry((order, shape(reason))).or_insert_with(|| Seen {
                status: point.status,
                example: reason.clone(),
                points: 0,
                variants: BTreeSet::new(),
            });
            seen.points += 1;
            if seen.variants.len() < 200 {
                seen.variants.insert(format!("{} {}", point.primitive, point.variant));
            }
        }
    }
    if by_shape.is_empty() {
        return;
    }
    let disturbed = model.points.iter().filter(|shown| shown.point.status != Status::Ok).count();
    page.put(format_args!(
        "<section id=\"reasons\"><h2>What disturbed or prevented points</h2><p class=\"note\">{} \
         of \
         {} are not <i>ok</i>. Noisy figures are shown, hollow; what is broken or unavailable has \
         none.</p><div class=\"scroll\"><table class=\"facts\"><thead><tr><th scope=\"col\">status</th>\
         <th scope=\"col\" class=\"n\">points</th><th scope=\"col\">reason, for example</th><th scope=\"col\">where</th></tr></thead><tbody>",
        grouped(disturbed as u64),
        plural(model.points.len() as u64, "point"),
    ));
    for Seen { status, example, points, variants } in by_shape.values().take(LISTED) {
        let shown: Vec<String> = variants.iter().take(4).cloned().collect();
        let more = if variants.len() > 4 {
            format!(" and {} more", variants.len() - 4)
        } else {
            String::new()
        };
        page.put(format_args!(
            "<tr><td><span class=\"status {status}\">{status}</span></td><td \
             class=\"n\">{}</td><td>{}</td><td>{}{more}</td></tr>",
            grouped(*points),
            text(example, 300),
            text(&shown.join(", "), 200)
        ));
    }
    page.put(format_args!("</tbody></table></div>"));
    if by_shape.len() > LISTED {
        page.put(format_args!(
            "<p class=\"note\">and {} other reasons</p>",
            by_shape.len() - LISTED
        ));
    }
    page.put(format_args!("</section>"));
}

fn skipped(page: &mut Page, model: &Model) {
    let total: u64 = model.inputs.iter().map(|input| input.skipped_lines).sum();
    if total == 0 {
        return;
    }
    page.put(format_args!(
        "<section id=\"skipped\"><h2>Skipped lines</h2><p class=\"note\">{} not understood. \
         Nothing \
         was deleted.</p><div class=\"scroll\"><table class=\"facts\"><thead><tr><th scope=\"col\">file</th>\
         <th scope=\"col\" class=\"n\">line</th><th scope=\"col\">what is wrong</th></tr></thead><tbody>",
        plural(total, "line")
    ));
    let all = model.inputs.iter().flat_map(|input| {
        let file = input.path.display().to_string();
        input.skipped.iter().map(move |skipped| (file.clone(), skipped))
    });
    let mut listed = 0;
    for (file, skipped) in all.take(LISTED) {
        listed += 1;
        page.put(format_args!(
            "<tr><td><code>{}</code></td><td class=\"n\">{}</td><td>{}</td></tr>",
            text(&file, 120),
            skipped.line,
            text(&skipped.reason, 200)
        ));
    }
    page.put(format_args!("</tbody></table></div>"));
    if total > listed {
        page.put(format_args!("<p class=\"note\">and {} more</p>", grouped(total - listed)));
    }
    page.put(format_args!("</section>"));
}

fn unknown(page: &mut Page, model: &Model) {
    if model.unknown.is_empty() {
        return;
    }
    page.put(format_args!(
        "<section id=\"unknown\"><h2>Keys that this version does not know</h2><div \
         class=\"scroll\">\
         <table class=\"facts\"><thead><tr><th scope=\"col\">key</th><th scope=\"col\" class=\"n\">records</th>\
         <th scope=\"col\">for example</th></tr></thead><tbody>"
    ));
    for (key, (count, example)) in model.unknown.iter().take(LISTED) {
        page.put(format_args!(
            "<tr><td><code>{}</code></td><td class=\"n\">{}</td><td><code>{}</code></td></tr>",
            text(key, 80),
            grouped(*count),
            text(example, 120)
        ));
    }
    page.put(format_args!("</tbody></table></div></section>"));
}

fn metrics(page: &mut Page, model: &Model) {
    let names: BTreeSet<&str> = model
        .points
        .iter()
        .flat_map(|shown| shown.point.metrics.keys())
        .filter_map(|metric| glossary::entry(metric))
        .map(|entry| entry.name)
        .collect();
    page.put(format_args!(
        "<section id=\"metrics\"><h2>What the metrics mean</h2><details><summary>{}</summary><dl>",
        plural(names.len() as u64, "metric")
    ));
    for entry in glossary::TABLE.iter().filter(|entry| names.contains(entry.name)) {
        page.put(format_args!(
            "<dt><code>{}</code> <span class=\"note\">{}</span></dt><dd>{} <span class=\"note\">{}",
            text(entry.name, 60),
            text(if entry.unit == "1" { "" } else { entry.unit }, 20),
            text(entry.means, 400),
            text(entry.formula, 300),
        ));
        page.put(format_args!("</span>"));
        if !entry.beware.is_empty() {
            page.put(format_args!(" <b>Beware:</b> {}", text(entry.beware, 400)));
        }
        page.put(format_args!("</dd>"));
    }
    page.put(format_args!("</dl></details></section>"));
}
