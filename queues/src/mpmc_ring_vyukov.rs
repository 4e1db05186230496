//! Vyukov's MPMC ring: any number of producers and consumers, one CAS an operation, and a turn in
//! each slot instead of a comparison of `head` with `tail`.
//! # Algorithm
//! A position is a slot's index with the number of its lap above it: `lap` counts in steps of the
//! power of two that is not less than the capacity (2 at least), so a mask takes a position apart
//! whatever the capacity is. A slot's `turn` is `lap` when it waits for the push of that lap,
//! `lap + 1` when for the pop. `try_push` reads `tail` and the turn of its slot. If that is the
//! turn of this push it claims the position by a CAS of `tail`, puts the element in and stores
//! `lap + 1`; if the turn is an older one the ring is full; if a newer one, or if the CAS fails,
//! somebody else has the position, and it looks again. `try_pop` is the mirror image with `head`,
//! and ends by storing the turn of the next lap's push.
//! # Why
//! Against a lock it removes one of two RMWs and lets producers and consumers work at once. Against
//! the SPSC ring it adds one RMW an operation and a word a slot; producers contend for `tail`,
//! consumers for `head`, and the two sides meet in the slots only.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `MpmcRingVyukov<T, Boxed>` | 384 | 128 | 6 | `tail` pair: producers; `head` pair: consumers; the rest: nobody |
//! | slot | 8 more than `T` | 8 at least | - | producer and consumer |
//! | endpoint | 8 | 8 | - | nobody |
//! # Cost
//! Uncontended operation: 1 RMW, 1 store, 1 store (push) or load (pop) of the element, 2 loads,
//! 2 lines; and loads from what nobody writes. Transfers an element of 8 bytes with one producer and
//! one consumer: about 3/4; with more on a side, 1 more for its position and 1 for each failed CAS.
//! # Progress
//! Not lock-free, though no operation waits: a producer stopped between its CAS of `tail` and its
//! store of `turn` blocks consumers at that slot, which find the ring empty, and, a lap later,
//! producers, which find it full; a consumer stopped between its CAS of `head` and its store of
//! `turn` blocks producers at that slot. Only a failed CAS makes a thread look again, and then
//! another one has made progress; a thread may starve.
//! # Invariants
//! - I1: the index in a position is below the capacity.
//! - I2: a position is claimed by the one thread whose CAS moved `tail` (for its push) or `head`
//!   (for its pop) past it.
//! - I3: turns of a slot only grow: to `lap + 1` by the push that claimed the slot in that lap, to
//!   the next lap by the pop that claimed it. Between a claim and that store the slot's element
//!   belongs to the claimer.
//! - I4: whoever sees a turn newer than that of the position it has read sees, when it reads again,
//!   a newer position (E1 or E2, by coherence), so it does not look for ever.
//! # Synchronization
//! | edge | release side | acquire side | publishes |
//! |---|---|---|---|
//! | E1 | store of `turn` in `try_push` | load of `turn` in `try_pop` | the element |
//! | E2 | store of `turn` in `try_pop` | load of `turn` in `try_push` | that the element has been moved out |
//! # Errors and limits
//! Capacities from 1 to `usize::MAX / 8`, as far as the storage goes. `Full` and empty are exact
//! while no peer is inside an operation; otherwise see Progress: an element whose push has returned
//! may not be found yet, if an older push has not. There is no `len`: two positions read one after
//! the other give no count that was ever true. Positions wrap after `usize::MAX` pushes or more:
//! with 32 bits a thread would be wrong that stops inside an operation while all others make 2³¹
//! of them.
//! # References
//! D. Vyukov, "Bounded MPMC queue", 1024cores.net, 2010. Differs from the text in: any capacity;
//! laps instead of sequence numbers in the slots.

use core::fmt;

use crossbeam_utils::CachePadded;

use super::contract::{
    CapacityError, Full, Order, Progress, Properties, Queue, SharedQueue, Side, WithCapacity,
};
use super::drain::drain;
use super::hot::{HotField, HotFields, Role};
use super::laps::{self, LARGEST, index_mask, is_older};
use super::shared::shared_ends;
use super::storage::Storage;
use super::sync::atomic::{AtomicUsize, Ordering};
use super::sync::const_fn;
use super::turn_slot::{self, TurnSlot};

