//! Cached SPSC ring: one producer, one consumer, no RMW, and each side remembers the other's
//! position.
//! # Algorithm
//! `tail` is the position of the next push, `head` that of the next pop. A position is the index
//! of a slot, with the parity of its lap in the highest bit (`LAP`): equal positions mean empty,
//! positions that differ in `LAP` alone mean full. `try_push` compares `tail` with the `head` that
//! the producer last saw (`peer`); only if that says full it loads the real one, once. It puts the
//! element into its slot and stores the next `tail`. `try_pop` is the mirror image. The next
//! position is one more, or slot 0 of the other lap.
//! # Why
//! Against a lock it removes all RMWs and all waiting. Against Lamport's ring without `peer` it
//! removes the two transfers that each operation pays to look at the other side: they are paid
//! once for as many operations as the look allowed. The lap bit, against free-running counters,
//! lets every capacity use all its slots without a division and without an overflow.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `SpscRingCached<T, Boxed>` | 384 | 128 | 6 | `tail` pair: producer; `head` pair: consumer; the rest: nobody |
//! | slot | that of `T` | that of `T` | - | producer |
//! | endpoint | 32 | 8 | - | nobody |
//! # Cost
//! Operation without a look at the other side: 0 RMWs; push: 2 loads, 2 stores; pop: 3 loads, 1
//! store; 2 lines; and loads of the endpoint's words, which nobody writes. Transfers an element of
//! 8 bytes: 4/d + 1/4, with d the elements from one look to the next.
//! # Progress
//! Wait-free: an operation is straight-line code. A stopped peer leaves the queue as full or as
//! empty as it is.
//! # Invariants
//! - I1: `tail` and the fields beside it are written by the producer only, `head` and its by the
//!   consumer only; both `peer`s are private.
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
//! L. Lamport, "Specifying Concurrent Program Modules", ACM TOPLAS 5(2), 1983; P. P. C. Lee,
//! T. Bu, G. Chandranmenon, "A Lock-Free, Cache-Efficient Multi-Core Synchronization Mechanism for
//! Line-Rate Network Traffic Monitoring", IPDPS 2010, section III. Differs from the papers in: the
//! lap bit instead of a slot that stays vacant; no batched publication.

use core::fmt;

use crossbeam_utils::CachePadded;

use super::contract::{
    CapacityError, Consumer, Full, Order, Producer, Progress, Properties, Queue, Side, WithCapacity,
};
use super::drain::drain;
use super::hot::{HotField, HotFields, Role};
use super::slot::{self, Slot};
use super::storage::Storage;
use super::sync::atomic::{AtomicUsize, Ordering};
use super::sync::cell::UnsafeCell;
use super::sync::const_fn;

/// The bit of a position that tells its lap from the one before and the one after.
pub(crate) const LAP: usize = 1 << (usize::BITS - 1);

/// The largest capacity that leaves `LAP` free.
pub(crate) const LARGEST: usize = LAP - 1;

pub(crate) const PROPERTIES: Properties = Properties {
    producers: Side::Single,
    consumers: Side::Single,
    bounded: true,
    order: Order::Fifo,
    progress: Progress::WaitFree,
    linearizable: true,
};

/// What one side owns.
#[repr(C)]
pub(crate) struct End {
    pub(crate) position: AtomicUsize,
    /// The other side's position when its owner last looked.
    peer: UnsafeCell<usize>,
}

impl End {
    const_fn! {
        pub(crate) fn at(position: usize) -> Self {
            Self { position: AtomicUsize::new(position), peer: UnsafeCell::new(position) }
        }
    }

