//! Free-list pool: blocks of one owner, the last one put is the next one got.
//! # Algorithm
//! A free block holds the number of the next free one; the owner's handle keeps the first one's in
//! `free`, and in `fresh` how many blocks were ever got. `try_get` takes the first free block, or
//! else the next fresh one; `put` writes `free` into the block and makes it the first. The pool
//! itself holds both numbers only while there is no handle.
//! # Why
//! What a pool costs at least: no RMW, and no word about a block beside the block. Against `Bump`
//! blocks come back one by one; it adds a load and a store in the block, which its owner has in the
//! cache or is going to fetch in any case. The other pools serve many threads.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `FreeListPool<Heap, 64>` | 80 | 8 | 2 | owner, when its handle is made and dropped |
//! | handle | 16 | 8 | 1 | owner |
//! # Cost
//! Get: 2 loads, 1 store, 1 line besides the block's. Put: 1 load, 2 stores.
//! # Progress
//! Wait-free. One handle at a time; it may go to another thread.
//! # Invariants
//! - I1: the list from `free` on holds each block below `fresh` that is free, once; their first
//!   four bytes are the next one's number. Blocks from `fresh` on are free.
//! - I2: one handle at a time, with what the one before it left.
//! # Synchronization
//! S1 of the seat, from a handle that is dropped to the next one.
//! # Errors and limits
//! A pool without free blocks refuses; a second handle is `None`. Nothing is written to a block
//! before it is got, so pages are touched when they are needed.
//! # References
//! D. E. Knuth, "The Art of Computer Programming", volume 1, section 2.2.3, AVAIL. Differs from the
//! text in: a part that was never used follows the list.

use core::alloc::Layout;
use core::cell::Cell;
use core::fmt;
use core::ptr::NonNull;

use super::backing::Backing;
use super::blocks::{Blocks, MOST};
use super::contract::{AllocError, Frees, Map, Properties};
use super::hot::{HotField, HotFields, Role};
use super::map_error::MapError;
use super::placement::Placement;
use super::pool::{Handle, Pool};
use super::request::Request;
use super::seats::Seats;
use super::sync::atomic::{AtomicU32, Ordering};

/// The number of no block.
const NONE: u32 = u32::MAX;

/// Keeps blocks of `BLOCK` bytes for one owner at a time.
///
/// ```
/// use alloc_arena::{FreeListPool, Handle, Pool, Slice};
/// let mut memory = [core::mem::MaybeUninit::uninit(); 1024];
/// let pool = FreeListPool::<_, 64>::new(Slice::new(&mut memory));
/// let owner = pool.handle().unwrap();
/// assert!(pool.handle().is_none(), "one owner at a time");
/// let first = owner.try_get().unwrap();
/// // SAFETY: got here, and not used any more.
/// unsafe { owner.put(first) };
/// assert_eq!(owner.try_get(), Ok(first), "the last one put");
/// ```
pub struct FreeListPool<B, const BLOCK: usize> {
    seat: Seats<1>,
    free: AtomicU32,
    fresh: AtomicU32,
    blocks: Blocks<B, (), BLOCK>,
}

/// The owner's access to a [`FreeListPool`]: the list.
pub struct FreeListHandle<'pool, B, const BLOCK: usize> {
    pool: &'pool FreeListPool<B, BLOCK>,
    free: Cell<u32>,
    fresh: Cell<u32>,
}

impl<B: Backing, const BLOCK: usize> FreeListPool<B, BLOCK> {
    /// Makes a pool of the blocks that fit the region of `backing`.
    pub fn new(backing: B) -> Self {
        Self::of(Blocks::over(backing, MOST, |_| 0, |_| ()))
    }

    fn of(blocks: Blocks<B, (), BLOCK>) -> Self {
        let (free, fresh) = (AtomicU32::new(NONE), AtomicU32::new(0));
        Self { seat: Seats::new(), free, fresh, blocks }
    }
}

