//! The hidden command of a benchmark's program: one row, one thread, n operations and then 2n.

use std::process::ExitCode;

use crate::callgrind::{UNAVAILABLE, measured};
use crate::memory::Policy;
use crate::native::{Conditions, Experiment};
use crate::spin::StepRate;
use crate::sweep::Row;
use crate::unavailable::Unavailable;
use crate::window::Work;
use crate::workload::Workload;

/// The first argument of the hidden command; the row's name and n follow.
const WORD: &str = "--measured-row";

/// Operations of the shorter run. A multiple of every period in the tables (rings of 1024 slots,
/// arenas of 1024 blocks), so that both runs hold whole ones.
pub(super) const OPS: u64 = 4096;

/// Gives the arguments that lead a program to the hidden command.
pub(super) fn arguments(row: &Row) -> Vec<String> {
    vec![WORD.into(), row.id.into(), OPS.to_string()]
}

/// Runs the hidden command if the command line holds it.
pub(super) fn if_asked(rows: &[Row]) -> Option<ExitCode> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [word, id, ops] = &words[..] else { return None };
    if word != WORD {
        return None;
    }
    let row = rows.iter().find(|row| row.id == *id);
    let outcome = match (row, ops.parse()) {
        (Some(row), Ok(ops)) => run(row, ops),
        _ => Err(Stopped::Broken(format!("no row {id}, or {ops} is not a number"))),
    };
    Some(match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(stopped) => stopped.report(),
    })
}

/// Why a row could not be counted.
#[derive(Debug)]
pub(super) enum Stopped {
    /// It cannot be run here.
    Unavailable(Unavailable),
    /// It broke a promise.
    Broken(String),
}

impl Stopped {
    /// Tells it to the program that ran this one.
    pub(super) fn report(self) -> ExitCode {
        match self {
            Self::Unavailable(reason) => {
                super::print_line(&serde_json::to_string(&reason).unwrap_or_default());
                ExitCode::from(u8::try_from(UNAVAILABLE).unwrap_or(super::FAILED))
            }
            Self::Broken(reason) => super::refuse(super::FAILED, &reason),
        }
    }
}

/// Runs one row with n and with 2n operations.
pub(super) fn run(row: &Row, ops: u64) -> Result<(), Stopped> {
    let mut counted = Counted::prepare(row)?;
    measured(ops, |ops| counted.run(ops));
    counted.finish()
}

/// One row's experiment with one thread, whatever the host.
#[derive(Debug)]
pub(super) struct Counted {
    work: Box<dyn Work>,
    experiment: Experiment,
    done: u64,
}

impl std::fmt::Debug for dyn Work {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Work")
    }
}

impl Counted {
    /// Makes the experiment.
    pub(super) fn prepare(row: &Row) -> Result<Self, Stopped> {
        let conditions = Conditions {
            cpus: vec![0],
            own_memory: vec![Policy::FirstTouch],
            shared_memory: Policy::FirstTouch,
            workload: Workload::default(),
            // A nanosecond of work is one step: counts must not depend on the speed of the host.
            steps: StepRate { ns_per_step: 1.0 },
            seed: 1,
        };
        let mut experiment = (row.make)(&conditions).map_err(Stopped::Unavailable)?;
        let work = experiment.works.pop();
        let mut work = work.ok_or(Stopped::Broken("the experiment has no thread".into()))?;
        work.prepare();
        Ok(Self { work, experiment, done: 0 })
    }

    /// Does about `ops` operations.
    pub(super) fn run(&mut self, ops: u64) {
        self.done += self.work.batch(ops);
    }

    /// Checks that the primitive did its job.
    pub(super) fn finish(mut self) -> Result<(), Stopped> {
        self.work.finish().map_err(Stopped::Broken)?;
        drop(self.work);
        (self.experiment.verify)(&[self.done]).map_err(Stopped::Broken)?;
        Ok(())
    }
}
