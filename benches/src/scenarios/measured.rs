//! What was measured of a step, and the figures that follow.

use std::collections::BTreeMap;

use harness::records::Metric;
use harness::simulated::LineReport;
use harness::stats::jain;
use harness::unavailable::Unavailable;
use serde::{Deserialize, Serialize};

/// The part of a window in which all threads have to run, or it is disturbed.
const LEAST_OVERLAP: f64 = 0.95;

/// What a process that ran a step says.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Reply {
    /// Its figures.
    pub(crate) measured: Measured,
    /// The lines that cores fought for, if they were watched.
    pub(crate) lines: Option<LineReport>,
}

/// What was measured of a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Measured {
    /// Operations of each thread in the window.
    pub(crate) ops: Vec<u64>,
    /// How long the window was, in nanoseconds.
    pub(crate) time_ns: f64,
    /// The part of the window in which all threads ran.
    pub(crate) overlap: Option<f64>,
    /// Threads that had done nothing when the window closed, where all do the same.
    pub(crate) idle: usize,
    /// How many of the first threads hand out or serve what the others do.
    pub(crate) apart: usize,
    /// How long threads of this host waited for their CPUs, where nobody else should have them.
    pub(crate) queued_ns: Option<u64>,
    /// How latency grew, where requests arrive by themselves.
    pub(crate) growth: Option<Growth>,
    /// CPU time of all threads, in nanoseconds.
    pub(crate) cpu_ns: f64,
    /// Page faults in the window.
    pub(crate) page_faults: u64,
    /// How long operations took.
    pub(crate) latency: Option<Quantiles>,
    /// Operations of all threads until the last one ended.
    pub(crate) ops_in_all: u64,
    /// The time of all threads until each ended, in nanoseconds.
    pub(crate) threads_ns: u64,
    /// Which locks were waited for until then, the longest first.
    pub(crate) waits: Vec<Waited>,
    /// What the scenario itself found out.
    pub(crate) facts: BTreeMap<String, f64>,
    /// What the simulator counted.
    pub(crate) counts: Option<Counted>,
}

/// Quantiles of operations' times, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Quantiles {
    /// The median.
    pub(crate) p50: u64,
    /// What 95 of 100 do not exceed.
    pub(crate) p95: u64,
    /// What 99 of 100 do not exceed.
    pub(crate) p99: u64,
    /// The longest.
    pub(crate) max: u64,
    /// The mean.
    pub(crate) mean: f64,
    /// How many there are.
    pub(crate) samples: u64,
}

impl Quantiles {
    /// Takes them of some times; none of none.
    pub(crate) fn of(mut times: Vec<u64>) -> Option<Self> {
        times.sort_unstable();
        let at = |part: u64| {
            let place = (times.len() as u64 * part).div_ceil(100).saturating_sub(1);
            times.get(place as usize).copied()
        };
        Some(Self {
            p50: at(50)?,
            p95: at(95)?,
            p99: at(99)?,
            max: at(100)?,
            mean: times.iter().sum::<u64>() as f64 / times.len() as f64,
            samples: times.len() as u64,
        })
    }
}

/// How long requests took that arrived early, and late.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Growth {
    /// The mean of the first quarter, in nanoseconds.
    pub(crate) early_ns: f64,
    /// The mean of the last quarter.
    pub(crate) late_ns: f64,
    /// How much later those arrived.
    pub(crate) apart_ns: f64,
}

/// Requests of which it can be told whether latency grows.
const LEAST_REQUESTS: usize = 32;

impl Growth {
    /// Takes it of requests, each by when it arrived and how long it took.
    pub(crate) fn of(mut requests: Vec<(u64, u64)>) -> Option<Self> {
        requests.sort_unstable();
        let quarter = requests.len() / 4;
        let mean = |part: &[(u64, u64)], of: fn(&(u64, u64)) -> u64| {
            part.iter().map(|request| of(request) as f64).sum::<f64>() / part.len() as f64
        };
        let (first, last) = (&requests[..quarter], &requests[requests.len() - quarter..]);
        (requests.len() >= LEAST_REQUESTS).then(|| Self {
            early_ns: mean(first, |request| request.1),
            late_ns: mean(last, |request| request.1),
            apart_ns: mean(last, |request| request.0) - mean(first, |request| request.0),
        })
    }
}

/// How a step gets on with a load that arrives by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Load {
    /// As much is served as arrives.
    Carried,
    /// Less is served than arrives, and latency grows.
    Exceeded,
    /// The run is too short to tell.
    Unclear,
}

/// The part of what is offered that has to be served.
const CARRIED: f64 = 0.95;

