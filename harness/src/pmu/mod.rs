//! Hardware counters of a thread's own user space: one group a thread, read at the borders of the
//! measured window, in user space (`rdpmc`) where that is permitted and by `read` where not.
//!
//! A group counts all its events at once or none of them. Where the kernel had to share the counters
//! with somebody else, the group did not run all the time; its counts are then a typed reason, not
//! an extrapolation.

mod events;
mod kernel;

use std::io;

use topology::CpuSet;

use crate::unavailable::Unavailable;
pub use events::METRICS;
use events::{Event, Source};
pub use kernel::{Counter, Kernel};

/// What opens and reads counters: the kernel, or a stand-in of a test.
pub trait Perf {
    /// An open counter.
    type Counter;

    /// Opens a counter of the calling thread's user space, at the head of a group or in one.
    ///
    /// # Errors
    /// What the system call gave.
    fn open(
        &self,
        attributes: Attributes,
        leader: Option<&Self::Counter>,
    ) -> io::Result<Self::Counter>;

    /// Reads a group of so many counters by a system call.
    ///
    /// # Errors
    /// What the system call gave.
    fn read(&self, leader: &Self::Counter, counters: usize) -> io::Result<Reading>;

    /// Reads a counter in user space; `None` where that is not permitted just now.
    fn read_in_user_space(&self, counter: &Self::Counter) -> Option<OneReading>;

    /// Reads a file below `/sys/bus/event_source/devices`.
    fn device(&self, path: &str) -> Option<String>;

    /// Reads `/proc/cpuinfo`.
    fn cpuinfo(&self) -> String;
}

/// What is asked of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attributes {
    /// The kind of event: 0 for generic hardware events, else the number of a PMU.
    pub kind: u32,
    /// The event.
    pub config: u64,
}

/// A group, read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reading {
    /// Nanoseconds for which the group was enabled.
    pub enabled_ns: u64,
    /// Nanoseconds of these for which it counted.
    pub running_ns: u64,
    /// The counts, leader first.
    pub values: Vec<u64>,
}

/// One counter, read in user space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OneReading {
    /// Nanoseconds for which the counter was enabled, as far as the kernel has written them down.
    pub enabled_ns: u64,
    /// Nanoseconds of these for which it counted.
    pub running_ns: u64,
    /// The count.
    pub value: u64,
}

