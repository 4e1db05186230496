//! Layouts that are wrong by hand, each found; right ones, passed; and what must not matter.

use std::mem::offset_of;
use std::sync::atomic::AtomicU64;

use harness::layout::{Checked, Field, Kind, Lines, Object, Role, check};
use proptest::prelude::{Strategy, any, prop, prop_assert_eq, proptest};

const PAIRS: Lines = Lines { line: 64, pair: Some(128) };
const NO_PAIRS: Lines = Lines { line: 64, pair: None };

fn role(name: &'static str) -> Role {
    Role::named(name)
}

/// A field of a real object.
fn field<T>(name: &'static str, field: &T, writers: &'static str) -> Field {
    Field::at(name, (&raw const *field).addr(), size_of::<T>()).written_by(role(writers))
}

fn object<T>(name: &'static str, object: &T) -> Object {
    Object::at(name, (&raw const *object).addr(), size_of::<T>())
}

fn kinds(checked: &Checked) -> Vec<Kind> {
    checked.findings.iter().map(|finding| finding.kind).collect()
}

/// Asserts the one finding, and what its sentence says.
fn assert_found(objects: &[Object], lines: Lines, kind: Kind, words: &[&str]) {
    let checked = check(objects, lines);
    assert_eq!(kinds(&checked), [kind], "{:?}", checked.findings);
    let text = checked.findings[0].to_string();
    let (what, remedy) = text.split_once("; ").expect("what is wrong; what to do");
    assert!(remedy.len() > 20, "{text}");
    for word in words {
        assert!(what.contains(word), "`{word}` is not in: {text}");
    }
}

fn assert_clean(objects: &[Object], lines: Lines) {
    let checked = check(objects, lines);
    assert!(checked.findings.is_empty(), "{:?}", checked.findings);
}

#[derive(Default)]
#[repr(C, align(128))]
struct OneLine {
    head: AtomicU64,
    tail: AtomicU64,
}

#[test]
fn two_writers_on_one_line() {
    let it = OneLine::default();
    let fields = || [field("head", &it.head, "consumer"), field("tail", &it.tail, "producer")];
    let words =
        ["ring.head (bytes 0..8, written by consumer", "ring.tail (bytes 8..16", "line of 64"];
    assert_found(&[object("ring", &it).with(fields())], NO_PAIRS, Kind::Line, &words);
    // The same threads, or nobody, or a declared group: nothing is wrong.
    let same = fields().map(|field| field.written_by(role("holder")).read_by(role("holder")));
    assert_clean(&[object("lock", &it).with(same)], PAIRS);
    let cold = fields().map(|field| field.written_by(Role::Nobody).read_by(Role::Anybody));
    assert_clean(&[object("table", &it).with(cold)], PAIRS);
    let meant = fields().map(|field| field.one_line("positions", "one transfer instead of two"));
    assert_clean(&[object("ring", &it).with(meant)], PAIRS);
    // Anybody is never the same.
    let any = fields().map(|field| field.written_by(Role::Anybody));
    assert_found(&[object("ring", &it).with(any)], PAIRS, Kind::Line, &["anybody"]);
}

#[test]
fn a_number_tells_writers_apart() {
    let it = OneLine::default();
    let shards = |second| {
        let shard = |field: Field, nth| field.written_by(Role::nth("shard", nth));
        [shard(field("a", &it.head, ""), 0), shard(field("b", &it.tail, ""), second)]
    };
    assert_clean(&[object("counter", &it).with(shards(0))], PAIRS);
    let words = ["written by shard 0", "written by shard 1"];
    assert_found(&[object("counter", &it).with(shards(1))], PAIRS, Kind::Line, &words);
}

#[derive(Default)]
#[repr(C, align(128))]
struct OnePair {
    head: AtomicU64,
    rest: [u64; 7],
    tail: AtomicU64,
}