/// A lock or condition, and how long it was waited for by all threads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Waited {
    /// Where in the source.
    pub(crate) place: String,
    /// Whether it is a condition, and not a lock.
    pub(crate) condition: bool,
    /// How long, in nanoseconds.
    pub(crate) ns: u64,
    /// How often.
    pub(crate) times: u64,
}

/// What the simulator counted in the window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Counted {
    pub(crate) instructions: u64,
    pub(crate) rmw: u64,
    pub(crate) syscalls: u64,
    pub(crate) context_switches: u64,
    pub(crate) smt: u64,
    pub(crate) same_l3: u64,
    pub(crate) same_socket: u64,
    pub(crate) cross_socket: u64,
    pub(crate) memory_reads: u64,
    pub(crate) stall_ps: u64,
}

impl From<simulator::Counts> for Counted {
    fn from(counts: simulator::Counts) -> Self {
        let transfers = counts.transfers;
        Self {
            instructions: counts.instructions,
            rmw: counts.rmw,
            syscalls: counts.syscalls,
            context_switches: counts.context_switches,
            smt: transfers.smt,
            same_l3: transfers.same_l3,
            same_socket: transfers.same_socket,
            cross_socket: transfers.cross_socket,
            memory_reads: counts.memory_reads,
            stall_ps: counts.stall_ps,
        }
    }
}

impl Measured {
    /// Gives the operations of all threads.
    pub(crate) fn all(&self) -> u64 {
        self.ops.iter().sum()
    }

    /// Gives operations in a second.
    pub(crate) fn throughput(&self) -> Option<f64> {
        let per_s = self.all() as f64 * 1e9 / self.time_ns;
        (per_s.is_finite() && per_s > 0.0).then_some(per_s)
    }

    /// Gives the nanoseconds between two operations of one thread.
    pub(crate) fn ns_per_op(&self) -> Option<f64> {
        let threads = self.ops.len() - self.apart;
        self.throughput().map(|per_s| threads as f64 * 1e9 / per_s)
    }

    /// Gives the time that 50 of 100 operations do not exceed, in nanoseconds.
    pub(crate) fn p50(&self) -> Option<f64> {
        self.latency.map(|latency| latency.p50 as f64)
    }

    /// Gives the time that 95 of 100 operations do not exceed, in nanoseconds.
    pub(crate) fn p95(&self) -> Option<f64> {
        self.latency.map(|latency| latency.p95 as f64)
    }

    /// Gives the time that 99 of 100 operations do not exceed, in nanoseconds.
    pub(crate) fn p99(&self) -> Option<f64> {
        self.latency.map(|latency| latency.p99 as f64)
    }

    /// Gives how long operations took on average, in nanoseconds.
    pub(crate) fn mean(&self) -> Option<f64> {
        self.latency.map(|latency| latency.mean)
    }

    /// Gives how evenly threads got on, without those that hand out or serve.
    pub(crate) fn fairness(&self) -> Option<f64> {
        jain(&self.ops[self.apart..])
    }

    /// Gives how long locks were waited for an operation, in nanoseconds.
    pub(crate) fn wait_ns(&self) -> f64 {
        self.waits.iter().map(|wait| wait.ns).sum::<u64>() as f64 / self.ops_in_all as f64
    }

    /// Gives the part of all threads' time in which they waited for locks.
    pub(crate) fn waiting(&self) -> f64 {
        let all: u64 = self.waits.iter().map(|wait| wait.ns).sum();
        all as f64 / self.threads_ns.max(1) as f64
    }

    /// Says how it got on with its load, if that arrived by itself. Where latency grows by a part
    /// of the time that passes, so much less was served than arrived.
    pub(crate) fn load(&self) -> Option<Load> {
        let (offered, served) = (self.fact("offered_per_s")?, self.throughput()?);
        if served >= CARRIED * offered {
            return Some(Load::Carried);
        }
        let Some(growth) = self.growth else { return Some(Load::Unclear) };
        let (grown, times) = (growth.late_ns - growth.early_ns, growth.late_ns / growth.early_ns);
        // Of few requests latencies differ by chance, and until a queue is as long as it gets.
        let is_sure = times >= 2.0 || times >= 1.25 && grown >= 2.0 * growth.apart_ns;
        Some(match grown > (1.0 - CARRIED) * growth.apart_ns {
            false => Load::Carried,
            true if is_sure => Load::Exceeded,
            true => Load::Unclear,
        })
    }

    /// Gives the lines that came from other cores for an operation.
    pub(crate) fn transfers(&self) -> Option<f64> {
        self.per_op(|counts| counts.smt + counts.same_l3 + counts.same_socket + counts.cross_socket)
    }

