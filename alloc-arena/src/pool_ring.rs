//! Ring pool: the numbers of free blocks in a bounded ring for many producers and consumers.
//! # Algorithm
//! The ring has a power of two of slots, two at least and one a block, each with a `turn` and a number. A
//! position's slot is its remainder. `turn` is the position when the slot waits for the put of that
//! position, one more when for the get. `try_get` reads `head` and its slot's turn; if that is the
//! turn of this get it claims the position by a CAS of `head`, takes the number and stores the turn
//! of the put a lap later. An older turn means that the pool is empty, a newer one that somebody else
//! was faster. `put` is the mirror image with `tail`; since the ring has a slot for each block it is
//! never full, so an older turn means a get that has claimed its slot a lap ago and not left yet:
//! `put` relaxes until it has.
//! # Why
//! Against `pool_treiber` gets and puts write different lines, blocks are reused first in first out,
//! so that a block is cold but long out of use (which finds uses after a put), and no tag can wrap
//! early. It adds the turns, and a put that may wait.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `RingPool<Heap, 64>` | 384 | 128 | 6 | `tail` pair: putters; `head` pair: getters; the rest: nobody |
//! | slot | 16, up to 2 a block | 8 | - | a getter and a putter |
//! # Cost
//! Uncontended operation: 1 RMW, 2 loads (put) or 3 (get), 1 store (get) or 2 (put), 2 lines.
//! # Progress
//! Not lock-free: a getter stopped between its CAS and its store of `turn` makes the put that comes
//! to the slot a lap later wait; a putter stopped there makes getters find the pool empty.
//! # Invariants
//! - I1: a position is claimed by the one thread whose CAS moved `head` or `tail` past it.
//! - I2: turns of a slot only grow: by the put that claimed it, then by the get; between a claim and
//!   that store the slot belongs to the claimer.
//! - I3: at most as many numbers as blocks are in the ring, each once.
//! # Synchronization
//! | edge | release side | acquire side | publishes |
//! |---|---|---|---|
//! | E1 | store of `turn` in `put` | load of `turn` in `try_get` | the number and the block, with all that its last owner did |
//! | E2 | store of `turn` in `try_get` | load of `turn` in `put` | that the number was read |
//! # Errors and limits
//! A pool without free blocks refuses; it may do so while a put is under way, though an older one has
//! returned. Positions wrap after `usize::MAX` operations, which no slot can tell from none: with 32
//! bits a thread would be wrong that stops inside while others make 2³² operations.
//! # References
//! D. Vyukov, "Bounded MPMC queue", 1024cores.net, 2010. Differs from the text in: it is full of
//! numbers at first and never overflows, so that a put waits instead of failing.

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
use super::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

/// A place for a number.
#[derive(Debug)]
struct Slot {
    turn: AtomicUsize,
    number: AtomicU32,
}

/// Keeps blocks of `BLOCK` bytes in a ring, first in first out; a put that must wait relaxes by `R`.
///
/// ```
/// use alloc_arena::{Handle, Pool, RingPool, Slice};
/// let mut memory = [core::mem::MaybeUninit::uninit(); 1024];
/// let pool = RingPool::<_, 64>::new(Slice::new(&mut memory));
/// let handle = pool.handle().unwrap();
/// let first = handle.try_get().unwrap();
/// // SAFETY: got here, and not used any more.
/// unsafe { handle.put(first) };
/// assert_ne!(handle.try_get(), Ok(first), "the one that is free for longest");
/// ```
#[repr(C)]
pub struct RingPool<B, const BLOCK: usize, R = Spin> {
    tail: CachePadded<AtomicUsize>,
    head: CachePadded<AtomicUsize>,
    blocks: Blocks<B, Slot, BLOCK>,
    relax: core::marker::PhantomData<fn() -> R>,
}

