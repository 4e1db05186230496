//! What disturbed a measurement: context switches, page faults, migrations, stolen time,
//! throttling, and drift of the clock rate.

use std::fs;
use std::path::PathBuf;

/// What one thread suffered between two looks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ThreadUsage {
    /// Times the thread gave its CPU away, by blocking.
    pub voluntary_switches: u64,
    /// Times the CPU was taken from it.
    pub involuntary_switches: u64,
    /// Page faults served without reading a device.
    pub minor_faults: u64,
    /// Page faults that read a device.
    pub major_faults: u64,
    /// Nanoseconds of CPU time, user and kernel.
    pub cpu_ns: u64,
    /// Nanoseconds for which the thread could have run and waited for its CPU; `None` where the
    /// kernel keeps no such books.
    pub run_queue_wait_ns: Option<u64>,
}

impl ThreadUsage {
    /// Reads the calling thread's totals; `None` where the kernel does not tell.
    pub fn now() -> Option<Self> {
        // SAFETY: all-zero bytes are a valid `rusage`.
        let mut usage = unsafe { std::mem::zeroed::<libc::rusage>() };
        // SAFETY: writes one `rusage` to the place given.
        if unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) } != 0 {
            return None;
        }
        let count = |value: libc::c_long| u64::try_from(value).unwrap_or(0);
        let ns =
            |time: libc::timeval| count(time.tv_sec) * 1_000_000_000 + count(time.tv_usec) * 1000;
        Some(Self {
            voluntary_switches: count(usage.ru_nvcsw),
            involuntary_switches: count(usage.ru_nivcsw),
            minor_faults: count(usage.ru_minflt),
            major_faults: count(usage.ru_majflt),
            cpu_ns: ns(usage.ru_utime) + ns(usage.ru_stime),
            run_queue_wait_ns: fs::read_to_string("/proc/thread-self/schedstat")
                .ok()
                .and_then(|text| run_queue_wait_ns(&text)),
        })
    }

    /// Gives what was added since `earlier`.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            voluntary_switches: self.voluntary_switches.saturating_sub(earlier.voluntary_switches),
            involuntary_switches: self
                .involuntary_switches
                .saturating_sub(earlier.involuntary_switches),
            minor_faults: self.minor_faults.saturating_sub(earlier.minor_faults),
            major_faults: self.major_faults.saturating_sub(earlier.major_faults),
            cpu_ns: self.cpu_ns.saturating_sub(earlier.cpu_ns),
            run_queue_wait_ns: self
                .run_queue_wait_ns
                .zip(earlier.run_queue_wait_ns)
                .map(|(now, then)| now.saturating_sub(then)),
        }
    }
}

/// The second figure of `schedstat`: time on a CPU, time waiting for one, time slices.
fn run_queue_wait_ns(schedstat: &str) -> Option<u64> {
    schedstat.split_whitespace().nth(1)?.parse().ok()
}

/// What the host took from the CPUs between two looks. A part that the host does not report is
/// `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HostUsage {
    /// Ticks of `1/sysconf(_SC_CLK_TCK)` seconds that the hypervisor gave to others, over the CPUs
    /// in use.
    pub steal_ticks: Option<u64>,
    /// Microseconds for which the cgroup's quota stopped the process.
    pub throttled_us: Option<u64>,
}

/// Looks at the host's books for certain CPUs.
#[derive(Debug, Clone)]
pub struct HostWatch {
    cpus: Vec<u32>,
    cgroup_stat: Vec<PathBuf>,
}

impl HostWatch {
    /// Watches `cpus`, and the `cpu.stat` files of the process's cgroups.
    pub fn new(cpus: &[u32], cgroup_stat: Vec<PathBuf>) -> Self {
        Self { cpus: cpus.to_vec(), cgroup_stat }
    }

    /// Reads the totals.
    pub fn now(&self) -> HostUsage {
        let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
        let throttled: Vec<u64> = self
            .cgroup_stat
            .iter()
            .filter_map(|path| throttled_us(&fs::read_to_string(path).ok()?))
            .collect();
        HostUsage {
            steal_ticks: steal_ticks(&stat, &self.cpus),
            throttled_us: (!throttled.is_empty()).then(|| throttled.iter().sum()),
        }
    }
}

impl HostUsage {
    /// Gives what was added since `earlier`.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        let added = |now: Option<u64>, then: Option<u64>| Some(now?.saturating_sub(then?));
        Self {
            steal_ticks: added(self.steal_ticks, earlier.steal_ticks),
            throttled_us: added(self.throttled_us, earlier.throttled_us),
        }
    }
}

