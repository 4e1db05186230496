//! Vectors and boxes of crate `allocator-api2` over arenas and pools.
#![cfg(feature = "allocator-api2")]

use alloc_arena::{AtomicBump, Bump, FreeListPool, InPool, Inline, Map, Pool, Request, Slice};
use alloc_arena::{Handle, TreiberPool};
use allocator_api2::alloc::Allocator;
use allocator_api2::boxed::Box;
use allocator_api2::vec::Vec;
use core::alloc::Layout;
use core::cell::Cell;
use core::mem::MaybeUninit;
use core::ptr::NonNull;

fn memory<const N: usize>() -> [MaybeUninit<u8>; N] {
    [MaybeUninit::uninit(); N]
}

fn layout(size: usize, align: usize) -> Layout {
    Layout::from_size_align(size, align).unwrap()
}

/// Counts when it is dropped.
struct Counts<'a>(&'a Cell<u32>);

impl Drop for Counts<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

/// Grows a vector alone, then beside a box, and shrinks it; every element must survive each move.
fn vectors_survive<A: Allocator + Copy>(allocator: A, used: impl Fn() -> usize) {
    let mut alone = Vec::new_in(allocator);
    alone.extend(0..100_u32);
    assert!(alone.iter().copied().eq(0..100));
    let one = used();
    assert!(one <= alone.capacity() * 4 + 32, "the last block grows where it is: {one}");
    let between = Box::new_in(7_u64, allocator);
    alone.extend(100..400);
    assert!(alone.iter().copied().eq(0..400) && *between == 7);
    alone.truncate(50);
    alone.shrink_to_fit();
    assert!(alone.capacity() >= 50 && alone.iter().copied().eq(0..50));
    drop(between);
    drop(alone);
}

#[test]
fn vectors_grow_in_a_bump_arena() {
    let mut memory = memory::<8192>();
    let mut arena = Bump::over(&mut memory);
    vectors_survive(&arena, || arena.used());
    arena.reset();
    let inline = Bump::<Inline<8192>>::map(8192, &Request::new()).unwrap();
    vectors_survive(&inline, || inline.used());
}

#[test]
fn vectors_grow_in_an_atomic_arena() {
    let mut memory = memory::<8192>();
    let arena = AtomicBump::over(&mut memory);
    vectors_survive(&arena, || arena.used());
}

#[test]
fn the_last_block_comes_back_and_others_do_not() {
    let (mut one, mut two) = (memory::<1024>(), memory::<1024>());
    let (down, up) = (Bump::over(&mut one), AtomicBump::over(&mut two));
    fn check<A: Allocator + Copy>(arena: A, used: &dyn Fn() -> usize) {
        let first = Box::new_in([1_u64; 4], arena);
        let second = Box::new_in([2_u64; 4], arena);
        let both = used();
        drop(second);
        assert!(used() < both, "the last one");
        let third = Box::new_in([3_u64; 4], arena);
        assert_eq!(used(), both, "in the same place");
        drop(first);
        assert_eq!(used(), both, "not the last one");
        assert_eq!(*third, [3; 4]);
    }
    check(&down, &|| down.used());
    check(&up, &|| up.used());
}

fn byte(block: NonNull<u8>, at: usize) -> *mut u8 {
    block.as_ptr().wrapping_add(at)
}

/// Every step of sizes, grown and shrunk, with another block behind it or not.
fn contents_survive_every_resize<A: Allocator + Copy>(arena: A, last: bool) {
    for (from, to) in [(1, 2), (8, 40), (16, 16), (40, 8), (33, 1), (64, 64), (5, 90)] {
        for align in [1, 8, 64] {
            let (old, new) = (layout(from, 8), layout(to, align));
            let block: NonNull<u8> = arena.allocate(old).unwrap().cast();
            for at in 0..from {
                // SAFETY: inside the block.
                unsafe { byte(block, at).write(at as u8 + 1) };
            }
            let behind = (!last).then(|| arena.allocate(layout(8, 8)).unwrap());
            let moved = if to >= from {
                // SAFETY: allocated above, and not smaller now.
                unsafe { arena.grow(block, old, new) }
            } else {
                // SAFETY: allocated above, and smaller now.
                unsafe { arena.shrink(block, old, new) }
            };
            let moved: NonNull<u8> = moved.unwrap().cast();
            assert_eq!(moved.addr().get() % align, 0);
            for at in 0..from.min(to) {
                // SAFETY: written above and moved along.
                assert_eq!(unsafe { byte(moved, at).read() }, at as u8 + 1, "{from} to {to}");
            }
            if let Some(behind) = behind {
                // SAFETY: allocated above.
                unsafe { arena.deallocate(behind.cast(), layout(8, 8)) };
            }
            // SAFETY: resized above.
            unsafe { arena.deallocate(moved, new) };
        }
    }
}

