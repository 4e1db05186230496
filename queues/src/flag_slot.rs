//! Flag slot: a slot that says itself whether it is filled.

use crossbeam_utils::CachePadded;

use super::hot::{HotField, Role};
use super::slot::{self, Slot};
use super::sync::atomic::AtomicBool;
use super::sync::const_fn;

/// The place of one element, and whether it is filled. What the flag allows to whom, the ring says.
#[repr(C)]
pub(crate) struct FlagSlot<T> {
    pub(crate) filled: AtomicBool,
    pub(crate) slot: Slot<T>,
}

impl<T> FlagSlot<T> {
    const_fn! {
        /// Makes a slot without an element.
        pub(crate) fn vacant() -> Self {
            Self { filled: AtomicBool::new(false), slot: Slot::vacant() }
        }
    }

    /// Describes slot `index` of a ring, in which producers write and consumers read elements and
    /// both write the flag.
    pub(crate) fn describe(
        &self,
        index: usize,
        [producers, consumers]: [Role; 2],
        visit: &mut dyn FnMut(HotField),
    ) {
        let Self { filled, slot } = self;
        let align = if index == 0 { align_of::<CachePadded<u8>>() } else { 1 };
        let start = core::ptr::from_ref(filled).addr();
        let before = core::ptr::from_ref(slot).addr() - start;
        let end = before + size_of_val(slot);
        let rest = size_of::<Self>() - end;
        let fields = [
            // The bytes between the flag and the element are nobody's; the flag has them.
            HotField::at("filled", start, before)
                .written_by(Role::Many("producers and consumers"))
                .aligned(align),
            HotField::of("slot", slot).written_by(producers).read_by(consumers),
            HotField::at("slot's padding", start + end, rest),
        ];
        for field in fields.into_iter().filter(|field| field.bytes > 0) {
            visit(field.nth(index).side_by_side("slots", slot::BECAUSE));
        }
    }
}
