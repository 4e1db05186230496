//! What fits into the caches: a line that a core has had may have gone from its L1, from its L2, or
//! from the L3 of its group to memory.
//!
//! Sets give up what came first. Which lines hit is not asked for: those that the core's tables
//! know are in its L1 by construction, since a line that leaves the L1 leaves the tables.

use crate::machine::{Cache, Machine};

/// Where a core finds a line that it may touch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    L1,
    L2,
    L3,
    Memory,
}

/// One cache: the lines of its sets.
#[derive(Debug)]
struct Sets {
    ways: usize,
    /// Addresses of lines and 1; 0 is none.
    lines: Box<[u64]>,
    /// For each set: which way is given up next.
    next: Box<[u8]>,
}

const EMPTY: u64 = 0;

impl Sets {
    fn new(cache: Cache) -> Self {
        let ways = cache.ways.clamp(1, 255);
        let sets = (cache.bytes / 64 / ways).max(1);
        Self { ways, lines: vec![EMPTY; sets * ways].into(), next: vec![0; sets].into() }
    }

    fn set(&self, line: u64) -> usize {
        (line / 64) as usize % self.next.len()
    }

    fn contains(&self, line: u64) -> bool {
        let set = self.set(line);
        self.lines[set * self.ways..][..self.ways].contains(&(line | 1))
    }

    /// Takes a line in; gives the line that has to go for it.
    fn insert(&mut self, line: u64) -> Option<u64> {
        let set = self.set(line);
        let lines = &mut self.lines[set * self.ways..][..self.ways];
        if lines.contains(&(line | 1)) {
            return None;
        }
        let way = &mut self.next[set];
        let gone = core::mem::replace(&mut lines[usize::from(*way)], line | 1);
        *way = (*way + 1) % self.ways as u8;
        (gone != EMPTY).then_some(gone & !1)
    }
}

/// The caches of a machine; each is made when it is first used.
#[derive(Debug)]
pub(crate) struct Caches {
    kinds: [Cache; 3],
    inclusive: bool,
    /// By physical core.
    l1: Vec<Option<Sets>>,
    l2: Vec<Option<Sets>>,
    /// By L3 group.
    l3: Vec<Option<Sets>>,
}

/// The caches that a core uses.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reach {
    core: usize,
    group: usize,
}

impl Reach {
    pub(crate) fn of(machine: &Machine, cpu: u32) -> Self {
        Self { core: machine.physical_core_of(cpu), group: machine.l3_of(cpu) }
    }
}

fn of(all: &mut [Option<Sets>], at: usize, kind: Cache) -> &mut Sets {
    all[at].get_or_insert_with(|| Sets::new(kind))
}

impl Caches {
    pub(crate) fn new(machine: &Machine) -> Self {
        let none = |count: usize| (0..count).map(|_| None).collect();
        Self {
            kinds: [machine.l1(), machine.l2(), machine.l3()],
            inclusive: machine.l3_inclusive(),
            l1: none(machine.physical_cores()),
            l2: none(machine.physical_cores()),
            l3: none(machine.l3_groups()),
        }
    }

    /// Says where a core finds a line.
    pub(crate) fn find(&self, reach: Reach, line: u64) -> Level {
        let has = |sets: &Option<Sets>| sets.as_ref().is_some_and(|sets| sets.contains(line));
        if has(&self.l1[reach.core]) {
            Level::L1
        } else if has(&self.l2[reach.core]) {
            Level::L2
        } else if has(&self.l3[reach.group]) {
            Level::L3
        } else {
            Level::Memory
        }
    }

    /// Takes a line in, from wherever it came; gives the line that leaves the core's L1 for it.
    pub(crate) fn fill(&mut self, reach: Reach, line: u64) -> Option<u64> {
        let [l1, _, l3] = self.kinds;
        if of(&mut self.l1, reach.core, l1).contains(line) {
            return None;
        }
        if self.inclusive {
            of(&mut self.l3, reach.group, l3).insert(line);
        }
        self.bring_along(reach, line);
        of(&mut self.l1, reach.core, l1).insert(line)
    }

    /// Takes a line into a core's L2 that came along with another.
    pub(crate) fn bring_along(&mut self, reach: Reach, line: u64) {
        let [_, l2, l3] = self.kinds;
        if let Some(gone) = of(&mut self.l2, reach.core, l2).insert(line) {
            of(&mut self.l3, reach.group, l3).insert(gone);
        }
    }

    /// The time of a hit.
    pub(crate) fn hit_ps(&self, level: Level) -> u64 {
        match level {
            Level::L1 | Level::Memory => 0,
            Level::L2 => self.kinds[1].hit_ps,
            Level::L3 => self.kinds[2].hit_ps,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_go_from_one_level_to_the_next() {
        let machine = Machine::named("epyc-7742-2s").unwrap();
        let mut caches = Caches::new(&machine);
        let (own, other) = (Reach::of(&machine, 0), Reach::of(&machine, 64));
        let lines = |bytes: usize| (0..bytes as u64 / 64).map(|line| line * 64);
        assert_eq!(caches.find(own, 0), Level::Memory);
        let [l1, l2, l3] = caches.kinds.map(|cache| cache.bytes);
        let mut reached = |bytes: usize| {
            let mut gone = 0;
            lines(bytes).for_each(|line| gone += usize::from(caches.fill(own, line).is_some()));
            (caches.find(own, 0), gone)
        };
        assert_eq!(reached(l1), (Level::L1, 0));
        assert_eq!(reached(2 * l1), (Level::L2, l1 / 64));
        assert_eq!(reached(2 * l2).0, Level::L3);
        assert_eq!(reached(2 * (l2 + l3)).0, Level::Memory);
        assert_eq!(caches.find(other, 0), Level::Memory);
    }

    #[test]
    fn a_set_holds_its_ways() {
        let mut sets = Sets::new(Cache { bytes: 64 * 8 * 4, ways: 4, hit_ps: 0 });
        let gone: Vec<_> = (0..6).map(|i| sets.insert(i * 64 * 8)).collect();
        assert_eq!(gone, [None, None, None, None, Some(0), Some(64 * 8)]);
        assert_eq!(sets.insert(5 * 64 * 8), None, "it is there");
    }
}
