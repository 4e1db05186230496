//! Siblings share the issue slots of their core: while another hardware thread of it is at work,
//! instructions take longer.
//!
//! Code is written twice for that, once for each pace, and a core changes over at the beginning of
//! the first block after its sibling began or ended its work. What locked instructions, fences,
//! hints and waits take does not depend on slots.

use crate::engine::Engine;
use crate::halt::Halt;
use crate::time::Time;

/// How fast a core executes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pace {
    /// All issue slots are the core's own.
    Whole,
    /// A sibling is at work as well.
    Shared,
}

impl Engine {
    /// The pace of a core, as its siblings are now.
    pub(crate) fn pace_of(&self, at: usize) -> Pace {
        let works =
            |&other: &u32| other as usize != at && self.cores[other as usize].thread.is_some();
        if self.siblings[at].iter().any(works) { Pace::Shared } else { Pace::Whole }
    }

    /// A core has begun or ended its work at `time`: its siblings change their pace from then on.
    pub(crate) fn siblings_change(&mut self, at: usize, time: Time) {
        for i in 0..self.siblings[at].len() {
            let other = self.siblings[at][i] as usize;
            self.rouse(other);
            let pace = self.pace_of(other);
            let rank = self.cores[at].rank;
            let core = &mut self.cores[other];
            if other == at || core.thread.is_none() {
                continue;
            }
            let after = Time::from(core.rank < rank);
            core.changes = (pace != core.pace).then_some((time + after, pace));
            core.spin.disturb();
            let stands = if core.spin.is_parked() {
                core.wake(self.now + after);
                Some(core.time)
            } else {
                let from = core.changes.map(|(from, _)| from);
                from.and_then(|from| core.has_not_begun(from, &self.translator))
            };
            if let Some(time) = stands {
                self.waiting.withdraw(self.cores[other].rank);
                self.enqueue(other, time);
            }
        }
    }

    /// Whether a core changes its pace at the block that it stands at.
    pub(crate) fn has_to_change(&self, at: usize) -> bool {
        let core = &self.cores[at];
        core.changes.is_some_and(|(from, _)| core.time >= from)
    }

    /// Lets a core go on at its new pace, with the block at an address.
    pub(crate) fn change_pace(&mut self, at: usize, rip: u64) -> Result<(), Box<Halt>> {
        if let Some((_, pace)) = self.cores[at].changes.take() {
            self.cores[at].set_pace(pace, &self.translator);
            let block = self.block(at, rip)?;
            self.go_to_block(at, block);
        }
        Ok(())
    }
}
