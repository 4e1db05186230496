//! CLH queue lock: FIFO, each waiter spins on its predecessor's node and takes it over.
//! # Algorithm
//! A slot owns a node of the heap. `lock` writes `WAITING` into it, swaps it into `tail` and spins
//! until the node that was there says `FREE`. `unlock` writes `FREE` into its own node and keeps
//! the predecessor's for the next time: nodes wander from slot to slot. A `tail` that is null is
//! a free node that nobody made.
//! A waiter that gives up exchanges its node at `tail` for its predecessor's; if somebody queued
//! behind it, it writes its predecessor's address into its own node instead and leaves that to the
//! successor, who goes on waiting one node further up. `try_lock` is a wait that gives up at once.
//! # Why
//! Against `mcs` it removes the link: `unlock` is one store, without an exchange when nobody
//! waits and without a successor to wait for; and waiters can give up without asking their
//! neighbours. It adds nodes that outlive the call, so they need a heap, and spinning on memory
//! that some other thread placed.
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
//! Blocking; FIFO from the swap on; `unlock` and giving up are wait-free. A preempted waiter stops
//! all waiters behind it; one that gave up stops nobody.
//! # Invariants
//! - I1: each node has one owner: the slot that keeps it in `node`, or while queued the waiter
//!   behind it, or, if that is nobody, the lock.
//! - I2: a queued node says `WAITING` until the caller that queued it writes `FREE` or another
//!   node's address into it, once.
//! - I3: `node` and `behind` of a slot are used by its waiter only.
//! # Synchronization
//! | edge | release side | acquire side | publishes |
//! |---|---|---|---|
//! | E1 | store of `FREE` in `unlock`, of an address when giving up | load of the node that ends the wait for it | the critical section's writes, and the node itself to its new owner |
//! | E2 | swap of `tail` in `lock` | swap of `tail` by the next arrival | that the node says `WAITING` |
//! # Errors and limits
//! A slot allocates a node when it is made (so [`Mutex::with`](crate::Mutex::with) does each time:
//! keep slots, or let [`Pooled`](crate::Pooled) keep them), and another when its node stayed with the lock: once after the lock's first
//! acquisition, and after giving up with a waiter behind (128 bytes; out of memory aborts).
//! Waiters that gave up in a row are passed, and freed, one by one. A slot that is dropped while
//! it has the lock, against the contract, leaks its node. Recursion deadlocks.
//! # References
//! T. S. Craig, "Building FIFO and Priority-Queuing Spin Locks from Atomic Swap", University of
//! Washington TR 93-02-02, 1993; P. Magnusson, A. Landin, E. Hagersten, "Queue Locks on Cache
//! Coherent Multiprocessors", IPPS 1994; M. L. Scott, "Non-Blocking Timeout in Scalable Queue-Based
//! Spin Locks", PODC 2002, section 2 (CLH-NB try lock). Differs from them in: a new lock has no
//! node; the last in the queue leaves by one exchange.

use alloc::boxed::Box;
use core::marker::PhantomData;
use core::ptr;

use crossbeam_utils::CachePadded;

use super::contract::{Fairness, Properties, RawLock, Timed, TryLock, Waiting};
use super::hot::{HotField, HotFields, Role};
use super::relax::{Relax, Spin};
use super::sync::atomic::{AtomicPtr, Ordering};
use super::sync::const_fn;

/// Its owner has the lock or waits for it.
const WAITING: *mut Node = ptr::null_mut();
/// Its owner has let go: no address of a node, which is aligned to more.
const FREE: *mut Node = ptr::without_provenance_mut(1);

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
    /// `WAITING`, `FREE`, or the node before this one, whose owner gave up.
    says: CachePadded<AtomicPtr<Node>>,
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
        Box::into_raw(Box::new(Self { says: CachePadded::new(AtomicPtr::new(FREE)) }))
    }

    fn described(&self) -> HotField {
        let says = HotField::of("says", &*self.says).written_by(Role::Many("owners"));
        says.read_by(Role::Many("successors")).padded_in(&self.says)
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
        if node.is_null() {
            return;
        }
        // SAFETY: by I1 the slot is the owner.
        let says = unsafe { &(*node).says };
        // ORDERING: Relaxed - a slot that has no lock owns a node that nobody else knows.
        if says.load(Ordering::Relaxed) != WAITING {
            // SAFETY: as above; it was made by a box.
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
        let mut node = self.tail.load(Ordering::Relaxed);
        while !node.is_null() {
            // SAFETY: what `tail` names is not freed before the lock, nor what that names.
            let says = unsafe { &(*node).says };
            // ORDERING: Relaxed - whoever drops the lock has it alone: all others are done with it.
            let before = says.load(Ordering::Relaxed);
            if before == WAITING {
                return; // never unlocked: its slot owns it still
            }
            // SAFETY: by I1 the lock is the owner; it was made by a box.
            drop(unsafe { Box::from_raw(node) });
            node = if before == FREE { ptr::null_mut() } else { before };
        }
    }
}

