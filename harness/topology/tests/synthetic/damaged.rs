//! Everything that can be wrong with a file, in every file: nothing panics, nothing hangs, and
//! the damage is named.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;

use topology::{Finding, FindingKind, Topology, TopologyError};

use crate::builder::{CPU, NODE, Root, finding};

/// Four CPUs with everything that is read, each once and in the form that is read first.
fn whole() -> Root {
    let root = Root::flat(4);
    for cpu in 0..4 {
        let dir = format!("{CPU}/cpu{cpu}");
        root.cache(cpu, 0, 1, "Data", "32K", &cpu.to_string());
        root.cache(cpu, 1, 3, "Unified", "8M", "0-3");
        root.file(&format!("{dir}/cache/index1/id"), "0");
        root.file(&format!("{dir}/topology/die_id"), "0");
        root.file(&format!("{dir}/topology/die_cpus_list"), "0-3");
        root.file(&format!("{dir}/cpu_capacity"), "1024");
        root.file(&format!("{dir}/cpufreq/base_frequency"), "2000000");
        root.file(&format!("{dir}/cpufreq/cpuinfo_max_freq"), "3000000");
    }
    root.file(&format!("{CPU}/cpu0/topology/package_cpus_list"), "0-3");
    for (leaf, text) in [
        ("present", "0-3"),
        ("possible", "0-7"),
        ("isolated", "3"),
        ("nohz_full", "3"),
        ("kernel_max", "63"),
        ("smt/active", "0"),
        ("smt/control", "off"),
    ] {
        root.file(&format!("{CPU}/{leaf}"), text);
    }
    root.node(0, "0-1", 100, "10 20");
    root.node(1, "2-3", 100, "20 10");
    for leaf in ["online", "possible", "has_cpu", "has_memory", "has_normal_memory"] {
        root.file(&format!("{NODE}/{leaf}"), "0-1");
    }
    root.files([
        ("proc/cpuinfo", "processor : 0\nmodel name : X\n\nprocessor : 1\n"),
        ("proc/self/status", "Cpus_allowed_list:\t0-3\nMems_allowed_list:\t0-1\n"),
        ("proc/self/cgroup", "0::/a\n"),
        ("proc/self/cpuset", "/a\n"),
        ("proc/self/mountinfo", "1 2 0:3 / /sys/fs/cgroup rw - cgroup2 none rw\n"),
        ("sys/fs/cgroup/a/cpu.max", "200000 100000"),
        ("sys/fs/cgroup/a/cpuset.cpus.effective", "0-3"),
        ("sys/fs/cgroup/a/cpuset.mems.effective", "0-1"),
    ]);
    root
}

fn all_files(root: &Root) -> Vec<String> {
    let mut files = Vec::new();
    let mut dirs: Vec<PathBuf> = vec![root.path()];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                dirs.push(path);
            } else {
                files.push(path.strip_prefix(root.path()).unwrap().to_str().unwrap().to_owned());
            }
        }
    }
    files.sort();
    files
}

fn noted(topology: &Topology, path: &str) -> Vec<Finding> {
    let path = format!("/{path}");
    topology.findings.iter().filter(|finding| finding.path == path).cloned().collect()
}

/// Puts something else in the place of a file, reads, and puts the file back.
fn with(root: &Root, path: &str, damage: impl FnOnce(&PathBuf)) -> Result<Topology, TopologyError> {
    let at = root.at(path);
    let original = fs::read(&at).unwrap();
    fs::remove_file(&at).unwrap();
    damage(&at);
    let result = root.try_read();
    if let Ok(topology) = &result {
        assert!(topology.text().contains("CPU"), "{path}");
        serde_json::to_string(topology).unwrap();
    }
    root.remove_any(path);
    fs::write(&at, original).unwrap();
    result
}

