//! `scripts/numa-sweep.sh`: its own flags in any order, and what it hands to the program.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

/// Runs the script with a program that notes how it was called.
fn script(arguments: &[&str]) -> (Output, Vec<String>) {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("manycore");
    let noting = "#!/bin/sh\nprintf '%s' \"$1\" >>\"$NOTES\"; shift\n\
                  for word in \"$@\"; do printf ' %s' \"$word\" >>\"$NOTES\"; done\necho >>\"$NOTES\"\n";
    fs::write(&program, noting).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let notes = directory.path().join("notes");
    let program = program.to_str().unwrap();
    let arguments = arguments.iter().map(|word| word.replace("PROGRAM", program));
    let output = Command::new("bash")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/numa-sweep.sh"))
        .args(arguments)
        .env("NOTES", &notes)
        .current_dir(directory.path())
        .output()
        .unwrap();
    let notes = fs::read_to_string(notes).unwrap_or_default();
    (output, notes.lines().map(str::to_owned).collect())
}

fn sweeps(calls: &[String]) -> Vec<&String> {
    calls.iter().filter(|call| call.starts_with("sweep ")).collect()
}

#[test]
fn flags_stand_in_any_order() {
    let orders: [&[&str]; 3] = [
        &["--full", "--program", "PROGRAM", "--primitive", "locks", "--out", "r.jsonl"],
        &["--primitive", "locks", "--program=PROGRAM", "--out", "r.jsonl", "--full"],
        &["--out=r.jsonl", "--primitive", "locks", "--full", "--program", "PROGRAM"],
    ];
    for order in orders {
        let (output, calls) = script(order);
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        let [native, simulated] = sweeps(&calls)[..] else { panic!("{calls:?}") };
        for words in ["--seconds 3 --repeat 11", "--primitive locks", "--out r.jsonl"] {
            assert!(native.contains(words), "{words} is not in {native}");
        }
        for words in ["--engine simulated", "--ops 1024", "--primitive locks", "--out r.jsonl"] {
            assert!(simulated.contains(words), "{words} is not in {simulated}");
        }
        assert!(!simulated.contains("--seconds"), "{simulated}");
        assert!(calls.iter().any(|call| call.starts_with("lines locks/tas ")), "{calls:?}");
        assert!(calls.contains(&"report r.jsonl --out r.html".to_owned()), "{calls:?}");
    }
}

#[test]
fn what_another_engine_does_not_heed_is_not_handed_to_it() {
    for engine in [&["--engine", "simulated"] as &[&str], &["--engine=simulated"]] {
        let all = [engine, &["--threads", "2", "--program", "PROGRAM"]].concat();
        let (output, calls) = script(&all);
        assert_eq!(output.status.code(), Some(0));
        let [sweep] = sweeps(&calls)[..] else { panic!("{calls:?}") };
        assert!(
            sweep.starts_with("sweep --engine simulated --threads 2 --out results/"),
            "{sweep}"
        );
    }
}

#[test]
fn a_dry_run_and_a_native_one_simulate_nothing() {
    let (_, calls) = script(&["--dry-run", "--program", "PROGRAM"]);
    let [sweep] = sweeps(&calls)[..] else { panic!("{calls:?}") };
    assert!(sweep.ends_with("--dry-run") && !sweep.contains("--out"), "{sweep}");
    let (_, calls) = script(&["--out", "r.jsonl", "--program", "PROGRAM", "--native-only"]);
    assert_eq!(sweeps(&calls).len(), 1, "{calls:?}");
}

#[test]
fn a_program_that_is_none_is_refused() {
    let (output, calls) = script(&["--quick", "--program", "/nothing/there"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(calls.is_empty());
    let (output, _) = script(&["--primitive", "locks", "--program"]);
    assert_eq!(output.status.code(), Some(2), "--program without a file");
}
