//! What every row says about its bytes, against the bytes: addresses, sizes, nothing left out.

use locks::{HotField, HotFields, RawLock, Role, Sharing};

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
        ($($id:ident => $lock:ty, $kind:ident;)*) => { $({
            let lock = <$lock>::default();
            assert_described(stringify!($id), &lock);
            assert_kind(stringify!($id), stringify!($kind), &lock);
            // What a waiter brings may be nothing.
            let slot = <$lock as RawLock>::Slot::default();
            assert_described(stringify!($id), &slot);
        })* };
    }
    locks::for_each_lock!(rows);
}

fn offset<T: HotFields>(object: &T, name: &str) -> usize {
    let field = fields(object).into_iter().find(|field| field.name == name).expect(name);
    field.start - core::ptr::from_ref(object).addr()
}

#[test]
fn addresses_are_those_of_the_fields() {
    let lock = <locks::TasNeighbourLock>::new();
    let (waiters, holder) = locks::TasNeighbourLock::<locks::Spin>::OFFSETS;
    assert_eq!((offset(&lock, "locked"), offset(&lock, "neighbour")), (waiters, holder));
    let lock = <locks::TicketLock>::new();
    assert_eq!((offset(&lock, "next"), offset(&lock, "serving")), (0, 4));
}

#[test]
fn sharing_on_purpose_has_its_reason() {
    let ticket = <locks::TicketLock>::new();
    let slot = locks::McsSlot::default();
    for field in fields(&ticket).iter().chain(&fields(&slot)) {
        match field.sharing {
            Sharing::OneLine { group, because } => {
                assert!(!group.is_empty() && because.len() > 20, "{field:?}");
            }
            _ => panic!("{field:?} is on one line by design"),
        }
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
