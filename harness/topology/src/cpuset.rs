//! A set of CPU (or node) numbers: a growable bitset.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::cpulist::{self, CpuSetError};

/// The largest number a [`CpuSet`] holds: far above any kernel's `NR_CPUS`, low enough that a
/// damaged `0-4294967295` is an error and not a gigabyte.
pub const MAX_CPU: u32 = (1 << 20) - 1;

const WORD_BITS: u32 = u64::BITS;

/// Holds a sorted set of CPU numbers, in the kernel's sense (node numbers fit as well).
///
/// The set grows to its highest member; two sets with the same members are equal whatever their
/// history. It prints and serialises as the kernel's list (`0-3,8`).
///
/// ```
/// use topology::CpuSet;
///
/// let wide: CpuSet = "0-3,8,1030".parse()?;
/// let mask = CpuSet::parse_mask("00000001,0000000f")?;
/// assert_eq!(mask.to_string(), "0-3,32");
/// assert_eq!(wide.intersection(&mask).to_string(), "0-3");
/// assert_eq!(wide.iter().last(), Some(1030));
/// assert!("0-4294967295".parse::<CpuSet>().is_err());
/// # Ok::<(), topology::CpuSetError>(())
/// ```
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CpuSet {
    /// Bit `n % 64` of word `n / 64`; the last word is never zero, so that `Eq` is set equality.
    words: Vec<u64>,
}

/// A set of NUMA node numbers, in the same form as a set of CPUs.
pub type NodeSet = CpuSet;

impl CpuSet {
    /// Makes an empty set.
    #[must_use]
    pub const fn new() -> CpuSet {
        CpuSet { words: Vec::new() }
    }

    /// Makes a set of the given numbers.
    ///
    /// # Errors
    /// [`CpuSetError::TooLarge`] for a number above [`MAX_CPU`].
    pub fn from_ids(ids: impl IntoIterator<Item = u32>) -> Result<CpuSet, CpuSetError> {
        let mut set = CpuSet::new();
        for id in ids {
            set.insert(id)?;
        }
        Ok(set)
    }

    /// Reads the kernel's list format, strides included: `0-3,8,10-31:2/4`.
    ///
    /// # Errors
    /// Says which part is not a list, is reversed, or goes beyond [`MAX_CPU`].
    pub fn parse_list(text: &str) -> Result<CpuSet, CpuSetError> {
        cpulist::parse_list(text)
    }

    /// Reads the kernel's mask format: hexadecimal words, the highest first: `00000001,0000000f`.
    ///
    /// # Errors
    /// Says which word is not hexadecimal; [`CpuSetError::TooLarge`] beyond [`MAX_CPU`].
    pub fn parse_mask(text: &str) -> Result<CpuSet, CpuSetError> {
        cpulist::parse_mask(text)
    }

    /// Adds a number; says whether it was new.
    ///
    /// # Errors
    /// [`CpuSetError::TooLarge`] for a number above [`MAX_CPU`].
    pub fn insert(&mut self, id: u32) -> Result<bool, CpuSetError> {
        if id > MAX_CPU {
            return Err(CpuSetError::TooLarge { text: id.to_string() });
        }
        let word = (id / WORD_BITS) as usize;
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        let bit = 1 << (id % WORD_BITS);
        let new = self.words[word] & bit == 0;
        self.words[word] |= bit;
        Ok(new)
    }

    /// Takes a number out; says whether it was there.
    pub fn remove(&mut self, id: u32) -> bool {
        let was = self.contains(id);
        if was {
            self.words[(id / WORD_BITS) as usize] &= !(1 << (id % WORD_BITS));
            self.trim();
        }
        was
    }

    /// Says whether the number is a member.
    #[must_use]
    pub fn contains(&self, id: u32) -> bool {
        let word = self.words.get((id / WORD_BITS) as usize);
        word.is_some_and(|word| word & (1 << (id % WORD_BITS)) != 0)
    }

    /// Counts the members.
    #[must_use]
    pub fn len(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Says whether there are no members.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Gives the smallest member.
    #[must_use]
    pub fn first(&self) -> Option<u32> {
        self.iter().next()
    }

    /// Gives the largest member.
    #[must_use]
    pub fn last(&self) -> Option<u32> {
        let top = self.words.last()?;
        Some(self.words.len() as u32 * WORD_BITS - 1 - top.leading_zeros())
    }

    /// Walks the members in rising order.
    #[must_use]
    pub fn iter(&self) -> Iter<'_> {
        Iter { words: &self.words, index: 0, rest: self.words.first().copied().unwrap_or(0) }
    }

    /// Gives the members of both sets.
    #[must_use]
    pub fn intersection(&self, other: &CpuSet) -> CpuSet {
        let both = self.words.iter().zip(&other.words);
        CpuSet::from_words(both.map(|(a, b)| a & b).collect())
    }

    /// Gives the members of either set.
    #[must_use]
    pub fn union(&self, other: &CpuSet) -> CpuSet {
        let (long, short) =
            if self.words.len() >= other.words.len() { (self, other) } else { (other, self) };
        let mut words = long.words.clone();
        for (word, more) in words.iter_mut().zip(&short.words) {
            *word |= more;
        }
        CpuSet::from_words(words)
    }

