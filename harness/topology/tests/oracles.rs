//! Saved trees of real machines against what is known of them, field by field.
//!
//! The trees and their oracles lie outside the repository, in `../shared/topology` seen from the
//! workspace; without that folder the tests say so and return.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Map, Value, json};
use topology::{CacheKind, CoreBasis, CpuGroup, CpuSet, Topology, ValueGroup};

/// Fields of an oracle that speak of the tree's origin or of files, and not of the machine.
const NOT_COMPARED: [&str; 10] = [
    "name",
    "description",
    "arch",
    "kind",
    "origin",
    "oracle_source",
    "verification",
    "root",
    "notes",
    "has_files",
];

fn folder() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/topology");
    if !folder.is_dir() {
        println!("SKIPPED: no saved trees at {}", folder.display());
        return None;
    }
    Some(folder)
}

/// Unpacks one tree and reads its oracle.
fn unpack(archive: &Path) -> (tempfile::TempDir, Value) {
    let dir = tempfile::tempdir().unwrap();
    let tar = Command::new("tar").arg("xzf").arg(archive).arg("-C").arg(dir.path()).status();
    assert!(tar.unwrap().success(), "cannot unpack {}", archive.display());
    let name = archive.to_str().unwrap().replace(".tar.gz", ".json");
    let oracle = serde_json::from_str(&fs::read_to_string(name).unwrap()).unwrap();
    (dir, oracle)
}

fn list(set: &CpuSet) -> Value {
    json!(set.to_string())
}

fn list_or_null(set: &Option<CpuSet>) -> Value {
    set.as_ref().map_or(Value::Null, list)
}

fn cpus(topology: &Topology) -> Value {
    let cpus = &topology.cpus;
    json!({
        "online": cpus.online.to_string(),
        "online_count": cpus.online.len(),
        "online_from": cpus.online_source.word(),
        "present": list_or_null(&cpus.present),
        "possible": list_or_null(&cpus.possible),
        "offline_of_known": cpus.offline.to_string(),
        "isolated": list_or_null(&cpus.isolated),
        "nohz_full": list_or_null(&cpus.nohz_full),
        "kernel_max": cpus.kernel_max,
    })
}

fn sockets(topology: &Topology) -> Value {
    let socket = |package: &topology::Package| {
        let id = package.id.map_or(-1, i64::from);
        json!({"id": id, "cpus": package.cpus.to_string()})
    };
    topology.packages.iter().map(socket).collect()
}

fn cores(topology: &Topology) -> Value {
    let core = |core: &topology::Core| {
        let socket = core.package.and_then(|at| topology.packages[at].id);
        json!({"cpus": core.cpus.to_string(), "core_id": core.core_id, "socket_id": socket})
    };
    topology.cores.iter().map(core).collect()
}

fn cores_basis(topology: &Topology) -> Value {
    let siblings = topology.cores.iter().all(|core| core.basis == CoreBasis::Siblings);
    let numbers = topology.cores.iter().all(|core| core.basis == CoreBasis::Numbers);
    match (siblings, numbers) {
        (true, false) => json!("thread_siblings/core_cpus masks"),
        (false, true) => json!("(physical_package_id, core_id): no sibling masks in the dump"),
        _ => json!("mixed or none"),
    }
}

fn groups(groups: &Option<Vec<CpuGroup>>) -> Value {
    match groups {
        None => Value::Null,
        Some(groups) => groups.iter().map(|group| list(&group.cpus)).collect(),
    }
}

fn nodes(topology: &Topology) -> Value {
    let node = |node: &topology::NumaNode| {
        let mut value = json!({
            "id": node.id,
            "cpus": list_or_null(&node.cpus),
            "mem_total_kb": node.mem_total_kb,
        });
        if let Some(listed) = &node.cpus_listed {
            value["cpulist_raw"] = list(listed);
        }
        value
    };
    topology.numa_nodes.iter().map(node).collect()
}

fn node_ids(topology: &Topology, which: impl Fn(&topology::NumaNode) -> Option<bool>) -> Value {
    let ids = topology.numa_nodes.iter().filter(|node| which(node) == Some(true));
    list(&CpuSet::from_ids(ids.map(|node| node.id)).unwrap())
}

