//! Turn slot: a slot with a word that says whose turn it is.

use crossbeam_utils::CachePadded;

use super::hot::{HotField, Role};
use super::slot::{self, Slot};
use super::sync::atomic::AtomicUsize;
use super::sync::const_fn;

/// The place of one element, and whose turn it is. What a turn allows to whom, the ring says.
#[repr(C)]
pub(crate) struct TurnSlot<T> {
    pub(crate) turn: AtomicUsize,
    pub(crate) slot: Slot<T>,
}

impl<T> TurnSlot<T> {
    const_fn! {
        /// Makes a slot without an element.
        pub(crate) fn vacant(turn: usize) -> Self {
            Self { turn: AtomicUsize::new(turn), slot: Slot::vacant() }
        }
    }
}

/// Describes the slots of a ring for many on both sides.
pub(crate) fn describe<T>(slots: &[TurnSlot<T>], visit: &mut dyn FnMut(HotField)) {
    for (index, TurnSlot { turn, slot }) in slots.iter().enumerate() {
        let align = if index == 0 { align_of::<CachePadded<u8>>() } else { 1 };
        let both = Role::Many("producers and consumers");
        let turn = HotField::of("turn", turn).written_by(both).aligned(align);
        let slot = HotField::of("slot", slot).written_by(Role::Many("producers"));
        let slot = slot.read_by(Role::Many("consumers"));
        visit(turn.nth(index).side_by_side("slots", slot::BECAUSE));
        visit(slot.nth(index).side_by_side("slots", slot::BECAUSE));
    }
}
