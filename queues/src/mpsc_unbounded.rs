//! Vyukov's intrusive MPSC list: a push is one swap, and takes a node that its caller owns.
//! # Algorithm
//! A node carries a link to the next one. `push_node` empties the link of its node, swaps the node
//! into `tail` and then links the one that was there before to it. The consumer walks along the links
//! from `head`, whose node it hands out as soon as there is one behind. So that the last element
//! can be handed out too, it then pushes `stub`, a link without an element, and skips it when it
//! meets it. A push that has swapped and not linked yet cuts the list for a moment: the consumer sees
//! that `tail` is elsewhere and answers `Busy`. `try_push` makes the node on the heap.
//! # Why
//! Against the rings for many producers a push never repeats anything and is never refused, and an
//! element that has its node already (a task, a timer) moves without a copy. It adds a line an
//! element, an allocation where the caller has no node, and an answer that is neither of the two
//! usual ones.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `MpscUnbounded<T>` | 256 | 128 | 4 | `tail` pair: producers; `head` pair: consumer |
//! | node | 8 more than `T` | that of `T` | - | its producer, the next one, consumer |
//! | stub | 128 | 128 | 2 | producer behind it, consumer |
//! | endpoint | 8 | 8 | - | nobody |
//! # Cost
//! Uncontended: `push_node` 1 RMW, 2 stores; `pop_node` 0 RMWs, 2 loads, 1 store if there is an element
//! behind it, else 1 RMW more. `try_push` and `try_pop` beyond that: allocating and freeing a node.
//! # Progress
//! `push_node` is wait-free, and so is `pop_node`; but a producer stopped between its swap and its
//! store of the link keeps the consumer from the element in front and all behind: obstructed. `try_push` has the
//! allocator's progress.
//! # Invariants
//! - I1: a node in the list is the list's; its link is written by the one push that had it from
//!   `tail`, after that node's own push has emptied it (E2).
//! - I2: `head` is the consumer's, of which there is one: `split` borrows the queue exclusively.
//! - I3: a node is handed out when the link to the next one has been seen: its last writer has left.
//! - I4: the stub is in the list once or never; it is pushed when `head` is another node and the last
//!   one, so that it is not between the two.
//! # Synchronization
//! | edge | release side | acquire side | publishes |
//! |---|---|---|---|
//! | E1 | store of the link in `append` | load of the link in `pop_node` | the next node, with its element |
//! | E2 | swap of `tail` in `append` | swap of `tail` in the next `append` | that the link was emptied |
//! # Errors and limits
//! `Full` hands the value back when the allocator refuses a node; `push_node` cannot fail. `try_pop`
//! says that there is nothing also where `pop` says `Busy`. The capacity it is made with is refused if
//! no memory could hold so many elements, and is else without meaning. Reclamation: none is needed,
//! a node is its finder's as soon as it is out (I3).
//! # References
//! D. Vyukov, "Intrusive MPSC node-based queue", 1024cores.net, 2010. Differs from the text in: the
//! third answer is told from empty; the stub is on the heap, so that the queue can be moved.

use alloc::boxed::Box;
use core::cell::Cell;
use core::fmt;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ops::{Deref, DerefMut};
use core::ptr;

use crossbeam_utils::CachePadded;

use super::contract::{
    CapacityError, Consumer, Full, Order, Pop, Producer, Progress, Properties, Queue, Side,
    WithCapacity,
};
use super::drain::drain;
use super::hot::{HotField, HotFields, Role};
use super::on_heap::try_box;
use super::sync::atomic::{AtomicPtr, Ordering};

/// What a node needs to be in a list.
#[repr(transparent)]
struct Link(AtomicPtr<Link>);

impl Link {
    fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }
}

/// An element with what it needs to be in a list: whoever keeps it can push without allocating.
#[repr(C)]
pub struct MpscNode<T> {
    /// First, so that a node and its link have one address.
    link: Link,
    element: T,
}

