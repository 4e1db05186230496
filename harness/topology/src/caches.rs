//! Caches and which CPUs share them.

use std::collections::HashMap;

use serde::Serialize;

use crate::cpus::CPU_DIR;
use crate::cpuset::CpuSet;
use crate::finding::FindingKind;
use crate::sysfs::{Tree, shorten};

/// Holds one cache and the online CPUs that share it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Cache {
    /// 1 for the cache nearest to the core.
    pub level: u32,
    /// What it holds.
    pub kind: CacheKind,
    /// Its size in bytes.
    pub size_bytes: Option<u64>,
    /// Its coherency line in bytes. `None` where the kernel has no file, or says 0.
    pub line_bytes: Option<u64>,
    /// The kernel's number; unique only for a level and kind, and not on all kernels.
    pub id: Option<u32>,
    /// The online CPUs that share it.
    pub cpus: CpuSet,
    /// Whether the kernel says who shares it. If not, `cpus` is the one CPU it was seen at, and
    /// the cache makes no last-level group.
    pub sharing_known: bool,
}

/// Says what a cache holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CacheKind {
    /// Data only.
    Data,
    /// Instructions only.
    Instruction,
    /// Both.
    Unified,
}

impl CacheKind {
    fn parse(text: &str) -> Option<CacheKind> {
        match text {
            "Data" => Some(CacheKind::Data),
            "Instruction" => Some(CacheKind::Instruction),
            "Unified" => Some(CacheKind::Unified),
            _ => None,
        }
    }
}

impl Cache {
    /// Gives the usual short name: `L1d`, `L1i`, `L2`, `L3`.
    #[must_use]
    pub fn name(&self) -> String {
        let letter = match self.kind {
            CacheKind::Data => "d",
            CacheKind::Instruction => "i",
            CacheKind::Unified => "",
        };
        format!("L{}{letter}", self.level)
    }
}

/// Most cache directories of one CPU that are looked at.
const MOST_INDEXES: usize = 64;

/// Reads the caches of all online CPUs, each once; ordered by level, kind and first CPU.
pub(crate) fn read(tree: &Tree, online: &CpuSet, directories: &CpuSet) -> Vec<Cache> {
    let mut caches: Vec<Cache> = Vec::new();
    // Where the cache of a level and kind at a CPU stands in the list.
    let mut at_cpu: HashMap<(u32, CacheKind, u32), usize> = HashMap::new();
    for cpu in &online.intersection(directories) {
        let dir = format!("{CPU_DIR}/cpu{cpu}/cache");
        for index in tree.numbered(&dir, "index").iter().take(MOST_INDEXES) {
            let path = format!("{dir}/index{index}");
            let Some(cache) = read_one(tree, &path, cpu, online) else { continue };
            match at_cpu.get(&(cache.level, cache.kind, cpu)) {
                Some(&old) => check(tree, &path, &caches[old], &cache),
                None => {
                    let place = caches.len();
                    for member in &cache.cpus {
                        at_cpu.entry((cache.level, cache.kind, member)).or_insert(place);
                    }
                    caches.push(cache);
                }
            }
        }
    }
    caches.sort_by_key(|cache| (cache.level, cache.kind, cache.cpus.first()));
    if caches.is_empty() {
        let path = format!("{CPU_DIR}/cpu{}/cache", online.first().unwrap_or(0));
        tree.note(FindingKind::Missing, &path, "no online CPU has caches; sharing is unknown");
    }
    caches
}

fn read_one(tree: &Tree, path: &str, cpu: u32, online: &CpuSet) -> Option<Cache> {
    let of = |leaf: &str| format!("{path}/{leaf}");
    let level = tree.number(&of("level")).and_then(|level| u32::try_from(level).ok());
    let kind = tree.value(&of("type")).and_then(|kind| {
        let known = CacheKind::parse(&kind);
        if known.is_none() {
            tree.damaged(&of("type"), format!("{:?} is no kind of cache", shorten(&kind)));
        }
        known
    });
    let (Some(level @ 1..), Some(kind)) = (level, kind) else {
        tree.damaged(path, "a cache without level or type; ignored");
        return None;
    };
    let sharers = sharers(tree, path, cpu, online);
    Some(Cache {
        level,
        kind,
        size_bytes: size(tree, &of("size")),
        line_bytes: line(tree, &of("coherency_line_size")),
        id: tree.number(&of("id")).and_then(|id| u32::try_from(id).ok()),
        sharing_known: sharers.is_some(),
        cpus: sharers.or_else(|| CpuSet::from_ids([cpu]).ok())?,
    })
}

/// Reads who shares the cache, online part only, from the list or the mask.
fn sharers(tree: &Tree, path: &str, cpu: u32, online: &CpuSet) -> Option<CpuSet> {
    let list = format!("{path}/shared_cpu_list");
    let mask = format!("{path}/shared_cpu_map");
    let sharers = tree.group_of(cpu, &list, &mask, online);
    if sharers.is_none() {
        tree.note(FindingKind::Missing, &list, "who shares the cache is unknown");
    }
    sharers
}

/// Reads `32K`, `8M` or a plain number of bytes.
fn size(tree: &Tree, path: &str) -> Option<u64> {
    let text = tree.value(path)?;
    let (digits, unit) = match text.as_bytes().last() {
        Some(b'K') => (&text[..text.len() - 1], 1 << 10),
        Some(b'M') => (&text[..text.len() - 1], 1 << 20),
        Some(b'G') => (&text[..text.len() - 1], 1 << 30),
        _ => (text.as_str(), 1),
    };
    let bytes = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(unit));
    let bytes = bytes.filter(|&bytes| bytes > 0);
    if bytes.is_none() {
        tree.damaged(path, format!("{:?} is no size; taken as unknown", shorten(&text)));
    }
    bytes
}

fn line(tree: &Tree, path: &str) -> Option<u64> {
    let bytes = tree.number(path)?;
    if bytes == 0 {
        tree.note(FindingKind::Missing, path, "the kernel says 0, that is, unknown");
        return None;
    }
    if !bytes.is_power_of_two() {
        tree.damaged(path, format!("a line of {bytes} bytes is no power of two; not used"));
        return None;
    }
    Some(bytes)
}

/// Compares a cache with the one that another CPU described first and that is believed.
fn check(tree: &Tree, path: &str, old: &Cache, new: &Cache) {
    let same = old.cpus == new.cpus
        && old.size_bytes == new.size_bytes
        && old.line_bytes == new.line_bytes
        && old.id == new.id;
    if !same {
        let first = old.cpus.first().unwrap_or(0);
        let message =
            format!("{} differs from what CPU {first} says; that is believed", new.name());
        tree.note(FindingKind::Contradictory, path, message);
    }
}
