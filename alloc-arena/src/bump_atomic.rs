//! Atomic bump arena: threads cut blocks from one region, one fetch-and-add a block.
//! # Algorithm
//! `finger` is the number of bytes handed out, in units of 16 from the region's aligned start. A
//! block's size is rounded up to units, and 16 less than its alignment is added to that where the
//! alignment is larger. `try_alloc_layout` refuses what passes the end by a look at `finger`;
//! otherwise one `fetch_add` takes the units. If the sum passes the end after all, somebody else
//! came first: the arena is full, and the units are given back by a CAS, if nobody has taken more
//! meanwhile. Blocks beyond `LARGE` are taken by a CAS loop, which never passes the end.
//! # Why
//! Against `Bump` threads share one region, so that none holds memory that another one needs. It
//! adds an RMW a block, and a line that all threads write: with one arena a thread there is none.
//! Upwards, since a sum that is too large is seen after the fact, and the last block can grow.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `AtomicBump<Heap>` | 256 | 128 | 4 | first pair: all threads; second: nobody |
//! # Cost
//! A block: 1 RMW, 1 load, 2 lines. 1 transfer where another thread came between.
//! # Progress
//! Wait-free where the CPU has an atomic add; blocks beyond `LARGE` lock-free. A preempted thread
//! stops nobody.
//! # Invariants
//! - I1: each successful addition to `finger` that ends at or before `units` is the only one of its
//!   range, because `finger` only grows while blocks are out but for I2.
//! - I2: units are given back only by whoever added them, or has the block, while `finger` is where
//!   they end, so that no block lies behind them.
//! - I3: `finger` does not wrap: each thread inside adds at most `LARGE` bytes beyond the end.
//! # Synchronization
//! | edge | release side | acquire side | publishes |
//! |---|---|---|---|
//! | E1 | the CAS that gives a last block back, or a part of it | the addition or CAS that takes the units, through those between | that their last owner has left |
//!
//! By I1 and atomicity ranges do not overlap. `reset` is exclusive.
//! # Errors and limits
//! A full arena returns [`AllocError`] and stays usable. Overshoot: while a refused addition stands,
//! smaller blocks that would fit are refused to others, and if more came behind it, it stays and the
//! units before it are lost until the reset; `used` says `capacity` then. More than 2¹⁵ threads
//! inside at once could wrap `finger`. Runs no `Drop`. Backings that move with the arena are refused
//! when the program is compiled.
//! # References
//! none; the folklore of parsers and compilers that share an arena.

use core::alloc::Layout;
use core::fmt;
use core::ptr::{self, NonNull};

use crossbeam_utils::CachePadded;

use super::backing::Backing;
use super::contract::{AllocError, Arena, Frees, Full, Map, Properties};
use super::hot::{HotField, HotFields, Role};
use super::map_error::MapError;
use super::placement::Placement;
use super::request::Request;
use super::sync::atomic::{AtomicUsize, Ordering};

/// Bytes of a unit: what blocks are rounded to, and aligned to at least.
const UNIT: usize = 16;

/// Bytes from which on a block is not taken by an addition (I3).
const LARGE: usize = 1 << (usize::BITS - 16);

/// Cuts blocks from one region for many threads; runs no destructors.
///
/// ```
/// use alloc_arena::AtomicBump;
/// use core::mem::MaybeUninit;
/// let mut memory = [MaybeUninit::<u8>::uninit(); 1024];
/// let arena = AtomicBump::over(&mut memory);
/// std::thread::scope(|scope| {
///     for id in 0..4_u64 {
///         let arena = &arena;
///         scope.spawn(move || assert_eq!(arena.try_alloc(id), Ok(&mut { id })));
///     }
/// });
/// assert_eq!(arena.used(), 64);
/// ```
///
/// A value that is bound to its thread stays with it, because the reference to it does:
///
/// ```compile_fail,E0277
/// let arena = alloc_arena::AtomicBump::new(alloc_arena::Slice::new(&mut []));
/// let value = arena.try_alloc(core::cell::Cell::new(1)).unwrap();
/// let shared: &core::cell::Cell<u8> = value;
/// std::thread::scope(|scope| scope.spawn(|| shared.set(2)));
/// ```
#[repr(C)]
pub struct AtomicBump<B> {
    finger: CachePadded<AtomicUsize>,
    start: NonNull<u8>,
    /// Bytes from `start` that are handed out: whole units.
    length: usize,
    backing: B,
}

// SAFETY: the region is the backing's, which may be sent, wherever that stands.
unsafe impl<B: Send> Send for AtomicBump<B> {}
// SAFETY: threads take apart ranges of the region (I1); the backing is only looked at.
unsafe impl<B: Sync> Sync for AtomicBump<B> {}

