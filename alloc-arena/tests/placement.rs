//! Where pages really lie on this host, and what is said when they do not lie as asked.
//!
//! What would change the whole process (limits, full mapping tables) runs in this same binary
//! started again; what a seccomp filter forbids is forbidden to one thread only. What a host
//! cannot show is skipped with its reason.
#![cfg(all(feature = "memmap2", target_os = "linux"))]

use alloc_arena::{
    Arena, Asked, Backing, Bump, FirstTouch, Heap, Huge, Map, MapError, Mmap, Numa, Place, Policy,
    Request, Unknown, Unverified,
};
use core::ptr::NonNull;

#[path = "placement/host.rs"]
mod host;
use host::{Child, forbidding, in_child, skip};

const BYTES: usize = 1 << 20;

fn pages_in(bytes: usize) -> u64 {
    (bytes / host::page_bytes()) as u64
}

#[test]
fn a_strict_wish_is_bound_and_verified_page_by_page() {
    let Some(nodes) = host::nodes_to_bind() else { return };
    for &node in &nodes {
        let arena = Bump::<Numa>::map(BYTES, &Request::on_node(node).strict()).unwrap();
        let placement = arena.placement();
        assert!(placement.verified(), "{placement:?}");
        assert_eq!(placement.policy, Ok(Policy::Bind(node)));
        assert!(placement.fallbacks.is_empty());
        let pages = placement.pages.unwrap();
        assert_eq!((pages.on(node), pages.present()), (pages_in(BYTES), pages_in(BYTES)));
        assert_eq!((pages.absent_pages, pages.zero_pages, pages.other_pages), (0, 0, 0));
        assert_eq!(pages.ratio_on(node), Some(1.0));
        assert_eq!(pages.ratio_on(node + 1), Some(0.0));
        assert_eq!(pages.page_bytes, host::page_bytes());
        assert_eq!(placement.huge_bytes, Ok(0), "the closed pages keep the figure apart");
    }
    if nodes.len() < 2 {
        skip("remote nodes", "this host has one node");
    }
}

#[test]
fn an_advisory_wish_prefers() {
    let Some(nodes) = host::nodes_to_bind() else { return };
    let node = nodes[0];
    let placement = Bump::<Numa>::map(BYTES, &Request::on_node(node)).unwrap().placement();
    assert_eq!(placement.policy, Ok(Policy::Preferred(node)));
    assert_eq!(placement.requested, Place::Node(node));
    assert!(placement.verified(), "{placement:?}");
}

#[test]
fn off_asks_for_nothing() {
    let arena = Bump::<Numa>::map(BYTES, &Request::on_node(1000).off()).unwrap();
    let placement = arena.placement();
    assert_eq!((placement.requested, placement.policy), (Place::Anywhere, Ok(Policy::FirstTouch)));
    assert!(placement.fallbacks.is_empty());
    assert_eq!(placement.pages.unwrap().present(), pages_in(BYTES), "populated all the same");
}

#[test]
fn local_pages_lie_on_the_node_of_who_maps_them() {
    let Some(nodes) = host::nodes_to_bind() else { return };
    for request in [Request::local(), Request::local().strict()] {
        let placement = Bump::<Numa>::map(BYTES, &request).unwrap().placement();
        let Place::Node(node) = placement.requested else { panic!("{placement:?}") };
        assert!(nodes.contains(&node) && placement.verified(), "{placement:?}");
        assert_eq!(placement.pages.unwrap().on(node), pages_in(BYTES));
    }
    let off = Bump::<Numa>::map(BYTES, &Request::local().off()).unwrap().placement();
    assert_eq!((off.requested, off.policy), (Place::Anywhere, Ok(Policy::FirstTouch)));
}

