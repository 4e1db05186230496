//! The faces of the crate `lock_api`: guards that map or own, over locks of this crate.

use lock_api::GuardNoSend;

use crate::contract::{ConstInit, RawLock, RawRwLock, TryLock};

/// A lock without context as a [`lock_api::RawMutex`] or [`lock_api::RawRwLock`].
///
/// `is_locked` tries the lock and lets go again: a caller of `try_lock` may fail for it.
///
/// ```
/// use locks::{LockApi, RwPhaseFairLock, TicketLock};
/// static TOTAL: lock_api::Mutex<LockApi<TicketLock>, u64> = lock_api::Mutex::new(0);
/// *TOTAL.lock() += 1;
/// assert!(!TOTAL.is_locked());
/// static TABLE: lock_api::RwLock<LockApi<RwPhaseFairLock>, u64> = lock_api::RwLock::new(2);
/// assert_eq!(*TABLE.read() + *TOTAL.lock(), 3);
/// ```
#[derive(Debug, Default)]
pub struct LockApi<L>(L);

// SAFETY: exclusion is the contract of `RawLock`; the slot is empty, so a guard that is forgotten
// leaves nothing behind but a lock that stays taken.
unsafe impl<L: TryLock<Slot = ()> + ConstInit> lock_api::RawMutex for LockApi<L> {
    const INIT: Self = Self(L::INIT);
    type Guard = GuardNoSend;

    #[inline]
    fn lock(&self) -> GuardNoSend {
        // SAFETY: the slot is empty; whoever has the guard unlocks once.
        unsafe { RawLock::lock(&self.0, &()) };
        GuardNoSend::default()
    }

    #[inline]
    fn try_lock(&self) -> Option<GuardNoSend> {
        // SAFETY: as in `lock`.
        unsafe { TryLock::try_lock(&self.0, &()) }.then(GuardNoSend::default)
    }

    #[inline]
    unsafe fn unlock(&self, _guard: GuardNoSend) {
        // SAFETY: the guard says that the caller holds the lock.
        unsafe { RawLock::unlock(&self.0, &()) };
    }

    fn is_locked(&self) -> bool {
        is_locked(&self.0)
    }
}

fn is_locked<L: TryLock<Slot = ()>>(lock: &L) -> bool {
    // SAFETY: the slot is empty; unlocked below.
    let free = unsafe { lock.try_lock(&()) };
    if free {
        // SAFETY: taken above.
        unsafe { lock.unlock(&()) };
    }
    !free
}

// SAFETY: exclusion of writers and readers is the contract of `RawRwLock`; the slots are empty, as
// above.
unsafe impl<L> lock_api::RawRwLock for LockApi<L>
where
    L: RawRwLock<Slot = (), ReadSlot = ()> + TryLock + ConstInit,
{
    const INIT: Self = Self(L::INIT);
    type SharedGuard = GuardNoSend;
    type ExclusiveGuard = GuardNoSend;

    #[inline]
    fn lock_shared(&self) -> GuardNoSend {
        // SAFETY: the slot is empty; whoever has the guard unlocks once.
        unsafe { RawRwLock::lock_shared(&self.0, &()) };
        GuardNoSend::default()
    }

    #[inline]
    fn try_lock_shared(&self) -> Option<GuardNoSend> {
        // SAFETY: as in `lock_shared`.
        unsafe { RawRwLock::try_lock_shared(&self.0, &()) }.then(GuardNoSend::default)
    }

    #[inline]
    unsafe fn unlock_shared(&self, _guard: GuardNoSend) {
        // SAFETY: the guard says that the caller is inside as a reader.
        unsafe { RawRwLock::unlock_shared(&self.0, &()) };
    }

    #[inline]
    fn lock_exclusive(&self) -> GuardNoSend {
        lock_api::RawMutex::lock(self)
    }

    #[inline]
    fn try_lock_exclusive(&self) -> Option<GuardNoSend> {
        lock_api::RawMutex::try_lock(self)
    }

    #[inline]
    unsafe fn unlock_exclusive(&self, guard: GuardNoSend) {
        // SAFETY: the caller's promise, passed on.
        unsafe { lock_api::RawMutex::unlock(self, guard) };
    }

    fn is_locked(&self) -> bool {
        is_locked(&self.0)
    }

    fn is_locked_exclusive(&self) -> bool {
        // SAFETY: the slot is empty; left below.
        let entered = unsafe { RawRwLock::try_lock_shared(&self.0, &()) };
        if entered {
            // SAFETY: entered above.
            unsafe { RawRwLock::unlock_shared(&self.0, &()) };
        }
        !entered
    }
}
