//! CLH queue lock: FIFO, each waiter spins on its predecessor's node and takes it over.
//! # Algorithm
//! A slot owns a node of the heap. `lock` sets `held` in it, swaps it into `tail` and spins until
//! `held` of the node that was there is clear. `unlock` clears `held` of its own node and keeps
//! the predecessor's for the next time: nodes wander from slot to slot. A `tail` that is null is
//! a node that nobody holds.
//! # Why
//! Against `mcs` it removes the link: `unlock` is one store, without an exchange when nobody
//! waits and without a successor to wait for. It adds nodes that outlive the call, so they need a
//! heap, and spinning on memory that some other thread placed.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `ClhLock` | 8 | 8 | 1 | arrivals |
//! | slot | 16 | 8 | 1 | its waiter |
//! | node, one a slot and one a lock | 128 | 128 | 2 | its owner |
//! # Cost
//! Uncontended pair: 1 RMW, 4 loads, 4 stores, 4 lines. Hand-off with n waiters: 1 transfer to
//! clear `held`, 1 for the waiter to read it, whatever n is.
//! # Progress
//! Blocking; FIFO from the swap on; `unlock` is wait-free. A preempted waiter stops all waiters
//! behind it.
//! # Invariants
//! - I1: each node has one owner: the slot that keeps it in `node`, or while queued the waiter
//!   behind it, or, if that is nobody, the lock.
//! - I2: `held` of a queued node is cleared once, by the caller that queued it.
//! - I3: `node` and `behind` of a slot are used by its waiter only.
//! # Synchronization
//! | edge | release side | acquire side | publishes |
//! |---|---|---|---|
//! | E1 | `held = false` in `unlock` | load of `held` in `lock` | the critical section's writes, and the node itself to its new owner |
//! | E2 | swap of `tail` in `lock` | swap of `tail` by the next arrival | the node's `held`, set |
//! # Errors and limits
//! A slot allocates a node when it is made (so [`Mutex::with`](crate::Mutex::with) does each time:
//! keep slots), and the lock's first acquisition leaves that node to the lock, so that slot's
//! second acquisition allocates once more (128 bytes; out of memory aborts). No `try_lock`: whether
//! `tail` is free can only be told by reading a node that may be freed meanwhile.
//! # References
//! T. S. Craig, "Building FIFO and Priority-Queuing Spin Locks from Atomic Swap", University of
//! Washington TR 93-02-02, 1993; P. Magnusson, A. Landin, E. Hagersten, "Queue Locks on Cache
//! Coherent Multiprocessors", IPPS 1994. Differs from them in: a new lock has no node.

use alloc::boxed::Box;
use core::marker::PhantomData;
use core::ptr;

use crossbeam_utils::CachePadded;

use super::contract::{Fairness, HasWaiters, Properties, RawLock, Waiting};
use super::hot::{HotField, HotFields, Role};
use super::relax::{Relax, Spin};
use super::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use super::sync::const_fn;

/// Queues waiters on the nodes of their predecessors.
///
/// ```
/// use locks::{ClhLock, Mutex};
/// static TOTAL: Mutex<u64, ClhLock> = Mutex::new(0);
/// assert_eq!(TOTAL.with(|total| { *total += 1; *total }), 1);
/// ```
#[derive(Debug)]
pub struct ClhLock<R = Spin> {
    tail: AtomicPtr<Node>,
    relax: PhantomData<fn() -> R>,
}

#[derive(Debug)]
struct Node {
    held: CachePadded<AtomicBool>,
}

/// A waiter's node, and while it has the lock the one behind which it waited.
#[derive(Debug)]
#[repr(C)]
pub struct ClhSlot {
    node: AtomicPtr<Node>,
    behind: AtomicPtr<Node>,
}

impl Node {
    fn allocate() -> *mut Self {
        Box::into_raw(Box::new(Self { held: CachePadded::new(AtomicBool::new(false)) }))
    }
}

impl Default for ClhSlot {
    fn default() -> Self {
        Self { node: AtomicPtr::new(Node::allocate()), behind: AtomicPtr::new(ptr::null_mut()) }
    }
}

impl Drop for ClhSlot {
    fn drop(&mut self) {
        // ORDERING: Relaxed - by I3 ours alone.
        let node = self.node.load(Ordering::Relaxed);
        if !node.is_null() {
            // SAFETY: by I1 the slot is the owner; it was made by a box.
            drop(unsafe { Box::from_raw(node) });
        }
    }
}

impl<R> ClhLock<R> {
    const_fn! {
        /// Makes an unlocked lock.
        pub fn new() -> Self {
            Self { tail: AtomicPtr::new(ptr::null_mut()), relax: PhantomData }
        }
    }
}

impl<R> Default for ClhLock<R> {
    fn default() -> Self {
        Self::new()
    }
}

