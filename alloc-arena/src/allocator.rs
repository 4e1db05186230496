//! Arenas and pools under collections: the traits of crate `allocator-api2` (feature
//! `allocator-api2`), which `Vec`, `Box` and others of that crate take.
//!
//! | allocator | deallocate | grow | shrink |
//! |---|---|---|---|
//! | `&Bump<B>` | gives the last block back | the last block reaches down, contents move along | the last block's contents move up; others keep their bytes |
//! | `&AtomicBump<B>` | gives the last block back | the last block in place | in place; the last block gives units back |
//! | [`InPool`] | puts the block | in place up to the block's size, else an error | in place |
//!
//! "Last" is the block cut after all others that are still out. What is no longer last is lost to an
//! arena until its reset, so a collection that grows beside others leaves its old blocks behind.

use core::alloc::Layout;
use core::fmt;
use core::ptr::NonNull;

use allocator_api2::alloc::{AllocError, Allocator};

use crate::backing::Backing;
use crate::bump::Bump;
use crate::bump_atomic::AtomicBump;
use crate::pool::Handle;

fn no_block(_: crate::AllocError) -> AllocError {
    AllocError
}

/// Allocates a block for `new`, copies the `bytes` first bytes of `block`, and gives that back.
///
/// # Safety
/// As for `Allocator::grow` and `shrink`; `bytes` is the smaller size.
unsafe fn move_elsewhere<A: Allocator>(
    allocator: &A,
    block: NonNull<u8>,
    [old, new]: [Layout; 2],
) -> Result<NonNull<[u8]>, AllocError> {
    let room = allocator.allocate(new)?;
    let bytes = old.size().min(new.size());
    // SAFETY: both are as long; the new block overlaps no block that is out.
    unsafe { block.copy_to_nonoverlapping(room.cast(), bytes) };
    // SAFETY: the caller's block, not used any more.
    unsafe { allocator.deallocate(block, old) };
    Ok(room)
}

fn is_aligned(block: NonNull<u8>, layout: Layout) -> bool {
    block.addr().get() & (layout.align() - 1) == 0
}

// SAFETY: blocks are apart, aligned and whole by I1 and I2 of the arena, in place while it is
// borrowed, as each copy of the reference does; a reference is as good as its copy.
unsafe impl<B: Backing> Allocator for &Bump<B> {
    #[inline]
    fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        self.try_alloc_layout(layout).map_err(no_block)
    }

    #[inline]
    unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller's duty.
        unsafe { self.give_back_last(block, layout) };
    }

    unsafe fn grow(
        &self,
        block: NonNull<u8>,
        old: Layout,
        new: Layout,
    ) -> Result<NonNull<[u8]>, AllocError> {
        // SAFETY: the caller's duty.
        match unsafe { self.recut_last(block, [old, new]) } {
            Some(room) => Ok(NonNull::slice_from_raw_parts(room, new.size())),
            // SAFETY: the caller's duty.
            None => unsafe { move_elsewhere(self, block, [old, new]) },
        }
    }

    unsafe fn shrink(
        &self,
        block: NonNull<u8>,
        old: Layout,
        new: Layout,
    ) -> Result<NonNull<[u8]>, AllocError> {
        // SAFETY: the caller's duty.
        match unsafe { self.recut_last(block, [old, new]) } {
            Some(room) => Ok(NonNull::slice_from_raw_parts(room, new.size())),
            None if is_aligned(block, new) => Ok(NonNull::slice_from_raw_parts(block, new.size())),
            // SAFETY: the caller's duty.
            None => unsafe { move_elsewhere(self, block, [old, new]) },
        }
    }
}

