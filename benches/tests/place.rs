//! `manycore place` as a user runs it, and types of somebody else under its checker.

use std::process::{Command, Output};
use std::sync::atomic::{AtomicU64, Ordering};

use harness::layout::{Kind, Lines, check};
use serde_json::Value;

fn place(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_manycore"));
    command.arg("place").args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs with `--json`; the rows, and the exit code.
fn rows(arguments: &[&str]) -> (Vec<Value>, Option<i32>) {
    let output = place(&[arguments, &["--json"]].concat());
    let rows = text(&output.stdout);
    let rows = rows.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    (rows, output.status.code())
}

fn row<'a>(rows: &'a [Value], id: &str) -> &'a Value {
    rows.iter().find(|row| row["variant"] == id).unwrap_or_else(|| panic!("no {id}"))
}

/// What the simulated machine saw: nothing wrong, but for controls of what lines hold.
fn was_seen(row: &Value) {
    let seen = &row["simulated"];
    if seen["unavailable"].is_string() {
        assert!(seen["detail"].as_str().is_some_and(|detail| detail.len() > 10), "{row}");
        return;
    }
    let machine = if row["pair_bytes"].is_null() { "epyc-7742-2s" } else { "xeon-8176-8s" };
    assert_eq!(seen["machine"], machine, "{row}");
    let findings = seen["findings"].as_u64().unwrap();
    let shares = row["kind"] == "control" && row["primitive"] != "alloc-arena";
    assert_eq!(findings > 0, shares, "{row}");
    if shares {
        let found = row["first_findings"].as_array().unwrap();
        assert!(found.iter().any(|finding| finding["kind"] == "shared_falsely"), "{row}");
    }
    assert!(seen["fields"].as_u64() > Some(0) || row["kind"] == "baseline", "{row}");
}

#[test]
fn what_is_not_simulated_says_so() {
    let (unasked, code) = rows(&["--variant", "mcs", "--shards", "1", "--no-simulate"]);
    assert_eq!((&unasked[0]["simulated"]["unavailable"], code), (&"not_asked_for".into(), Some(0)));
    let long = ["--variant", "mcs", "--shards", "1", "--line", "32", "--pair", "none"];
    let (long, code) = rows(&long);
    assert_eq!(code, Some(0));
    assert_eq!(long[0]["simulated"]["unavailable"], "line_not_simulated", "{long:?}");
    assert_eq!(long[0]["unavailable"][0]["unavailable"], "line_not_simulated", "{long:?}");
}

#[test]
fn every_row_is_as_it_must_be() {
    for arguments in [&["--line", "64", "--pair", "128"][..], &["--line", "64", "--pair", "none"]] {
        let (rows, code) = rows(arguments);
        assert_eq!(code, Some(0), "{rows:?}");
        assert!(rows.len() >= 22, "{} rows", rows.len());
        for row in &rows {
            let (kind, verdict) = (row["kind"].as_str().unwrap(), row["verdict"].as_str().unwrap());
            let found = row["findings"].as_u64().unwrap();
            was_seen(row);
            match kind {
                "control" if verdict == "undecided" => assert_ne!(row["unavailable"], Value::Null),
                "control" => assert!(verdict == "control_found" && found > 0, "{row}"),
                "baseline" => assert_eq!((verdict, &row["fields"]), ("clean", &0.into()), "{row}"),
                _ => {
                    assert!(["clean", "undecided"].contains(&verdict) && found == 0, "{row}");
                    assert!(row["fields"].as_u64() > Some(0), "{row}");
                    assert!(row["lines"].as_u64() > Some(0), "{row}");
                }
            }
        }
        for control in ["packed", "tas_neighbour", "spsc_ring_unpadded"] {
            assert_eq!(row(&rows, control)["verdict"], "control_found");
        }
        let first = &row(&rows, "tas_neighbour")["first_findings"][0];
        assert_eq!(first["kind"], "line");
        assert_eq!(first["first"]["field"], "locked");
        assert_eq!(first["second"]["field"], "neighbour");
        assert_eq!(first["second"]["offset"], 8);
        assert!(first["remedy"].as_str().is_some_and(|remedy| remedy.len() > 20));
    }
}

#[test]
fn the_table_says_what_was_used_and_what_was_found() {
    let output = place(&[
        "--line",
        "64",
        "--pair",
        "128",
        "--shards",
        "1,2",
        "--primitive",
        "counters,locks",
    ]);
    let table = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{table}");
    for words in [
        "line 64 bytes: --line",
        "pair 128 bytes: --pair",
        "objects  fields  lines  findings  simulated",
        "simulated: lock.neighbour",
        "control: found, as it must be",
        "baseline: describes nothing, as it must be",
        "share the line of 64 bytes",
    ] {
        assert!(table.contains(words), "`{words}` is not in: {table}");
    }
    let defaults = text(&place(&["--variant", "mcs", "--shards", "2"]).stdout);
    let (line, pair) = (defaults.lines().next().unwrap(), defaults.lines().nth(1).unwrap());
    assert!(line.starts_with("line ") && line.contains(" bytes: "), "{defaults}");
    assert!(pair.starts_with("pair ") && pair.len() > 20, "{defaults}");
}

