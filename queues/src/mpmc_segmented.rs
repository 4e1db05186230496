//! Segmented queue: unbounded MPMC over a list of blocks, each freed when its last reader leaves.
//! # Algorithm
//! A position is a slot's index in its block, with the number of the block above it; one index more
//! than a block has slots says that the next block is being linked. A push claims a position by a CAS
//! of the tail's `index`, puts the element in and sets the slot's `filled`. Whoever claims the last
//! slot of a block has brought the next one, and links it first: `block` and then `index` of the
//! tail, and `next` of the full block. A pop claims one position, or as many of one block as it
//! wants, by a CAS of the head's `index`, and waits for `filled` of each; whoever claims the last slot
//! moves the head on to `next`. Who has left a slot swaps 1 into its `left`. The reader of the
//! last slot goes through the others and does the same: of the two at a slot the second one knows
//! that the first was there, so either finds that the reader has gone and passes on, or stops and is
//! relieved by that reader. Who comes to the end alone has the block.
//! # Why
//! Against the rings it is never full, and takes memory only for what is inside. It adds an
//! allocation a block, if none is at hand (one is kept), and two RMWs to a pop instead of one. Blocks
//! are not touched before a claim in them has succeeded, which is what hazard pointers and epochs
//! would be for.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `MpmcSegmented<T>` | 384 | 128 | 6 | `tail` pair: producers; `head` pair: consumers; `spare` pair: both, once a block |
//! | slot | 8 more than `T` | that of `T` | - | producer and consumer |
//! | block | 128 and 31 slots | 128 | - | producer, once |
//! | endpoint | 8 | 8 | - | nobody |
//! # Cost
//! Uncontended: push 1 RMW, 3 loads, 2 stores; pop 2 RMWs, 5 loads; a batch of n of one block n + 1
//! RMWs. Once a block 2 RMWs and 30 loads more.
//! # Progress
//! Blocking: a pop waits for the push that has claimed its slot, and all wait for whoever is linking
//! a block; none of them runs a user's code meanwhile, but the allocator's comes before the claim.
//! Who retries after a failed CAS has been overtaken by one that made progress. A thread stopped
//! inside a pop keeps one block from being freed, and nobody waiting.
//! # Invariants
//! - I1: a position is claimed by the one thread whose CAS moved the tail's `index` (for its push) or
//!   the head's (for its pop) past it.
//! - I2: who claims a position has read the `block` that it lies in: `block` is stored after the
//!   claim of the last position of the block before and ahead of `index`, so that by E3 (E4) a claim
//!   that rests on a newer `block` fails, and none rests on an older one.
//! - I3: the head's `index` passes no position that the tail's has not.
//! - I4: a block is freed by the one thread that was second at `left` of all its slots, or was the
//!   reader of the last; by E2 all have left. A push leaves before its pop can.
//! # Synchronization
//! | edge | release side | acquire side | publishes |
//! |---|---|---|---|
//! | E1 | store of `filled` | load of `filled` | the element |
//! | E2 | swap of `left` by the first at a slot | swap or load of `left` by the second | that the element has been moved out |
//! | E3 | stores of the tail's `block` and `index` in `link` | loads of them in `claim_push` | the block |
//! | E4 | stores of the head's `block` and `index` in `pass` | loads of them in `claim_pop` | the block |
//! | E5 | store of `next` in `link` | load of `next` in `pass` | the block |
//! | E6 | swap of `spare` in `recycle` | swap of `spare` in `fresh` and in `recycle` | that the block is nobody's |
//! # Errors and limits
//! `Full` hands the value back when the allocator refuses a block. The capacity it is made with is
//! refused if no memory could hold so many elements, and is else without meaning. Reclamation: by the
//! last reader, see Algorithm; a free block is kept for the next push that needs one, a second goes
//! back to the allocator. An interrupt handler that uses the queue of the thread that it interrupted
//! may deadlock. Positions wrap after 2⁶⁴ (2³²) pushes: a thread would be wrong that is stopped before
//! its CAS while exactly so many elements pass.
//! # References
//! M. Herlihy, N. Shavit, V. Luchangco, M. Spear, "The Art of Multiprocessor Programming", 2nd ed.,
//! 2020, chapter 10 (unbounded queues); the `Injector` of crossbeam-deque (blocks of slots behind two
//! indices). Differs from the latter in: two meet at a flag instead of marking a state; positions are
//! compared, not their blocks; batches are handed to a closure; one free block is kept.

