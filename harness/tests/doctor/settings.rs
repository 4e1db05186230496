//! Settings that are made and put back, in a tree made for it.

use std::fs;
use std::path::PathBuf;

use harness::doctor::Tree as Root;
use harness::doctor::settings::{Fate, SettingsError, apply, default_state, restore, wanted};
use topology::Topology;

use crate::healthy::Tree;

const GOVERNOR: &str = "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor";
const IDLE: &str = "sys/devices/system/cpu/cpu2/cpuidle/state1/disable";
const THP: &str = "sys/kernel/mm/transparent_hugepage/enabled";
const ALWAYS: &str = "[always] madvise never\n";

/// A file, what it holds, and what is set.
const SPOILT: [(&str, &str, &str); 11] = [
    (GOVERNOR, "powersave\n", "performance"),
    ("sys/devices/system/cpu/intel_pstate/no_turbo", "0\n", "1"),
    ("sys/devices/system/cpu/cpufreq/boost", "1\n", "0"),
    (IDLE, "0\n", "1"),
    (THP, ALWAYS, "madvise"),
    ("sys/kernel/mm/transparent_hugepage/defrag", ALWAYS, "madvise"),
    ("proc/sys/kernel/numa_balancing", "1\n", "0"),
    ("proc/sys/vm/zone_reclaim_mode", "1\n", "0"),
    ("sys/kernel/mm/ksm/run", "1\n", "0"),
    ("proc/sys/kernel/randomize_va_space", "0\n", "2"),
    ("proc/sys/kernel/perf_event_paranoid", "4\n", "2"),
];

fn spoilt() -> (Tree, Root, Topology, PathBuf) {
    let tree = Tree::healthy();
    for (path, text, _) in SPOILT {
        tree.file(path, text);
    }
    fs::create_dir(tree.at("run")).unwrap();
    let root = Root::open(tree.root()).unwrap();
    let host = Topology::from_root(tree.root()).unwrap();
    let state = default_state(&root);
    (tree, root, host, state)
}

fn text(tree: &Tree, path: &str) -> String {
    fs::read_to_string(tree.at(path)).unwrap()
}

fn assert_as_before(tree: &Tree) {
    for (path, before, _) in SPOILT {
        assert_eq!(text(tree, path), before, "{path}");
    }
}

#[test]
fn everything_is_set_and_put_back() {
    let (tree, root, host, state) = spoilt();
    let applied = apply(&root, wanted(&root, &host), &state).unwrap();
    assert!(state.exists());
    assert_eq!(applied.made.len(), SPOILT.len());
    assert!(applied.made.iter().all(|(_, fate)| *fate == Fate::Done), "{:?}", applied.made);
    for (path, _, set) in SPOILT {
        assert_eq!(text(&tree, path), set, "{path}");
    }
    assert!(wanted(&root, &host).is_empty(), "nothing is left to be set");
    let back = applied.restore().unwrap();
    assert!(back.iter().all(|(_, fate)| *fate == Fate::Done), "{back:?}");
    assert_as_before(&tree);
    assert!(!state.exists());
}

#[test]
fn dropping_it_puts_everything_back() {
    let (tree, root, host, state) = spoilt();
    drop(apply(&root, wanted(&root, &host), &state).unwrap());
    assert_as_before(&tree);
    assert!(!state.exists());
}

#[test]
fn a_healthy_host_is_left_alone() {
    let tree = Tree::healthy();
    let root = Root::open(tree.root()).unwrap();
    let host = Topology::from_root(tree.root()).unwrap();
    let changes = wanted(&root, &host);
    assert!(changes.is_empty(), "{changes:?}");
    // There is no `run` to write a state file to, and none is needed.
    assert!(apply(&root, changes, &default_state(&root)).unwrap().restore().unwrap().is_empty());
}

