//! What the threads of a step do.

use std::collections::BTreeMap;

use super::turn::Turn;

/// Figures that a job has beyond those that all have.
pub(crate) type Facts = BTreeMap<String, f64>;

/// A job that is made on one thread and done by all, or why there is none.
pub(crate) type Made = Result<Box<dyn Job + Send>, String>;

/// What threads do together. Executed twice: once to warm up, once to be measured.
pub(crate) trait Job: Sync {
    /// Is told that a round begins, with the number of operations of each thread.
    fn begin(&self, _round: &Round) {}

    /// Is one thread's part of a round.
    fn work(&self, turn: &mut Turn<'_>);

    /// Looks at what came of the round, and gives facts about it.
    ///
    /// # Errors
    /// What was broken.
    fn check(&self, done: &[u64]) -> Result<Facts, String>;
}

/// What a round is like.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Round {
    /// Operations of each thread.
    pub(crate) ops: u64,
    /// When it begins, by the clock of the step: a little later than now.
    pub(crate) start: u64,
}
