//! Telling: a word beside a lock, by which its holder tells the next one something.
//! # Algorithm
//! `unlock_telling` writes `told` and unlocks; `unlock` clears it first if it was told itself.
//! # Why
//! A `CohortLock` over any lock that knows whether somebody waits. Over `mcs`, whose hand-over writes
//! a word of the next holder's slot anyway, it is not needed.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `Telling<L>` | those of `L` and 4 | that of `L`, at least 4 | as it falls | as `L`, and holders |
//! | slot | that of `L` | | | |
//! # Cost
//! That of `L`, 1 load, and 1 store where something is told. No line more if `L` and the word lie on
//! one.
//! # Progress
//! That of `L`.
//! # Invariants
//! - I1: `told` is touched by the holder only.
//! - I2: `told` is what the last unlock told, 0 if that was nothing.
//! # Synchronization
//! | edge | release side | acquire side | publishes |
//! |---|---|---|---|
//! | E1 | unlock of the inner lock | lock of it | `told` |
//! # Errors and limits
//! none
//! # References
//! none

use super::contract::{
    ConstInit, HasWaiters, Properties, RawLock, TellsNext, ThreadOblivious, TryLock,
};
use super::sync::atomic::{AtomicU32, Ordering};
use super::sync::const_fn;

/// Keeps a word beside `L` from one holder to the next.
///
/// ```
/// use locks::{Mutex, Telling, TicketLock};
/// static TOTAL: Mutex<u64, Telling<TicketLock>> = Mutex::new(0);
/// *TOTAL.lock() += 1; // a lock as any other
/// assert!(TOTAL.try_lock().is_some_and(|total| *total == 1));
/// ```
#[derive(Debug, Default)]
#[repr(C)]
pub struct Telling<L> {
    lock: L,
    told: AtomicU32,
}

impl<L: ConstInit> Telling<L> {
    const_fn! {
        /// Makes an unlocked lock.
        pub fn new() -> Self {
            Self { lock: L::INIT, told: AtomicU32::new(0) }
        }
    }
}

// SAFETY: passes everything on to a lock that keeps the contract.
unsafe impl<L: RawLock> RawLock for Telling<L> {
    type Slot = L::Slot;
    const PROPERTIES: Properties = L::PROPERTIES;

    #[inline]
    unsafe fn lock(&self, slot: &L::Slot) {
        // SAFETY: the caller's promise, passed on.
        unsafe { self.lock.lock(slot) };
    }

    #[inline]
    unsafe fn unlock(&self, slot: &L::Slot) {
        // ORDERING: Relaxed, both - by I1 ours alone; E1 orders it.
        if self.told.load(Ordering::Relaxed) != 0 {
            self.told.store(0, Ordering::Relaxed);
        }
        // SAFETY: the caller's promise, passed on.
        unsafe { self.lock.unlock(slot) };
    }
}

// SAFETY: as for `RawLock`.
unsafe impl<L: TryLock> TryLock for Telling<L> {
    #[inline]
    unsafe fn try_lock(&self, slot: &L::Slot) -> bool {
        // SAFETY: the caller's promise, passed on.
        unsafe { self.lock.try_lock(slot) }
    }
}

// SAFETY: as for `RawLock`.
unsafe impl<L: HasWaiters> HasWaiters for Telling<L> {
    #[inline]
    unsafe fn has_waiters(&self, slot: &L::Slot) -> bool {
        // SAFETY: the caller's promise, passed on.
        unsafe { self.lock.has_waiters(slot) }
    }
}

// SAFETY: by I2.
unsafe impl<L: HasWaiters> TellsNext for Telling<L> {
    #[inline]
    unsafe fn told(&self, _slot: &L::Slot) -> u32 {
        // ORDERING: Relaxed - by I1 ours alone; E1 orders it.
        self.told.load(Ordering::Relaxed)
    }

    #[inline]
    unsafe fn unlock_telling(&self, slot: &L::Slot, word: u32) {
        // ORDERING: Relaxed - as above.
        self.told.store(word, Ordering::Relaxed);
        // SAFETY: the caller's promise, passed on.
        unsafe { self.lock.unlock(slot) };
    }
}

// SAFETY: nothing here depends on which thread unlocks.
unsafe impl<L: ThreadOblivious> ThreadOblivious for Telling<L> {}
