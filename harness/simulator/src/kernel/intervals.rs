//! A map from ranges of addresses to values.

use std::collections::BTreeMap;

/// Ranges that do not overlap; neighbours with equal values are one range.
#[derive(Debug, Clone)]
pub(super) struct Intervals<V> {
    /// From the start of a range to its end and its value.
    ranges: BTreeMap<u64, (u64, V)>,
}

impl<V: Copy + PartialEq> Intervals<V> {
    pub(super) fn new() -> Self {
        Self { ranges: BTreeMap::new() }
    }

    /// Gives every address of the range this value.
    pub(super) fn insert(&mut self, mut start: u64, mut end: u64, value: V) {
        if start >= end {
            return;
        }
        self.remove(start, end);
        if let Some((&before, &(until, same))) = self.ranges.range(..start).next_back()
            && until == start
            && same == value
        {
            self.ranges.remove(&before);
            start = before;
        }
        if let Some(&(until, same)) = self.ranges.get(&end)
            && same == value
        {
            self.ranges.remove(&end);
            end = until;
        }
        self.ranges.insert(start, (end, value));
    }

    /// Leaves no address of the range in the map.
    pub(super) fn remove(&mut self, start: u64, end: u64) {
        if start >= end {
            return;
        }
        let pieces: Vec<(u64, u64, V)> = self.overlapping(start, end).collect();
        for (from, to, value) in pieces {
            self.ranges.remove(&from);
            if from < start {
                self.ranges.insert(from, (start, value));
            }
            if to > end {
                self.ranges.insert(end, (to, value));
            }
        }
    }

    /// Gives the value at an address.
    pub(super) fn get(&self, address: u64) -> Option<V> {
        let (_, (end, value)) = self.ranges.range(..=address).next_back()?;
        (address < *end).then_some(*value)
    }

    /// Walks the whole ranges that overlap this one, in rising order.
    pub(super) fn overlapping(
        &self,
        start: u64,
        end: u64,
    ) -> impl Iterator<Item = (u64, u64, V)> + '_ {
        let before = self.ranges.range(..start).next_back();
        before
            .into_iter()
            .chain(self.ranges.range(start..end.max(start)))
            .map(|(from, (to, value))| (*from, *to, *value))
            .filter(move |(_, to, _)| *to > start)
    }

    /// Walks what lies in this range, cut to it, in rising order.
    pub(super) fn within(&self, start: u64, end: u64) -> impl Iterator<Item = (u64, u64, V)> + '_ {
        self.overlapping(start, end)
            .map(move |(from, to, value)| (from.max(start), to.min(end), value))
    }

    /// Gives the end of a range that overlaps this one, if there is one.
    pub(super) fn obstacle(&self, start: u64, end: u64) -> Option<u64> {
        self.overlapping(start, end).next().map(|(_, to, _)| to)
    }
}

#[cfg(test)]
mod tests {
    use super::Intervals;

    fn all(map: &Intervals<u8>) -> Vec<(u64, u64, u8)> {
        map.overlapping(0, u64::MAX).collect()
    }

    #[test]
    fn neighbours_with_equal_values_become_one() {
        let mut map = Intervals::new();
        map.insert(10, 20, 1);
        map.insert(30, 40, 1);
        map.insert(20, 30, 1);
        assert_eq!(all(&map), [(10, 40, 1)]);
        map.insert(40, 50, 2);
        map.insert(0, 10, 2);
        assert_eq!(all(&map), [(0, 10, 2), (10, 40, 1), (40, 50, 2)]);
    }

    #[test]
    fn what_is_written_over_is_cut() {
        let mut map = Intervals::new();
        map.insert(0, 100, 1);
        map.insert(40, 60, 2);
        assert_eq!(all(&map), [(0, 40, 1), (40, 60, 2), (60, 100, 1)]);
        map.remove(30, 50);
        assert_eq!(all(&map), [(0, 30, 1), (50, 60, 2), (60, 100, 1)]);
        map.insert(0, 100, 3);
        assert_eq!(all(&map), [(0, 100, 3)]);
        map.remove(0, 100);
        assert_eq!(all(&map), []);
        map.insert(5, 5, 1);
        map.remove(9, 3);
        assert_eq!(all(&map), []);
    }

    #[test]
    fn addresses_are_found_and_obstacles_named() {
        let mut map = Intervals::new();
        map.insert(10, 20, 1);
        assert_eq!(
            (map.get(9), map.get(10), map.get(19), map.get(20)),
            (None, Some(1), Some(1), None)
        );
        assert_eq!(
            (map.obstacle(0, 10), map.obstacle(0, 11), map.obstacle(19, 30)),
            (None, Some(20), Some(20))
        );
        assert_eq!(map.obstacle(20, 30), None);
        assert_eq!(map.within(15, 30).collect::<Vec<_>>(), [(15, 20, 1)]);
    }

    #[test]
    fn it_agrees_with_one_value_per_address() {
        let (mut map, mut plain) = (Intervals::new(), [None; 64]);
        let mut state = 1_u64;
        for _ in 0..5_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let (a, b) = ((state >> 33) % 64, (state >> 43) % 64);
            let (start, end, value) = (a.min(b), a.max(b), (state >> 53) as u8 % 4);
            if value == 3 {
                map.remove(start, end);
            } else {
                map.insert(start, end, value);
            }
            let new = (value != 3).then_some(value);
            plain[start as usize..end as usize].fill(new);
            for address in 0..64 {
                assert_eq!(map.get(address), plain[address as usize]);
            }
            let ranges = all(&map);
            assert!(ranges.windows(2).all(|pair| pair[0].1 < pair[1].0 || pair[0].2 != pair[1].2));
        }
    }
}
