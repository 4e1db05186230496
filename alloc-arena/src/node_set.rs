//! Sets of NUMA nodes, their encoding for the kernel, and the decision whether one may be asked
//! for. No call of the kernel here: all is decided over data that tests can make up.

use alloc::vec;
use alloc::vec::Vec;
use core::ffi::c_ulong;

use super::map_error::MapError;

const WORD_BITS: u32 = c_ulong::BITS;

/// The longest mask that kernels accept: a page of 4 KiB, in bits.
pub(crate) const MOST_NODES: u32 = 4096 * 8;

/// A set of node numbers, in the kernel's encoding: bit n of the words is node n.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct NodeSet {
    words: Vec<c_ulong>,
}

impl NodeSet {
    /// Makes an empty set with room for nodes 0 … `nodes` − 1.
    pub(crate) fn with_room(nodes: u32) -> Self {
        Self { words: vec![0; nodes.div_ceil(WORD_BITS) as usize] }
    }

    /// Makes the set of one node.
    pub(crate) fn of(node: u32) -> Self {
        let mut set = Self::default();
        set.insert(node);
        set
    }

    pub(crate) fn insert(&mut self, node: u32) {
        let word = (node / WORD_BITS) as usize;
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << (node % WORD_BITS);
    }

    pub(crate) fn contains(&self, node: u32) -> bool {
        self.words
            .get((node / WORD_BITS) as usize)
            .is_some_and(|word| word >> (node % WORD_BITS) & 1 == 1)
    }

    /// Returns the only node of the set; `None` if there is none or another.
    pub(crate) fn only(&self) -> Option<u32> {
        let ones = self.len();
        let word = self.words.iter().position(|&word| word != 0)?;
        (ones == 1).then(|| word as u32 * WORD_BITS + self.words[word].trailing_zeros())
    }

    /// Whether both hold the same nodes, however much room they have.
    pub(crate) fn holds_as(&self, other: &Self) -> bool {
        let words = self.words.len().max(other.words.len());
        let word = |set: &Self, at: usize| set.words.get(at).copied().unwrap_or(0);
        (0..words).all(|at| word(self, at) == word(other, at))
    }

    /// Number of nodes.
    pub(crate) fn len(&self) -> u32 {
        self.words.iter().map(|word| word.count_ones()).sum()
    }

    /// The nodes that both hold.
    pub(crate) fn shared_with(&self, other: &Self) -> Self {
        Self { words: self.words.iter().zip(&other.words).map(|(a, b)| a & b).collect() }
    }

    pub(crate) fn as_ptr(&self) -> *const c_ulong {
        self.words.as_ptr()
    }

    pub(crate) fn as_mut_ptr(&mut self) -> *mut c_ulong {
        self.words.as_mut_ptr()
    }

    /// The kernel's `maxnode`: one more than the number of bits, because it subtracts one.
    pub(crate) fn maxnode(&self) -> c_ulong {
        self.words.len() as c_ulong * c_ulong::from(WORD_BITS) + 1
    }

    /// Reads the kernel's list format: `0-3,8,10-11`. `None` if it is not that.
    pub(crate) fn parse(list: &str) -> Option<Self> {
        let mut set = Self::default();
        for range in list.trim().split(',').filter(|range| !range.is_empty()) {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let (first, last) = (first.parse().ok()?, last.parse().ok()?);
            if first > last || last >= MOST_NODES {
                return None;
            }
            (first..=last).for_each(|node| set.insert(node));
        }
        Some(set)
    }
}

/// What is known about the nodes of the machine and of the process.
#[derive(Debug, Clone, Default)]
pub(crate) struct Nodes {
    /// Nodes that are online; `None` if unknown.
    pub(crate) online: Option<NodeSet>,
    /// Nodes that have memory; `None` if unknown.
    pub(crate) with_memory: Option<NodeSet>,
    /// Nodes that the process may use.
    pub(crate) allowed: NodeSet,
}

impl Nodes {
    /// Decides whether the kernel may be asked for `node`. The kernel itself drops absent and
    /// forbidden nodes from a mask without a word, if one good node is left.
    pub(crate) fn check(&self, node: u32) -> Result<(), MapError> {
        let lacks = |set: &Option<NodeSet>| set.as_ref().is_some_and(|set| !set.contains(node));
        if lacks(&self.online) {
            Err(MapError::NodeAbsent(node))
        } else if lacks(&self.with_memory) {
            Err(MapError::NodeWithoutMemory(node))
        } else if !self.allowed.contains(node) {
            Err(MapError::NodeNotAllowed(node))
        } else {
            Ok(())
        }
    }