impl<T> MpscNode<T> {
    /// Puts an element on the heap.
    ///
    /// # Errors
    /// Hands the element back when the allocator refuses.
    pub fn try_new(element: T) -> Result<Box<Self>, T> {
        try_box(Self { link: Link::new(), element }).map_err(|node| node.element)
    }

    /// Gives the element back.
    pub fn into_inner(self) -> T {
        self.element
    }
}

impl<T> Deref for MpscNode<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.element
    }
}

impl<T> DerefMut for MpscNode<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.element
    }
}

/// The consumer's.
#[repr(C)]
struct Head {
    /// The oldest link of the list.
    link: AtomicPtr<Link>,
    stub: *mut CachePadded<Link>,
}

/// Hands elements from any threads to one, as many as there are, in nodes that their owners keep or
/// that are made for them.
///
/// ```
/// use queues::{MpscNode, MpscUnbounded, Pop};
/// let mut queue = MpscUnbounded::<u64>::try_new().unwrap();
/// let (producer, mut consumer) = queue.split();
/// producer.try_push(1).unwrap();
/// let Pop::Item(mut node) = consumer.pop_node() else { panic!("it is there") };
/// **node += 1;
/// producer.push_node(node); // no allocation
/// assert_eq!((consumer.pop(), consumer.pop()), (Pop::Item(2), Pop::Empty));
/// ```
///
/// ```compile_fail,E0277
/// fn shared<T: Sync>(_: T) {}
/// shared(queues::MpscUnbounded::<u64>::try_new().unwrap().split().1); // there is one consumer
/// ```
#[repr(C)]
pub struct MpscUnbounded<T> {
    tail: CachePadded<AtomicPtr<Link>>,
    head: CachePadded<Head>,
    owns: PhantomData<MpscNode<T>>,
}

// SAFETY: the queue owns its nodes and its stub; nothing in it is bound to a thread.
unsafe impl<T: Send> Send for MpscUnbounded<T> {}
// SAFETY: elements move through the endpoints, from producers to the one consumer (I2), so they have
// to be sendable and no more.
unsafe impl<T: Send> Sync for MpscUnbounded<T> {}

impl<T> MpscUnbounded<T> {
    /// Makes an empty queue.
    ///
    /// # Errors
    /// When the allocator refuses the stub.
    pub fn try_new() -> Result<Self, CapacityError> {
        let refused = CapacityError::OutOfMemory { bytes: size_of::<CachePadded<Link>>() };
        let stub = try_box(CachePadded::new(Link::new())).map_err(|_| refused)?;
        let stub = Box::into_raw(stub);
        Ok(Self {
            tail: CachePadded::new(AtomicPtr::new(stub.cast())),
            head: CachePadded::new(Head { link: AtomicPtr::new(stub.cast()), stub }),
            owns: PhantomData,
        })
    }

    /// Offsets in bytes of `head` and of `tail`.
    pub const OFFSETS: (usize, usize) =
        (core::mem::offset_of!(Self, head), core::mem::offset_of!(Self, tail));

    /// Gives out both sides. The exclusive borrow proves that no others exist.
    #[inline]
    pub fn split(&mut self) -> (MpscProducer<'_, T>, MpscConsumer<'_, T>) {
        (MpscProducer { queue: self }, MpscConsumer { queue: self, not_shared: PhantomData })
    }

    /// Appends a link.
    ///
    /// # Safety
    /// The link is the caller's to give to the list: it is in no list, and stays in place until the
    /// consumer has it back.
    #[inline(always)]
    unsafe fn append(&self, link: *mut Link) {
        // SAFETY: the caller's duty.
        let new = unsafe { &*link };
        // ORDERING: Relaxed - the link is ours until the swap, E2.
        new.0.store(ptr::null_mut(), Ordering::Relaxed);
        // ORDERING: AcqRel, E2 - our link is empty; so is the other one, which we are to write.
        let last = self.tail.swap(link, Ordering::AcqRel);
        // SAFETY: it was in the list, and stays until it has been linked to the next one (I3), which
        // only we do (I1).
        let last = unsafe { &*last };
        // ORDERING: Release, E1 - hands the node with its element to the consumer.
        last.0.store(link, Ordering::Release);
    }

