//! Packages, cores, SMT, caches and kinds.

use topology::{CoreBasis, FindingKind, KindBasis, Topology};

use crate::builder::{CPU, Root, finding};

fn cores(topology: &Topology) -> Vec<String> {
    topology.cores.iter().map(|core| core.cpus.to_string()).collect()
}

fn groups(topology: &Topology) -> Vec<String> {
    topology.l3_groups().iter().map(|cache| cache.cpus.to_string()).collect()
}

/// Two packages of two cores of two threads. Packages take turns in the numbering, threads come
/// last, and the core numbers repeat in each package.
fn interleaved() -> Root {
    let root = Root::new();
    root.file(&format!("{CPU}/online"), "0-7\n");
    for cpu in 0..8 {
        let (package, core, first) = (cpu % 2, cpu / 2 % 2, cpu % 4);
        root.cpu(cpu, i64::from(package), core, &format!("{first},{}", first + 4));
        let half = if package == 0 { "0,2,4,6" } else { "1,3,5,7" };
        root.cache(cpu, 0, 1, "Data", "48K", &format!("{first},{}", first + 4));
        root.cache(cpu, 1, 1, "Instruction", "32K", &format!("{first},{}", first + 4));
        root.cache(cpu, 2, 2, "Unified", "2048K", &format!("{first},{}", first + 4));
        root.cache(cpu, 3, 3, "Unified", "32M", half);
    }
    root
}

#[test]
fn smt_with_interleaved_numbering() {
    let topology = interleaved().read();
    assert!(topology.findings.iter().all(|f| f.path == "/sys/devices/system/node"));
    assert_eq!(cores(&topology), ["0,4", "1,5", "2,6", "3,7"]);
    let packages: Vec<String> = topology.packages.iter().map(|p| p.cpus.to_string()).collect();
    assert_eq!(packages, ["0,2,4,6", "1,3,5,7"]);
    assert_eq!(groups(&topology), ["0,2,4,6", "1,3,5,7"]);
    assert_eq!((topology.smt.narrowest, topology.smt.widest), (Some(2), Some(2)));
    let pu = topology.pu(6).unwrap();
    assert_eq!(
        (pu.core, pu.package, pu.smt_rank, pu.l3_group),
        (Some(2), Some(0), Some(1), Some(0))
    );
    let pu = topology.pu(1).unwrap();
    assert_eq!(
        (pu.core, pu.package, pu.smt_rank, pu.l3_group),
        (Some(1), Some(1), Some(0), Some(1))
    );
    assert_eq!(topology.pu(8), None);
    let mut order = topology.pus();
    order.sort_by_key(|pu| (pu.smt_rank, pu.package, pu.cpu));
    assert_eq!(order.iter().map(|pu| pu.cpu).collect::<Vec<_>>(), [0, 2, 1, 3, 4, 6, 5, 7]);
}

#[test]
fn caches_are_listed_once_with_their_sizes() {
    let topology = interleaved().read();
    let names: Vec<String> = topology.caches.iter().map(topology::Cache::name).collect();
    let want = ["L1d", "L1i", "L2"].iter().flat_map(|name| [*name; 4]);
    assert_eq!(names, want.chain(["L3"; 2]).collect::<Vec<_>>());
    let sizes: Vec<u64> = topology.caches.iter().filter_map(|cache| cache.size_bytes).collect();
    assert_eq!((sizes[0], sizes[8], sizes[13]), (48 << 10, 2 << 20, 32 << 20));
    assert_eq!((topology.line_bytes(), topology.line_sizes()), (Some(64), vec![64]));
}

#[test]
fn cpu_numbers_beyond_1024() {
    let root = Root::new();
    root.file(&format!("{CPU}/online"), "1030-1037");
    root.file(&format!("{CPU}/kernel_max"), "2047");
    for cpu in 1030..1038 {
        let first = cpu & !1;
        root.cpu(cpu, 300, first, &format!("{first}-{}", first + 1));
        root.cache(cpu, 3, 3, "Unified", "8M", "1030-1037");
    }
    let topology = root.read();
    assert_eq!(topology.usable().to_string(), "1030-1037");
    assert_eq!(cores(&topology), ["1030-1031", "1032-1033", "1034-1035", "1036-1037"]);
    assert_eq!(topology.packages[0].id, Some(300));
    assert_eq!(topology.cpus.kernel_max, Some(2047));
    assert_eq!(topology.pu(1037).unwrap().smt_rank, Some(1));
}