fn steal_ticks(stat: &str, cpus: &[u32]) -> Option<u64> {
    stat_ticks(stat, cpus).map(|ticks| ticks.stolen)
}

/// What `/proc/stat` has of some CPUs, in ticks since the machine started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct StatTicks {
    /// In user space, the kernel and interrupts.
    pub(crate) busy: u64,
    /// Without work, or waiting for a device.
    pub(crate) idle: u64,
    /// With work while the hypervisor ran others.
    pub(crate) stolen: u64,
}

impl StatTicks {
    /// Gives a part of a whole; 0 of nothing.
    pub(crate) fn share(part: u64, whole: u64) -> f64 {
        if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
    }
}

/// Adds up the lines of some CPUs; `None` where there is none of them, or one is damaged.
pub(crate) fn stat_ticks(stat: &str, cpus: &[u32]) -> Option<StatTicks> {
    const COLUMNS: usize = 8;
    let mut found = None;
    for line in stat.lines() {
        let Some(cpu) = line.split(' ').next().and_then(|name| name.strip_prefix("cpu")) else {
            continue;
        };
        if !cpu.parse().is_ok_and(|cpu: u32| cpus.contains(&cpu)) {
            continue;
        }
        let columns = line.split_whitespace().skip(1).take(COLUMNS).map(|text| text.parse().ok());
        let columns: Vec<u64> = columns.collect::<Option<_>>()?;
        let &[user, nice, system, idle, waiting, hard, soft, stolen] = columns.as_slice() else {
            return None;
        };
        let sums: &mut StatTicks = found.get_or_insert_default();
        sums.busy += user + nice + system + hard + soft;
        sums.idle += idle + waiting;
        sums.stolen += stolen;
    }
    found
}

/// cgroup v2 says `throttled_usec`, v1 `throttled_time` in nanoseconds.
pub(crate) fn throttled_us(stat: &str) -> Option<u64> {
    stat.lines().find_map(|line| {
        let (name, value) = line.split_once(' ')?;
        let value: u64 = value.trim().parse().ok()?;
        match name {
            "throttled_usec" => Some(value),
            "throttled_time" => Some(value / 1000),
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "cpu  9 9 9 9 9 9 9 99 0 0\ncpu0 1 2 3 4 5 6 7 8 9 10\ncpu1 1 2 3 4 5 6 7 30 9 10\n\
                        cpu10 1 2 3 4 5 6 7 1000 0 0\nintr 5\n";

    #[test]
    fn steal_is_that_of_the_cpus_in_use() {
        assert_eq!(steal_ticks(STAT, &[0, 1]), Some(38));
        assert_eq!(steal_ticks(STAT, &[10]), Some(1000));
        assert_eq!(steal_ticks(STAT, &[7]), None);
        assert_eq!(steal_ticks("cpu0 1 2", &[0]), None);
        let ticks = StatTicks { busy: 1 + 2 + 3 + 6 + 7, idle: 4 + 5, stolen: 8 };
        assert_eq!(stat_ticks(STAT, &[0]), Some(ticks));
        assert_eq!(stat_ticks("cpu0 1 2 x 4 5 6 7 8", &[0]), None);
    }

    #[test]
    fn throttling_of_both_cgroup_versions() {
        assert_eq!(throttled_us("nr_periods 1\nthrottled_usec 77\n"), Some(77));
        assert_eq!(throttled_us("nr_throttled 1\nthrottled_time 5000\n"), Some(5));
        assert_eq!(throttled_us("usage_usec 1\n"), None);
    }

    #[test]
    fn waits_for_a_cpu_are_the_second_figure() {
        assert_eq!(run_queue_wait_ns("123 456 7\n"), Some(456));
        assert_eq!(run_queue_wait_ns("123"), None);
        assert_eq!(run_queue_wait_ns("1 x 2"), None);
    }

    #[test]
    fn a_thread_sees_its_own_switches_and_faults() {
        let before = ThreadUsage::now().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(2));
        let fresh = vec![1_u8; 16 << 20];
        std::hint::black_box(&fresh);
        let added = ThreadUsage::now().unwrap().since(before);
        assert!(added.voluntary_switches >= 1, "{added:?}");
        assert!(added.minor_faults >= 1, "{added:?}");
    }
}
