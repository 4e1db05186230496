//! Huge pages: a backing with fewer translations, from the pool, else transparent, else small.
//! # Algorithm
//! Asks for 2 MiB pages of the reserved pool (`MAP_HUGETLB`) and populates them; if the pool has
//! too few, for a region aligned and advised for transparent huge pages; if there are none, for
//! usual pages. Every step down is noted with its reason. A wish for a node is met as by `Numa`.
//! # Why
//! Against `Mmap` it removes TLB misses (512 pages share one translation on x86-64); it adds
//! rounding to 2 MiB, and memory that may be lacking.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `Huge` | 48 | 8 | 1 | nobody after construction |
//! # Cost
//! Making one: up to three attempts of `mmap` and `madvise`, and clearing the pages. The region:
//! one load.
//! # Progress
//! Wait-free after construction.
//! # Invariants
//! - I1: the region is whole pages of a mapping that nobody else knows; a mapping of huge pages
//!   has a length of whole huge pages, or the kernel would refuse to unmap it.
//! # Synchronization
//! none
//! # Errors and limits
//! [`Mode::Strict`](crate::Mode::Strict) accepts pages of the pool only
//! ([`MapError::NoHugePages`]). Pages that the pool promised and lacks (on the wished node, say)
//! would be a fatal signal on first touch; populating turns that into an error, and on kernels
//! before 5.14, which cannot, the pool is not used. Transparent coverage is a figure of the moment
//! ([`Placement::huge_bytes`]); the kernel may split huge pages later.
//! # References
//! Linux, Documentation/admin-guide/mm/hugetlbpage.rst and transhuge.rst.

use core::ptr::NonNull;

use super::backing::Backing;
use super::contract::{Map, Memory};
use super::map_error::MapError;
use super::mapping::{Mapping, Plan};
use super::placement::Placement;
use super::request::Request;

const PLAN: Plan = Plan { huge: true, bind: true, populate: true };

/// Huge pages, of the best kind that is granted.
///
/// ```
/// use alloc_arena::{Asked, Bump, Huge, Map, MapError, Request};
/// match Bump::<Huge>::map(4 << 20, &Request::new()) {
///     Ok(arena) => {
///         for (asked, because) in arena.placement().fallbacks.iter() {
///             println!("no {asked}: {because}");
///         }
///     }
///     Err(error) => assert_eq!(error, MapError::Unsupported, "elsewhere than on Linux"),
/// }
/// ```
#[derive(Debug)]
pub struct Huge(Mapping);

impl Map for Huge {
    fn map(bytes: usize, request: &Request) -> Result<Self, MapError> {
        Mapping::new(PLAN, bytes, request).map(Self)
    }
}

// SAFETY: by I1 the pages are the backing's alone, wherever that stands; the mapping checked the
// length.
unsafe impl Backing for Huge {
    const STAYS: bool = true;
    const MEMORY: Memory = Memory::HugePages;
    const NUMA_BOUND: bool = PLAN.bind;

    #[inline(always)]
    fn region(&self) -> NonNull<[u8]> {
        self.0.region()
    }

    fn placement(&self) -> Placement {
        self.0.placement()
    }
}