/// Hands elements from any threads to any threads, one CAS an operation.
///
/// ```
/// use queues::{Full, Inline, MpmcRingVyukov};
/// static RING: MpmcRingVyukov<u64, Inline<2>> = MpmcRingVyukov::new();
/// RING.try_push(1).unwrap();
/// RING.try_push(2).unwrap();
/// assert_eq!(RING.try_push(3), Err(Full(3)));
/// assert_eq!(RING.try_pop(), Some(1));
/// ```
///
/// ```compile_fail,E0277
/// fn shared<T: Sync>(_: T) {}
/// shared(queues::MpmcRingVyukov::<std::rc::Rc<u64>, queues::Inline<4>>::new());
/// ```
#[repr(C)]
pub struct MpmcRingVyukov<T, S: Storage> {
    tail: CachePadded<AtomicUsize>,
    head: CachePadded<AtomicUsize>,
    /// The bits of a position that are its index.
    index_mask: usize,
    slots: S::Slots<TurnSlot<T>>,
}

// SAFETY: the ring owns its elements and its slots (contract of `Storage`); nothing else in it is
// bound to a thread.
unsafe impl<T: Send, S: Storage> Send for MpmcRingVyukov<T, S> {}
// SAFETY: through `&self` elements move in and out, each by the one thread that claimed it (I2,
// I3), so they have to be sendable and no more.
unsafe impl<T: Send, S: Storage> Sync for MpmcRingVyukov<T, S> {}