impl<R> Drop for ClhLock<R> {
    fn drop(&mut self) {
        // ORDERING: Relaxed - nobody else is there any more.
        let node = self.tail.load(Ordering::Relaxed);
        if node.is_null() {
            return;
        }
        // SAFETY: what `tail` names is not freed before the lock.
        let held = unsafe { &(*node).held };
        // ORDERING: Acquire, E1 - what the last holder did with the node lies behind us. A holder
        // that never unlocked keeps it: a leak, not a dangling pointer.
        if !held.load(Ordering::Acquire) {
            // SAFETY: by I1 the lock is the owner; it was made by a box.
            drop(unsafe { Box::from_raw(node) });
        }
    }
}

impl<R> HotFields for ClhLock<R> {
    const ALIGNMENT: usize = align_of::<usize>();
    const ALONE: bool = false;

    fn hot_fields(&self, visit: &mut dyn FnMut(HotField)) {
        let Self { tail, relax: _ } = self;
        visit(HotField::of("tail", tail).written_by(Role::Many("arrivals")));
    }
}

impl HotFields for ClhSlot {
    const ALIGNMENT: usize = align_of::<usize>();
    const ALONE: bool = false;

    fn hot_fields(&self, visit: &mut dyn FnMut(HotField)) {
        let Self { node, behind } = self;
        // ORDERING: Relaxed - by I3 the slot's alone.
        let owned = node.load(Ordering::Relaxed);
        visit(HotField::of("node", node).written_by(Role::One("waiter")));
        visit(HotField::of("behind", behind).written_by(Role::One("waiter")));
        if !owned.is_null() {
            // SAFETY: by I1 the slot owns it, and the caller does not lock at the same time.
            let held = unsafe { &(*owned).held };
            let field = HotField::of("held", &**held).written_by(Role::One("owner"));
            visit(field.read_by(Role::One("successor")).padded_in(held));
        }
    }
}

// SAFETY: a caller leaves `lock` when the node that it swapped out of `tail` is not held any more
// (I2), so in the order of the swaps, one after the other. E1 hands the writes on; the slot itself
// is referred to by its waiter only (I3).
unsafe impl<R: Relax> RawLock for ClhLock<R> {
    type Slot = ClhSlot;
    const PROPERTIES: Properties =
        Properties { fairness: Fairness::Fifo, waiting: Waiting::Spins, numa_aware: false };

    #[inline]
    unsafe fn lock(&self, slot: &ClhSlot) {
        // ORDERING: Relaxed - by I3 ours alone.
        let mut node = slot.node.load(Ordering::Relaxed);
        if node.is_null() {
            node = Node::allocate();
            // ORDERING: Relaxed - as the line above.
            slot.node.store(node, Ordering::Relaxed);
        }
        // SAFETY: by I1 the slot owns it.
        let held = unsafe { &(*node).held };
        // ORDERING: Relaxed - the node is ours alone until the swap publishes it (E2).
        held.store(true, Ordering::Relaxed);
        // ORDERING: AcqRel, E2; acquire - see that the predecessor's node is held; release -
        // publish that ours is.
        let behind = self.tail.swap(node, Ordering::AcqRel);
        // ORDERING: Relaxed - by I3 ours alone.
        slot.behind.store(behind, Ordering::Relaxed);
        if behind.is_null() {
            return;
        }
        // SAFETY: by I1 we own the node that we wait behind: nobody else frees it.
        let held = unsafe { &(*behind).held };
        let mut relax = R::new();
        // ORDERING: Acquire, E1 - the holder sees the last holder's writes.
        while held.load(Ordering::Acquire) {
            relax.relax();
        }
    }

    #[inline]
    unsafe fn unlock(&self, slot: &ClhSlot) {
        // ORDERING: Relaxed - by I3 ours alone.
        let node = slot.node.load(Ordering::Relaxed);
        // ORDERING: Relaxed - as the line above.
        let behind = slot.behind.load(Ordering::Relaxed);
        // ORDERING: Relaxed - as the line above. From now on the predecessor's node is ours.
        slot.node.store(behind, Ordering::Relaxed);
        // SAFETY: until `held` is clear the node is ours.
        let held = unsafe { &(*node).held };
        // ORDERING: Release, E1 - hands the critical section's writes, and the node, to the next
        // holder.
        held.store(false, Ordering::Release);
    }
}

// SAFETY: a node that was swapped into `tail` behind ours is held until its owner was let in.
unsafe impl<R: Relax> HasWaiters for ClhLock<R> {
    #[inline]
    unsafe fn has_waiters(&self, slot: &ClhSlot) -> bool {
        // ORDERING: Relaxed - by I3 ours alone.
        let mine = slot.node.load(Ordering::Relaxed);
        // ORDERING: Relaxed - may be stale; nothing is read through it.
        self.tail.load(Ordering::Relaxed) != mine
    }
}
