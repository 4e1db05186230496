//! Michael and Scott's queue: a linked list for any number of producers and consumers, over nodes
//! that are made with the queue and recycled through a list with tags.
//! # Algorithm
//! Each word that leads to a node holds the node's number and, above it, a tag that grows with each
//! change, so that a CAS that was prepared before a node was recycled fails. `head` leads to a node
//! whose element has been taken, its `next` to the oldest element, `tail` to the last node or the
//! one before. `try_push` takes a node from `free`, fills its place, links it behind the last node
//! by a CAS of that node's `next` and swings `tail`; whoever finds `tail` behind swings it first.
//! `try_pop` swings `head` to the next node by a CAS and takes that node's element. Then it gives
//! the node that `head` left the place that it has emptied, and pushes it onto `free`. So the place
//! of an element is reached through its node's `place`, and never read before it is one's own.
//! # Why
//! The list that the rings are measured against: no thread that stops inside keeps others from their
//! elements. Against the Vyukov ring it adds one to two RMWs an operation and two words a slot, and
//! everybody meets on `free` as well.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `MpmcMichaelScott<T, Boxed>` | 640 | 128 | 10 | `head` pair: consumers; `tail` pair: producers and consumers; `free` and `spare` pairs: both; the rest: nobody |
//! | slot | 16 more than `T` | 8 at least | - | producer and consumer |
//! | endpoint | 8 | 8 | - | nobody |
//! # Cost
//! Uncontended: push 3 RMWs (`free`, `next`, `tail`), pop 2 (`head`, `free`); each failed CAS costs
//! its line and a new look. No operation allocates.
//! # Progress
//! Lock-free: whoever makes a CAS fail has moved a word on. A stopped thread keeps the one node that
//! it took or is about to give back, so `Full` may be said that much early; nothing else waits for
//! it. A thread may starve.
//! # Invariants
//! - I1: the number in each word is that of a node, or of none (`nobody`); no two changes of a word
//!   give it the same tag, while fewer than all tags pass.
//! - I2: every node is in the list from `head` on, in the list from `free` on, or with the one thread
//!   that took it from either.
//! - I3: every node but the one that `head` leads to has a place of its own (`place`); places of
//!   nodes behind `head` hold elements, the others hold none. `place` changes only while its node is
//!   with one thread.
//! - I4: `tail` is never behind `head`: `head` leaves a node only when `tail` was seen elsewhere.
//! - I5: whoever has moved `head` to a node alone may take the element of its place.
//! # Synchronization
//! | edge | release side | acquire side | publishes |
//! |---|---|---|---|
//! | E1 | CAS of `next` in `try_push` | load of `next` in `try_pop` | the node's place and element |
//! | E2 | CAS of `free` in `give` | load of `free` in `take` | the node's place, and that it is vacant |
//! | E3 | CAS of `head` in `try_pop`, of `tail` in `swing` | load of the same word in `try_pop` and `try_push` | the links of the node that it leads to, and where `tail` was seen |
//! | E4 | store of `next` in `try_push` and `give` | load of `next` in `try_push` and `try_pop` | that `head` and `tail` have left the node |
//! # Errors and limits
//! Capacities from 1 to 2³⁰ (2¹⁴ with 32 bits), as far as the storage goes. Reclamation: none is
//! needed, since nodes live as long as the queue; that is also why it is bounded. Tags have the bits
//! that numbers leave over, 53 for 1024 slots: a thread would be wrong that stops inside an operation
//! while the others make exactly as many changes of one word as there are tags.
//! # References
//! M. Michael, M. Scott, "Simple, Fast, and Practical Non-Blocking and Blocking Concurrent Queue
//! Algorithms", PODC 1996, figure 1. Differs from the paper in: places apart from nodes, since
//! reading an element that another thread may be overwriting is a race; a fixed number of nodes.

use core::fmt;

use crossbeam_utils::CachePadded;

use super::contract::{
    CapacityError, Full, Order, Progress, Properties, Queue, SharedQueue, Side, WithCapacity,
};
use super::drain::drain;
use super::hot::{HotField, HotFields, Role};
use super::shared::shared_ends;
use super::slot::{self, Slot};
use super::storage::Storage;
use super::sync::atomic::{AtomicUsize, Ordering};
use super::sync::const_fn;

/// The largest capacity: leaves more than half of a word for tags.
pub(crate) const LARGEST: usize = 1 << (usize::BITS / 2 - 2);

/// What a node needs to be in a list.
#[repr(C)]
struct Links {
    next: AtomicUsize,
    place: AtomicUsize,
}

