//! Cpusets and quotas, version 1, version 2 and both.

use topology::{AllowedSource, Cgroup, FindingKind, Quota, Topology};

use crate::builder::{Root, finding, list};

const V2: &str = "cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0\n";
const V1: &str = "tmpfs /sys/fs/cgroup tmpfs rw 0 0\n\
                  cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,cpu,cpuacct 0 0\n\
                  cgroup /sys/fs/cgroup/cpuset cgroup rw,cpuset 0 0\n\
                  cgroup /sys/fs/cgroup/systemd cgroup rw,name=systemd 0 0\n";

/// Eight CPUs, a mount table, the process's cgroups and the files in them.
fn root(mounts: &str, own: &str, files: &[(&str, &str)]) -> Root {
    let root = Root::flat(8);
    root.file("proc/mounts", mounts);
    root.file("proc/self/cgroup", own);
    root.files(files.iter().copied());
    root
}

fn cgroup(root: &Root) -> Cgroup {
    root.read().cgroup.expect("a cgroup")
}

fn quota(root: &Root) -> Quota {
    cgroup(root).quota.expect("a quota")
}

#[test]
fn quotas_are_rounded_down_to_at_least_one() {
    let cases = [
        ("650000 100000", 6.5, 6),
        ("50000 100000", 0.5, 1),
        ("100000 100000", 1.0, 1),
        ("199999 100000", 1.99999, 1),
        ("800000", 8.0, 8),
        ("1000 1000000", 0.001, 1),
        ("18446744073709551615 1", u64::MAX as f64, u32::MAX),
    ];
    for (text, cpus, whole) in cases {
        let root = root(V2, "0::/\n", &[("sys/fs/cgroup/cpu.max", text)]);
        let quota = quota(&root);
        assert_eq!((quota.cpus, quota.quota_cpus), (cpus, whole), "{text}");
        assert_eq!(quota.file, "/sys/fs/cgroup/cpu.max");
        assert_eq!(root.read().parallelism(), (whole as usize).min(8), "{text}");
    }
    let root = root(V2, "0::/\n", &[("sys/fs/cgroup/cpu.max", "max 100000\n")]);
    assert_eq!(cgroup(&root).quota, None);
    assert_eq!(root.read().parallelism(), 8);
    assert!(!root.read().findings.iter().any(|f| f.path.ends_with("cpu.max")));
}

#[test]
fn the_tightest_of_all_levels_counts_v2() {
    let files = [
        ("sys/fs/cgroup/a/cpu.max", "max 100000"),
        ("sys/fs/cgroup/a/b/cpu.max", "300000 100000"),
        ("sys/fs/cgroup/a/b/c/cpu.max", "1000000 250000"),
        ("sys/fs/cgroup/other/cpu.max", "1 100000"),
        ("sys/fs/cgroup/a/b/c/child/cpu.max", "1 100000"),
    ];
    let root = root(V2, "0::/a/b/c\n", &files);
    let tight = quota(&root);
    assert_eq!((tight.cpus, tight.quota_cpus, tight.levels_up, tight.version), (3.0, 3, 1, 2));
    assert_eq!(tight.file, "/sys/fs/cgroup/a/b/cpu.max");
    assert_eq!(cgroup(&root).quota_path.as_deref(), Some("/a/b/c"));
    root.file("sys/fs/cgroup/a/b/c/cpu.max", "200000 100000");
    assert_eq!((quota(&root).cpus, quota(&root).levels_up), (2.0, 0));
    root.file("sys/fs/cgroup/a/cpu.max", "100000 100000");
    assert_eq!((quota(&root).cpus, quota(&root).levels_up), (1.0, 2));
    // Equal limits: the nearest is named. A third of a CPU and its triple are exactly equal.
    root.file("sys/fs/cgroup/a/b/c/cpu.max", "1 3");
    root.file("sys/fs/cgroup/a/b/cpu.max", "100000 300000");
    assert_eq!(quota(&root).levels_up, 0);
}