impl Root {
    fn remove_any(&self, path: &str) {
        let at = self.at(path);
        match fs::symlink_metadata(&at) {
            Ok(meta) if meta.is_dir() => fs::remove_dir_all(at).unwrap(),
            Ok(_) => fs::remove_file(at).unwrap(),
            Err(_) => {}
        }
    }
}

#[test]
fn the_whole_tree_is_clean() {
    let topology = whole().read();
    assert_eq!(topology.findings, [], "{topology}");
    assert_eq!(topology.usable().to_string(), "0-3");
    assert_eq!(topology.parallelism(), 2);
}

#[test]
fn what_is_no_readable_text_is_named_in_every_file() {
    let root = whole();
    let clean = root.read();
    let outside = root.path().parent().unwrap().join("outside");
    fs::write(&outside, "0-3").unwrap();
    type Damage<'a> = (&'a str, FindingKind, Box<dyn Fn(&PathBuf) + 'a>);
    let damages: [Damage<'_>; 7] = [
        ("no UTF-8", FindingKind::Damaged, Box::new(|at| fs::write(at, b"0-\xff\xfe").unwrap())),
        (
            "too long",
            FindingKind::Damaged,
            Box::new(|at| fs::write(at, vec![b' '; 17 << 20]).unwrap()),
        ),
        ("directory", FindingKind::Unreadable, Box::new(|at| fs::create_dir(at).unwrap())),
        (
            "circle",
            FindingKind::Escapes,
            Box::new(|at| symlink(at.file_name().unwrap(), at).unwrap()),
        ),
        ("escape", FindingKind::Escapes, Box::new(|at| symlink(&outside, at).unwrap())),
        ("far up", FindingKind::Escapes, Box::new(|at| symlink("../".repeat(40), at).unwrap())),
        (
            "FIFO",
            FindingKind::Unreadable,
            Box::new(|at| {
                assert!(Command::new("mkfifo").arg(at).status().unwrap().success());
            }),
        ),
    ];
    for path in all_files(&root) {
        for (name, kind, damage) in &damages {
            let topology = with(&root, &path, damage).unwrap();
            let found = noted(&topology, &path);
            assert!(
                found.iter().any(|f| f.kind == *kind),
                "{name} in {path}: {:?}",
                topology.findings
            );
            assert_eq!(topology.cpus.online, clean.cpus.online, "{name} in {path}");
        }
    }
    assert_eq!(root.read(), clean);
}

#[test]
fn texts_that_make_no_sense_never_panic() {
    let root = whole();
    let clean = root.read();
    let texts = [
        "",
        "\n",
        "\0",
        "garbage",
        "-1",
        "-",
        "0-",
        "3-0",
        "0x",
        "1,,2",
        ":",
        "0:0/0",
        "\u{1F980}",
        "18446744073709551616",
        "99999999999999999999999999",
        "0-4294967295",
        "4294967295",
        "1e9",
        "nan",
        "inf",
        "max",
        "max max",
        "0 0 0 0 0 0 0 0 0 0",
        "K",
        "0K",
        "18446744073709551615G",
        "é",
        "MemTotal: kB",
        "MemTotal: -1 kB",
        "Cpus_allowed_list:\t-",
        "0::",
        "::",
        " - ",
        "processor : 4294967295",
        "processor",
        "\\",
        "/ / / / / - cgroup2 x y",
    ];
    let mut silent: Vec<String> = Vec::new();
    for path in all_files(&root) {
        for text in texts {
            let topology = with(&root, &path, |at| fs::write(at, text).unwrap()).unwrap();
            assert!(topology.cpus.online.is_subset(&clean.cpus.online), "{text:?} in {path}");
            let absurd = text == "0-4294967295" && noted(&topology, &path).is_empty();
            if absurd && !silent.contains(&path) {
                silent.push(path.clone());
            }
        }
    }
    // Files of free text, in which no text is wrong.
    let free = ["proc/self/cgroup", "proc/self/cpuset", "proc/self/mountinfo", "proc/self/status"];
    let expected = silent.iter().filter(|path| !free.contains(&path.as_str()));
    assert_eq!(expected.collect::<Vec<_>>(), ["sys/devices/system/cpu/smt/control"]);
}

