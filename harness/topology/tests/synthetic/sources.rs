//! Where the sets of CPUs come from, which ones may be used, and the forms of output.

use serde_json::Value;
use topology::{AllowedSource, Cpuid, CpuidUnavailable, FindingKind, OnlineSource, TopologyError};

use crate::builder::{CPU, NODE, Root, finding, list};

#[test]
fn masks_only() {
    let root = Root::flat(4);
    for cpu in 0..4 {
        let (dir, half) = (format!("{CPU}/cpu{cpu}"), if cpu < 2 { "3" } else { "0000000c" });
        root.cache(cpu, 0, 3, "Unified", "1M", "");
        root.remove(&format!("{dir}/cache/index0/shared_cpu_list"));
        root.remove(&format!("{dir}/topology/core_cpus_list"));
        root.file(&format!("{dir}/cache/index0/shared_cpu_map"), half);
        root.file(&format!("{dir}/topology/thread_siblings"), half);
    }
    root.dir(&format!("{NODE}/node0"));
    root.file(&format!("{NODE}/node0/cpumap"), "00000000,0000000f");
    let topology = root.read();
    let cores: Vec<String> = topology.cores.iter().map(|core| core.cpus.to_string()).collect();
    assert_eq!(cores, ["0-1", "2-3"]);
    assert_eq!(topology.l3_groups()[1].cpus.to_string(), "2-3");
    assert_eq!(list(topology.numa_nodes[0].cpus.as_ref()), "0-3");
}

#[test]
fn older_names_and_a_damaged_list_beside_a_good_mask() {
    let root = Root::flat(4);
    for cpu in 0..4 {
        let topology = format!("{CPU}/cpu{cpu}/topology");
        root.file(&format!("{topology}/core_cpus_list"), "rubbish");
        root.file(&format!("{topology}/thread_siblings_list"), if cpu < 2 { "0-1" } else { "2-3" });
    }
    let topology = root.read();
    assert_eq!(topology.cores.len(), 2);
    let damaged = finding(
        &topology,
        FindingKind::Damaged,
        "sys/devices/system/cpu/cpu0/topology/core_cpus_list",
    );
    assert_eq!(damaged.more, 3, "{damaged}");
}

#[test]
fn the_online_set_comes_from_the_next_best_source() {
    let root = Root::flat(4);
    let source = |root: &Root| {
        let topology = root.read();
        (topology.cpus.online.to_string(), topology.cpus.online_source)
    };
    assert_eq!(source(&root), ("0-3".into(), OnlineSource::CpuOnline));
    root.remove(&format!("{CPU}/online"));
    assert_eq!(source(&root), ("0-3".into(), OnlineSource::EachTopology));
    // CPU 0 often has no such file.
    root.files([
        ("sys/devices/system/cpu/cpu1/online", "1\n"),
        ("sys/devices/system/cpu/cpu2/online", "0\n"),
        ("sys/devices/system/cpu/cpu3/online", "1\n"),
    ]);
    assert_eq!(source(&root), ("0-1,3".into(), OnlineSource::EachOnline));
    assert_eq!(root.read().cpus.offline.to_string(), "2");
    for cpu in 0..4 {
        root.remove(&format!("{CPU}/cpu{cpu}"));
        root.dir(&format!("{CPU}/cpu{cpu}"));
    }
    assert_eq!(source(&root), ("0-3".into(), OnlineSource::EachDirectory));
    finding(&root.read(), FindingKind::Suspect, CPU);
    root.remove(CPU);
    root.file("proc/cpuinfo", "processor : 0\n\nprocessor : 5\n");
    assert_eq!(source(&root), ("0,5".into(), OnlineSource::CpuInfo));
    let topology = root.read();
    finding(&topology, FindingKind::Suspect, "proc/cpuinfo");
    assert!(topology.cores.is_empty() && topology.packages.is_empty());
}

#[test]
fn offline_cpus_are_cut_from_everything() {
    let root = Root::flat(8);
    root.file(&format!("{CPU}/online"), "0-3,6");
    root.file(&format!("{CPU}/present"), "0-9");
    root.file(&format!("{CPU}/possible"), "0-63");
    for cpu in 0..8 {
        root.cpu(cpu, 0, cpu / 2, &format!("{}-{}", cpu & !1, cpu | 1));
        root.cache(cpu, 0, 3, "Unified", "8M", "0-7");
        root.file(&format!("{CPU}/cpu{cpu}/cpu_capacity"), "1024");
    }
    let topology = root.read();
    assert_eq!(topology.cpus.offline.to_string(), "4-5,7-9");
    assert_eq!(list(topology.cpus.possible.as_ref()), "0-63");
    let cores: Vec<String> = topology.cores.iter().map(|core| core.cpus.to_string()).collect();
    assert_eq!(cores, ["0-1", "2-3", "6"]);
    assert_eq!((topology.smt.narrowest, topology.smt.widest), (Some(1), Some(2)));
    assert_eq!(topology.packages[0].cpus.to_string(), "0-3,6");
    assert_eq!(topology.l3_groups()[0].cpus.to_string(), "0-3,6");
    assert_eq!(topology.cpu_capacity[0].cpus.to_string(), "0-3,6");
    assert_eq!(topology.pu(7), None);
}

#[test]
fn isolated_and_tickless_cpus() {
    let root = Root::flat(4);
    root.file(&format!("{CPU}/isolated"), "2-3\n");
    root.file(&format!("{CPU}/nohz_full"), "  (null)\n");
    let topology = root.read();
    assert_eq!(list(topology.cpus.isolated.as_ref()), "2-3");
    assert_eq!(list(topology.cpus.nohz_full.as_ref()), "");
    assert_eq!(topology.usable().to_string(), "0-3", "isolated CPUs may be used, by pinning");
    root.file(&format!("{CPU}/nohz_full"), "3,9\n");
    let topology = root.read();
    assert_eq!(list(topology.cpus.nohz_full.as_ref()), "3,9");
    finding(&topology, FindingKind::Suspect, "sys/devices/system/cpu/nohz_full");
}

