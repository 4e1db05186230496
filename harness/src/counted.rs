//! One experiment with one thread, the same on every host: what exact counts are taken of.

use std::fmt;

use crate::memory::Policy;
use crate::native::{Conditions, Experiment, Failure, Make};
use crate::spin::StepRate;
use crate::window::Work;
use crate::workload::Workload;

/// An experiment that runs on the calling thread.
pub struct Counted {
    work: Box<dyn Work>,
    experiment: Experiment,
    done: u64,
}

impl fmt::Debug for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Counted").field("done", &self.done).finish_non_exhaustive()
    }
}

impl Counted {
    /// Makes the experiment. A nanosecond of the workload's work is one step, and memory lies
    /// where it is touched: counts must not depend on the host.
    ///
    /// # Errors
    /// When the experiment cannot be made.
    pub fn prepare(make: Make, workload: &Workload) -> Result<Self, Failure> {
        let conditions = Conditions {
            cpus: vec![0],
            own_memory: vec![Policy::FirstTouch],
            shared_memory: Policy::FirstTouch,
            workload: workload.clone(),
            steps: StepRate { ns_per_step: 1.0 },
            seed: 1,
        };
        let mut experiment = make(&conditions).map_err(Failure::Unavailable)?;
        let work = experiment.works.pop();
        let mut work =
            work.ok_or_else(|| Failure::Broken("the experiment has no thread".into()))?;
        work.prepare();
        Ok(Self { work, experiment, done: 0 })
    }

    /// Does about `ops` operations.
    pub fn run(&mut self, ops: u64) {
        self.done += self.work.batch(ops);
    }

    /// Checks that the primitive did its job.
    ///
    /// # Errors
    /// When it did not.
    pub fn finish(mut self) -> Result<(), Failure> {
        self.work.finish().map_err(Failure::Broken)?;
        drop(self.work);
        (self.experiment.verify)(&[self.done]).map_err(Failure::Broken)?;
        Ok(())
    }
}
