//! Who else has a share of the CPUs: siblings, other tasks, quotas, hypervisors.

use topology::{Cpuid, Quota};

use super::finding::{Looked, Outcome};
use super::live::Quiet;
use super::subject::Subject;
use super::tree::misread;
use crate::noise::{StatTicks, stat_ticks, throttled_us};
use crate::unavailable::Unavailable;

pub(super) fn smt(on: &Subject) -> Looked {
    const DIRECTORY: &str = "sys/devices/system/cpu/smt";
    let control = on.tree.word(&format!("{DIRECTORY}/control"))?;
    let active = on.tree.word(&format!("{DIRECTORY}/active"))?;
    let seen = format!("SMT control is {control}");
    Ok(match active.as_str() {
        "1" => Outcome::warn(
            format!("{seen}, siblings are online"),
            format!(
                "measure one thread a core (--placement smt-last, threads up to the cores), or \
                 echo off | sudo tee /{DIRECTORY}/control"
            ),
        ),
        _ => Outcome::ok(seen),
    })
}

pub(super) fn isolation(on: &Subject) -> Looked {
    const PATH: &str = "sys/devices/system/cpu/isolated";
    let cpus = &on.topology.cpus;
    // The topology has the list; the file says why it has none.
    on.tree.text(PATH)?;
    let isolated = cpus.isolated.as_ref().ok_or_else(|| misread(PATH, "it is no list of CPUs"))?;
    let (usable, tickless) = (on.topology.usable(), cpus.nohz_full.as_ref());
    let ticks = match tickless.is_some_and(|tickless| usable.is_subset(tickless)) {
        true => "without a scheduler tick",
        false => "with a scheduler tick",
    };
    Ok(match usable.is_subset(isolated) {
        true => Outcome::ok(format!("CPUs {usable} are isolated, {ticks}")),
        false => Outcome::warn(
            format!("CPUs {} are not isolated", usable.difference(isolated)),
            "boot with isolcpus=LIST nohz_full=LIST rcu_nocbs=LIST and run under taskset -c LIST; \
             leave CPU 0 to the system",
        ),
    })
}

pub(super) fn cpuset(on: &Subject) -> Looked {
    if on.topology.cpus.allowed.is_none() {
        return Err(Unavailable::because("not_there", "nothing says which CPUs are allowed"));
    }
    let (usable, online) = (on.topology.usable(), &on.topology.cpus.online);
    Ok(match usable.len() < online.len() {
        false => Outcome::ok(format!("this process may use all CPUs that are online, {online}")),
        true => Outcome::warn(
            format!("this process may use CPUs {usable} of {online} online"),
            "if that is not meant: widen cpuset.cpus of the cgroup, or the taskset",
        ),
    })
}

/// Gives the quota in force. A host may be without cgroups; a saved tree may just not hold them.
fn quota_of<'a>(on: &Subject<'a>) -> Result<Option<&'a Quota>, Unavailable> {
    match &on.topology.cgroup {
        None if !on.topology.this_host => {
            Err(Unavailable::because("not_there", "/proc/self/cgroup: no cgroups in this tree"))
        }
        cgroup => Ok(cgroup.as_ref().and_then(|cgroup| cgroup.quota.as_ref())),
    }
}

pub(super) fn quota(on: &Subject) -> Looked {
    let Some(quota) = quota_of(on)? else {
        return Ok(Outcome::ok("no quota in any cgroup that can be seen"));
    };
    let usable = on.topology.usable().len();
    let seen = format!("a quota of {} CPUs ({}) for {usable} in use", quota.cpus, quota.file);
    let without = if quota.file.ends_with("cpu.cfs_quota_us") { "-1" } else { "max" };
    let file = quota.file.replace('\'', "'\\''");
    let lift = format!("echo {without} | sudo tee '{file}'");
    // No more threads are measured than fit into it, unless somebody insists. Where threads are
    // stopped all the same, the check of throttling and each point tell.
    Ok(match quota.cpus as usize {
        0 => Outcome::unfit(format!("{seen}: not one thread fits into it"), lift),
        fits if fits < usable => Outcome::warn(
            seen,
            format!("measure with --threads up to {fits} (as `auto` does), or {lift}"),
        ),
        _ => Outcome::warn(seen, lift),
    })
}