#[test]
fn contents_survive_in_both_arenas() {
    let (mut one, mut two) = (memory::<65536>(), memory::<65536>());
    let (down, up) = (Bump::over(&mut one), AtomicBump::over(&mut two));
    for last in [true, false] {
        contents_survive_every_resize(&down, last);
        contents_survive_every_resize(&up, last);
    }
}

#[test]
fn a_full_arena_refuses_and_keeps_the_vector() {
    let mut memory = memory::<256>();
    let arena = Bump::over(&mut memory);
    let mut numbers = Vec::new_in(&arena);
    numbers.extend_from_slice(&[1_u64, 2, 3]);
    assert!(numbers.try_reserve(100).is_err());
    assert_eq!(numbers[..], [1, 2, 3]);
    assert!(numbers.try_reserve_exact(20).is_ok());
    assert_eq!(numbers[..], [1, 2, 3]);
}

#[test]
fn values_are_dropped_by_their_collections() {
    let (drops, mut memory) = (Cell::new(0), memory::<1024>());
    let arena = Bump::over(&mut memory);
    let mut values = Vec::new_in(&arena);
    (0..5).for_each(|_| values.push(Counts(&drops)));
    values.pop();
    assert_eq!(drops.get(), 1);
    drop(values);
    assert_eq!(drops.get(), 5);
    drop(Box::new_in(Counts(&drops), &arena));
    assert_eq!(drops.get(), 6);
}

#[test]
fn no_bytes_need_no_memory() {
    let arena = Bump::over(&mut []);
    let nothing = Box::new_in((), &arena);
    let empty: Vec<u64, _> = Vec::new_in(&arena);
    assert_eq!((*nothing, empty.len()), ((), 0));
}

#[test]
fn a_pool_boxes_what_fits_a_block() {
    let mut memory = memory::<1024>();
    let pool = FreeListPool::<_, 64>::new(Slice::new(&mut memory));
    let owner = pool.handle().unwrap();
    let allocator = InPool(&owner);
    let capacity = pool.capacity();
    let mut boxes: std::vec::Vec<_> =
        (0..capacity).map(|n| Box::new_in([n; 8], allocator)).collect();
    assert!(Box::try_new_in(0_u8, allocator).is_err(), "all are out");
    assert!(boxes.iter().enumerate().all(|(n, boxed)| boxed[..] == [n; 8]));
    boxes.pop();
    let mut bytes: Vec<u8, _> = Vec::new_in(allocator);
    bytes.extend(0..64);
    let start = bytes.as_ptr();
    assert!(bytes.try_reserve(1).is_err(), "larger than a block");
    bytes.truncate(3);
    bytes.shrink_to_fit();
    assert_eq!((&bytes[..], bytes.as_ptr()), (&[0, 1, 2][..], start), "in place");
    assert!(Box::try_new_in(OverAligned(0), allocator).is_err());
    drop((bytes, boxes));
    let got = std::iter::from_fn(|| owner.try_get().ok()).count();
    assert_eq!(got, capacity, "all came back");
}

#[repr(align(128))]
struct OverAligned(#[expect(dead_code, reason = "for its alignment")] u8);

#[test]
fn boxes_of_a_shared_pool_cross_threads() {
    let mut memory = memory::<4096>();
    let pool = TreiberPool::<_, 64>::new(Slice::new(&mut memory));
    let handle = pool.handle().unwrap();
    let boxed = Box::new_in(41_u64, InPool(&handle));
    let sum = std::thread::scope(|scope| scope.spawn(move || *boxed + 1).join().unwrap());
    assert_eq!(sum, 42);
    assert_eq!(std::iter::from_fn(|| handle.try_get().ok()).count(), pool.capacity());
}
