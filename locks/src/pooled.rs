//! Pooled slots: a lock that brings its waiters' slots, so that guards work with it.
//! # Algorithm
//! `lock` takes a slot out of a place of `spare`, or makes one on the heap, locks the inner lock
//! with it, and writes down in `holder` which it is. `unlock` unlocks with that slot and puts it
//! back into an empty place, or frees it if there is none.
//! # Why
//! Queue locks get guards, `Condvar` and `LockApi`. It adds an RMW to take a slot and one to put it
//! back, on lines that all waiters share, and an allocation where more than `SPARE` wait.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `Pooled<L>` | those of `L`, 8, and 8 a spare slot | that of `L`, at least 8 | as it falls | everybody |
//! | slot | 0 | 1 | 0 | nobody |
//! # Cost
//! Uncontended pair: that of `L`, 2 RMWs, 2 loads, 1 store.
//! # Progress
//! That of `L`, but for the allocator's.
//! # Invariants
//! - I1: each slot has one owner: a place of `spare`, a caller of `lock`, or `holder`.
//! - I2: `holder` is written by the holder of the inner lock only.
//! # Synchronization
//! | edge | release side | acquire side | publishes |
//! |---|---|---|---|
//! | E1 | unlock of the inner lock | lock of it | `holder` |
//! | E2 | exchange that puts a slot back | swap that takes it out | what its last user did with it |
//! # Errors and limits
//! A guard that is forgotten leaks its slot, 128 bytes for most, which is what makes forgetting
//! sound: the queue may still name it. Out of memory aborts.
//! # References
//! none

use alloc::boxed::Box;
use core::ptr;

use super::array::array_of;
use super::contract::{Properties, RawLock, TryLock};
use super::sync::atomic::{AtomicPtr, Ordering};
use super::sync::const_fn;

/// Keeps slots for the waiters of `L`.
///
/// ```
/// use locks::{McsLock, Mutex, Pooled};
/// static TOTAL: Mutex<u64, Pooled<McsLock>> = Mutex::new(0);
/// *TOTAL.lock() += 1;
/// assert!(TOTAL.try_lock().is_some_and(|total| *total == 1));
/// ```
#[derive(Debug)]
pub struct Pooled<L: RawLock, const SPARE: usize = 4> {
    lock: L,
    holder: AtomicPtr<L::Slot>,
    spare: [AtomicPtr<L::Slot>; SPARE],
}

impl<L: RawLock, const SPARE: usize> Pooled<L, SPARE> {
    const_fn! {
        /// Brings slots for `lock`, which nobody holds.
        pub fn new(lock: L) -> Self {
            Self {
                lock,
                holder: AtomicPtr::new(ptr::null_mut()),
                spare: array_of![AtomicPtr::new(ptr::null_mut()); SPARE],
            }
        }
    }

    fn take(&self) -> Box<L::Slot> {
        for place in &self.spare {
            // ORDERING: Relaxed - a hint, so that looking takes the line from nobody. Acquire, E2
            // - what its last user did with the slot lies behind us.
            if !place.load(Ordering::Relaxed).is_null()
                && let slot = place.swap(ptr::null_mut(), Ordering::Acquire)
                && !slot.is_null()
            {
                // SAFETY: by I1 the place owned it, and now we do; it was made by a box.
                return unsafe { Box::from_raw(slot) };
            }
        }
        Box::default()
    }

    fn put_back(&self, slot: Box<L::Slot>) {
        let slot = Box::into_raw(slot);
        for place in &self.spare {
            // ORDERING: Release on success, E2 - hands on what we did with the slot; Relaxed on
            // failure - nothing is read.
            let put =
                place.compare_exchange(ptr::null_mut(), slot, Ordering::Release, Ordering::Relaxed);
            if put.is_ok() {
                return;
            }
        }
        // SAFETY: no place took it, so it is ours still.
        drop(unsafe { Box::from_raw(slot) });
    }

    /// Writes down which slot has the lock, until `unlock`.
    fn hold(&self, slot: Box<L::Slot>) {
        // ORDERING: Relaxed - by I2 ours alone; E1 orders it.
        self.holder.store(Box::into_raw(slot), Ordering::Relaxed);
    }
}

impl<L: RawLock + Default, const SPARE: usize> Default for Pooled<L, SPARE> {
    fn default() -> Self {
        Self::new(L::default())
    }
}

impl<L: RawLock, const SPARE: usize> Drop for Pooled<L, SPARE> {
    fn drop(&mut self) {
        for place in &self.spare {
            // ORDERING: Relaxed - whoever drops the lock has it alone.
            let slot = place.load(Ordering::Relaxed);
            if !slot.is_null() {
                // SAFETY: by I1 the place owns it; it was made by a box. A holder that never
                // unlocked keeps its slot: a leak, not a dangling pointer.
                drop(unsafe { Box::from_raw(slot) });
            }
        }
    }
}

// SAFETY: passes everything on to a lock that keeps the contract, with slots of the heap that stay
// where they are, are used once at a time (I1), and are forgotten rather than freed while locked.
unsafe impl<L: RawLock, const SPARE: usize> RawLock for Pooled<L, SPARE>
where
    L::Slot: Send,
{
    type Slot = ();
    const PROPERTIES: Properties = L::PROPERTIES;

    #[inline]
    unsafe fn lock(&self, _slot: &()) {
        let slot = self.take();
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
        self.put_back(slot);
    }
}

// SAFETY: as for `RawLock`.
unsafe impl<L: TryLock, const SPARE: usize> TryLock for Pooled<L, SPARE>
where
    L::Slot: Send,
{
    #[inline]
    unsafe fn try_lock(&self, _slot: &()) -> bool {
        let slot = self.take();
        // SAFETY: as in `lock`; after a failure the slot is free again.
        let taken = unsafe { self.lock.try_lock(&slot) };
        if taken {
            self.hold(slot);
        } else {
            self.put_back(slot);
        }
        taken
    }
}
