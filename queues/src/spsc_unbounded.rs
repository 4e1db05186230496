//! Unbounded SPSC queue: a list of blocks of which those that were read out are the producer's cache.
//! # Algorithm
//! A position is a slot's index in its block, with the number of the block above it. `tail` is the
//! position of the next push, `head` that of the next pop, which its owner alone knows, as it does the
//! `tail` that it last saw. The push of the first slot of a block brings the block and links it
//! behind the last one; the pop of the first slot follows the link and stores the address of its
//! block. All blocks are in one list, from `first` over the consumer's to the producer's. A
//! producer that needs one takes `first`, unless that is where it last saw the consumer; then it looks
//! again, once, and if the consumer is still there it asks the allocator.
//! # Why
//! Against the cached ring it is never full, and takes memory for the most that was ever inside. It
//! adds the address of the block to each operation, and once a block a link, a look of the producer at
//! the consumer and, until there are enough blocks, an allocation. Against a list of nodes it copies
//! no link an element, and elements lie side by side.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `SpscUnbounded<T>` | 256 | 128 | 4 | `tail` pair: producer; `head` pair: consumer |
//! | slot | that of `T` | that of `T` | - | producer |
//! | block | 128 and 32 slots | 128 | - | producer, once |
//! | endpoint | 8 | 8 | - | nobody |
//! # Cost
//! Operation inside a block without a look at the other side: 0 RMWs; push: 3 loads, 2 stores; pop: 5
//! loads, 1 store; 3 lines. Once a block: push 5 loads and 4 stores more, pop 1 and 1.
//! # Progress
//! Wait-free, but for the allocator: an operation is straight-line code. A stopped consumer lets the
//! queue grow, a stopped producer leaves it as it is.
//! # Invariants
//! - I1: `tail` and what lies beside it is written by the producer only, `head` and its by the
//!   consumer only; what is in a cell is private.
//! - I2: the slots from `head` up to `tail` hold elements, the others hold none. Only the consumer
//!   touches slots that it has seen filled, only the producer the others of its own block.
//! - I3: the blocks are a list from `first` to that of the last push; each link is written by the
//!   producer before it stores a `tail` beyond the block (E1), and read by the consumer after it saw that.
//! - I4: the consumer is done with the blocks in front of that whose address it has stored (E2).
//! - I5: `split` borrows the queue exclusively and endpoints cannot be copied: there is one of each.
//! # Synchronization
//! | edge | release side | acquire side | publishes |
//! |---|---|---|---|
//! | E1 | store of `tail` in `try_push` | load of `tail` in `try_pop` | the element, its block and the link to that |
//! | E2 | store of the consumer's block in `try_pop` | load of it in `fresh` | that the elements of the blocks before have been moved out |
//! # Errors and limits
//! `Full` hands the value back when the allocator refuses a block. The capacity it is made with is
//! refused if no memory could hold so many blocks, and is else without meaning. Reclamation: the
//! consumer frees nothing; a block that it has left is used again, and freed with the queue. Positions
//! wrap at 2⁶⁴ (2³²), which no memory holds. An element is moved out and `head` is past it before it
//! can be dropped, so a `Drop` that panics is not run twice.
//! # References
//! D. Vyukov, "Unbounded SPSC Queue", 1024cores.net, 2010 (the cache of consumed nodes). Differs from
//! the text in: blocks instead of nodes; the number of elements is published instead of the links.

use alloc::boxed::Box;
use core::cell::Cell;
use core::fmt;
use core::marker::PhantomData;
use core::ptr;

use crossbeam_utils::CachePadded;

use super::boxed::{Boxed, BoxedSlots};
use super::contract::{
    CapacityError, Consumer, Full, Order, Producer, Progress, Properties, Queue, Side, WithCapacity,
};
use super::drain::drain;
use super::hot::{HotField, HotFields, Role};
use super::on_heap::try_box;
use super::slot::{self, Slot};
use super::storage::Storage;
use super::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use super::sync::cell::UnsafeCell;

/// Slots, and the block behind them.
struct Block<T> {
    next: UnsafeCell<*mut OwnLines<T>>,
    slots: BoxedSlots<Slot<T>>,
}