pub(super) fn throttling(on: &Subject) -> Looked {
    let Some(quota) = quota_of(on)? else {
        return Ok(Outcome::ok("no quota that could stop threads"));
    };
    let directory = quota.file.trim_start_matches('/').rsplit_once('/').map_or("", |(d, _)| d);
    let path = format!("{directory}/cpu.stat");
    let text = on.tree.text(&path)?;
    let stopped = throttled_us(&text).ok_or_else(|| misread(&path, "it has no throttled time"))?;
    let remedy = format!("raise the quota in {}, or use fewer threads", quota.file);
    let during = on.live().ok().and_then(|live| live.throttled_us);
    Ok(match (during, stopped) {
        (Some(1..), _) => Outcome::unfit("threads were stopped while the doctor looked", remedy),
        (_, 0) => Outcome::ok("no thread was stopped so far"),
        _ => Outcome::warn(
            format!("threads of this cgroup were stopped for {} ms so far", stopped / 1000),
            remedy,
        ),
    })
}

/// Busy CPUs from which on others are heard, and from which on they drown the measurement.
fn busy_limits(usable: usize) -> [f64; 2] {
    [0.1, (usable as f64 / 8.0).max(1.0)]
}

pub(super) fn load(on: &Subject) -> Looked {
    const PATH: &str = "proc/loadavg";
    const REMEDY: &str = "stop what else runs (`top` names it), or wait until it is done";
    let average = on.tree.word(PATH).and_then(|line| {
        let first = line.split(' ').next().and_then(|first| first.parse::<f64>().ok());
        first
            .filter(|load| load.is_finite())
            .ok_or_else(|| misread(PATH, "it begins with no number"))
    });
    let usable = on.topology.usable().len();
    if let Some(quiet) = on.live().ok().and_then(|live| live.quiet.as_ref().ok()) {
        let history =
            average.map_or_else(|_| String::new(), |load| format!(", load average {load}"));
        let seen = format!("{:.2} CPUs were busy with other programs{history}", quiet.busy_cpus);
        return Ok(Outcome::by_figure(quiet.busy_cpus, busy_limits(usable), seen, REMEDY));
    }
    let average = average?;
    let [_, unfit] = busy_limits(usable);
    Ok(Outcome::by_figure(average, [0.5, unfit], format!("the load average is {average}"), REMEDY))
}

pub(super) fn steal(on: &Subject) -> Looked {
    const PATH: &str = "proc/stat";
    const REMEDY: &str = "ask for CPUs of your own (dedicated instance, pinned vCPUs)";
    if let Some(Quiet { stolen_share: Some(share), .. }) =
        on.live().ok().and_then(|live| live.under_load.as_ref().ok())
    {
        let seen = format!("{:.1} % of the time asked for was stolen just now", share * 100.0);
        return Ok(Outcome::by_figure(*share, [0.001, 0.05], seen, REMEDY));
    }
    let cpus: Vec<u32> = on.topology.usable().iter().collect();
    let ticks = stat_ticks(&on.tree.text(PATH)?, &cpus)
        .ok_or_else(|| misread(PATH, "it has no figures of the CPUs in use"))?;
    let share = StatTicks::share(ticks.stolen, ticks.busy + ticks.stolen);
    let seen = format!("{:.1} % of the time asked for since the start was stolen", share * 100.0);
    Ok(Outcome::by_figure(share, [0.01, 0.1], seen, REMEDY))
}

pub(super) fn hypervisor(on: &Subject) -> Looked {
    let warn = |name: &str| {
        Outcome::warn(
            format!("this is a virtual machine ({name})"),
            "measure on bare metal, or on a machine whose virtual CPUs are pinned one to one; \
             repeat at another hour",
        )
    };
    match &on.topology.cpuid {
        Cpuid::Read(facts) => Ok(match &facts.hypervisor {
            Some(vendor) => warn(vendor),
            None => Outcome::ok("no hypervisor, by CPUID"),
        }),
        Cpuid::Unavailable(_) => {
            if let Ok(kind) = on.tree.word("sys/hypervisor/type") {
                return Ok(warn(&kind));
            }
            const PATH: &str = "proc/cpuinfo";
            let text = on.tree.text(PATH)?;
            let flags = text.lines().find(|line| line.starts_with("flags"));
            let flags = flags.ok_or_else(|| misread(PATH, "it has no flags"))?;
            Ok(match flags.split_whitespace().any(|flag| flag == "hypervisor") {
                true => warn("by the flags of the CPU"),
                false => Outcome::ok("no hypervisor, by the flags of the CPU"),
            })
        }
    }
}
