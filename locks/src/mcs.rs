//! MCS queue lock: FIFO, each waiter spins on a line of its own.
//! # Algorithm
//! `tail` points at the last waiter's slot. `lock` swaps its slot into `tail`; if there was a
//! predecessor it links itself into that slot's `next` and spins on `told` in its own slot, as long as
//! that says `NOTHING`. `unlock` writes a word, 0 or what the next holder is to know, into `told` of
//! the slot that `next` names; without a successor it swings `tail` back to null, and if that fails it
//! waits for the successor to finish linking.
//! # Why
//! Against `ticket` it removes the broadcast: a hand-off touches one waiter's line, however many
//! wait. It adds a slot per waiter, an RMW to unlock when nobody waits, and a link to follow.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `McsLock` | 8 | 8 | 1 | arrivals and the last leaver |
//! | slot | 128 | 128 | 2 | its waiter, predecessor (`told`), successor (`next`) |
//! # Cost
//! Uncontended pair: 2 RMWs, 1 load, 2 stores, 2 lines. Hand-off with n waiters: 1 transfer to
//! write `told`, 1 for the waiter to read it, whatever n is.
//! # Progress
//! Blocking; FIFO from the swap on. A preempted waiter stops all waiters behind it.
//! # Invariants
//! - I1: a slot is in the queue from the swap in `lock` until its `unlock` has seen that `tail`
//!   went back to null or has written the successor's `told`; the caller keeps it alive so long.
//! - I2: `next` of a queued slot is written once, by the waiter that swapped it out of `tail`.
//! - I3: `told` of a queued slot is `NOTHING` until the predecessor named in I2 writes it, once.
//! # Synchronization
//! | edge | release side | acquire side | publishes |
//! |---|---|---|---|
//! | E1 | store of `told` in `unlock` | load of `told` in `lock` | the critical section's writes |
//! | E2 | exchange of `tail` to null in `unlock` | swap of `tail` in `lock`, exchange in `try_lock` | the critical section's writes, when nobody waited |
//! | E3 | swap of `tail` in `lock`, exchange in `try_lock` | swap of `tail` by the next arrival | the slot's initial values, before the successor writes `next` |
//! | E4 | store of `next` in `lock` | load of `next` in `unlock` | the successor's initial `told`, before it is written |
//! # Errors and limits
//! A slot serves one acquisition at a time. A guard that borrows a caller's slot would be unsound
//! when it is forgotten, so [`Mutex::with`](crate::Mutex::with) keeps the slot on its own stack.
//! # References
//! J. M. Mellor-Crummey, M. L. Scott, "Algorithms for Scalable Synchronization on Shared-Memory
//! Multiprocessors", ACM TOCS 9(1), 1991, section 2.4. Differs from the paper in: slots padded to
//! a pair of lines.

use core::marker::PhantomData;
use core::ptr;

use crossbeam_utils::CachePadded;

use super::contract::{Fairness, HasWaiters, Properties, RawLock, TellsNext, TryLock, Waiting};
use super::hot::{HotField, HotFields, Role};
use super::relax::{Relax, Spin};
use super::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use super::sync::const_fn;

/// Its waiter is not let in yet, or never had to wait.
const NOTHING: u32 = u32::MAX;

/// Queues waiters in a linked list of their own slots.
///
/// ```
/// use locks::{McsLock, Mutex};
/// let total = Mutex::<u64, McsLock>::new(0);
/// total.with(|total| *total += 1);
/// assert_eq!(total.into_inner(), 1);
/// ```
#[derive(Debug)]
pub struct McsLock<R = Spin> {
    tail: AtomicPtr<Node>,
    relax: PhantomData<fn() -> R>,
}

#[derive(Debug)]
struct Node {
    next: AtomicPtr<Node>,
    told: AtomicU32,
}

/// A waiter's place in the queue, on a pair of lines of its own.
#[derive(Debug)]
pub struct McsSlot(CachePadded<Node>);

impl Default for McsSlot {
    fn default() -> Self {
        Self(CachePadded::new(Node {
            next: AtomicPtr::new(ptr::null_mut()),
            told: AtomicU32::new(NOTHING),
        }))
    }
}

impl McsSlot {
    fn node(&self) -> *mut Node {
        ptr::from_ref::<Node>(&self.0).cast_mut()
    }
}

impl<R> McsLock<R> {
    const_fn! {
        /// Makes an unlocked lock.
        pub fn new() -> Self {
            Self { tail: AtomicPtr::new(ptr::null_mut()), relax: PhantomData }
        }
    }
}

impl<R> Default for McsLock<R> {
    fn default() -> Self {
        Self::new()
    }
}

impl<R> HotFields for McsLock<R> {
    const ALIGNMENT: usize = align_of::<usize>();
    const ALONE: bool = false;

    fn hot_fields(&self, visit: &mut dyn FnMut(HotField)) {
        let Self { tail, relax: _ } = self;
        visit(HotField::of("tail", tail).written_by(Role::Many("arrivals and the last leaver")));
    }
}

impl HotFields for McsSlot {
    const ALIGNMENT: usize = align_of::<CachePadded<u8>>();
    const ALONE: bool = true;

