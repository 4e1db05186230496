//! Ring with two positions a side: any number of producers and consumers, who take a run of slots by
//! one CAS and hand it over in their order, in bulk (all or nothing) or in bursts (what fits).
//! # Algorithm
//! Each side has a position up to which slots are `claimed` and one up to which they are `done`.
//! `push` reads `tail.claimed` and `head.done`; between them and the capacity lies the room. It moves
//! `tail.claimed` on by a CAS, as far as it has elements, fills the slots, waits until `tail.done` is
//! where its run begins, and moves it to where the run ends. `pop` is the mirror image: what lies
//! between `head.claimed` and `tail.done` is there. Positions are plain counters; there are as many
//! slots as the next power of two, so a mask gives a position's slot.
//! # Why
//! Against the Vyukov ring a run of any length costs one CAS and no word a slot; it adds waiting for
//! whoever began before on the same side, and everybody of a side writes two words.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `MpmcRingRte<T, Boxed>` | 384 | 128 | 6 | `tail` pair: producers; `head` pair: consumers; the rest: nobody |
//! | slot | that of `T` | that of `T` | - | producer |
//! | endpoint | 8 | 8 | - | nobody |
//! # Cost
//! Uncontended operation, of one element or of many: 1 RMW, 1 store, 3 loads, and a store (push) or
//! load (pop) an element; 3 lines (both pairs and the slot), and loads from what nobody writes.
//! # Progress
//! Blocking: a thread stopped between its CAS and its store of `done` stops all operations of its
//! side that come later, and in time those of the other side find nothing. Nothing that a user wrote
//! runs there. Runs are handed over in the order of their CAS; a CAS that fails has let another one
//! succeed.
//! # Invariants
//! - I1: head.done <= head.claimed <= tail.done <= tail.claimed <= head.done + capacity, as distances
//!   across the wrap.
//! - I2: a slot between `done` and `claimed` of a side belongs to the one thread whose CAS claimed it;
//!   slots between `head.done` and `tail.claimed` hold elements or are being filled or emptied, the
//!   others hold none.
//! - I3: `done` is moved by the thread whose run begins there, and by nobody else.
//! # Synchronization
//! | edge | release side | acquire side | publishes |
//! |---|---|---|---|
//! | E1 | store of `tail.done` | load of `tail.done` before a claim to pop | the elements |
//! | E2 | store of `head.done` | load of `head.done` before a claim to push | that the elements have been moved out |
//! | E3 | store of `done` | load of the same `done` by who waits for it | what E1 and E2 publish of earlier runs |
//! # Errors and limits
//! Capacities from 1 to `usize::MAX / 8`, as far as the storage goes, which must have room for the
//! next power of two (2 at least). `Full` and empty are exact while no peer is inside an operation. A
//! claim cannot be given back, since later ones lie behind it: there is no reservation that could be
//! dropped or committed in part; a [`Burst`](super::burst::Burst) carries elements instead. More
//! threads than CPUs wait for threads that do not run. An interrupt handler that uses the ring of the
//! thread that it interrupted may deadlock. Positions wrap after `usize::MAX` elements: with 32 bits a
//! thread would be wrong that stops before its CAS while exactly 2³² elements pass.
//! # References
//! DPDK, Programmer's Guide, "Ring Library", section "Anatomy of a Ring Buffer" (multiple producers
//! enqueue), after S. Lu and B. Lantz's ring in FreeBSD, `buf_ring.h`. Differs from the text in: an
//! exact capacity; indices as wide as a word; one claim may be seen with an older end of the other
//! side, which then counts as no room.

use core::fmt;
use core::marker::PhantomData;

use crossbeam_utils::CachePadded;

use super::burst::Burst;
use super::contract::{
    CapacityError, Full, Order, Progress, Properties, Queue, SharedQueue, Side, WithCapacity,
};
use super::drain::drain;
use super::hot::{HotField, HotFields, Role};
use super::laps::index_mask;
use super::relax::{Relax, Spin};
use super::rounded;
use super::shared::shared_ends;
use super::slot::{self, Slot};
use super::storage::Storage;
use super::sync::atomic::{AtomicUsize, Ordering};
use super::sync::const_fn;

