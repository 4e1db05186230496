//! Inline buffer: a backing that carries its memory inside itself.
//! # Algorithm
//! An array of `N` bytes behind an `UnsafeCell`; the region is the front `length` bytes of it.
//! # Why
//! Against a borrowed slice it needs no lifetime and no pointer to follow, and can be made from a
//! size; it adds that moving the arena copies the buffer.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `Inline<N>` | N + 24, rounded up to 64 | 64 | N / 64 + 1 | blocks: their owners; the rest: nobody |
//! # Cost
//! Making one: no byte of the buffer is written. The region: an address computation.
//! # Progress
//! Wait-free.
//! # Invariants
//! - I1: `length` ≤ `N`.
//! # Synchronization
//! none
//! # Errors and limits
//! At most `N` bytes ([`MapError::TooLarge`]). A large `N` on a small stack overflows it. A moved
//! buffer keeps its contents but not its alignment beyond 64; references cannot see that, since
//! they forbid the move.
//! # References
//! none

use core::mem::MaybeUninit;
use core::ptr::NonNull;

use super::backing::Backing;
use super::contract::{Map, Memory};
use super::map_error::MapError;
use super::placement::{Fallbacks, Placement};
use super::request::Request;
use super::sync::cell::UnsafeCell;
use super::sync::const_fn;

/// A buffer of `N` bytes inside the arena.
///
/// ```
/// use alloc_arena::{Bump, Inline, Map, MapError, Request};
/// let arena = Bump::<Inline<4096>>::map(1000, &Request::new())?;
/// assert_eq!(arena.try_alloc(1.5), Ok(&mut 1.5));
/// let too_large = Bump::<Inline<4096>>::map(5000, &Request::new());
/// assert_eq!(too_large.err(), Some(MapError::TooLarge { most_bytes: 4096 }));
/// # Ok::<(), MapError>(())
/// ```
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Inline<const N: usize> {
    bytes: UnsafeCell<[MaybeUninit<u8>; N]>,
    length: usize,
    request: Request,
}

impl<const N: usize> Inline<N> {
    const_fn! {
        /// Makes a buffer of which all `N` bytes are used.
        pub fn new() -> Self {
            Self {
                bytes: UnsafeCell::new([MaybeUninit::uninit(); N]),
                length: N,
                request: Request::new(),
            }
        }
    }

    /// Address of the first byte. The cell is transparent, so its address is the array's; going
    /// through a reference to it keeps the right to write.
    #[inline(always)]
    pub(crate) fn start(&self) -> NonNull<u8> {
        NonNull::from(&self.bytes).cast()
    }

    fn fallbacks(&self) -> Fallbacks {
        // `map` refused what would be an error here.
        self.request.settle_without_kernel().unwrap_or_default()
    }
}

impl<const N: usize> Default for Inline<N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const N: usize> Map for Inline<N> {
    fn map(bytes: usize, request: &Request) -> Result<Self, MapError> {
        if bytes == 0 {
            return Err(MapError::Zero);
        }
        if bytes > N {
            return Err(MapError::TooLarge { most_bytes: N });
        }
        request.settle_without_kernel()?;
        Ok(Self { length: bytes, request: *request, ..Self::new() })
    }
}

// SAFETY: the bytes are inside the backing, whose owner owns them; the cell lets them be written
// while the backing is borrowed; by I1 the region is within the array.
unsafe impl<const N: usize> Backing for Inline<N> {
    const STAYS: bool = false;
    const MEMORY: Memory = Memory::Inside;
    const NUMA_BOUND: bool = false;
    const MOST_BYTES: Option<usize> = Some(N);

    #[inline(always)]
    fn region(&self) -> NonNull<[u8]> {
        NonNull::slice_from_raw_parts(self.start(), self.length)
    }

    fn placement(&self) -> Placement {
        Placement::of_region(self.region(), None, &self.request, self.fallbacks())
    }
}