    /// # Safety
    /// The caller is the consumer (I2), and the pointer `head` or a link that it has seen.
    #[inline(always)]
    unsafe fn behind(&self, link: *mut Link) -> *mut Link {
        // SAFETY: the caller's duty: it is in the list, and only the consumer takes it out.
        let link = unsafe { &*link };
        // ORDERING: Acquire, E1 - the next node is there with its element.
        link.0.load(Ordering::Acquire)
    }

    /// Takes the oldest node, if it can be had.
    ///
    /// # Safety
    /// The caller is the consumer (I2).
    #[inline(always)]
    unsafe fn pop_node(&self) -> Pop<*mut MpscNode<T>> {
        let Head { link: head, stub } = &*self.head;
        let stub = stub.cast::<Link>();
        // ORDERING: Relaxed, here and in all stores - by I2 the consumer reads its own word back.
        let mut first = head.load(Ordering::Relaxed);
        // SAFETY: the caller is the consumer.
        let mut next = unsafe { self.behind(first) };
        if first == stub {
            if next.is_null() {
                // ORDERING: Relaxed - nothing is read through it.
                let empty = self.tail.load(Ordering::Relaxed) == stub;
                return if empty { Pop::Empty } else { Pop::Busy };
            }
            head.store(next, Ordering::Relaxed);
            first = next;
            // SAFETY: the caller is the consumer.
            next = unsafe { self.behind(first) };
        }
        if next.is_null() {
            // ORDERING: Relaxed - nothing is read through it; an old value is not `first` (I4).
            if self.tail.load(Ordering::Relaxed) != first {
                return Pop::Busy;
            }
            // SAFETY: the stub is not in the list (I4), and stays as long as the queue.
            unsafe { self.append(stub) };
            // SAFETY: the caller is the consumer.
            next = unsafe { self.behind(first) };
            if next.is_null() {
                return Pop::Busy;
            }
        }
        head.store(next, Ordering::Relaxed);
        Pop::Item(first.cast())
    }
}

impl<T> WithCapacity for MpscUnbounded<T> {
    fn with_capacity(capacity: usize) -> Result<Self, CapacityError> {
        let largest = (isize::MAX as usize - size_of::<Self>()) / size_of::<MpscNode<T>>();
        match capacity {
            0 => Err(CapacityError::Zero),
            _ if capacity > largest => Err(CapacityError::TooLarge { largest }),
            _ => Self::try_new(),
        }
    }
}

impl<T: Send> Queue<T> for MpscUnbounded<T> {
    type Producer<'q>
        = MpscProducer<'q, T>
    where
        Self: 'q;
    type Consumer<'q>
        = MpscConsumer<'q, T>
    where
        Self: 'q;
    const PROPERTIES: Properties = Properties {
        producers: Side::Multi,
        consumers: Side::Single,
        bounded: false,
        order: Order::Fifo,
        progress: Progress::Obstructed,
        linearizable: false,
    };
    const BYTES_PER_SLOT: usize = size_of::<MpscNode<T>>();

    #[inline]
    fn split(&mut self) -> (MpscProducer<'_, T>, MpscConsumer<'_, T>) {
        self.split()
    }

    #[inline]
    fn capacity(&self) -> usize {
        usize::MAX
    }
}

impl<T> Drop for MpscUnbounded<T> {
    fn drop(&mut self) {
        /// Frees the stub, also when the drop of an element panics.
        struct Stub(*mut CachePadded<Link>);
        impl Drop for Stub {
            fn drop(&mut self) {
                // SAFETY: made by `try_box`, and nobody else has it any more.
                drop(unsafe { Box::from_raw(self.0) });
            }
        }
        let _stub = Stub(self.head.stub);
        let mut consumer = ManuallyDrop::new(MpscConsumer { queue: self, not_shared: PhantomData });
        drain(|| consumer.pop_node().item());
    }
}

