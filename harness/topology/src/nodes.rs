//! NUMA nodes, their CPUs and memory, and the distances between them.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::cpus::brief;
use crate::cpuset::{CpuSet, NodeSet};
use crate::finding::FindingKind;
use crate::sysfs::{Tree, Unread, shorten};

/// The directory of all nodes.
const NODE_DIR: &str = "sys/devices/system/node";

/// Holds one NUMA node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NumaNode {
    /// The kernel's number; there are gaps, so it is no index.
    pub id: u32,
    /// Its online CPUs; empty for a node without CPUs, `None` where the kernel does not say.
    pub cpus: Option<CpuSet>,
    /// The CPUs as listed, where the list also names CPUs that are not online.
    pub cpus_listed: Option<CpuSet>,
    /// Its memory in KiB (`MemTotal`); 0 for a node without memory, `None` where unknown.
    pub mem_total_kb: Option<u64>,
}

impl NumaNode {
    /// Says whether the node has no CPU that is online; `None` where the kernel does not say.
    #[must_use]
    pub fn is_cpuless(&self) -> Option<bool> {
        self.cpus.as_ref().map(CpuSet::is_empty)
    }

    /// Says whether the node has no memory; `None` where the kernel does not say.
    #[must_use]
    pub fn is_memoryless(&self) -> Option<bool> {
        self.mem_total_kb.map(|kb| kb == 0)
    }
}

/// Holds the sets of nodes that the kernel lists. `None`: no such file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct NodeSets {
    /// Nodes that are online.
    pub online: Option<NodeSet>,
    /// Nodes that could be.
    pub possible: Option<NodeSet>,
    /// Nodes with CPUs.
    pub has_cpu: Option<NodeSet>,
    /// Nodes with memory.
    pub has_memory: Option<NodeSet>,
    /// Nodes with memory that the kernel may use for itself.
    pub has_normal_memory: Option<NodeSet>,
    /// Nodes that only initiate accesses: devices.
    pub has_generic_initiator: Option<NodeSet>,
    /// Nodes the process may allocate on: `Mems_allowed_list` and the cpuset, where either says.
    pub allowed: Option<NodeSet>,
}

/// Holds the distances between nodes: 10 is local, 20 costs twice as much by the firmware's word.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Distances {
    /// The node of each row and each column.
    pub node_ids: Vec<u32>,
    /// A row for each node: the distances from it.
    pub matrix: Vec<Vec<u32>>,
}

impl Distances {
    /// Gives the distance from one node to another, both by kernel number.
    #[must_use]
    pub fn between(&self, from: u32, to: u32) -> Option<u32> {
        let at = |id| self.node_ids.iter().position(|&node| node == id);
        self.matrix.get(at(from)?)?.get(at(to)?).copied()
    }
}

/// Everything the node directory gives.
pub(crate) struct Nodes {
    pub(crate) nodes: Vec<NumaNode>,
    pub(crate) sets: NodeSets,
    pub(crate) distances: Option<Distances>,
}

pub(crate) fn read(tree: &Tree, online_cpus: &CpuSet) -> Nodes {
    let sets = read_sets(tree);
    let ids = tree.numbered(NODE_DIR, "node");
    let nodes: Vec<NumaNode> = ids.iter().map(|id| read_node(tree, id, online_cpus)).collect();
    if nodes.is_empty() {
        tree.note(FindingKind::Missing, NODE_DIR, "no node directory: NUMA is unknown");
        return Nodes { nodes, sets, distances: None };
    }
    if let Some(online) = sets.online.as_ref().filter(|online| **online != ids) {
        let message = format!("says {}, the directories are {}", brief(online), brief(&ids));
        tree.note(FindingKind::Contradictory, &format!("{NODE_DIR}/online"), message);
    }
    check_members(tree, &nodes, online_cpus);
    // A column for each online node, which need not be each directory.
    let columns = sets.online.as_ref().filter(|online| !online.is_empty()).unwrap_or(&ids);
    let distances = read_distances(tree, &ids, columns);
    Nodes { nodes, sets, distances }
}

fn read_sets(tree: &Tree) -> NodeSets {
    let list = |leaf: &str| tree.list(&format!("{NODE_DIR}/{leaf}")).ok();
    NodeSets {
        online: list("online"),
        possible: list("possible"),
        has_cpu: list("has_cpu"),
        has_memory: list("has_memory"),
        has_normal_memory: list("has_normal_memory"),
        has_generic_initiator: list("has_generic_initiator"),
        allowed: None,
    }
}

