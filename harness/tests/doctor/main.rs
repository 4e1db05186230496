//! Every check of the doctor, both ways, on trees that were made for it.

mod healthy;
mod settings;

use std::collections::BTreeSet;
use std::fs;

use harness::doctor::{
    CHECKS, CpuHiccups, Finding, Live, Quiet, Subject, Verdict, Warp, examine, worst,
};
use harness::unavailable::Unavailable;
use healthy::Tree;
use topology::Topology;

fn unmeasured() -> Result<Live, Unavailable> {
    Err(Unavailable::new("not_this_host"))
}

fn examined(tree: &Tree, live: Result<Live, Unavailable>) -> Vec<Finding> {
    let host = Topology::from_root(tree.root()).unwrap();
    examine(&Subject::new(&host, live).unwrap())
}

fn of<'a>(findings: &'a [Finding], check: &str) -> &'a Finding {
    findings.iter().find(|finding| finding.check == check).unwrap_or_else(|| panic!("no {check}"))
}

const MEASURED_ONLY: [&str; 2] = ["hiccups", "tsc_warp"];

#[test]
fn nothing_is_wrong_with_the_healthy_host() {
    let findings = examined(&Tree::healthy(), unmeasured());
    assert_eq!(findings.len(), CHECKS.len());
    for finding in &findings {
        let expected = match MEASURED_ONLY.contains(&finding.check) {
            true => Verdict::Unknown,
            false => Verdict::Ok,
        };
        assert_eq!(finding.verdict, expected, "{}: {}", finding.check, finding.message());
    }
    assert_eq!(worst(&findings), Verdict::Ok);
}

use Verdict::{Ok as Fine, Unfit, Warn};

/// A check, the files that differ from the healthy host's, the verdict, and words of the message
/// and the remedy.
type Case =
    (&'static str, &'static [(&'static str, &'static str)], Verdict, &'static [&'static str]);

