//! The process's cgroups, version 1, version 2 or both: where they are mounted, which one the
//! process is in, and the cpuset in force there.

use serde::Serialize;

use crate::cpuset::{CpuSet, NodeSet};
use crate::finding::FindingKind;
use crate::quota::{self, Quota};
use crate::sysfs::{Tree, rooted};

/// Longest cgroup path that is believed (`PATH_MAX`).
const LONGEST_PATH: usize = 4096;

/// Most cgroup mounts that are looked at.
const MOST_MOUNTS: usize = 64;

/// Holds what the process's cgroups say about CPUs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cgroup {
    /// The versions that are mounted: 1, 2 or both.
    pub versions: Vec<u32>,
    /// The process's path in the hierarchy that its cpuset is in.
    pub cpuset_path: Option<String>,
    /// The process's path in the hierarchy that its quota is in.
    pub quota_path: Option<String>,
    /// The cpuset in force, where a readable file says one.
    pub cpuset: Option<Cpuset>,
    /// The tightest CPU quota over all visible levels; `None` where no level limits.
    pub quota: Option<Quota>,
}

/// Holds the CPUs and memory nodes of a cgroup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Cpuset {
    /// The version of the hierarchy it is in.
    pub version: u32,
    /// The CPUs, as written: offline ones may be among them.
    pub cpus: CpuSet,
    /// The memory nodes, as written.
    pub mems: Option<NodeSet>,
    /// The file the CPUs come from, as seen from the root.
    pub cpus_file: String,
    /// The file the nodes come from.
    pub mems_file: Option<String>,
}

/// One mounted hierarchy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mount {
    pub(crate) version: u32,
    /// Mount options; of version 1 they name the controllers.
    options: Vec<String>,
    /// Files are named `cpus` and not `cpuset.cpus`: the old `cpuset` file system.
    unprefixed: bool,
    /// The cgroup that is seen at the mount point; `/` except in some containers.
    root: String,
    point: String,
}

impl Mount {
    fn has(&self, controller: &str) -> bool {
        self.version == 2 || self.options.iter().any(|option| option == controller)
    }
}

/// The process's path in each hierarchy.
struct Membership {
    /// Controllers (empty for version 2) and the path.
    lines: Vec<(Vec<String>, String)>,
    /// `proc/self/cpuset`, where there is no better source.
    cpuset: Option<String>,
}

impl Membership {
    fn path(&self, mount: &Mount, controller: &str) -> Option<&str> {
        let mine = |controllers: &Vec<String>| match mount.version {
            2 => controllers.is_empty(),
            _ => controllers.iter().any(|name| name == controller),
        };
        let listed = self.lines.iter().find(|(controllers, _)| mine(controllers));
        let fallback = || self.cpuset.as_deref().filter(|_| controller == "cpuset");
        listed.map(|(_, path)| path.as_str()).or_else(fallback)
    }
}

/// Reads everything; `None` where no cgroup is mounted and the process is in none.
pub(crate) fn read(tree: &Tree) -> Option<Cgroup> {
    let membership = read_membership(tree);
    let mounts = read_mounts(tree);
    if mounts.is_empty() && membership.lines.is_empty() {
        return None;
    }
    let mut versions: Vec<u32> = mounts.iter().map(|mount| mount.version).collect();
    versions.sort_unstable();
    versions.dedup();
    let mut cgroup =
        Cgroup { versions, cpuset_path: None, quota_path: None, cpuset: None, quota: None };
    // A controller sits in one hierarchy only, and in version 1 if that is mounted with it.
    for mount in with_controller(&mounts, "cpuset") {
        let path = membership.path(mount, "cpuset");
        cgroup.cpuset = read_cpuset(tree, mount, &levels(tree, mount, path));
        cgroup.cpuset_path = path.map(str::to_owned).or(cgroup.cpuset_path);
        if cgroup.cpuset.is_some() {
            break;
        }
    }
    for mount in with_controller(&mounts, "cpu") {
        let path = membership.path(mount, "cpu");
        let found = quota::read(tree, mount.version, &levels(tree, mount, path));
        if found.is_some() || cgroup.quota_path.is_none() {
            cgroup.quota_path = path.map(str::to_owned);
        }
        cgroup.quota = quota::tighter(cgroup.quota, found);
    }
    Some(cgroup)
}

fn with_controller<'a>(
    mounts: &'a [Mount],
    controller: &'a str,
) -> impl Iterator<Item = &'a Mount> {
    let of = move |version| {
        mounts.iter().filter(move |mount| mount.version == version && mount.has(controller))
    };
    of(1).chain(of(2))
}

