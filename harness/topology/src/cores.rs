//! Packages, cores, dies and clusters, from each CPU's topology directory.
//!
//! Groups come from the sibling sets, because the numbers are not unique: a `core_id` repeats in
//! each package, and on some machines inside one. Only the package has a number that names it.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::cpus::{CPU_DIR, brief};
use crate::cpuset::CpuSet;
use crate::finding::FindingKind;
use crate::sysfs::Tree;

/// Holds one package (socket) and its online CPUs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Package {
    /// The kernel's number; not 0, 1, 2 … everywhere. `None` where the kernel says -1: the group
    /// then comes from the sibling sets.
    pub id: Option<u32>,
    /// Its online CPUs.
    pub cpus: CpuSet,
}

/// Holds one core and its online CPUs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Core {
    /// The kernel's number of its first CPU; not unique.
    pub core_id: Option<u32>,
    /// The position of its package in [`Topology::packages`](crate::Topology::packages).
    pub package: Option<usize>,
    /// Its online CPUs.
    pub cpus: CpuSet,
    /// What the group was made by.
    pub basis: CoreBasis,
}

impl Core {
    /// Counts the hardware threads that are online.
    #[must_use]
    pub fn smt_width(&self) -> usize {
        self.cpus.len()
    }
}

/// Says what a core was grouped by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CoreBasis {
    /// The sibling sets (`core_cpus`, `thread_siblings`).
    Siblings,
    /// Package and `core_id`, where a tree has no sibling sets.
    Numbers,
}

/// Holds one group of CPUs that the kernel numbers: a die or a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CpuGroup {
    /// The kernel's number of its first CPU; not unique across packages.
    pub id: u32,
    /// Its online CPUs.
    pub cpus: CpuSet,
}

/// Everything the topology directories give.
pub(crate) struct Cores {
    pub(crate) packages: Vec<Package>,
    pub(crate) cores: Vec<Core>,
    pub(crate) dies: Option<Vec<CpuGroup>>,
    pub(crate) clusters: Option<Vec<CpuGroup>>,
}

/// Names of one relation's files, best first; each is a list, and with `_list` taken off a mask.
const CORE: [&str; 2] = ["core_cpus_list", "thread_siblings_list"];
const PACKAGE: [&str; 2] = ["package_cpus_list", "core_siblings_list"];

pub(crate) fn read(tree: &Tree, online: &CpuSet, directories: &CpuSet) -> Cores {
    let reader = Reader { tree, online, known: online.intersection(directories) };
    let packages = reader.packages();
    let cores = reader.cores(&packages);
    let dies = reader.groups("die", &packages);
    let clusters = reader.groups("cluster", &packages);
    Cores { packages, cores, dies, clusters }
}

struct Reader<'a> {
    tree: &'a Tree,
    online: &'a CpuSet,
    /// Online CPUs that have a directory, so that an absurd online set costs no reading.
    known: CpuSet,
}