const CASES: &[Case] = &[
    (
        "governor",
        &[("sys/devices/system/cpu/cpu2/cpufreq/scaling_governor", "powersave\n")],
        Warn,
        &["powersave on CPUs 2", "performance on CPUs 0-1,3", "--apply"],
    ),
    (
        "turbo",
        &[("sys/devices/system/cpu/intel_pstate/no_turbo", "0\n")],
        Warn,
        &["turbo is on", "echo 1"],
    ),
    (
        "thermal",
        &[("sys/devices/system/cpu/cpu1/thermal_throttle/core_throttle_count", "7\n")],
        Warn,
        &["CPUs 1 were slowed"],
    ),
    (
        "c_states",
        &[("sys/devices/system/cpu/cpu3/cpuidle/state1/disable", "0\n")],
        Warn,
        &["C6, 133 µs", "cpupower"],
    ),
    (
        "c_states",
        &[
            ("sys/devices/system/cpu/cpu3/cpuidle/state1/disable", "0\n"),
            ("sys/devices/system/cpu/cpu3/cpuidle/state1/latency", "10\n"),
        ],
        Fine,
        &["C6, 10 µs"],
    ),
    (
        "smt",
        &[
            ("sys/devices/system/cpu/smt/control", "on\n"),
            ("sys/devices/system/cpu/smt/active", "1\n"),
        ],
        Warn,
        &["siblings are online", "smt-last"],
    ),
    ("smt", &[("sys/devices/system/cpu/smt/control", "notsupported\n")], Fine, &["notsupported"]),
    ("isolation", &[("sys/devices/system/cpu/isolated", "\n")], Warn, &["CPUs 0-3", "isolcpus"]),
    (
        "isolation",
        &[("sys/devices/system/cpu/isolated", "2-3\n")],
        Warn,
        &["CPUs 0-1 are not isolated"],
    ),
    ("isolation", &[("sys/devices/system/cpu/nohz_full", "\n")], Fine, &["with a scheduler tick"]),
    (
        "cpuset",
        &[("proc/self/status", "CapEff:\t0\nCpus_allowed_list:\t0,2\n")],
        Warn,
        &["0,2 of 0-3", "cpuset.cpus"],
    ),
    (
        "quota",
        &[("sys/fs/cgroup/job/cpu.max", "150000 100000\n")],
        Warn,
        &["1.5 CPUs (/sys/fs/cgroup/job/cpu.max) for 4", "--threads up to 1 (as", "echo max"],
    ),
    ("quota", &[("sys/fs/cgroup/job/cpu.max", "50000 100000\n")], Unfit, &["0.5 CPUs", "echo max"]),
    ("quota", &[("sys/fs/cgroup/job/cpu.max", "400000 100000\n")], Warn, &["4 CPUs"]),
    (
        "quota",
        &[
            ("proc/self/cgroup", "1:cpu,cpuacct:/its job\n"),
            ("proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"),
            ("sys/fs/cgroup/cpu/its job/cpu.cfs_quota_us", "150000\n"),
            ("sys/fs/cgroup/cpu/its job/cpu.cfs_period_us", "100000\n"),
        ],
        Warn,
        &["1.5 CPUs", "echo -1 | sudo tee '/sys/fs/cgroup/cpu/its job/cpu.cfs_quota_us'"],
    ),
    (
        "throttling",
        &[
            ("sys/fs/cgroup/job/cpu.max", "150000 100000\n"),
            ("sys/fs/cgroup/job/cpu.stat", "nr_throttled 3\nthrottled_usec 77000\n"),
        ],
        Warn,
        &["77 ms"],
    ),
    (
        "throttling",
        &[("sys/fs/cgroup/job/cpu.max", "150000 100000\n")],
        Fine,
        &["no thread was stopped"],
    ),
    ("load", &[("proc/loadavg", "0.50 0 0 1/9 9\n")], Warn, &["0.5", "top"]),
    ("load", &[("proc/loadavg", "1.00 0 0 1/9 9\n")], Unfit, &["load average is 1"]),
    (
        "load_generator",
        &[("proc/77/comm", "wrk\n"), ("proc/77/status", "Cpus_allowed_list:\t3,9\n")],
        Unfit,
        &["wrk (process 77) may use the same CPUs", "another host"],
    ),
    (
        "load_generator",
        &[("proc/77/comm", "stress-ng\n"), ("proc/77/status", "Cpus_allowed_list:\t8-9\n")],
        Warn,
        &["stress-ng (process 77) runs on other CPUs"],
    ),
    ("load_generator", &[("proc/77/comm", "wrkshop\n")], Fine, &["no load generator"]),
    (
        "hypervisor",
        &[("proc/cpuinfo", "processor\t: 0\nflags\t\t: fpu hypervisor tsc\n")],
        Warn,
        &["virtual machine", "bare metal"],
    ),
    ("hypervisor", &[("sys/hypervisor/type", "xen\n")], Warn, &["(xen)"]),
    ("steal", &[("proc/stat", "cpu0 90 0 0 0 0 0 0 10 0 0\n")], Unfit, &["10.0 %"]),
    ("steal", &[("proc/stat", "cpu0 980 0 0 0 0 0 0 20 0 0\n")], Warn, &["2.0 %", "dedicated"]),
    ("steal", &[("proc/stat", "cpu0 999 0 0 0 0 0 0 1 0 0\n")], Fine, &["0.1 %"]),
    (
        "irq_affinity",
        &[("proc/irq/9/smp_affinity_list", "3-7\n")],
        Warn,
        &["1 device interrupts", "1 of them to isolated", "smp_affinity_list"],
    ),
    (
        "irq_affinity",
        &[("proc/irq/9/smp_affinity_list", "0-7\n"), ("proc/irq/9/effective_affinity_list", "5\n")],
        Fine,
        &["0 device interrupts"],
    ),
    ("irq_affinity", &[("proc/88/comm", "irqbalance\n")], Warn, &["irqbalance moves them"]),
    (
        "clock_source",
        &[
            ("sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n"),
            ("sys/devices/system/clocksource/clocksource0/available_clocksource", "hpet acpi_pm\n"),
        ],
        Unfit,
        &["by hpet", "tsc=reliable"],
    ),
    (
        "clock_source",
        &[("sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n")],
        Warn,
        &["by hpet and offers tsc hpet"],
    ),
    (
        "clock_source",
        &[
            ("sys/devices/system/clocksource/clocksource0/current_clocksource", "kvm-clock\n"),
            ("sys/devices/system/clocksource/clocksource0/available_clocksource", "kvm-clock\n"),
        ],
        Warn,
        &["kvm-clock"],
    ),
    (
        "thp",
        &[("sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n")],
        Warn,
        &["pages always", "echo madvise"],
    ),
    (
        "thp",
        &[("sys/kernel/mm/transparent_hugepage/defrag", "[always] madvise never\n")],
        Warn,
        &["defrag always"],
    ),
    (
        "thp",
        &[
            ("sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n"),
            ("sys/kernel/mm/transparent_hugepage/defrag", "[always] madvise never\n"),
        ],
        Fine,
        &["pages never"],
    ),
    (
        "huge_pages",
        &[
            ("proc/meminfo", "HugePages_Total: 0\nHugePages_Free: 0\nHugepagesize: 2048 kB\n"),
            ("sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n"),
        ],
        Warn,
        &["0 of 0 huge pages", "nr_hugepages"],
    ),
    (
        "huge_pages",
        &[("proc/meminfo", "HugePages_Total: 0\nHugePages_Free: 0\nHugepagesize: 2048 kB\n")],
        Fine,
        &["transparent ones can be had"],
    ),
    (
        "huge_pages",
        &[("sys/devices/system/node/node1/hugepages/hugepages-2048kB/free_hugepages", "0\n")],
        Warn,
        &["none on node 1"],
    ),
    ("numa_balancing", &[("proc/sys/kernel/numa_balancing", "1\n")], Warn, &["2 nodes", "echo 0"]),
    (
        "numa_balancing",
        &[
            ("proc/sys/kernel/numa_balancing", "1\n"),
            ("sys/devices/system/node/node1/meminfo", "Node 1 MemTotal: 0 kB\n"),
        ],
        Fine,
        &["for one node"],
    ),
    ("ksm", &[("sys/kernel/mm/ksm/run", "1\n")], Warn, &["merging runs", "echo 0"]),
    ("ksm", &[("sys/kernel/mm/ksm/run", "2\n")], Fine, &["does not run"]),
    ("zone_reclaim", &[("proc/sys/vm/zone_reclaim_mode", "1\n")], Warn, &["2 nodes", "echo 0"]),
    (
        "swap",
        &[("proc/meminfo", "SwapTotal: 100 kB\nSwapFree: 60 kB\n")],
        Warn,
        &["40 of 100 KiB", "swapoff"],
    ),
    ("swap", &[("proc/meminfo", "SwapTotal: 100 kB\nSwapFree: 100 kB\n")], Fine, &["none in use"]),
    ("aslr", &[("proc/sys/kernel/randomize_va_space", "0\n")], Warn, &["is 0", "echo 2"]),
    (
        "memlock",
        &[("proc/self/limits", "Max locked memory         65536                65536   bytes\n")],
        Warn,
        &["64 KiB", "ulimit -l"],
    ),
    (
        "memlock",
        &[("proc/self/limits", "Max locked memory         67108864             1  bytes\n")],
        Fine,
        &["65536 KiB"],
    ),
    (
        "memlock",
        &[
            ("proc/self/limits", "Max locked memory         65536                1  bytes\n"),
            ("proc/self/status", "CapEff:\t0000000000004000\n"),
        ],
        Fine,
        &["without a limit"],
    ),
    ("perf", &[("proc/sys/kernel/perf_event_paranoid", "3\n")], Warn, &["is 3", "cap_perfmon"]),
    (
        "perf",
        &[
            ("proc/sys/kernel/perf_event_paranoid", "4\n"),
            ("proc/self/status", "CapEff:\t0000004000000000\n"),
        ],
        Fine,
        &["is 4"],
    ),
    ("perf", &[("proc/sys/kernel/perf_event_paranoid", "-1\n")], Fine, &["is -1"]),
];

