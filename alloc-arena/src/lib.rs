//! Arenas for `no_std`: one allocator over many backings, each of which says where its memory lies.
//!
//! # Which variant when
//! - No heap, no kernel: `bump_slice`, or [`Bump::over`] a slice of yours.
//! - Any size, placement does not matter: `bump_heap`.
//! - No page faults while it is used: `bump_mmap`. Much memory, touched all over: `bump_huge`.
//! - Threads of one NUMA node use it: `bump_numa`, and look at the [`Placement`].
//! - Threads share one region: `bump_atomic`, if allocations are rare; one RMW and one line for all.
//! - Blocks of one size that come back, of one thread: `pool_free_list`.
//! - The same, shared: `pool_magazine`, unless free blocks must be in reach of all: `pool_treiber`.
//! - Blocks that others free and that belong on their owner's node: `pool_remote`.
//! - A block that was freed shall stay unused for long: `pool_ring`. `pool_mutex` is what the others
//!   are measured against.
//!
//! | id | type | memory | binds to a node | frees | thread-safe | runs `Drop` | bytes | kind |
//! |---|---|---|---|---|---|---|---|---|
//! | `null` | [`NullArena`] | inside | no | - | no | no | 4160 | baseline |
//! | `bump_slice` | [`Bump`]`<`[`Inline`]`<65536>>` | inside | no | reset | no | no | 65664 | variant |
//! | `bump_heap` | [`Bump`]`<Heap>` | heap | no | reset | no | no | 40 | variant |
//! | `bump_atomic` | [`AtomicBump`]`<Heap>` | heap | no | reset | yes | no | 256 | variant |
//! | `bump_mmap` | [`Bump`]`<Mmap>` | pages | no | reset | no | no | 56 | variant |
//! | `bump_huge` | [`Bump`]`<Huge>` | huge pages | yes | reset | no | no | 56 | variant |
//! | `bump_numa` | [`Bump`]`<Numa>` | pages | yes | reset | no | no | 56 | variant |
//! | `bump_first_touch` | [`Bump`]`<FirstTouch>` | pages | no | reset | no | no | 56 | control |
//! | `pool_null` | [`NullPool`] | inside | no | - | no | no | 128 | baseline |
//! | `pool_free_list` | [`FreeListPool`]`<Heap, 64>` | heap | no | one by one | no | no | 80 | variant |
//! | `pool_mutex` | [`MutexPool`]`<Heap, 64>` | heap | no | one by one | yes | no | 256 | variant |
//! | `pool_treiber` | [`TreiberPool`]`<Heap, 64>` | heap | no | one by one | yes | no | 256 | variant |
//! | `pool_ring` | [`RingPool`]`<Heap, 64>` | heap | no | one by one | yes | no | 384 | variant |
//! | `pool_magazine` | [`MagazinePool`]`<Heap, 64>` | heap | no | one by one | yes | no | 640 | variant |
//! | `pool_remote` | [`RemotePool`]`<Heap, 64, 128>` | heap | no | one by one | yes | no | 33024 | variant |
//!
//! # Use
//! [`Bump`] is the safe face: it hands out references that borrow it, and never runs `Drop`.
//! [`Bump::scope`] takes back what was handed out since; [`TypedArena`] runs `Drop`; [`Slab`] gives
//! values back one by one, under keys with generations. Both stand on any [`Backing`] that stays.
//! [`Herd`] (feature `alloc`) is a bump arena for each thread or node, whose blocks outlive threads.
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
//! A [`Pool`] is shared, each thread gets and puts through a [`Handle`] of its own, and any handle
//! takes back what another one got. [`Checked`] (feature `alloc`) is any pool, and refuses blocks
//! that are not its own or not out.
//!
//! [`for_each_arena!`] and [`for_each_pool!`] enumerate the tables; [`conformance!`] and
//! [`pool_conformance!`] (feature `std`) run the suites that every row passes over a type of yours.
//! An allocator over the [`Backing`]s is written with [`bump`] or without.
//!
//! # Features
//! None by default. `alloc`: the heap, [`Checked`]. `std`: the conformance suites. `memmap2`, which brings `std`
//! and `libc`: pages, huge pages, pages on a node, and reports from the kernel; on Linux, elsewhere
//! [`MapError::Unsupported`]. `libc` alone adds nothing. `allocator-api2`: references to [`Bump`] and
//! [`AtomicBump`], and `InPool` around a [`Handle`], are allocators of that crate's collections.
#![no_std]
#![deny(clippy::std_instead_of_core, clippy::std_instead_of_alloc, clippy::alloc_instead_of_core)]

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

#[cfg(feature = "allocator-api2")]
mod allocator;
mod backing;
mod blocks;
mod bump;
mod bump_atomic;
#[cfg(feature = "std")]
pub mod conformance;
pub mod contract;
#[cfg(feature = "memmap2")]
mod first_touch;
#[cfg(feature = "alloc")]
mod heap;
#[cfg(feature = "alloc")]
mod herd;
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
pub mod pool;
#[cfg(feature = "alloc")]
mod pool_checked;
#[cfg(feature = "std")]
pub mod pool_conformance;
mod pool_free_list;
mod pool_magazine;
mod pool_mutex;
mod pool_null;
mod pool_remote;
mod pool_ring;
mod pool_treiber;
#[cfg(all(feature = "memmap2", target_os = "linux"))]
mod procfs;
mod relax;
mod report;
mod request;
mod seats;
mod slab;
mod slice;
#[doc(hidden)]
pub mod sync;
mod tagged_stack;
mod typed;
mod variants;

#[cfg(feature = "allocator-api2")]
pub use allocator::InPool;
pub use backing::Backing;
pub use bump::{Bump, bump};
pub use bump_atomic::AtomicBump;
pub use contract::{AllocError, Arena, Frees, Full, Map, Memory, Properties};
#[cfg(feature = "memmap2")]
pub use first_touch::FirstTouch;
#[cfg(feature = "alloc")]
pub use heap::Heap;
#[cfg(feature = "alloc")]
pub use herd::{Herd, Member};
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
pub use pool::{Handle, Pool};
#[cfg(feature = "alloc")]
pub use pool_checked::{Checked, CheckedHandle, Refused};
pub use pool_free_list::{FreeListHandle, FreeListPool};
pub use pool_magazine::{MagazineHandle, MagazinePool};
pub use pool_mutex::{MutexHandle, MutexPool};
pub use pool_null::{NullHandle, NullPool};
pub use pool_remote::{RemoteHandle, RemotePool};
pub use pool_ring::{RingHandle, RingPool};
pub use pool_treiber::{TreiberHandle, TreiberPool};
pub use relax::{Relax, Spin};
pub use request::{Mode, Place, Request};
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

#[cfg(not(feature = "std"))]
#[doc(hidden)]
#[macro_export]
macro_rules! pool_conformance {
    ($($anything:tt)*) => {
        compile_error!(
            "alloc_arena::pool_conformance! starts threads: enable feature `std` of alloc-arena"
        );
    };
}
