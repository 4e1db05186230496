//! Who has which line, and what it costs to get one: the first time model.
//!
//! A line is with one core that may write it, or with any number that may read it. Getting it
//! takes as long as the dirty transfer from the core that has it, by distance; a write waits for
//! the farthest core that has to give the line up. Transfers of one line follow each other. Caches
//! are as large as is needed: lines are lost to other cores only.

use crate::machine::{Distance, Machine};
use crate::time::Time;

/// Numbers that cores of a machine may have.
pub(crate) const CORES: usize = 1024;

/// Nobody.
const NONE: u32 = u32::MAX;

/// What a core got a line from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// It had it.
    Own,
    /// It had it to read, and others had to give it up, the farthest at this distance.
    Upgrade(Distance),
    /// Another core's cache, at this distance.
    Core(Distance),
    /// Memory.
    Memory,
}

/// How an access went.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Access {
    /// When the line is there.
    pub(crate) done: Time,
    /// Where it came from.
    pub(crate) source: Source,
    /// Whether the core may now write it without asking.
    pub(crate) may_write: bool,
    /// The core that may only read the line any more.
    pub(crate) demoted: Option<u32>,
}

/// A line that was touched, by its index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LineId(u32);

#[derive(Debug, Clone, Copy)]
struct Line {
    /// The core that may write.
    owner: u32,
    /// When the last transfer of the line is over.
    free: Time,
}

/// All lines that were ever touched.
#[derive(Debug)]
pub(crate) struct Coherence {
    neighbours: Neighbours,
    /// From address to index: open addressing.
    index: Vec<(u64, u32)>,
    lines: Vec<Line>,
    /// Cores that have the line, `words` for each line.
    sharers: Vec<u64>,
    words: usize,
}

impl Coherence {
    /// No line was touched. `cpus` are the cores that will touch some.
    pub(crate) fn new(machine: &Machine, cpus: &[u32]) -> Self {
        let words = cpus.iter().max().map_or(1, |&most| most as usize / 64 + 1);
        Self {
            neighbours: Neighbours::new(machine, cpus, words),
            index: vec![(0, 0); 1 << 12],
            lines: vec![Line { owner: NONE, free: 0 }],
            sharers: vec![0; words],
            words,
        }
    }