#[test]
fn packages_without_a_number_are_grouped_by_siblings() {
    let root = Root::flat(4);
    for (cpu, mask) in [(0, "3"), (1, "3"), (2, "c"), (3, "0000000c")] {
        root.file(&format!("{CPU}/cpu{cpu}/topology/physical_package_id"), "-1\n");
        root.file(&format!("{CPU}/cpu{cpu}/topology/core_siblings"), mask);
    }
    let topology = root.read();
    let packages: Vec<_> = topology.packages.iter().map(|p| (p.id, p.cpus.to_string())).collect();
    assert_eq!(packages, [(None, "0-1".to_owned()), (None, "2-3".to_owned())]);
    assert_eq!(topology.pu(3).unwrap().package, Some(1));
    finding(
        &topology,
        FindingKind::Missing,
        "sys/devices/system/cpu/cpu0/topology/physical_package_id",
    );
}

#[test]
fn packages_that_nothing_names_are_unknown() {
    let root = Root::flat(2);
    for cpu in 0..2 {
        root.file(&format!("{CPU}/cpu{cpu}/topology/physical_package_id"), "-1\n");
    }
    let topology = root.read();
    assert!(topology.packages.is_empty());
    assert_eq!(topology.pu(0).unwrap().package, None);
    assert_eq!(topology.cores[0].package, None);
    finding(
        &topology,
        FindingKind::Missing,
        "sys/devices/system/cpu/cpu0/topology/physical_package_id",
    );
}

#[test]
fn package_numbers_with_gaps_stay_names() {
    let root = Root::flat(3);
    for (cpu, id) in [(0, "8442"), (1, "36"), (2, "8442")] {
        root.file(&format!("{CPU}/cpu{cpu}/topology/physical_package_id"), id);
    }
    let topology = root.read();
    let packages: Vec<_> = topology.packages.iter().map(|p| (p.id, p.cpus.to_string())).collect();
    assert_eq!(packages, [(Some(36), "1".to_owned()), (Some(8442), "0,2".to_owned())]);
}

#[test]
fn core_numbers_that_repeat_inside_a_package_join_nothing() {
    let root = Root::flat(4);
    for cpu in 0..4 {
        root.file(&format!("{CPU}/cpu{cpu}/topology/core_id"), "0");
    }
    let topology = root.read();
    assert_eq!(cores(&topology), ["0", "1", "2", "3"]);
    assert!(topology.cores.iter().all(|core| core.basis == CoreBasis::Siblings));
}

#[test]
fn without_siblings_cores_come_from_numbers() {
    let root = Root::flat(4);
    for cpu in 0..4 {
        root.remove(&format!("{CPU}/cpu{cpu}/topology/core_cpus_list"));
        root.file(&format!("{CPU}/cpu{cpu}/topology/core_id"), &(cpu % 2).to_string());
    }
    let topology = root.read();
    assert_eq!(cores(&topology), ["0,2", "1,3"]);
    assert!(topology.cores.iter().all(|core| core.basis == CoreBasis::Numbers));
    root.remove(&format!("{CPU}/cpu1/topology/core_id"));
    let topology = root.read();
    assert_eq!(cores(&topology), ["0,2", "3"]);
    assert_eq!((topology.pu(1).unwrap().core, topology.pu(1).unwrap().smt_rank), (None, None));
    finding(&topology, FindingKind::Missing, "sys/devices/system/cpu/cpu1/topology/core_cpus_list");
}

#[test]
fn siblings_that_contradict_each_other_are_noted() {
    let root = Root::flat(4);
    root.file(&format!("{CPU}/cpu0/topology/core_cpus_list"), "0-1");
    let topology = root.read();
    assert_eq!(cores(&topology), ["0-1", "2", "3"]);
    let at = "sys/devices/system/cpu/cpu1/topology/core_cpus_list";
    finding(&topology, FindingKind::Contradictory, at);
    // A set without its own CPU is worth nothing.
    root.file(&format!("{CPU}/cpu3/topology/core_cpus_list"), "2");
    let topology = root.read();
    assert_eq!(topology.cores.last().unwrap().basis, CoreBasis::Numbers);
    finding(&topology, FindingKind::Damaged, "sys/devices/system/cpu/cpu3/topology/core_cpus_list");
}

