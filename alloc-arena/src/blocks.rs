//! Blocks: a region divided into blocks of one size and a table of words about them.
//!
//! Blocks come first, side by side from the region's first address that is aligned for them; the
//! table follows. Words about a block do not lie in it: a thread that looks at a free block's word
//! may come late, when the block has an owner that writes to it.

use core::alloc::Layout;
use core::ptr::NonNull;

use super::backing::Backing;
use super::contract::Map;
use super::hot::{HotField, Role};
use super::map_error::MapError;
use super::placement::Placement;
use super::request::Request;

/// The most blocks of a pool: numbers below the mark for "none".
pub(crate) const MOST: usize = u32::MAX as usize - 1;

/// Blocks of `BLOCK` bytes, and words `W` about them, in the region of `B`.
///
/// # Invariants
/// - I1: `count` blocks from `first` on and `words` words from `table` on lie in the region, apart
///   and aligned; the words are initialised. The region does not move.
#[derive(Debug)]
pub(crate) struct Blocks<B, W, const BLOCK: usize> {
    first: NonNull<u8>,
    count: usize,
    table: NonNull<W>,
    words: usize,
    backing: B,
}

// SAFETY: the region and the words are the backing's and this value's, wherever that stands.
unsafe impl<B: Send, W: Send, const BLOCK: usize> Send for Blocks<B, W, BLOCK> {}
// SAFETY: through a shared reference words are shared; blocks are given out by who has the pool.
unsafe impl<B: Sync, W: Sync, const BLOCK: usize> Sync for Blocks<B, W, BLOCK> {}

/// What each block of `BLOCK` bytes is aligned to: the largest power of two that divides its size,
/// a page at most.
pub(crate) const fn layout<const BLOCK: usize>() -> Layout {
    assert!(BLOCK > 0 && BLOCK.is_multiple_of(4), "a free block has room for a number");
    let align = 1 << BLOCK.trailing_zeros();
    match Layout::from_size_align(BLOCK, if align > 4096 { 4096 } else { align }) {
        Ok(layout) => layout,
        Err(_) => panic!("a block fits the address space"),
    }
}

impl<B: Backing, W, const BLOCK: usize> Blocks<B, W, BLOCK> {
    /// Size and alignment of each block.
    pub(crate) const LAYOUT: Layout = {
        assert!(B::STAYS, "blocks must not move with the pool");
        layout::<BLOCK>()
    };

    /// Bytes of a region for `count` blocks and `words` words, wherever it starts.
    fn region_bytes(count: usize, words: usize) -> Option<usize> {
        let blocks = BLOCK.checked_mul(count)?;
        let table = size_of::<W>().checked_mul(words)?;
        blocks.checked_add(table)?.checked_add(Self::LAYOUT.align() + align_of::<W>())
    }

    /// Maps a region for as many blocks as fit `bytes`, at most `most`, with `words(count)` words.
    pub(crate) fn map(
        bytes: usize,
        request: &Request,
        most: usize,
        words: impl Fn(usize) -> usize,
        word: impl FnMut(usize) -> W,
    ) -> Result<Self, MapError>
    where
        B: Map,
    {
        if bytes == 0 {
            return Err(MapError::Zero);
        }
        let (count, most) = (bytes.div_ceil(BLOCK), most.min(MOST));
        if count > most {
            return Err(MapError::TooLarge { most_bytes: most.saturating_mul(BLOCK) });
        }
        let region = Self::region_bytes(count, words(count)).ok_or(MapError::LayoutOverflow)?;
        Ok(Self::divide(B::map(region, request)?, count, words(count), word))
    }

