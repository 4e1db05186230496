//! Bump arena: blocks are cut from the top of one region; all come back at once.
//! # Algorithm
//! `finger` is the lowest address handed out so far, at first the region's end. A block is cut by
//! lowering `finger` by the size and rounding down to the alignment; if that passes the region's
//! start the arena is full and `finger` stays. `reset` puts `finger` back to the end. The finger
//! is kept relative to an origin: zero for backings that stay in place, the region's start for a
//! buffer inside the arena, so that it moves along. Blocks of no bytes get a made-up address.
//! # Why
//! Against `null` it adds a load, a comparison and a store; it is what an allocation costs at
//! least. Downwards, because rounding down needs one `and`, rounding up an addition that can
//! overflow. It removes all freeing and adds that nothing comes back early.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `Bump<Slice>` | 24 | 8 | 1 | its owner |
//! | `Bump<Heap>` | 40 | 8 | 1 | its owner |
//! | `Bump<Inline<65536>>` | 65664 | 64 | 1026 | its owner |
//! | `Bump<Mmap>`, `<Huge>`, `<Numa>`, `<FirstTouch>` | 56 | 8 | 1 | its owner |
//! # Cost
//! A block of constant layout: 2 loads, 1 store, 2 branches, no RMW, 1 line besides the block's.
//! # Progress
//! Wait-free; one thread at a time (`!Sync`).
//! # Invariants
//! - I1: start ≤ origin + `finger` ≤ end of the region.
//! - I2: blocks handed out since the last reset lie in [origin + `finger`, end) and do not overlap,
//!   because each is cut below all earlier ones.
//! - I3: a reference into the arena borrows it, so while one is alive the arena is neither reset
//!   nor moved nor dropped.
//! # Synchronization
//! none
//! # Errors and limits
//! A full arena returns the value ([`Full`]) or [`AllocError`] and stays as it is. **`Drop` is not
//! run** for values in the arena: what they own leaks on `reset` and when the arena is dropped.
//! # References
//! D. R. Hanson, "Fast Allocation and Deallocation of Memory Based on Object Lifetimes", Software:
//! Practice and Experience 20(1), 1990. Differs from the paper in: one region, no chunks;
//! downwards.

use core::alloc::Layout;
use core::cell::Cell;
use core::mem::MaybeUninit;
use core::ptr::{self, NonNull};

use super::backing::Backing;
use super::contract::{AllocError, Arena, Frees, Full, Map, Properties};
use super::hot::{HotField, HotFields, Role};
use super::map_error::MapError;
use super::placement::Placement;
use super::request::Request;
use super::slice::Slice;

/// Returns the highest address that is aligned for `layout`, not below `start`, and has the
/// layout's size free between itself and `finger`; `None` when there is none.
///
/// Pure arithmetic on addresses: no combination of arguments overflows or panics.
///
/// ```
/// use core::alloc::Layout;
/// assert_eq!(alloc_arena::bump(100, 200, Layout::new::<u64>()), Some(192));
/// assert_eq!(alloc_arena::bump(100, 105, Layout::new::<u64>()), None);
/// ```
#[inline]
pub const fn bump(start: usize, finger: usize, layout: Layout) -> Option<usize> {
    let Some(lowered) = finger.checked_sub(layout.size()) else { return None };
    let block = lowered & !(layout.align() - 1);
    if block < start { None } else { Some(block) }
}