fn node_files(topology: &Topology) -> Value {
    let sets = &topology.node_sets;
    let files = [
        ("online", &sets.online),
        ("possible", &sets.possible),
        ("has_cpu", &sets.has_cpu),
        ("has_memory", &sets.has_memory),
        ("has_normal_memory", &sets.has_normal_memory),
        ("has_generic_initiator", &sets.has_generic_initiator),
    ];
    let there =
        files.into_iter().filter_map(|(name, set)| Some((name.into(), list(set.as_ref()?))));
    let there: Map<String, Value> = there.collect();
    if there.is_empty() { Value::Null } else { Value::Object(there) }
}

fn distances(topology: &Topology) -> Value {
    serde_json::to_value(&topology.distances).unwrap()
}

fn caches(topology: &Topology) -> Value {
    let mut names: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for cache in &topology.caches {
        let kind = match cache.kind {
            CacheKind::Data => "Data",
            CacheKind::Instruction => "Instruction",
            CacheKind::Unified => "Unified",
        };
        names.entry(cache.name()).or_default().push(json!({
            "cpus": cache.cpus.to_string(),
            "type": kind,
            "size": cache.size_bytes,
            "line": cache.line_bytes,
            "id": cache.id,
        }));
    }
    json!(names)
}

fn values(groups: &[ValueGroup]) -> Value {
    if groups.is_empty() {
        return Value::Null;
    }
    let pairs = groups.iter().map(|group| (group.value.to_string(), list(&group.cpus)));
    Value::Object(pairs.collect())
}

fn cgroup(topology: &Topology) -> Value {
    let Some(cgroup) = &topology.cgroup else { return Value::Null };
    let mut out = Map::new();
    if let Some(cpuset) = &cgroup.cpuset {
        out.insert("cpuset_cpus".into(), list(&cpuset.cpus));
        out.insert("cpuset_file".into(), json!(cpuset.cpus_file));
        out.insert("cpuset_version".into(), json!(cpuset.version));
        out.insert("cpuset_mems".into(), list_or_null(&cpuset.mems));
        out.insert("usable_cpus".into(), list(topology.usable()));
    }
    if let Some(quota) = &cgroup.quota {
        out.insert("cpu_quota".into(), json!(quota.cpus));
        out.insert("cpu_quota_file".into(), json!(quota.file));
    }
    if out.is_empty() { Value::Null } else { Value::Object(out) }
}

/// The value of one oracle field, made from the topology; `None` for a field that is not known.
fn field(topology: &Topology, name: &str) -> Option<Value> {
    let info = topology.cpuinfo.as_ref();
    let numbered = topology.packages.iter().all(|package| package.id.is_some());
    Some(match name {
        "cpus" => cpus(topology),
        "sockets" => sockets(topology),
        "sockets_basis" if numbered => json!("physical_package_id"),
        "sockets_basis" => json!("siblings"),
        "cores" => cores(topology),
        "cores_basis" => cores_basis(topology),
        "core_count" => json!(topology.cores.len()),
        "threads_per_core" => json!({"min": topology.smt.narrowest, "max": topology.smt.widest}),
        "dies" => groups(&topology.dies),
        "clusters" => groups(&topology.clusters),
        "numa_nodes" => nodes(topology),
        "cpuless_nodes" => node_ids(topology, |node| node.is_cpuless()),
        "memoryless_nodes" => node_ids(topology, |node| node.is_memoryless()),
        "node_files" => node_files(topology),
        "distances" => distances(topology),
        "caches" => caches(topology),
        "line_sizes" => json!(topology.line_sizes()),
        "l1d_line_size" => json!(topology.line_bytes()),
        "cpu_capacity" => values(&topology.cpu_capacity),
        "base_frequency_khz" => values(&topology.base_frequency_khz),
        "cpuinfo_max_freq_khz" => values(&topology.max_frequency_khz),
        "cpu_model_in_cpuinfo" => json!(info.and_then(|info| info.model_name.clone())),
        "cpuinfo_processors" => json!(info.map(|info| info.processors.len())),
        "cgroup" => cgroup(topology),
        _ => return None,
    })
}

