//! Cores in the order of their next moments.

use crate::time::Time;

/// Bits of a key below its time.
const RANK_BITS: u32 = 11;

/// Nothing.
const NEVER: u64 = u64::MAX;

/// The latest time that a key can hold: two and a half hours.
pub(crate) const LATEST: Time = (1 << (64 - RANK_BITS)) - 2;

/// When a core does something next, and its rank among equals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key(u64);

impl Key {
    /// Later than every key.
    pub(crate) const NEVER: Self = Self(NEVER);

    #[inline]
    pub(crate) fn new(time: Time, rank: u32) -> Self {
        Self(time << RANK_BITS | u64::from(rank))
    }

    #[inline]
    pub(crate) fn time(self) -> Time {
        self.0 >> RANK_BITS
    }

    #[inline]
    pub(crate) fn rank(self) -> u32 {
        self.0 as u32 & ((1 << RANK_BITS) - 1)
    }
}

/// A tournament of cores, each at the place of its rank: every node holds the smaller of its two
/// children. All comparisons are the same for every outcome, which a processor likes better than a
/// heap's.
#[derive(Debug)]
pub(crate) struct Queue {
    leaves: usize,
    nodes: Vec<u64>,
}

impl Queue {
    /// A queue for so many ranks, all of them absent.
    pub(crate) fn new(ranks: usize) -> Self {
        let leaves = ranks.next_power_of_two().max(2);
        Self { leaves, nodes: vec![NEVER; 2 * leaves] }
    }

    /// Takes everybody out.
    pub(crate) fn clear(&mut self) {
        self.nodes.fill(NEVER);
    }

    /// Gives the first of all.
    #[inline]
    pub(crate) fn first(&self) -> Option<Key> {
        (self.nodes[1] != NEVER).then_some(Key(self.nodes[1]))
    }

    /// Sets when a core does something next.
    #[inline]
    pub(crate) fn set(&mut self, time: Time, rank: u32) {
        self.update(rank, Key::new(time, rank).0);
    }

    /// Takes a core out.
    #[inline]
    pub(crate) fn remove(&mut self, rank: u32) {
        self.update(rank, NEVER);
    }

    #[inline]
    fn update(&mut self, rank: u32, key: u64) {
        let nodes = &mut self.nodes[..];
        let mut at = self.leaves + rank as usize;
        assert!(at < nodes.len(), "a rank that the queue was not made for");
        nodes[at] = key;
        let mut least = key;
        while at > 1 {
            least = least.min(nodes[at ^ 1]);
            at /= 2;
            nodes[at] = least;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_come_back_as_they_were() {
        let mut queue = Queue::new(2048);
        for (time, rank) in [(0, 0), (0, 2047), (1, 5), (LATEST, 2047), (123_456_789_012, 77)] {
            queue.set(time, rank);
            let key = queue.first().unwrap();
            assert_eq!((key.time(), key.rank()), (time, rank));
            queue.remove(rank);
        }
    }

    #[test]
    fn the_earliest_is_first_and_the_lowest_rank_of_equals() {
        let mut queue = Queue::new(40);
        assert_eq!(queue.first(), None);
        for (rank, time) in [(0, 7), (1, 3), (2, 9), (20, 3), (39, 8)] {
            queue.set(time, rank);
        }
        let mut order = Vec::new();
        while let Some(key) = queue.first() {
            order.push((key.time(), key.rank()));
            queue.remove(key.rank());
        }
        assert_eq!(queue.first(), None);
        assert_eq!(order, [(3, 1), (3, 20), (7, 0), (8, 39), (9, 2)]);
    }
}
