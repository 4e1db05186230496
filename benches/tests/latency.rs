//! `manycore sweep --latency` as a user runs it.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn manycore(directory: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_manycore"));
    command.args(["sweep", "--quiet"]).args(arguments).current_dir(directory).output().unwrap()
}

fn sweep(directory: &Path, arguments: &[&str]) -> Output {
    let words = ["--seconds", "0.1", "--repeat", "2", "--threads", "1"];
    manycore(directory, &[&words, arguments].concat())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn points(arguments: &[&str]) -> Vec<Value> {
    let directory = tempfile::tempdir().unwrap();
    points_of(&sweep(directory.path(), &[arguments, &["--json"]].concat()))
}

fn points_of(output: &Output) -> Vec<Value> {
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let lines = text(&output.stdout);
    let lines = lines.lines().map(|line| serde_json::from_str(line).unwrap());
    let points: Vec<Value> = lines.filter(|line: &Value| line["record"] == "point").collect();
    assert!(!points.is_empty());
    for point in &points {
        assert_ne!(point["status"], "broken", "{point}");
    }
    points
}

fn value(point: &Value, metric: &str) -> f64 {
    let metric = &point["metrics"][metric];
    metric["value"].as_f64().unwrap_or_else(|| panic!("{metric} in {point}"))
}

#[test]
fn every_primitive_is_timed_in_the_closed_loop() {
    for point in points(&["--latency", "closed"]) {
        assert_eq!(point["workload"]["latency"], "closed");
        let quantiles = ["p50", "p90", "p99", "p99.9", "max"];
        let quantiles = quantiles.map(|name| value(&point, &format!("latency_ns.{name}")));
        assert!(quantiles.is_sorted(), "{quantiles:?} of {point}");
        assert!(value(&point, "latency_samples") > 1000.0, "{point}");
        assert_eq!(value(&point, "latency_saturated"), 0.0);
        assert!(value(&point, "latency_overhead_ns") > 0.0);
        assert_eq!(point["metrics"].get("offered_ops_per_s"), None);
    }
}

/// 100 µs inside the lock: ten thousand a second are the most that there can be.
#[test]
fn the_open_loop_says_when_a_load_cannot_be_served() {
    let lock = ["--primitive", "locks", "--variant", "tas", "--critical-ns", "100000"];
    let open = |rate: &str| {
        points(&[&lock[..], &["--latency", "open", "--rate", rate]].concat()).remove(0)
    };
    let hard = open("100000");
    assert_eq!(hard["workload"]["rate_per_s"], 100_000);
    assert_eq!(hard["metrics"]["latency_ns.p50"]["unavailable"], "overloaded", "{hard}");
    assert_eq!(hard["status"], "noisy");
    assert!(text(hard["reasons"].to_string().as_bytes()).contains("were served"), "{hard}");
    assert!(value(&hard, "served_ops_per_s") < value(&hard, "offered_ops_per_s") * 0.5);
    // About what was asked for: the times are drawn, a hundred thousand a second for 50 ms.
    let offered = value(&hard, "offered_ops_per_s");
    assert!((85_000.0..115_000.0).contains(&offered), "{offered}");
}

#[test]
fn points_with_latencies_are_other_points_and_the_table_shows_them() {
    let directory = tempfile::tempdir().unwrap();
    let lock = ["--primitive", "locks", "--variant", "tas", "--out", "r.jsonl"];
    let closed = [&lock[..], &["--latency", "closed"]].concat();
    let output = sweep(directory.path(), &closed);
    let said = text(&output.stdout);
    for word in ["p50 ns", "p99.9 ns", "latency closed"] {
        assert!(said.contains(word), "`{word}` is not in {said}");
    }
    let again = |words: &[&str]| {
        let output = sweep(directory.path(), &[words, &["--resume", "--json"]].concat());
        text(&output.stdout).matches("\"record\":\"point\"").count()
    };
    assert_eq!(again(&closed), 0);
    assert_eq!(again(&lock), 1);
}

#[test]
fn what_cannot_be_meant_is_refused() {
    for (words, word) in [
        (&["--latency", "open"] as &[&str], "needs --rate"),
        (&["--rate", "5"], "--rate is for --latency open"),
        (&["--latency", "closed", "--rate", "5"], "--rate is for"),
        (&["--latency", "open", "--rate", "0"], "less than 1"),
        (&["--latency", "open", "--rate", "-5"], "less than 1"),
        (&["--latency", "open", "--rate", "1e6"], "whole number"),
        (&["--latency", "half"], "closed, open"),
        (&["--latency", "closed", "--engine", "callgrind"], "for --engine native or simulated"),
    ] {
        let output = manycore(Path::new("."), words);
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {error}");
        assert!(error.contains(word), "{words:?}: {error}");
    }
}

/// Eight threads, four in each socket of a machine with four cores under an L3.
fn simulated(arguments: &[&str]) -> Vec<Value> {
    let cores = "cpus=0,1,2,4,64,65,66,68";
    let words = ["--engine", "simulated", "--threads", "8", "--placement", cores, "--json"];
    points_of(&manycore(Path::new("."), &[&words, arguments].concat()))
}

/// Everything but the name of the run.
fn figures(points: &[Value]) -> Vec<[&Value; 3]> {
    points.iter().map(|point| ["metrics", "status", "per_thread"].map(|key| &point[key])).collect()
}

#[test]
fn simulated_latencies_repeat_and_tell_near_from_far() {
    let words = ["--primitive", "locks", "--variant", "mcs", "--latency", "closed", "--ops", "512"];
    // Who thinks for a while asks in another order each time.
    let often = [&words[..], &["--think-ns", "300"]].concat();
    let contended = simulated(&often);
    assert_eq!(figures(&contended), figures(&simulated(&often)));
    let point = &contended[0];
    let quantiles = ["p50", "p90", "p99", "max"].map(|name| format!("latency_ns.{name}"));
    let values = quantiles.clone().map(|name| value(point, &name));
    assert!(values.is_sorted() && values[0] > 0.0, "{values:?}");
    assert!(value(point, "latency_samples") >= 512.0);
    let distances = ["same_l3", "same_socket", "cross_socket"];
    let handed = distances.map(|distance| format!("handoff_ns.{distance}"));
    for name in quantiles.iter().chain(&handed) {
        let [low, it, high] =
            ["low", "value", "high"].map(|at| point["metrics"][name][at].as_f64());
        assert!(low < it && it < high, "{name}: {}", point["metrics"][name]);
    }
    let handed = handed.map(|name| value(point, &name));
    assert!(handed[0] < handed[1] && handed[1] < handed[2], "{handed:?}");

    // Who thinks for long finds the lock free, and its lines where the last holder was.
    let free = simulated(&[&words[..], &["--think-ns", "4000"]].concat()).remove(0);
    let acquired = ["same", "same_l3", "same_socket", "cross_socket"];
    let acquired = acquired.map(|distance| value(&free, &format!("acquire_ns.{distance}")));
    assert!(acquired.is_sorted(), "{acquired:?}");
    assert!(value(&free, "latency_ns.p50") < value(point, "latency_ns.p50") / 2.0, "{free}");
}

#[test]
fn a_simulated_load_that_cannot_be_served_says_so() {
    let lock = ["--primitive", "locks", "--variant", "ticket", "--critical-ns", "10000"];
    let open = |rate: &str, ops: &str| {
        let words = ["--latency", "open", "--ops", ops, "--rate", rate];
        simulated(&[&lock[..], &words].concat()).remove(0)
    };
    // A hundred thousand a second are the most that there can be.
    let (easy, hard) = (open("20000", "32"), open("400000", "128"));
    let offered = value(&easy, "offered_ops_per_s");
    assert!((16_000.0..24_000.0).contains(&offered), "{offered}");
    assert!(value(&easy, "latency_ns.p50") < 10_000.0, "{easy}");
    assert_eq!(hard["metrics"]["latency_ns.p50"]["unavailable"], "overloaded", "{hard}");
    assert_eq!(hard["status"], "noisy");
    let served = value(&hard, "served_ops_per_s");
    assert!((80_000.0..110_000.0).contains(&served), "{served}");
}

#[test]
fn every_primitive_is_timed_on_simulated_cores() {
    let all = ["--variant", "atomic,tas,mpmc_ring_vyukov,bump_slice", "--latency", "closed"];
    let points = simulated(&[&all[..], &["--ops", "64"]].concat());
    assert_eq!(points.len(), 4);
    for point in points {
        assert!(value(&point, "latency_ns.p50") >= 0.0 && value(&point, "latency_samples") >= 64.0);
    }
}
