//! A cache that forgets what was asked for longest ago: a map, and a list through its entries.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, DefaultHasher};

/// No entry.
const NONE: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
struct Entry {
    key: u64,
    value: u64,
    newer: u32,
    older: u32,
}

/// A cache of a fixed number of entries.
#[derive(Debug)]
pub(crate) struct Lru {
    /// Not keyed at random, so that runs repeat.
    places: HashMap<u64, u32, BuildHasherDefault<DefaultHasher>>,
    entries: Vec<Entry>,
    newest: u32,
    oldest: u32,
    capacity: usize,
}

impl Lru {
    /// Makes an empty cache for at least one entry.
    pub(crate) fn new(capacity: usize) -> Self {
        let capacity = capacity.max(1);
        Self {
            places: HashMap::with_capacity_and_hasher(2 * capacity, BuildHasherDefault::default()),
            entries: Vec::with_capacity(capacity),
            newest: NONE,
            oldest: NONE,
            capacity,
        }
    }

    /// Gives the value of a key, which is then the newest; fetches it if it is not there.
    pub(crate) fn get(&mut self, key: u64, fetch: impl FnOnce(u64) -> u64) -> u64 {
        if let Some(&place) = self.places.get(&key) {
            if place != self.newest {
                self.unlink(place);
                self.link(place);
            }
            return self.entries[place as usize].value;
        }
        let entry = Entry { key, value: fetch(key), newer: NONE, older: NONE };
        let place = if self.entries.len() < self.capacity {
            self.entries.push(entry);
            self.entries.len() as u32 - 1
        } else {
            let place = self.oldest;
            self.unlink(place);
            self.places.remove(&self.entries[place as usize].key);
            self.entries[place as usize] = entry;
            place
        };
        self.link(place);
        self.places.insert(key, place);
        entry.value
    }

    fn unlink(&mut self, place: u32) {
        let Entry { newer, older, .. } = self.entries[place as usize];
        match newer {
            NONE => self.newest = older,
            newer => self.entries[newer as usize].older = older,
        }
        match older {
            NONE => self.oldest = newer,
            older => self.entries[older as usize].newer = newer,
        }
    }

    /// Makes an entry the newest one.
    fn link(&mut self, place: u32) {
        let before = self.newest;
        (self.entries[place as usize].newer, self.entries[place as usize].older) = (NONE, before);
        match before {
            NONE => self.oldest = place,
            before => self.entries[before as usize].newer = place,
        }
        self.newest = place;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_is_forgotten_and_asking_makes_new() {
        let mut lru = Lru::new(2);
        let mut fetched = Vec::new();
        for key in [1, 2, 1, 3, 1, 2, 2, 3] {
            let value = lru.get(key, |key| {
                fetched.push(key);
                key * 10
            });
            assert_eq!(value, key * 10);
        }
        assert_eq!(fetched, [1, 2, 3, 2, 3]);
    }

    #[test]
    fn a_cache_of_one_and_of_none_keeps_one() {
        for capacity in [0, 1] {
            let mut lru = Lru::new(capacity);
            let mut fetched = 0;
            for key in [5, 5, 6, 5] {
                lru.get(key, |key| {
                    fetched += 1;
                    key
                });
            }
            assert_eq!(fetched, 3);
        }
    }
}