/// Cuts blocks from the top of the region of `B`; runs no destructors.
///
/// ```
/// use core::mem::MaybeUninit;
/// let mut memory = [MaybeUninit::<u8>::uninit(); 256];
/// let mut arena = alloc_arena::Bump::over(&mut memory);
/// let seven = arena.try_alloc(7_u64)?;
/// let text = arena.try_alloc_slice_copy(b"text").expect("room for four bytes");
/// *seven += 1;
/// assert_eq!((*seven, &*text), (8, &b"text"[..]));
/// arena.reset();
/// assert_eq!(arena.used(), 0);
/// # Ok::<(), alloc_arena::Full<u64>>(())
/// ```
///
/// A reference cannot outlive its arena,
///
/// ```compile_fail,E0597
/// # use core::mem::MaybeUninit;
/// let mut memory = [MaybeUninit::<u8>::uninit(); 256];
/// let seven = {
///     let arena = alloc_arena::Bump::over(&mut memory);
///     arena.try_alloc(7_u64).unwrap()
/// };
/// assert_eq!(*seven, 7);
/// ```
///
/// nor survive a reset,
///
/// ```compile_fail,E0502
/// # use core::mem::MaybeUninit;
/// let mut memory = [MaybeUninit::<u8>::uninit(); 256];
/// let mut arena = alloc_arena::Bump::over(&mut memory);
/// let seven = arena.try_alloc(7_u64).unwrap();
/// arena.reset();
/// assert_eq!(*seven, 7);
/// ```
///
/// nor does a value outlive what it borrows,
///
/// ```compile_fail,E0597
/// # use core::mem::MaybeUninit;
/// let mut memory = [MaybeUninit::<u8>::uninit(); 256];
/// let arena = alloc_arena::Bump::over(&mut memory);
/// let kept = {
///     let short = 7_u64;
///     arena.try_alloc(&short).unwrap()
/// };
/// assert_eq!(**kept, 7);
/// ```
///
/// and an arena is not shared between threads:
///
/// ```compile_fail,E0277
/// fn shared<T: Sync>() {}
/// shared::<alloc_arena::Bump<alloc_arena::Inline<64>>>();
/// ```
#[derive(Debug)]
pub struct Bump<B> {
    finger: Cell<usize>,
    backing: B,
}

impl<'memory> Bump<Slice<'memory>> {
    /// Makes an empty arena over memory that the caller lends.
    pub fn over(memory: &'memory mut [MaybeUninit<u8>]) -> Self {
        Self::new(Slice::new(memory))
    }
}

impl<B: Backing> Bump<B> {
    /// Makes an empty arena over `backing`.
    pub fn new(backing: B) -> Self {
        let arena = Self { finger: Cell::new(0), backing };
        arena.raise();
        arena
    }

    /// What `finger` is relative to.
    #[inline(always)]
    fn origin(&self) -> usize {
        if B::STAYS { 0 } else { self.backing.region().addr().get() }
    }

    fn end(&self) -> usize {
        let region = self.backing.region();
        region.addr().get() + region.len()
    }

    fn raise(&self) {
        self.finger.set(self.end() - self.origin());
    }

    /// Cuts a block; aligned, and for a layout of some bytes inside the region.
    #[inline]
    fn cut(&self, layout: Layout) -> Result<NonNull<u8>, AllocError> {
        if layout.size() == 0 {
            return NonNull::new(ptr::without_provenance_mut(layout.align())).ok_or(AllocError);
        }
        let start = self.backing.region().cast::<u8>();
        let origin = self.origin();
        // By I1 the sum is an address of the region or its end.
        let finger = origin.wrapping_add(self.finger.get());
        let block = bump(start.addr().get(), finger, layout).ok_or(AllocError)?;
        self.finger.set(block.wrapping_sub(origin));
        // SAFETY: `block` is not below `start`, which is not null.
        Ok(unsafe { NonNull::new_unchecked(start.as_ptr().with_addr(block)) })
    }

    /// Whether `block` was cut after all others that are out. It has some bytes.
    #[cfg(feature = "allocator-api2")]
    fn is_last(&self, block: NonNull<u8>) -> bool {
        block.addr().get() == self.origin().wrapping_add(self.finger.get())
    }

