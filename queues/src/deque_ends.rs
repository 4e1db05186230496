//! Ends of a deque: the one worker's, and the thieves'.

use core::cell::Cell;
use core::fmt;
use core::marker::PhantomData;

use super::contract::{Consumer, Full, Producer, Steal};

/// What a deque lets its ends do.
pub trait Deque<T> {
    /// Appends `value` at the worker's end.
    ///
    /// # Errors
    /// [`Full`] hands the value back when there is no room.
    ///
    /// # Safety
    /// The caller is the only worker.
    unsafe fn push(&self, value: T) -> Result<(), Full<T>>;

    /// Takes the element that is the worker's to take next, if there is one.
    ///
    /// # Safety
    /// The caller is the only worker.
    unsafe fn pop(&self) -> Option<T>;

    /// Takes the oldest element, if there is one and nobody else is taking it.
    fn steal(&self) -> Steal<T>;

    /// Takes the oldest element, looking again while other thieves are faster.
    #[inline(always)]
    fn steal_in_turn(&self) -> Option<T> {
        loop {
            match self.steal() {
                Steal::Success(value) => return Some(value),
                Steal::Empty => return None,
                Steal::Retry => {}
            }
        }
    }
}

/// The worker's end of a deque: can be sent to another thread and not shared.
pub struct Worker<'q, D, T> {
    deque: &'q D,
    /// Two threads must not be the worker at once.
    not_shared: PhantomData<Cell<T>>,
}

/// A thief's end of a deque.
pub struct Thief<'q, D, T> {
    deque: &'q D,
    element: PhantomData<fn() -> T>,
}

/// Gives out the worker's end and the first thief's. The exclusive borrow proves that no others
/// exist.
#[inline]
pub(crate) fn ends<D, T>(deque: &mut D) -> (Worker<'_, D, T>, Thief<'_, D, T>) {
    (Worker { deque, not_shared: PhantomData }, Thief { deque, element: PhantomData })
}

impl<'q, D, T> Worker<'q, D, T> {
    /// The deque, of which this is the worker's end.
    pub(crate) fn deque(&mut self) -> &'q D {
        self.deque
    }
}

impl<'q, D, T> Thief<'q, D, T> {
    /// The deque, of which this is a thief's end.
    pub(crate) fn deque(&self) -> &'q D {
        self.deque
    }
}

impl<D: Deque<T>, T> Worker<'_, D, T> {
    /// Appends `value` at the worker's end.
    ///
    /// # Errors
    /// [`Full`] hands the value back when there is no room for it: in a deque of a fixed capacity
    /// when its slot is not vacant yet, in one that grows when there is no memory.
    #[inline]
    pub fn try_push(&mut self, value: T) -> Result<(), Full<T>> {
        // SAFETY: there is one worker's end, and it is borrowed exclusively.
        unsafe { self.deque.push(value) }
    }

    /// Takes the worker's next element, if there is one: in the Chase-Lev deques the newest.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        // SAFETY: there is one worker's end, and it is borrowed exclusively.
        unsafe { self.deque.pop() }
    }
}

impl<D: Deque<T>, T> Thief<'_, D, T> {
    /// Takes the oldest element, if there is one and nobody else is taking it.
    #[inline]
    pub fn steal(&self) -> Steal<T> {
        self.deque.steal()
    }
}

impl<D: Deque<T>, T: Send> Producer<T> for Worker<'_, D, T> {
    #[inline]
    fn try_push(&mut self, value: T) -> Result<(), Full<T>> {
        self.try_push(value)
    }

    fn try_clone(&self) -> Option<Self> {
        None
    }
}

impl<D: Deque<T>, T: Send> Consumer<T> for Thief<'_, D, T> {
    /// Steals until nobody else was faster.
    #[inline]
    fn try_pop(&mut self) -> Option<T> {
        self.deque.steal_in_turn()
    }

    fn try_clone(&self) -> Option<Self> {
        Some(self.clone())
    }
}

impl<D, T> Clone for Thief<'_, D, T> {
    fn clone(&self) -> Self {
        Self { deque: self.deque, element: PhantomData }
    }
}

impl<D, T> fmt::Debug for Worker<'_, D, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").finish_non_exhaustive()
    }
}

impl<D, T> fmt::Debug for Thief<'_, D, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Thief").finish_non_exhaustive()
    }
}
