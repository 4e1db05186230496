//! What every row says about its bytes, against the bytes: addresses, sizes, nothing left out.

use crossbeam_utils::CachePadded;
use queues::{
    DequeChaseLev, DequePackedFifo, HotField, HotFields, Inline, MpmcMichaelScott, MpmcRingRte,
    MpmcRingVyukov, MpmcScq, MpmcTicket, MutexRing, Queue, Role, SpscFastForward, SpscLamport,
    SpscRingCached, SpscRingUnpadded, WithCapacity,
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

/// How many slots a queue of `capacity` has.
fn slots_of(id: &str, capacity: usize) -> usize {
    match id {
        "mpmc_ticket" | "mpmc_ring_rte" | "mpmc_scq" | "deque_packed_fifo" => {
            capacity.next_power_of_two().max(2)
        }
        "deque_chase_lev_growing" => capacity.next_power_of_two(),
        "mpmc_segmented" => 31, // one block
        "spsc_unbounded" => 32, // one block
        _ => capacity,
    }
}

/// The slots of a queue: so many, of so many bytes, one behind the other from a pair's start on.
fn assert_slots<Q: HotFields + Queue<u64>>(id: &str, queue: &Q, capacity: usize) {
    let slots: Vec<HotField> = fields(queue)
        .into_iter()
        .filter(|field| matches!(field.sharing, queues::Sharing::SideBySide { .. }))
        .collect();
    let bytes: usize = slots.iter().map(|slot| slot.bytes).sum();
    let bounded = Q::PROPERTIES.bounded;
    assert_eq!(queue.capacity(), if bounded { capacity } else { usize::MAX }, "{id}");
    let count = slots_of(id, capacity);
    assert_eq!(bytes, count * Q::BYTES_PER_SLOT, "{id}");
    if count == 0 {
        return;
    }
    assert_eq!(slots[0].align, align_of::<CachePadded<u8>>(), "{id}");
    for two in slots.windows(2) {
        assert_eq!(two[0].start + two[0].bytes, two[1].start, "{id}: {two:?}");
    }
    assert_eq!(slots.last().map(|slot| slot.index + 1), Some(count), "{id}");
}

#[test]
fn every_row_describes_all_of_its_bytes() {
    macro_rules! rows {
        ($($id:ident => $queue:ty, $kind:ident;)*) => { $({
            type Row<T> = $queue;
            for capacity in [1, 2, 3, 64, 1000] {
                let queue = Box::new(Row::<u64>::with_capacity(capacity).expect("a queue"));
                assert_described(stringify!($id), &*queue);
                assert_kind(stringify!($id), stringify!($kind), &*queue);
                if stringify!($kind) != "baseline" {
                    assert_slots(stringify!($id), &*queue, capacity);
                }
            }
        })* };
    }
    queues::for_each_queue!(rows);
}

#[test]
fn rings_with_their_slots_inside_are_described_as_well() {
    macro_rules! inside {
        ($($ring:ident)*) => { $({
            let full = Box::new($ring::<u64, Inline<24>>::new());
            let part = Box::new($ring::<u64, Inline<24>>::with_capacity(5).expect("a queue"));
            for (ring, capacity) in [(full, 24), (part, 5)] {
                assert_described(stringify!($ring), &*ring);
                assert_slots(stringify!($ring), &*ring, capacity);
            }
        })* };
    }
    inside!(SpscRingCached SpscLamport SpscFastForward DequeChaseLev MpmcRingVyukov);
    inside!(MpmcMichaelScott SpscRingUnpadded);
    let ring = Box::new(MutexRing::<u64, Inline<24>>::new());
    assert_described("mutex_ring", &*ring);
    assert_slots("mutex_ring", &*ring, 24);
    for capacity in [1, 3, 16] {
        let ring = Box::new(MpmcTicket::<u64, Inline<24>>::with_capacity(capacity).expect("one"));
        assert_described("mpmc_ticket", &*ring);
        assert_slots("mpmc_ticket", &*ring, capacity);
        let ring = Box::new(MpmcRingRte::<u64, Inline<24>>::with_capacity(capacity).expect("one"));
        assert_described("mpmc_ring_rte", &*ring);
        assert_slots("mpmc_ring_rte", &*ring, capacity);
        let ring = Box::new(MpmcScq::<u64, Inline<24>>::with_capacity(capacity).expect("one"));
        assert_described("mpmc_scq", &*ring);
        assert_slots("mpmc_scq", &*ring, capacity);
        let deque = DequePackedFifo::<u64, Inline<24>>::with_capacity(capacity).expect("one");
        let deque = Box::new(deque);
        assert_described("deque_packed_fifo", &*deque);
        assert_slots("deque_packed_fifo", &*deque, capacity);
    }
}

#[test]
fn addresses_are_those_of_the_fields() {
    macro_rules! ends {
        ($($ring:ident)*) => { $({
            let ring = Box::new($ring::<u64, Inline<3>>::new());
            let offset = |name: &str| {
                let field = fields(&*ring).into_iter().find(|field| field.name == name);
                field.expect(name).start - core::ptr::from_ref(&*ring).addr()
            };
            assert_eq!((offset("head"), offset("tail")), $ring::<u64, Inline<3>>::OFFSETS);
        })* };
    }
    ends!(SpscRingCached SpscLamport SpscFastForward MpmcRingVyukov MpmcMichaelScott);
    ends!(SpscRingUnpadded);
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
