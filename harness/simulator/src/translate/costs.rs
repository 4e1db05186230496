//! What instructions cost.

use crate::pace::Pace;
use crate::time::Time;

/// What instructions cost on the machine, beside what the memory model adds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Costs {
    /// An instruction, sustained.
    pub(crate) instruction: Time,
    /// The same while a sibling is at work.
    pub(crate) shared: Time,
    /// What a locked instruction costs more, on a line that the core owns.
    pub(crate) locked: Time,
    /// What a fence costs more.
    pub(crate) fence: Time,
    /// What `pause` costs.
    pub(crate) pause: Time,
}

impl Costs {
    /// Gives what an instruction costs at a pace.
    pub(crate) fn of_one(&self, pace: Pace) -> Time {
        match pace {
            Pace::Whole => self.instruction,
            Pace::Shared => self.shared,
        }
    }
}
