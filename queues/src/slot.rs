//! Slot: the place of one element. Whether it holds one, the ring knows.

use core::mem::MaybeUninit;

use super::sync::cell::UnsafeCell;
use super::sync::const_fn;

/// The place of one element, which is never dropped by the slot itself.
#[repr(transparent)]
pub(crate) struct Slot<T>(UnsafeCell<MaybeUninit<T>>);

impl<T> Slot<T> {
    const_fn! {
        /// Makes a slot without an element.
        pub(crate) fn vacant() -> Self {
            Self(UnsafeCell::new(MaybeUninit::uninit()))
        }
    }

    /// Moves `value` in; what the slot held is forgotten.
    ///
    /// # Safety
    /// Nobody else is inside `put` or `take` of this slot, and the last of them happened before.
    #[inline(always)]
    pub(crate) unsafe fn put(&self, value: T) {
        // SAFETY: the pointer is the cell's; by the caller's duty the access is exclusive.
        self.0.with_mut(|slot| unsafe { slot.cast::<T>().write(value) });
    }

    /// Moves the element out.
    ///
    /// # Safety
    /// The last call on this slot was a `put` and happened before; nobody else is inside one.
    #[inline(always)]
    pub(crate) unsafe fn take(&self) -> T {
        // SAFETY: the pointer is the cell's; by the caller's duty it holds an element, which is
        // not taken again.
        self.0.with(|slot| unsafe { slot.cast::<T>().read() })
    }
}
