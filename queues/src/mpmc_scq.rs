//! Scalable circular queue: a lock-free ring for any number of producers and consumers, made of two
//! rings of indices.
//! # Algorithm
//! Elements lie in slots; `fq` holds the indices of vacant slots, `aq` those of filled ones in the
//! order of their elements. `try_push` takes an index from `fq` (if there is none it says full),
//! fills that slot and puts the index into `aq`; `try_pop` is the mirror image. A ring of indices
//! has twice as many entries as indices. To put one in, a thread draws a position from `tail` by an
//! addition and fills the position's entry by a CAS, if the entry is vacant and from an older cycle;
//! otherwise it draws again. To take one, it draws from `head`: the entry of this cycle is marked
//! vacant by an OR; an older vacant one is moved to this cycle, so that the late putter of this
//! position draws again; an older filled one, whose taker is late, is marked unsafe: only a putter
//! that sees `head` not beyond its position may fill it later. `threshold` counts how many more
//! attempts to take may fail since an index was put in; below 0 there is nothing. Who fails at `tail`
//! moves `tail` on to `head`.
//! # Why
//! Against the Vyukov ring a thread that stops inside an operation keeps nobody from anything but its
//! own slot, and positions are drawn by additions that never fail; it adds 3 RMWs an operation and
//! four words a slot. Against `mpmc_michael_scott` there is no word at which everybody's CAS fails.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `MpmcScq<T, Boxed>` | 896 | 128 | 14 | `aq.head` and `fq.tail` pairs: consumers, `fq.head` and `aq.tail` pairs: producers, and whoever catches up; `threshold` pairs: both; the rest: nobody |
//! | slot | 32 more than `T` | 8 at least | - | producer and consumer |
//! | endpoint | 8 | 8 | - | nobody |
//! # Cost
//! Uncontended operation: 4 RMWs, 1 store (push) or load (pop) of the element, 4 loads, 4 lines of
//! words and 1 to 3 of slots; and loads from what nobody writes. Empty or full for longer: 1 load.
//! # Progress
//! Lock-free: an index is put or taken, or an attempt to take ends, after a bounded number of steps
//! of all threads. A stopped thread keeps the one slot whose index it has, so `Full` may be said that
//! much early; nothing else waits for it. A thread may starve.
//! # Invariants
//! - I1: each index is in one entry of `fq` or of `aq`, or with the one thread that took it from
//!   there; a slot belongs to the thread that has its index.
//! - I2: slots whose indices are in `aq` hold elements, those in `fq` do not.
//! - I3: a position of `head` or `tail` is drawn once. An entry's cycle only grows, and it is filled
//!   only when it is vacant, so what is filled in a cycle is taken by the one that drew its position
//!   from `head`, and by nobody else.
//! - I4: whoever draws a position from `head` leaves its entry so that nothing is put there for it
//!   any more: of this cycle, or unsafe with `head` beyond it (E3).
//! - I5: while an index lies in a ring whose `head` has not drawn its position, attempts to take fail
//!   at older positions only. Those are fewer than the ring has entries: since the oldest of them
//!   was drawn, each index was put in once at most and made one putter draw again at most. With one
//!   more for each thread that drew before, they do not bring `threshold` below 0.
//! # Synchronization
//! | edge | release side | acquire side | publishes |
//! |---|---|---|---|
//! | E1 | CAS of the entry that puts into `aq` | load or failed CAS of the entry in `try_pop` | the element |
//! | E2 | CAS of the entry that puts into `fq` | load or failed CAS of the entry in `try_push` | that the element has been moved out |
//! | E3 | CAS that gives a position up | load or failed CAS of the entry when putting | that `head` is beyond the position |
//! | E4 | additions to `head` and `tail` | additions to `head` and `tail` | failed attempts, which `threshold` has counted (I5) |
//! # Errors and limits
//! Capacities from 1 to 2³⁰ (2¹⁴ with 32 bits), as far as the storage goes, which must have room for
//! the next power of two (2 at least). At most 65 536 threads inside an operation at once: with more,
//! an element may be overlooked until the next push. `Full` and empty are exact while no peer is inside
//! an operation; empty always. Cycles have the bits that indices leave over, 52 for 1024 slots: a
//! thread would be wrong that stops inside an operation while the others make half as many rounds
//! through the ring. Reclamation: none is needed.
//! # References
//! R. Nikolaev, "A Scalable, Portable, and Memory-Efficient Lock-Free FIFO Queue", DISC 2019, sections
//! 5.1 and 5.2, figure 8. Differs from the paper in: any capacity; a threshold for any number of
//! threads instead of at most one a slot; one mark for vacant entries instead of two; the entries of
//! both rings lie beside the element, which spreads neighbouring positions over lines.