impl<'memory> AtomicBump<super::slice::Slice<'memory>> {
    /// Makes an empty arena over memory that the caller lends.
    pub fn over(memory: &'memory mut [core::mem::MaybeUninit<u8>]) -> Self {
        Self::new(super::slice::Slice::new(memory))
    }
}

impl<B: Backing> AtomicBump<B> {
    const STAYS: () = assert!(B::STAYS, "blocks of other threads must not move with the arena");

    /// Makes an empty arena over `backing`.
    pub fn new(backing: B) -> Self {
        let () = Self::STAYS;
        let region = backing.region();
        let lead = (region.addr().get().wrapping_neg() % UNIT).min(region.len());
        // SAFETY: `lead` is not longer than the region.
        let start = unsafe { region.cast::<u8>().add(lead) };
        let length = (region.len() - lead) / UNIT * UNIT;
        Self { finger: CachePadded::new(AtomicUsize::new(0)), start, length, backing }
    }

    /// Takes `bytes`, whole units, off the region; their offset.
    #[inline]
    fn take(&self, bytes: usize) -> Result<usize, AllocError> {
        // ORDERING: Relaxed - a look, so that refusals neither write nor add up (I3).
        let seen = self.finger.load(Ordering::Relaxed);
        let Some(room) = self.length.checked_sub(bytes) else { return Err(AllocError) };
        if seen > room {
            return Err(AllocError);
        }
        if bytes >= LARGE {
            return self.take_large(bytes, room, seen);
        }
        // ORDERING: Acquire, E1 - atomicity makes the range ours alone (I1); a last owner has left.
        let offset = self.finger.fetch_add(bytes, Ordering::Acquire);
        if offset > room {
            self.give_back(offset, bytes);
            return Err(AllocError);
        }
        Ok(offset)
    }

    #[cold]
    fn take_large(&self, bytes: usize, room: usize, mut seen: usize) -> Result<usize, AllocError> {
        while seen <= room {
            let (old, new) = (seen, seen + bytes);
            // ORDERING: Acquire on success, E1 - as in `take`; Relaxed on failure - it looks again.
            match self.finger.compare_exchange(old, new, Ordering::Acquire, Ordering::Relaxed) {
                Ok(offset) => return Ok(offset),
                Err(newer) => seen = newer,
            }
        }
        Err(AllocError)
    }

