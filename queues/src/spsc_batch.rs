//! Batches on the cached SPSC ring: many elements, one store of the position.
//!
//! A batch pays the transfers of `tail` and `head` once, however long it is. Its elements become
//! visible together, when the call ends; it ends early, and publishes what is done, if the caller's
//! code panics. Invariants I1 to I4 and edges E1 and E2 are those of `spsc_ring_cached`.

use super::spsc_ring_cached::{End, LAP, SpscConsumer, SpscProducer, distance, next};
use super::sync::atomic::Ordering;

/// Stores the position that a batch has reached, also when the caller's code panics.
struct Reached<'q> {
    end: &'q End,
    from: usize,
    position: usize,
    count: usize,
}

impl<'q> Reached<'q> {
    fn at(end: &'q End) -> Self {
        // ORDERING: Relaxed - by I1 the owner reads its own position back.
        let from = end.position.load(Ordering::Relaxed);
        Self { end, from, position: from, count: 0 }
    }

    /// Takes note of one more element, and where it lies.
    #[inline(always)]
    fn step(&mut self, capacity: usize) {
        self.position = next(self.position, capacity);
        self.count += 1;
    }
}

impl Drop for Reached<'_> {
    fn drop(&mut self) {
        if self.position != self.from {
            // ORDERING: Release, E1 for a producer, E2 for a consumer - hands all elements of the
            // batch over, or their slots back.
            self.end.position.store(self.position, Ordering::Release);
        }
    }
}

impl<T> SpscProducer<'_, T> {
    /// Appends elements in their order until there are no more or no room, and gives their number.
    /// Nothing is taken from `elements` that does not go in. The consumer sees them when the call
    /// ends.
    ///
    /// ```
    /// use queues::{Inline, SpscRingCached};
    /// let mut ring = SpscRingCached::<u64, Inline<4>>::new();
    /// let (mut producer, mut consumer) = ring.split();
    /// let mut numbers = 0..10;
    /// assert_eq!(producer.push_from(&mut numbers), 4);
    /// let mut sum = 0;
    /// assert_eq!(consumer.pop_each(3, |number| sum += number), 3);
    /// assert_eq!((sum, numbers.next(), consumer.try_pop()), (3, Some(4), Some(3)));
    /// ```
    pub fn push_from(&mut self, elements: impl IntoIterator<Item = T>) -> usize {
        let capacity = self.slots.len();
        let mut reached = Reached::at(self.tail);
        // SAFETY: the producer owns the tail end.
        let mut head = unsafe { self.tail.peer() };
        let mut elements = elements.into_iter();
        loop {
            if distance(head, reached.position, capacity) == capacity {
                // SAFETY: the producer owns the tail end.
                head = unsafe { self.tail.look_at(self.head) };
                if distance(head, reached.position, capacity) == capacity {
                    break;
                }
            }
            let Some(value) = elements.next() else { break };
            // SAFETY: by I2.
            let slot = unsafe { self.slots.get_unchecked(reached.position & !LAP) };
            // SAFETY: the ring is not full up to here, so by I3 the slot is vacant and the
            // producer's; E2 orders us behind the pop that vacated it.
            unsafe { slot.put(value) };
            reached.step(capacity);
        }
        reached.count
    }
}

impl<T> SpscConsumer<'_, T> {
    /// Takes the oldest elements, at most `most`, hands each to `take`, and gives their number. The
    /// producer sees their room when the call ends.
    pub fn pop_each(&mut self, most: usize, mut take: impl FnMut(T)) -> usize {
        let capacity = self.slots.len();
        let mut reached = Reached::at(self.head);
        // SAFETY: the consumer owns the head end.
        let mut tail = unsafe { self.head.peer() };
        while reached.count < most {
            if tail == reached.position {
                // SAFETY: the consumer owns the head end.
                tail = unsafe { self.head.look_at(self.tail) };
                if tail == reached.position {
                    break;
                }
            }
            // SAFETY: by I2.
            let slot = unsafe { self.slots.get_unchecked(reached.position & !LAP) };
            // SAFETY: the ring is not empty from here on, so by I3 the slot holds an element and is
            // the consumer's; E1 orders us behind the push.
            let value = unsafe { slot.take() };
            reached.step(capacity);
            take(value);
        }
        reached.count
    }
}
