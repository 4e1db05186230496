//! Null pool: the same block again and again, the baseline of the pools.
//! # Algorithm
//! `try_get` returns the address of one block inside the pool; `put` does nothing.
//! # Why
//! What a row costs beyond this one is the pool.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `NullPool` | 128 | 64 | 2 | whoever got the block |
//! # Cost
//! An address computation.
//! # Progress
//! Wait-free.
//! # Invariants
//! none
//! # Synchronization
//! none
//! # Errors and limits
//! **Not a pool:** blocks overlap. 64 bytes a block; never empty. [`Map`] accepts any size but zero.
//! Only drivers that put a block before they get the next, one thread each, may use it.
//! # References
//! none

use core::alloc::Layout;
use core::ptr::NonNull;

use super::backing::Backing;
use super::contract::{AllocError, Frees, Map, Memory, Properties};
use super::hot::{HotField, HotFields};
use super::inline::Inline;
use super::map_error::MapError;
use super::placement::Placement;
use super::pool::{Handle, Pool};
use super::request::Request;

const BLOCK_BYTES: usize = 64;

/// Gives the same block to everyone; measures the loop without a pool.
///
/// ```
/// use alloc_arena::{Handle, NullPool, Pool};
/// let pool = NullPool::default();
/// let handle = pool.handle().unwrap();
/// assert_eq!(handle.try_get(), handle.try_get(), "blocks overlap");
/// ```
#[derive(Debug, Default)]
pub struct NullPool {
    block: Inline<BLOCK_BYTES>,
}

// SAFETY: a shared reference gives the block's address, no more.
unsafe impl Sync for NullPool {}

/// A thread's access to a [`NullPool`]; keeps nothing.
#[derive(Debug)]
pub struct NullHandle<'pool>(&'pool NullPool);

impl Map for NullPool {
    fn map(bytes: usize, request: &Request) -> Result<Self, MapError> {
        Ok(Self { block: Inline::map(bytes.min(BLOCK_BYTES), request)? })
    }
}

impl HotFields for NullPool {
    const ALIGNMENT: usize = 64;
    const ALONE: bool = false;

    fn hot_fields(&self, visit: &mut dyn FnMut(HotField)) {
        let Self { block } = self;
        visit(HotField::of("block", block));
    }
}

impl Handle for NullHandle<'_> {
    const BLOCK: Layout = super::blocks::layout::<BLOCK_BYTES>();

    #[inline]
    fn try_get(&self) -> Result<NonNull<u8>, AllocError> {
        Ok(self.0.block.start())
    }

    #[inline]
    unsafe fn put(&self, _block: NonNull<u8>) {}
}

// SAFETY: it breaks the promise that blocks do not overlap, on purpose, and is labelled `baseline`
// in the table; the drivers use one block at a time.
unsafe impl Pool for NullPool {
    const PROPERTIES: Properties = Properties {
        memory: Memory::Inside,
        numa_bound: false,
        frees: Frees::Nothing,
        thread_safe: false,
        runs_drop: false,
        most_bytes: None,
    };
    const BLOCK: Layout = super::blocks::layout::<BLOCK_BYTES>();
    type Handle<'pool> = NullHandle<'pool>;

    fn handle(&self) -> Option<NullHandle<'_>> {
        Some(NullHandle(self))
    }

    fn capacity(&self) -> usize {
        1
    }

    fn number_of(&self, block: NonNull<u8>) -> Option<usize> {
        (block == self.block.start()).then_some(0)
    }

    fn placement(&self) -> Placement {
        self.block.placement()
    }
}
