//! What every row says about its bytes, against the bytes: addresses, sizes, nothing left out.

use alloc_arena::{Arena, HotField, HotFields, Map, Memory, Request, Role};

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
        ($($id:ident => $arena:ty, $kind:ident;)*) => { $({
            let arena = Box::new(<$arena>::map(4096, &Request::new()).expect(stringify!($id)));
            assert_described(stringify!($id), &*arena);
            assert_kind(stringify!($id), stringify!($kind), &*arena);
            if stringify!($kind) != "baseline" {
                assert_region(stringify!($id), &*arena);
            }
        })* };
    }
    alloc_arena::for_each_arena!(rows);
}

#[test]
fn every_pool_describes_all_of_its_bytes() {
    macro_rules! rows {
        ($($id:ident => $pool:ty, $kind:ident;)*) => { $({
            use alloc_arena::{Handle, Pool};
            let pool = Box::new(<$pool>::map(4096, &Request::new()).expect(stringify!($id)));
            assert_described(stringify!($id), &*pool);
            assert_kind(stringify!($id), stringify!($kind), &*pool);
            let region = fields(&*pool).into_iter().find(|field| field.name == "region");
            if let Some(region) = region {
                assert_eq!(region.bytes, pool.capacity() * <$pool as Pool>::BLOCK.size());
                let block = pool.handle().and_then(|handle| handle.try_get().ok());
                let block = block.expect("a block of a new pool").addr().get();
                assert!((region.start..region.start + region.bytes).contains(&block));
            } else {
                assert_eq!(stringify!($kind), "baseline", stringify!($id));
            }
        })* };
    }
    alloc_arena::for_each_pool!(rows);
}

/// The region is as long as the arena says, holds each block, and is inside exactly if it should.
fn assert_region<A: Arena + HotFields>(id: &str, arena: &A) {
    let region = fields(arena).into_iter().find(|field| field.name == "region").expect(id);
    assert_eq!(region.bytes, arena.capacity(), "{id}");
    let block = arena.try_alloc_layout(core::alloc::Layout::new::<[u64; 8]>()).expect(id);
    let block = block.cast::<u8>().addr().get();
    assert!((region.start..region.start + region.bytes).contains(&block), "{id}");
    let start = core::ptr::from_ref(arena).addr();
    let inside = (start..start + size_of::<A>()).contains(&region.start);
    assert_eq!(inside, A::PROPERTIES.memory == Memory::Inside, "{id}");
}

#[test]
#[cfg(feature = "alloc")]
fn blocks_of_the_heap_share_no_line_with_a_neighbour() {
    // Odd sizes: the end of each region is kept free up to the next pair of lines.
    let arenas: Vec<_> = (1..200)
        .map(|bytes| alloc_arena::Bump::<alloc_arena::Heap>::map(bytes, &Request::new()).unwrap())
        .collect();
    let mut regions: Vec<(usize, usize)> = arenas
        .iter()
        .flat_map(fields)
        .filter(|field| field.name == "region")
        .map(|field| (field.start, field.start + field.bytes))
        .collect();
    regions.sort_unstable();
    for two in regions.windows(2) {
        assert_eq!(two[1].0 % 128, 0);
        assert!(two[1].0 >= two[0].1.next_multiple_of(128), "{two:?}");
    }
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
