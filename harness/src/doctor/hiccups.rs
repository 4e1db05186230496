//! Gaps in which a thread that only reads the clock does not get on, on each CPU at once.
//!
//! The cause of a gap is told apart as far as user space can: the kernel counts how often a thread
//! was preempted, and how many interrupts a CPU took; what neither explains was firmware or the
//! hypervisor.

use std::fs;
use std::time::Duration;

use crate::clock::Clock;
use crate::noise::ThreadUsage;
use crate::team::Team;
use crate::unavailable::Unavailable;

/// The shortest gap that counts, in nanoseconds, where the clock is read fast enough.
const SHORTEST_NS: f64 = 1e3;

/// Lengths of gaps: the name, and the nanoseconds below which a gap belongs to it.
pub(super) const BUCKETS: [(&str, f64); 4] =
    [("1-10us", 1e4), ("10-100us", 1e5), ("100us-1ms", 1e6), ("over_1ms", f64::INFINITY)];

/// What one CPU's watcher saw.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CpuHiccups {
    /// The CPU.
    pub cpu: u32,
    /// The shortest gap that counts: 1 µs, or four readings of a slow clock.
    pub shortest_ns: f64,
    /// How long it was watched.
    pub watched_ns: f64,
    /// What of that was lost in gaps.
    pub lost_ns: f64,
    /// The longest gap.
    pub longest_ns: f64,
    /// Gaps of 1 to 10 µs, to 100 µs, to 1 ms, and longer ones.
    pub by_length: [u64; 4],
    /// Gaps in which another thread got the CPU.
    pub preempted: u64,
    /// Other gaps, as many as the CPU took interrupts.
    pub interrupted: u64,
    /// Gaps that neither explains.
    pub unexplained: u64,
    /// Interrupts of devices meanwhile; `None` where the kernel does not tell.
    pub device_interrupts: Option<u64>,
}

impl CpuHiccups {
    /// Counts the gaps.
    pub fn gaps(&self) -> u64 {
        self.by_length.iter().sum()
    }

    /// Gives the part of the time that was lost.
    pub fn lost_share(&self) -> f64 {
        if self.watched_ns > 0.0 { self.lost_ns / self.watched_ns } else { 0.0 }
    }

    fn add(&mut self, gap_ns: f64, preempted: bool) {
        let bucket = BUCKETS.iter().position(|&(_, below)| gap_ns < below);
        self.by_length[bucket.unwrap_or(BUCKETS.len() - 1)] += 1;
        self.lost_ns += gap_ns;
        self.longest_ns = self.longest_ns.max(gap_ns);
        if preempted {
            self.preempted += 1;
        } else {
            self.unexplained += 1;
        }
    }

    /// Lets interrupts explain as many gaps as there were.
    fn explain(&mut self, interrupts: Option<Interrupts>) {
        let Some(interrupts) = interrupts else { return };
        self.interrupted = self.unexplained.min(interrupts.all);
        self.unexplained -= self.interrupted;
        self.device_interrupts = Some(interrupts.of_devices);
    }
}

/// Watches each CPU for some time.
pub(super) fn watch(
    team: &mut Team,
    clock: &Clock,
    cpus: &[u32],
    time: Duration,
) -> Result<Vec<CpuHiccups>, Unavailable> {
    let text = || fs::read_to_string("/proc/interrupts").unwrap_or_default();
    let before = text();
    let jobs = cpus
        .iter()
        .map(|&cpu| {
            let clock = clock.clone();
            move || watch_this(&clock, cpu, time)
        })
        .collect();
    let mut watched = team
        .run(cpus, jobs)
        .map_err(|error| Unavailable::because("not_pinned", error.to_string()))?;
    let after = text();
    for cpu in &mut watched {
        let both = interrupts(&after, cpu.cpu).zip(interrupts(&before, cpu.cpu));
        cpu.explain(both.map(|(after, before)| after.since(before)));
    }
    Ok(watched)
}

