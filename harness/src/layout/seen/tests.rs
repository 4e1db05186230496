//! Lines as a simulated machine would tell them, against objects that say this or that.

use serde_json::json;
use simulator::Transfers;

use super::*;

/// A line at `address`: core, bytes that it read, bytes that it wrote.
fn line(address: u64, sharing: &str, cores: &[(u32, u64, u64)]) -> HotLine {
    let cores: Vec<_> = cores
        .iter()
        .map(|(cpu, read, written)| {
            json!({ "cpu": cpu, "read": read, "written": written, "loads": 1, "stores": 1,
                    "transfers": 1, "stall_ps": 1 })
        })
        .collect();
    serde_json::from_value(json!({
        "address": address, "object": "heap", "sharing": sharing, "cores": cores,
        "transfers": Transfers::default(), "true_transfers": 0, "invalidations": 0,
        "memory_reads": 0, "transfer_ps": 0, "memory_ps": 0, "places": [], "apart": null,
    }))
    .unwrap()
}

fn report(lines: Vec<HotLine>) -> LineReport {
    let mut report = LineReport::default();
    report.lines = lines;
    report
}

const TWO: [u32; 2] = [3, 8];

fn seen(object: Object, lines: Vec<HotLine>) -> Vec<(SeenKind, String)> {
    let report = report(lines);
    let roles: [&[&str]; 2] = [&["producer"], &["consumer"]];
    let players = TWO.iter().zip(roles);
    let players = players.map(|(&cpu, roles)| Player { cpu, roles: roles.to_vec() });
    let seen = confirm(&[object], &players.collect::<Vec<_>>(), &report);
    seen.findings.into_iter().map(|finding| (finding.kind, finding.to_string())).collect()
}

fn kinds(object: Object, lines: Vec<HotLine>) -> Vec<SeenKind> {
    seen(object, lines).into_iter().map(|(kind, _)| kind).collect()
}

fn object(fields: impl IntoIterator<Item = Field>) -> Object {
    Object::at("it", 0x1000, 64).with(fields)
}

fn word(name: &'static str, at: usize, role: Role) -> Field {
    Field::at(name, 0x1000 + at, 8).written_by(role)
}

/// Both cores write the first word.
fn both() -> Vec<HotLine> {
    vec![line(0x1000, "true", &[(3, 0xff, 0xff), (8, 0xff, 0xff)])]
}

/// Each core writes a word of its own.
fn each(sharing: &str) -> Vec<HotLine> {
    vec![line(0x1000, sharing, &[(3, 0, 0xff), (8, 0, 0xff00)])]
}

#[test]
fn a_writer_must_have_the_role() {
    let of = |role| kinds(object([word("a", 0, role)]), both());
    let alone = |role| kinds(object([word("a", 0, role).alone()]), both());
    let wrong = [SeenKind::WrongWriter];
    assert_eq!(of(Role::named("waiters")), []);
    assert_eq!(of(Role::Anybody), []);
    assert_eq!(of(Role::Nobody), wrong);
    assert_eq!(of(Role::nth("shard", 3)), wrong);
    assert_eq!(of(Role::named("producer")), wrong, "the second core is the consumer");
    assert_eq!(alone(Role::named("owner")), wrong);
    assert_eq!(alone(Role::named(IN_TURN)), [], "one after the other");
    // The same role cannot be two threads, though each word has one writer.
    let two = |a, b| {
        let fields = [word("a", 0, a).alone(), word("b", 8, b).alone()];
        let fields = fields.map(|field| field.one_line("both", "a test"));
        kinds(object(fields), each("false"))
    };
    assert_eq!(two(Role::named("owner"), Role::named("owner")), wrong);
    assert_eq!(two(Role::named("owner"), Role::named("guest")), []);
    assert_eq!(two(Role::named("producer"), Role::named("consumer")), []);
    assert_eq!(two(Role::named("consumer"), Role::named("producer")), [wrong, wrong].concat());
}