/// Blocks are linked by their addresses, and share no line with a stranger.
type OwnLines<T> = CachePadded<Block<T>>;

impl<T> Block<T> {
    fn make(slots: usize) -> Result<*mut OwnLines<T>, CapacityError> {
        let slots = Boxed::allocate(slots, |_| Slot::vacant())?;
        let refused = CapacityError::OutOfMemory { bytes: size_of::<OwnLines<T>>() };
        let block = Self { next: UnsafeCell::new(ptr::null_mut()), slots };
        try_box(CachePadded::new(block)).map(Box::into_raw).map_err(|_| refused)
    }

    /// The slot at `index`.
    ///
    /// # Safety
    /// `index` is below the number of slots.
    #[inline(always)]
    unsafe fn at(&self, index: usize) -> &Slot<T> {
        // SAFETY: the caller's duty.
        unsafe { Boxed::as_slice(&self.slots).get_unchecked(index) }
    }

    /// The block behind this one.
    ///
    /// # Safety
    /// It has been linked, and the caller is its producer or has E1 behind it (I3).
    #[inline(always)]
    unsafe fn next(&self) -> *mut OwnLines<T> {
        // SAFETY: the pointer is the cell's; by the caller's duty nobody writes it.
        self.next.with(|next| unsafe { *next })
    }
}

/// What the producer alone knows.
struct Cache<T> {
    /// The block of the last push.
    block: *mut OwnLines<T>,
    /// The oldest block.
    first: *mut OwnLines<T>,
    /// Where the consumer was when the producer last looked.
    seen: *mut OwnLines<T>,
}

/// The producer's.
#[repr(C)]
struct Tail<T> {
    position: AtomicUsize,
    cache: UnsafeCell<Cache<T>>,
}

/// The consumer's.
#[repr(C)]
struct Head<T> {
    /// The block of the last pop.
    block: AtomicPtr<OwnLines<T>>,
    position: UnsafeCell<usize>,
    /// The producer's position when the consumer last looked.
    peer: UnsafeCell<usize>,
}

/// Hands elements from one thread to one other, as many as there is memory for, in blocks of `SLOTS`,
/// a power of two.
///
/// ```
/// use queues::SpscUnbounded;
/// let mut queue = SpscUnbounded::<u64>::try_new().unwrap();
/// let (mut producer, mut consumer) = queue.split();
/// for number in 0..1000 {
///     producer.try_push(number).unwrap();
/// }
/// assert!((0..1000).all(|number| consumer.try_pop() == Some(number)));
/// assert_eq!(consumer.try_pop(), None);
/// ```
///
/// ```compile_fail,E0277
/// fn shared<T: Sync>(_: T) {}
/// shared(queues::SpscUnbounded::<u64>::try_new().unwrap().split().0); // there is one producer
/// ```
#[repr(C)]
pub struct SpscUnbounded<T, const SLOTS: usize = 32> {
    tail: CachePadded<Tail<T>>,
    head: CachePadded<Head<T>>,
    owns: PhantomData<Block<T>>,
}

// SAFETY: the queue owns its elements and its blocks; nothing else in it is bound to a thread.
unsafe impl<T: Send, const SLOTS: usize> Send for SpscUnbounded<T, SLOTS> {}
// SAFETY: through `&self` nothing moves; elements pass through the endpoints, of which there is one
// a side (I5).
unsafe impl<T: Send, const SLOTS: usize> Sync for SpscUnbounded<T, SLOTS> {}

impl<T, const SLOTS: usize> SpscUnbounded<T, SLOTS> {
    /// Makes an empty queue.
    ///
    /// # Errors
    /// When the allocator refuses the first block.
    pub fn try_new() -> Result<Self, CapacityError> {
        Self::at(1) // slot 0 is for a push that brings the block
    }