use alloc::boxed::Box;
use core::fmt;
use core::marker::PhantomData;
use core::ptr;

use crossbeam_utils::CachePadded;

use super::block::{Block, BlockSlot, OwnLines};
use super::boxed::Boxed;
use super::contract::{
    CapacityError, Full, Order, Progress, Properties, Queue, SharedQueue, Side, WithCapacity,
};
use super::drain::drain;
use super::hot::{HotField, HotFields, Role};
use super::laps::is_older;
use super::relax::{Relax, Spin};
use super::shared::shared_ends;
use super::storage::Storage;
use super::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// Where one side is.
#[repr(C)]
struct End<T> {
    index: AtomicUsize,
    block: AtomicPtr<OwnLines<T>>,
}

/// Both ends and the list between them, which this owns.
#[repr(C)]
struct Blocks<T, const SLOTS: usize> {
    tail: CachePadded<End<T>>,
    head: CachePadded<End<T>>,
    /// A block that nobody uses.
    spare: CachePadded<AtomicPtr<OwnLines<T>>>,
    owns: PhantomData<Block<T>>,
}

/// Positions that a pop has claimed and not left yet, all in one block.
struct Claimed<'q, T, R: Relax, const SLOTS: usize> {
    blocks: &'q Blocks<T, SLOTS>,
    block: *mut OwnLines<T>,
    next: usize,
    end: usize,
    relax: PhantomData<R>,
}

impl<T, const SLOTS: usize> Blocks<T, SLOTS> {
    /// Positions from one block to the next.
    const LAP: usize = {
        assert!((SLOTS + 1).is_power_of_two(), "a block has a slot less than a power of two");
        SLOTS + 1
    };

    fn make(start: usize) -> Result<Self, CapacityError> {
        let first = start % Self::LAP % SLOTS;
        let start = start / Self::LAP * Self::LAP + first;
        let block = Box::into_raw(Block::make(SLOTS, first)?);
        let end = || End { index: AtomicUsize::new(start), block: AtomicPtr::new(block) };
        Ok(Self {
            tail: CachePadded::new(end()),
            head: CachePadded::new(end()),
            spare: CachePadded::new(AtomicPtr::new(ptr::null_mut())),
            owns: PhantomData,
        })
    }

    /// A block for the end of the list; `None` when the allocator refuses.
    #[inline(never)]
    fn fresh(&self) -> Option<*mut OwnLines<T>> {
        // ORDERING: Acquire, E6 - nobody is in the block any more.
        let spare = self.spare.swap(ptr::null_mut(), Ordering::Acquire);
        if spare.is_null() { Block::make(SLOTS, 0).ok().map(Box::into_raw) } else { Some(spare) }
    }

    /// Keeps a block that nobody uses for later, and frees the one that was kept.
    ///
    /// # Safety
    /// The block is the caller's, and all accesses to it happened before.
    #[inline(never)]
    unsafe fn recycle(&self, block: *mut OwnLines<T>) {
        // SAFETY: the caller's duty.
        unsafe { &mut *block }.renew();
        // ORDERING: AcqRel, E6 - the block is as new; nobody is in the other one any more.
        let other = self.spare.swap(block, Ordering::AcqRel);
        if !other.is_null() {
            // SAFETY: made by `Block::make`, and nobody else has it any more.
            drop(unsafe { Box::from_raw(other) });
        }
    }

