//! Spin loops: rounds that change nothing are computed instead of executed.
//!
//! A core that comes back to the same block with the same state, having written nothing, will do so
//! for ever, until a line that it holds is taken away: it reads the same values, since nobody can
//! write a line without taking it. It is parked; when a line of its is about to go, it is put
//! where it would be: at the end of the last round whose accesses all come before that. What is
//! left of a round is executed.
//!
//! A core that was woken reads its line once more, and most times it goes round once more. Where
//! that can be known beforehand (`translate/rehearsal`) it is parked again without having run.
//!
//! Of the state, only what matters at the block's beginning is compared. A round may have waited
//! for lines, as the first one after a wake-up does; the time of that is no part of the round. A
//! round in which a line was lost proves nothing.

use crate::report::Counts;
use crate::time::Time;
use crate::translate::Block;

/// A core at the beginning of a block.
#[derive(Debug, Clone, Copy, Default)]
struct Snapshot {
    /// The block; 0 is none.
    block: u32,
    stores: u64,
    losses: u64,
    flags: u64,
    time: Time,
    stall: Time,
    instructions: u64,
    loads: u64,
    fences: u64,
}

/// One round of a loop.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Round {
    /// How long it takes; 0 is no round.
    pub(crate) takes: Time,
    /// The time from the beginning of its last block with an access to its end.
    pub(crate) last: Time,
    pub(crate) instructions: u64,
    pub(crate) loads: u64,
    pub(crate) fences: u64,
}

/// A block's first instruction did not hit.
#[derive(Debug, Clone, Copy, Default)]
struct Miss {
    block: u32,
    exit: u32,
    address: u64,
    /// The registers there, which decide the address.
    registers: [u64; 16],
}

/// What is known of a core's loop. What is needed to wake a core lies together, at the beginning.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct Spin {
    parked: bool,
    /// Whether the core was woken and has not gone on yet.
    woken: bool,
    /// How often the core was seen elsewhere since the snapshot.
    elsewhere: u32,
    /// Lines that the core lost.
    pub(crate) losses: u64,
    /// The round of a core that is parked or was woken.
    round: Round,
    /// What a core that is parked or was woken asks for first, if that is known: where, and for
    /// which address. Exit 0 is nothing.
    asks: (u32, u64),
    snapshot: Snapshot,
    /// Its registers.
    registers: [u64; 16],
    miss: Miss,
}

/// A core as its loop sees it.
pub(crate) struct Seen<'a> {
    pub(crate) block: u32,
    pub(crate) registers: &'a [u64; 16],
    pub(crate) flags: u64,
    pub(crate) time: Time,
}

/// How often a core may be seen elsewhere before its snapshot is given up: loops of several blocks
/// are seen at each of them.
const PATIENCE: u32 = 4;

impl Spin {
    /// The bytes that are needed to wake a core.
    pub(crate) const HOT: usize = core::mem::offset_of!(Self, registers);

    /// Something happened that the loop's future may depend on.
    pub(crate) fn disturb(&mut self) {
        self.snapshot.block = 0;
    }

    /// Where the core stands that is parked or was woken.
    pub(crate) fn block(&self) -> u32 {
        self.snapshot.block
    }

    /// Whether the core waits for one of its lines to be taken.
    #[inline]
    pub(crate) fn is_parked(&self) -> bool {
        self.parked
    }

    /// The core goes on: what it loses from now on, it loses in the round under way.
    #[inline]
    pub(crate) fn goes_on(&mut self) {
        if self.woken {
            self.woken = false;
            self.snapshot.losses = self.losses;
        }
    }

    /// A block's first instruction did not hit.
    pub(crate) fn missed(&mut self, block: u32, exit: u32, address: u64, registers: &[u64; 16]) {
        self.miss = Miss { block, exit, address, registers: *registers };
    }

