//! The hidden command that simulates one point and answers in JSON.

use harness::native::Failure as Broken;
use harness::placement::Placement;
use harness::simulated::child::Answer;
use harness::simulated::{Cores, Machine, Measured, Request, measure};
use harness::sweep::Ground;
use harness::unavailable::Unavailable;
use serde::Serialize;

use crate::cli::SimulatedArgs;
use crate::exit::Failure;
use crate::rows::Variant;
use crate::{rows, select, stdout};

/// Runs the command.
///
/// # Errors
/// When the command line names what does not exist.
pub(crate) fn run(arguments: &SimulatedArgs) -> Result<(), Failure> {
    let variant = only(&arguments.primitive, &arguments.variant)?;
    let machine = Machine::find(&arguments.machine)
        .and_then(|machine| machine.with_cores(arguments.cores))
        .map_err(|error| Failure::Usage(error.to_string()))?;
    answer(point(&variant, &machine, arguments))
}

fn point(
    variant: &Variant,
    machine: &Machine,
    arguments: &SimulatedArgs,
) -> Result<Measured, Broken> {
    let cores = cores(machine, &arguments.placement, arguments.threads);
    let request = Request {
        machine,
        cores: &cores.map_err(Broken::Unavailable)?,
        ops: arguments.ops,
        seed: arguments.seed,
        workload: &arguments.workload.workload(),
    };
    measure(variant.row.make, &request)
}

fn cores(
    machine: &Machine,
    placement: &Placement,
    threads: usize,
) -> Result<Vec<u32>, Unavailable> {
    let order = Cores::of(machine).order(placement)?;
    Ok(order.iter().copied().cycle().take(threads).collect())
}

/// Gives the one variant of this name.
///
/// # Errors
/// When there is none.
pub(crate) fn only(primitive: &str, variant: &str) -> Result<Variant, Failure> {
    let chosen = select::variants(rows::all(), &[primitive.into()], &[variant.into()])?;
    chosen.into_iter().next().ok_or_else(|| Failure::Usage(format!("no variant {variant}")))
}

/// Prints what was found out, and ends the process: after a run that was stopped, threads of it
/// stand where they were for ever.
///
/// # Errors
/// When standard output cannot be written.
pub(crate) fn answer<T: Serialize>(outcome: Result<T, Broken>) -> Result<(), Failure> {
    let answer = serde_json::to_string(&Answer::new(outcome));
    stdout::print(&answer.map_err(|error| Failure::Failed(error.to_string()))?)?;
    std::process::exit(0)
}