#[test]
fn one_thing_is_wrong_at_a_time() {
    for (check, files, verdict, words) in CASES {
        let tree = Tree::healthy();
        tree.files(files);
        let findings = examined(&tree, unmeasured());
        let finding = of(&findings, check);
        let said = format!("{} {:?}", finding.message(), finding.remedy);
        assert_eq!(finding.verdict, *verdict, "{check} with {files:?}: {said}");
        for word in *words {
            assert!(said.contains(word), "{check}: `{word}` is not in {said}");
        }
        if *verdict >= Warn {
            assert!(finding.message().ends_with(finding.effect), "{said}");
            assert!(finding.remedy.is_some(), "{said}");
        }
    }
}

#[test]
fn every_check_that_reads_has_a_bad_case() {
    let bad = |&&(_, _, verdict, _): &&Case| verdict >= Warn;
    let mut covered: BTreeSet<&str> = CASES.iter().filter(bad).map(|case| case.0).collect();
    covered.extend(MEASURED_ONLY);
    let all: BTreeSet<&str> = CHECKS.iter().map(|check| check.name).collect();
    assert_eq!(covered, all);
}

/// The file that each check cannot do without.
const NEEDS: [(&str, &str); 18] = [
    ("governor", "sys/devices/system/cpu/cpu3/cpufreq/scaling_governor"),
    ("turbo", "sys/devices/system/cpu/intel_pstate/no_turbo"),
    ("thermal", "sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count"),
    ("c_states", "sys/devices/system/cpu/cpu0/cpuidle/state1/latency"),
    ("smt", "sys/devices/system/cpu/smt/control"),
    ("isolation", "sys/devices/system/cpu/isolated"),
    ("load", "proc/loadavg"),
    ("steal", "proc/stat"),
    ("clock_source", "sys/devices/system/clocksource/clocksource0/current_clocksource"),
    ("thp", "sys/kernel/mm/transparent_hugepage/enabled"),
    ("huge_pages", "proc/meminfo"),
    ("numa_balancing", "proc/sys/kernel/numa_balancing"),
    ("ksm", "sys/kernel/mm/ksm/run"),
    ("zone_reclaim", "proc/sys/vm/zone_reclaim_mode"),
    ("swap", "proc/meminfo"),
    ("aslr", "proc/sys/kernel/randomize_va_space"),
    ("memlock", "proc/self/limits"),
    ("perf", "proc/sys/kernel/perf_event_paranoid"),
];