    /// Claims a position for a push: its block and index there.
    #[inline(always)]
    fn claim_push<R: Relax>(&self) -> Option<(&Block<T>, usize)> {
        let (mut relax, mut next) = (R::new(), None);
        let End { index, block } = &*self.tail;
        loop {
            // ORDERING: Acquire, E3 - the block of this position is seen (I2).
            let at = index.load(Ordering::Acquire);
            let offset = at % Self::LAP;
            if offset == SLOTS {
                relax.relax();
                continue;
            }
            let last = offset + 1 == SLOTS;
            if last && next.is_none() {
                next = Some(self.fresh()?);
            }
            // ORDERING: Acquire, E3 - if the block is newer, the claim fails (I2).
            let claimed = block.load(Ordering::Acquire);
            // ORDERING: Relaxed on success and failure - the claim needs atomicity only (I1); as
            // a step between the store of `index` and its loads it passes E3 on.
            let to = at.wrapping_add(1);
            if index.compare_exchange(at, to, Ordering::Relaxed, Ordering::Relaxed).is_err() {
                continue;
            }
            // SAFETY: by I2 the block is that of the position, which is ours: by I4 it stays.
            let claimed = &**unsafe { &*claimed };
            match next {
                Some(next) if last => self.link(claimed, to, next),
                // SAFETY: the block has been nobody else's since `fresh`.
                Some(unused) => unsafe { self.recycle(unused) },
                None => {}
            }
            return Some((claimed, offset));
        }
    }

    /// Links a block behind a full one, whose last position was claimed: `index` is behind that.
    #[cold]
    #[inline(never)]
    fn link(&self, full: &Block<T>, index: usize, next: *mut OwnLines<T>) {
        // ORDERING: Release, E3, both - the block is as new, and seen where its positions are.
        self.tail.block.store(next, Ordering::Release);
        self.tail.index.store(index.wrapping_add(1), Ordering::Release);
        // ORDERING: Release, E5 - the block is as new.
        full.next.store(next, Ordering::Release);
    }

    /// Claims up to `most` positions of one block for pops, if there are any.
    #[inline(always)]
    fn claim_pop<R: Relax>(&self, most: usize) -> Option<Claimed<'_, T, R, SLOTS>> {
        let mut relax = R::new();
        let End { index, block } = &*self.head;
        loop {
            // ORDERING: Acquire, E4 - the block of this position is seen (I2).
            let at = index.load(Ordering::Acquire);
            let offset = at % Self::LAP;
            if offset == SLOTS {
                relax.relax();
                continue;
            }
            // ORDERING: Relaxed - too old a value is before the claimed position, which is none
            // then; E1 orders the slots.
            let tail = self.tail.index.load(Ordering::Relaxed);
            if !is_older(at, tail) {
                return None;
            }
            let count = most.min(tail.wrapping_sub(at)).min(SLOTS - offset);
            // ORDERING: Acquire, E4 - if the block is newer, the claim fails (I2).
            let block = block.load(Ordering::Acquire);
            // ORDERING: Relaxed on success and failure - the claim needs atomicity only (I1); as
            // a step between the store of `index` and its loads it passes E4 on.
            let to = at.wrapping_add(count);
            if index.compare_exchange(at, to, Ordering::Relaxed, Ordering::Relaxed).is_err() {
                continue;
            }
            let end = offset + count;
            if end == SLOTS {
                // SAFETY: by I2 the block is that of the positions, which are ours: by I4 it stays.
                self.pass::<R>(unsafe { &*block }, to);
            }
            return Some(Claimed { blocks: self, block, next: offset, end, relax: PhantomData });
        }
    }

    /// Passes on from a block whose last position was claimed: `index` is behind that.
    #[cold]
    #[inline(never)]
    fn pass<R: Relax>(&self, used: &Block<T>, index: usize) {
        let mut relax = R::new();
        let next = loop {
            // ORDERING: Acquire, E5 - the block is there.
            let next = used.next.load(Ordering::Acquire);
            if !next.is_null() {
                break next;
            }
            relax.relax();
        };
        // ORDERING: Release, E4, both - the block is there, and seen where its positions are.
        self.head.block.store(next, Ordering::Release);
        self.head.index.store(index.wrapping_add(1), Ordering::Release);
    }

    #[inline(always)]
    fn push<R: Relax>(&self, value: T) -> Result<(), Full<T>> {
        let Some((block, offset)) = self.claim_push::<R>() else { return Err(Full(value)) };
        // SAFETY: the offset of a position that was claimed is below `SLOTS`.
        let BlockSlot { filled, slot, .. } = unsafe { block.at(offset) };
        // SAFETY: the position is ours (I1), and its slot has not been used since the block was new.
        unsafe { slot.put(value) };
        // ORDERING: Release, E1 - hands the element to the pop of this position.
        filled.store(true, Ordering::Release);
        Ok(())
    }
}