#[test]
fn interleaved_pages_lie_on_every_node_in_turn() {
    let Some(nodes) = host::nodes_to_bind() else { return };
    let all = Policy::Interleaved { nodes: nodes.len() as u32 };
    for request in [Request::interleaved(), Request::interleaved().strict()] {
        let placement = Bump::<Numa>::map(BYTES, &request).unwrap().placement();
        assert!(placement.verified() && placement.fallbacks.is_empty(), "{placement:?}");
        assert_eq!((placement.requested, placement.policy), (Place::Interleaved, Ok(all)));
        let pages = placement.pages.unwrap();
        assert_eq!(pages.present(), pages_in(BYTES));
        assert!(pages.per_node().map(|(node, _)| node).eq(nodes.iter().copied()));
    }
    assert!(Bump::<Huge>::map(8 << 20, &Request::interleaved()).unwrap().placement().verified());
    let unsupported = Bump::<Mmap>::map(BYTES, &Request::interleaved().strict()).err();
    assert_eq!(unsupported, Some(MapError::Unsupported));
    if nodes.len() < 2 {
        skip("interleaved nodes", "this host has one node");
    }
}

#[test]
fn interleaving_that_was_not_kept_is_seen() {
    if host::nodes_to_bind().is_none() {
        return;
    }
    let strict = || Bump::<Numa>::map(BYTES, &Request::interleaved().strict()).err();
    forbidding(libc::SYS_mbind, 0, || {
        assert_eq!(strict(), Some(MapError::InterleaveNotKept));
        let advisory = Bump::<Numa>::map(BYTES, &Request::interleaved()).unwrap().placement();
        let because = Unverified::NotBound(MapError::InterleaveNotKept);
        assert_eq!(advisory.unverified, Some(because));
    });
    forbidding(libc::SYS_mbind, libc::EPERM, || {
        assert_eq!(strict(), Some(MapError::PermissionDenied { syscall: "mbind" }));
    });
    forbidding(libc::SYS_getcpu, libc::EPERM, || {
        let because = MapError::PermissionDenied { syscall: "getcpu" };
        assert_eq!(Bump::<Numa>::map(BYTES, &Request::local().strict()).err(), Some(because));
    });
}

fn absent<B: Backing + Map>(node: u32) {
    let strict = Bump::<B>::map(BYTES, &Request::on_node(node).strict());
    assert_eq!(strict.err(), Some(MapError::NodeAbsent(node)));
    let advisory = Bump::<B>::map(BYTES, &Request::on_node(node)).unwrap().placement();
    assert!(!advisory.verified());
    assert_eq!(advisory.unverified, Some(Unverified::NotBound(MapError::NodeAbsent(node))));
    assert_eq!(advisory.fallbacks.why(Asked::Node), Some(MapError::NodeAbsent(node)));
    assert_eq!(advisory.requested, Place::Node(node));
    assert_eq!(advisory.pages.unwrap().on(node), 0);
}

#[test]
fn absent_nodes_are_refused_or_noted() {
    for node in [63, 1000, u32::MAX] {
        if host::online(node) {
            skip("an absent node", &format!("this host has node {node}"));
            continue;
        }
        absent::<Numa>(node);
        absent::<Huge>(node);
    }
}

#[test]
fn backings_that_cannot_bind_say_so() {
    fn unsupported<A: Arena + Map>() {
        let strict = A::map(BYTES, &Request::on_node(0).strict());
        assert_eq!(strict.err(), Some(MapError::Unsupported));
        let placement = A::map(BYTES, &Request::on_node(0)).unwrap().placement();
        assert_eq!(placement.unverified, Some(Unverified::NotBound(MapError::Unsupported)));
    }
    unsupported::<Bump<Heap>>();
    unsupported::<Bump<Mmap>>();
    unsupported::<Bump<FirstTouch>>();
}

#[test]
fn untouched_pages_are_absent_and_read_pages_are_zero_pages() {
    let arena = Bump::<FirstTouch>::map(64 * host::page_bytes(), &Request::new()).unwrap();
    let region = arena.backing().region();
    let count = || {
        let placement = arena.placement();
        let pages = placement.pages.unwrap();
        ((pages.present(), pages.absent_pages, pages.zero_pages), placement.unverified)
    };
    assert_eq!(count(), ((0, 64, 0), Some(Unverified::NothingPresent)));
    assert_eq!(arena.placement().pages.unwrap().ratio_on(0), None);
    for page in 0..3 {
        assert_eq!(host::read(region, page * host::page_bytes()), 0);
    }
    assert_eq!(count(), ((0, 61, 3), Some(Unverified::NothingPresent)));
    for page in 2..7 {
        host::write(region, page * host::page_bytes(), 1);
    }
    assert_eq!(count(), ((5, 57, 2), None));
}

