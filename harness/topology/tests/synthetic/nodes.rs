//! NUMA nodes and distances.

use topology::{FindingKind, Topology};

use crate::builder::{NODE, Root, finding, list};

/// Nodes 0 (CPUs and memory), 3 (CPUs only), 8 (memory only) and 250 (neither).
fn sparse() -> Root {
    let root = Root::flat(4);
    root.node(0, "0-1", 1000, "10 20 30 40");
    root.node(3, "2-3", 0, "20 10 30 40");
    root.node(8, "", 2000, "30 30 10 40");
    root.node(250, "", 0, "40 40 40 10");
    root.file(&format!("{NODE}/online"), "0,3,8,250\n");
    root.file(&format!("{NODE}/possible"), "0-255\n");
    root
}

fn nodes(topology: &Topology) -> Vec<(u32, String, Option<u64>)> {
    let nodes = topology.numa_nodes.iter();
    nodes.map(|node| (node.id, list(node.cpus.as_ref()), node.mem_total_kb)).collect()
}

#[test]
fn gaps_and_nodes_without_cpus_or_memory() {
    let topology = sparse().read();
    let want = [(0, "0-1", 1000), (3, "2-3", 0), (8, "", 2000), (250, "", 0)];
    let want = want.map(|(id, cpus, kb)| (id, cpus.to_owned(), Some(kb)));
    assert_eq!(nodes(&topology), want);
    let without = |test: fn(&topology::NumaNode) -> Option<bool>| {
        let nodes = topology.numa_nodes.iter().filter(|node| test(node) == Some(true));
        nodes.map(|node| node.id).collect::<Vec<_>>()
    };
    assert_eq!(without(topology::NumaNode::is_cpuless), [8, 250]);
    assert_eq!(without(topology::NumaNode::is_memoryless), [3, 250]);
    assert_eq!(topology.pu(2).unwrap().node, Some(3));
    assert_eq!(topology.distance(3, 250), Some(40));
    assert_eq!(topology.distance(8, 8), Some(10));
    assert_eq!(topology.distance(1, 0), None);
    assert_eq!(topology.distances.as_ref().unwrap().node_ids, [0, 3, 8, 250]);
    assert_eq!(list(topology.node_sets.possible.as_ref()), "0-255");
    assert_eq!(topology.node_sets.has_cpu, None);
}

#[test]
fn what_a_node_does_not_say_is_unknown() {
    let root = sparse();
    root.remove(&format!("{NODE}/node0/cpulist"));
    root.remove(&format!("{NODE}/node0/meminfo"));
    root.remove(&format!("{NODE}/node3/cpulist"));
    root.file(&format!("{NODE}/node3/cpumap"), "00000000,0000000c");
    root.file(&format!("{NODE}/node8/meminfo"), "Node 8 MemFree: 3 kB\n");
    let topology = root.read();
    let node = &topology.numa_nodes[0];
    assert_eq!((node.is_cpuless(), node.is_memoryless()), (None, None));
    assert_eq!(list(topology.numa_nodes[1].cpus.as_ref()), "2-3");
    assert_eq!(topology.numa_nodes[2].mem_total_kb, None);
    finding(&topology, FindingKind::Missing, "sys/devices/system/node/node0/cpulist");
    finding(&topology, FindingKind::Missing, "sys/devices/system/node/node0/meminfo");
    finding(&topology, FindingKind::Damaged, "sys/devices/system/node/node8/meminfo");
}

#[test]
fn distances_that_cannot_be_used() {
    let broken = [
        ("10 20 30", FindingKind::Damaged),
        ("10 20 30 40 50", FindingKind::Damaged),
        ("10 20 x 40", FindingKind::Damaged),
        ("10 20 -1 40", FindingKind::Damaged),
        ("10 20 99999999999 40", FindingKind::Damaged),
        ("", FindingKind::Damaged),
    ];
    for (row, kind) in broken {
        let root = sparse();
        root.file(&format!("{NODE}/node8/distance"), row);
        let topology = root.read();
        assert_eq!(topology.distances, None, "{row:?}");
        finding(&topology, kind, "sys/devices/system/node/node8/distance");
    }
    let root = sparse();
    root.remove(&format!("{NODE}/node8/distance"));
    let topology = root.read();
    assert_eq!(topology.distances, None);
    finding(&topology, FindingKind::Missing, "sys/devices/system/node/node8/distance");
    let root = sparse();
    root.file(&format!("{NODE}/node8/distance"), "30 9 10 0");
    let topology = root.read();
    assert_eq!(topology.distance(8, 3), Some(9));
    finding(&topology, FindingKind::Suspect, "sys/devices/system/node/node8/distance");
}

#[test]
fn columns_are_the_online_nodes() {
    let root = sparse();
    // Node 3 goes offline and its directory stays: no column for it any more.
    root.file(&format!("{NODE}/online"), "0,8,250");
    root.file(&format!("{NODE}/node0/distance"), "10 30 40");
    root.file(&format!("{NODE}/node8/distance"), "30 10 40");
    root.file(&format!("{NODE}/node250/distance"), "40 40 10");
    root.remove(&format!("{NODE}/node3/distance"));
    let topology = root.read();
    assert_eq!(topology.distance(8, 250), Some(40));
    assert_eq!(topology.distance(3, 0), None);
    finding(&topology, FindingKind::Contradictory, "sys/devices/system/node/online");
    // Without the file the columns are the directories.
    let root = sparse();
    root.remove(&format!("{NODE}/online"));
    assert_eq!(root.read().distance(0, 250), Some(40));
}

#[test]
fn cpus_in_no_node_and_in_two() {
    let root = Root::flat(4);
    root.node(0, "0-1", 1, "10 20");
    root.node(1, "1-2", 1, "20 10");
    let topology = root.read();
    let node = |cpu| topology.pu(cpu).unwrap().node;
    assert_eq!([node(0), node(1), node(2), node(3)], [Some(0), Some(0), Some(1), None]);
    let suspect = finding(&topology, FindingKind::Suspect, "sys/devices/system/node");
    assert!(suspect.message.ends_with(": 3"), "{suspect}");
    finding(&topology, FindingKind::Contradictory, "sys/devices/system/node/node1/cpulist");
}

#[test]
fn lists_that_name_offline_cpus_are_cut_and_kept_raw() {
    let root = Root::flat(4);
    root.file("sys/devices/system/cpu/online", "0,2");
    root.node(0, "0-3", 5, "10");
    root.file(&format!("{NODE}/node0/cpumap"), "5");
    let topology = root.read();
    let node = &topology.numa_nodes[0];
    assert_eq!(
        (list(node.cpus.as_ref()), list(node.cpus_listed.as_ref())),
        ("0,2".into(), "0-3".into())
    );
    assert!(!topology.findings.iter().any(|f| f.kind == FindingKind::Contradictory));
    root.file(&format!("{NODE}/node0/cpumap"), "1");
    let topology = root.read();
    finding(&topology, FindingKind::Contradictory, "sys/devices/system/node/node0/cpulist");
}

#[test]
fn no_node_directory_is_unknown_and_not_one_node() {
    let topology = Root::flat(2).read();
    assert!(topology.numa_nodes.is_empty());
    assert_eq!(topology.pu(0).unwrap().node, None);
    finding(&topology, FindingKind::Missing, "sys/devices/system/node");
}
