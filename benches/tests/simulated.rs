//! `manycore sweep --engine simulated` as a user runs it.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_manycore"))
}

fn sweep_by(program: &Path, directory: &Path, more: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(["sweep", "--engine", "simulated", "--ops", "64"]).args(more);
    command.current_dir(directory);
    command
}

fn sweep(directory: &Path, more: &[&str]) -> Output {
    sweep_by(program(), directory, more).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The points of a file, without the name of their run.
fn points(file: &Path) -> Vec<Value> {
    let records = fs::read_to_string(file).unwrap();
    records
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|record| record["record"] == "point")
        .map(|mut point| {
            point["run"] = Value::Null;
            point
        })
        .collect()
}

#[test]
fn every_row_is_simulated_by_the_schema_and_says_so() {
    let schema: Value =
        serde_json::from_str(include_str!("../../docs/records.schema.json")).unwrap();
    let schema = jsonschema::validator_for(&schema).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let output = sweep(directory.path(), &["--threads", "1,2,9", "--out", "r.jsonl"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let file = directory.path().join("r.jsonl");
    for line in fs::read_to_string(&file).unwrap().lines() {
        let record: Value = serde_json::from_str(line).unwrap();
        let errors: Vec<String> =
            schema.iter_errors(&record).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{errors:?}\n{record}");
    }
    let listed = Command::new(program()).args(["list", "--json"]).output().unwrap();
    let rows = text(&listed.stdout).lines().count();
    let points = points(&file);
    assert_eq!(points.len(), 3 * rows);
    for point in points {
        let (status, threads) = (point["status"].as_str().unwrap(), &point["threads"]);
        assert_eq!(
            (&point["engine"], &point["machine"]),
            (&"simulated".into(), &"epyc-7742-2s".into())
        );
        if status != "ok" {
            assert_eq!((status, threads), ("unavailable", &9.into()), "{point}");
            continue;
        }
        assert!(point["metrics"]["ns_per_op"]["value"].as_f64().unwrap() > 0.0, "{point}");
        if *threads == 1 {
            assert_eq!(point["per_thread"]["ops"], serde_json::json!([64]), "{point}");
        }
    }
    let printed = text(&output.stdout);
    assert!(printed.contains("locks (simulated epyc-7742-2s"), "{printed}");
    assert!(printed.contains("transfers/op"), "{printed}");
}

/// What the figures depend on is the program, the machine and the request.
#[test]
fn records_do_not_depend_on_the_environment_the_directory_the_path_or_load() {
    let directory = tempfile::tempdir().unwrap();
    let elsewhere = directory.path().join("a/directory/with-a-longer-name");
    fs::create_dir_all(&elsewhere).unwrap();
    let copy = elsewhere.join("another-name");
    fs::copy(program(), &copy).unwrap();
    let words =
        ["--primitive", "locks,queues", "--threads", "1,2,8", "--seed", "5", "--out", "r.jsonl"];
    let first = sweep_by(program(), directory.path(), &words).output().unwrap();
    // Two at once, with much in the environment.
    let mut beside = sweep_by(&copy, &elsewhere, &["--threads", "16", "--json"]);
    let mut beside = beside.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let mut second = sweep_by(&copy, &elsewhere, &words);
    second.env_clear().env("LANG", "de_DE.UTF-8").env("FILLER", "x".repeat(5000));
    let second = second.output().unwrap();
    beside.wait().unwrap();
    assert!(first.status.success() && second.status.success(), "{}", text(&second.stderr));
    let (first, second) =
        (points(&directory.path().join("r.jsonl")), points(&elsewhere.join("r.jsonl")));
    if first.iter().any(|point| point["status"] == "noisy") {
        println!("SKIPPED: {}", first[0]["reasons"]);
        return;
    }
    assert_eq!(first, second);
}

#[test]
fn a_machine_file_serves_from_anywhere_and_a_cut_machine_has_its_own_name() {
    let directory = tempfile::tempdir().unwrap();
    let known =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../harness/simulator/machines/epyc-7742-2s.toml");
    let file = fs::read_to_string(known).unwrap();
    let mine = file.replace("name = \"epyc-7742-2s\"", "name = \"mine\"");
    let slow = mine.replace("same_l3_ns = { value = 25.3", "same_l3_ns = { value = 60.5");
    assert_ne!(slow, mine);
    fs::write(directory.path().join("mine.toml"), &mine).unwrap();
    fs::write(directory.path().join("slow.toml"), &slow).unwrap();
    let run = |machine: &str, out: &str| {
        let words = ["--variant", "atomic", "--threads", "2", "--out", out, "--machine", machine];
        let output = sweep(directory.path(), &words);
        assert!(output.status.success(), "{}", text(&output.stderr));
        points(&directory.path().join(out)).remove(0)
    };
    let (named, mine, slow) =
        (run("epyc-7742-2s", "a"), run("./mine.toml", "b"), run("slow.toml", "c"));
    assert_eq!(mine["machine"], "mine");
    assert_eq!(mine["metrics"], named["metrics"]);
    let ns = |point: &Value| point["metrics"]["ns_per_op"]["value"].as_f64().unwrap();
    assert!(ns(&slow) > ns(&mine) * 1.5, "{slow}");
    let words = ["--variant", "atomic", "--cores", "3", "--threads", "3", "--out", "d"];
    assert!(sweep(directory.path(), &words).status.success());
    assert_eq!(points(&directory.path().join("d"))[0]["machine"], "epyc-7742-2s/3");
}

#[test]
fn placements_memories_and_sharing_are_figures_or_reasons() {
    let directory = tempfile::tempdir().unwrap();
    let run = |more: &[&str]| {
        let words = ["--variant", "ticket,futex", "--out", "r.jsonl", "--resume"];
        let output = sweep(directory.path(), &[&words[..], more].concat());
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        points(&directory.path().join("r.jsonl"))
    };
    let near_and_far = run(&["--threads", "2", "--placement", "same-l3+scatter+cpus=7,200"]);
    let figure = |at: usize, name: &str| near_and_far[at]["metrics"][name]["value"].as_f64();
    assert_eq!(near_and_far[2]["cpus"], serde_json::json!([0, 64]));
    assert_eq!(near_and_far[4]["cpus"], serde_json::json!([7, 200]));
    assert!(figure(0, "transfers_per_op.same_l3").unwrap() > 1.0);
    assert_eq!(figure(0, "transfers_per_op.cross_socket"), Some(0.0));
    assert!(figure(2, "transfers_per_op.cross_socket").unwrap() > 1.0);
    let remote = run(&["--threads", "2", "--memory", "remote"]);
    assert_eq!(remote.len(), 8);
    for point in &remote[6..] {
        assert_eq!(
            (&point["status"], &point["workload"]["memory"]),
            (&"ok".into(), &"remote".into())
        );
    }
    let shared = run(&["--threads", "4", "--cores", "2", "--oversubscribe", "--variant", "futex"]);
    let last = shared.last().unwrap();
    assert_eq!((&last["status"], &last["cpus"]), (&"ok".into(), &serde_json::json!([0, 1, 0, 1])));
}

/// An arena that no cache holds: lines come from the node that its pages were asked to lie on.
#[test]
fn memory_lies_where_the_sweep_wants_it() {
    let directory = tempfile::tempdir().unwrap();
    let run = |machine: &str, more: &[&str]| {
        let words = ["--machine", machine, "--primitive", "alloc-arena"];
        let arena = ["--arena-bytes", "8388608", "--threads", "2", "--json"];
        let output = sweep(directory.path(), &[&words[..], &arena, more].concat());
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let lines = text(&output.stdout);
        let records = lines.lines().map(|line| serde_json::from_str(line).unwrap());
        records.filter(|record: &Value| record["record"] == "point").collect::<Vec<_>>()
    };
    for machine in ["epyc-7742-2s", "xeon-8176-8s"] {
        let memory = ["--memory", "local,remote,interleave,node=1", "--variant", "bump_numa"];
        let points = run(machine, &memory);
        let figure = |at: usize, name: &str| {
            let metric = &points[at]["metrics"][name]["value"];
            metric.as_f64().unwrap_or_else(|| panic!("{name}: {}", points[at]))
        };
        let (local, remote, interleaved) = (0, 1, 2);
        assert_eq!(points[remote]["workload"]["memory"], "remote");
        assert_eq!(figure(local, "memory_reads_per_op.remote"), 0.0, "{machine}");
        assert!((0.99..1.05).contains(&figure(local, "memory_reads_per_op.local")), "{machine}");
        for far in [remote, 3] {
            assert!(figure(far, "memory_reads_per_op.local") < 0.05, "{machine}");
            let reads = figure(far, "memory_reads_per_op.remote");
            assert!((0.99..1.05).contains(&reads), "{machine}: {reads}");
            // Two arenas of 2048 pages.
            assert_eq!(figure(far, "pages_on_node"), 4096.0);
            assert_eq!(figure(far, "arenas_verified"), 2.0);
        }
        assert_eq!(figure(interleaved, "arenas_verified"), 2.0);
    }
    // Shares of nodes need many pages.
    for (machine, nodes) in [("epyc-7742-2s", 2.0), ("xeon-8176-8s", 8.0)] {
        let words =
            ["sweep", "--engine", "simulated", "--ops", "16384", "--threads", "2", "--json"];
        let arenas = ["--primitive", "alloc-arena", "--variant", "bump_numa"];
        let memory = ["--memory", "interleave", "--arena-bytes", "8388608", "--machine", machine];
        let words = [&words[..], &arenas, &memory].concat();
        let output = Command::new(program()).args(words).current_dir(directory.path()).output();
        let lines = text(&output.unwrap().stdout);
        let records = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let mut points = records.filter(|record| record["record"] == "point");
        let metrics = &points.next().unwrap()["metrics"];
        let share = metrics["memory_reads_per_op.local"]["value"].as_f64().unwrap();
        assert!((0.75..1.25).contains(&(share * nodes)), "{machine}: {share} of {nodes} nodes");
    }
    let control = run("epyc-7742-2s", &["--memory", "remote", "--variant", "bump_first_touch"]);
    assert!(control[0]["reasons"][0].as_str().unwrap().starts_with("not_numa_bound"));
    let one = run("graviton2", &["--memory", "remote,node=1", "--variant", "bump_numa"]);
    for (point, code) in one.iter().zip(["one_node", "node_absent"]) {
        assert_eq!(point["status"], "unavailable");
        assert!(point["reasons"][0].as_str().unwrap().starts_with(code), "{point}");
    }
    // Lines of other L3 groups pass through their home, which is far now.
    let words = ["--machine", "epyc-7742-2s", "--threads", "4", "--placement", "cross-l3"];
    let memory = ["--variant", "ticket", "--memory", "local,node=0,remote,interleave,node=9"];
    let out = ["--out", "shared.jsonl"];
    let output = sweep(directory.path(), &[&words[..], &memory, &out].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let shared = points(&directory.path().join("shared.jsonl"));
    let ns = |at: usize| shared[at]["metrics"]["ns_per_op"]["value"].as_f64().unwrap();
    assert_eq!(ns(0), ns(1), "the first thread's node");
    assert!(ns(2) > 1.5 * ns(0), "{} {}", ns(2), ns(0));
    assert!(ns(3) > 0.0);
    assert_eq!(shared[4]["status"], "unavailable");
}

#[test]
fn resume_simulates_only_what_is_missing() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("r.jsonl");
    let words = ["--primitive", "counters", "--threads", "1,2", "--out", "r.jsonl"];
    assert!(sweep(directory.path(), &words).status.success());
    let all = points(&file);
    let lines = fs::read_to_string(&file).unwrap();
    let kept: Vec<&str> = lines.lines().take(all.len() - 1).collect();
    fs::write(&file, kept.join("\n") + "\n").unwrap();
    let resumed = sweep(directory.path(), &[&words[..], &["--resume"]].concat());
    let said = text(&resumed.stderr);
    assert!(said.contains(&format!("{} points in the file already", all.len() - 2)), "{said}");
    assert_eq!(points(&file), all);
    // Another number of operations is another point.
    let other = sweep(directory.path(), &[&words[..], &["--resume", "--ops", "32"]].concat());
    assert!(text(&other.stderr).contains(&format!("{} points in", all.len())));
    assert_eq!(points(&file).len(), 2 * all.len());
    let dry =
        sweep(directory.path(), &["--primitive", "counters", "--threads", "1,2", "--dry-run"]);
    assert_eq!(text(&dry.stdout).lines().count(), all.len());
    assert!(text(&dry.stderr).contains("64 operations of each thread"));
}

/// The child processes of a process.
fn children(of: u32) -> Vec<String> {
    let listed = fs::read_to_string(format!("/proc/{of}/task/{of}/children")).unwrap_or_default();
    let of_threads = fs::read_dir(format!("/proc/{of}/task")).into_iter().flatten();
    let of_threads =
        of_threads.filter_map(|task| fs::read_to_string(task.ok()?.path().join("children")).ok());
    let all = of_threads.collect::<Vec<_>>().join(" ") + " " + &listed;
    let mut all: Vec<String> = all.split_whitespace().map(str::to_owned).collect();
    all.dedup();
    all
}

/// Waits until a process simulates.
fn child_of(running: &Child) -> String {
    let began = Instant::now();
    loop {
        if let Some(child) = children(running.id()).into_iter().next() {
            return child;
        }
        assert!(began.elapsed() < Duration::from_secs(20), "no process was begun");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A sweep whose one point would take minutes.
fn long(directory: &Path, more: &[&str]) -> Child {
    let words = ["--variant", "ticket", "--threads", "128", "--out", "r.jsonl", "--ops", "100000"];
    let mut command = sweep_by(program(), directory, &[&words[..], more].concat());
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn send(signal: i32, process: u32) {
    // SAFETY: sends a signal to a process that was made here and has not been waited for.
    unsafe { libc::kill(i32::try_from(process).unwrap(), signal) };
}

#[test]
fn a_point_that_crashes_or_hangs_is_broken_and_the_sweep_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let running = long(directory.path(), &["--timeout", "1s"]);
    let output = running.wait_with_output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("broken points: ticket at 128 threads"), "{said}");
    let point = points(&directory.path().join("r.jsonl")).remove(0);
    let reason = point["reasons"][0].as_str().unwrap();
    assert!(reason.contains("1 s of real time") && reason.contains("--timeout"), "{reason}");
    assert_eq!(point["metrics"], serde_json::json!({}));

    // Whatever simulates is shot.
    let mut running = long(directory.path(), &["--variant", "ticket,mcs"]);
    while running.try_wait().unwrap().is_none() {
        children(running.id()).iter().for_each(|child| send(libc::SIGSEGV, child.parse().unwrap()));
        std::thread::sleep(Duration::from_millis(10));
    }
    let output = running.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let all = points(&directory.path().join("r.jsonl"));
    assert_eq!(all.len(), 1 + 2);
    for point in &all[1..] {
        assert!(point["reasons"][0].as_str().unwrap().contains("killed by signal 11"), "{point}");
    }
}

#[test]
fn an_interrupt_kills_what_runs_and_keeps_what_was_recorded() {
    let directory = tempfile::tempdir().unwrap();
    let words = ["--variant", "null,ticket", "--primitive", "locks", "--threads", "1,2,128"];
    let running = long(directory.path(), &words);
    let file = directory.path().join("r.jsonl");
    let began = Instant::now();
    while fs::read_to_string(&file).unwrap_or_default().lines().count() < 3 {
        assert!(began.elapsed() < Duration::from_secs(20), "nothing was recorded");
        std::thread::sleep(Duration::from_millis(10));
    }
    let child = child_of(&running);
    send(libc::SIGINT, running.id());
    let output = running.wait_with_output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(said.contains("interrupted; kept"), "{said}");
    assert!(!Path::new("/proc").join(child).exists(), "a process was left behind");
    assert!(points(&file).iter().all(|point| point["status"] == "ok"));
    assert!(points(&file).len() >= 2);
}
