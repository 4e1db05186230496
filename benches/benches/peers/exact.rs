//! Instructions and RMWs of an operation, counted by the simulator with one thread.

use harness::simulated::Sum;

use crate::Priced;
use crate::processes::{EXACT, run};

/// Operations of the shorter of the two runs.
const OPS: u64 = 4096;

/// What one operation costs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Exact {
    pub(crate) instructions: f64,
    pub(crate) rmw: f64,
}

/// Counts each job that one thread can do.
pub(crate) fn count(all: &mut [Priced]) -> Result<(), String> {
    let mut words = Vec::new();
    for priced in all.iter().filter(|priced| priced.job.counted) {
        for (_, candidate) in priced.candidates() {
            let point = [EXACT, priced.job.id, candidate.id, &OPS.to_string()];
            words.push(point.map(str::to_owned).to_vec());
        }
    }
    let mut results = run::<[Sum; 2]>("exact", words)?.into_iter();
    for priced in all.iter_mut().filter(|priced| priced.job.counted) {
        let of_job = results.by_ref().take(priced.job.candidates.len());
        priced.exact = of_job.map(|sums| sums.map(difference)).collect();
    }
    Ok(())
}

fn difference([once, twice]: [Sum; 2]) -> Exact {
    let per_op = |once: u64, twice: u64| (twice as f64 - once as f64) / OPS as f64;
    Exact {
        instructions: per_op(once.instructions, twice.instructions),
        rmw: per_op(once.rmw, twice.rmw),
    }
}
