//! The recipe for CI in docs/compare.md, step by step in a fresh clone.
//!
//! Building the program twice takes minutes: `cargo` is one that puts the program of this test where
//! the real one would, and the program counts one primitive instead of four. With
//! `MANYCORE_RECIPE_BUILDS` set everything is real.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap()
}

/// A step of the recipe that runs commands.
#[derive(Debug)]
struct Step {
    name: String,
    commands: String,
}

/// The steps in the first block of YAML on the page.
fn steps(page: &str) -> Vec<Step> {
    let block = page.split("```yaml\n").nth(1).expect("a recipe in YAML");
    let block = block.split("```").next().unwrap();
    let mut steps: Vec<Step> = Vec::new();
    let mut inside = None;
    let indent = |line: &str| line.len() - line.trim_start().len();
    for line in block.lines() {
        if let Some(of_run) = inside {
            if line.trim().is_empty() || indent(line) > of_run {
                let step = steps.last_mut().unwrap();
                step.commands.extend([line.trim_start(), "\n"]);
                continue;
            }
            inside = None;
        }
        if let Some((_, name)) = line.split_once("- name: ") {
            steps.push(Step { name: name.into(), commands: String::new() });
        } else if line.trim() == "run: |" {
            inside = Some(indent(line));
        }
    }
    steps
}

fn git(directory: &Path, arguments: &[&str]) -> String {
    let who = ["-c", "user.name=test", "-c", "user.email=test@localhost", "-c", "safe.directory=*"];
    let git = Command::new("git").current_dir(directory).args(who).args(arguments).output();
    let output = git.unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "git {arguments:?}: {error}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// What a runner of GitHub Actions would have.
struct Runner {
    directory: tempfile::TempDir,
    real: bool,
}

impl Runner {
    /// Clones the repository and puts a change on top.
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let at = directory.path().to_owned();
        let at = at.as_path();
        let head = git(&root(), &["rev-parse", "HEAD"]);
        git(at, &["clone", "--quiet", "--bare", root().to_str().unwrap(), "origin.git"]);
        git(&at.join("origin.git"), &["branch", "--force", "main", &head]);
        git(at, &["clone", "--quiet", "--branch", "main", "origin.git", "work"]);
        let work = at.join("work");
        git(&work, &["checkout", "--quiet", "-b", "change"]);
        git(&work, &["commit", "--quiet", "--allow-empty", "--message", "A change"]);
        let runner = Self { real: std::env::var_os("MANYCORE_RECIPE_BUILDS").is_some(), directory };
        runner.script(
            "bin/cargo",
            &format!(
                "#!/bin/sh\n[ \"$*\" = 'build --release --locked -p manycore' ] || exit 1\n\
             mkdir -p target/release && ln -sf {} target/release/manycore\n",
                at.join("few").display()
            ),
        );
        runner.script(
            "few",
            &format!(
                "#!/bin/sh\n[ \"$1\" = count ] && set -- \"$@\" --primitive counters\n\
             exec {} \"$@\"\n",
                env!("CARGO_BIN_EXE_manycore")
            ),
        );
        runner
    }

    fn script(&self, name: &str, text: &str) {
        let path = self.directory.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join("work").join(name)
    }

    /// Runs a step as GitHub does.
    fn run(&self, step: &Step) -> Output {
        let path = std::env::var("PATH").unwrap_or_default();
        let path = match self.real {
            true => path,
            false => format!("{}:{path}", self.directory.path().join("bin").display()),
        };
        Command::new("bash")
            .args(["-e", "-o", "pipefail", "-c", &step.commands])
            .current_dir(self.directory.path().join("work"))
            .env("PATH", path)
            .env("GITHUB_BASE_REF", "main")
            .env("GITHUB_STEP_SUMMARY", self.file("summary.md"))
            .env_remove("CARGO_TARGET_DIR")
            .output()
            .unwrap()
    }
}

#[test]
fn the_recipe_passes_what_did_not_change_and_stops_what_got_worse() {
    let page = fs::read_to_string(root().join("docs/compare.md")).unwrap();
    let steps = steps(&page);
    let names: Vec<&str> = steps.iter().map(|step| step.name.as_str()).collect();
    assert_eq!(names, ["Build the baseline and the change", "Count", "Gate"]);
    if !root().join(".git").exists() {
        println!(
            "SKIPPED: these sources are not in a git repository, so that nothing can be cloned"
        );
        return;
    }
    let runner = Runner::new();
    for step in &steps {
        let output = runner.run(step);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{}: {said}", step.name);
    }
    let read = |name: &str| fs::read_to_string(runner.file(name)).unwrap();
    assert!(read("compare.xml").contains("failures=\"0\""), "{}", read("compare.xml"));
    assert!(read("summary.md").contains("equal"), "{}", read("summary.md"));

    // A baseline that needed one instruction less.
    let less = |line: &str| {
        let mut record: Value = serde_json::from_str(line).unwrap();
        let value = &mut record["metrics"]["instructions_per_op"]["value"];
        if let Some(count) = value.as_f64() {
            *value = (count - 1.0).into();
        }
        record.to_string() + "\n"
    };
    let base: String = read("base.jsonl").lines().map(less).collect();
    fs::write(runner.file("base.jsonl"), base).unwrap();
    let gate = runner.run(&steps[2]);
    assert_eq!(gate.status.code(), Some(3), "{}", String::from_utf8_lossy(&gate.stderr));
    assert!(!read("compare.xml").contains("failures=\"0\""));
}
