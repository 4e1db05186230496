//! Treiber's pool: free blocks on one stack, a CAS an operation, a tag against recycled tops.
//! # Algorithm
//! Free blocks are numbers on a stack whose `head` is one word: the top's number, and a tag that
//! grows with each pop. `try_get` pops: it reads `head`, then the link of the top, and swings `head`
//! to that by a CAS, which fails if the top was popped meanwhile, even if it was pushed again: the
//! tag has grown. `put` writes the link and swings `head` back. Links stand in a table beside the
//! blocks, because a popper may read one late, when its block has an owner.
//! # Why
//! Against `pool_mutex` no thread waits for one that was stopped, and an operation is one RMW. It
//! adds the table; all threads fight for `head`, and failed CASes grow with their number.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `TreiberPool<Heap, 64>` | 256 | 128 | 4 | first pair: all threads; second: nobody |
//! | link | 4 a block | 4 | - | whoever puts the block |
//! # Cost
//! Uncontended operation: 1 RMW, 2 loads (get) or 1 load and 1 store (put), 2 lines.
//! # Progress
//! Lock-free. A preempted thread stops nobody; a thread may starve.
//! # Invariants
//! - I1: a block is in the stack exactly while it is free, once; its getter alone may put it.
//! # Synchronization
//! | edge | release side | acquire side | publishes |
//! |---|---|---|---|
//! | T1 | `put`, the CAS of the stack | `try_get`, the load or CAS that found the block | the block, with all that its last owner did |
//! # Errors and limits
//! A pool without free blocks refuses. Tags wrap after 2^`TAG_BITS` gets: a thread would be wrong
//! that stops between its load and its CAS while others make exactly a multiple of as many gets and
//! leave the same top. With the usual half of a word that are 2³², on 32 bits 2¹⁶. The rest of the
//! word numbers the blocks: 2³² − 2 of them, on 32 bits 2¹⁶ − 1.
//! # References
//! R. K. Treiber, "Systems Programming: Coping with Parallelism", IBM RJ 5118, 1986. Differs from
//! the report in: numbers with tags instead of a double-width CAS; links apart from the blocks.

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
use super::request::Request;
use super::sync::atomic::AtomicU32;
use super::tagged_stack::TaggedStack;

/// Half of a word.
const HALF: u32 = usize::BITS / 2;

/// Keeps blocks of `BLOCK` bytes on a stack with tags of `TAG_BITS` bits.
///
/// ```
/// use alloc_arena::{Handle, Pool, Slice, TreiberPool};
/// let mut memory = [core::mem::MaybeUninit::uninit(); 1024];
/// let pool = TreiberPool::<_, 64>::new(Slice::new(&mut memory));
/// std::thread::scope(|scope| {
///     for handle in [pool.handle().unwrap(), pool.handle().unwrap()] {
///         scope.spawn(move || {
///             let block = handle.try_get().unwrap();
///             // SAFETY: got here, 64 bytes long, aligned to as many.
///             unsafe { block.cast::<u64>().write(7) };
///             // SAFETY: got here, and not used any more.
///             unsafe { handle.put(block) };
///         });
///     }
/// });
/// ```
#[repr(C)]
pub struct TreiberPool<B, const BLOCK: usize, const TAG_BITS: u32 = HALF> {
    free: CachePadded<TaggedStack<TAG_BITS>>,
    blocks: Blocks<B, AtomicU32, BLOCK>,
}

/// A thread's access to a [`TreiberPool`]; keeps nothing.
#[derive(Debug)]
pub struct TreiberHandle<'pool, B, const BLOCK: usize, const TAG_BITS: u32 = HALF>(
    &'pool TreiberPool<B, BLOCK, TAG_BITS>,
);

impl<B: Backing, const BLOCK: usize, const TAG_BITS: u32> TreiberPool<B, BLOCK, TAG_BITS> {
    const MOST: usize = TaggedStack::<TAG_BITS>::NONE;

    /// Makes a pool of the blocks that fit the region of `backing`.
    pub fn new(backing: B) -> Self {
        Self::of(Blocks::over(backing, Self::MOST, |count| count, Self::link))
    }

    /// The link of a block that was never got: the next one.
    fn link(index: usize) -> AtomicU32 {
        AtomicU32::new(index as u32 + 1)
    }

    fn of(blocks: Blocks<B, AtomicU32, BLOCK>) -> Self {
        if let Some(last) = blocks.words().last() {
            // ORDERING: Relaxed - nobody else has the pool yet.
            last.store(Self::MOST as u32, super::sync::atomic::Ordering::Relaxed);
        }
        let top = (blocks.count() > 0).then_some(0);
        Self { free: CachePadded::new(TaggedStack::new(top)), blocks }
    }
}

impl<B: Backing, const BLOCK: usize, const TAG_BITS: u32> Handle
    for TreiberHandle<'_, B, BLOCK, TAG_BITS>
{
    const BLOCK: Layout = Blocks::<B, AtomicU32, BLOCK>::LAYOUT;

    #[inline]
    fn try_get(&self) -> Result<NonNull<u8>, AllocError> {
        let TreiberPool { free, blocks } = self.0;
        // SAFETY: by I1 numbers in the stack are those of blocks.
        let index = free.pop(|index| unsafe { blocks.word(index) }).ok_or(AllocError)?;
        // SAFETY: as above.
        Ok(unsafe { blocks.block(index as u32) })
    }

    #[inline]
    unsafe fn put(&self, block: NonNull<u8>) {
        let TreiberPool { free, blocks } = self.0;
        let index = blocks.index(block) as usize;
        // SAFETY: the number of a block, by the caller's duty; I1 holds by the same.
        free.push(index, unsafe { blocks.word(index) });
    }
}

// SAFETY: a get has the block alone by I1, with its last owner's writes by T1; `Blocks` keeps blocks
// apart, aligned and in place.
unsafe impl<B: Backing + Send + Sync, const BLOCK: usize, const TAG_BITS: u32> Pool
    for TreiberPool<B, BLOCK, TAG_BITS>
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
        = TreiberHandle<'pool, B, BLOCK, TAG_BITS>
    where
        Self: 'pool;

    fn handle(&self) -> Option<Self::Handle<'_>> {
        Some(TreiberHandle(self))
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

impl<B: Backing + Map, const BLOCK: usize, const TAG_BITS: u32> Map
    for TreiberPool<B, BLOCK, TAG_BITS>
{
    fn map(bytes: usize, request: &Request) -> Result<Self, MapError> {
        Blocks::map(bytes, request, Self::MOST, |count| count, Self::link).map(Self::of)
    }
}

impl<B: Backing, const BLOCK: usize, const TAG_BITS: u32> HotFields
    for TreiberPool<B, BLOCK, TAG_BITS>
{
    const ALIGNMENT: usize = align_of::<CachePadded<u8>>();
    const ALONE: bool = true;

    fn hot_fields(&self, visit: &mut dyn FnMut(HotField)) {
        let Self { free, blocks } = self;
        let threads = Role::Many("threads");
        visit(HotField::of("free", &**free).written_by(threads).padded_in(free));
        for (i, word) in blocks.words().iter().enumerate() {
            let word = HotField::of("link", word).nth(i).written_by(threads);
            visit(word.side_by_side(
                "links",
                "a link is written by who gives its block back, and read by who takes it",
            ));
        }
        blocks.describe(threads, visit);
        visit(HotField::rest(self, blocks));
    }
}

impl<B, const BLOCK: usize, const TAG_BITS: u32> fmt::Debug for TreiberPool<B, BLOCK, TAG_BITS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TreiberPool").finish_non_exhaustive()
    }
}
