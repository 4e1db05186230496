//! FIFO run queue: one worker pushes at the tail and pops at the head, thieves take half of it.
//! # Algorithm
//! `head` packs two positions of half a word each: `real`, that of the oldest element which is
//! nobody's yet, and `taken`, behind which all elements have been moved out. They differ while a
//! thief is inside. `push` compares its own `tail` with `taken`, puts the element in and stores the
//! next `tail`. `pop` moves `real` on by one, and `taken` with it if no thief is inside, in one CAS,
//! and then moves the element out. A thief that finds another one inside gives up; else it reads
//! `tail`, moves `real` alone past the elements that it wants, by a CAS, moves them out, and by a
//! second CAS sets `taken` to where `real` is by then. `steal_half_into` puts what it takes into the
//! deque of a worker of its own, and publishes it there by one store of that `tail`.
//! # Why
//! Against `deque_chase_lev` tasks come in their order, also to the worker, so that none starves, and
//! a thief takes many for two RMWs: who has run dry does not come back for each. It adds an RMW to
//! each `pop`, and thieves exclude one another.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `DequePackedFifo<T, Boxed>` | 384 | 128 | 6 | `tail` pair: worker; `head` pair: thieves, and the worker that pops; the rest: nobody |
//! | slot | that of `T` | that of `T` | - | worker |
//! | endpoint | 8 | 8 | - | nobody |
//! # Cost
//! Uncontended: push 0 RMWs, 2 loads, 2 stores; pop 1 RMW, 2 loads; steal, of one or of half, 2 RMWs,
//! 3 loads. A steal of n elements of 8 bytes transfers the lines of `head`, `tail` and n/8 slots.
//! # Progress
//! Obstructed: a thief stopped inside makes others find nothing to steal, and in time pushes full;
//! `pop` goes on. No operation waits; only a CAS that failed makes a thread look again, and then
//! another one has made progress.
//! # Invariants
//! - I1: `tail` is written by the worker only; `split` borrows the deque exclusively, so that there
//!   is one worker.
//! - I2: positions are numbers of half a word, and the slots, a power of two, divide it.
//! - I3: an element belongs to who moved `real` past its position by a CAS.
//! - I4: `taken` is passed on by a `pop` that finds it equal to `real`, so that no thief is inside,
//!   and by the thief that made them differ, when it has moved its elements out.
//! - I5: from `taken` on, fewer positions than the capacity are before `tail`, or as many; the slots
//!   of all others are vacant and the worker's.
//! # Synchronization
//! | edge | release side | acquire side | publishes |
//! |---|---|---|---|
//! | E1 | store of `tail` in `push` and `steal_half_into` | load of `tail` by a thief | the elements before it |
//! | E2 | second CAS of a thief | load of `head` in `push` and `steal_half_into` | that its elements have been moved out |
//! | E3 | each CAS that moves `real` | load of `head` by a thief | that `tail` is not before `real` |
//! # Errors and limits
//! Capacities from 1 to 2³⁰, as far as the storage goes, which must have room for the next power of
//! two (2 at least). `Full` hands the value back, and may be said early while a thief is inside.
//! Positions wrap after 2³² pushes (2¹⁶ where a word has 32 bits): a thief would be wrong that is
//! stopped between its load of `head` and its CAS while exactly so many elements pass.
//! # References
//! D. Vyukov and others, the scheduler of Go 1.1, 2012 (a ring from which half is stolen); C. Lerche,
//! "Making the Tokio scheduler 10x faster", tokio.rs, 2019 (two positions in one word). Differs from
//! the texts in: any capacity; positions wider than the index; a full deque says so instead of
//! passing half of itself on to a global queue.

use core::fmt;

use crossbeam_utils::CachePadded;

use super::contract::{
    CapacityError, Full, Order, Progress, Properties, Queue, Side, Steal, WithCapacity,
};
use super::deque_ends::{self, Deque, Thief, Worker};
use super::drain::drain;
use super::hot::{HotField, HotFields, Role};
use super::rounded;
use super::slot::{self, Slot};
use super::storage::Storage;
use super::sync::atomic::{AtomicUsize, Ordering};
use super::sync::const_fn;

/// The bits of a position.
const BITS: u32 = usize::BITS / 2;
/// All positions.
const POSITION: usize = (1 << BITS) - 1;
/// The largest capacity: leaves four laps to tell an older position from a newer one.
pub(crate) const LARGEST: usize = 1 << (BITS - 2);