/// A thread's access to a [`RingPool`]; keeps nothing.
#[derive(Debug)]
pub struct RingHandle<'pool, B, const BLOCK: usize, R = Spin>(&'pool RingPool<B, BLOCK, R>);

/// Slots for `count` blocks; two at least, or the turns of a put and a get a lap apart are equal.
fn slots(count: usize) -> usize {
    count.next_power_of_two().max(2)
}

impl<B: Backing, const BLOCK: usize, R: Relax> RingPool<B, BLOCK, R> {
    /// Makes a pool of the blocks that fit the region of `backing`.
    pub fn new(backing: B) -> Self {
        Self::starting_at(backing, 0)
    }

    /// Makes a pool whose first position is `start`; tests start near the wrap.
    #[doc(hidden)]
    pub fn starting_at(backing: B, start: usize) -> Self {
        Self::of(Blocks::over(backing, usize::MAX, slots, Self::vacant), start)
    }

    fn vacant(_index: usize) -> Slot {
        Slot { turn: AtomicUsize::new(0), number: AtomicU32::new(0) }
    }

    fn of(blocks: Blocks<B, Slot, BLOCK>, start: usize) -> Self {
        let (count, slots) = (blocks.count(), blocks.words());
        for offset in 0..slots.len() {
            let position = start.wrapping_add(offset);
            let slot = &slots[position % slots.len()];
            let held = usize::from(offset < count);
            // ORDERING: Relaxed - nobody else has the pool yet.
            slot.turn.store(position.wrapping_add(held), Ordering::Relaxed);
            slot.number.store(offset as u32, Ordering::Relaxed);
        }
        Self {
            tail: CachePadded::new(AtomicUsize::new(start.wrapping_add(count))),
            head: CachePadded::new(AtomicUsize::new(start)),
            blocks,
            relax: core::marker::PhantomData,
        }
    }

    #[inline(always)]
    fn slot(&self, position: usize) -> &Slot {
        let slots = self.blocks.words().len();
        // SAFETY: the number of slots is a power of two, or there is no block.
        unsafe { self.blocks.word(position & (slots.wrapping_sub(1))) }
    }
}

/// Whether a turn is one that a slot had before `other`.
fn is_older(turn: usize, other: usize) -> bool {
    (turn.wrapping_sub(other) as isize) < 0
}

impl<B: Backing, const BLOCK: usize, R: Relax> Handle for RingHandle<'_, B, BLOCK, R> {
    const BLOCK: Layout = Blocks::<B, Slot, BLOCK>::LAYOUT;

    #[inline]
    fn try_get(&self) -> Result<NonNull<u8>, AllocError> {
        let pool = self.0;
        if pool.blocks.count() == 0 {
            return Err(AllocError);
        }
        // ORDERING: Relaxed - the CAS decides who has the position; E1 orders the slot.
        let mut head = pool.head.load(Ordering::Relaxed);
        loop {
            let slot = pool.slot(head);
            // ORDERING: Acquire, E1 - the number of this position is there, and its block free.
            let turn = slot.turn.load(Ordering::Acquire);
            let next = head.wrapping_add(1);
            if turn == next {
                // ORDERING: Relaxed on success and failure - the slot was acquired above, and nobody
                // else changes it before us (I2).
                match pool.head.compare_exchange_weak(
                    head,
                    next,
                    Ordering::Relaxed,
                    Ordering::Relaxed,
                ) {
                    Ok(_) => {
                        // ORDERING: Relaxed - the slot is ours (I2), with E1 behind us.
                        let number = slot.number.load(Ordering::Relaxed);
                        let lap_later = head.wrapping_add(pool.blocks.words().len());
                        // ORDERING: Release, E2 - tells the put a lap later that the number was read.
                        slot.turn.store(lap_later, Ordering::Release);
                        // SAFETY: by I3 the number of a block.
                        return Ok(unsafe { pool.blocks.block(number) });
                    }
                    Err(newer) => head = newer,
                }
            } else if is_older(turn, next) {
                return Err(AllocError);
            } else {
                // ORDERING: Relaxed - as above; a newer turn comes with a newer position.
                head = pool.head.load(Ordering::Relaxed);
            }
        }
    }

    #[inline]
    unsafe fn put(&self, block: NonNull<u8>) {
        let pool = self.0;
        let number = pool.blocks.index(block);
        let mut relax = R::new();
        // ORDERING: Relaxed - the CAS decides who has the position; E2 orders the slot.
        let mut tail = pool.tail.load(Ordering::Relaxed);
        loop {
            let slot = pool.slot(tail);
            // ORDERING: Acquire, E2 - the number of the lap before was read.
            let turn = slot.turn.load(Ordering::Acquire);
            if turn == tail {
                let next = tail.wrapping_add(1);
                // ORDERING: Relaxed on success and failure - as in `try_get`.
                match pool.tail.compare_exchange_weak(
                    tail,
                    next,
                    Ordering::Relaxed,
                    Ordering::Relaxed,
                ) {
                    Ok(_) => {
                        // ORDERING: Relaxed - the slot is ours (I2), with E2 behind us.
                        slot.number.store(number, Ordering::Relaxed);
                        // ORDERING: Release, E1 - hands the number and the block to the get.
                        slot.turn.store(next, Ordering::Release);
                        return;
                    }
                    Err(newer) => tail = newer,
                }
            } else {
                if is_older(turn, tail) {
                    relax.relax();
                }
                // ORDERING: Relaxed - as above; a newer turn comes with a newer position.
                tail = pool.tail.load(Ordering::Relaxed);
            }
        }
    }
}

