//! Collections of the standard library, and a cache built of them.

use std::collections::{BTreeMap, BinaryHeap, HashMap, HashSet, LinkedList, VecDeque};
use std::hash::{BuildHasherDefault, DefaultHasher};
use std::hint::black_box;

use super::{Random, mix, mix_bytes};

/// `SipHash` with keys of zero: the same table in every run.
type Fixed = BuildHasherDefault<DefaultHasher>;

#[inline(never)]
pub(crate) fn hash_map(ops: u64) -> u64 {
    let mut sum = 0;
    for round in 0..ops {
        let mut random = Random::new(round);
        let mut map = HashMap::<u64, u64, Fixed>::default();
        for _ in 0..40 {
            let key = random.below(60);
            *map.entry(key).or_insert(round) += key;
        }
        for key in 0..20 {
            sum = mix(sum, map.remove(&key).unwrap_or(1));
        }
        sum = mix(sum, map.values().copied().fold(0, u64::wrapping_add));
    }
    black_box(sum)
}

#[inline(never)]
pub(crate) fn hash_set(ops: u64) -> u64 {
    let mut sum = 0;
    for round in 0..ops {
        let mut random = Random::new(round + 100);
        let one: HashSet<u32, Fixed> = (0..25).map(|_| random.below(50) as u32).collect();
        let two: HashSet<u32, Fixed> = (0..25).map(|_| random.below(50) as u32).collect();
        sum = mix(sum, one.intersection(&two).map(|&x| u64::from(x)).sum());
        sum = mix(sum, one.union(&two).count() as u64 + one.difference(&two).count() as u64);
    }
    black_box(sum)
}

#[inline(never)]
pub(crate) fn hash_map_strings(ops: u64) -> u64 {
    const WORDS: &str =
        "the quick brown fox jumps over the lazy dog and the fox runs over the hill";
    let mut sum = 0;
    for round in 0..ops {
        let mut counts = HashMap::<String, u64, Fixed>::default();
        for word in black_box(WORDS).split(' ') {
            *counts.entry(word.to_owned()).or_default() += 1;
        }
        sum = mix(sum, counts.get("the").copied().unwrap_or(0) + round);
        counts.retain(|word, _| word.len() > 3);
        sum = mix(sum, counts.len() as u64);
    }
    black_box(sum)
}

#[inline(never)]
pub(crate) fn btree_map(ops: u64) -> u64 {
    let mut sum = 0;
    for round in 0..ops {
        let mut random = Random::new(round + 7);
        let mut map = BTreeMap::new();
        for turn in 0..60 {
            map.insert(random.below(1000), turn);
        }
        for (key, value) in map.range(200..700) {
            sum = mix(sum, key + value);
        }
        let upper = map.split_off(&500);
        while let Some((key, _)) = map.pop_first() {
            sum = mix(sum, key);
        }
        sum = mix(sum, upper.last_key_value().map_or(0, |(key, _)| *key));
    }
    black_box(sum)
}

#[inline(never)]
pub(crate) fn vec_deque(ops: u64) -> u64 {
    let mut sum = 0;
    for round in 0..ops {
        let mut deque = VecDeque::new();
        for turn in 0..40 {
            if turn % 3 == 0 {
                deque.push_front(turn)
            } else {
                deque.push_back(turn + round)
            }
            if turn % 5 == 4 {
                sum = mix(sum, deque.pop_front().unwrap_or(0));
            }
        }
        deque.rotate_left(7);
        deque.make_contiguous().reverse();
        deque.truncate(20);
        sum = deque.iter().fold(sum, |sum, &value| mix(sum, value));
    }
    black_box(sum)
}

#[inline(never)]
pub(crate) fn binary_heap(ops: u64) -> u64 {
    let mut sum = 0;
    for round in 0..ops {
        let mut random = Random::new(round);
        let mut heap: BinaryHeap<u64> = (0..20).map(|_| random.below(500)).collect();
        for _ in 0..20 {
            heap.push(random.below(500));
            sum = mix(sum, heap.pop().unwrap_or(0));
        }
        sum = heap.into_sorted_vec().iter().fold(sum, |sum, &value| mix(sum, value));
    }
    black_box(sum)
}

#[inline(never)]
pub(crate) fn vec_push_pop(ops: u64) -> u64 {
    let mut sum = 0;
    for round in 0..ops {
        let mut values = Vec::new();
        for turn in 0..100 {
            values.push(round ^ turn);
        }
        values.insert(10, 3);
        sum = mix(sum, values.remove(50) + values.swap_remove(20));
        values.drain(30..60);
        values.extend_from_slice(&[1, 2, 3]);
        values.retain(|value| value % 3 != 0);
        sum = values.iter().fold(sum, |sum, &value| mix(sum, value));
    }
    black_box(sum)
}

fn numbers(seed: u64, count: usize, bound: u64) -> Vec<u64> {
    let mut random = Random::new(seed);
    (0..count).map(|_| random.below(bound)).collect()
}

#[inline(never)]
pub(crate) fn vec_sort(ops: u64) -> u64 {
    let mut sum = 0;
    for round in 0..ops {
        for count in [5, 33, 100] {
            let mut pairs: Vec<(u64, usize)> =
                numbers(round, count, 50).into_iter().enumerate().map(|(i, x)| (x, i)).collect();
            pairs.sort_by_key(|pair| pair.0);
            sum = mix(sum, pairs[count / 2].0 + pairs[count / 3].1 as u64);
        }
    }
    black_box(sum)
}

