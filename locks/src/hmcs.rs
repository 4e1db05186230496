//! HMCS lock: a tree of MCS queues; hand-over climbs to a further group after a number of passes.
//! # Algorithm
//! Threads queue at their nearest group; the head of a group's queue queues, with the group's own
//! node, one level up, and at the top has the lock. `unlock` passes the lock to the next in the
//! same queue and counts in that one's `status`; after `PASSES` holders, or when nobody waits, it
//! unlocks one level up first and then tells the next in the queue, if any, to climb itself
//! (`CLIMB`).
//! # Why
//! Against `cohort` it removes the separate counter and lock of each group, and takes any number
//! of levels (L3 cache, node, machine); it adds a node and a queue for every group of every level,
//! and an exchange at each level to an uncontended pair.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `HmcsLock` | 128 + 384 a group and level | 128 | 2 + 6 a group and level | arrivals, holders, neighbours in a queue |
//! | slot | 256 | 128 | 4 | its waiter, predecessor (`status`), successor (`next`) |
//! # Cost
//! Uncontended pair: 2 RMWs a level and at the top, `rdtscp` a level. Hand-off inside a group: 1
//! transfer to write `status`, 1 for the waiter to read it.
//! # Progress
//! Blocking. Bounded: first come, first served in each queue; a group has the lock at most `PASSES`
//! times in a row, its parent `PASSES` times that many, before the next group has its turn. A preempted
//! waiter stops those behind it.
//! # Invariants
//! - I1, I2: those of `queue_node`. A group's node stands in the lock, a waiter's is its slot.
//! - I3: a group's `node` and `parent` are used by the head of the group's queue only.
//! - I4: the head of a queue holds all levels above it, or climbs to them, or has left them.
//! # Synchronization
//! | edge | release side | acquire side | publishes |
//! |---|---|---|---|
//! | E1 | store of the successor's `status` | load of `status` that ends the wait | the critical section's writes; use of the group's node (I3) |
//! | E2 to E4 | those of `queue_node` | | |
//! # Errors and limits
//! Groups beyond `GROUPS` share. A wrong topology costs time, never exclusion: `parent` remembers
//! where a group climbed. `try_lock` that fails above may wait for a successor that is linking.
//! # References
//! M. Chabbi, M. Fagan, J. Mellor-Crummey, "High Performance Locks for Multi-level NUMA Systems",
//! PPoPP 2015, section 3. Differs from the paper in: the parent is asked for when climbing; the
//! threshold is one for all levels.

use core::marker::PhantomData;
use core::ptr;

use crossbeam_utils::CachePadded;

use super::array::array_of;
use super::contract::{ConstInit, Fairness, Properties, RawLock, TryLock, Waiting};
use super::hot::{HotField, HotFields, Role};
use super::queue_node::{Node, WAIT};
use super::relax::{Relax, Spin};
use super::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use super::sync::const_fn;
use super::topology::Topology;

/// The head of the queue now, without the levels above.
const CLIMB: u32 = u32::MAX - 1;

/// Queues threads by group, and groups by group, up a tree of `LEVELS` levels below the top.
///
/// ```
/// use locks::{CpuBlocks, HmcsLock, Mutex};
/// type Lock = HmcsLock<CpuBlocks<4, 64, 128>, 2, 32>; // 32 L3 caches, 2 nodes
/// static TOTAL: Mutex<u64, Lock> = Mutex::new(0);
/// assert_eq!(TOTAL.with(|total| { *total += 1; *total }), 1);
/// ```
#[derive(Debug)]
#[repr(C)]
pub struct HmcsLock<
    T,
    const LEVELS: usize = 1,
    const GROUPS: usize = 8,
    const PASSES: u32 = 64,
    R = Spin,
> {
    top: CachePadded<AtomicPtr<Node>>,
    levels: [[Group; GROUPS]; LEVELS],
    topology: T,
    relax: PhantomData<fn() -> R>,
}

/// The queue of a group, and what its head uses: where it stands one level up, and which group
/// that is.
#[derive(Debug)]
struct Group {
    tail: CachePadded<AtomicPtr<Node>>,
    node: CachePadded<Node>,
    parent: CachePadded<AtomicUsize>,
}

/// A waiter's place in the queue of its group, and the group's number.
#[derive(Debug)]
#[repr(C)]
pub struct HmcsSlot {
    node: CachePadded<Node>,
    group: CachePadded<AtomicUsize>,
}