#[test]
fn a_governor_that_is_not_offered_is_not_asked_for() {
    let (tree, root, host, _) = spoilt();
    tree.file("sys/devices/system/cpu/cpu1/cpufreq/scaling_available_governors", "powersave\n");
    assert!(wanted(&root, &host).iter().all(|change| change.path != GOVERNOR));
}

#[test]
fn only_one_holds_the_settings() {
    let (_tree, root, host, state) = spoilt();
    let held = apply(&root, wanted(&root, &host), &state).unwrap();
    let again = apply(&root, vec![], &state);
    assert!(
        matches!(again, Err(SettingsError::Held { process, .. }) if process == std::process::id())
    );
    assert!(matches!(restore(&root, &state), Err(SettingsError::Held { .. })));
    held.restore().unwrap();
    assert!(restore(&root, &state).unwrap().is_empty(), "nothing is left");
}

#[test]
fn what_a_killed_process_left_is_put_back() {
    let (tree, root, host, state) = spoilt();
    std::mem::forget(apply(&root, wanted(&root, &host), &state).unwrap());
    // As if another process had written it: one with this number, and another beginning.
    let left = fs::read_to_string(&state).unwrap();
    let began = left.lines().find(|line| line.contains("\"began\"")).unwrap();
    fs::write(&state, left.replace(began, "  \"began\": 1,")).unwrap();
    assert!(matches!(apply(&root, vec![], &state), Err(SettingsError::Left { .. })));
    // Meanwhile somebody chose another governor, and put one file back by hand.
    tree.file(GOVERNOR, "schedutil\n");
    tree.file(THP, ALWAYS);
    let fates = restore(&root, &state).unwrap();
    let fate = |path: &str| &fates.iter().find(|(change, _)| change.path == path).unwrap().1;
    assert_eq!(*fate(GOVERNOR), Fate::Foreign("schedutil".into()));
    assert_eq!(*fate(THP), Fate::Already);
    assert_eq!(*fate(IDLE), Fate::Done);
    assert_eq!(text(&tree, GOVERNOR), "schedutil\n");
    assert!(!state.exists());
}

#[test]
fn what_cannot_be_put_back_yet_stays_in_the_state_file() {
    let (tree, root, host, state) = spoilt();
    let applied = apply(&root, wanted(&root, &host), &state).unwrap();
    fs::remove_file(tree.at(IDLE)).unwrap();
    let fates = applied.restore().unwrap();
    let refused = |(_, fate): &&(_, Fate)| matches!(fate, Fate::Refused(_));
    assert_eq!(fates.iter().filter(refused).count(), 1);
    tree.file(IDLE, "1");
    let fates = restore(&root, &state).unwrap();
    assert_eq!((fates.len(), &fates[0].1), (1, &Fate::Done));
    assert_as_before(&tree);
}

#[test]
fn state_files_that_make_no_sense_are_refused_and_kept() {
    let (tree, root, host, state) = spoilt();
    for damaged in ["", "{", "[]", "{\"process\": -1}", "\u{0}"] {
        fs::write(&state, damaged).unwrap();
        let refused = apply(&root, wanted(&root, &host), &state).unwrap_err().to_string();
        assert!(refused.contains("damaged") && refused.contains("--state"), "{refused}");
        assert!(restore(&root, &state).is_err());
        assert_eq!(fs::read_to_string(&state).unwrap(), damaged);
    }
    assert_as_before(&tree);
}

#[test]
fn a_link_out_of_the_root_is_not_written_through() {
    let (tree, root, host, state) = spoilt();
    let outside = tempfile::NamedTempFile::new().unwrap();
    fs::write(outside.path(), "1\n").unwrap();
    let ksm = tree.at("sys/kernel/mm/ksm/run");
    fs::remove_file(&ksm).unwrap();
    std::os::unix::fs::symlink(outside.path(), &ksm).unwrap();
    apply(&root, wanted(&root, &host), &state).unwrap().restore().unwrap();
    assert_eq!(fs::read_to_string(outside.path()).unwrap(), "1\n");
}
