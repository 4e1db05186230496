//! What an allocator stands on: one region of memory and the report where it lies.

use core::ptr::NonNull;

use super::contract::Memory;
use super::placement::Placement;

/// One region of memory that an allocator divides.
///
/// # Safety
/// An implementation guarantees that, while it is alive and stays in place,
/// - [`region`](Self::region) returns the same region at each call;
/// - the region's bytes may be read and written through that pointer, by the owner of the backing
///   and by nobody else; the bytes need not be initialised;
/// - it is no longer than `isize::MAX` bytes and does not wrap around the address space;
/// - with [`STAYS`](Self::STAYS) all this also holds when the backing is moved; without it a moved
///   backing has its region, with its contents, at a fixed distance from itself.
pub unsafe trait Backing {
    /// Whether the region stays where it is when the backing is moved.
    const STAYS: bool;
    /// Whose memory it is.
    const MEMORY: Memory;
    /// Whether a request for a NUMA node can be met.
    const NUMA_BOUND: bool;
    /// Largest region in bytes, where the type sets one.
    const MOST_BYTES: Option<usize> = None;

    /// Returns the region.
    fn region(&self) -> NonNull<[u8]>;

    /// Reports where the region lies now.
    fn placement(&self) -> Placement;
}
