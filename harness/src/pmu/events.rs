//! Which events are counted, by CPU family.
//!
//! Codes of lines that came from another core's cache are those of the event tables of Linux
//! (`tools/perf/pmu-events/arch/x86`: haswellx, broadwellx, skylakex, icelakex, sapphirerapids,
//! alderlake, amdzen3, amdzen4, amdzen5).

use crate::unavailable::Unavailable;

/// Where an event is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// One of the kernel's own, which it translates for each CPU.
    Generic(u64),
    /// One of the CPU's own.
    Raw { event: u8, mask: u8 },
}

/// What is counted, under the name of its metric.
#[derive(Debug, Clone, Copy)]
pub(super) struct Event {
    pub(super) metric: &'static str,
    pub(super) source: Source,
}

/// The metrics of a group, in the order of records.
pub const METRICS: [&str; 5] =
    ["instructions_per_op", "cycles_per_op", "llc_misses", FOREIGN[0], FOREIGN[1]];

/// Lines that came from another core's cache, near and far.
pub(super) const FOREIGN: [&str; 2] = ["foreign_lines_per_op.near", "foreign_lines_per_op.far"];

/// What every CPU counts; the first event leads the group.
pub(super) const BASE: [&Event; 3] = [
    &Event { metric: METRICS[0], source: Source::Generic(1) },
    &Event { metric: METRICS[1], source: Source::Generic(0) },
    &Event { metric: METRICS[2], source: Source::Generic(3) },
];

/// Retired loads that hit a line which another core of the socket had modified.
const INTEL_NEAR: Event =
    Event { metric: FOREIGN[0], source: Source::Raw { event: 0xd2, mask: 0x04 } };

/// Retired loads that hit a line which a core of another socket had modified.
const INTEL_FAR: Event =
    Event { metric: FOREIGN[1], source: Source::Raw { event: 0xd3, mask: 0x04 } };

/// Fills from a cache of another group of cores, of addresses of the same node and of another one.
const AMD: [Event; 2] = [
    Event { metric: FOREIGN[0], source: Source::Raw { event: 0x43, mask: 0x04 } },
    Event { metric: FOREIGN[1], source: Source::Raw { event: 0x43, mask: 0x10 } },
];

/// The same of Haswell and Broadwell.
const INTEL_OLDER_FAR: Event =
    Event { metric: FOREIGN[1], source: Source::Raw { event: 0xd3, mask: 0x10 } };

const INTEL_CLIENT: [Event; 1] = [INTEL_NEAR];
const INTEL_SERVER: [Event; 2] = [INTEL_NEAR, INTEL_FAR];
const INTEL_OLDER_SERVER: [Event; 2] = [INTEL_NEAR, INTEL_OLDER_FAR];

/// Gives the events that count lines from other cores' caches.
pub(super) fn foreign_lines(
    cpuinfo: &str,
    core_kind: &str,
) -> Result<&'static [Event], Unavailable> {
    let field = |key: &str| {
        let line = cpuinfo.lines().find(|line| line.split(':').next().map(str::trim) == Some(key));
        line.and_then(|line| line.split_once(':')).map_or("", |(_, value)| value.trim())
    };
    let (vendor, family, model) = (field("vendor_id"), field("cpu family"), field("model"));
    let none = |what: String| Err(Unavailable::because("no_event_known", what));
    if core_kind == "cpu_atom" {
        return none("no such event is known for the small cores of this machine".into());
    }
    match (vendor, family.parse(), model.parse()) {
        ("GenuineIntel", Ok(6), Ok(model)) => match model {
            // Skylake, Cascade Lake, Cooper Lake; Ice Lake; Sapphire and Emerald Rapids.
            0x55 | 0x6a | 0x6c | 0x8f | 0xcf => Ok(&INTEL_SERVER),
            // Haswell and Broadwell.
            0x3f | 0x4f => Ok(&INTEL_OLDER_SERVER),
            // Skylake, Kaby, Coffee, Comet Lake; Ice, Tiger, Rocket Lake; Alder and Raptor Lake.
            0x4e | 0x5e | 0x8e | 0x9e | 0xa5 | 0xa6 | 0x7d | 0x7e | 0x8c | 0x8d | 0xa7 | 0x97
            | 0x9a | 0xb7 | 0xba | 0xbf => Ok(&INTEL_CLIENT),
            _ => none(format!("no such event is known for Intel family 6 model {model:#x}")),
        },
        ("AuthenticAMD", Ok(0x19 | 0x1a), Ok::<u32, _>(_)) => Ok(&AMD),
        _ => none(format!("no such event is known for {vendor} family {family} model {model}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(vendor: &str, family: u32, model: u32, kind: &str) -> Result<usize, String> {
        let cpuinfo = format!(
            "processor\t: 0\nvendor_id\t: {vendor}\ncpu family\t: {family}\nmodel\t\t: {model}\n\
             model name\t: Some CPU: fast\n"
        );
        foreign_lines(&cpuinfo, kind).map(<[Event]>::len).map_err(|reason| reason.code)
    }

    #[test]
    fn families_have_their_events() {
        assert_eq!(of("GenuineIntel", 6, 0x8f, "cpu"), Ok(2));
        assert_eq!(of("GenuineIntel", 6, 0x97, "cpu_core"), Ok(1));
        assert_eq!(of("GenuineIntel", 6, 0x3f, "cpu"), Ok(2));
        assert_eq!(of("AuthenticAMD", 0x19, 1, "cpu"), Ok(2));
        assert_eq!(of("AuthenticAMD", 0x1a, 2, "cpu"), Ok(2));
        let unknown = || Err("no_event_known".to_owned());
        assert_eq!(of("GenuineIntel", 6, 0x97, "cpu_atom"), unknown());
        assert_eq!(of("GenuineIntel", 6, 0x01, "cpu"), unknown());
        assert_eq!(of("GenuineIntel", 15, 0x55, "cpu"), unknown());
        assert_eq!(of("AuthenticAMD", 0x17, 0x31, "cpu"), unknown());
        assert_eq!(of("HygonGenuine", 0x18, 1, "cpu"), unknown());
        assert!(foreign_lines("", "cpu").is_err());
    }
}
