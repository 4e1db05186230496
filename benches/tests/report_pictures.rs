//! What the report draws beside curves: machines, lines, bands; and what it never shows.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};

fn manycore(directory: &Path, arguments: &[&str]) -> Output {
    let mut program = Command::new(env!("CARGO_BIN_EXE_manycore"));
    program.args(arguments).current_dir(directory).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[track_caller]
fn done(output: &Output) {
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}

fn header() -> Value {
    json!({"record": "run", "schema": 1, "run": "r", "argv": [], "doctor": [],
        "host": {"name": "box", "cpu": "C", "commit": "c", "date": "2026-11-30T12:00:00Z"}})
}

fn point(engine: &str, machine: &str, threads: usize) -> Value {
    json!({
        "record": "point", "run": "r", "engine": engine, "machine": machine,
        "primitive": "locks", "variant": "tas", "workload": {"memory": "local"},
        "threads": threads, "placement": "compact", "cpus": [], "seed": 1, "repeat": 1,
        "status": "ok", "reasons": [],
        "metrics": {"ops": {"value": 7}, "ns_per_op": {"value": 40.0, "low": 20.0, "high": 60.0}},
        "per_thread": {},
    })
}

fn made(records: &[Value], format: &str) -> String {
    let directory = tempfile::tempdir().unwrap();
    let records: String = records.iter().map(|record| format!("{record}\n")).collect();
    fs::write(directory.path().join("r.jsonl"), records).unwrap();
    let output =
        manycore(directory.path(), &["report", "r.jsonl", "--format", format, "--out", "-"]);
    done(&output);
    text(&output.stdout)
}

fn page(records: &[Value]) -> String {
    made(records, "html")
}

#[test]
fn the_machine_of_native_points_is_drawn_as_their_run_describes_it() {
    let mut run = header();
    run["topology"] = json!({
        "title": "A <box>", "unusable": "3", "notes": ["quota & all"],
        "parts": [{"kind": "package", "name": "package 0", "detail": "L3 8 MiB", "cpus": "0-3"}],
        "cores": (0..4).map(|cpu| json!({"name": "core", "cpus": [cpu], "caches": ["L2 1 MiB"]}))
            .collect::<Vec<_>>(),
    });
    let drawn = page(&[run.clone(), point("native", "this-host", 2)]);
    assert_eq!(drawn.matches("<summary>The machine</summary>").count(), 1);
    for word in ["A &lt;box&gt;", "package 0 · L3 8 MiB", "quota &amp; all", "m-pu m-off"] {
        assert!(drawn.contains(word), "{word}");
    }
    assert_eq!(drawn.matches("class=\"m-core").count(), 4);
    for bad in [
        json!(5),
        json!({"title": "x"}),
        json!({"title": "", "parts": [{"kind": "rack"}], "cores": [], "unusable": "", "notes": []}),
        json!({"title": "", "parts": [], "cores": [], "unusable": "0-4294967295", "notes": []}),
        json!({"title": "", "parts": [], "unusable": "", "notes": [],
            "cores": [{"name": "", "cpus": (0..30_000).collect::<Vec<u32>>(), "caches": []}]}),
    ] {
        run["topology"] = bad;
        let page = page(&[run.clone(), point("native", "this-host", 2)]);
        assert!(page.contains("The machine cannot be drawn: "), "{run}");
        assert!(!page.contains("<summary>The machine</summary>"));
    }
    let older = page(&[header(), point("native", "this-host", 2)]);
    assert!(older.contains("do not describe this machine"));
}

#[test]
fn a_sweep_and_lines_carry_what_the_report_draws() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let sweep = ["sweep", "--primitive", "counters", "--variant", "atomic", "--threads", "1"];
    let quick = ["--out", "r.jsonl", "--quiet", "--seconds", "0.01", "--repeat", "2"];
    done(&manycore(here, &[&sweep[..], &quick[..]].concat()));
    let packed = ["lines", "counters/packed", "--threads", "8", "--ops", "128", "--top", "2"];
    done(&manycore(here, &[&packed[..], &["--out", "r.jsonl"]].concat()));
    let schema: Value =
        serde_json::from_str(include_str!("../../docs/records.schema.json")).unwrap();
    let schema = jsonschema::validator_for(&schema).unwrap();
    let records = fs::read_to_string(here.join("r.jsonl")).unwrap();
    let records: Vec<Value> =
        records.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for record in &records {
        let errors: Vec<String> = schema.iter_errors(record).map(|e| e.to_string()).collect();
        assert!(errors.is_empty(), "{errors:?}\n{record}");
    }
    let lines = records.last().unwrap();
    assert_eq!(lines["record"], "lines");
    assert_eq!(lines["lines"].as_array().unwrap().len(), 2);
    let hottest = &lines["lines"][0];
    assert_eq!(
        (&hottest["sharing"], hottest["rows"].as_array().unwrap().len()),
        (&json!("false"), 8)
    );
    done(&manycore(here, &["report", "r.jsonl"]));
    let page = fs::read_to_string(here.join("r.html")).unwrap();
    assert_eq!(page.matches("<summary>The machine</summary>").count(), 2, "host and simulated");
    assert!(page.matches("class=\"m-pu\"").count() > 256, "those of the simulated one and more");
    assert!(!page.contains("<code>run.topology</code>"), "it is known");
    let map = page.split("<svg class=\"bytes\"").nth(1).unwrap().split("</svg>").next().unwrap();
    assert_eq!(map.matches("class=\"m-written\"").count(), 8, "a row a core");
    assert!(map.contains(">core 7</text>") && map.contains("no byte shared"));
    for word in [">false sharing</span>", "counters/src/packed.rs:", "To be put apart: bytes 8-15"]
    {
        assert!(page.contains(word), "{word}");
    }
    assert!(page.contains("; simulated so: "), "what apart brings");
}