#[test]
fn dies_and_clusters_where_the_kernel_knows_them() {
    let root = Root::flat(4);
    for cpu in 0..4 {
        let dir = format!("{CPU}/cpu{cpu}/topology");
        root.file(&format!("{dir}/die_id"), "-1");
        root.file(&format!("{dir}/die_cpus_list"), &cpu.to_string());
        root.file(&format!("{dir}/cluster_id"), if cpu < 2 { "65535" } else { "9" });
        root.file(&format!("{dir}/cluster_cpus"), if cpu < 2 { "3" } else { "c" });
    }
    let topology = root.read();
    assert_eq!(topology.dies, None);
    let clusters = topology.clusters.unwrap();
    assert_eq!(
        (clusters.len(), clusters[0].id, clusters[0].cpus.to_string().as_str()),
        (1, 9, "2-3")
    );
}

#[test]
fn dies_that_contradict_each_other_are_noted() {
    let root = Root::flat(4);
    for cpu in 0..4 {
        let dir = format!("{CPU}/cpu{cpu}/topology");
        root.file(&format!("{dir}/die_id"), "0");
        root.file(&format!("{dir}/die_cpus_list"), if cpu == 3 { "0,3" } else { "0-2" });
    }
    let topology = root.read();
    let dies: Vec<String> =
        topology.dies.iter().flatten().map(|die| die.cpus.to_string()).collect();
    assert_eq!(dies, ["0-2", "3"]);
    root.file(&format!("{CPU}/cpu2/topology/die_cpus_list"), "1-2");
    let at = "sys/devices/system/cpu/cpu2/topology/die_cpus_list";
    finding(&root.read(), FindingKind::Contradictory, at);
}

#[test]
fn cores_outside_of_the_l3_have_their_l2_as_group() {
    let root = Root::flat(6);
    for cpu in 0..6 {
        root.cache(cpu, 0, 1, "Data", "32K", &cpu.to_string());
        root.cache(cpu, 1, 2, "Unified", "2M", if cpu < 4 { "0-3" } else { "4-5" });
        if cpu < 4 {
            root.cache(cpu, 2, 3, "Unified", "24M", "0-3");
        }
    }
    let topology = root.read();
    assert_eq!(groups(&topology), ["0-3", "4-5"]);
    assert_eq!(topology.l3_groups()[0].level, 3);
    assert_eq!(topology.l3_groups()[1].level, 2);
    assert_eq!(topology.pu(5).unwrap().l3_group, Some(1));
}

#[test]
fn caches_that_say_too_little() {
    let root = Root::flat(2);
    for cpu in 0..2 {
        root.cache(cpu, 0, 1, "Data", "32K", &cpu.to_string());
        root.cache(cpu, 1, 2, "Unified", "0K", "0-1");
        root.cache(cpu, 2, 3, "Unified", "8M", "0-1");
        root.file(&format!("{CPU}/cpu{cpu}/cache/index0/coherency_line_size"), "0");
        root.remove(&format!("{CPU}/cpu{cpu}/cache/index2/shared_cpu_list"));
    }
    let topology = root.read();
    assert_eq!(topology.caches[0].line_bytes, None);
    assert_eq!(topology.line_bytes(), None);
    assert_eq!(topology.caches[2].size_bytes, None);
    assert!(!topology.caches[3].sharing_known);
    assert_eq!(groups(&topology), ["0-1"], "the L2: nothing says who shares the L3");
    assert_eq!(topology.l3_groups()[0].level, 2);
    finding(
        &topology,
        FindingKind::Missing,
        "sys/devices/system/cpu/cpu0/cache/index0/coherency_line_size",
    );
    finding(&topology, FindingKind::Damaged, "sys/devices/system/cpu/cpu0/cache/index1/size");
    finding(
        &topology,
        FindingKind::Missing,
        "sys/devices/system/cpu/cpu0/cache/index2/shared_cpu_list",
    );
}

#[test]
fn caches_that_contradict_each_other_are_noted() {
    let root = Root::flat(2);
    root.cache(0, 0, 3, "Unified", "8M", "0-1");
    root.cache(1, 0, 3, "Unified", "16M", "0-1");
    let topology = root.read();
    assert_eq!(topology.caches.len(), 1);
    assert_eq!(topology.caches[0].size_bytes, Some(8 << 20));
    finding(&topology, FindingKind::Contradictory, "sys/devices/system/cpu/cpu1/cache/index0");
}

