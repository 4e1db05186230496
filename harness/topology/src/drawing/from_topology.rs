//! The plan of a topology that was read.

use std::collections::BTreeSet;

use super::{CoreTile, Part, PartKind, Plan};
use crate::caches::Cache;
use crate::cpus::brief;
use crate::cpuset::CpuSet;
use crate::text::bytes;
use crate::topology::Topology;

/// From this level on, a cache is drawn around its cores even if it has a single one.
const GROUP_LEVEL: u32 = 3;

impl Topology {
    /// Describes the machine for a drawing: packages, NUMA nodes with their memory, caches, cores
    /// and PUs. PUs that the process may not use are among the unusable ones; what is offline or
    /// not known is a note.
    #[must_use]
    pub fn plan(&self) -> Plan {
        let (shared, own): (Vec<&Cache>, Vec<&Cache>) =
            self.caches.iter().partition(|cache| self.is_shared(cache));
        let mut parts: Vec<Part> = self.packages.iter().map(package).collect();
        parts.extend(self.numa_nodes.iter().map(node));
        parts.extend(shared.into_iter().map(|cache| Part {
            kind: PartKind::Cache,
            name: String::new(),
            detail: told(cache),
            cpus: cache.cpus.clone(),
        }));
        Plan {
            title: self.title(),
            parts,
            cores: self.tiles(&own),
            unusable: self.cpus.online.difference(&self.cpus.usable),
            notes: self.plan_notes(),
        }
    }

    fn title(&self) -> String {
        let info = self.cpuinfo.as_ref();
        let model = info.and_then(|info| info.model_name.as_deref()).unwrap_or("unknown model");
        let root =
            if self.this_host { "this host".into() } else { self.root.display().to_string() };
        format!("{model} ({root})")
    }

    fn is_shared(&self, cache: &Cache) -> bool {
        let core = self
            .cores
            .iter()
            .find(|core| cache.cpus.first().is_some_and(|cpu| core.cpus.contains(cpu)));
        let within = core.is_some_and(|core| cache.cpus.is_subset(&core.cpus));
        cache.sharing_known && (cache.level >= GROUP_LEVEL || !within && cache.cpus.len() > 1)
    }

    /// The cores with their own caches; online CPUs of no known core stand alone.
    fn tiles(&self, own: &[&Cache]) -> Vec<CoreTile> {
        let mut first_of: Vec<(u32, &Cache)> = Vec::new();
        for cache in own {
            first_of.extend(cache.cpus.first().map(|cpu| (cpu, *cache)));
        }
        first_of.sort_by_key(|(cpu, cache)| (*cpu, cache.level, cache.kind));
        let caches_of = |cpus: &mut dyn Iterator<Item = u32>| -> Vec<String> {
            let mut seen = BTreeSet::new();
            let mut caches = Vec::new();
            for cpu in cpus {
                let from = first_of.partition_point(|(first, _)| *first < cpu);
                let here = first_of[from..].iter().take_while(|(first, _)| *first == cpu);
                let names = here.map(|(_, cache)| told(cache));
                caches.extend(names.filter(|name| seen.insert(name.clone())));
            }
            caches
        };
        let covered = CpuSet::from_ids(self.cores.iter().flat_map(|core| &core.cpus));
        let mut tiles: Vec<CoreTile> = Vec::new();
        for core in &self.cores {
            tiles.push(CoreTile {
                name: core.core_id.map_or("core".to_owned(), |id| format!("core {id}")),
                cpus: core.cpus.iter().collect(),
                caches: caches_of(&mut core.cpus.iter()),
            });
        }
        for cpu in &self.cpus.online.difference(&covered.unwrap_or_default()) {
            let caches = caches_of(&mut std::iter::once(cpu));
            tiles.push(CoreTile { name: "core unknown".to_owned(), cpus: vec![cpu], caches });
        }
        tiles.sort_by_key(|tile| tile.cpus.first().copied());
        tiles
    }

    fn plan_notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.numa_nodes.is_empty() {
            notes.push("NUMA nodes unknown".to_owned());
        }
        let known = CpuSet::from_ids(self.cores.iter().flat_map(|core| &core.cpus));
        let unknown = self.cpus.online.difference(&known.unwrap_or_default());
        if !unknown.is_empty() {
            notes.push(format!("cores unknown, each CPU drawn as one: CPUs {}", brief(&unknown)));
        }
        if self.caches.is_empty() {
            notes.push("caches unknown".to_owned());
        }
        if !self.cpus.offline.is_empty() {
            notes.push(format!("offline, not drawn: CPUs {}", brief(&self.cpus.offline)));
        }
        let quota = self.cgroup.as_ref().and_then(|cgroup| cgroup.quota.as_ref());
        notes.extend(quota.map(|quota| format!("CPU quota: {} CPUs", quota.cpus)));
        notes
    }
}

fn package(package: &crate::cores::Package) -> Part {
    let number = package.id.map_or(String::new(), |id| format!(" {id}"));
    Part {
        kind: PartKind::Package,
        name: format!("package{number}"),
        detail: String::new(),
        cpus: package.cpus.clone(),
    }
}

fn node(node: &crate::nodes::NumaNode) -> Part {
    let memory = match node.mem_total_kb {
        None => "memory unknown".to_owned(),
        Some(0) => "no memory".to_owned(),
        Some(kb) => bytes(u128::from(kb) << 10),
    };
    let cpus = match &node.cpus {
        None => ", CPUs unknown",
        Some(cpus) if cpus.is_empty() => ", no CPUs",
        Some(_) => "",
    };
    Part {
        kind: PartKind::Node,
        name: format!("node {}, {memory}{cpus}", node.id),
        detail: String::new(),
        cpus: node.cpus.clone().unwrap_or_default(),
    }
}

fn told(cache: &Cache) -> String {
    let size = cache.size_bytes.map_or("size unknown".to_owned(), |size| bytes(u128::from(size)));
    let sharing = if cache.sharing_known { "" } else { ", sharers unknown" };
    format!("{} {size}{sharing}", cache.name())
}
