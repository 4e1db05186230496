//! The verdict of a report over made-up machines: this host need not have their nodes.
#![cfg(feature = "alloc")]

use alloc_arena::{
    Asked, Fallbacks, MapError, Pages, Place, Placement, Policy, Unknown, Unverified,
};

/// Nodes 0, 8 and 65 hold 3, 4 and 1 pages; 2 are absent and 1 is the page of zeros.
fn spread() -> Pages {
    let mut pages = Pages::new(4096);
    for (node, count) in [(8, 2), (0, 3), (65, 1), (8, 2)] {
        (0..count).for_each(|_| pages.add(node));
    }
    pages.absent_pages = 2;
    pages.zero_pages = 1;
    pages
}

fn only(node: u32) -> Pages {
    let mut pages = Pages::new(4096);
    pages.add(node);
    pages
}

fn judge(requested: Place, pages: Result<Pages, Unknown>) -> Option<Unverified> {
    let policy = Ok(Policy::FirstTouch);
    Placement::judge(requested, policy, pages, Ok(0), Fallbacks::default()).unverified
}

#[test]
fn shares_are_of_the_pages_that_are_present() {
    let pages = spread();
    assert!(pages.per_node().eq([(0, 3), (8, 4), (65, 1)]));
    assert_eq!((pages.present(), pages.on(8), pages.on(1)), (8, 4, 0));
    assert_eq!(pages.ratio_on(8), Some(0.5));
    assert_eq!(Pages::new(4096).ratio_on(0), None);
}

#[test]
fn verdicts_follow_the_pages() {
    assert_eq!(judge(Place::Node(8), Ok(spread())), Some(Unverified::Elsewhere { pages: 4 }));
    assert_eq!(judge(Place::Node(1), Ok(spread())), Some(Unverified::Elsewhere { pages: 8 }));
    assert_eq!(judge(Place::Anywhere, Ok(spread())), None, "nothing was asked");
    assert_eq!(judge(Place::Node(65), Ok(only(65))), None);
    assert_eq!(judge(Place::Node(0), Ok(only(65))), Some(Unverified::Elsewhere { pages: 1 }));
    assert_eq!(judge(Place::Anywhere, Ok(Pages::new(4096))), Some(Unverified::NothingPresent));
}

#[test]
fn what_is_not_counted_is_not_verified() {
    let refused = Unknown::Refused(MapError::PermissionDenied { syscall: "move_pages" });
    for unknown in [Unknown::CannotAsk, refused] {
        assert_eq!(judge(Place::Anywhere, Err(unknown)), Some(Unverified::Uncounted(unknown)));
    }
}

#[test]
fn a_wish_given_up_outweighs_pages_that_lie_well() {
    let mut fallbacks = Fallbacks::default();
    assert!(fallbacks.is_empty());
    fallbacks.record(Asked::Lock, MapError::Unsupported);
    let report = |fallbacks| {
        Placement::judge(Place::Node(8), Ok(Policy::FirstTouch), Ok(only(8)), Ok(0), fallbacks)
    };
    assert!(report(fallbacks).verified(), "locking says nothing about nodes");
    fallbacks.record(Asked::Node, MapError::NodeAbsent(8));
    fallbacks.record(Asked::Node, MapError::Unsupported);
    let why = Some(Unverified::NotBound(MapError::NodeAbsent(8)));
    assert_eq!(report(fallbacks).unverified, why, "the first reason stays");
    assert_eq!(fallbacks.iter().count(), 2);
}

#[test]
fn pages_in_turn_are_even_on_every_node() {
    let spread = |counts: &[(u32, u64)]| {
        let mut pages = Pages::new(4096);
        counts.iter().for_each(|&(node, count)| (0..count).for_each(|_| pages.add(node)));
        pages
    };
    let judge = |nodes, counts: &[(u32, u64)], huge_bytes| {
        let policy = Ok(Policy::Interleaved { nodes });
        let pages = Ok(spread(counts));
        let none = Fallbacks::default();
        Placement::judge(Place::Interleaved, policy, pages, Ok(huge_bytes), none).unverified
    };
    assert_eq!(judge(2, &[(0, 4), (8, 4)], 0), None);
    assert_eq!(judge(3, &[(0, 4), (8, 3), (9, 3)], 0), None);
    assert_eq!(judge(2, &[(0, 5), (8, 3)], 0), Some(Unverified::Uneven { most: 5, least: 3 }));
    assert_eq!(judge(2, &[(0, 8)], 0), Some(Unverified::Uneven { most: 8, least: 0 }));
    assert!(judge(2, &[(0, 4), (8, 4), (9, 4)], 0).is_some(), "a node too many");
    assert_eq!(judge(2, &[(0, 1024), (8, 512)], 2 << 20), None, "a huge page at a time");
    let policy = Ok(Policy::FirstTouch);
    let lost = Placement::judge(
        Place::Interleaved,
        policy,
        Ok(spread(&[(0, 4)])),
        Ok(0),
        Fallbacks::default(),
    );
    assert_eq!(lost.unverified, Some(Unverified::NotBound(MapError::InterleaveNotKept)));
}
