//! `manycore c2c` as a user runs it.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn manycore(program: &str, directory: &Path, arguments: &[&str]) -> Output {
    Command::new(program).args(arguments).current_dir(directory).output().unwrap()
}

fn c2c(directory: &Path, arguments: &[&str]) -> Output {
    manycore(env!("CARGO_BIN_EXE_manycore"), directory, &[&["c2c"], arguments].concat())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn points(output: &Output) -> Vec<Value> {
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let lines = text(&output.stdout);
    let lines = lines.lines().map(|line| serde_json::from_str(line).unwrap());
    lines.filter(|line: &Value| line["record"] == "point").collect()
}

fn ns(point: &Value) -> f64 {
    point["metrics"]["ns_per_op"]["value"].as_f64().unwrap()
}

#[test]
fn a_simulated_matrix_has_the_machine_s_distances() {
    let directory = tempfile::tempdir().unwrap();
    let words = ["--engine", "simulated", "--pairs", "40", "--shape", "cas,flags", "--json"];
    let all = points(&c2c(directory.path(), &words));
    assert_eq!(all.len(), 80);
    for shape in ["cas", "flags"] {
        // Four cores share an L3 of this machine, 64 a socket.
        let distance = |point: &Value| {
            let cpu = |at: usize| point["cpus"][at].as_u64().unwrap();
            // From 128 on they are the cores' second threads.
            let [a, b] = [0, 1].map(|at| cpu(at) % 128);
            usize::from(a / 4 != b / 4) + usize::from(a / 64 != b / 64)
        };
        let of = |at| {
            let here =
                all.iter().filter(|point| point["variant"] == shape && distance(point) == at);
            let times: Vec<f64> = here.map(ns).collect();
            assert!(times.len() >= 10, "{shape} {at}");
            times
        };
        let most = |times: Vec<f64>| times.into_iter().fold(0.0, f64::max);
        let least = |times: Vec<f64>| times.into_iter().fold(f64::INFINITY, f64::min);
        assert!(most(of(0)) < least(of(1)) && most(of(1)) < least(of(2)), "{shape}");
    }
    let again = points(&c2c(directory.path(), &words));
    let figures = |points: &[Value]| points.iter().map(ns).collect::<Vec<_>>();
    assert_eq!(figures(&all), figures(&again));
}

#[test]
fn all_pairs_of_a_small_machine_show_its_groups() {
    let directory = tempfile::tempdir().unwrap();
    let words = ["--engine", "simulated", "--cores", "8", "--svg", "m.svg", "--out", "r.jsonl"];
    let output = c2c(directory.path(), &words);
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    for word in [
        "epyc-7742-2s/8, simulated",
        "28 pairs",
        "same_l3: 12 pairs",
        ": 0-3 | 4-7",
        "L3 groups (2)",
        ": agrees",
    ] {
        assert!(said.contains(word), "`{word}` is not in {said}");
    }
    let svg = fs::read_to_string(directory.path().join("m.svg")).unwrap();
    assert_eq!(svg.matches("<title>").count(), 56);
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/records.schema.json");
    let schema = serde_json::from_str(&fs::read_to_string(schema).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let records = fs::read_to_string(directory.path().join("r.jsonl")).unwrap();
    for line in records.lines() {
        let record: Value = serde_json::from_str(line).unwrap();
        let errors: Vec<String> = validator.iter_errors(&record).map(|e| e.to_string()).collect();
        assert!(errors.is_empty(), "{line}: {errors:?}");
    }
    assert_eq!(records.lines().count(), 29);
    let same = ["compare", "r.jsonl", "r.jsonl"];
    let same = manycore(env!("CARGO_BIN_EXE_manycore"), directory.path(), &same);
    assert!(text(&same.stdout).contains("28 equal"));
}

#[test]
fn this_host_is_measured_or_says_why_not() {
    let directory = tempfile::tempdir().unwrap();
    let output = c2c(directory.path(), &["--pairs", "3", "--repeat", "3", "--json"]);
    if output.status.code() == Some(5) {
        println!("SKIPPED: {}", text(&output.stderr));
        return;
    }
    let points = points(&output);
    assert!((1..=3).contains(&points.len()));
    for point in points {
        let figure = &point["metrics"]["ns_per_op"];
        let [low, high] = ["low", "high"].map(|end| figure[end].as_f64().unwrap());
        assert!(0.0 < low && low <= ns(&point) && ns(&point) <= high, "{point}");
    }
}

#[test]
fn one_cpu_is_refused_with_the_reason() {
    let directory = tempfile::tempdir().unwrap();
    let words = ["-c", "0", env!("CARGO_BIN_EXE_manycore"), "c2c"];
    let output = manycore("taskset", directory.path(), &words);
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(5), "{error}");
    assert!(error.contains("may use CPU 0 only") && error.contains("taskset"), "{error}");
    assert!(!directory.path().join("results").exists());
}

#[test]
fn what_cannot_be_meant_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    for (words, word) in [
        (&["--machine", "epyc-7742-2s"] as &[&str], "for --engine simulated"),
        (&["--cores", "4"], "for --engine simulated"),
        (&["--engine", "simulated", "--machine", "epyc"], "epyc-7742-2s"),
        (&["--engine", "simulated", "--cores", "1"], "2 is the least"),
        (&["--engine", "callgrind"], "native, simulated"),
        (&["--shape", "square"], "cas, flags"),
        (&["--home", "third"], "first, second"),
        (&["--pairs", "0"], "less than 1"),
        (&["--pairs", "-1"], "less than 1"),
        (&["--repeat", "0"], "less than 1"),
        (&["0", "1"], "unexpected"),
    ] {
        let output = c2c(directory.path(), words);
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {error}");
        assert!(error.contains(word), "{words:?}: {error}");
    }
}
