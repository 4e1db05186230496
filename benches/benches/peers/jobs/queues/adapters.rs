//! Queues of other crates under the contract of ours, so that the same driver runs both.

use std::collections::VecDeque;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::sync::{Mutex, PoisonError, mpsc};

use crossbeam_utils::CachePadded;
use queues::{
    CapacityError, Consumer, Full, HotField, HotFields, Order, Producer, Progress, Properties,
    Queue, Side, WithCapacity,
};
use ringbuf::traits::{Consumer as _, Producer as _, Split};

const fn stated(side: Side) -> Properties {
    Properties {
        producers: side,
        consumers: side,
        bounded: true,
        order: Order::Fifo,
        progress: Progress::Obstructed,
        linearizable: false,
    }
}

macro_rules! nothing_to_describe {
    ([$($generics:tt)*] $queue:ty) => {
        impl<$($generics)*> HotFields for $queue {
            const ALIGNMENT: usize = align_of::<Self>();
            const ALONE: bool = false;

            fn hot_fields(&self, _: &mut dyn FnMut(HotField)) {}
        }
    };
}

/// A queue whose operations take a shared reference.
pub(super) trait ForMany: Send + Sync {
    type T: Send;

    fn new(capacity: usize) -> Self;

    fn push(&self, value: Self::T) -> Result<(), Self::T>;

    fn pop(&self) -> Option<Self::T>;
}

/// The contract around a [`ForMany`].
pub(super) struct Many<Q>(Q, usize);

/// Either side of a [`Many`].
pub(super) struct Shared<'q, Q>(&'q Q);

impl<Q: ForMany> WithCapacity for Many<Q> {
    fn with_capacity(capacity: usize) -> Result<Self, CapacityError> {
        Ok(Self(Q::new(capacity), capacity))
    }
}

impl<Q: ForMany> Queue<Q::T> for Many<Q> {
    type Producer<'q>
        = Shared<'q, Q>
    where
        Self: 'q;
    type Consumer<'q>
        = Shared<'q, Q>
    where
        Self: 'q;
    const PROPERTIES: Properties = stated(Side::Multi);
    const BYTES_PER_SLOT: usize = 0;

    fn split(&mut self) -> (Shared<'_, Q>, Shared<'_, Q>) {
        (Shared(&self.0), Shared(&self.0))
    }

    fn capacity(&self) -> usize {
        self.1
    }
}

impl<Q: ForMany> Producer<Q::T> for Shared<'_, Q> {
    #[inline(always)]
    fn try_push(&mut self, value: Q::T) -> Result<(), Full<Q::T>> {
        self.0.push(value).map_err(Full)
    }

    fn try_clone(&self) -> Option<Self> {
        Some(Self(self.0))
    }
}

impl<Q: ForMany> Consumer<Q::T> for Shared<'_, Q> {
    #[inline(always)]
    fn try_pop(&mut self) -> Option<Q::T> {
        self.0.pop()
    }

    fn try_clone(&self) -> Option<Self> {
        Some(Self(self.0))
    }
}

nothing_to_describe!([Q] Many<Q>);

impl<T: Send> ForMany for crossbeam_queue::ArrayQueue<T> {
    type T = T;

    fn new(capacity: usize) -> Self {
        Self::new(capacity)
    }

    #[inline(always)]
    fn push(&self, value: T) -> Result<(), T> {
        self.push(value)
    }

    #[inline(always)]
    fn pop(&self) -> Option<T> {
        self.pop()
    }
}

impl<T: Send> ForMany for concurrent_queue::ConcurrentQueue<T> {
    type T = T;

    fn new(capacity: usize) -> Self {
        Self::bounded(capacity)
    }

    #[inline(always)]
    fn push(&self, value: T) -> Result<(), T> {
        self.push(value).map_err(concurrent_queue::PushError::into_inner)
    }

    #[inline(always)]
    fn pop(&self) -> Option<T> {
        self.pop().ok()
    }
}

#[expect(
    deprecated,
    reason = "its authors say that it is not lock-free; nor is ours, nor are most"
)]
impl<T: Send, const N: usize> ForMany for heapless::mpmc::Queue<T, N> {
    type T = T;

    fn new(_: usize) -> Self {
        Self::new()
    }

    #[inline(always)]
    fn push(&self, value: T) -> Result<(), T> {
        self.enqueue(value)
    }

    #[inline(always)]
    fn pop(&self) -> Option<T> {
        self.dequeue()
    }
}

