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
    /// Tells what it takes, if that can be told.
    pub(crate) bytes: fn() -> Option<Bytes>,
}

impl Candidate {
    /// With what it takes.
    fn taking(self, bytes: fn() -> Option<Bytes>) -> Self {
        Self { bytes, ..self }
    }
}

/// Bytes that something takes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bytes {
    /// The thing itself, without what is kept in it.
    pub(crate) object: usize,
    /// What each waiter brings, or each slot takes; `None` where there are none, or it is not told.
    pub(crate) each: Option<usize>,
}

impl Bytes {
    fn of(object: usize, each: Option<usize>) -> Option<Self> {
        Some(Self { object, each })
    }
}

/// What several do alike, so that they can be compared.
pub(crate) struct Job {
    pub(crate) id: &'static str,
    /// The crate of ours that does it.
    pub(crate) of: &'static str,
    /// What an operation is.
    pub(crate) what: &'static str,
    /// Threads on this host; `None` for what is only counted.
    pub(crate) threads: Option<usize>,
    /// Whether one thread alone can do it, so that its instructions can be counted.
    pub(crate) counted: bool,
    /// The most cores on which it is simulated; none if it says nothing there.
    pub(crate) most_cores: usize,
    pub(crate) workload: Workload,
    pub(crate) candidates: Vec<Candidate>,
}

impl Job {
    /// A job of one thread.
    fn alone(id: &'static str, what: &'static str, candidates: Vec<Candidate>) -> Self {
        let (workload, threads) = (Workload::default(), Some(1));
        Self { id, of: "", what, threads, counted: true, most_cores: 0, workload, candidates }
    }

    /// A job of several threads, which is simulated with any number.
    fn together(
        id: &'static str,
        what: &'static str,
        threads: usize,
        candidates: Vec<Candidate>,
    ) -> Self {
        let threads = Some(threads);
        Self {
            threads,
            counted: false,
            most_cores: usize::MAX,
            ..Self::alone(id, what, candidates)
        }
    }

    /// Finds a candidate.
    pub(crate) fn candidate(&self, id: &str) -> Option<&Candidate> {
        self.candidates.iter().find(|candidate| candidate.id == id)
    }
}

/// Makes a candidate.
fn candidate(id: &'static str, whose: Whose, make: Make) -> Candidate {
    Candidate { id, whose, make, bytes: || None }
}

/// Makes a candidate of another crate.
fn theirs(id: &'static str, make: Make) -> Candidate {
    candidate(id, Whose::Theirs, make)
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
    let by_crate = [
        ("locks", [mutexes::jobs(), readers::jobs()]),
        ("queues", [queues::jobs(), deques::jobs()]),
        ("counters", [counters::jobs(), vec![]]),
        ("alloc-arena", [arenas::jobs(), slabs::jobs()]),
    ];
    let of = |(of, jobs): (&'static str, [Vec<Job>; 2])| {
        jobs.into_iter().flatten().map(move |job| Job { of, ..job })
    };
    by_crate.into_iter().flat_map(of).collect()
}