/// Every field that the topology can have; an oracle that leaves one out means `null` by it.
const FIELDS: [&str; 23] = [
    "cpus",
    "sockets",
    "sockets_basis",
    "cores",
    "cores_basis",
    "core_count",
    "threads_per_core",
    "dies",
    "clusters",
    "numa_nodes",
    "cpuless_nodes",
    "memoryless_nodes",
    "node_files",
    "distances",
    "caches",
    "line_sizes",
    "l1d_line_size",
    "cpu_capacity",
    "base_frequency_khz",
    "cpuinfo_max_freq_khz",
    "cpu_model_in_cpuinfo",
    "cpuinfo_processors",
    "cgroup",
];

/// Brings an oracle's value into the topology's terms, where these differ by design.
fn expected(name: &str, oracle: &Value) -> Value {
    let mut value = oracle.get(name).cloned().unwrap_or(Value::Null);
    match name {
        // Rows that cannot be used are kept raw in the oracle and are `None` here.
        "distances" if value["node_ids"].is_null() => Value::Null,
        "caches" => {
            // A line of 0 bytes means that the kernel does not know.
            let all = value.as_object_mut().unwrap().values_mut();
            for cache in all.flat_map(|caches| caches.as_array_mut().unwrap()) {
                if cache["line"] == 0 {
                    cache["line"] = Value::Null;
                }
            }
            value
        }
        "line_sizes" => {
            value.as_array_mut().unwrap().retain(|line| *line != 0);
            value
        }
        _ => value,
    }
}

/// Lists what differs between a topology and its oracle.
fn differences(topology: &Topology, oracle: &Value) -> Vec<String> {
    let mut out = Vec::new();
    for name in FIELDS {
        let (got, want) = (field(topology, name).unwrap(), expected(name, oracle));
        if got != want {
            out.push(format!("{name}:\n  got  {got}\n  want {want}"));
        }
    }
    for name in oracle.as_object().unwrap().keys() {
        if !NOT_COMPARED.contains(&name.as_str()) && field(topology, name).is_none() {
            out.push(format!("{name}: a field that this test does not compare"));
        }
    }
    if oracle.get("cgroup").is_none_or(|cgroup| cgroup.get("cpuset_cpus").is_none())
        && topology.usable() != &topology.cpus.online
    {
        out.push(format!("usable: got {}, want all online CPUs", topology.usable()));
    }
    out
}

/// Checks what must hold of any machine, whatever its oracle says.
fn check_places(name: &str, topology: &Topology) {
    let groups = topology.l3_groups();
    let pus = topology.pus();
    assert!(pus.iter().map(|pu| pu.cpu).eq(topology.usable().iter()), "{name}");
    for pu in pus {
        let core = &topology.cores[pu.core.unwrap()];
        assert_eq!(core.cpus.iter().nth(pu.smt_rank.unwrap()), Some(pu.cpu), "{name}");
        assert_eq!(core.package, pu.package, "{name}");
        assert!(topology.packages[pu.package.unwrap()].cpus.contains(pu.cpu), "{name}");
        let mut nodes = topology.numa_nodes.iter();
        let holds = |node: &&topology::NumaNode| node.cpus.as_ref().unwrap().contains(pu.cpu);
        assert_eq!(pu.node, nodes.find(holds).map(|node| node.id), "{name}");
        match pu.l3_group {
            Some(at) => assert!(groups[at].cpus.contains(pu.cpu), "{name}"),
            None => assert!(topology.caches.is_empty(), "{name}"),
        }
        assert_eq!(topology.pu(pu.cpu), Some(pu), "{name}");
    }
}

/// Compares the groups under a last-level cache with the highest level of the oracle's caches.
fn check_groups(name: &str, topology: &Topology, oracle: &Value) {
    let caches = oracle["caches"].as_object().unwrap();
    let last = caches.keys().filter(|name| !name.ends_with('i')).max();
    let want = last.map_or(Vec::new(), |last| {
        let caches = caches[last].as_array().unwrap().iter();
        caches.map(|cache| cache["cpus"].as_str().unwrap().to_owned()).collect()
    });
    let got: Vec<String> =
        topology.l3_groups().iter().map(|cache| cache.cpus.to_string()).collect();
    assert_eq!(got, want, "{name}");
}

