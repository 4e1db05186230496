//! Cores that doze: spinners that go round once more each time their line is written.
//!
//! Where many cores spin on a line, each write lets all of them read it anew, and most of them go
//! round once more. What such a round changes is little, and known beforehand
//! (`translate/rehearsal`): while a core does nothing else it is kept here, in a few bytes for each
//! core that lie side by side. Before anything else happens to the core it is roused, and is as it
//! would be if it had done all that by itself.

use crate::coherence::{Access, Asks, LineId, Source};
use crate::cores::Core;
use crate::engine::Engine;
use crate::enter;
use crate::report::Transfers;
use crate::time::Time;
use crate::translate::{Exit, Kind, Touch, Translator};

/// What a core does that dozes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum State {
    /// It does not doze.
    #[default]
    Awake,
    /// It spins, and has its line.
    Spins,
    /// It was woken, and stands at the beginning of its loop.
    Stands,
    /// It has begun the round that asks for the line which is about to go.
    Asks,
    /// The line is gone.
    Missed,
    /// The line is gone, and the core waits in its queue.
    Waits,
}

/// A core that dozes, and what it has done since.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Dozer {
    pub(crate) state: State,
    pub(crate) rank: u32,
    cpu: u32,
    pub(crate) group: u32,
    /// The line that its loop reads.
    line: u64,
    /// How far it is, at the beginning of its loop.
    pub(crate) time: Time,
    /// How long after that it asks for the line.
    until_asks: u32,
    /// Instructions of a round, of which one reads.
    instructions: u32,
    /// How long a round takes, and how long its end lies behind the beginning of its last block with
    /// an access.
    takes: Time,
    last: Time,
    /// Code that rehearses a round, and the address that it reads.
    code: u64,
    address: u64,
    /// When it was woken last.
    woke: Time,
    /// Rounds that hit.
    hits: u64,
    /// Rounds for which the line came back; how long that took, and how long the last time.
    misses: u64,
    stall: Time,
    last_stall: Time,
    transfers: Transfers,
}

impl Dozer {
    /// Whether the core dozes, spinning on a line.
    #[inline]
    pub(crate) fn is_at(&self, line: u64) -> bool {
        self.line == line && self.state != State::Awake
    }

    /// When it asks for its line.
    #[inline]
    pub(crate) fn asks(&self) -> Time {
        self.time + Time::from(self.until_asks)
    }

    /// Ends the core's waiting, as [`Core::wake`] does.
    #[inline]
    pub(crate) fn wake(&mut self, until: Time) {
        let rounds = (until + self.last).saturating_sub(self.time + 1) / self.takes;
        self.hits += rounds;
        self.time += rounds * self.takes;
        self.woke = self.time;
        self.state = State::Stands;
    }

    /// Whether what the core finds in its line leads it back to the beginning of its loop.
    #[inline]
    fn comes_back(&self, core: &Core) -> bool {
        // SAFETY: the code was made for these registers, and touches what is at the address only.
        unsafe { enter::rehearse(&core.context.registers, self.code, self.address) }
    }

    /// The line has come, after a while, and the core went round.
    #[inline]
    fn went_round(&mut self, stall: Time) {
        self.misses += 1;
        self.stall += stall;
        self.last_stall = stall;
        self.time += stall + self.takes;
        self.state = State::Spins;
    }
}

impl Core {
    /// What the core dozes as that waits for its line since it was woken, if it may.
    fn may_doze(&self, line: u64, group: u32, translator: &mut Translator) -> Option<Dozer> {
        let begins = self.begins.filter(|_| self.changes.is_none())?;
        let id = self.context.block;
        let Exit { remaining, kind, .. } = translator.exits[self.pending? as usize];
        let Kind::Access { last: true, .. } = kind else { return None };
        let round = self.spin.under_way()?;
        let code = translator.rehearsal(id, &round)?;
        let until_asks = translator.blocks[id as usize].cost - remaining;
        let one_line = self.context.is_cached(line) && self.context.address & !63 == line;
        one_line.then_some(Dozer {
            state: State::Waits,
            rank: self.rank,
            cpu: self.cpu,
            group,
            line,
            time: begins,
            until_asks,
            instructions: u32::try_from(round.instructions).ok()?,
            takes: round.takes,
            last: round.last,
            code,
            address: self.context.address,
            woke: begins,
            ..Dozer::default()
        })
    }

