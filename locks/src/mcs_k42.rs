//! K42 lock: an MCS queue lock without context; waiters' nodes leave the queue when they get it.
//! # Algorithm
//! `tail` is null (free), `HELD` (held, nobody waits) or the last waiter's node. `lock` exchanges
//! null for `HELD`, or else its node, which lies in its own stack frame, for the tail that it saw;
//! it links itself to its predecessor (the lock's `next`, if that is the holder) and spins on
//! `waiting` in its node. Let in, it takes its node out again: its successor moves to the lock's
//! `next`, or `tail` goes back to `HELD`. `unlock` clears `waiting` in the node that `next`
//! names, or exchanges `HELD` for null.
//! # Why
//! Against `mcs` it removes the slot: guards work, and a holder needs no memory but the lock's. It
//! adds a word, a load before the exchange (two transfers where the swap has one, and it may
//! fail), and an exchange after the wait.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `K42Lock` | 16 | 8 | 1 | arrivals and holder |
//! | slot | 0 | 1 | 0 | nobody |
//! | node, while waiting | 128 | 128 | 2 | its waiter, predecessor, successor |
//! # Cost
//! Uncontended pair: 2 RMWs, 2 loads, 1 line. Hand-off with n waiters: 1 transfer to write
//! `waiting`, 1 for the waiter to read it, and 1 or 2 for the lock's words.
//! # Progress
//! Blocking; FIFO from the successful exchange on, which others' exchanges may delay. A preempted
//! waiter stops all waiters behind it.
//! # Invariants
//! - I1: a node is in the queue from the exchange that put it there until its waiter has taken it
//!   out, in the same call of `lock`; nobody has its address afterwards.
//! - I2: `next` of a node, and the lock's while `tail` is `HELD` or names a node, is written once
//!   by the arrival that exchanged the node, or `HELD`, for its own.
//! - I3: `waiting` is cleared once, by the holder whose successor the node is.
//! # Synchronization
//! | edge | release side | acquire side | publishes |
//! |---|---|---|---|
//! | E1 | `waiting = false` in `unlock` | load of `waiting` in `lock` | the critical section's writes |
//! | E2 | exchange of `HELD` for null in `unlock` | exchange of null for `HELD` in `lock`, `try_lock` | the critical section's writes, when nobody waited |
//! | E3 | exchange of `tail` for a node, of a node for `HELD`, of `HELD` for null | exchange of `tail` for a node by the next arrival | the initial `next` of what it links itself to |
//! | E4 | store of `next` by an arrival | load of `next` in `lock`, `unlock` | the successor's initial values |
//! # Errors and limits
//! Recursion deadlocks. Waiters need 256 bytes of stack.
//! # References
//! M. A. Auslander, D. J. Edelsohn, O. Y. Krieger, B. S. Rosenburg, R. W. Wisniewski, "Enhancement
//! to the MCS lock for increased functionality and improved programmability", US patent application
//! 20030200457 (abandoned), 2003; M. L. Scott, "Shared-Memory Synchronization", 2013, section 4.3.1.
//! Differs from them in: `HELD` is a value of its own and no pointer to the lock, so that a lock
//! whose guard was forgotten may move.

use core::marker::PhantomData;
use core::ptr;

use crossbeam_utils::CachePadded;

use super::contract::{Fairness, Properties, RawLock, ThreadOblivious, TryLock, Waiting};
use super::hot::{HotField, HotFields, Role};
use super::relax::{Relax, Spin};
use super::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use super::sync::const_fn;

/// Held, and nobody waits: no address of a node, which is aligned to more.
const HELD: *mut Node = ptr::without_provenance_mut(1);

/// Queues waiters in nodes on their stacks, and keeps nothing of the holder's.
///
/// ```
/// use locks::{K42Lock, Mutex};
/// static TOTAL: Mutex<u64, K42Lock> = Mutex::new(0);
/// *TOTAL.lock() += 1;
/// assert_eq!(*TOTAL.lock(), 1);
/// ```
#[derive(Debug)]
#[repr(C)]
pub struct K42Lock<R = Spin> {
    tail: AtomicPtr<Node>,
    next: AtomicPtr<Node>,
    relax: PhantomData<fn() -> R>,
}

#[derive(Debug)]
struct Node {
    next: AtomicPtr<Node>,
    waiting: AtomicBool,
}

impl<R> K42Lock<R> {
    const_fn! {
        /// Makes an unlocked lock.
        pub fn new() -> Self {
            Self {
                tail: AtomicPtr::new(ptr::null_mut()),
                next: AtomicPtr::new(ptr::null_mut()),
                relax: PhantomData,
            }
        }
    }
}

impl<R> Default for K42Lock<R> {
    fn default() -> Self {
        Self::new()
    }
}

/// Waits until an arrival that has put itself behind has also linked itself.
fn linked<R: Relax>(next: &AtomicPtr<Node>) -> *mut Node {
    let mut relax = R::new();
    loop {
        // ORDERING: Acquire, E4 - the successor's `waiting` is set before it is cleared.
        let node = next.load(Ordering::Acquire);
        if !node.is_null() {
            return node;
        }
        relax.relax();
    }
}

