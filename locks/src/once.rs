//! A value that is made once, by whoever comes first; the others sleep meanwhile.
//! # Algorithm
//! `state` is `EMPTY`, `MAKING`, `AWAITED` (making, and somebody may sleep) or `READY`. Who exchanges
//! `EMPTY` for `MAKING` makes the value and swaps `READY` in; a panic swaps `EMPTY` in again. The
//! others exchange `MAKING` for `AWAITED` and park; whoever finds `AWAITED` replaced wakes all.
//! # Why
//! What has been made costs one load to reach.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `OnceValue<T>` | 4 and `T` | that of `T`, at least 4 | as it falls | who makes it |
//! # Cost
//! Made: 1 load. Making: 2 RMWs, 1 wake if somebody sleeps.
//! # Progress
//! Blocking: a stopped maker stops those who need the value; reaching it is wait-free afterwards.
//! # Invariants
//! - I1: the value is there exactly while `state` is `READY`, and does not change then.
//! - I2: one caller at a time is between `EMPTY` and the swap.
//! # Synchronization
//! | edge | release side | acquire side | publishes |
//! |---|---|---|---|
//! | E1 | swap of `READY` in | load of `READY` | the value |
//! | E2 | swap of `EMPTY` in after a panic | exchange of `EMPTY` | what the failed attempt did |
//! # Errors and limits
//! A maker that asks for the same value waits for itself.
//! # References
//! none; the shape is that of `std::sync::Once` on futexes.

use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::ops::Deref;

use super::parker::Parker;
use super::sync::atomic::{AtomicU32, Ordering};
use super::sync::cell::UnsafeCell;
use super::sync::const_fn;

const EMPTY: u32 = 0;
const MAKING: u32 = 1;
const AWAITED: u32 = 2;
const READY: u32 = 3;

/// A value that is made once; `P` says how those sleep who need it meanwhile.
///
/// ```
/// # #[cfg(all(feature = "libc", target_os = "linux"))] {
/// use locks::{LinuxFutex, OnceValue};
/// static NAME: OnceValue<String, LinuxFutex> = OnceValue::new();
/// assert_eq!(NAME.get(), None);
/// assert_eq!(NAME.get_or_make(|| "one".into()), "one");
/// assert_eq!(NAME.get_or_make(|| "two".into()), "one");
/// # }
/// ```
pub struct OnceValue<T, P> {
    state: AtomicU32,
    value: UnsafeCell<MaybeUninit<T>>,
    parker: PhantomData<fn() -> P>,
}

// SAFETY: the value is made by one thread, read by all, and dropped by another perhaps.
unsafe impl<T: Send + Sync, P> Sync for OnceValue<T, P> {}
// SAFETY: moving it moves the value.
unsafe impl<T: Send, P> Send for OnceValue<T, P> {}

impl<T, P> OnceValue<T, P> {
    const_fn! {
        /// Makes room for a value.
        pub fn new() -> Self {
            Self {
                state: AtomicU32::new(EMPTY),
                value: UnsafeCell::new(MaybeUninit::uninit()),
                parker: PhantomData,
            }
        }
    }

    /// Reaches the value, if it has been made.
    #[inline]
    pub fn get(&self) -> Option<&T> {
        // ORDERING: Acquire, E1 - see the value.
        let ready = self.state.load(Ordering::Acquire) == READY;
        // SAFETY: by I1 it is there, and does not change.
        ready.then(|| self.value.with(|value| unsafe { &*value.cast::<T>() }))
    }
}

impl<T, P> Default for OnceValue<T, P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, P: Parker> OnceValue<T, P> {
    /// Reaches the value; makes it if nobody has, waits if somebody does. If `make` panics, the
    /// next caller makes it.
    #[inline]
    pub fn get_or_make(&self, make: impl FnOnce() -> T) -> &T {
        match self.get() {
            Some(value) => value,
            None => self.wait_or_make(make),
        }
    }

    #[cold]
    fn wait_or_make(&self, make: impl FnOnce() -> T) -> &T {
        loop {
            // ORDERING: Acquire on success, E2 - see what a failed attempt did; on failure Relaxed
            // - `get` looks again.
            let seen =
                self.state.compare_exchange(EMPTY, MAKING, Ordering::Acquire, Ordering::Relaxed);
            if seen.is_ok() {
                return self.make(make);
            }
            self.sleep();
            if let Some(value) = self.get() {
                return value;
            }
        }
    }

    /// Makes the value; the caller has put `MAKING` in.
    fn make(&self, make: impl FnOnce() -> T) -> &T {
        struct Undo<'a, T, P: Parker>(&'a OnceValue<T, P>);
        impl<T, P: Parker> Drop for Undo<'_, T, P> {
            fn drop(&mut self) {
                self.0.settle(EMPTY);
            }
        }
        let undo = Undo(self);
        let made = make();
        core::mem::forget(undo);
        // SAFETY: by I2 nobody else is here, and by I1 nobody reads yet.
        self.value.with_mut(|value| unsafe { value.cast::<T>().write(made) });
        self.settle(READY);
        // SAFETY: by I1 it is there, and does not change.
        self.value.with(|value| unsafe { &*value.cast::<T>() })
    }

    /// Ends the making, and wakes whoever waits for that.
    fn settle(&self, state: u32) {
        // ORDERING: Release, E1 and E2 - publishes the value, or what was tried.
        if self.state.swap(state, Ordering::Release) == AWAITED {
            P::unpark_all(&self.state);
        }
    }

    /// Sleeps while somebody makes the value.
    fn sleep(&self) {
        // ORDERING: Relaxed on success and failure - only the value counts; `get` looks again.
        let said =
            self.state.compare_exchange(MAKING, AWAITED, Ordering::Relaxed, Ordering::Relaxed);
        if said.is_ok() || said == Err(AWAITED) {
            P::park(&self.state, AWAITED);
        }
    }
}

impl<T, P> Drop for OnceValue<T, P> {
    fn drop(&mut self) {
        if self.get().is_some() {
            // SAFETY: by I1 it is there, and nobody else is any more.
            self.value.with_mut(|value| unsafe { value.cast::<T>().drop_in_place() });
        }
    }
}

impl<T, P> core::fmt::Debug for OnceValue<T, P> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("OnceValue").finish_non_exhaustive()
    }
}

/// A [`OnceValue`] that knows how it is made.
///
/// ```
/// # #[cfg(all(feature = "libc", target_os = "linux"))] {
/// use locks::{Lazy, LinuxFutex};
/// static WORDS: Lazy<Vec<&str>, LinuxFutex> = Lazy::new(|| vec!["one", "two"]);
/// assert_eq!(WORDS.len(), 2);
/// # }
/// ```
#[derive(Debug)]
pub struct Lazy<T, P> {
    once: OnceValue<T, P>,
    make: fn() -> T,
}

impl<T, P> Lazy<T, P> {
    const_fn! {
        /// Makes a value that `make` makes when it is first reached.
        pub fn new(make: fn() -> T) -> Self {
            Self { once: OnceValue::new(), make }
        }
    }
}

impl<T, P: Parker> Deref for Lazy<T, P> {
    type Target = T;

    fn deref(&self) -> &T {
        self.once.get_or_make(self.make)
    }
}
