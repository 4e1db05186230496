//! The benchmarks of `cargo bench -p counters`, as cargo runs them: the usual flags, and rows of every
//! part.
//!
//! Built in the profile of the tests and with the features of the workspace, so that what is already
//! built serves: figures of the wall clock are not looked at.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, OnceLock, PoisonError};

use serde_json::Value;

/// One benchmark at a time: they wait for each other's CPUs, and share their baselines.
static ALONE: Mutex<()> = Mutex::new(());

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Where this very test was built, so that nested builds share the folder.
fn target() -> PathBuf {
    Path::new(env!("CARGO_BIN_EXE_manycore")).ancestors().nth(2).unwrap().to_owned()
}

fn cargo(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO"));
    command
        .args(words)
        .current_dir(root())
        .env("CARGO_TARGET_DIR", target())
        .env_remove("RUSTC_BOOTSTRAP") // the test runner's; it would build everything anew
        .env_remove("MANYCORE_BENCH")
        .env_remove("CRITERION_HOME");
    command
}

/// The three benchmarks of the counters, in the order in which cargo runs them. The other packages
/// are named for their features: with them everything but the benchmarks is built already.
fn benches() -> &'static [PathBuf] {
    static BUILT: OnceLock<Vec<PathBuf>> = OnceLock::new();
    BUILT.get_or_init(|| {
        let names = ["counters", "iai", "simulated"];
        let mut words =
            vec!["bench", "--profile", "test", "--all-features", "--locked", "--no-run"];
        words.extend(["--message-format", "json-render-diagnostics"]);
        words.extend(names.iter().flat_map(|name| ["--bench", name]));
        let packages = ["counters", "queues", "manycore", "harness", "simulator", "topology"];
        words.extend(packages.iter().flat_map(|name| ["--package", name]));
        let Output { status, stdout, stderr } = cargo(&words).output().unwrap();
        assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
        let stdout = String::from_utf8_lossy(&stdout).into_owned();
        let built: Vec<Value> =
            stdout.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let find = |name: &&str| {
            let one = built.iter().find(|one| {
                let path = one["target"]["src_path"].as_str().unwrap_or_default();
                path.ends_with(&format!("counters/benches/{name}.rs"))
            });
            PathBuf::from(one.unwrap()["executable"].as_str().unwrap())
        };
        names.iter().map(find).collect()
    })
}

/// The benchmarks with these flags.
fn bench(flags: &[&str]) -> Vec<Command> {
    programs(&[flags, &["--bench"]].concat())
}

/// The benchmarks as `cargo test --benches` runs them: without its `--bench`.
fn programs(flags: &[&str]) -> Vec<Command> {
    let command = |program: &PathBuf| {
        let mut command = Command::new(program);
        command
            .args(flags)
            .current_dir(root().join("counters"))
            .env("CARGO", env!("CARGO"))
            .env("CARGO_TARGET_DIR", target())
            .env_remove("RUSTC_BOOTSTRAP")
            .env_remove("MANYCORE_BENCH")
            .env_remove("CRITERION_HOME");
        command
    };
    benches().iter().map(command).collect()
}

/// Sets a variable for each of them.
fn with_variable(
    mut commands: Vec<Command>,
    name: &str,
    value: impl AsRef<std::ffi::OsStr>,
) -> Vec<Command> {
    for command in &mut commands {
        command.env(name, value.as_ref());
    }
    commands
}

struct Said {
    code: Option<i32>,
    all: String,
}

/// Runs them in turn, to the first that fails.
fn run(commands: Vec<Command>) -> Said {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut said = Said { code: Some(0), all: String::new() };
    for mut command in commands {
        let Output { status, stdout, stderr } = command.output().unwrap();
        let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
        println!("{command:?}\n{stdout}\n{stderr}");
        said.all.push_str(&format!("{stdout}\n{stderr}\n"));
        said.code = status.code();
        if !status.success() {
            break;
        }
    }
    said
}

