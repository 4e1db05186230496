//! Test-and-set lock whose line also holds a word that the holder writes: a negative control.
//! # Algorithm
//! As `tas`; besides, `lock` and `unlock` each add one to `neighbour`, the word beside the flag,
//! as a holder does when the lock stands in the same struct as the data that it protects.
//! # Why
//! Shows what a lock costs that shares its line with the data's neighbour: each swap of a waiter
//! takes the line away from under the holder's plain stores. Nobody should use it.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `TasNeighbourLock` | 2 words | 1 word | 1 | flag: holder and all waiters; `neighbour`: holder |
//! | slot | 0 | 1 | 0 | nobody |
//! # Cost
//! Uncontended pair: 1 RMW, 2 loads, 3 stores, 1 line. Under contention each store of the holder
//! waits for the line to come back from a spinning waiter.
//! # Progress
//! As `tas`.
//! # Invariants
//! - I1: as I1 of `tas`.
//! - I2: `neighbour` is written by the holder only.
//! # Synchronization
//! | edge | release side | acquire side | publishes |
//! |---|---|---|---|
//! | E1 | that of `tas` | that of `tas` | the critical section's writes, `neighbour` among them |
//! # Errors and limits
//! As `tas`.
//! # References
//! none; the mistake is the field's own.

use super::contract::{Fairness, Properties, RawLock, TryLock, Waiting};
use super::hot::{HotField, HotFields, Role};
use super::relax::{Relax, Spin};
use super::sync::atomic::{AtomicUsize, Ordering};
use super::sync::const_fn;
use super::tas::TasLock;

/// Keeps a word that its holder writes on the line that its waiters swap.
///
/// ```
/// use locks::{Mutex, TasNeighbourLock};
/// let total = Mutex::<u64, TasNeighbourLock>::new(0);
/// *total.lock() += 1;
/// assert_eq!(total.into_inner(), 1);
/// ```
#[derive(Debug)]
#[repr(C)]
pub struct TasNeighbourLock<R = Spin> {
    lock: TasLock<R>,
    neighbour: AtomicUsize,
}

impl<R> TasNeighbourLock<R> {
    const_fn! {
        /// Makes an unlocked lock.
        pub fn new() -> Self {
            Self { lock: TasLock::new(), neighbour: AtomicUsize::new(0) }
        }
    }
}

impl<R> TasNeighbourLock<R> {
    /// Offsets in bytes of the waiters' word and of the holder's word.
    pub const OFFSETS: (usize, usize) =
        (core::mem::offset_of!(Self, lock), core::mem::offset_of!(Self, neighbour));

    fn write_neighbour(&self) {
        // ORDERING: Relaxed - by I2 only the holder is here; E1 orders it like all its data.
        let value = self.neighbour.load(Ordering::Relaxed);
        // ORDERING: Relaxed - as the line above.
        self.neighbour.store(value.wrapping_add(1), Ordering::Relaxed);
    }
}

impl<R> Default for TasNeighbourLock<R> {
    fn default() -> Self {
        Self::new()
    }
}

impl<R> HotFields for TasNeighbourLock<R> {
    const ALIGNMENT: usize = align_of::<usize>();
    const ALONE: bool = false;

    fn hot_fields(&self, visit: &mut dyn FnMut(HotField)) {
        let Self { lock, neighbour } = self;
        lock.hot_fields(visit);
        visit(HotField::between(lock, neighbour));
        visit(HotField::of("neighbour", neighbour).written_by(Role::One("holder")));
    }
}

// SAFETY: exclusion and publication are those of the inner lock.
unsafe impl<R: Relax> RawLock for TasNeighbourLock<R> {
    type Slot = ();
    const PROPERTIES: Properties =
        Properties { fairness: Fairness::None, waiting: Waiting::Spins, numa_aware: false };

    #[inline]
    unsafe fn lock(&self, slot: &()) {
        // SAFETY: the caller's promise, passed on.
        unsafe { self.lock.lock(slot) };
        self.write_neighbour();
    }

    #[inline]
    unsafe fn unlock(&self, slot: &()) {
        self.write_neighbour();
        // SAFETY: the caller's promise, passed on.
        unsafe { self.lock.unlock(slot) };
    }
}

// SAFETY: as for `RawLock`.
unsafe impl<R: Relax> TryLock for TasNeighbourLock<R> {
    #[inline]
    unsafe fn try_lock(&self, slot: &()) -> bool {
        // SAFETY: the caller's promise, passed on.
        let taken = unsafe { self.lock.try_lock(slot) };
        if taken {
            self.write_neighbour();
        }
        taken
    }
}
