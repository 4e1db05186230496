//! The topology: what was read, and the questions a placement asks.

use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};

use crate::caches::{self, Cache, CacheKind};
use crate::cgroup::{self, Cgroup};
use crate::cores::{self, Core, CpuGroup, Package};
use crate::cpuid::{self, Cpuid};
use crate::cpuinfo::{self, CpuInfo};
use crate::cpus::{self, Allowed, AllowedSource, CPU_DIR, Cpus, brief};
use crate::cpuset::CpuSet;
use crate::error::TopologyError;
use crate::finding::{Finding, FindingKind};
use crate::kinds::{self, CpuKind, Smt, ValueGroup};
use crate::nodes::{self, Distances, NodeSets, NumaNode};
use crate::process;
use crate::sysfs::Tree;

/// Holds the topology of one machine, as plain data.
///
/// Serialising it gives the JSON form: the fields under their own names, sets of CPUs as the
/// kernel's lists (`"0-3,8"`), `null` for what is not known.
///
/// ```no_run
/// use topology::Topology;
///
/// let saved = Topology::from_root("/tmp/saved-tree".as_ref())?;
/// for node in &saved.numa_nodes {
///     println!("node {}: {:?} KiB", node.id, node.mem_total_kb);
/// }
/// # Ok::<(), topology::TopologyError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Topology {
    /// The root that was read.
    #[serde(serialize_with = "lossy")]
    pub root: PathBuf,
    /// Whether the root is this host's own.
    pub this_host: bool,
    /// The sets of CPUs.
    pub cpus: Cpus,
    /// Packages (sockets) by number, those without a number last.
    pub packages: Vec<Package>,
    /// Cores by first CPU.
    pub cores: Vec<Core>,
    /// Dies by first CPU; `None` where the kernel does not say.
    pub dies: Option<Vec<CpuGroup>>,
    /// Clusters (cores with a shared L2 or fabric port); `None` where the kernel does not say.
    pub clusters: Option<Vec<CpuGroup>>,
    /// Simultaneous multithreading.
    pub smt: Smt,
    /// NUMA nodes by number. Empty: no source, treat the machine as one node.
    pub numa_nodes: Vec<NumaNode>,
    /// The sets of nodes that the kernel lists.
    pub node_sets: NodeSets,
    /// Distances between the online nodes; `None` where any row is missing or malformed.
    pub distances: Option<Distances>,
    /// Caches by level, kind and first CPU.
    pub caches: Vec<Cache>,
    /// Relative speed of CPUs, 1024 for the fastest; empty without a source.
    pub cpu_capacity: Vec<ValueGroup>,
    /// Base frequency in kHz; empty without a source.
    pub base_frequency_khz: Vec<ValueGroup>,
    /// Highest frequency in kHz; empty without a source.
    pub max_frequency_khz: Vec<ValueGroup>,
    /// Kinds of CPUs, two and more; empty where all are alike or nothing tells them apart.
    pub kinds: Vec<CpuKind>,
    /// The process's cgroups; `None` where there are none.
    pub cgroup: Option<Cgroup>,
    /// What `proc/cpuinfo` says.
    pub cpuinfo: Option<CpuInfo>,
    /// Bytes of a page; this host only.
    pub page_bytes: Option<u64>,
    /// What CPUID says, or why it was not asked.
    pub cpuid: Cpuid,
    /// What is missing, damaged, contradictory or unusual.
    pub findings: Vec<Finding>,
}

fn lossy<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
}

impl Topology {
    /// Reads this host, and what the calling thread may use of it.
    ///
    /// The allowed CPUs are those of `sched_getaffinity` of the calling thread: call it before
    /// threads are pinned.
    ///
    /// # Errors
    /// [`TopologyError`] where no online CPU can be established or the affinity is refused.
    pub fn this_host() -> Result<Topology, TopologyError> {
        Topology::from_root(Path::new("/"))
    }

    /// Reads the tree under a root: the directory above `sys` and `proc`, or an archive of it
    /// (`.tar.gz`, `.tar`), of which nothing is written anywhere. The root `/` is
    /// [`this_host`](Topology::this_host).
    ///
    /// Symbolic links are followed inside the root only. What is damaged is a finding; only
    /// without any readable source of online CPUs is there no topology.
    ///
    /// # Errors
    /// [`TopologyError`] where the root cannot be opened or no online CPU can be established.
    pub fn from_root(root: &Path) -> Result<Topology, TopologyError> {
        let tree = Tree::open(root)?;
        let cpuinfo = cpuinfo::read(&tree);
        if !tree.is_dir(CPU_DIR) && cpuinfo.is_none() {
            return Err(TopologyError::RootEmpty { root: root.to_owned() });
        }
        let directories = tree.numbered(CPU_DIR, "cpu");
        let (online, source) = cpus::online(&tree, &directories, cpuinfo.as_ref())
            .map_err(|tried| TopologyError::NoOnlineCpus { root: root.to_owned(), tried })?;
        let mut cpus = cpus::read(&tree, &directories, online, source);
        let online = cpus.online.clone();
        let cores = cores::read(&tree, &online, &directories);
        let nodes = nodes::read(&tree, &online);
        let kinds = kinds::read(&tree, &online, &directories, cpuinfo.as_ref());
        let caches = caches::read(&tree, &online, &directories);
        let smt = kinds::smt(&tree, &cores.cores);
        let cgroup = cgroup::read(&tree);
        let mut node_sets = nodes.sets;
        allow(&tree, &mut cpus, &mut node_sets, cgroup.as_ref())?;
        Ok(Topology {
            root: root.to_owned(),
            this_host: tree.this_host,
            cpus,
            packages: cores.packages,
            cores: cores.cores,
            dies: cores.dies,
            clusters: cores.clusters,
            smt,
            numa_nodes: nodes.nodes,
            node_sets,
            distances: nodes.distances,
            caches,
            cpu_capacity: kinds.cpu_capacity,
            base_frequency_khz: kinds.base_frequency_khz,
            max_frequency_khz: kinds.max_frequency_khz,
            kinds: kinds.kinds,
            cgroup,
            cpuinfo,
            page_bytes: if tree.this_host { process::page_bytes() } else { None },
            cpuid: cpuid::read(tree.this_host),
            findings: tree.findings.into_list(),
        })
    }

