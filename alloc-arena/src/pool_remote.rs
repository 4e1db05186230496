//! Pool with remote frees: blocks have owners, who get and put without an RMW; others push what they
//! put onto the owner's list.
//! # Algorithm
//! Each of `OWNERS` seats owns as many blocks, a power of two, so a block's number tells its owner. A
//! handle takes a seat. A free block holds the number of the next one. `try_get` takes the first
//! block of the handle's own list `free`, else one that was never got, else it takes over all that
//! `remote` holds by one swap, as its own list. `put` of a block of the handle's own goes to `free`;
//! of another owner's it is pushed onto that one's `remote` by a CAS. Nobody pops a single block from
//! `remote`, so no tag is needed, and links may lie in the blocks.
//! # Why
//! For blocks that are mostly freed by who got them, and for producers whose blocks are freed by
//! consumers: against `pool_treiber` the first cost no RMW, the second one, on a line that only those
//! of one owner meet. Against `pool_magazine` blocks go back to where they came from, so memory stays
//! on its owner's node; but an owner cannot use what others have left.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `RemotePool<Heap, 64, 128>` | 33024 | 128 | 516 | `remote` pair of each owner: those who free its blocks; the rest: handles when they are made and dropped |
//! | handle | 24 | 8 | 1 | its thread |
//! # Cost
//! Get: 2 loads, 1 store. Put of one's own: 1 load, 2 stores. Put of another's: 1 RMW, 1 load, 1
//! store; taking over: 1 load, 1 RMW, for all that came since.
//! # Progress
//! Get wait-free where the CPU has an atomic swap; put of another's lock-free. A preempted thread
//! stops nobody.
//! # Invariants
//! - I1: a free block is in its owner's list `free`, or in its `remote`, once, or was never got;
//!   links in both lists are numbers of blocks of that owner.
//! - I2: one handle at a time has a seat, with the list that the one before it left.
//! # Synchronization
//! | edge | release side | acquire side | publishes |
//! |---|---|---|---|
//! | R1 | the CAS of `remote` in `put` | the swap of `remote` in `try_get`, through the CASes between | the block's link, and all that its last user did |
//! | S1 | the seat's release | the seat's claim | the list |
//! # Errors and limits
//! A handle refuses when its own seat has nothing left, whatever others have. At most `OWNERS`
//! handles, a power of two up to 128 (twice as many as a word has bits); the next is `None`. What is
//! freed after its owner's handle was dropped waits for the seat's next one.
//! # References
//! D. Leijen, B. Zorn, L. de Moura, "Mimalloc: Free List Sharding in Action", APLAS 2019, section
//! 2.3. Differs from the paper in: one size; owners' blocks side by side instead of in pages; no
//! list for blocks freed early.

use core::alloc::Layout;
use core::cell::Cell;
use core::fmt;
use core::ptr::NonNull;

use crossbeam_utils::CachePadded;

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

const SEATS: usize = 2;

/// What a seat without a handle has: its list, and how many of its blocks were ever got.
#[derive(Debug)]
struct Kept {
    free: AtomicU32,
    fresh: AtomicU32,
}

#[derive(Debug)]
#[repr(C)]
struct Owner {
    /// The blocks that others have freed.
    remote: CachePadded<AtomicU32>,
    kept: CachePadded<Kept>,
}

/// Keeps blocks of `BLOCK` bytes for `OWNERS` owners; anyone may free them.
///
/// ```
/// use alloc_arena::{Handle, Map, Pool, RemotePool, Request};
/// # #[cfg(feature = "alloc")] {
/// let pool = RemotePool::<alloc_arena::Heap, 64, 2>::map(4096, &Request::new())?;
/// let (producer, consumer) = (pool.handle().unwrap(), pool.handle().unwrap());
/// let block = producer.try_get().unwrap();
/// // SAFETY: got from the same pool, and not used any more.
/// unsafe { consumer.put(block) };
/// let all: Vec<_> = std::iter::from_fn(|| producer.try_get().ok()).collect();
/// assert!(all.contains(&block), "it went back to whom it belongs");
/// # }
/// # Ok::<(), alloc_arena::MapError>(())
/// ```
#[repr(C)]
pub struct RemotePool<B, const BLOCK: usize, const OWNERS: usize> {
    owners: [Owner; OWNERS],
    seats: CachePadded<Seats<SEATS>>,
    /// Each owner has 2 to the power of this blocks.
    share_bits: u32,
    blocks: Blocks<B, (), BLOCK>,
}

