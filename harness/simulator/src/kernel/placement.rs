//! Where guests' mappings go, what is mapped, and which page is on which node.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;

use super::PAGE_BYTES;
use super::intervals::Intervals;
use super::policy::Policy;

/// Where mappings go whose address the guest leaves to the kernel: far from where the real kernel
/// puts anything of its own accord.
pub(crate) const REGION: Range<u64> = 0x0600_0000_0000..0x0700_0000_0000;

/// The address space as simulated threads see it.
#[derive(Debug)]
pub(super) struct Memory {
    /// Where mappings are placed.
    region: Range<u64>,
    /// What guests have mapped or given a policy, with that policy.
    mapped: Intervals<Option<Policy>>,
    /// What somebody else has mapped in the region.
    foreign: Intervals<()>,
    /// The node of each page that has been touched, by page number.
    homes: BTreeMap<u64, u16>,
}

impl Memory {
    /// Makes an address space that places mappings in this region.
    pub(super) fn new(region: Range<u64>) -> Self {
        let (mapped, homes) = (Intervals::new(), BTreeMap::new());
        let mut memory = Memory { region, mapped, foreign: Intervals::new(), homes };
        memory.look_around();
        memory
    }

    /// Finds what is mapped in the region by others than this run's threads.
    pub(super) fn look_around(&mut self) {
        let Ok(maps) = fs::read_to_string("/proc/self/maps") else { return };
        for line in maps.lines() {
            let Some((start, end)) = line.split(' ').next().and_then(|range| range.split_once('-'))
            else {
                continue;
            };
            let number = |text| u64::from_str_radix(text, 16).ok();
            let (Some(start), Some(end)) = (number(start), number(end)) else { continue };
            let (start, end) = (start.max(self.region.start), end.min(self.region.end));
            if start < end {
                self.foreign.insert(start, end, ());
            }
        }
        let ours: Vec<_> = self.mapped.within(self.region.start, self.region.end).collect();
        for (start, end, _) in ours {
            self.foreign.remove(start, end);
        }
    }

    /// Gives the lowest free range of so many bytes.
    pub(super) fn place(&self, bytes: u64, alignment: u64) -> Option<u64> {
        let mut start = self.region.start.next_multiple_of(alignment);
        loop {
            let end = start.checked_add(bytes).filter(|end| *end <= self.region.end)?;
            let obstacles = [self.mapped.obstacle(start, end), self.foreign.obstacle(start, end)];
            match obstacles.into_iter().flatten().max() {
                Some(obstacle) => start = obstacle.checked_next_multiple_of(alignment)?,
                None => return Some(start),
            }
        }
    }

    /// Says whether an address is in the region.
    pub(super) fn places(&self, address: u64) -> bool {
        self.region.contains(&address)
    }

    /// Says whether the range is in the region and free.
    pub(super) fn is_free(&self, start: u64, end: u64) -> bool {
        self.region.contains(&start)
            && end <= self.region.end
            && self.mapped.obstacle(start, end).is_none()
            && self.foreign.obstacle(start, end).is_none()
    }

    /// Enters a new mapping, whose pages nobody has touched.
    pub(super) fn enter(&mut self, start: u64, end: u64) {
        self.mapped.insert(start, end, None);
        self.foreign.remove(start, end);
        self.forget(start, end);
    }

    /// Takes a mapping out.
    pub(super) fn leave(&mut self, start: u64, end: u64) {
        self.mapped.remove(start, end);
        self.foreign.remove(start, end);
        self.forget(start, end);
    }

    /// Moves a mapping with its policies and its pages; bytes beyond the old length are new.
    pub(super) fn relocate(&mut self, old: (u64, u64), new: (u64, u64)) {
        let pieces: Vec<_> = self.mapped.within(old.0, old.1).collect();
        let pages = (old.0 / PAGE_BYTES, old.1.div_ceil(PAGE_BYTES));
        let homes: Vec<_> = self.homes.range(pages.0..pages.1).map(|(&p, &n)| (p, n)).collect();
        let policy = pieces.last().and_then(|(_, _, policy)| *policy);
        self.leave(old.0, old.1);
        self.enter(new.0, new.1);
        self.mapped.insert(new.0, new.1, policy);
        for (start, end, policy) in pieces {
            let moved = |address: u64| new.0 + (address - old.0);
            self.mapped.insert(moved(start), moved(end).min(new.1), policy);
        }
        let last = new.1.div_ceil(PAGE_BYTES);
        for (page, node) in homes {
            let page = new.0 / PAGE_BYTES + (page - pages.0);
            if page < last {
                self.homes.insert(page, node);
            }
        }
    }

    /// Makes the pages of a range untouched.
    pub(super) fn forget(&mut self, start: u64, end: u64) {
        let (first, last) = (start / PAGE_BYTES, end.div_ceil(PAGE_BYTES));
        while let Some((&page, _)) = self.homes.range(first..last.max(first)).next() {
            self.homes.remove(&page);
        }
    }

    pub(super) fn policy(&self, address: u64) -> Option<Policy> {
        self.mapped.get(address).flatten()
    }

    pub(super) fn set_policy(&mut self, start: u64, end: u64, policy: Option<Policy>) {
        self.mapped.insert(start, end, policy);
    }

    pub(super) fn home(&self, page: u64) -> Option<u16> {
        self.homes.get(&page).copied()
    }

    pub(super) fn set_home(&mut self, page: u64, node: u16) {
        self.homes.insert(page, node);
    }

    /// Gives the touched pages of a range with their nodes.
    pub(super) fn homes(&self, start: u64, end: u64) -> Vec<(u64, u16)> {
        let (first, last) = (start / PAGE_BYTES, end.div_ceil(PAGE_BYTES));
        self.homes.range(first..last.max(first)).map(|(&page, &node)| (page, node)).collect()
    }
}
