//! The exported suite over every row of the table, and over arenas that are broken.
#![cfg(feature = "std")]

use alloc_arena::conformance as suite;
use alloc_arena::{AllocError, Arena, Bump, Heap, Map, MapError, Placement, Properties, Request};
use core::alloc::Layout;
use core::cell::Cell;
use core::ptr::NonNull;

macro_rules! row {
    ($id:ident, $arena:ty, baseline) => {};
    ($id:ident, $arena:ty, $kind:ident) => {
        mod $id {
            alloc_arena::conformance!($arena);
        }
    };
}

macro_rules! rows {
    ($($id:ident => $arena:ty, $kind:ident;)*) => { $( row!($id, $arena, $kind); )* };
}

alloc_arena::for_each_arena!(rows);

#[test]
fn the_suite_catches_the_baseline() {
    let violation = suite::blocks_are_apart::<alloc_arena::NullArena>(1).unwrap_err();
    assert!(violation.to_string().contains("a new arena of"), "{violation}");
}

/// A good arena with one bug, chosen by `BUG`.
struct Broken<const BUG: u8> {
    arena: Bump<Heap>,
    calls: Cell<usize>,
    last: Cell<Option<NonNull<[u8]>>>,
}

const OVERLAPS: u8 = 0;
const MISALIGNS: u8 = 1;
const SHORT: u8 = 2;
const WRITES: u8 = 3;
const FORGETS_TO_RESET: u8 = 4;
const CHARGES_FOR_NOTHING: u8 = 5;
const GIVES_UP: u8 = 6;
const PRETENDS: u8 = 7;

impl<const BUG: u8> Map for Broken<BUG> {
    fn map(bytes: usize, request: &Request) -> Result<Self, MapError> {
        let request = if BUG == PRETENDS { &Request::new() } else { request };
        let arena = Bump::map(bytes, request)?;
        Ok(Self { arena, calls: Cell::new(0), last: Cell::new(None) })
    }
}

// SAFETY: broken on purpose; only the suite sees it, and every block that it returns is memory of
// its own.
unsafe impl<const BUG: u8> Arena for Broken<BUG> {
    const PROPERTIES: Properties = Properties { numa_bound: true, ..<Bump<Heap>>::PROPERTIES };

    fn try_alloc_layout(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        self.calls.set(self.calls.get() + 1);
        let call = self.calls.get();
        if BUG == CHARGES_FOR_NOTHING && layout.size() == 0 {
            self.arena.try_alloc_layout(Layout::new::<u8>())?;
        }
        if BUG == GIVES_UP && self.arena.used() > 0 && layout.size() > 0 {
            return Err(AllocError);
        }
        let block = self.arena.try_alloc_layout(layout)?;
        let last = self.last.replace(Some(block));
        let start = block.cast::<u8>();
        if BUG == WRITES && call == 9 && layout.size() > 0 {
            // SAFETY: a block that was handed out, of some bytes.
            last.inspect(|last| unsafe { last.cast::<u8>().write(0) });
        }
        Ok(match BUG {
            OVERLAPS if layout.align() == 1 => last
                .filter(|last| last.len() >= layout.size())
                .map(|last| NonNull::slice_from_raw_parts(last.cast(), layout.size()))
                .unwrap_or(block),
            MISALIGNS if layout.align() > 1 && layout.size() > 1 => {
                // SAFETY: still inside the block.
                let next = unsafe { start.add(1) };
                NonNull::slice_from_raw_parts(next, layout.size() - 1)
            }
            SHORT => NonNull::slice_from_raw_parts(start, layout.size() / 2),
            _ => block,
        })
    }

    fn reset(&mut self) {
        self.calls.set(0);
        if BUG != FORGETS_TO_RESET {
            self.arena.reset();
        }
    }

    fn capacity(&self) -> usize {
        self.arena.capacity()
    }

    fn used(&self) -> usize {
        if BUG == FORGETS_TO_RESET { 0 } else { self.arena.used() }
    }

    fn placement(&self) -> Placement {
        self.arena.placement()
    }
}

fn apart<const BUG: u8>() -> String {
    (1..=8)
        .find_map(|seed| suite::blocks_are_apart::<Broken<BUG>>(seed).err())
        .expect("the suite must catch it")
        .to_string()
}

#[test]
fn the_suite_catches_overlap() {
    let text = apart::<OVERLAPS>();
    assert!(text.contains("overlap"), "{text}");
}

#[test]
fn the_suite_catches_misalignment_and_short_blocks() {
    for text in [apart::<MISALIGNS>(), apart::<SHORT>()] {
        assert!(text.contains("got"), "{text}");
    }
}

#[test]
fn the_suite_catches_changed_contents() {
    let text = apart::<WRITES>();
    assert!(text.contains("has changed"), "{text}");
}

#[test]
fn the_suite_catches_a_reset_that_keeps() {
    suite::reset_gives_everything_back::<Broken<FORGETS_TO_RESET>>().unwrap_err();
}

#[test]
fn the_suite_catches_a_charge_for_nothing() {
    suite::no_bytes_cost_nothing::<Broken<CHARGES_FOR_NOTHING>>().unwrap_err();
}

#[test]
fn the_suite_catches_an_arena_that_gives_up() {
    suite::blocks_are_apart::<Broken<GIVES_UP>>(1).unwrap_err();
}

#[test]
fn the_suite_catches_a_forgotten_wish() {
    suite::wishes_are_met_or_noted::<Broken<PRETENDS>>().unwrap_err();
}