/// One node, and one place; whose place it is at the time, the nodes say.
#[repr(C)]
pub(crate) struct NodeSlot<T> {
    links: Links,
    slot: Slot<T>,
}

impl<T> NodeSlot<T> {
    const_fn! {
        /// Makes node `number` of the free list of a queue of `capacity`.
        pub(crate) fn free(number: usize, capacity: usize) -> Self {
            let next = if number + 1 == capacity { number_mask(capacity) } else { number + 1 };
            let links = Links { next: AtomicUsize::new(next), place: AtomicUsize::new(number) };
            Self { links, slot: Slot::vacant() }
        }
    }
}

/// The bits of a word that number a node; all of them set number none.
const fn number_mask(capacity: usize) -> usize {
    (capacity + 2).next_power_of_two() - 1
}

/// Hands elements from any threads to any threads through a linked list of recycled nodes.
///
/// ```
/// use queues::{Full, Inline, MpmcMichaelScott};
/// static QUEUE: MpmcMichaelScott<u64, Inline<2>> = MpmcMichaelScott::new();
/// QUEUE.try_push(1).unwrap();
/// QUEUE.try_push(2).unwrap();
/// assert_eq!(QUEUE.try_push(3), Err(Full(3)));
/// assert_eq!(QUEUE.try_pop(), Some(1));
/// ```
#[repr(C)]
pub struct MpmcMichaelScott<T, S: Storage> {
    tail: CachePadded<AtomicUsize>,
    head: CachePadded<AtomicUsize>,
    free: CachePadded<AtomicUsize>,
    /// The node that is one more than there are places.
    spare: CachePadded<Links>,
    /// The bits of a word that are a number.
    number_mask: usize,
    slots: S::Slots<NodeSlot<T>>,
}

// SAFETY: the queue owns its elements and its slots (contract of `Storage`); nothing else in it is
// bound to a thread.
unsafe impl<T: Send, S: Storage> Send for MpmcMichaelScott<T, S> {}
// SAFETY: through `&self` elements move in and out, each by the one thread that has its place (I3,
// I5), so they have to be sendable and no more.
unsafe impl<T: Send, S: Storage> Sync for MpmcMichaelScott<T, S> {}

impl<T, S: Storage> MpmcMichaelScott<T, S> {
    const_fn! {
        /// Makes an empty queue over the nodes of a free list, with `tag` in each of its words.
        pub(crate) fn over(slots: S::Slots<NodeSlot<T>>, capacity: usize, tag: usize) -> Self {
            let mask = number_mask(capacity);
            let tag = tag.wrapping_mul(mask + 1);
            let spare = Links {
                next: AtomicUsize::new(tag | mask),
                place: AtomicUsize::new(mask),
            };
            Self {
                tail: CachePadded::new(AtomicUsize::new(tag | capacity)),
                head: CachePadded::new(AtomicUsize::new(tag | capacity)),
                free: CachePadded::new(AtomicUsize::new(tag)),
                spare: CachePadded::new(spare),
                number_mask: mask,
                slots,
            }
        }
    }

    /// Makes an empty queue whose words have the tag `lap`; nodes have no order that `index` could
    /// choose. Tests start near the wrap.
    ///
    /// # Errors
    /// As `with_capacity`.
    #[doc(hidden)]
    pub fn starting_at(capacity: usize, lap: usize, _index: usize) -> Result<Self, CapacityError> {
        if capacity > LARGEST {
            return Err(CapacityError::TooLarge { largest: LARGEST });
        }
        let slots = S::allocate(capacity, |number| NodeSlot::free(number, capacity))?;
        Ok(Self::over(slots, capacity, lap))
    }

    /// Offsets in bytes of `head` and of `tail`.
    pub const OFFSETS: (usize, usize) =
        (core::mem::offset_of!(Self, head), core::mem::offset_of!(Self, tail));

    /// The number in a word; `None` for no node.
    #[inline(always)]
    fn node(&self, word: usize) -> Option<usize> {
        let number = word & self.number_mask;
        (number != self.number_mask).then_some(number)
    }

    /// `old` changed to lead to `number`: with the next tag.
    #[inline(always)]
    fn changed(&self, old: usize, number: usize) -> usize {
        (old & !self.number_mask).wrapping_add(self.number_mask + 1) | number
    }

    #[inline(always)]
    fn links(&self, number: usize) -> &Links {
        S::as_slice(&self.slots).get(number).map_or(&self.spare, |slot| &slot.links)
    }