/// Lists what differs where the archive is read as it is, from the oracle and from what was read
/// of the unpacked tree.
fn packed_differences(archive: &Path, unpacked: &Topology, oracle: &Value) -> Vec<String> {
    let mut packed = Topology::from_root(archive).unwrap();
    assert_eq!(packed.root, archive);
    packed.root.clone_from(&unpacked.root);
    let mut out = differences(&packed, oracle);
    if packed != *unpacked {
        let (packed, unpacked) = (packed.text(), unpacked.text());
        let others = packed.lines().zip(unpacked.lines()).filter(|(one, other)| one != other);
        out.extend(others.map(|(one, other)| format!("packed {one}\nunpacked {other}")));
        out.push("differs from the unpacked tree".to_owned());
    }
    out.iter().map(|line| format!("{}: {line}", archive.display())).collect()
}

#[test]
fn every_saved_tree_agrees_with_its_oracle() {
    let Some(folder) = folder() else { return };
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut archives: Vec<PathBuf> =
        entries.filter(|path| path.to_string_lossy().ends_with(".tar.gz")).collect();
    archives.sort();
    assert!(!archives.is_empty(), "the folder holds no tree");
    let mut wrong = Vec::new();
    for archive in &archives {
        let (dir, oracle) = unpack(archive);
        let name = oracle["name"].as_str().unwrap().to_owned();
        let topology = Topology::from_root(dir.path()).unwrap();
        let differences = differences(&topology, &oracle);
        let verdict = if differences.is_empty() { "agrees" } else { "DIFFERS" };
        println!(
            "{name}: {verdict} in {} fields; {} findings",
            FIELDS.len(),
            topology.findings.len()
        );
        for finding in &topology.findings {
            println!("    {finding}");
        }
        wrong.extend(differences.iter().map(|difference| format!("{name}: {difference}")));
        wrong.extend(packed_differences(archive, &topology, &oracle));
        check_places(&name, &topology);
        check_groups(&name, &topology, &oracle);
        assert!(!topology.to_string().is_empty());
    }
    println!("{} trees", archives.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_changed_tree_does_not_agree() {
    let Some(folder) = folder() else { return };
    let (dir, oracle) = unpack(&folder.join("xeon-2s-112t-snc2-pmem.tar.gz"));
    let changes = [
        ("sys/devices/system/cpu/online", "0-110", "cpus"),
        ("sys/devices/system/cpu/cpu7/topology/physical_package_id", "0", "sockets"),
        ("sys/devices/system/cpu/cpu0/topology/core_cpus_list", "0,2", "cores"),
        ("sys/devices/system/cpu/cpu0/cache/index3/size", "1K", "caches"),
        ("sys/devices/system/node/node4/meminfo", "Node 4 MemTotal: 1 kB", "numa_nodes"),
        ("sys/devices/system/node/node4/distance", "17 28 28 28 10 29", "distances"),
        ("sys/devices/system/cpu/cpu0/cpufreq/base_frequency", "1", "base_frequency_khz"),
    ];
    for (file, text, field) in changes {
        let path = dir.path().join(file);
        let original = fs::read(&path).unwrap();
        let mut permissions = fs::metadata(&path).unwrap().permissions();
        std::os::unix::fs::PermissionsExt::set_mode(&mut permissions, 0o644);
        fs::set_permissions(&path, permissions).unwrap();
        fs::write(&path, text).unwrap();
        let differences = differences(&Topology::from_root(dir.path()).unwrap(), &oracle);
        let seen = differences.iter().any(|line| line.starts_with(&format!("{field}:")));
        assert!(seen, "{file}: {differences:?}");
        fs::write(&path, original).unwrap();
    }
    assert!(differences(&Topology::from_root(dir.path()).unwrap(), &oracle).is_empty());
}