#[test]
fn two_writers_on_one_pair() {
    let it = OnePair::default();
    assert_eq!((offset_of!(OnePair, rest), offset_of!(OnePair, tail)), (8, 64));
    let fields = [field("head", &it.head, "consumer"), field("tail", &it.tail, "producer")];
    let ring = [object("ring", &it).with(fields)];
    assert_found(&ring, PAIRS, Kind::Pair, &["bytes 64..72", "pair of 128 bytes"]);
    assert_clean(&ring, NO_PAIRS);
    assert_found(&ring, Lines { line: 128, pair: None }, Kind::Line, &["line of 128 bytes"]);
}

#[test]
fn a_field_that_is_only_read_beside_one_that_is_written() {
    let it = OneLine::default();
    let mask = Field::at("mask", (&raw const it.head).addr(), 8).read_by(Role::Anybody);
    let tail = field("tail", &it.tail, "producer");
    let ring = [object("ring", &it).with([mask, tail])];
    assert_found(&ring, PAIRS, Kind::Line, &["mask", "written by nobody, read by anybody"]);
}

/// A word of eight bytes at an offset that is no multiple of eight.
#[repr(C, packed)]
struct Packed {
    front: [u8; 60],
    word: u64,
    back: [u8; 60],
}

#[repr(align(128))]
struct Aligned<T>(T);

#[test]
fn a_word_on_two_lines() {
    let it = Aligned(Packed { front: [0; 60], word: 0, back: [0; 60] });
    assert_eq!(it.0.front.len() + it.0.back.len(), 120);
    let word = Field::at("word", (&raw const it.0.word).addr(), 8).written_by(role("holder"));
    let straddling = [object("packed", &it).with([word.clone()])];
    assert_found(&straddling, NO_PAIRS, Kind::Straddles, &["bytes 60..68", "two lines of 64"]);
    // Elements of any size may follow one another without padding.
    let element = word.side_by_side("slots", "elements of 60 bytes");
    assert_clean(&[object("packed", &it).with([element])], PAIRS);
}

#[test]
fn an_array_that_is_not_aligned_as_claimed() {
    let slots = Aligned([const { AtomicU64::new(0) }; 64]);
    let slot = |at: usize| field("slots", &slots.0[at], "owner").aligned(128);
    assert_clean(&[object("ring", &slots).with([slot(0), slot(16)])], PAIRS);
    let words = ["slots", "not aligned to 128"];
    assert_found(&[object("ring", &slots).with([slot(8)])], PAIRS, Kind::Misaligned, &words);
    let claims = Object { align: 128, ..object("element", &slots.0[8]) };
    assert_found(&[claims], PAIRS, Kind::Misaligned, &["element", "not aligned to 128"]);
}

#[derive(Default)]
#[repr(C)]
struct Small {
    word: AtomicU64,
    more: [u64; 2],
}

#[derive(Default)]
#[repr(C, align(64))]
struct Line {
    word: AtomicU64,
}

#[test]
fn neighbours_that_touch() {
    let small: Aligned<[Small; 2]> = Aligned(Default::default());
    let objects = |alone| {
        ["lock 0", "lock 1"].into_iter().zip(&small.0).map(move |(name, it)| {
            let fields = [field("word", &it.word, "holder")];
            Object { alone, ..object(name, it) }.with(fields)
        })
    };
    let words = ["lock 0.word", "lock 1.word (bytes 0..8", "block of"];
    assert_eq!(small.0[0].more, small.0[1].more);
    for alone in [false, true] {
        let objects: Vec<Object> = objects(alone).collect();
        assert_found(&objects, NO_PAIRS, Kind::Neighbours, &words);
    }
    let lines: Aligned<[Line; 4]> = Aligned(Default::default());
    let objects: Vec<Object> = lines.0[..2]
        .iter()
        .map(|it| object("lock", it).with([field("word", &it.word, "holder")]))
        .collect();
    assert_clean(&objects, NO_PAIRS);
    assert_found(&objects, PAIRS, Kind::Neighbours, &["block of 128"]);
}

#[test]
fn a_claim_of_its_own_lines_counts_without_fields() {
    let lines: Aligned<[Line; 4]> = Aligned(Default::default());
    let object = |at: usize, alone| Object { alone, ..object("slot", &lines.0[at]) };
    assert_clean(&[object(0, false), object(1, false)], PAIRS);
    assert_clean(&[object(1, true), object(2, true)], PAIRS);
    let touching = [object(0, true), object(1, false)];
    assert_found(&touching, PAIRS, Kind::Neighbours, &["slot (64 bytes", "block of 128"]);
}

