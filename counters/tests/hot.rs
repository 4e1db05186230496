//! What every row says about its bytes, against the bytes: addresses, sizes, nothing left out.

use counters::{
    BatchedCounter, HotField, HotFields, PackedCounter, PerCpuCounter, PerThreadCounter, Role,
    ShardedCounter, StripedCounter,
};

fn fields<T: HotFields>(object: &T) -> Vec<HotField> {
    let mut fields = Vec::new();
    object.hot_fields(&mut |field| fields.push(field));
    fields
}

/// Asserts that each byte of the object is described, as a field, cold or padding; that no field
/// leaves the padding that is kept for it; and that the claims are those of the type.
fn assert_described<T: HotFields>(id: &str, object: &T) {
    let start = core::ptr::from_ref(object).addr();
    let end = start + size_of::<T>();
    let fields = fields(object);
    for field in &fields {
        let span_end = field.span_start + field.span_bytes;
        assert!(field.span_start <= field.start, "{id}: {field:?}");
        assert!(field.start + field.bytes <= span_end, "{id}: {field:?}");
        assert_eq!(field.start % field.align, 0, "{id}: {field:?}");
    }
    let mut spans: Vec<(usize, usize)> = fields
        .iter()
        .map(|field| (field.span_start, field.span_start + field.span_bytes))
        .filter(|&(from, to)| from < end && to > start)
        .collect();
    spans.sort_unstable();
    let mut next = start;
    for (from, to) in spans {
        assert!(from <= next, "{id}: bytes {}..{} are not described", next - start, from - start);
        next = next.max(to);
    }
    assert_eq!(next, end, "{id}: bytes {}.. are not described", next - start);
    assert_eq!(align_of::<T>() % T::ALIGNMENT, 0, "{id}: claims more than the type has");
    if T::ALONE {
        assert_eq!(size_of::<T>() % T::ALIGNMENT, 0, "{id}: the end is not its own");
        assert!(T::ALIGNMENT >= 32, "{id}: no line of its own");
    }
}

/// Asserts that a baseline describes nothing that threads use, and any other row something.
fn assert_kind<T: HotFields>(id: &str, kind: &str, object: &T) {
    let hot = fields(object).iter().filter(|field| !field.is_cold()).count();
    assert_eq!(hot == 0, kind == "baseline", "{id}: {hot} hot fields in a {kind}");
}

#[test]
fn every_row_describes_all_of_its_bytes() {
    macro_rules! rows {
        ($($id:ident => $counter:ty, $kind:ident;)*) => { $({
            let counter = <$counter>::default();
            assert_described(stringify!($id), &counter);
            assert_kind(stringify!($id), stringify!($kind), &counter);
        })* };
    }
    counters::for_each_counter!(rows);
}

type OfCpus<const N: usize> = PerCpuCounter<N, ()>;

#[test]
fn each_shard_is_a_field_at_its_word() {
    macro_rules! sizes {
        ($counter:ident $field:literal by $writer:literal: $($shards:literal)*) => { $({
            let counter = Box::new(<$counter<$shards>>::new());
            assert_described(stringify!($counter), &*counter);
            let words = fields(&*counter);
            let words: Vec<_> = words.iter().filter(|field| field.name == $field).collect();
            assert_eq!(words.len(), $shards);
            for (shard, word) in words.iter().enumerate() {
                let offset = word.start - core::ptr::from_ref(&*counter).addr();
                assert_eq!(offset, <$counter<$shards>>::offset_of_shard(shard));
                assert_eq!((word.bytes, word.index), (8, shard));
                assert_eq!(word.writers, Role::Nth($writer, shard));
            }
        })* };
    }
    sizes!(ShardedCounter "shards" by "shard": 1 2 4 8 16 32 64 128);
    sizes!(PackedCounter "shards" by "shard": 1 2 4 8 16 32 64 128);
    sizes!(BatchedCounter "shards" by "shard": 1 2 4 8 16 32 64 128);
    sizes!(PerThreadCounter "words" by "owner": 1 2 3 8 16 32 100 128);
    sizes!(OfCpus "words" by "cpu": 1 2 4 8 16 32 64 128);
    sizes!(StripedCounter "cells" by "probe": 1 2 4 8 16 32 64 128);
}

/// Describes one of its two words.
#[derive(Default)]
#[repr(C)]
struct Forgetful {
    described: u64,
    forgotten: u64,
}

impl HotFields for Forgetful {
    const ALIGNMENT: usize = 8;
    const ALONE: bool = false;

    fn hot_fields(&self, visit: &mut dyn FnMut(HotField)) {
        visit(HotField::of("described", &self.described).written_by(Role::Anybody));
    }
}

#[test]
#[should_panic(expected = "bytes 8.. are not described")]
fn a_forgotten_field_is_noticed() {
    let object = Forgetful::default();
    assert_eq!(object.forgotten, 0);
    assert_described("forgetful", &object);
}