use core::fmt;

use crossbeam_utils::CachePadded;

use super::contract::{
    CapacityError, Full, Order, Progress, Properties, Queue, SharedQueue, Side, WithCapacity,
};
use super::drain::drain;
use super::hot::{HotField, HotFields, Role};
use super::index_ring::{Geometry, IndexRing};
use super::laps::index_mask;
use super::rounded;
use super::shared::shared_ends;
use super::slot::{self, Slot};
use super::storage::Storage;
use super::sync::atomic::AtomicUsize;
use super::sync::const_fn;

/// The largest capacity: leaves more than half of a word for cycles.
pub(crate) const LARGEST: usize = 1 << (usize::BITS / 2 - 2);

/// How many threads may be inside an operation at once.
pub(crate) const THREADS: usize = 1 << 16;

/// The place of one element, and two entries of each ring.
#[repr(C)]
pub(crate) struct ScqSlot<T> {
    aq: [AtomicUsize; 2],
    fq: [AtomicUsize; 2],
    slot: Slot<T>,
}

impl<T> ScqSlot<T> {
    const_fn! {
        /// Makes a slot without an element, with these entries.
        pub(crate) fn vacant(entries: Entries) -> Self {
            let Entries { aq: [a, b], fq: [c, d] } = entries;
            Self {
                aq: [AtomicUsize::new(a), AtomicUsize::new(b)],
                fq: [AtomicUsize::new(c), AtomicUsize::new(d)],
                slot: Slot::vacant(),
            }
        }
    }
}

/// What the entries beside an element hold at first.
pub(crate) struct Entries {
    aq: [usize; 2],
    fq: [usize; 2],
}

impl Entries {
    /// Those of slot `number` in a queue of `capacity` that starts at position `start`.
    pub(crate) const fn of<const UNUSED: u32>(
        number: usize,
        start: usize,
        capacity: usize,
    ) -> Self {
        let lap = index_mask(capacity) + 1;
        let geometry = Geometry::<UNUSED>::of(2 * lap, 0);
        let other = number + lap;
        Self {
            aq: [geometry.initial(number, start, 0), geometry.initial(other, start, 0)],
            fq: [
                geometry.initial(number, start, capacity),
                geometry.initial(other, start, capacity),
            ],
        }
    }
}

/// Hands elements from any threads to any threads, whatever thread is stopped where.
///
/// ```
/// use queues::{Full, Inline, MpmcScq};
/// static RING: MpmcScq<u64, Inline<2>> = MpmcScq::new();
/// RING.try_push(1).unwrap();
/// RING.try_push(2).unwrap();
/// assert_eq!(RING.try_push(3), Err(Full(3)));
/// assert_eq!(RING.try_pop(), Some(1));
/// ```
///
/// `UNUSED` bits of the positions are not used: tests let positions wrap after few operations.
#[repr(C)]
pub struct MpmcScq<T, S: Storage, const UNUSED: u32 = 0> {
    aq: IndexRing,
    fq: IndexRing,
    geometry: Geometry<UNUSED>,
    capacity: usize,
    slots: S::Slots<ScqSlot<T>>,
}