    /// Takes the last block back; others stay out.
    ///
    /// # Safety
    /// `block` was cut for `layout` by this arena and is not used any more.
    #[cfg(feature = "allocator-api2")]
    pub(crate) unsafe fn give_back_last(&self, block: NonNull<u8>, layout: Layout) {
        if layout.size() > 0 && self.is_last(block) {
            // By I2 the next block starts there, or behind what alignment cost.
            self.finger.set(self.finger.get() + layout.size());
        }
    }

    /// Cuts the last block anew for another layout and moves the contents, which may overlap; `None`,
    /// and nothing was done, if it is not the last or there is no room.
    ///
    /// # Safety
    /// `block` was cut for the first layout by this arena, and is not used any more if that worked.
    #[cfg(feature = "allocator-api2")]
    pub(crate) unsafe fn recut_last(
        &self,
        block: NonNull<u8>,
        [old, new]: [Layout; 2],
    ) -> Option<NonNull<u8>> {
        if old.size() == 0 || new.size() == 0 || !self.is_last(block) {
            return None;
        }
        let (start, origin) = (self.backing.region().cast::<u8>(), self.origin());
        // A block that shrinks stays within itself.
        let lowest = if new.size() < old.size() { block } else { start };
        let room = bump(lowest.addr().get(), block.addr().get() + old.size(), new)?;
        self.finger.set(room.wrapping_sub(origin));
        // SAFETY: `room` is not below the region's start, which is not null.
        let room = unsafe { NonNull::new_unchecked(start.as_ptr().with_addr(room)) };
        // SAFETY: both are as long and the arena's; all bytes between belonged to the block or to
        // nobody (I2).
        unsafe { block.copy_to(room, old.size().min(new.size())) };
        Some(room)
    }

    /// Hands out a block for `layout`; its bytes are not initialised. It is the caller's until
    /// the arena is reset, moved or dropped. No bytes cost nothing and always succeed.
    ///
    /// # Errors
    /// [`AllocError`] when the rest of the region is too small.
    #[inline]
    pub fn try_alloc_layout(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        let block = self.cut(layout)?;
        Ok(NonNull::slice_from_raw_parts(block, layout.size()))
    }

    /// Moves `value` into the arena, where it is never dropped.
    ///
    /// # Errors
    /// [`Full`] hands the value back when the rest of the region is too small.
    #[expect(clippy::mut_from_ref, reason = "each call returns a block of its own (I2)")]
    #[inline]
    pub fn try_alloc<T>(&self, value: T) -> Result<&mut T, Full<T>> {
        let Ok(block) = self.cut(Layout::new::<T>()) else { return Err(Full(value)) };
        let block = block.cast::<T>();
        // SAFETY: aligned, and by I2 nobody else's; for a type of no bytes any aligned address.
        unsafe { block.write(value) };
        // SAFETY: written above; by I2 no other reference covers it, by I3 it stays.
        Ok(unsafe { &mut *block.as_ptr() })
    }

    /// Copies `values` into the arena.
    ///
    /// # Errors
    /// [`AllocError`] when the rest of the region is too small.
    #[expect(clippy::mut_from_ref, reason = "each call returns a block of its own (I2)")]
    #[inline]
    pub fn try_alloc_slice_copy<T: Copy>(&self, values: &[T]) -> Result<&mut [T], AllocError> {
        let block = self.cut(Layout::for_value(values))?.cast::<T>();
        // SAFETY: the block is aligned, as long as `values` and by I2 apart from it: `values` was
        // there before the block was cut.
        unsafe { ptr::copy_nonoverlapping(values.as_ptr(), block.as_ptr(), values.len()) };
        let slice = NonNull::slice_from_raw_parts(block, values.len());
        // SAFETY: written above; by I2 no other reference covers it, by I3 it stays.
        Ok(unsafe { &mut *slice.as_ptr() })
    }

