//! MCS try lock: FIFO queue in the waiters' own slots, out of which a waiter can go.
//! # Algorithm
//! The queue is that of `mcs`, linked both ways: `next` names the successor, `before` the
//! predecessor, and null there means that the lock is the waiter's. Who goes, by `unlock` or by
//! giving up, hands its predecessor to its successor as that one's own: null, or the waiter before.
//! To do so it first puts `CLAIMED` in place of its `next`, then exchanges the successor's
//! `before`. Who gives up first marks its own `before` as `LEAVING`, which holds the predecessor
//! where it is; then it takes itself out of the predecessor's `next`, unless that is `CLAIMED`;
//! then it goes; at last it links its successor to the predecessor. Where the successor is
//! `LEAVING` too, `next` gets it back, marked `REFUSED`, and who goes waits until that one has gone.
//! # Why
//! Against `mcs` waiters can give up, and the memory of who gave up is free at once: no heap, as
//! `clh` has, and no nodes left behind in the queue. It adds two exchanges to a contended hand-off,
//! and a wait for neighbours that are about to come or go.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `McsTryLock` | 8 | 8 | 1 | arrivals and the last leaver |
//! | slot | 128 | 128 | 2 | its waiter, predecessor (`before`), successor (`next`) |
//! # Cost
//! Uncontended pair: 2 RMWs, 1 load, 1 store, 2 lines. Hand-off with n waiters: those of `mcs`,
//! and 2 RMWs on the same lines. Giving up: 2 or 3 RMWs.
//! # Progress
//! Blocking; FIFO from the swap on among those who stay. Giving up is not wait-free: it waits for a
//! neighbour that is on the way in or out, and so for one that is preempted there. A preempted
//! waiter stops all waiters behind it, but none that wants to give up.
//! # Invariants
//! - I1: a slot is in the queue from the swap in `lock` until its `go` has seen `tail` go back to
//!   its predecessor or has exchanged the successor's `before`; the caller keeps it alive so long.
//! - I2: who goes needs `before` of its successor to name it, unmarked. So while `before` is
//!   `LEAVING`, or the arrival has not linked itself, the predecessor is in the queue.
//! - I3: a predecessor uses its successor's slot only while its own `next` is `CLAIMED`, and a
//!   waiter takes itself out of that word only while it is not. So who has done that is used by
//!   no predecessor any more.
//! - I4: `next` of a queued slot is changed from null by the arrival that swapped the slot out of
//!   `tail`, or by the successor that took itself out and left `tail` alone.
//! # Synchronization
//! | edge | release side | acquire side | publishes |
//! |---|---|---|---|
//! | E1 | exchange of the successor's `before` in `unlock` | load of `before` in `lock` that sees null | the critical section's writes |
//! | E2 | exchange of `tail` to null in `unlock` | swap of `tail` in `lock`, exchange in `try_lock` | the critical section's writes, when nobody waited |
//! | E3 | swap of `tail` in `lock`, exchange in `try_lock`, exchange of `tail` in giving up | swap of `tail` by the next arrival | that `next` of the slot there is null, before the arrival writes it |
//! | E4 | store of `next` in `lock`, in giving up | exchange of `next` for `CLAIMED` | the successor's `before`, before it is exchanged |
//! | E5 | store of `REFUSED` | exchange of `next` in giving up | that the predecessor is done with the slot |
//! # Errors and limits
//! A slot serves one acquisition at a time. Recursion deadlocks, without giving up.
//! # References
//! M. L. Scott, W. N. Scherer III, "Scalable Queue-Based Spin Locks with Timeout", PPoPP 2001,
//! section 3 (MCS-try). Differs from the paper in: leaving and unlocking are one procedure; the
//! marks and the order of steps are our own.

use core::marker::PhantomData;
use core::ptr;

use crossbeam_utils::CachePadded;

use super::contract::{Fairness, Properties, RawLock, Timed, TryLock, Waiting};
use super::hot::{HotField, HotFields, Role};
use super::relax::{Relax, Spin};
use super::sync::atomic::{AtomicPtr, Ordering};
use super::sync::const_fn;

/// Mark on `before`: its owner gives up. Mark on `next`: the successor's `before` has that mark.
const LEAVING: usize = 1;
const REFUSED: usize = 1;
/// In place of `next`: its owner is using the successor's slot. No address of a node.
const CLAIMED: *mut Node = ptr::without_provenance_mut(2);

/// Queues waiters in a linked list of their own slots, out of which each can go.
///
/// ```
/// use locks::{McsTryLock, Mutex};
/// use std::time::{Duration, Instant};
/// let total = Mutex::<u64, McsTryLock>::new(0);
/// total.with(|total| *total += 1);
/// let end = Instant::now() + Duration::from_millis(1);
/// assert_eq!(total.with_until(|| Instant::now() >= end, |total| *total), Some(1));
/// ```
#[derive(Debug)]
pub struct McsTryLock<R = Spin> {
    tail: AtomicPtr<Node>,
    relax: PhantomData<fn() -> R>,
}

