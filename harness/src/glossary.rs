//! What each metric means, its formula, how it is got, and what to beware of: one table, from
//! which `manycore explain`, `docs/glossary.md` and the report's explanations are made.
//!
//! ```
//! use harness::glossary;
//! let entry = glossary::entry("latency_ns.p99").unwrap();
//! assert_eq!((entry.name, entry.unit), ("latency_ns.*", "ns"));
//! ```

mod table;
mod ways;

use std::fmt::Write;

pub use table::TABLE;

/// What a metric is about; the report has a place for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Topic {
    /// Time, throughput and how evenly threads were served.
    Speed,
    /// What was counted, not timed: instructions, atomic read-modify-writes, system calls.
    Counts,
    /// Lines of caches, who moved them and why.
    Lines,
    /// Where memory lies, and what was granted of what was asked for.
    Placement,
    /// What disturbed the measurement.
    Disturbance,
}

impl Topic {
    /// Every topic, in the order in which they are shown.
    pub const ALL: [Self; 5] =
        [Self::Speed, Self::Counts, Self::Lines, Self::Placement, Self::Disturbance];

    /// Gives the topic's heading.
    pub fn title(self) -> &'static str {
        match self {
            Self::Speed => "Speed and fairness",
            Self::Counts => "Exact counts",
            Self::Lines => "Cache lines",
            Self::Placement => "Memory and its placement",
            Self::Disturbance => "Disturbance",
        }
    }
}

/// One metric.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// Its name in records; one that ends in `.*` stands for all that begin like it.
    pub name: &'static str,
    /// What it is about.
    pub topic: Topic,
    /// Its unit; `1` for a ratio or a count.
    pub unit: &'static str,
    /// How it is computed.
    pub formula: &'static str,
    /// What it tells.
    pub means: &'static str,
    /// What to beware of; empty when nothing is known.
    pub beware: &'static str,
    /// Which engine gets it, and how.
    pub engines: &'static [(&'static str, &'static str)],
}

/// Gives the entry of a metric, by its name or by the family that it belongs to.
pub fn entry(metric: &str) -> Option<&'static Entry> {
    let family = |entry: &Entry| {
        entry.name.strip_suffix('*').is_some_and(|start| {
            metric.len() > start.len() && metric.starts_with(start) || metric == entry.name
        })
    };
    TABLE
        .iter()
        .find(|entry| entry.name == metric)
        .or_else(|| TABLE.iter().find(|entry| family(entry)))
}

/// Gives an entry as text for a terminal.
pub fn text(entry: &Entry) -> String {
    let mut text = format!("{} ({})\n\n  {}\n", entry.name, unit(entry), entry.means);
    let _ = writeln!(text, "\n  formula    {}", entry.formula);
    for (engine, how) in entry.engines {
        let _ = writeln!(text, "  {engine:<10} {how}");
    }
    if !entry.beware.is_empty() {
        let _ = writeln!(text, "  beware     {}", entry.beware);
    }
    text
}

fn unit(entry: &Entry) -> String {
    if entry.unit == "1" { "no unit".into() } else { format!("in {}", entry.unit) }
}

/// Gives `docs/glossary.md`.
pub fn markdown() -> String {
    let mut text = String::from(
        "# Glossary of metrics\n\n\
         Made by `manycore explain --markdown` from `harness/src/glossary/table.rs`; a test compares \
         the two. `manycore explain METRIC` prints one entry.\n\n\
         Where a figure has `low` and `high`, it is the median of the repetitions with the 95 % \
         percentile-bootstrap interval of that median (native), or a prediction with the band of \
         the model's validated error (simulated). Counts are summed over the repetitions. A \
         figure that could not be had is a typed reason, never 0.\n",
    );
    for topic in Topic::ALL {
        let _ = write!(text, "\n## {}\n", topic.title());
        for entry in TABLE.iter().filter(|entry| entry.topic == topic) {
            let _ = write!(text, "\n### `{}`\n\n{}\n\n", entry.name, entry.means);
            let _ = writeln!(text, "- unit: {}", entry.unit);
            let _ = writeln!(text, "- formula: {}", entry.formula);
            for (engine, how) in entry.engines {
                let _ = writeln!(text, "- {engine}: {how}");
            }
            if !entry.beware.is_empty() {
                let _ = writeln!(text, "- beware: {}", entry.beware);
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique_and_nothing_is_left_empty() {
        let names: BTreeSet<&str> = TABLE.iter().map(|entry| entry.name).collect();
        assert_eq!(names.len(), TABLE.len());
        for entry in TABLE {
            assert!(!entry.means.is_empty() && !entry.formula.is_empty(), "{}", entry.name);
            assert!(!entry.engines.is_empty() && !entry.unit.is_empty(), "{}", entry.name);
            assert!(entry.means.ends_with('.'), "{}", entry.name);
        }
    }

    #[test]
    fn families_answer_for_their_members() {
        assert_eq!(entry("transfers_per_op.same_l3").unwrap().name, "transfers_per_op.*");
        assert_eq!(entry("latency_ns.*").unwrap().name, "latency_ns.*");
        assert!(entry("latency_ns.").is_none() && entry("latency_ns").is_none());
        assert!(entry("nothing").is_none());
    }

    #[test]
    fn text_and_markdown_hold_every_entry() {
        let markdown = markdown();
        for entry in TABLE {
            assert!(markdown.contains(&format!("### `{}`\n", entry.name)));
            assert!(text(entry).contains(entry.means));
        }
    }
}
