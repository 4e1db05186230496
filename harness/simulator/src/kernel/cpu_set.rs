//! A set of small numbers: simulated CPUs, or NUMA nodes.

use std::fmt;

use crate::machine::MAX_CORES;

const WORD_BITS: usize = u64::BITS as usize;
pub(super) const WORDS: usize = MAX_CORES / WORD_BITS;

/// A set of simulated CPUs.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct CpuSet {
    words: [u64; WORDS],
}

/// A set of NUMA nodes.
pub(crate) type NodeSet = CpuSet;

impl CpuSet {
    /// Makes the set of the numbers below `count`.
    pub(crate) fn first(count: usize) -> CpuSet {
        (0..count as u32).collect()
    }

    /// Makes the set of one number.
    #[cfg(test)]
    pub(crate) fn single(id: u32) -> CpuSet {
        [id].into_iter().collect()
    }

    pub(super) fn from_words(words: [u64; WORDS]) -> CpuSet {
        CpuSet { words }
    }

    pub(super) fn words(&self) -> &[u64; WORDS] {
        &self.words
    }

    /// Adds a number; those that no machine can have are left out.
    pub(crate) fn insert(&mut self, id: u32) {
        if let Some(word) = self.words.get_mut(id as usize / WORD_BITS) {
            *word |= 1 << (id as usize % WORD_BITS);
        }
    }

    /// Says whether the number is a member.
    pub(crate) fn contains(&self, id: u32) -> bool {
        let word = self.words.get(id as usize / WORD_BITS);
        word.is_some_and(|word| word & (1 << (id as usize % WORD_BITS)) != 0)
    }

    /// Counts the members.
    pub(crate) fn len(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Says whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// Makes the set of what both have.
    pub(crate) fn intersection(&self, other: &CpuSet) -> CpuSet {
        let mut words = self.words;
        for (word, other) in words.iter_mut().zip(&other.words) {
            *word &= other;
        }
        CpuSet { words }
    }

    /// Walks the members in rising order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.words.iter().enumerate().flat_map(|(index, word)| {
            let base = (index * WORD_BITS) as u32;
            (0..u64::BITS).filter(move |bit| word & (1 << bit) != 0).map(move |bit| base + bit)
        })
    }
}

impl FromIterator<u32> for CpuSet {
    fn from_iter<I: IntoIterator<Item = u32>>(ids: I) -> CpuSet {
        let mut set = CpuSet::default();
        ids.into_iter().for_each(|id| set.insert(id));
        set
    }
}

impl fmt::Debug for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}