impl<R: Relax> ClhLock<R> {
    /// Queues the slot's node; what it stands behind.
    #[inline]
    fn queue(&self, slot: &ClhSlot) -> *mut Node {
        // ORDERING: Relaxed - by I3 ours alone.
        let mut node = slot.node.load(Ordering::Relaxed);
        if node.is_null() {
            node = Node::allocate();
            // ORDERING: Relaxed - as the line above.
            slot.node.store(node, Ordering::Relaxed);
        }
        // SAFETY: by I1 the slot owns it.
        let says = unsafe { &(*node).says };
        // ORDERING: Relaxed - the node is ours alone until the swap publishes it (E2).
        says.store(WAITING, Ordering::Relaxed);
        // ORDERING: AcqRel, E2; acquire - see what the predecessor's node says now; release -
        // publish that we wait.
        self.tail.swap(node, Ordering::AcqRel)
    }

    /// Waits behind a node, until it is free or `expired` says so; whether it is free.
    #[inline]
    fn wait(
        &self,
        slot: &ClhSlot,
        mut behind: *mut Node,
        mut expired: impl FnMut() -> bool,
    ) -> bool {
        let mut relax = R::new();
        while !behind.is_null() {
            // SAFETY: by I1 we own the node that we wait behind: nobody else frees it.
            let says = unsafe { &(*behind).says };
            // ORDERING: Acquire, E1 - the holder sees the last holder's writes, and whoever takes
            // a node over sees its last owner's.
            match says.load(Ordering::Acquire) {
                FREE => break,
                WAITING if expired() => {
                    self.give_up(slot, behind);
                    return false;
                }
                WAITING => relax.relax(),
                before => {
                    // SAFETY: its owner gave up and left it to us; it was made by a box.
                    drop(unsafe { Box::from_raw(behind) });
                    behind = before;
                }
            }
        }
        // ORDERING: Relaxed - by I3 ours alone.
        slot.behind.store(behind, Ordering::Relaxed);
        true
    }

    #[cold]
    fn give_up(&self, slot: &ClhSlot, behind: *mut Node) {
        // ORDERING: Relaxed - by I3 ours alone.
        let node = slot.node.load(Ordering::Relaxed);
        // ORDERING: Relaxed on success - all steps of `tail` are exchanges, so the release sequence
        // of the swap that queued `behind` goes on to the next arrival (E2); Relaxed on failure -
        // nothing is read.
        let last =
            self.tail.compare_exchange(node, behind, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        // SAFETY: the node is ours, until the last store below if there is a successor.
        let says = unsafe { &(*node).says };
        if last {
            // ORDERING: Relaxed - nobody else knows the node.
            says.store(FREE, Ordering::Relaxed);
        } else {
            // ORDERING: Relaxed - as above.
            slot.node.store(ptr::null_mut(), Ordering::Relaxed);
            // ORDERING: Release, E1 - hands both nodes to the successor.
            says.store(behind, Ordering::Release);
        }
    }
}

impl<R> HotFields for ClhLock<R> {
    const ALIGNMENT: usize = align_of::<usize>();
    const ALONE: bool = false;

    fn hot_fields(&self, visit: &mut dyn FnMut(HotField)) {
        let Self { tail, relax: _ } = self;
        visit(HotField::of("tail", tail).written_by(Role::Many("arrivals")));
        // ORDERING: Relaxed - nobody locks meanwhile.
        let last = tail.load(Ordering::Relaxed);
        if !last.is_null() {
            // SAFETY: what `tail` names is not freed before the lock, and nobody locks meanwhile.
            visit(unsafe { (*last).described() });
        }
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
            visit(unsafe { (*owned).described() });
        }
    }
}

// SAFETY: a caller leaves `lock` when the node before its own says `FREE` (I2), where nodes of
// callers that gave up do not count: so in the order of the swaps, one after the other. E1 hands
// the writes on; the slot itself is referred to by its waiter only (I3).
unsafe impl<R: Relax> RawLock for ClhLock<R> {
    type Slot = ClhSlot;
    const PROPERTIES: Properties =
        Properties { fairness: Fairness::Fifo, waiting: Waiting::Spins, numa_aware: false };

    #[inline]
    unsafe fn lock(&self, slot: &ClhSlot) {
        let behind = self.queue(slot);
        self.wait(slot, behind, || false);
    }

    #[inline]
    unsafe fn unlock(&self, slot: &ClhSlot) {
        // ORDERING: Relaxed - by I3 ours alone.
        let node = slot.node.load(Ordering::Relaxed);
        // ORDERING: Relaxed - as the line above.
        let behind = slot.behind.load(Ordering::Relaxed);
        // ORDERING: Relaxed - as the line above. From now on the predecessor's node is ours.
        slot.node.store(behind, Ordering::Relaxed);
        // SAFETY: until it says `FREE` the node is ours.
        let says = unsafe { &(*node).says };
        // ORDERING: Release, E1 - hands the critical section's writes, and the node, to the next
        // holder.
        says.store(FREE, Ordering::Release);
    }
}

// SAFETY: as for `RawLock`: success means to stand behind a free node; who gave up has left no
// address of the slot anywhere.
unsafe impl<R: Relax> Timed for ClhLock<R> {
    #[inline]
    unsafe fn lock_until(&self, slot: &ClhSlot, expired: impl FnMut() -> bool) -> bool {
        let behind = self.queue(slot);
        self.wait(slot, behind, expired)
    }
}

// SAFETY: as for `Timed`.
unsafe impl<R: Relax> TryLock for ClhLock<R> {
    #[inline]
    unsafe fn try_lock(&self, slot: &ClhSlot) -> bool {
        // SAFETY: the caller's promise, passed on.
        unsafe { self.lock_until(slot, || true) }
    }
}
