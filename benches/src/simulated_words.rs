//! The hidden command line by which a process of its own simulates one point.

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
        let words = pairs.into_iter().flat_map(|(word, value)| [word.to_owned(), value]);
        let workload = workload_words(self.workload);
        ["simulated".to_owned()].into_iter().chain(words).chain(workload).collect()
    }
}