#[test]
fn the_status_file_says_what_is_allowed() {
    let root = Root::flat(4);
    assert_eq!(root.read().cpus.allowed, None);
    root.file(
        "proc/self/status",
        "Name:\tx\nCpus_allowed:\tc\nCpus_allowed_list:\t2-7\nMems_allowed_list:\t0,4\n",
    );
    let topology = root.read();
    assert_eq!(topology.usable().to_string(), "2-3");
    let allowed = topology.cpus.allowed.unwrap();
    assert_eq!(
        (allowed.cpus.to_string().as_str(), allowed.sources),
        ("2-7", vec![AllowedSource::StatusFile])
    );
    assert_eq!(list(topology.node_sets.allowed.as_ref()), "0,4");
    root.file("proc/self/status", "Cpus_allowed_list:\t17\n");
    let topology = root.read();
    assert!(topology.usable().is_empty() && topology.pus().is_empty());
    finding(&topology, FindingKind::Contradictory, CPU);
    assert!(
        topology.text().contains("usable       none (0; allowed by status_file)"),
        "{topology}"
    );
}

#[test]
fn contradictions_between_the_sets() {
    let root = Root::flat(4);
    root.file(&format!("{CPU}/present"), "0-2");
    root.file(&format!("{CPU}/online"), "0-5");
    let topology = root.read();
    assert_eq!(topology.cpus.online.to_string(), "0-5");
    finding(&topology, FindingKind::Contradictory, "sys/devices/system/cpu/present");
    let missing = finding(&topology, FindingKind::Missing, CPU);
    assert!(missing.message.ends_with("4-5"), "{missing}");
    let pu = topology.pu(5).unwrap();
    assert_eq!((pu.core, pu.package, pu.smt_rank), (None, None, None));
}

#[test]
fn roots_that_are_none() {
    let root = Root::new();
    let error = root.try_read().unwrap_err();
    assert_eq!(error, TopologyError::RootEmpty { root: root.path() });
    assert!(error.to_string().contains("sys/devices/system/cpu"), "{error}");
    root.file("file", "");
    for (path, errno) in
        [("none", Some(libc::ENOENT)), ("file", None), ("file/x", Some(libc::ENOTDIR))]
    {
        let error = topology::Topology::from_root(&root.at(path)).unwrap_err();
        assert_eq!(error.errno(), errno, "{error:?}");
        assert!(error.to_string().contains(path), "{error}");
    }
    let device = topology::Topology::from_root("/dev/zero".as_ref()).unwrap_err();
    assert_eq!(device, TopologyError::RootNotADirectory { root: "/dev/zero".into() });
    // A directory for the CPUs, and nothing in it.
    root.dir(CPU);
    let error = root.try_read().unwrap_err();
    assert!(
        matches!(&error, TopologyError::NoOnlineCpus { tried, .. } if tried.len() == 3),
        "{error}"
    );
    assert!(error.to_string().contains("cpuinfo names no processor"), "{error}");
}

#[test]
fn nothing_of_this_host_gets_into_another_tree() {
    let topology = Root::flat(2).read();
    assert!(!topology.this_host);
    assert_eq!(topology.cpuid, Cpuid::Unavailable(CpuidUnavailable::NotThisHost));
    assert_eq!((topology.page_bytes, &topology.cpuinfo, &topology.cgroup), (None, &None, &None));
}

#[test]
fn the_json_form() {
    let root = Root::flat(4);
    root.node(7, "0-3", 1 << 20, "10");
    root.cache(0, 0, 3, "Unified", "8M", "0-3");
    let topology = root.read();
    let json: Value = serde_json::to_value(&topology).unwrap();
    assert_eq!(json["cpus"]["online"], "0-3");
    assert_eq!(json["cpus"]["online_source"], "cpu/online");
    assert_eq!(json["cpus"]["present"], Value::Null);
    assert_eq!(json["numa_nodes"][0]["id"], 7);
    assert_eq!(json["distances"]["matrix"][0][0], 10);
    assert_eq!(json["caches"][0]["kind"], "unified");
    assert_eq!(json["cores"][3]["cpus"], "3");
    assert_eq!(json["cpuid"]["unavailable"], "not_this_host");
    assert_eq!(json["cgroup"], Value::Null);
    assert_eq!(topology, root.read(), "reading twice gives the same");
}

#[test]
fn the_text_form() {
    let root = Root::flat(4);
    root.file(&format!("{CPU}/present"), "0-5");
    root.file(&format!("{CPU}/isolated"), "3");
    root.node(0, "0-3", 3 << 19, "10 21");
    root.node(9, "", 0, "21 10");
    (0..4).for_each(|cpu| root.cache(cpu, 0, 3, "Unified", "1280K", "0-3"));
    let text = root.read().to_string();
    let lines = [
        "1 package, 2 NUMA nodes, 1 L3 group, 4 cores, 4 CPUs online",
        "  offline      4-5 (2)",
        "  isolated     3 (1)",
        "  usable       0-3 (4; nothing restricts them)",
        "  package 0    4 cores, CPUs 0-3",
        "  each core    1 thread online",
        "  node 0       1.5 GiB, CPUs 0-3",
        "  node 9       no memory, no CPUs",
        "    from 9       21  10",
        "  L3           1 × 1.25 MiB",
        "  L3 groups    1: 0-3",
        "  cache line   64 bytes",
    ];
    for line in lines {
        assert!(text.lines().any(|have| have == line), "{line:?} is not in\n{text}");
    }
}
