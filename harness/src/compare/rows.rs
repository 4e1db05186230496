//! What differs, row by row, as the terminal and Markdown show it.

use super::{Alone, Comparison, Figure, Finding, Pair, Tally, Verdict};
use crate::records::Skipped;
use crate::report::number::{exact, short};

/// A figure that differs, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The verdict.
    pub verdict: Verdict,
    /// Which point.
    pub point: String,
    /// Which metric; empty where the whole point is meant.
    pub metric: String,
    /// What it was.
    pub old: String,
    /// What it is.
    pub new: String,
    /// By how much it changed.
    pub change: String,
    /// What the verdict stands on.
    pub why: String,
}

/// Gives what differs: first what got worse, then what cannot be told, then what got better. Pairs
/// whose figures must not be compared are told by a note instead.
pub fn rows(comparison: &Comparison) -> Vec<Row> {
    let mut rows: Vec<Row> = comparison.pairs.iter().flat_map(of_pair).collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.verdict));
    rows
}

fn of_pair(pair: &Pair) -> Vec<Row> {
    if pair.findings.is_empty() {
        let told = matches!(pair.why.as_str(), "" | "hosts or builds differ");
        let row = || Row {
            verdict: pair.verdict,
            point: pair.name.to_string(),
            metric: String::new(),
            old: String::new(),
            new: String::new(),
            change: String::new(),
            why: pair.why.clone(),
        };
        return if told { Vec::new() } else { vec![row()] };
    }
    pair.findings.iter().map(|finding| of_finding(pair, finding)).collect()
}

fn of_finding(pair: &Pair, finding: &Finding) -> Row {
    let Finding { metric, old, new, verdict, p, why } = finding;
    let mut why = why.to_string();
    if let Some(p) = p {
        why.push_str(&format!(", p {}", short(*p)));
    }
    Row {
        verdict: *verdict,
        point: pair.name.to_string(),
        metric: (*metric).to_owned(),
        old: figure(*old),
        new: figure(*new),
        change: change(*old, *new),
        why,
    }
}

/// Small changes of large counts are to be seen.
fn figure(figure: Option<Figure>) -> String {
    match figure {
        None => "-".into(),
        Some(Figure { value, interval: true, .. }) => short(value),
        Some(Figure { value, .. }) if value.fract() == 0.0 => exact(value),
        Some(Figure { value, .. }) => {
            let text = format!("{value:.4}");
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
    }
}

/// Gives `+12.5 %`; a change from 0 is one in all.
pub fn change(old: Option<Figure>, new: Option<Figure>) -> String {
    match (old, new) {
        (Some(old), Some(new)) if old.value != 0.0 => {
            let percent = (new.value / old.value - 1.0) * 100.0;
            match percent.abs() {
                small if small < 0.1 => format!("{percent:+.4} %"),
                huge if huge >= 1e4 => format!("× {}", short(new.value / old.value)),
                _ => format!("{percent:+.1} %"),
            }
        }
        _ => String::new(),
    }
}

/// Says what the comparison came to, in one line.
pub fn sentence(comparison: &Comparison, ignore_missing: bool) -> String {
    let Tally { equal, improved, regressed, inconclusive, unmeasured } = comparison.tally;
    let verdict = comparison.verdict(ignore_missing);
    let counts = [
        (regressed, "regressed"),
        (inconclusive, "inconclusive"),
        (improved, "improved"),
        (equal, "equal"),
        (unmeasured, "without figures"),
    ];
    let counts = counts.into_iter().filter(|(count, _)| *count > 0);
    let mut parts: Vec<String> = counts.map(|(count, word)| format!("{count} {word}")).collect();
    if parts.is_empty() {
        parts.push("no point is in both files".into());
    }
    for (alone, file) in [(&comparison.only_old, "OLD"), (&comparison.only_new, "NEW")] {
        if alone.points > 0 {
            parts.push(format!("{} only in {file}", alone.points));
        }
    }
    for (input, file) in [(&comparison.old, "OLD"), (&comparison.new, "NEW")] {
        if input.lost_lines > 0 {
            parts.push(format!("{} of {file} not understood", plural(input.lost_lines, "line")));
        }
    }
    let pairs = plural(comparison.tally.pairs(), "pair");
    format!("{}: {pairs} of points: {}", verdict.word(), parts.join(", "))
}

/// Gives everything that a person should know besides: files, hosts, builds, lines skipped.
pub fn notes(comparison: &Comparison) -> Vec<String> {
    let mut notes = comparison.notes.clone();
    if comparison.refused > 0 {
        notes.push(format!(
            "{} not compared, since hosts or builds differ",
            plural(comparison.refused, "figure")
        ));
    }
    for input in [&comparison.old, &comparison.new] {
        let path = input.path.display();
        if input.replaced > 0 {
            let points = plural(input.replaced, "point");
            notes.push(format!(
                "{path}: {points} measured again later in the file; the last counts"
            ));
        }
        for Skipped { line, reason, .. } in &input.skipped {
            notes.push(format!("{path} line {line} skipped: {reason}"));
        }
        let more = input.skipped_lines - input.skipped.len() as u64;
        if more > 0 {
            notes.push(format!("{path}: {more} more lines skipped"));
        }
    }
    if comparison.tests > 1 {
        let tests = comparison.tests;
        notes.push(format!("{tests} times were tested; p is corrected for that (Holm)"));
    }
    if comparison.left_out > 0 {
        notes.push(format!("{} are counted but not listed", plural(comparison.left_out, "pair")));
    }
    notes
}

/// Gives `1 pair`, `2000 pairs`: digits that can be searched for.
fn plural(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// Gives points that only one file has, with what they are called, up to `most` of them.
pub fn alone(alone: &Alone, file: &str, most: usize) -> Vec<String> {
    let mut lines: Vec<String> =
        alone.names.iter().take(most).map(|name| format!("only in {file}: {name}")).collect();
    let more = alone.points - lines.len() as u64;
    if more > 0 && !lines.is_empty() {
        lines.push(format!("only in {file}: {more} more"));
    }
    lines
}