impl<T> HotFields for MpscUnbounded<T> {
    const ALIGNMENT: usize = align_of::<CachePadded<u8>>();
    const ALONE: bool = true;

    fn hot_fields(&self, visit: &mut dyn FnMut(HotField)) {
        let Self { tail, head, owns: _ } = self;
        let (producers, consumer) = (Role::Many("producers"), Role::One("consumer"));
        let tail_word = HotField::of("tail", &**tail).written_by(producers).read_by(consumer);
        visit(tail_word.padded_in(tail));
        visit(HotField::of("head", &**head).written_by(consumer).padded_in(head));
        // SAFETY: made by `try_box`, and lives as long as the queue.
        let stub = unsafe { &*head.stub };
        let both = Role::Many("producers and consumer");
        visit(HotField::of("stub", &**stub).written_by(both).padded_in(stub));
    }
}

impl<T> fmt::Debug for MpscUnbounded<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MpscUnbounded").finish_non_exhaustive()
    }
}

/// The pushing side: there may be any number of them.
pub struct MpscProducer<'q, T> {
    queue: &'q MpscUnbounded<T>,
}

/// The popping side: can be sent to another thread and not shared.
pub struct MpscConsumer<'q, T> {
    queue: &'q MpscUnbounded<T>,
    /// Two threads must not be the consumer at once.
    not_shared: PhantomData<Cell<T>>,
}

impl<T> MpscProducer<'_, T> {
    /// Appends the element of a node.
    #[inline]
    pub fn push_node(&self, node: Box<MpscNode<T>>) {
        let node: *mut MpscNode<T> = Box::into_raw(node);
        // SAFETY: the node was the caller's, so it is in no list; its address is that of its link.
        unsafe { self.queue.append(node.cast()) };
    }

    /// Appends `value` in a node that is made for it.
    ///
    /// # Errors
    /// [`Full`] hands the value back when the allocator refuses.
    #[inline]
    pub fn try_push(&self, value: T) -> Result<(), Full<T>> {
        self.push_node(MpscNode::try_new(value).map_err(Full)?);
        Ok(())
    }
}

impl<T> MpscConsumer<'_, T> {
    /// Takes the oldest node. `Busy` says that it, or the one behind it, is being pushed right now.
    #[inline]
    pub fn pop_node(&mut self) -> Pop<Box<MpscNode<T>>> {
        // SAFETY: there is one consumer, and it is borrowed exclusively.
        match unsafe { self.queue.pop_node() } {
            // SAFETY: made by `try_box`, and out of the list, where it was once.
            Pop::Item(node) => Pop::Item(unsafe { Box::from_raw(node) }),
            Pop::Empty => Pop::Empty,
            Pop::Busy => Pop::Busy,
        }
    }

    /// Takes the oldest element. `Busy` says that it, or the one behind it, is being pushed right now.
    #[inline]
    pub fn pop(&mut self) -> Pop<T> {
        match self.pop_node() {
            Pop::Item(node) => Pop::Item(node.into_inner()),
            Pop::Empty => Pop::Empty,
            Pop::Busy => Pop::Busy,
        }
    }
}

impl<T: Send> Producer<T> for MpscProducer<'_, T> {
    #[inline]
    fn try_push(&mut self, value: T) -> Result<(), Full<T>> {
        MpscProducer::try_push(self, value)
    }

    fn try_clone(&self) -> Option<Self> {
        Some(self.clone())
    }
}

impl<T: Send> Consumer<T> for MpscConsumer<'_, T> {
    #[inline]
    fn try_pop(&mut self) -> Option<T> {
        self.pop().item()
    }

    fn try_clone(&self) -> Option<Self> {
        None
    }
}

impl<T> Clone for MpscProducer<'_, T> {
    fn clone(&self) -> Self {
        Self { queue: self.queue }
    }
}

impl<T> fmt::Debug for MpscNode<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MpscNode").finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for MpscProducer<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MpscProducer").finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for MpscConsumer<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MpscConsumer").finish_non_exhaustive()
    }
}
