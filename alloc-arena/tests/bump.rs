//! The arithmetic of the bump arena at every edge, and its typed face.

use alloc_arena::{AllocError, Bump, Full, Inline, Map, MapError, Request, Slice, bump};
use core::alloc::Layout;
use core::cell::Cell;
use core::mem::MaybeUninit;

/// The specification in numbers that cannot overflow: the highest multiple of the alignment at or
/// below `finger` − size, if that is not below `start`.
fn specified(start: usize, finger: usize, layout: Layout) -> Option<usize> {
    let lowered = finger as i128 - layout.size() as i128;
    let block = lowered.div_euclid(layout.align() as i128) * layout.align() as i128;
    (block >= start as i128).then(|| usize::try_from(block).expect("between start and finger"))
}

fn check(start: usize, finger: usize, layout: Layout) {
    let block = bump(start, finger, layout);
    assert_eq!(block, specified(start, finger, layout), "bump({start}, {finger}, {layout:?})");
    if let Some(block) = block {
        assert!(start <= block && block.is_multiple_of(layout.align()));
        assert!(block.checked_add(layout.size()).is_some_and(|end| end <= finger));
    }
}

/// Every valid pair of the sizes and the powers of two that matter.
fn layouts() -> Vec<Layout> {
    let aligns = (0..=20).map(|bits| 1_usize << bits);
    let mut layouts = Vec::new();
    for align in aligns {
        let most = isize::MAX as usize - (align - 1);
        let near_align = [align - 1, align, align + 1, 3 * align];
        let sizes = (0..=65).chain([255, 4095, 4096, 4097, 1 << 20, most / 2, most - 1, most]);
        layouts.extend(
            sizes.chain(near_align).filter_map(|size| Layout::from_size_align(size, align).ok()),
        );
        assert!(Layout::from_size_align(most + 1, align).is_err(), "{most} is the largest size");
    }
    layouts
}

#[test]
fn every_layout_at_every_edge_of_the_address_space() {
    let top = usize::MAX;
    let middle = isize::MAX as usize;
    let edges = [0, 1, 63, 64, 4096, 1 << 20, middle - 4096, middle, middle + 1, middle + 4096];
    let high = [top - (1 << 21), top - 4096, top - 4095, top - 64, top - 63, top - 1, top];
    let addresses: Vec<usize> = edges.into_iter().chain(high).collect();
    let mut checked = 0_u64;
    for layout in layouts() {
        for &start in &addresses {
            for &finger in addresses.iter().filter(|&&finger| finger >= start) {
                check(start, finger, layout);
                checked += 1;
            }
        }
    }
    assert!(checked > 100_000, "{checked}");
}

#[test]
fn every_small_region_exhaustively() {
    for start in [0, 1, 7, 100, usize::MAX - 40] {
        for room in 0..=40 {
            for bits in 0..=6 {
                for size in 0..=42 {
                    let layout = Layout::from_size_align(size, 1 << bits).unwrap();
                    check(start, start + room, layout);
                }
            }
        }
    }
}

#[test]
fn a_reversed_region_is_empty() {
    assert_eq!(bump(200, 100, Layout::new::<u8>()), None);
    assert_eq!(bump(usize::MAX, 0, Layout::new::<()>()), None);
}

fn memory<const N: usize>() -> [MaybeUninit<u8>; N] {
    [MaybeUninit::uninit(); N]
}

#[test]
fn values_come_back_from_a_full_arena() {
    let mut memory = memory::<32>();
    let arena = Bump::over(&mut memory);
    let text = String::from("mine");
    let large = arena.try_alloc(([0_u64; 8], text));
    let Err(Full((_, text))) = large else { panic!("no room for 64 bytes") };
    assert_eq!(text, "mine");
    assert_eq!(arena.used(), 0, "a refusal costs nothing");
    assert_eq!(arena.try_alloc_slice_copy(&[0_u64; 5]), Err(AllocError));
    assert_eq!(arena.try_alloc(1_u8), Ok(&mut 1));
}

#[test]
fn the_last_byte_is_handed_out() {
    let mut memory = memory::<5>();
    let arena = Bump::over(&mut memory);
    let all = arena.try_alloc_slice_copy(b"abcde").unwrap();
    assert_eq!(all, b"abcde");
    assert_eq!((arena.used(), arena.capacity()), (5, 5));
    assert_eq!(arena.try_alloc(1_u8), Err(Full(1)));
}

