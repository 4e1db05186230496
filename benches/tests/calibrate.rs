//! `manycore calibrate` as a user runs it. The figures are this host's at this moment: the tests
//! ask whether there is one of each, where it comes from, and whether it can be simulated.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn manycore(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_manycore"));
    command.args(arguments).current_dir(directory);
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn succeeds(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    output
}

fn allowed() -> Vec<u32> {
    harness::affinity::allowed_cpus().unwrap()
}

/// Lets the program run on one CPU only.
fn on_one_cpu(command: &mut Command) -> &mut Command {
    let cpu = allowed()[0];
    let pin = move || harness::affinity::pin_to(cpu).map_err(|_| std::io::ErrorKind::Other.into());
    // SAFETY: between fork and exec it makes system calls on memory of its own. It allocates, which
    // glibc allows after a fork.
    unsafe { command.pre_exec(pin) }
}

/// What `manycore machines FILE --json` says about a field.
fn figures(directory: &Path, file: &str) -> Vec<Value> {
    let shown = succeeds(&mut manycore(directory, &["machines", file, "--json"]));
    let machine: Value = serde_json::from_slice(&shown.stdout).unwrap();
    assert_eq!(machine["name"], "this-host");
    machine["figures"].as_array().unwrap().clone()
}

fn of<'a>(figures: &'a [Value], field: &str) -> &'a Value {
    figures.iter().find(|figure| figure["field"] == field).unwrap()
}

#[test]
fn the_file_is_a_machine_that_is_simulated() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let output = succeeds(&mut manycore(directory, &["calibrate", "--quick"]));
    let table = text(&output.stdout);
    assert!(table.contains("wrote this-host.toml"), "{table}");
    assert!(table.contains("--machine ./this-host.toml"), "{table}");
    let figures = figures(directory, "./this-host.toml");
    for figure in &figures {
        assert_eq!(figure["by_default"], false, "{figure}");
        let source = figure["source"].as_str().unwrap();
        assert!(table.contains(source), "{figure}");
        if figure["confidence"] == "assumed" {
            let why = source.starts_with("as on ") || source.contains("cannot be known");
            assert!(why, "{figure}");
        }
    }
    for field in ["atomic.rmw_owned_ns", "atomic.fence_ns", "core.pause_cycles"] {
        assert_eq!(of(&figures, field)["confidence"], "measured");
        assert!(of(&figures, field)["source"].as_str().unwrap().contains("median of 3, "));
    }
    assert_eq!(of(&figures, "kernel.syscall_ns")["confidence"], "measured");
    let entries = fs::read_dir(directory).unwrap().count();
    assert_eq!(entries, 1, "nothing but the machine file is left");
    let sweep = ["sweep", "--engine", "simulated", "--machine", "./this-host.toml", "--cores", "8"];
    let what = ["--threads", "1,8", "--ops", "64", "--primitive", "locks", "--variant", "mcs"];
    let words: Vec<&str> = sweep.into_iter().chain(what).chain(["--json"]).collect();
    let records = text(&succeeds(&mut manycore(directory, &words)).stdout);
    let points: Vec<Value> = records
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|record| record["record"] == "point")
        .collect();
    assert_eq!(points.len(), 2, "{records}");
    assert!(points.iter().all(|point| point["status"] == "ok"), "{records}");
}

#[test]
fn one_cpu_is_enough_and_says_what_it_cannot_tell() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let words = ["calibrate", "--quick", "--out", "one.toml", "--json"];
    let output = succeeds(on_one_cpu(&mut manycore(directory, &words)));
    assert!(text(&output.stderr).contains("nothing between two cores can be measured"));
    let printed = text(&output.stdout);
    let figures: Vec<Value> =
        printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for field in ["transfer.same_l3_ns", "line.rmw_queue_ratio", "kernel.wake_latency_ns"] {
        assert_eq!(of(&figures, field)["confidence"], "assumed");
    }
    assert_eq!(of(&figures, "kernel.syscall_ns")["confidence"], "measured");
    assert!(!printed.contains("transfer_ns\":["), "no pair of CPUs: {printed}");
    assert!(!self::figures(directory, "./one.toml").is_empty());
}

#[test]
fn a_place_that_cannot_be_written_is_refused_before_anything_is_measured() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    fs::write(directory.join("file"), "kept").unwrap();
    for out in ["none/x.toml", ".", "file/x.toml", "/proc/x.toml", ""] {
        let output = manycore(directory, &["calibrate", "--out", out]).output().unwrap();
        let error = text(&output.stderr);
        assert!(matches!(output.status.code(), Some(1 | 2)), "{out}: {error}");
        assert!(error.contains("--out"), "{out}: {error}");
        assert!(output.stdout.is_empty(), "{out}");
    }
    assert_eq!(fs::read_to_string(directory.join("file")).unwrap(), "kept");
    assert_eq!(fs::read_dir(directory).unwrap().count(), 1);
    let output = manycore(directory, &["calibrate", "--quik"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_host_is_arranged_like_a_known_machine() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let like = ["calibrate", "--quick", "--like", "epyc-7742-2s"];
    succeeds(&mut manycore(directory, &like));
    let figures = figures(directory, "./this-host.toml");
    assert_eq!(of(&figures, "topology.sockets")["value"], 2);
    assert_eq!(of(&figures, "topology.l3_groups_per_socket")["value"], 16);
    for field in ["topology.sockets", "transfer.cross_socket_ns", "memory.remote_ns"] {
        let figure = of(&figures, field);
        assert!(figure["source"].as_str().unwrap().starts_with("as on epyc-7742-2s"), "{figure}");
        assert_eq!(figure["confidence"], "assumed");
    }
    assert_eq!(of(&figures, "atomic.rmw_owned_ns")["confidence"], "measured");
    let file = fs::read_to_string(directory.join("this-host.toml")).unwrap();
    assert!(file.contains("arranged like epyc-7742-2s"), "{file}");

    let output = manycore(directory, &["calibrate", "--like", "pdp-11"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("epyc-7742-2s"), "{}", text(&output.stderr));
}
