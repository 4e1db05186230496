//! The suite that every arena passes; yours too.
//!
//! ```
//! # mod my {
//! // In a test file of your crate:
//! alloc_arena::conformance!(alloc_arena::Bump<alloc_arena::Heap>);
//! // A second one needs a name:
//! alloc_arena::conformance!(inline: alloc_arena::Bump<alloc_arena::Inline<65536>>);
//! # }
//! ```
//!
//! The functions return what they found instead of panicking, so that the suite itself can be
//! tested on arenas that are broken. A block is written only after its address was checked.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::alloc::Layout;
use core::fmt;
use core::ptr::NonNull;

use crate::contract::{Arena, Map};
use crate::request::{Place, Request};

/// Bytes of the arenas that the suite maps.
pub const BYTES: usize = 32 << 10;

/// A node that no machine has.
const NO_NODE: u32 = 30_000;

/// What an arena did that its contract forbids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation(pub(crate) String);

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

pub(crate) fn violation<T>(text: String) -> Result<T, Violation> {
    Err(Violation(text))
}

/// Pseudo-random numbers that are the same in each run (xorshift64).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }

    /// Mostly small, sometimes a page; aligned to 1 … 4096. Never without bytes.
    fn layout(&mut self) -> Option<Layout> {
        let most = [16, 64, 300, 4096][self.below(4) as usize];
        let bits = if self.below(8) == 0 { 13 } else { 5 };
        let (size, align) = (1 + self.below(most), 1 << self.below(bits));
        Layout::from_size_align(size as usize, align as usize).ok()
    }
}

/// Blocks handed out since the last reset: start → (length, pattern).
#[derive(Default)]
struct Books {
    blocks: BTreeMap<usize, (NonNull<[u8]>, u8)>,
    bytes: usize,
}

impl Books {
    /// Checks a new block against all earlier ones, then fills it with a pattern of its own.
    fn enter(&mut self, layout: Layout, block: NonNull<[u8]>) -> Result<(), Violation> {
        let (start, length) = (block.addr().get(), block.len());
        if start % layout.align() != 0 || length < layout.size() {
            return violation(format!("{layout:?} got {length} bytes at {start:#x}"));
        }
        let Some(end) = start.checked_add(length) else {
            return violation(format!("{length} bytes at {start:#x} wrap around"));
        };
        if let Some((other, (held, _))) = self.blocks.range(..end).next_back()
            && other + held.len() > start
        {
            return violation(format!(
                "{length} bytes at {start:#x} overlap {} bytes at {other:#x}",
                held.len()
            ));
        }
        let pattern = self.blocks.len() as u8 | 1;
        // SAFETY: the arena promises that the bytes are the caller's, and no other block of its
        // overlaps them.
        unsafe { block.cast::<u8>().write_bytes(pattern, length) };
        self.blocks.insert(start, (block, pattern));
        self.bytes += length;
        Ok(())
    }

    /// Checks that every block still holds its pattern.
    fn read(&self) -> Result<(), Violation> {
        for (start, (block, pattern)) in &self.blocks {
            // SAFETY: written in `enter`, and the caller has neither reset nor moved the arena.
            let bytes = unsafe { block.as_ref() };
            if let Some(at) = bytes.iter().position(|byte| byte != pattern) {
                return violation(format!("byte {at} of the block at {start:#x} has changed"));
            }
        }
        Ok(())
    }
}

fn map<A: Arena + Map>() -> Result<A, Violation> {
    let arena = A::map(BYTES, &Request::new())
        .map_err(|error| Violation(format!("{BYTES} bytes without a wish: {error}")))?;
    if arena.capacity() < BYTES || arena.used() != 0 {
        return violation(format!(
            "a new arena of {BYTES} bytes has {} and uses {}",
            arena.capacity(),
            arena.used()
        ));
    }
    Ok(arena)
}

