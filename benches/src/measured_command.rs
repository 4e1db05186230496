//! The hidden command that engines run: one variant, one thread, n operations and then 2n.

use harness::callgrind::{UNAVAILABLE, measured};
use harness::counted::Counted;
use harness::simulated::{self, DEFAULT_MACHINE, Machine};

use crate::cli::MeasuredArgs;
use crate::exit::Failure;
use crate::simulated_command::{answer, only};
use crate::stdout;

/// Runs the command.
///
/// # Errors
/// When the variant is unknown or broke a promise.
pub(crate) fn run(arguments: &MeasuredArgs) -> Result<(), Failure> {
    let variant = only(&arguments.primitive, &arguments.variant)?;
    let workload = arguments.workload.workload();
    if simulated::is_asked() {
        let machine =
            Machine::named(DEFAULT_MACHINE).map_err(|error| Failure::Failed(error.to_string()))?;
        let make = variant.row.make;
        return answer(simulated::measured(&machine, make, &workload, arguments.ops));
    }
    let counted = Counted::prepare(variant.row.make, &workload);
    let outcome = counted.and_then(|mut counted| {
        measured(arguments.ops, |ops| counted.run(ops));
        counted.finish()
    });
    match outcome {
        Ok(()) => Ok(()),
        Err(harness::native::Failure::Broken(reason)) => Err(Failure::Failed(reason)),
        Err(harness::native::Failure::Unavailable(reason)) => {
            let reason = serde_json::to_string(&reason);
            stdout::print(&reason.map_err(|error| Failure::Failed(error.to_string()))?)?;
            std::process::exit(UNAVAILABLE);
        }
    }
}
