//! Magazine pool: each thread keeps two magazines of blocks; threads meet only to exchange full ones.
//! # Algorithm
//! A magazine has room for 31 blocks' numbers (a parameter). A handle has two, `loaded` and `previous`, each empty
//! or full but for the one in use. `try_get` takes a round out of `loaded`; if that is empty it goes
//! on with `previous`; if both are, it trades `previous` at the depot for a full magazine. `put` adds
//! a round, and trades a full magazine for an empty one. With two magazines a thread that gets and
//! puts at the border of one does not go to the depot each time. The depot is a stack of full
//! magazines, one of empty ones, and one of loose blocks: the rest of those that fill no magazine,
//! and what handles that were dropped had in magazines that were not full.
//! # Why
//! Against `pool_treiber` nearly all operations are loads and stores of lines that the thread has to
//! itself: 2 RMWs in 31 operations at most. It adds the magazines, and that up to 62 free blocks a
//! handle are out of others' reach.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `MagazinePool<Heap, 64>` | 640 | 128 | 10 | three pairs: threads at the depot; the rest: nobody, seats when handles are made |
//! | magazine | 128 | 128 | 2 | the handle that has it |
//! | magazines, links | 128 for 31 blocks and 384 more, 4 a block | 128 | - | as above |
//! | handle | 32 | 8 | 1 | its thread |
//! # Cost
//! Operation: 1 load (get) or 1 store (put) in the magazine, 1 line. At the depot: 2 RMWs.
//! # Progress
//! Lock-free. A preempted thread stops nobody, but keeps its magazines.
//! # Invariants
//! - I1: a magazine is at one handle, or in one stack of the depot once: with the full ones if it
//!   holds 31 blocks, with the empty ones if none.
//! - I2: a free block is in one magazine, at a place below its count, or loose, once.
//! - I3: there are 3 magazines for each handle that can be, besides those that the blocks fill; so
//!   whoever has two full ones finds an empty one at the depot.
//! # Synchronization
//! | edge | release side | acquire side | publishes |
//! |---|---|---|---|
//! | T1 | a push onto a stack of the depot | the pop that found the magazine or block | the rounds, and the blocks with all that their last owners did |
//! # Errors and limits
//! At most `HANDLES` handles at a time, up to twice as many as a word has bits; the next is `None`. A handle
//! refuses when its magazines are empty and the depot has nothing, though other handles may have up
//! to 62 free blocks each; dropping a handle gives its blocks back. Tags as in `pool_treiber`.
//! # References
//! J. Bonwick, J. Adams, "Magazines and Vmem: Extending the Slab Allocator to Many CPUs and Arbitrary
//! Resources", USENIX Annual Technical Conference, 2001, section 3. Differs from the paper in: a
//! handle instead of a CPU; magazines of one size; stacks instead of a lock at the depot.

use core::alloc::Layout;
use core::cell::Cell;
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
use super::seats::Seats;
use super::sync::atomic::{AtomicU32, Ordering};
use super::tagged_stack::TaggedStack;

const SEATS: usize = 2;

/// A magazine's link and rounds, or the links of as many loose blocks.
type Words<const WORDS: usize> = CachePadded<[AtomicU32; WORDS]>;
type Stack = TaggedStack<{ usize::BITS / 2 }>;

/// Keeps blocks of `BLOCK` bytes in magazines of `WORDS` − 1 blocks, two of them at each of at most
/// `HANDLES` handles.
///
/// ```
/// use alloc_arena::{Handle, Heap, MagazinePool, Map, Pool, Request};
/// let pool = MagazinePool::<Heap, 64>::map(64 << 10, &Request::new())?;
/// std::thread::scope(|scope| {
///     for handle in [pool.handle().unwrap(), pool.handle().unwrap()] {
///         scope.spawn(move || {
///             let block = handle.try_get().unwrap();
///             // SAFETY: got here, and not used any more.
///             unsafe { handle.put(block) };
///         });
///     }
/// });
/// # Ok::<(), alloc_arena::MapError>(())
/// ```
#[repr(C)]
pub struct MagazinePool<B, const BLOCK: usize, const WORDS: usize = 32, const HANDLES: usize = 128>
{
    full: CachePadded<Stack>,
    empty: CachePadded<Stack>,
    loose: CachePadded<Stack>,
    seats: CachePadded<Seats<SEATS>>,
    blocks: Blocks<B, Words<WORDS>, BLOCK>,
}