    /// Takes over what the core did while it dozed.
    fn catch_up(&mut self, dozer: &Dozer, translator: &Translator) {
        let Dozer { state, line, time, hits, misses, stall, last_stall, .. } = *dozer;
        let instructions = u64::from(dozer.instructions);
        let counts = &mut self.counts;
        // The last round came after the core was woken last.
        let after = u64::from(state == State::Spins);
        let before = hits + misses - after;
        counts.instructions += before * instructions;
        counts.skipped += hits * instructions;
        counts.loads += before;
        counts.stall_ps += stall - after * last_stall;
        counts.transfers += dozer.transfers;
        self.spin.was_woken(dozer.woke, counts);
        counts.instructions += after * instructions;
        counts.loads += after;
        counts.stall_ps += after * last_stall;
        self.time = time;
        match state {
            State::Awake | State::Stands => {}
            State::Spins => {
                self.spin.goes_on();
                self.spin.goes_round();
            }
            State::Asks | State::Missed | State::Waits => {
                self.foresee(line, translator);
                if state != State::Asks {
                    self.context.lost(line);
                    self.spin.losses += 1;
                }
                if state == State::Waits {
                    self.spin.goes_on();
                }
            }
        }
    }
}

/// Rouses a core, if it dozes.
#[inline]
pub(crate) fn rouse(dozer: &mut Dozer, core: &mut Core, translator: &Translator) {
    if dozer.state != State::Awake {
        core.catch_up(dozer, translator);
        dozer.state = State::Awake;
    }
}

impl Engine {
    /// Rouses a core, if it dozes.
    pub(crate) fn rouse(&mut self, at: usize) {
        rouse(&mut self.dozers[at], &mut self.cores[at], &self.translator);
    }

    /// Rouses all cores.
    pub(crate) fn rouse_all(&mut self) {
        (0..self.cores.len()).for_each(|at| self.rouse(at));
    }

    /// A core gets the line for which it waits since it was woken: whether what it finds there leads
    /// it back to the beginning of its loop. Then it is there, and dozes; else it is awake, and has
    /// not got the line yet.
    pub(crate) fn goes_round(&mut self, at: usize, id: LineId, line: u64, now: Time) -> bool {
        self.look_for_owner(id, line);
        if !self.ready.is_empty() || self.coherence.is_in_memory(id) || !self.comes_back(at, line) {
            self.rouse(at);
            return false;
        }
        let Self { cores, dozers, coherence, core_of_cpu, .. } = self;
        let dozer = &mut dozers[at];
        let Dozer { cpu, .. } = *dozer;
        let asks =
            Asks { cpu, touch: Touch::Load, at: now, queued: true, backlog: false, memory: 0 };
        let Access { done, source, demoted, .. } = coherence.get(id, &asks);
        if let Some(owner) = demoted {
            cores[core_of_cpu[owner as usize] as usize].context.may_not_store(line);
        }
        dozer.went_round(done - dozer.asks());
        if let Source::Core(distance) = source {
            dozer.transfers.count(distance);
            if self.brings_along {
                self.bring_along(at, line, now);
            }
        }
        true
    }

    /// Whether what a core finds in the line for which it waits leads it back to the beginning of
    /// its loop; it dozes then.
    fn comes_back(&mut self, at: usize, line: u64) -> bool {
        let Self { cores, dozers, coherence, translator, .. } = self;
        let (core, dozer) = (&mut cores[at], &mut dozers[at]);
        if dozer.state == State::Waits {
            return dozer.comes_back(core);
        }
        let group = coherence.group_of(core.cpu);
        let Some(new) = core.may_doze(line, group, translator) else { return false };
        if !new.comes_back(core) {
            return false;
        }
        core.take_back(translator);
        core.context.may(line, false);
        *dozer = new;
        true
    }
}