impl<T, R: Relax, const SLOTS: usize> Claimed<'_, T, R, SLOTS> {
    /// Takes the next element of those that were claimed, and leaves its slot.
    #[inline(always)]
    fn take(&mut self) -> Option<T> {
        if self.next == self.end {
            return None;
        }
        let offset = self.next;
        self.next += 1;
        let mut relax = R::new();
        // SAFETY: the block stays until we leave the slot (I4).
        let block = &**unsafe { &*self.block };
        // SAFETY: the offset of a position that was claimed is below `SLOTS`.
        let BlockSlot { filled, left, slot } = unsafe { block.at(offset) };
        // ORDERING: Acquire, E1 - the element is there.
        while !filled.load(Ordering::Acquire) {
            relax.relax();
        }
        // SAFETY: the position is ours (I1), with E1 behind us.
        let value = unsafe { slot.take() };
        let first = if offset + 1 == SLOTS {
            Some(0)
        } else {
            // ORDERING: AcqRel, E2 - the element has been moved out; so have those before it, if we
            // relieve who was here.
            (left.swap(1, Ordering::AcqRel) == 1).then_some(offset + 1)
        };
        if let Some(first) = first {
            self.free(first);
        }
        Some(value)
    }

    /// Frees the block, unless a reader from slot `first` on is still in it: that one then does.
    #[cold]
    #[inline(never)]
    fn free(&self, first: usize) {
        for offset in first..SLOTS - 1 {
            // SAFETY: who is on the way through the block keeps it (I4).
            let block = &**unsafe { &*self.block };
            // SAFETY: below `SLOTS`.
            let BlockSlot { left, .. } = unsafe { block.at(offset) };
            // ORDERING: Acquire, E2 - this reader has left.
            if left.load(Ordering::Acquire) == 1 {
                continue;
            }
            // ORDERING: AcqRel, E2 - the readers up to here have left; so has this one, if it was
            // here first.
            if left.swap(1, Ordering::AcqRel) == 0 {
                return;
            }
        }
        // SAFETY: all readers have left, and E2 is behind us (I4).
        unsafe { self.blocks.recycle(self.block) };
    }
}

impl<T, R: Relax, const SLOTS: usize> Drop for Claimed<'_, T, R, SLOTS> {
    /// Drops what a caller that panicked has not taken.
    #[inline(always)]
    fn drop(&mut self) {
        if self.next != self.end {
            drain_claimed(self);
        }
    }
}

#[cold]
fn drain_claimed<T, R: Relax, const SLOTS: usize>(claimed: &mut Claimed<'_, T, R, SLOTS>) {
    while claimed.take().is_some() {}
}

