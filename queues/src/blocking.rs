//! Blocking: any queue, with sides that wait and that can be closed.

use core::fmt;
use core::marker::PhantomData;

use crate::contract::{Consumer, Full, Producer, Queue};
use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use crate::wait::Wait;

/// A queue whose senders wait for room and whose receivers wait for elements, by the policy `W`.
///
/// It closes when the last sender or the last receiver is dropped, or by [`Sender::close`] or
/// [`Receiver::close`]. A closed queue takes nothing more; what is in it can still be received.
///
/// ```
/// use queues::{Blocking, Inline, SpinWait, SpscRingCached};
/// let mut queue = Blocking::<_, SpinWait>::new(SpscRingCached::<u64, Inline<2>>::new());
/// let (mut sender, mut receiver) = queue.split();
/// std::thread::scope(|scope| {
///     scope.spawn(move || {
///         for number in 0..100 {
///             sender.send(number).unwrap();
///         }
///     });
///     let mut sum = 0;
///     while let Some(number) = receiver.receive() {
///         sum += number;
///     }
///     assert_eq!(sum, 4950);
/// });
/// ```
pub struct Blocking<Q, W> {
    gate: Gate<W>,
    queue: Q,
}

/// What both sides of a blocking queue share besides the queue.
struct Gate<W> {
    closed: AtomicBool,
    senders: AtomicUsize,
    receivers: AtomicUsize,
    room: W,
    elements: W,
}

impl<W: Wait> Gate<W> {
    fn new() -> Self {
        Self {
            closed: AtomicBool::new(false),
            senders: AtomicUsize::new(1),
            receivers: AtomicUsize::new(1),
            room: W::new(),
            elements: W::new(),
        }
    }

    fn is_closed(&self) -> bool {
        // ORDERING: Acquire - what was pushed before the queue was closed is seen by the attempt
        // that follows.
        self.closed.load(Ordering::Acquire)
    }

    fn close(&self) {
        // ORDERING: Release - against the load in `is_closed`.
        self.closed.store(true, Ordering::Release);
        self.room.notify();
        self.elements.notify();
    }

    /// One fewer of those that `count` counts; the last one closes.
    fn leave(&self, count: &AtomicUsize) {
        // ORDERING: AcqRel - the last one to leave publishes by `close` what all others pushed.
        if count.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.close();
        }
    }
}

impl<Q, W: Wait> Blocking<Q, W> {
    /// Lets both sides of `queue` wait.
    pub fn new(queue: Q) -> Self {
        Self { gate: Gate::new(), queue }
    }

    /// Gives out both sides and opens the queue, if it was closed; what is in it stays.
    #[expect(clippy::type_complexity, reason = "two sides, each with its policy")]
    pub fn split<T: Send>(
        &mut self,
    ) -> (Sender<'_, Q::Producer<'_>, T, W>, Receiver<'_, Q::Consumer<'_>, T, W>)
    where
        Q: Queue<T>,
    {
        self.gate = Gate::new();
        let gate = &self.gate;
        let (producer, consumer) = self.queue.split();
        (
            Sender { producer, gate, element: PhantomData },
            Receiver { consumer, gate, element: PhantomData },
        )
    }

    /// Gives the queue back, with what is in it.
    pub fn into_inner(self) -> Q {
        self.queue
    }
}

/// The queue is closed; the value comes back.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Closed<T>(
    /// The value that did not go in.
    pub T,
);

impl<T> fmt::Debug for Closed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Closed(..)")
    }
}

impl<T> fmt::Display for Closed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the queue is closed")
    }
}

impl<T> core::error::Error for Closed<T> {}

/// The side of a blocking queue that pushes.
pub struct Sender<'q, P, T, W: Wait> {
    producer: P,
    gate: &'q Gate<W>,
    element: PhantomData<fn(T)>,
}

/// The side of a blocking queue that pops.
pub struct Receiver<'q, C, T, W: Wait> {
    consumer: C,
    gate: &'q Gate<W>,
    element: PhantomData<fn() -> T>,
}

impl<P: Producer<T>, T, W: Wait> Sender<'_, P, T, W> {
    /// Appends `value`, waiting for room.
    ///
    /// # Errors
    /// [`Closed`] hands the value back when the queue is closed, also while it waits.
    pub fn send(&mut self, value: T) -> Result<(), Closed<T>> {
        let Self { producer, gate, .. } = self;
        let mut waiting = Some(value);
        let sent = gate.room.until(|| {
            let value = waiting.take()?;
            if gate.is_closed() {
                return Some(Err(Closed(value)));
            }
            match producer.try_push(value) {
                Ok(()) => Some(Ok(())),
                Err(Full(value)) => {
                    waiting = Some(value);
                    None
                }
            }
        });
        if sent.is_ok() {
            gate.elements.notify();
        }
        sent
    }

    /// Lets nobody send any more; what is in the queue can still be received.
    pub fn close(&self) {
        self.gate.close();
    }

    /// Makes one more sender of the same queue; `None` when there may be only one.
    pub fn try_clone(&self) -> Option<Self> {
        let producer = self.producer.try_clone()?;
        // ORDERING: Relaxed - the count cannot reach 0 meanwhile, since this sender is counted.
        self.gate.senders.fetch_add(1, Ordering::Relaxed);
        Some(Self { producer, gate: self.gate, element: PhantomData })
    }
}

impl<C: Consumer<T>, T, W: Wait> Receiver<'_, C, T, W> {
    /// Takes the oldest element, waiting for one; `None` when the queue is closed and empty.
    ///
    /// When the last sender was dropped, everything that was sent has come out before `None`. After
    /// [`Sender::close`] or [`Receiver::close`] a send that was under way may still succeed; what it
    /// pushed is found by a later call, or dropped with the queue.
    pub fn receive(&mut self) -> Option<T> {
        let Self { consumer, gate, .. } = self;
        let received = gate.elements.until(|| {
            // Looked at first: what is empty afterwards is empty with all sends behind it.
            let closed = gate.is_closed();
            match consumer.try_pop() {
                Some(value) => Some(Some(value)),
                None => closed.then_some(None),
            }
        });
        if received.is_some() {
            gate.room.notify();
        }
        received
    }

    /// Lets nobody send any more; what is in the queue can still be received.
    pub fn close(&self) {
        self.gate.close();
    }

    /// Makes one more receiver of the same queue; `None` when there may be only one.
    pub fn try_clone(&self) -> Option<Self> {
        let consumer = self.consumer.try_clone()?;
        // ORDERING: Relaxed - the count cannot reach 0 meanwhile, since this receiver is counted.
        self.gate.receivers.fetch_add(1, Ordering::Relaxed);
        Some(Self { consumer, gate: self.gate, element: PhantomData })
    }
}

impl<P, T, W: Wait> Drop for Sender<'_, P, T, W> {
    fn drop(&mut self) {
        self.gate.leave(&self.gate.senders);
    }
}

impl<C, T, W: Wait> Drop for Receiver<'_, C, T, W> {
    fn drop(&mut self) {
        self.gate.leave(&self.gate.receivers);
    }
}

impl<Q, W> fmt::Debug for Blocking<Q, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Blocking").finish_non_exhaustive()
    }
}

impl<P, T, W: Wait> fmt::Debug for Sender<'_, P, T, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").finish_non_exhaustive()
    }
}

impl<C, T, W: Wait> fmt::Debug for Receiver<'_, C, T, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver").finish_non_exhaustive()
    }
}