/// How far one side has come.
#[repr(C)]
pub(crate) struct Front {
    claimed: AtomicUsize,
    done: AtomicUsize,
}

impl Front {
    const_fn! {
        fn at(position: usize) -> Self {
            Self { claimed: AtomicUsize::new(position), done: AtomicUsize::new(position) }
        }
    }

    /// Claims as many slots as there are, from `least` to `most`: where they begin, and their
    /// number. There are `beyond` more than lie up to the other side's `done`.
    #[inline(always)]
    fn claim(
        &self,
        other: &Self,
        beyond: usize,
        least: usize,
        most: usize,
    ) -> Option<(usize, usize)> {
        // ORDERING: Relaxed, here and the CAS - only atomicity matters; E1 and E2 order the slots.
        let mut from = self.claimed.load(Ordering::Relaxed);
        loop {
            // ORDERING: Acquire, E1 or E2 - the other side has left the slots before `done`.
            let end = other.done.load(Ordering::Acquire).wrapping_add(beyond);
            // An older `done` than the one that let `claimed` come so far is no room.
            let there = end.wrapping_sub(from).cast_signed().max(0).unsigned_abs();
            let count = there.min(most);
            if count < least || count == 0 {
                return None;
            }
            // ORDERING: Relaxed, both - as above.
            match self.claimed.compare_exchange_weak(
                from,
                from.wrapping_add(count),
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => return Some((from, count)),
                Err(newer) => from = newer,
            }
        }
    }

    /// Hands over the slots from `from` up to `to`, after those before them.
    #[inline(always)]
    fn hand_over<R: Relax>(&self, from: usize, to: usize) {
        let mut relax = R::new();
        // ORDERING: Acquire, E3 - our store hands over the slots of earlier runs as well.
        while self.done.load(Ordering::Acquire) != from {
            relax.relax();
        }
        // ORDERING: Release, E1 or E2, and E3 - the slots of this run and of those before it.
        self.done.store(to, Ordering::Release);
    }

