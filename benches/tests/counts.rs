//! Exact counts: approved ones, an independent way to the same figure, and what valgrind may do.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use harness::callgrind::Callgrind;
use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// The optimised program: what counts are approved for. Built once.
fn release() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let target = Path::new(env!("CARGO_BIN_EXE_manycore")).ancestors().nth(2).unwrap();
        let built = Command::new(env!("CARGO"))
            .args(["build", "--release", "--locked", "-p", "manycore"])
            .current_dir(root())
            .env("CARGO_TARGET_DIR", target)
            .env_remove("RUSTC_BOOTSTRAP")
            .output()
            .unwrap();
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        target.join("release/manycore")
    })
}

fn without_valgrind() -> bool {
    match Callgrind::find() {
        Ok(_) => false,
        Err(reason) => {
            println!("SKIPPED: {reason}");
            true
        }
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Every row counted by all engines and compared with what is approved, once for all tests.
fn everything() -> &'static Output {
    static OUTPUT: OnceLock<Output> = OnceLock::new();
    OUTPUT.get_or_init(|| {
        let goldens = root().join("benches/goldens/counts.json");
        Command::new(release()).args(["count", "--json", "--check"]).arg(goldens).output().unwrap()
    })
}

/// The points of an engine.
fn points(output: &Output, engine: &str) -> Vec<Value> {
    text(&output.stdout)
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|record| record["record"] == "point")
        .inspect(|point| assert_eq!(point["status"], "ok", "{point}"))
        .filter(|point| point["engine"] == engine)
        .collect()
}

/// Instructions and RMWs of each `primitive/variant`, by callgrind.
fn counted(output: &Output) -> Vec<(String, f64, f64)> {
    points(output, "callgrind")
        .iter()
        .map(|point| {
            let value = |name: &str| point["metrics"][name]["value"].as_f64().unwrap();
            let row = format!("{}/{}", point["primitive"], point["variant"]).replace('"', "");
            (row, value("instructions_per_op"), value("rmw_per_op"))
        })
        .collect()
}

#[test]
fn counts_are_as_approved() {
    if without_valgrind() {
        return;
    }
    let said = text(&everything().stderr);
    assert!(everything().status.success(), "{said}");
    println!("{said}");
}

#[test]
fn locked_operations_are_those_of_the_papers() {
    if without_valgrind() {
        return;
    }
    let expected = [
        ("counters/null", 0.0),
        ("counters/atomic", 1.0),
        ("counters/sharded", 1.0),
        ("locks/null", 0.0),
        ("locks/tas", 1.0),
        ("locks/ticket", 1.0),
        ("locks/mcs", 2.0),
        ("locks/futex", 2.0),
        ("queues/spsc_ring_cached", 0.0),
        ("queues/spsc_lamport", 0.0),
        ("queues/spsc_fastforward", 0.0),
        ("queues/mpmc_ring_vyukov", 1.0),
        ("queues/mpmc_ticket", 3.0),
        ("queues/mpmc_ring_rte", 1.0),
        ("queues/mpmc_scq", 4.0),
        ("queues/mpmc_michael_scott", 2.5),
        ("queues/mutex_ring", 1.0),
        ("queues/deque_chase_lev_growing", 1.0),
        ("queues/deque_packed_fifo", 1.0),
        ("queues/spsc_unbounded", 0.0),
        ("alloc-arena/bump_heap", 0.0),
        ("alloc-arena/bump_atomic", 1.0),
        ("alloc-arena/pool_free_list", 0.0),
        ("alloc-arena/pool_mutex", 2.0),
        ("alloc-arena/pool_treiber", 2.0),
        ("alloc-arena/pool_ring", 2.0),
        ("alloc-arena/pool_magazine", 0.0),
        ("alloc-arena/pool_remote", 0.0),
    ];
    let counted = counted(everything());
    for (row, rmws) in expected {
        let found = counted.iter().find(|(name, ..)| name == row).map(|(_, _, rmws)| *rmws);
        assert_eq!(found, Some(rmws), "{row}");
    }
}

