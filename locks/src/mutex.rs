//! The safe face: data that is reached only while its lock is held.

use core::fmt;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use core::time::Duration;

use crate::condvar::Condvar;
use crate::contract::{ConstInit, Fairness, Patient, RawLock, Timed, TryLock};
use crate::parker::Parker;
use crate::sync::cell::UnsafeCell;

/// A value protected by the lock `L`.
///
/// [`with`](Self::with) works for every lock: the slot lives on the stack of the call.
/// [`lock`](Self::lock) returns a guard and needs a lock without context (`Slot = ()`): a guard
/// that borrowed a caller's slot would be unsound when it is forgotten.
///
/// ```
/// use locks::{McsLock, Mutex};
/// static TOTAL: Mutex<u64, McsLock> = Mutex::new(0);
/// assert_eq!(TOTAL.with(|total| { *total += 2; *total }), 2);
/// ```
///
/// The null baseline is no lock and is refused when the program is compiled:
///
/// ```compile_fail,E0080
/// let nothing = locks::Mutex::<u64, locks::NullLock>::new(0);
/// ```
pub struct Mutex<T: ?Sized, L: RawLock> {
    lock: L,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached by one thread at a time, so it has to be sendable and no more.
unsafe impl<T: ?Sized + Send, L: RawLock> Sync for Mutex<T, L> {}
// SAFETY: moving the mutex moves the value.
unsafe impl<T: ?Sized + Send, L: RawLock> Send for Mutex<T, L> {}

/// Access to the value of a [`Mutex`]; lets go when dropped. Not `Send`: not every lock may be
/// unlocked by another thread than locked it.
pub struct MutexGuard<'a, T: ?Sized, L: RawLock<Slot = ()>> {
    mutex: &'a Mutex<T, L>,
    not_send: PhantomData<*const ()>,
}

// SAFETY: sharing the guard shares `&T` and nothing else.
unsafe impl<T: ?Sized + Sync, L: RawLock<Slot = ()>> Sync for MutexGuard<'_, T, L> {}

impl<T, L: RawLock + ConstInit> Mutex<T, L> {
    /// Wraps `value`; unlocked.
    pub const fn new(value: T) -> Self {
        Self { lock: L::INIT, value: Self::cell(value) }
    }
}

impl<T, L: RawLock> Mutex<T, L> {
    const IS_A_LOCK: () = assert!(
        !matches!(L::PROPERTIES.fairness, Fairness::NotALock),
        "the null baseline is not a lock"
    );

    const fn cell(value: T) -> UnsafeCell<T> {
        let () = Self::IS_A_LOCK;
        UnsafeCell::new(value)
    }

    /// Wraps `value` with a lock made by the caller, which nobody holds.
    pub const fn with_lock(lock: L, value: T) -> Self {
        Self { lock, value: Self::cell(value) }
    }

    /// Gives the value back.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized, L: RawLock> Mutex<T, L> {
    /// Runs `f` on the value while holding the lock, and lets go also when `f` panics.
    ///
    /// Calling it again from inside `f` deadlocks.
    #[inline]
    pub fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        let slot = L::Slot::default();
        // SAFETY: the slot is a local that is neither moved nor passed on; `visit` unlocks.
        unsafe { self.lock.lock(&slot) };
        self.visit(&slot, f)
    }

    /// As [`with`](Self::with), unless `expired` says so before the lock is free: then `None`.
    ///
    /// ```
    /// use std::time::{Duration, Instant};
    /// let total = locks::Mutex::<u64, locks::TtasLock>::new(0);
    /// let end = Instant::now() + Duration::from_millis(1);
    /// assert_eq!(total.with_until(|| Instant::now() >= end, |total| *total), Some(0));
    /// ```
    pub fn with_until<R>(
        &self,
        expired: impl FnMut() -> bool,
        f: impl FnOnce(&mut T) -> R,
    ) -> Option<R>
    where
        L: Timed,
    {
        let slot = L::Slot::default();
        // SAFETY: as in `with`.
        let taken = unsafe { self.lock.lock_until(&slot, expired) };
        taken.then(|| self.visit(&slot, f))
    }

    /// As [`with`](Self::with), unless the lock stays taken for so long: then `None`.
    pub fn with_for<R>(&self, patience: Duration, f: impl FnOnce(&mut T) -> R) -> Option<R>
    where
        L: Patient,
    {
        let slot = L::Slot::default();
        // SAFETY: as in `with`.
        let taken = unsafe { self.lock.lock_for(&slot, patience) };
        taken.then(|| self.visit(&slot, f))
    }

    /// Runs `f` on the value and lets go; the caller has taken the lock with this slot, a local.
    fn visit<R>(&self, slot: &L::Slot, f: impl FnOnce(&mut T) -> R) -> R {
        struct Unlock<'a, L: RawLock> {
            lock: &'a L,
            slot: &'a L::Slot,
        }
        impl<L: RawLock> Drop for Unlock<'_, L> {
            fn drop(&mut self) {
                // SAFETY: made below, for a lock that was taken with this slot.
                unsafe { self.lock.unlock(self.slot) };
            }
        }
        let unlock = Unlock { lock: &self.lock, slot };
        // SAFETY: the lock is held until `unlock` is dropped, and `&mut T` cannot outlive `f`.
        let result = self.value.with_mut(|value| f(unsafe { &mut *value }));
        drop(unlock);
        result
    }

    /// Reaches the value without locking: the exclusive borrow proves that nobody else can.
    pub fn get_mut(&mut self) -> &mut T {
        // SAFETY: `self` is borrowed exclusively for as long as the result lives.
        self.value.with_mut(|value| unsafe { &mut *value })
    }
}

