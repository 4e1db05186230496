//! NUMA-bound pages: a backing on the node that was asked for, or on all in turn, verified.
//! # Algorithm
//! Decides from sysfs and the process's cpuset whether the node can be asked for; maps; binds the
//! whole region in one call of `mbind` and reads the policy back; populates, so that every page is
//! allocated under that policy; and asks the kernel where each page lies (`move_pages` without
//! targets). Strict requests for a node bind (`MPOL_BIND`), advisory ones prefer
//! (`MPOL_PREFERRED`); `Place::Local` is the node of the thread that maps, as `getcpu` says;
//! `Place::Interleaved` takes every usable node in turn (`MPOL_INTERLEAVE`).
//! # Why
//! Against `Mmap` it removes remote memory accesses by threads on the node, whichever thread maps
//! or touches the memory; it adds the calls, and requests that can fail.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `Numa` | 48 | 8 | 1 | nobody after construction |
//! # Cost
//! Making one: as `Mmap`, and 1 `mbind`, 2 `get_mempolicy`; strict, one `move_pages` per 512
//! pages. The region: one load.
//! # Progress
//! Wait-free after construction.
//! # Invariants
//! - I1: the region is whole pages of a mapping that nobody else knows.
//! - I2: in [`Mode::Strict`](crate::Mode::Strict) a constructed backing had every page on the node
//!   when it was made; in the other modes a wish that was given up is noted.
//! # Synchronization
//! none
//! # Errors and limits
//! Never reports a binding that the kernel did not confirm: each refusal is a [`MapError`] or a
//! note, and [`Placement::verified`] is asked anew each time, because cpusets, `migratepages` and
//! swapping move pages. One policy for the whole region: a policy for each block would split the
//! mapping until `vm.max_map_count`. A strict request for more memory than the node has free may
//! meet the kernel's OOM killer rather than an error. Without a wish for a node as `Mmap`.
//! # References
//! A. Kleen, "A NUMA API for Linux", 2005; Linux manual pages mbind(2), move_pages(2).

use core::ptr::NonNull;

use super::backing::Backing;
use super::contract::{Map, Memory};
use super::map_error::MapError;
use super::mapping::{Mapping, Plan};
use super::placement::Placement;
use super::request::Request;

const PLAN: Plan = Plan { huge: false, bind: true, populate: true };

/// Pages on one node, or on all in turn.
///
/// ```
/// use alloc_arena::{Bump, Map, Numa, Request};
/// match Bump::<Numa>::map(1 << 20, &Request::on_node(0).strict()) {
///     Ok(arena) => assert!(arena.placement().verified()),
///     Err(error) => println!("not here: {error}"),
/// }
/// ```
#[derive(Debug)]
pub struct Numa(Mapping);

impl Map for Numa {
    fn map(bytes: usize, request: &Request) -> Result<Self, MapError> {
        Mapping::new(PLAN, bytes, request).map(Self)
    }
}

// SAFETY: by I1 the pages are the backing's alone, wherever that stands; the mapping checked the
// length.
unsafe impl Backing for Numa {
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
