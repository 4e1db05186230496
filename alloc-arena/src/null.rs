//! Null arena: the same block again and again, the baseline of every measurement.
//! # Algorithm
//! `try_alloc_layout` returns the address of one block inside the arena, if the layout fits it.
//! # Why
//! What a row costs beyond this one is the allocation; what this row costs is the loop around it
//! and the writing to the block, always of the same lines.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `NullArena` | 4160 | 64 | 65 | whoever allocated |
//! # Cost
//! An address computation after inlining, for a constant layout.
//! # Progress
//! Wait-free.
//! # Invariants
//! none
//! # Synchronization
//! none
//! # Errors and limits
//! **Not an arena:** blocks overlap. At most 4096 bytes a block, aligned to at most 64; never
//! full. [`Map`] accepts any size but zero and gives the same 4096 bytes. It has no typed, safe
//! functions; only drivers that forget a block before they ask for the next may use it.
//! # References
//! none

use core::alloc::Layout;
use core::ptr::NonNull;

use super::backing::Backing;
use super::contract::{AllocError, Arena, Frees, Map, Memory, Properties};
use super::hot::{HotField, HotFields};
use super::inline::Inline;
use super::map_error::MapError;
use super::placement::Placement;
use super::request::Request;

const BLOCK_BYTES: usize = 4096;

/// Hands the same block to everyone; measures the loop without an arena.
///
/// ```
/// use core::alloc::Layout;
/// use alloc_arena::{Arena, NullArena};
/// let arena = NullArena::default();
/// let first = arena.try_alloc_layout(Layout::new::<u64>())?;
/// assert_eq!(first, arena.try_alloc_layout(Layout::new::<u64>())?, "blocks overlap");
/// # Ok::<(), alloc_arena::AllocError>(())
/// ```
#[derive(Debug, Default)]
pub struct NullArena {
    block: Inline<BLOCK_BYTES>,
}

impl Map for NullArena {
    fn map(bytes: usize, request: &Request) -> Result<Self, MapError> {
        Ok(Self { block: Inline::map(bytes.min(BLOCK_BYTES), request)? })
    }
}

impl HotFields for NullArena {
    const ALIGNMENT: usize = 64;
    const ALONE: bool = false;

    fn hot_fields(&self, visit: &mut dyn FnMut(HotField)) {
        let Self { block } = self;
        visit(HotField::of("block", block));
    }
}

// SAFETY: it breaks the promise that blocks do not overlap, on purpose, and is labelled `baseline`
// in the table; there is no safe face over `Arena`, and the drivers use one block at a time.
unsafe impl Arena for NullArena {
    const PROPERTIES: Properties = Properties {
        memory: Memory::Inside,
        numa_bound: false,
        frees: Frees::Nothing,
        thread_safe: false,
        runs_drop: false,
        most_bytes: None,
    };

    #[inline]
    fn try_alloc_layout(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        if layout.size() > BLOCK_BYTES || layout.align() > align_of::<Self>() {
            return Err(AllocError);
        }
        Ok(NonNull::slice_from_raw_parts(self.block.start(), layout.size()))
    }

    fn reset(&mut self) {}

    fn capacity(&self) -> usize {
        BLOCK_BYTES
    }

    fn used(&self) -> usize {
        0
    }

    fn placement(&self) -> Placement {
        self.block.placement()
    }
}