/// A record of one line that two groups of cores use.
fn lines() -> Value {
    json!({
        "record": "lines", "run": "r", "engine": "simulated", "machine": "m", "primitive": "locks",
        "variant": "tas", "workload": {"ops": 8}, "threads": 3, "placement": "compact", "seed": 1,
        "fetches_pairs": false,
        "metrics": {"transfers_per_op": {"value": 2.0}, "ns_per_op": {"value": 9.0}},
        "lines": [{
            "address": "0x40", "object": "heap", "sharing": "mixed",
            "shared_bytes": "0000000000000001",
            "rows": [
                {"cores": [0, 1], "read": "0000000000000003", "written": "8000000000000001",
                    "transfers": 4, "stall_ns": 1.5},
                {"cores": [7], "read": "ffffffffffffffff", "written": "0000000000000000",
                    "transfers": 1, "stall_ns": 0.5},
            ],
            "transfers": {"same_l3": 5}, "true_transfers": 2, "invalidations": 3,
            "transfer_ns": 2000.0,
            "places": [{"at": "a.rs:1", "function": "f", "loads": 1, "stores": 2, "transfers": 3}],
            "apart": [],
        }],
    })
}

#[test]
fn maps_show_each_byte_where_it_is() {
    let page = page(&[header(), lines()]);
    let map = page.split("<svg class=\"bytes\"").nth(1).unwrap().split("</svg>").next().unwrap();
    // Bytes are 9 wide from 112 on; rows are 17 high from 20 on; written above, read below.
    assert!(
        map.contains("<path class=\"m-written\" d=\"M112 21h9v7h-9zM679 21h9v7h-9z\"/>"),
        "{map}"
    );
    assert!(map.contains("<path class=\"m-read\" d=\"M112 28h18v7h-18z\"/>"), "{map}");
    assert!(map.contains("<path class=\"m-read\" d=\"M112 45h576v7h-576z\"/>"), "{map}");
    assert_eq!(map.matches("class=\"m-shared\"").count(), 1);
    assert!(map.contains(">cores 0-1</text>") && map.contains(">core 7</text>"));
    for word in ["5 transfers (5 under the same L3), 2 of them", "3 invalidations", "a.rs:1"] {
        assert!(page.contains(word), "{word}");
    }
    let markdown = made(&[header(), lines()], "markdown");
    let row = "| 3 | locks/tas | true and false sharing | heap | 5 | 2.00 |";
    assert!(markdown.contains(row), "{markdown}");
    assert!(page.contains("read: lower half") && page.contains("written: upper half"));
}

#[test]
fn hostile_and_damaged_lines_are_text_or_skipped() {
    let hostile = "</svg><img src=x onerror=alert(1)>\u{202e}";
    let mut bad = lines();
    for pointer in [
        "/machine",
        "/primitive",
        "/variant",
        "/placement",
        "/lines/0/address",
        "/lines/0/object",
        "/lines/0/places/0/at",
        "/lines/0/places/0/function",
    ] {
        *bad.pointer_mut(pointer).unwrap() = json!(hostile);
    }
    bad["lines"][0]["transfers"] = json!({hostile: u64::MAX, "same_l3": u64::MAX});
    bad["lines"][0]["rows"] = (0..5000)
        .map(|core| {
            json!({"cores": [core, u32::MAX], "read": "00000000000000ff",
            "written": "0000000000000000", "transfers": u64::MAX, "stall_ns": 1e300})
        })
        .collect();
    let shown = page(&[header(), bad]);
    assert!(!shown.contains("<img") && !shown.contains('\u{202e}'));
    assert!(shown.contains("4976 more rows") && shown.len() < 200_000, "{}", shown.len());
    let mut records = vec![header(), point("native", "this-host", 1)];
    for (pointer, value) in [
        ("/lines", json!(5)),
        ("/lines/0/rows/0/read", json!("ff")),
        ("/lines/0/rows/0/read", json!(255)),
        ("/lines/0/rows/0/cores", json!([-1])),
        ("/lines/0/sharing", json!("maybe")),
        ("/threads", json!("two")),
    ] {
        let mut one = lines();
        *one.pointer_mut(pointer).unwrap() = value;
        records.push(one);
    }
    let shown = page(&records);
    assert!(shown.contains("6 lines of the input not understood"));
    assert!(!shown.contains("<svg class=\"bytes\""));
}

