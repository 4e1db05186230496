//! What `manycore lines` found, as text and as JSON.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use harness::line_records::{Line, Lines};
use harness::records::Metric;
use harness::report::number::short;
use harness::simulated::{HotLine, LineReport, Sharing};
use harness::unavailable::Unavailable;
use serde_json::{Map, Value, json};

/// The figures that are compared; none where an operation was never done.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Figures {
    transfers_per_op: f64,
    ns_per_op: f64,
}

impl Figures {
    /// Takes them from a point's figures.
    pub(crate) fn of(metrics: &BTreeMap<String, Metric>) -> Self {
        let value = |name: &str| metrics.get(name).and_then(Metric::value).unwrap_or(f64::NAN);
        let distances = ["smt", "same_l3", "same_socket", "cross_socket"];
        let transfers = distances.map(|distance| value(&format!("transfers_per_op.{distance}")));
        Self { transfers_per_op: transfers.iter().sum(), ns_per_op: value("ns_per_op") }
    }

    fn metrics(self) -> BTreeMap<String, Metric> {
        let metric = |value: f64| match value.is_finite() {
            true => Metric::figure(value),
            false => Metric::Missing(Unavailable::new("no_operations")),
        };
        let figures = [("transfers_per_op", self.transfers_per_op), ("ns_per_op", self.ns_per_op)];
        figures.into_iter().map(|(name, value)| (name.to_owned(), metric(value))).collect()
    }

    fn json(self) -> Value {
        json!({"transfers_per_op": self.transfers_per_op, "ns_per_op": self.ns_per_op})
    }
}

/// What came of a run with the bytes of a line apart.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WhatIf {
    /// The line's address.
    pub(crate) line: u64,
    /// None if something else lay there.
    pub(crate) figures: Option<Figures>,
}

/// All that was found out about a point.
#[derive(Debug)]
pub(crate) struct Found<'a> {
    pub(crate) row: &'a str,
    pub(crate) machine: String,
    pub(crate) threads: usize,
    pub(crate) placement: String,
    pub(crate) ops: u64,
    pub(crate) seed: u64,
    /// Whether the machine fetches pairs of lines.
    pub(crate) pairs: bool,
    pub(crate) figures: Figures,
    /// The factor by which times may be off.
    pub(crate) band: f64,
    pub(crate) lines: &'a LineReport,
    pub(crate) what_ifs: Vec<WhatIf>,
}

impl Found<'_> {
    /// The table, and each line of it that cores share.
    pub(crate) fn text(&self, top: usize) -> String {
        let Self { row, machine, threads, placement, ops, seed, figures, .. } = self;
        let count = |count: usize, word: &str| match count {
            1 => format!("1 {word}"),
            count => format!("{count} {word}s"),
        };
        let pairs = if self.pairs { "pairs of lines" } else { "single lines" };
        let mut text = format!(
            "{row} on {machine} (simulated, fetches {pairs})\n\
             {}, {placement}, {ops} operations of each, seed {seed}: {} transfers and {} ns an \
             operation\ntimes may be off by a factor of {} either way\n\n{}",
            count(*threads, "thread"),
            short(figures.transfers_per_op),
            short(figures.ns_per_op),
            self.band,
            self.lines.table(top),
        );
        let shared = |line: &&HotLine| {
            line.transfers.total() > 0 && line.sharing != Sharing::Private
                || line.sharing == Sharing::Pair
        };
        for line in self.lines.lines.iter().take(top).filter(shared) {
            let _ = write!(text, "\n{line}");
            if let Some(what_if) = self.what_ifs.iter().find(|what_if| what_if.line == line.address)
            {
                let _ = writeln!(text, "  {}", self.told(what_if));
            }
        }
        text.trim_end().to_owned()
    }

    fn told(&self, what_if: &WhatIf) -> String {
        let Some(then) = what_if.figures else {
            return "tried: something else lay there, so nothing is known".into();
        };
        let now = self.figures;
        let worse = then.ns_per_op >= now.ns_per_op;
        format!(
            "tried: transfers {} to {} an operation, time {} to {} ns{}",
            change(now.transfers_per_op, then.transfers_per_op),
            short(then.transfers_per_op),
            change(now.ns_per_op, then.ns_per_op),
            short(then.ns_per_op),
            if worse { ": better together" } else { "" },
        )
    }

    /// The record of it, with so many lines.
    pub(crate) fn record(&self, run: String, workload: Map<String, Value>, top: usize) -> Lines {
        let (primitive, variant) = self.row.split_once('/').unwrap_or((self.row, ""));
        let lines = self.lines.lines.iter().take(top).map(|line| {
            let what_if = self.what_ifs.iter().find(|what_if| what_if.line == line.address);
            let tried = what_if.and_then(|what_if| what_if.figures);
            Line { tried: tried.map(Figures::metrics).unwrap_or_default(), ..Line::of(line) }
        });
        Lines {
            record: "lines".to_owned(),
            run,
            engine: "simulated".to_owned(),
            machine: self.machine.clone(),
            primitive: primitive.to_owned(),
            variant: variant.to_owned(),
            workload,
            threads: self.threads,
            placement: self.placement.clone(),
            seed: self.seed,
            fetches_pairs: self.pairs,
            metrics: self.figures.metrics(),
            lines: lines.collect(),
            other: Map::new(),
        }
    }

    /// Everything, with so many lines.
    pub(crate) fn json(&self, top: usize) -> Value {
        let lines = self.lines.lines.iter().take(top).map(|line| {
            let mut value = json!(line);
            value["shared_bytes"] = json!(line.shared_bytes());
            let what_if = self.what_ifs.iter().find(|what_if| what_if.line == line.address);
            value["what_if"] = what_if.map_or(Value::Null, |what_if| match what_if.figures {
                Some(figures) => figures.json(),
                None => json!({"unavailable": "moved"}),
            });
            value
        });
        let left = self.lines.lines.iter().skip(top);
        let mut others = self.lines.others;
        for line in left {
            others.lines += 1;
            others.transfers += line.transfers.total();
            others.stall_ps += line.transfer_ps + line.memory_ps;
        }
        json!({
            "row": self.row, "machine": self.machine, "threads": self.threads,
            "placement": self.placement, "ops": self.ops, "seed": self.seed,
            "fetches_pairs": self.pairs,
            "figures": self.figures.json(),
            "time_factor": self.band,
            "lines": lines.collect::<Vec<_>>(),
            "others": others,
        })
    }
}

/// Gives a change in per cent.
fn change(from: f64, to: f64) -> String {
    let percent = 100.0 * (to / from - 1.0);
    match percent.is_finite() {
        true if percent.abs() < 0.5 => "±0 %".into(),
        true => format!("{percent:+.0} %").replace('-', "−"),
        false => "from 0".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes() {
        assert_eq!(change(10.0, 1.7), "−83 %");
        assert_eq!(change(10.0, 15.0), "+50 %");
        assert_eq!(change(10.0, 10.01), "±0 %");
        assert_eq!(change(0.0, 1.0), "from 0");
    }
}
