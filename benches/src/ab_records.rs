//! `manycore ab --out`: a record of each variant, as a sweep writes them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use harness::records::{Metric, Point, Run, Status};
use harness::stats::{Estimate, median_with_interval};
use harness::unavailable::Unavailable;
use serde_json::{Map, json};

use crate::ab_arms::Arms;
use crate::ab_command::Measuring;
use crate::exit::Failure;
use crate::sweep_command::{doctor, header};
use crate::sweep_records::{Records, TOPOLOGY};

/// The file, and what its points have in common.
pub(crate) struct AbRecords {
    records: Records,
    run: String,
    /// Variants that are there: one against itself is one point.
    names: Vec<String>,
}

impl AbRecords {
    /// Examines the host and writes the run's header.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(crate) fn begin(path: PathBuf, arms: &Arms) -> Result<Self, Failure> {
        let mut records = Records::at(Some(path), false)?;
        let (topology, clock) = (arms.native.topology(), arms.native.clock());
        let mut header = Run { doctor: doctor(topology, clock), ..header(topology) };
        header.other.insert(TOPOLOGY.into(), json!(topology.plan()));
        records.write(&header)?;
        Ok(Self { records, run: header.run, names: Vec::new() })
    }

    /// Writes the variant at this position, with the times of its windows and the ratio to A.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(crate) fn write(
        &mut self,
        measuring: &Measuring,
        (arm, times): (usize, &[f64]),
        against_a: Option<Estimate>,
    ) -> Result<(), Failure> {
        let Arms { arguments, names, primitive, conditions, .. } = &measuring.arms;
        let name = &names[arm];
        if self.names.contains(name) {
            return Ok(());
        }
        self.names.push(name.clone());
        let (disturbed, windows) = (measuring.disturbed, measuring.windows);
        let noisy = disturbed * 2 > windows;
        let reason = format!("{disturbed} of {windows} windows were disturbed");
        let point = Point {
            record: "point".into(),
            run: self.run.clone(),
            engine: "native".into(),
            machine: "this-host".into(),
            primitive: (*primitive).into(),
            variant: name.rsplit('/').next().unwrap_or_default().into(),
            workload: conditions.workload.words(primitive),
            threads: conditions.threads(),
            placement: arguments.placement.to_string(),
            cpus: conditions.cpus.clone(),
            seed: arguments.seed,
            repeat: times.len() as u64,
            status: if noisy { Status::Noisy } else { Status::Ok },
            reasons: noisy.then_some(reason).into_iter().collect(),
            metrics: metrics(times, conditions.threads(), against_a, arguments.seed),
            per_thread: BTreeMap::new(),
            other: Map::new(),
        };
        self.records.write(&point)
    }
}

fn metrics(
    times: &[f64],
    threads: usize,
    against_a: Option<Estimate>,
    seed: u64,
) -> BTreeMap<String, Metric> {
    // A window in which nothing was completed has no time.
    let times: Vec<f64> = times.iter().copied().filter(|ns| ns.is_finite() && *ns > 0.0).collect();
    let rates: Vec<f64> = times.iter().map(|ns| threads as f64 * 1e9 / ns).collect();
    let estimate =
        |values: &[f64]| Metric::estimate(median_with_interval(values, seed), "no_operations");
    let ratio = against_a.map(|ratio| ("ratio_to_a".to_owned(), Metric::estimate(Some(ratio), "")));
    // Of each window the time of an operation is kept, and nothing else.
    let missing = || Metric::Missing(Unavailable::new("not_recorded"));
    let times = [
        ("ns_per_op", estimate(&times)),
        ("ops_per_s", estimate(&rates)),
        ("ops", missing()),
        ("fairness_jain", missing()),
        ("overlap", missing()),
    ];
    times.into_iter().map(|(name, metric)| (name.to_owned(), metric)).chain(ratio).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_follow_from_times_and_windows_without_operations_are_left_out() {
        let metrics = metrics(&[10.0, f64::INFINITY, 10.0, 10.0], 2, None, 1);
        assert_eq!(metrics["ns_per_op"].value(), Some(10.0));
        assert_eq!(metrics["ops_per_s"].value(), Some(2e8));
        assert_eq!(metrics.len(), 5);
        let nothing = super::metrics(&[f64::INFINITY], 2, None, 1);
        assert!(matches!(nothing["ns_per_op"], Metric::Missing(_)));
    }
}
