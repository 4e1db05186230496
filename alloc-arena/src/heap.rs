//! Heap block: a backing from the global allocator.
//! # Algorithm
//! Allocates one block of whole pairs of lines, and gives it back when dropped.
//! # Why
//! Against `Inline` it takes any size and moves cheaply; it adds an allocation, and memory whose
//! placement is the global allocator's affair.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `Heap` | 32 | 8 | 1 | nobody after construction |
//! # Cost
//! Making one: one allocation. The region: one load.
//! # Progress
//! As the global allocator's; no call of it after construction.
//! # Invariants
//! - I1: `region` was allocated with the `layout` of its length and is freed by `drop` only.
//! # Synchronization
//! none
//! # Errors and limits
//! A failed allocation is [`MapError::OutOfMemory`], never an abort. Pages are not touched, so a
//! kernel that overcommits may fail later. Cannot be bound or locked.
//! # References
//! none

use alloc::alloc::{alloc, dealloc};
use core::alloc::Layout;
use core::ptr::NonNull;

use super::backing::Backing;
use super::contract::{Map, Memory};
use super::map_error::MapError;
use super::placement::{Fallbacks, Placement};
use super::request::Request;

/// Two cache lines, which x86-64 prefetches together.
const ALIGN: usize = 128;

/// What is allocated for a region: whole pairs of lines, so that no stranger's block begins on its
/// last one.
fn layout(bytes: usize) -> Option<Layout> {
    Some(Layout::from_size_align(bytes, ALIGN).ok()?.pad_to_align())
}

/// A block of the global allocator.
///
/// ```
/// use alloc_arena::{Bump, Heap, Map, Request};
/// let arena = Bump::<Heap>::map(1 << 20, &Request::new())?;
/// assert_eq!(arena.try_alloc([1, 2, 3]), Ok(&mut [1, 2, 3]));
/// # Ok::<(), alloc_arena::MapError>(())
/// ```
#[derive(Debug)]
pub struct Heap {
    region: NonNull<[u8]>,
    request: Request,
}

// SAFETY: the block is owned and the global allocator serves every thread.
unsafe impl Send for Heap {}
// SAFETY: a shared reference tells where the block is and reports about it, no more.
unsafe impl Sync for Heap {}

impl Map for Heap {
    fn map(bytes: usize, request: &Request) -> Result<Self, MapError> {
        if bytes == 0 {
            return Err(MapError::Zero);
        }
        request.settle_without_kernel()?;
        let layout = layout(bytes).ok_or(MapError::LayoutOverflow)?;
        // SAFETY: the layout has some bytes.
        let start = NonNull::new(unsafe { alloc(layout) }).ok_or(MapError::OutOfMemory)?;
        Ok(Self { region: NonNull::slice_from_raw_parts(start, bytes), request: *request })
    }
}

impl Drop for Heap {
    fn drop(&mut self) {
        if let Some(layout) = layout(self.region.len()) {
            // SAFETY: I1.
            unsafe { dealloc(self.region.as_ptr().cast(), layout) };
        }
    }
}

// SAFETY: by I1 the block is allocated and the backing's alone, wherever that stands.
unsafe impl Backing for Heap {
    const STAYS: bool = true;
    const MEMORY: Memory = Memory::Heap;
    const NUMA_BOUND: bool = false;

    #[inline(always)]
    fn region(&self) -> NonNull<[u8]> {
        self.region
    }

    fn placement(&self) -> Placement {
        // `map` refused what would be an error here.
        let fallbacks: Fallbacks = self.request.settle_without_kernel().unwrap_or_default();
        Placement::of_region(self.region, None, &self.request, fallbacks)
    }
}