impl<T, const SLOTS: usize> Drop for Blocks<T, SLOTS> {
    fn drop(&mut self) {
        // ORDERING: Relaxed, here and below - the queue is borrowed exclusively.
        let ends = [&self.head.block, &*self.spare].map(|end| end.load(Ordering::Relaxed));
        for mut block in ends {
            while !block.is_null() {
                // SAFETY: made by `Block::make`, and nobody else has it any more.
                let freed = unsafe { Box::from_raw(block) };
                block = freed.next.load(Ordering::Relaxed);
            }
        }
    }
}

/// Hands elements from any threads to any threads, as many as there is memory for; also the queue
/// from which workers with deques of their own take batches.
///
/// ```
/// use queues::MpmcSegmented;
/// let queue = MpmcSegmented::<u64>::try_new().unwrap();
/// for number in 0..100 {
///     queue.try_push(number).unwrap();
/// }
/// assert_eq!(queue.try_pop(), Some(0));
/// let mut batch = Vec::new();
/// assert_eq!(queue.pop_each(5, |number| batch.push(number)), 5);
/// assert_eq!(batch, [1, 2, 3, 4, 5]);
/// ```
///
/// ```compile_fail,E0277
/// fn shared<T: Sync>(_: T) {}
/// shared(queues::MpmcSegmented::<std::rc::Rc<u64>>::try_new().unwrap());
/// ```
#[repr(C)]
pub struct MpmcSegmented<T, const SLOTS: usize = 31, R = Spin> {
    blocks: Blocks<T, SLOTS>,
    relax: PhantomData<fn() -> R>,
}

// SAFETY: the queue owns its elements and its blocks; nothing else in it is bound to a thread.
unsafe impl<T: Send, const SLOTS: usize, R> Send for MpmcSegmented<T, SLOTS, R> {}
// SAFETY: through `&self` elements move in and out, each by the one thread that claimed it (I1), so
// they have to be sendable and no more.
unsafe impl<T: Send, const SLOTS: usize, R> Sync for MpmcSegmented<T, SLOTS, R> {}

impl<T, const SLOTS: usize, R: Relax> MpmcSegmented<T, SLOTS, R> {
    /// Makes an empty queue.
    ///
    /// # Errors
    /// When the allocator refuses the first block.
    pub fn try_new() -> Result<Self, CapacityError> {
        Ok(Self { blocks: Blocks::make(0)?, relax: PhantomData })
    }

    /// Makes an empty queue whose next push goes to slot `index` in block `lap`, modulo their
    /// numbers; tests start near the wrap.
    ///
    /// # Errors
    /// As `with_capacity`.
    #[doc(hidden)]
    pub fn starting_at(capacity: usize, lap: usize, index: usize) -> Result<Self, CapacityError> {
        let largest = (isize::MAX as usize - size_of::<Self>()) / size_of::<BlockSlot<T>>();
        match capacity {
            0 => Err(CapacityError::Zero),
            _ if capacity > largest => Err(CapacityError::TooLarge { largest }),
            _ => {
                let start = lap.wrapping_mul(Blocks::<T, SLOTS>::LAP).wrapping_add(index);
                Ok(Self { blocks: Blocks::make(start)?, relax: PhantomData })
            }
        }
    }

    /// Offsets in bytes of `head` and of `tail`.
    pub const OFFSETS: (usize, usize) = (
        core::mem::offset_of!(Blocks<T, SLOTS>, head),
        core::mem::offset_of!(Blocks<T, SLOTS>, tail),
    );

    /// Appends `value`.
    ///
    /// # Errors
    /// [`Full`] hands the value back when the allocator refuses a block.
    #[inline]
    pub fn try_push(&self, value: T) -> Result<(), Full<T>> {
        self.blocks.push::<R>(value)
    }

    /// Takes the oldest element, if there is one, waiting for the push of it to end.
    #[inline]
    pub fn try_pop(&self) -> Option<T> {
        self.blocks.claim_pop::<R>(1)?.take()
    }