// SAFETY: the queue owns its elements and its slots (contract of `Storage`); nothing else in it is
// bound to a thread.
unsafe impl<T: Send, S: Storage, const UNUSED: u32> Send for MpmcScq<T, S, UNUSED> {}
// SAFETY: through `&self` elements move in and out, each by the one thread that has its index (I1),
// so they have to be sendable and no more.
unsafe impl<T: Send, S: Storage, const UNUSED: u32> Sync for MpmcScq<T, S, UNUSED> {}

impl<T, S: Storage, const UNUSED: u32> MpmcScq<T, S, UNUSED> {
    const_fn! {
        /// Makes an empty queue over slots that are made for the same `capacity` and `start`.
        pub(crate) fn over(
            slots: S::Slots<ScqSlot<T>>,
            capacity: usize,
            start: usize,
            threads: usize,
        ) -> Self {
            let geometry = Geometry::<UNUSED>::of(2 * (index_mask(capacity) + 1), threads);
            let end = Geometry::<UNUSED>::advance(start, capacity);
            Self {
                aq: IndexRing::between(start, start, usize::MAX),
                fq: IndexRing::between(start, end, geometry.limit),
                geometry,
                capacity,
                slots,
            }
        }
    }

    /// Makes an empty queue whose rings start at entry `index` in lap `lap`, modulo the number of
    /// laps; tests start near the wrap.
    ///
    /// # Errors
    /// As `with_capacity`.
    #[doc(hidden)]
    pub fn starting_at(capacity: usize, lap: usize, index: usize) -> Result<Self, CapacityError> {
        Self::for_threads(capacity, lap, index, THREADS)
    }

    /// `starting_at` for at most `threads` threads inside an operation at once; tests let the
    /// threshold pass 0 after few operations.
    ///
    /// # Errors
    /// As `with_capacity`.
    #[doc(hidden)]
    pub fn for_threads(
        capacity: usize,
        lap: usize,
        index: usize,
        threads: usize,
    ) -> Result<Self, CapacityError> {
        if capacity > LARGEST {
            return Err(CapacityError::TooLarge { largest: LARGEST });
        }
        let entries = 2 * (index_mask(capacity) + 1);
        let number = lap.wrapping_mul(entries).wrapping_add(index % entries);
        let start = Geometry::<UNUSED>::advance(0, number);
        let slots = rounded::allocate::<S, _>(capacity, |number| {
            ScqSlot::vacant(Entries::of::<UNUSED>(number, start, capacity))
        })?;
        Ok(Self::over(slots, capacity, start, threads))
    }

    /// Offsets in bytes of the words that pops and that pushes draw from: `aq.head`, `aq.tail`.
    pub const OFFSETS: (usize, usize) = {
        let aq = core::mem::offset_of!(Self, aq);
        (aq + IndexRing::OFFSETS.0, aq + IndexRing::OFFSETS.1)
    };

    /// # Safety
    /// `number` is below the number of slots.
    #[inline(always)]
    unsafe fn slot(&self, number: usize) -> &ScqSlot<T> {
        // SAFETY: the caller's duty.
        unsafe { S::as_slice(&self.slots).get_unchecked(number) }
    }

    /// The two entries at a number of the rings, and which of them it is.
    #[inline(always)]
    fn entry(&self, number: usize) -> (&ScqSlot<T>, usize) {
        let mask = self.geometry.index_mask >> 1;
        // SAFETY: there are `mask + 1` slots, half as many as entries.
        (unsafe { self.slot(number & mask) }, usize::from(number > mask))
    }

    #[inline(always)]
    fn aq_entry(&self, number: usize) -> &AtomicUsize {
        let (slot, half) = self.entry(number);
        &slot.aq[half]
    }

    #[inline(always)]
    fn fq_entry(&self, number: usize) -> &AtomicUsize {
        let (slot, half) = self.entry(number);
        &slot.fq[half]
    }