/// What `head` says.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Head {
    taken: usize,
    real: usize,
}

impl Head {
    #[inline(always)]
    fn of(word: usize) -> Self {
        Self { taken: word >> BITS, real: word & POSITION }
    }

    #[inline(always)]
    fn word(self) -> usize {
        self.taken << BITS | self.real
    }

    /// Whether a thief is between its two CAS.
    #[inline(always)]
    fn thief_inside(self) -> bool {
        self.taken != self.real
    }
}

#[inline(always)]
fn on(position: usize, by: usize) -> usize {
    position.wrapping_add(by) & POSITION
}

#[inline(always)]
fn distance(from: usize, to: usize) -> usize {
    to.wrapping_sub(from) & POSITION
}

/// Keeps the tasks of one worker in their order; thieves take half of them at once.
///
/// ```
/// use queues::{DequePackedFifo, Inline, Steal};
/// let mut busy = DequePackedFifo::<u64, Inline<8>>::new();
/// let mut idle = DequePackedFifo::<u64, Inline<8>>::new();
/// let (mut worker, thief) = busy.split();
/// let (mut mine, _) = idle.split();
/// for task in 0..5 {
///     worker.try_push(task).unwrap();
/// }
/// assert_eq!(thief.steal_half_into(&mut mine), Steal::Success(3));
/// assert_eq!((mine.pop(), worker.pop(), thief.steal()), (Some(0), Some(3), Steal::Success(4)));
/// ```
///
/// ```compile_fail,E0277
/// fn shared<T: Sync>(_: T) {}
/// let mut deque = queues::DequePackedFifo::<u64, queues::Inline<4>>::new();
/// shared(deque.split().0); // there is one worker
/// ```
#[repr(C)]
pub struct DequePackedFifo<T, S: Storage> {
    tail: CachePadded<AtomicUsize>,
    head: CachePadded<AtomicUsize>,
    capacity: usize,
    slots: S::Slots<Slot<T>>,
}

// SAFETY: the deque owns its elements and its slots (contract of `Storage`); nothing else in it is
// bound to a thread.
unsafe impl<T: Send, S: Storage> Send for DequePackedFifo<T, S> {}
// SAFETY: elements move through the endpoints, each to the one thread that it belongs to (I3), so
// they have to be sendable and no more.
unsafe impl<T: Send, S: Storage> Sync for DequePackedFifo<T, S> {}

impl<T, S: Storage> DequePackedFifo<T, S> {
    const_fn! {
        /// Makes an empty deque over a power of two of vacant slots, `capacity` at least, whose next
        /// push goes to position `start`.
        pub(crate) fn over(slots: S::Slots<Slot<T>>, capacity: usize, start: usize) -> Self {
            let start = start & POSITION;
            Self {
                tail: CachePadded::new(AtomicUsize::new(start)),
                head: CachePadded::new(AtomicUsize::new(start << BITS | start)),
                capacity,
                slots,
            }
        }
    }

    /// Makes an empty deque whose next push goes to slot `index` in lap `lap`, modulo the number of
    /// laps; tests start near the wrap.
    ///
    /// # Errors
    /// As `with_capacity`.
    #[doc(hidden)]
    pub fn starting_at(capacity: usize, lap: usize, index: usize) -> Result<Self, CapacityError> {
        if capacity > LARGEST {
            return Err(CapacityError::TooLarge { largest: LARGEST });
        }
        let slots = rounded::allocate::<S, _>(capacity, |_| Slot::vacant())?;
        let one_lap = S::as_slice(&slots).len();
        Ok(Self::over(slots, capacity, lap.wrapping_mul(one_lap).wrapping_add(index)))
    }

    /// Offsets in bytes of `head` and of `tail`.
    pub const OFFSETS: (usize, usize) =
        (core::mem::offset_of!(Self, head), core::mem::offset_of!(Self, tail));

    /// Gives out the worker's end and the first thief's. The exclusive borrow proves that no others
    /// exist.
    #[inline]
    pub fn split(&mut self) -> (Worker<'_, Self, T>, Thief<'_, Self, T>) {
        deque_ends::ends(self)
    }

    /// The slot of a position.
    #[inline(always)]
    fn at(&self, position: usize) -> &Slot<T> {
        let slots = S::as_slice(&self.slots);
        // SAFETY: the number of slots is a power of two (I2), so the index is below it.
        unsafe { slots.get_unchecked(position & (slots.len() - 1)) }
    }

