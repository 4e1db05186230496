//! What an arena promises: the traits that every variant implements and every driver uses.

use core::alloc::Layout;
use core::error::Error;
use core::fmt;
use core::ptr::NonNull;

use super::map_error::MapError;
use super::placement::Placement;
use super::request::Request;

/// Memory handed out in blocks, given back together or one by one.
///
/// # Safety
/// An implementation guarantees of every block that [`try_alloc_layout`](Self::try_alloc_layout)
/// returned, until the arena is reset, moved or dropped, that
/// - it is at least as long as the layout's size and aligned as the layout asks;
/// - its bytes may be read (once written) and written through the pointer;
/// - it overlaps no other such block and no memory that anybody else uses.
///
/// A block of no bytes has an aligned, non-null address and nothing else. With
/// [`Properties::thread_safe`] threads may share a reference to the arena, and all this holds of
/// blocks that they take at the same time.
pub unsafe trait Arena {
    /// What the arena is and is not.
    const PROPERTIES: Properties;

    /// Hands out a block for `layout`; its bytes are not initialised.
    ///
    /// # Errors
    /// [`AllocError`] when no block of that layout is left; the arena stays usable.
    fn try_alloc_layout(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError>;

    /// Takes every block back at once. Runs no destructors.
    fn reset(&mut self);

    /// Takes every block back while other threads may be allocating, and says so; `false`, and
    /// nothing is done, in arenas that cannot.
    ///
    /// # Safety
    /// From now until the next [`reset`](Self::reset), blocks that are handed out may overlap those
    /// handed out before this call returned: the caller uses none of them as memory of its own.
    /// Drivers that measure an arena write to blocks by atomic stores and forget them.
    unsafe fn reset_shared(&self) -> bool {
        false
    }

    /// Bytes that the arena can hand out when it is empty and nothing is lost to alignment.
    fn capacity(&self) -> usize;

    /// Bytes handed out, with what alignment cost.
    fn used(&self) -> usize;

    /// Reports where the memory lies now. Asks the kernel each time, so it is slow and never
    /// stale when it returns; pages may move later.
    fn placement(&self) -> Placement;
}

/// What can be made of a number of bytes and a wish where they lie: backings, and the arenas over
/// them. Drivers make every row of the table this way.
pub trait Map: Sized {
    /// Obtains at least `bytes` bytes as `request` asks. Kernel backings round up to their page.
    ///
    /// # Errors
    /// [`MapError`] says which wish could not be met and what to do about it. In
    /// [`Mode::Strict`](crate::Mode::Strict) every unmet wish is an error; otherwise only the lack
    /// of memory is, and [`Placement::fallbacks`] tells the rest.
    fn map(bytes: usize, request: &Request) -> Result<Self, MapError>;
}

/// What an arena is and is not; the table in the crate's documentation is tested against it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Properties {
    /// Whose memory is handed out.
    pub memory: Memory,
    /// Whether a [`Request`] for a NUMA node can be met.
    pub numa_bound: bool,
    /// How blocks come back.
    pub frees: Frees,
    /// Whether threads may allocate from one arena at once.
    pub thread_safe: bool,
    /// Whether values in the arena are dropped with it.
    pub runs_drop: bool,
    /// Largest size in bytes that [`Map::map`] accepts, where the type sets one.
    pub most_bytes: Option<usize>,
}

/// Whose memory an arena hands out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Memory {
    /// A buffer inside the arena itself.
    Inside,
    /// A slice that the caller lent.
    Callers,
    /// A block of the global allocator.
    Heap,
    /// An anonymous mapping of pages of the usual size.
    Pages,
    /// An anonymous mapping of huge pages where they are granted.
    HugePages,
}

/// How blocks come back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Frees {
    /// Nothing is taken, so nothing comes back: the null baseline.
    Nothing,
    /// All at once, by [`Arena::reset`].
    Reset,
    /// One by one, as well as all at once.
    Individually,
}

/// No block of that layout is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AllocError;

/// No room was left for the value, which comes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Full<T>(pub T);

impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Inside => "inside",
            Self::Callers => "caller's",
            Self::Heap => "heap",
            Self::Pages => "pages",
            Self::HugePages => "huge pages",
        })
    }
}

impl fmt::Display for Frees {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Nothing => "-",
            Self::Reset => "reset",
            Self::Individually => "one by one",
        })
    }
}

impl fmt::Display for AllocError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no block of that layout is left; reset the arena or map a larger one")
    }
}

impl<T> fmt::Display for Full<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        AllocError.fmt(f)
    }
}

impl Error for AllocError {}
impl<T: fmt::Debug> Error for Full<T> {}
