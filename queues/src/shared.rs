//! Endpoints of the queues that many threads may use at once: references with a direction.

use core::fmt;
use core::marker::PhantomData;

use super::contract::{Consumer, Full, Producer, SharedQueue};

/// The ends of a queue for many, inside its `impl Queue`.
macro_rules! shared_ends {
    ($element:ty) => {
        type Producer<'q>
            = super::shared::SharedProducer<'q, Self, $element>
        where
            Self: 'q;
        type Consumer<'q>
            = super::shared::SharedConsumer<'q, Self, $element>
        where
            Self: 'q;

        #[inline]
        fn split(&mut self) -> (Self::Producer<'_>, Self::Consumer<'_>) {
            (super::shared::SharedProducer::new(self), super::shared::SharedConsumer::new(self))
        }
    };
}
pub(crate) use shared_ends;

/// The pushing side of a queue that takes any number of producers.
pub struct SharedProducer<'q, Q, T> {
    queue: &'q Q,
    element: PhantomData<fn(T)>,
}

/// The popping side of a queue that takes any number of consumers.
pub struct SharedConsumer<'q, Q, T> {
    queue: &'q Q,
    element: PhantomData<fn() -> T>,
}

impl<'q, Q, T> SharedProducer<'q, Q, T> {
    /// Makes a producer of `queue`.
    pub fn new(queue: &'q Q) -> Self {
        Self { queue, element: PhantomData }
    }
}

impl<'q, Q, T> SharedConsumer<'q, Q, T> {
    /// Makes a consumer of `queue`.
    pub fn new(queue: &'q Q) -> Self {
        Self { queue, element: PhantomData }
    }
}

impl<Q: SharedQueue<T>, T: Send> Producer<T> for SharedProducer<'_, Q, T> {
    #[inline]
    fn try_push(&mut self, value: T) -> Result<(), Full<T>> {
        self.queue.try_push(value)
    }

    fn try_clone(&self) -> Option<Self> {
        Some(self.clone())
    }
}

impl<Q: SharedQueue<T>, T: Send> Consumer<T> for SharedConsumer<'_, Q, T> {
    #[inline]
    fn try_pop(&mut self) -> Option<T> {
        self.queue.try_pop()
    }

    fn try_clone(&self) -> Option<Self> {
        Some(self.clone())
    }
}

impl<Q, T> Clone for SharedProducer<'_, Q, T> {
    fn clone(&self) -> Self {
        Self::new(self.queue)
    }
}

impl<Q, T> Clone for SharedConsumer<'_, Q, T> {
    fn clone(&self) -> Self {
        Self::new(self.queue)
    }
}

impl<Q, T> fmt::Debug for SharedProducer<'_, Q, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedProducer").finish_non_exhaustive()
    }
}

impl<Q, T> fmt::Debug for SharedConsumer<'_, Q, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedConsumer").finish_non_exhaustive()
    }
}