#[test]
fn mapped_pages_are_present_and_counted_in_every_batch() {
    let pages = [1, 2, 511, 512, 513, 1500];
    for count in pages {
        let bytes = count * host::page_bytes();
        let arena = Bump::<Mmap>::map(bytes - 1, &Request::new()).unwrap();
        assert_eq!(arena.capacity(), bytes, "rounded up to pages");
        let placement = arena.placement();
        assert!(placement.verified(), "{placement:?}");
        assert_eq!(placement.pages.unwrap().present(), count as u64);
    }
}

#[test]
fn sizes_that_cannot_be_are_named() {
    fn named<B: Backing + Map>() {
        for request in [Request::new(), Request::new().strict()] {
            let map = |bytes| Bump::<B>::map(bytes, &request).err();
            assert_eq!(map(0), Some(MapError::Zero));
            assert_eq!(map(usize::MAX), Some(MapError::LayoutOverflow));
            assert_eq!(map(isize::MAX as usize), Some(MapError::LayoutOverflow));
        }
    }
    named::<Heap>();
    named::<Mmap>();
    named::<Huge>();
    named::<Numa>();
    named::<FirstTouch>();
}

#[test]
fn the_heap_is_looked_at_too() {
    let arena = Bump::<Heap>::map(BYTES, &Request::new()).unwrap();
    host::write(arena.backing().region(), BYTES / 2, 1);
    let pages = arena.placement().pages.unwrap();
    assert!(pages.present() >= 1);
    assert!(pages.present() + pages.absent_pages + pages.zero_pages >= pages_in(BYTES));
}

#[test]
fn huge_pages_are_huge_or_the_reasons_are_noted() {
    const HUGE: usize = 2 << 20;
    let arena = Bump::<Huge>::map(3 * HUGE - 5, &Request::new()).unwrap();
    let placement = arena.placement();
    assert!(placement.verified(), "{placement:?}");
    let huge_bytes = placement.huge_bytes.unwrap();
    let whys = [Asked::HugeTlb, Asked::Transparent].map(|asked| placement.fallbacks.why(asked));
    match whys {
        [None, None] => {
            assert_eq!(placement.pages.as_ref().unwrap().page_bytes, HUGE);
            assert_eq!(huge_bytes as usize, arena.capacity());
        }
        [Some(_), None] => assert_eq!(huge_bytes as usize, arena.capacity()),
        [Some(_), Some(_)] => assert!((huge_bytes as usize) < arena.capacity()),
        [None, Some(because)] => panic!("transparent pages were not asked for: {because}"),
    }
    if host::free_huge_pages() > 0 {
        return skip("an empty pool", "this host has free huge pages");
    }
    let why = Some(MapError::NoHugePages { bytes: 3 * HUGE });
    assert_eq!(placement.fallbacks.why(Asked::HugeTlb), why);
    assert_eq!(Bump::<Huge>::map(3 * HUGE, &Request::new().strict()).err(), why);
    match host::transparent_mode() {
        Some("always" | "madvise") => assert_eq!(whys[1], None, "{placement:?}"),
        mode => assert!(whys[1].is_some(), "{mode:?} {placement:?}"),
    }
}

fn forbidden(call: &'static str, number: core::ffi::c_long) {
    let Some(nodes) = host::nodes_to_bind() else { return };
    let node = nodes[0];
    let because = MapError::PermissionDenied { syscall: call };
    forbidding(number, libc::EPERM, || {
        let strict = Bump::<Numa>::map(BYTES, &Request::on_node(node).strict());
        assert_eq!(strict.err(), Some(because));
        let placement = Bump::<Numa>::map(BYTES, &Request::on_node(node)).unwrap().placement();
        assert!(!placement.verified());
        let unverified = if call == "move_pages" {
            assert_eq!(placement.pages, Err(Unknown::Refused(because)), "no figure, not zero");
            Unverified::Uncounted(Unknown::Refused(because))
        } else {
            assert_eq!(placement.fallbacks.why(Asked::Node), Some(because));
            Unverified::NotBound(because)
        };
        assert_eq!(placement.unverified, Some(unverified));
    });
}

