//! Anonymous mapping: a backing of pages of its own, all present before the first use.
//! # Algorithm
//! Maps whole pages with a closed page on either side, and has the kernel make every page present
//! (`MADV_POPULATE_WRITE`, or a write to each page on kernels before 5.14).
//! # Why
//! Against `Heap` it removes page faults from the first pass over the memory, and gives a region
//! whose pages can be counted; it adds the mapping, and rounding to pages.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `Mmap` | 48 | 8 | 1 | nobody after construction |
//! # Cost
//! Making one: `mmap`, 2 `mprotect`, `madvise`, a page fault's work a page. The region: one load.
//! # Progress
//! Wait-free after construction; no page faults unless pages are swapped out.
//! # Invariants
//! - I1: the region is whole pages of a mapping that nobody else knows.
//! # Synchronization
//! none
//! # Errors and limits
//! Does not bind: a wish for a node is [`MapError::Unsupported`] or a note. Pages lie where the
//! policy of the thread that maps puts them. Three kernel mappings each, so at most about 20,000
//! at the usual `vm.max_map_count`.
//! # References
//! Linux manual pages mmap(2), madvise(2).

use core::ptr::NonNull;

use super::backing::Backing;
use super::contract::{Map, Memory};
use super::map_error::MapError;
use super::mapping::{Mapping, Plan};
use super::placement::Placement;
use super::request::Request;

const PLAN: Plan = Plan { huge: false, bind: false, populate: true };

/// Pages of the process, all present.
///
/// ```
/// use alloc_arena::{Bump, Map, MapError, Mmap, Request};
/// match Bump::<Mmap>::map(1 << 20, &Request::new()) {
///     Ok(arena) => assert_eq!(arena.try_alloc(5), Ok(&mut 5)),
///     Err(error) => assert_eq!(error, MapError::Unsupported, "elsewhere than on Linux"),
/// }
/// ```
#[derive(Debug)]
pub struct Mmap(Mapping);

impl Map for Mmap {
    fn map(bytes: usize, request: &Request) -> Result<Self, MapError> {
        Mapping::new(PLAN, bytes, request).map(Self)
    }
}

// SAFETY: by I1 the pages are the backing's alone, wherever that stands; the mapping checked the
// length.
unsafe impl Backing for Mmap {
    const STAYS: bool = true;
    const MEMORY: Memory = Memory::Pages;
    const NUMA_BOUND: bool = PLAN.bind;

    #[inline(always)]
    fn region(&self) -> NonNull<[u8]> {
        self.0.region()
    }

    fn placement(&self) -> Placement {
        self.0.placement()
    }
}
