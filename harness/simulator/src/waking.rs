//! Cores that spin are woken when a line is about to be taken from them.
//!
//! Those whose loop begins with an access to that line are known to ask for it again, and when: if
//! it is under way then, they wait in its queue without having gone on.

use crate::coherence::LineId;
use crate::dozing::{State, rouse};
use crate::engine::Engine;
use crate::queue::Key;
use crate::time::Time;
use crate::waiting::Request;

/// A core that was woken and is known to ask for a line.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Foreseen {
    core: usize,
    time: Time,
}

/// How many cores ahead the processor is let load what it needs of them.
const AHEAD: usize = 2;

impl Engine {
    /// Wakes cores that spin on lines which these accesses will take from them; whether one of
    /// them has something left to do before `now`, where `rank` comes among equals. Those that are
    /// known to ask for the line are left to the caller.
    pub(crate) fn wakes_spinners(
        &mut self,
        at: usize,
        rank: u32,
        accesses: &[(u64, u64, bool)],
        now: Time,
    ) -> bool {
        let Self {
            cores, dozers, coherence, queue, core_of_cpu, translator, foreseen, losers, ..
        } = self;
        let cpu = cores[at].cpu;
        let mut before = false;
        for &(address, bytes, _) in accesses.iter().filter(|(.., write)| *write) {
            for line in address >> 6..=(address + bytes.max(1) - 1) >> 6 {
                let id = coherence.line(line << 6);
                losers.clear();
                coherence.others(id, cpu, |other| losers.push(core_of_cpu[other as usize]));
                for (i, &number) in losers.iter().enumerate() {
                    if let Some(&ahead) = losers.get(i + AHEAD)
                        && dozers[ahead as usize].state == State::Awake
                    {
                        cores[ahead as usize].prefetch(line << 6);
                    }
                    let dozer = &mut dozers[number as usize];
                    let core = &mut cores[number as usize];
                    if dozer.is_at(line << 6) {
                        dozer.wake(now + Time::from(dozer.rank < rank));
                        if (dozer.time, dozer.rank) < (now, rank) {
                            before = true;
                            queue.set(dozer.time, dozer.rank);
                            rouse(dozer, core, translator);
                        } else {
                            dozer.state = State::Asks;
                            let time = dozer.asks();
                            foreseen.push(Foreseen { core: number as usize, time });
                        }
                        continue;
                    }
                    rouse(dozer, core, translator);
                    if !core.spin.is_parked() {
                        continue;
                    }
                    core.wake(now + Time::from(core.rank < rank));
                    if (core.time, core.rank) < (now, rank) {
                        before = true;
                        queue.set(core.time, core.rank);
                    } else if let Some(time) = core.foresee(line << 6, translator) {
                        foreseen.push(Foreseen { core: number as usize, time });
                    } else {
                        queue.set(core.time, core.rank);
                    }
                }
            }
        }
        before
    }

    /// Wakes all cores that spin; whether one of them has something left to do before `at` goes on.
    pub(crate) fn wakes_all(&mut self, at: usize, now: Time) -> bool {
        let rank = self.cores[at].rank;
        let mut before = false;
        for other in 0..self.cores.len() {
            self.rouse(other);
            let core = &mut self.cores[other];
            if core.spin.is_parked() {
                core.wake(now + Time::from(core.rank < rank));
                before |= (core.time, core.rank) < (now, rank);
                let time = core.time;
                self.enqueue(other, time);
            }
        }
        before
    }

    /// Lets cores that were woken wait for their turn.
    pub(crate) fn wait_for_turns(&mut self) {
        for Foreseen { core, time } in core::mem::take(&mut self.foreseen) {
            self.rouse(core);
            self.queue.set(time, self.cores[core].rank);
        }
    }

    /// Lets cores that were woken because they lost a line wait until it is free, if they ask for
    /// it before.
    pub(crate) fn wait_for_lines(&mut self, id: LineId, line: u64) {
        if self.foreseen.is_empty() {
            return;
        }
        let mut foreseen = core::mem::take(&mut self.foreseen);
        let free = self.coherence.free_at(id);
        for Foreseen { core: at, time } in foreseen.drain(..) {
            let dozer = &mut self.dozers[at];
            let dozes = dozer.is_at(line);
            if time >= free {
                if dozes {
                    dozer.state = State::Missed;
                    self.rouse(at);
                }
                self.queue.set(time, self.cores[at].rank);
                continue;
            }
            let (rank, group) = if dozes {
                dozer.state = State::Waits;
                (dozer.rank, dozer.group)
            } else {
                let core = &mut self.cores[at];
                core.spin.goes_on();
                (core.rank, self.coherence.group_of(core.cpu))
            };
            self.wait_for_line(
                id,
                line,
                Request { key: Key::new(time, rank), group, write: false },
            );
        }
        self.foreseen = foreseen;
    }

    /// Lets the processor load what it needs of a core that spins on a line and is awake.
    pub(crate) fn prefetch(&self, core: u32, line: u64) {
        if self.dozers[core as usize].state == State::Awake {
            self.cores[core as usize].prefetch(line);
        }
    }
}