    /// # Safety
    /// `place` was read from a node's `place` while the node had one.
    #[inline(always)]
    unsafe fn place(&self, place: usize) -> &Slot<T> {
        // SAFETY: by I3 and the caller's duty it is one of the places.
        unsafe { &S::as_slice(&self.slots).get_unchecked(place).slot }
    }

    /// Takes a node from the free list.
    #[inline(always)]
    fn take(&self) -> Option<usize> {
        // ORDERING: Acquire, E2, here and where the CAS fails - the node's links are there.
        let mut free = self.free.load(Ordering::Acquire);
        loop {
            let node = self.node(free)?;
            // ORDERING: Relaxed - if the node is taken meanwhile, the CAS fails by its tag (I1).
            let next = self.links(node).next.load(Ordering::Relaxed) & self.number_mask;
            // ORDERING: Relaxed on success, since the load has acquired; Acquire on failure, E2.
            match self.free.compare_exchange_weak(
                free,
                self.changed(free, next),
                Ordering::Relaxed,
                Ordering::Acquire,
            ) {
                Ok(_) => return Some(node),
                Err(newer) => free = newer,
            }
        }
    }

    /// Gives a node that is ours to the free list.
    #[inline(always)]
    fn give(&self, node: usize) {
        let next = &self.links(node).next;
        // ORDERING: Relaxed - the CAS decides; nothing is read through it.
        let mut free = self.free.load(Ordering::Relaxed);
        loop {
            // ORDERING: Relaxed - the node is ours (I2).
            let old = next.load(Ordering::Relaxed);
            // ORDERING: Release, E4 - who reads this sees that `head` and `tail` have left.
            next.store(self.changed(old, free & self.number_mask), Ordering::Release);
            // ORDERING: Release on success, E2 - the node's links are as they are; Relaxed on
            // failure - as above.
            match self.free.compare_exchange_weak(
                free,
                self.changed(free, node),
                Ordering::Release,
                Ordering::Relaxed,
            ) {
                Ok(_) => return,
                Err(newer) => free = newer,
            }
        }
    }

    /// Swings `tail` on, from where it was seen to `node`, unless somebody else has.
    #[inline(always)]
    fn swing(&self, tail: usize, node: usize) {
        // ORDERING: Release, E3 - the node is linked; Relaxed on failure - somebody else has done it.
        let _ = self.tail.compare_exchange(
            tail,
            self.changed(tail, node),
            Ordering::Release,
            Ordering::Relaxed,
        );
    }

    /// Appends `value`.
    ///
    /// # Errors
    /// [`Full`] hands the value back when no node is free.
    #[inline]
    pub fn try_push(&self, value: T) -> Result<(), Full<T>> {
        let Some(node) = self.take() else { return Err(Full(value)) };
        let links = self.links(node);
        // ORDERING: Relaxed - the node is ours (I2), with E2 behind us.
        let place = links.place.load(Ordering::Relaxed);
        // SAFETY: nodes of the free list have places (I3).
        let slot = unsafe { self.place(place) };
        // SAFETY: the node is ours and its place vacant (I2, I3), with E2 behind us.
        unsafe { slot.put(value) };
        // ORDERING: Relaxed - the node is ours (I2).
        let old = links.next.load(Ordering::Relaxed);
        // ORDERING: Release, E4 - who reads this sees that `head` and `tail` had left.
        links.next.store(self.changed(old, self.number_mask), Ordering::Release);
        loop {
            // ORDERING: Acquire, E3 - the node's links are those of a linked node or newer.
            let tail = self.tail.load(Ordering::Acquire);
            let last = &self.links(tail & self.number_mask).next;
            // ORDERING: Acquire, E4 - if the node has been recycled, the next load sees `tail` gone.
            let next = last.load(Ordering::Acquire);
            // ORDERING: Relaxed - as said, E4.
            if self.tail.load(Ordering::Relaxed) != tail {
                continue;
            }
            if let Some(behind) = self.node(next) {
                self.swing(tail, behind);
                continue;
            }
            // ORDERING: Release on success, E1 - hands over the node with its place and element;
            // Relaxed on failure - it looks again.
            let linked = last.compare_exchange(
                next,
                self.changed(next, node),
                Ordering::Release,
                Ordering::Relaxed,
            );
            if linked.is_ok() {
                self.swing(tail, node);
                return Ok(());
            }
        }
    }