/// Queues `node` at `tail` and waits for its turn; what the predecessor said, or `CLIMB` if there
/// was none.
#[inline]
fn queue<R: Relax>(node: &Node, tail: &AtomicPtr<Node>) -> u32 {
    if !node.queue(tail) {
        return CLIMB;
    }
    let mut relax = R::new();
    loop {
        // ORDERING: Acquire, E1 - the head sees the last head's writes.
        match node.status.load(Ordering::Acquire) {
            WAIT => relax.relax(),
            said => return said,
        }
    }
}

/// Takes `node` out of its queue, and says `status` to the next in it.
#[inline]
fn leave<R: Relax>(node: &Node, tail: &AtomicPtr<Node>, status: u32) {
    if let Some(next) = node.leave::<R>(tail) {
        // ORDERING: Release, E1 - hands the writes to the next head.
        next.store(status, Ordering::Release);
    }
}

impl Group {
    const_fn! {
        fn new() -> Self {
            Self {
                tail: CachePadded::new(AtomicPtr::new(ptr::null_mut())),
                node: CachePadded::new(Node::new()),
                parent: CachePadded::new(AtomicUsize::new(0)),
            }
        }
    }
}

impl Default for HmcsSlot {
    fn default() -> Self {
        Self { node: CachePadded::new(Node::new()), group: CachePadded::new(AtomicUsize::new(0)) }
    }
}

impl<T: ConstInit, const LEVELS: usize, const GROUPS: usize, const PASSES: u32, R>
    HmcsLock<T, LEVELS, GROUPS, PASSES, R>
{
    const_fn! {
        /// Makes an unlocked lock.
        pub fn new() -> Self {
            Self::on(T::INIT)
        }
    }
}

impl<T, const LEVELS: usize, const GROUPS: usize, const PASSES: u32, R>
    HmcsLock<T, LEVELS, GROUPS, PASSES, R>
{
    const_fn! {
        /// Makes an unlocked lock whose groups `topology` tells.
        pub fn on(topology: T) -> Self {
            Self {
                top: CachePadded::new(AtomicPtr::new(ptr::null_mut())),
                levels: array_of![array_of![Group::new(); GROUPS]; LEVELS],
                topology,
                relax: PhantomData,
            }
        }
    }
}

impl<T: Default, const LEVELS: usize, const GROUPS: usize, const PASSES: u32, R> Default
    for HmcsLock<T, LEVELS, GROUPS, PASSES, R>
{
    fn default() -> Self {
        Self::on(T::default())
    }
}

impl<T: Topology, const LEVELS: usize, const GROUPS: usize, const PASSES: u32, R: Relax>
    HmcsLock<T, LEVELS, GROUPS, PASSES, R>
{
    const FIT: () = assert!(
        LEVELS > 0 && GROUPS > 0 && PASSES > 0 && PASSES < CLIMB,
        "a tree has levels, a level has groups, a group has the lock at least once"
    );

    fn group(&self, level: usize) -> usize {
        let () = Self::FIT;
        self.topology.group(level) % GROUPS
    }

    /// Writes down and gives the group around `group` at `level`, which the caller heads.
    fn climb_from(&self, group: &Group, level: usize) -> usize {
        let parent = self.group(level + 1);
        // ORDERING: Relaxed - by I3 the head's alone; E1 and E2 order it.
        group.parent.store(parent, Ordering::Relaxed);
        parent
    }

    /// Gives up the place of `node` in the group `nth` of `level`, and what it holds above.
    fn release(&self, level: usize, nth: usize, node: &Node) {
        let Some(groups) = self.levels.get(level) else {
            return leave::<R>(node, &self.top, 1);
        };
        let group = &groups[nth % GROUPS];
        // ORDERING: Relaxed - by I2 the predecessor has written for the last time: E1.
        let passes = node.status.load(Ordering::Relaxed);
        if passes < PASSES
            && let Some(next) = node.successor()
        {
            // ORDERING: Release, E1 - hands the writes, and the levels above, to the next head.
            return next.store(passes + 1, Ordering::Release);
        }
        // ORDERING: Relaxed - by I3 the head's alone; E1 and E2 order it.
        self.release(level + 1, group.parent.load(Ordering::Relaxed), &group.node);
        leave::<R>(node, &group.tail, CLIMB);
    }
}