impl<T: ?Sized, L: RawLock<Slot = ()>> Mutex<T, L> {
    /// Waits for the lock and returns access to the value.
    #[inline]
    pub fn lock(&self) -> MutexGuard<'_, T, L> {
        // SAFETY: the slot is empty; the guard unlocks once, or never if it is forgotten.
        unsafe { self.lock.lock(&()) };
        MutexGuard { mutex: self, not_send: PhantomData }
    }

    /// Takes the lock if that needs no waiting.
    #[inline]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T, L>>
    where
        L: TryLock,
    {
        // SAFETY: as in `lock`.
        let taken = unsafe { self.lock.try_lock(&()) };
        taken.then(|| MutexGuard { mutex: self, not_send: PhantomData })
    }

    /// Takes the lock unless it stays taken for so long.
    ///
    /// ```
    /// # #[cfg(all(feature = "libc", target_os = "linux"))] {
    /// use locks::{FutexLock, LinuxFutex, Mutex};
    /// use std::time::Duration;
    /// static TOTAL: Mutex<u64, FutexLock<LinuxFutex>> = Mutex::new(0);
    /// let held = TOTAL.lock();
    /// let other = std::thread::spawn(|| TOTAL.lock_for(Duration::from_millis(5)).is_none());
    /// assert!(other.join().unwrap());
    /// # drop(held);
    /// # }
    /// ```
    #[inline]
    pub fn lock_for(&self, patience: Duration) -> Option<MutexGuard<'_, T, L>>
    where
        L: Patient,
    {
        // SAFETY: as in `lock`.
        let taken = unsafe { self.lock.lock_for(&(), patience) };
        taken.then(|| MutexGuard { mutex: self, not_send: PhantomData })
    }
}

impl<'a, T: ?Sized, L: RawLock<Slot = ()>> MutexGuard<'a, T, L> {
    /// Lets go, sleeps until somebody notifies `changed` or for no reason, and locks again.
    pub fn wait<P: Parker>(self, changed: &Condvar<P>) -> Self {
        let mutex = self.mutex;
        changed.sleep(|| drop(self));
        mutex.lock()
    }
}

impl<T: ?Sized, L: RawLock<Slot = ()>> Deref for MutexGuard<'_, T, L> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the guard exists only while the lock is held.
        self.mutex.value.with(|value| unsafe { &*value })
    }
}

impl<T: ?Sized, L: RawLock<Slot = ()>> DerefMut for MutexGuard<'_, T, L> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the guard exists only while the lock is held, and is borrowed exclusively.
        self.mutex.value.with_mut(|value| unsafe { &mut *value })
    }
}

impl<T: ?Sized, L: RawLock<Slot = ()>> Drop for MutexGuard<'_, T, L> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the guard was made by a successful `lock` and is dropped once.
        unsafe { self.mutex.lock.unlock(&()) };
    }
}

impl<T: Default, L: RawLock + ConstInit> Default for Mutex<T, L> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T: ?Sized, L: RawLock> fmt::Debug for Mutex<T, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mutex").finish_non_exhaustive()
    }
}

impl<T: ?Sized + fmt::Debug, L: RawLock<Slot = ()>> fmt::Debug for MutexGuard<'_, T, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