    /// Gives a count of the simulator's for an operation.
    pub(crate) fn per_op(&self, count: fn(&Counted) -> u64) -> Option<f64> {
        self.counts.as_ref().map(|counts| count(counts) as f64 / self.all() as f64)
    }

    /// Gives what the scenario itself found out.
    pub(crate) fn fact(&self, name: &str) -> Option<f64> {
        self.facts.get(name).copied()
    }

    /// Says what disturbed it, if anything did.
    pub(crate) fn disturbed(&self) -> Option<String> {
        let threads = self.ops.len() - self.apart;
        if self.idle as f64 > (1.0 - LEAST_OVERLAP) * threads as f64 {
            return Some(format!(
                "{} of {threads} threads had done nothing when the window closed: --ops is too small, \
                 or they never had their turn",
                self.idle
            ));
        }
        let queued = self.queued_ns.unwrap_or(0) as f64 / self.threads_ns.max(1) as f64;
        if queued > 1.0 - LEAST_OVERLAP {
            return Some(format!(
                "threads waited for their CPUs for {:.0} % of their time: others use them",
                100.0 * queued
            ));
        }
        let overlap = self.overlap.filter(|overlap| *overlap < LEAST_OVERLAP)?;
        let why = match self.counts {
            Some(_) => "--ops is too small",
            None => "others use this host's CPUs, or --ops is too small",
        };
        Some(format!(
            "all threads ran together for {:.0} % of the window only: {why}",
            100.0 * overlap
        ))
    }

    /// Gives the metrics as records have them; times with the model's band.
    pub(crate) fn metrics(&self, factor: f64) -> BTreeMap<String, Metric> {
        let missing = |code: &str| Metric::Missing(Unavailable::new(code));
        let banded = |value: Option<f64>| match value {
            None => missing("no_operations"),
            Some(value) if self.counts.is_some() => {
                let (low, high) = (Some(value / factor), Some(value * factor));
                Metric::Figure { value, low, high }
            }
            Some(value) => Metric::figure(value),
        };
        let figure = |value: Option<f64>, code: &str| value.map_or(missing(code), Metric::figure);
        let per_op = |count: fn(&Counted) -> u64| figure(self.per_op(count), "not_simulated");
        let all = self.all();
        let mut metrics: Vec<(&str, Metric)> = vec![
            ("ops", Metric::Count { value: all }),
            ("ns_per_op", banded(self.ns_per_op())),
            ("ops_per_s", banded(self.throughput())),
            ("fairness_jain", figure(self.fairness(), "no_operations")),
            ("cpu_seconds", Metric::figure(self.cpu_ns / 1e9)),
            ("lock_wait_ns", figure((all > 0).then(|| self.wait_ns()), "no_operations")),
            ("minor_faults", Metric::Count { value: self.page_faults }),
            ("latency_ns.p50", banded(self.p50())),
            ("latency_ns.p95", banded(self.p95())),
            ("latency_ns.p99", banded(self.p99())),
            ("instructions_per_op", per_op(|counts| counts.instructions)),
            ("rmw_per_op", per_op(|counts| counts.rmw)),
            ("syscalls_per_op", per_op(|counts| counts.syscalls)),
            ("context_switches_per_op", per_op(|counts| counts.context_switches)),
            ("transfers_per_op.smt", per_op(|counts| counts.smt)),
            ("transfers_per_op.same_l3", per_op(|counts| counts.same_l3)),
            ("transfers_per_op.same_socket", per_op(|counts| counts.same_socket)),
            ("transfers_per_op.cross_socket", per_op(|counts| counts.cross_socket)),
            ("memory_reads_per_op", per_op(|counts| counts.memory_reads)),
        ];
        metrics.extend(self.overlap.map(|overlap| ("overlap", Metric::figure(overlap))));
        let metrics = metrics.into_iter().map(|(name, metric)| (name.to_owned(), metric));
        let facts = self.facts.iter();
        metrics
            .chain(facts.map(|(name, fact)| (format!("scenario.{name}"), Metric::figure(*fact))))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_values_that_occurred() {
        assert_eq!(Quantiles::of(Vec::new()), None);
        let times: Vec<u64> = (1..=200).rev().collect();
        let quantiles = Quantiles::of(times).unwrap();
        let all = [quantiles.p50, quantiles.p95, quantiles.p99, quantiles.max];
        assert_eq!(all, [100, 190, 198, 200]);
        let one = Quantiles::of(vec![7]).unwrap();
        assert_eq!((one.p50, one.p99, one.max), (7, 7, 7));
    }
}
