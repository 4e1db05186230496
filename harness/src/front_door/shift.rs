//! One experiment kept ready on its pinned threads, and run for as many operations as asked.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crossbeam_utils::CachePadded;

use crate::clock::Clock;
use crate::native::{Conditions, Experiment, Failure, Make};
use crate::team::Team;
use crate::window::{Rendezvous, Work};

/// The most operations asked of a work at once: where an operation may fail, a batch ends after so
/// many attempts.
const MOST_OPS_A_BATCH: u64 = 1 << 20;

/// Operations between two looks at whether the others have finished.
const OPS_BETWEEN_LOOKS: u64 = 64;

/// An experiment whose threads wait for work.
pub(crate) struct Shift<'a> {
    team: &'a mut Team,
    clock: &'a Clock,
    cpus: Vec<u32>,
    experiment: Experiment,
    ops: Vec<u64>,
}

impl fmt::Debug for Shift<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shift").field("cpus", &self.cpus).finish_non_exhaustive()
    }
}

/// What a thread brings back from a run.
struct Ran {
    work: Box<dyn Work>,
    start: u64,
    end: u64,
    ops: u64,
}

impl<'a> Shift<'a> {
    /// Makes the experiment and lets each thread touch its memory.
    pub(crate) fn begin(
        team: &'a mut Team,
        clock: &'a Clock,
        conditions: &Conditions,
        make: Make,
    ) -> Result<Self, Failure> {
        let mut experiment = make(conditions).map_err(Failure::Unavailable)?;
        let jobs = std::mem::take(&mut experiment.works)
            .into_iter()
            .map(|mut work| {
                move || {
                    work.prepare();
                    work
                }
            })
            .collect();
        experiment.works = team.run(&conditions.cpus, jobs)?;
        let ops = vec![0; conditions.threads()];
        Ok(Self { team, clock, cpus: conditions.cpus.clone(), experiment, ops })
    }

    /// Lets every thread do `ops` operations, and gives the time from the first start to the end
    /// of the last thread. Who has finished keeps working until all have, so that the others are
    /// never alone and a consumer never waits for a producer that has left.
    pub(crate) fn run(&mut self, ops: u64) -> Result<Duration, Failure> {
        let threads = self.cpus.len();
        let meeting = Arc::new(Rendezvous::new(threads));
        let finished = Arc::new(CachePadded::new(AtomicUsize::new(0)));
        let jobs = std::mem::take(&mut self.experiment.works)
            .into_iter()
            .map(|work| {
                let (clock, meeting, finished) =
                    (self.clock.clone(), meeting.clone(), finished.clone());
                move || one_thread(work, ops, threads, &clock, &meeting, &finished)
            })
            .collect();
        let all: Vec<Ran> = self.team.run(&self.cpus, jobs)?;
        let first = all.iter().map(|ran| ran.start).min().unwrap_or(0);
        let last = all.iter().map(|ran| ran.end).max().unwrap_or(0);
        for (sum, ran) in self.ops.iter_mut().zip(&all) {
            *sum += ran.ops;
        }
        self.experiment.works = all.into_iter().map(|ran| ran.work).collect();
        let ns = self.clock.ns(last.saturating_sub(first) as f64);
        // Criterion takes nothing for an error of the benchmark.
        Ok(Duration::from_secs_f64(ns / 1e9).max(Duration::from_nanos(1)))
    }

    /// Ends the experiment and checks that the primitive did its job.
    pub(crate) fn end(self) -> Result<(), Failure> {
        let jobs = self
            .experiment
            .works
            .into_iter()
            .map(|mut work| move || work.finish()) // drops the work where it worked
            .collect();
        for verdict in self.team.run(&self.cpus, jobs)? {
            verdict.map_err(Failure::Broken)?;
        }
        (self.experiment.verify)(&self.ops).map_err(Failure::Broken)?;
        Ok(())
    }
}