#[test]
fn lines_longer_than_the_padding_are_found() {
    let (rows, code) = rows(&["--line", "256", "--pair", "none", "--primitive", "counters,queues"]);
    if cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
        assert_eq!(code, Some(1), "this build pads to 128 bytes");
        assert_eq!(row(&rows, "sharded")["verdict"], "found");
        let refused = place(&["--line", "256", "--pair", "none", "--variant", "sharded"]);
        assert_eq!(refused.status.code(), Some(1));
        let error = text(&refused.stderr);
        assert!(error.contains("counters/sharded has ") && error.contains("finding"), "{error}");
    }
}

#[test]
fn controls_are_found_on_the_smallest_lines_and_without_neighbours() {
    // One shard alone has no neighbour, but the row's own 64 are always looked at.
    let (rows, code) = rows(&["--line", "32", "--pair", "none", "--shards", "1"]);
    // Its 40 bytes belong onto one line, and are more than such a one holds.
    let found = |row: &&Value| row["verdict"] == "found";
    let found: Vec<&Value> = rows.iter().filter(found).map(|row| &row["variant"]).collect();
    assert_eq!((found, code), (vec![&Value::from("ticket_park")], Some(1)), "{rows:?}");
    for control in ["packed", "tas_neighbour", "spsc_ring_unpadded"] {
        assert_eq!(row(&rows, control)["verdict"], "control_found", "{control}");
    }
}

#[test]
fn pages_lie_as_asked_or_the_reason_is_typed() {
    let (rows, _) = rows(&["--primitive", "alloc-arena", "--shards", "2", "--no-simulate"]);
    for id in ["bump_mmap", "bump_huge", "bump_numa"] {
        let row = row(&rows, id);
        let known = row["pages"].as_array().unwrap();
        let reasons = row["unavailable"].as_array().unwrap();
        assert!(!known.is_empty() || !reasons.is_empty(), "{row}");
        for reason in reasons {
            assert!(reason["unavailable"].as_str().is_some_and(|code| !code.is_empty()), "{row}");
            assert!(reason["detail"].as_str().is_some_and(|detail| detail.len() > 10), "{row}");
        }
    }
    let first_touch = row(&rows, "bump_first_touch");
    if first_touch["verdict"] != "undecided" {
        assert_eq!(first_touch["first_findings"][0]["kind"], "pages");
    }
}

#[test]
fn bad_input_exits_2_and_says_what_to_do() {
    let cases: [(&[&str], &[&str]); 16] = [
        (&["--variant", "tickt"], &["no variant matches", "ticket"]),
        (&["--variant", "mcs,zzz"], &["no variant matches"]),
        (&["--primitive", "lock"], &["no primitive matches", "locks"]),
        (&["--line", "0"], &["power of two", "not 0"]),
        (&["--line", "48"], &["power of two", "not 48"]),
        (&["--line", "-64"], &["not a number of bytes"]),
        (&["--line", "512"], &["32 to 256"]),
        (&["--line", "wide"], &["not a number of bytes"]),
        (&["--pair", "100"], &["a pair is two lines"]),
        (&["--line", "64", "--pair", "64"], &["--pair 128", "--pair none"]),
        (&["--line", "128", "--pair", "128"], &["--pair 256"]),
        (&["--pair", "some"], &["none"]),
        (&["--shards", "0"], &["0 shards"]),
        (&["--shards", "129"], &["129 is more than 128"]),
        (&["--shards", "auto"], &["1,2,4..16"]),
        (&["--shards", "8..4"], &["backwards"]),
    ];
    for (arguments, words) in cases {
        let output = place(arguments);
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
        for word in words {
            assert!(error.contains(word), "{arguments:?}: `{word}` is not in: {error}");
        }
    }
    let help = text(&place(&["--help"]).stdout);
    assert!(help.contains("Examples:") && help.contains("manycore place --line 64"), "{help}");
}

/// A lock of somebody else, as docs/placement.md shows it.
#[derive(Default)]
#[repr(C)]
struct TheirLock {
    taken: AtomicU64,
    turns: AtomicU64,
}

impl locks::HotFields for TheirLock {
    const ALIGNMENT: usize = 8;
    const ALONE: bool = false;

    fn hot_fields(&self, visit: &mut dyn FnMut(locks::HotField)) {
        use locks::{HotField, Role};
        let Self { taken, turns } = self;
        visit(HotField::of("taken", taken).written_by(Role::Many("waiters")));
        visit(HotField::of("turns", turns).written_by(Role::One("holder")));
    }
}

harness::described!(their_lock, locks);

#[test]
fn a_type_of_somebody_else_is_checked() {
    let lock = crossbeam_utils::CachePadded::new(TheirLock::default());
    assert_eq!(lock.taken.load(Ordering::Relaxed) + lock.turns.load(Ordering::Relaxed), 0);
    let lines = Lines { line: 64, pair: Some(128) };
    let checked = check(&[their_lock("theirs".into(), &*lock)], lines);
    assert_eq!(checked.findings.len(), 1);
    assert_eq!(checked.findings[0].kind, Kind::Line);
    let told = checked.findings[0].to_string();
    assert!(told.contains("theirs.taken (bytes 0..8, written by waiters"), "{told}");
    assert!(told.contains("theirs.turns (bytes 8..16, written by holder"), "{told}");
}
