//! What is looked at: a tree, its topology, and what was measured if it is this host.

use std::collections::BTreeMap;
use std::path::Path;

use topology::{CpuSet, Topology};

use super::live::Live;
use super::tree::{Tree, misread};
use crate::unavailable::Unavailable;

/// A host, or the saved tree of one.
#[derive(Debug)]
pub struct Subject<'a> {
    pub(super) tree: Tree,
    pub(super) topology: &'a Topology,
    pub(super) live: Result<Live, Unavailable>,
}

impl<'a> Subject<'a> {
    /// Looks at the tree of `topology`, and at what was measured on it.
    ///
    /// # Errors
    /// When the tree's root cannot be read.
    pub fn new(
        topology: &'a Topology,
        live: Result<Live, Unavailable>,
    ) -> Result<Self, Unavailable> {
        Self::below(&topology.root, topology, live)
    }

    fn below(
        root: &Path,
        topology: &'a Topology,
        live: Result<Live, Unavailable>,
    ) -> Result<Self, Unavailable> {
        let tree = Tree::open(root).map_err(|error| {
            let (root, is_file) = (root.display(), root.is_file());
            let remedy = if is_file { "; unpack it, and name the directory" } else { "" };
            Unavailable::because("not_readable", format!("{root}: {error}{remedy}"))
        })?;
        Ok(Self { tree, topology, live })
    }

    /// Gives what was measured, or why nothing was.
    pub(super) fn live(&self) -> Result<&Live, Unavailable> {
        self.live.as_ref().map_err(Clone::clone)
    }

    /// Counts the nodes that have memory; one where the tree does not tell of nodes.
    pub(super) fn nodes(&self) -> usize {
        let nodes = self.topology.numa_nodes.iter();
        nodes.filter(|node| node.is_memoryless() != Some(true)).count().max(1)
    }

    /// Reads a word of each CPU in use, and groups the CPUs by it.
    pub(super) fn by_cpu(&self, leaf: &str) -> Result<Groups, Unavailable> {
        let mut groups = BTreeMap::new();
        for cpu in self.topology.usable() {
            let path = format!("sys/devices/system/cpu/cpu{cpu}/{leaf}");
            let cpus: &mut Vec<u32> = groups.entry(self.tree.word(&path)?).or_default();
            cpus.push(cpu);
        }
        let named = |cpus| CpuSet::from_ids(cpus).unwrap_or_default();
        Ok(Groups(groups.into_iter().map(|(word, cpus)| (word, named(cpus))).collect()))
    }

    /// Tells whether this process holds a capability, by its number.
    pub(super) fn is_capable(&self, capability: u32) -> Result<bool, Unavailable> {
        const PATH: &str = "proc/self/status";
        let text = self.tree.text(PATH)?;
        let mask = text.lines().find_map(|line| line.strip_prefix("CapEff:"));
        let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        let mask = mask.ok_or_else(|| misread(PATH, "it has no CapEff"))?;
        Ok(mask >> capability & 1 == 1)
    }
}

/// CPUs by a word that each of them has.
#[derive(Debug)]
pub(super) struct Groups(pub(super) BTreeMap<String, CpuSet>);

impl Groups {
    /// Tells whether each CPU has one of these words.
    pub(super) fn are_all(&self, words: &[&str]) -> bool {
        self.0.keys().all(|word| words.contains(&word.as_str()))
    }

    /// Says which CPUs have which word.
    pub(super) fn said(&self) -> String {
        let groups = self.0.iter().map(|(word, cpus)| format!("{word} on CPUs {cpus}"));
        groups.collect::<Vec<_>>().join(", ")
    }
}
