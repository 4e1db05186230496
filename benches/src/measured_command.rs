//! The hidden command that engines run: one variant, one thread, n operations and then 2n.

use harness::callgrind::{UNAVAILABLE, measured};
use harness::memory::Policy;
use harness::native::Conditions;
use harness::spin::StepRate;

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
    let conditions = Conditions {
        cpus: vec![0],
        own_memory: vec![Policy::FirstTouch],
        shared_memory: Policy::FirstTouch,
        workload: arguments.workload.workload(),
        // A nanosecond of work is one step: counts must not depend on the speed of the host.
        steps: StepRate { ns_per_step: 1.0 },
        seed: 1,
    };
    let mut experiment = match (variant.row.make)(&conditions) {
        Ok(experiment) => experiment,
        Err(reason) => {
            let reason = serde_json::to_string(&reason);
            stdout::print(&reason.map_err(|error| Failure::Failed(error.to_string()))?)?;
            std::process::exit(UNAVAILABLE);
        }
    };
    let Some(mut work) = experiment.works.pop() else {
        return Err(Failure::Failed("the experiment has no thread".into()));
    };
    work.prepare();
    let mut done = 0;
    measured(arguments.ops, |ops| done += work.batch(ops));
    work.finish().map_err(Failure::Failed)?;
    drop(work);
    (experiment.verify)(&[done]).map_err(Failure::Failed)?;
    Ok(())
}
