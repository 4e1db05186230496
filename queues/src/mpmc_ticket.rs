//! Ticket ring: any number of producers and consumers, each position handed out by one addition
//! that never fails.
//! # Algorithm
//! `room` counts vacant slots that nobody has reserved, `items` elements that nobody has. `try_push`
//! takes one of `room` (if there is none it puts back what it took and says full), draws a ticket
//! from `tail`, waits until its slot's `turn` is that of its lap, puts the element in, stores
//! `lap + 1` and adds one to `items`. `try_pop` is the mirror image: one of `items`, a ticket from
//! `head`, `lap + 1`, the turn of the next lap, one more in `room`. There are as many slots as the
//! next power of two, so a mask takes a ticket apart.
//! # Why
//! Against the Vyukov ring no operation repeats a failed CAS, so the cost of an operation does not
//! grow with the number of threads beside it; it adds two RMWs an operation, on counts that both
//! sides write, and waiting.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `MpmcTicket<T, Boxed>` | 640 | 128 | 10 | `tail` pair: producers; `head` pair: consumers; `room` and `items` pairs: both; the rest: nobody |
//! | slot | 8 more than `T` | 8 at least | - | producer and consumer |
//! | endpoint | 8 | 8 | - | nobody |
//! # Cost
//! Uncontended operation: 3 RMWs, 1 store, 1 store (push) or load (pop) of the element, 2 loads,
//! 4 lines; and loads from what nobody writes. An operation that finds the queue full or empty for
//! longer: 1 load.
//! # Progress
//! Blocking: whoever has a ticket waits for the one that had the slot before, and only for one that
//! is inside an operation (I4). A thread stopped inside stops who comes to its slot, and in time all
//! of both sides. Nothing that a user wrote runs there. Tickets are served in their order.
//! # Invariants
//! - I1: `room` is the capacity less the pushes that were admitted and plus the pops that ended,
//!   `items` the pushes that ended less the pops that were admitted; those that are about to be
//!   refused make them smaller for a moment, never larger.
//! - I2: a ticket is drawn once, by a caller that was admitted.
//! - I3: turns of a slot only grow: to `lap + 1` by the push with that lap's ticket, to the next lap
//!   by the pop with it. From seeing its turn to storing the next one, the slot's element belongs to
//!   the ticket's owner.
//! - I4: before ticket n of a push is admitted n + 1 - capacity pops have ended, so that of the slot's
//!   last element has its ticket and is inside `try_pop`, or has ended; before ticket n of a pop is
//!   admitted n + 1 pushes have ended, so push n has its ticket.
//! # Synchronization
//! | edge | release side | acquire side | publishes |
//! |---|---|---|---|
//! | E1 | store of `turn` in `try_push` | load of `turn` in `try_pop` | the element |
//! | E2 | store of `turn` in `try_pop` | load of `turn` in `try_push` | that the element has been moved out |
//! # Errors and limits
//! Capacities from 1 to `usize::MAX / 8`, as far as the storage goes, which must have room for the
//! next power of two (2 at least). `Full` and empty are exact while no peer is inside an operation;
//! otherwise a caller that is about to be refused may let another one be refused too. An interrupt
//! handler that uses the ring of the thread that it interrupted may deadlock.
//! # References
//! A. Gottlieb, B. Lubachevsky, L. Rudolph, "Basic Techniques for the Efficient Coordination of Very
//! Large Numbers of Cooperating Sequential Processors", ACM TOPLAS 5(2), 1983, section 3 (a queue of
//! tickets behind test-decrement-retest counts). Differs from the paper in: a turn in each slot
//! instead of a lock.

use core::fmt;
use core::marker::PhantomData;

use crossbeam_utils::CachePadded;

use super::contract::{
    CapacityError, Full, Order, Progress, Properties, Queue, SharedQueue, Side, WithCapacity,
};
use super::drain::drain;
use super::hot::{HotField, HotFields, Role};
use super::laps::{LARGEST, index_mask, next_lap};
use super::relax::{Relax, Spin};
use super::rounded;
use super::shared::shared_ends;
use super::storage::Storage;
use super::sync::atomic::{AtomicUsize, Ordering};
use super::sync::const_fn;
use super::turn_slot::{self, TurnSlot};