#[test]
fn the_tightest_of_all_levels_counts_v1() {
    let files = [
        ("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1"),
        ("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000"),
        ("sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "250000"),
        ("sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "100000"),
        ("sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_quota_us", "400000"),
        ("sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_period_us", "100000"),
    ];
    let root = root(V1, "3:cpu,cpuacct:/a/b\n2:cpuset:/\n1:name=systemd:/x\n", &files);
    let quota = quota(&root);
    assert_eq!((quota.cpus, quota.quota_cpus, quota.levels_up, quota.version), (2.5, 2, 1, 1));
    assert_eq!(quota.file, "/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us");
    assert_eq!(cgroup(&root).versions, [1]);
}

#[test]
fn quotas_that_make_no_sense_are_ignored_and_noted() {
    let v2 =
        ["", "abc", "0 100000", "100000 0", "-5 100000", "max 0", "1 2 3", "max x", "1e5 100000"];
    for text in v2 {
        let root = root(
            V2,
            "0::/a\n",
            &[("sys/fs/cgroup/a/cpu.max", text), ("sys/fs/cgroup/cpu.max", "700000 100000")],
        );
        let topology = root.read();
        assert_eq!(topology.cgroup.as_ref().unwrap().quota.as_ref().unwrap().cpus, 7.0, "{text:?}");
        finding(&topology, FindingKind::Damaged, "sys/fs/cgroup/a/cpu.max");
    }
    let v1 = [("0", "100000"), ("-2", "100000"), ("x", "100000"), ("100000", "0"), ("100000", "x")];
    for (quota, period) in v1 {
        let root = root(
            V1,
            "3:cpu,cpuacct:/\n",
            &[
                ("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", quota),
                ("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", period),
            ],
        );
        let topology = root.read();
        assert_eq!(topology.cgroup.as_ref().unwrap().quota, None, "{quota} {period}");
        let damaged = topology.findings.iter().any(|f| f.kind == FindingKind::Damaged);
        assert!(damaged, "{quota} {period}");
    }
}

#[test]
fn a_cpuset_without_cpu_0() {
    let root = root(
        V2,
        "0::/job\n",
        &[
            ("sys/fs/cgroup/job/cpuset.cpus.effective", "3-5,9\n"),
            ("sys/fs/cgroup/job/cpuset.mems.effective", "1\n"),
        ],
    );
    let topology = root.read();
    assert_eq!(topology.usable().to_string(), "3-5");
    assert_eq!(topology.pus().first().unwrap().cpu, 3);
    let allowed = topology.cpus.allowed.as_ref().unwrap();
    assert_eq!(allowed.sources, [AllowedSource::Cpuset]);
    let cpuset = topology.cgroup.as_ref().unwrap().cpuset.as_ref().unwrap();
    assert_eq!((cpuset.cpus.to_string().as_str(), cpuset.version), ("3-5,9", 2));
    assert_eq!(list(cpuset.mems.as_ref()), "1");
    assert_eq!(list(topology.node_sets.allowed.as_ref()), "1");
}

#[test]
fn the_status_file_and_the_cpuset_are_cut_with_each_other() {
    let root = root(
        V2,
        "0::/\n",
        &[
            ("sys/fs/cgroup/cpuset.cpus.effective", "2-5"),
            ("proc/self/status", "Cpus_allowed_list:\t4-7\n"),
        ],
    );
    let topology = root.read();
    assert_eq!(topology.usable().to_string(), "4-5");
    let sources = topology.cpus.allowed.unwrap().sources;
    assert_eq!(sources, [AllowedSource::StatusFile, AllowedSource::Cpuset]);
    // A cpuset that would leave nothing contradicts what the kernel says of the process.
    root.file("sys/fs/cgroup/cpuset.cpus.effective", "0-1");
    let topology = root.read();
    assert_eq!(topology.usable().to_string(), "4-7");
    finding(&topology, FindingKind::Contradictory, "proc/self/status");
}

#[test]
fn what_is_in_force_counts_and_not_what_was_asked_for() {
    let root = root(
        V1,
        "4:cpuset:/a/b\n",
        &[
            ("sys/fs/cgroup/cpuset/a/b/cpuset.cpus", "0-7"),
            ("sys/fs/cgroup/cpuset/a/b/cpuset.effective_cpus", "1-2"),
            ("sys/fs/cgroup/cpuset/a/b/cpuset.mems", "0"),
        ],
    );
    let cpuset = cgroup(&root).cpuset.unwrap();
    assert_eq!((cpuset.cpus.to_string().as_str(), cpuset.version), ("1-2", 1));
    assert_eq!(cpuset.cpus_file, "/sys/fs/cgroup/cpuset/a/b/cpuset.effective_cpus");
    assert_eq!(cpuset.mems_file.as_deref(), Some("/sys/fs/cgroup/cpuset/a/b/cpuset.mems"));
    // Old kernels have only the second.
    root.remove("sys/fs/cgroup/cpuset/a/b/cpuset.effective_cpus");
    assert_eq!(cgroup(&root).cpuset.unwrap().cpus.to_string(), "0-7");
}

#[test]
fn a_group_without_the_controller_takes_the_next_one_up() {
    let root = root(
        V2,
        "0::/slice/scope\n",
        &[
            ("sys/fs/cgroup/slice/scope/cgroup.procs", "1\n"),
            ("sys/fs/cgroup/slice/cpuset.cpus.effective", "6"),
            ("sys/fs/cgroup/slice/cpuset.cpus", "\n"),
            ("sys/fs/cgroup/cpuset.cpus.effective", "0-7"),
        ],
    );
    assert_eq!(root.read().usable().to_string(), "6");
    root.file("sys/fs/cgroup/slice/cpuset.cpus.effective", "\n");
    assert_eq!(root.read().usable().to_string(), "0-7");
}

#[test]
fn both_versions_mounted() {
    let mounts = format!("{V1}cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n");
    let root = root(
        &mounts,
        "3:cpuset:/v1\n2:cpu,cpuacct:/v1\n0::/v2\n",
        &[
            ("sys/fs/cgroup/cpuset/v1/cpuset.effective_cpus", "2-3"),
            ("sys/fs/cgroup/unified/v2/cpuset.cpus.effective", "5"),
            ("sys/fs/cgroup/cpu,cpuacct/v1/cpu.cfs_quota_us", "300000"),
            ("sys/fs/cgroup/cpu,cpuacct/v1/cpu.cfs_period_us", "100000"),
            ("sys/fs/cgroup/unified/v2/cpu.max", "max 100000"),
        ],
    );
    let both = cgroup(&root);
    assert_eq!(both.versions, [1, 2]);
    assert_eq!(
        (both.cpuset_path.as_deref(), both.quota_path.as_deref()),
        (Some("/v1"), Some("/v1"))
    );
    assert_eq!(root.read().usable().to_string(), "2-3");
    assert_eq!(quota(&root).cpus, 3.0);
    root.file("sys/fs/cgroup/unified/v2/cpu.max", "200000 100000");
    assert_eq!((quota(&root).cpus, quota(&root).version), (2.0, 2));
    // The controller is in version 2 when version 1 says nothing.
    root.remove("sys/fs/cgroup/cpuset/v1/cpuset.effective_cpus");
    assert_eq!(root.read().usable().to_string(), "5");
}

#[test]
fn mounted_elsewhere() {
    let root = root(
        "none /my\\040groups/cg cgroup2 rw 0 0\n",
        "0::/job\n",
        &[
            ("my groups/cg/job/cpuset.cpus.effective", "4"),
            ("my groups/cg/job/cpu.max", "100000 100000"),
            ("sys/fs/cgroup/job/cpuset.cpus.effective", "1"),
        ],
    );
    assert_eq!(root.read().usable().to_string(), "4");
    assert_eq!(quota(&root).file, "/my groups/cg/job/cpu.max");
}

#[test]
fn the_old_cpuset_file_system() {
    let root = root(
        "none /dev/cpuset cpuset rw 0 0\n",
        "",
        &[
            ("proc/self/cpuset", "/batch\n"),
            ("dev/cpuset/batch/cpus", "5-6"),
            ("dev/cpuset/batch/mems", "1"),
        ],
    );
    let cpuset = cgroup(&root).cpuset.unwrap();
    assert_eq!(
        (cpuset.cpus.to_string().as_str(), cpuset.cpus_file.as_str()),
        ("5-6", "/dev/cpuset/batch/cpus")
    );
    assert_eq!(list(cpuset.mems.as_ref()), "1");
}

#[test]
fn a_container_sees_its_own_group_at_the_mount_point() {
    let info = "30 20 0:25 /docker/ab /sys/fs/cgroup ro,nosuid - cgroup2 cgroup2 rw\n";
    let files = [
        ("proc/self/mountinfo", info),
        ("sys/fs/cgroup/cpu.max", "200000 100000"),
        ("sys/fs/cgroup/sub/cpu.max", "max 100000"),
    ];
    let inside = root("", "0::/docker/ab\n", &files);
    assert_eq!((quota(&inside).cpus, quota(&inside).levels_up), (2.0, 0));
    assert!(!inside.read().findings.iter().any(|f| f.path.contains("cgroup")));
    let below = root("", "0::/docker/ab/sub\n", &files);
    assert_eq!((quota(&below).cpus, quota(&below).levels_up), (2.0, 1));
    // Without the table that names the mount's root, the way up still ends at the mount point.
    let blind = root(V2, "0::/docker/ab\n", &[("sys/fs/cgroup/cpu.max", "200000 100000")]);
    assert_eq!(quota(&blind).cpus, 2.0);
    finding(&blind.read(), FindingKind::Missing, "sys/fs/cgroup/docker/ab");
}

#[test]
fn a_path_outside_of_the_namespace() {
    let files = [("sys/fs/cgroup/cpu.max", "300000 100000"), ("cpu.max", "1 100000")];
    for own in ["0::/../other\n", "0::/..\n", "0::/../../../../../..\n", "0::/a/../..\n"] {
        let root = root(V2, own, &files);
        let topology: Topology = root.read();
        assert_eq!(topology.cgroup.as_ref().unwrap().quota.as_ref().unwrap().cpus, 3.0, "{own}");
        finding(&topology, FindingKind::Suspect, "proc/self/cgroup");
    }
}

#[test]
fn paths_that_are_absurd() {
    let deep = format!("0::{}\n", "/x".repeat(300_000));
    let root = root(V2, &deep, &[("sys/fs/cgroup/cpu.max", "300000 100000")]);
    assert_eq!(quota(&root).cpus, 3.0);
    finding(&root.read(), FindingKind::Damaged, "proc/self/cgroup");
    root.file("proc/self/cgroup", "0::/with:colon\n:::\n::\n\u{0}\n9:cpu\n");
    root.file("sys/fs/cgroup/with:colon/cpu.max", "100000 100000");
    assert_eq!(quota(&root).cpus, 1.0);
    root.file("proc/self/cgroup", "0::/with\0nul\n");
    assert_eq!(quota(&root).cpus, 3.0);
    // A mount point that leads out of the root is not followed.
    root.file("proc/mounts", "cgroup2 /../../../../../../sys/fs/cgroup cgroup2 rw 0 0\n");
    let topology = root.read();
    assert_eq!(topology.cgroup.as_ref().unwrap().quota, None);
    assert!(topology.findings.iter().any(|f| f.kind == FindingKind::Escapes), "{topology}");
}

#[test]
fn no_mount_table() {
    let root = root("", "0::/a\n", &[("sys/fs/cgroup/a/cpu.max", "200000 100000")]);
    root.remove("proc/mounts");
    root.file("sys/fs/cgroup/cgroup.controllers", "cpu cpuset\n");
    assert_eq!(quota(&root).cpus, 2.0);
    finding(&root.read(), FindingKind::Missing, "proc/mounts");
    root.remove("sys/fs/cgroup");
    root.file("proc/self/cgroup", "1:cpuset:/a\n");
    root.file("sys/fs/cgroup/cpuset/a/cpuset.cpus", "7");
    assert_eq!(root.read().usable().to_string(), "7");
    root.remove("proc/self/cgroup");
    root.remove("sys/fs/cgroup");
    assert_eq!(root.read().cgroup, None);
}

#[test]
fn the_text_names_the_limit() {
    let root = root(
        V2,
        "0::/a/b\n",
        &[
            ("sys/fs/cgroup/a/cpu.max", "650000 100000"),
            ("sys/fs/cgroup/a/b/cpuset.cpus.effective", "1-3"),
        ],
    );
    let text = root.read().text();
    for line in [
        "  quota        6.5 CPUs, use 6 CPUs (/sys/fs/cgroup/a/cpu.max, 1 level up)",
        "  cpuset       CPUs 1-3 (/sys/fs/cgroup/a/b/cpuset.cpus.effective)",
        "  usable       1-3 (3; allowed by cpuset)",
    ] {
        assert!(text.lines().any(|have| have == line), "{line:?} is not in\n{text}");
    }
}
