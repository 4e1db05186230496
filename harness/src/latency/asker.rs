//! Asks for one operation after the other, and makes a sample of each. The same loops run on this
//! host's CPUs and on simulated cores.

use crate::clock::Clock;
use crate::spin::chain;
use crate::window::{Handed, Timed, Work};

/// How long one operation took, in ticks, less what reading the clock cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sample {
    /// From asking, or from when it should have been asked, to being served.
    pub(crate) took: u64,
    /// Who had it before, where that is known.
    pub(crate) before: Option<Before>,
}

/// How what another thread had came to this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Before {
    /// The rank of the thread that had it before.
    pub(crate) by: u32,
    /// Whether it still had it when this one asked.
    pub(crate) waited: bool,
    /// From its letting go, if it was waited for, else from asking; to having it.
    pub(crate) ticks: u64,
}

impl Sample {
    /// Counts from `since`, of which reading the clock is a part or not.
    fn of(timed: &Timed, since: u64, overhead: u64, reading: u64) -> Self {
        let took = timed.done.saturating_sub(since).saturating_sub(overhead);
        let before = timed.handed.map(|Handed { by, released }| {
            let waited = released > timed.began;
            let from = if waited { released } else { timed.began };
            let ticks = timed.done.saturating_sub(from).saturating_sub(reading);
            Before { by: by as u32, waited, ticks }
        });
        Self { took, before }
    }
}

/// A thread's work, and what became of it.
pub(crate) struct Asker<'a> {
    work: &'a mut dyn Work,
    clock: &'a Clock,
    /// Operations that were done, those that nobody counts among them.
    pub(crate) ops: u64,
    /// Operations that were asked for.
    pub(crate) asked: u64,
    /// Operations among them that were done.
    pub(crate) served: u64,
}

impl<'a> Asker<'a> {
    pub(crate) fn new(work: &'a mut dyn Work, clock: &'a Clock) -> Self {
        Self { work, clock, ops: 0, asked: 0, served: 0 }
    }

    /// Does one operation, asking again while it could not be done, until it is over.
    pub(crate) fn once(&mut self, over: impl Fn(u64) -> bool) -> Option<Timed> {
        let mut began = None;
        loop {
            let timed = self.work.timed(self.clock);
            self.ops += timed.ops;
            let began = *began.get_or_insert(timed.began);
            if timed.ops > 0 {
                return Some(Timed { began, ..timed });
            }
            if over(timed.done) {
                return None;
            }
        }
    }

    /// Asks when it has been served and has thought, so many steps each time, until it is over.
    pub(crate) fn closed(
        &mut self,
        thinks: impl Iterator<Item = u64>,
        over: impl Fn(u64) -> bool,
        mut count: impl FnMut(Sample),
    ) {
        let overhead = self.clock.reading_ticks;
        for think in thinks {
            self.asked += 1;
            let Some(timed) = self.once(&over) else { return };
            self.served += 1;
            count(Sample::of(&timed, timed.began, overhead, overhead));
            if over(timed.done) {
                return;
            }
            chain(think);
        }
    }

    /// Asks at the ticks intended, or as soon after them as it can. What cannot begin before the
    /// deadline is asked for all the same.
    pub(crate) fn open(
        &mut self,
        intended: impl Iterator<Item = u64>,
        deadline: u64,
        mut count: impl FnMut(Sample),
    ) {
        let mut late = false;
        for intended in intended {
            self.asked += 1;
            if late {
                continue;
            }
            while self.clock.now() < intended {
                std::hint::spin_loop();
            }
            let Some(timed) = self.once(|now| now >= deadline) else {
                late = true;
                continue;
            };
            late = timed.done >= deadline;
            self.served += 1;
            count(Sample::of(&timed, intended, 0, self.clock.reading_ticks));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_waited_for_counts_from_letting_go() {
        let timed = |released| Timed {
            began: 100,
            done: 190,
            ops: 1,
            handed: Some(Handed { by: 3, released }),
        };
        let before = |released| Sample::of(&timed(released), 40, 0, 10).before;
        assert_eq!(before(150), Some(Before { by: 3, waited: true, ticks: 30 }));
        assert_eq!(before(90), Some(Before { by: 3, waited: false, ticks: 80 }));
        assert_eq!(Sample::of(&timed(150), 40, 0, 10).took, 150);
        assert_eq!(Sample::of(&timed(150), 100, 10, 10).took, 80);
        let nobody = Timed { handed: None, ..timed(0) };
        assert_eq!(Sample::of(&nobody, 100, 10, 10), Sample { took: 80, before: None });
    }
}
