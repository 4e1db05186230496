//! Builds a tree of files that looks like a root.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use topology::{Finding, FindingKind, Topology, TopologyError};

pub(crate) const CPU: &str = "sys/devices/system/cpu";
pub(crate) const NODE: &str = "sys/devices/system/node";

/// A root in a temporary directory that lives as long as this value.
pub(crate) struct Root {
    dir: tempfile::TempDir,
}

impl Root {
    pub(crate) fn new() -> Root {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("root")).unwrap();
        Root { dir }
    }

    /// A root whose CPUs 0..n are cores of their own in package 0, and nothing else.
    pub(crate) fn flat(cpus: u32) -> Root {
        let root = Root::new();
        root.file(&format!("{CPU}/online"), &format!("0-{}\n", cpus - 1));
        (0..cpus).for_each(|cpu| root.cpu(cpu, 0, cpu, &cpu.to_string()));
        root
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.dir.path().join("root")
    }

    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.path().join(path)
    }

    /// Writes one file, and the directories above it.
    pub(crate) fn file(&self, path: &str, text: &str) {
        let at = self.at(path);
        fs::create_dir_all(at.parent().unwrap()).unwrap();
        fs::write(at, text).unwrap();
    }

    pub(crate) fn files<'a>(&self, files: impl IntoIterator<Item = (&'a str, &'a str)>) {
        files.into_iter().for_each(|(path, text)| self.file(path, text));
    }

    pub(crate) fn dir(&self, path: &str) {
        fs::create_dir_all(self.at(path)).unwrap();
    }

    pub(crate) fn remove(&self, path: &str) {
        let at = self.at(path);
        if at.is_dir() { fs::remove_dir_all(at).unwrap() } else { fs::remove_file(at).unwrap() }
    }

    /// Writes the topology directory of one CPU, with lists.
    pub(crate) fn cpu(&self, cpu: u32, package: i64, core_id: u32, siblings: &str) {
        let dir = format!("{CPU}/cpu{cpu}/topology");
        self.file(&format!("{dir}/physical_package_id"), &format!("{package}\n"));
        self.file(&format!("{dir}/core_id"), &format!("{core_id}\n"));
        self.file(&format!("{dir}/core_cpus_list"), &format!("{siblings}\n"));
    }

    /// Writes one cache of one CPU.
    pub(crate) fn cache(
        &self,
        cpu: u32,
        index: u32,
        level: u32,
        kind: &str,
        size: &str,
        with: &str,
    ) {
        let dir = format!("{CPU}/cpu{cpu}/cache/index{index}");
        self.file(&format!("{dir}/level"), &format!("{level}\n"));
        self.file(&format!("{dir}/type"), &format!("{kind}\n"));
        self.file(&format!("{dir}/size"), &format!("{size}\n"));
        self.file(&format!("{dir}/coherency_line_size"), "64\n");
        self.file(&format!("{dir}/shared_cpu_list"), &format!("{with}\n"));
    }

    /// Writes one node.
    pub(crate) fn node(&self, id: u32, cpus: &str, kb: u64, distances: &str) {
        let dir = format!("{NODE}/node{id}");
        self.file(&format!("{dir}/cpulist"), &format!("{cpus}\n"));
        let memory = format!("Node {id} MemTotal: {kb:>14} kB\nNode {id} MemFree: 1 kB\n");
        self.file(&format!("{dir}/meminfo"), &memory);
        self.file(&format!("{dir}/distance"), &format!("{distances}\n"));
    }

    pub(crate) fn read(&self) -> Topology {
        self.try_read().unwrap()
    }

    /// Reads the tree in a thread of its own: a reader that hangs fails the test.
    pub(crate) fn try_read(&self) -> Result<Topology, TopologyError> {
        within_a_minute(self.path())
    }
}

fn within_a_minute(path: PathBuf) -> Result<Topology, TopologyError> {
    let (send, receive) = mpsc::channel();
    let reader = thread::spawn(move || {
        send.send(Box::new(Topology::from_root(&path))).expect("the receiver is there");
    });
    let result = receive.recv_timeout(Duration::from_secs(60));
    let result = result.expect("the reader hangs or panicked");
    reader.join().expect("the reader panicked");
    *result
}

/// Gives the one finding about a path, or says what there is.
#[track_caller]
pub(crate) fn finding(topology: &Topology, kind: FindingKind, path: &str) -> Finding {
    let rooted = Path::new("/").join(path);
    let found = topology.findings.iter().find(|f| f.kind == kind && Path::new(&f.path) == rooted);
    found.unwrap_or_else(|| panic!("no {kind:?} {path} in {:#?}", topology.findings)).clone()
}

/// Prints the members of a set, or `-` for none known.
pub(crate) fn list(set: Option<&topology::CpuSet>) -> String {
    set.map_or_else(|| "-".to_owned(), ToString::to_string)
}
