//! Which CPUs there are: online, present, offline, isolated, allowed and usable.

use serde::Serialize;

use crate::cpuinfo::CpuInfo;
use crate::cpuset::CpuSet;
use crate::finding::FindingKind;
use crate::sysfs::{Tree, Unread, rooted, shorten};

/// The directory of all CPUs.
pub(crate) const CPU_DIR: &str = "sys/devices/system/cpu";

/// Holds the sets of CPUs, each from its own source. `None`: the source is not there.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cpus {
    /// CPUs that run.
    pub online: CpuSet,
    /// Where the online set comes from.
    pub online_source: OnlineSource,
    /// CPUs that are plugged in (`cpu/present`).
    pub present: Option<CpuSet>,
    /// CPUs that could ever be plugged in (`cpu/possible`).
    pub possible: Option<CpuSet>,
    /// CPUs that are present or have a directory, and are not online.
    pub offline: CpuSet,
    /// CPUs taken out of scheduling by `isolcpus` or a cpuset partition (`cpu/isolated`).
    pub isolated: Option<CpuSet>,
    /// CPUs without a scheduler tick while one task runs (`cpu/nohz_full`).
    pub nohz_full: Option<CpuSet>,
    /// The highest CPU number the kernel was built for.
    pub kernel_max: Option<u64>,
    /// CPUs this process may run on, as far as any source says.
    pub allowed: Option<Allowed>,
    /// CPUs to use: allowed and online; all online ones where nothing says what is allowed.
    pub usable: CpuSet,
}

/// Says which source the online set was read from, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub enum OnlineSource {
    /// The file `cpu/online`.
    #[serde(rename = "cpu/online")]
    CpuOnline,
    /// Every CPU whose own `online` file is not 0; CPU 0 often has none.
    #[serde(rename = "cpu*/online")]
    EachOnline,
    /// Every CPU that has a topology directory.
    #[serde(rename = "cpu*/topology")]
    EachTopology,
    /// Every CPU that has a directory.
    #[serde(rename = "cpu*")]
    EachDirectory,
    /// The processors of `proc/cpuinfo`.
    #[serde(rename = "proc/cpuinfo")]
    CpuInfo,
}

impl OnlineSource {
    /// Gives the word that also stands in the JSON form.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            OnlineSource::CpuOnline => "cpu/online",
            OnlineSource::EachOnline => "cpu*/online",
            OnlineSource::EachTopology => "cpu*/topology",
            OnlineSource::EachDirectory => "cpu*",
            OnlineSource::CpuInfo => "proc/cpuinfo",
        }
    }
}

/// Holds the CPUs that a process may run on: those which every source allows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Allowed {
    /// The CPUs in all sources.
    pub cpus: CpuSet,
    /// The sources that were there.
    pub sources: Vec<AllowedSource>,
}

/// Names a source of allowed CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum AllowedSource {
    /// `sched_getaffinity` of the calling thread (this host only).
    SchedGetaffinity,
    /// `Cpus_allowed_list` in the process's `status` file.
    StatusFile,
    /// The cpuset of the process's cgroup.
    Cpuset,
}

impl AllowedSource {
    /// Gives the word that also stands in the JSON form.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            AllowedSource::SchedGetaffinity => "sched_getaffinity",
            AllowedSource::StatusFile => "status_file",
            AllowedSource::Cpuset => "cpuset",
        }
    }
}

/// What was tried for the online set when nothing gave it.
pub(crate) type Tried = Vec<String>;

/// Establishes the online set from the best source that can be read.
pub(crate) fn online(
    tree: &Tree,
    directories: &CpuSet,
    cpuinfo: Option<&CpuInfo>,
) -> Result<(CpuSet, OnlineSource), Tried> {
    let mut tried = Tried::new();
    let path = format!("{CPU_DIR}/online");
    match tree.list(&path) {
        Ok(online) if !online.is_empty() => return Ok((online, OnlineSource::CpuOnline)),
        Ok(_) => {
            tree.damaged(&path, "empty, and some CPU must run; another source is used");
            tried.push(format!("{} is empty", rooted(&path)));
        }
        Err(Unread::Missing) => tried.push(format!("{} is missing", rooted(&path))),
        Err(Unread::Broken(why)) => tried.push(format!("{}: {why}", rooted(&path))),
    }
    if directories.is_empty() {
        tried.push(format!("{} has no cpuN directory", rooted(CPU_DIR)));
    }
    if let Some(found) = from_directories(tree, directories) {
        return Ok(found);
    }
    match cpuinfo.map(|info| &info.processors) {
        Some(processors) if !processors.is_empty() => {
            let message = "the only source of online CPUs; it may name more than are online";
            tree.note(FindingKind::Suspect, "proc/cpuinfo", message);
            Ok((processors.clone(), OnlineSource::CpuInfo))
        }
        _ => {
            tried.push("/proc/cpuinfo names no processor".to_owned());
            Err(tried)
        }
    }
}