/// Lists a file of the process itself: of the calling thread on this host, since threads may be in
/// different cgroups; of the process that was saved elsewhere.
pub(crate) fn own_file(tree: &Tree, leaf: &str) -> String {
    let thread = format!("proc/thread-self/{leaf}");
    if tree.this_host && tree.read_large(&thread).is_ok() {
        return thread;
    }
    format!("proc/self/{leaf}")
}

fn read_membership(tree: &Tree) -> Membership {
    let text = tree.read(&own_file(tree, "cgroup")).unwrap_or_default();
    let lines = text.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let controllers = parts.next()?.split(',').filter(|name| !name.is_empty());
        let controllers = controllers.map(str::to_owned).collect();
        Some((controllers, parts.next()?.to_owned()))
    });
    let lines = lines.collect();
    let cpuset = tree.value(&own_file(tree, "cpuset")).filter(|path| path.starts_with('/'));
    Membership { lines, cpuset }
}

fn read_mounts(tree: &Tree) -> Vec<Mount> {
    if let Ok(text) = tree.read_large("proc/self/mountinfo") {
        return text.lines().filter_map(mountinfo_line).take(MOST_MOUNTS).collect();
    }
    for path in ["proc/self/mounts", "proc/mounts"] {
        if let Ok(text) = tree.read_large(path) {
            return text.lines().filter_map(mounts_line).take(MOST_MOUNTS).collect();
        }
    }
    assume_mounts(tree)
}

/// Reads `31 23 0:28 / /sys/fs/cgroup rw,relatime shared:1 - cgroup2 cgroup2 rw`.
fn mountinfo_line(line: &str) -> Option<Mount> {
    let (place, kind) = line.split_once(" - ")?;
    let mut place = place.split(' ').skip(3);
    let (root, point) = (place.next()?, place.next()?);
    let mut kind = kind.split(' ');
    let (kind, options) = (kind.next()?, kind.nth(1)?);
    mount(kind, options, root, point)
}

/// Reads `cgroup2 /sys/fs/cgroup cgroup2 rw,relatime 0 0`.
fn mounts_line(line: &str) -> Option<Mount> {
    let mut fields = line.split(' ').skip(1);
    let (point, kind, options) = (fields.next()?, fields.next()?, fields.next()?);
    mount(kind, options, "/", point)
}

fn mount(kind: &str, options: &str, root: &str, point: &str) -> Option<Mount> {
    let version = match kind {
        "cgroup" | "cpuset" => 1,
        "cgroup2" => 2,
        _ => return None,
    };
    let mut options: Vec<String> = options.split(',').map(str::to_owned).collect();
    let unprefixed = kind == "cpuset" || options.iter().any(|option| option == "noprefix");
    if kind == "cpuset" {
        options.push("cpuset".to_owned());
    }
    Some(Mount { version, options, unprefixed, root: unescape(root), point: unescape(point) })
}

/// Turns the `\040` of a mount table back into a space, and so on.
fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        out.push_str(before);
        let code = after.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match code.filter(u8::is_ascii) {
            Some(byte) => {
                out.push(char::from(byte));
                rest = &after[3..];
            }
            None => {
                out.push('\\');
                rest = after;
            }
        }
    }
    out + rest
}

/// Takes the usual mount points where a tree has no mount table.
fn assume_mounts(tree: &Tree) -> Vec<Mount> {
    const TOP: &str = "sys/fs/cgroup";
    let mut mounts = Vec::new();
    let marks = ["cgroup.controllers", "cpu.max", "cpuset.cpus.effective"];
    if marks.iter().any(|mark| tree.read(&format!("{TOP}/{mark}")).is_ok()) {
        mounts.extend(mount("cgroup2", "", "/", &rooted(TOP)));
    }
    for (dir, options) in [("cpuset", "cpuset"), ("cpu,cpuacct", "cpu"), ("cpu", "cpu")] {
        let point = format!("{TOP}/{dir}");
        if tree.is_dir(&point) {
            mounts.extend(mount("cgroup", options, "/", &rooted(&point)));
        }
    }
    if !mounts.is_empty() {
        let message = "no mount table; cgroups are assumed at the usual place";
        tree.note(FindingKind::Missing, "proc/mounts", message);
    }
    mounts
}

