//! Who has which line, and what it costs to get one.
//!
//! A line is with one core that may write it, or with any number that may read it, or nowhere. A
//! request finds it free, or waits in the line's queue (`waiting`). A read takes a transfer from
//! the nearest core that has the line; the first read of an L3 group brings it into the group, the
//! others hit there, one after the other where the group is a mesh whose homes do atomics. A write
//! takes a transfer from the farthest core that has it, and a little for each that has to give it up;
//! while others wait behind it, it occupies the line for a share of that only, since the line's home
//! already knows where it goes next. Where atomics are done at the home, a contended line stays there.
//! What fits into a core's caches is a matter of `caches`.

use crate::machine::{Distance, Machine};
use crate::model::Model;
use crate::time::Time;
use crate::translate::Touch;
use crate::waiting::Place;
use crate::work::mix;

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
    /// Its home: an atomic that was done there, or what such ones left.
    Home,
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
    /// The core that got it last.
    last: u32,
    /// When the line can be asked for again.
    free: Time,
    /// When the line is there that a store asked for.
    ready: Time,
    /// The list of those who wait for it.
    queue: u32,
    /// The socket of its home.
    home: u16,
    /// Whether it is at its home and with no core.
    at_home: bool,
}

const NEW_LINE: Line =
    Line { owner: NONE, last: NONE, free: 0, ready: 0, queue: NONE, home: 0, at_home: false };

/// One who asks for a line.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asks {
    pub(crate) cpu: u32,
    pub(crate) touch: Touch,
    pub(crate) at: Time,
    /// Whether others were before it.
    pub(crate) queued: bool,
    /// Whether others wait behind it.
    pub(crate) backlog: bool,
    /// How long the line takes from memory.
    pub(crate) memory: Time,
}

/// All lines that were ever touched.
#[derive(Debug)]
pub(crate) struct Coherence {
    pub(crate) model: Model,
    machine: Machine,
    /// The state of the jitter.
    random: u64,
    neighbours: Neighbours,
    /// The L3 group of each core.
    groups: Vec<u32>,
    /// For each L3 group: the groups of its socket.
    sockets: Vec<(usize, usize)>,
    /// From address to index: open addressing.
    index: Vec<(u64, u32)>,
    lines: Vec<Line>,
    /// Cores that have the line, `words` for each line.
    sharers: Vec<u64>,
    words: usize,
}

impl Coherence {
    /// No line was touched. `cpus` are the cores that will touch some.
    pub(crate) fn new(machine: &Machine, cpus: &[u32], seed: u64) -> Self {
        let words = cpus.iter().max().map_or(1, |&most| most as usize / 64 + 1);
        Self {
            model: Model::of(machine),
            machine: machine.clone(),
            random: seed,
            neighbours: Neighbours::new(machine, cpus, words),
            groups: (0..machine.cores() as u32).map(|cpu| machine.l3_of(cpu) as u32).collect(),
            sockets: sockets(machine),
            index: vec![(0, 0); 1 << 12],
            lines: vec![NEW_LINE],
            sharers: vec![0; words],
            words,
        }
    }

