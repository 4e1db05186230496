//! Checked lock: any lock, and a panic where its holder locks again or a stranger unlocks.
//! # Algorithm
//! `holder` keeps the number of the thread that has the lock. `lock` looks first whether that is
//! the caller: it would wait for itself. `unlock` looks whether it is anybody else.
//! # Why
//! Misuse that deadlocks, or lets two holders in, is found where it happens. It adds a word, a
//! look at a thread-local and two stores to each pair: meant for tests, as a type, since a feature
//! would change the lock for every dependant.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `Checked<L>` | those of `L`, and 8 | that of `L`, at least 8 | as it falls | holder |
//! | slot | that of `L` | | | |
//! # Cost
//! Uncontended pair: that of `L`, 2 loads, 2 stores.
//! # Progress
//! That of `L`.
//! # Invariants
//! - I1: `holder` is the number of the thread that holds the inner lock, or 0; only that thread
//!   writes its own number there.
//! # Synchronization
//! none of its own: a thread only looks for its own number, which nobody else writes.
//! # Errors and limits
//! Panics in `lock` on recursion (`try_lock` fails, as it should), in `unlock` where the caller does not hold the
//! lock: a guard that is dropped while panicking for that reason aborts. A lock that is handed to
//! another thread on purpose is refused. One thread's number is an address of its thread-local
//! storage, so that a thread that ends with the lock may pass its number on.
//! # References
//! none

use core::ptr;

use crate::contract::{ConstInit, Properties, RawLock, TryLock};
use crate::sync::atomic::{AtomicUsize, Ordering};

std::thread_local! {
    static OWN: u8 = const { 0 };
}

fn own_number() -> usize {
    OWN.with(|own| ptr::from_ref(own).addr())
}

/// Panics where `L` would be misused.
///
/// ```should_panic
/// use locks::{Checked, Mutex, TicketLock};
/// let total = Mutex::<u64, Checked<TicketLock>>::new(0);
/// let first = total.lock();
/// let second = total.lock(); // would wait for itself: panics
/// ```
#[derive(Debug, Default)]
pub struct Checked<L> {
    lock: L,
    holder: AtomicUsize,
}

impl<L: ConstInit> ConstInit for Checked<L> {
    const INIT: Self = Self { lock: L::INIT, holder: AtomicUsize::new(0) };
}

impl<L> Checked<L> {
    /// Checks the use of `lock`, which nobody holds.
    pub const fn new(lock: L) -> Self {
        Self { lock, holder: AtomicUsize::new(0) }
    }

    fn is_own(&self) -> bool {
        // ORDERING: Relaxed - by I1 only the caller itself writes the caller's number.
        self.holder.load(Ordering::Relaxed) == own_number()
    }

    fn enter(&self) {
        // ORDERING: Relaxed - as above.
        self.holder.store(own_number(), Ordering::Relaxed);
    }
}

// SAFETY: passes everything on to a lock that keeps the contract.
unsafe impl<L: RawLock> RawLock for Checked<L> {
    type Slot = L::Slot;
    const PROPERTIES: Properties = L::PROPERTIES;

    unsafe fn lock(&self, slot: &L::Slot) {
        let own = self.is_own();
        assert!(!own, "this thread holds the lock already: it would wait for itself");
        // SAFETY: the caller's promise, passed on.
        unsafe { self.lock.lock(slot) };
        self.enter();
    }

    unsafe fn unlock(&self, slot: &L::Slot) {
        assert!(self.is_own(), "this thread does not hold the lock that it unlocks");
        // ORDERING: Relaxed - as above.
        self.holder.store(0, Ordering::Relaxed);
        // SAFETY: the caller's promise, passed on.
        unsafe { self.lock.unlock(slot) };
    }
}

// SAFETY: as for `RawLock`.
unsafe impl<L: TryLock> TryLock for Checked<L> {
    unsafe fn try_lock(&self, slot: &L::Slot) -> bool {
        // SAFETY: the caller's promise, passed on.
        let taken = unsafe { self.lock.try_lock(slot) };
        if taken {
            self.enter();
        }
        taken
    }
}