/// A magazine at a handle, and how many rounds it holds.
#[derive(Debug, Clone, Copy)]
struct Held {
    magazine: u32,
    rounds: u32,
}

/// A thread's access to a [`MagazinePool`]: two magazines.
pub struct MagazineHandle<
    'pool,
    B: Backing,
    const BLOCK: usize,
    const WORDS: usize = 32,
    const HANDLES: usize = 128,
> {
    pool: &'pool MagazinePool<B, BLOCK, WORDS, HANDLES>,
    seat: u32,
    loaded: Cell<Held>,
    previous: Cell<Held>,
}

impl<B: Backing, const BLOCK: usize, const WORDS: usize, const HANDLES: usize>
    MagazinePool<B, BLOCK, WORDS, HANDLES>
{
    const MOST: usize = Stack::NONE / 2;

    /// Blocks of a full magazine.
    const ROUNDS: usize = {
        assert!(WORDS >= 2, "a magazine has a link and room for a block");
        assert!(HANDLES >= 1 && HANDLES <= Seats::<SEATS>::CAPACITY, "as many handles as seats");
        WORDS - 1
    };

    /// Magazines of a pool of `count` blocks: handles have two, and one more while they trade.
    fn magazines(count: usize) -> usize {
        count / Self::ROUNDS + 3 * HANDLES
    }

    fn words(count: usize) -> usize {
        Self::magazines(count) + count.div_ceil(WORDS)
    }

    /// Makes a pool of the blocks that fit the region of `backing`.
    pub fn new(backing: B) -> Self {
        Self::of(Blocks::over(backing, Self::MOST, Self::words, Self::blank))
    }

    fn blank(_index: usize) -> Words<WORDS> {
        CachePadded::new(core::array::from_fn(|_| AtomicU32::new(0)))
    }

    fn of(blocks: Blocks<B, Words<WORDS>, BLOCK>) -> Self {
        let stack = || CachePadded::new(Stack::new(None));
        let seats = CachePadded::new(Seats::new());
        let pool = Self { full: stack(), empty: stack(), loose: stack(), seats, blocks };
        let count = pool.blocks.count();
        if count > 0 {
            pool.fill(count);
        }
        pool
    }

    /// Puts all blocks into magazines, the first ones on top, and the rest loose.
    fn fill(&self, count: usize) {
        let full = count / Self::ROUNDS;
        for magazine in (full..Self::magazines(count)).rev() {
            self.empty.push(magazine, self.link(magazine));
        }
        for magazine in (0..full).rev() {
            for round in 0..Self::ROUNDS {
                let block = magazine * Self::ROUNDS + (Self::ROUNDS - 1 - round);
                // ORDERING: Relaxed - nobody else has the pool yet.
                self.round(magazine as u32, round as u32).store(block as u32, Ordering::Relaxed);
            }
            self.full.push(magazine, self.link(magazine));
        }
        for block in (full * Self::ROUNDS..count).rev() {
            self.loose.push(block, self.loose_link(block));
        }
    }

    /// The link of a magazine.
    fn link(&self, magazine: usize) -> &AtomicU32 {
        &self.blocks.words()[magazine][0]
    }

    /// The link of a block that is loose.
    fn loose_link(&self, block: usize) -> &AtomicU32 {
        &self.blocks.words()[Self::magazines(self.blocks.count()) + block / WORDS][block % WORDS]
    }

    /// The place of a round in a magazine.
    #[inline(always)]
    fn round(&self, magazine: u32, round: u32) -> &AtomicU32 {
        debug_assert!((round as usize) < Self::ROUNDS);
        // SAFETY: magazines are the first words.
        let words = unsafe { self.blocks.word(magazine as usize) };
        // SAFETY: rounds are counted up to `Self::ROUNDS` (I2), one less than the words.
        unsafe { words.get_unchecked(1 + round as usize) }
    }

    fn push_loose(&self, block: u32) {
        self.loose.push(block as usize, self.loose_link(block as usize));
    }
}

