//! The Shape table of every variant's documentation, asserted; and the table of the crate's page
//! against the code.

use alloc_arena::{
    Arena, Bump, Inline, Map, MapError, NullArena, Request, Slab, Slice, TypedArena,
};
use core::mem::{align_of, size_of};

/// Size and alignment in bytes.
fn shape<T>() -> [usize; 2] {
    [size_of::<T>(), align_of::<T>()]
}

#[test]
#[cfg(target_pointer_width = "64")]
fn shapes_are_as_documented() {
    assert_eq!(shape::<NullArena>(), [4160, 64]);
    assert_eq!(shape::<Slice>(), [16, 8]);
    assert_eq!(shape::<Bump<Slice>>(), [24, 8]);
    assert_eq!(shape::<TypedArena<u8, Slice>>(), [24 + 16, 8]);
    assert_eq!(shape::<Slab<u8, Slice>>(), [16 + 24, 8]);
    assert_eq!(shape::<Inline<65536>>(), [65600, 64]);
    assert_eq!(shape::<Inline<100>>(), [128, 64]);
    assert_eq!(shape::<Bump<Inline<65536>>>(), [65664, 64]);
    #[cfg(feature = "alloc")]
    {
        assert_eq!(shape::<alloc_arena::Heap>(), [32, 8]);
        assert_eq!(shape::<Bump<alloc_arena::Heap>>(), [40, 8]);
        pools_are_as_documented();
    }
    #[cfg(all(feature = "memmap2", target_os = "linux"))]
    {
        assert_eq!(shape::<alloc_arena::Mmap>(), [48, 8]);
        assert_eq!(shape::<alloc_arena::Huge>(), [48, 8]);
        assert_eq!(shape::<alloc_arena::Numa>(), [48, 8]);
        assert_eq!(shape::<alloc_arena::FirstTouch>(), [48, 8]);
        assert_eq!(shape::<Bump<alloc_arena::Mmap>>(), [56, 8]);
    }
}

#[cfg(all(feature = "alloc", target_pointer_width = "64"))]
fn pools_are_as_documented() {
    use alloc_arena::{AtomicBump, FreeListPool, Heap, MagazinePool, MutexPool, NullPool, Pool};
    use alloc_arena::{RemotePool, RingPool, TreiberPool};
    fn handle<P: Pool + 'static>() -> [usize; 2] {
        shape::<P::Handle<'static>>()
    }
    assert_eq!(shape::<AtomicBump<Heap>>(), [256, 128]);
    assert_eq!(shape::<NullPool>(), [128, 64]);
    assert_eq!(shape::<FreeListPool<Heap, 64>>(), [80, 8]);
    assert_eq!(shape::<MutexPool<Heap, 64>>(), [256, 128]);
    assert_eq!(shape::<TreiberPool<Heap, 64>>(), [256, 128]);
    assert_eq!(shape::<RingPool<Heap, 64>>(), [384, 128]);
    assert_eq!(shape::<MagazinePool<Heap, 64>>(), [640, 128]);
    assert_eq!(shape::<RemotePool<Heap, 64, 128>>(), [33024, 128]);
    assert_eq!(handle::<FreeListPool<Heap, 64>>(), [16, 8]);
    assert_eq!(handle::<TreiberPool<Heap, 64>>(), [8, 8]);
    assert_eq!(handle::<MagazinePool<Heap, 64>>(), [32, 8]);
    assert_eq!(handle::<RemotePool<Heap, 64, 128>>(), [24, 8]);
    assert_eq!(size_of::<alloc_arena::Checked<NullPool>>(), 128 + 64, "16 bytes, padded");
}

#[test]
fn every_pool_can_be_made_from_a_size_and_a_wish() {
    use alloc_arena::{Handle, Pool};
    macro_rules! make {
        ($($id:ident => $pool:ty, $kind:ident;)*) => { $(
            let pool = Box::new(<$pool>::map(4096, &Request::new()).expect(stringify!($id)));
            let blocks = pool.capacity() * <$pool as Pool>::BLOCK.size();
            assert!(blocks >= 4096 || stringify!($kind) == "baseline", stringify!($id));
            assert!(pool.handle().is_some_and(|handle| handle.try_get().is_ok()));
        )* };
    }
    alloc_arena::for_each_pool!(make);
}

#[test]
fn every_row_can_be_made_from_a_size_and_a_wish() {
    macro_rules! make {
        ($($id:ident => $arena:ty, $kind:ident;)*) => { $(
            let mut arena = Box::new(<$arena>::map(4096, &Request::new()).expect(stringify!($id)));
            let block = arena.try_alloc_layout(core::alloc::Layout::new::<u64>());
            assert_eq!(block.map(|block| block.len()), Ok(8), stringify!($id));
            assert!(arena.capacity() >= 4096);
            let most = <$arena as Arena>::PROPERTIES.most_bytes;
            assert!(most.is_none_or(|most| most >= arena.capacity()));
            arena.reset();
            assert_eq!(arena.used(), 0);
        )* };
    }
    alloc_arena::for_each_arena!(make);
}

