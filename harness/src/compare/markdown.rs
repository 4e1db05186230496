//! A comparison as Markdown, for a summary of a CI job or a comment.

use std::fmt::Write;

use super::rows::{Row, alone, notes, rows, sentence};
use super::{Comparison, Verdict};
use crate::report::escape::Markdown as Escaped;

/// So many rows of a table; CIs cut long summaries off.
const ROWS: usize = 300;
/// So many points that only one file has.
const ALONE: usize = 100;

/// Gives the Markdown.
pub fn text(comparison: &Comparison, ignore_missing: bool) -> String {
    let sign = match comparison.verdict(ignore_missing) {
        Verdict::Regressed => "❌",
        Verdict::Inconclusive => "❔",
        _ => "✅",
    };
    let sentence = sentence(comparison, ignore_missing);
    let mut text = format!("## {sign} {}\n\n", Escaped(&sentence));
    let (old, new) = (comparison.old.path.display(), comparison.new.path.display());
    let (old, new) = (old.to_string(), new.to_string());
    let _ = writeln!(text, "{} → {}", Escaped(&old), Escaped(&new));
    let rows = rows(comparison);
    if !rows.is_empty() {
        text.push_str("\n| verdict | point | metric | old | new | change | why |\n");
        text.push_str("|---|---|---|--:|--:|--:|---|\n");
    }
    for Row { verdict, point, metric, old, new, change, why } in rows.iter().take(ROWS) {
        let cells = [verdict.word(), point, metric, old, new, change, why];
        let cells: Vec<String> = cells.iter().map(|cell| Escaped(cell).to_string()).collect();
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    }
    if rows.len() > ROWS {
        let _ = writeln!(text, "\n{} rows more.", rows.len() - ROWS);
    }
    let mut lines = alone(&comparison.only_old, "OLD", ALONE);
    lines.extend(alone(&comparison.only_new, "NEW", ALONE));
    lines.extend(notes(comparison));
    if !lines.is_empty() {
        text.push('\n');
    }
    for line in lines {
        let _ = writeln!(text, "- {}", Escaped(&line));
    }
    text
}