#[test]
fn no_bytes_cost_nothing_even_without_memory() {
    #[repr(align(4096))]
    #[derive(Debug, PartialEq)]
    struct Wide;
    let arena = Bump::over(&mut []);
    assert_eq!(arena.try_alloc(Wide), Ok(&mut Wide));
    assert_eq!(arena.try_alloc_slice_copy::<u64>(&[]), Ok(&mut [][..]));
    assert_eq!((arena.used(), arena.capacity()), (0, 0));
    assert_eq!(arena.try_alloc(0_u8), Err(Full(0)));
}

#[test]
fn destructors_do_not_run() {
    struct Counts<'a>(&'a Cell<u32>);
    impl Drop for Counts<'_> {
        fn drop(&mut self) {
            self.0.set(self.0.get() + 1);
        }
    }
    let (drops, mut memory) = (Cell::new(0), memory::<64>());
    {
        let mut arena = Bump::over(&mut memory);
        assert!(arena.try_alloc(Counts(&drops)).is_ok());
        arena.reset();
        assert!(arena.try_alloc(Counts(&drops)).is_ok());
    }
    assert_eq!(drops.get(), 0);
}

#[test]
fn blocks_start_at_the_top_and_stay_apart() {
    let mut memory = memory::<256>();
    let end = memory.as_ptr_range().end.addr();
    let arena = Bump::new(Slice::new(&mut memory));
    let first = arena.try_alloc(1_u8).unwrap();
    let second = arena.try_alloc(2_u64).unwrap();
    assert_eq!((&raw const *first).addr(), end - 1);
    assert!((&raw const *second).addr() + 8 < end);
    let third = arena.try_alloc_slice_copy(&[3_u16; 3]).unwrap();
    (*first, *second) = (4, 5);
    third[2] = 6;
    assert_eq!((*first, *second, &*third), (4, 5, &[3, 3, 6][..]));
}

#[test]
fn a_moved_inline_arena_takes_its_finger_along() {
    fn moved<T>(value: T) -> Box<T> {
        Box::new(value)
    }
    let arena = Bump::<Inline<256>>::map(200, &Request::new()).unwrap();
    assert!(arena.try_alloc([7_u8; 100]).is_ok());
    let mut arena = moved(arena);
    assert_eq!((arena.used(), arena.capacity()), (100, 200));
    let block = arena.try_alloc([8_u8; 100]).unwrap();
    let address = block.as_ptr().addr();
    let range = (&raw const *arena).addr()..(&raw const *arena).addr() + size_of_val(&*arena);
    assert!(range.contains(&address), "{address:#x} is not in {range:#x?}");
    assert!(arena.try_alloc(1_u8).is_err());
    arena.reset();
    assert_eq!(arena.used(), 0);
}

#[test]
fn arenas_go_to_other_threads() {
    let mut memory = memory::<64>();
    let arena = Bump::over(&mut memory);
    std::thread::scope(|scope| {
        scope.spawn(move || assert_eq!(arena.try_alloc(9), Ok(&mut 9)));
    });
}

#[test]
fn sizes_of_inline_arenas_are_checked() {
    type Small = Bump<Inline<64>>;
    let map = |bytes| Small::map(bytes, &Request::new()).map(|arena| arena.capacity());
    assert_eq!(map(0), Err(MapError::Zero));
    assert_eq!(map(64), Ok(64));
    assert_eq!(map(65), Err(MapError::TooLarge { most_bytes: 64 }));
    let strict = Small::map(64, &Request::on_node(0).strict());
    assert_eq!(strict.err(), Some(MapError::Unsupported));
}

/// A baseline is no arena, but it must serve the drivers.
#[test]
fn the_null_arena_serves_any_size_the_same_block() {
    use alloc_arena::{Arena, NullArena};
    let mut arena = NullArena::map(1 << 30, &Request::new()).unwrap();
    let layout = Layout::new::<[u64; 8]>();
    let first = arena.try_alloc_layout(layout).unwrap();
    assert_eq!(arena.try_alloc_layout(layout), Ok(first));
    assert!(first.addr().get().is_multiple_of(64));
    let too_large = Layout::from_size_align(4097, 1).unwrap();
    assert_eq!(arena.try_alloc_layout(too_large), Err(AllocError));
    arena.reset();
    assert_eq!((arena.used(), arena.capacity()), (0, 4096));
    assert_eq!(NullArena::map(0, &Request::new()).err(), Some(MapError::Zero));
}