/// What a window counted of one metric.
pub type Count = (&'static str, Result<u64, Unavailable>);

/// The counters of one thread.
#[derive(Debug)]
pub struct Group<P: Perf> {
    perf: P,
    /// Open counters, leader first, with what they count.
    open: Vec<(&'static str, P::Counter)>,
    /// What could not be opened.
    missing: Vec<(&'static str, Unavailable)>,
}

impl<P: Perf> Group<P> {
    /// Opens the counters of the calling thread, which is pinned to `cpu`. The first event is a
    /// demand; each other one that is refused is a reason of its own.
    ///
    /// # Errors
    /// Why there are no counters.
    pub fn open(perf: P, cpu: u32) -> Result<Self, Unavailable> {
        let pmu = Pmu::of(&perf, cpu);
        let [first, others @ ..] = events::BASE;
        let leader = perf.open(pmu.attributes(first.source), None).map_err(|e| refused(&e))?;
        let mut group = Self { perf, open: vec![(first.metric, leader)], missing: vec![] };
        for event in others {
            group.add(&pmu, event);
        }
        match events::foreign_lines(&group.perf.cpuinfo(), pmu.core_kind()) {
            Ok(events) => {
                let counted = |name: &str| events.iter().find(|event| event.metric == name);
                for name in events::FOREIGN {
                    match counted(name) {
                        Some(event) => group.add(&pmu, event),
                        None => group.missing.push((
                            name,
                            Unavailable::because("no_event", "this CPU has no such event"),
                        )),
                    }
                }
            }
            Err(reason) => {
                group.missing.extend(events::FOREIGN.map(|name| (name, reason.clone())));
            }
        }
        Ok(group)
    }

    fn add(&mut self, pmu: &Pmu, event: &Event) {
        let leader = self.open.first().map(|(_, leader)| leader);
        match self.perf.open(pmu.attributes(event.source), leader) {
            Ok(counter) => self.open.push((event.metric, counter)),
            Err(error) => self.missing.push((event.metric, in_group_refused(&error))),
        }
    }

    /// Reads all counters: in user space if every one of them can be, else by a system call.
    ///
    /// # Errors
    /// When the kernel cannot be asked.
    pub fn now(&self) -> Result<Reading, Unavailable> {
        if let Some(reading) = self.now_in_user_space() {
            return Ok(reading);
        }
        let Some((_, leader)) = self.open.first() else { return Ok(Reading::default()) };
        let reading = self.perf.read(leader, self.open.len());
        let reading =
            reading.map_err(|error| Unavailable::syscall("pmu_not_read", "read", &error))?;
        match reading.values.len() == self.open.len() {
            true => Ok(reading),
            false => Err(Unavailable::because("pmu_not_read", "the kernel gave other counters")),
        }
    }

    fn now_in_user_space(&self) -> Option<Reading> {
        let mut reading = Reading::default();
        for (at, (_, counter)) in self.open.iter().enumerate() {
            let one = self.perf.read_in_user_space(counter)?;
            if at == 0 {
                (reading.enabled_ns, reading.running_ns) = (one.enabled_ns, one.running_ns);
            }
            reading.values.push(one.value);
        }
        Some(reading)
    }

    /// Gives what was counted between two readings.
    pub fn between(
        &self,
        before: &Result<Reading, Unavailable>,
        after: &Result<Reading, Unavailable>,
    ) -> Vec<Count> {
        let values = match (before, after) {
            (Ok(before), Ok(after)) => difference(before, after),
            (Err(reason), _) | (_, Err(reason)) => Err(reason.clone()),
        };
        let counted = self.open.iter().enumerate().map(|(at, (metric, _))| {
            (*metric, values.as_ref().map(|values| values[at]).map_err(Clone::clone))
        });
        let missing = self.missing.iter().map(|(metric, reason)| (*metric, Err(reason.clone())));
        counted.chain(missing).collect()
    }
}

/// Subtracts; a group that did not count all the time has no counts.
fn difference(before: &Reading, after: &Reading) -> Result<Vec<u64>, Unavailable> {
    // Read in user space, both times stand still while the group counts, and the enabled one alone
    // goes on while it does not.
    let enabled = after.enabled_ns.saturating_sub(before.enabled_ns);
    let running = after.running_ns.saturating_sub(before.running_ns);
    if running < enabled && after.running_ns == 0 {
        return Err(Unavailable::because(
            "pmu_never_ran",
            "somebody else has the counters (a debugger, the NMI watchdog, another profiler)",
        ));
    }
    if running < enabled {
        return Err(Unavailable::because(
            "pmu_multiplexed",
            format!(
                "the group counted for {running} of {enabled} ns; stop other users of counters"
            ),
        ));
    }
    let pairs = before.values.iter().zip(&after.values);
    Ok(pairs.map(|(before, after)| after.wrapping_sub(*before)).collect())
}

/// The unit that counts on one CPU.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Pmu {
    /// Its number where the machine has cores of several kinds, and its name.
    hybrid: Option<(u32, &'static str)>,
    /// The number for events of the CPU's own.
    raw_kind: u32,
}

impl Pmu {
    /// Finds the unit. On machines with cores of two kinds each kind has one of its own, and an event
    /// that is opened on the other one stays 0.
    fn of(perf: &impl Perf, cpu: u32) -> Self {
        const RAW: u32 = 4;
        let number = |name: &str| perf.device(&format!("{name}/type"))?.trim().parse().ok();
        for name in ["cpu_core", "cpu_atom"] {
            let cpus = perf.device(&format!("{name}/cpus"));
            let cpus = cpus.and_then(|list| CpuSet::parse_list(list.trim()).ok());
            if let (true, Some(number)) = (cpus.is_some_and(|set| set.contains(cpu)), number(name))
            {
                return Self { hybrid: Some((number, name)), raw_kind: number };
            }
        }
        Self { hybrid: None, raw_kind: number("cpu").unwrap_or(RAW) }
    }

    fn core_kind(&self) -> &'static str {
        self.hybrid.map_or("cpu", |(_, name)| name)
    }

    fn attributes(&self, source: Source) -> Attributes {
        const HARDWARE: u32 = 0;
        match source {
            // The upper half of a generic event names the unit.
            Source::Generic(event) => {
                let unit = self.hybrid.map_or(0, |(number, _)| u64::from(number));
                Attributes { kind: HARDWARE, config: unit << 32 | event }
            }
            Source::Raw { event, mask } => {
                Attributes { kind: self.raw_kind, config: u64::from(mask) << 8 | u64::from(event) }
            }
        }
    }
}

fn refused(error: &io::Error) -> Unavailable {
    match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => Unavailable::because(
            "pmu_not_permitted",
            format!(
                "perf_event_open: {error}; lower kernel.perf_event_paranoid to 2 (`manycore \
                 doctor --apply`), give CAP_PERFMON, or let seccomp pass it"
            ),
        ),
        Some(libc::EMFILE | libc::ENFILE) => Unavailable::because(
            "no_descriptor",
            format!("perf_event_open: {error}; raise the limit of open files (ulimit -n)"),
        ),
        _ => Unavailable::syscall("no_pmu", "perf_event_open", error),
    }
}

/// The leader is open, so that a refusal is about this event.
fn in_group_refused(error: &io::Error) -> Unavailable {
    match error.raw_os_error() {
        Some(libc::EINVAL | libc::ENOSPC) => Unavailable::because(
            "pmu_group_full",
            format!(
                "perf_event_open: {error}; more events than counters: stop other users of counters \
                 (kernel.nmi_watchdog=0 frees one)"
            ),
        ),
        Some(libc::ENOENT | libc::EOPNOTSUPP) => {
            Unavailable::because("no_event", format!("perf_event_open: {error}"))
        }
        _ => refused(error),
    }
}

/// Tries to open counters of this thread.
pub(crate) fn can_count() -> Result<(), Unavailable> {
    Group::open(Kernel, crate::affinity::current_cpu().unwrap_or(0)).map(|_| ())
}

#[cfg(test)]
mod tests;