fn read_node(tree: &Tree, id: u32, online_cpus: &CpuSet) -> NumaNode {
    let list = format!("{NODE_DIR}/node{id}/cpulist");
    let map = format!("{NODE_DIR}/node{id}/cpumap");
    let listed = tree.list(&list).ok();
    let mapped = tree.mask(&map).ok();
    let alive = |set: &Option<CpuSet>| set.as_ref().map(|set| set.intersection(online_cpus));
    if let (Some(by_list), Some(by_map)) = (alive(&listed), alive(&mapped))
        && by_list != by_map
    {
        let message = format!(
            "the list says {} and the mask {}; the list is believed",
            brief(&by_list),
            brief(&by_map)
        );
        tree.note(FindingKind::Contradictory, &list, message);
    }
    let source = listed.or(mapped);
    let cpus = alive(&source);
    if cpus.is_none() {
        tree.note(FindingKind::Missing, &list, "the node's CPUs are unknown");
    }
    NumaNode {
        id,
        cpus_listed: source.filter(|listed| Some(listed) != cpus.as_ref()),
        cpus,
        mem_total_kb: memory(tree, id),
    }
}

/// Reads `Node 0 MemTotal:       32372996 kB`.
fn memory(tree: &Tree, id: u32) -> Option<u64> {
    let path = format!("{NODE_DIR}/node{id}/meminfo");
    let text = match tree.read(&path) {
        Ok(text) => text,
        Err(Unread::Missing) => {
            tree.note(FindingKind::Missing, &path, "the node's memory is unknown");
            return None;
        }
        Err(Unread::Broken(_)) => return None,
    };
    let total = text.lines().find_map(|line| {
        let (_, value) = line.split_once("MemTotal:")?;
        value.trim().strip_suffix("kB")?.trim_end().parse().ok()
    });
    if total.is_none() {
        tree.damaged(&path, "no MemTotal in kB");
    }
    total
}

fn check_members(tree: &Tree, nodes: &[NumaNode], online_cpus: &CpuSet) {
    let mut seen = CpuSet::new();
    for node in nodes {
        let Some(cpus) = &node.cpus else { return };
        if !cpus.is_disjoint(&seen) {
            let twice = cpus.intersection(&seen);
            let message = format!("CPUs {} are in a lower node too; that is used", brief(&twice));
            let path = format!("{NODE_DIR}/node{}/cpulist", node.id);
            tree.note(FindingKind::Contradictory, &path, message);
        }
        seen = seen.union(cpus);
    }
    let homeless = online_cpus.difference(&seen);
    if !homeless.is_empty() {
        let message = format!("online CPUs in no node: {}", brief(&homeless));
        tree.note(FindingKind::Suspect, NODE_DIR, message);
    }
}

fn read_distances(tree: &Tree, ids: &NodeSet, columns: &NodeSet) -> Option<Distances> {
    let mut rows: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for id in ids {
        let path = format!("{NODE_DIR}/node{id}/distance");
        let text = match tree.read(&path) {
            Ok(text) => text,
            Err(Unread::Missing) => {
                tree.note(FindingKind::Missing, &path, "the node's distances are unknown");
                continue;
            }
            Err(Unread::Broken(_)) => continue,
        };
        let row: Result<Vec<u32>, _> = text.split_ascii_whitespace().map(str::parse).collect();
        match row {
            Ok(row) if row.len() == columns.len() => {
                check_row(tree, &path, id, columns, &row);
                rows.insert(id, row);
            }
            Ok(row) => {
                let (have, want) = (row.len(), columns.len());
                let message = format!("{have} columns for {want} online nodes; not used");
                tree.damaged(&path, message);
            }
            Err(_) => {
                let shown = shorten(text.trim());
                tree.damaged(&path, format!("{shown:?} are no distances; not used"));
            }
        }
    }
    if !rows.keys().copied().eq(columns.iter()) {
        return None;
    }
    Some(Distances { node_ids: columns.iter().collect(), matrix: rows.into_values().collect() })
}

/// Notes a row in which the node is not nearest to itself.
fn check_row(tree: &Tree, path: &str, id: u32, columns: &NodeSet, row: &[u32]) {
    let own = columns.iter().zip(row).find(|(column, _)| *column == id).map(|(_, own)| *own);
    if row.contains(&0) || own.is_some_and(|own| row.iter().any(|&other| other < own)) {
        tree.note(FindingKind::Suspect, path, "a node that is not nearest to itself, or a 0");
    }
}
