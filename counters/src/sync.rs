//! Atomics, cells and the spin hint: the only file of this crate that names `core`'s.
//!
//! A variant imports them from `super::sync`, so that the model tests can compile the same file
//! again, by `#[path]`, under a `sync` module made of loom's types. The four primitive crates
//! carry identical copies of this file; a test compares them byte for byte.

/// Atomic types and orderings.
pub mod atomic {
    #[cfg(target_has_atomic = "64")]
    pub use core::sync::atomic::AtomicI64;
    pub use core::sync::atomic::{
        AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicUsize, Ordering, fence,
    };

    /// Stands in where the target has no 64-bit atomics: 32 bits, sign-extended, so that it wraps
    /// modulo 2³².
    #[cfg(not(target_has_atomic = "64"))]
    #[derive(Debug, Default)]
    #[repr(transparent)]
    pub struct AtomicI64(core::sync::atomic::AtomicI32);

    #[cfg(not(target_has_atomic = "64"))]
    impl AtomicI64 {
        /// Wraps `value`.
        pub const fn new(value: i64) -> Self {
            Self(core::sync::atomic::AtomicI32::new(value as i32))
        }

        /// Reads the value.
        pub fn load(&self, order: Ordering) -> i64 {
            self.0.load(order).into()
        }

        /// Adds `n` and gives the old value.
        pub fn fetch_add(&self, n: i64, order: Ordering) -> i64 {
            self.0.fetch_add(n as i32, order).into()
        }

        /// Replaces the value and gives the old one.
        pub fn swap(&self, value: i64, order: Ordering) -> i64 {
            self.0.swap(value as i32, order).into()
        }

        /// Replaces the value.
        pub fn store(&self, value: i64, order: Ordering) {
            self.0.store(value as i32, order);
        }

        /// Replaces the value if it is `current`, and gives the one that was there.
        ///
        /// # Errors
        /// The value that was there instead.
        pub fn compare_exchange(
            &self,
            current: i64,
            new: i64,
            success: Ordering,
            failure: Ordering,
        ) -> Result<i64, i64> {
            match self.0.compare_exchange(current as i32, new as i32, success, failure) {
                Ok(old) => Ok(old.into()),
                Err(found) => Err(found.into()),
            }
        }
    }
}

/// Interior mutability through closures, in the shape that model checkers can watch.
pub mod cell {
    /// A cell whose content is reached through raw pointers handed to closures.
    #[derive(Debug, Default)]
    #[repr(transparent)]
    pub struct UnsafeCell<T: ?Sized>(core::cell::UnsafeCell<T>);

    impl<T> UnsafeCell<T> {
        /// Wraps `value`.
        pub const fn new(value: T) -> Self {
            Self(core::cell::UnsafeCell::new(value))
        }

        /// Gives the content back.
        pub fn into_inner(self) -> T {
            self.0.into_inner()
        }
    }

    impl<T: ?Sized> UnsafeCell<T> {
        /// Calls `f` with a pointer to read through. Dereferencing it is the caller's duty: no
        /// write may happen at the same time.
        #[inline(always)]
        pub fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
            f(self.0.get())
        }

        /// Calls `f` with a pointer to write through. Dereferencing it is the caller's duty: no
        /// other access may happen at the same time.
        #[inline(always)]
        pub fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
            f(self.0.get())
        }
    }
}

/// Tells the CPU that this is a waiting loop (`pause`, `isb`, `yield`).
#[inline(always)]
pub fn spin_loop() {
    core::hint::spin_loop();
}

/// Emits the functions as `const fn`; under loom, whose constructors are not const, as `fn`.
macro_rules! const_fn {
    ($($(#[$attribute:meta])* $visibility:vis fn $name:ident $arguments:tt -> $result:ty $body:block)*) => {
        $($(#[$attribute])* $visibility const fn $name $arguments -> $result $body)*
    };
}
pub(crate) use const_fn;
