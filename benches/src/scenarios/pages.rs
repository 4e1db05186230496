//! Pages of an arena that lie where they are touched first.

use std::alloc::Layout;
use std::sync::atomic::{AtomicU64, Ordering};

use alloc_arena::{Bump, FirstTouch, Map, Request};

/// Bytes of a page, and the words of it.
const PAGE: usize = 4096;
pub(crate) const PAGE_WORDS: usize = PAGE / size_of::<AtomicU64>();

/// Words of a line.
pub(crate) const LINE_WORDS: usize = 64 / size_of::<AtomicU64>();

/// Maps so many mebibytes of words that are 0, of which nothing is touched yet. They stay until the
/// process ends.
///
/// # Errors
/// When there is no such memory.
pub(crate) fn untouched(mib: usize) -> Result<&'static [AtomicU64], String> {
    let bytes = mib << 20;
    let layout = Layout::from_size_align(bytes, PAGE).map_err(|error| error.to_string())?;
    let arena = Bump::<FirstTouch>::map(bytes + PAGE, &Request::new());
    let arena = Box::leak(Box::new(arena.map_err(|error| error.to_string())?));
    let block = arena.try_alloc_layout(layout).map_err(|error| error.to_string())?;
    let words = bytes / size_of::<AtomicU64>();
    // SAFETY: fresh pages of the kernel, which are zero, aligned to a page, as long as the slice and
    // nobody else's; the arena is never dropped or reset.
    Ok(unsafe { std::slice::from_raw_parts(block.as_ptr().cast::<AtomicU64>(), words) })
}

/// Touches those pages whose number has the given remainder by two, or all.
pub(crate) fn touch(memory: &[AtomicU64], odd: Option<usize>) {
    let pages = memory.chunks(PAGE_WORDS).enumerate();
    let wanted = pages.filter(|(at, _)| odd.is_none_or(|odd| at % 2 == odd));
    // Relaxed: nobody else reads or writes the page now.
    wanted.for_each(|(_, page)| page[0].store(0, Ordering::Relaxed));
}
