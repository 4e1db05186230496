//! Caller's slice: a backing that borrows its memory.
//! # Algorithm
//! Keeps the address and the length of a slice for as long as the borrow lasts.
//! # Why
//! Works without heap and without kernel: on a stack, in a `static`, in shared memory. Against
//! `Inline` it adds a pointer to follow and removes the copy when the arena is moved.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `Slice` | 16 | 8 | 1 | nobody after construction |
//! # Cost
//! Making one: two stores. The region: one load.
//! # Progress
//! Wait-free.
//! # Invariants
//! - I1: `region` is the slice that was lent, and the lender cannot reach it meanwhile.
//! # Synchronization
//! none
//! # Errors and limits
//! As long as the slice. Takes `MaybeUninit` bytes: blocks may leave padding behind, which plain
//! bytes must not hold. Cannot be made by [`Map`](crate::Map), hence no row of its own.
//! # References
//! none

use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::ptr::NonNull;

use super::backing::Backing;
use super::contract::Memory;
use super::placement::{Fallbacks, Placement};
use super::request::Request;

/// Memory that a caller lent.
///
/// ```
/// use core::mem::MaybeUninit;
/// use alloc_arena::{Bump, Slice};
/// let mut memory = [MaybeUninit::uninit(); 64];
/// let arena = Bump::new(Slice::new(&mut memory));
/// assert_eq!(arena.capacity(), 64);
/// ```
#[derive(Debug)]
pub struct Slice<'memory> {
    region: NonNull<[u8]>,
    lent: PhantomData<&'memory mut [MaybeUninit<u8>]>,
}

// SAFETY: it is an exclusive borrow of bytes, which may go to another thread.
unsafe impl Send for Slice<'_> {}
// SAFETY: a shared reference tells where the bytes are, no more.
unsafe impl Sync for Slice<'_> {}

impl<'memory> Slice<'memory> {
    /// Borrows `memory`.
    pub fn new(memory: &'memory mut [MaybeUninit<u8>]) -> Self {
        let length = memory.len();
        let start = NonNull::from(memory).cast::<u8>();
        Self { region: NonNull::slice_from_raw_parts(start, length), lent: PhantomData }
    }
}

// SAFETY: by I1 the region is valid and the backing's alone; it does not depend on where the
// backing stands.
unsafe impl Backing for Slice<'_> {
    const STAYS: bool = true;
    const MEMORY: Memory = Memory::Callers;
    const NUMA_BOUND: bool = false;

    #[inline(always)]
    fn region(&self) -> NonNull<[u8]> {
        self.region
    }

    fn placement(&self) -> Placement {
        Placement::of_region(self.region, None, &Request::new(), Fallbacks::default())
    }
}