fn one_thread(
    mut work: Box<dyn Work>,
    wanted: u64,
    threads: usize,
    clock: &Clock,
    meeting: &Rendezvous,
    finished: &AtomicUsize,
) -> Ran {
    let begin = meeting.meet(clock);
    let start = loop {
        let now = clock.now();
        if now >= begin {
            break now;
        }
    };
    let mut ops = 0;
    while ops < wanted {
        ops += work.batch((wanted - ops).min(MOST_OPS_A_BATCH));
    }
    let end = clock.now();
    // Relaxed: a count and nothing else; what the works hold goes home through a channel.
    finished.fetch_add(1, Ordering::Relaxed);
    while finished.load(Ordering::Relaxed) < threads {
        ops += work.batch(OPS_BETWEEN_LOOKS);
    }
    Ran { work, start, end, ops }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;
    use crate::memory::Policy;
    use crate::spin::StepRate;
    use crate::workload::Workload;
    use topology::Topology;

    fn conditions(cpus: Vec<u32>) -> Conditions {
        Conditions {
            own_memory: vec![Policy::FirstTouch; cpus.len()],
            cpus,
            shared_memory: Policy::FirstTouch,
            workload: Workload::default(),
            steps: StepRate { ns_per_step: 1.0 },
            seed: 1,
        }
    }

    /// Hands tokens over: an even thread makes them, an odd one needs them.
    struct Token {
        tokens: Arc<AtomicU64>,
        makes: bool,
    }

    impl Work for Token {
        fn batch(&mut self, ops: u64) -> u64 {
            let change = |held: u64| {
                if self.makes { (held < 4).then_some(held + 1) } else { held.checked_sub(1) }
            };
            let took = |_: &u64| {
                self.tokens.fetch_update(Ordering::Relaxed, Ordering::Relaxed, change).is_ok()
            };
            (0..ops).filter(took).count() as u64
        }
    }

    fn tokens(conditions: &Conditions) -> Result<Experiment, crate::unavailable::Unavailable> {
        let tokens = Arc::new(AtomicU64::new(0));
        let work = |at: usize| <dyn Work>::boxed(Token { tokens: tokens.clone(), makes: at != 1 });
        Ok(Experiment {
            works: (0..conditions.threads()).map(work).collect(),
            granted: None,
            verify: Box::new(|ops| match ops {
                [made, taken, more] if made + more >= *taken && *taken >= 500 => Ok(vec![]),
                ops => Err(format!("{ops:?}")),
            }),
        })
    }

    /// Two threads that make and one that takes: with fixed shares and no company one side would
    /// wait for ever.
    #[test]
    fn uneven_sides_come_to_an_end() {
        let host = Topology::this_host().unwrap();
        let clock = Clock::calibrated(&host.cpuid);
        let cpus: Vec<u32> = host.usable().iter().cycle().take(3).collect();
        let conditions = conditions(cpus);
        let mut team = Team::new();
        let mut shift = Shift::begin(&mut team, &clock, &conditions, tokens).unwrap();
        for _ in 0..5 {
            assert!(shift.run(100).unwrap() >= Duration::from_nanos(1));
        }
        shift.end().unwrap();
    }

    #[test]
    fn a_panic_is_a_broken_experiment() {
        struct Panics;
        impl Work for Panics {
            fn batch(&mut self, _: u64) -> u64 {
                panic!("on purpose")
            }
        }
        let host = Topology::this_host().unwrap();
        let clock = Clock::calibrated(&host.cpuid);
        let conditions = conditions(host.usable().iter().take(1).collect());
        let mut team = Team::new();
        let make: Make = |_| {
            Ok(Experiment {
                works: vec![<dyn Work>::boxed(Panics)],
                granted: None,
                verify: Box::new(|_| Ok(vec![])),
            })
        };
        let mut shift = Shift::begin(&mut team, &clock, &conditions, make).unwrap();
        assert!(matches!(shift.run(1), Err(Failure::Broken(_))));
    }
}
