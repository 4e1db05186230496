//! Slots on the heap, as many as the caller wants.

use alloc::alloc::{alloc, dealloc};
use core::alloc::Layout;
use core::fmt;
use core::marker::PhantomData;
use core::ptr::NonNull;
use core::slice;

use crossbeam_utils::CachePadded;

use super::contract::CapacityError;
use super::hot::HotField;
use super::storage::Storage;

/// Any number of slots on the heap.
#[derive(Debug, Clone, Copy)]
pub struct Boxed;

/// The slots of a ring over [`Boxed`].
pub struct BoxedSlots<Slot> {
    first: NonNull<Slot>,
    capacity: usize,
    owns: PhantomData<Slot>,
}

impl<Slot> BoxedSlots<Slot> {
    /// Where the slots lie; `None` if they are more than an object may have.
    fn layout(capacity: usize) -> Option<Layout> {
        let slots = Layout::array::<Slot>(capacity).ok()?;
        Some(slots.align_to(align_of::<CachePadded<u8>>()).ok()?.pad_to_align())
    }

    fn largest() -> usize {
        let pair = align_of::<CachePadded<Slot>>();
        (isize::MAX as usize - (pair - 1)) / size_of::<Slot>().max(1)
    }

    fn allocate(
        capacity: usize,
        mut vacant: impl FnMut(usize) -> Slot,
    ) -> Result<Self, CapacityError> {
        if capacity == 0 {
            return Err(CapacityError::Zero);
        }
        let largest = Self::largest();
        let layout = Self::layout(capacity)
            .filter(|_| capacity <= largest)
            .ok_or(CapacityError::TooLarge { largest })?;
        if layout.size() == 0 {
            let first = NonNull::dangling();
            return Ok(Self { first, capacity, owns: PhantomData });
        }
        // SAFETY: the size is not 0.
        let bytes = unsafe { alloc(layout) };
        let first = NonNull::new(bytes.cast::<Slot>())
            .ok_or(CapacityError::OutOfMemory { bytes: layout.size() })?;
        for i in 0..capacity {
            // SAFETY: `i` is below the capacity for which the layout was made.
            let slot = unsafe { first.add(i) };
            // SAFETY: the slot lies in the allocation, is aligned, and nobody else has it.
            unsafe { slot.write(vacant(i)) };
        }
        Ok(Self { first, capacity, owns: PhantomData })
    }
}

impl<Slot> Drop for BoxedSlots<Slot> {
    fn drop(&mut self) {
        let slots = NonNull::slice_from_raw_parts(self.first, self.capacity);
        // SAFETY: made by `allocate`, all slots with a value, and dropped once.
        unsafe { slots.drop_in_place() };
        if let Some(layout) = Self::layout(self.capacity).filter(|layout| layout.size() > 0) {
            // SAFETY: allocated with the same layout, since the capacity never changes.
            unsafe { dealloc(self.first.as_ptr().cast(), layout) };
        }
    }
}

impl<Slot> fmt::Debug for BoxedSlots<Slot> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BoxedSlots").field("capacity", &self.capacity).finish_non_exhaustive()
    }
}

// SAFETY: the slots are owned like those of a `Box<[Slot]>`.
unsafe impl<Slot: Send> Send for BoxedSlots<Slot> {}
// SAFETY: as the line above.
unsafe impl<Slot: Sync> Sync for BoxedSlots<Slot> {}

// SAFETY: `capacity` is what `allocate` was asked for; the allocation stays where it is.
unsafe impl Storage for Boxed {
    type Slots<Slot> = BoxedSlots<Slot>;

    fn allocate<Slot>(
        capacity: usize,
        vacant: impl FnMut(usize) -> Slot,
    ) -> Result<Self::Slots<Slot>, CapacityError> {
        BoxedSlots::allocate(capacity, vacant)
    }

    fn header<Slot>(slots: &Self::Slots<Slot>) -> HotField {
        HotField::of("slots' address", slots)
    }

    #[inline]
    fn as_slice<Slot>(slots: &Self::Slots<Slot>) -> &[Slot] {
        // SAFETY: `capacity` slots with values from `first` on, borrowed as long as `slots`.
        unsafe { slice::from_raw_parts(slots.first.as_ptr(), slots.capacity) }
    }
}
