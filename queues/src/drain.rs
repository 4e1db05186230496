//! Drain: how a ring drops what is left in it.

/// Pops and drops until nothing is left, also past elements whose `Drop` panics: the rest is
/// dropped while the panic goes up. A second panic then aborts, as it does for `Vec`.
pub(crate) fn drain<T>(pop: impl FnMut() -> Option<T>) {
    struct Rest<T, F: FnMut() -> Option<T>>(F);
    impl<T, F: FnMut() -> Option<T>> Drop for Rest<T, F> {
        fn drop(&mut self) {
            while (self.0)().is_some() {}
        }
    }
    if core::mem::needs_drop::<T>() {
        let mut rest = Rest(pop);
        while (rest.0)().is_some() {}
    }
}
