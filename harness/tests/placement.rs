//! Placements, thread counts and memory policies on a machine of two packages, made up here.

use std::fs;
use std::path::Path;

use harness::memory::Policy;
use harness::placement::{Placement, auto_threads};
use harness::workload::Memory;
use topology::Topology;

fn write(root: &Path, path: &str, text: &str) {
    let file = root.join(path);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, format!("{text}\n")).unwrap();
}

/// Two packages with a node each (numbers 0 and 4), two L3 groups a package, two cores a group,
/// two threads a core: CPU n and its sibling n + 8. A third node, 7, has memory only.
fn two_packages() -> Topology {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    write(root, "sys/devices/system/cpu/online", "0-15");
    for cpu in 0..16 {
        let core = cpu % 8;
        let cpu_directory = format!("sys/devices/system/cpu/cpu{cpu}");
        let siblings = format!("{core},{}", core + 8);
        let group = core / 2 * 2;
        let under_l3 = format!("{group}-{},{}-{}", group + 1, group + 8, group + 9);
        for (file, text) in [
            ("topology/physical_package_id", (core / 4).to_string()),
            ("topology/core_id", (core % 4).to_string()),
            ("topology/thread_siblings_list", siblings.clone()),
            ("cache/index0/level", "1".into()),
            ("cache/index0/type", "Data".into()),
            ("cache/index0/size", "32K".into()),
            ("cache/index0/shared_cpu_list", siblings),
            ("cache/index3/level", "3".into()),
            ("cache/index3/type", "Unified".into()),
            ("cache/index3/size", "16384K".into()),
            ("cache/index3/shared_cpu_list", under_l3),
        ] {
            write(root, &format!("{cpu_directory}/{file}"), &text);
        }
    }
    let nodes = [(0, "0-3,8-11", "10 20 40"), (4, "4-7,12-15", "20 10 30"), (7, "", "40 30 10")];
    write(root, "sys/devices/system/node/online", "0,4,7");
    for (node, cpus, distances) in nodes {
        let directory = format!("sys/devices/system/node/node{node}");
        write(root, &format!("{directory}/cpulist"), cpus);
        write(root, &format!("{directory}/distance"), distances);
        write(root, &format!("{directory}/meminfo"), &format!("Node {node} MemTotal: 1024 kB"));
    }
    Topology::from_root(root).unwrap()
}

fn order(topology: &Topology, placement: &str) -> Vec<u32> {
    placement.parse::<Placement>().unwrap().order(topology).unwrap()
}

#[test]
fn each_policy_goes_where_it_says() {
    let machine = two_packages();
    // Siblings, then the group, the node, the package.
    let compact = [0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15];
    assert_eq!(order(&machine, "compact"), compact);
    // The same over cores, and second threads when every core has one.
    let smt_last = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];
    assert_eq!(order(&machine, "smt-last"), smt_last);
    // Packages in turn, groups in turn, cores before siblings.
    let scatter = [0, 4, 2, 6, 1, 5, 3, 7, 8, 12, 10, 14, 9, 13, 11, 15];
    assert_eq!(order(&machine, "scatter"), scatter);
    assert_eq!(order(&machine, "same-l3"), [0, 1, 8, 9]);
    assert_eq!(order(&machine, "cross-l3")[..4], [0, 2, 1, 3]);
    assert_eq!(order(&machine, "cross-node")[..4], [0, 4, 1, 5]);
    assert_eq!(order(&machine, "cpus=9,3"), [9, 3]);
    let cpus = |placement: &str, threads| {
        placement.parse::<Placement>().unwrap().cpus(&machine, threads).unwrap()
    };
    assert_eq!(cpus("same-l3", 6), [0, 1, 8, 9, 0, 1], "begins again");
    let absent = Placement::Cpus(vec![16]).order(&machine).unwrap_err();
    assert_eq!(absent.code, "cpu_not_usable");
}

#[test]
fn thread_counts_stand_at_the_borders() {
    let machine = two_packages();
    // Powers of two; an L3 group is 4, a node and a package 8, all cores 8, all CPUs 16.
    let expected = [1, 2, 3, 4, 5, 7, 8, 9, 15, 16];
    assert_eq!(auto_threads(&machine, machine.parallelism()), expected);
    assert_eq!(auto_threads(&machine, 5), [1, 2, 3, 4, 5], "cut by a quota");
}

#[test]
fn memory_is_seen_from_the_thread() {
    let machine = two_packages();
    let policy = |memory: &str, node| memory.parse::<Memory>().unwrap().policy(&machine, node);
    assert_eq!(policy("local", Some(4)), Ok(Policy::Prefer(4)));
    assert_eq!(policy("local", None), Ok(Policy::FirstTouch));
    assert_eq!(policy("remote", Some(0)), Ok(Policy::Node(7)), "the farthest, 40");
    assert_eq!(policy("remote", Some(4)), Ok(Policy::Node(7)), "30 is farther than 20");
    assert_eq!(policy("remote", Some(7)), Ok(Policy::Node(0)));
    assert_eq!(policy("interleave", Some(0)), Ok(Policy::Interleave(vec![0, 4, 7])));
    assert_eq!(policy("node=4", Some(0)), Ok(Policy::Node(4)));
    for bad in ["", "near", "node=", "node=x", "node=-1"] {
        assert!(bad.parse::<Memory>().is_err(), "{bad}");
    }
}

#[test]
fn a_machine_of_one_node_has_no_remote_memory() {
    let host = Topology::this_host().unwrap();
    if host.numa_nodes.len() > 1 {
        println!("SKIPPED: this machine has several nodes");
        return;
    }
    for memory in [Memory::Remote, Memory::Interleave] {
        assert_eq!(memory.policy(&host, Some(0)).unwrap_err().code, "one_node");
    }
    assert_eq!(Placement::CrossNode.order(&host).unwrap_err().code, "one_node");
}
