//! The `sync` module of random schedules: shuttle's atomics in the shape of the crate's own, and
//! cells that notice who is inside. All orderings are sequentially consistent here.

use shuttle::sync::atomic as explored;
use std::cell::Cell;

/// The planted bug: which steps that read and write are two, with other threads between them.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Torn {
    Nothing,
    Additions,
    Exchanges,
}

std::thread_local! {
    /// What is torn in this test: shuttle runs all threads of a schedule on the one that started it.
    pub(super) static TORN: Cell<Torn> = const { Cell::new(Torn::Nothing) };
}

pub(super) mod atomic {
    pub(in super::super) use super::explored::Ordering;
    use super::{TORN, Torn, explored};
    use Ordering::SeqCst;

    #[derive(Debug)]
    pub(in super::super) struct AtomicUsize(explored::AtomicUsize);

    impl AtomicUsize {
        pub(in super::super) fn new(value: usize) -> Self {
            Self(explored::AtomicUsize::new(value))
        }
        pub(in super::super) fn load(&self, _: Ordering) -> usize {
            self.0.load(SeqCst)
        }
        pub(in super::super) fn store(&self, value: usize, _: Ordering) {
            self.0.store(value, SeqCst);
        }
        fn change(
            &self,
            kind: Torn,
            change: impl Fn(usize) -> Option<usize>,
        ) -> Result<usize, usize> {
            if TORN.get() != kind {
                return self.0.fetch_update(SeqCst, SeqCst, change);
            }
            let old = self.0.load(SeqCst);
            match change(old) {
                Some(new) => {
                    self.0.store(new, SeqCst);
                    Ok(old)
                }
                None => Err(old),
            }
        }
        pub(in super::super) fn fetch_add(&self, n: usize, _: Ordering) -> usize {
            self.change(Torn::Additions, |old| Some(old.wrapping_add(n))).unwrap()
        }
        pub(in super::super) fn fetch_sub(&self, n: usize, _: Ordering) -> usize {
            self.change(Torn::Additions, |old| Some(old.wrapping_sub(n))).unwrap()
        }
        pub(in super::super) fn fetch_or(&self, bits: usize, _: Ordering) -> usize {
            self.0.fetch_or(bits, SeqCst)
        }
        pub(in super::super) fn compare_exchange(
            &self,
            old: usize,
            new: usize,
            _: Ordering,
            _: Ordering,
        ) -> Result<usize, usize> {
            self.change(Torn::Exchanges, |found| (found == old).then_some(new))
        }
        pub(in super::super) fn compare_exchange_weak(
            &self,
            old: usize,
            new: usize,
            success: Ordering,
            failure: Ordering,
        ) -> Result<usize, usize> {
            self.compare_exchange(old, new, success, failure)
        }
    }

    #[derive(Debug)]
    pub(in super::super) struct AtomicBool(explored::AtomicBool);

    impl AtomicBool {
        pub(in super::super) fn new(value: bool) -> Self {
            Self(explored::AtomicBool::new(value))
        }
        pub(in super::super) fn load(&self, _: Ordering) -> bool {
            self.0.load(SeqCst)
        }
        pub(in super::super) fn store(&self, value: bool, _: Ordering) {
            self.0.store(value, SeqCst);
        }
        pub(in super::super) fn swap(&self, value: bool, _: Ordering) -> bool {
            self.0.swap(value, SeqCst)
        }
    }
}

pub(super) mod cell {
    use super::explored::{AtomicBool, Ordering};
    use std::cell::Cell;

    /// Panics when a thread writes while another one is inside.
    #[derive(Debug)]
    pub(in super::super) struct UnsafeCell<T> {
        content: std::cell::UnsafeCell<T>,
        /// How many read, or -1 for one that writes.
        inside: Cell<isize>,
        /// A step at which others may run.
        step: AtomicBool,
    }

    impl<T> UnsafeCell<T> {
        pub(in super::super) fn new(content: T) -> Self {
            let content = std::cell::UnsafeCell::new(content);
            Self { content, inside: Cell::new(0), step: AtomicBool::new(false) }
        }
        pub(in super::super) fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
            assert!(self.inside.get() >= 0, "a read meets a write");
            self.inside.set(self.inside.get() + 1);
            self.step.load(Ordering::SeqCst);
            let result = read(self.content.get());
            self.inside.set(self.inside.get() - 1);
            result
        }
        pub(in super::super) fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
            assert_eq!(self.inside.get(), 0, "a write meets a read or a write");
            self.inside.set(-1);
            self.step.load(Ordering::SeqCst);
            let result = write(self.content.get());
            self.inside.set(0);
            result
        }
    }
}

pub(super) fn spin_loop() {
    shuttle::hint::spin_loop();
}

macro_rules! const_fn {
    ($($item:item)*) => { $($item)* };
}
pub(super) use const_fn;