    /// Gives the last units that were taken back, if they are the last still (I2).
    #[cold]
    fn give_back(&self, offset: usize, bytes: usize) -> bool {
        let (taken, given) = (offset + bytes, offset);
        // ORDERING: Relaxed on success and failure - nobody has read or written the bytes.
        self.finger.compare_exchange(taken, given, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Moves the end of the last block, in place: from `old` bytes to `new`, 0 to give it back.
    /// `false`, and nothing was done, if it is not the last or there is no room.
    ///
    /// # Safety
    /// `block` was cut for `old` bytes by this arena; bytes beyond `new` are not used any more.
    #[cfg(feature = "allocator-api2")]
    pub(crate) unsafe fn resize_last(&self, block: NonNull<u8>, old: usize, new: usize) -> bool {
        if old == 0 {
            return false;
        }
        let offset = block.addr().get() - self.start.addr().get();
        let Some(end) = offset.checked_add(new).and_then(|end| end.checked_next_multiple_of(UNIT))
        else {
            return false;
        };
        let before = (offset + old).next_multiple_of(UNIT);
        // ORDERING: AcqRel on success - Release, E1, hands bytes that are given back to their next
        // owner; Acquire, E1, takes those that the block grows by. Relaxed on failure - nothing is
        // done.
        let moved = || {
            self.finger.compare_exchange(before, end, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        };
        end <= self.length && moved()
    }

    /// Bytes that a block of `layout` takes; `None` if no region is as long.
    #[inline(always)]
    fn taken_by(layout: Layout) -> Option<usize> {
        let slack = layout.align().saturating_sub(UNIT);
        // The size of a layout rounded up to its alignment fits `isize`; so does that to a unit.
        layout.size().checked_add(slack + UNIT - 1).map(|bytes| bytes & !(UNIT - 1))
    }

    /// Hands out a block for `layout`; its bytes are not initialised. It is the caller's until
    /// the arena is reset, or dropped. No bytes cost nothing and always succeed.
    ///
    /// # Errors
    /// [`AllocError`] when the rest of the region is too small.
    #[inline]
    pub fn try_alloc_layout(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        let block = self.cut(layout)?;
        Ok(NonNull::slice_from_raw_parts(block, layout.size()))
    }

    #[inline]
    fn cut(&self, layout: Layout) -> Result<NonNull<u8>, AllocError> {
        if layout.size() == 0 {
            return NonNull::new(ptr::without_provenance_mut(layout.align())).ok_or(AllocError);
        }
        let offset = self.take(Self::taken_by(layout).ok_or(AllocError)?)?;
        // SAFETY: by I1 the offset is inside the region.
        let block = unsafe { self.start.add(offset) };
        let lead = block.addr().get().wrapping_neg() & (layout.align() - 1);
        // SAFETY: units were taken for as much: both addresses are multiples of a unit.
        Ok(unsafe { block.add(lead) })
    }

    /// Moves `value` into the arena, where it is never dropped.
    ///
    /// # Errors
    /// [`Full`] hands the value back when the rest of the region is too small.
    #[expect(clippy::mut_from_ref, reason = "each call returns a block of its own (I1)")]
    #[inline]
    pub fn try_alloc<T>(&self, value: T) -> Result<&mut T, Full<T>> {
        let Ok(block) = self.cut(Layout::new::<T>()) else { return Err(Full(value)) };
        let block = block.cast::<T>();
        // SAFETY: aligned, and by I1 nobody else's; for a type of no bytes any aligned address.
        unsafe { block.write(value) };
        // SAFETY: written above; no other reference covers it, and while it is alive it borrows the
        // arena, which is neither reset nor dropped.
        Ok(unsafe { &mut *block.as_ptr() })
    }

    /// Takes every block back. Runs no destructors.
    pub fn reset(&mut self) {
        *self.finger = AtomicUsize::new(0);
    }

    /// Bytes of the region, whole units.
    pub fn capacity(&self) -> usize {
        self.length
    }

    /// Bytes handed out, with what rounding and alignment cost; may be stale while others allocate,
    /// and is not less than what was handed out before the call.
    pub fn used(&self) -> usize {
        // ORDERING: Relaxed - a racy look.
        self.finger.load(Ordering::Relaxed).min(self.length)
    }

    /// Reports where the region lies now.
    pub fn placement(&self) -> Placement {
        self.backing.placement()
    }

    /// Returns what the arena stands on.
    pub fn backing(&self) -> &B {
        &self.backing
    }
}

impl<B: Backing> HotFields for AtomicBump<B> {
    const ALIGNMENT: usize = align_of::<CachePadded<u8>>();
    const ALONE: bool = true;

    /// The blocks are the owner's until it lends them; the arena does not know to whom.
    fn hot_fields(&self, visit: &mut dyn FnMut(HotField)) {
        let Self { finger, start, length, backing } = self;
        let threads = Role::Many("threads");
        visit(HotField::of("finger", &**finger).written_by(threads).padded_in(finger));
        visit(HotField::of("start", start).read_by(threads));
        visit(HotField::of("length", length).read_by(threads));
        visit(HotField::between(length, backing));
        visit(HotField::of("backing", backing));
        visit(HotField::rest(self, backing));
        visit(HotField::at("region", start.addr().get(), *length).written_by(threads));
    }
}

// SAFETY: blocks are aligned and inside the region, apart from one another by I1, and the backing's
// promise makes their bytes the arena's own; `finger` is atomic, so threads may share the arena.
unsafe impl<B: Backing> Arena for AtomicBump<B> {
    const PROPERTIES: Properties = Properties {
        memory: B::MEMORY,
        numa_bound: B::NUMA_BOUND,
        frees: Frees::Reset,
        thread_safe: true,
        runs_drop: false,
        most_bytes: B::MOST_BYTES,
    };

    #[inline]
    fn try_alloc_layout(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        self.try_alloc_layout(layout)
    }

    fn reset(&mut self) {
        self.reset();
    }

    unsafe fn reset_shared(&self) -> bool {
        // ORDERING: Relaxed - the caller relies on no block.
        self.finger.store(0, Ordering::Relaxed);
        true
    }

    fn capacity(&self) -> usize {
        self.capacity()
    }

    fn used(&self) -> usize {
        self.used()
    }

    fn placement(&self) -> Placement {
        self.placement()
    }
}

impl<B: Backing + Map> Map for AtomicBump<B> {
    fn map(bytes: usize, request: &Request) -> Result<Self, MapError> {
        let bytes = bytes.checked_next_multiple_of(UNIT).ok_or(MapError::LayoutOverflow)?;
        B::map(bytes, request).map(Self::new)
    }
}

impl<B: Backing> fmt::Debug for AtomicBump<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AtomicBump").field("used", &self.used()).finish_non_exhaustive()
    }
}
