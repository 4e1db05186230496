//! Slices of reserved slots and of elements that are ready, on the cached SPSC ring.
//!
//! A slot has the size and the bytes of its element only over the crate's own cells, so the model
//! tests, which compile the rings over larger ones, leave this file out. There are two slices: up to
//! the end of the slots, and from their beginning.

use core::mem::MaybeUninit;
use core::slice;

use super::slot::Slot;
use super::spsc_reserve::{Ready, Reserved};
use super::spsc_ring_cached::LAP;

/// The slots from `first` on, `count` of them, as far as they lie before the end and behind it.
fn two_runs<T>(slots: &[Slot<T>], first: usize, count: usize) -> (&[Slot<T>], &[Slot<T>]) {
    let (before, from) = slots.split_at(first);
    let run = count.min(from.len());
    (&from[..run], &before[..count - run])
}

/// Reaches what vacant slots are made of.
///
/// # Safety
/// The slots are there, and the caller's alone, for as long as the slice lives.
unsafe fn vacant_mut<'s, T>(slots: *const [Slot<T>]) -> &'s mut [MaybeUninit<T>] {
    let first = slots.cast_mut().cast::<MaybeUninit<T>>();
    // SAFETY: a slot is a cell of a `MaybeUninit<T>` and nothing else (`repr(transparent)`), so as
    // many of these lie there; by the caller's duty nobody else reaches them.
    unsafe { slice::from_raw_parts_mut(first, slots.len()) }
}

/// Reaches the elements of filled slots.
///
/// # Safety
/// Each slot holds an element, and nobody writes to it for as long as the slice lives.
unsafe fn elements<T>(slots: &[Slot<T>]) -> &[T] {
    // SAFETY: as in `vacant_mut`; by the caller's duty each holds an element.
    unsafe { slice::from_raw_parts(slots.as_ptr().cast::<T>(), slots.len()) }
}

impl<T> Reserved<'_, T> {
    /// Reaches the slots that hold no element yet, to be written in order: the second slice behind
    /// the first. What was written counts once [`assume_filled`](Self::assume_filled) says so.
    ///
    /// ```
    /// use queues::{Inline, SpscRingCached};
    /// let mut ring = SpscRingCached::<u8, Inline<4>>::new();
    /// let (mut producer, mut consumer) = ring.split();
    /// let mut reserved = producer.reserve(2).unwrap();
    /// let (first, _second) = reserved.vacant_mut();
    /// first[0].write(7);
    /// // SAFETY: the first slot was written.
    /// unsafe { reserved.assume_filled(1) };
    /// assert_eq!((reserved.commit(), consumer.try_pop()), (1, Some(7)));
    /// ```
    pub fn vacant_mut(&mut self) -> (&mut [MaybeUninit<T>], &mut [MaybeUninit<T>]) {
        let (filled, capacity) = (self.filled, self.slots.len());
        let first = ((self.from & !LAP) + filled) % capacity;
        let (one, other) = two_runs(self.slots, first, self.room());
        // SAFETY: reserved and without an element: vacant and the producer's (I3), of which `self` is
        // a part that is borrowed exclusively.
        let one = unsafe { vacant_mut(one) };
        // SAFETY: as the line above; the runs do not overlap.
        let other = unsafe { vacant_mut(other) };
        (one, other)
    }

    /// Says that the next `count` slots were written.
    ///
    /// # Safety
    /// Each of them holds an element.
    ///
    /// # Panics
    /// When fewer are reserved.
    pub unsafe fn assume_filled(&mut self, count: usize) {
        assert!(count <= self.room(), "{count} slots were not reserved");
        self.filled += count;
    }

    /// Copies the first elements of `elements` into the next slots, as many as fit, and gives their
    /// number.
    pub fn copy_from(&mut self, elements: &[T]) -> usize
    where
        T: Copy,
    {
        let (one, other) = self.vacant_mut();
        let count = elements.len().min(one.len() + other.len());
        let (first, second) = elements[..count].split_at(count.min(one.len()));
        for (slots, elements) in [(one, first), (other, second)] {
            for (slot, element) in slots.iter_mut().zip(elements) {
                slot.write(*element);
            }
        }
        // SAFETY: `count` elements were written, in order.
        unsafe { self.assume_filled(count) };
        count
    }
}

impl<T> Ready<'_, T> {
    /// Reaches the elements in their order, the second slice behind the first.
    ///
    /// ```
    /// use queues::{Inline, SpscRingCached};
    /// let mut ring = SpscRingCached::<u8, Inline<4>>::new();
    /// let (mut producer, mut consumer) = ring.split();
    /// producer.reserve(3).unwrap().copy_from(&[1, 2, 3]);
    /// assert_eq!(consumer.try_pop(), None, "dropped, not committed");
    /// let mut reserved = producer.reserve(3).unwrap();
    /// reserved.copy_from(&[1, 2, 3]);
    /// reserved.commit();
    /// let ready = consumer.ready(2).unwrap();
    /// assert_eq!(ready.as_slices(), (&[1, 2][..], &[][..]));
    /// ```
    pub fn as_slices(&self) -> (&[T], &[T]) {
        let (one, other) = two_runs(self.slots, self.from & !LAP, self.count);
        // SAFETY: by I3 the slots hold elements and are the consumer's, of which `self` is a part;
        // they are dropped only when `self` is used up.
        let one = unsafe { elements(one) };
        // SAFETY: as the line above.
        let other = unsafe { elements(other) };
        (one, other)
    }
}
