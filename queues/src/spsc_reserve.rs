//! Reserve and commit on the cached SPSC ring: slots that are written, or elements that are read,
//! where they lie, and one store of the position for all of them.
//!
//! A reservation changes nothing that the other side sees, until it is committed or released. So it
//! may be dropped, and even forgotten: the slots stay what they were. Elements that were put into a
//! reservation and not committed are dropped with it; if it is forgotten, so are they. Nothing is
//! moved out of a slot that still counts as filled: that would come out twice if the reservation were
//! forgotten. Invariants I1 to I4 and edges E1 and E2 are those of `spsc_ring_cached`; the slices are
//! in `spsc_slices`.

use core::fmt;

use super::contract::Full;
use super::drain::drain;
use super::slot::Slot;
use super::spsc_ring_cached::{End, LAP, SpscConsumer, SpscProducer, distance, position};
use super::sync::atomic::Ordering;

/// The position `count` slots after `position`, at most one lap.
#[inline(always)]
fn advance(from: usize, count: usize, capacity: usize) -> usize {
    let index = (from & !LAP) + count;
    if index < capacity {
        from + count
    } else {
        position(usize::from(from & LAP == 0), index - capacity)
    }
}

/// Stores the position that a side has reached.
#[inline(always)]
fn publish(end: &End, position: usize) {
    // ORDERING: Release, E1 for a producer, E2 for a consumer - hands all elements over, or their
    // slots back.
    end.position.store(position, Ordering::Release);
}

/// Vacant slots that the producer writes in place; the consumer sees what is committed.
pub struct Reserved<'p, T> {
    pub(crate) tail: &'p End,
    pub(crate) slots: &'p [Slot<T>],
    /// The position of the first slot.
    pub(crate) from: usize,
    pub(crate) room: usize,
    /// So many hold elements, from the first on.
    pub(crate) filled: usize,
}

/// Elements that the consumer reads in place; those that are released are dropped.
pub struct Ready<'c, T> {
    head: &'c End,
    pub(crate) slots: &'c [Slot<T>],
    /// The position of the first element.
    pub(crate) from: usize,
    pub(crate) count: usize,
}

// SAFETY: it is a part of the one producer, which may be in any thread (I4).
unsafe impl<T: Send> Send for Reserved<'_, T> {}
// SAFETY: it is a part of the one consumer, which may be in any thread (I4).
unsafe impl<T: Send> Send for Ready<'_, T> {}

impl<T> SpscProducer<'_, T> {
    /// Reserves `count` slots, if so many are vacant.
    ///
    /// ```
    /// use queues::{Inline, SpscRingCached};
    /// let mut ring = SpscRingCached::<u64, Inline<4>>::new();
    /// let (mut producer, mut consumer) = ring.split();
    /// let mut reserved = producer.reserve(3).unwrap();
    /// for number in 0..3 {
    ///     reserved.push(number).unwrap();
    /// }
    /// assert_eq!(reserved.commit_first(2), 2);
    /// let ready = consumer.ready_up_to(4);
    /// assert_eq!((ready.get(0), ready.get(1), ready.get(2)), (Some(&0), Some(&1), None));
    /// ready.release(1);
    /// assert_eq!(consumer.try_pop(), Some(1));
    /// ```
    pub fn reserve(&mut self, count: usize) -> Option<Reserved<'_, T>> {
        let reserved = self.room(count);
        (reserved.room == count).then_some(reserved)
    }

    /// Reserves the vacant slots, `most` at most; there may be none.
    pub fn reserve_up_to(&mut self, most: usize) -> Reserved<'_, T> {
        self.room(most)
    }

    fn room(&mut self, wanted: usize) -> Reserved<'_, T> {
        let capacity = self.slots.len();
        // ORDERING: Relaxed - by I1 the producer reads its own position back.
        let from = self.tail.position.load(Ordering::Relaxed);
        // SAFETY: the producer owns the tail end.
        let mut room = capacity - distance(unsafe { self.tail.peer() }, from, capacity);
        if room < wanted {
            // SAFETY: as the line above.
            room = capacity - distance(unsafe { self.tail.look_at(self.head) }, from, capacity);
        }
        Reserved { tail: self.tail, slots: self.slots, from, room: room.min(wanted), filled: 0 }
    }
}

