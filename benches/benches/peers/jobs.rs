//! The jobs that primitives are priced at, and who does each: ours, other crates, the loop alone.

mod arenas;
mod counters;
mod deques;
mod mutexes;
mod queues;
mod readers;
mod slabs;

use harness::native::Make;
use harness::workload::Workload;

/// Whose code it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whose {
    /// Of this repository.
    Ours,
    /// Of this repository, and built wrongly on purpose.
    Control,
    /// Of another crate or of the standard library.
    Theirs,
    /// The loop without the primitive.
    Nobody,
}

/// One who does a job.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Candidate {
    /// `locks/ticket`, `parking_lot::Mutex`.
    pub(crate) id: &'static str,
    pub(crate) whose: Whose,
    pub(crate) make: Make,
}

/// What several do alike, so that they can be compared.
pub(crate) struct Job {
    pub(crate) id: &'static str,
    /// What an operation is.
    pub(crate) what: &'static str,
    /// Threads on this host; `None` for what is only counted.
    pub(crate) threads: Option<usize>,
    /// Whether one thread alone can do it, so that its instructions can be counted.
    pub(crate) counted: bool,
    /// Whether it says something on many cores.
    pub(crate) simulated: bool,
    pub(crate) workload: Workload,
    pub(crate) candidates: Vec<Candidate>,
}

impl Job {
    /// A job of one thread.
    fn alone(id: &'static str, what: &'static str, candidates: Vec<Candidate>) -> Self {
        let (workload, threads) = (Workload::default(), Some(1));
        Self { id, what, threads, counted: true, simulated: false, workload, candidates }
    }

    /// A job of several threads, which is simulated too.
    fn together(
        id: &'static str,
        what: &'static str,
        threads: usize,
        candidates: Vec<Candidate>,
    ) -> Self {
        let threads = Some(threads);
        Self { threads, counted: false, simulated: true, ..Self::alone(id, what, candidates) }
    }

    /// Which of ours does it, in the words of the model's errors.
    pub(crate) fn primitive(&self) -> &'static str {
        let ours = self.candidates.iter().filter_map(|one| one.id.split_once('/'));
        ours.map(|(primitive, _)| primitive).next().unwrap_or("locks")
    }

    /// Finds a candidate.
    pub(crate) fn candidate(&self, id: &str) -> Option<&Candidate> {
        self.candidates.iter().find(|candidate| candidate.id == id)
    }
}

/// Makes a candidate of another crate.
fn theirs(id: &'static str, make: Make) -> Candidate {
    Candidate { id, whose: Whose::Theirs, make }
}

/// The word of a table's third column.
macro_rules! whose {
    (baseline) => {
        $crate::jobs::Whose::Nobody
    };
    (variant) => {
        $crate::jobs::Whose::Ours
    };
    (control) => {
        $crate::jobs::Whose::Control
    };
}
use whose;

/// Every job.
pub(crate) fn all() -> Vec<Job> {
    let mut all = mutexes::jobs();
    all.extend(readers::jobs());
    all.extend(queues::jobs());
    all.extend(deques::jobs());
    all.extend(counters::jobs());
    all.extend(arenas::jobs());
    all.extend(slabs::jobs());
    all
}
