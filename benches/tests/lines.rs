//! `manycore lines` as a user runs it, on rows whose sharing is known.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_manycore"))
}

fn lines_by(program: &Path, arguments: &[&str]) -> Output {
    Command::new(program).args(["lines", "--ops", "128"]).args(arguments).output().unwrap()
}

fn lines(arguments: &[&str]) -> Output {
    lines_by(program(), arguments)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn json(arguments: &[&str]) -> Value {
    let output = lines(&[arguments, &["--json"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// How much of `from` is gone in `to`.
fn saved(from: &Value, to: &Value, what: &str) -> f64 {
    let figure = |value: &Value| value[what].as_f64().unwrap();
    1.0 - figure(to) / figure(from)
}

#[test]
fn packed_counters_share_falsely_and_padding_is_tried() {
    let found = json(&["counters/packed", "--threads", "8"]);
    let hottest = &found["lines"][0];
    assert_eq!(hottest["sharing"], "false");
    assert_eq!(hottest["shared_bytes"], 0);
    assert_eq!(hottest["true_transfers"], 0);
    assert_eq!(hottest["cores"].as_array().unwrap().len(), 8);
    for core in hottest["cores"].as_array().unwrap() {
        let (read, written) = (core["read"].as_u64().unwrap(), core["written"].as_u64().unwrap());
        assert_eq!(read, written);
        assert_eq!(written.count_ones(), 8, "each has a counter of eight bytes");
    }
    assert!(hottest["places"][0]["line"].as_str().unwrap().starts_with("counters/src/packed.rs:"));
    assert_eq!(hottest["apart"]["groups"].as_array().unwrap().len(), 7);
    for what in ["transfers_per_op", "ns_per_op"] {
        assert!(saved(&found["figures"], &hottest["what_if"], what) >= 0.8, "{what}: {found}");
    }
}

#[test]
fn sharded_counters_are_private_on_machines_with_pairs_and_without() {
    for machine in ["epyc-7742-2s", "xeon-8275cl-2s"] {
        let found = json(&["counters/sharded", "--threads", "8", "--machine", machine]);
        for line in found["lines"].as_array().unwrap() {
            assert_eq!(line["sharing"], "private", "{line}");
        }
        assert_eq!(found["fetches_pairs"], machine.starts_with("xeon"));
    }
}

#[test]
fn controls_of_other_crates_are_seen_and_their_cures_help() {
    for row in ["locks/tas_neighbour", "queues/spsc_ring_unpadded"] {
        let found = json(&[row, "--threads", "2"]);
        let hottest = &found["lines"][0];
        let sharing = hottest["sharing"].as_str().unwrap();
        assert!(["false", "mixed"].contains(&sharing), "{row}: {sharing}");
        let saved = saved(&found["figures"], &hottest["what_if"], "transfers_per_op");
        assert!(saved > 0.2, "{row}: {saved}");
    }
    let cached = json(&["queues/spsc_ring_cached", "--threads", "2"]);
    for line in cached["lines"].as_array().unwrap() {
        // Slots are handed from one to the other, also from one round to the next; where the reader
        // has caught up, it takes the line of the next slots along.
        assert!(["true", "mixed", "private"].contains(&line["sharing"].as_str().unwrap()));
        if line["what_if"] != Value::Null {
            let saved = saved(&cached["figures"], &line["what_if"], "transfers_per_op");
            assert!(saved < 0.5, "nothing is wrong with it: {line}");
        }
    }
    let one = json(&["counters/atomic", "--threads", "8"]);
    assert_eq!(one["lines"][0]["sharing"], "true");
    assert_eq!(one["lines"][0]["apart"], Value::Null);
}

/// The first touch that the arenas' control is about is a matter of pages: lines stay private.
#[test]
fn arenas_of_single_threads_share_nothing_worth_a_word() {
    let output = Command::new(program())
        .args(["list", "--primitive", "alloc-arena", "--json"])
        .output()
        .unwrap();
    let rows = text(&output.stdout);
    let rows = rows.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut seen = 0;
    for row in rows.filter(|row| row["variant"].as_str().unwrap().contains("heap")) {
        let row = format!("alloc-arena/{}", row["variant"].as_str().unwrap());
        let found = json(&[&row, "--threads", "3"]);
        assert_eq!(found["figures"]["transfers_per_op"], 0.0, "{row}");
        seen += 1;
    }
    assert!(seen > 0);
}

#[test]
fn figures_are_those_of_a_sweep_and_the_same_each_time() {
    for row in ["locks/ticket", "queues/mpmc_ring_vyukov", "locks/futex"] {
        let arguments = [row, "--threads", "6", "--seed", "3"];
        let found = json(&arguments);
        assert_eq!(json(&arguments), found);
        let (primitive, variant) = row.split_once('/').unwrap();
        let output = Command::new(program())
            .args(["sweep", "--engine", "simulated", "--ops", "128", "--threads", "6"])
            .args(["--seed", "3", "--primitive", primitive, "--variant", variant, "--json"])
            .output()
            .unwrap();
        let records = text(&output.stdout);
        let points = records.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let mut points = points.filter(|record| record["record"] == "point");
        let point = points.next().unwrap();
        let metric = |name: &str| point["metrics"][name]["value"].as_f64().unwrap();
        // What a program did before may move memory to other sets of the caches.
        let near = |name: &str, other: f64| {
            let one = found["figures"][name].as_f64().unwrap();
            assert!((one - other).abs() <= 0.05 * other, "{row}, {name}: {one} {other}");
        };
        near("ns_per_op", metric("ns_per_op"));
        let distances = ["smt", "same_l3", "same_socket", "cross_socket"];
        let transfers: f64 =
            distances.iter().map(|distance| metric(&format!("transfers_per_op.{distance}"))).sum();
        near("transfers_per_op", transfers);
    }
}

#[test]
fn the_table_fits_and_says_what_was_found() {
    for row in ["counters/packed", "locks/ticket", "queues/mpmc_ring_vyukov", "locks/futex"] {
        for machine in ["xeon-8275cl-2s", "graviton2"] {
            let output = lines(&[row, "--threads", "48", "--top", "10", "--machine", machine]);
            let table = text(&output.stdout);
            assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
            for line in table.lines() {
                assert!(line.chars().count() <= 100, "{line}");
            }
            assert!(table.starts_with(&format!("{row} on {machine} (simulated, ")), "{table}");
            assert!(table.contains("48 threads, compact, 128 operations of each"), "{table}");
        }
    }
    let table = text(&lines(&["counters/packed", "--threads", "2"]).stdout);
    for words in ["false sharing", "xxxxxxxx", "counters/src/packed.rs:", "to be put apart: bytes"]
    {
        assert!(table.contains(words), "`{words}` is not in: {table}");
    }
    assert!(table.contains("tried: transfers −"), "{table}");
}

#[test]
fn files_for_flame_graphs_and_trace_viewers() {
    let directory = tempfile::tempdir().unwrap();
    let (folded, timeline) = (directory.path().join("f"), directory.path().join("t"));
    let output = lines(&[
        "locks/futex",
        "--threads",
        "4",
        "--folded",
        folded.to_str().unwrap(),
        "--timeline",
        timeline.to_str().unwrap(),
    ]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let folded = fs::read_to_string(folded).unwrap();
    assert!(folded.lines().count() > 3);
    for line in folded.lines() {
        let (stack, takes) = line.rsplit_once(' ').unwrap();
        assert!(takes.parse::<u64>().unwrap() > 0, "{line}");
        assert!(!stack.contains('<') || stack.contains(" as "), "{line}");
    }
    assert!(folded.contains("work_through;"), "{folded}");
    let timeline: Value = serde_json::from_slice(&fs::read(timeline).unwrap()).unwrap();
    let events = timeline["traceEvents"].as_array().unwrap();
    let of = |category: &str| events.iter().filter(|event| event["cat"] == category).count();
    assert!(of("line") > 100 && of("kernel") > 0 && of("idle") > 0, "{}", events.len());
    let names = events.iter().filter(|event| event["ph"] == "M").count();
    assert_eq!(names, 4);
    for core in 0..4 {
        // Nobody waits for two things at a time.
        let mut end = 0.0;
        for event in events.iter().filter(|event| event["tid"] == core && event["ph"] == "X") {
            let (from, takes) = (event["ts"].as_f64().unwrap(), event["dur"].as_f64().unwrap());
            assert!(from >= end - 1e-6, "{event} begins before {end}");
            end = from + takes;
        }
    }
    let nowhere = lines(&["locks/mcs", "--threads", "2", "--folded", "/nowhere/f"]);
    assert_eq!(nowhere.status.code(), Some(1));
    assert!(text(&nowhere.stderr).contains("/nowhere/f"));
}

#[test]
fn without_debug_information_there_are_addresses() {
    let directory = tempfile::tempdir().unwrap();
    let stripped = directory.path().join("manycore");
    let strip = Command::new("strip").arg("-o").arg(&stripped).arg(program()).status();
    if !strip.is_ok_and(|status| status.success()) {
        println!("SKIPPED: there is no strip (binutils) here");
        return;
    }
    let output = lines_by(&stripped, &["counters/packed", "--threads", "4", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let hottest = &found["lines"][0];
    assert_eq!(hottest["sharing"], "false");
    let place = &hottest["places"][0];
    assert_eq!(place["line"], Value::Null);
    assert!(place["function"].as_str().unwrap().contains("0x"), "{place}");
    let table = text(&lines_by(&stripped, &["counters/packed", "--threads", "4"]).stdout);
    assert!(table.contains("at 0x"), "{table}");
}

#[test]
fn what_cannot_be_is_refused_with_a_reason() {
    let cases: &[(&[&str], &[&str])] = &[
        (&["packed"], &["`packed` names no variant", "locks/mcs"]),
        (&["locks/"], &["names no variant"]),
        (&["locks/*"], &["names no variant"]),
        (&["locks/tickt"], &["no variant matches `tickt`", "ticket"]),
        (&["lock/mcs"], &["no primitive matches `lock`", "locks"]),
        (&["locks/mcs", "--threads", "0"], &["cannot be less than 1"]),
        (&["locks/mcs", "--threads", "257"], &["257 threads on 256 cores", "--oversubscribe"]),
        (&["locks/mcs", "--threads", "9", "--cores", "8"], &["9 threads on 8 cores"]),
        (&["locks/mcs", "--threads", "two"], &["whole number"]),
        (&["locks/mcs", "--top", "0"], &["cannot be less than 1"]),
        (&["locks/mcs", "--top", "257"], &["cannot be more than 256"]),
        (&["locks/mcs", "--machine", "epyc-7724"], &["epyc-7742-2s"]),
        (&["locks/mcs", "--machine", "./no.toml"], &["./no.toml"]),
        (&["locks/mcs", "--placement", "compakt"], &["unknown placement", "compact"]),
        (&["locks/mcs", "--placement", "cpus=256"], &["CPU 256"]),
        (&["locks/mcs", "--ops", "0"], &["cannot be less than 1"]),
        (&[], &["PRIMITIVE/VARIANT"]),
    ];
    for (arguments, words) in cases {
        let output = Command::new(program()).arg("lines").args(*arguments).output().unwrap();
        let errors = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {errors}");
        for word in *words {
            assert!(errors.contains(word), "{arguments:?}: `{word}` is not in {errors}");
        }
        assert!(!errors.contains("panicked"), "{errors}");
    }
    let odd = lines(&["queues/spsc_ring_cached", "--threads", "3"]);
    assert_eq!(odd.status.code(), Some(1));
    assert!(text(&odd.stderr).starts_with("error: queues/spsc_ring_cached: "));
}
