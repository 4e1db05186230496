//! FastForward: an SPSC ring whose sides never look at each other's position; a flag in each slot
//! says whether it is filled.
//! # Algorithm
//! `tail` and `head` are the indices of the next push and of the next pop, each known to its owner
//! alone. `try_push` looks at the flag of slot `tail`: if it is set the ring is full, else it puts
//! the element in, sets the flag and goes one slot on. `try_pop` is the mirror image: it takes the
//! element out and clears the flag.
//! # Why
//! Against the cached ring it has no shared position, so nothing is transferred but the slots
//! themselves, and an element is seen as soon as it is there; it adds a flag a slot, and when the
//! two sides work on the same line that line goes back and forth with each operation.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `SpscFastForward<T, Boxed>` | 384 | 128 | 6 | `tail` pair: producer; `head` pair: consumer; the rest: nobody |
//! | slot | 8 more than `T` | that of `T` | - | producer and consumer |
//! | endpoint | 24 | 8 | - | nobody |
//! # Cost
//! Operation: 0 RMWs; push: 2 loads, 3 stores; pop: 3 loads, 2 stores; 2 lines; and loads of the
//! endpoint's words, which nobody writes. Transfers an element of 8 bytes: 3/4 if the sides are a
//! line apart, up to 3 if they are not.
//! # Progress
//! Wait-free: an operation is straight-line code. A stopped peer leaves the queue as full or as
//! empty as it is.
//! # Invariants
//! - I1: `tail` is touched by the producer only, `head` by the consumer only.
//! - I2: `tail` and `head` are below the capacity.
//! - I3: a slot whose flag is set holds an element and is the consumer's, any other holds none and
//!   is the producer's; the flagged slots are those from `head` up to `tail`.
//! - I4: `split` borrows the ring exclusively and endpoints cannot be copied: there is one of each.
//! # Synchronization
//! | edge | release side | acquire side | publishes |
//! |---|---|---|---|
//! | E1 | store of `true` to the flag in `try_push` | load of the flag in `try_pop` | the element |
//! | E2 | store of `false` to the flag in `try_pop` | load of the flag in `try_push` | that the element has been moved out |
//! # Errors and limits
//! Capacities from 1 to `isize::MAX`, as far as the storage goes. `Full` hands the value back. No
//! `len`: neither side knows where the other is. An element is moved out and its flag is cleared
//! before it can be dropped, so a `Drop` that panics is not run twice.
//! # References
//! J. Giacomoni, T. Moseley, M. Vachharajani, "FastForward for Efficient Pipeline Parallelism: A
//! Cache-Optimized Concurrent Lock-Free Queue", PPoPP 2008, section 3. Differs from the paper in: a
//! flag beside the element, so that no value is reserved for "vacant"; no temporal slip: a consumer
//! that wants the sides a line apart waits before it begins.

use core::fmt;

use crossbeam_utils::CachePadded;

use super::contract::{CapacityError, Consumer, Full, Producer, Properties, Queue, WithCapacity};
use super::drain::drain;
use super::flag_slot::FlagSlot;
use super::hot::{HotField, HotFields, Role};
use super::spsc_ring_cached::{LARGEST, PROPERTIES};
use super::storage::Storage;
use super::sync::atomic::Ordering;
use super::sync::cell::UnsafeCell;
use super::sync::const_fn;

/// Hands elements from one thread to one other through flags in the slots.
///
/// ```
/// use queues::{Full, Inline, SpscFastForward};
/// let mut ring = SpscFastForward::<u64, Inline<1>>::new();
/// let (mut producer, mut consumer) = ring.split();
/// producer.try_push(7).unwrap();
/// assert_eq!(producer.try_push(8), Err(Full(8)));
/// assert_eq!(consumer.try_pop(), Some(7));
/// ```
#[repr(C)]
pub struct SpscFastForward<T, S: Storage> {
    tail: CachePadded<UnsafeCell<usize>>,
    head: CachePadded<UnsafeCell<usize>>,
    slots: S::Slots<FlagSlot<T>>,
}

