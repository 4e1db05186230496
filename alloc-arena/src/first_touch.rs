//! First touch: pages that lie where the first writer runs; a negative control.
//! # Algorithm
//! Maps whole pages and does nothing more: no policy, nothing populated.
//! # Why
//! Shows what is left to chance when an arena is mapped by one thread and used by another: the
//! first writer decides the node of each page, and pays a page fault for it. Nobody should use it
//! for memory that is meant for another node's threads.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `FirstTouch` | 48 | 8 | 1 | nobody after construction |
//! # Cost
//! Making one: `mmap`, 2 `mprotect`. The first write to each page: a page fault.
//! # Progress
//! The first write to each page enters the kernel and may wait for memory.
//! # Invariants
//! - I1: the region is whole pages of a mapping that nobody else knows.
//! # Synchronization
//! none
//! # Errors and limits
//! As `Mmap`; besides, lack of memory shows at the first touch, as a signal or the OOM killer.
//! Locked pages are locked when they are touched.
//! # References
//! none; the mistake is the field's own.

use core::ptr::NonNull;

use super::backing::Backing;
use super::contract::{Map, Memory};
use super::map_error::MapError;
use super::mapping::{Mapping, Plan};
use super::placement::Placement;
use super::request::Request;

const PLAN: Plan = Plan { huge: false, bind: false, populate: false };

/// Pages that nobody has touched yet.
///
/// ```
/// use alloc_arena::{Bump, FirstTouch, Map, MapError, Request};
/// match Bump::<FirstTouch>::map(1 << 20, &Request::new()) {
///     Ok(arena) => assert!(!arena.placement().verified(), "no page is present yet"),
///     Err(error) => assert_eq!(error, MapError::Unsupported, "elsewhere than on Linux"),
/// }
/// ```
#[derive(Debug)]
pub struct FirstTouch(Mapping);

impl Map for FirstTouch {
    fn map(bytes: usize, request: &Request) -> Result<Self, MapError> {
        Mapping::new(PLAN, bytes, request).map(Self)
    }
}

// SAFETY: by I1 the pages are the backing's alone, wherever that stands; the mapping checked the
// length.
unsafe impl Backing for FirstTouch {
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