impl<B: Backing, const BLOCK: usize, const WORDS: usize, const HANDLES: usize>
    MagazineHandle<'_, B, BLOCK, WORDS, HANDLES>
{
    const ROUNDS: usize = MagazinePool::<B, BLOCK, WORDS, HANDLES>::ROUNDS;

    /// Finds a block when `loaded` is empty.
    #[cold]
    fn reload(&self) -> Result<u32, AllocError> {
        let (pool, loaded, previous) = (self.pool, self.loaded.get(), self.previous.get());
        if previous.rounds > 0 {
            self.loaded.set(previous);
            self.previous.set(loaded);
        } else if let Some(full) = pool.full.pop(|magazine| pool.link(magazine)) {
            let spare = previous.magazine as usize;
            pool.empty.push(spare, pool.link(spare));
            self.previous.set(loaded);
            self.loaded.set(Held { magazine: full as u32, rounds: Self::ROUNDS as u32 });
        } else {
            let block = pool.loose.pop(|block| pool.loose_link(block)).ok_or(AllocError)?;
            return Ok(block as u32);
        }
        Ok(self.take(self.loaded.get()))
    }

    /// Takes a round out of `loaded`, which has some.
    #[inline(always)]
    fn take(&self, loaded: Held) -> u32 {
        let rounds = loaded.rounds - 1;
        self.loaded.set(Held { rounds, ..loaded });
        // ORDERING: Relaxed - the magazine is this handle's (I1), with T1 behind us.
        self.pool.round(loaded.magazine, rounds).load(Ordering::Relaxed)
    }

    /// Puts a round into `loaded`, which has room.
    #[inline(always)]
    fn add(&self, loaded: Held, block: u32) {
        // ORDERING: Relaxed - the magazine is this handle's (I1); T1 publishes it.
        self.pool.round(loaded.magazine, loaded.rounds).store(block, Ordering::Relaxed);
        self.loaded.set(Held { rounds: loaded.rounds + 1, ..loaded });
    }

    /// Finds room for a block when `loaded` is full.
    #[cold]
    fn unload(&self, block: u32) {
        let (pool, loaded, previous) = (self.pool, self.loaded.get(), self.previous.get());
        if (previous.rounds as usize) < Self::ROUNDS {
            self.loaded.set(previous);
            self.previous.set(loaded);
        } else if let Some(empty) = pool.empty.pop(|magazine| pool.link(magazine)) {
            let spare = previous.magazine as usize;
            pool.full.push(spare, pool.link(spare));
            self.previous.set(loaded);
            self.loaded.set(Held { magazine: empty as u32, rounds: 0 });
        } else {
            // By I3 this does not happen; it would do no harm.
            return pool.push_loose(block);
        }
        self.add(self.loaded.get(), block);
    }
}

impl<B: Backing, const BLOCK: usize, const WORDS: usize, const HANDLES: usize> Handle
    for MagazineHandle<'_, B, BLOCK, WORDS, HANDLES>
{
    const BLOCK: Layout = Blocks::<B, Words<WORDS>, BLOCK>::LAYOUT;

    #[inline]
    fn try_get(&self) -> Result<NonNull<u8>, AllocError> {
        let loaded = self.loaded.get();
        let block = if loaded.rounds == 0 { self.reload()? } else { self.take(loaded) };
        // SAFETY: by I2 the number of a block.
        Ok(unsafe { self.pool.blocks.block(block) })
    }

    #[inline]
    unsafe fn put(&self, block: NonNull<u8>) {
        let (block, loaded) = (self.pool.blocks.index(block), self.loaded.get());
        if loaded.rounds as usize == Self::ROUNDS {
            self.unload(block);
        } else {
            self.add(loaded, block);
        }
    }
}