    /// Takes the oldest elements, at most `most` and at most to the end of a block, hands each to
    /// `take`, and gives their number. If `take` panics, the rest of the batch is dropped.
    #[inline]
    pub fn pop_each(&self, most: usize, mut take: impl FnMut(T)) -> usize {
        if most == 0 {
            return 0;
        }
        let Some(mut claimed) = self.blocks.claim_pop::<R>(most) else { return 0 };
        let count = claimed.end - claimed.next;
        while let Some(value) = claimed.take() {
            take(value);
        }
        count
    }
}

impl<T, const SLOTS: usize, R: Relax> WithCapacity for MpmcSegmented<T, SLOTS, R> {
    fn with_capacity(capacity: usize) -> Result<Self, CapacityError> {
        Self::starting_at(capacity, 0, 0)
    }
}

impl<T: Send, const SLOTS: usize, R: Relax> Queue<T> for MpmcSegmented<T, SLOTS, R> {
    shared_ends!(T);

    const PROPERTIES: Properties = Properties {
        producers: Side::Multi,
        consumers: Side::Multi,
        bounded: false,
        order: Order::Fifo,
        progress: Progress::Blocking,
        linearizable: true,
    };
    const BYTES_PER_SLOT: usize = size_of::<BlockSlot<T>>();

    #[inline]
    fn capacity(&self) -> usize {
        usize::MAX
    }
}

impl<T: Send, const SLOTS: usize, R: Relax> SharedQueue<T> for MpmcSegmented<T, SLOTS, R> {
    #[inline]
    fn try_push(&self, value: T) -> Result<(), Full<T>> {
        self.try_push(value)
    }

    #[inline]
    fn try_pop(&self) -> Option<T> {
        self.try_pop()
    }
}

impl<T, const SLOTS: usize, R> Drop for MpmcSegmented<T, SLOTS, R> {
    fn drop(&mut self) {
        // Nobody else is here, so nothing is waited for.
        drain(|| self.blocks.claim_pop::<Spin>(1)?.take());
    }
}

impl<T, const SLOTS: usize, R> HotFields for MpmcSegmented<T, SLOTS, R> {
    const ALIGNMENT: usize = align_of::<CachePadded<u8>>();
    const ALONE: bool = true;

    fn hot_fields(&self, visit: &mut dyn FnMut(HotField)) {
        const BECAUSE: &str = "the link to the next block is written once, when the block is full";
        let Self { blocks: Blocks { tail, head, spare, owns: _ }, relax: _ } = self;
        let (producers, consumers) = (Role::Many("producers"), Role::Many("consumers"));
        let both = Role::Many("producers and consumers");
        for (name, group, end, who) in
            [("tail", "tail's end", tail, producers), ("head", "head's end", head, consumers)]
        {
            let together = "who claims a slot reads its block";
            let index = HotField::of(name, &end.index).written_by(who);
            visit(index.one_line(group, together).padded_in(end));
            let block = HotField::of("block", &end.block).written_by(who);
            visit(block.one_line(group, together).padded_in(end));
        }
        visit(HotField::of("spare", &**spare).written_by(both).padded_in(spare));
        // ORDERING: Relaxed - nobody is inside an operation meanwhile.
        let block = head.block.load(Ordering::Relaxed);
        // SAFETY: made by `Block::make`; nobody frees it while nobody is inside an operation.
        let padded = unsafe { &*block };
        let Block { next, slots } = &**padded;
        let next = HotField::of("next", next).written_by(both);
        visit(next.one_line("block", BECAUSE));
        let address = HotField::of("slots' address", slots).written_by(both);
        visit(address.one_line("block", BECAUSE));
        for (index, slot) in Boxed::as_slice(slots).iter().enumerate() {
            slot.describe(index, visit);
        }
    }
}

impl<T, const SLOTS: usize, R> fmt::Debug for MpmcSegmented<T, SLOTS, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MpmcSegmented").finish_non_exhaustive()
    }
}