#[test]
fn a_damaged_online_file_is_replaced_by_the_next_source() {
    let root = whole();
    for text in ["", "rubbish", "0-4294967295", "7-3"] {
        root.file(&format!("{CPU}/online"), text);
        let topology = root.read();
        assert_eq!(topology.cpus.online.to_string(), "0-3", "{text:?}");
        finding(&topology, FindingKind::Damaged, "sys/devices/system/cpu/online");
    }
}

#[test]
fn without_any_online_set_the_error_says_what_was_tried() {
    let root = Root::new();
    root.file(&format!("{CPU}/online"), "rubbish");
    root.file("proc/cpuinfo", "no processor here\n");
    let error = root.try_read().unwrap_err();
    let TopologyError::NoOnlineCpus { tried, .. } = &error else { panic!("{error:?}") };
    assert_eq!(tried.len(), 3, "{tried:?}");
    let text = error.to_string();
    for part in ["\"rubbish\"", "no cpuN directory", "names no processor", "save the tree again"] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
}

#[test]
fn a_million_cpus_are_read_in_time() {
    let root = whole();
    root.file(&format!("{CPU}/online"), "0-1048575");
    let topology = root.read();
    assert_eq!(topology.cpus.online.len(), 1 << 20);
    finding(&topology, FindingKind::Missing, CPU);
    assert_eq!(topology.usable().to_string(), "0-3", "the cpuset still counts");
    assert_eq!(topology.pus().len(), 4);
    assert!(topology.text().len() < 10_000);
}

#[test]
fn absurd_directory_names_are_named_and_ignored() {
    let root = whole();
    for name in ["cpu4294967296", "cpu99999999999999999999999", "cpu01", "cpu1048576"] {
        root.dir(&format!("{CPU}/{name}"));
    }
    root.dir(&format!("{NODE}/node9999999"));
    root.dir(&format!("{CPU}/cpu0/cache/index9999999999"));
    let odd = root.at(CPU).join(std::ffi::OsStr::from_bytes(b"cpu\xff"));
    fs::create_dir(odd).unwrap();
    let topology = root.read();
    assert_eq!(topology.cpus.online.to_string(), "0-3");
    assert_eq!(topology.cpus.offline.to_string(), "");
    assert_eq!(topology.numa_nodes.len(), 2);
    let damaged: u32 = topology
        .findings
        .iter()
        .filter(|f| f.kind == FindingKind::Damaged)
        .map(|f| 1 + f.more)
        .sum();
    assert_eq!(damaged, 6, "{:?}", topology.findings);
}

#[test]
fn a_link_that_escapes_is_as_good_as_missing() {
    let root = whole();
    root.remove(&format!("{CPU}/online"));
    symlink("/sys/devices/system/cpu/online", root.at(&format!("{CPU}/online"))).unwrap();
    root.remove(NODE);
    symlink("/sys/devices/system/node", root.at(NODE)).unwrap();
    let topology = root.read();
    assert_eq!(topology.cpus.online.to_string(), "0-3");
    assert!(topology.numa_nodes.is_empty());
    finding(&topology, FindingKind::Escapes, "sys/devices/system/cpu/online");
    finding(&topology, FindingKind::Escapes, NODE);
}

#[test]
fn links_inside_of_the_tree_are_followed() {
    let root = whole();
    fs::rename(root.at("sys/devices"), root.at("sys/real")).unwrap();
    symlink("real", root.at("sys/devices")).unwrap();
    let mut topology = root.read();
    topology.root = whole().path();
    let mut clean = whole().read();
    clean.root = topology.root.clone();
    assert_eq!(topology, clean);
}
