//! Storage: where a ring keeps its slots.
//!
//! A storage is a type parameter of the ring: [`Inline`] needs no allocator and can stand in a
//! `static`, [`Boxed`] (feature `alloc`) takes its capacity at run time. Both begin the slots on a
//! pair of lines of their own, so that a slot shares no line with a position or with a stranger.

use super::contract::CapacityError;
use super::hot::HotField;

/// Where a ring keeps its slots.
///
/// # Safety
/// An implementation guarantees that
/// - `as_slice` returns as many slots as `allocate` was asked for, and the same ones each time
///   until the `Slots` are moved or dropped;
/// - the `Slots` own their slots and nothing that is bound to a thread: they may be sent if the
///   slots may be, and shared if the slots may be.
pub unsafe trait Storage: 'static {
    /// The slots of one ring.
    type Slots<Slot>;

    /// Makes `capacity` slots, slot `i` as `vacant(i)` returns it. Slots without bytes may be made
    /// without a call.
    ///
    /// # Errors
    /// When `capacity` is 0, too large, or more than the allocator has.
    fn allocate<Slot>(
        capacity: usize,
        vacant: impl FnMut(usize) -> Slot,
    ) -> Result<Self::Slots<Slot>, CapacityError>;

    /// Describes what lies with the ring itself and leads to the slots, which nobody writes once
    /// the ring was made. The ring says who reads it.
    fn header<Slot>(slots: &Self::Slots<Slot>) -> HotField;

    /// Reaches the slots.
    fn as_slice<Slot>(slots: &Self::Slots<Slot>) -> &[Slot];
}
