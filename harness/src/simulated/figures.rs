//! What was counted, and the figures that follow.

use std::collections::BTreeMap;
use std::ops::Sub;

use serde::{Deserialize, Serialize};
use simulator::machine::Machine;

use crate::latency::LatencySummary;
use crate::records::Metric;
use crate::stats::jain;
use crate::unavailable::Unavailable;

/// What the cores did, all together. Integers, so that they cross a pipe unharmed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the glossary describes each, with `_per_op` behind it")]
pub struct Sums {
    pub instructions: u64,
    pub accesses: u64,
    pub rmw: u64,
    pub fences: u64,
    pub syscalls: u64,
    pub context_switches: u64,
    pub smt: u64,
    pub same_l3: u64,
    pub same_socket: u64,
    pub cross_socket: u64,
    pub invalidations: u64,
    pub memory_reads: u64,
    /// Of these, lines from another node than the core's.
    pub remote_reads: u64,
    pub stall_ps: u64,
    /// From the beginning to the end, in picoseconds.
    pub time_ps: u64,
}

impl Sums {
    fn zip(self, other: Self, with: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            instructions: with(self.instructions, other.instructions),
            accesses: with(self.accesses, other.accesses),
            rmw: with(self.rmw, other.rmw),
            fences: with(self.fences, other.fences),
            syscalls: with(self.syscalls, other.syscalls),
            context_switches: with(self.context_switches, other.context_switches),
            smt: with(self.smt, other.smt),
            same_l3: with(self.same_l3, other.same_l3),
            same_socket: with(self.same_socket, other.same_socket),
            cross_socket: with(self.cross_socket, other.cross_socket),
            invalidations: with(self.invalidations, other.invalidations),
            memory_reads: with(self.memory_reads, other.memory_reads),
            remote_reads: with(self.remote_reads, other.remote_reads),
            stall_ps: with(self.stall_ps, other.stall_ps),
            time_ps: with(self.time_ps, other.time_ps),
        }
    }

    /// Gives `count` times a `part`-th of these.
    pub(super) fn times(self, count: u64, part: u64) -> Self {
        self.zip(self, |sum, _| sum.saturating_mul(count) / part)
    }
}

impl Sub for Sums {
    type Output = Self;

    /// Where more would be taken than there is, nothing is left.
    fn sub(self, other: Self) -> Self {
        self.zip(other, u64::saturating_sub)
    }
}

impl From<simulator::Counts> for Sums {
    fn from(counts: simulator::Counts) -> Self {
        Self {
            instructions: counts.instructions,
            accesses: counts.accesses(),
            rmw: counts.rmw,
            fences: counts.fences,
            syscalls: counts.syscalls,
            context_switches: counts.context_switches,
            smt: counts.transfers.smt,
            same_l3: counts.transfers.same_l3,
            same_socket: counts.transfers.same_socket,
            cross_socket: counts.transfers.cross_socket,
            invalidations: counts.invalidations,
            memory_reads: counts.memory_reads,
            remote_reads: counts.remote_reads,
            stall_ps: counts.stall_ps,
            time_ps: counts.time_ps,
        }
    }
}

/// What was counted of a point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Operations of each thread in the window.
    pub ops: Vec<u64>,
    /// What all did in the window, without the price of calling the batches.
    pub sums: Sums,
    /// What the experiment's own driver adds.
    pub facts: BTreeMap<String, Metric>,
    /// What the rounds that timed single operations came to, if there were any.
    pub latency: Option<LatencySummary>,
}

