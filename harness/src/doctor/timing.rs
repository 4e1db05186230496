//! Clocks, gaps, and who may count events.

use serde_json::json;

use super::finding::{Looked, Outcome};
use super::hiccups::{BUCKETS, CpuHiccups};
use super::subject::Subject;
use super::warp::Warp;

/// Sources that the C library reads without entering the kernel.
const READ_IN_USER_SPACE: [&str; 4] =
    ["tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter"];

/// Share of a CPU's time that gaps may take, and that spoils everything.
const LOST_SHARES: [f64; 2] = [0.005, 0.05];

/// A gap that shows in the latency of any operation it falls on, in nanoseconds.
const LONG_GAP_NS: f64 = 1e6;

/// Nanoseconds by which time-stamp counters of two CPUs may differ unnoticed: less than it takes
/// to tell another core.
const SMALL_WARP_NS: f64 = 100.0;

pub(super) fn clock_source(on: &Subject) -> Looked {
    const DIRECTORY: &str = "sys/devices/system/clocksource/clocksource0";
    let current = on.tree.word(&format!("{DIRECTORY}/current_clocksource"))?;
    let available = on.tree.word(&format!("{DIRECTORY}/available_clocksource"))?;
    let has_tsc = available.split_whitespace().any(|source| source == "tsc");
    let seen = format!("the kernel keeps time by {current} and offers {available}");
    let remedy = "boot with tsc=reliable where the hardware's counter is known to be good; see \
                  `dmesg | grep -i tsc` for why the kernel gave it up";
    Ok(match (READ_IN_USER_SPACE.contains(&current.as_str()), has_tsc) {
        _ if current == "tsc" || current == "arch_sys_counter" => Outcome::ok(seen),
        (true, true) => Outcome::ok(seen),
        (true, false) | (false, true) => Outcome::warn(seen, remedy),
        (false, false) => Outcome::unfit(seen, remedy),
    })
}

pub(super) fn tsc_warp(on: &Subject) -> Looked {
    let warp = on.live()?.warp.clone()?;
    let remedy = "measure on the CPUs that agree; boot with clocksource=hpet and expect dearer \
                  readings; update the firmware";
    if warp.backwards > 0 {
        let seen = format!(
            "the counter ran backwards {} times between CPUs, by {:.0} ns at most",
            warp.backwards, warp.worst_ns
        );
        return Ok(Outcome::unfit(seen, remedy));
    }
    let seen = format!(
        "{} CPUs, counters apart by {:.0} ns at most (known to ± {:.0} ns)",
        warp.cpus, warp.offset_ns, warp.bound_ns
    );
    // An offset that is smaller than what the exchange took may be none.
    let apart = warp.offset_ns > SMALL_WARP_NS && warp.offset_ns > warp.bound_ns;
    let outcome = if apart { Outcome::warn(seen, remedy) } else { Outcome::ok(seen) };
    let Warp { offset_ns, bound_ns, ticks_per_ns, .. } = warp;
    let details =
        json!({"offset_ns": offset_ns, "bound_ns": bound_ns, "ticks_per_ns": ticks_per_ns});
    Ok(outcome.with_details(details))
}

pub(super) fn hiccups(on: &Subject) -> Looked {
    let cpus = on.live()?.hiccups.clone()?;
    let total = |of: fn(&CpuHiccups) -> u64| cpus.iter().map(of).sum::<u64>();
    let worst = cpus.iter().max_by(|one, other| one.lost_share().total_cmp(&other.lost_share()));
    let Some(worst) = worst else { return Ok(Outcome::ok("no CPU was watched")) };
    let longest = cpus.iter().map(|cpu| cpu.longest_ns).fold(0.0, f64::max);
    let seen = format!(
        "{} gaps over {:.1} µs on {} CPUs in {:.0} ms ({} preempted, {} interrupts, {} unexplained), \
         the longest {:.1} µs; CPU {} lost {:.2} % of its time",
        total(CpuHiccups::gaps),
        worst.shortest_ns / 1e3,
        cpus.len(),
        worst.watched_ns / 1e6,
        total(|cpu| cpu.preempted),
        total(|cpu| cpu.interrupted),
        total(|cpu| cpu.unexplained),
        longest / 1e3,
        worst.cpu,
        worst.lost_share() * 100.0,
    );
    let remedy = "preempted: stop what else runs, isolate CPUs; interrupts: nohz_full, steer \
                  devices away; unexplained: firmware (SMI) or the hypervisor";
    let outcome = match longest >= LONG_GAP_NS && worst.lost_share() < LOST_SHARES[1] {
        true => Outcome::warn(seen, remedy),
        false => Outcome::by_figure(worst.lost_share(), LOST_SHARES, seen, remedy),
    };
    Ok(outcome.with_details(json!(cpus.iter().map(cpu_json).collect::<Vec<_>>())))
}

fn cpu_json(cpu: &CpuHiccups) -> serde_json::Value {
    let lengths = BUCKETS.iter().zip(cpu.by_length);
    let lengths: serde_json::Map<String, serde_json::Value> =
        lengths.map(|((name, _), count)| ((*name).to_owned(), json!(count))).collect();
    json!({
        "cpu": cpu.cpu, "shortest_ns": cpu.shortest_ns, "watched_ns": cpu.watched_ns, "lost_ns": cpu.lost_ns,
        "longest_ns": cpu.longest_ns, "preempted": cpu.preempted,
        "interrupted": cpu.interrupted, "unexplained": cpu.unexplained, "by_length": lengths,
    })
}

pub(super) const PARANOID: &str = "proc/sys/kernel/perf_event_paranoid";

/// The most that `perf_event_paranoid` may be for a program that counts its own user space.
pub(super) const MOST_PARANOID: i64 = 2;

pub(super) fn perf(on: &Subject) -> Looked {
    const PERFMON: u32 = 38;
    const SYS_ADMIN: u32 = 21;
    let paranoid = on.tree.number(PARANOID)?;
    let seen = format!("perf_event_paranoid is {paranoid}");
    let capable = on.is_capable(PERFMON)? || on.is_capable(SYS_ADMIN)?;
    if paranoid > MOST_PARANOID && !capable {
        let remedy = format!(
            "echo {MOST_PARANOID} | sudo tee /{PARANOID}, or `manycore doctor --apply`, or \
             sudo setcap cap_perfmon=ep on the program"
        );
        return Ok(Outcome::warn(seen, remedy));
    }
    let Ok(live) = on.live() else { return Ok(Outcome::ok(seen)) };
    Ok(match &live.counters {
        Ok(()) => Outcome::ok(format!("{seen}, hardware counters can be opened")),
        Err(reason) => Outcome::warn(
            format!("{seen}, and hardware counters cannot be opened: {reason}"),
            "in a virtual machine: ask for a virtual PMU; in a container: let seccomp pass \
             perf_event_open",
        ),
    })
}