impl<T, S: Storage> MpmcRingVyukov<T, S> {
    const_fn! {
        /// Makes an empty ring over `capacity` vacant slots whose turns are 0.
        pub(crate) fn over(slots: S::Slots<TurnSlot<T>>, capacity: usize) -> Self {
            Self {
                tail: CachePadded::new(AtomicUsize::new(0)),
                head: CachePadded::new(AtomicUsize::new(0)),
                index_mask: index_mask(capacity),
                slots,
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
        if capacity > LARGEST {
            return Err(CapacityError::TooLarge { largest: LARGEST });
        }
        let (start, one_lap) = (index % capacity.max(1), index_mask(capacity) + 1);
        let lap = lap.wrapping_mul(one_lap);
        let slots = S::allocate(capacity, |slot| {
            TurnSlot::vacant(if slot < start { lap.wrapping_add(one_lap) } else { lap })
        })?;
        let mut ring = Self::over(slots, capacity);
        *ring.tail = AtomicUsize::new(lap + start);
        *ring.head = AtomicUsize::new(lap + start);
        Ok(ring)
    }

    /// Offsets in bytes of `head` and of `tail`.
    pub const OFFSETS: (usize, usize) =
        (core::mem::offset_of!(Self, head), core::mem::offset_of!(Self, tail));

    /// The slot and the lap of a position.
    ///
    /// # Safety
    /// The position was read from `tail` or `head`.
    #[inline(always)]
    unsafe fn at(&self, position: usize) -> (&TurnSlot<T>, usize) {
        let index = position & self.index_mask;
        // SAFETY: by I1 and the caller's duty.
        let slot = unsafe { S::as_slice(&self.slots).get_unchecked(index) };
        (slot, position & !self.index_mask)
    }

    #[inline(always)]
    fn next(&self, position: usize) -> usize {
        laps::next(position, self.index_mask, S::as_slice(&self.slots).len())
    }

    #[inline(always)]
    fn next_lap(&self, lap: usize) -> usize {
        laps::next_lap(lap, self.index_mask)
    }

    /// Appends `value`.
    ///
    /// # Errors
    /// [`Full`] hands the value back when the slot at the tail is not vacant yet.
    #[inline]
    pub fn try_push(&self, value: T) -> Result<(), Full<T>> {
        // ORDERING: Relaxed - the CAS decides who has the position; E2 orders the slot.
        let mut tail = self.tail.load(Ordering::Relaxed);
        loop {
            // SAFETY: read from `tail`, by a load or by the CAS that failed.
            let (slot, lap) = unsafe { self.at(tail) };
            // ORDERING: Acquire, E2 - the element of the lap before has been moved out.
            let turn = slot.turn.load(Ordering::Acquire);
            if turn == lap {
                // ORDERING: Relaxed on success and failure - the claim needs atomicity only; the
                // slot was acquired by the load above, and nobody else changes it before us (I2).
                match self.tail.compare_exchange_weak(
                    tail,
                    self.next(tail),
                    Ordering::Relaxed,
                    Ordering::Relaxed,
                ) {
                    Ok(_) => {
                        // SAFETY: the position is ours (I2) and its turn came: the slot is vacant
                        // and nobody else's (I3), with E2 behind us.
                        unsafe { slot.slot.put(value) };
                        // ORDERING: Release, E1 - hands the element to the pop of this lap.
                        slot.turn.store(lap + 1, Ordering::Release);
                        return Ok(());
                    }
                    Err(newer) => tail = newer,
                }
            } else if is_older(turn, lap) {
                return Err(Full(value));
            } else {
                // ORDERING: Relaxed - as above; by I4 a newer position is seen.
                tail = self.tail.load(Ordering::Relaxed);
            }
        }
    }

    /// Takes the oldest element, if there is one and its push has ended.
    #[inline]
    pub fn try_pop(&self) -> Option<T> {
        // ORDERING: Relaxed - the CAS decides who has the position; E1 orders the slot.
        let mut head = self.head.load(Ordering::Relaxed);
        loop {
            // SAFETY: read from `head`, by a load or by the CAS that failed.
            let (slot, lap) = unsafe { self.at(head) };
            // ORDERING: Acquire, E1 - the element of this lap is there.
            let turn = slot.turn.load(Ordering::Acquire);
            if turn == lap + 1 {
                // ORDERING: Relaxed on success and failure - the claim needs atomicity only; the
                // slot was acquired by the load above, and nobody else changes it before us (I2).
                match self.head.compare_exchange_weak(
                    head,
                    self.next(head),
                    Ordering::Relaxed,
                    Ordering::Relaxed,
                ) {
                    Ok(_) => {
                        // SAFETY: the position is ours (I2) and its turn came: the slot holds an
                        // element and is nobody else's (I3), with E1 behind us.
                        let value = unsafe { slot.slot.take() };
                        // ORDERING: Release, E2 - tells the push of the next lap that the element
                        // has been moved out.
                        slot.turn.store(self.next_lap(lap), Ordering::Release);
                        return Some(value);
                    }
                    Err(newer) => head = newer,
                }
            } else if is_older(turn, lap + 1) {
                return None;
            } else {
                // ORDERING: Relaxed - as above; by I4 a newer position is seen.
                head = self.head.load(Ordering::Relaxed);
            }
        }
    }
}

impl<T, S: Storage> WithCapacity for MpmcRingVyukov<T, S> {
    fn with_capacity(capacity: usize) -> Result<Self, CapacityError> {
        Self::starting_at(capacity, 0, 0)
    }
}

impl<T: Send, S: Storage> Queue<T> for MpmcRingVyukov<T, S> {
    shared_ends!(T);

    const PROPERTIES: Properties = Properties {
        producers: Side::Multi,
        consumers: Side::Multi,
        bounded: true,
        order: Order::Fifo,
        progress: Progress::Obstructed,
        linearizable: false,
    };
    const BYTES_PER_SLOT: usize = size_of::<TurnSlot<T>>();

    #[inline]
    fn capacity(&self) -> usize {
        S::as_slice(&self.slots).len()
    }
}

impl<T: Send, S: Storage> SharedQueue<T> for MpmcRingVyukov<T, S> {
    #[inline]
    fn try_push(&self, value: T) -> Result<(), Full<T>> {
        self.try_push(value)
    }

    #[inline]
    fn try_pop(&self) -> Option<T> {
        self.try_pop()
    }
}

impl<T, S: Storage> HotFields for MpmcRingVyukov<T, S> {
    const ALIGNMENT: usize = align_of::<CachePadded<u8>>();
    const ALONE: bool = true;

    fn hot_fields(&self, visit: &mut dyn FnMut(HotField)) {
        let Self { tail, head, index_mask, slots } = self;
        let position = |name, padded: &CachePadded<AtomicUsize>, writers| {
            HotField::of(name, &**padded).written_by(writers).padded_in(padded)
        };
        visit(position("tail", tail, Role::Many("producers")));
        visit(position("head", head, Role::Many("consumers")));
        visit(HotField::of("index_mask", index_mask).read_by(Role::Anybody));
        visit(HotField::between(index_mask, slots));
        visit(S::header(slots).read_by(Role::Anybody));
        turn_slot::describe(S::as_slice(slots), visit);
        visit(HotField::rest(self, slots));
    }
}

impl<T, S: Storage> Drop for MpmcRingVyukov<T, S> {
    fn drop(&mut self) {
        drain(|| self.try_pop());
    }
}

impl<T, S: Storage> fmt::Debug for MpmcRingVyukov<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MpmcRingVyukov").finish_non_exhaustive()
    }
}
