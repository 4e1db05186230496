//! `manycore doctor` as a user runs it: verdicts, exit codes, settings that are put back whatever
//! ends it. Nothing is ever set on this host: all settings are made in trees of the tests.

#[path = "../../harness/tests/doctor/healthy.rs"]
mod healthy;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use healthy::Tree;
use serde_json::Value;

const GOVERNOR: &str = "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor";
const STATE: &str = "run/manycore-doctor.json";

fn doctor(root: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_manycore"));
    command.args(["doctor", "--root"]).arg(root).args(words);
    command
}

fn run(root: &Path, words: &[&str]) -> Output {
    doctor(root, words).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A healthy host but for one governor, and a place for the state file.
fn spoilt() -> Tree {
    let tree = Tree::healthy();
    tree.file(GOVERNOR, "powersave\n");
    tree
}

fn governor(tree: &Tree) -> String {
    fs::read_to_string(tree.at(GOVERNOR)).unwrap().trim().to_owned()
}

/// Waits until `done`, for a minute at most.
fn until(what: &str, mut done: impl FnMut() -> bool) {
    let began = Instant::now();
    while !done() {
        assert!(began.elapsed() < Duration::from_secs(60), "{what} did not come about");
        sleep(Duration::from_millis(5));
    }
}

fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args(["-s", name, &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

#[test]
fn exit_codes_follow_the_verdicts() {
    let tree = Tree::healthy();
    let fit = run(tree.root(), &[]);
    assert_eq!(fit.status.code(), Some(0), "{}", text(&fit.stderr));
    assert!(
        text(&fit.stdout).contains("→ fit as far as is known (24 ok, 0 warn, 0 unfit, 2 unknown)")
    );

    tree.file(GOVERNOR, "powersave\n");
    let warned = run(tree.root(), &[]);
    assert_eq!(warned.status.code(), Some(0));
    let said = text(&warned.stdout);
    for word in ["warn", "governor", "powersave on CPUs 1", "so: the clock rate", "do: echo"] {
        assert!(said.contains(word), "{word} in {said}");
    }

    // A container's quota into which threads fit is no reason to give up.
    tree.file("sys/fs/cgroup/job/cpu.max", "150000 100000\n");
    let contained = run(tree.root(), &[]);
    assert_eq!(contained.status.code(), Some(0));
    let said = text(&contained.stdout);
    for word in ["a quota of 1.5 CPUs", "for 4 in use", "--threads up to 1 (as `auto` does), or"] {
        assert!(said.contains(word), "{word} in {said}");
    }
    assert!(said.contains("(22 ok, 2 warn, 0 unfit, 2 unknown)"), "{said}");

    tree.file("sys/fs/cgroup/job/cpu.max", "50000 100000\n");
    let unfit = run(tree.root(), &[]);
    assert_eq!(unfit.status.code(), Some(5));
    assert!(text(&unfit.stdout).contains("→ unfit: quota (22 ok, 1 warn, 1 unfit, 2 unknown)"));
    assert!(text(&unfit.stderr).contains("unfit for measurements: quota"));
}

#[test]
fn json_has_one_finding_a_line() {
    let tree = spoilt();
    let output = run(tree.root(), &["--json"]);
    let findings: Vec<Value> =
        text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(findings.len(), 26);
    for finding in &findings {
        for key in ["check", "message", "effect", "verdict"] {
            assert!(
                finding[key].as_str().is_some_and(|text| !text.is_empty()),
                "{key} in {finding}"
            );
        }
        match finding["verdict"].as_str().unwrap() {
            "ok" => {}
            "warn" | "unfit" => assert!(finding["remedy"].is_string(), "{finding}"),
            "unknown" => assert_eq!(finding["reason"]["unavailable"], "not_this_host"),
            other => panic!("{other}"),
        }
    }
}

#[test]
fn this_host_is_examined_and_measured() {
    let output =
        Command::new(env!("CARGO_BIN_EXE_manycore")).args(["doctor", "--json"]).output().unwrap();
    let lines = text(&output.stdout);
    let verdict = |finding: &Value| finding["verdict"].as_str().unwrap_or_default().to_owned();
    let findings: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let is_unfit = findings.iter().any(|finding| verdict(finding) == "unfit");
    assert_eq!(output.status.code(), Some(if is_unfit { 5 } else { 0 }), "{lines}");
    let hiccups = findings.iter().find(|finding| finding["check"] == "hiccups").unwrap();
    let watched = hiccups["details"].as_array().map(Vec::len);
    assert!(watched.is_some_and(|cpus| cpus >= 1), "{hiccups}");
}

#[test]
fn bad_input_is_refused_with_a_remedy() {
    let tree = spoilt();
    let empty = tempfile::tempdir().unwrap();
    let cases: [(&Path, &[&str], i32, &str); 9] = [
        (empty.path(), &[], 1, "proc"),
        (Path::new("/no/such/place"), &[], 1, "/no/such/place"),
        (Path::new("/etc/hostname"), &[], 1, "/etc/hostname"),
        (tree.root(), &["--apply", "--restore"], 2, "--restore"),
        (tree.root(), &["--restore", "--json"], 2, "--json"),
        (tree.root(), &["--", "true"], 2, "--apply"),
        (tree.root(), &["true"], 2, "--help"),
        (tree.root(), &["--apply", "--state", "/no/such/place/state"], 1, "--state"),
        (tree.root(), &["--apply", "--", "/no/such/program"], 1, "/no/such/program"),
    ];
    for (root, words, code, said) in cases {
        let output = run(root, words);
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{words:?}: {error}");
        assert!(error.contains(said), "{words:?}: {said} in {error}");
        assert_eq!(governor(&tree), "powersave", "{words:?}");
    }
}

#[test]
fn a_command_runs_under_the_settings_and_its_exit_code_is_ours() {
    let tree = spoilt();
    let look = format!(
        "cat {}; test -e {} && exit 7",
        tree.at(GOVERNOR).display(),
        tree.at(STATE).display()
    );
    let output = run(tree.root(), &["--apply", "--", "sh", "-c", &look]);
    let (said, error) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(7), "{error}");
    assert!(said.trim_end().ends_with("performance"), "{said}");
    assert!(error.contains(&format!("set /{GOVERNOR} to performance, it was powersave")));
    assert!(error.contains(&format!("put back /{GOVERNOR} to powersave")), "{error}");
    assert_eq!(fs::read_to_string(tree.at(GOVERNOR)).unwrap(), "powersave\n");
    assert!(!tree.at(STATE).exists());
    let killed = run(tree.root(), &["--apply", "--", "sh", "-c", "kill -9 $$"]);
    assert_eq!(killed.status.code(), Some(137));
    let fine = run(tree.root(), &["--apply", "--", "true"]);
    assert_eq!(fine.status.code(), Some(0));
}

/// Starts a doctor that holds the settings until it is ended.
fn holding(tree: &Tree) -> Child {
    let child = doctor(tree.root(), &["--apply"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    until("the setting", || governor(tree) == "performance");
    child
}

#[test]
fn signals_put_everything_back() {
    for name in ["INT", "TERM", "HUP"] {
        let tree = spoilt();
        let mut child = holding(&tree);
        signal(&child, name);
        let status = child.wait().unwrap();
        assert_eq!(status.code(), Some(0), "SIG{name}");
        assert_eq!(fs::read_to_string(tree.at(GOVERNOR)).unwrap(), "powersave\n", "SIG{name}");
        assert!(!tree.at(STATE).exists(), "SIG{name}");
    }
}

#[test]
fn a_signal_is_handed_on_to_the_command() {
    let tree = spoilt();
    let mut child = doctor(tree.root(), &["--apply", "--", "sleep", "600"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    until("the setting", || governor(&tree) == "performance");
    // The command begins after the findings are shown; a signal before that is kept for it.
    signal(&child, "TERM");
    assert_eq!(child.wait().unwrap().code(), Some(128 + 15));
    assert_eq!(governor(&tree), "powersave");
}

#[test]
fn after_a_kill_restore_puts_everything_back() {
    let tree = spoilt();
    let mut child = holding(&tree);
    let second = run(tree.root(), &["--apply", "--", "true"]);
    assert_eq!(second.status.code(), Some(1));
    let holds = format!("process {} holds", child.id());
    assert!(text(&second.stderr).contains(&holds), "{}", text(&second.stderr));
    signal(&child, "KILL");
    child.wait().unwrap();
    assert_eq!(governor(&tree), "performance", "nobody was there to put it back");
    let refused = run(tree.root(), &["--apply", "--", "true"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stderr).contains("doctor --restore"), "{}", text(&refused.stderr));
    let restored = run(tree.root(), &["--restore"]);
    assert_eq!(restored.status.code(), Some(0), "{}", text(&restored.stderr));
    assert!(text(&restored.stderr).contains("put back"));
    assert_eq!(fs::read_to_string(tree.at(GOVERNOR)).unwrap(), "powersave\n");
    let again = run(tree.root(), &["--restore"]);
    assert_eq!(again.status.code(), Some(0));
    assert!(text(&again.stderr).contains("nothing to put back"));
}

#[test]
fn without_permission_it_names_what_it_could_not_read() {
    const NOBODY: u32 = 65_534;
    let tree = spoilt();
    for path in [GOVERNOR, "proc/loadavg"] {
        fs::set_permissions(tree.at(path), fs::Permissions::from_mode(0o000)).unwrap();
    }
    fs::set_permissions(tree.root(), fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = doctor(tree.root(), &["--json"]);
    if fs::read(tree.at(GOVERNOR)).is_ok() {
        command.uid(NOBODY); // root may read everything
    }
    let output = match command.output() {
        Ok(output) => output,
        Err(error) => {
            println!("SKIPPED: the program cannot be run as another user: {error}");
            return;
        }
    };
    for (check, path) in [("governor", GOVERNOR), ("load", "proc/loadavg")] {
        let line = text(&output.stdout);
        let line = line.lines().find(|line| line.contains(&format!("\"check\":\"{check}\"")));
        let finding: Value = serde_json::from_str(line.unwrap()).unwrap();
        assert_eq!(finding["verdict"], "unknown");
        assert_eq!(finding["reason"]["unavailable"], "not_permitted");
        assert!(finding["reason"]["detail"].as_str().unwrap().contains(path), "{finding}");
        assert!(finding["remedy"].as_str().unwrap().contains("as root"), "{finding}");
    }
}

#[test]
fn settings_that_nobody_may_make_are_an_error() {
    const NOBODY: u32 = 65_534;
    let tree = spoilt();
    fs::set_permissions(tree.root(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::create_dir(tree.at("run")).unwrap();
    fs::set_permissions(tree.at("run"), fs::Permissions::from_mode(0o777)).unwrap();
    fs::set_permissions(tree.at(GOVERNOR), fs::Permissions::from_mode(0o444)).unwrap();
    let mut command = doctor(tree.root(), &["--apply", "--", "echo", "ran"]);
    if fs::OpenOptions::new().write(true).open(tree.at(GOVERNOR)).is_ok() {
        command.uid(NOBODY); // root may write everything
    }
    match command.output() {
        Err(error) => println!("SKIPPED: the program cannot be run as another user: {error}"),
        Ok(output) => {
            let error = text(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{error}");
            assert!(error.contains("not set: not_permitted") && error.contains("run as root"));
            assert!(!text(&output.stdout).contains("ran"));
            assert!(!tree.at(STATE).exists());
        }
    }
}

#[test]
fn a_sweep_keeps_the_findings_with_its_run() {
    let blink = ["sweep", "--primitive", "counters", "--variant", "null", "--threads", "1"];
    let output = Command::new(env!("CARGO_BIN_EXE_manycore"))
        .args(blink)
        .args(["--seconds", "0.004", "--repeat", "2", "--json"])
        .output()
        .unwrap();
    let lines = text(&output.stdout);
    let run: Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
    let findings = run["doctor"].as_array().unwrap();
    assert_eq!(findings.len(), 26);
    let load = findings.iter().find(|finding| finding["check"] == "load").unwrap();
    assert!(load["message"].as_str().unwrap().contains("CPUs were busy"), "{load}");
}

#[test]
fn every_check_is_documented() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/doctor.md");
    let page = fs::read_to_string(page).unwrap();
    for check in harness::doctor::CHECKS {
        let row = format!("| `{}` |", check.name);
        assert!(page.contains(&row), "docs/doctor.md has no row {row}");
    }
}