impl<T> Reserved<'_, T> {
    /// How many elements still fit.
    pub fn room(&self) -> usize {
        self.room - self.filled
    }

    /// How many elements it holds.
    pub fn len(&self) -> usize {
        self.filled
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.filled == 0
    }

    /// Puts `value` into the next slot.
    ///
    /// # Errors
    /// [`Full`] hands the value back when all reserved slots hold elements.
    #[inline]
    pub fn push(&mut self, value: T) -> Result<(), Full<T>> {
        if self.room() == 0 {
            return Err(Full(value));
        }
        // SAFETY: the slot is reserved and holds nothing yet: by I3 it is vacant and the producer's,
        // with E2 behind us.
        unsafe { self.slot(self.filled).put(value) };
        self.filled += 1;
        Ok(())
    }

    /// Hands all elements to the consumer and gives their number; slots without one stay vacant.
    pub fn commit(self) -> usize {
        let filled = self.filled;
        self.commit_first(filled)
    }

    /// Hands the first elements to the consumer, `most` at most, drops the others, and gives the
    /// number of those that were handed over.
    pub fn commit_first(mut self, most: usize) -> usize {
        let count = most.min(self.filled);
        if count > 0 {
            self.from = advance(self.from, count, self.slots.len());
            self.filled -= count;
            self.room -= count;
            publish(self.tail, self.from);
        }
        count
    }

    /// The slot of element `number`.
    #[inline(always)]
    fn slot(&self, number: usize) -> &Slot<T> {
        let position = advance(self.from, number, self.slots.len());
        // SAFETY: by I2, which `advance` keeps up.
        unsafe { self.slots.get_unchecked(position & !LAP) }
    }
}

impl<T> Drop for Reserved<'_, T> {
    fn drop(&mut self) {
        drain(|| {
            self.filled = self.filled.checked_sub(1)?;
            // SAFETY: the slot holds an element that was not handed over; it is not taken again.
            Some(unsafe { self.slot(self.filled).take() })
        });
    }
}

impl<T> SpscConsumer<'_, T> {
    /// Lets the caller read the oldest `count` elements in place, if there are so many.
    pub fn ready(&mut self, count: usize) -> Option<Ready<'_, T>> {
        let ready = self.there(count);
        (ready.count == count).then_some(ready)
    }

    /// Lets the caller read the oldest elements in place, `most` at most; there may be none.
    pub fn ready_up_to(&mut self, most: usize) -> Ready<'_, T> {
        self.there(most)
    }

    fn there(&mut self, wanted: usize) -> Ready<'_, T> {
        let capacity = self.slots.len();
        // ORDERING: Relaxed - by I1 the consumer reads its own position back.
        let from = self.head.position.load(Ordering::Relaxed);
        // SAFETY: the consumer owns the head end.
        let mut count = distance(from, unsafe { self.head.peer() }, capacity);
        if count < wanted {
            // SAFETY: as the line above.
            count = distance(from, unsafe { self.head.look_at(self.tail) }, capacity);
        }
        Ready { head: self.head, slots: self.slots, from, count: count.min(wanted) }
    }
}

impl<T> Ready<'_, T> {
    /// How many elements can be read.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Reaches element `number`, the oldest being 0.
    pub fn get(&self, number: usize) -> Option<&T> {
        (number < self.count).then(|| {
            // SAFETY: by I3 the slot holds an element and is the consumer's, with E1 behind us; it
            // is dropped only when `self` is used up.
            unsafe { self.slot(number).peek() }
        })
    }

    /// Drops the oldest elements, `most` at most, gives their slots back to the producer, and gives
    /// their number. The others stay in the ring, as all do if this is not called.
    ///
    /// If the drop of an element panics, the others are dropped and the slots given back all the same.
    pub fn release(self, most: usize) -> usize {
        /// Gives the slots back when all elements are dropped, also by a panic.
        struct Back<'c>(&'c End, usize);
        impl Drop for Back<'_> {
            fn drop(&mut self) {
                publish(self.0, self.1);
            }
        }
        let count = most.min(self.count);
        let back = Back(self.head, advance(self.from, count, self.slots.len()));
        let mut dropped = 0;
        drain(|| {
            (dropped < count).then(|| {
                dropped += 1;
                // SAFETY: by I3 the slot holds an element and is the consumer's, with E1 behind us;
                // `head` is past it before it is looked at again.
                unsafe { self.slot(dropped - 1).take() }
            })
        });
        drop(back);
        count
    }

    /// The slot of element `number`.
    #[inline(always)]
    fn slot(&self, number: usize) -> &Slot<T> {
        let position = advance(self.from, number, self.slots.len());
        // SAFETY: by I2, which `advance` keeps up.
        unsafe { self.slots.get_unchecked(position & !LAP) }
    }
}

impl<T> fmt::Debug for Reserved<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { room, filled, .. } = self;
        f.debug_struct("Reserved")
            .field("room", room)
            .field("filled", filled)
            .finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for Ready<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ready").field("count", &self.count).finish_non_exhaustive()
    }
}
