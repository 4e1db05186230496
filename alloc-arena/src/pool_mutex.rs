//! Mutex pool: a free list behind a test-and-set lock, the baseline of the shared pools.
//! # Algorithm
//! `locked` is one flag. An operation swaps `true` into it, relaxing while it was `true`; takes the
//! first free block off the list, or puts one there; and stores `false`. `free` is the first free
//! block's number; the next ones are in a table of links.
//! # Why
//! The simplest pool that threads can share, so what the others are measured against. Against
//! `pool_free_list` it adds the lock, and a line that all threads write.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `MutexPool<Heap, 64>` | 256 | 128 | 4 | first pair: all threads; second: nobody |
//! | link | 4 a block | 4 | - | whoever puts the block |
//! # Cost
//! Uncontended operation: 1 RMW, 2 stores (get) or 3 (put), 2 lines. With n threads that want it: the
//! hand-off of a test-and-set lock.
//! # Progress
//! Blocking: a thread that stops inside stops all others. Unfair.
//! # Invariants
//! - I1: `locked` is `true` exactly while one thread is between its swap that returned `false` and
//!   its store of `false`; that thread alone uses `free` and the links.
//! - I2: the list holds each free block once.
//! # Synchronization
//! | edge | release side | acquire side | publishes |
//! |---|---|---|---|
//! | E1 | the store of `false` | the swap that returned `false` | the list, and the blocks in it with all that their last owners did |
//! # Errors and limits
//! A pool without free blocks refuses.
//! # References
//! none

use core::alloc::Layout;
use core::fmt;
use core::ptr::NonNull;

use crossbeam_utils::CachePadded;

use super::backing::Backing;
use super::blocks::Blocks;
use super::contract::{AllocError, Frees, Map, Properties};
use super::hot::{HotField, HotFields, Role};
use super::map_error::MapError;
use super::placement::Placement;
use super::pool::{Handle, Pool};
use super::relax::{Relax, Spin};
use super::request::Request;
use super::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// The number of no block.
const NONE: u32 = u32::MAX;

/// The lock and the first free block, which go from thread to thread together.
#[repr(C)]
struct List {
    free: AtomicU32,
    locked: AtomicBool,
}

/// Keeps blocks of `BLOCK` bytes in a list that one thread at a time has; others relax by `R`.
///
/// ```
/// use alloc_arena::{Handle, MutexPool, Pool, Slice};
/// let mut memory = [core::mem::MaybeUninit::uninit(); 1024];
/// let pool = MutexPool::<_, 64>::new(Slice::new(&mut memory));
/// let handle = pool.handle().unwrap();
/// let block = handle.try_get().unwrap();
/// assert_eq!(block.addr().get() % 64, 0);
/// // SAFETY: got here, and not used any more.
/// unsafe { handle.put(block) };
/// ```
#[repr(C)]
pub struct MutexPool<B, const BLOCK: usize, R = Spin> {
    list: CachePadded<List>,
    blocks: Blocks<B, AtomicU32, BLOCK>,
    relax: core::marker::PhantomData<fn() -> R>,
}

/// A thread's access to a [`MutexPool`]; keeps nothing.
#[derive(Debug)]
pub struct MutexHandle<'pool, B, const BLOCK: usize, R = Spin>(&'pool MutexPool<B, BLOCK, R>);

impl<B: Backing, const BLOCK: usize, R: Relax> MutexPool<B, BLOCK, R> {
    /// Makes a pool of the blocks that fit the region of `backing`.
    pub fn new(backing: B) -> Self {
        Self::of(Blocks::over(backing, usize::MAX, |count| count, Self::link))
    }

    /// The link of a block that was never got: the next one.
    fn link(index: usize) -> AtomicU32 {
        AtomicU32::new(index as u32 + 1)
    }

    fn of(blocks: Blocks<B, AtomicU32, BLOCK>) -> Self {
        if let Some(last) = blocks.words().last() {
            // ORDERING: Relaxed - nobody else has the pool yet.
            last.store(NONE, Ordering::Relaxed);
        }
        let free = AtomicU32::new(if blocks.count() > 0 { 0 } else { NONE });
        let list = CachePadded::new(List { free, locked: AtomicBool::new(false) });
        Self { list, blocks, relax: core::marker::PhantomData }
    }

    #[inline]
    fn lock(&self) {
        // ORDERING: Acquire, E1 - the list is what the last holder left.
        if self.list.locked.swap(true, Ordering::Acquire) {
            self.lock_contended();
        }
    }

