//! Slots of the thread: a lock whose waiters' slots lie with the threads, so that guards work.
//! # Algorithm
//! `lock` takes a slot out of the calling thread's free ones, or makes one on the heap, locks the
//! inner lock with it, and writes down in `holder` which it is. `unlock` unlocks with that slot and
//! keeps it among the free ones of the thread that calls, or frees it if that has eight.
//! # Why
//! Against `Pooled` it removes the lines that all waiters share and the two RMWs on them: a slot
//! stays with its thread, in memory of its node. It adds a look for one of the right type in a list
//! of the thread's, and up to eight slots a thread.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `Tls<L>` | those of `L` and 8 | that of `L`, at least 8 | as it falls | holders |
//! | slot | 0 | 1 | 0 | nobody |
//! # Cost
//! Uncontended pair: that of `L`, 1 load, 1 store, and two visits to the thread's list.
//! # Progress
//! That of `L`, but for the allocator's.
//! # Invariants
//! - I1: each slot has one owner: a thread's list, a caller of `lock`, or `holder`.
//! - I2: `holder` is written by the holder of the inner lock only.
//! # Synchronization
//! | edge | release side | acquire side | publishes |
//! |---|---|---|---|
//! | E1 | unlock of the inner lock | lock of it | `holder` |
//! # Errors and limits
//! A guard that is forgotten leaks its slot, as in `Pooled`, and the thread may end: the queue may
//! still name it. A thread that holds several such locks has a slot for each. Whoever locks while its
//! thread ends (a destructor of a thread local) allocates each time. Out of memory aborts.
//! # References
//! none

use core::any::Any;
use core::ptr;

use alloc::boxed::Box;

use super::contract::{Properties, RawLock, TryLock};
use super::sync::atomic::{AtomicPtr, Ordering};
use super::sync::const_fn;
use super::tls_slots;

/// Keeps slots for the waiters of `L` with their threads.
///
/// ```
/// use locks::{McsLock, Mutex, Tls};
/// static ONE: Mutex<u64, Tls<McsLock>> = Mutex::new(1);
/// static OTHER: Mutex<u64, Tls<McsLock>> = Mutex::new(2);
/// let (one, other) = (ONE.lock(), OTHER.lock());
/// assert_eq!(*one + *other, 3);
/// ```
#[derive(Debug)]
pub struct Tls<L: RawLock> {
    lock: L,
    holder: AtomicPtr<L::Slot>,
}

impl<L: RawLock> Tls<L> {
    const_fn! {
        /// Brings slots for `lock`, which nobody holds.
        pub fn new(lock: L) -> Self {
            Self { lock, holder: AtomicPtr::new(ptr::null_mut()) }
        }
    }

    /// Writes down which slot has the lock, until `unlock`.
    fn hold(&self, slot: Box<L::Slot>) {
        // ORDERING: Relaxed - by I2 ours alone; E1 orders it.
        self.holder.store(Box::into_raw(slot), Ordering::Relaxed);
    }
}

impl<L: RawLock + Default> Default for Tls<L> {
    fn default() -> Self {
        Self::new(L::default())
    }
}

// SAFETY: passes everything on to a lock that keeps the contract, with slots of the heap that stay
// where they are, are used once at a time (I1), and are forgotten rather than freed while locked.
unsafe impl<L: RawLock> RawLock for Tls<L>
where
    L::Slot: Any + Send,
{
    type Slot = ();
    const PROPERTIES: Properties = L::PROPERTIES;

    #[inline]
    unsafe fn lock(&self, _slot: &()) {
        let slot = tls_slots::take::<L::Slot>();
        // SAFETY: the slot is ours alone, and stays in its box until `unlock`.
        unsafe { self.lock.lock(&slot) };
        self.hold(slot);
    }

    #[inline]
    unsafe fn unlock(&self, _slot: &()) {
        // ORDERING: Relaxed - by I2 ours alone; E1 orders it.
        let slot = self.holder.load(Ordering::Relaxed);
        // SAFETY: by I1 `holder` owned it, and the caller, who holds the lock, does now.
        let slot = unsafe { Box::from_raw(slot) };
        // SAFETY: the lock was taken with this slot.
        unsafe { self.lock.unlock(&slot) };
        tls_slots::put_back(slot);
    }
}

// SAFETY: as for `RawLock`.
unsafe impl<L: TryLock> TryLock for Tls<L>
where
    L::Slot: Any + Send,
{
    #[inline]
    unsafe fn try_lock(&self, _slot: &()) -> bool {
        let slot = tls_slots::take::<L::Slot>();
        // SAFETY: as in `lock`; after a failure the slot is free again.
        let taken = unsafe { self.lock.try_lock(&slot) };
        if taken {
            self.hold(slot);
        } else {
            tls_slots::put_back(slot);
        }
        taken
    }
}