/// Cachegrind knows nothing of callgrind's requests and counts the whole process; the program runs
/// its loop 4n times in all, so the process's growth from n to 2n is that of 4n operations.
#[test]
fn another_tool_gives_the_same_count() {
    if without_valgrind() {
        return;
    }
    const N: u64 = 4096;
    let whole_process = |primitive: &str, variant: &str, ops: u64| -> u64 {
        let output = Command::new("valgrind")
            .args(["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"])
            .arg(release())
            .args(["measured", "--primitive", primitive, "--variant", variant, "--ops"])
            .arg(ops.to_string())
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("GLIBC_TUNABLES", "glibc.pthread.rseq=0")
            .output()
            .unwrap();
        let said = text(&output.stderr);
        let refs = said.lines().find_map(|line| line.split_once("I   refs:"));
        let refs = refs.unwrap_or_else(|| panic!("{said}")).1;
        refs.trim().replace(',', "").parse().unwrap()
    };
    let chosen = ["counters/atomic", "locks/ticket", "queues/mpmc_ring_vyukov"];
    let ours = counted(everything());
    let ours: Vec<_> = ours.iter().filter(|(row, ..)| chosen.contains(&row.as_str())).collect();
    assert_eq!(ours.len(), chosen.len());
    for (row, instructions, _) in ours {
        let (primitive, variant) = row.split_once('/').unwrap();
        let grown = whole_process(primitive, variant, 2 * N) - whole_process(primitive, variant, N);
        let theirs = grown as f64 / (4 * N) as f64;
        // Setting up is the same but for a few instructions that depend on addresses.
        assert!((theirs - instructions).abs() < 0.01, "{row}: {instructions} and {theirs}");
    }
}

#[test]
fn nothing_of_the_c_library_is_in_a_measured_region() {
    let Ok(callgrind) = Callgrind::find() else {
        without_valgrind();
        return;
    };
    for (row, ..) in counted(everything()) {
        let (primitive, variant) = row.split_once('/').unwrap();
        let arguments: Vec<String> =
            ["measured", "--primitive", primitive, "--variant", variant, "--ops", "2048"]
                .map(str::to_owned)
                .to_vec();
        let counts = callgrind.count(release(), &arguments, 2048).unwrap();
        let program = release().file_name().unwrap().to_string_lossy().into_owned();
        for cost in &counts.functions {
            assert!(cost.object.ends_with(&program), "{row}: {cost:?}");
            assert!(!cost.function.contains("alloc::"), "{row}: {cost:?}");
        }
    }
}

/// Runs `manycore count` with a program called valgrind that is this shell script.
fn with_valgrind(script: &str) -> Output {
    let directory = tempfile::tempdir().unwrap();
    let valgrind = directory.path().join("valgrind");
    fs::write(&valgrind, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&valgrind, fs::Permissions::from_mode(0o755)).unwrap();
    Command::new(env!("CARGO_BIN_EXE_manycore"))
        .args(["count", "--primitive", "locks", "--variant", "tas"])
        .env("PATH", format!("{}:/usr/bin:/bin", directory.path().display()))
        .output()
        .unwrap()
}

#[test]
fn a_valgrind_that_is_missing_old_killed_or_babbling_is_a_reason() {
    let missing = |more: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_manycore"))
            .args(["count", "--primitive", "locks", "--variant", "tas"])
            .args(more)
            .env("PATH", "/nowhere")
            .output()
            .unwrap();
        let said = text(&output.stderr);
        assert!(said.contains("no_valgrind"), "{said}");
        assert!(said.contains("apt-get install valgrind"), "{said}");
        (output.status.code(), text(&output.stdout))
    };
    // The simulator then counts alone.
    let (code, said) = missing(&[]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("tas") && !said.contains("agree"), "{said}");
    assert_eq!(missing(&["--engine", "callgrind"]).0, Some(1));

    let old = with_valgrind("echo valgrind-3.2.1");
    assert!(text(&old.stderr).contains("valgrind_too_old"), "{}", text(&old.stderr));

    let version = "[ \"$1\" = --version ] && { echo valgrind-3.19.0; exit 0; }\n";
    let cases = [
        ("kill -9 $$", "callgrind_killed"),
        ("echo unhandled instruction >&2; exit 3", "callgrind_failed"),
        ("exit 0", "callgrind_output"),
        (
            "for a in \"$@\"; do case $a in --callgrind-out-file=*) f=${a#*=};; esac; done\n\
             echo nonsense > $f.1; echo nonsense > $f.2",
            "callgrind_output",
        ),
    ];
    for (script, code) in cases {
        let output = with_valgrind(&format!("{version}{script}"));
        let said = text(&output.stdout);
        assert!(said.contains(code), "{script}: {said}{}", text(&output.stderr));
        assert!(!said.contains("panicked"), "{said}");
    }
}

