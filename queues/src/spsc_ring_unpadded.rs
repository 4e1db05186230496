//! SPSC ring whose two sides share one line: a negative control.
//! # Algorithm
//! That of `spsc_ring_cached`, by the same code; only the distance of `tail` and `head` differs.
//! # Why
//! Shows what false sharing costs: each store of one side takes the line away from under the
//! other, and the private `peer`s, which the cached ring keeps to save transfers, travel with it.
//! Nobody should use it.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `SpscRingUnpadded<T, Boxed>` | 64 | 64 | 1 | `tail` end: producer; `head` end: consumer |
//! | slot | that of `T` | that of `T` | - | producer |
//! | endpoint | 32 | 8 | - | nobody |
//! # Cost
//! Instructions as `spsc_ring_cached`. With both sides at work each operation costs up to 2
//! transfers of the shared line, whatever the distance between them in the queue.
//! # Progress
//! As `spsc_ring_cached`.
//! # Invariants
//! As `spsc_ring_cached`.
//! # Synchronization
//! As `spsc_ring_cached`.
//! # Errors and limits
//! As `spsc_ring_cached`.
//! # References
//! none; the mistake is the field's own.

use core::fmt;

use super::contract::{CapacityError, Properties, Queue, WithCapacity};
use super::drain::drain;
use super::hot::{HotField, HotFields};
use super::slot::Slot;
use super::spsc_ring_cached::{
    End, PROPERTIES, SpscConsumer, SpscProducer, describe_slots, endpoints, position, vacant_slots,
};
use super::storage::Storage;
use super::sync::const_fn;

/// Keeps both sides of an SPSC ring on one line.
///
/// ```
/// use queues::{Inline, SpscRingUnpadded};
/// let mut ring = SpscRingUnpadded::<u64, Inline<4>>::new();
/// let (mut producer, mut consumer) = ring.split();
/// producer.try_push(7).unwrap();
/// assert_eq!(consumer.try_pop(), Some(7));
/// ```
#[repr(C, align(64))]
pub struct SpscRingUnpadded<T, S: Storage> {
    tail: End,
    head: End,
    slots: S::Slots<Slot<T>>,
}

// SAFETY: as for `SpscRingCached`.
unsafe impl<T: Send, S: Storage> Send for SpscRingUnpadded<T, S> {}
// SAFETY: as for `SpscRingCached`.
unsafe impl<T: Send, S: Storage> Sync for SpscRingUnpadded<T, S> {}

impl<T, S: Storage> SpscRingUnpadded<T, S> {
    const_fn! {
        /// Makes an empty ring over vacant slots.
        pub(crate) fn over(slots: S::Slots<Slot<T>>) -> Self {
            Self { tail: End::at(0), head: End::at(0), slots }
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
        ring.tail = End::at(start);
        ring.head = End::at(start);
        Ok(ring)
    }

    /// Offsets in bytes of `head` and of `tail`.
    pub const OFFSETS: (usize, usize) =
        (core::mem::offset_of!(Self, head), core::mem::offset_of!(Self, tail));

    /// Gives out both sides. The exclusive borrow proves that no others exist.
    #[inline]
    pub fn split(&mut self) -> (SpscProducer<'_, T>, SpscConsumer<'_, T>) {
        // SAFETY: `self` is borrowed exclusively for as long as the endpoints live.
        unsafe { endpoints(&self.tail, &self.head, S::as_slice(&self.slots)) }
    }
}

impl<T, S: Storage> WithCapacity for SpscRingUnpadded<T, S> {
    fn with_capacity(capacity: usize) -> Result<Self, CapacityError> {
        Ok(Self::over(vacant_slots::<T, S>(capacity)?))
    }
}

impl<T: Send, S: Storage> Queue<T> for SpscRingUnpadded<T, S> {
    type Producer<'q>
        = SpscProducer<'q, T>
    where
        Self: 'q;
    type Consumer<'q>
        = SpscConsumer<'q, T>
    where
        Self: 'q;
    const PROPERTIES: Properties = PROPERTIES;
    const BYTES_PER_SLOT: usize = size_of::<Slot<T>>();

    #[inline]
    fn split(&mut self) -> (SpscProducer<'_, T>, SpscConsumer<'_, T>) {
        self.split()
    }

    #[inline]
    fn capacity(&self) -> usize {
        S::as_slice(&self.slots).len()
    }
}

impl<T, S: Storage> Drop for SpscRingUnpadded<T, S> {
    fn drop(&mut self) {
        let mut consumer = self.split().1;
        drain(|| consumer.try_pop());
    }
}

impl<T, S: Storage> HotFields for SpscRingUnpadded<T, S> {
    const ALIGNMENT: usize = 64;
    const ALONE: bool = false;

    fn hot_fields(&self, visit: &mut dyn FnMut(HotField)) {
        let Self { tail, head, slots } = self;
        let tail_fields = tail.describe(["tail", "tail.peer"], ["producer", "consumer"]);
        let head_fields = head.describe(["head", "head.peer"], ["consumer", "producer"]);
        tail_fields.into_iter().chain(head_fields).for_each(&mut *visit);
        visit(HotField::between(head, slots));
        describe_slots::<T, S>(slots, visit);
        visit(HotField::rest(self, slots));
    }
}

impl<T, S: Storage> fmt::Debug for SpscRingUnpadded<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpscRingUnpadded").finish_non_exhaustive()
    }
}
