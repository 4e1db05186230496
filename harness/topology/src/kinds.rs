//! CPUs that differ: capacity, frequency, SMT state and the kinds of a hybrid machine.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::cores::Core;
use crate::cpuinfo::CpuInfo;
use crate::cpus::CPU_DIR;
use crate::cpuset::CpuSet;
use crate::finding::FindingKind;
use crate::sysfs::Tree;

/// Holds one value and the online CPUs that have it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ValueGroup {
    /// The value, in the unit of the list it is in.
    pub value: u64,
    /// The CPUs.
    pub cpus: CpuSet,
}

/// Holds the state of simultaneous multithreading.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Smt {
    /// Whether the kernel says it is active (`cpu/smt/active`).
    pub active: Option<bool>,
    /// The control word (`on`, `off`, `forceoff`, `notsupported`, `notimplemented`, a width).
    pub control: Option<String>,
    /// The fewest online threads of a core; `None` where no core is known.
    pub narrowest: Option<usize>,
    /// The most online threads of a core.
    pub widest: Option<usize>,
}

/// Holds one kind of CPU on a machine whose CPUs differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CpuKind {
    /// `cpu_core`, `cpu_atom`; `0x41:0xd87` on ARM; or the value that differs.
    pub name: String,
    /// What tells the kinds apart.
    pub basis: KindBasis,
    /// Its online CPUs.
    pub cpus: CpuSet,
}

/// Says what tells kinds of CPUs apart, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum KindBasis {
    /// A performance counter unit for each kind (`cpu_core`, `cpu_atom`: Intel hybrid).
    CounterUnit,
    /// Implementer and part in `proc/cpuinfo` (ARM).
    Part,
    /// `cpu_capacity`.
    Capacity,
    /// `cpufreq/base_frequency`.
    BaseFrequency,
}

/// What differs between CPUs.
pub(crate) struct Kinds {
    pub(crate) cpu_capacity: Vec<ValueGroup>,
    pub(crate) base_frequency_khz: Vec<ValueGroup>,
    pub(crate) max_frequency_khz: Vec<ValueGroup>,
    pub(crate) kinds: Vec<CpuKind>,
}

pub(crate) fn read(
    tree: &Tree,
    online: &CpuSet,
    directories: &CpuSet,
    cpuinfo: Option<&CpuInfo>,
) -> Kinds {
    let known = online.intersection(directories);
    let cpu_capacity = values(tree, &known, "cpu_capacity");
    let base_frequency_khz = values(tree, &known, "cpufreq/base_frequency");
    let max_frequency_khz = values(tree, &known, "cpufreq/cpuinfo_max_freq");
    let named = |groups: &[ValueGroup], word: &str, unit: &str, basis| {
        let kind = |group: &ValueGroup| CpuKind {
            name: format!("{word} {}{unit}", group.value),
            basis,
            cpus: group.cpus.clone(),
        };
        groups.iter().map(kind).collect::<Vec<_>>()
    };
    let candidates = [
        counter_units(tree, online),
        parts(cpuinfo, online),
        named(&cpu_capacity, "capacity", "", KindBasis::Capacity),
        named(&base_frequency_khz, "base", " kHz", KindBasis::BaseFrequency),
    ];
    let kinds = candidates.into_iter().find(|kinds| kinds.len() > 1).unwrap_or_default();
    Kinds { cpu_capacity, base_frequency_khz, max_frequency_khz, kinds }
}

/// Groups CPUs by the number in one of their files, lowest first.
fn values(tree: &Tree, cpus: &CpuSet, leaf: &str) -> Vec<ValueGroup> {
    let mut groups: BTreeMap<u64, CpuSet> = BTreeMap::new();
    for cpu in cpus {
        if let Some(value) = tree.number(&format!("{CPU_DIR}/cpu{cpu}/{leaf}")) {
            // Members of the online set fit.
            let _ = groups.entry(value).or_default().insert(cpu);
        }
    }
    groups.into_iter().map(|(value, cpus)| ValueGroup { value, cpus }).collect()
}

fn counter_units(tree: &Tree, online: &CpuSet) -> Vec<CpuKind> {
    let kind = |name: &&str| {
        let cpus = tree.list(&format!("sys/devices/{name}/cpus")).ok()?.intersection(online);
        let kind = CpuKind { name: (*name).to_owned(), basis: KindBasis::CounterUnit, cpus };
        (!kind.cpus.is_empty()).then_some(kind)
    };
    ["cpu_core", "cpu_atom", "cpu_lowpower"].iter().filter_map(kind).collect()
}

fn parts(cpuinfo: Option<&CpuInfo>, online: &CpuSet) -> Vec<CpuKind> {
    let parts = cpuinfo.into_iter().flat_map(|info| &info.parts);
    let kinds = parts.map(|(name, cpus)| CpuKind {
        name: name.clone(),
        basis: KindBasis::Part,
        cpus: cpus.intersection(online),
    });
    kinds.filter(|kind| !kind.cpus.is_empty()).collect()
}

/// Reads the SMT files and compares them with the cores.
pub(crate) fn smt(tree: &Tree, cores: &[Core]) -> Smt {
    let path = format!("{CPU_DIR}/smt/active");
    let active = match tree.number(&path) {
        Some(0) => Some(false),
        Some(1) => Some(true),
        Some(other) => {
            tree.damaged(&path, format!("{other} is neither 0 nor 1"));
            None
        }
        None => None,
    };
    let widths = || cores.iter().map(Core::smt_width);
    let smt = Smt {
        active,
        control: tree.value(&format!("{CPU_DIR}/smt/control")).filter(|word| !word.is_empty()),
        narrowest: widths().min(),
        widest: widths().max(),
    };
    if let (Some(active), Some(widest)) = (smt.active, smt.widest)
        && active != (widest > 1)
    {
        // The kernel stays in the SMT state when siblings go offline one by one.
        let kind = if active { FindingKind::Suspect } else { FindingKind::Contradictory };
        let says = u8::from(active);
        let message = format!("says {says}, and the widest core has {widest} threads online");
        tree.note(kind, &path, message);
    }
    smt
}