#[test]
fn what_cannot_be_read_is_unknown_with_the_reason_and_the_path() {
    for (check, path) in NEEDS {
        let tree = Tree::healthy();
        let expect = |code: &str| {
            let findings = examined(&tree, unmeasured());
            let finding = of(&findings, check);
            let reason = finding.reason.as_ref().unwrap_or_else(|| panic!("{check} {path}"));
            assert_eq!(
                (finding.verdict, reason.code.as_str()),
                (Verdict::Unknown, code),
                "{check}"
            );
            let detail = reason.detail.as_ref().unwrap();
            // Where one switch is not there, another is looked for.
            let other = check == "turbo" && code == "not_there";
            assert!(other || detail.contains(path), "{check}: {detail}");
        };
        fs::remove_file(tree.at(path)).unwrap();
        expect("not_there");
        fs::create_dir(tree.at(path)).unwrap();
        expect("not_readable");
        fs::remove_dir(tree.at(path)).unwrap();
        std::os::unix::fs::symlink("/etc/hostname", tree.at(path)).unwrap();
        expect("not_readable");
        fs::remove_file(tree.at(path)).unwrap();
        fs::write(tree.at(path), b"\xff\xfe\n").unwrap();
        expect("not_understood");
    }
}

/// A tree that holds the list of its CPUs alone: what is not there is never taken for good.
#[test]
fn nothing_is_known_of_an_empty_tree() {
    let dir = tempfile::tempdir().unwrap();
    let cpus = dir.path().join("sys/devices/system/cpu");
    fs::create_dir_all(&cpus).unwrap();
    fs::write(cpus.join("online"), "0-3\n").unwrap();
    let host = Topology::from_root(dir.path()).unwrap();
    for finding in examine(&Subject::new(&host, unmeasured()).unwrap()) {
        assert_eq!(finding.verdict, Verdict::Unknown, "{}: {}", finding.check, finding.message());
        let expected =
            if MEASURED_ONLY.contains(&finding.check) { "not_this_host" } else { "not_there" };
        assert_eq!(finding.reason.unwrap().code, expected, "{}", finding.check);
    }
}

fn quiet_cpu(cpu: u32) -> CpuHiccups {
    CpuHiccups {
        cpu,
        shortest_ns: 1e3,
        watched_ns: 1e8,
        device_interrupts: Some(1),
        ..CpuHiccups::default()
    }
}

const AGREEING: Warp = Warp {
    cpus: 4,
    backwards: 0,
    worst_ns: 0.0,
    offset_ns: 9.0,
    bound_ns: 60.0,
    ticks_per_ns: 2.0,
};

fn measured() -> Live {
    let quiet = Quiet { busy_cpus: 0.01, stolen_share: Some(0.0) };
    Live {
        quiet: Ok(quiet.clone()),
        under_load: Ok(quiet),
        hiccups: Ok((0..4).map(quiet_cpu).collect()),
        warp: Ok(AGREEING),
        throttled_us: Some(0),
        counters: Ok(()),
    }
}

/// Spoils one figure, and gives what is found then.
fn spoilt(check: &str, spoil: impl FnOnce(&mut Live)) -> (Verdict, String) {
    let tree = Tree::healthy();
    if check == "throttling" {
        tree.file("sys/fs/cgroup/job/cpu.max", "150000 100000\n");
    }
    let mut live = measured();
    spoil(&mut live);
    let findings = examined(&tree, Ok(live));
    let finding = of(&findings, check);
    (finding.verdict, finding.message())
}

