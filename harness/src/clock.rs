//! The clock of the measured window: the time-stamp counter where it can be trusted, else the
//! monotonic clock. A reading never enters the kernel.

use std::time::{Duration, Instant};

use simulator::machine::Machine;
use topology::Cpuid;

use crate::unavailable::Unavailable;

/// Where readings come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// Invariant time-stamp counter.
    #[cfg(target_arch = "x86_64")]
    Tsc,
    /// `CLOCK_MONOTONIC` through the vDSO, in nanoseconds.
    Monotonic,
}

/// A clock that ticks alike on every CPU, with its rate and the price of a reading.
#[derive(Debug, Clone)]
pub struct Clock {
    source: Source,
    zero: Instant,
    /// Ticks in a nanosecond.
    pub ticks_per_ns: f64,
    /// Ticks that pass between two readings with nothing between them (median).
    pub reading_ticks: u64,
    /// Why the time-stamp counter is not used, if it is not.
    pub not_tsc: Option<Unavailable>,
}

impl Clock {
    /// Chooses the source, calibrates its rate against the kernel's clock for about 60 ms, and
    /// measures what a reading costs. `cpuid` is this host's, from its topology.
    pub fn calibrated(cpuid: &Cpuid) -> Self {
        let (source, not_tsc) = match trusted_tsc(cpuid) {
            #[cfg(target_arch = "x86_64")]
            Ok(()) => (Source::Tsc, None),
            #[cfg(not(target_arch = "x86_64"))]
            Ok(()) => (Source::Monotonic, None),
            Err(reason) => (Source::Monotonic, Some(reason)),
        };
        let mut clock =
            Self { source, zero: Instant::now(), ticks_per_ns: 1.0, reading_ticks: 0, not_tsc };
        if source != Source::Monotonic {
            clock.ticks_per_ns = clock.rate();
        }
        clock.reading_ticks = clock.price();
        clock
    }

    /// The clock of a simulated machine, which answers readings of the counter with its own time.
    /// What a reading costs there is not known yet.
    pub(crate) fn simulated(machine: &Machine) -> Self {
        Self {
            #[cfg(target_arch = "x86_64")]
            source: Source::Tsc,
            #[cfg(not(target_arch = "x86_64"))]
            source: Source::Monotonic,
            zero: Instant::now(),
            ticks_per_ns: machine.clock_ghz(),
            reading_ticks: 0,
            not_tsc: None,
        }
    }

    /// Reads the clock. Instructions before the reading have finished; later ones have not begun.
    #[inline(always)]
    pub fn now(&self) -> u64 {
        match self.source {
            #[cfg(target_arch = "x86_64")]
            Source::Tsc => serialised_tsc(),
            Source::Monotonic => u64::try_from(self.zero.elapsed().as_nanos()).unwrap_or(u64::MAX),
        }
    }

    /// Names the source, for records.
    pub fn name(&self) -> &'static str {
        match self.source {
            #[cfg(target_arch = "x86_64")]
            Source::Tsc => "tsc",
            Source::Monotonic => "monotonic",
        }
    }

    /// Converts a length of time to ticks.
    pub fn ticks(&self, time: Duration) -> u64 {
        (time.as_secs_f64() * 1e9 * self.ticks_per_ns) as u64
    }

    /// Converts ticks to nanoseconds.
    pub fn ns(&self, ticks: f64) -> f64 {
        ticks / self.ticks_per_ns
    }

    /// Ticks in a nanosecond: the median of windows between two readings of both clocks.
    fn rate(&self) -> f64 {
        let mut rates: Vec<f64> = (0..5)
            .map(|_| {
                let (began, first) = (Instant::now(), self.now());
                while began.elapsed() < Duration::from_millis(12) {
                    std::hint::spin_loop();
                }
                let (last, lasted) = (self.now(), began.elapsed());
                (last - first) as f64 / lasted.as_nanos() as f64
            })
            .collect();
        rates.sort_by(f64::total_cmp);
        rates[rates.len() / 2]
    }

    /// Ticks between two readings with nothing between them: the median.
    pub(crate) fn price(&self) -> u64 {
        let mut pairs: Vec<u64> = (0..1001)
            .map(|_| {
                let first = self.now();
                self.now() - first
            })
            .collect();
        pairs.sort_unstable();
        pairs[pairs.len() / 2]
    }
}

/// `lfence` before: earlier instructions have finished; `lfence` after: later ones wait.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn serialised_tsc() -> u64 {
    // SAFETY: SSE2 is part of x86-64.
    unsafe { core::arch::x86_64::_mm_lfence() };
    // SAFETY: reads a counter that user space may read (the kernel's clock source is checked).
    let ticks = unsafe { core::arch::x86_64::_rdtsc() };
    // SAFETY: as above.
    unsafe { core::arch::x86_64::_mm_lfence() };
    ticks
}

/// Whether the kernel itself keeps time by this counter, or could, and the CPU says that its rate
/// does not change.
fn trusted_tsc(cpuid: &Cpuid) -> Result<(), Unavailable> {
    match cpuid {
        Cpuid::Unavailable(reason) => return Err(Unavailable::because("no_tsc", reason.reason())),
        Cpuid::Read(facts) if !facts.invariant_tsc => {
            return Err(Unavailable::because(
                "tsc_varies",
                "CPUID does not promise a constant rate",
            ));
        }
        Cpuid::Read(_) => {}
    }
    let path = "/sys/devices/system/clocksource/clocksource0/available_clocksource";
    let available = std::fs::read_to_string(path)
        .map_err(|error| Unavailable::because("tsc_unknown", format!("{path}: {error}")))?;
    if available.split_whitespace().any(|source| source == "tsc") {
        Ok(())
    } else {
        Err(Unavailable::because("tsc_distrusted", format!("the kernel offers only {available:?}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock() -> Clock {
        Clock::calibrated(&topology::Topology::this_host().unwrap().cpuid)
    }

    #[test]
    fn agrees_with_the_monotonic_clock() {
        let clock = clock();
        // Being preempted between the two readings spoils one attempt, not ten.
        let ratios = (0..10).map(|_| {
            let (began, first) = (Instant::now(), clock.now());
            std::thread::sleep(Duration::from_millis(20));
            let (ticks, lasted) = (clock.now() - first, began.elapsed());
            clock.ns(ticks as f64) / lasted.as_nanos() as f64
        });
        let nearest = ratios.min_by(|a, b| (a - 1.0).abs().total_cmp(&(b - 1.0).abs())).unwrap();
        assert!((0.995..1.005).contains(&nearest), "{} read {nearest} of the time", clock.name());
    }

    #[test]
    fn never_runs_backwards() {
        let clock = clock();
        let mut last = clock.now();
        for _ in 0..100_000 {
            let now = clock.now();
            assert!(now >= last);
            last = now;
        }
    }

    #[test]
    fn says_why_it_is_not_the_tsc() {
        let clock = clock();
        assert_eq!(clock.name() == "tsc", clock.not_tsc.is_none(), "{:?}", clock.not_tsc);
    }
}