#[derive(Debug)]
struct Node {
    next: AtomicPtr<Node>,
    before: AtomicPtr<Node>,
}

/// A waiter's place in the queue, on a pair of lines of its own.
#[derive(Debug)]
pub struct McsTrySlot(CachePadded<Node>);

impl Default for McsTrySlot {
    fn default() -> Self {
        Self(CachePadded::new(Node {
            next: AtomicPtr::new(ptr::null_mut()),
            before: AtomicPtr::new(ptr::null_mut()),
        }))
    }
}

fn marked(node: *mut Node) -> *mut Node {
    node.map_addr(|address| address | LEAVING)
}

impl Node {
    fn address(&self) -> *mut Self {
        ptr::from_ref(self).cast_mut()
    }
}

impl<R> McsTryLock<R> {
    const_fn! {
        /// Makes an unlocked lock.
        pub fn new() -> Self {
            Self { tail: AtomicPtr::new(ptr::null_mut()), relax: PhantomData }
        }
    }
}

impl<R> Default for McsTryLock<R> {
    fn default() -> Self {
        Self::new()
    }
}

impl<R: Relax> McsTryLock<R> {
    /// Queues the node; whether there is somebody before it.
    #[inline]
    fn queue(&self, node: &Node) -> bool {
        // ORDERING: Relaxed - the slot is private until the swap below publishes it (E3).
        node.next.store(ptr::null_mut(), Ordering::Relaxed);
        // ORDERING: AcqRel; acquire E2 - nobody waited: see the last holder's writes; acquire E3 -
        // see that `next` there is null; release E3 - publish that ours is.
        let predecessor = self.tail.swap(node.address(), Ordering::AcqRel);
        if predecessor.is_null() {
            return false;
        }
        // ORDERING: Relaxed - nobody else uses it before the link is there (E4).
        node.before.store(predecessor, Ordering::Relaxed);
        // SAFETY: by I2 the predecessor is in the queue until it has seen our link.
        let link = unsafe { &(*predecessor).next };
        // ORDERING: Release, E4 - publishes our `before`.
        link.store(node.address(), Ordering::Release);
        true
    }

    /// Waits until nobody is before the node, or until `expired` says so; whether it has the lock.
    #[inline]
    fn wait(&self, node: &Node, mut expired: impl FnMut() -> bool) -> bool {
        let mut relax = R::new();
        loop {
            // ORDERING: Acquire, E1 - the holder sees the last holder's writes.
            let predecessor = node.before.load(Ordering::Acquire);
            if predecessor.is_null() {
                return true;
            }
            if expired() && self.give_up(node, predecessor) {
                return false;
            }
            relax.relax();
        }
    }

    /// Goes out of the queue from behind `predecessor`, unless that has just gone itself.
    #[cold]
    fn give_up(&self, node: &Node, predecessor: *mut Node) -> bool {
        let held = node.before.compare_exchange(
            predecessor,
            marked(predecessor),
            // ORDERING: Relaxed on success - keeps the predecessor by its value (I2); Relaxed on
            // failure - the caller looks again.
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
        if held.is_err() {
            return false;
        }
        // SAFETY: by I2 the predecessor is in the queue as long as we are marked and linked.
        let link = unsafe { &(*predecessor).next };
        let mut relax = R::new();
        loop {
            // ORDERING: Relaxed - a hint; the exchange decides.
            let seen = link.load(Ordering::Relaxed);
            // ORDERING: Acquire on success, E5 - the predecessor is done with our slot (I3);
            // Relaxed on failure - looked at again.
            if (seen == node.address() || seen == marked(node.address()))
                && link
                    .compare_exchange(seen, ptr::null_mut(), Ordering::Acquire, Ordering::Relaxed)
                    .is_ok()
            {
                break;
            }
            relax.relax();
        }
        if let Some(successor) = self.go(node, predecessor) {
            // ORDERING: Release, E4 - publishes that the successor's `before` is the predecessor.
            // By I4 that one waits for this link, or for `tail`, to go.
            link.store(successor, Ordering::Release);
        }
        true
    }

    /// Takes the node out of the queue and gives `predecessor`, or null for the lock, to the next
    /// in it, whose node it returns if there is one.
    #[inline]
    fn go(&self, node: &Node, predecessor: *mut Node) -> Option<*mut Node> {
        let (mut relax, mut last) = (R::new(), true);
        loop {
            // ORDERING: Relaxed - a hint; the exchange in `hand_over` decides.
            let next = node.next.load(Ordering::Relaxed);
            if next.is_null() && last {
                // ORDERING: Release on success; E2 - hands the writes to whoever finds `tail`
                // null; E3 - that the predecessor's `next` is null again, which the next arrival
                // writes. Relaxed on failure - nothing is read through the value.
                let left = self.tail.compare_exchange(
                    node.address(),
                    predecessor,
                    Ordering::Release,
                    Ordering::Relaxed,
                );
                if left.is_ok() {
                    return None;
                }
            } else if !next.is_null()
                && next.addr() & REFUSED == 0
                && self.hand_over(node, next, predecessor)
            {
                return Some(next);
            }
            relax.relax();
            // ORDERING: Relaxed - a hint, so that arrivals keep the line; the exchange decides.
            last = self.tail.load(Ordering::Relaxed) == node.address();
        }
    }

    /// Gives `predecessor` to the successor `next`, unless that is gone or leaving.
    #[inline]
    fn hand_over(&self, node: &Node, next: *mut Node, predecessor: *mut Node) -> bool {
        // ORDERING: Acquire on success, E4 - see the successor's `before`; it may have gone and come
        // again since `next` was loaded. Relaxed on failure - looked at again.
        let claimed =
            node.next.compare_exchange(next, CLAIMED, Ordering::Acquire, Ordering::Relaxed);
        if claimed.is_err() {
            return false;
        }
        // SAFETY: by I3 the successor is in the queue while we have the claim.
        let before = unsafe { &(*next).before };
        // ORDERING: Release on success, E1 - hands the critical section's writes to the next
        // holder; and when giving up, what comes before the link (E4). Relaxed on failure -
        // nothing is read.
        let gone = before.compare_exchange(
            node.address(),
            predecessor,
            Ordering::Release,
            Ordering::Relaxed,
        );
        if gone.is_err() {
            // ORDERING: Release, E5 - the successor may go, and use its slot for something else.
            node.next.store(marked(next), Ordering::Release);
        }
        gone.is_ok()
    }
}

impl<R> HotFields for McsTryLock<R> {
    const ALIGNMENT: usize = align_of::<usize>();
    const ALONE: bool = false;