/// An owner's access to a [`RemotePool`]: its list.
pub struct RemoteHandle<'pool, B, const BLOCK: usize, const OWNERS: usize> {
    pool: &'pool RemotePool<B, BLOCK, OWNERS>,
    seat: u32,
    free: Cell<u32>,
    fresh: Cell<u32>,
}

impl<B: Backing, const BLOCK: usize, const OWNERS: usize> RemotePool<B, BLOCK, OWNERS> {
    const OWNERS_FIT: () = assert!(
        OWNERS.is_power_of_two() && OWNERS <= Seats::<SEATS>::CAPACITY,
        "the number of owners is a power of two, at most twice the bits of a word"
    );

    /// Makes a pool of the blocks that fit the region of `backing`, as many for each owner.
    pub fn new(backing: B) -> Self {
        Self::of(Blocks::over(backing, MOST, |_| 0, |_| ()))
    }

    fn of(blocks: Blocks<B, (), BLOCK>) -> Self {
        let () = Self::OWNERS_FIT;
        let word = |value| AtomicU32::new(value);
        let share = blocks.count() / OWNERS;
        // Without a block for each, none has one.
        let fresh = if share == 0 { 1 } else { 0 };
        let owners = core::array::from_fn(|_| Owner {
            remote: CachePadded::new(word(NONE)),
            kept: CachePadded::new(Kept { free: word(NONE), fresh: word(fresh) }),
        });
        let seats = CachePadded::new(Seats::new());
        Self { owners, seats, share_bits: share.max(1).ilog2(), blocks }
    }

    /// The seat that owns a block.
    #[inline(always)]
    fn owner(&self, block: u32) -> u32 {
        block >> self.share_bits
    }

    /// Pushes a block onto its owner's list for others.
    #[inline]
    fn push_remote(&self, index: u32, block: NonNull<u8>) {
        let remote = &self.owners[self.owner(index) as usize % OWNERS].remote;
        // ORDERING: Relaxed - a number to compare.
        let mut first = remote.load(Ordering::Relaxed);
        loop {
            // SAFETY: the caller's block: at least four bytes, aligned to as many by `layout`.
            unsafe { block.cast::<u32>().write(first) };
            // ORDERING: Release on success, R1 - hands the link and the block to the owner; Relaxed
            // on failure - it looks again.
            match remote.compare_exchange_weak(first, index, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(newer) => first = newer,
            }
        }
    }
}

impl<B: Backing, const BLOCK: usize, const OWNERS: usize> RemoteHandle<'_, B, BLOCK, OWNERS> {
    /// Takes the first block of a list off it, as the own list.
    #[inline(always)]
    fn take(&self, first: u32) -> NonNull<u8> {
        // SAFETY: by I1 the number of a block.
        let block = unsafe { self.pool.blocks.block(first) };
        // SAFETY: by I1 it is free and holds a number; with R1 behind us if it came from others.
        self.free.set(unsafe { block.cast::<u32>().read() });
        block
    }

    /// Finds a block when the own list is empty.
    #[cold]
    fn find(&self) -> Result<NonNull<u8>, AllocError> {
        let (pool, fresh) = (self.pool, self.fresh.get());
        if fresh >> pool.share_bits == 0 {
            self.fresh.set(fresh + 1);
            // SAFETY: a block of this seat, below the capacity.
            return Ok(unsafe { pool.blocks.block(self.seat << pool.share_bits | fresh) });
        }
        let remote = &pool.owners[self.seat as usize % OWNERS].remote;
        // ORDERING: Relaxed - a look first, so that nothing there takes the line from nobody.
        // Acquire, R1 - the links, and the blocks with what their last users did.
        if remote.load(Ordering::Relaxed) == NONE {
            return Err(AllocError);
        }
        let first = remote.swap(NONE, Ordering::Acquire);
        if first == NONE { Err(AllocError) } else { Ok(self.take(first)) }
    }
}

impl<B: Backing, const BLOCK: usize, const OWNERS: usize> Handle
    for RemoteHandle<'_, B, BLOCK, OWNERS>
{
    const BLOCK: Layout = Blocks::<B, (), BLOCK>::LAYOUT;

    #[inline]
    fn try_get(&self) -> Result<NonNull<u8>, AllocError> {
        match self.free.get() {
            NONE => self.find(),
            first => Ok(self.take(first)),
        }
    }

    #[inline]
    unsafe fn put(&self, block: NonNull<u8>) {
        let index = self.pool.blocks.index(block);
        if self.pool.owner(index) != self.seat {
            return self.pool.push_remote(index, block);
        }
        // SAFETY: the caller's block: at least four bytes, aligned to as many by `layout`.
        unsafe { block.cast::<u32>().write(self.free.get()) };
        self.free.set(index);
    }
}