impl Said {
    #[track_caller]
    fn holds(&self, words: &[&str]) -> &Self {
        for word in words {
            assert!(self.all.contains(word), "`{word}` is not in:\n{}", self.all);
        }
        self
    }

    #[track_caller]
    fn lacks(&self, words: &[&str]) -> &Self {
        for word in words {
            assert!(!self.all.contains(word), "`{word}` is in:\n{}", self.all);
        }
        self
    }

    #[track_caller]
    fn ends_with(&self, code: i32) -> &Self {
        assert_eq!(self.code, Some(code), "{}", self.all);
        self
    }

    /// Asserts that the row was simulated on so many cores.
    #[track_caller]
    fn simulates(&self, row: &str, cores: &[usize]) -> &Self {
        let name = format!("counters/{row}/simulated");
        let lines = self.all.lines().filter_map(|line| line.strip_prefix(&name));
        let lines = lines.filter_map(|line| line.split_whitespace().next()?.parse().ok());
        assert_eq!(lines.collect::<Vec<usize>>(), cores, "{}", self.all);
        self
    }

    /// Asserts that the counts were made, or that it was said why not.
    #[track_caller]
    fn counts(&self, words: &[&str]) -> &Self {
        if self.all.contains("SKIPPED exact counts: no_valgrind") {
            return self.holds(&["apt-get install valgrind"]);
        }
        self.holds(words)
    }
}

#[test]
fn list_names_every_part_and_runs_nothing() {
    let said = run(bench(&["--list"]));
    said.ends_with(0).lacks(&["time:", "instr/op", "SKIPPED"]);
    for row in ["null", "atomic", "sharded", "packed"] {
        for part in ["threads=1", "instructions", "rmw", "iai", "simulated"] {
            said.holds(&[&format!("counters/{row}/{part}: benchmark")]);
        }
    }
    let said = run(bench(&["--list", "atomic/i"]));
    said.ends_with(0).holds(&["counters/atomic/instructions: benchmark", "counters/atomic/iai:"]);
    said.lacks(&["threads=1: benchmark", "counters/null"]);
}

#[test]
fn a_filter_holds_in_every_part() {
    let said = run(bench(&["atomic", "--quick", "--noplot"]));
    said.ends_with(0).holds(&["counters/atomic/threads=1"]).lacks(&["counters/packed"]);
    said.counts(&["counters/atomic/instructions", "counters/atomic/rmw", "1 rmw/op"]);
    said.lacks(&["  NO\n"]).simulates("atomic", &[1, 2, 8, 32, 64, 128]);
    let said = run(bench(&["--exact", "counters/atomic/threads=1", "--quick"]));
    said.ends_with(0).holds(&["the filter leaves no row of this part"]).lacks(&["instr/op "]);
}

#[test]
fn a_part_can_be_asked_for_alone() {
    let said = run(bench(&["packed/simulated"]));
    said.ends_with(0).simulates("packed", &[1, 2, 8, 32, 64, 128]).lacks(&["time:", "rmw/op"]);
    said.holds(&["wall clock: the filter leaves no", "exact counts: the filter leaves no"]);
}

#[test]
fn a_filter_that_matches_nothing_is_an_error() {
    let said = run(bench(&["no-such-row"]));
    said.ends_with(2).holds(&["no benchmark of counters matches `no-such-row`", "sharded"]);
}

#[test]
fn baselines_serve_every_part() {
    let short =
        ["atomic/", "--sample-size", "10", "--measurement-time", "0.05", "--warm-up-time", "0.02"];
    let with = |more: &[&str]| run(bench(&[&short[..], more].concat()));
    let said = with(&["--save-baseline", "front-door"]);
    said.ends_with(0).holds(&["time:", "counters/atomic/simulated"]);
    let said = with(&["--baseline", "front-door"]);
    said.ends_with(0).holds(&["change:"]).counts(&["unchanged"]);
    let said = with(&["--baseline", "never-saved"]);
    said.ends_with(0).holds(&["time:"]).counts(&["no baseline `never-saved`", "new"]);
    let loaded = ["atomic/", "--load-baseline", "front-door", "--baseline", "front-door"];
    let said = run(bench(&loaded));
    said.ends_with(0).holds(&["time:", "SKIPPED cross-check", "SKIPPED simulated"]);
}

