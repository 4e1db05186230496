//! The node of MCS queues whose waiters are told something: queueing, linking, leaving.
//!
//! # Invariants
//! - I1: a node is in a queue from its swap until its owner saw `tail` go back to null or wrote
//!   the successor's `status`; whoever owns it keeps it alive so long.
//! - I2: `next` of a queued node is written once, by the one that swapped it out of `tail`; its
//!   `status` is written once by its predecessor, and before that by its owner only.
//!
//! # Synchronization
//! | edge | release side | acquire side | publishes |
//! |---|---|---|---|
//! | E1 | exchange of the successor's `status` by the caller of `leave` | load of `status` that ends the caller's wait | the critical section's writes |
//! | E2 | exchange of `tail` to null | swap or exchange of `tail` | the same, when nobody waited |
//! | E3 | swap or exchange of `tail` | swap of `tail` by the next arrival | the node's initial values, before the successor writes `next` |
//! | E4 | store of `next` | load of `next` | the successor's initial `status`, before it is written |

use core::ptr;

use super::hot::{HotField, HotFields, Role};
use super::relax::Relax;
use super::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use super::sync::const_fn;

/// What a waiter begins with: its predecessor has said nothing yet.
pub(super) const WAIT: u32 = u32::MAX;

/// A waiter in a queue.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) next: AtomicPtr<Node>,
    pub(super) status: AtomicU32,
}

impl Node {
    const_fn! {
        /// A node that is in no queue.
        pub(super) fn new() -> Self {
            Self { next: AtomicPtr::new(ptr::null_mut()), status: AtomicU32::new(WAIT) }
        }
    }

    fn address(&self) -> *mut Self {
        ptr::from_ref(self).cast_mut()
    }

    /// Queues at `tail`; whether there is a predecessor, which will write `status`.
    #[inline]
    pub(super) fn queue(&self, tail: &AtomicPtr<Self>) -> bool {
        // ORDERING: Relaxed - the node is its owner's alone until the swap publishes it (E3).
        self.next.store(ptr::null_mut(), Ordering::Relaxed);
        // ORDERING: Relaxed - as the line above.
        self.status.store(WAIT, Ordering::Relaxed);
        // ORDERING: AcqRel; acquire E2 - nobody waited: see the last head's writes; acquire E3 -
        // see the predecessor's initial values; release E3 - publish our own.
        let predecessor = tail.swap(self.address(), Ordering::AcqRel);
        if predecessor.is_null() {
            return false;
        }
        // SAFETY: by I1 the predecessor is alive: it cannot leave before it has seen our link.
        let link = unsafe { &(*predecessor).next };
        // ORDERING: Release, E4 - publishes our `status` before the predecessor writes it.
        link.store(self.address(), Ordering::Release);
        true
    }

    /// Queues at `tail` if nobody is there.
    #[inline]
    pub(super) fn try_queue(&self, tail: &AtomicPtr<Self>) -> bool {
        // ORDERING: Relaxed - the node is its owner's alone until the exchange publishes it (E3).
        self.next.store(ptr::null_mut(), Ordering::Relaxed);
        // ORDERING: AcqRel on success; acquire E2 - see the last head's writes; release E3 -
        // publish our node. Relaxed on failure - nothing is read.
        tail.compare_exchange(ptr::null_mut(), self.address(), Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    }

    /// The successor's `status`, if it has linked itself.
    #[inline]
    pub(super) fn successor(&self) -> Option<&AtomicU32> {
        // ORDERING: Acquire, E4 - the successor's `status` is set before we write it.
        let next = self.next.load(Ordering::Acquire);
        // SAFETY: by I1 the successor is alive: it waits until we write its `status`.
        (!next.is_null()).then(|| unsafe { &(*next).status })
    }

    /// Leaves the queue; the `status` of the next in it, which the caller must write (E1).
    #[inline]
    pub(super) fn leave<R: Relax>(&self, tail: &AtomicPtr<Self>) -> Option<&AtomicU32> {
        let mut next = self.successor();
        if next.is_none() {
            let left = tail.compare_exchange(
                self.address(),
                ptr::null_mut(),
                // ORDERING: Release on success, E2 - hands the writes to whoever finds `tail`
                // null; Relaxed on failure - nothing is read through the value.
                Ordering::Release,
                Ordering::Relaxed,
            );
            if left.is_ok() {
                return None;
            }
        }
        let mut relax = R::new();
        while next.is_none() {
            relax.relax();
            next = self.successor();
        }
        next
    }
}

impl HotFields for Node {
    const ALIGNMENT: usize = align_of::<usize>();
    const ALONE: bool = false;

    fn hot_fields(&self, visit: &mut dyn FnMut(HotField)) {
        const BECAUSE: &str = "the waiter arms both words before it queues, and each of the others \
                               writes once: one line moves instead of two";
        let Self { next, status } = self;
        let waiter = Role::One("waiter");
        let next = HotField::of("next", next).written_by(Role::Many("waiter and successor"));
        visit(next.read_by(waiter).one_line("node", BECAUSE));
        let status = HotField::of("status", status).written_by(Role::Many("waiter, predecessor"));
        visit(status.read_by(waiter).one_line("node", BECAUSE));
    }
}