fn from_directories(tree: &Tree, directories: &CpuSet) -> Option<(CpuSet, OnlineSource)> {
    let mut on = CpuSet::new();
    let mut with_topology = CpuSet::new();
    let mut says_online = 0;
    let mut silent = CpuSet::new();
    for cpu in directories {
        // Directories were listed with numbers in range, so no insert fails.
        if tree.is_dir(&format!("{CPU_DIR}/cpu{cpu}/topology")) {
            let _ = with_topology.insert(cpu);
        }
        let path = format!("{CPU_DIR}/cpu{cpu}/online");
        let listed = match tree.value(&path).as_deref() {
            Some("1") => on.insert(cpu),
            Some("0") => Ok(false),
            Some(other) => {
                tree.damaged(&path, format!("{:?} is neither 0 nor 1", shorten(other)));
                silent.insert(cpu)
            }
            None => silent.insert(cpu),
        };
        says_online += u32::from(listed.is_ok() && !silent.contains(cpu));
    }
    // A CPU without a usable word of its own counts as online, where it has a topology or where
    // topology directories tell nothing.
    let silent =
        if with_topology.is_empty() { silent } else { silent.intersection(&with_topology) };
    let candidates = [
        (if says_online > 0 { on.union(&silent) } else { CpuSet::new() }, OnlineSource::EachOnline),
        (with_topology, OnlineSource::EachTopology),
        (
            if says_online > 0 { CpuSet::new() } else { directories.clone() },
            OnlineSource::EachDirectory,
        ),
    ];
    let found = candidates.into_iter().find(|(set, _)| !set.is_empty())?;
    if found.1 == OnlineSource::EachDirectory {
        let message = "no online file and no topology: every CPU directory counts as online";
        tree.note(FindingKind::Suspect, CPU_DIR, message);
    }
    Some(found)
}

/// Reads the other sets; `allowed` and `usable` come later, from the process and its cgroup.
pub(crate) fn read(
    tree: &Tree,
    directories: &CpuSet,
    online: CpuSet,
    online_source: OnlineSource,
) -> Cpus {
    let list = |leaf: &str| tree.list(&format!("{CPU_DIR}/{leaf}")).ok();
    let present = list("present");
    let known = present.clone().unwrap_or_default().union(directories);
    let cpus = Cpus {
        offline: known.difference(&online),
        usable: online.clone(),
        possible: list("possible"),
        isolated: list("isolated"),
        nohz_full: nohz_full(tree),
        kernel_max: tree.number(&format!("{CPU_DIR}/kernel_max")),
        allowed: None,
        present,
        online,
        online_source,
    };
    check(tree, &cpus, directories);
    cpus
}

/// Reads `nohz_full`, in which some kernels print an unset mask as a null pointer.
fn nohz_full(tree: &Tree) -> Option<CpuSet> {
    let path = format!("{CPU_DIR}/nohz_full");
    match tree.value(&path)?.as_str() {
        "(null)" => Some(CpuSet::new()),
        _ => tree.list(&path).ok(),
    }
}

fn check(tree: &Tree, cpus: &Cpus, directories: &CpuSet) {
    let contradiction = |leaf: &str, message: String| {
        tree.note(FindingKind::Contradictory, &format!("{CPU_DIR}/{leaf}"), message);
    };
    if let Some(present) = &cpus.present {
        let extra = cpus.online.difference(present);
        if !extra.is_empty() {
            contradiction("present", format!("lacks the online CPUs {}", brief(&extra)));
        }
    }
    let bare = cpus.online.difference(directories);
    if !bare.is_empty() {
        let message = format!("online CPUs without a directory: {}", brief(&bare));
        tree.note(FindingKind::Missing, CPU_DIR, message);
    }
    for (leaf, set) in [("isolated", &cpus.isolated), ("nohz_full", &cpus.nohz_full)] {
        let extra = set.as_ref().map(|set| set.difference(&cpus.online));
        if let Some(extra) = extra.filter(|extra| !extra.is_empty()) {
            let message = format!("also names CPUs that are not online: {}", brief(&extra));
            tree.note(FindingKind::Suspect, &format!("{CPU_DIR}/{leaf}"), message);
        }
    }
}

/// Prints a set in a message, cut where it is long.
pub(crate) fn brief(set: &CpuSet) -> String {
    shorten(&set.to_string())
}
