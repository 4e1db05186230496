//! Slots inside the ring itself, and rings that can stand in a `static`.
//!
//! Loom's atomics and cells cannot be made in a `const`, so the `const` constructors of all rings
//! stand here and not in the rings' files: the model tests compile those again, and not this one.

use core::fmt;

use crossbeam_utils::CachePadded;

use super::contract::CapacityError;
use super::deque_chase_lev::DequeChaseLev;
use super::deque_packed_fifo::{self, DequePackedFifo};
use super::flag_slot::FlagSlot;
use super::hot::HotField;
use super::laps::LARGEST;
use super::mpmc_michael_scott::{self, MpmcMichaelScott, NodeSlot};
use super::mpmc_ring_rte::MpmcRingRte;
use super::mpmc_ring_vyukov::MpmcRingVyukov;
use super::mpmc_scq::{self, Entries, MpmcScq, ScqSlot};
use super::mpmc_ticket::MpmcTicket;
use super::mutex_ring::MutexRing;
use super::slot::Slot;
use super::spsc_fastforward::SpscFastForward;
use super::spsc_lamport::SpscLamport;
use super::spsc_ring_cached::SpscRingCached;
use super::spsc_ring_unpadded::SpscRingUnpadded;
use super::storage::Storage;
use super::turn_slot::TurnSlot;

/// At most `N` slots inside the ring itself.
#[derive(Debug, Clone, Copy)]
pub struct Inline<const N: usize>;

/// The slots of a ring over [`Inline`].
#[repr(C)]
pub struct InlineSlots<Slot, const N: usize> {
    /// 1..=N, never written after the ring was made.
    capacity: usize,
    slots: CachePadded<[Slot; N]>,
}

impl<Slot, const N: usize> InlineSlots<Slot, N> {
    /// Takes all `N` slots.
    pub(crate) const fn filled(slots: [Slot; N]) -> Self {
        Self { capacity: N, slots: CachePadded::new(slots) }
    }
}

impl<Slot, const N: usize> fmt::Debug for InlineSlots<Slot, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InlineSlots").field("capacity", &self.capacity).finish_non_exhaustive()
    }
}

// SAFETY: `capacity` is what `allocate` was asked for and at most N; an array is its slots.
unsafe impl<const N: usize> Storage for Inline<N> {
    type Slots<Slot> = InlineSlots<Slot, N>;

    fn allocate<Slot>(
        capacity: usize,
        vacant: impl FnMut(usize) -> Slot,
    ) -> Result<Self::Slots<Slot>, CapacityError> {
        match capacity {
            0 => Err(CapacityError::Zero),
            _ if capacity > N => Err(CapacityError::TooLarge { largest: N }),
            _ => {
                let slots = CachePadded::new(core::array::from_fn(vacant));
                Ok(InlineSlots { capacity, slots })
            }
        }
    }

    fn header<Slot>(slots: &Self::Slots<Slot>) -> HotField {
        HotField::of("slots' capacity", &slots.capacity).padded_in(slots)
    }

    #[inline]
    fn as_slice<Slot>(slots: &Self::Slots<Slot>) -> &[Slot] {
        // SAFETY: `capacity` is at most N.
        unsafe { slots.slots.get_unchecked(..slots.capacity) }
    }
}

impl<T, const N: usize> SpscRingCached<T, Inline<N>> {
    /// Makes an empty ring of `N` slots.
    ///
    /// ```
    /// static RING: queues::SpscRingCached<u64, queues::Inline<8>> = queues::SpscRingCached::new();
    /// ```
    pub const fn new() -> Self {
        const { assert!(N > 0, "a queue needs a capacity of at least 1") };
        Self::over(InlineSlots::filled([const { Slot::vacant() }; N]))
    }
}

impl<T, const N: usize> SpscRingUnpadded<T, Inline<N>> {
    /// Makes an empty ring of `N` slots.
    pub const fn new() -> Self {
        const { assert!(N > 0, "a queue needs a capacity of at least 1") };
        Self::over(InlineSlots::filled([const { Slot::vacant() }; N]))
    }
}

impl<T, const N: usize> MpmcRingVyukov<T, Inline<N>> {
    /// Makes an empty ring of `N` slots.
    ///
    /// ```
    /// static RING: queues::MpmcRingVyukov<u64, queues::Inline<8>> = queues::MpmcRingVyukov::new();
    /// assert!(RING.try_push(1).is_ok());
    /// assert_eq!(RING.try_pop(), Some(1));
    /// ```
    pub const fn new() -> Self {
        const { assert!(N > 0, "a queue needs a capacity of at least 1") };
        const { assert!(N <= LARGEST, "more slots than positions can number") };
        Self::over(InlineSlots::filled([const { TurnSlot::vacant(0) }; N]), N)
    }
}

impl<T, R, const N: usize> MutexRing<T, Inline<N>, R> {
    /// Makes an empty ring of `N` slots.
    ///
    /// ```
    /// static RING: queues::MutexRing<u64, queues::Inline<8>> = queues::MutexRing::new();
    /// assert!(RING.try_push(1).is_ok());
    /// assert_eq!(RING.try_pop(), Some(1));
    /// ```
    pub const fn new() -> Self {
        const { assert!(N > 0, "a queue needs a capacity of at least 1") };
        Self::over(InlineSlots::filled([const { Slot::vacant() }; N]))
    }
}