#[test]
fn a_quiet_host_measures_well() {
    let findings = examined(&Tree::healthy(), Ok(measured()));
    let bad: Vec<String> = findings
        .iter()
        .filter(|finding| finding.verdict != Verdict::Ok)
        .map(Finding::message)
        .collect();
    assert_eq!(bad, Vec::<String>::new());
}

#[test]
fn measured_figures_have_their_thresholds() {
    let busy = |cpus: f64| {
        move |live: &mut Live| live.quiet = Ok(Quiet { busy_cpus: cpus, stolen_share: None })
    };
    assert_eq!(spoilt("load", busy(0.09)).0, Fine);
    assert_eq!(spoilt("load", busy(0.1)).0, Warn);
    let (verdict, message) = spoilt("load", busy(1.0));
    assert_eq!(verdict, Unfit);
    assert!(message.starts_with("1.00 CPUs were busy with other programs, load average 0.05"));

    let stolen = |share: f64| {
        move |live: &mut Live| {
            live.under_load = Ok(Quiet { busy_cpus: 4.0, stolen_share: Some(share) });
        }
    };
    assert_eq!(spoilt("steal", stolen(0.0)).0, Fine);
    assert_eq!(spoilt("steal", stolen(0.01)).0, Warn);
    assert_eq!(spoilt("steal", stolen(0.05)).0, Unfit);

    assert_eq!(spoilt("throttling", |live| live.throttled_us = Some(1)).0, Unfit);
    assert_eq!(spoilt("throttling", |live| live.throttled_us = Some(0)).0, Fine);

    let interrupts = |live: &mut Live| {
        live.hiccups.as_mut().unwrap()[2].device_interrupts = Some(200);
    };
    let (verdict, message) = spoilt("irq_affinity", interrupts);
    assert_eq!(verdict, Warn);
    assert!(message.contains("CPU 2 took 2000 a second"), "{message}");

    let no_counters = |live: &mut Live| live.counters = Err(Unavailable::new("no_pmu"));
    let (verdict, message) = spoilt("perf", no_counters);
    assert_eq!(verdict, Warn);
    assert!(message.contains("no_pmu"), "{message}");
}

#[test]
fn gaps_and_warps_have_their_thresholds() {
    let gaps = |lost_ns: f64, longest_ns: f64| {
        move |live: &mut Live| {
            let cpu = &mut live.hiccups.as_mut().unwrap()[3];
            *cpu = CpuHiccups {
                lost_ns,
                longest_ns,
                by_length: [4, 3, 2, 1],
                preempted: 1,
                interrupted: 7,
                unexplained: 2,
                ..cpu.clone()
            };
        }
    };
    let (verdict, message) = spoilt("hiccups", gaps(4e5, 9e5));
    assert_eq!(verdict, Fine);
    for word in
        ["10 gaps over 1.0 µs on 4 CPUs", "1 preempted, 7 interrupts, 2 unexplained", "CPU 3"]
    {
        assert!(message.contains(word), "{word} in {message}");
    }
    assert_eq!(spoilt("hiccups", gaps(4e5, 1e6)).0, Warn, "one gap of a millisecond");
    assert_eq!(spoilt("hiccups", gaps(5e5, 1e5)).0, Warn, "half a percent lost");
    assert_eq!(spoilt("hiccups", gaps(5e6, 1e6)).0, Unfit, "five percent lost");

    let warp = |backwards: u64, offset_ns: f64, bound_ns: f64| {
        move |live: &mut Live| {
            live.warp = Ok(Warp { backwards, worst_ns: 300.0, offset_ns, bound_ns, ..AGREEING });
        }
    };
    assert_eq!(spoilt("tsc_warp", warp(0, 100.0, 60.0)).0, Fine);
    assert_eq!(spoilt("tsc_warp", warp(0, 101.0, 200.0)).0, Fine, "smaller than what is known");
    assert_eq!(spoilt("tsc_warp", warp(0, 250.0, 200.0)).0, Warn);
    let (verdict, message) = spoilt("tsc_warp", warp(2, 0.0, 60.0));
    assert_eq!(verdict, Unfit);
    assert!(message.contains("backwards 2 times between CPUs, by 300 ns"), "{message}");
    let unknown = |live: &mut Live| live.warp = Err(Unavailable::new("no_tsc"));
    assert_eq!(spoilt("tsc_warp", unknown).0, Verdict::Unknown);
}