impl Reader<'_> {
    /// Reads a number that the kernel gives as -1 where it does not know.
    fn id(&self, cpu: u32, leaf: &str) -> Option<u32> {
        let path = topology_path(cpu, leaf);
        let text = self.tree.value(&path)?;
        match text.parse::<i64>() {
            Ok(-1) => None,
            Ok(id) if u32::try_from(id).is_ok_and(|id| id != u32::MAX) => u32::try_from(id).ok(),
            Ok(4_294_967_295) => None,
            _ => {
                let shown = crate::sysfs::shorten(&text);
                self.tree.damaged(&path, format!("{shown:?} is no number; taken as unknown"));
                None
            }
        }
    }

    /// Reads a relation's set, online part only, from the first file that makes sense.
    fn siblings(&self, cpu: u32, leaves: &[&str]) -> Option<CpuSet> {
        leaves.iter().find_map(|leaf| {
            let list = topology_path(cpu, leaf);
            self.tree.group_of(cpu, &list, list.trim_end_matches("_list"), self.online)
        })
    }

    /// The file of a relation to speak of: the best that is there.
    fn leaf<'l>(&self, cpu: u32, leaves: &[&'l str]) -> &'l str {
        let is_there = |leaf: &&&str| self.tree.value(&topology_path(cpu, leaf)).is_some();
        leaves.iter().find(is_there).unwrap_or(&leaves[0])
    }

    fn packages(&self) -> Vec<Package> {
        let mut by_id: BTreeMap<u32, CpuSet> = BTreeMap::new();
        let mut nameless = Vec::new();
        for cpu in &self.known {
            match self.id(cpu, "physical_package_id") {
                Some(id) => {
                    // Members of the online set fit.
                    let _ = by_id.entry(id).or_default().insert(cpu);
                }
                None => nameless.push(cpu),
            }
        }
        for (id, cpus) in &by_id {
            self.check_package(*id, cpus);
        }
        let named = by_id.into_iter().map(|(id, cpus)| Package { id: Some(id), cpus });
        let mut packages: Vec<Package> = named.collect();
        for cpu in nameless {
            if packages.iter().any(|package| package.cpus.contains(cpu)) {
                continue;
            }
            let Some(cpus) = self.siblings(cpu, &PACKAGE) else {
                let path = topology_path(cpu, "physical_package_id");
                self.tree.note(FindingKind::Missing, &path, "the CPU's package is unknown");
                continue;
            };
            let message = "the kernel gives no package number; grouped by the sibling sets";
            self.tree.note(
                FindingKind::Missing,
                &topology_path(cpu, "physical_package_id"),
                message,
            );
            let taken = packages.iter().fold(CpuSet::new(), |all, other| all.union(&other.cpus));
            packages.push(Package { id: None, cpus: cpus.difference(&taken) });
        }
        packages
    }

    fn check_package(&self, id: u32, cpus: &CpuSet) {
        let Some(first) = cpus.first() else { return };
        let Some(siblings) = self.siblings(first, &PACKAGE) else { return };
        if siblings != *cpus {
            let message = format!(
                "package {id} has CPUs {} by number and {} by siblings; the number is believed",
                brief(cpus),
                brief(&siblings)
            );
            let path = topology_path(first, self.leaf(first, &PACKAGE));
            self.tree.note(FindingKind::Contradictory, &path, message);
        }
    }

    fn cores(&self, packages: &[Package]) -> Vec<Core> {
        let package_of = |cpu| packages.iter().position(|package| package.cpus.contains(cpu));
        let mut cores: Vec<Core> = Vec::new();
        let mut taken = CpuSet::new();
        let mut by_number: BTreeMap<(usize, u32), CpuSet> = BTreeMap::new();
        for cpu in &self.known {
            let siblings = self.siblings(cpu, &CORE);
            if taken.contains(cpu) {
                let core = cores.iter().find(|core| core.cpus.contains(cpu));
                self.check(cpu, &CORE, siblings.as_ref(), core.map(|core| &core.cpus));
                continue;
            }
            let (core_id, package) = (self.id(cpu, "core_id"), package_of(cpu));
            match (siblings, core_id, package) {
                (Some(siblings), ..) => {
                    let cpus = siblings.difference(&taken);
                    taken = taken.union(&cpus);
                    cores.push(Core { core_id, package, cpus, basis: CoreBasis::Siblings });
                }
                (None, Some(core_id), Some(package)) => {
                    // Members of the online set fit.
                    let _ = by_number.entry((package, core_id)).or_default().insert(cpu);
                }
                (None, ..) => {
                    let path = topology_path(cpu, "core_cpus_list");
                    self.tree.note(FindingKind::Missing, &path, "the CPU's core is unknown");
                }
            }
        }
        for ((package, core_id), cpus) in by_number {
            let cpus = cpus.difference(&taken);
            let (core_id, package) = (Some(core_id), Some(package));
            if !cpus.is_empty() {
                cores.push(Core { core_id, package, cpus, basis: CoreBasis::Numbers });
            }
        }
        cores.sort_by_key(|core| core.cpus.first());
        cores
    }

    /// Compares a CPU's own view of its group with that of the sibling which came first.
    fn check(&self, cpu: u32, leaves: &[&str], own: Option<&CpuSet>, believed: Option<&CpuSet>) {
        let Some(believed) = believed.filter(|believed| own != Some(believed)) else { return };
        let message = format!(
            "differs from the siblings of CPU {}, which are believed: {}",
            believed.first().unwrap_or(cpu),
            brief(believed)
        );
        let path = topology_path(cpu, self.leaf(cpu, leaves));
        self.tree.note(FindingKind::Contradictory, &path, message);
    }

    /// Groups by `<name>_cpus` where `<name>_id` is known. `None` where no CPU has one.
    fn groups(&self, name: &str, packages: &[Package]) -> Option<Vec<CpuGroup>> {
        /// What 16-bit hardware numbers become when they are unknown.
        const UNKNOWN_16: u32 = 65_535;
        let leaf = format!("{name}_cpus_list");
        let mut groups: Vec<CpuGroup> = Vec::new();
        let mut taken = CpuSet::new();
        let mut by_number: BTreeMap<(usize, u32), CpuSet> = BTreeMap::new();
        for cpu in &self.known {
            let id = self.id(cpu, &format!("{name}_id")).filter(|&id| id != UNKNOWN_16);
            let Some(id) = id else { continue };
            let siblings = self.siblings(cpu, &[&leaf]);
            if taken.contains(cpu) {
                let group = groups.iter().find(|group| group.cpus.contains(cpu));
                self.check(cpu, &[&leaf], siblings.as_ref(), group.map(|group| &group.cpus));
            } else if let Some(siblings) = siblings {
                let cpus = siblings.difference(&taken);
                taken = taken.union(&cpus);
                groups.push(CpuGroup { id, cpus });
            } else if let Some(at) = packages.iter().position(|p| p.cpus.contains(cpu)) {
                // Members of the online set fit.
                let _ = by_number.entry((at, id)).or_default().insert(cpu);
            }
        }
        for ((_, id), cpus) in by_number {
            let cpus = cpus.difference(&taken);
            if !cpus.is_empty() {
                groups.push(CpuGroup { id, cpus });
            }
        }
        groups.sort_by_key(|group| group.cpus.first());
        (!groups.is_empty()).then_some(groups)
    }
}

fn topology_path(cpu: u32, leaf: &str) -> String {
    format!("{CPU_DIR}/cpu{cpu}/topology/{leaf}")
}
