//! The rules of the house: who may depend on whom, what is identical, what links without std.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

const PRIMITIVES: [&str; 4] = ["counters", "locks", "queues", "alloc-arena"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Where this very test was built, so that nested builds share the folder.
fn target() -> PathBuf {
    let program = Path::new(env!("CARGO_BIN_EXE_manycore"));
    program.ancestors().nth(2).unwrap().to_owned()
}

fn cargo(directory: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO"))
        .args(arguments)
        .current_dir(directory)
        .env("CARGO_TARGET_DIR", target())
        .env_remove("RUSTC_BOOTSTRAP") // the test runner's; it would build everything anew
        .output()
        .unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// What a package names in its manifest.
#[derive(Debug, PartialEq)]
struct Dependency {
    name: String,
    kind: String,
    optional: bool,
    requirement: String,
}

fn packages() -> BTreeMap<String, (Vec<Dependency>, Vec<String>)> {
    let output = cargo(&root(), &["metadata", "--format-version", "1", "--no-deps"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    metadata["packages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|package| {
            let dependencies = package["dependencies"].as_array().unwrap().iter();
            let dependencies = dependencies
                .map(|dependency| Dependency {
                    name: text(&dependency["name"]),
                    kind: dependency["kind"].as_str().unwrap_or("normal").into(),
                    optional: dependency["optional"] == true,
                    requirement: text(&dependency["req"]),
                })
                .collect();
            let default = package["features"]["default"].as_array().cloned().unwrap_or_default();
            (text(&package["name"]), (dependencies, default.iter().map(text).collect()))
        })
        .collect()
}

#[test]
fn dependencies_point_one_way() {
    let packages = packages();
    let ours: Vec<&str> = packages.keys().map(String::as_str).collect();
    let mut broken = Vec::new();
    for (package, (dependencies, _)) in &packages {
        for dependency in dependencies.iter().filter(|d| ours.contains(&d.name.as_str())) {
            let allowed = match package.as_str() {
                // A primitive crate names `harness` for its benchmarks only, by path alone.
                primitive if PRIMITIVES.contains(&primitive) => {
                    dependency.name == "harness"
                        && dependency.kind == "dev"
                        && dependency.requirement == "*"
                }
                "harness" => ["topology", "simulator"].contains(&dependency.name.as_str()),
                "topology" | "simulator" => false,
                _ => true,
            };
            if !allowed {
                broken.push(format!("{package} → {} ({})", dependency.name, dependency.kind));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:?}");
    assert!(ours.len() >= 7, "{ours:?}");
}

#[test]
fn primitive_crates_need_next_to_nothing() {
    let optional: [(&str, &[&str]); 4] = [
        ("counters", &["libc"]),
        ("locks", &["libc", "lock_api"]),
        ("queues", &["libc", "memmap2"]),
        ("alloc-arena", &["libc", "memmap2", "allocator-api2"]),
    ];
    let packages = packages();
    for (package, optional) in optional {
        let (dependencies, default) = &packages[package];
        assert!(default.is_empty(), "{package} has default features {default:?}");
        for dependency in dependencies.iter().filter(|dependency| dependency.kind == "normal") {
            let always = dependency.name == "crossbeam-utils" && !dependency.optional;
            let sometimes = optional.contains(&dependency.name.as_str()) && dependency.optional;
            assert!(always || sometimes, "{package}: {dependency:?}");
        }
    }
}

#[test]
fn no_package_is_named_for_nothing() {
    for name in packages().keys() {
        assert!(!["util", "utils", "common", "helpers"].contains(&name.as_str()), "{name}");
    }
}

#[test]
fn what_several_crates_need_alike_is_identical() {
    for (file, at_least) in [("sync.rs", 4), ("hot.rs", 4), ("relax.rs", 2)] {
        let copies: Vec<(PathBuf, Vec<u8>)> = PRIMITIVES
            .iter()
            .map(|name| root().join(name).join("src").join(file))
            .filter(|path| path.exists())
            .map(|path| (path.clone(), fs::read(path).unwrap()))
            .collect();
        assert!(copies.len() >= at_least, "{file}: {} copies", copies.len());
        for (path, bytes) in &copies {
            assert!(
                *bytes == copies[0].1,
                "{} differs from {}",
                path.display(),
                copies[0].0.display()
            );
        }
    }
}

/// Every file of the primitive crates' `src`, with its text, but for the suites: they are tests
/// over std's threads, hold no algorithm, and run under no model.
fn primitive_sources() -> Vec<(String, String)> {
    PRIMITIVES
        .iter()
        .flat_map(|name| fs::read_dir(root().join(name).join("src")).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| !path.ends_with("conformance.rs"))
        .map(|path| (path.display().to_string(), fs::read_to_string(path).unwrap()))
        .collect()
}

fn code_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    (1..).zip(text.lines()).filter(|(_, line)| !line.trim_start().starts_with("//"))
}

#[test]
fn only_sync_names_what_model_checkers_replace() {
    let mut found = Vec::new();
    for (path, text) in primitive_sources() {
        if path.ends_with("/sync.rs") {
            continue;
        }
        for (number, line) in code_lines(&text) {
            let names = ["sync::atomic::{", "core::cell::UnsafeCell", "hint::spin_loop"];
            let from_core =
                line.contains("core::sync::atomic") || line.contains("std::sync::atomic");
            if from_core || names[1..].iter().any(|name| line.contains(name)) {
                found.push(format!("{path}:{number}: {}", line.trim()));
            }
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn every_ordering_names_its_edge() {
    let strong = ["Ordering::Acquire", "Ordering::Release", "Ordering::AcqRel", "Ordering::SeqCst"];
    let mut bare = Vec::new();
    for (path, text) in primitive_sources() {
        let lines: Vec<&str> = text.lines().collect();
        for (number, line) in code_lines(&text) {
            let before = &lines[number.saturating_sub(12)..number];
            let explained = before.iter().any(|line| line.contains("// ORDERING:"));
            if strong.iter().any(|order| line.contains(order)) && !explained {
                bare.push(format!("{path}:{number}: {}", line.trim()));
            }
        }
    }
    assert!(bare.is_empty(), "{bare:#?}");
}

#[test]
fn no_file_is_longer_than_600_lines() {
    let listed = Command::new("git").args(["ls-files", "*.rs"]).current_dir(root()).output();
    let Ok(listed) = listed.map(|output| String::from_utf8(output.stdout).unwrap()) else {
        println!("SKIPPED: git is not installed");
        return;
    };
    let long: Vec<String> = listed
        .lines()
        .filter_map(|file| {
            let lines = fs::read_to_string(root().join(file)).ok()?.lines().count();
            (lines > 600).then(|| format!("{file}: {lines}"))
        })
        .collect();
    assert!(long.is_empty(), "{long:?}");
}

/// Links and runs a `#![no_std] #![no_main]` program over the crate, in a workspace of its own;
/// and proves that the same program does not link once std is in.
fn links_without_std(name: &str) {
    let directory = root().join("benches/tests/no_std").join(name);
    let built = cargo(&directory, &["build", "--release", "--locked"]);
    assert!(built.status.success(), "{}", stderr(&built));
    let program = target().join("release").join(format!("no-std-{name}"));
    assert!(Command::new(program).status().unwrap().success());
    let with_std = cargo(&directory, &["build", "--release", "--locked", "--features", "std"]);
    assert!(!with_std.status.success(), "std went unnoticed");
    assert!(stderr(&with_std).contains("panic_impl"), "{}", stderr(&with_std));
}

#[test]
fn counters_links_without_std() {
    links_without_std("counters");
}

#[test]
fn locks_links_without_std() {
    links_without_std("locks");
}

#[test]
fn queues_links_without_std() {
    links_without_std("queues");
}

#[test]
fn alloc_arena_links_without_std() {
    links_without_std("alloc-arena");
}

#[test]
fn primitive_crates_build_for_other_targets() {
    let installed = Command::new("rustup").args(["target", "list", "--installed"]).output();
    let Ok(installed) = installed else {
        println!("SKIPPED: rustup is not installed");
        return;
    };
    let installed = String::from_utf8_lossy(&installed.stdout).into_owned();
    let others: Vec<&str> = installed
        .lines()
        .filter(|target| !target.starts_with(std::env::consts::ARCH) && !target.is_empty())
        .collect();
    if others.is_empty() {
        println!("SKIPPED: rustup has no other target; add one with `rustup target add`");
        return;
    }
    for target in others {
        for name in PRIMITIVES {
            let checked = cargo(&root(), &["check", "-p", name, "--lib", "--target", target]);
            assert!(checked.status.success(), "{name} for {target}: {}", stderr(&checked));
        }
    }
}

#[test]
fn the_readme_lists_every_variant() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let listed = Command::new(env!("CARGO_BIN_EXE_manycore")).args(["list", "--json"]).output();
    let listed = String::from_utf8(listed.unwrap().stdout).unwrap();
    let mut rows = 0;
    for line in listed.lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        let text = |key: &str| row[key].as_str().unwrap().to_owned();
        let start = format!("| {} | `{}` | {} |", text("primitive"), text("variant"), text("kind"));
        assert!(readme.contains(&start), "README.md has no row that begins {start}");
        rows += 1;
    }
    let documented = readme.lines().filter(|line| {
        PRIMITIVES.iter().any(|primitive| line.starts_with(&format!("| {primitive} | `")))
    });
    assert_eq!(documented.count(), rows, "README.md lists variants that do not exist");
}

#[test]
fn the_template_of_a_program_that_simulates_runs() {
    let output = cargo(&root().join("docs/template"), &["run", "--quiet", "--locked", "--", "4"]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}{}", stderr(&output));
    assert!(said.contains("4 cores of epyc-7742-2s, 400 operations"), "{said}");
}