    /// Makes an empty queue whose next push goes to slot `index` in block `lap`, modulo their
    /// numbers; tests start near the wrap.
    ///
    /// # Errors
    /// As `with_capacity`.
    #[doc(hidden)]
    pub fn starting_at(capacity: usize, lap: usize, index: usize) -> Result<Self, CapacityError> {
        let block = size_of::<OwnLines<T>>() + size_of::<Slot<T>>();
        let largest = (isize::MAX as usize - size_of::<Self>()) / block;
        match capacity {
            0 => Err(CapacityError::Zero),
            _ if capacity > largest => Err(CapacityError::TooLarge { largest }),
            _ => Self::at(lap.wrapping_mul(SLOTS).wrapping_add(index)),
        }
    }

    fn at(position: usize) -> Result<Self, CapacityError> {
        const { assert!(SLOTS.is_power_of_two(), "positions wrap between two blocks") };
        let block = Block::make(SLOTS)?;
        Ok(Self {
            tail: CachePadded::new(Tail {
                position: AtomicUsize::new(position),
                cache: UnsafeCell::new(Cache { block, first: block, seen: block }),
            }),
            head: CachePadded::new(Head {
                block: AtomicPtr::new(block),
                position: UnsafeCell::new(position),
                peer: UnsafeCell::new(position),
            }),
            owns: PhantomData,
        })
    }

    /// Offsets in bytes of `head` and of `tail`.
    pub const OFFSETS: (usize, usize) =
        (core::mem::offset_of!(Self, head), core::mem::offset_of!(Self, tail));

    /// Gives out both sides. The exclusive borrow proves that no others exist.
    #[inline]
    pub fn split(&mut self) -> (UnboundedProducer<'_, T, SLOTS>, UnboundedConsumer<'_, T, SLOTS>) {
        let queue = &*self;
        let producer = UnboundedProducer { queue, not_shared: PhantomData };
        (producer, UnboundedConsumer { queue, not_shared: PhantomData })
    }

    /// Puts a block behind the last one, if there is one at hand or in memory.
    ///
    /// # Safety
    /// The caller is the producer.
    #[cold]
    #[inline(never)]
    unsafe fn fresh(&self) -> Option<*mut OwnLines<T>> {
        self.tail.cache.with_mut(|cache| {
            // SAFETY: by I1 the producer's alone.
            let Cache { block: last, first, seen } = unsafe { &mut *cache };
            if first == seen {
                // ORDERING: Acquire, E2 - the blocks before that have been read out (I4).
                *seen = self.head.block.load(Ordering::Acquire);
            }
            let block = if first == seen {
                Block::make(SLOTS).ok()?
            } else {
                let block = *first;
                // SAFETY: blocks live as long as the queue.
                let used = unsafe { &*block };
                // SAFETY: the caller is the producer, and has linked a block behind this one, since
                // the consumer was there.
                *first = unsafe { used.next() };
                block
            };
            // SAFETY: as above.
            let full = unsafe { &**last };
            // SAFETY: the pointer is the cell's; the consumer does not read it before E1 (I3).
            full.next.with_mut(|next| unsafe { *next = block });
            *last = block;
            Some(block)
        })
    }

    /// # Safety
    /// The caller is the producer.
    #[inline(always)]
    unsafe fn push(&self, value: T) -> Result<(), Full<T>> {
        let Tail { position: tail, cache } = &*self.tail;
        // ORDERING: Relaxed - by I1 the producer reads its own position back.
        let position = tail.load(Ordering::Relaxed);
        let index = position % SLOTS;
        let block = if index == 0 {
            // SAFETY: the caller's duty.
            let Some(fresh) = (unsafe { self.fresh() }) else { return Err(Full(value)) };
            fresh
        } else {
            // SAFETY: by I1 the producer's alone.
            cache.with(|cache| unsafe { (*cache).block })
        };
        // SAFETY: blocks live as long as the queue.
        let block = unsafe { &**block };
        // SAFETY: a remainder of `SLOTS`.
        let slot = unsafe { block.at(index) };
        // SAFETY: by I2 the slot is vacant and the producer's; if the block was used before, E2
        // orders us behind the pop that vacated it.
        unsafe { slot.put(value) };
        // ORDERING: Release, E1 - hands the element, its block and the link to that to the consumer.
        tail.store(position.wrapping_add(1), Ordering::Release);
        Ok(())
    }