impl<B: Backing, const BLOCK: usize> Handle for FreeListHandle<'_, B, BLOCK> {
    const BLOCK: Layout = Blocks::<B, (), BLOCK>::LAYOUT;

    #[inline]
    fn try_get(&self) -> Result<NonNull<u8>, AllocError> {
        let blocks = &self.pool.blocks;
        let index = self.free.get();
        if index == NONE {
            let fresh = self.fresh.get();
            if fresh as usize == blocks.count() {
                return Err(AllocError);
            }
            self.fresh.set(fresh + 1);
            // SAFETY: below the number of blocks.
            return Ok(unsafe { blocks.block(fresh) });
        }
        // SAFETY: by I1 the number of a block.
        let block = unsafe { blocks.block(index) };
        // SAFETY: by I1 it is free and holds a number.
        self.free.set(unsafe { block.cast::<u32>().read() });
        Ok(block)
    }

    #[inline]
    unsafe fn put(&self, block: NonNull<u8>) {
        // SAFETY: the caller's: at least four bytes, aligned to as many by `layout`.
        unsafe { block.cast::<u32>().write(self.free.get()) };
        self.free.set(self.pool.blocks.index(block));
    }
}

impl<B, const BLOCK: usize> Drop for FreeListHandle<'_, B, BLOCK> {
    fn drop(&mut self) {
        // ORDERING: Relaxed - S1 publishes both.
        self.pool.free.store(self.free.get(), Ordering::Relaxed);
        self.pool.fresh.store(self.fresh.get(), Ordering::Relaxed);
        self.pool.seat.release(0);
    }
}

// SAFETY: a get has the block alone by I1 and I2; `Blocks` keeps blocks apart, aligned and in place.
unsafe impl<B: Backing + Send + Sync, const BLOCK: usize> Pool for FreeListPool<B, BLOCK> {
    const PROPERTIES: Properties = Properties {
        memory: B::MEMORY,
        numa_bound: B::NUMA_BOUND,
        frees: Frees::Individually,
        thread_safe: false,
        runs_drop: false,
        most_bytes: B::MOST_BYTES,
    };
    const BLOCK: Layout = Blocks::<B, (), BLOCK>::LAYOUT;
    type Handle<'pool>
        = FreeListHandle<'pool, B, BLOCK>
    where
        Self: 'pool;

    fn handle(&self) -> Option<Self::Handle<'_>> {
        // ORDERING: Relaxed - with S1 behind us, what the last handle left (I2).
        self.seat.claim_seat(0).then(|| FreeListHandle {
            pool: self,
            free: Cell::new(self.free.load(Ordering::Relaxed)),
            fresh: Cell::new(self.fresh.load(Ordering::Relaxed)),
        })
    }

    fn capacity(&self) -> usize {
        self.blocks.count()
    }

    fn number_of(&self, block: NonNull<u8>) -> Option<usize> {
        self.blocks.number_of(block)
    }

    fn placement(&self) -> Placement {
        self.blocks.placement()
    }
}

impl<B: Backing + Map, const BLOCK: usize> Map for FreeListPool<B, BLOCK> {
    fn map(bytes: usize, request: &Request) -> Result<Self, MapError> {
        Blocks::map(bytes, request, MOST, |_| 0, |_| ()).map(Self::of)
    }
}

impl<B: Backing, const BLOCK: usize> HotFields for FreeListPool<B, BLOCK> {
    const ALIGNMENT: usize = align_of::<Self>();
    const ALONE: bool = false;

    fn hot_fields(&self, visit: &mut dyn FnMut(HotField)) {
        let Self { seat, free, fresh, blocks } = self;
        visit(HotField::of("seat", seat));
        visit(HotField::of("free", free));
        visit(HotField::of("fresh", fresh));
        blocks.describe(Role::One("owner"), visit);
    }
}

impl<B, const BLOCK: usize> fmt::Debug for FreeListPool<B, BLOCK> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FreeListPool").finish_non_exhaustive()
    }
}

impl<B, const BLOCK: usize> fmt::Debug for FreeListHandle<'_, B, BLOCK> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FreeListHandle").finish_non_exhaustive()
    }
}