// SAFETY: the ring owns its elements and its slots (contract of `Storage`); nothing else in it is
// bound to a thread.
unsafe impl<T: Send, S: Storage> Send for SpscFastForward<T, S> {}
// SAFETY: through `&self` nothing moves; elements pass through the endpoints, of which there is
// one a side (I4).
unsafe impl<T: Send, S: Storage> Sync for SpscFastForward<T, S> {}

impl<T, S: Storage> SpscFastForward<T, S> {
    const_fn! {
        /// Makes an empty ring over vacant slots, whose next push goes to slot `start`.
        pub(crate) fn over(slots: S::Slots<FlagSlot<T>>, start: usize) -> Self {
            Self {
                tail: CachePadded::new(UnsafeCell::new(start)),
                head: CachePadded::new(UnsafeCell::new(start)),
                slots,
            }
        }
    }

    /// Makes an empty ring whose next push goes to slot `index`; laps are not counted.
    ///
    /// # Errors
    /// As `with_capacity`.
    #[doc(hidden)]
    pub fn starting_at(capacity: usize, _lap: usize, index: usize) -> Result<Self, CapacityError> {
        if capacity > LARGEST {
            return Err(CapacityError::TooLarge { largest: LARGEST });
        }
        let slots = S::allocate(capacity, |_| FlagSlot::vacant())?;
        Ok(Self::over(slots, index % capacity))
    }

    /// Offsets in bytes of `head` and of `tail`.
    pub const OFFSETS: (usize, usize) =
        (core::mem::offset_of!(Self, head), core::mem::offset_of!(Self, tail));

    /// Gives out both sides. The exclusive borrow proves that no others exist.
    #[inline]
    pub fn split(&mut self) -> (FastForwardProducer<'_, T>, FastForwardConsumer<'_, T>) {
        let Self { tail, head, slots } = self;
        let slots = S::as_slice(slots);
        (FastForwardProducer { tail, slots }, FastForwardConsumer { head, slots })
    }
}

impl<T, S: Storage> WithCapacity for SpscFastForward<T, S> {
    fn with_capacity(capacity: usize) -> Result<Self, CapacityError> {
        Self::starting_at(capacity, 0, 0)
    }
}

impl<T: Send, S: Storage> Queue<T> for SpscFastForward<T, S> {
    type Producer<'q>
        = FastForwardProducer<'q, T>
    where
        Self: 'q;
    type Consumer<'q>
        = FastForwardConsumer<'q, T>
    where
        Self: 'q;
    const PROPERTIES: Properties = PROPERTIES;
    const BYTES_PER_SLOT: usize = size_of::<FlagSlot<T>>();

    #[inline]
    fn split(&mut self) -> (FastForwardProducer<'_, T>, FastForwardConsumer<'_, T>) {
        self.split()
    }

    #[inline]
    fn capacity(&self) -> usize {
        S::as_slice(&self.slots).len()
    }
}

impl<T, S: Storage> Drop for SpscFastForward<T, S> {
    fn drop(&mut self) {
        let mut consumer = self.split().1;
        drain(|| consumer.try_pop());
    }
}

impl<T, S: Storage> HotFields for SpscFastForward<T, S> {
    const ALIGNMENT: usize = align_of::<CachePadded<u8>>();
    const ALONE: bool = true;

    fn hot_fields(&self, visit: &mut dyn FnMut(HotField)) {
        let Self { tail, head, slots } = self;
        let tail_word = HotField::of("tail", &**tail).written_by(Role::One("producer"));
        visit(tail_word.padded_in(tail));
        let head_word = HotField::of("head", &**head).written_by(Role::One("consumer"));
        visit(head_word.padded_in(head));
        visit(S::header(slots));
        for (index, slot) in S::as_slice(slots).iter().enumerate() {
            slot.describe(index, [Role::One("producer"), Role::One("consumer")], visit);
        }
        visit(HotField::rest(self, slots));
    }
}

