//! The hidden command that engines run: one variant, one thread, n operations and then 2n.

use harness::callgrind::{UNAVAILABLE, measured};
use harness::counted::Counted;

use crate::cli::MeasuredArgs;
use crate::exit::Failure;
use crate::{rows, select, stdout};

/// Runs the command.
///
/// # Errors
/// When the variant is unknown or broke a promise.
pub(crate) fn run(arguments: &MeasuredArgs) -> Result<(), Failure> {
    let primitive = std::slice::from_ref(&arguments.primitive);
    let chosen =
        select::variants(rows::all(), primitive, std::slice::from_ref(&arguments.variant))?;
    let Some(variant) = chosen.first() else {
        return Err(Failure::Usage(format!("no variant {}", arguments.variant)));
    };
    let counted = Counted::prepare(variant.row.make, &arguments.workload.workload());
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
