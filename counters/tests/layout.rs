//! The Shape table of every variant's documentation, asserted; and the table of the crate's page
//! against the code.

use core::mem::{align_of, size_of};
use counters::{
    AtomicCounter, BatchedCounter, LossyCounter, NodeCounter, NullCounter, PackedCounter,
    PerCpuCounter, PerThreadCounter, ShardedCounter, Slots, StripedCounter,
};

/// Size and alignment in bytes.
fn shape<C>() -> [usize; 2] {
    [size_of::<C>(), align_of::<C>()]
}

#[test]
fn shapes_are_as_documented() {
    assert_eq!(shape::<NullCounter>(), [0, 1]);
    assert_eq!(shape::<AtomicCounter>(), [8, 8]);
    let pair = align_of::<crossbeam_utils::CachePadded<u8>>();
    assert_eq!(shape::<LossyCounter>(), [8, 8]);
    assert_eq!(shape::<ShardedCounter<128>>(), [128 * pair, pair]);
    assert_eq!(shape::<NodeCounter<16>>(), [16 * pair, pair]);
    assert_eq!(shape::<BatchedCounter<128, 4096>>(), [129 * pair, pair]);
    assert_eq!(shape::<StripedCounter<128>>(), [129 * pair, pair]);
    assert_eq!(shape::<PackedCounter<64>>(), [512, 64]);
    assert_eq!(shape::<PackedCounter<2>>(), [64, 64]);
    let word = size_of::<usize>();
    assert_eq!(shape::<Slots<16>>()[0], (128 + word).next_multiple_of(8));
    if cfg!(target_arch = "x86_64") {
        assert_eq!(pair, 128, "a pair of lines on x86-64");
        assert_eq!(shape::<ShardedCounter<1>>(), [128, 128]);
        assert_eq!(shape::<PerThreadCounter<128>>(), [16640, 128]);
        assert_eq!(shape::<PerThreadCounter<1>>(), [384, 128]);
        assert_eq!(shape::<PerCpuCounter<128, ()>>(), [16512, 128]);
        assert_eq!(shape::<PerCpuCounter<1, ()>>(), [256, 128]);
    }
}

/// Addresses of the words, each checked to be the one that an add to its shard changes.
macro_rules! addresses {
    ($counter:ty, $shards:expr) => {{
        let counter = Box::new(<$counter>::new());
        let base = core::ptr::from_ref(&*counter);
        (0..$shards)
            .map(|shard| {
                // SAFETY: the offset is that of a field of this very counter.
                let word = unsafe { base.byte_add(<$counter>::offset_of_shard(shard)) };
                let read = || {
                    // SAFETY: the counter is alive, the word is an i64, and no other thread is here.
                    unsafe { word.cast::<i64>().read_volatile() }
                };
                assert_eq!(read(), 0);
                counter.add_at(shard + $shards, 1); // shard numbers are reduced
                assert_eq!((read(), counter.sum_at(shard)), (1, 1));
                word.addr()
            })
            .collect::<Vec<usize>>()
    }};
}

macro_rules! for_each_size {
    ($check:ident) => {
        $check! { 1 2 4 8 16 32 64 128 }
    };
}

#[test]
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn no_two_shards_share_a_pair_of_lines() {
    macro_rules! check {
        ($($shards:literal)*) => { $(
            let mut pairs: Vec<usize> = addresses!(ShardedCounter<$shards>, $shards)
                .iter()
                .inspect(|&&word| assert_eq!(word % 128, 0, "starts its pair"))
                .map(|word| word / 128)
                .collect();
            pairs.dedup();
            assert_eq!(pairs.len(), $shards);
        )* };
    }
    for_each_size!(check);
}

#[test]
fn the_control_shares_lines_and_says_so() {
    macro_rules! check {
        ($($shards:literal)*) => { $(
            let words = addresses!(PackedCounter<$shards>, $shards);
            for (shard, word) in words.iter().enumerate() {
                assert_eq!(word / 64, words[0] / 64 + shard / 8, "it must be a bad example");
            }
        )* };
    }
    for_each_size!(check);
}

#[test]
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn words_of_the_others_share_no_pair_of_lines_either() {
    macro_rules! check {
        ($counter:ident: $($shards:literal)*) => { $({
            let counter = Box::new(<$counter<$shards>>::new());
            let mut words = Vec::new();
            counters::HotFields::hot_fields(&*counter, &mut |field| words.push(field.start));
            let pairs: std::collections::BTreeSet<usize> =
                words.iter().map(|word| word / 128).collect();
            assert_eq!(pairs.len(), words.len(), "{}", stringify!($counter));
        })* };
    }
    check!(PerThreadCounter: 1 2 3 64 128);
    check!(BatchedCounter: 1 2 4 64 128);
    check!(StripedCounter: 1 2 4 64 128);
}

#[test]
fn counters_in_an_array_do_not_touch() {
    let counters: [ShardedCounter<2>; 3] = Default::default();
    let pair = align_of::<crossbeam_utils::CachePadded<u8>>();
    for two in counters.windows(2) {
        assert_eq!((&raw const two[1]).addr() - (&raw const two[0]).addr(), 2 * pair);
        assert_eq!((&raw const two[0]).addr() % pair, 0);
    }
}

#[cfg(all(feature = "std", target_arch = "x86_64"))]
macro_rules! table {
    ($($id:ident => $counter:ty, $kind:ident;)*) => {
        [$((
            stringify!($id),
            <$counter as counters::Counter>::PROPERTIES,
            size_of::<$counter>(),
            stringify!($kind),
        )),*]
    };
}

#[test]
#[cfg(all(feature = "std", target_arch = "x86_64"))]
fn the_documented_table_is_the_table() {
    let page = include_str!("../src/lib.rs");
    let documented: Vec<String> = page
        .lines()
        .filter_map(|line| line.strip_prefix("//! | `"))
        .map(|row| row.split('|').map(str::trim).collect::<Vec<_>>().join("|"))
        .collect();
    let yes = |property| if property { "yes" } else { "no" };
    let rows: Vec<String> = counters::for_each_counter!(table)
        .iter()
        .map(|(id, properties, bytes, kind)| {
            let link = documented
                .iter()
                .find(|row| row.starts_with(&format!("{id}`|")))
                .and_then(|row| row.split('|').nth(1))
                .unwrap_or("no row in lib.rs");
            let progress = properties.progress;
            let (exact, linearizable) = (yes(properties.exact), yes(properties.linearizable));
            let shards = properties.shards;
            format!("{id}`|{link}|{progress}|{exact}|{linearizable}|{shards}|{bytes}|{kind}|")
        })
        .collect();
    assert_eq!(documented, rows, "left: lib.rs, right: the table and the constants");
}

#[test]
#[cfg(all(feature = "std", target_arch = "x86_64"))]
fn the_table_of_the_readme_is_that_of_the_page() {
    let row = |line: &str| {
        let plain = line.replace(['`', '[', ']'], "");
        plain.split('|').map(str::trim).collect::<Vec<_>>().join("|")
    };
    let (page, readme) = (include_str!("../src/lib.rs"), include_str!("../README.md"));
    let page = page
        .lines()
        .filter_map(|line| line.strip_prefix("//! "))
        .filter(|line| line.starts_with("| `"));
    let (page, readme): (Vec<_>, Vec<_>) = (
        page.map(row).collect(),
        readme.lines().filter(|line| line.starts_with("| `")).map(row).collect(),
    );
    assert_eq!(readme, page, "left: README.md, right: lib.rs");
}
