//! What is found out by measuring this host: who else is busy, gaps, clocks that disagree.

use std::fs;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::Duration;

use topology::Topology;

use super::hiccups::{self, CpuHiccups};
use super::warp::{self, Warp};
use crate::clock::Clock;
use crate::noise::{StatTicks, stat_ticks, throttled_us};
use crate::pmu;
use crate::team::Team;
use crate::unavailable::Unavailable;

/// How long to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// About a tenth of a second, before a sweep.
    Brief,
    /// About a second.
    Thorough,
}

/// What the books of the kernel say of a time.
#[derive(Debug, Clone, PartialEq)]
pub struct Quiet {
    /// CPUs' worth of time that was used.
    pub busy_cpus: f64,
    /// Part of the time asked for that the hypervisor gave to others; `None` where nothing was
    /// asked for.
    pub stolen_share: Option<f64>,
}

/// What was measured.
#[derive(Debug, Clone)]
pub struct Live {
    /// While this program slept.
    pub quiet: Result<Quiet, Unavailable>,
    /// While it used every CPU.
    pub under_load: Result<Quiet, Unavailable>,
    /// Gaps on each CPU.
    pub hiccups: Result<Vec<CpuHiccups>, Unavailable>,
    /// Whether the CPUs' counters agree.
    pub warp: Result<Warp, Unavailable>,
    /// Microseconds for which the quota stopped threads meanwhile.
    pub throttled_us: Option<u64>,
    /// Whether hardware counters can be opened.
    pub counters: Result<(), Unavailable>,
}

impl Live {
    /// Measures this host's usable CPUs.
    pub fn measured(host: &Topology, clock: &Clock, look: Look) -> Self {
        let (rest, watch) = match look {
            Look::Brief => (Duration::from_millis(50), Duration::from_millis(50)),
            Look::Thorough => (Duration::from_millis(400), Duration::from_millis(400)),
        };
        let cpus: Vec<u32> = host.usable().iter().collect();
        let mut team = Team::new();
        let throttled_before = throttled(host);
        let (quiet, ()) = during(&cpus, || sleep(rest));
        let (under_load, hiccups) =
            during(&cpus, || hiccups::watch(&mut team, clock, &cpus, watch));
        let warp = warp::between(&mut team, clock, &cpus);
        let throttled_us = throttled(host).zip(throttled_before);
        Self {
            quiet,
            under_load,
            hiccups,
            warp,
            throttled_us: throttled_us.map(|(after, before)| after.saturating_sub(before)),
            counters: pmu::can_count(),
        }
    }
}

fn throttled(host: &Topology) -> Option<u64> {
    let quota = host.cgroup.as_ref()?.quota.as_ref()?;
    let file = PathBuf::from(&quota.file).with_file_name("cpu.stat");
    throttled_us(&fs::read_to_string(file).ok()?)
}

/// Does something, and says what the kernel's books have of that time.
fn during<R>(cpus: &[u32], act: impl FnOnce() -> R) -> (Result<Quiet, Unavailable>, R) {
    let now = || stat_ticks(&fs::read_to_string("/proc/stat").ok()?, cpus);
    let before = now();
    let result = act();
    let quiet = before.zip(now()).map(|(before, after)| quiet(before, after, cpus.len()));
    (quiet.ok_or_else(|| Unavailable::because("not_readable", "/proc/stat")), result)
}

fn quiet(before: StatTicks, after: StatTicks, cpus: usize) -> Quiet {
    let busy = after.busy.saturating_sub(before.busy);
    let stolen = after.stolen.saturating_sub(before.stolen);
    let all = busy + stolen + after.idle.saturating_sub(before.idle);
    Quiet {
        busy_cpus: StatTicks::share(busy + stolen, all) * cpus as f64,
        stolen_share: (busy + stolen > 0).then(|| StatTicks::share(stolen, busy + stolen)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_the_books() {
        let before = StatTicks { busy: 100, idle: 100, stolen: 10 };
        let after = StatTicks { busy: 130, idle: 160, stolen: 20 };
        let seen = quiet(before, after, 4);
        assert_eq!(seen, Quiet { busy_cpus: 1.6, stolen_share: Some(0.25) });
        assert_eq!(quiet(before, before, 4), Quiet { busy_cpus: 0.0, stolen_share: None });
    }

    #[test]
    fn this_host_can_be_measured() {
        let host = Topology::this_host().unwrap();
        let live = Live::measured(&host, &Clock::calibrated(&host.cpuid), Look::Brief);
        let watched = live.hiccups.unwrap();
        let cpus: Vec<u32> = watched.iter().map(|cpu| cpu.cpu).collect();
        assert_eq!(cpus, host.usable().iter().collect::<Vec<_>>());
        for cpu in &watched {
            assert!(cpu.watched_ns > 0.0 && cpu.lost_ns < cpu.watched_ns, "{cpu:?}");
            let causes = cpu.preempted + cpu.interrupted + cpu.unexplained;
            assert_eq!(cpu.gaps(), causes, "each gap has a cause and a length: {cpu:?}");
        }
        assert!(live.quiet.unwrap().busy_cpus <= host.usable().len() as f64);
    }
}
