//! A heap whose addresses depend on nothing but the program: what a thread allocates between
//! [`enter`] and [`leave`] comes from a place of its own, and is never given back.

use core::alloc::{GlobalAlloc, Layout};
use core::cell::Cell;
use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering};

use simulator::EngineHeap;

const BASE: usize = 0x3000_0000_0000;
const PLACE_BYTES: usize = 8 << 20;
const PLACES: usize = 256;

/// The global allocator of tests that compare processes.
pub(crate) struct Heap;

std::thread_local! {
    static NEXT: Cell<usize> = const { Cell::new(0) };
}

#[repr(align(128))]
struct Used(AtomicUsize);

static USED: [Used; PLACES] = [const { Used(AtomicUsize::new(0)) }; PLACES];

/// Lets the thread allocate from the place with this number.
pub(crate) fn enter(place: usize) {
    NEXT.set(BASE + place * PLACE_BYTES + USED[place].0.load(Ordering::Relaxed));
}

/// Lets the thread allocate from the system again. The place is used on from a page's start.
pub(crate) fn leave(place: usize) {
    let used = (NEXT.replace(0) - BASE - place * PLACE_BYTES).next_multiple_of(4096);
    assert!(used < PLACE_BYTES);
    USED[place].0.store(used, Ordering::Relaxed);
}

/// Maps all places.
pub(crate) fn map() {
    // SAFETY: a new mapping at an address where nothing is mapped.
    let mapped = unsafe {
        libc::mmap(
            ptr::without_provenance_mut(BASE),
            PLACES * PLACE_BYTES,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE
                | libc::MAP_ANONYMOUS
                | libc::MAP_NORESERVE
                | libc::MAP_FIXED_NOREPLACE,
            -1,
            0,
        )
    };
    assert_eq!(mapped.addr(), BASE);
    mapped.expose_provenance();
}

fn is_in_place(block: *mut u8) -> bool {
    block.addr().wrapping_sub(BASE) < PLACES * PLACE_BYTES
}

// SAFETY: blocks of places are cut off one after the other and never reused; all others come from
// and go to the engine's heap.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let next = NEXT.get();
        if next == 0 {
            // SAFETY: the caller's layout.
            return unsafe { EngineHeap.alloc(layout) };
        }
        let start = next.next_multiple_of(layout.align());
        NEXT.set(start + layout.size());
        ptr::with_exposed_provenance_mut(start)
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if !is_in_place(block) {
            // SAFETY: it came from there with this layout.
            unsafe { EngineHeap.dealloc(block, layout) }
        }
    }
}
