//! Typed arena: values of one type that are dropped together.
//! # Algorithm
//! A `Bump` hands out the values' blocks. All have the same size, which is a multiple of their
//! alignment, so they lie without gaps, the newest lowest; `lowest` and `count` describe them as a
//! slice, which is dropped as one.
//! # Why
//! Against `Bump` it runs `Drop`, and can walk over its values; it adds a count to an allocation,
//! and that all values are of one type.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `TypedArena<T, B>` | those of `Bump<B>` + 16 | 8 | 1 or 2 | its owner |
//! # Cost
//! A value: that of `Bump`, 1 load and 2 stores. Reset and drop: the destructors.
//! # Progress
//! Wait-free; one thread at a time (`!Sync`).
//! # Invariants
//! - I1: `lowest` is the newest of `count` initialised values that follow one another upwards.
//! - I2: the region does not move with the arena, so neither do the values.
//! - I3: a reference to a value borrows the arena.
//! # Synchronization
//! none
//! # Errors and limits
//! A full arena hands the value back. Values are dropped newest first; if one's destructor panics
//! the others are dropped all the same, as in a slice. Backings that move with the arena
//! ([`Inline`](crate::Inline)) are refused when the program is compiled.
//! # References
//! The crate typed-arena. Differs from it in: one region, no chunks; never allocates on its own.

use core::cell::Cell;
use core::fmt;
use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::ptr::{self, NonNull};

use super::backing::Backing;
use super::bump::Bump;
use super::contract::{Full, Map};
use super::map_error::MapError;
use super::placement::Placement;
use super::request::Request;
use super::slice::Slice;

/// Keeps values of type `T` in the region of `B` and drops them together.
///
/// ```
/// use core::mem::MaybeUninit;
/// let mut memory = [MaybeUninit::<u8>::uninit(); 256];
/// let mut names = alloc_arena::TypedArena::over(&mut memory);
/// let first = names.try_alloc(String::from("one")).unwrap();
/// first.push('!');
/// names.try_alloc(String::from("two")).unwrap();
/// let all: Vec<&mut String> = names.iter_mut().collect();
/// assert_eq!(all, ["two", "one!"], "the newest first");
/// names.reset(); // both strings are freed
/// assert!(names.is_empty());
/// ```
///
/// A backing that moves with the arena is refused:
///
/// ```compile_fail,E0080
/// use alloc_arena::{Inline, Map, Request, TypedArena};
/// let arena = TypedArena::<u8, Inline<64>>::map(64, &Request::new());
/// ```
pub struct TypedArena<T, B: Backing> {
    bump: Bump<B>,
    lowest: Cell<NonNull<T>>,
    count: Cell<usize>,
    values: PhantomData<T>,
}

// SAFETY: the values are the arena's own, behind a pointer only because they lie in its region.
unsafe impl<T: Send, B: Backing + Send> Send for TypedArena<T, B> {}

impl<'memory, T> TypedArena<T, Slice<'memory>> {
    /// Makes an empty arena over memory that the caller lends.
    pub fn over(memory: &'memory mut [MaybeUninit<u8>]) -> Self {
        Self::new(Slice::new(memory))
    }
}

impl<T, B: Backing> TypedArena<T, B> {
    const STAYS: () = assert!(B::STAYS, "values must not move with the arena");

    /// Makes an empty arena over `backing`.
    pub fn new(backing: B) -> Self {
        let () = Self::STAYS;
        Self {
            bump: Bump::new(backing),
            lowest: Cell::new(NonNull::dangling()),
            count: Cell::new(0),
            values: PhantomData,
        }
    }

    /// Moves `value` into the arena, which drops it when it is reset or dropped itself.
    ///
    /// # Errors
    /// [`Full`] hands the value back when the rest of the region is too small.
    #[expect(clippy::mut_from_ref, reason = "each call returns a value of its own (I1)")]
    #[inline]
    pub fn try_alloc(&self, value: T) -> Result<&mut T, Full<T>> {
        let Some(count) = self.count.get().checked_add(1) else { return Err(Full(value)) };
        let place = NonNull::from(self.bump.try_alloc(value)?);
        self.lowest.set(place);
        self.count.set(count);
        // SAFETY: written just now; by I1 no other reference covers it, by I2 and I3 it stays.
        Ok(unsafe { &mut *place.as_ptr() })
    }

    /// The values as a slice; what it points to is initialised.
    fn slice(&self) -> NonNull<[T]> {
        NonNull::slice_from_raw_parts(self.lowest.get(), self.count.get())
    }

    /// Walks over the values, the newest first.
    pub fn iter_mut(&mut self) -> core::slice::IterMut<'_, T> {
        // SAFETY: by I1 initialised and side by side; the arena is borrowed, so by I3 nobody else
        // has a reference.
        let values = unsafe { &mut *self.slice().as_ptr() };
        values.iter_mut()
    }

    /// Drops all values and takes their memory back.
    pub fn reset(&mut self) {
        let values = self.slice();
        // First, so that a destructor that panics leaves an empty arena, not one of dropped values.
        self.count.set(0);
        self.lowest.set(NonNull::dangling());
        self.bump.reset();
        // SAFETY: by I1 initialised; forgotten above, so dropped once; by I3 nobody looks.
        unsafe { ptr::drop_in_place(values.as_ptr()) };
    }

    /// Counts the values.
    pub fn len(&self) -> usize {
        self.count.get()
    }

    /// Whether there is no value.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of the region.
    pub fn capacity_bytes(&self) -> usize {
        self.bump.capacity()
    }

    /// Reports where the region lies now.
    pub fn placement(&self) -> Placement {
        self.bump.placement()
    }
}

impl<T, B: Backing> Drop for TypedArena<T, B> {
    fn drop(&mut self) {
        self.reset();
    }
}

impl<T, B: Backing + Map> Map for TypedArena<T, B> {
    fn map(bytes: usize, request: &Request) -> Result<Self, MapError> {
        B::map(bytes, request).map(Self::new)
    }
}

impl<T, B: Backing> fmt::Debug for TypedArena<T, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TypedArena").field("len", &self.len()).finish_non_exhaustive()
    }
}