    /// Lets the jitter begin anew: what was executed before has no influence on it.
    pub(crate) fn begin(&mut self, seed: u64) {
        self.random = seed;
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
        self.lines.push(NEW_LINE);
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

    /// Whether a line cannot be asked for at once.
    pub(crate) fn is_busy(&self, line: LineId, now: Time) -> bool {
        let line = &self.lines[line.0 as usize];
        line.free > now || line.queue != NONE
    }

    /// When a line can be asked for again.
    pub(crate) fn free_at(&self, line: LineId) -> Time {
        self.lines[line.0 as usize].free
    }

    /// When a line is there that its core did not wait for.
    pub(crate) fn ready_at(&self, line: LineId) -> Time {
        self.lines[line.0 as usize].ready
    }

    /// Keeps a line where it is until an access has been executed.
    pub(crate) fn keep_until(&mut self, line: LineId, time: Time) {
        let line = &mut self.lines[line.0 as usize];
        line.free = line.free.max(time);
    }

    /// The list of those who wait for a line.
    pub(crate) fn queue(&self, line: LineId) -> Option<usize> {
        let queue = self.lines[line.0 as usize].queue;
        (queue != NONE).then_some(queue as usize)
    }

    pub(crate) fn set_queue(&mut self, line: LineId, queue: Option<usize>) {
        self.lines[line.0 as usize].queue = queue.map_or(NONE, |queue| queue as u32);
    }

    /// Gives where the core is that had the line last.
    pub(crate) fn place(&self, line: LineId) -> Option<Place> {
        let last = self.lines[line.0 as usize].last;
        (last != NONE).then(|| {
            let group = self.groups[last as usize] as usize;
            Place { group, socket: self.sockets[group] }
        })
    }

    /// Gives the core that may write a line.
    pub(crate) fn owner(&self, line: LineId) -> Option<u32> {
        let owner = self.lines[line.0 as usize].owner;
        (owner != NONE).then_some(owner)
    }

    /// A line has left its owner's caches.
    pub(crate) fn written_back(&mut self, line: LineId) {
        self.lines[line.0 as usize].owner = NONE;
        self.sharers[line.0 as usize * self.words..][..self.words].fill(0);
    }

    /// Gives the L3 group of a core.
    pub(crate) fn group_of(&self, cpu: u32) -> u32 {
        self.groups[cpu as usize]
    }

    /// Whether the line comes from memory.
    pub(crate) fn is_in_memory(&self, line: LineId) -> bool {
        !self.lines[line.0 as usize].at_home && self.sharers(line).iter().all(|&word| word == 0)
    }

    /// Sets the socket whose memory a line is in.
    pub(crate) fn set_home(&mut self, line: LineId, socket: usize) {
        self.lines[line.0 as usize].home = socket as u16;
    }

    /// Gets a line for a core.
    pub(crate) fn get(&mut self, id: LineId, asks: &Asks) -> Access {
        self.random = mix(self.random);
        let access = if asks.touch.writes() { self.write(id, asks) } else { self.read(id, asks) };
        let line = &mut self.lines[id.0 as usize];
        line.last = asks.cpu;
        line.ready = if asks.touch == Touch::Store { access.done } else { 0 };
        access
    }

    fn home_is_near(&self, id: LineId, cpu: u32) -> bool {
        usize::from(self.lines[id.0 as usize].home) == self.machine.socket_of(cpu)
    }

    fn read(&mut self, id: LineId, asks: &Asks) -> Access {
        let Line { owner, free, at_home, .. } = self.lines[id.0 as usize];
        let cpu = asks.cpu;
        let nearest = if owner == NONE {
            self.neighbours.nearest(self.sharers(id), cpu)
        } else {
            Some(self.machine.distance(cpu, owner))
        };
        let model = &self.model;
        let (source, takes) = match nearest {
            // The group has it already.
            Some(Distance::SameL3) if owner == NONE => {
                (Source::Core(Distance::SameL3), model.group_hit)
            }
            Some(distance) => {
                let near = self.home_is_near(id, cpu);
                (Source::Core(distance), model.transfer(distance, near))
            }
            None if at_home => (Source::Home, model.group_hit),
            None => (Source::Memory, asks.memory),
        };
        let begin = asks.at.max(free);
        let done = begin + model.jittered(takes, self.random);
        let line = &mut self.lines[id.0 as usize];
        let alone = nearest.is_none() && !at_home;
        // Where homes do atomics, cores have no cache in common but there: each read is one of a
        // group of its own.
        let first = owner != NONE || nearest.is_none_or(|distance| distance > Distance::SameL3);
        if first || model.far_atomic.is_some() {
            line.free = begin + model.read_group;
        }
        line.owner = if alone { cpu } else { NONE };
        line.at_home = false;
        self.sharers[id.0 as usize * self.words + cpu as usize / 64] |= 1 << (cpu % 64);
        let demoted = (owner != NONE).then_some(owner);
        Access { done, source, may_write: alone, demoted }
    }

    fn write(&mut self, id: LineId, asks: &Asks) -> Access {
        let cpu = asks.cpu;
        let had = self.has(id, cpu);
        let Line { owner, free, at_home, last, .. } = self.lines[id.0 as usize];
        let farthest = self.neighbours.farthest(self.sharers(id), cpu);
        let near = self.home_is_near(id, cpu);
        let model = &self.model;
        let others = self.sharers(id).iter().map(|word| word.count_ones()).sum::<u32>();
        let invalidations =
            model.invalidate * Time::from(others - u32::from(had)) * Time::from(owner == NONE);
        let (source, takes) = match farthest {
            Some(distance) => {
                let takes = if asks.backlog {
                    model.queued(model.transfer(distance, near))
                } else {
                    model.transfer_to_write(distance, near)
                };
                (if had { Source::Upgrade(distance) } else { Source::Core(distance) }, takes)
            }
            None if had => (Source::Own, 0),
            None if at_home && asks.backlog => (Source::Home, model.queued(model.group_hit)),
            None if at_home => (Source::Home, model.group_hit),
            None => (Source::Memory, asks.memory),
        };
        let takes = takes + invalidations;
        let begin = asks.at.max(free);
        if let Some(far) = model.far_atomic
            && asks.touch == Touch::Arithmetic
            && (asks.queued || at_home && last != cpu)
        {
            // Done at the home, where the line is by now or comes to.
            let done = begin + model.jittered(if at_home { far } else { far + takes }, self.random);
            let line = &mut self.lines[id.0 as usize];
            *line = Line { owner: NONE, free: done, at_home: true, ..*line };
            self.sharers[id.0 as usize * self.words..][..self.words].fill(0);
            return Access { done, source: Source::Home, may_write: false, demoted: None };
        }
        let done = begin + model.jittered(takes, self.random);
        let free = done + model.keeps(self.random);
        let line = &mut self.lines[id.0 as usize];
        *line = Line { owner: cpu, free, at_home: false, ..*line };
        let sharers = &mut self.sharers[id.0 as usize * self.words..][..self.words];
        sharers.fill(0);
        sharers[cpu as usize / 64] = 1 << (cpu % 64);
        Access { done, source, may_write: true, demoted: None }
    }

    /// Brings a line along that lies beside one that is fetched: its owner may only read it any
    /// more. Gives the owner.
    pub(crate) fn bring_along(&mut self, id: LineId, cpu: u32, now: Time) -> Option<u32> {
        let Line { owner, .. } = self.lines[id.0 as usize];
        if owner == NONE || owner == cpu || self.is_busy(id, now) {
            return None;
        }
        let occupied = now + self.model.read_group;
        let line = &mut self.lines[id.0 as usize];
        (line.owner, line.free) = (NONE, occupied);
        self.sharers[id.0 as usize * self.words + cpu as usize / 64] |= 1 << (cpu % 64);
        Some(owner)
    }

    /// The line at an address, if it was ever touched.
    pub(crate) fn known(&self, line: u64) -> Option<LineId> {
        let found = self.index[self.slot(line)].1;
        (found != 0).then_some(LineId(found))
    }
}

#[cfg(test)]
impl LineId {
    pub(crate) fn first() -> Self {
        Self(1)
    }
}

/// Gives for each L3 group the range of those of its socket: groups are numbered by socket.
fn sockets(machine: &Machine) -> Vec<(usize, usize)> {
    let mut of = vec![0; machine.l3_groups()];
    for cpu in 0..machine.cores() as u32 {
        of[machine.l3_of(cpu)] = machine.socket_of(cpu);
    }
    let range = |socket| {
        (of.partition_point(|&other| other < socket), of.partition_point(|&other| other <= socket))
    };
    of.iter().copied().map(range).collect()
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

#[cfg(test)]
mod tests;