/// Lists the directories from the process's own cgroup up to the mount point.
fn levels(tree: &Tree, mount: &Mount, path: Option<&str>) -> Vec<String> {
    let path = path.unwrap_or("/");
    let point = mount.point.trim_matches('/');
    let own = "proc/self/cgroup";
    let mut inside: Vec<&str> = Vec::new();
    if path.len() > LONGEST_PATH {
        tree.damaged(own, "a path that is too long; the mount's own limits are used");
    } else {
        inside = below(&mount.root, path);
    }
    if inside.contains(&"..") {
        let message =
            "the cgroup lies outside of the visible ones; the mount's own limits are used";
        tree.note(FindingKind::Suspect, own, message);
        inside.clear();
    }
    let levels = (0..=inside.len()).rev().map(|depth| {
        let mut parts = vec![point];
        parts.extend(&inside[..depth]);
        parts.join("/")
    });
    let levels: Vec<String> = levels.collect();
    if !tree.is_dir(&levels[0]) {
        let message = "the process's own cgroup is not there; the next level up is used";
        tree.note(FindingKind::Missing, &levels[0], message);
    }
    levels
}

/// Takes the mount's root off a cgroup path: what remains is below the mount point.
fn below<'a>(root: &str, path: &'a str) -> Vec<&'a str> {
    fn parts(path: &str) -> impl Iterator<Item = &str> {
        path.split('/').filter(|part| !part.is_empty() && *part != ".")
    }
    let all: Vec<&str> = parts(path).collect();
    let root: Vec<&str> = parts(root).collect();
    if all.starts_with(&root) { all[root.len()..].to_vec() } else { all }
}

fn read_cpuset(tree: &Tree, mount: &Mount, levels: &[String]) -> Option<Cpuset> {
    let (cpus, cpus_file) = nearest(tree, levels, &files(mount, "cpus"))?;
    let mems = nearest(tree, levels, &files(mount, "mems"));
    let (mems, mems_file) = mems.unzip();
    Some(Cpuset { version: mount.version, cpus, mems, cpus_file, mems_file })
}

/// Names the files of one resource, what is in force before what was asked for.
fn files(mount: &Mount, what: &str) -> [String; 2] {
    match (mount.version, mount.unprefixed) {
        (2, _) => [format!("cpuset.{what}.effective"), format!("cpuset.{what}")],
        (_, false) => [format!("cpuset.effective_{what}"), format!("cpuset.{what}")],
        (_, true) => [format!("effective_{what}"), what.to_owned()],
    }
}

/// Reads the set at the lowest level that has one.
fn nearest(tree: &Tree, levels: &[String], files: &[String]) -> Option<(CpuSet, String)> {
    for level in levels {
        for file in files {
            let path = format!("{level}/{file}");
            if let Ok(set) = tree.list(&path)
                && !set.is_empty()
            {
                return Some((set, rooted(&path)));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{below, mountinfo_line, mounts_line, unescape};

    #[test]
    fn mount_tables() {
        let line = "32 31 0:29 /docker/ab /sys/fs/cgroup/my\\040cpu rw shared:9 master:1 - cgroup \
                    cgroup rw,cpu,cpuacct";
        let mount = mountinfo_line(line).unwrap();
        assert_eq!(
            (mount.root.as_str(), mount.point.as_str()),
            ("/docker/ab", "/sys/fs/cgroup/my cpu")
        );
        assert!(mount.has("cpu") && !mount.has("cpuset") && mount.version == 1);
        let mount = mounts_line("none /cgroup/unified cgroup2 rw 0 0").unwrap();
        assert_eq!((mount.version, mount.point.as_str()), (2, "/cgroup/unified"));
        assert!(mounts_line("none /dev/cpuset cpuset rw 0 0").unwrap().unprefixed);
        assert_eq!(mounts_line("proc /proc proc rw 0 0"), None);
        assert_eq!(mounts_line("cgroup"), None);
        assert_eq!(mountinfo_line("1 2 3 - cgroup"), None);
    }

    #[test]
    fn escapes() {
        assert_eq!(unescape("/a\\040b\\134c\\011"), "/a b\\c\t");
        assert_eq!(unescape("\\04"), "\\04");
        assert_eq!(unescape("\\999é\\é"), "\\999é\\é");
        assert_eq!(unescape("\\377"), "\\377");
    }

    #[test]
    fn paths_below_the_mount() {
        assert_eq!(below("/", "/a/b"), ["a", "b"]);
        assert_eq!(below("/docker/ab", "/docker/ab/c"), ["c"]);
        assert_eq!(below("/docker/ab", "/docker/abc"), ["docker", "abc"]);
        assert_eq!(below("/..", "/../x"), ["x"]);
        assert_eq!(below("/", "/../x"), ["..", "x"]);
        assert!(below("/docker/ab", "/docker/ab").is_empty());
    }
}