#[test]
fn declared_together_but_apart() {
    let it = OnePair::default();
    let because = "an arrival needs both";
    let fields = [
        field("next", &it.head, "arrivals").one_line("tickets", because),
        field("serving", &it.tail, "holder").one_line("tickets", because),
    ];
    let words = ["next", "serving", "one line of `tickets`", "are not"];
    assert_found(&[object("lock", &it).with(fields)], PAIRS, Kind::NotTogether, &words);
    let slots = [0, 64, 192].map(|offset| {
        let slot = Field::at("slot", 0x1000 + offset, 8).written_by(role("producer"));
        slot.side_by_side("slots", because)
    });
    let words = ["slot", "side by side"];
    assert_found(&[Object::at("ring", 0x1000, 256).with(slots)], PAIRS, Kind::NotTogether, &words);
}

#[test]
fn groups_do_not_reach_beyond_their_object_or_without_a_reason() {
    let it = OneLine::default();
    let together = |field: Field, because| field.one_line("tickets", because);
    let two = [("a", &it.head), ("b", &it.tail)].map(|(name, word)| {
        object(name, word).with([together(field("word", word, "holder"), "because")])
    });
    assert_found(&two, PAIRS, Kind::Neighbours, &["a.word", "b.word"]);
    let silent = [field("a", &it.head, "x"), field("b", &it.tail, "y")];
    let silent = silent.map(|field| together(field, " "));
    let words = ["without a reason"];
    assert_found(&[object("lock", &it).with(silent)], PAIRS, Kind::NoReason, &words);
    let mixed = [
        together(field("a", &it.head, "x"), "because"),
        field("b", &it.tail, "y").side_by_side("tickets", "because"),
    ];
    assert_found(&[object("lock", &it).with(mixed)], PAIRS, Kind::Line, &["a", "b"]);
}

#[test]
fn a_slot_array_that_is_packed() {
    let slots = Aligned([const { AtomicU64::new(0) }; 16]);
    let fields = slots.0.iter().enumerate().map(|(nth, word)| Field {
        index: Some(nth),
        ..field("slots", word, "").written_by(Role::nth("thread", nth))
    });
    let checked = check(&[object("registry", &slots).with(fields)], PAIRS);
    let of = |kind| kinds(&checked).iter().filter(|&&found| found == kind).count();
    assert_eq!((of(Kind::Line), of(Kind::Pair)), (14, 1), "{:?}", checked.findings);
    assert_eq!((checked.objects, checked.fields, checked.lines), (1, 16, 2));
    assert!(checked.findings[0].to_string().contains("slots[1] (bytes 8..16, written by thread 1"));
}

#[test]
fn what_a_right_layout_looks_like() {
    let padded: [Aligned<AtomicU64>; 3] = [0, 1, 2].map(|n| Aligned(AtomicU64::new(n)));
    let fields = padded.iter().enumerate().map(|(nth, word)| {
        let word = field("shards", &word.0, "").aligned(128);
        word.written_by(Role::nth("shard", nth)).read_by(role("readers"))
    });
    let counter = Object { align: 128, alone: true, ..object("counter", &padded) }.with(fields);
    let checked = check(&[counter], PAIRS);
    assert!(checked.findings.is_empty(), "{:?}", checked.findings);
    assert_eq!(checked.lines, 3);
}

#[test]
fn nothing_and_absurd_things_are_no_panic() {
    assert_clean(&[], PAIRS);
    assert_clean(&[Object::at("nothing", 0, 0)], PAIRS);
    let end = Field::at("end", usize::MAX - 3, 100).written_by(role("x")).aligned(0);
    let nothing = Field::at("nothing", 5, 0).written_by(role("x"));
    let checked = check(&[Object::at("end", usize::MAX, 9).with([end, nothing])], PAIRS);
    assert_eq!(checked.fields, 1);
    check(&[Object::at("o", 0, 8)], Lines { line: 0, pair: Some(0) });
}

