//! What the latencies of a point come to.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Latencies, Load, QUANTILES, Times};
use crate::distance::{self, ALL};
use crate::records::Metric;
use crate::unavailable::Unavailable;

/// Part of the operations that must be served, or the open loop's times say how long the window was.
const LEAST_SERVED: f64 = 0.95;

/// Fewer acquisitions from a distance than this tell nothing.
const LEAST_HANDED: u64 = 10;

/// What the latencies of a point come to.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct LatencySummary {
    /// The figures.
    pub metrics: BTreeMap<String, Metric>,
    /// What makes them doubtful.
    pub reasons: Vec<String>,
}

/// Of which length windows were, and how their ticks become figures.
pub(crate) struct Measure<'a> {
    /// When threads asked.
    pub(crate) load: Load,
    /// The length of a window.
    pub(crate) window: Duration,
    /// Nanoseconds of a tick.
    pub(crate) ns_per_tick: f64,
    /// Ticks of reading the clock.
    pub(crate) reading_ticks: u64,
    /// Makes one figure of those of the passes.
    pub(crate) estimate: &'a dyn Fn(&[f64]) -> Metric,
}

/// Gives the times of a distance, by its position.
type OfDistance = fn(&Latencies, usize) -> &Times;

/// Summarises the passes of a point.
pub(crate) fn summary(passes: &[Latencies], measure: &Measure<'_>) -> LatencySummary {
    let mut metrics = BTreeMap::new();
    let mut reasons = Vec::new();
    let sum = |of: &dyn Fn(&Latencies) -> u64| passes.iter().map(of).sum::<u64>();
    let (asked, served) = (sum(&|pass| pass.asked), sum(&|pass| pass.served));
    let overloaded = match measure.load {
        Load::Closed => None,
        Load::Open { .. } => {
            let seconds = measure.window.as_secs_f64() * passes.len() as f64;
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
            None => measure.quantile(passes.iter().map(|pass| &pass.times), part, least),
        };
        metrics.insert(format!("latency_ns.{name}"), metric);
    }
    let by_distance: [(&str, OfDistance); 2] = [
        ("acquire_ns", |pass, at| &pass.acquired[at]),
        ("handoff_ns", |pass, at| &pass.handed[at]),
    ];
    for (family, times) in by_distance {
        for (at, distance) in ALL.into_iter().enumerate() {
            let of = || passes.iter().map(|pass| times(pass, at));
            if of().any(|times| times.count() > 0) {
                let metric = measure.quantile(of(), 0.5, LEAST_HANDED);
                metrics.insert(format!("{family}.{}", distance::word(distance)), metric);
            }
        }
    }
    let saturated = sum(&|pass| pass.times.saturated());
    if saturated > 0 {
        reasons.push(format!("{saturated} latencies of more than a minute count as a minute"));
    }
    reasons.extend(overloaded);
    let counts = [("latency_samples", served), ("latency_saturated", saturated)];
    metrics.extend(counts.map(|(name, value)| (name.into(), Metric::Count { value })));
    let overhead = Metric::figure(measure.reading_ticks as f64 * measure.ns_per_tick);
    metrics.insert("latency_overhead_ns".into(), overhead);
    LatencySummary { metrics, reasons }
}

impl Measure<'_> {
    /// One figure of the passes' quantiles, if each has samples enough.
    fn quantile<'t>(
        &self,
        passes: impl Iterator<Item = &'t Times>,
        part: f64,
        least: u64,
    ) -> Metric {
        let mut values = Vec::new();
        for times in passes {
            if times.count() < least {
                let count = times.count();
                let detail = format!("{count} samples in a pass, {least} are needed");
                return Metric::Missing(Unavailable::because("too_few_samples", detail));
            }
            values.push(times.quantile(part) as f64 * self.ns_per_tick);
        }
        (self.estimate)(&values)
    }
}