/// Gives the figures of a point that was simulated on `machine`. `band` is the factor by which times
/// may be off ([`band`](super::band())).
pub fn metrics(measured: &Measured, machine: &Machine, band: f64) -> BTreeMap<String, Metric> {
    let Measured { ops: by_thread, sums, facts, latency } = measured;
    let ops: u64 = by_thread.iter().sum();
    let figure = |value: f64| match value.is_finite() {
        true => Metric::figure(value),
        false => Metric::Missing(Unavailable::new("no_operations")),
    };
    let timed = |value: f64| match figure(value) {
        Metric::Figure { value, .. } => {
            Metric::Figure { value, low: Some(value / band), high: Some(value * band) }
        }
        missing => missing,
    };
    let per_op = |sum: u64| figure(sum as f64 / ops as f64);
    let threads_ns = by_thread.len() as f64 * sums.time_ps as f64 / 1e3;
    let ns_per_op = threads_ns / ops as f64;
    let figures = [
        ("ops", Metric::Count { value: ops }),
        ("ns_per_op", timed(ns_per_op)),
        ("ops_per_s", timed(ops as f64 * 1e12 / sums.time_ps as f64)),
        ("fairness_jain", figure(jain(by_thread).unwrap_or(f64::NAN))),
        ("cycles_per_op", timed(ns_per_op * machine.clock_ghz())),
        ("stall_ns_per_op", timed(sums.stall_ps as f64 / 1e3 / ops as f64)),
        ("instructions_per_op", per_op(sums.instructions)),
        ("accesses_per_op", per_op(sums.accesses)),
        ("rmw_per_op", per_op(sums.rmw)),
        ("fences_per_op", per_op(sums.fences)),
        ("syscalls_per_op", per_op(sums.syscalls)),
        ("context_switches_per_op", per_op(sums.context_switches)),
        ("transfers_per_op.smt", per_op(sums.smt)),
        ("transfers_per_op.same_l3", per_op(sums.same_l3)),
        ("transfers_per_op.same_socket", per_op(sums.same_socket)),
        ("transfers_per_op.cross_socket", per_op(sums.cross_socket)),
        ("invalidations_per_op", per_op(sums.invalidations)),
        ("memory_reads_per_op", per_op(sums.memory_reads)),
        ("memory_reads_per_op.local", per_op(sums.memory_reads.saturating_sub(sums.remote_reads))),
        ("memory_reads_per_op.remote", per_op(sums.remote_reads)),
    ];
    let figures = figures.into_iter().map(|(name, metric)| (name.to_owned(), metric));
    let latencies = latency.iter().flat_map(|latency| latency.metrics.clone());
    let latencies = latencies.map(|(name, metric)| match metric {
        Metric::Figure { value, .. } if name != "offered_ops_per_s" => (name, timed(value)),
        other => (name, other),
    });
    facts.clone().into_iter().chain(figures).chain(latencies).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_follow_from_sums() {
        let machine = Machine::named(super::super::DEFAULT_MACHINE).unwrap();
        let sums = Sums { instructions: 100, time_ps: 8_000, same_l3: 5, ..Sums::default() };
        let sums = Sums { memory_reads: 30, remote_reads: 10, ..sums };
        let facts = [("bytes_per_object".to_owned(), Metric::Count { value: 64 })].into();
        let figures =
            metrics(&Measured { ops: vec![6, 4], sums, facts, latency: None }, &machine, 2.0);
        let value = |name: &str| figures[name].value().unwrap();
        assert_eq!(value("ops"), 10.0);
        // Two threads for 8 ns each did ten.
        assert_eq!(value("ns_per_op"), 1.6);
        assert_eq!(
            figures["ns_per_op"],
            Metric::Figure { value: 1.6, low: Some(0.8), high: Some(3.2) }
        );
        assert_eq!(value("ops_per_s"), 1.25e9);
        assert_eq!(value("instructions_per_op"), 10.0);
        assert_eq!(value("transfers_per_op.same_l3"), 0.5);
        assert_eq!(value("rmw_per_op"), 0.0);
        assert_eq!(value("memory_reads_per_op"), 3.0);
        assert_eq!(value("memory_reads_per_op.local"), 2.0);
        assert_eq!(value("memory_reads_per_op.remote"), 1.0);
        assert_eq!(value("bytes_per_object"), 64.0);
        let (sums, facts) = (Sums::default(), BTreeMap::new());
        let nothing = Measured { ops: vec![0], sums, facts, latency: None };
        let missing = &metrics(&nothing, &machine, 2.0)["ns_per_op"];
        assert_eq!(*missing, Metric::Missing(Unavailable::new("no_operations")));
    }

    #[test]
    fn every_figure_is_in_the_glossary() {
        let machine = Machine::named(super::super::DEFAULT_MACHINE).unwrap();
        let (sums, facts) = (Sums::default(), BTreeMap::new());
        let measured = Measured { ops: vec![1], sums, facts, latency: None };
        for name in metrics(&measured, &machine, 2.0).keys() {
            let entry = crate::glossary::entry(name).unwrap_or_else(|| panic!("{name}"));
            assert!(entry.engines.iter().any(|(engine, _)| *engine == "simulated"), "{name}");
        }
    }
}