    /// Gives the members of this set that the other lacks.
    #[must_use]
    pub fn difference(&self, other: &CpuSet) -> CpuSet {
        let mut words = self.words.clone();
        for (word, less) in words.iter_mut().zip(&other.words) {
            *word &= !less;
        }
        CpuSet::from_words(words)
    }

    /// Says whether every member is also in the other set.
    #[must_use]
    pub fn is_subset(&self, other: &CpuSet) -> bool {
        self.words
            .iter()
            .enumerate()
            .all(|(at, word)| word & !other.words.get(at).copied().unwrap_or(0) == 0)
    }

    /// Says whether the sets share no member.
    #[must_use]
    pub fn is_disjoint(&self, other: &CpuSet) -> bool {
        self.words.iter().zip(&other.words).all(|(a, b)| a & b == 0)
    }

    /// Writes the set as a list that names regular gaps by a stride, which the kernel and
    /// [`parse_list`](CpuSet::parse_list) read as well: `0-110:1/2` for every second CPU.
    #[must_use]
    pub fn to_strides(&self) -> String {
        cpulist::format_strides(self)
    }

    /// Takes over words of a mask, lowest first. The caller has checked the limit.
    pub(crate) fn from_words(words: Vec<u64>) -> CpuSet {
        let mut set = CpuSet { words };
        set.trim();
        set
    }

    fn trim(&mut self) {
        while self.words.last() == Some(&0) {
            self.words.pop();
        }
    }
}

/// Walks a [`CpuSet`] in rising order; made by [`CpuSet::iter`].
#[derive(Debug, Clone)]
pub struct Iter<'a> {
    words: &'a [u64],
    index: usize,
    rest: u64,
}

impl Iterator for Iter<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        while self.rest == 0 {
            self.index += 1;
            self.rest = *self.words.get(self.index)?;
        }
        let bit = self.rest.trailing_zeros();
        self.rest &= self.rest - 1;
        Some(self.index as u32 * WORD_BITS + bit)
    }
}

impl<'a> IntoIterator for &'a CpuSet {
    type Item = u32;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

impl FromStr for CpuSet {
    type Err = CpuSetError;

    fn from_str(text: &str) -> Result<CpuSet, CpuSetError> {
        CpuSet::parse_list(text)
    }
}

impl fmt::Display for CpuSet {
    /// Prints the kernel's list; the empty set prints nothing.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&cpulist::format_list(self))
    }
}

impl fmt::Debug for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CpuSet({self})")
    }
}

impl<'de> Deserialize<'de> for CpuSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let list = String::deserialize(deserializer)?;
        CpuSet::parse_list(&list).map_err(serde::de::Error::custom)
    }
}

impl Serialize for CpuSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::{CpuSet, MAX_CPU};

    fn set(list: &str) -> CpuSet {
        list.parse().unwrap()
    }

    #[test]
    fn operations_agree_with_a_naive_set() {
        let a = set("0-70,128,1030-1040");
        let b = set("60-64,128-130,1035,4000");
        let naive = |keep: &dyn Fn(u32) -> bool| CpuSet::from_ids((0..5000).filter(|&n| keep(n)));
        let both = naive(&|n| a.contains(n) && b.contains(n)).unwrap();
        let either = naive(&|n| a.contains(n) || b.contains(n)).unwrap();
        let less = naive(&|n| a.contains(n) && !b.contains(n)).unwrap();
        assert_eq!(a.intersection(&b), both);
        assert_eq!(both.to_string(), "60-64,128,1035");
        assert_eq!(a.union(&b), either);
        assert_eq!(b.union(&a), either);
        assert_eq!(a.difference(&b), less);
        assert!(both.is_subset(&a) && both.is_subset(&b) && !a.is_subset(&b));
        assert!(less.is_disjoint(&b) && !a.is_disjoint(&b));
        assert_eq!(either.len(), either.iter().count());
    }

    #[test]
    fn equality_ignores_history() {
        let mut grown = set("3");
        grown.insert(9000).unwrap();
        assert!(grown.remove(9000) && !grown.remove(9000));
        assert_eq!(grown, set("3"));
        assert_eq!(set("5").difference(&set("5")), CpuSet::new());
        assert!(set("5,700").difference(&set("5,700")).is_empty());
    }

    #[test]
    fn first_last_and_order() {
        let wide = set("1030,7,64");
        assert_eq!(wide.iter().collect::<Vec<_>>(), [7, 64, 1030]);
        assert_eq!((wide.first(), wide.last()), (Some(7), Some(1030)));
        assert_eq!((CpuSet::new().first(), CpuSet::new().last()), (None, None));
        assert_eq!(CpuSet::new().iter().next(), None);
        assert_eq!(set("63").last(), Some(63));
    }

    #[test]
    fn the_limit_holds() {
        let mut top = CpuSet::new();
        assert!(top.insert(MAX_CPU).unwrap());
        assert!(!top.insert(MAX_CPU).unwrap());
        assert!(top.insert(MAX_CPU + 1).is_err());
        assert!(CpuSet::from_ids([u32::MAX]).is_err());
        assert!(!top.contains(u32::MAX));
        assert_eq!(top.last(), Some(MAX_CPU));
    }
}
