//! Null queue: no queue at all, the baseline of every measurement.
//! # Algorithm
//! `try_push` drops its value and says that it went in; `try_pop` makes a default value up. The
//! queue is never full and never empty, and shares nothing.
//! # Why
//! What a row costs beyond this one is the queue; what this row costs is the loop around it,
//! making and dropping one element an operation included.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `NullQueue<T>` | 8 | 8 | 1 | nobody |
//! | slot | 0 | 1 | 0 | nobody |
//! | endpoint | 8 | 8 | - | nobody |
//! # Cost
//! No instruction after inlining, but those of the element's `Default` and `Drop`. A driver has to
//! hide the values from the optimiser, or its loop goes away as well.
//! # Progress
//! Not a queue: what comes out is not what went in.
//! # Invariants
//! none
//! # Synchronization
//! none
//! # Errors and limits
//! Breaks every promise of [`Queue`] but the types, and is labelled `baseline` and
//! [`Order::NotAQueue`]. Drivers must not check what comes out, nor wait for `Full` or empty.
//! # References
//! none

use core::fmt;
use core::marker::PhantomData;

use super::contract::{
    CapacityError, Full, Order, Progress, Properties, Queue, SharedQueue, Side, WithCapacity,
};
use super::hot::{HotField, HotFields};
use super::shared::shared_ends;

/// Forgets what goes in and makes up what comes out; measures the loop without a queue.
///
/// ```
/// use queues::{NullQueue, SharedQueue, WithCapacity};
/// let queue = NullQueue::<u64>::with_capacity(1).unwrap();
/// queue.try_push(7).unwrap();
/// assert_eq!(queue.try_pop(), Some(0));
/// ```
pub struct NullQueue<T> {
    capacity: usize,
    element: PhantomData<fn(T) -> T>,
}

impl<T> WithCapacity for NullQueue<T> {
    fn with_capacity(capacity: usize) -> Result<Self, CapacityError> {
        match capacity {
            0 => Err(CapacityError::Zero),
            _ => Ok(Self { capacity, element: PhantomData }),
        }
    }
}

impl<T: Send + Default> Queue<T> for NullQueue<T> {
    shared_ends!(T);

    const PROPERTIES: Properties = Properties {
        producers: Side::Multi,
        consumers: Side::Multi,
        bounded: true,
        order: Order::NotAQueue,
        progress: Progress::WaitFree,
        linearizable: false,
    };
    const BYTES_PER_SLOT: usize = 0;

    /// The capacity that was asked for; nothing is limited by it.
    #[inline]
    fn capacity(&self) -> usize {
        self.capacity
    }
}

impl<T: Send + Default> SharedQueue<T> for NullQueue<T> {
    #[inline(always)]
    fn try_push(&self, _value: T) -> Result<(), Full<T>> {
        Ok(())
    }

    #[inline(always)]
    fn try_pop(&self) -> Option<T> {
        Some(T::default())
    }
}

impl<T> HotFields for NullQueue<T> {
    const ALIGNMENT: usize = align_of::<usize>();
    const ALONE: bool = false;

    fn hot_fields(&self, visit: &mut dyn FnMut(HotField)) {
        let Self { capacity, element: _ } = self;
        visit(HotField::of("capacity", capacity));
    }
}

impl<T> fmt::Debug for NullQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NullQueue").finish_non_exhaustive()
    }
}