#[test]
fn simulated_intervals_are_bands_and_native_ones_whiskers() {
    let drawn = |engine: &str, machine: &str| {
        let points = [1, 2, 4, 8].map(|threads| point(engine, machine, threads));
        page(&[&[header()], &points[..]].concat())
    };
    let (simulated, native) = (drawn("simulated", "m"), drawn("native", "this-host"));
    assert_eq!(simulated.matches("class=\"band\"").count(), 1);
    assert!(simulated.contains("from low to high, the model's validated error"));
    assert_eq!(
        (native.matches("class=\"band\"").count(), native.matches("class=\"whisker\"").count()),
        (0, 1)
    );
    assert!(native.contains("95 % interval"));
    let mut records = vec![header()];
    for threads in [1, 2, 4, 8, 16] {
        let mut one = point("simulated", "m", threads);
        if threads == 4 {
            one["metrics"]["ns_per_op"] = json!({"value": 40.0});
        }
        records.push(one);
    }
    assert_eq!(page(&records).matches("class=\"band\"").count(), 2, "a gap where nothing is known");
}

#[test]
fn figures_that_a_status_forbids_are_nowhere() {
    for status in ["broken", "unavailable"] {
        let mut changed = point("native", "this-host", 2);
        changed["status"] = json!(status);
        changed["reasons"] = json!(["because"]);
        changed["metrics"] = json!({"ops": {"value": 987_654}, "ns_per_op": {"value": 12.3456789},
            "ops_per_s": {"value": 987.654e6}, "instructions_per_op": {"value": 98.7654},
            "later_figure": [98.7654]});
        changed["per_thread"] = json!({"ops": [987_654, 987_655]});
        let records = [header(), point("native", "this-host", 1), changed];
        for format in ["html", "csv", "markdown"] {
            let shown = made(&records, format);
            for figure in ["987", "12.3", "98.7"] {
                assert!(!shown.contains(figure), "{status} {format}: {figure}");
            }
            assert!(shown.contains("because"), "{format}");
        }
        let notice = "1 point is broken or unavailable and have figures";
        let singular = "1 point is broken or unavailable and has figures";
        let page = page(&records);
        assert!(page.contains(singular) && !page.contains(notice), "{status}");
    }
}

#[test]
fn values_are_no_formulas_and_a_byte_order_mark_hides_nothing() {
    let mut run = header();
    run["host"]["name"] = json!("=cmd|' /C calc'!A0");
    let mut one = point("native", "@sum", 1);
    one["variant"] = json!("+1+2");
    one["workload"] = json!({"memory": "-2+3", "shift": -5});
    one["metrics"]["=evil"] = json!({"value": -1.5});
    let csv = made(&[run.clone(), one.clone()], "csv");
    for cell in csv.split(['\n', ',']) {
        let cell = cell.trim_matches(['\r', '"']);
        let number = cell.parse::<f64>().is_ok();
        assert!(number || !cell.starts_with(['=', '+', '-', '@']), "{cell}");
    }
    assert!(csv.contains(",-1.5,") && csv.contains(",-5,"), "numbers stay: {csv}");
    let directory = tempfile::tempdir().unwrap();
    let file: PathBuf = directory.path().join("r.jsonl");
    fs::write(&file, format!("\u{feff}{}\n{}\n", header(), point("native", "this-host", 1)))
        .unwrap();
    for format in ["html", "csv", "markdown"] {
        let output =
            manycore(directory.path(), &["report", "r.jsonl", "--format", format, "--out", "-"]);
        done(&output);
        let shown = text(&output.stdout);
        assert!(shown.contains("box") && !shown.contains("unknown host"), "{format}");
    }
}

#[test]
fn places_for_lines_that_cannot_be_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let lines = |out: &str| {
        manycore(
            directory.path(),
            &["lines", "counters/packed", "--threads", "2", "--ops", "16", "--out", out],
        )
    };
    for (out, code, word) in
        [("-", 2, "--out names a file"), (".", 1, "--out"), ("/dev/full", 1, "cannot add a record")]
    {
        let output = lines(out);
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{out}: {error}");
        assert!(error.contains(word) && !error.contains("panicked"), "{out}: {error}");
    }
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}