#[test]
fn a_profile_is_of_the_wall_clock_alone() {
    let said = run(bench(&["counters/atomic/", "--profile-time", "1"]));
    said.ends_with(0).lacks(&["instr/op "]);
    said.holds(&["SKIPPED exact counts: --profile-time", "SKIPPED cross-check"]);
    said.holds(&["SKIPPED simulated: --profile-time"]);
}

#[test]
fn bencher_lines_have_one_form() {
    let said = run(bench(&["atomic", "--quick", "--output-format", "bencher"]));
    said.ends_with(0).holds(&["test counters/atomic/threads=1 ... bench:", "ns/iter (+/-"]);
    said.counts(&["test counters/atomic/instructions ... bench:", "instr/op (+/- 0)"]);
    said.holds(&["test counters/atomic/simulated/cores=128 ... bench:"]);
}

#[test]
fn more_and_less_is_said() {
    let said = run(bench(&["atomic", "--quick", "--verbose"]));
    said.ends_with(0).holds(&["mean", "6 of 6 points ran"]).counts(&["% "]);
    let said = run(bench(&["atomic", "--quick", "--quiet"]));
    said.ends_with(0).holds(&["counters/atomic/threads=1"]).lacks(&["commit", "benchmarks ran"]);
    said.simulates("atomic", &[1, 2, 8, 32, 64, 128]).lacks(&["points ran"]);
}

#[test]
fn what_cannot_be_is_refused() {
    for (flags, word) in [
        (&["--sample-size", "5"][..], "10"),
        (&["("], "FILTER"),
        (&["--measurement-time", "0"], "above 0"),
        (&["--no-such-flag"], "--no-such-flag"),
    ] {
        run(bench(flags)).ends_with(2).holds(&[word]).lacks(&["panicked"]);
    }
    run(with_variable(bench(&["--quick", "atomic"]), "MANYCORE_BENCH", "fool"))
        .holds(&["short or full"]);
    let said = run(with_variable(bench(&["--list"]), "MANYCORE_BENCH", "full"));
    said.ends_with(0).holds(&["counters/atomic/read_percent=10,threads=1: benchmark"]);
}

#[test]
fn without_valgrind_the_counts_are_skipped_with_the_remedy() {
    let tools = Path::new(env!("CARGO")).parent().unwrap();
    let said = run(with_variable(bench(&["atomic", "--quick"]), "PATH", tools));
    said.ends_with(0).holds(&["counters/atomic/threads=1"]).lacks(&["instr/op "]);
    said.holds(&["SKIPPED exact counts: no_valgrind", "apt-get install valgrind"]);
    said.holds(&["SKIPPED cross-check by iai-callgrind: no_valgrind"]);
    said.simulates("atomic", &[1, 2, 8, 32, 64, 128]);
}

#[test]
fn as_tests_each_row_runs_once() {
    let said = run(programs(&[]));
    said.ends_with(0).holds(&["Testing counters/sharded/threads=1"]).lacks(&["time:"]);
    said.holds(&["Testing counters/packed/instructions", "SKIPPED cross-check"]);
    said.holds(&["Testing counters/packed/simulated"]);
}

/// What a user types, without and with the features that rows need.
#[test]
#[ignore = "builds the harness with the features of the counters alone"]
fn cargo_itself_runs_every_part() {
    let words =
        ["bench", "-p", "counters", "--profile", "test", "--features", "std", "--", "--list"];
    run(vec![cargo(&words)]).ends_with(0).holds(&["counters/packed/simulated: benchmark"]);
    let words = ["test", "-p", "counters", "--benches"];
    let said = run(vec![cargo(&words)]);
    said.ends_with(0).holds(&["SKIPPED rows that need the features std", "--features std"]);
}