impl<T, const N: usize> SpscLamport<T, Inline<N>> {
    /// Makes an empty ring of `N` slots.
    pub const fn new() -> Self {
        const { assert!(N > 0, "a queue needs a capacity of at least 1") };
        Self::over(InlineSlots::filled([const { Slot::vacant() }; N]))
    }
}

impl<T, const N: usize> SpscFastForward<T, Inline<N>> {
    /// Makes an empty ring of `N` slots.
    pub const fn new() -> Self {
        const { assert!(N > 0, "a queue needs a capacity of at least 1") };
        Self::over(InlineSlots::filled([const { FlagSlot::vacant() }; N]), 0)
    }
}

impl<T, const N: usize> DequeChaseLev<T, Inline<N>> {
    /// Makes an empty deque of `N` slots.
    pub const fn new() -> Self {
        const { assert!(N > 0, "a queue needs a capacity of at least 1") };
        const { assert!(N <= LARGEST, "more slots than positions can number") };
        Self::over(InlineSlots::filled([const { FlagSlot::vacant() }; N]), N, 0)
    }
}

impl<T, const N: usize> DequePackedFifo<T, Inline<N>> {
    /// Makes an empty deque of `N` slots, a power of two that is at least 2.
    pub const fn new() -> Self {
        const { assert!(N > 1 && N.is_power_of_two(), "positions need a power of two of slots") };
        const { assert!(N <= deque_packed_fifo::LARGEST, "more slots than positions can number") };
        Self::over(InlineSlots::filled([const { Slot::vacant() }; N]), N, 0)
    }
}

impl<T, R, const N: usize> MpmcRingRte<T, Inline<N>, R> {
    /// Makes an empty ring of `N` slots, a power of two that is at least 2.
    pub const fn new() -> Self {
        const { assert!(N > 1 && N.is_power_of_two(), "positions need a power of two of slots") };
        const { assert!(N <= LARGEST, "more slots than positions can number") };
        Self::over(InlineSlots::filled([const { Slot::vacant() }; N]), N, 0)
    }
}

impl<T, R, const N: usize> MpmcTicket<T, Inline<N>, R> {
    /// Makes an empty ring of `N` slots, a power of two that is at least 2.
    ///
    /// ```compile_fail
    /// static RING: queues::MpmcTicket<u64, queues::Inline<3>> = queues::MpmcTicket::new();
    /// ```
    pub const fn new() -> Self {
        const { assert!(N > 1 && N.is_power_of_two(), "tickets need a power of two of slots") };
        const { assert!(N <= LARGEST, "more slots than tickets can number") };
        Self::over(InlineSlots::filled([const { TurnSlot::vacant(0) }; N]), N, 0)
    }
}

impl<T, const N: usize> MpmcScq<T, Inline<N>> {
    /// Makes an empty queue of `N` slots, a power of two that is at least 2.
    pub const fn new() -> Self {
        const { assert!(N > 1 && N.is_power_of_two(), "its rings need a power of two of slots") };
        const { assert!(N <= mpmc_scq::LARGEST, "more slots than entries can number") };
        let mut slots = [const { ScqSlot::vacant(Entries::of::<0>(0, 0, N)) }; N];
        let mut number = 1;
        while number < N {
            slots[number] = ScqSlot::vacant(Entries::of::<0>(number, 0, N));
            number += 1;
        }
        Self::over(InlineSlots::filled(slots), N, 0, mpmc_scq::THREADS)
    }
}

impl<T, const N: usize> MpmcMichaelScott<T, Inline<N>> {
    /// Makes an empty queue of `N` slots.
    pub const fn new() -> Self {
        const { assert!(N > 0, "a queue needs a capacity of at least 1") };
        const { assert!(N <= mpmc_michael_scott::LARGEST, "more slots than nodes can number") };
        let mut slots = [const { NodeSlot::free(0, N) }; N];
        let mut number = 1;
        while number < N {
            slots[number] = NodeSlot::free(number, N);
            number += 1;
        }
        Self::over(InlineSlots::filled(slots), N, 0)
    }
}

impl<T, const N: usize> Default for SpscRingCached<T, Inline<N>> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, const N: usize> Default for SpscRingUnpadded<T, Inline<N>> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, const N: usize> Default for MpmcRingVyukov<T, Inline<N>> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, R, const N: usize> Default for MutexRing<T, Inline<N>, R> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, const N: usize> Default for SpscLamport<T, Inline<N>> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, const N: usize> Default for SpscFastForward<T, Inline<N>> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, const N: usize> Default for DequeChaseLev<T, Inline<N>> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, const N: usize> Default for DequePackedFifo<T, Inline<N>> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, const N: usize> Default for MpmcScq<T, Inline<N>> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, const N: usize> Default for MpmcMichaelScott<T, Inline<N>> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, R, const N: usize> Default for MpmcRingRte<T, Inline<N>, R> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, R, const N: usize> Default for MpmcTicket<T, Inline<N>, R> {
    fn default() -> Self {
        Self::new()
    }
}