    /// Looks at a core that stands at a block; whether it is parked now. `last` is the time since
    /// the last block with an access began.
    pub(crate) fn look(
        &mut self,
        seen: &Seen<'_>,
        block: &Block,
        counts: &Counts,
        last: Time,
    ) -> bool {
        let old = &self.snapshot;
        if old.block == seen.block
            && old.stores == counts.stores
            && old.losses == self.losses
            && (old.flags ^ seen.flags) & u64::from(block.live_flags) == 0
            && same(&self.registers, seen.registers, block.live_registers)
        {
            self.round = Round {
                takes: (seen.time - old.time) - (counts.stall_ps - old.stall),
                last,
                instructions: counts.instructions - old.instructions,
                loads: counts.loads - old.loads,
                fences: counts.fences - old.fences,
            };
            let Miss { exit, address, .. } = self.miss;
            let known = self.miss.block == seen.block
                && same(&self.miss.registers, seen.registers, block.live_registers);
            self.asks = if known { (exit, address) } else { (0, 0) };
            self.parked = true;
            return true;
        }
        if old.block != 0 && old.block != seen.block && self.elsewhere < PATIENCE {
            self.elsewhere += 1;
            return false;
        }
        self.take(seen, counts);
        false
    }

    fn take(&mut self, seen: &Seen<'_>, counts: &Counts) {
        self.elsewhere = 0;
        self.snapshot = Snapshot {
            block: seen.block,
            stores: counts.stores,
            losses: self.losses,
            flags: seen.flags,
            time: seen.time,
            stall: counts.stall_ps,
            instructions: counts.instructions,
            loads: counts.loads,
            fences: counts.fences,
        };
        self.registers = *seen.registers;
    }

    /// Ends the waiting of a core that is at `time`: counts the rounds of which every access comes
    /// before `until`, and gives the time at their end.
    #[inline]
    pub(crate) fn wake(&mut self, time: Time, until: Time, counts: &mut Counts) -> Time {
        if !core::mem::take(&mut self.parked) {
            return time;
        }
        let Round { takes, last, instructions, loads, fences } = self.round;
        // The last block of round n begins at time + n·takes − last.
        let rounds = (until + last).saturating_sub(time + 1) / takes;
        counts.instructions += rounds * instructions;
        counts.skipped += rounds * instructions;
        counts.loads += rounds * loads;
        counts.fences += rounds * fences;
        // The snapshot's registers are the core's still, as far as they matter.
        let time = time + rounds * takes;
        self.was_woken(time, counts);
        time
    }

    /// The core was woken, at a time and with counts at which it is at the beginning of its loop.
    #[inline]
    pub(crate) fn was_woken(&mut self, time: Time, counts: &Counts) {
        self.snapshot.time = time;
        self.snapshot.stall = counts.stall_ps;
        self.snapshot.instructions = counts.instructions;
        self.snapshot.loads = counts.loads;
        self.snapshot.fences = counts.fences;
        self.parked = false;
        self.woken = true;
    }

    /// A core that was woken at the beginning of a block whose first instruction is about to lose
    /// its line will be back at once: gives where and for which address, if it is known.
    #[inline]
    pub(crate) fn next_miss(&self, line: u64) -> Option<(u32, u64)> {
        let (exit, address) = self.asks;
        (exit != 0 && self.snapshot.block != 0 && address & !63 == line).then_some(self.asks)
    }

    /// The round that a core has begun which was woken, if nothing but its first access can have
    /// changed since the last one.
    #[inline]
    pub(crate) fn under_way(&self) -> Option<Round> {
        let Snapshot { block, losses, .. } = self.snapshot;
        (block != 0 && losses == self.losses).then_some(self.round)
    }

    /// The core has done another round, at the end of which it is where it was.
    #[inline]
    pub(crate) fn goes_round(&mut self) {
        self.parked = true;
    }
}

/// Whether registers are the same as far as they matter.
fn same(one: &[u64; 16], other: &[u64; 16], mut live: u16) -> bool {
    while live != 0 {
        let i = live.trailing_zeros() as usize;
        if one[i] != other[i] {
            return false;
        }
        live &= live - 1;
    }
    true
}