/// Up to a dozen small fields of two objects within a few lines, with random roles and claims.
fn layouts() -> impl Strategy<Value = Vec<Object>> {
    let role = |n: u8| match n {
        0 | 1 => Role::Nobody,
        2 => Role::Anybody,
        n => Role::nth("thread", n.into()),
    };
    let field = (0..1024_usize, 1..24_usize, 0..6_u8, 0..6_u8, 0..4_u8, 0..3_u32);
    let field = field.prop_map(move |(start, bytes, writers, readers, group, align)| {
        let field = Field::at("field", start, bytes)
            .written_by(role(writers))
            .read_by(role(readers))
            .aligned(1 << (2 * align));
        match group {
            0 => field.one_line("group", "because"),
            1 => field.side_by_side("group", "because"),
            _ => field,
        }
    });
    let object = (prop::collection::vec(field, 0..7), 0..1024_usize, 1..300_usize, any::<bool>());
    let object = object.prop_map(|(fields, start, bytes, alone)| {
        Object { alone, ..Object::at("object", start, bytes) }.with(fields)
    });
    prop::collection::vec(object, 1..3)
}

fn shifted(objects: &[Object], by: usize) -> Vec<Object> {
    let mut objects = objects.to_vec();
    for object in &mut objects {
        object.start += by;
        object.fields.iter_mut().for_each(|field| field.start += by);
    }
    objects
}

proptest! {
    /// Where a layout lies does not matter, as long as it lies the same on its lines or pairs.
    #[test]
    fn a_shift_by_whole_blocks_keeps_the_verdict(objects in layouts(), blocks in 1..1000_usize) {
        for lines in [NO_PAIRS, PAIRS] {
            let block = lines.pair.unwrap_or(lines.line);
            let (here, there) = (check(&objects, lines), check(&shifted(&objects, blocks * block), lines));
            prop_assert_eq!(kinds(&here), kinds(&there));
            prop_assert_eq!((here.fields, here.lines), (there.fields, there.lines));
        }
    }

    /// The same of layouts that are clean on lines, shifted by single lines.
    #[test]
    fn a_clean_layout_stays_clean_a_line_further(starts in prop::collection::vec(0..64_usize, 1..9)) {
        // One word on each line, at any place of it.
        let fields = (0..).zip(&starts).map(|(nth, &start)| {
            Field::at("word", nth * 64 + start / 8 * 8, 8).written_by(Role::nth("thread", nth))
        });
        let objects = [Object::at("object", 0, starts.len() * 64).with(fields)];
        for by in [0, 64, 128, 192] {
            let checked = check(&shifted(&objects, by), NO_PAIRS);
            prop_assert_eq!(kinds(&checked), []);
            prop_assert_eq!(checked.lines, starts.len());
        }
    }

    /// The checker against the definition: some two fields that disturb each other share a line.
    #[test]
    fn a_line_is_found_exactly_if_two_fields_conflict(objects in layouts()) {
        let objects: Vec<Object> = objects
            .into_iter()
            .take(1)
            .map(|mut object| {
                let apart = |field: &mut Field| field.sharing = harness::layout::Sharing::Apart;
                object.fields.iter_mut().for_each(apart);
                object
            })
            .collect();
        let fields = &objects[0].fields;
        let conflict = |a: &Field, b: &Field| {
            let uses = |role: &Role| *role != Role::Nobody;
            let stranger = |role: &Role| uses(role) && (*role != a.writers || *role == Role::Anybody);
            uses(&a.writers) && (stranger(&b.writers) || stranger(&b.readers))
        };
        let meet = |a: &Field, b: &Field| {
            (a.start..a.start + a.bytes).any(|x| (b.start..b.start + b.bytes).any(|y| x / 64 == y / 64))
        };
        let expected = (0..fields.len()).any(|i| (0..fields.len()).any(|j| {
            i != j && conflict(&fields[i], &fields[j]) && meet(&fields[i], &fields[j])
        }));
        let found = kinds(&check(&objects, NO_PAIRS)).contains(&Kind::Line);
        prop_assert_eq!(found, expected);
    }
}
