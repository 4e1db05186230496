//! The hidden command of a benchmark's program: one row, one thread, n operations and then 2n.

use std::process::ExitCode;

use crate::callgrind::{UNAVAILABLE, measured};
use crate::counted::Counted;
use crate::native::Failure;
use crate::sweep::Row;
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
        _ => Err(Failure::Broken(format!("no row {id}, or {ops} is not a number"))),
    };
    Some(match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => report(failure),
    })
}

/// Tells the program that ran this one why a row could not be counted.
pub(super) fn report(failure: Failure) -> ExitCode {
    match failure {
        Failure::Unavailable(reason) => {
            super::print_line(&serde_json::to_string(&reason).unwrap_or_default());
            ExitCode::from(u8::try_from(UNAVAILABLE).unwrap_or(super::FAILED))
        }
        Failure::Broken(reason) => super::refuse(super::FAILED, &reason),
    }
}

/// Runs one row with n and with 2n operations.
pub(super) fn run(row: &Row, ops: u64) -> Result<(), Failure> {
    let mut counted = Counted::prepare(row.make, &Workload::default())?;
    measured(ops, |ops| counted.run(ops));
    counted.finish()
}