/// Readings of a slow clock vary by their own length: gaps must be longer than a few of them.
fn shortest_ns(reading_ns: f64) -> f64 {
    SHORTEST_NS.max(4.0 * reading_ns)
}

fn watch_this(clock: &Clock, cpu: u32, time: Duration) -> CpuHiccups {
    let shortest_ns = shortest_ns(clock.ns(clock.reading_ticks as f64));
    let shortest = clock.ticks(Duration::from_nanos(shortest_ns as u64)) + clock.reading_ticks;
    let switches = || ThreadUsage::now().map_or(0, |usage| usage.involuntary_switches);
    let mut seen = CpuHiccups { cpu, shortest_ns, ..CpuHiccups::default() };
    let mut switched = switches();
    let begin = clock.now();
    let end = begin + clock.ticks(time);
    let mut last = begin;
    while last < end {
        let now = clock.now();
        let gap = now.saturating_sub(last);
        last = now;
        if gap > shortest {
            let switched_now = switches();
            seen.add(clock.ns(gap as f64), switched_now > switched);
            switched = switched_now;
            last = clock.now();
        }
    }
    seen.watched_ns = clock.ns(last.saturating_sub(begin) as f64);
    seen
}

/// What a CPU took since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Interrupts {
    all: u64,
    of_devices: u64,
}

impl Interrupts {
    fn since(self, earlier: Self) -> Self {
        Self {
            all: self.all.saturating_sub(earlier.all),
            of_devices: self.of_devices.saturating_sub(earlier.of_devices),
        }
    }
}

/// Adds up the column of one CPU in `/proc/interrupts`; devices have numbers, the rest names.
fn interrupts(text: &str, cpu: u32) -> Option<Interrupts> {
    let mut lines = text.lines();
    let name = format!("CPU{cpu}");
    let column = lines.next()?.split_whitespace().position(|head| head == name)?;
    let mut sums = Interrupts { all: 0, of_devices: 0 };
    for line in lines {
        let Some((label, counts)) = line.split_once(':') else { continue };
        let count = counts.split_whitespace().nth(column).and_then(|count| count.parse().ok());
        let count: u64 = count.unwrap_or(0);
        sums.all += count;
        if label.trim().bytes().all(|byte| byte.is_ascii_digit()) {
            sums.of_devices += count;
        }
    }
    Some(sums)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_interrupts() {
        let text = "           CPU0       CPU2\n  0:  5  7  IO-APIC 2-edge timer\nLOC: 100 200 \
                    Local timer interrupts\nERR: 9\n";
        assert_eq!(interrupts(text, 0), Some(Interrupts { all: 114, of_devices: 5 }));
        assert_eq!(interrupts(text, 2), Some(Interrupts { all: 207, of_devices: 7 }));
        assert_eq!(interrupts(text, 1), None);
        assert_eq!(interrupts("", 0), None);
    }

    #[test]
    fn a_slow_clock_sees_longer_gaps_only() {
        assert_eq!(shortest_ns(20.0), 1000.0);
        assert_eq!(shortest_ns(700.0), 2800.0);
    }

    #[test]
    fn gaps_have_one_length_and_one_cause() {
        let mut seen = CpuHiccups { watched_ns: 4e6, ..CpuHiccups::default() };
        for (gap, preempted) in [(1.5e3, false), (2e4, false), (2e5, false), (2e6, true)] {
            seen.add(gap, preempted);
        }
        seen.explain(Some(Interrupts { all: 2, of_devices: 1 }));
        assert_eq!(seen.by_length, [1, 1, 1, 1]);
        assert_eq!((seen.preempted, seen.interrupted, seen.unexplained), (1, 2, 1));
        assert_eq!((seen.longest_ns, seen.device_interrupts), (2e6, Some(1)));
        assert_eq!(seen.lost_share(), 2_221_500.0 / 4e6);
    }
}
