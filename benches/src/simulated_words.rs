//! The hidden command line by which a process of its own simulates one point.

use harness::latency::Load;
use harness::placement::Placement;
use harness::workload::Workload;

use crate::cli::workload_words;
use crate::target::Target;

/// The point.
pub(crate) struct SimulatedWords<'a> {
    pub(crate) target: &'a Target,
    pub(crate) primitive: &'a str,
    pub(crate) variant: &'a str,
    pub(crate) threads: usize,
    pub(crate) placement: &'a Placement,
    pub(crate) ops: u64,
    pub(crate) seed: u64,
    pub(crate) workload: &'a Workload,
}

impl SimulatedWords<'_> {
    /// Gives the arguments.
    pub(crate) fn words(&self) -> Vec<String> {
        let pairs = [
            ("--machine", self.target.for_children().to_owned()),
            ("--cores", self.target.machine.cores().to_string()),
            ("--primitive", self.primitive.to_owned()),
            ("--variant", self.variant.to_owned()),
            ("--threads", self.threads.to_string()),
            ("--placement", self.placement.to_string()),
            ("--memory", self.workload.memory.to_string()),
            ("--ops", self.ops.to_string()),
            ("--seed", self.seed.to_string()),
        ];
        let (latency, rate) = match self.workload.latency {
            None => (None, None),
            Some(load @ Load::Closed) => (Some(load), None),
            Some(load @ Load::Open { per_s }) => (Some(load), Some(per_s)),
        };
        let latency = latency.map(|load| ("--latency", load.to_string()));
        let rate = rate.map(|per_s| ("--rate", per_s.to_string()));
        let pairs = pairs.into_iter().chain(latency).chain(rate);
        let words = pairs.flat_map(|(word, value)| [word.to_owned(), value]);
        let workload = workload_words(self.workload);
        ["simulated".to_owned()].into_iter().chain(words).chain(workload).collect()
    }
}