    fn hot_fields(&self, visit: &mut dyn FnMut(HotField)) {
        const BECAUSE: &str = "the waiter arms both words before it queues, and each of the others \
                               writes once: one line moves instead of two";
        let Node { next, told } = &*self.0;
        let next = HotField::of("next", next).written_by(Role::Many("waiter and successor"));
        visit(next.read_by(Role::One("waiter")).one_line("node", BECAUSE).padded_in(&self.0));
        let told = HotField::of("told", told).written_by(Role::Many("waiter and predecessor"));
        visit(told.read_by(Role::One("waiter")).one_line("node", BECAUSE).padded_in(&self.0));
    }
}

impl<R: Relax> McsLock<R> {
    /// Unlocks, and tells the successor `word`, if there is one.
    ///
    /// # Safety
    /// As for [`RawLock::unlock`].
    #[inline(always)]
    unsafe fn hand_over(&self, slot: &McsSlot, word: u32) {
        // ORDERING: Acquire, E4 - the successor's `told` says `NOTHING` before we write it.
        let mut next = slot.0.next.load(Ordering::Acquire);
        if next.is_null() {
            let left = self.tail.compare_exchange(
                slot.node(),
                ptr::null_mut(),
                // ORDERING: Release on success, E2 - hands the writes to whoever finds `tail`
                // null; Relaxed on failure - nothing is read through the value.
                Ordering::Release,
                Ordering::Relaxed,
            );
            if left.is_ok() {
                return;
            }
            let mut relax = R::new();
            while next.is_null() {
                relax.relax();
                // ORDERING: Acquire, E4 - as above.
                next = slot.0.next.load(Ordering::Acquire);
            }
        }
        // SAFETY: by I1 the successor's slot is alive: it waits until we write its word.
        let told = unsafe { &(*next).told };
        // ORDERING: Release, E1 - hands the critical section's writes to the next holder.
        told.store(word, Ordering::Release);
    }
}

// SAFETY: the queue has one head; a caller leaves `lock` when it found `tail` null or when its
// predecessor wrote `told` (I3), which happens in that one's `unlock`. E1 and E2 hand the writes on.
// By I1 no slot is referred to after its `unlock`.
unsafe impl<R: Relax> RawLock for McsLock<R> {
    type Slot = McsSlot;
    const PROPERTIES: Properties =
        Properties { fairness: Fairness::Fifo, waiting: Waiting::Spins, numa_aware: false };

    #[inline]
    unsafe fn lock(&self, slot: &McsSlot) {
        let node = &slot.0;
        // ORDERING: Relaxed - the slot is private until the swap below, whose release side (E3)
        // and the link's (E4) publish it.
        node.next.store(ptr::null_mut(), Ordering::Relaxed);
        // ORDERING: Relaxed - as the line above.
        node.told.store(NOTHING, Ordering::Relaxed);
        // ORDERING: AcqRel; acquire E2 - nobody waited: see the last holder's writes; acquire E3 -
        // see the predecessor's initial values; release E3 - publish our own.
        let predecessor = self.tail.swap(slot.node(), Ordering::AcqRel);
        if predecessor.is_null() {
            return;
        }
        // SAFETY: by I1 the predecessor's slot is alive: it cannot leave the queue before it has
        // seen our link.
        let link = unsafe { &(*predecessor).next };
        // ORDERING: Release, E4 - publishes our `told` before the predecessor writes it.
        link.store(slot.node(), Ordering::Release);
        let mut relax = R::new();
        // ORDERING: Acquire, E1 - the holder sees the last holder's writes.
        while node.told.load(Ordering::Acquire) == NOTHING {
            relax.relax();
        }
    }

    #[inline]
    unsafe fn unlock(&self, slot: &McsSlot) {
        // SAFETY: the caller's promise, passed on.
        unsafe { self.hand_over(slot, 0) };
    }
}

// SAFETY: as for `RawLock`: success means having found `tail` null.
unsafe impl<R: Relax> TryLock for McsLock<R> {
    #[inline]
    unsafe fn try_lock(&self, slot: &McsSlot) -> bool {
        // ORDERING: Relaxed, both - the slot is private until the exchange publishes it (E3).
        slot.0.next.store(ptr::null_mut(), Ordering::Relaxed);
        slot.0.told.store(NOTHING, Ordering::Relaxed);
        // ORDERING: AcqRel on success; acquire E2 - see the last holder's writes; release E3 -
        // publish our slot. Relaxed on failure - nothing is read.
        self.tail
            .compare_exchange(ptr::null_mut(), slot.node(), Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    }
}

// SAFETY: a slot that was swapped into `tail` stays queued until its owner was let in.
unsafe impl<R: Relax> HasWaiters for McsLock<R> {
    #[inline]
    unsafe fn has_waiters(&self, slot: &McsSlot) -> bool {
        // ORDERING: Relaxed - may be stale; nothing is read through the pointers.
        !slot.0.next.load(Ordering::Relaxed).is_null()
            // ORDERING: Relaxed - as the line above.
            || self.tail.load(Ordering::Relaxed) != slot.node()
    }
}

// SAFETY: `told` of the holder's slot is `NOTHING` if it found `tail` null, and else what its
// predecessor wrote (I3).
unsafe impl<R: Relax> TellsNext for McsLock<R> {
    #[inline]
    unsafe fn told(&self, slot: &McsSlot) -> u32 {
        // ORDERING: Relaxed - the holder has read it before, or written it itself.
        match slot.0.told.load(Ordering::Relaxed) {
            NOTHING => 0,
            word => word,
        }
    }

    #[inline]
    unsafe fn unlock_telling(&self, slot: &McsSlot, word: u32) {
        // SAFETY: the caller's promise, passed on.
        unsafe { self.hand_over(slot, word) };
    }
}