    /// # Safety
    /// The caller is the consumer.
    #[inline(always)]
    unsafe fn pop(&self) -> Option<T> {
        let Head { block: own, position, peer } = &*self.head;
        // SAFETY: by I1 the consumer's alone.
        let head = position.with(|position| unsafe { *position });
        // SAFETY: as the line above.
        if peer.with(|peer| unsafe { *peer }) == head {
            // ORDERING: Acquire, E1 - the elements before `tail` are there.
            let tail = self.tail.position.load(Ordering::Acquire);
            // SAFETY: as above.
            peer.with_mut(|peer| unsafe { *peer = tail });
            if tail == head {
                return None;
            }
        }
        let index = head % SLOTS;
        // ORDERING: Relaxed - by I1 the consumer reads its own word back.
        let mut block = own.load(Ordering::Relaxed);
        if index == 0 {
            // SAFETY: blocks live as long as the queue.
            let left = unsafe { &*block };
            // SAFETY: `tail` is beyond this block and E1 behind us (I3).
            block = unsafe { left.next() };
            // ORDERING: Release, E2 - the elements of the block before have been moved out.
            own.store(block, Ordering::Release);
        }
        // SAFETY: blocks live as long as the queue.
        let block = unsafe { &**block };
        // SAFETY: a remainder of `SLOTS`.
        let slot = unsafe { block.at(index) };
        // SAFETY: by I2 the slot holds an element and is the consumer's; E1 orders us behind the
        // push.
        let value = unsafe { slot.take() };
        // SAFETY: by I1 the consumer's alone.
        position.with_mut(|position| unsafe { *position = head.wrapping_add(1) });
        Some(value)
    }
}

impl<T, const SLOTS: usize> WithCapacity for SpscUnbounded<T, SLOTS> {
    fn with_capacity(capacity: usize) -> Result<Self, CapacityError> {
        Self::starting_at(capacity, 0, 1)
    }
}

impl<T: Send, const SLOTS: usize> Queue<T> for SpscUnbounded<T, SLOTS> {
    type Producer<'q>
        = UnboundedProducer<'q, T, SLOTS>
    where
        Self: 'q;
    type Consumer<'q>
        = UnboundedConsumer<'q, T, SLOTS>
    where
        Self: 'q;
    const PROPERTIES: Properties = Properties {
        producers: Side::Single,
        consumers: Side::Single,
        bounded: false,
        order: Order::Fifo,
        progress: Progress::WaitFree,
        linearizable: true,
    };
    const BYTES_PER_SLOT: usize = size_of::<Slot<T>>();

    #[inline]
    fn split(&mut self) -> (Self::Producer<'_>, Self::Consumer<'_>) {
        self.split()
    }

    #[inline]
    fn capacity(&self) -> usize {
        usize::MAX
    }
}

impl<T, const SLOTS: usize> Drop for SpscUnbounded<T, SLOTS> {
    fn drop(&mut self) {
        /// Frees the blocks, from the first to the last, also when the drop of an element panics.
        struct Blocks<T>(*mut OwnLines<T>, *mut OwnLines<T>);
        impl<T> Drop for Blocks<T> {
            fn drop(&mut self) {
                let Self(next, last) = self;
                loop {
                    let block = *next;
                    // SAFETY: made by `Block::make`, and nobody else has it any more.
                    let freed = unsafe { Box::from_raw(block) };
                    if block == *last {
                        return;
                    }
                    // SAFETY: not the last, so it has been linked, and nobody is left to write.
                    *next = unsafe { freed.next() };
                }
            }
        }
        let _blocks = self.tail.cache.with(|cache| {
            // SAFETY: the queue is borrowed exclusively.
            let Cache { block: last, first, seen: _ } = unsafe { &*cache };
            Blocks(*first, *last)
        });
        let mut consumer = self.split().1;
        drain(|| consumer.try_pop());
    }
}

impl<T, const SLOTS: usize> HotFields for SpscUnbounded<T, SLOTS> {
    const ALIGNMENT: usize = align_of::<CachePadded<u8>>();
    const ALONE: bool = true;

