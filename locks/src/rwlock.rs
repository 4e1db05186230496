//! The safe face of reader-writer locks: data that many may read, or one may change.

use core::fmt;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};

use crate::contract::{ConstInit, RawRwLock, TryLock};
use crate::sync::cell::UnsafeCell;

/// A value protected by the reader-writer lock `L`.
///
/// [`read_with`](Self::read_with) and [`write_with`](Self::write_with) work for every lock;
/// the guards need a lock whose slots are empty, as [`Mutex`](crate::Mutex)'s do. There is no
/// poisoning: whoever panics lets go.
///
/// ```
/// use locks::{RwLock, RwSpinLock};
/// static WORDS: RwLock<Vec<&str>, RwSpinLock> = RwLock::new(Vec::new());
/// WORDS.write().push("one");
/// let (first, second) = (WORDS.read(), WORDS.read());
/// assert_eq!(first.len() + second.len(), 2);
/// assert!(WORDS.try_write().is_none());
/// ```
pub struct RwLock<T: ?Sized, L: RawRwLock> {
    lock: L,
    value: UnsafeCell<T>,
}

// SAFETY: several threads may read the value at once, and one at a time change or take it.
unsafe impl<T: ?Sized + Send + Sync, L: RawRwLock> Sync for RwLock<T, L> {}
// SAFETY: moving the lock moves the value.
unsafe impl<T: ?Sized + Send, L: RawRwLock> Send for RwLock<T, L> {}

/// Reads the value of a [`RwLock`]; lets go when dropped. Not `Send`, as not every lock may be
/// unlocked by another thread than locked it.
pub struct ReadGuard<'a, T: ?Sized, L: RawRwLock<ReadSlot = ()>> {
    lock: &'a RwLock<T, L>,
    not_send: PhantomData<*const ()>,
}

/// Changes the value of a [`RwLock`]; lets go when dropped. Not `Send`, as [`ReadGuard`].
pub struct WriteGuard<'a, T: ?Sized, L: RawRwLock<Slot = ()>> {
    lock: &'a RwLock<T, L>,
    not_send: PhantomData<*const ()>,
}

// SAFETY: sharing the guard shares `&T` and nothing else.
unsafe impl<T: ?Sized + Sync, L: RawRwLock<ReadSlot = ()>> Sync for ReadGuard<'_, T, L> {}
// SAFETY: sharing the guard shares `&T` and nothing else.
unsafe impl<T: ?Sized + Sync, L: RawRwLock<Slot = ()>> Sync for WriteGuard<'_, T, L> {}

/// Runs a function when it goes out of scope, in a panic too.
struct Finally<F: FnMut()>(F);

impl<F: FnMut()> Drop for Finally<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

impl<T, L: RawRwLock + ConstInit> RwLock<T, L> {
    /// Wraps `value`; unlocked.
    pub const fn new(value: T) -> Self {
        Self { lock: L::INIT, value: UnsafeCell::new(value) }
    }
}

impl<T, L: RawRwLock> RwLock<T, L> {
    /// Wraps `value` with a lock made by the caller, which nobody holds.
    pub const fn with_lock(lock: L, value: T) -> Self {
        Self { lock, value: UnsafeCell::new(value) }
    }

    /// Gives the value back.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized, L: RawRwLock> RwLock<T, L> {
    /// Runs `f` on the value while no writer is inside. Locking again from inside `f` may
    /// deadlock, reading too, if a writer waits.
    #[inline]
    pub fn read_with<U>(&self, f: impl FnOnce(&T) -> U) -> U {
        let slot = L::ReadSlot::default();
        // SAFETY: the slot is a local that is neither moved nor passed on; `_unlock` is dropped
        // before it, whichever way this function is left.
        unsafe { self.lock.lock_shared(&slot) };
        // SAFETY: taken above with this slot.
        let _unlock = Finally(|| unsafe { self.lock.unlock_shared(&slot) });
        // SAFETY: the lock is held until `_unlock` is dropped, and `&T` cannot outlive `f`.
        self.value.with(|value| f(unsafe { &*value }))
    }