/// Both ends of a channel.
pub(super) struct Channel<T>(crossbeam_channel::Sender<T>, crossbeam_channel::Receiver<T>);

impl<T: Send> ForMany for Channel<T> {
    type T = T;

    fn new(capacity: usize) -> Self {
        let (sender, receiver) = crossbeam_channel::bounded(capacity);
        Self(sender, receiver)
    }

    #[inline(always)]
    fn push(&self, value: T) -> Result<(), T> {
        self.0.try_send(value).map_err(crossbeam_channel::TrySendError::into_inner)
    }

    #[inline(always)]
    fn pop(&self) -> Option<T> {
        self.1.try_recv().ok()
    }
}

/// What everybody writes first.
pub(super) struct LockedRing<T>(Mutex<VecDeque<T>>, usize);

impl<T: Send> ForMany for LockedRing<T> {
    type T = T;

    fn new(capacity: usize) -> Self {
        Self(Mutex::new(VecDeque::with_capacity(capacity)), capacity)
    }

    #[inline(always)]
    fn push(&self, value: T) -> Result<(), T> {
        let mut ring = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if ring.len() == self.1 {
            return Err(value);
        }
        ring.push_back(value);
        Ok(())
    }

    #[inline(always)]
    fn pop(&self) -> Option<T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }
}

/// A queue that is made as two ends, each owned by a thread.
pub(super) trait Ends: Sized {
    type T: Send;
    type Pop: Pops<Self::T>;

    fn pair(capacity: usize) -> (Self, Self::Pop);

    fn push(&mut self, value: Self::T) -> Result<(), Self::T>;
}

pub(super) trait Pops<T> {
    fn pop(&mut self) -> Option<T>;
}

/// Keeps both ends while nobody has them.
pub(super) struct Halved<P, C> {
    push: Home<P>,
    pop: Home<C>,
    capacity: usize,
}

type Home<E> = CachePadded<Mutex<Option<E>>>;

/// An end by value, as its users hold it; goes home when it is dropped.
pub(super) struct Lent<'q, E> {
    end: ManuallyDrop<E>,
    home: &'q Home<E>,
}

impl<'q, E> Lent<'q, E> {
    fn from(home: &'q Home<E>) -> Self {
        let end = home.lock().unwrap_or_else(PoisonError::into_inner).take();
        let end = end.expect("`split` borrows the queue exclusively, so both ends are at home");
        Self { end: ManuallyDrop::new(end), home }
    }
}

impl<E> Drop for Lent<'_, E> {
    fn drop(&mut self) {
        // SAFETY: taken once, since a value is dropped once.
        let end = unsafe { ManuallyDrop::take(&mut self.end) };
        *self.home.lock().unwrap_or_else(PoisonError::into_inner) = Some(end);
    }
}

impl<P: Ends<Pop = C>, C> WithCapacity for Halved<P, C> {
    fn with_capacity(capacity: usize) -> Result<Self, CapacityError> {
        let (push, pop) = P::pair(capacity);
        let home = |end| CachePadded::new(Mutex::new(end));
        let pop = CachePadded::new(Mutex::new(Some(pop)));
        Ok(Self { push: home(Some(push)), pop, capacity })
    }
}

impl<P, C> Queue<P::T> for Halved<P, C>
where
    P: Ends<Pop = C> + Send,
    C: Pops<P::T> + Send,
{
    type Producer<'q>
        = Lent<'q, P>
    where
        Self: 'q;
    type Consumer<'q>
        = Popping<'q, C, P::T>
    where
        Self: 'q;
    const PROPERTIES: Properties = stated(Side::Single);
    const BYTES_PER_SLOT: usize = 0;

    fn split(&mut self) -> (Lent<'_, P>, Popping<'_, C, P::T>) {
        (Lent::from(&self.push), Popping(Lent::from(&self.pop), PhantomData))
    }

    fn capacity(&self) -> usize {
        self.capacity
    }
}

nothing_to_describe!([P, C] Halved<P, C>);

impl<P: Ends> Producer<P::T> for Lent<'_, P> {
    #[inline(always)]
    fn try_push(&mut self, value: P::T) -> Result<(), Full<P::T>> {
        self.end.push(value).map_err(Full)
    }

    fn try_clone(&self) -> Option<Self> {
        None
    }
}

/// The popping end; knows what comes out.
pub(super) struct Popping<'q, C, T>(Lent<'q, C>, PhantomData<fn() -> T>);