    /// Takes the oldest element, if there is one.
    #[inline]
    pub fn try_pop(&self) -> Option<T> {
        loop {
            // ORDERING: Acquire, E3 - `tail` is not seen behind it below, nor an older link of its node.
            let head = self.head.load(Ordering::Acquire);
            // ORDERING: Acquire, E3 - the node behind `head` is linked, so its link is not seen empty.
            let tail = self.tail.load(Ordering::Acquire);
            let first = head & self.number_mask;
            let links = self.links(first);
            // ORDERING: Acquire, E1 - the next node's place and element are there; E4 - if the node
            // has been recycled, the next load sees `head` gone.
            let next = links.next.load(Ordering::Acquire);
            // ORDERING: Relaxed - as said, E4.
            if self.head.load(Ordering::Relaxed) != head {
                continue;
            }
            let next = self.node(next);
            if first == tail & self.number_mask {
                self.swing(tail, next?);
                continue;
            }
            let Some(next) = next else { continue };
            // ORDERING: Relaxed - if the node is recycled meanwhile, the CAS fails by the tag (I1).
            let place = self.links(next).place.load(Ordering::Relaxed);
            // ORDERING: Release on success, E3 - what we have seen of `tail`; Relaxed on failure -
            // it looks again.
            let moved = self.head.compare_exchange(
                head,
                self.changed(head, next),
                Ordering::Release,
                Ordering::Relaxed,
            );
            if moved.is_err() {
                continue;
            }
            // SAFETY: the node had a place while it was behind `head` (I3).
            let slot = unsafe { self.place(place) };
            // SAFETY: the element is ours to take (I5), with E1 behind us.
            let value = unsafe { slot.take() };
            // ORDERING: Relaxed - the node that `head` has left is ours (I2); E2 publishes it.
            links.place.store(place, Ordering::Relaxed);
            self.give(first);
            return Some(value);
        }
    }
}

impl<T, S: Storage> WithCapacity for MpmcMichaelScott<T, S> {
    fn with_capacity(capacity: usize) -> Result<Self, CapacityError> {
        Self::starting_at(capacity, 0, 0)
    }
}

impl<T: Send, S: Storage> Queue<T> for MpmcMichaelScott<T, S> {
    shared_ends!(T);

    const PROPERTIES: Properties = Properties {
        producers: Side::Multi,
        consumers: Side::Multi,
        bounded: true,
        order: Order::Fifo,
        progress: Progress::LockFree,
        linearizable: false,
    };
    const BYTES_PER_SLOT: usize = size_of::<NodeSlot<T>>();

    #[inline]
    fn capacity(&self) -> usize {
        S::as_slice(&self.slots).len()
    }
}

impl<T: Send, S: Storage> SharedQueue<T> for MpmcMichaelScott<T, S> {
    #[inline]
    fn try_push(&self, value: T) -> Result<(), Full<T>> {
        self.try_push(value)
    }

    #[inline]
    fn try_pop(&self) -> Option<T> {
        self.try_pop()
    }
}

impl<T, S: Storage> HotFields for MpmcMichaelScott<T, S> {
    const ALIGNMENT: usize = align_of::<CachePadded<u8>>();
    const ALONE: bool = true;

    fn hot_fields(&self, visit: &mut dyn FnMut(HotField)) {
        let Self { tail, head, free, spare, number_mask, slots } = self;
        let both = Role::Many("producers and consumers");
        for (name, padded, writers) in
            [("tail", tail, both), ("head", head, Role::Many("consumers")), ("free", free, both)]
        {
            visit(HotField::of(name, &**padded).written_by(writers).padded_in(padded));
        }
        visit(HotField::of("spare", &**spare).written_by(both).padded_in(spare));
        visit(HotField::of("number_mask", number_mask).read_by(Role::Anybody));
        visit(HotField::between(number_mask, slots));
        visit(S::header(slots).read_by(Role::Anybody));
        for (index, NodeSlot { links, slot }) in S::as_slice(slots).iter().enumerate() {
            let align = if index == 0 { align_of::<CachePadded<u8>>() } else { 1 };
            let links = HotField::of("links", links).written_by(both).aligned(align);
            let slot = HotField::of("slot", slot).written_by(Role::Many("producers"));
            let slot = slot.read_by(Role::Many("consumers"));
            visit(links.nth(index).side_by_side("slots", slot::BECAUSE));
            visit(slot.nth(index).side_by_side("slots", slot::BECAUSE));
        }
        visit(HotField::rest(self, slots));
    }
}

impl<T, S: Storage> Drop for MpmcMichaelScott<T, S> {
    fn drop(&mut self) {
        drain(|| self.try_pop());
    }
}

impl<T, S: Storage> fmt::Debug for MpmcMichaelScott<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MpmcMichaelScott").finish_non_exhaustive()
    }
}
