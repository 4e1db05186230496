//! Lamport's SPSC ring: one producer, one consumer, no RMW, and a look at the other side in each
//! operation.
//! # Algorithm
//! `tail` is the position of the next push, `head` that of the next pop, both as in
//! `spsc_ring_cached`: equal positions mean empty, positions that differ in the lap bit alone mean
//! full. `try_push` loads `head`; unless that says full it puts the element into its slot and stores
//! the next `tail`. `try_pop` is the mirror image.
//! # Why
//! What the cached ring is measured against: it has no word beside its position, and a look at the
//! other side that is never old, but each operation of one side takes the line that the other side
//! wrote in its last one.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `SpscLamport<T, Boxed>` | 384 | 128 | 6 | `tail` pair: producer; `head` pair: consumer; the rest: nobody |
//! | slot | that of `T` | that of `T` | - | producer |
//! | endpoint | 32 | 8 | - | nobody |
//! # Cost
//! Operation: 0 RMWs; push: 2 loads, 2 stores; pop: 3 loads, 1 store; 3 lines; and loads of the
//! endpoint's words, which nobody writes. Transfers an element of 8 bytes with both sides at work:
//! up to 4 of positions, and 1/4.
//! # Progress
//! Wait-free: an operation is straight-line code. A stopped peer leaves the queue as full or as
//! empty as it is.
//! # Invariants
//! - I1: `tail` is written by the producer only, `head` by the consumer only.
//! - I2: the index in a position is below the capacity.
//! - I3: the slots from `head` up to `tail`, at most `capacity` of them, hold elements, the others
//!   hold none. Only the producer touches slots that it has seen vacant, only the consumer those
//!   that it has seen filled.
//! - I4: `split` borrows the ring exclusively and endpoints cannot be copied: there is one of each.
//! # Synchronization
//! | edge | release side | acquire side | publishes |
//! |---|---|---|---|
//! | E1 | store of `tail` in `try_push` | load of `tail` in `try_pop` | the element |
//! | E2 | store of `head` in `try_pop` | load of `head` in `try_push` | that the element has been moved out |
//! # Errors and limits
//! Capacities from 1 to `isize::MAX`, as far as the storage goes. `Full` hands the value back. An
//! element is moved out and `head` is past it before it can be dropped, so a `Drop` that panics is
//! not run twice.
//! # References
//! L. Lamport, "Specifying Concurrent Program Modules", ACM TOPLAS 5(2), 1983. Differs from the
//! paper in: the lap bit, so that no slot stays vacant.

use core::fmt;

use crossbeam_utils::CachePadded;

use super::contract::{CapacityError, Consumer, Full, Producer, Properties, Queue, WithCapacity};
use super::drain::drain;
use super::hot::{HotField, HotFields, Role};
use super::slot::Slot;
use super::spsc_ring_cached::{LAP, PROPERTIES, describe_slots, next, position, vacant_slots};
use super::storage::Storage;
use super::sync::atomic::{AtomicUsize, Ordering};
use super::sync::const_fn;

/// Hands elements from one thread to one other; each looks at the other's position every time.
///
/// ```
/// use queues::{Full, Inline, SpscLamport};
/// let mut ring = SpscLamport::<u64, Inline<1>>::new();
/// let (mut producer, mut consumer) = ring.split();
/// producer.try_push(7).unwrap();
/// assert_eq!(producer.try_push(8), Err(Full(8)));
/// assert_eq!(consumer.try_pop(), Some(7));
/// ```
#[repr(C)]
pub struct SpscLamport<T, S: Storage> {
    tail: CachePadded<AtomicUsize>,
    head: CachePadded<AtomicUsize>,
    slots: S::Slots<Slot<T>>,
}

// SAFETY: the ring owns its elements and its slots (contract of `Storage`); nothing else in it is
// bound to a thread.
unsafe impl<T: Send, S: Storage> Send for SpscLamport<T, S> {}
// SAFETY: through `&self` nothing moves; elements pass through the endpoints, of which there is
// one a side (I4).
unsafe impl<T: Send, S: Storage> Sync for SpscLamport<T, S> {}

impl<T, S: Storage> SpscLamport<T, S> {
    const_fn! {
        /// Makes an empty ring over vacant slots.
        pub(crate) fn over(slots: S::Slots<Slot<T>>) -> Self {
            Self {
                tail: CachePadded::new(AtomicUsize::new(0)),
                head: CachePadded::new(AtomicUsize::new(0)),
                slots,
            }
        }
    }

    /// Makes an empty ring whose next push goes to slot `index` in lap `lap`; tests start near the
    /// wrap.
    ///
    /// # Errors
    /// As `with_capacity`.
    #[doc(hidden)]
    pub fn starting_at(capacity: usize, lap: usize, index: usize) -> Result<Self, CapacityError> {
        let mut ring = Self::with_capacity(capacity)?;
        let start = position(lap, index % capacity);
        *ring.tail = AtomicUsize::new(start);
        *ring.head = AtomicUsize::new(start);
        Ok(ring)
    }

    /// Offsets in bytes of `head` and of `tail`.
    pub const OFFSETS: (usize, usize) =
        (core::mem::offset_of!(Self, head), core::mem::offset_of!(Self, tail));

    /// Gives out both sides. The exclusive borrow proves that no others exist.
    #[inline]
    pub fn split(&mut self) -> (LamportProducer<'_, T>, LamportConsumer<'_, T>) {
        let Self { tail, head, slots } = self;
        let (tail, head, slots) = (&**tail, &**head, S::as_slice(slots));
        (LamportProducer { tail, head, slots }, LamportConsumer { head, tail, slots })
    }
}