// SAFETY: a get has the block alone by I1 to I3, with its last owner's writes by E1; `Blocks` keeps
// blocks apart, aligned and in place.
unsafe impl<B: Backing + Send + Sync, const BLOCK: usize, R: Relax> Pool for RingPool<B, BLOCK, R> {
    const PROPERTIES: Properties = Properties {
        memory: B::MEMORY,
        numa_bound: B::NUMA_BOUND,
        frees: Frees::Individually,
        thread_safe: true,
        runs_drop: false,
        most_bytes: B::MOST_BYTES,
    };
    const BLOCK: Layout = Blocks::<B, Slot, BLOCK>::LAYOUT;
    type Handle<'pool>
        = RingHandle<'pool, B, BLOCK, R>
    where
        Self: 'pool;

    fn handle(&self) -> Option<Self::Handle<'_>> {
        Some(RingHandle(self))
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

impl<B: Backing + Map, const BLOCK: usize, R: Relax> Map for RingPool<B, BLOCK, R> {
    fn map(bytes: usize, request: &Request) -> Result<Self, MapError> {
        let blocks = Blocks::map(bytes, request, usize::MAX, slots, Self::vacant)?;
        Ok(Self::of(blocks, 0))
    }
}

impl<B: Backing, const BLOCK: usize, R> HotFields for RingPool<B, BLOCK, R> {
    const ALIGNMENT: usize = align_of::<CachePadded<u8>>();
    const ALONE: bool = true;

    fn hot_fields(&self, visit: &mut dyn FnMut(HotField)) {
        let Self { tail, head, blocks, relax: _ } = self;
        let threads = Role::Many("threads");
        visit(HotField::of("tail", &**tail).written_by(threads).padded_in(tail));
        visit(HotField::of("head", &**head).written_by(threads).padded_in(head));
        for (i, word) in blocks.words().iter().enumerate() {
            let word = HotField::of("slot", word).nth(i).written_by(threads);
            visit(word.side_by_side(
                "slots",
                "slots are used one after the other, each by whose turn it is",
            ));
        }
        blocks.describe(threads, visit);
        visit(HotField::rest(self, blocks));
    }
}

impl<B, const BLOCK: usize, R> fmt::Debug for RingPool<B, BLOCK, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RingPool").finish_non_exhaustive()
    }
}
