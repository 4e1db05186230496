//! What a pool of blocks of one size promises: the contract of every `pool_*` row.
//!
//! A pool is shared; a thread works through a [`Handle`] of its own, in which the pool keeps what
//! belongs to the thread: nothing, a free list, a pair of magazines. Taking a handle is not part of
//! an operation. Blocks may be put through another handle than they were got through.

use core::alloc::Layout;
use core::ptr::NonNull;

use super::contract::{AllocError, Properties};
use super::placement::Placement;

/// Blocks of one size that threads get and put.
///
/// # Safety
/// An implementation guarantees of every block that a handle's [`try_get`](Handle::try_get)
/// returned, until it is put back or the pool is moved or dropped, that
/// - it is [`BLOCK`](Self::BLOCK)'s size long and aligned as that asks;
/// - its bytes may be read (once written) and written through the pointer;
/// - it is no block that another `get` has returned since it was last put, and overlaps no memory
///   that anybody else uses;
/// - whoever gets a block has synchronised with whoever put it.
///
/// A type whose [`Properties::thread_safe`] is `false` gives one handle at a time.
pub unsafe trait Pool: Send + Sync {
    /// What the pool is and is not.
    const PROPERTIES: Properties;

    /// Size and alignment of each block.
    const BLOCK: Layout;

    /// A thread's access to the pool.
    type Handle<'pool>: Handle + Send
    where
        Self: 'pool;

    /// Gives a thread its access; `None` if as many handles are alive as the pool serves.
    fn handle(&self) -> Option<Self::Handle<'_>>;

    /// Blocks of the pool, got and not.
    fn capacity(&self) -> usize;

    /// Blocks that a handle can get in a row while all are in the pool and there is no other
    /// handle; fewer than [`capacity`](Self::capacity) where blocks belong to owners.
    fn reach(&self) -> usize {
        self.capacity()
    }

    /// The number of the block that begins at `block`, below [`capacity`](Self::capacity); `None` if
    /// none of this pool's does.
    fn number_of(&self, block: NonNull<u8>) -> Option<usize>;

    /// Reports where the memory lies now, as [`Arena::placement`](crate::Arena::placement).
    fn placement(&self) -> Placement;
}

/// A thread's access to a [`Pool`]. What it keeps goes back to the pool when it is dropped.
pub trait Handle {
    /// Size and alignment of each block: the pool's.
    const BLOCK: Layout;

    /// Gets a block; its bytes are not initialised.
    ///
    /// # Errors
    /// [`AllocError`] when no block is within reach: all are got, or lie where other handles keep
    /// theirs.
    fn try_get(&self) -> Result<NonNull<u8>, AllocError>;

    /// Puts a block back.
    ///
    /// # Safety
    /// `block` was returned by a `try_get` of the same pool and has not been put since; nobody uses
    /// it any more. [`Checked`](crate::Checked) pools find out where that is not so.
    unsafe fn put(&self, block: NonNull<u8>);
}