/// Hands elements from any threads to any threads, by tickets.
///
/// ```
/// use queues::{Full, Inline, MpmcTicket};
/// static RING: MpmcTicket<u64, Inline<2>> = MpmcTicket::new();
/// RING.try_push(1).unwrap();
/// RING.try_push(2).unwrap();
/// assert_eq!(RING.try_push(3), Err(Full(3)));
/// assert_eq!(RING.try_pop(), Some(1));
/// ```
#[repr(C)]
pub struct MpmcTicket<T, S: Storage, R = Spin> {
    tail: CachePadded<AtomicUsize>,
    head: CachePadded<AtomicUsize>,
    room: CachePadded<AtomicUsize>,
    items: CachePadded<AtomicUsize>,
    /// The bits of a ticket that are its slot.
    index_mask: usize,
    capacity: usize,
    slots: S::Slots<TurnSlot<T>>,
    relax: PhantomData<fn() -> R>,
}

// SAFETY: the ring owns its elements and its slots (contract of `Storage`); nothing else in it is
// bound to a thread.
unsafe impl<T: Send, S: Storage, R> Send for MpmcTicket<T, S, R> {}
// SAFETY: through `&self` elements move in and out, each by the one thread that drew its ticket
// (I2, I3), so they have to be sendable and no more.
unsafe impl<T: Send, S: Storage, R> Sync for MpmcTicket<T, S, R> {}

impl<T, S: Storage, R> MpmcTicket<T, S, R> {
    const_fn! {
        /// Makes an empty ring over vacant slots whose turns are those of `start`.
        pub(crate) fn over(
            slots: S::Slots<TurnSlot<T>>,
            capacity: usize,
            start: usize,
        ) -> Self {
            Self {
                tail: CachePadded::new(AtomicUsize::new(start)),
                head: CachePadded::new(AtomicUsize::new(start)),
                room: CachePadded::new(AtomicUsize::new(capacity)),
                items: CachePadded::new(AtomicUsize::new(0)),
                index_mask: index_mask(capacity),
                capacity,
                slots,
                relax: PhantomData,
            }
        }
    }

    /// Makes an empty ring whose next push goes to slot `index` in lap `lap`, modulo the number of
    /// laps; tests start near the wrap.
    ///
    /// # Errors
    /// As `with_capacity`.
    #[doc(hidden)]
    pub fn starting_at(capacity: usize, lap: usize, index: usize) -> Result<Self, CapacityError> {
        let mask = if capacity > LARGEST { 1 } else { index_mask(capacity) };
        let (lap, start) = (lap.wrapping_mul(mask + 1), index & mask);
        let slots = rounded::allocate::<S, _>(capacity, |slot| {
            TurnSlot::vacant(if slot < start { next_lap(lap, mask) } else { lap })
        })?;
        Ok(Self::over(slots, capacity, lap + start))
    }

    /// Offsets in bytes of `head` and of `tail`.
    pub const OFFSETS: (usize, usize) =
        (core::mem::offset_of!(Self, head), core::mem::offset_of!(Self, tail));

    /// The slot and the lap of a ticket.
    #[inline(always)]
    fn at(&self, ticket: usize) -> (&TurnSlot<T>, usize) {
        // SAFETY: there are `index_mask + 1` slots.
        let slot = unsafe { S::as_slice(&self.slots).get_unchecked(ticket & self.index_mask) };
        (slot, ticket & !self.index_mask)
    }
}

/// Takes one, if there is one: whether the caller is admitted.
#[inline(always)]
fn take_one(count: &AtomicUsize) -> bool {
    // ORDERING: Relaxed, here and below - only the number matters; E1 and E2 order the slots.
    if count.load(Ordering::Relaxed).cast_signed() <= 0 {
        return false;
    }
    // ORDERING: Relaxed - as above.
    if count.fetch_sub(1, Ordering::Relaxed).cast_signed() > 0 {
        return true;
    }
    // ORDERING: Relaxed - as above.
    count.fetch_add(1, Ordering::Relaxed);
    false
}