/// A file that names atomics has a model of its own, but for the one that counts on another's.
#[test]
fn what_names_atomics_has_a_model() {
    let sources = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/src")).unwrap();
    let models = include_str!("loom.rs");
    let mut read = 0;
    for source in sources {
        let path = source.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        if text.contains("sync::atomic::") && !["sync.rs", "pool_checked.rs"].contains(&name) {
            assert!(models.contains(&format!("src/{name}\"]")), "{name}: add it to tests/loom.rs");
            read += 1;
        }
    }
    assert!(read >= 9, "{read} sources");
}

#[test]
fn errors_say_what_to_do() {
    let errors = [
        MapError::Unsupported,
        MapError::PermissionDenied { syscall: "mbind" },
        MapError::NodeAbsent(63),
        MapError::NodeNotAllowed(63),
        MapError::NodeWithoutMemory(63),
        MapError::PolicyNotKept(63),
        MapError::InterleaveNotKept,
        MapError::NotEven { most: 3, least: 1 },
        MapError::NotOnNode { node: 63, pages: 2 },
        MapError::NoHugePages { bytes: 2 << 20 },
        MapError::MemlockLimit { limit_bytes: 0, wanted_bytes: 4096 },
        MapError::VmaLimit,
        MapError::OutOfMemory,
        MapError::LayoutOverflow,
        MapError::TooLarge { most_bytes: 64 },
        MapError::Zero,
        MapError::Os { syscall: "mbind", errno: 22 },
    ];
    for error in errors {
        let text = error.to_string();
        let (what, remedy) = text.split_once("; ").expect("what is wrong; what to do");
        assert!(what.len() > 10 && remedy.len() > 10, "{text}");
        let named = format!("{error:?}");
        if named.contains("63") {
            assert!(text.contains("63"), "{text}");
        }
    }
}

#[cfg(all(feature = "memmap2", target_os = "linux", target_pointer_width = "64"))]
macro_rules! table {
    ($($id:ident => $arena:ty, $kind:ident;)*) => {
        [$((
            stringify!($id),
            <$arena as Arena>::PROPERTIES,
            size_of::<$arena>(),
            stringify!($kind),
        )),*]
    };
}

#[cfg(all(feature = "memmap2", target_os = "linux", target_pointer_width = "64"))]
macro_rules! pool_table {
    ($($id:ident => $pool:ty, $kind:ident;)*) => {
        [$((
            stringify!($id),
            <$pool as alloc_arena::Pool>::PROPERTIES,
            size_of::<$pool>(),
            stringify!($kind),
        )),*]
    };
}

#[test]
#[cfg(all(feature = "memmap2", target_os = "linux", target_pointer_width = "64"))]
fn the_documented_table_is_the_table() {
    let page = include_str!("../src/lib.rs");
    let documented: Vec<String> = page
        .lines()
        .filter_map(|line| line.strip_prefix("//! | `"))
        .map(|row| row.split('|').map(str::trim).collect::<Vec<_>>().join("|"))
        .collect();
    let yes = |property| if property { "yes" } else { "no" };
    let pools: Vec<_> = alloc_arena::for_each_pool!(pool_table).into();
    let arenas: Vec<_> = alloc_arena::for_each_arena!(table).into();
    let rows: Vec<String> = arenas
        .iter()
        .chain(&pools)
        .map(|(id, properties, bytes, kind)| {
            let link = documented
                .iter()
                .find(|row| row.starts_with(&format!("{id}`|")))
                .and_then(|row| row.split('|').nth(1))
                .unwrap_or("no row in lib.rs");
            let (memory, frees) = (properties.memory, properties.frees);
            let binds = yes(properties.numa_bound);
            let (threads, drops) = (yes(properties.thread_safe), yes(properties.runs_drop));
            format!("{id}`|{link}|{memory}|{binds}|{frees}|{threads}|{drops}|{bytes}|{kind}|")
        })
        .collect();
    assert_eq!(documented, rows, "left: lib.rs, right: the table and the constants");
}

#[test]
fn the_table_of_the_readme_is_that_of_the_page() {
    let row = |line: &str| {
        let plain = line.replace(['`', '[', ']'], "");
        plain.split('|').map(str::trim).collect::<Vec<_>>().join("|")
    };
    let (page, readme) = (include_str!("../src/lib.rs"), include_str!("../README.md"));
    let page = page.lines().filter_map(|line| line.strip_prefix("//! | `"));
    let page: Vec<String> = page.map(|line| row(&format!("| `{line}"))).collect();
    let (_, rows) = readme.split_once("| id |").expect("a table of rows");
    let readme: Vec<String> =
        rows.lines().filter(|line| line.starts_with("| `")).map(row).collect();
    assert_eq!(readme, page, "left: README.md, right: lib.rs");
}