    fn hot_fields(&self, visit: &mut dyn FnMut(HotField)) {
        const OWN: &str = "the owner writes one of them in each operation, so writing the others \
                           beside it costs the other side no miss more";
        const ONCE: &str = "both are written by who brings the block, and only read from then on";
        let Self { tail, head, owns: _ } = self;
        let (producer, consumer) = (Role::One("producer"), Role::One("consumer"));
        let Tail { position, cache } = &**tail;
        let position = HotField::of("tail", position).written_by(producer).read_by(consumer);
        let cache = HotField::of("tail.cache", cache).written_by(producer);
        for field in [position, cache] {
            visit(field.one_line("tail", OWN).padded_in(tail));
        }
        let Head { block, position, peer } = &**head;
        let own = HotField::of("head", block).written_by(consumer).read_by(producer);
        let position = HotField::of("head.position", position).written_by(consumer);
        let peer = HotField::of("head.peer", peer).written_by(consumer);
        for field in [own, position, peer] {
            visit(field.one_line("head", OWN).padded_in(head));
        }
        // ORDERING: Relaxed - nobody is inside an operation meanwhile.
        let block = block.load(Ordering::Relaxed);
        // SAFETY: blocks live as long as the queue.
        let Block { next, slots } = &**unsafe { &*block };
        for field in [HotField::of("next", next), HotField::of("slots' address", slots)] {
            visit(field.written_by(producer).read_by(consumer).one_line("block", ONCE));
        }
        for field in slot::describe(Boxed::as_slice(slots)) {
            visit(field.written_by(producer).read_by(consumer));
        }
    }
}

impl<T, const SLOTS: usize> fmt::Debug for SpscUnbounded<T, SLOTS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpscUnbounded").finish_non_exhaustive()
    }
}

/// The pushing side: can be sent to another thread and not shared.
pub struct UnboundedProducer<'q, T, const SLOTS: usize = 32> {
    queue: &'q SpscUnbounded<T, SLOTS>,
    /// Two threads must not be the producer at once.
    not_shared: PhantomData<Cell<T>>,
}

/// The popping side: can be sent to another thread and not shared.
pub struct UnboundedConsumer<'q, T, const SLOTS: usize = 32> {
    queue: &'q SpscUnbounded<T, SLOTS>,
    /// Two threads must not be the consumer at once.
    not_shared: PhantomData<Cell<T>>,
}

impl<T, const SLOTS: usize> UnboundedProducer<'_, T, SLOTS> {
    /// Appends `value`.
    ///
    /// # Errors
    /// [`Full`] hands the value back when the allocator refuses a block.
    #[inline]
    pub fn try_push(&mut self, value: T) -> Result<(), Full<T>> {
        // SAFETY: there is one producer (I5), which is borrowed exclusively.
        unsafe { self.queue.push(value) }
    }
}

impl<T, const SLOTS: usize> UnboundedConsumer<'_, T, SLOTS> {
    /// Takes the oldest element, if there is one.
    #[inline]
    pub fn try_pop(&mut self) -> Option<T> {
        // SAFETY: there is one consumer (I5), which is borrowed exclusively.
        unsafe { self.queue.pop() }
    }
}

impl<T, const SLOTS: usize> Producer<T> for UnboundedProducer<'_, T, SLOTS> {
    #[inline]
    fn try_push(&mut self, value: T) -> Result<(), Full<T>> {
        self.try_push(value)
    }

    fn try_clone(&self) -> Option<Self> {
        None
    }
}

impl<T, const SLOTS: usize> Consumer<T> for UnboundedConsumer<'_, T, SLOTS> {
    #[inline]
    fn try_pop(&mut self) -> Option<T> {
        self.try_pop()
    }

    fn try_clone(&self) -> Option<Self> {
        None
    }
}

impl<T, const SLOTS: usize> fmt::Debug for UnboundedProducer<'_, T, SLOTS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnboundedProducer").finish_non_exhaustive()
    }
}

impl<T, const SLOTS: usize> fmt::Debug for UnboundedConsumer<'_, T, SLOTS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnboundedConsumer").finish_non_exhaustive()
    }
}