    /// Appends `value`.
    ///
    /// # Errors
    /// [`Full`] hands the value back when no slot is vacant.
    #[inline]
    pub fn try_push(&self, value: T) -> Result<(), Full<T>> {
        let Some(index) = self.fq.take(&self.geometry, |number| self.fq_entry(number)) else {
            return Err(Full(value));
        };
        // SAFETY: indices are those of slots (I1).
        let slot = unsafe { self.slot(index) };
        // SAFETY: the index is ours and the slot vacant (I1, I2), with E2 behind us.
        unsafe { slot.slot.put(value) };
        self.aq.put(&self.geometry, |number| self.aq_entry(number), index);
        Ok(())
    }

    /// Takes the oldest element, if there is one.
    #[inline]
    pub fn try_pop(&self) -> Option<T> {
        let index = self.aq.take(&self.geometry, |number| self.aq_entry(number))?;
        // SAFETY: indices are those of slots (I1).
        let slot = unsafe { self.slot(index) };
        // SAFETY: the index is ours and the slot filled (I1, I2), with E1 behind us.
        let value = unsafe { slot.slot.take() };
        self.fq.put(&self.geometry, |number| self.fq_entry(number), index);
        Some(value)
    }
}

impl<T, S: Storage, const UNUSED: u32> WithCapacity for MpmcScq<T, S, UNUSED> {
    fn with_capacity(capacity: usize) -> Result<Self, CapacityError> {
        Self::starting_at(capacity, 0, 0)
    }
}

impl<T: Send, S: Storage, const UNUSED: u32> Queue<T> for MpmcScq<T, S, UNUSED> {
    shared_ends!(T);

    const PROPERTIES: Properties = Properties {
        producers: Side::Multi,
        consumers: Side::Multi,
        bounded: true,
        order: Order::Fifo,
        progress: Progress::LockFree,
        linearizable: false,
    };
    const BYTES_PER_SLOT: usize = size_of::<ScqSlot<T>>();

    #[inline]
    fn capacity(&self) -> usize {
        self.capacity
    }
}

impl<T: Send, S: Storage, const UNUSED: u32> SharedQueue<T> for MpmcScq<T, S, UNUSED> {
    #[inline]
    fn try_push(&self, value: T) -> Result<(), Full<T>> {
        self.try_push(value)
    }

    #[inline]
    fn try_pop(&self) -> Option<T> {
        self.try_pop()
    }
}

impl<T, S: Storage, const UNUSED: u32> HotFields for MpmcScq<T, S, UNUSED> {
    const ALIGNMENT: usize = align_of::<CachePadded<u8>>();
    const ALONE: bool = true;

    fn hot_fields(&self, visit: &mut dyn FnMut(HotField)) {
        let Self { aq, fq, geometry, capacity, slots } = self;
        let words = ["aq.tail", "aq.head", "aq.threshold"];
        aq.describe(words, ["producers", "consumers"], visit);
        let words = ["fq.tail", "fq.head", "fq.threshold"];
        fq.describe(words, ["consumers", "producers"], visit);
        visit(HotField::of("geometry", geometry).read_by(Role::Anybody));
        visit(HotField::of("capacity", capacity));
        visit(HotField::between(capacity, slots));
        visit(S::header(slots).read_by(Role::Anybody));
        let both = Role::Many("producers and consumers");
        for (index, ScqSlot { aq, fq, slot }) in S::as_slice(slots).iter().enumerate() {
            let align = if index == 0 { align_of::<CachePadded<u8>>() } else { 1 };
            let slot = HotField::of("slot", slot).written_by(Role::Many("producers"));
            for field in [
                HotField::of("aq's entries", aq).written_by(both).aligned(align),
                HotField::of("fq's entries", fq).written_by(both),
                slot.read_by(Role::Many("consumers")),
            ] {
                visit(field.nth(index).side_by_side("slots", slot::BECAUSE));
            }
        }
        visit(HotField::rest(self, slots));
    }
}

impl<T, S: Storage, const UNUSED: u32> Drop for MpmcScq<T, S, UNUSED> {
    fn drop(&mut self) {
        drain(|| self.try_pop());
    }
}

impl<T, S: Storage, const UNUSED: u32> fmt::Debug for MpmcScq<T, S, UNUSED> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MpmcScq").finish_non_exhaustive()
    }
}