impl<R: Relax> K42Lock<R> {
    fn try_acquire(&self) -> bool {
        // ORDERING: Acquire on success, E2 - the winner sees the last holder's writes. Who links
        // itself to `next` sees the null there by E2's release side, whose release sequence this
        // goes on. Relaxed on failure - nothing is read.
        self.tail
            .compare_exchange(ptr::null_mut(), HELD, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    #[cold]
    fn lock_contended(&self) {
        let node = CachePadded::new(Node {
            next: AtomicPtr::new(ptr::null_mut()),
            waiting: AtomicBool::new(true),
        });
        let mine = ptr::from_ref::<Node>(&node).cast_mut();
        let mut relax = R::new();
        let predecessor = loop {
            // ORDERING: Relaxed - a hint; the exchange that follows decides.
            let seen = self.tail.load(Ordering::Relaxed);
            if seen.is_null() {
                if self.try_acquire() {
                    return;
                }
            // ORDERING: AcqRel on success; acquire E3 - see the predecessor's initial `next`;
            // release E3 - publish our own. Relaxed on failure - nothing is read.
            } else if self
                .tail
                .compare_exchange(seen, mine, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
            {
                break seen;
            }
            relax.relax();
        };
        let link = if predecessor == HELD {
            &self.next
        } else {
            // SAFETY: by I1 the predecessor is in its call of `lock`: it cannot take its node out
            // before it has seen our link.
            unsafe { &(*predecessor).next }
        };
        // ORDERING: Release, E4 - publishes our `waiting` before it is cleared.
        link.store(mine, Ordering::Release);
        let mut relax = R::new();
        // ORDERING: Acquire, E1 - the holder sees the last holder's writes.
        while node.waiting.load(Ordering::Acquire) {
            relax.relax();
        }
        self.take_out(&node);
    }

    /// Takes the holder's node out of the queue; its successor is the lock's from now on.
    fn take_out(&self, node: &Node) {
        // ORDERING: Acquire, E4 - the successor's `waiting` is set before we clear it.
        let mut successor = node.next.load(Ordering::Acquire);
        if successor.is_null() {
            // ORDERING: Relaxed - published by the exchange that follows (E3).
            self.next.store(ptr::null_mut(), Ordering::Relaxed);
            let mine = ptr::from_ref(node).cast_mut();
            // ORDERING: Release on success, E3 - publishes the null in `next`. Relaxed on failure
            // - nothing is read.
            let alone =
                self.tail.compare_exchange(mine, HELD, Ordering::Release, Ordering::Relaxed);
            if alone.is_ok() {
                return;
            }
            successor = linked::<R>(&node.next);
        }
        // ORDERING: Relaxed - read by our own `unlock`: while `tail` names a node, no arrival
        // writes or reads it.
        self.next.store(successor, Ordering::Relaxed);
    }
}

impl<R> HotFields for K42Lock<R> {
    const ALIGNMENT: usize = align_of::<usize>();
    const ALONE: bool = false;

    fn hot_fields(&self, visit: &mut dyn FnMut(HotField)) {
        const BECAUSE: &str = "an arrival that finds the lock held writes both words, and a \
                               holder leaves through both";
        let Self { tail, next, relax: _ } = self;
        let tail = HotField::of("tail", tail).written_by(Role::Many("arrivals and holder"));
        visit(tail.one_line("lock", BECAUSE));
        let next = HotField::of("next", next).written_by(Role::Many("holder and its successor"));
        visit(next.one_line("lock", BECAUSE));
    }
}

// SAFETY: a caller leaves `lock` when it found `tail` null or when the holder cleared `waiting` in
// its node (I3), which happens in that one's `unlock`. E1 and E2 hand the writes on; the slot is
// empty, and by I1 no node is referred to after its `lock`.
unsafe impl<R: Relax> RawLock for K42Lock<R> {
    type Slot = ();
    const PROPERTIES: Properties =
        Properties { fairness: Fairness::Fifo, waiting: Waiting::Spins, numa_aware: false };

    #[inline]
    unsafe fn lock(&self, _slot: &()) {
        if !self.try_acquire() {
            self.lock_contended();
        }
    }

    #[inline]
    unsafe fn unlock(&self, _slot: &()) {
        // ORDERING: Acquire, E4 - the successor's `waiting` is set before we clear it.
        let mut successor = self.next.load(Ordering::Acquire);
        if successor.is_null() {
            // ORDERING: Release on success, E2 - hands the writes to whoever finds `tail` null;
            // Relaxed on failure - nothing is read.
            let left = self.tail.compare_exchange(
                HELD,
                ptr::null_mut(),
                Ordering::Release,
                Ordering::Relaxed,
            );
            if left.is_ok() {
                return;
            }
            successor = linked::<R>(&self.next);
        }
        // SAFETY: by I1 the successor's node is alive: it waits until we clear its flag.
        let waiting = unsafe { &(*successor).waiting };
        // ORDERING: Release, E1 - hands the critical section's writes to the next holder.
        waiting.store(false, Ordering::Release);
    }
}

// SAFETY: as for `RawLock`: success means having found `tail` null.
unsafe impl<R: Relax> TryLock for K42Lock<R> {
    #[inline]
    unsafe fn try_lock(&self, _slot: &()) -> bool {
        self.try_acquire()
    }
}

// SAFETY: the holder has no node; nothing depends on which thread clears `waiting`.
unsafe impl<R: Relax> ThreadOblivious for K42Lock<R> {}