#[inline(never)]
pub(crate) fn vec_sort_unstable(ops: u64) -> u64 {
    let mut sum = 0;
    for round in 0..ops {
        for count in [5, 33, 150] {
            let mut values = numbers(round + 1, count, 1000);
            values.sort_unstable_by(|one, two| two.cmp(one));
            sum = mix(sum, values[count / 2]);
            sum = mix(sum, *values.select_nth_unstable(count / 4).1);
        }
    }
    black_box(sum)
}

#[inline(never)]
pub(crate) fn vec_search_dedup(ops: u64) -> u64 {
    let mut sum = 0;
    for round in 0..ops {
        let mut values = numbers(round, 80, 60);
        values.sort_unstable();
        values.dedup();
        for wanted in 0..30 {
            sum = mix(sum, values.binary_search(&wanted).map_or_else(|x| x, |x| x + 7) as u64);
        }
        sum = mix(sum, values.partition_point(|&value| value < 30) as u64);
        sum = mix(sum, values.iter().position(|&value| value > 50).unwrap_or(0) as u64);
    }
    black_box(sum)
}

#[inline(never)]
pub(crate) fn sort_strings(ops: u64) -> u64 {
    let mut sum = 0;
    for round in 0..ops {
        let mut names: Vec<String> =
            numbers(round, 25, 400).iter().map(|value| format!("name-{value}")).collect();
        names.sort();
        names.dedup();
        sum = mix_bytes(sum, names.join(",").as_bytes());
    }
    black_box(sum)
}

#[inline(never)]
pub(crate) fn linked_list(ops: u64) -> u64 {
    let mut sum = 0;
    for round in 0..ops * 2 {
        let mut list: LinkedList<u64> = (0..20).map(|value| value * round).collect();
        let mut rest = list.split_off(8);
        rest.append(&mut list);
        sum = mix(sum, rest.pop_back().unwrap_or(0));
        sum = rest.into_iter().fold(sum, mix);
    }
    black_box(sum)
}

/// Least recently used cache: a map to slots, slots in a ring of recency.
struct Cache {
    slots: HashMap<u64, usize, Fixed>,
    entries: Vec<Entry>,
    capacity: usize,
}

struct Entry {
    key: u64,
    value: u64,
    newer: usize,
    older: usize,
}

impl Cache {
    fn new(capacity: usize) -> Self {
        // Entry 0 closes the ring: its `older` is the newest, its `newer` the oldest.
        let ring = Entry { key: 0, value: 0, newer: 0, older: 0 };
        Self { slots: HashMap::default(), entries: vec![ring], capacity }
    }

    fn unlink(&mut self, slot: usize) {
        let Entry { newer, older, .. } = self.entries[slot];
        self.entries[newer].older = older;
        self.entries[older].newer = newer;
    }

    fn link_newest(&mut self, slot: usize) {
        let newest = self.entries[0].older;
        self.entries[slot].older = newest;
        self.entries[slot].newer = 0;
        self.entries[newest].newer = slot;
        self.entries[0].older = slot;
    }

    fn get(&mut self, key: u64) -> Option<u64> {
        let slot = *self.slots.get(&key)?;
        self.unlink(slot);
        self.link_newest(slot);
        Some(self.entries[slot].value)
    }

    fn insert(&mut self, key: u64, value: u64) {
        let slot = if self.slots.len() == self.capacity {
            let slot = self.entries[0].newer;
            self.unlink(slot);
            self.slots.remove(&self.entries[slot].key);
            self.entries[slot] = Entry { key, value, newer: 0, older: 0 };
            slot
        } else {
            self.entries.push(Entry { key, value, newer: 0, older: 0 });
            self.entries.len() - 1
        };
        self.link_newest(slot);
        self.slots.insert(key, slot);
    }
}

#[inline(never)]
pub(crate) fn lru_cache(ops: u64) -> u64 {
    let (mut cache, mut random) = (Cache::new(16), Random::new(5));
    let (mut sum, mut misses) = (0, 0);
    for _ in 0..ops * 20 {
        let key = random.below(30).min(random.below(30));
        match cache.get(key) {
            Some(value) => sum = mix(sum, value),
            None => {
                misses += 1;
                cache.insert(key, key * key);
            }
        }
    }
    black_box(mix(sum, misses))
}

#[inline(never)]
pub(crate) fn iterator_chains(ops: u64) -> u64 {
    let mut sum = 0;
    for round in 0..ops {
        let values = black_box(numbers(round, 60, 1000));
        let (even, odd): (Vec<u64>, Vec<u64>) = values.iter().partition(|&&value| value % 2 == 0);
        sum = mix(sum, even.iter().zip(&odd).map(|(one, two)| one * two).sum());
        sum = mix(sum, values.windows(3).filter(|w| w[0] < w[1] && w[1] < w[2]).count() as u64);
        sum = mix(sum, values.chunks(7).filter_map(|chunk| chunk.iter().max()).sum());
        sum = mix(sum, values.iter().rev().step_by(4).skip(2).take_while(|&&x| x != 3).sum());
        sum = mix(sum, (0..10_u64).flat_map(|i| (0..i).map(move |j| i ^ j)).sum());
    }
    black_box(sum)
}