    /// Gives the CPUs to use, in rising order: allowed and online.
    #[must_use]
    pub fn usable(&self) -> &CpuSet {
        &self.cpus.usable
    }

    /// Counts how many threads can run at once: the usable CPUs, cut by the quota.
    #[must_use]
    pub fn parallelism(&self) -> usize {
        let quota = self.cgroup.as_ref().and_then(|cgroup| cgroup.quota.as_ref());
        let most = quota.map_or(usize::MAX, |quota| quota.quota_cpus as usize);
        self.cpus.usable.len().min(most)
    }

    /// Gives the last-level groups: for each CPU its highest data or unified cache, which is the
    /// L3 where there is one. One node may hold several, and one may span several nodes.
    #[must_use]
    pub fn l3_groups(&self) -> Vec<&Cache> {
        let last = self.last_levels();
        let mut groups: Vec<&Cache> = Vec::new();
        for (place, cache) in self.caches.iter().enumerate() {
            if last.iter().any(|&(_, at)| at == place) {
                groups.push(cache);
            }
        }
        groups.sort_by_key(|cache| cache.cpus.first());
        groups
    }

    /// Gives the position in `caches` of each CPU's last-level cache, for CPUs that have one.
    pub(crate) fn last_levels(&self) -> Vec<(u32, usize)> {
        let mut last: std::collections::BTreeMap<u32, usize> = std::collections::BTreeMap::new();
        for (place, cache) in self.caches.iter().enumerate() {
            if cache.kind == CacheKind::Instruction || !cache.sharing_known {
                continue;
            }
            for cpu in &cache.cpus {
                let best = last.entry(cpu).or_insert(place);
                if self.caches[*best].level < cache.level {
                    *best = place;
                }
            }
        }
        last.into_iter().collect()
    }

    /// Gives the coherency line of the first data cache in bytes: the granule of false sharing.
    #[must_use]
    pub fn line_bytes(&self) -> Option<u64> {
        let data = self.caches.iter().filter(|cache| cache.kind != CacheKind::Instruction);
        data.min_by_key(|cache| (cache.level, cache.line_bytes.is_none()))?.line_bytes
    }

    /// Gives every size of coherency line on the machine, rising.
    #[must_use]
    pub fn line_sizes(&self) -> Vec<u64> {
        let mut sizes: Vec<u64> = self.caches.iter().filter_map(|cache| cache.line_bytes).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }

    /// Gives the distance between two nodes, by their kernel numbers.
    #[must_use]
    pub fn distance(&self, from: u32, to: u32) -> Option<u32> {
        self.distances.as_ref()?.between(from, to)
    }
}

/// Establishes what the process may use: what every source allows.
fn allow(
    tree: &Tree,
    cpus: &mut Cpus,
    node_sets: &mut NodeSets,
    cgroup: Option<&Cgroup>,
) -> Result<(), TopologyError> {
    let status = process::status(tree);
    let cpuset = cgroup.and_then(|cgroup| cgroup.cpuset.as_ref());
    let mut sources: Vec<(AllowedSource, CpuSet)> = Vec::new();
    if tree.this_host {
        sources.push((AllowedSource::SchedGetaffinity, process::affinity()?));
    }
    let listed = status.as_ref().and_then(|status| status.cpus.clone());
    sources.extend(listed.map(|set| (AllowedSource::StatusFile, set)));
    sources.extend(cpuset.map(|cpuset| (AllowedSource::Cpuset, cpuset.cpus.clone())));
    let path = status.as_ref().map_or("proc/self", |status| &status.path);
    cpus.allowed = intersect(tree, path, &cpus.online, sources);
    if let Some(allowed) = &cpus.allowed {
        cpus.usable = allowed.cpus.intersection(&cpus.online);
    }
    if cpus.usable.is_empty() {
        let message = "no online CPU is allowed; there is no CPU to use";
        tree.note(FindingKind::Contradictory, CPU_DIR, message);
    }
    let mems = status.and_then(|status| status.mems);
    node_sets.allowed = match (mems, cpuset.and_then(|cpuset| cpuset.mems.clone())) {
        (Some(a), Some(b)) => Some(a.intersection(&b)),
        (a, b) => a.or(b),
    };
    Ok(())
}

/// Cuts the sources with each other. One that would leave no CPU to the better ones before it is
/// noted and left out.
fn intersect(
    tree: &Tree,
    path: &str,
    online: &CpuSet,
    sources: Vec<(AllowedSource, CpuSet)>,
) -> Option<Allowed> {
    let mut allowed: Option<Allowed> = None;
    for (source, cpus) in sources {
        let Some(so_far) = &mut allowed else {
            allowed = Some(Allowed { cpus, sources: vec![source] });
            continue;
        };
        let both = so_far.cpus.intersection(&cpus);
        if both.is_disjoint(online) {
            let message = format!(
                "{} allows {}, which contradicts better sources; left out",
                source.word(),
                brief(&cpus)
            );
            tree.note(FindingKind::Contradictory, path, message);
            continue;
        }
        so_far.cpus = both;
        so_far.sources.push(source);
    }
    allowed
}