#[test]
fn a_forbidden_mbind_is_named() {
    forbidden("mbind", libc::SYS_mbind);
}

#[test]
fn a_forbidden_get_mempolicy_is_named() {
    forbidden("get_mempolicy", libc::SYS_get_mempolicy);
}

#[test]
fn a_forbidden_move_pages_is_named() {
    forbidden("move_pages", libc::SYS_move_pages);
}

/// A sandbox that answers "done" for the kernel and does nothing must not pass for it.
#[test]
fn pretended_calls_are_seen_through() {
    let Some(nodes) = host::nodes_to_bind() else { return };
    let (node, done) = (nodes[0], 0);
    let strict = || Bump::<Numa>::map(BYTES, &Request::on_node(node).strict()).err();
    let advisory = || Bump::<Numa>::map(BYTES, &Request::on_node(node)).unwrap().placement();
    for call in [libc::SYS_mbind, libc::SYS_get_mempolicy] {
        forbidding(call, done, || {
            let because = MapError::PolicyNotKept(node);
            assert_eq!(strict(), Some(because));
            assert_eq!(advisory().unverified, Some(Unverified::NotBound(because)));
        });
    }
    forbidding(libc::SYS_get_mempolicy, done, || {
        assert!(matches!(advisory().policy, Ok(Policy::Other(_))), "no answer is no first touch");
    });
    forbidding(libc::SYS_move_pages, done, || {
        let pages = pages_in(BYTES);
        assert_eq!(strict(), Some(MapError::NotOnNode { node, pages }));
        assert_eq!(advisory().unverified, Some(Unverified::NothingPresent));
        assert_eq!(advisory().pages.unwrap().other_pages, pages);
    });
}

#[test]
fn transparent_pages_that_are_not_given_are_noted() {
    in_child("transparent_pages_that_are_not_given_are_noted", |child| {
        if let Err(reason) = child.give_up_transparent_pages() {
            return skip("no transparent huge pages", &reason);
        }
        if host::free_huge_pages() > 0 {
            return skip("no transparent huge pages", "this host has free pages in the pool");
        }
        let arena = Bump::<Huge>::map(4 << 20, &Request::new()).unwrap();
        let placement = arena.placement();
        assert_eq!(placement.huge_bytes, Ok(0));
        let why = placement.fallbacks.why(Asked::Transparent);
        assert_eq!(why, Some(MapError::NoHugePages { bytes: arena.capacity() }));
        assert!(placement.verified(), "small pages are counted all the same");
    });
}

#[test]
fn a_kernel_without_nodes_is_unsupported() {
    let Some(nodes) = host::nodes_to_bind() else { return };
    forbidding(libc::SYS_mbind, libc::ENOSYS, || {
        let strict = Bump::<Numa>::map(BYTES, &Request::on_node(nodes[0]).strict());
        assert_eq!(strict.err(), Some(MapError::Unsupported));
    });
}

#[test]
fn a_kernel_without_populate_is_written_to() {
    forbidding(libc::SYS_madvise, libc::EINVAL, || {
        let placement = Bump::<Mmap>::map(BYTES, &Request::new()).unwrap().placement();
        assert_eq!(placement.pages.unwrap().present(), pages_in(BYTES));
        let huge = Bump::<Huge>::map(BYTES, &Request::new()).unwrap().placement();
        assert!(huge.fallbacks.why(Asked::Transparent).is_some(), "{huge:?}");
        let pages = huge.pages.unwrap();
        assert_eq!(pages.absent_pages, 0);
    });
}