impl<T, S: Storage> WithCapacity for SpscLamport<T, S> {
    fn with_capacity(capacity: usize) -> Result<Self, CapacityError> {
        Ok(Self::over(vacant_slots::<T, S>(capacity)?))
    }
}

impl<T: Send, S: Storage> Queue<T> for SpscLamport<T, S> {
    type Producer<'q>
        = LamportProducer<'q, T>
    where
        Self: 'q;
    type Consumer<'q>
        = LamportConsumer<'q, T>
    where
        Self: 'q;
    const PROPERTIES: Properties = PROPERTIES;
    const BYTES_PER_SLOT: usize = size_of::<Slot<T>>();

    #[inline]
    fn split(&mut self) -> (LamportProducer<'_, T>, LamportConsumer<'_, T>) {
        self.split()
    }

    #[inline]
    fn capacity(&self) -> usize {
        S::as_slice(&self.slots).len()
    }
}

impl<T, S: Storage> Drop for SpscLamport<T, S> {
    fn drop(&mut self) {
        let mut consumer = self.split().1;
        drain(|| consumer.try_pop());
    }
}

impl<T, S: Storage> HotFields for SpscLamport<T, S> {
    const ALIGNMENT: usize = align_of::<CachePadded<u8>>();
    const ALONE: bool = true;

    fn hot_fields(&self, visit: &mut dyn FnMut(HotField)) {
        let Self { tail, head, slots } = self;
        let (producer, consumer) = (Role::One("producer"), Role::One("consumer"));
        let tail_word = HotField::of("tail", &**tail).written_by(producer).read_by(consumer);
        visit(tail_word.padded_in(tail));
        let head_word = HotField::of("head", &**head).written_by(consumer).read_by(producer);
        visit(head_word.padded_in(head));
        describe_slots::<T, S>(slots, visit);
        visit(HotField::rest(self, slots));
    }
}

impl<T, S: Storage> fmt::Debug for SpscLamport<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpscLamport").finish_non_exhaustive()
    }
}

/// The pushing side of Lamport's ring: can be sent to another thread and not shared.
pub struct LamportProducer<'q, T> {
    tail: &'q AtomicUsize,
    head: &'q AtomicUsize,
    slots: &'q [Slot<T>],
}

/// The popping side of Lamport's ring: can be sent to another thread and not shared.
pub struct LamportConsumer<'q, T> {
    head: &'q AtomicUsize,
    tail: &'q AtomicUsize,
    slots: &'q [Slot<T>],
}

// SAFETY: elements pass through it to another thread, so they have to be sendable; the one
// producer (I4) may be in any thread.
unsafe impl<T: Send> Send for LamportProducer<'_, T> {}
// SAFETY: as the line above.
unsafe impl<T: Send> Send for LamportConsumer<'_, T> {}

impl<T> LamportProducer<'_, T> {
    /// Appends `value`.
    ///
    /// # Errors
    /// [`Full`] hands the value back when `capacity` elements are stored.
    #[inline]
    pub fn try_push(&mut self, value: T) -> Result<(), Full<T>> {
        // ORDERING: Relaxed - by I1 the producer reads its own position back.
        let tail = self.tail.load(Ordering::Relaxed);
        // ORDERING: Acquire, E2 - the elements before `head` have been moved out.
        if self.head.load(Ordering::Acquire) == tail ^ LAP {
            return Err(Full(value));
        }
        // SAFETY: by I2.
        let slot = unsafe { self.slots.get_unchecked(tail & !LAP) };
        // SAFETY: the ring is not full, so by I3 the slot at `tail` is vacant and the producer's;
        // E2 orders us behind the pop that vacated it.
        unsafe { slot.put(value) };
        // ORDERING: Release, E1 - hands the element to the consumer.
        self.tail.store(next(tail, self.slots.len()), Ordering::Release);
        Ok(())
    }
}

impl<T> LamportConsumer<'_, T> {
    /// Takes the oldest element, if there is one.
    #[inline]
    pub fn try_pop(&mut self) -> Option<T> {
        // ORDERING: Relaxed - by I1 the consumer reads its own position back.
        let head = self.head.load(Ordering::Relaxed);
        // ORDERING: Acquire, E1 - the elements before `tail` are there.
        if self.tail.load(Ordering::Acquire) == head {
            return None;
        }
        // SAFETY: by I2.
        let slot = unsafe { self.slots.get_unchecked(head & !LAP) };
        // SAFETY: the ring is not empty, so by I3 the slot at `head` holds an element and is the
        // consumer's; E1 orders us behind the push.
        let value = unsafe { slot.take() };
        // ORDERING: Release, E2 - tells the producer that the element has been moved out.
        self.head.store(next(head, self.slots.len()), Ordering::Release);
        Some(value)
    }
}

impl<T> Producer<T> for LamportProducer<'_, T> {
    #[inline]
    fn try_push(&mut self, value: T) -> Result<(), Full<T>> {
        self.try_push(value)
    }

    fn try_clone(&self) -> Option<Self> {
        None
    }
}

impl<T> Consumer<T> for LamportConsumer<'_, T> {
    #[inline]
    fn try_pop(&mut self) -> Option<T> {
        self.try_pop()
    }

    fn try_clone(&self) -> Option<Self> {
        None
    }
}

impl<T> fmt::Debug for LamportProducer<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LamportProducer").finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for LamportConsumer<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LamportConsumer").finish_non_exhaustive()
    }
}