/// Takes blocks of `layout` until the arena is full.
fn fill<A: Arena>(arena: &A, layout: Layout, books: &mut Books) -> Result<(), Violation> {
    while let Ok(block) = arena.try_alloc_layout(layout) {
        books.enter(layout, block)?;
        if books.bytes > arena.capacity() || arena.used() > arena.capacity() {
            return violation(format!(
                "{} bytes handed out, {} used, of {}",
                books.bytes,
                arena.used(),
                arena.capacity()
            ));
        }
    }
    Ok(())
}

/// Blocks of mixed layouts are aligned, as long as asked, apart from one another, and keep what
/// was written to them while later ones are handed out.
///
/// # Errors
/// When they are or do not.
pub fn blocks_are_apart<A: Arena + Map>(seed: u64) -> Result<(), Violation> {
    let mut arena = map::<A>()?;
    let mut random = Random(seed | 1);
    for _ in 0..8 {
        let mut books = Books::default();
        let mut refused = 0;
        while refused < 16 {
            let Some(layout) = random.layout() else { continue };
            match arena.try_alloc_layout(layout) {
                Ok(block) => books.enter(layout, block)?,
                Err(_) => refused += 1,
            }
            if books.bytes > arena.capacity() {
                return violation(format!("more than {} bytes handed out", arena.capacity()));
            }
        }
        if books.blocks.len() < 4 {
            return violation(format!("only {} blocks in {BYTES} bytes", books.blocks.len()));
        }
        books.read()?;
        arena.reset();
    }
    Ok(())
}

/// A full arena refuses, keeps its blocks, refuses what can never fit, and still serves what fits.
///
/// # Errors
/// When it does not.
pub fn exhaustion_is_harmless<A: Arena + Map>() -> Result<(), Violation> {
    let arena = map::<A>()?;
    let mut books = Books::default();
    let never = [arena.capacity() + 1, isize::MAX as usize - 63];
    for size in never {
        let Ok(layout) = Layout::from_size_align(size, 1) else { continue };
        if arena.try_alloc_layout(layout).is_ok() {
            return violation(format!("{size} bytes handed out of {}", arena.capacity()));
        }
    }
    let Ok(wide) = Layout::from_size_align(1, 1 << 20) else { return Ok(()) };
    if let Ok(block) = arena.try_alloc_layout(wide) {
        books.enter(wide, block)?;
    }
    fill(&arena, Layout::new::<[u64; 8]>(), &mut books)?;
    fill(&arena, Layout::new::<u8>(), &mut books)?;
    books.read()?;
    if arena.try_alloc_layout(Layout::new::<u8>()).is_ok() {
        return violation("a full arena handed out one more byte".into());
    }
    Ok(())
}

/// After a reset nothing is used, and as many blocks can be had as before.
///
/// # Errors
/// When something is, or fewer can.
pub fn reset_gives_everything_back<A: Arena + Map>() -> Result<(), Violation> {
    let mut arena = map::<A>()?;
    let mut counts = Vec::new();
    for _ in 0..3 {
        let mut books = Books::default();
        fill(&arena, Layout::new::<[u64; 8]>(), &mut books)?;
        counts.push(books.blocks.len());
        books.read()?;
        arena.reset();
        if arena.used() != 0 {
            return violation(format!("{} bytes used after a reset", arena.used()));
        }
    }
    if counts[0] == 0 || counts.iter().any(|&count| count != counts[0]) {
        return violation(format!("{counts:?} blocks between resets"));
    }
    Ok(())
}

/// Blocks of no bytes cost nothing, are aligned, and are served by a full arena too.
///
/// # Errors
/// When they do, are not, or are refused.
pub fn no_bytes_cost_nothing<A: Arena + Map>() -> Result<(), Violation> {
    let arena = map::<A>()?;
    for round in ["empty", "full"] {
        let used = arena.used();
        for bits in 0..=20 {
            let Ok(layout) = Layout::from_size_align(0, 1 << bits) else { continue };
            let Ok(block) = arena.try_alloc_layout(layout) else {
                return violation(format!("{layout:?} refused by an arena that is {round}"));
            };
            if block.addr().get() % layout.align() != 0 {
                return violation(format!("{layout:?} got {block:?}"));
            }
        }
        if arena.used() != used {
            return violation(format!("no bytes cost {}", arena.used() - used));
        }
        fill(&arena, Layout::new::<u8>(), &mut Books::default())?;
    }
    Ok(())
}

