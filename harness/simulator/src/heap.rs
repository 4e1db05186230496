//! The engine's private heap: whoever simulates must not share a lock with whom it simulates.
//!
//! A guest that is stopped inside `malloc` holds the allocator's lock; an engine that allocated
//! from the same allocator would wait for it for ever. So a program that simulates declares
//! [`EngineHeap`] as its global allocator: the engine's thread allocates from a region of its own,
//! every other thread from the system.

use core::alloc::{GlobalAlloc, Layout};
use core::cell::Cell;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use std::alloc::System;

use crate::fixed;

/// Where the engine's heap lies. Fixed, so that a freed pointer tells its heap by a comparison.
const BASE: usize = 0x6100_0000_0000;

/// Address space set aside; pages cost memory when they are touched.
const SIZE: usize = 1 << 35;

/// Sizes are rounded up to a power of two; the smallest is 16 bytes.
const CLASSES: usize = 36;

std::thread_local! {
    static IS_ENGINE: Cell<bool> = const { Cell::new(false) };
}

/// Whether some allocation ever went to the engine's heap.
static ROUTED: AtomicU64 = AtomicU64::new(0);

/// Memory of the system that the engine let go of; given back when no guest is stopped.
static DEFERRED: AtomicPtr<Deferred> = AtomicPtr::new(ptr::null_mut());

struct Deferred {
    next: *mut Deferred,
}

/// The global allocator of a program that simulates.
///
/// ```
/// #[global_allocator]
/// static HEAP: simulator::EngineHeap = simulator::EngineHeap;
/// ```
///
/// Every thread but the engine's allocates from the system, through one thread-local test. Memory
/// is given back to the heap it came from, whichever thread frees it.
#[derive(Debug, Clone, Copy, Default)]
pub struct EngineHeap;

// SAFETY: blocks of the region come from `Region`, which hands out disjoint blocks of at least the
// size and alignment asked for; all others come from `System`, and go back there.
unsafe impl GlobalAlloc for EngineHeap {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if IS_ENGINE.get() {
            return REGION.allocate(layout);
        }
        // SAFETY: the caller's layout.
        unsafe { System.alloc(layout) }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if block.addr().wrapping_sub(BASE) < SIZE {
            REGION.free(block, layout);
        } else if IS_ENGINE.get() {
            defer(block);
        } else {
            // SAFETY: not of the region, so it came from the system with this layout.
            unsafe { System.dealloc(block, layout) }
        }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if IS_ENGINE.get() {
            let block = REGION.allocate(layout);
            if !block.is_null() {
                // SAFETY: a fresh block of this size.
                unsafe { block.write_bytes(0, layout.size()) };
            }
            return block;
        }
        // SAFETY: the caller's layout.
        unsafe { System.alloc_zeroed(layout) }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        if block.addr().wrapping_sub(BASE) >= SIZE && !IS_ENGINE.get() {
            // SAFETY: a block of the system, and the caller's layout.
            return unsafe { System.realloc(block, layout, new_size) };
        }
        self.move_block(block, layout, new_size)
    }
}

impl EngineHeap {
    /// The cold half of `realloc`: a block that is, or shall be, the engine's.
    #[cold]
    fn move_block(self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        let in_region = block.addr().wrapping_sub(BASE) < SIZE;
        if in_region && class_of(layout) == class_of_size(new_size, layout.align()) {
            return block;
        }
        let Ok(new_layout) = Layout::from_size_align(new_size, layout.align()) else {
            return ptr::null_mut();
        };
        // SAFETY: `new_size` is not zero, by the contract of `realloc`.
        let moved = unsafe { self.alloc(new_layout) };
        if !moved.is_null() {
            // SAFETY: both blocks have at least so many bytes, and a fresh one overlaps with none.
            unsafe { ptr::copy_nonoverlapping(block, moved, layout.size().min(new_size)) };
            // SAFETY: the caller's block and layout.
            unsafe { self.dealloc(block, layout) };
        }
        moved
    }
}

/// Puts a block of the system aside.
#[cold]
fn defer(block: *mut u8) {
    let node = block.cast::<Deferred>();
    // The engine is the only thread that pushes; taking all is one exchange.
    // SAFETY: the system's smallest block holds three words, and this one was given up.
    unsafe { node.write_unaligned(Deferred { next: DEFERRED.load(Ordering::Relaxed) }) };
    DEFERRED.store(node, Ordering::Release);
}