impl<T, S: Storage, R: Relax> MpmcTicket<T, S, R> {
    /// Appends `value`, waiting for a pop under way from the same slot.
    ///
    /// # Errors
    /// [`Full`] hands the value back when `capacity` elements are stored or under way.
    #[inline]
    pub fn try_push(&self, value: T) -> Result<(), Full<T>> {
        if !take_one(&self.room) {
            return Err(Full(value));
        }
        // ORDERING: Relaxed - a ticket needs atomicity only; E2 orders the slot.
        let (slot, lap) = self.at(self.tail.fetch_add(1, Ordering::Relaxed));
        let mut relax = R::new();
        // ORDERING: Acquire, E2 - the element of the lap before has been moved out.
        while slot.turn.load(Ordering::Acquire) != lap {
            relax.relax();
        }
        // SAFETY: the ticket is ours (I2) and its turn came: the slot is vacant and nobody else's
        // (I3), with E2 behind us.
        unsafe { slot.slot.put(value) };
        // ORDERING: Release, E1 - hands the element to the pop with the same ticket.
        slot.turn.store(lap + 1, Ordering::Release);
        // ORDERING: Relaxed - only the number matters (I1).
        self.items.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Takes the oldest element, if there is one, waiting for a push under way to the same slot.
    #[inline]
    pub fn try_pop(&self) -> Option<T> {
        if !take_one(&self.items) {
            return None;
        }
        // ORDERING: Relaxed - a ticket needs atomicity only; E1 orders the slot.
        let (slot, lap) = self.at(self.head.fetch_add(1, Ordering::Relaxed));
        let mut relax = R::new();
        // ORDERING: Acquire, E1 - the element of this lap is there.
        while slot.turn.load(Ordering::Acquire) != lap + 1 {
            relax.relax();
        }
        // SAFETY: the ticket is ours (I2) and its turn came: the slot holds an element and is nobody
        // else's (I3), with E1 behind us.
        let value = unsafe { slot.slot.take() };
        // ORDERING: Release, E2 - tells the push of the next lap that the element has been moved
        // out.
        slot.turn.store(next_lap(lap, self.index_mask), Ordering::Release);
        // ORDERING: Relaxed - only the number matters (I1).
        self.room.fetch_add(1, Ordering::Relaxed);
        Some(value)
    }
}

impl<T, S: Storage, R> WithCapacity for MpmcTicket<T, S, R> {
    fn with_capacity(capacity: usize) -> Result<Self, CapacityError> {
        Self::starting_at(capacity, 0, 0)
    }
}

impl<T: Send, S: Storage, R: Relax> Queue<T> for MpmcTicket<T, S, R> {
    shared_ends!(T);

    const PROPERTIES: Properties = Properties {
        producers: Side::Multi,
        consumers: Side::Multi,
        bounded: true,
        order: Order::Fifo,
        progress: Progress::Blocking,
        linearizable: false,
    };
    const BYTES_PER_SLOT: usize = size_of::<TurnSlot<T>>();

    #[inline]
    fn capacity(&self) -> usize {
        self.capacity
    }
}

impl<T: Send, S: Storage, R: Relax> SharedQueue<T> for MpmcTicket<T, S, R> {
    #[inline]
    fn try_push(&self, value: T) -> Result<(), Full<T>> {
        self.try_push(value)
    }

    #[inline]
    fn try_pop(&self) -> Option<T> {
        self.try_pop()
    }
}

impl<T, S: Storage, R> HotFields for MpmcTicket<T, S, R> {
    const ALIGNMENT: usize = align_of::<CachePadded<u8>>();
    const ALONE: bool = true;

    fn hot_fields(&self, visit: &mut dyn FnMut(HotField)) {
        let Self { tail, head, room, items, index_mask, capacity, slots, relax: _ } = self;
        let both = Role::Many("producers and consumers");
        for (name, padded, writers) in [
            ("tail", tail, Role::Many("producers")),
            ("head", head, Role::Many("consumers")),
            ("room", room, both),
            ("items", items, both),
        ] {
            visit(HotField::of(name, &**padded).written_by(writers).padded_in(padded));
        }
        visit(HotField::of("index_mask", index_mask).read_by(Role::Anybody));
        visit(HotField::of("capacity", capacity));
        visit(HotField::between(capacity, slots));
        visit(S::header(slots).read_by(Role::Anybody));
        turn_slot::describe(S::as_slice(slots), visit);
        visit(HotField::rest(self, slots));
    }
}

impl<T, S: Storage, R> Drop for MpmcTicket<T, S, R> {
    fn drop(&mut self) {
        drain(|| self.pop_alone());
    }
}

impl<T, S: Storage, R> MpmcTicket<T, S, R> {
    /// `try_pop` without anybody else: the exclusive borrow proves it.
    fn pop_alone(&mut self) -> Option<T> {
        if !take_one(&self.items) {
            return None;
        }
        // ORDERING: Relaxed - the ring is borrowed exclusively.
        let (slot, _) = self.at(self.head.fetch_add(1, Ordering::Relaxed));
        // SAFETY: the ring is borrowed exclusively, so no operation is under way and by I1 the
        // slots of the next `items` tickets hold elements; this ticket is not drawn again.
        Some(unsafe { slot.slot.take() })
    }
}

impl<T, S: Storage, R> fmt::Debug for MpmcTicket<T, S, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MpmcTicket").finish_non_exhaustive()
    }
}
