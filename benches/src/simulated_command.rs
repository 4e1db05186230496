//! The hidden command that simulates one point and answers in JSON.

use harness::native::Failure as Broken;
use harness::placement::Placement;
use harness::simulated::child::Answer;
use harness::simulated::{Cores, Machine, Request, Watch, confirm, measure, watch};
use harness::sweep::Ground;
use harness::unavailable::Unavailable;
use harness::workload::Workload;
use serde::Serialize;

use crate::cli::{SimulatedArgs, load};
use crate::exit::Failure;
use crate::rows::Variant;
use crate::{place, rows, select, stdout};

/// Runs the command.
///
/// # Errors
/// When the command line names what does not exist.
pub(crate) fn run(arguments: &SimulatedArgs) -> Result<(), Failure> {
    let variant = only(&arguments.primitive, &arguments.variant)?;
    let machine = Machine::find(&arguments.machine)
        .and_then(|machine| machine.with_cores(arguments.cores))
        .map_err(|error| Failure::Usage(error.to_string()))?;
    if arguments.place {
        return answer(with_request(&machine, arguments, |request| {
            confirm(variant.row.make, request, &place::tables())
        }));
    }
    let Some(apart) = &arguments.watch else {
        return answer(with_request(&machine, arguments, |request| {
            measure(variant.row.make, request)
        }));
    };
    let apart =
        serde_json::from_str(apart).map_err(|error| Failure::Usage(format!("--watch: {error}")))?;
    let wish = Watch { apart, trace: arguments.trace };
    answer(with_request(&machine, arguments, |request| watch(variant.row.make, request, &wish)))
}

fn with_request<T>(
    machine: &Machine,
    arguments: &SimulatedArgs,
    simulate: impl FnOnce(&Request<'_>) -> Result<T, Broken>,
) -> Result<T, Broken> {
    let cores = cores(machine, &arguments.placement, arguments.threads);
    let latency = load(arguments.latency, arguments.rate).map_err(Broken::Broken)?;
    simulate(&Request {
        machine,
        cores: &cores.map_err(Broken::Unavailable)?,
        ops: arguments.ops,
        seed: arguments.seed,
        workload: &Workload { memory: arguments.memory, latency, ..arguments.workload.workload() },
    })
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