    fn hot_fields(&self, visit: &mut dyn FnMut(HotField)) {
        let Self { tail, relax: _ } = self;
        visit(HotField::of("tail", tail).written_by(Role::Many("arrivals and the last leaver")));
    }
}

impl HotFields for McsTrySlot {
    const ALIGNMENT: usize = align_of::<CachePadded<u8>>();
    const ALONE: bool = true;

    fn hot_fields(&self, visit: &mut dyn FnMut(HotField)) {
        const BECAUSE: &str = "the waiter arms both words before it queues, and each of the others \
                               writes seldom: one line moves instead of two";
        let Node { next, before } = &*self.0;
        let next = HotField::of("next", next).written_by(Role::Many("waiter and successor"));
        visit(next.read_by(Role::One("waiter")).one_line("node", BECAUSE).padded_in(&self.0));
        let before =
            HotField::of("before", before).written_by(Role::Many("waiter and predecessor"));
        visit(before.read_by(Role::One("waiter")).one_line("node", BECAUSE).padded_in(&self.0));
    }
}

// SAFETY: the queue has one head; a caller leaves `lock` when it found `tail` null or when nobody
// is before it any more, which the last holder's `go` said, or that of somebody who gave up and was
// told so: in the order of the swaps, one after the other. E1 and E2 hand the writes on. By I1 to I3
// no slot is referred to after it has gone.
unsafe impl<R: Relax> RawLock for McsTryLock<R> {
    type Slot = McsTrySlot;
    const PROPERTIES: Properties =
        Properties { fairness: Fairness::Fifo, waiting: Waiting::Spins, numa_aware: false };

    #[inline]
    unsafe fn lock(&self, slot: &McsTrySlot) {
        if self.queue(&slot.0) {
            self.wait(&slot.0, || false);
        }
    }

    #[inline]
    unsafe fn unlock(&self, slot: &McsTrySlot) {
        self.go(&slot.0, ptr::null_mut());
    }
}

// SAFETY: as for `RawLock`: success means that nobody is before the caller; who gave up has gone.
unsafe impl<R: Relax> Timed for McsTryLock<R> {
    #[inline]
    unsafe fn lock_until(&self, slot: &McsTrySlot, expired: impl FnMut() -> bool) -> bool {
        !self.queue(&slot.0) || self.wait(&slot.0, expired)
    }
}

// SAFETY: as for `RawLock`: success means having found `tail` null.
unsafe impl<R: Relax> TryLock for McsTryLock<R> {
    #[inline]
    unsafe fn try_lock(&self, slot: &McsTrySlot) -> bool {
        // ORDERING: Relaxed - the slot is private until the exchange publishes it (E3).
        slot.0.next.store(ptr::null_mut(), Ordering::Relaxed);
        // ORDERING: AcqRel on success; acquire E2 - see the last holder's writes; release E3 -
        // publish our slot. Relaxed on failure - nothing is read.
        self.tail
            .compare_exchange(
                ptr::null_mut(),
                slot.0.address(),
                Ordering::AcqRel,
                Ordering::Relaxed,
            )
            .is_ok()
    }
}