/// Gives back to the system what the engine let go of.
fn release_deferred() {
    let mut node = DEFERRED.swap(ptr::null_mut(), Ordering::Acquire);
    while !node.is_null() {
        // SAFETY: written by `defer`.
        let next = unsafe { node.read_unaligned() }.next;
        // SAFETY: a block of the system's allocator, which is the C library's on this platform.
        unsafe { libc::free(node.cast()) };
        node = next;
    }
}

fn class_of(layout: Layout) -> usize {
    class_of_size(layout.size(), layout.align())
}

fn class_of_size(size: usize, align: usize) -> usize {
    size.max(align).max(16).next_power_of_two().trailing_zeros() as usize
}

static REGION: Region = Region {
    locked: AtomicBool::new(false),
    next: Cell::new(0),
    free: [const { Cell::new(ptr::null_mut()) }; CLASSES],
};

/// Blocks of powers of two, each aligned to its size, with a free list for each size.
struct Region {
    locked: AtomicBool,
    next: Cell<usize>,
    free: [Cell<*mut u8>; CLASSES],
}

// SAFETY: the cells are touched with `locked` held only.
unsafe impl Sync for Region {}

impl Region {
    fn with<T>(&self, work: impl FnOnce() -> T) -> T {
        // Acquire and Release: what one holder did to the lists is seen by the next. Guests do not
        // come here, so whoever holds the lock is running.
        while self
            .locked
            .compare_exchange_weak(false, true, Ordering::Acquire, Ordering::Relaxed)
            .is_err()
        {
            core::hint::spin_loop();
        }
        let result = work();
        self.locked.store(false, Ordering::Release);
        result
    }

    #[cold]
    fn allocate(&self, layout: Layout) -> *mut u8 {
        let class = class_of(layout);
        if class >= CLASSES {
            return ptr::null_mut();
        }
        ROUTED.fetch_add(1, Ordering::Relaxed);
        self.with(|| {
            let first = self.free[class].get();
            if !first.is_null() {
                // SAFETY: a free block begins with the address of the next one.
                self.free[class].set(unsafe { first.cast::<*mut u8>().read() });
                return first;
            }
            let size = 1_usize << class;
            let at = self.next.get().next_multiple_of(size.min(1 << 21));
            if at + size > SIZE || !ensure_mapped() {
                return ptr::null_mut();
            }
            self.next.set(at + size);
            ptr::with_exposed_provenance_mut(BASE + at)
        })
    }

    #[cold]
    fn free(&self, block: *mut u8, layout: Layout) {
        let class = class_of(layout);
        self.with(|| {
            // SAFETY: the block was given up, and holds at least 16 bytes.
            unsafe { block.cast::<*mut u8>().write(self.free[class].get()) };
            self.free[class].set(block);
        });
    }
}

/// Maps the region when it is first used.
fn ensure_mapped() -> bool {
    static MAPPED: AtomicBool = AtomicBool::new(false);
    if MAPPED.load(Ordering::Acquire) {
        return true;
    }
    let mapped = fixed::map(BASE, SIZE);
    if let Ok(mapped) = mapped {
        // SAFETY: advice on a mapping of our own; large pages spare address translations.
        unsafe { libc::madvise(mapped, SIZE, libc::MADV_HUGEPAGE) };
        MAPPED.store(true, Ordering::Release);
    }
    mapped.is_ok()
}

/// Why the engine's heap cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeapError {
    /// The program declares another global allocator.
    NotDeclared,
    /// The region's addresses are taken, or address space is limited.
    NoAddressSpace,
}

/// While this lives, the thread is the engine's.
#[derive(Debug)]
pub(crate) struct EngineThread(());

impl EngineThread {
    /// Makes this thread the engine's.
    ///
    /// # Errors
    /// When the program does not route the engine's allocations, or the region cannot be mapped.
    pub(crate) fn enter() -> Result<Self, HeapError> {
        if !REGION.with(ensure_mapped) {
            return Err(HeapError::NoAddressSpace);
        }
        IS_ENGINE.set(true);
        let before = ROUTED.load(Ordering::Relaxed);
        drop(core::hint::black_box(Box::new(0_u64)));
        if ROUTED.load(Ordering::Relaxed) == before {
            IS_ENGINE.set(false);
            return Err(HeapError::NotDeclared);
        }
        Ok(Self(()))
    }
}

impl Drop for EngineThread {
    fn drop(&mut self) {
        IS_ENGINE.set(false);
        release_deferred();
    }
}
