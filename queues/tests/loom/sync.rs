//! The `sync` module of the models: loom's types in the shape of the crate's own.

pub(super) mod atomic {
    pub(in super::super) use loom::sync::atomic::{Ordering, fence};

    /// Loom remembers the last access to a word only, so a thread that loads a word before it
    /// stores to it hides another thread's earlier load from loom, which then never tries the
    /// store before that load: without a remedy it explores one execution of an SPSC ring.
    /// The remedy is a step in front of each load that changes nothing, orders nothing, and
    /// counts as an access that depends on all others of its kind.
    #[derive(Debug)]
    pub(in super::super) struct AtomicUsize {
        value: loom::sync::atomic::AtomicUsize,
        step: loom::sync::atomic::AtomicBool,
    }

    impl AtomicUsize {
        pub(in super::super) fn new(value: usize) -> Self {
            Self {
                value: loom::sync::atomic::AtomicUsize::new(value),
                step: loom::sync::atomic::AtomicBool::new(false),
            }
        }
        pub(in super::super) fn load(&self, order: Ordering) -> usize {
            let relaxed = Ordering::Relaxed;
            self.step.compare_exchange(true, true, relaxed, relaxed).unwrap_err();
            self.value.load(order)
        }
        pub(in super::super) fn store(&self, value: usize, order: Ordering) {
            self.value.store(value, order);
        }
        pub(in super::super) fn fetch_add(&self, n: usize, order: Ordering) -> usize {
            self.value.fetch_add(n, order)
        }
        pub(in super::super) fn fetch_or(&self, bits: usize, order: Ordering) -> usize {
            self.value.fetch_or(bits, order)
        }
        pub(in super::super) fn fetch_sub(&self, n: usize, order: Ordering) -> usize {
            self.value.fetch_sub(n, order)
        }
        pub(in super::super) fn compare_exchange(
            &self,
            old: usize,
            new: usize,
            success: Ordering,
            failure: Ordering,
        ) -> Result<usize, usize> {
            self.value.compare_exchange(old, new, success, failure)
        }
        pub(in super::super) fn compare_exchange_weak(
            &self,
            old: usize,
            new: usize,
            success: Ordering,
            failure: Ordering,
        ) -> Result<usize, usize> {
            self.value.compare_exchange_weak(old, new, success, failure)
        }
    }

    /// The same for pointers.
    #[cfg(feature = "alloc")]
    #[derive(Debug)]
    pub(in super::super) struct AtomicPtr<T> {
        value: loom::sync::atomic::AtomicPtr<T>,
        step: loom::sync::atomic::AtomicBool,
    }

    #[cfg(feature = "alloc")]
    impl<T> AtomicPtr<T> {
        pub(in super::super) fn new(value: *mut T) -> Self {
            Self {
                value: loom::sync::atomic::AtomicPtr::new(value),
                step: loom::sync::atomic::AtomicBool::new(false),
            }
        }
        pub(in super::super) fn load(&self, order: Ordering) -> *mut T {
            let relaxed = Ordering::Relaxed;
            self.step.compare_exchange(true, true, relaxed, relaxed).unwrap_err();
            self.value.load(order)
        }
        pub(in super::super) fn store(&self, value: *mut T, order: Ordering) {
            self.value.store(value, order);
        }
        pub(in super::super) fn swap(&self, value: *mut T, order: Ordering) -> *mut T {
            self.value.swap(value, order)
        }
    }

    /// The same for bytes.
    #[cfg(feature = "alloc")]
    #[derive(Debug)]
    pub(in super::super) struct AtomicU8 {
        value: loom::sync::atomic::AtomicU8,
        step: loom::sync::atomic::AtomicBool,
    }

    #[cfg(feature = "alloc")]
    impl AtomicU8 {
        pub(in super::super) fn new(value: u8) -> Self {
            Self {
                value: loom::sync::atomic::AtomicU8::new(value),
                step: loom::sync::atomic::AtomicBool::new(false),
            }
        }
        pub(in super::super) fn load(&self, order: Ordering) -> u8 {
            let relaxed = Ordering::Relaxed;
            self.step.compare_exchange(true, true, relaxed, relaxed).unwrap_err();
            self.value.load(order)
        }
        pub(in super::super) fn store(&self, value: u8, order: Ordering) {
            self.value.store(value, order);
        }
        pub(in super::super) fn swap(&self, value: u8, order: Ordering) -> u8 {
            self.value.swap(value, order)
        }
    }

    /// Loom orders a store and another thread's exchange only partly, so a waiter that swaps
    /// `true` into `true` for ever never meets the holder's `false`. Such a swap is modelled
    /// as the failed exchange that it is for everyone who looks at values; its orderings are
    /// the weaker for it, never the stronger.
    #[derive(Debug)]
    pub(in super::super) struct AtomicBool {
        value: loom::sync::atomic::AtomicBool,
        /// As in `AtomicUsize`, until the first exchange: that is such a step itself.
        step: loom::sync::atomic::AtomicBool,
        exchanged: std::sync::atomic::AtomicBool,
    }

    impl AtomicBool {
        pub(in super::super) fn new(value: bool) -> Self {
            Self {
                value: loom::sync::atomic::AtomicBool::new(value),
                step: loom::sync::atomic::AtomicBool::new(false),
                exchanged: std::sync::atomic::AtomicBool::new(false),
            }
        }
        pub(in super::super) fn load(&self, order: Ordering) -> bool {
            let relaxed = Ordering::Relaxed;
            if !self.exchanged.load(relaxed) {
                self.step.compare_exchange(true, true, relaxed, relaxed).unwrap_err();
            }
            self.value.load(order)
        }
        pub(in super::super) fn store(&self, value: bool, order: Ordering) {
            self.value.store(value, order);
        }
        pub(in super::super) fn swap(&self, value: bool, order: Ordering) -> bool {
            self.exchanged.store(true, Ordering::Relaxed);
            match self.value.compare_exchange(!value, value, order, Ordering::Relaxed) {
                Ok(old) | Err(old) => old,
            }
        }
    }
}
pub(super) mod cell {
    /// Loom does not look at a cell that is dropped; here that is an access like a write, so what
    /// is freed while another thread may still be inside is a race that it reports.
    #[derive(Debug)]
    pub(in super::super) struct UnsafeCell<T>(loom::cell::UnsafeCell<T>);

    impl<T> UnsafeCell<T> {
        #[track_caller]
        pub(in super::super) fn new(value: T) -> Self {
            Self(loom::cell::UnsafeCell::new(value))
        }
        #[track_caller]
        pub(in super::super) fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
            self.0.with(read)
        }
        #[track_caller]
        pub(in super::super) fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
            self.0.with_mut(write)
        }
    }

    impl<T> Drop for UnsafeCell<T> {
        fn drop(&mut self) {
            if !std::thread::panicking() {
                self.0.with_mut(|_| ());
            }
        }
    }
}
std::thread_local! {
    /// Looks left in this execution before its remaining branches are no longer explored.
    pub(super) static SPINS_LEFT: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
}
/// Each look at a word that did not change is a new branch, so an unbounded wait is an
/// unbounded model: the shim bounds the looks of all threads of one execution together.
pub(super) fn spin_loop() {
    SPINS_LEFT.with(|left| match left.get() {
        0 => loom::skip_branch(),
        some => left.set(some - 1),
    });
    loom::thread::yield_now();
}
macro_rules! const_fn {
    ($($item:item)*) => { $($item)* };
}
pub(super) use const_fn;