impl<C: Pops<T>, T> Consumer<T> for Popping<'_, C, T> {
    #[inline(always)]
    fn try_pop(&mut self) -> Option<T> {
        self.0.end.pop()
    }

    fn try_clone(&self) -> Option<Self> {
        None
    }
}

impl<T: Send> Ends for rtrb::Producer<T> {
    type T = T;
    type Pop = rtrb::Consumer<T>;

    fn pair(capacity: usize) -> (Self, rtrb::Consumer<T>) {
        rtrb::RingBuffer::new(capacity)
    }

    #[inline(always)]
    fn push(&mut self, value: T) -> Result<(), T> {
        self.push(value).map_err(|rtrb::PushError::Full(value)| value)
    }
}

impl<T> Pops<T> for rtrb::Consumer<T> {
    #[inline(always)]
    fn pop(&mut self) -> Option<T> {
        self.pop().ok()
    }
}

impl<T: Send> Ends for ringbuf::HeapProd<T> {
    type T = T;
    type Pop = ringbuf::HeapCons<T>;

    fn pair(capacity: usize) -> (Self, ringbuf::HeapCons<T>) {
        ringbuf::HeapRb::new(capacity).split()
    }

    #[inline(always)]
    fn push(&mut self, value: T) -> Result<(), T> {
        self.try_push(value)
    }
}

impl<T> Pops<T> for ringbuf::HeapCons<T> {
    #[inline(always)]
    fn pop(&mut self) -> Option<T> {
        self.try_pop()
    }
}

impl<T: Send> Ends for mpsc::SyncSender<T> {
    type T = T;
    type Pop = mpsc::Receiver<T>;

    fn pair(capacity: usize) -> (Self, mpsc::Receiver<T>) {
        mpsc::sync_channel(capacity)
    }

    #[inline(always)]
    fn push(&mut self, value: T) -> Result<(), T> {
        self.try_send(value).map_err(|refused| match refused {
            mpsc::TrySendError::Full(value) | mpsc::TrySendError::Disconnected(value) => value,
        })
    }
}

impl<T> Pops<T> for mpsc::Receiver<T> {
    #[inline(always)]
    fn pop(&mut self) -> Option<T> {
        self.try_recv().ok()
    }
}

/// `heapless`'s ring in place: one slot stays free.
pub(super) struct HeaplessSpsc<T, const N: usize>(heapless::spsc::Queue<T, N>);

/// An end of it.
pub(super) struct HeaplessEnd<E>(E);

impl<T, const N: usize> WithCapacity for HeaplessSpsc<T, N> {
    fn with_capacity(_: usize) -> Result<Self, CapacityError> {
        Ok(Self(heapless::spsc::Queue::new()))
    }
}

// SAFETY: it is shared by its two ends alone, and reached through `split`, which borrows it
// exclusively, or for its capacity, which is a constant.
unsafe impl<T: Send, const N: usize> Sync for HeaplessSpsc<T, N> {}

impl<T: Send, const N: usize> Queue<T> for HeaplessSpsc<T, N> {
    type Producer<'q>
        = HeaplessEnd<heapless::spsc::Producer<'q, T>>
    where
        Self: 'q;
    type Consumer<'q>
        = HeaplessEnd<heapless::spsc::Consumer<'q, T>>
    where
        Self: 'q;
    const PROPERTIES: Properties = stated(Side::Single);
    const BYTES_PER_SLOT: usize = size_of::<T>();

    fn split(&mut self) -> (Self::Producer<'_>, Self::Consumer<'_>) {
        let (producer, consumer) = self.0.split();
        (HeaplessEnd(producer), HeaplessEnd(consumer))
    }

    fn capacity(&self) -> usize {
        N - 1
    }
}

nothing_to_describe!([T, const N: usize] HeaplessSpsc<T, N>);

impl<T> Producer<T> for HeaplessEnd<heapless::spsc::Producer<'_, T>> {
    #[inline(always)]
    fn try_push(&mut self, value: T) -> Result<(), Full<T>> {
        self.0.enqueue(value).map_err(Full)
    }

    fn try_clone(&self) -> Option<Self> {
        None
    }
}

impl<T> Consumer<T> for HeaplessEnd<heapless::spsc::Consumer<'_, T>> {
    #[inline(always)]
    fn try_pop(&mut self) -> Option<T> {
        self.0.dequeue()
    }

    fn try_clone(&self) -> Option<Self> {
        None
    }
}