    /// Describes both words, by their names in the ring.
    fn describe(
        &self,
        names: [&'static str; 2],
        [owners, others]: [&'static str; 2],
    ) -> [HotField; 2] {
        const BECAUSE: &str = "each operation of the side writes both words, so whoever reads \
                               `done` misses once for both";
        let Self { claimed, done } = self;
        let claimed = HotField::of(names[0], claimed).written_by(Role::Many(owners));
        let done = HotField::of(names[1], done).written_by(Role::Many(owners));
        [claimed, done.read_by(Role::Many(others))].map(|field| field.one_line(names[0], BECAUSE))
    }
}

/// Hands elements from any threads to any threads, many at a time.
///
/// ```
/// use queues::{Burst, Full, Inline, MpmcRingRte};
/// static RING: MpmcRingRte<u64, Inline<4>> = MpmcRingRte::new();
/// RING.push_bulk([1, 2, 3]).unwrap();
/// assert_eq!(RING.push_bulk([4, 5]), Err(Full([4, 5])), "all or nothing");
/// let mut burst = Burst::from([4, 5]);
/// assert_eq!(RING.push_burst(&mut burst), 1, "what fits");
/// assert_eq!(RING.pop_bulk(), Some([1, 2]));
/// assert_eq!(RING.pop_burst::<8>().collect::<Vec<_>>(), [3, 4]);
/// assert_eq!(burst.next(), Some(5));
/// ```
#[repr(C)]
pub struct MpmcRingRte<T, S: Storage, R = Spin> {
    tail: CachePadded<Front>,
    head: CachePadded<Front>,
    /// The bits of a position that are its slot.
    index_mask: usize,
    capacity: usize,
    slots: S::Slots<Slot<T>>,
    relax: PhantomData<fn() -> R>,
}

// SAFETY: the ring owns its elements and its slots (contract of `Storage`); nothing else in it is
// bound to a thread.
unsafe impl<T: Send, S: Storage, R> Send for MpmcRingRte<T, S, R> {}
// SAFETY: through `&self` elements move in and out, each by the one thread that claimed its slot
// (I2), so they have to be sendable and no more.
unsafe impl<T: Send, S: Storage, R> Sync for MpmcRingRte<T, S, R> {}

impl<T, S: Storage, R> MpmcRingRte<T, S, R> {
    const_fn! {
        /// Makes an empty ring over vacant slots.
        pub(crate) fn over(slots: S::Slots<Slot<T>>, capacity: usize, start: usize) -> Self {
            Self {
                tail: CachePadded::new(Front::at(start)),
                head: CachePadded::new(Front::at(start)),
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
        let slots = rounded::allocate::<S, _>(capacity, |_| Slot::vacant())?;
        let mask = index_mask(capacity);
        let start = lap.wrapping_mul(mask + 1).wrapping_add(index & mask);
        Ok(Self::over(slots, capacity, start))
    }

    /// Offsets in bytes of `head` and of `tail`.
    pub const OFFSETS: (usize, usize) =
        (core::mem::offset_of!(Self, head), core::mem::offset_of!(Self, tail));

    #[inline(always)]
    fn slot(&self, position: usize) -> &Slot<T> {
        // SAFETY: there are `index_mask + 1` slots.
        unsafe { S::as_slice(&self.slots).get_unchecked(position & self.index_mask) }
    }

    /// Moves the next `count` elements of a claim to push into their slots.
    ///
    /// # Safety
    /// The slots from `from` on are claimed by the caller to push, and not filled yet.
    #[inline(always)]
    unsafe fn fill(&self, from: usize, count: usize, elements: impl Iterator<Item = T>) -> usize {
        let mut filled = 0;
        for value in elements.take(count) {
            // SAFETY: by I2 and the caller's duty the slot is vacant and ours, with E2 behind us.
            unsafe { self.slot(from.wrapping_add(filled)).put(value) };
            filled += 1;
        }
        filled
    }
}

impl<T, S: Storage, R: Relax> MpmcRingRte<T, S, R> {
    /// Appends `value`, waiting for pushes that began earlier.
    ///
    /// # Errors
    /// [`Full`] hands the value back when `capacity` elements are stored or under way.
    #[inline]
    pub fn try_push(&self, value: T) -> Result<(), Full<T>> {
        let Some((from, _)) = self.tail.claim(&self.head, self.capacity, 1, 1) else {
            return Err(Full(value));
        };
        // SAFETY: claimed to push (I2): the slot is vacant and ours, with E2 behind us.
        unsafe { self.slot(from).put(value) };
        self.tail.hand_over::<R>(from, from.wrapping_add(1));
        Ok(())
    }

    /// Takes the oldest element, if there is one, waiting for pops that began earlier.
    #[inline]
    pub fn try_pop(&self) -> Option<T> {
        let (from, _) = self.head.claim(&self.tail, 0, 1, 1)?;
        // SAFETY: claimed to pop (I2): the slot holds an element and is ours, with E1 behind us.
        let value = unsafe { self.slot(from).take() };
        self.head.hand_over::<R>(from, from.wrapping_add(1));
        Some(value)
    }

    /// Appends all of `values`, one behind the other, or none.
    ///
    /// # Errors
    /// [`Full`] hands the values back when there is not room for all.
    pub fn push_bulk<const N: usize>(&self, values: [T; N]) -> Result<(), Full<[T; N]>> {
        if N == 0 {
            return Ok(());
        }
        let Some((from, count)) = self.tail.claim(&self.head, self.capacity, N, N) else {
            return Err(Full(values));
        };
        // SAFETY: just claimed; an array has as many elements as were claimed.
        let filled = unsafe { self.fill(from, count, values.into_iter()) };
        self.tail.hand_over::<R>(from, from.wrapping_add(filled));
        Ok(())
    }

    /// Appends the elements of `burst` that there is room for, one behind the other, and gives their
    /// number; the others stay in it.
    pub fn push_burst<const N: usize>(&self, burst: &mut Burst<T, N>) -> usize {
        let claim = self.tail.claim(&self.head, self.capacity, 1, burst.len());
        let Some((from, count)) = claim else { return 0 };
        // SAFETY: just claimed; a burst has as many elements as it says, and at least as many.
        let filled = unsafe { self.fill(from, count, burst) };
        self.tail.hand_over::<R>(from, from.wrapping_add(filled));
        filled
    }

    /// Takes the `N` oldest elements, if there are so many.
    pub fn pop_bulk<const N: usize>(&self) -> Option<[T; N]> {
        self.pop_run(N).into_array().ok()
    }

    /// Takes the oldest elements, at most `N`.
    pub fn pop_burst<const N: usize>(&self) -> Burst<T, N> {
        self.pop_run(1)
    }

    /// Takes the oldest elements, from `least` to `N`, or none.
    #[inline(always)]
    fn pop_run<const N: usize>(&self, least: usize) -> Burst<T, N> {
        let mut burst = Burst::new();
        let Some((from, count)) = self.head.claim(&self.tail, 0, least, N) else { return burst };
        for position in 0..count {
            // SAFETY: claimed to pop (I2): the slot holds an element and is ours, with E1 behind us.
            burst.push(unsafe { self.slot(from.wrapping_add(position)).take() });
        }
        self.head.hand_over::<R>(from, from.wrapping_add(count));
        burst
    }
}

impl<T, S: Storage, R> WithCapacity for MpmcRingRte<T, S, R> {
    fn with_capacity(capacity: usize) -> Result<Self, CapacityError> {
        Self::starting_at(capacity, 0, 0)
    }
}

impl<T: Send, S: Storage, R: Relax> Queue<T> for MpmcRingRte<T, S, R> {
    shared_ends!(T);

    const PROPERTIES: Properties = Properties {
        producers: Side::Multi,
        consumers: Side::Multi,
        bounded: true,
        order: Order::Fifo,
        progress: Progress::Blocking,
        linearizable: false,
    };
    const BYTES_PER_SLOT: usize = size_of::<Slot<T>>();

    #[inline]
    fn capacity(&self) -> usize {
        self.capacity
    }
}

impl<T: Send, S: Storage, R: Relax> SharedQueue<T> for MpmcRingRte<T, S, R> {
    #[inline]
    fn try_push(&self, value: T) -> Result<(), Full<T>> {
        self.try_push(value)
    }

    #[inline]
    fn try_pop(&self) -> Option<T> {
        self.try_pop()
    }
}

impl<T, S: Storage, R> HotFields for MpmcRingRte<T, S, R> {
    const ALIGNMENT: usize = align_of::<CachePadded<u8>>();
    const ALONE: bool = true;

    fn hot_fields(&self, visit: &mut dyn FnMut(HotField)) {
        let Self { tail, head, index_mask, capacity, slots, relax: _ } = self;
        let (producers, consumers) = ("producers", "consumers");
        for field in tail.describe(["tail.claimed", "tail.done"], [producers, consumers]) {
            visit(field.padded_in(tail));
        }
        for field in head.describe(["head.claimed", "head.done"], [consumers, producers]) {
            visit(field.padded_in(head));
        }
        visit(HotField::of("index_mask", index_mask).read_by(Role::Anybody));
        visit(HotField::of("capacity", capacity).read_by(Role::Anybody));
        visit(HotField::between(capacity, slots));
        visit(S::header(slots).read_by(Role::Anybody));
        for slot in slot::describe(S::as_slice(slots)) {
            visit(slot.written_by(Role::Many(producers)).read_by(Role::Many(consumers)));
        }
        visit(HotField::rest(self, slots));
    }
}

impl<T, S: Storage, R> Drop for MpmcRingRte<T, S, R> {
    fn drop(&mut self) {
        drain(|| self.pop_alone());
    }
}

impl<T, S: Storage, R> MpmcRingRte<T, S, R> {
    /// `try_pop` without anybody else: the exclusive borrow proves it.
    fn pop_alone(&mut self) -> Option<T> {
        let (from, _) = self.head.claim(&self.tail, 0, 1, 1)?;
        // SAFETY: the ring is borrowed exclusively, so no run is under way and by I2 the slot holds
        // an element; it is not claimed again.
        Some(unsafe { self.slot(from).take() })
    }
}

impl<T, S: Storage, R> fmt::Debug for MpmcRingRte<T, S, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MpmcRingRte").finish_non_exhaustive()
    }
}