impl<T, const LEVELS: usize, const GROUPS: usize, const PASSES: u32, R> HotFields
    for HmcsLock<T, LEVELS, GROUPS, PASSES, R>
{
    const ALIGNMENT: usize = align_of::<CachePadded<u8>>();
    const ALONE: bool = true;

    fn hot_fields(&self, visit: &mut dyn FnMut(HotField)) {
        let Self { top, levels, topology, relax: _ } = self;
        let heads = Role::Many("heads of groups");
        visit(HotField::of("top", &**top).written_by(heads).padded_in(top));
        for (nth, Group { tail, node, parent }) in levels.iter().flatten().enumerate() {
            let arrivals = Role::Many("arrivals in a group");
            visit(HotField::of("tail", &**tail).written_by(arrivals).padded_in(tail).nth(nth));
            node.hot_fields(&mut |field| visit(field.padded_in(node).nth(nth)));
            let head = Role::Many("heads in a group");
            visit(HotField::of("parent", &**parent).written_by(head).padded_in(parent).nth(nth));
        }
        visit(HotField::of("topology", topology));
        visit(HotField::rest(self, topology));
    }
}

impl HotFields for HmcsSlot {
    const ALIGNMENT: usize = align_of::<CachePadded<u8>>();
    const ALONE: bool = true;

    fn hot_fields(&self, visit: &mut dyn FnMut(HotField)) {
        let Self { node, group } = self;
        node.hot_fields(&mut |field| visit(field.padded_in(node)));
        visit(HotField::of("group", &**group).written_by(Role::One("waiter")).padded_in(group));
    }
}

// SAFETY: each queue has one head, and by I4 one of the heads of the nearest groups holds every
// level up to the top. E1 and E2 hand the writes on. By I1 no slot is referred to after its
// `unlock`.
unsafe impl<T: Topology, const LEVELS: usize, const GROUPS: usize, const PASSES: u32, R: Relax>
    RawLock for HmcsLock<T, LEVELS, GROUPS, PASSES, R>
{
    type Slot = HmcsSlot;
    const PROPERTIES: Properties =
        Properties { fairness: Fairness::Bounded, waiting: Waiting::Spins, numa_aware: true };

    #[inline]
    unsafe fn lock(&self, slot: &HmcsSlot) {
        let mut nth = self.group(0);
        // ORDERING: Relaxed - the waiter's alone.
        slot.group.store(nth, Ordering::Relaxed);
        let mut node: &Node = &slot.node;
        for (level, groups) in self.levels.iter().enumerate() {
            let group = &groups[nth];
            if queue::<R>(node, &group.tail) != CLIMB {
                return;
            }
            // ORDERING: Relaxed - by I2 nobody else writes it any more.
            node.status.store(1, Ordering::Relaxed);
            nth = if level + 1 < LEVELS { self.climb_from(group, level) } else { 0 };
            node = &group.node;
        }
        queue::<R>(node, &self.top);
    }

    #[inline]
    unsafe fn unlock(&self, slot: &HmcsSlot) {
        // ORDERING: Relaxed - the waiter's alone.
        self.release(0, slot.group.load(Ordering::Relaxed), &slot.node);
    }
}

// SAFETY: as for `RawLock`: success means to head a queue of each level up to the top.
unsafe impl<T: Topology, const LEVELS: usize, const GROUPS: usize, const PASSES: u32, R: Relax>
    TryLock for HmcsLock<T, LEVELS, GROUPS, PASSES, R>
{
    #[inline]
    unsafe fn try_lock(&self, slot: &HmcsSlot) -> bool {
        let mut nth = self.group(0);
        // ORDERING: Relaxed - the waiter's alone.
        slot.group.store(nth, Ordering::Relaxed);
        let mut headed: [Option<(&Node, &Group)>; LEVELS] = [None; LEVELS];
        let mut node: &Node = &slot.node;
        let mut free = true;
        for (level, groups) in self.levels.iter().enumerate() {
            let group = &groups[nth];
            free = node.try_queue(&group.tail);
            if !free {
                break;
            }
            // ORDERING: Relaxed - nobody writes to the head of a queue.
            node.status.store(1, Ordering::Relaxed);
            headed[level] = Some((node, group));
            nth = if level + 1 < LEVELS { self.climb_from(group, level) } else { 0 };
            node = &group.node;
        }
        if free && node.try_queue(&self.top) {
            return true;
        }
        for (node, group) in headed.iter().rev().flatten() {
            leave::<R>(node, &group.tail, CLIMB);
        }
        false
    }
}