#[test]
fn locked_pages_count_as_locked() {
    in_child("locked_pages_count_as_locked", |child| {
        let before = host::locked_bytes();
        let arena = match Bump::<Mmap>::map(BYTES, &Request::new().locked().strict()) {
            Err(MapError::MemlockLimit { limit_bytes, .. }) => {
                return skip("locked pages", &format!("the limit is {limit_bytes} bytes"));
            }
            arena => arena.unwrap(),
        };
        assert_eq!(host::locked_bytes() - before, BYTES as u64);
        drop(arena);
        assert_eq!(host::locked_bytes(), before);
        let touched = Bump::<FirstTouch>::map(BYTES, &Request::new().locked().strict()).unwrap();
        assert_eq!(touched.placement().pages.unwrap().present(), 0, "locked when touched");
        child.limit(libc::RLIMIT_MEMLOCK, 0);
        if let Err(reason) = child.give_up_ipc_lock() {
            return skip("RLIMIT_MEMLOCK", &reason);
        }
        let because = MapError::MemlockLimit { limit_bytes: 0, wanted_bytes: BYTES as u64 };
        let strict = Bump::<Mmap>::map(BYTES, &Request::new().locked().strict());
        assert_eq!(strict.err(), Some(because));
        let advisory = Bump::<Mmap>::map(BYTES, &Request::new().locked()).unwrap().placement();
        assert_eq!(advisory.fallbacks.why(Asked::Lock), Some(because));
        assert!(advisory.verified(), "locking says nothing about nodes");
        child.limit(libc::RLIMIT_MEMLOCK, 64 << 10);
        let strict = Bump::<Mmap>::map(BYTES, &Request::new().locked().strict());
        let limit_bytes = 64 << 10;
        let because = MapError::MemlockLimit { limit_bytes, wanted_bytes: BYTES as u64 };
        assert_eq!(strict.err(), Some(because));
    });
}

#[test]
fn a_tight_address_space_is_out_of_memory() {
    fn out_of_memory<B: Backing + Map>() {
        let arena = Bump::<B>::map(1 << 30, &Request::new());
        assert_eq!(arena.err(), Some(MapError::OutOfMemory), "{}", core::any::type_name::<B>());
    }
    in_child("a_tight_address_space_is_out_of_memory", |child| {
        child.limit(libc::RLIMIT_AS, host::address_space_bytes() + (64 << 20));
        out_of_memory::<Heap>();
        out_of_memory::<Mmap>();
        out_of_memory::<Huge>();
        out_of_memory::<Numa>();
        out_of_memory::<FirstTouch>();
        assert!(Bump::<Mmap>::map(BYTES, &Request::new()).is_ok(), "what fits still fits");
    });
}

#[test]
fn a_full_table_of_mappings_is_named() {
    in_child("a_full_table_of_mappings_is_named", |child| {
        if let Err(reason) = child.use_up_mappings() {
            return skip("VmaLimit", &reason);
        }
        assert_eq!(Bump::<Mmap>::map(BYTES, &Request::new()).err(), Some(MapError::VmaLimit));
    });
}

#[test]
fn dropped_mappings_are_gone() {
    in_child("dropped_mappings_are_gone", |_| {
        let before = host::address_space_bytes();
        for bytes in [1, host::page_bytes() + 1, 3 << 20] {
            drop(Bump::<Mmap>::map(bytes, &Request::new()));
            drop(Bump::<Huge>::map(bytes, &Request::new()));
            drop(Bump::<Numa>::map(bytes, &Request::on_node(0)));
            drop(Bump::<FirstTouch>::map(bytes, &Request::new()));
        }
        let after = host::address_space_bytes();
        assert!(after - before < 1 << 20, "{before} bytes mapped before, {after} after");
    });
}

#[test]
fn beyond_the_region_is_a_fault() {
    fn beyond(child: &Child, offset: isize) {
        let arena = Bump::<Mmap>::map(BYTES, &Request::new()).unwrap();
        let start: NonNull<u8> = arena.backing().region().cast();
        child.dies_of(libc::SIGSEGV, || host::poke(start, offset));
    }
    in_child("beyond_the_region_is_a_fault", |child| {
        beyond(child, -1);
        beyond(child, BYTES as isize);
    });
}