    /// Describes both words, by their names in the ring.
    pub(crate) fn describe(
        &self,
        [name, peer_name]: [&'static str; 2],
        [owner, other]: [&'static str; 2],
    ) -> [HotField; 2] {
        const BECAUSE: &str = "the owner writes its position in each operation, so writing `peer` \
                               beside it costs the other side no miss more";
        let Self { position, peer } = self;
        let (owner, other) = (Role::One(owner), Role::One(other));
        let position = HotField::of(name, position).written_by(owner).read_by(other);
        let peer = HotField::of(peer_name, peer).written_by(owner);
        [position, peer].map(|field| field.one_line(name, BECAUSE))
    }

    /// The other side's position when the owner last looked.
    ///
    /// # Safety
    /// The caller is the side that owns this end.
    #[inline(always)]
    pub(crate) unsafe fn peer(&self) -> usize {
        // SAFETY: by I1 only the caller touches `peer`.
        self.peer.with(|peer| unsafe { *peer })
    }

    /// Looks at the other side and remembers what it saw.
    ///
    /// # Safety
    /// The caller is the side that owns this end.
    #[inline(always)]
    pub(crate) unsafe fn look_at(&self, other: &Self) -> usize {
        // ORDERING: Acquire; E2 for the producer - the elements before `head` have been moved out;
        // E1 for the consumer - the elements before `tail` are there.
        let position = other.position.load(Ordering::Acquire);
        // SAFETY: by I1 only the caller touches `peer`.
        self.peer.with_mut(|peer| unsafe { *peer = position });
        position
    }
}

/// The position of lap `lap`, slot `index`.
pub(crate) fn position(lap: usize, index: usize) -> usize {
    index | lap << (usize::BITS - 1)
}

/// The position after `position`.
#[inline(always)]
pub(crate) fn next(position: usize, capacity: usize) -> usize {
    let index = position & !LAP;
    if index + 1 == capacity { (position ^ LAP) - index } else { position + 1 }
}

/// How many elements lie between two positions of the same ring.
pub(crate) fn between(head: &End, tail: &End, capacity: usize) -> usize {
    // ORDERING: Relaxed on both - the caller owns one end, so that one is exact; the other may be
    // stale, but by coherence not older than what its peer has seen, so the result is in
    // 0..=capacity by I3. No element is reached through it.
    let (head, tail) =
        (head.position.load(Ordering::Relaxed), tail.position.load(Ordering::Relaxed));
    distance(head, tail, capacity)
}

/// How many slots lie from position `head` up to `tail`.
#[inline(always)]
pub(crate) fn distance(head: usize, tail: usize, capacity: usize) -> usize {
    let lap = if (head ^ tail) & LAP == 0 { 0 } else { capacity };
    (tail & !LAP) + lap - (head & !LAP)
}

/// Hands elements from one thread to one other, as cheaply as this crate can.
///
/// ```
/// use queues::{Inline, SpscRingCached};
/// let mut ring = SpscRingCached::<u64, Inline<1024>>::new();
/// let (mut producer, mut consumer) = ring.split();
/// std::thread::scope(|scope| {
///     scope.spawn(move || producer.try_push(7).unwrap());
///     scope.spawn(move || {
///         while consumer.try_pop().is_none() {
///             std::thread::yield_now();
///         }
///     });
/// });
/// ```
///
/// Endpoints can be sent, if the elements can, and not shared:
///
/// ```compile_fail,E0277
/// fn shared<T: Sync>(_: T) {}
/// let mut ring = queues::SpscRingCached::<u64, queues::Inline<4>>::new();
/// shared(ring.split().0);
/// ```
/// ```compile_fail,E0277
/// fn shared<T: Sync>(_: T) {}
/// let mut ring = queues::SpscRingCached::<u64, queues::Inline<4>>::new();
/// shared(ring.split().1);
/// ```
/// ```compile_fail,E0277
/// fn sent<T: Send>(_: T) {}
/// let mut ring = queues::SpscRingCached::<std::rc::Rc<u64>, queues::Inline<4>>::new();
/// sent(ring.split().0);
/// ```
/// ```compile_fail,E0277
/// fn sent<T: Send>(_: T) {}
/// let mut ring = queues::SpscRingCached::<std::rc::Rc<u64>, queues::Inline<4>>::new();
/// sent(ring.split().1);
/// ```
#[repr(C)]
pub struct SpscRingCached<T, S: Storage> {
    tail: CachePadded<End>,
    head: CachePadded<End>,
    slots: S::Slots<Slot<T>>,
}

// SAFETY: the ring owns its elements and its slots (contract of `Storage`); nothing else in it is
// bound to a thread.
unsafe impl<T: Send, S: Storage> Send for SpscRingCached<T, S> {}
// SAFETY: through `&self` only positions are read; elements move through the endpoints, of which
// there is one a side (I4).
unsafe impl<T: Send, S: Storage> Sync for SpscRingCached<T, S> {}

impl<T, S: Storage> SpscRingCached<T, S> {
    const_fn! {
        /// Makes an empty ring over vacant slots.
        pub(crate) fn over(slots: S::Slots<Slot<T>>) -> Self {
            Self {
                tail: CachePadded::new(End::at(0)),
                head: CachePadded::new(End::at(0)),
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
        *ring.tail = End::at(start);
        *ring.head = End::at(start);
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

impl<T, S: Storage> WithCapacity for SpscRingCached<T, S> {
    fn with_capacity(capacity: usize) -> Result<Self, CapacityError> {
        Ok(Self::over(vacant_slots::<T, S>(capacity)?))
    }
}

impl<T, S: Storage> HotFields for SpscRingCached<T, S> {
    const ALIGNMENT: usize = align_of::<CachePadded<u8>>();
    const ALONE: bool = true;

    fn hot_fields(&self, visit: &mut dyn FnMut(HotField)) {
        let Self { tail, head, slots } = self;
        for field in tail.describe(["tail", "tail.peer"], ["producer", "consumer"]) {
            visit(field.padded_in(tail));
        }
        for field in head.describe(["head", "head.peer"], ["consumer", "producer"]) {
            visit(field.padded_in(head));
        }
        describe_slots::<T, S>(slots, visit);
        visit(HotField::rest(self, slots));
    }
}

/// Describes the slots of an SPSC ring. The endpoints know where they are, so nobody reads what
/// leads to them.
pub(crate) fn describe_slots<T, S: Storage>(
    slots: &S::Slots<Slot<T>>,
    visit: &mut dyn FnMut(HotField),
) {
    visit(S::header(slots));
    for field in slot::describe(S::as_slice(slots)) {
        visit(field.written_by(Role::One("producer")).read_by(Role::One("consumer")));
    }
}

pub(crate) fn vacant_slots<T, S: Storage>(
    capacity: usize,
) -> Result<S::Slots<Slot<T>>, CapacityError> {
    if capacity > LARGEST {
        return Err(CapacityError::TooLarge { largest: LARGEST });
    }
    S::allocate(capacity, |_| Slot::vacant())
}

impl<T: Send, S: Storage> Queue<T> for SpscRingCached<T, S> {
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

impl<T, S: Storage> Drop for SpscRingCached<T, S> {
    fn drop(&mut self) {
        let mut consumer = self.split().1;
        drain(|| consumer.try_pop());
    }
}

impl<T, S: Storage> fmt::Debug for SpscRingCached<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpscRingCached").finish_non_exhaustive()
    }
}

/// Makes the endpoints of a ring.
///
/// # Safety
/// The ends and slots belong to one ring for which no other endpoints are alive.
pub(crate) unsafe fn endpoints<'q, T>(
    tail: &'q End,
    head: &'q End,
    slots: &'q [Slot<T>],
) -> (SpscProducer<'q, T>, SpscConsumer<'q, T>) {
    (SpscProducer { tail, head, slots }, SpscConsumer { head, tail, slots })
}

/// The pushing side of an SPSC ring: can be sent to another thread and not shared.
pub struct SpscProducer<'q, T> {
    pub(crate) tail: &'q End,
    pub(crate) head: &'q End,
    pub(crate) slots: &'q [Slot<T>],
}

/// The popping side of an SPSC ring: can be sent to another thread and not shared.
pub struct SpscConsumer<'q, T> {
    pub(crate) head: &'q End,
    pub(crate) tail: &'q End,
    pub(crate) slots: &'q [Slot<T>],
}

// SAFETY: elements pass through it to another thread, so they have to be sendable; the one
// producer (I4) may be in any thread.
unsafe impl<T: Send> Send for SpscProducer<'_, T> {}
// SAFETY: as the line above.
unsafe impl<T: Send> Send for SpscConsumer<'_, T> {}

impl<T> SpscProducer<'_, T> {
    /// Appends `value`.
    ///
    /// # Errors
    /// [`Full`] hands the value back when `capacity` elements are stored.
    #[inline]
    pub fn try_push(&mut self, value: T) -> Result<(), Full<T>> {
        // ORDERING: Relaxed - by I1 the producer reads its own position back.
        let tail = self.tail.position.load(Ordering::Relaxed);
        let head_if_full = tail ^ LAP;
        // SAFETY: the producer owns the tail end.
        if unsafe { self.tail.peer() } == head_if_full {
            // SAFETY: as the line above.
            let head = unsafe { self.tail.look_at(self.head) };
            if head == head_if_full {
                return Err(Full(value));
            }
        }
        // SAFETY: by I2.
        let slot = unsafe { self.slots.get_unchecked(tail & !LAP) };
        // SAFETY: the ring is not full, so by I3 the slot at `tail` is vacant and the producer's;
        // E2 orders us behind the pop that vacated it.
        unsafe { slot.put(value) };
        // ORDERING: Release, E1 - hands the element to the consumer.
        self.tail.position.store(next(tail, self.slots.len()), Ordering::Release);
        Ok(())
    }

    /// How many elements are stored. May be stale: there are never more, so at least
    /// `capacity - len` pushes will succeed.
    pub fn len(&self) -> usize {
        between(self.head, self.tail, self.slots.len())
    }

    /// Whether nothing is stored. May be stale: `true` is certain, `false` may be outdated.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T> SpscConsumer<'_, T> {
    /// Takes the oldest element, if there is one.
    #[inline]
    pub fn try_pop(&mut self) -> Option<T> {
        // ORDERING: Relaxed - by I1 the consumer reads its own position back.
        let head = self.head.position.load(Ordering::Relaxed);
        // SAFETY: the consumer owns the head end.
        if unsafe { self.head.peer() } == head {
            // SAFETY: as the line above.
            let tail = unsafe { self.head.look_at(self.tail) };
            if tail == head {
                return None;
            }
        }
        // SAFETY: by I2.
        let slot = unsafe { self.slots.get_unchecked(head & !LAP) };
        // SAFETY: the ring is not empty, so by I3 the slot at `head` holds an element and is the
        // consumer's; E1 orders us behind the push.
        let value = unsafe { slot.take() };
        // ORDERING: Release, E2 - tells the producer that the element has been moved out.
        self.head.position.store(next(head, self.slots.len()), Ordering::Release);
        Some(value)
    }

    /// How many elements are stored. May be stale: there are never fewer, so at least `len` pops
    /// will succeed.
    pub fn len(&self) -> usize {
        between(self.head, self.tail, self.slots.len())
    }

    /// Whether nothing is stored. May be stale: `false` is certain, `true` may be outdated.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T> Producer<T> for SpscProducer<'_, T> {
    #[inline]
    fn try_push(&mut self, value: T) -> Result<(), Full<T>> {
        self.try_push(value)
    }

    fn try_clone(&self) -> Option<Self> {
        None
    }
}

impl<T> Consumer<T> for SpscConsumer<'_, T> {
    #[inline]
    fn try_pop(&mut self) -> Option<T> {
        self.try_pop()
    }

    fn try_clone(&self) -> Option<Self> {
        None
    }
}

impl<T> fmt::Debug for SpscProducer<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpscProducer").finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for SpscConsumer<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpscConsumer").finish_non_exhaustive()
    }
}