impl<B, const BLOCK: usize, const OWNERS: usize> Drop for RemoteHandle<'_, B, BLOCK, OWNERS> {
    fn drop(&mut self) {
        let kept = &self.pool.owners[self.seat as usize].kept;
        // ORDERING: Relaxed - S1 publishes both.
        kept.free.store(self.free.get(), Ordering::Relaxed);
        kept.fresh.store(self.fresh.get(), Ordering::Relaxed);
        self.pool.seats.release(self.seat as usize);
    }
}

// SAFETY: a get has the block alone by I1 and I2, with its last user's writes by R1, S1 or because
// the same handle had it; `Blocks` keeps blocks apart, aligned and in place.
unsafe impl<B: Backing + Send + Sync, const BLOCK: usize, const OWNERS: usize> Pool
    for RemotePool<B, BLOCK, OWNERS>
{
    const PROPERTIES: Properties = Properties {
        memory: B::MEMORY,
        numa_bound: B::NUMA_BOUND,
        frees: Frees::Individually,
        thread_safe: true,
        runs_drop: false,
        most_bytes: B::MOST_BYTES,
    };
    const BLOCK: Layout = Blocks::<B, (), BLOCK>::LAYOUT;
    type Handle<'pool>
        = RemoteHandle<'pool, B, BLOCK, OWNERS>
    where
        Self: 'pool;

    fn handle(&self) -> Option<Self::Handle<'_>> {
        let seat = self.seats.claim(OWNERS)?;
        let kept = &self.owners[seat].kept;
        // ORDERING: Relaxed - with S1 behind us, what the last handle left (I2).
        let number = |word: &AtomicU32| Cell::new(word.load(Ordering::Relaxed));
        let (free, fresh) = (number(&kept.free), number(&kept.fresh));
        Some(RemoteHandle { pool: self, seat: seat as u32, free, fresh })
    }

    fn capacity(&self) -> usize {
        if self.blocks.count() < OWNERS { 0 } else { OWNERS << self.share_bits }
    }

    fn reach(&self) -> usize {
        self.capacity() / OWNERS
    }

    fn number_of(&self, block: NonNull<u8>) -> Option<usize> {
        self.blocks.number_of(block).filter(|&number| number < self.capacity())
    }

    fn placement(&self) -> Placement {
        self.blocks.placement()
    }
}

impl<B: Backing + Map, const BLOCK: usize, const OWNERS: usize> Map
    for RemotePool<B, BLOCK, OWNERS>
{
    fn map(bytes: usize, request: &Request) -> Result<Self, MapError> {
        let share = bytes.div_ceil(BLOCK).div_ceil(OWNERS).checked_next_power_of_two();
        let all = share.and_then(|share| share.checked_mul(OWNERS)?.checked_mul(BLOCK));
        let all = if bytes == 0 { Some(0) } else { all };
        let all = all.ok_or(MapError::LayoutOverflow)?;
        Blocks::map(all, request, MOST, |_| 0, |_| ()).map(Self::of)
    }
}

impl<B: Backing, const BLOCK: usize, const OWNERS: usize> HotFields
    for RemotePool<B, BLOCK, OWNERS>
{
    const ALIGNMENT: usize = align_of::<CachePadded<u8>>();
    const ALONE: bool = true;

    fn hot_fields(&self, visit: &mut dyn FnMut(HotField)) {
        let Self { owners, seats, share_bits, blocks } = self;
        let threads = Role::Many("threads");
        for (index, Owner { remote, kept }) in owners.iter().enumerate() {
            let list = HotField::of("remote", &**remote).written_by(threads).padded_in(remote);
            visit(list.nth(index));
            visit(HotField::of("kept", &**kept).padded_in(kept).nth(index));
        }
        visit(HotField::of("seats", &**seats).padded_in(seats));
        visit(HotField::of("share_bits", share_bits).read_by(threads));
        visit(HotField::between(share_bits, blocks));
        blocks.describe(threads, visit);
        visit(HotField::rest(self, blocks));
    }
}

impl<B, const BLOCK: usize, const OWNERS: usize> fmt::Debug for RemotePool<B, BLOCK, OWNERS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemotePool").finish_non_exhaustive()
    }
}

impl<B, const BLOCK: usize, const OWNERS: usize> fmt::Debug for RemoteHandle<'_, B, BLOCK, OWNERS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteHandle").finish_non_exhaustive()
    }
}
