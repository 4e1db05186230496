//! `manycore ab` as a user runs it. Verdicts on times depend on the host's load: what is asserted
//! is what every load leaves true.

use std::process::{Command, Output};

use serde_json::Value;

fn ab(arguments: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_manycore");
    Command::new(program).arg("ab").args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn lines(output: &Output) -> Vec<Value> {
    text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The exit code must follow from the verdicts.
#[track_caller]
fn verdicts(output: &Output) -> Vec<String> {
    let lines = lines(output);
    let verdict = |line: &Value| line["verdict"].as_str().unwrap().to_owned();
    let verdicts: Vec<String> = lines.iter().map(verdict).collect();
    let open = verdicts.iter().any(|verdict| verdict == "inconclusive");
    assert_eq!(output.status.code(), Some(if open { 4 } else { 0 }), "{}", text(&output.stderr));
    for line in &lines {
        let number = |key: &str| line[key].as_f64().unwrap();
        let [low, high] = [0, 1].map(|end| line["interval"][end].as_f64().unwrap());
        assert!(low <= number("ratio") && number("ratio") <= high, "{line}");
        assert!((0.0..=1.0).contains(&number("p")) && number("pairs") >= 12.0, "{line}");
        if line["verdict"] == "equal" {
            let [low, high] = [0, 1].map(|end| line["decided_on"][end].as_f64().unwrap());
            assert!(low.ln() >= -number("margin").ln_1p() && high.ln() <= number("margin").ln_1p());
        }
    }
    verdicts
}

const ONE: [&str; 5] = ["--threads", "1", "--window", "2", "--json"];

/// Ten nanoseconds of work more make an uncontended lock slower by more than any margin.
#[test]
fn a_lock_is_slower_than_no_lock_and_not_slower_than_itself() {
    let output = ab(&[&["locks/null", "locks/mcs", "locks/null"], &ONE[..]].concat());
    let verdicts = verdicts(&output);
    assert_eq!(verdicts[0], "slower", "{}", text(&output.stdout));
    assert!(["equal", "inconclusive"].contains(&verdicts[1].as_str()), "{}", text(&output.stdout));
    let back = ab(&[&["locks/mcs", "locks/null"], &ONE[..]].concat());
    assert_eq!(self::verdicts(&back), ["faster"]);
}

#[test]
fn fresh_processes_measure_too() {
    let more = ["--processes", "3", "--pairs", "16", "--quiet"];
    let output = ab(&[&["counters/null", "counters/atomic"], &ONE[..], &more].concat());
    verdicts(&output);
    let line = &lines(&output)[0];
    assert_eq!((&line["processes"], &line["workload"]["memory"]), (&3.into(), &"local".into()));
    assert!(line["ratio"].as_f64().unwrap() > 1.5, "{line}");
    // Three processes of one pair each at the first look and more at every further one.
    assert!([3, 6, 12, 21].contains(&line["pairs"].as_u64().unwrap()), "{line}");
}

#[test]
fn the_terminal_shows_the_noise_floor_and_the_margin() {
    let words = ["locks/null", "locks/mcs", "--threads", "1", "--window", "1", "--margin", "7"];
    let output = ab(&words);
    let said = text(&output.stdout);
    for word in ["margin 7 %", "noise floor: locks/null against itself", "locks/mcs", "slower"] {
        assert!(said.contains(word), "`{word}` is not in {said}");
    }
}

#[test]
fn what_cannot_be_compared_is_refused() {
    for (words, word) in [
        (&["locks/tas"] as &[&str], "<B>"),
        (&["locks/tas", "locks"], "no primitive/variant"),
        (&["tas", "mcs"], "no primitive/variant"),
        (&["locks/tas", "locks/mc"], "nearest: mcs"),
        (&["lock/tas", "locks/mcs"], "nearest: locks"),
        (&["locks/*", "locks/mcs"], "no primitive/variant"),
        (&["locks/tas", "queues/null"], "variants of one primitive"),
        (&["locks/tas", "locks/mcs", "--threads", "0"], "cannot be less than 1"),
        (&["locks/tas", "locks/mcs", "--threads", "4000"], "CPUs"),
        (&["locks/tas", "locks/mcs", "--placement", "cpus=4095"], "4095"),
        (&["locks/tas", "locks/mcs", "--pairs", "4"], "16 are the least"),
        (&["locks/tas", "locks/mcs", "--window", "0"], "milliseconds"),
        (&["locks/tas", "locks/mcs", "--margin", "-3"], "margin"),
        (&["locks/tas", "locks/mcs", "--alpha", "1"], "probability"),
        (&["locks/tas", "locks/mcs", "--processes", "0"], "processes"),
    ] {
        let output = ab(words);
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {error}");
        assert!(error.contains(word) && !error.contains("panicked"), "{words:?}: {error}");
    }
}

/// A record of each variant, which the other commands understand.
#[test]
fn records_are_written_for_report_and_compare() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("ab.jsonl");
    let file = file.to_str().unwrap();
    let names = ["locks/null", "locks/mcs", "locks/null"];
    let output = ab(&[&names[..], &ONE, &["--pairs", "16", "--out", file]].concat());
    verdicts(&output);
    let text_of = std::fs::read_to_string(file).unwrap();
    let records: Vec<Value> =
        text_of.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let [run, null, mcs] = &records[..] else { panic!("{text_of}") };
    let schema: Value =
        serde_json::from_str(include_str!("../../docs/records.schema.json")).unwrap();
    let schema = jsonschema::validator_for(&schema).unwrap();
    assert!(records.iter().all(|record| schema.is_valid(record)), "{text_of}");
    assert_eq!((&run["record"], &null["run"]), (&"run".into(), &run["run"]));
    assert!(run["topology"].is_object() && run["doctor"].is_array());
    assert_eq!((&null["variant"], &mcs["variant"]), (&"null".into(), &"mcs".into()));
    let figure = |point: &Value, name: &str| point["metrics"][name]["value"].as_f64();
    assert!(figure(mcs, "ns_per_op") > figure(null, "ns_per_op"));
    assert!(figure(mcs, "ratio_to_a") > Some(1.0) && figure(null, "ratio_to_a").is_none());
    let manycore = |arguments: &[&str]| {
        let program = env!("CARGO_BIN_EXE_manycore");
        let output = Command::new(program).args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", text(&output.stderr));
        text(&output.stdout)
    };
    let same = manycore(&["compare", file, file, "--all", "--json"]);
    assert!(same.contains("\"equal\":2"), "{same}");
    let table = manycore(&["report", file, "--format", "markdown", "--out", "-"]);
    assert!(table.contains("| mcs |") || table.contains("mcs"), "{table}");
}