impl<T, S: Storage> fmt::Debug for SpscFastForward<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpscFastForward").finish_non_exhaustive()
    }
}

/// The pushing side of a FastForward ring: can be sent to another thread and not shared.
pub struct FastForwardProducer<'q, T> {
    tail: &'q UnsafeCell<usize>,
    slots: &'q [FlagSlot<T>],
}

/// The popping side of a FastForward ring: can be sent to another thread and not shared.
pub struct FastForwardConsumer<'q, T> {
    head: &'q UnsafeCell<usize>,
    slots: &'q [FlagSlot<T>],
}

// SAFETY: elements pass through it to another thread, so they have to be sendable; the one
// producer (I4) may be in any thread.
unsafe impl<T: Send> Send for FastForwardProducer<'_, T> {}
// SAFETY: as the line above.
unsafe impl<T: Send> Send for FastForwardConsumer<'_, T> {}

/// Moves `index` one slot on.
///
/// # Safety
/// The caller is the side that owns `index`.
#[inline(always)]
unsafe fn advance(index: &UnsafeCell<usize>, capacity: usize) {
    index.with_mut(|index| {
        // SAFETY: by I1 nobody else touches it.
        let index = unsafe { &mut *index };
        let next = *index + 1;
        *index = if next == capacity { 0 } else { next };
    });
}

impl<T> FastForwardProducer<'_, T> {
    /// Appends `value`.
    ///
    /// # Errors
    /// [`Full`] hands the value back when `capacity` elements are stored.
    #[inline]
    pub fn try_push(&mut self, value: T) -> Result<(), Full<T>> {
        // SAFETY: by I1 nobody else touches it.
        let tail = self.tail.with(|tail| unsafe { *tail });
        // SAFETY: by I2.
        let FlagSlot { filled, slot } = unsafe { self.slots.get_unchecked(tail) };
        // ORDERING: Acquire, E2 - the element of the lap before has been moved out.
        if filled.load(Ordering::Acquire) {
            return Err(Full(value));
        }
        // SAFETY: the flag is not set, so by I3 the slot is vacant and the producer's, with E2
        // behind us.
        unsafe { slot.put(value) };
        // ORDERING: Release, E1 - hands the element to the consumer.
        filled.store(true, Ordering::Release);
        // SAFETY: `tail` is the producer's.
        unsafe { advance(self.tail, self.slots.len()) };
        Ok(())
    }
}

impl<T> FastForwardConsumer<'_, T> {
    /// Takes the oldest element, if there is one.
    #[inline]
    pub fn try_pop(&mut self) -> Option<T> {
        // SAFETY: by I1 nobody else touches it.
        let head = self.head.with(|head| unsafe { *head });
        // SAFETY: by I2.
        let FlagSlot { filled, slot } = unsafe { self.slots.get_unchecked(head) };
        // ORDERING: Acquire, E1 - the element is there.
        if !filled.load(Ordering::Acquire) {
            return None;
        }
        // SAFETY: the flag is set, so by I3 the slot holds an element and is the consumer's, with
        // E1 behind us.
        let value = unsafe { slot.take() };
        // ORDERING: Release, E2 - tells the producer that the element has been moved out.
        filled.store(false, Ordering::Release);
        // SAFETY: `head` is the consumer's.
        unsafe { advance(self.head, self.slots.len()) };
        Some(value)
    }
}

impl<T> Producer<T> for FastForwardProducer<'_, T> {
    #[inline]
    fn try_push(&mut self, value: T) -> Result<(), Full<T>> {
        self.try_push(value)
    }

    fn try_clone(&self) -> Option<Self> {
        None
    }
}

impl<T> Consumer<T> for FastForwardConsumer<'_, T> {
    #[inline]
    fn try_pop(&mut self) -> Option<T> {
        self.try_pop()
    }

    fn try_clone(&self) -> Option<Self> {
        None
    }
}

impl<T> fmt::Debug for FastForwardProducer<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FastForwardProducer").finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for FastForwardConsumer<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FastForwardConsumer").finish_non_exhaustive()
    }
}