#[test]
fn kinds_come_from_the_best_source() {
    let root = Root::flat(4);
    let kinds = |root: &Root| {
        let topology = root.read();
        let kinds = topology.kinds.iter().map(|kind| (kind.name.clone(), kind.cpus.to_string()));
        (topology.kinds.first().map(|kind| kind.basis), kinds.collect::<Vec<_>>())
    };
    let pair = |a: (&str, &str), b: (&str, &str)| {
        [a, b].map(|(name, cpus)| (name.to_owned(), cpus.to_owned())).to_vec()
    };
    assert_eq!(kinds(&root), (None, vec![]));
    for cpu in 0..4 {
        let base = if cpu < 2 { "2000000" } else { "1400000" };
        root.file(&format!("{CPU}/cpu{cpu}/cpufreq/base_frequency"), base);
    }
    let want = pair(("base 1400000 kHz", "2-3"), ("base 2000000 kHz", "0-1"));
    assert_eq!(kinds(&root), (Some(KindBasis::BaseFrequency), want));
    for cpu in 0..4 {
        let capacity = if cpu == 3 { "512" } else { "1024" };
        root.file(&format!("{CPU}/cpu{cpu}/cpu_capacity"), capacity);
    }
    let want = pair(("capacity 512", "3"), ("capacity 1024", "0-2"));
    assert_eq!(kinds(&root), (Some(KindBasis::Capacity), want));
    let entry = |cpu: u32, part: &str| {
        format!("processor\t: {cpu}\nCPU implementer\t: 0x41\nCPU part\t: {part}\n\n")
    };
    let info: String =
        (0..4).map(|cpu| entry(cpu, if cpu < 1 { "0xd87" } else { "0xd85" })).collect();
    root.file("proc/cpuinfo", &info);
    let want = pair(("0x41:0xd85", "1-3"), ("0x41:0xd87", "0"));
    assert_eq!(kinds(&root), (Some(KindBasis::Part), want));
    root.file("sys/devices/cpu_core/cpus", "0,2");
    root.file("sys/devices/cpu_atom/cpus", "1,3,77");
    let want = pair(("cpu_core", "0,2"), ("cpu_atom", "1,3"));
    assert_eq!(kinds(&root), (Some(KindBasis::CounterUnit), want));
}

#[test]
fn the_state_of_smt_is_compared_with_the_cores() {
    let root = interleaved();
    root.file(&format!("{CPU}/smt/active"), "1");
    root.file(&format!("{CPU}/smt/control"), "on\n");
    let topology = root.read();
    assert_eq!((topology.smt.active, topology.smt.control.as_deref()), (Some(true), Some("on")));
    let at = "sys/devices/system/cpu/smt/active";
    assert!(!topology.findings.iter().any(|finding| finding.path.ends_with("smt/active")));
    root.file(at, "0");
    finding(&root.read(), FindingKind::Contradictory, at);
    root.file(at, "2");
    let topology = root.read();
    assert_eq!(topology.smt.active, None);
    finding(&topology, FindingKind::Damaged, at);
}

#[test]
fn cpuinfo_of_three_architectures() {
    let root = Root::flat(2);
    assert_eq!(root.read().cpuinfo, None);
    let x86 = "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: A: B\nmicrocode\t: 0x2b\n\
               \nprocessor\t: 1\nmodel name\t: other\n";
    root.file("proc/cpuinfo", x86);
    let info = root.read().cpuinfo.unwrap();
    assert_eq!(info.model_name.as_deref(), Some("A: B"));
    assert_eq!(info.microcode.as_deref(), Some("0x2b"));
    assert_eq!(info.vendor.as_deref(), Some("GenuineIntel"));
    assert_eq!(info.processors.to_string(), "0-1");
    root.file("proc/cpuinfo", "processor 0: version = 00,  machine = 3931\n\ncpu number : 1\n");
    let info = root.read().cpuinfo.unwrap();
    assert_eq!((info.model_name.as_deref(), info.processors.len()), (Some("3931"), 2));
    root.file("proc/cpuinfo", "processor : 0\ncpu : POWER9\n");
    let info = root.read().cpuinfo.unwrap();
    assert_eq!((info.model_name.as_deref(), info.microcode), (Some("POWER9"), None));
}
