//! The `/proc` and `/sys` of a host about which there is nothing to complain: four isolated CPUs on
//! two nodes, bare metal. Tests spoil one thing at a time.

use std::fs;
use std::path::{Path, PathBuf};

const CPU: &str = "sys/devices/system/cpu";
const NODE: &str = "sys/devices/system/node";

/// A tree in a temporary directory that lives as long as this value.
pub(crate) struct Tree {
    dir: tempfile::TempDir,
}

impl Tree {
    /// Writes the healthy host.
    pub(crate) fn healthy() -> Self {
        let tree = Self { dir: tempfile::tempdir().unwrap() };
        tree.files(&[
            ("sys/devices/system/cpu/online", "0-3\n"),
            ("sys/devices/system/cpu/isolated", "0-3\n"),
            ("sys/devices/system/cpu/nohz_full", "0-3\n"),
            ("sys/devices/system/cpu/intel_pstate/no_turbo", "1\n"),
            ("sys/devices/system/cpu/smt/control", "off\n"),
            ("sys/devices/system/cpu/smt/active", "0\n"),
            ("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n"),
            ("sys/devices/system/clocksource/clocksource0/available_clocksource", "tsc hpet\n"),
            ("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
            (
                "sys/kernel/mm/transparent_hugepage/defrag",
                "always defer defer+madvise [madvise] never\n",
            ),
            ("sys/kernel/mm/ksm/run", "0\n"),
            ("proc/sys/kernel/numa_balancing", "0\n"),
            ("proc/sys/kernel/randomize_va_space", "2\n"),
            ("proc/sys/kernel/perf_event_paranoid", "2\n"),
            ("proc/sys/vm/zone_reclaim_mode", "0\n"),
            ("proc/loadavg", "0.05 0.10 0.10 1/200 4242\n"),
            ("proc/cpuinfo", "processor\t: 0\nmodel name\t: Some CPU\nflags\t\t: fpu tsc\n"),
            ("proc/meminfo", MEMINFO),
            ("proc/stat", "cpu  4 0 0 0 0 0 0 0 0 0\n"),
            ("proc/irq/9/smp_affinity_list", "4-7\n"),
            ("proc/irq/9/eth0/x", ""),
            ("proc/irq/10/smp_affinity_list", "0-3\n"),
            ("proc/1/comm", "init\n"),
            ("proc/1/status", "Cpus_allowed_list:\t0-3\n"),
            ("proc/self/status", "CapEff:\t0000000000000000\nCpus_allowed_list:\t0-3\n"),
            (
                "proc/self/limits",
                "Max locked memory         unlimited            unlimited  bytes\n",
            ),
            ("proc/self/cgroup", "0::/job\n"),
            ("proc/self/mountinfo", "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"),
            ("sys/fs/cgroup/job/cpu.max", "max 100000\n"),
            ("sys/fs/cgroup/job/cpu.stat", "usage_usec 5\nnr_throttled 0\nthrottled_usec 0\n"),
        ]);
        let stat: String =
            (0..4).map(|cpu| format!("cpu{cpu} 900 0 100 5000 0 0 0 0 0 0\n")).collect();
        tree.file("proc/stat", &format!("cpu  3600 0 400 20000 0 0 0 0 0 0\n{stat}"));
        (0..4).for_each(|cpu| tree.cpu(cpu));
        (0..2).for_each(|node| tree.node(node));
        tree
    }

    fn cpu(&self, cpu: u32) {
        let dir = format!("{CPU}/cpu{cpu}");
        let files = [
            ("topology/physical_package_id", "0\n".to_owned()),
            ("topology/core_id", format!("{cpu}\n")),
            ("topology/core_cpus_list", format!("{cpu}\n")),
            ("cpufreq/scaling_governor", "performance\n".into()),
            ("cpufreq/scaling_available_governors", "performance powersave\n".into()),
            ("thermal_throttle/core_throttle_count", "0\n".into()),
            ("cpuidle/state0/name", "POLL\n".into()),
            ("cpuidle/state0/latency", "0\n".into()),
            ("cpuidle/state0/disable", "0\n".into()),
            ("cpuidle/state1/name", "C6\n".into()),
            ("cpuidle/state1/latency", "133\n".into()),
            ("cpuidle/state1/disable", "1\n".into()),
        ];
        files.iter().for_each(|(path, text)| self.file(&format!("{dir}/{path}"), text));
    }

    fn node(&self, node: u32) {
        let dir = format!("{NODE}/node{node}");
        let (first, last) = (node * 2, node * 2 + 1);
        self.file(&format!("{dir}/cpulist"), &format!("{first}-{last}\n"));
        self.file(&format!("{dir}/meminfo"), &format!("Node {node} MemTotal: 1000 kB\n"));
        self.file(&format!("{dir}/distance"), if node == 0 { "10 21\n" } else { "21 10\n" });
        self.file(&format!("{dir}/hugepages/hugepages-2048kB/free_hugepages"), "8\n");
    }

    /// Gives the root.
    pub(crate) fn root(&self) -> &Path {
        self.dir.path()
    }

    /// Gives the path of a file.
    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.root().join(path)
    }

    /// Writes one file, and the directories above it.
    pub(crate) fn file(&self, path: &str, text: &str) {
        let at = self.at(path);
        fs::create_dir_all(at.parent().unwrap()).unwrap();
        fs::write(at, text).unwrap();
    }

    /// Writes several files.
    pub(crate) fn files(&self, files: &[(&str, &str)]) {
        files.iter().for_each(|(path, text)| self.file(path, text));
    }
}

const MEMINFO: &str = "MemTotal: 2000 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\nHugePages_Total: 16\n\
                       HugePages_Free: 16\nHugepagesize: 2048 kB\n";
