//! Checked pool: any pool, and a refusal where a block is put that is not out.
//! # Algorithm
//! `out` has a bit a block: set by a get, cleared by a put. `try_put` looks whether the address is
//! that of a block, and whether its bit was set before it clears it.
//! # Why
//! A double free or a foreign pointer is found where it happens, instead of as the same block at two
//! owners later. It adds an RMW and a line to each operation: meant for tests, as a type, since a
//! feature would change the pool for every dependant.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `Checked<P>` | those of `P`, and 16 | that of `P` | as it falls | as `P` |
//! | `out` | 1 bit a block, on the heap | 8 | - | all threads |
//! # Cost
//! Operation: that of `P`, 1 RMW.
//! # Progress
//! That of `P`.
//! # Invariants
//! - I1: a block's bit is set from after its get until before its put.
//! # Synchronization
//! none of its own: a bit is changed by whoever has the block, which goes through the edges of `P`.
//! # Errors and limits
//! [`Refused`] says what is wrong with the block, which stays where it is. It finds a block that is
//! free, not one that is somebody else's: whoever puts a block that was put and got again takes it
//! from its new owner unseen. `put` panics where `try_put` refuses.
//! # References
//! none

use alloc::boxed::Box;
use core::alloc::Layout;
use core::error::Error;
use core::fmt;
use core::ptr::NonNull;

use crate::contract::{AllocError, Map, Properties};
use crate::map_error::MapError;
use crate::placement::Placement;
use crate::pool::{Handle, Pool};
use crate::request::Request;
use crate::sync::atomic::{AtomicUsize, Ordering};

/// Refuses blocks that are not out.
///
/// ```
/// use alloc_arena::{Checked, Handle, Heap, Map, Pool, Refused, Request, TreiberPool};
/// let pool = Checked::<TreiberPool<Heap, 64>>::map(4096, &Request::new())?;
/// let handle = pool.handle().unwrap();
/// let block = handle.try_get().unwrap();
/// // SAFETY: got here, and not used any more.
/// assert_eq!(unsafe { handle.try_put(block) }, Ok(()));
/// // SAFETY: it is refused.
/// assert_eq!(unsafe { handle.try_put(block) }, Err(Refused::Free));
/// # Ok::<(), alloc_arena::MapError>(())
/// ```
#[derive(Debug)]
pub struct Checked<P> {
    pool: P,
    out: Box<[AtomicUsize]>,
}

/// A thread's access to a [`Checked`] pool.
pub struct CheckedHandle<'pool, P: Pool + 'pool> {
    pool: &'pool Checked<P>,
    inner: P::Handle<'pool>,
}

/// Why a block was not taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refused {
    /// It is no address of a block of this pool.
    Foreign,
    /// It is in the pool: it was put before, or never got.
    Free,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Foreign => {
                "no block of this pool begins there; put each block back where it was got"
            }
            Self::Free => "the block is in the pool already; put each block back once",
        })
    }
}

impl Error for Refused {}

impl<P: Pool> Checked<P> {
    /// Checks the use of `pool`, all of whose blocks are free.
    ///
    /// # Errors
    /// [`MapError::OutOfMemory`] where there is no room for a bit a block.
    pub fn new(pool: P) -> Result<Self, MapError> {
        let words = (pool.capacity() + 1).div_ceil(usize::BITS as usize);
        let mut out = alloc::vec::Vec::new();
        out.try_reserve_exact(words).map_err(|_| MapError::OutOfMemory)?;
        out.extend((0..words).map(|_| AtomicUsize::new(0)));
        Ok(Self { pool, out: out.into_boxed_slice() })
    }

    /// Returns the pool.
    pub fn into_inner(self) -> P {
        self.pool
    }
}

impl<P: Pool> CheckedHandle<'_, P> {
    /// Puts a block back, unless it is not out.
    ///
    /// # Errors
    /// [`Refused`] says what is wrong; nothing was done.
    ///
    /// # Safety
    /// Nobody uses the block any more, if it is one.
    pub unsafe fn try_put(&self, block: NonNull<u8>) -> Result<(), Refused> {
        let number = self.pool.pool.number_of(block).ok_or(Refused::Foreign)?;
        let (word, bit) = self.pool.out(number);
        // ORDERING: Relaxed - the bit is changed by whoever has the block.
        if word.fetch_and(!bit, Ordering::Relaxed) & bit == 0 {
            return Err(Refused::Free);
        }
        // SAFETY: it was out, and is not used any more by the caller's duty.
        unsafe { self.inner.put(block) };
        Ok(())
    }
}

impl<P: Pool> Checked<P> {
    /// The word and the bit of a block.
    fn out(&self, number: usize) -> (&AtomicUsize, usize) {
        let bits = usize::BITS as usize;
        (&self.out[number / bits], 1 << (number % bits))
    }
}

impl<P: Pool> Handle for CheckedHandle<'_, P> {
    const BLOCK: Layout = P::BLOCK;

    fn try_get(&self) -> Result<NonNull<u8>, AllocError> {
        let block = self.inner.try_get()?;
        if let Some(number) = self.pool.pool.number_of(block) {
            let (word, bit) = self.pool.out(number);
            // ORDERING: Relaxed - as in `try_put`.
            let before = word.fetch_or(bit, Ordering::Relaxed);
            debug_assert_eq!(before & bit, 0, "the pool gave block {number} to two owners");
        }
        Ok(block)
    }

    /// Panics where the block is refused.
    #[track_caller]
    unsafe fn put(&self, block: NonNull<u8>) {
        // SAFETY: the caller's duty.
        if let Err(refused) = unsafe { self.try_put(block) } {
            panic!("{block:?}: {refused}");
        }
    }
}

// SAFETY: passes everything on to a pool that keeps the contract, or refuses.
unsafe impl<P: Pool> Pool for Checked<P> {
    const PROPERTIES: Properties = P::PROPERTIES;
    const BLOCK: Layout = P::BLOCK;
    type Handle<'pool>
        = CheckedHandle<'pool, P>
    where
        Self: 'pool;

    fn handle(&self) -> Option<CheckedHandle<'_, P>> {
        self.pool.handle().map(|inner| CheckedHandle { pool: self, inner })
    }

    fn capacity(&self) -> usize {
        self.pool.capacity()
    }

    fn reach(&self) -> usize {
        self.pool.reach()
    }

    fn number_of(&self, block: NonNull<u8>) -> Option<usize> {
        self.pool.number_of(block)
    }

    fn placement(&self) -> Placement {
        self.pool.placement()
    }
}

impl<P: Pool + Map> Map for Checked<P> {
    fn map(bytes: usize, request: &Request) -> Result<Self, MapError> {
        P::map(bytes, request).and_then(Self::new)
    }
}

impl<P: Pool> fmt::Debug for CheckedHandle<'_, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CheckedHandle").finish_non_exhaustive()
    }
}