/// Both engines run the same command of this program and must come to the same figures.
#[test]
fn callgrind_and_the_simulator_agree_to_the_instruction() {
    if without_valgrind() {
        return;
    }
    let figures = |engine: &str| -> Vec<(Value, Value)> {
        let points = points(everything(), engine);
        points.iter().map(|point| (point["variant"].clone(), point["metrics"].clone())).collect()
    };
    let simulated = figures("simulated");
    assert_eq!(figures("callgrind"), simulated);
    assert!(simulated.len() >= 20);
    let output = Command::new(release()).args(["count", "--variant", "ticket"]).output().unwrap();
    let said = text(&output.stdout);
    assert!(said.contains("agree") && said.contains(" yes"), "{said}");
    let refused = Command::new(release()).args(["count", "--engine", "native"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));
}

#[test]
fn the_simulator_counts_as_approved() {
    let goldens = root().join("benches/goldens/counts.json");
    let arguments = ["count", "--engine", "simulated", "--check"];
    let output = Command::new(release()).args(arguments).arg(goldens).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
}

#[test]
fn goldens_of_others_are_a_skip_and_of_gone_variants_a_failure() {
    if without_valgrind() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("goldens.json");
    let count = |option: &str| {
        Command::new(env!("CARGO_BIN_EXE_manycore"))
            .args(["count", "--primitive", "locks", "--variant", "tas", option])
            .arg(&file)
            .output()
            .unwrap()
    };
    let absent = count("--check");
    assert_eq!(absent.status.code(), Some(1));
    assert!(text(&absent.stderr).contains("--approve"));
    assert!(count("--approve").status.success());
    assert!(count("--check").status.success());
    let approved: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    let changed = |change: &dyn Fn(&mut Value)| {
        let mut goldens = approved.clone();
        change(&mut goldens);
        fs::write(&file, goldens.to_string()).unwrap();
        let output = count("--check");
        (output.status.code(), text(&output.stderr))
    };
    let (code, said) = changed(&|goldens| goldens["rustc"] = "rustc 1.0.0".into());
    assert_eq!(code, Some(0));
    assert!(said.contains("SKIPPED: approved for rustc 1.0.0"), "{said}");
    let (code, said) = changed(&|goldens| {
        goldens["counts"]["locks/spinlock"] = goldens["counts"]["locks/tas"].clone();
    });
    assert_eq!(code, Some(1));
    assert!(said.contains("locks/spinlock: approved, but there is no such variant"), "{said}");
    let (code, said) = changed(&|goldens| {
        goldens["counts"]["locks/tas"]["instructions_per_op"] = 1.into();
    });
    assert_eq!(code, Some(1));
    assert!(said.contains("locks/tas:") && said.contains("approved 1"), "{said}");
    fs::write(&file, "{").unwrap();
    assert_eq!(count("--check").status.code(), Some(1));
}

#[test]
fn a_sweep_under_callgrind_writes_records_that_repeat_and_resumes() {
    if without_valgrind() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let sweep = |more: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_manycore"))
            .args(["sweep", "--engine", "callgrind", "--primitive", "counters"])
            .args(more)
            .current_dir(directory.path())
            .output()
            .unwrap()
    };
    let schema: Value =
        serde_json::from_str(include_str!("../../docs/records.schema.json")).unwrap();
    let schema = jsonschema::validator_for(&schema).unwrap();
    let points = |file: &str| -> Vec<Value> {
        fs::read_to_string(directory.path().join(file))
            .unwrap()
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap())
            .inspect(|record| assert!(schema.is_valid(record), "{record}"))
            .filter(|record| record["record"] == "point")
            .map(|mut point| {
                point["run"] = Value::Null;
                point
            })
            .collect()
    };
    assert!(sweep(&["--out", "a.jsonl"]).status.success());
    assert!(sweep(&["--out", "b.jsonl"]).status.success());
    assert_eq!(points("a.jsonl"), points("b.jsonl"));
    let counted = points("a.jsonl").len();
    assert!(counted >= 4);
    assert!(sweep(&["--out", "a.jsonl", "--resume"]).status.success());
    assert_eq!(points("a.jsonl").len(), counted, "nothing was missing");
    let dry = sweep(&["--dry-run"]);
    assert_eq!(text(&dry.stdout).lines().count(), counted);
    let contended = sweep(&["--threads", "2"]);
    assert_eq!(contended.status.code(), Some(2));
    assert!(text(&contended.stderr).contains("--threads 1"), "{}", text(&contended.stderr));
}
