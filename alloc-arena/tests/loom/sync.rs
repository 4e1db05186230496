//! The `sync` module of the models: loom's types in the shape of the crate's own.

pub(super) mod atomic {
    pub(in super::super) use loom::sync::atomic::Ordering;

    /// Loom remembers the last access to a word only, so a thread that loads a word before it
    /// stores to it hides another thread's earlier load from loom, which then never tries the
    /// store before that load. The remedy is a step in front of each load that changes nothing,
    /// orders nothing, and counts as an access that depends on all others of its kind.
    macro_rules! words {
        ($($name:ident of $value:ty;)*) => { $(
            #[derive(Debug)]
            pub(in super::super) struct $name {
                value: loom::sync::atomic::$name,
                step: loom::sync::atomic::AtomicBool,
            }

            #[expect(dead_code, reason = "the shipped files use a part of each")]
            impl $name {
                pub(in super::super) fn new(value: $value) -> Self {
                    Self {
                        value: loom::sync::atomic::$name::new(value),
                        step: loom::sync::atomic::AtomicBool::new(false),
                    }
                }
                pub(in super::super) fn load(&self, order: Ordering) -> $value {
                    let relaxed = Ordering::Relaxed;
                    self.step.compare_exchange(true, true, relaxed, relaxed).unwrap_err();
                    self.value.load(order)
                }
                pub(in super::super) fn store(&self, value: $value, order: Ordering) {
                    self.value.store(value, order);
                }
                pub(in super::super) fn swap(&self, value: $value, order: Ordering) -> $value {
                    self.value.swap(value, order)
                }
                pub(in super::super) fn fetch_add(&self, n: $value, order: Ordering) -> $value {
                    self.value.fetch_add(n, order)
                }
                pub(in super::super) fn fetch_or(&self, n: $value, order: Ordering) -> $value {
                    self.value.fetch_or(n, order)
                }
                pub(in super::super) fn fetch_and(&self, n: $value, order: Ordering) -> $value {
                    self.value.fetch_and(n, order)
                }
                pub(in super::super) fn compare_exchange(
                    &self,
                    old: $value,
                    new: $value,
                    success: Ordering,
                    failure: Ordering,
                ) -> Result<$value, $value> {
                    self.value.compare_exchange(old, new, success, failure)
                }
                pub(in super::super) fn compare_exchange_weak(
                    &self,
                    old: $value,
                    new: $value,
                    success: Ordering,
                    failure: Ordering,
                ) -> Result<$value, $value> {
                    self.value.compare_exchange_weak(old, new, success, failure)
                }
            }
        )* };
    }
    words! {
        AtomicUsize of usize;
        AtomicU32 of u32;
    }

    /// Loom orders a store and another thread's exchange only partly, so a waiter that swaps
    /// `true` into `true` for ever never meets the holder's `false`. Such a swap is modelled
    /// as the failed exchange that it is for everyone who looks at values; its orderings are
    /// the weaker for it, never the stronger.
    #[derive(Debug)]
    pub(in super::super) struct AtomicBool(loom::sync::atomic::AtomicBool);

    impl AtomicBool {
        pub(in super::super) fn new(value: bool) -> Self {
            Self(loom::sync::atomic::AtomicBool::new(value))
        }
        pub(in super::super) fn load(&self, order: Ordering) -> bool {
            self.0.load(order)
        }
        pub(in super::super) fn store(&self, value: bool, order: Ordering) {
            self.0.store(value, order);
        }
        pub(in super::super) fn swap(&self, value: bool, order: Ordering) -> bool {
            match self.0.compare_exchange(!value, value, order, Ordering::Relaxed) {
                Ok(old) | Err(old) => old,
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