    /// Runs `f` over an arena made of all that is left, and takes back what it handed out when `f`
    /// returns or panics. References into this arena stay valid; meanwhile it is full.
    ///
    /// Costs two stores at each end and nothing for each block. Scopes may be nested.
    ///
    /// ```
    /// # use core::mem::MaybeUninit;
    /// let mut memory = [MaybeUninit::<u8>::uninit(); 256];
    /// let arena = alloc_arena::Bump::over(&mut memory);
    /// let kept = arena.try_alloc(7_u64)?;
    /// let used = arena.used();
    /// let sum = arena.scope(|inner| {
    ///     let scratch = inner.try_alloc_slice_copy(&[1_u64, 2, 3]).unwrap();
    ///     assert!(arena.try_alloc(1_u8).is_err(), "all that is left is lent");
    ///     scratch.iter().sum::<u64>() + *kept
    /// });
    /// assert_eq!((sum, arena.used()), (13, used));
    /// # Ok::<(), alloc_arena::Full<u64>>(())
    /// ```
    ///
    /// Nothing escapes:
    ///
    /// ```compile_fail
    /// # use core::mem::MaybeUninit;
    /// let mut memory = [MaybeUninit::<u8>::uninit(); 256];
    /// let arena = alloc_arena::Bump::over(&mut memory);
    /// let escaped = arena.scope(|inner| inner.try_alloc(7_u64).unwrap());
    /// ```
    pub fn scope<R>(&self, f: impl FnOnce(&mut Bump<Slice<'_>>) -> R) -> R {
        /// Gives the lent bytes back, also when `f` panics.
        struct Lent<'arena>(&'arena Cell<usize>, usize);
        impl Drop for Lent<'_> {
            fn drop(&mut self) {
                self.0.set(self.1);
            }
        }
        let start = self.backing.region().cast::<MaybeUninit<u8>>();
        let lent = Lent(&self.finger, self.finger.get());
        let left = self.origin().wrapping_add(lent.1) - start.addr().get();
        // The finger at the start: no byte is left until the drop of `lent`.
        self.finger.set(start.addr().get().wrapping_sub(self.origin()));
        let rest = NonNull::slice_from_raw_parts(start, left);
        // SAFETY: by I1 the bytes are the region's, by I2 no block that was handed out covers one of
        // them, and none is handed out until `lent` is dropped, after the inner arena.
        let rest = unsafe { &mut *rest.as_ptr() };
        f(&mut Bump::over(rest))
    }

    /// Takes every block back. Runs no destructors.
    pub fn reset(&mut self) {
        self.raise();
    }

    /// Bytes of the region.
    pub fn capacity(&self) -> usize {
        self.backing.region().len()
    }

    /// Bytes handed out, with what alignment cost.
    pub fn used(&self) -> usize {
        self.end() - self.origin() - self.finger.get()
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

impl<B: Backing> HotFields for Bump<B> {
    const ALIGNMENT: usize = align_of::<Self>();
    const ALONE: bool = false;

    /// The blocks are the owner's until it lends them; the arena does not know to whom.
    fn hot_fields(&self, visit: &mut dyn FnMut(HotField)) {
        const OWNER: Role = Role::One("owner");
        let Self { finger, backing } = self;
        visit(HotField::of("finger", finger).written_by(OWNER).padded_in(self));
        visit(HotField::of("backing", backing).read_by(OWNER));
        let region = backing.region();
        let region = HotField::at("region", region.addr().get(), region.len());
        visit(region.written_by(OWNER));
    }
}

// SAFETY: blocks are aligned and inside the region by `bump`, apart from one another by I2, and
// the backing's promise makes their bytes the arena's own.
unsafe impl<B: Backing> Arena for Bump<B> {
    const PROPERTIES: Properties = Properties {
        memory: B::MEMORY,
        numa_bound: B::NUMA_BOUND,
        frees: Frees::Reset,
        thread_safe: false,
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

impl<B: Backing + Map> Map for Bump<B> {
    fn map(bytes: usize, request: &Request) -> Result<Self, MapError> {
        B::map(bytes, request).map(Self::new)
    }
}
