//! Exact counts of one thread, to be compared with callgrind's: the same program, the same hidden
//! command with the same arguments, the same loop.

use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use simulator::Simulation;
use simulator::machine::Machine;

use super::child::{Answer, Child, Ended, Kill};
use super::point::{on_a_fresh_stack, stopped};
use crate::counted::Counted;
use crate::memory::make_plain;
use crate::native::{Failure, Make};
use crate::unavailable::Unavailable;
use crate::workload::Workload;

/// The variable that tells the hidden command which engine has started it.
const ENGINE: &str = "MANYCORE_ENGINE";

/// What one run counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sum {
    /// Instructions.
    pub instructions: u64,
    /// Locked instructions and exchanges.
    pub rmw: u64,
}

/// What one operation costs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Counts {
    /// Operations of the shorter of the two runs.
    pub ops: u64,
    /// Instructions of an operation.
    pub instructions_per_op: f64,
    /// Locked instructions and exchanges of an operation.
    pub rmw_per_op: f64,
}

/// Has `program` count itself: `arguments` must lead it to [`measured`] with `ops`.
///
/// # Errors
/// When it fails, takes longer than `limit`, or gave a reason itself.
pub fn count(
    program: &Path,
    arguments: &[String],
    ops: u64,
    limit: Duration,
) -> Result<Counts, Unavailable> {
    // As callgrind has it: valgrind knows no restartable sequences.
    let environment = &[(ENGINE, "simulated"), ("GLIBC_TUNABLES", "glibc.pthread.rseq=0")];
    let child = Child { program, arguments, environment, stdin: None };
    let failed = |reason: String| Unavailable::because("simulation_failed", reason);
    let answer: Answer<[Sum; 2]> = match child.run(limit, &Kill::default()) {
        Ended::Answered(answer) => Answer::parse(&answer).map_err(failed)?,
        Ended::Failed(reason) => return Err(failed(reason)),
        Ended::Killed | Ended::Nothing => return Err(Unavailable::new("interrupted")),
    };
    let [once, twice] = answer.outcome().map_err(|failure| match failure {
        Failure::Unavailable(reason) => reason,
        Failure::Broken(reason) => failed(reason),
    })?;
    let per_op = |once: u64, twice: u64| {
        let added = twice.checked_sub(once);
        let added = added.ok_or_else(|| failed(format!("{twice} for 2n, {once} for n")))?;
        Ok(added as f64 / ops as f64)
    };
    Ok(Counts {
        ops,
        instructions_per_op: per_op(once.instructions, twice.instructions)?,
        rmw_per_op: per_op(once.rmw, twice.rmw)?,
    })
}

/// Runs a row with n and with 2n operations on one core of `machine`, and gives both sums.
///
/// # Errors
/// When the experiment cannot be made or simulated here, or is broken.
pub fn measured(
    machine: &Machine,
    make: Make,
    workload: &Workload,
    ops: u64,
) -> Result<[Sum; 2], Failure> {
    on_a_fresh_stack(|| simulate(machine, make, workload, ops))
}

fn simulate(
    machine: &Machine,
    make: Make,
    workload: &Workload,
    ops: u64,
) -> Result<[Sum; 2], Failure> {
    make_plain();
    let simulation = Simulation::on(machine).budget(Duration::from_secs(3600)).like_valgrind(true);
    let mut session = simulation.start().map_err(|error| {
        Failure::Unavailable(Unavailable::because("not_simulated", error.to_string()))
    })?;
    let lost = || Failure::Broken("the simulated thread gave nothing back".into());
    let made = session.once(|| Counted::prepare(make, workload)).map_err(stopped)?;
    let mut counted = made.results.into_iter().next().ok_or_else(lost)??;
    let mut run = |ops: u64| {
        let report = session.once(|| counted.run(ops)).map_err(stopped)?;
        let sum = Sum { instructions: report.total.instructions, rmw: report.total.rmw };
        Ok::<Sum, Failure>(sum)
    };
    // What is touched or initialised on first use is outside.
    run(ops)?;
    let sums = [run(ops)?, run(ops * 2)?];
    let verdict = session.once(|| counted.finish()).map_err(stopped)?;
    verdict.results.into_iter().next().ok_or_else(lost)??;
    Ok(sums)
}

/// Tells whether the engine that has started this program is the simulator.
pub fn is_asked() -> bool {
    std::env::var_os(ENGINE).is_some_and(|engine| engine == "simulated")
}