#[test]
fn bytes_of_no_field_are_told_if_they_are_shared() {
    let (kind, text) = &seen(object([word("a", 16, Role::Anybody)]), both())[0];
    assert_eq!(*kind, SeenKind::Undeclared);
    assert!(text.contains("it (bytes 0..8, in no field)"), "{text}");
    assert!(text.contains("written by threads 0,1 and read by threads 0,1"), "{text}");
    let own = vec![line(0x1000, "private", &[(3, 0xff, 0xff)])];
    assert_eq!(kinds(object([]), own), []);
    let elsewhere = vec![line(0x8040, "true", &[(3, 1, 1), (8, 1, 0)])];
    let (kind, text) = &seen(object([]), elsewhere)[0];
    assert_eq!(*kind, SeenKind::Undeclared);
    assert!(text.contains("heap at 0x8040, in no field"), "{text}");
    // A hot field wins over the padding that covers it.
    let padding = Field::at("padding", 0x1000, 64);
    assert_eq!(kinds(object([word("a", 0, Role::Anybody), padding]), both()), []);
}

#[test]
fn false_sharing_is_told_unless_it_is_meant() {
    let shared = [SeenKind::SharedFalsely];
    let fields = || [word("a", 0, Role::named("users")), word("b", 8, Role::named("users"))];
    assert_eq!(kinds(object(fields()), each("false")), shared);
    assert_eq!(kinds(object(fields()), each("mixed")), shared);
    assert_eq!(kinds(object(fields()), each("true")), []);
    let meant = fields().map(|field| field.one_line("both", "a test"));
    assert_eq!(kinds(object(meant), each("false")), []);
    let groups = fields().map(|field| field.side_by_side("both", "a test"));
    let [a, b] = groups;
    let other = Field::at("c", 0x1010, 8).written_by(Role::Anybody);
    let three = vec![line(0x1000, "mixed", &[(3, 0, 0xff), (8, 0, 0xff_ff00)])];
    let (_, text) = &seen(object([a, b, other]), three)[0];
    assert!(text.contains("it.c") && text.contains("took a line from one another"), "{text}");
    // Of a word that all have as a whole nothing can be shared falsely.
    let [word, _] = fields();
    let whole = vec![line(0x1000, "mixed", &[(3, 0xff, 0xff), (8, 0xff, 0)])];
    assert_eq!(kinds(object([word]), whole), []);
    // One field for two words hides it from a look at addresses.
    let whole = Field::at("words", 0x1000, 16).written_by(Role::named("users"));
    let (kind, text) = &seen(object([whole]), each("false"))[0];
    assert_eq!(*kind, SeenKind::SharedFalsely);
    assert!(text.contains("it.words") && text.contains("within itself"), "{text}");
}

#[test]
fn a_pair_is_told_once() {
    let pair = |first| {
        let second = Field::at("b", 0x1040, 8).written_by(Role::named("users"));
        let fields = [word("a", 0, Role::named("users")), second];
        let lines =
            vec![line(0x1000, first, &[(3, 0, 0xff)]), line(0x1040, "pair", &[(8, 0, 0xff)])];
        kinds(Object { bytes: 128, ..object(fields) }, lines)
    };
    assert_eq!(pair("pair"), [SeenKind::SharedFalsely]);
    assert_eq!(pair("true"), [SeenKind::SharedFalsely]);
    let alone = vec![line(0x1000, "pair", &[(3, 0, 0xff)])];
    assert_eq!(kinds(object([word("a", 0, Role::Anybody)]), alone), [], "nothing is beside it");
}

#[test]
fn what_was_used_is_counted() {
    let report = report(both());
    let fields = [word("a", 0, Role::Anybody), word("b", 8, Role::Anybody)];
    let seen = confirm(&[object(fields)], &[], &report);
    assert_eq!((seen.fields, seen.lines), (1, 1));
}
