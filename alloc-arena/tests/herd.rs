//! Herds: blocks that outlive threads and members, seats that come back, members on nodes.
#![cfg(feature = "alloc")]

use alloc_arena::{Heap, Herd, Map, MapError, Request};
use std::sync::Mutex;
use std::thread;

#[test]
fn the_shape_is_as_documented() {
    if cfg!(target_pointer_width = "64") {
        assert_eq!((size_of::<Herd<Heap>>(), align_of::<Herd<Heap>>()), (32, 8));
        assert_eq!(size_of::<alloc_arena::Member<'static, Heap>>(), 24);
    }
}

/// More threads than seats, one after the other at each: every number is where its thread left it.
#[test]
fn blocks_outlive_many_threads() {
    let herd = Herd::<Heap>::map(3, 64 << 10, &Request::new()).unwrap();
    let kept = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for id in 0..200_u64 {
            let (herd, kept) = (&herd, &kept);
            scope.spawn(move || {
                let member = loop {
                    match herd.member() {
                        Some(member) => break member,
                        None => thread::yield_now(),
                    }
                };
                let mine: Vec<&mut u64> =
                    (0..40).map(|n| member.try_alloc(id * 40 + n).unwrap()).collect();
                drop(member);
                kept.lock().unwrap().extend(mine);
            });
        }
    });
    let mut numbers: Vec<u64> = kept.into_inner().unwrap().into_iter().map(|n| *n).collect();
    numbers.sort_unstable();
    assert!(numbers.into_iter().eq(0..8000), "each once, none overwritten");
}

#[test]
fn seats_are_taken_once_and_come_back() {
    let mut herd = Herd::<Heap>::map(2, 256, &Request::new()).unwrap();
    assert_eq!((herd.len(), herd.is_empty()), (2, false));
    let (first, second) = (herd.member().unwrap(), herd.member().unwrap());
    assert_eq!((first.seat(), second.seat()), (0, 1));
    assert!(herd.member().is_none() && herd.member_at(0).is_none());
    assert!(herd.member_at(2).is_none() && herd.member_at(usize::MAX).is_none());
    first.try_alloc([1_u8; 100]).unwrap();
    assert_eq!((first.used(), second.used()), (100, 0));
    drop((first, second));
    let again = herd.member_at(0).unwrap();
    assert_eq!(again.used(), 100, "behind what was handed out");
    assert!(again.try_alloc([2_u8; 200]).is_err(), "though the other one has room");
    assert_eq!(again.try_alloc_slice_copy(&[3_u8; 100]).map(|slice| slice.len()), Ok(100));
    std::mem::forget(again);
    assert!(herd.member_at(0).is_none());
    herd.reset();
    assert_eq!(herd.member_at(0).map(|member| member.used()), Some(0), "also a forgotten seat");
}

#[test]
fn herds_that_cannot_be_are_errors() {
    let map = |members, bytes| Herd::<Heap>::map(members, bytes, &Request::new()).map(|_| ());
    assert_eq!(map(1, 0), Err(MapError::Zero));
    assert_eq!(map(1, isize::MAX as usize), Err(MapError::LayoutOverflow));
    assert_eq!(map(Herd::<Heap>::MOST, 8), Ok(()));
    assert!(map(Herd::<Heap>::MOST + 1, 8).is_err());
    assert!(Herd::<Heap>::map(0, 8, &Request::new()).unwrap().member().is_none());
    let strict = Herd::<Heap>::on_nodes([0], 64, &Request::new().strict());
    assert_eq!(strict.map(|_| ()), Err(MapError::Unsupported), "the heap lies anywhere");
    assert!(Heap::map(8, &Request::new()).is_ok());
}

#[test]
#[cfg(all(feature = "memmap2", target_os = "linux"))]
fn a_member_for_each_node_says_where_it_lies() {
    use alloc_arena::{Numa, Place};
    let herd = Herd::<Numa>::on_nodes([0, 30_000], 4096, &Request::new()).unwrap();
    let placements: Vec<_> = herd.placements().collect();
    assert_eq!(
        placements.iter().map(|p| p.requested).collect::<Vec<_>>(),
        [Place::Node(0), Place::Node(30_000)]
    );
    assert!(!placements[1].verified(), "no machine has that node");
}
