//! The verdicts of the whole page, at its top.

use crate::report::html::{Page, host, text};
use crate::report::model::{Model, Section, words};
use crate::report::number::{exact, short};
use crate::report::verdict::{By, Place, Verdict};

/// So many verdicts are shown at the top; all stand beside their plots.
const MOST: usize = 60;

pub(super) fn section(page: &mut Page, model: &Model) {
    page.put(format_args!("<section id=\"verdicts\"><h2>Verdicts</h2>"));
    let mut shown = 0;
    for host in 0..model.hosts.len() {
        for section in model.sections(host) {
            if shown < MOST {
                shown += table(page, model, host, &section, MOST - shown);
            }
        }
    }
    page.put(format_args!(
        "<p class=\"note\">First is the most operations a second, under callgrind the fewest \
         instructions; <i>tied</i> are variants whose interval reaches that of the first. \
         Baselines and negative controls do not compete.</p></section>"
    ));
}

/// Writes the verdicts of a section, `most` at most. Gives how many.
fn table(page: &mut Page, model: &Model, at: usize, section: &Section<'_>, most: usize) -> usize {
    let mut rows: Vec<(Option<String>, Verdict)> = Vec::new();
    for family in &section.families {
        let verdicts = family.verdicts(&model.kinds);
        let several = verdicts.len() > 1;
        let row = |(workload, verdict)| (several.then(|| words(&workload)), verdict);
        rows.extend(verdicts.into_iter().map(row));
    }
    rows.truncate(most);
    let columns = rows.iter().map(|(_, verdict)| verdict.places.len()).max().unwrap_or(0).max(1);
    let heads: Vec<Option<usize>> =
        (0..columns).map(|column| same_threads(&rows, column)).collect();
    page.put(format_args!(
        "<div class=\"scroll\"><table class=\"verdicts\"><caption>{} on {}</caption><thead><tr>\
         <th scope=\"col\">primitive</th>",
        host::badge(section, false),
        text(&model.hosts[at].name, 60),
    ));
    for (column, head) in heads.iter().enumerate() {
        let head = match (head, column) {
            (Some(threads), _) => format!("first at {}", counted(*threads)),
            (None, 0) => "first at the most threads".into(),
            (None, _) => "first at the fewest".into(),
        };
        page.put(format_args!("<th scope=\"col\">{head}</th>"));
    }
    page.put(format_args!("<th scope=\"col\" class=\"n\">disturbed</th></tr></thead><tbody>"));
    for (workload, verdict) in &rows {
        row(page, workload.as_deref(), verdict, &heads);
    }
    page.put(format_args!("</tbody></table></div>"));
    rows.len()
}

/// The number of threads that all places of a column share.
fn same_threads(rows: &[(Option<String>, Verdict)], column: usize) -> Option<usize> {
    let mut all = rows.iter().filter_map(|(_, verdict)| verdict.places.get(column));
    let first = all.next()?.threads;
    all.all(|place| place.threads == first).then_some(first)
}

fn counted(threads: usize) -> String {
    format!("{threads} thread{}", if threads == 1 { "" } else { "s" })
}

fn row(page: &mut Page, workload: Option<&str>, verdict: &Verdict, heads: &[Option<usize>]) {
    let workload = workload
        .map_or_else(String::new, |words| format!("<br><small>{}</small>", text(words, 160)));
    page.put(format_args!("<tr><th scope=\"row\">{}{workload}</th>", text(&verdict.primitive, 60)));
    if verdict.places.is_empty() {
        page.put(format_args!("<td colspan=\"{}\">no variant gave a figure</td>", heads.len()));
    } else {
        for (column, head) in heads.iter().enumerate() {
            match verdict.places.get(column) {
                Some(place) => self::place(page, place, head.is_none()),
                None => page.put(format_args!("<td class=\"none\">–</td>")),
            }
        }
    }
    page.put(format_args!("<td class=\"n\">{} of {}</td></tr>", verdict.noisy, verdict.points));
}

fn place(page: &mut Page, place: &Place, with_threads: bool) {
    let (figure, unit) = match place.by {
        By::Throughput => (short(place.value / 1e6), "Mops/s"),
        By::Instructions => (exact(place.value), "instructions/op"),
    };
    let fairness = place.fairness.map_or_else(String::new, |f| format!(", fairness {f:.2}"));
    let threads =
        if with_threads { format!(" at {}", counted(place.threads)) } else { String::new() };
    page.put(format_args!(
        "<td><b>{}</b> <span class=\"at\">{figure} {unit}{fairness}{threads}</span>",
        text(&place.best, 40),
    ));
    if let Some(whereabouts) = &place.whereabouts {
        page.put(format_args!("<br><small>{}</small>", text(whereabouts, 60)));
    }
    if !place.ties.is_empty() {
        let ties = text(&place.ties.join(", "), 160);
        page.put(format_args!("<br><small>tied with {ties}</small>"));
    }
    page.put(format_args!("</td>"));
}
