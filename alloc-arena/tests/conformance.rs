//! The exported suite over every row of the table, and over arenas that are broken.
#![cfg(feature = "std")]

use alloc_arena::conformance as suite;
use alloc_arena::{
    AllocError, Arena, Bump, FreeListHandle, FreeListPool, Handle, Heap, Map, MapError, Placement,
    Pool, Properties, Request,
};
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

macro_rules! pool_row {
    ($id:ident, $pool:ty, baseline) => {};
    ($id:ident, $pool:ty, $kind:ident) => {
        mod $id {
            alloc_arena::pool_conformance!($pool);
        }
    };
}

macro_rules! pool_rows {
    ($($id:ident => $pool:ty, $kind:ident;)*) => { $( pool_row!($id, $pool, $kind); )* };
}

alloc_arena::for_each_pool!(pool_rows);

mod other_pools {
    use alloc_arena::{Checked, Heap, MagazinePool, RemotePool, TreiberPool};

    alloc_arena::pool_conformance!(checked: Checked<TreiberPool<Heap, 64>>);
    alloc_arena::pool_conformance!(small_magazines: MagazinePool<Heap, 8, 3, 4>);
    alloc_arena::pool_conformance!(four_owners: RemotePool<Heap, 48, 4>);
    alloc_arena::pool_conformance!(large_blocks: TreiberPool<Heap, 12288>);
}

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

/// A good pool with one bug, chosen by `BUG`.
struct BrokenPool<const BUG: u8>(FreeListPool<Heap, 64>);

/// Its handle, with the blocks that it puts in its own way.
struct BrokenHandle<'pool, const BUG: u8> {
    inner: FreeListHandle<'pool, Heap, 64>,
    last: Cell<Option<NonNull<u8>>>,
    calls: Cell<usize>,
}

const TWICE: u8 = 0;
const LOSES: u8 = 1;
const SCRIBBLES: u8 = 2;
const FORGETS_WITH_HANDLE: u8 = 3;
const OWNS_ALL: u8 = 4;

impl<const BUG: u8> Map for BrokenPool<BUG> {
    fn map(bytes: usize, request: &Request) -> Result<Self, MapError> {
        FreeListPool::map(bytes, request).map(Self)
    }
}

impl<const BUG: u8> Handle for BrokenHandle<'_, BUG> {
    const BLOCK: Layout = <FreeListPool<Heap, 64> as Pool>::BLOCK;

    fn try_get(&self) -> Result<NonNull<u8>, AllocError> {
        self.calls.set(self.calls.get() + 1);
        match self.last.get() {
            Some(last) if BUG == TWICE && self.calls.get().is_multiple_of(9) => return Ok(last),
            // SAFETY: a block of the pool; broken on purpose, but memory all the same.
            Some(last) if BUG == SCRIBBLES => unsafe { last.as_ptr().wrapping_add(60).write(0) },
            _ => {}
        }
        let block = self.inner.try_get()?;
        self.last.set(Some(block));
        Ok(block)
    }

    unsafe fn put(&self, block: NonNull<u8>) {
        self.calls.set(self.calls.get() + 1);
        if BUG != LOSES || !self.calls.get().is_multiple_of(50) {
            self.last.set(None);
            // SAFETY: the caller's duty.
            unsafe { self.inner.put(block) };
        }
    }
}

impl<const BUG: u8> Drop for BrokenHandle<'_, BUG> {
    fn drop(&mut self) {
        if BUG == FORGETS_WITH_HANDLE {
            let _ = self.inner.try_get();
        }
    }
}

// SAFETY: the cells are this handle's; it goes from thread to thread as a whole.
unsafe impl<const BUG: u8> Send for BrokenHandle<'_, BUG> {}

// SAFETY: broken on purpose; only the suite sees it, and every block is memory of its own.
unsafe impl<const BUG: u8> Pool for BrokenPool<BUG> {
    const PROPERTIES: Properties = <FreeListPool<Heap, 64> as Pool>::PROPERTIES;
    const BLOCK: Layout = <FreeListPool<Heap, 64> as Pool>::BLOCK;
    type Handle<'pool> = BrokenHandle<'pool, BUG>;

    fn handle(&self) -> Option<BrokenHandle<'_, BUG>> {
        let (last, calls) = (Cell::new(None), Cell::new(0));
        self.0.handle().map(|inner| BrokenHandle { inner, last, calls })
    }

    fn capacity(&self) -> usize {
        self.0.capacity()
    }

    fn number_of(&self, block: NonNull<u8>) -> Option<usize> {
        if BUG == OWNS_ALL { Some(0) } else { self.0.number_of(block) }
    }

    fn placement(&self) -> Placement {
        self.0.placement()
    }
}

#[test]
fn the_suite_catches_broken_pools() {
    use alloc_arena::pool_conformance as pools;
    let said = |found: Result<(), suite::Violation>| found.unwrap_err().to_string();
    let text = said(pools::blocks_are_apart_and_come_back::<BrokenPool<TWICE>>());
    assert!(text.contains("overlaps"), "{text}");
    let text = said(pools::blocks_are_apart_and_come_back::<BrokenPool<LOSES>>());
    assert!(text.contains("within reach"), "{text}");
    let text = said(pools::blocks_are_apart_and_come_back::<BrokenPool<SCRIBBLES>>());
    assert!(text.contains("has changed"), "{text}");
    let text = said(pools::dropped_handles_lose_nothing::<BrokenPool<FORGETS_WITH_HANDLE>>());
    assert!(text.contains("left"), "{text}");
    let text = said(pools::foreign_addresses_have_no_number::<BrokenPool<OWNS_ALL>>());
    assert!(text.contains("passes for a block"), "{text}");
    let text = said(pools::threads_share_no_block::<BrokenPool<LOSES>>());
    assert!(text.contains("are left"), "{text}");
    let text = said(pools::threads_share_no_block::<BrokenPool<SCRIBBLES>>());
    assert!(text.contains("while it was out"), "{text}");
}