    /// Runs `f` on the value while nobody else is inside. Locking again from inside `f` deadlocks.
    #[inline]
    pub fn write_with<U>(&self, f: impl FnOnce(&mut T) -> U) -> U {
        let slot = L::Slot::default();
        // SAFETY: as in `read_with`.
        unsafe { self.lock.lock(&slot) };
        // SAFETY: taken above with this slot.
        let _unlock = Finally(|| unsafe { self.lock.unlock(&slot) });
        // SAFETY: the lock is held until `_unlock` is dropped, and `&mut T` cannot outlive `f`.
        self.value.with_mut(|value| f(unsafe { &mut *value }))
    }

    /// Reaches the value without locking: the exclusive borrow proves that nobody else can.
    pub fn get_mut(&mut self) -> &mut T {
        // SAFETY: `self` is borrowed exclusively for as long as the result lives.
        self.value.with_mut(|value| unsafe { &mut *value })
    }
}

impl<T: ?Sized, L: RawRwLock<ReadSlot = ()>> RwLock<T, L> {
    /// Waits until no writer is inside and returns access to the value.
    #[inline]
    pub fn read(&self) -> ReadGuard<'_, T, L> {
        // SAFETY: the slot is empty; the guard unlocks once, or never if it is forgotten.
        unsafe { self.lock.lock_shared(&()) };
        ReadGuard { lock: self, not_send: PhantomData }
    }

    /// Reads if that needs no waiting.
    #[inline]
    pub fn try_read(&self) -> Option<ReadGuard<'_, T, L>> {
        // SAFETY: as in `read`.
        let taken = unsafe { self.lock.try_lock_shared(&()) };
        taken.then(|| ReadGuard { lock: self, not_send: PhantomData })
    }
}

impl<T: ?Sized, L: RawRwLock<Slot = ()>> RwLock<T, L> {
    /// Waits until nobody is inside and returns access to the value.
    #[inline]
    pub fn write(&self) -> WriteGuard<'_, T, L> {
        // SAFETY: the slot is empty; the guard unlocks once, or never if it is forgotten.
        unsafe { self.lock.lock(&()) };
        WriteGuard { lock: self, not_send: PhantomData }
    }

    /// Writes if that needs no waiting.
    #[inline]
    pub fn try_write(&self) -> Option<WriteGuard<'_, T, L>>
    where
        L: TryLock,
    {
        // SAFETY: as in `write`.
        let taken = unsafe { self.lock.try_lock(&()) };
        taken.then(|| WriteGuard { lock: self, not_send: PhantomData })
    }
}

impl<T: ?Sized, L: RawRwLock<ReadSlot = ()>> Deref for ReadGuard<'_, T, L> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the guard exists only while no writer is inside.
        self.lock.value.with(|value| unsafe { &*value })
    }
}

impl<T: ?Sized, L: RawRwLock<Slot = ()>> Deref for WriteGuard<'_, T, L> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the guard exists only while the lock is held.
        self.lock.value.with(|value| unsafe { &*value })
    }
}

impl<T: ?Sized, L: RawRwLock<Slot = ()>> DerefMut for WriteGuard<'_, T, L> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the guard exists only while the lock is held, and is borrowed exclusively.
        self.lock.value.with_mut(|value| unsafe { &mut *value })
    }
}

impl<T: ?Sized, L: RawRwLock<ReadSlot = ()>> Drop for ReadGuard<'_, T, L> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the guard was made by a successful lock and is dropped once.
        unsafe { self.lock.lock.unlock_shared(&()) };
    }
}

impl<T: ?Sized, L: RawRwLock<Slot = ()>> Drop for WriteGuard<'_, T, L> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the guard was made by a successful lock and is dropped once.
        unsafe { self.lock.lock.unlock(&()) };
    }
}

impl<T: Default, L: RawRwLock + ConstInit> Default for RwLock<T, L> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T: ?Sized, L: RawRwLock> fmt::Debug for RwLock<T, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RwLock").finish_non_exhaustive()
    }
}

impl<T: ?Sized + fmt::Debug, L: RawRwLock<ReadSlot = ()>> fmt::Debug for ReadGuard<'_, T, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized + fmt::Debug, L: RawRwLock<Slot = ()>> fmt::Debug for WriteGuard<'_, T, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
