//! Block: slots of an unbounded queue, on the heap, linked to the next ones.

use alloc::boxed::Box;
use core::ptr;

use crossbeam_utils::CachePadded;

use super::boxed::{Boxed, BoxedSlots};
use super::contract::CapacityError;
use super::hot::{HotField, Role};
use super::on_heap::try_box;
use super::slot::{self, Slot};
use super::storage::Storage;
use super::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, Ordering};

/// The place of one element in a block.
#[repr(C)]
pub(crate) struct BlockSlot<T> {
    /// Whether the element is there.
    pub(crate) filled: AtomicBool,
    /// 1 if its reader, or who frees the block, was here.
    pub(crate) left: AtomicU8,
    pub(crate) slot: Slot<T>,
}

/// A block of slots, each used once before the block is made anew.
pub(crate) struct Block<T> {
    pub(crate) next: AtomicPtr<OwnLines<T>>,
    pub(crate) slots: BoxedSlots<BlockSlot<T>>,
}

/// Blocks are linked by their addresses, and share no line with a stranger.
pub(crate) type OwnLines<T> = CachePadded<Block<T>>;

impl<T> Block<T> {
    /// Makes a block whose slots before `first` have been used already.
    pub(crate) fn make(slots: usize, first: usize) -> Result<Box<OwnLines<T>>, CapacityError> {
        let vacant = |index| BlockSlot {
            filled: AtomicBool::new(false),
            left: AtomicU8::new(u8::from(index < first)),
            slot: Slot::vacant(),
        };
        let slots = Boxed::allocate(slots, vacant)?;
        let next = AtomicPtr::new(ptr::null_mut());
        let refused = CapacityError::OutOfMemory { bytes: size_of::<OwnLines<T>>() };
        try_box(CachePadded::new(Self { next, slots })).map_err(|_| refused)
    }

    /// The slot at `index`.
    ///
    /// # Safety
    /// `index` is below the number of slots.
    #[inline(always)]
    pub(crate) unsafe fn at(&self, index: usize) -> &BlockSlot<T> {
        // SAFETY: the caller's duty.
        unsafe { Boxed::as_slice(&self.slots).get_unchecked(index) }
    }

    /// Makes the block what it was when it was made.
    pub(crate) fn renew(&mut self) {
        // ORDERING: Relaxed, all three - the block is borrowed exclusively.
        self.next.store(ptr::null_mut(), Ordering::Relaxed);
        for slot in Boxed::as_slice(&self.slots) {
            slot.filled.store(false, Ordering::Relaxed);
            slot.left.store(0, Ordering::Relaxed);
        }
    }
}

impl<T> BlockSlot<T> {
    /// Describes slot `index` of a block.
    pub(crate) fn describe(&self, index: usize, visit: &mut dyn FnMut(HotField)) {
        let Self { filled, left: _, slot } = self;
        let align = if index == 0 { align_of::<CachePadded<u8>>() } else { 1 };
        let start = core::ptr::from_ref(filled).addr();
        let before = core::ptr::from_ref(slot).addr() - start;
        let end = before + size_of_val(slot);
        let fields = [
            // The bytes between the flags and the element are nobody's; the flags have them.
            HotField::at("flags", start, before)
                .written_by(Role::Many("producers and consumers"))
                .aligned(align),
            HotField::of("slot", slot)
                .written_by(Role::Many("producers"))
                .read_by(Role::Many("consumers")),
            HotField::at("slot's padding", start + end, size_of::<Self>() - end),
        ];
        for field in fields.into_iter().filter(|field| field.bytes > 0) {
            visit(field.nth(index).side_by_side("slots", slot::BECAUSE));
        }
    }
}