    /// Divides the region of `backing` into as many blocks as fit, at most `most`.
    pub(crate) fn over(
        backing: B,
        most: usize,
        words: impl Fn(usize) -> usize,
        word: impl FnMut(usize) -> W,
    ) -> Self {
        let fits = |&count: &usize| {
            Self::region_bytes(count, words(count)).is_some_and(|n| n <= backing.region().len())
        };
        // The most that fits: `region_bytes` grows with the count.
        let (mut fit, mut over) = (0, (backing.region().len() / BLOCK).min(most).min(MOST) + 1);
        while over - fit > 1 {
            let middle = fit + (over - fit) / 2;
            if fits(&middle) { fit = middle } else { over = middle }
        }
        // A region that is too small for the words of no blocks at all holds none either.
        let words = if fits(&fit) { words(fit) } else { 0 };
        Self::divide(backing, fit, words, word)
    }

    /// The region is long enough.
    fn divide(backing: B, count: usize, words: usize, mut word: impl FnMut(usize) -> W) -> Self {
        let region = backing.region();
        let lead = |address: usize, align: usize| address.wrapping_neg() & (align - 1);
        let start = region.addr().get();
        let blocks = lead(start, Self::LAYOUT.align()).min(region.len());
        let end = blocks + BLOCK * count;
        let table = (end + lead(start + end, align_of::<W>())).min(region.len());
        // SAFETY: inside the region, whose length the callers chose for this.
        let first = unsafe { region.cast::<u8>().add(blocks) };
        // SAFETY: as above.
        let table = unsafe { region.cast::<u8>().add(table) }.cast::<W>();
        for index in 0..words {
            // SAFETY: as above, for `words` words.
            let place = unsafe { table.add(index) };
            // SAFETY: aligned, and nobody else's yet.
            unsafe { place.write(word(index)) };
        }
        Self { first, count, table, words, backing }
    }

    /// Number of blocks.
    #[inline(always)]
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// The words.
    #[inline(always)]
    pub(crate) fn words(&self) -> &[W] {
        let words = NonNull::slice_from_raw_parts(self.table, self.words);
        // SAFETY: by I1 initialised and in place; shared from then on.
        unsafe { words.as_ref() }
    }

    /// The word `index`.
    ///
    /// # Safety
    /// `index` is below the number of words.
    #[inline(always)]
    pub(crate) unsafe fn word(&self, index: usize) -> &W {
        debug_assert!(index < self.words);
        // SAFETY: the caller's duty.
        let word = unsafe { self.table.add(index) };
        // SAFETY: by I1, as in `words`.
        unsafe { word.as_ref() }
    }

    /// The block `index`.
    ///
    /// # Safety
    /// `index` is below `count`.
    #[inline(always)]
    pub(crate) unsafe fn block(&self, index: u32) -> NonNull<u8> {
        debug_assert!((index as usize) < self.count);
        // SAFETY: by I1 and the caller's duty.
        unsafe { self.first.add(index as usize * BLOCK) }
    }

    /// The number of a block of this pool.
    #[inline(always)]
    pub(crate) fn index(&self, block: NonNull<u8>) -> u32 {
        debug_assert!(self.number_of(block).is_some(), "{block:?} is no block of this pool");
        (block.addr().get().wrapping_sub(self.first.addr().get()) / BLOCK) as u32
    }

    /// The number of the block that begins at `block`, if one does.
    pub(crate) fn number_of(&self, block: NonNull<u8>) -> Option<usize> {
        let offset = block.addr().get().wrapping_sub(self.first.addr().get());
        (offset / BLOCK < self.count && offset.is_multiple_of(BLOCK)).then_some(offset / BLOCK)
    }

    /// Reports where the region lies now.
    pub(crate) fn placement(&self) -> Placement {
        self.backing.placement()
    }

    /// Describes the value itself, and all blocks as one field that `owners` write.
    pub(crate) fn describe(&self, owners: Role, visit: &mut dyn FnMut(HotField)) {
        let value = HotField::of("blocks", self);
        visit(value.read_by(Role::Many("threads")));
        let region = HotField::at("region", self.first.addr().get(), BLOCK * self.count);
        visit(region.written_by(owners));
    }
}