    #[cold]
    fn lock_contended(&self) {
        let mut relax = R::new();
        loop {
            relax.relax();
            // ORDERING: Relaxed - a look, so that waiting takes the line from nobody. Acquire, E1 -
            // as in `lock`.
            if !self.list.locked.load(Ordering::Relaxed)
                && !self.list.locked.swap(true, Ordering::Acquire)
            {
                return;
            }
        }
    }

    #[inline]
    fn unlock(&self) {
        // ORDERING: Release, E1 - hands the list and its blocks to the next holder.
        self.list.locked.store(false, Ordering::Release);
    }
}

impl<B: Backing, const BLOCK: usize, R: Relax> Handle for MutexHandle<'_, B, BLOCK, R> {
    const BLOCK: Layout = Blocks::<B, AtomicU32, BLOCK>::LAYOUT;

    #[inline]
    fn try_get(&self) -> Result<NonNull<u8>, AllocError> {
        let MutexPool { list, blocks, .. } = self.0;
        self.0.lock();
        // ORDERING: Relaxed - with the lock held (I1).
        let index = list.free.load(Ordering::Relaxed);
        if index == NONE {
            self.0.unlock();
            return Err(AllocError);
        }
        // SAFETY: by I2 the number of a block.
        let next = unsafe { blocks.word(index as usize) };
        // ORDERING: Relaxed - with the lock held (I1).
        list.free.store(next.load(Ordering::Relaxed), Ordering::Relaxed);
        self.0.unlock();
        // SAFETY: as above.
        Ok(unsafe { blocks.block(index) })
    }

    #[inline]
    unsafe fn put(&self, block: NonNull<u8>) {
        let MutexPool { list, blocks, .. } = self.0;
        let index = blocks.index(block);
        // SAFETY: the number of a block, by the caller's duty.
        let link = unsafe { blocks.word(index as usize) };
        self.0.lock();
        // ORDERING: Relaxed - with the lock held (I1).
        link.store(list.free.load(Ordering::Relaxed), Ordering::Relaxed);
        list.free.store(index, Ordering::Relaxed);
        self.0.unlock();
    }
}

// SAFETY: a get has the block alone by I1 and I2, with its last owner's writes by E1; `Blocks` keeps
// blocks apart, aligned and in place.
unsafe impl<B: Backing + Send + Sync, const BLOCK: usize, R: Relax> Pool
    for MutexPool<B, BLOCK, R>
{
    const PROPERTIES: Properties = Properties {
        memory: B::MEMORY,
        numa_bound: B::NUMA_BOUND,
        frees: Frees::Individually,
        thread_safe: true,
        runs_drop: false,
        most_bytes: B::MOST_BYTES,
    };
    const BLOCK: Layout = Blocks::<B, AtomicU32, BLOCK>::LAYOUT;
    type Handle<'pool>
        = MutexHandle<'pool, B, BLOCK, R>
    where
        Self: 'pool;

    fn handle(&self) -> Option<Self::Handle<'_>> {
        Some(MutexHandle(self))
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

impl<B: Backing + Map, const BLOCK: usize, R: Relax> Map for MutexPool<B, BLOCK, R> {
    fn map(bytes: usize, request: &Request) -> Result<Self, MapError> {
        Blocks::map(bytes, request, usize::MAX, |count| count, Self::link).map(Self::of)
    }
}

impl<B: Backing, const BLOCK: usize, R> HotFields for MutexPool<B, BLOCK, R> {
    const ALIGNMENT: usize = align_of::<CachePadded<u8>>();
    const ALONE: bool = true;

    fn hot_fields(&self, visit: &mut dyn FnMut(HotField)) {
        const BECAUSE: &str = "who takes the lock takes the list";
        let Self { list, blocks, relax: _ } = self;
        let List { free, locked } = &**list;
        let threads = Role::Many("threads");
        visit(HotField::of("free", free).written_by(threads).one_line("list", BECAUSE));
        let locked_field = HotField::of("locked", locked).written_by(threads);
        visit(locked_field.one_line("list", BECAUSE));
        visit(HotField::between(locked, blocks));
        for (i, word) in blocks.words().iter().enumerate() {
            let word = HotField::of("link", word).nth(i).written_by(threads);
            visit(word.side_by_side("links", "who takes the lock takes the list"));
        }
        blocks.describe(threads, visit);
        visit(HotField::rest(self, blocks));
    }
}

impl<B, const BLOCK: usize, R> fmt::Debug for MutexPool<B, BLOCK, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MutexPool").finish_non_exhaustive()
    }
}