/// Sizes that cannot be are errors.
///
/// # Errors
/// When one is not.
pub fn impossible_sizes_are_errors<A: Arena + Map>() -> Result<(), Violation> {
    let most = isize::MAX as usize;
    for bytes in [0, most, most + 1, usize::MAX - 4096, usize::MAX - 1, usize::MAX] {
        if A::map(bytes, &Request::new()).is_ok() {
            return violation(format!("an arena of {bytes} bytes was made"));
        }
    }
    Ok(())
}

/// A wish for a node is met, refused or noted; one that cannot be met is never called met.
///
/// # Errors
/// When an arena pretends.
pub fn wishes_are_met_or_noted<A: Arena + Map>() -> Result<(), Violation> {
    for node in [0, NO_NODE] {
        let request = Request::on_node(node);
        let Ok(advisory) = A::map(BYTES, &request) else {
            return violation(format!("an advisory request for node {node} failed"));
        };
        let placement = advisory.placement();
        let met = placement.verified();
        if met && (!A::PROPERTIES.numa_bound || node == NO_NODE) {
            return violation(format!("node {node} cannot be bound: {placement:?}"));
        }
        if placement.fallbacks.is_empty() && (!A::PROPERTIES.numa_bound || node == NO_NODE) {
            return violation(format!("nothing says why not node {node}: {placement:?}"));
        }
        if placement.requested != Place::Node(node) {
            return violation(format!("the wish for node {node} is forgotten: {placement:?}"));
        }
        let Ok(strict) = A::map(BYTES, &request.strict()) else { continue };
        let placement = strict.placement();
        if !placement.verified() || !placement.fallbacks.is_empty() || node == NO_NODE {
            return violation(format!("strictly node {node}, yet {placement:?}"));
        }
    }
    Ok(())
}

/// Runs the suite over a type that implements [`Arena`] and [`Map`].
///
/// `alloc_arena::conformance!(MyArena)` makes one module of tests; a second arena in the same
/// module needs a name: `alloc_arena::conformance!(other: OtherArena)`.
#[macro_export]
macro_rules! conformance {
    ($arena:ty) => { $crate::conformance!(arena_conformance: $arena); };
    ($name:ident: $arena:ty) => {
        mod $name {
            #[allow(unused_imports, reason = "the type may be written with a full path")]
            use super::*;
            use $crate::conformance as suite;

            #[test]
            fn keeps_blocks_apart() {
                for seed in 1..=8 {
                    suite::blocks_are_apart::<$arena>(seed).unwrap_or_else(|v| panic!("{v}"));
                }
            }
            #[test]
            fn survives_exhaustion() {
                suite::exhaustion_is_harmless::<$arena>().unwrap_or_else(|v| panic!("{v}"));
            }
            #[test]
            fn gives_everything_back() {
                suite::reset_gives_everything_back::<$arena>().unwrap_or_else(|v| panic!("{v}"));
            }
            #[test]
            fn charges_nothing_for_no_bytes() {
                suite::no_bytes_cost_nothing::<$arena>().unwrap_or_else(|v| panic!("{v}"));
            }
            #[test]
            fn refuses_impossible_sizes() {
                suite::impossible_sizes_are_errors::<$arena>().unwrap_or_else(|v| panic!("{v}"));
            }
            #[test]
            fn pretends_no_placement() {
                suite::wishes_are_met_or_noted::<$arena>().unwrap_or_else(|v| panic!("{v}"));
            }
        }
    };
}
