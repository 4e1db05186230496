//! Latencies natively: passes of their own, since timing every operation slows them all.

use std::sync::Arc;
use std::time::Duration;

use super::{Conditions, Failure, Make, Native};
use crate::distance;
use crate::latency::{self, Latencies, LatencySummary, Load, Measure, Plan, summary};
use crate::records::Metric;
use crate::stats::median_with_interval;
use crate::workload::Workload;

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
            places.map_or(0, |(one, other)| distance::place(distance::between(&one, &other)))
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
        let estimate =
            |values: &[f64]| Metric::estimate(median_with_interval(values, seed), "no_operations");
        let measure = Measure {
            load,
            window,
            ns_per_tick: self.clock.ns(1.0),
            reading_ticks: self.clock.reading_ticks,
            estimate: &estimate,
        };
        summary(passes, &measure)
    }
}