    /// The nodes on which pages may lie in turn: those with memory that the process may use.
    pub(crate) fn usable(&self) -> Result<NodeSet, MapError> {
        let known = [&self.online, &self.with_memory].into_iter().flatten();
        let usable = known.fold(self.allowed.clone(), |set, known| set.shared_with(known));
        if usable.len() == 0 { Err(MapError::Unsupported) } else { Ok(usable) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_stand_where_the_kernel_looks() {
        for node in [0, 1, 31, 32, 62, 63, 64, 65, 127, 128, 1000, 1023, MOST_NODES - 1] {
            let set = NodeSet::of(node);
            let word = (node / WORD_BITS) as usize;
            assert_eq!(set.words.len(), word + 1);
            assert_eq!(set.words[word], 1 << (node % WORD_BITS));
            assert!(set.words[..word].iter().all(|&word| word == 0));
            assert!(
                set.maxnode() > c_ulong::from(node) + 1,
                "node {node} must survive maxnode - 1"
            );
            assert_eq!(set.maxnode() % c_ulong::from(WORD_BITS), 1);
            assert_eq!(set.only(), Some(node));
            assert!(set.contains(node));
            assert!(!set.contains(node + 1) && !set.contains(node.wrapping_sub(1)));
        }
        assert_eq!(NodeSet::with_room(1024).maxnode(), 1025);
        assert_eq!(NodeSet::with_room(1).maxnode(), c_ulong::from(WORD_BITS) + 1);
    }

    #[test]
    fn only_means_only() {
        let mut set = NodeSet::of(3);
        set.insert(64);
        assert_eq!(set.only(), None);
        assert_eq!(NodeSet::default().only(), None);
        assert_eq!(NodeSet::with_room(128).only(), None);
    }

    #[test]
    fn lists_are_read_or_refused() {
        let set = NodeSet::parse("0-2,8,64-65\n").unwrap();
        let held: Vec<u32> = (0..200).filter(|&node| set.contains(node)).collect();
        assert_eq!(held, [0, 1, 2, 8, 64, 65]);
        assert_eq!(NodeSet::parse("\n"), Some(NodeSet::default()));
        assert_eq!(NodeSet::parse("7"), Some(NodeSet::of(7)));
        for bad in ["x", "0-", "-1", "3-1", "0-99999", "1,,x", "4294967296"] {
            assert_eq!(NodeSet::parse(bad), None, "{bad}");
        }
    }

    fn set(nodes: &[u32]) -> NodeSet {
        let mut set = NodeSet::default();
        nodes.iter().for_each(|&node| set.insert(node));
        set
    }

    #[test]
    fn decisions_follow_the_machine() {
        // Nodes 0 and 8 with memory, 16 with CPUs only, 65 behind a cpuset; 1 never existed.
        let nodes = Nodes {
            online: Some(set(&[0, 8, 16, 65])),
            with_memory: Some(set(&[0, 8, 65])),
            allowed: set(&[0, 8, 16]),
        };
        assert_eq!(nodes.check(0), Ok(()));
        assert_eq!(nodes.check(8), Ok(()));
        assert_eq!(nodes.check(1), Err(MapError::NodeAbsent(1)));
        assert_eq!(nodes.check(1000), Err(MapError::NodeAbsent(1000)));
        assert_eq!(nodes.check(u32::MAX), Err(MapError::NodeAbsent(u32::MAX)));
        assert_eq!(nodes.check(16), Err(MapError::NodeWithoutMemory(16)));
        assert_eq!(nodes.check(65), Err(MapError::NodeNotAllowed(65)));
    }

    #[test]
    fn interleaving_takes_what_has_memory_and_is_allowed() {
        let nodes = Nodes {
            online: Some(set(&[0, 8, 16, 65, 70])),
            with_memory: Some(set(&[0, 8, 65, 70])),
            allowed: set(&[0, 8, 16, 70]),
        };
        let usable = nodes.usable().unwrap();
        assert!(usable.holds_as(&set(&[0, 8, 70])) && usable.len() == 3);
        let mut roomy = NodeSet::with_room(1024);
        [0, 8, 70].into_iter().for_each(|node| roomy.insert(node));
        assert!(usable.holds_as(&roomy) && !usable.holds_as(&set(&[0, 8])));
        let none = Nodes { allowed: set(&[3]), ..nodes };
        assert_eq!(none.usable().err(), Some(MapError::Unsupported));
        let unknown = Nodes { allowed: set(&[0, 65]), ..Nodes::default() };
        assert_eq!(unknown.usable().unwrap().len(), 2);
    }

    #[test]
    fn without_sysfs_the_allowed_nodes_decide() {
        let nodes = Nodes { allowed: set(&[0, 65]), ..Nodes::default() };
        assert_eq!(nodes.check(65), Ok(()));
        assert_eq!(nodes.check(64), Err(MapError::NodeNotAllowed(64)));
    }
}