impl<B: Backing, const BLOCK: usize, const WORDS: usize, const HANDLES: usize> Drop
    for MagazineHandle<'_, B, BLOCK, WORDS, HANDLES>
{
    /// Gives the magazines back: a full one as it is, otherwise its blocks one by one.
    fn drop(&mut self) {
        let pool = self.pool;
        for held in [self.loaded.get(), self.previous.get()] {
            let magazine = held.magazine as usize;
            if held.rounds as usize == Self::ROUNDS {
                pool.full.push(magazine, pool.link(magazine));
                continue;
            }
            for round in 0..held.rounds {
                // ORDERING: Relaxed - as in `take`.
                pool.push_loose(pool.round(held.magazine, round).load(Ordering::Relaxed));
            }
            pool.empty.push(magazine, pool.link(magazine));
        }
        pool.seats.release(self.seat as usize);
    }
}

// SAFETY: a get has the block alone by I1 and I2, with its last owner's writes by T1 or because the
// same handle had it; `Blocks` keeps blocks apart, aligned and in place.
unsafe impl<B: Backing + Send + Sync, const BLOCK: usize, const WORDS: usize, const HANDLES: usize>
    Pool for MagazinePool<B, BLOCK, WORDS, HANDLES>
{
    const PROPERTIES: Properties = Properties {
        memory: B::MEMORY,
        numa_bound: B::NUMA_BOUND,
        frees: Frees::Individually,
        thread_safe: true,
        runs_drop: false,
        most_bytes: B::MOST_BYTES,
    };
    const BLOCK: Layout = Blocks::<B, Words<WORDS>, BLOCK>::LAYOUT;
    type Handle<'pool>
        = MagazineHandle<'pool, B, BLOCK, WORDS, HANDLES>
    where
        Self: 'pool;

    fn handle(&self) -> Option<Self::Handle<'_>> {
        if self.blocks.count() == 0 {
            return None;
        }
        let seat = self.seats.claim(HANDLES)?;
        // By I3 there are two.
        let empty =
            || self.empty.pop(|magazine| self.link(magazine)).map(|magazine| magazine as u32);
        let held = |magazine| Cell::new(Held { magazine, rounds: 0 });
        let (loaded, previous) = (held(empty()?), held(empty()?));
        Some(MagazineHandle { pool: self, seat: seat as u32, loaded, previous })
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

impl<B: Backing + Map, const BLOCK: usize, const WORDS: usize, const HANDLES: usize> Map
    for MagazinePool<B, BLOCK, WORDS, HANDLES>
{
    fn map(bytes: usize, request: &Request) -> Result<Self, MapError> {
        Blocks::map(bytes, request, Self::MOST, Self::words, Self::blank).map(Self::of)
    }
}

impl<B: Backing, const BLOCK: usize, const WORDS: usize, const HANDLES: usize> HotFields
    for MagazinePool<B, BLOCK, WORDS, HANDLES>
{
    const ALIGNMENT: usize = align_of::<CachePadded<u8>>();
    const ALONE: bool = true;

    fn hot_fields(&self, visit: &mut dyn FnMut(HotField)) {
        let Self { full, empty, loose, seats, blocks } = self;
        let threads = Role::Many("threads");
        for (name, stack) in [("full", full), ("empty", empty), ("loose", loose)] {
            visit(HotField::of(name, &**stack).written_by(threads).padded_in(stack));
        }
        visit(HotField::of("seats", &**seats).padded_in(seats));
        visit(HotField::of("magazines", blocks.words()).written_by(threads));
        blocks.describe(threads, visit);
        visit(HotField::rest(self, blocks));
    }
}

impl<B, const BLOCK: usize, const WORDS: usize, const HANDLES: usize> fmt::Debug
    for MagazinePool<B, BLOCK, WORDS, HANDLES>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MagazinePool").finish_non_exhaustive()
    }
}

impl<B: Backing, const BLOCK: usize, const WORDS: usize, const HANDLES: usize> fmt::Debug
    for MagazineHandle<'_, B, BLOCK, WORDS, HANDLES>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MagazineHandle").finish_non_exhaustive()
    }
}
