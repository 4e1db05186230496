//! Latencies natively: passes of their own, since timing every operation slows them all.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::{Conditions, Failure, Make, Native};
use crate::distance::{self, APART};
use crate::latency::{self, Latencies, Load, Plan, QUANTILES, Times};
use crate::records::Metric;
use crate::stats::median_with_interval;
use crate::unavailable::Unavailable;
use crate::workload::Workload;

/// Part of the operations that must be served, or the open loop's times say how long the window was.
const LEAST_SERVED: f64 = 0.95;

/// Fewer hand-overs than this tell nothing.
const LEAST_HANDED: u64 = 10;

/// What the latencies of a point come to.
#[derive(Debug, Clone)]
pub struct LatencySummary {
    /// The figures.
    pub metrics: BTreeMap<String, Metric>,
    /// What makes them doubtful.
    pub reasons: Vec<String>,
}

impl Native {
    /// Times every operation of one window.
    ///
    /// # Errors
    /// When the experiment cannot be made or run here, or is broken.
    pub fn latencies(
        &mut self,
        conditions: &Conditions,
        make: Make,
        window: Duration,
        (load, pass): (Load, u64),
    ) -> Result<Latencies, Failure> {
        // The loop that times thinks itself, and not always for the same time.
        let workload = Workload { think_ns: 0, ..conditions.workload.clone() };
        let without_think = Conditions { workload, ..conditions.clone() };
        let experiment = make(&without_think).map_err(Failure::Unavailable)?;
        let plan = Plan {
            warm_up: window / 5,
            window,
            load,
            think: conditions.steps.steps(conditions.workload.think_ns),
            seed: conditions.seed.wrapping_add(pass << 32),
            distances: Arc::new(self.distances(&conditions.cpus)),
        };
        let cpus = &conditions.cpus;
        let measured = latency::run(&mut self.team, &self.clock, cpus, experiment.works, &plan)?;
        measured.verdict.clone().map_err(Failure::Broken)?;
        (experiment.verify)(&measured.ops).map_err(Failure::Broken)?;
        Ok(measured)
    }

    fn distances(&self, cpus: &[u32]) -> Vec<Vec<usize>> {
        let far = |one: u32, other: u32| {
            let places = self.topology.pu(one).zip(self.topology.pu(other));
            places.map_or(0, |(one, other)| distance::position(distance::between(&one, &other)))
        };
        let row = |&one: &u32| cpus.iter().map(|&other| far(one, other)).collect();
        cpus.iter().map(row).collect()
    }

    /// Summarises the passes of a point: medians of each pass's quantiles.
    pub fn latency_summary(
        &self,
        passes: &[Latencies],
        (load, window): (Load, Duration),
        seed: u64,
    ) -> LatencySummary {
        let mut metrics = BTreeMap::new();
        let mut reasons = Vec::new();
        let sum = |of: &dyn Fn(&Latencies) -> u64| passes.iter().map(of).sum::<u64>();
        let (asked, served) = (sum(&|pass| pass.asked), sum(&|pass| pass.served));
        let overloaded = match load {
            Load::Closed => None,
            Load::Open { .. } => {
                let seconds = window.as_secs_f64() * passes.len() as f64;
                let rates = [("offered_ops_per_s", asked), ("served_ops_per_s", served)];
                let rates = rates.map(|(name, ops)| (name, ops as f64 / seconds));
                metrics.extend(rates.map(|(name, rate)| (name.into(), Metric::figure(rate))));
                let [(_, offered), (_, done)] = rates;
                ((served as f64) < asked as f64 * LEAST_SERVED).then(|| {
                    format!("{offered:.0} operations a second were offered, {done:.0} were served")
                })
            }
        };
        for (name, part, least) in QUANTILES {
            let metric = match &overloaded {
                Some(rates) => Metric::Missing(Unavailable::because("overloaded", rates.clone())),
                None => self.quantile(passes.iter().map(|pass| &pass.times), part, least, seed),
            };
            metrics.insert(format!("latency_ns.{name}"), metric);
        }
        for (distance, at) in APART.into_iter().zip(0..) {
            let handed = || passes.iter().map(|pass| &pass.handed[at]);
            if handed().any(|times| times.count() > 0) {
                let metric = self.quantile(handed(), 0.5, LEAST_HANDED, seed);
                metrics.insert(format!("handoff_ns.{}", distance::word(distance)), metric);
            }
        }
        let saturated = sum(&|pass| pass.times.saturated());
        if saturated > 0 {
            reasons.push(format!("{saturated} latencies of more than a minute count as a minute"));
        }
        reasons.extend(overloaded);
        let counts = [("latency_samples", served), ("latency_saturated", saturated)];
        metrics.extend(counts.map(|(name, value)| (name.into(), Metric::Count { value })));
        let overhead = self.clock.ns(self.clock.reading_ticks as f64);
        metrics.insert("latency_overhead_ns".into(), Metric::figure(overhead));
        LatencySummary { metrics, reasons }
    }

    /// The median of the passes' quantiles, if each has samples enough.
    fn quantile<'a>(
        &self,
        passes: impl Iterator<Item = &'a Times>,
        part: f64,
        least: u64,
        seed: u64,
    ) -> Metric {
        let mut values = Vec::new();
        for times in passes {
            if times.count() < least {
                let count = times.count();
                let detail = format!("{count} samples in a pass, {least} are needed");
                return Metric::Missing(Unavailable::because("too_few_samples", detail));
            }
            values.push(self.clock.ns(times.quantile(part) as f64));
        }
        Metric::estimate(median_with_interval(&values, seed), "no_operations")
    }
}
