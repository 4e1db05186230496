//! Node-striped counter: a word for each NUMA node, or for whatever shares a cache.
//! # Algorithm
//! A `sharded` counter of `N` words whose index `I` is `NodeId`, or a [`ShardIndex`] of yours that
//! names the L3 group, the socket or the tenant. Threads of one node share its word.
//! # Why
//! Against `sharded` it removes words, and with them bytes and loads of a read: as many as nodes
//! instead of as many as cores. An add moves the line among the cores of a node and never between
//! nodes, which is the dear half of `atomic`; it adds the moves inside.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `NodeCounter<N, I>` | 128 N | 128 | 2 N | each word: the threads of its node, takers |
//! | `NodeCounter<16, I>` | 2048 | 128 | 32 | as above |
//!
//! 128 bytes are a pair of lines on x86-64 and AArch64; other targets pad to what their CPUs need.
//! # Cost
//! Add: the index and 1 RMW on 1 line, 1 transfer inside the node if another core of it added last.
//! Sum: `N` loads on `N` lines. Take: `N` RMWs.
//! # Progress
//! As `sharded`.
//! # Invariants
//! Those of `sharded`.
//! # Synchronization
//! none, as `sharded`.
//! # Errors and limits
//! Those of `sharded`. More nodes than `N` share words. A word lies where the counter does: the
//! pages of one counter are on one node, and only the cache keeps its lines near the others.
//! # References
//! D. Dice, Y. Lev, M. Moir, "Scalable Statistics Counters", SPAA 2013: counters that are split by
//! node. Differs from them in: a fixed number of words, chosen by an index.

use core::fmt;

use super::contract::{Counter, Drain, Explicit, Properties, ShardIndex};
use super::hot::{HotField, HotFields, Role};
use super::sharded::ShardedCounter;
use super::sync::const_fn;

/// Counts in a word a node; `I` names the calling thread's node.
///
/// ```
/// use counters::{Counter, NodeCounter, ShardIndex};
///
/// /// Cores 0 to 7 share a cache, cores 8 to 15 the next, and so on.
/// struct CacheOfCore;
/// impl ShardIndex for CacheOfCore {
///     fn current() -> usize {
///         let core = 21; // known to whoever pinned the thread
///         core / 8
///     }
/// }
///
/// static TOTAL: NodeCounter<4, CacheOfCore> = NodeCounter::new();
/// TOTAL.add(1);
/// assert_eq!((TOTAL.sum_at(2), TOTAL.sum()), (1, 1));
/// ```
pub struct NodeCounter<const N: usize, I = Explicit> {
    nodes: ShardedCounter<N, I>,
}

impl<const N: usize, I> NodeCounter<N, I> {
    const_fn! {
        /// Makes a counter at zero.
        pub fn new() -> Self {
            Self { nodes: ShardedCounter::new() }
        }
    }

    /// Adds `n` to the word of the node `node mod N`.
    #[inline]
    pub fn add_at(&self, node: usize, n: i64) {
        self.nodes.add_at(node, n);
    }

    /// Reads the word of the node `node mod N`; may be stale, as [`Counter::sum`].
    #[inline]
    pub fn sum_at(&self, node: usize) -> i64 {
        self.nodes.sum_at(node)
    }

    /// Reads the total; may be stale, as [`Counter::sum`].
    #[inline]
    pub fn sum(&self) -> i64 {
        self.nodes.sum()
    }

    /// Where the word of the node `node mod N` lies: its offset in bytes from the counter's start.
    pub const fn offset_of_shard(node: usize) -> usize {
        core::mem::offset_of!(Self, nodes) + ShardedCounter::<N, I>::offset_of_shard(node)
    }
}

impl<const N: usize, I> Default for NodeCounter<N, I> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const N: usize, I: ShardIndex> Counter for NodeCounter<N, I> {
    const PROPERTIES: Properties = <ShardedCounter<N, I> as Counter>::PROPERTIES;

    #[inline]
    fn add(&self, n: i64) {
        self.nodes.add(n);
    }

    #[inline]
    fn sum(&self) -> i64 {
        self.sum()
    }
}

impl<const N: usize, I> Drain for NodeCounter<N, I> {
    fn take(&self) -> i64 {
        self.nodes.take()
    }
}

impl<const N: usize, I> HotFields for NodeCounter<N, I> {
    const ALIGNMENT: usize = <ShardedCounter<N, I> as HotFields>::ALIGNMENT;
    const ALONE: bool = true;

    fn hot_fields(&self, visit: &mut dyn FnMut(HotField)) {
        let Self { nodes } = self;
        // Several threads have a node, and a thread may move to another one.
        nodes.hot_fields(&mut |word| visit(word.written_by(Role::Anybody)));
    }
}

impl<const N: usize, I> fmt::Debug for NodeCounter<N, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodeCounter").field("sum", &self.sum()).finish_non_exhaustive()
    }
}