    /// The worker's `tail`, and how many more elements may go in.
    #[inline(always)]
    fn room(&self) -> (usize, usize) {
        // ORDERING: Relaxed - by I1 the worker reads its own position back.
        let tail = self.tail.load(Ordering::Relaxed);
        // ORDERING: Acquire, E2 - elements before `taken` have been moved out.
        let head = Head::of(self.head.load(Ordering::Acquire));
        (tail, self.capacity - distance(head.taken, tail))
    }

    /// Claims as many of the oldest elements as `wanted` says of their number: the first one's
    /// position, and how many.
    #[inline(always)]
    fn claim(&self, wanted: impl FnOnce(usize) -> usize) -> Steal<(usize, usize)> {
        // ORDERING: Acquire, E3 - `tail` is not seen before `real` below.
        let word = self.head.load(Ordering::Acquire);
        let head = Head::of(word);
        if head.thief_inside() {
            return Steal::Retry;
        }
        // ORDERING: Acquire, E1 - the elements before `tail` are there.
        let there = distance(head.real, self.tail.load(Ordering::Acquire));
        let count = wanted(there);
        if count == 0 {
            return Steal::Empty;
        }
        let claimed = Head { real: on(head.real, count), ..head }.word();
        // ORDERING: Release on success, E3 - what we have seen of `tail`; Relaxed on failure - the
        // claim (I3) was not made.
        match self.head.compare_exchange(word, claimed, Ordering::Release, Ordering::Relaxed) {
            Ok(_) => Steal::Success((head.real, count)),
            Err(_) => Steal::Retry,
        }
    }

    /// Gives the slots of what this thief has claimed and moved out back to the worker.
    #[inline(always)]
    fn give_back(&self) {
        // ORDERING: Relaxed - only the worker changes it now (I4), and the CAS decides.
        let mut word = self.head.load(Ordering::Relaxed);
        loop {
            let real = Head::of(word).real;
            let next = Head { taken: real, real }.word();
            // ORDERING: Release on success, E2 - the elements have been moved out; Relaxed on
            // failure - it looks again.
            match self.head.compare_exchange_weak(word, next, Ordering::Release, Ordering::Relaxed)
            {
                Ok(_) => return,
                Err(newer) => word = newer,
            }
        }
    }
}

impl<T, S: Storage> Deque<T> for DequePackedFifo<T, S> {
    #[inline(always)]
    unsafe fn push(&self, value: T) -> Result<(), Full<T>> {
        let (tail, room) = self.room();
        if room == 0 {
            return Err(Full(value));
        }
        // SAFETY: there is room, so the slot is vacant and the worker's (I5), with E2 behind us.
        unsafe { self.at(tail).put(value) };
        // ORDERING: Release, E1 - hands the element to who takes it.
        self.tail.store(on(tail, 1), Ordering::Release);
        Ok(())
    }

    #[inline(always)]
    unsafe fn pop(&self) -> Option<T> {
        // ORDERING: Relaxed - by I1 the worker reads its own position back.
        let tail = self.tail.load(Ordering::Relaxed);
        // ORDERING: Relaxed - the CAS decides (I3); the worker has put the element there itself, and
        // will see the slot vacant itself.
        let mut word = self.head.load(Ordering::Relaxed);
        loop {
            let head = Head::of(word);
            if head.real == tail {
                return None;
            }
            let real = on(head.real, 1);
            let taken = if head.thief_inside() { head.taken } else { real };
            // ORDERING: Release on success, E3 - `tail`, which is not before `real`; Relaxed on
            // failure - it looks again.
            match self.head.compare_exchange_weak(
                word,
                Head { taken, real }.word(),
                Ordering::Release,
                Ordering::Relaxed,
            ) {
                // SAFETY: the element is ours (I3), and we have put it there.
                Ok(_) => return Some(unsafe { self.at(head.real).take() }),
                Err(newer) => word = newer,
            }
        }
    }

    #[inline(always)]
    fn steal(&self) -> Steal<T> {
        match self.claim(|there| there.min(1)) {
            Steal::Success((first, _)) => {
                // SAFETY: the element is ours (I3), with E1 behind us.
                let value = unsafe { self.at(first).take() };
                self.give_back();
                Steal::Success(value)
            }
            Steal::Empty => Steal::Empty,
            Steal::Retry => Steal::Retry,
        }
    }