// SAFETY: blocks are apart, aligned and whole by I1 of the arena, in place while it is borrowed, as
// each copy of the reference does; a reference is as good as its copy.
unsafe impl<B: Backing> Allocator for &AtomicBump<B> {
    #[inline]
    fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        self.try_alloc_layout(layout).map_err(no_block)
    }

    #[inline]
    unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller's duty.
        unsafe { self.resize_last(block, layout.size(), 0) };
    }

    unsafe fn grow(
        &self,
        block: NonNull<u8>,
        old: Layout,
        new: Layout,
    ) -> Result<NonNull<[u8]>, AllocError> {
        // SAFETY: the caller's duty.
        if is_aligned(block, new) && unsafe { self.resize_last(block, old.size(), new.size()) } {
            return Ok(NonNull::slice_from_raw_parts(block, new.size()));
        }
        // SAFETY: the caller's duty.
        unsafe { move_elsewhere(self, block, [old, new]) }
    }

    unsafe fn shrink(
        &self,
        block: NonNull<u8>,
        old: Layout,
        new: Layout,
    ) -> Result<NonNull<[u8]>, AllocError> {
        if !is_aligned(block, new) {
            // SAFETY: the caller's duty.
            return unsafe { move_elsewhere(self, block, [old, new]) };
        }
        // SAFETY: the caller's duty.
        unsafe { self.resize_last(block, old.size(), new.size()) };
        Ok(NonNull::slice_from_raw_parts(block, new.size()))
    }
}

/// A pool's handle as an allocator of whatever fits a block.
///
/// ```
/// use alloc_arena::{FreeListPool, InPool, Pool, Slice};
/// use allocator_api2::boxed::Box;
/// let mut memory = [core::mem::MaybeUninit::uninit(); 1024];
/// let pool = FreeListPool::<_, 64>::new(Slice::new(&mut memory));
/// let owner = pool.handle().unwrap();
/// let boxed = Box::new_in([1_u64, 2, 3], InPool(&owner));
/// assert_eq!(boxed.iter().sum::<u64>(), 6);
/// assert!(Box::try_new_in([0_u64; 9], InPool(&owner)).is_err(), "larger than a block");
/// ```
pub struct InPool<'handle, H>(pub &'handle H);

impl<H> Clone for InPool<'_, H> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<H> Copy for InPool<'_, H> {}

impl<H> fmt::Debug for InPool<'_, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InPool").finish_non_exhaustive()
    }
}

/// The whole block, if it is enough for `layout`.
fn whole<H: Handle>(block: NonNull<u8>, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
    let fits = layout.size() <= H::BLOCK.size() && layout.align() <= H::BLOCK.align();
    fits.then(|| NonNull::slice_from_raw_parts(block, H::BLOCK.size())).ok_or(AllocError)
}

// SAFETY: blocks are apart, aligned and whole by the contract of `Pool`, in place while the pool is
// borrowed by its handle; a reference is as good as its copy.
unsafe impl<H: Handle> Allocator for InPool<'_, H> {
    #[inline]
    fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        // Before a block is got.
        whole::<H>(NonNull::dangling(), layout)?;
        self.0.try_get().map_err(no_block).and_then(|block| whole::<H>(block, layout))
    }

    #[inline]
    unsafe fn deallocate(&self, block: NonNull<u8>, _layout: Layout) {
        // SAFETY: the caller's duty: allocated here, not used any more.
        unsafe { self.0.put(block) };
    }

    unsafe fn grow(
        &self,
        block: NonNull<u8>,
        _old: Layout,
        new: Layout,
    ) -> Result<NonNull<[u8]>, AllocError> {
        whole::<H>(block, new)
    }

    unsafe fn grow_zeroed(
        &self,
        block: NonNull<u8>,
        old: Layout,
        new: Layout,
    ) -> Result<NonNull<[u8]>, AllocError> {
        let whole = whole::<H>(block, new)?;
        // SAFETY: inside the block.
        let rest = unsafe { block.add(old.size()) };
        // SAFETY: as above; nobody else uses it.
        unsafe { rest.write_bytes(0, H::BLOCK.size() - old.size()) };
        Ok(whole)
    }

    unsafe fn shrink(
        &self,
        block: NonNull<u8>,
        _old: Layout,
        new: Layout,
    ) -> Result<NonNull<[u8]>, AllocError> {
        whole::<H>(block, new)
    }
}
