//! Arenas for `no_std`: one allocator over many backings, each of which says where its memory lies.
//!
//! # Which variant when
//! - No heap, no kernel: `bump_slice`, or [`Bump::over`] a slice of yours.
//! - Any size, placement does not matter: `bump_heap`.
//! - No page faults while it is used: `bump_mmap`. Much memory, touched all over: `bump_huge`.
//! - Threads of one NUMA node use it: `bump_numa`, and look at the [`Placement`].
//!
//! | id | type | memory | binds to a node | frees | thread-safe | runs `Drop` | bytes | kind |
//! |---|---|---|---|---|---|---|---|---|
//! | `null` | [`NullArena`] | inside | no | - | no | no | 4160 | baseline |
//! | `bump_slice` | [`Bump`]`<`[`Inline`]`<65536>>` | inside | no | reset | no | no | 65664 | variant |
//! | `bump_heap` | [`Bump`]`<Heap>` | heap | no | reset | no | no | 40 | variant |
//! | `bump_mmap` | [`Bump`]`<Mmap>` | pages | no | reset | no | no | 56 | variant |
//! | `bump_huge` | [`Bump`]`<Huge>` | huge pages | yes | reset | no | no | 56 | variant |
//! | `bump_numa` | [`Bump`]`<Numa>` | pages | yes | reset | no | no | 56 | variant |
//! | `bump_first_touch` | [`Bump`]`<FirstTouch>` | pages | no | reset | no | no | 56 | control |
//!
//! # Use
//! [`Bump`] is the safe face: it hands out references that borrow it, and never runs `Drop`.
//! [`Bump::scope`] takes back what was handed out since; [`TypedArena`] runs `Drop`; [`Slab`] gives
//! values back one by one, under keys with generations. Both stand on any [`Backing`] that stays.
//! [`Arena`] and [`Map`] are what drivers use: every row is made from a size and a [`Request`].
//!
//! ```
//! use alloc_arena::{Arena, Bump, Inline, Map, MapError, Request};
//! use core::alloc::Layout;
//!
//! fn measure<A: Arena + Map>() -> Result<(), MapError> {
//!     let mut arena = A::map(64 << 10, &Request::on_node(0))?; // `.strict()`: an error if unmet
//!     while arena.try_alloc_layout(Layout::new::<[u64; 8]>()).is_ok() {}
//!     let placement = arena.placement();
//!     if let Some(because) = placement.unverified {
//!         // To be shown wherever the figures are.
//!         let _ = because;
//!     }
//!     arena.reset();
//!     Ok(())
//! }
//! measure::<Bump<Inline<65536>>>()?;
//! # Ok::<(), MapError>(())
//! ```
//!
//! [`for_each_arena!`] enumerates the table, and [`conformance!`] (feature `std`) runs the suite
//! that every row passes over an arena of yours. An allocator over the [`Backing`]s is written
//! with [`bump`] or without.
//!
//! No arena shares memory between threads yet, hence no atomics and no models of them.
//!
//! # Features
//! None by default. `alloc`: the heap. `std`: the conformance suite. `memmap2`, which brings `std`
//! and `libc`: pages, huge pages, pages on a node, and reports from the kernel; on Linux, elsewhere
//! [`MapError::Unsupported`]. `libc` alone adds nothing.
#![no_std]
#![deny(clippy::std_instead_of_core, clippy::std_instead_of_alloc, clippy::alloc_instead_of_core)]

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod backing;
mod bump;
#[cfg(feature = "std")]
pub mod conformance;
pub mod contract;
#[cfg(feature = "memmap2")]
mod first_touch;
#[cfg(feature = "alloc")]
mod heap;
pub mod hot;
#[cfg(feature = "memmap2")]
mod huge;
mod inline;
#[cfg(all(feature = "memmap2", target_os = "linux"))]
mod kernel;
mod map_error;
#[cfg(feature = "memmap2")]
#[cfg_attr(not(target_os = "linux"), path = "mapping_elsewhere.rs")]
mod mapping;
#[cfg(feature = "memmap2")]
mod mmap;
#[cfg(all(feature = "memmap2", target_os = "linux"))]
mod node_set;
mod null;
#[cfg(feature = "memmap2")]
mod numa;
mod placement;
#[cfg(all(feature = "memmap2", target_os = "linux"))]
mod procfs;
mod report;
mod request;
mod slab;
mod slice;
#[doc(hidden)]
pub mod sync;
mod typed;
mod variants;

pub use backing::Backing;
pub use bump::{Bump, bump};
pub use contract::{AllocError, Arena, Frees, Full, Map, Memory, Properties};
#[cfg(feature = "memmap2")]
pub use first_touch::FirstTouch;
#[cfg(feature = "alloc")]
pub use heap::Heap;
pub use hot::{HotField, HotFields, Role, Sharing};
#[cfg(feature = "memmap2")]
pub use huge::Huge;
pub use inline::Inline;
pub use map_error::MapError;
#[cfg(feature = "memmap2")]
pub use mmap::Mmap;
pub use null::NullArena;
#[cfg(feature = "memmap2")]
pub use numa::Numa;
pub use placement::{Asked, Fallbacks, Pages, Placement, Policy, Unknown, Unverified};
pub use request::{Mode, Request};
pub use slab::{Key, Slab};
pub use slice::Slice;
pub use typed::TypedArena;

#[cfg(not(feature = "std"))]
#[doc(hidden)]
#[macro_export]
macro_rules! conformance {
    ($($anything:tt)*) => {
        compile_error!(
            "alloc_arena::conformance! keeps books: enable feature `std` of alloc-arena"
        );
    };
}