    /// Finds nothing while another thief is inside, rather than wait for it.
    #[inline(always)]
    fn steal_in_turn(&self) -> Option<T> {
        loop {
            match self.steal() {
                Steal::Success(value) => return Some(value),
                Steal::Empty => return None,
                Steal::Retry => {
                    // ORDERING: Relaxed - whichever it sees was true.
                    if Head::of(self.head.load(Ordering::Relaxed)).thief_inside() {
                        return None;
                    }
                }
            }
        }
    }
}

impl<T, S: Storage> Thief<'_, DequePackedFifo<T, S>, T> {
    /// Moves half of the elements, rounded up, the oldest first, to the tail of `into`, as far as
    /// there is room; gives their number. `Empty` says that there were none, or no room.
    #[inline]
    pub fn steal_half_into<I: Storage>(
        &self,
        into: &mut Worker<'_, DequePackedFifo<T, I>, T>,
    ) -> Steal<usize> {
        let (from, into) = (self.deque(), into.deque());
        let (tail, room) = into.room();
        let claimed = from.claim(|there| there.div_ceil(2).min(room));
        let Steal::Success((first, count)) = claimed else {
            return if claimed == Steal::Empty { Steal::Empty } else { Steal::Retry };
        };
        for n in 0..count {
            // SAFETY: the element is ours (I3), with E1 behind us.
            let value = unsafe { from.at(on(first, n)).take() };
            // SAFETY: there is room for so many, so the slot is vacant and the worker's (I5), which
            // is borrowed exclusively; with E2 behind us.
            unsafe { into.at(on(tail, n)).put(value) };
        }
        from.give_back();
        // ORDERING: Release, E1 - hands the elements to who takes them from here.
        into.tail.store(on(tail, count), Ordering::Release);
        Steal::Success(count)
    }
}

impl<T, S: Storage> WithCapacity for DequePackedFifo<T, S> {
    fn with_capacity(capacity: usize) -> Result<Self, CapacityError> {
        Self::starting_at(capacity, 0, 0)
    }
}

impl<T: Send, S: Storage> Queue<T> for DequePackedFifo<T, S> {
    type Producer<'q>
        = Worker<'q, Self, T>
    where
        Self: 'q;
    type Consumer<'q>
        = Thief<'q, Self, T>
    where
        Self: 'q;
    const PROPERTIES: Properties = Properties {
        producers: Side::Single,
        consumers: Side::Multi,
        bounded: true,
        order: Order::Fifo,
        progress: Progress::Obstructed,
        linearizable: false,
    };
    const BYTES_PER_SLOT: usize = size_of::<Slot<T>>();

    #[inline]
    fn split(&mut self) -> (Worker<'_, Self, T>, Thief<'_, Self, T>) {
        self.split()
    }

    #[inline]
    fn capacity(&self) -> usize {
        self.capacity
    }
}

impl<T, S: Storage> Drop for DequePackedFifo<T, S> {
    fn drop(&mut self) {
        // SAFETY: the ends are gone.
        drain(|| unsafe { self.pop() });
    }
}

impl<T, S: Storage> HotFields for DequePackedFifo<T, S> {
    const ALIGNMENT: usize = align_of::<CachePadded<u8>>();
    const ALONE: bool = true;

    fn hot_fields(&self, visit: &mut dyn FnMut(HotField)) {
        let Self { tail, head, capacity, slots } = self;
        let (worker, thieves) = (Role::One("producer"), Role::Many("consumers"));
        let tail_word = HotField::of("tail", &**tail).written_by(worker).read_by(thieves);
        visit(tail_word.padded_in(tail));
        let head_word = HotField::of("head", &**head).written_by(thieves).read_by(worker);
        visit(head_word.padded_in(head));
        visit(HotField::of("capacity", capacity).read_by(Role::Anybody));
        visit(HotField::between(capacity, slots));
        visit(S::header(slots).read_by(Role::Anybody));
        for slot in slot::describe(S::as_slice(slots)) {
            visit(slot.written_by(worker).read_by(thieves));
        }
        visit(HotField::rest(self, slots));
    }
}

impl<T, S: Storage> fmt::Debug for DequePackedFifo<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DequePackedFifo").finish_non_exhaustive()
    }
}