    fn slot(&self, line: u64) -> usize {
        let mask = self.index.len() - 1;
        let mut slot = (line.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize & mask;
        while self.index[slot].1 != 0 && self.index[slot].0 != line {
            slot = (slot + 1) & mask;
        }
        slot
    }

    /// Gives the line at an address.
    pub(crate) fn line(&mut self, line: u64) -> LineId {
        let slot = self.slot(line);
        match self.index[slot].1 {
            0 => self.new_line(line, slot),
            known => LineId(known),
        }
    }

    #[cold]
    fn new_line(&mut self, line: u64, mut slot: usize) -> LineId {
        if self.lines.len() * 2 >= self.index.len() {
            let grown = vec![(0, 0); self.index.len() * 2];
            for (line, at) in core::mem::replace(&mut self.index, grown) {
                if at != 0 {
                    let slot = self.slot(line);
                    self.index[slot] = (line, at);
                }
            }
            slot = self.slot(line);
        }
        let new = self.lines.len() as u32;
        self.index[slot] = (line, new);
        self.lines.push(Line { owner: NONE, free: 0 });
        self.sharers.resize(self.sharers.len() + self.words, 0);
        LineId(new)
    }

    fn sharers(&self, line: LineId) -> &[u64] {
        &self.sharers[line.0 as usize * self.words..][..self.words]
    }

    fn has(&self, line: LineId, cpu: u32) -> bool {
        self.sharers(line)[cpu as usize / 64] & 1 << (cpu % 64) != 0
    }

    /// Whether an access costs no more than a hit; and whether the core may write the line.
    pub(crate) fn hit(&self, line: LineId, cpu: u32, write: bool) -> Option<bool> {
        let owns = self.lines[line.0 as usize].owner == cpu;
        (owns || !write && self.has(line, cpu)).then_some(owns)
    }

    /// Calls back for each core that would lose the line if `cpu` wrote it.
    #[inline]
    pub(crate) fn others(&self, line: LineId, cpu: u32, mut each: impl FnMut(u32)) {
        for (word, &bits) in self.sharers(line).iter().enumerate() {
            let mut left = bits;
            if word == cpu as usize / 64 {
                left &= !(1 << (cpu % 64));
            }
            while left != 0 {
                each(word as u32 * 64 + left.trailing_zeros());
                left &= left - 1;
            }
        }
    }

    /// Whether a transfer of the line is not over before `now`.
    pub(crate) fn is_under_way(&self, line: LineId, now: Time) -> bool {
        self.lines[line.0 as usize].free >= now
    }

    /// Whether no core has the line, so that it comes from memory.
    pub(crate) fn is_in_memory(&self, line: LineId) -> bool {
        self.sharers(line).iter().all(|&word| word == 0)
    }

    /// Gets a line for a core to read; `memory` is how long it takes from there.
    pub(crate) fn read(
        &mut self,
        machine: &Machine,
        id: LineId,
        cpu: u32,
        at: Time,
        memory: Time,
    ) -> Access {
        let Line { owner, free } = self.lines[id.0 as usize];
        let nearest = if owner == NONE {
            self.neighbours.nearest(self.sharers(id), cpu)
        } else {
            Some(machine.distance(cpu, owner))
        };
        let (source, takes) = match nearest {
            Some(distance) => (Source::Core(distance), machine.transfer_ps(distance)),
            None => (Source::Memory, memory),
        };
        let done = at.max(free) + takes;
        let line = &mut self.lines[id.0 as usize];
        let alone = nearest.is_none();
        if owner != NONE {
            line.free = done; // the owner hands the line out once; readers after it do not queue
        }
        line.owner = if alone { cpu } else { NONE };
        self.sharers[id.0 as usize * self.words + cpu as usize / 64] |= 1 << (cpu % 64);
        let demoted = (owner != NONE).then_some(owner);
        Access { done, source, may_write: alone, demoted }
    }

    /// Gets a line for a core to write: all others lose it.
    pub(crate) fn write(
        &mut self,
        machine: &Machine,
        id: LineId,
        cpu: u32,
        at: Time,
        memory: Time,
    ) -> Access {
        let had = self.has(id, cpu);
        let (source, takes) = match self.neighbours.farthest(self.sharers(id), cpu) {
            Some(distance) if had => (Source::Upgrade(distance), machine.transfer_ps(distance)),
            Some(distance) => (Source::Core(distance), machine.transfer_ps(distance)),
            None if had => (Source::Own, 0),
            None => (Source::Memory, memory),
        };
        let line = &mut self.lines[id.0 as usize];
        let done = at.max(line.free) + takes;
        *line = Line { owner: cpu, free: done };
        let sharers = &mut self.sharers[id.0 as usize * self.words..][..self.words];
        sharers.fill(0);
        sharers[cpu as usize / 64] = 1 << (cpu % 64);
        Access { done, source, may_write: true, demoted: None }
    }
}

/// Which cores are how near: sets of cores, for each core.
#[derive(Debug)]
struct Neighbours {
    words: usize,
    /// For each core: those on the same core, under the same L3, on the same socket, itself among
    /// them.
    sets: Vec<u64>,
}

/// The distances whose sets are kept, nearest first.
const KEPT: [Distance; 3] = [Distance::Smt, Distance::SameL3, Distance::SameSocket];

impl Neighbours {
    fn new(machine: &Machine, cpus: &[u32], words: usize) -> Self {
        let mut sets = vec![0; words * 64 * KEPT.len() * words];
        for &cpu in cpus {
            for (i, distance) in KEPT.into_iter().enumerate() {
                let set = &mut sets[(cpu as usize * KEPT.len() + i) * words..][..words];
                for &other in cpus {
                    if machine.distance(cpu, other) <= distance {
                        set[other as usize / 64] |= 1 << (other % 64);
                    }
                }
            }
        }
        Self { words, sets }
    }

    fn set(&self, cpu: u32, kept: usize) -> &[u64] {
        &self.sets[(cpu as usize * KEPT.len() + kept) * self.words..][..self.words]
    }

    /// Gives the distance of the nearest of `sharers`; `cpu` is not one of them.
    fn nearest(&self, sharers: &[u64], cpu: u32) -> Option<Distance> {
        if sharers.iter().all(|&word| word == 0) {
            return None;
        }
        let near = |kept: &usize| {
            self.set(cpu, *kept).iter().zip(sharers).any(|(set, sharers)| set & sharers != 0)
        };
        Some((0..KEPT.len()).find(near).map_or(Distance::CrossSocket, |kept| KEPT[kept]))
    }

    /// Gives the distance of the farthest of `sharers` but `cpu`.
    fn farthest(&self, sharers: &[u64], cpu: u32) -> Option<Distance> {
        let beyond = |kept: usize| {
            self.set(cpu, kept).iter().zip(sharers).any(|(set, sharers)| sharers & !set != 0)
        };
        if beyond(2) {
            Some(Distance::CrossSocket)
        } else if beyond(1) {
            Some(Distance::SameSocket)
        } else if beyond(0) {
            Some(Distance::SameL3)
        } else {
            let own = 1 << (cpu % 64);
            let others = sharers.iter().enumerate().any(|(word, &bits)| {
                bits & !(if word == cpu as usize / 64 { own } else { 0 }) != 0
            });
            others.then_some(Distance::Smt)
        }
    }
}
