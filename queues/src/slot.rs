//! Slot: the place of one element. Whether it holds one, the ring knows.

use core::mem::MaybeUninit;

use crossbeam_utils::CachePadded;

use super::hot::HotField;
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

    /// Makes this slot hold bit for bit what `other` holds; which of the two is taken from then on,
    /// the caller decides.
    ///
    /// # Safety
    /// Nobody else is inside an operation of this slot, nor inside `put` of the other one, and the
    /// last of them happened before.
    #[inline(always)]
    #[cfg_attr(not(feature = "alloc"), expect(dead_code, reason = "only what grows copies"))]
    pub(crate) unsafe fn copy(&self, other: &Self) {
        self.0.with_mut(|to| {
            // SAFETY: the pointers are the cells'; by the caller's duty one is nobody else's and
            // nobody writes through the other. Uninitialised bytes are copied as such.
            other.0.with(|from| unsafe { to.copy_from_nonoverlapping(from, 1) });
        });
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

    /// Reaches the element where it lies.
    ///
    /// # Safety
    /// The last call on this slot was a `put` and happened before; nobody calls another one while
    /// the reference lives.
    #[inline(always)]
    pub(crate) unsafe fn peek(&self) -> &T {
        // SAFETY: the pointer is the cell's; by the caller's duty it holds an element that stays.
        self.0.with(|slot| unsafe { &*slot.cast::<T>() })
    }
}

/// Why neighbouring slots may share a line.
pub(crate) const BECAUSE: &str = "elements pass in order, so a line that carries several saves \
                                  transfers; only a ring that is nearly empty or nearly full \
                                  pays for it";

/// Describes slots that hold elements and nothing else; the ring says who uses them.
pub(crate) fn describe<T>(slots: &[Slot<T>]) -> impl Iterator<Item = HotField> + '_ {
    slots.iter().enumerate().map(|(index, slot)| {
        let align = if index == 0 { align_of::<CachePadded<T>>() } else { align_of::<T>() };
        let slot = HotField::of("slots", slot).nth(index).aligned(align);
        slot.side_by_side("slots", BECAUSE)
    })
}
