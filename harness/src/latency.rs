//! How long single operations take: every one is timed, into a histogram a thread.
//!
//! In the *closed* loop a thread asks again when it has been served and has thought for a while; the
//! time is that of the service. In the *open* loop threads ask at times that were drawn beforehand,
//! whether they have been served or not, and the time counts from then: an operation that begins late
//! because the one before it took long has waited, and its wait is part of its time (otherwise it
//! would be omitted just when it matters: coordinated omission).

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use hdrhistogram::Histogram;

use crate::clock::Clock;
use crate::distance::ALL;
use crate::spin::chain;
use crate::stats::SplitMix;
use crate::team::{Team, TeamError};
use crate::window::{Rendezvous, Work};

mod asker;
mod summary;

pub(crate) use asker::{Asker, Sample};
pub use summary::LatencySummary;
pub(crate) use summary::{Measure, summary};

/// When a thread asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Load {
    /// When it has been served, after a time of thinking.
    Closed,
    /// So many times a second, all threads together.
    Open {
        /// Operations a second that are asked for.
        per_s: u64,
    },
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Closed => "closed",
            Self::Open { .. } => "open",
        })
    }
}

/// The quantiles that are recorded, with their names and how many samples make them worth it.
pub const QUANTILES: [(&str, f64, u64); 5] = [
    ("p50", 0.5, 10),
    ("p90", 0.9, 100),
    ("p99", 0.99, 1_000),
    ("p99.9", 0.999, 10_000),
    ("max", 1.0, 1),
];

/// Times above this are counted as this long.
pub(crate) const LONGEST: Duration = Duration::from_secs(60);

/// Times of operations, in ticks of the clock.
#[derive(Debug, Clone)]
pub struct Times {
    histogram: Histogram<u64>,
    saturated: u64,
}

impl Times {
    /// Makes an empty histogram of three digits that holds times up to `longest` ticks.
    fn new(longest: u64) -> Self {
        // Three digits and bounds from 1 to at least 2 are always allowed.
        let histogram = Histogram::new_with_bounds(1, longest.max(2), 3);
        let histogram = histogram.unwrap_or_else(|_| unreachable!("bounds of a histogram"));
        Self { histogram, saturated: 0 }
    }

    /// Counts a time. One that is too long is counted as the longest there is, and told.
    fn record(&mut self, ticks: u64) {
        if ticks > self.histogram.high() {
            self.saturated += 1;
        }
        self.histogram.saturating_record(ticks);
    }

    fn add(&mut self, other: &Self) {
        // Both have the same bounds.
        let _ = self.histogram.add(&other.histogram);
        self.saturated += other.saturated;
    }

    /// Tells how many times there are.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// Tells how many were longer than the longest that is told apart.
    pub fn saturated(&self) -> u64 {
        self.saturated
    }

    /// Gives the time that this part of the operations did not exceed, in ticks.
    pub fn quantile(&self, part: f64) -> u64 {
        self.histogram.value_at_quantile(part)
    }
}

/// What was measured in a window.
#[derive(Debug, Clone)]
pub struct Latencies {
    /// From asking, or from when it should have been asked, to being served.
    pub times: Times,
    /// From asking for what nobody had any more to having it, by the distance of who had it before
    /// ([`ALL`]).
    pub acquired: [Times; ALL.len()],
    /// From a holder's letting go to the next one's having it, who waited for it, by distance of the
    /// two threads.
    pub handed: [Times; ALL.len()],
    /// Operations that were asked for in the window.
    pub asked: u64,
    /// Operations among them that were done in it.
    pub served: u64,
    /// All operations of each thread since the experiment was made.
    pub ops: Vec<u64>,
    /// What a thread saw go wrong.
    pub verdict: Result<(), String>,
}

impl Latencies {
    /// Makes room for times of up to so many ticks.
    pub(crate) fn empty(longest: u64) -> Self {
        Self {
            times: Times::new(longest),
            acquired: std::array::from_fn(|_| Times::new(longest)),
            handed: std::array::from_fn(|_| Times::new(longest)),
            asked: 0,
            served: 0,
            ops: Vec::new(),
            verdict: Ok(()),
        }
    }

    /// Counts a thread's sample; `distance` gives that of a rank in [`ALL`].
    pub(crate) fn count(&mut self, sample: Sample, distance: impl Fn(usize) -> Option<usize>) {
        self.times.record(sample.took);
        let Some(before) = sample.before else { return };
        let Some(distance) = distance(before.by as usize) else { return };
        let by_distance = if before.waited { &mut self.handed } else { &mut self.acquired };
        by_distance[distance].record(before.ticks);
    }

    fn add(&mut self, other: Self) {
        self.times.add(&other.times);
        self.acquired.iter_mut().zip(&other.acquired).for_each(|(all, one)| all.add(one));
        self.handed.iter_mut().zip(&other.handed).for_each(|(all, one)| all.add(one));
        self.asked += other.asked;
        self.served += other.served;
        self.ops.extend(other.ops);
        if self.verdict.is_ok() {
            self.verdict = other.verdict;
        }
    }
}

/// Draws from the exponential distribution: threads that think equally long fall into step.
pub(crate) fn draw(random: &mut SplitMix, mean: f64) -> f64 {
    const ONE: f64 = (1_u64 << 53) as f64;
    let uniform = ((random.next_u64() >> 11) as f64 + 0.5) / ONE;
    -mean * uniform.ln()
}

/// The numbers of a thread.
pub(crate) fn random_of(seed: u64, rank: usize) -> SplitMix {
    SplitMix(seed ^ (rank as u64).wrapping_mul(0xA076_1D64_78BD_642F))
}

/// How to measure.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Time until caches are warm.
    pub warm_up: Duration,
    /// Time that is measured.
    pub window: Duration,
    /// When threads ask.
    pub load: Load,
    /// Mean steps of work between two operations in the closed loop.
    pub think: u64,
    /// The seed of the times that are drawn.
    pub seed: u64,
    /// Position in [`ALL`] of the distance between two threads, by their ranks.
    pub distances: Arc<Vec<Vec<usize>>>,
}

/// Runs one thread a work on `cpus`.
///
/// # Errors
/// When a thread cannot be made or pinned, or a work panics.
pub fn run(
    team: &mut Team,
    clock: &Clock,
    cpus: &[u32],
    works: Vec<Box<dyn Work>>,
    plan: &Plan,
) -> Result<Latencies, TeamError> {
    let (warm_up, measured) = (Rendezvous::new(works.len()), Rendezvous::new(works.len()));
    let meet = Arc::new((warm_up, measured));
    let threads = works.len() as f64;
    let jobs = works.into_iter().enumerate().map(|(rank, work)| {
        let (clock, meet, plan) = (clock.clone(), meet.clone(), plan.clone());
        move || Thread { work, clock, plan, rank }.run(&meet.0, &meet.1, threads)
    });
    let each: Vec<Latencies> = team.run(cpus, jobs.collect())?;
    let mut all = Latencies::empty(clock.ticks(LONGEST));
    each.into_iter().for_each(|one| all.add(one));
    Ok(all)
}

struct Thread {
    work: Box<dyn Work>,
    clock: Clock,
    plan: Plan,
    rank: usize,
}

impl Thread {
    fn run(mut self, warm_up: &Rendezvous, measured: &Rendezvous, threads: f64) -> Latencies {
        let Self { work, clock, plan, rank } = &mut self;
        let mut all = Latencies::empty(clock.ticks(LONGEST));
        work.prepare();
        let mut asker = Asker::new(&mut **work, clock);
        let mut random = random_of(plan.seed, *rank);
        let deadline = warm_up.meet(clock) + clock.ticks(plan.warm_up);
        while clock.now() < deadline {
            let think = draw(&mut random, plan.think as f64);
            asker.once(|now| now >= deadline);
            chain(think as u64);
        }
        // However long the warm-up took, what is asked for in the window is the same.
        let mut random = random_of(plan.seed, *rank);
        let begin = measured.meet(clock);
        while clock.now() < begin {}
        let deadline = begin + clock.ticks(plan.window);
        let of_rank = &plan.distances[*rank];
        let count = |sample| all.count(sample, |by| of_rank.get(by).copied());
        match plan.load {
            Load::Closed => {
                let think = || draw(&mut random, plan.think as f64) as u64;
                asker.closed(std::iter::repeat_with(think), |now| now >= deadline, count);
            }
            Load::Open { per_s } => {
                let mean = clock.ticks(Duration::from_secs(1)) as f64 * threads / per_s as f64;
                let mut after = 0.0;
                let next = || {
                    after += draw(&mut random, mean);
                    begin + after as u64
                };
                let intended = std::iter::repeat_with(next).take_while(|&tick| tick < deadline);
                asker.open(intended, deadline, count);
            }
        }
        (all.asked, all.served, all.ops) = (asker.asked, asker.served, vec![asker.ops]);
        all.verdict = work.finish();
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::affinity::allowed_cpus;
    use crate::window::Timed;

    fn clock() -> Clock {
        Clock::calibrated(&topology::Topology::this_host().unwrap().cpuid)
    }

    /// Takes at least so many ticks, by the clock.
    struct Slow(u64);
    impl Work for Slow {
        fn batch(&mut self, ops: u64) -> u64 {
            let clock = clock();
            for _ in 0..ops {
                let until = clock.now() + self.0;
                while clock.now() < until {}
            }
            ops
        }
        fn timed(&mut self, clock: &Clock) -> Timed {
            let began = clock.now();
            while clock.now() < began + self.0 {}
            Timed { began, done: clock.now(), ops: 1, handed: None }
        }
    }

    fn measured(clock: &Clock, load: Load, slow: Duration) -> Latencies {
        let cpus = allowed_cpus().unwrap();
        let plan = Plan {
            warm_up: Duration::from_millis(1),
            window: Duration::from_millis(40),
            load,
            think: 0,
            seed: 1,
            distances: Arc::new(vec![vec![0]]),
        };
        let works = vec![<dyn Work>::boxed(Slow(clock.ticks(slow)))];
        run(&mut Team::new(), clock, &cpus[..1], works, &plan).unwrap()
    }

    #[test]
    fn what_is_too_long_is_saturated_and_told() {
        let mut times = Times::new(1_000_000);
        (1..=100).for_each(|ticks| times.record(ticks * 10));
        assert_eq!((times.count(), times.saturated()), (100, 0));
        let near = |part: f64, ticks: u64| times.quantile(part).abs_diff(ticks) * 1000 <= ticks;
        assert!(near(0.5, 500) && near(0.9, 900) && near(1.0, 1000));
        times.record(u64::MAX);
        times.record(0);
        assert_eq!((times.count(), times.saturated()), (102, 1));
        assert!(times.quantile(1.0) >= 1_000_000);
        let mut sum = times.clone();
        sum.add(&times);
        assert_eq!((sum.count(), sum.saturated()), (204, 2));
    }

    #[test]
    fn the_closed_loop_times_the_service() {
        let (clock, slow) = (clock(), Duration::from_micros(20));
        let measured = measured(&clock, Load::Closed, slow);
        assert_eq!(measured.asked, measured.served);
        assert!(measured.ops[0] > measured.served && measured.verdict.is_ok());
        let median = measured.times.quantile(0.5) + clock.reading_ticks;
        assert!(median as f64 >= clock.ticks(slow) as f64 * 0.99, "{median}");
    }

    /// Half of what can be served is served, with waits; twice as much is not, and the wait of those
    /// that are is as long as the window allows.
    #[test]
    fn the_open_loop_counts_waits_and_says_what_it_could_not_serve() {
        let (clock, slow) = (clock(), Duration::from_micros(100));
        let easy = measured(&clock, Load::Open { per_s: 1_000 }, slow);
        assert!(easy.asked > 5 && easy.served <= easy.asked);
        let hard = measured(&clock, Load::Open { per_s: 20_000 }, slow);
        assert!(hard.served * 3 < hard.asked * 2, "{} of {}", hard.served, hard.asked);
        // The last one served should have begun long before.
        let longest = clock.ns(hard.times.quantile(1.0) as f64);
        assert!(longest > 10e6, "{longest} ns");
        assert!(longest > 20.0 * clock.ns(clock.ticks(slow) as f64), "{longest} ns");
    }

    #[test]
    fn the_same_seed_asks_at_the_same_times() {
        let clock = clock();
        let asked = || measured(&clock, Load::Open { per_s: 2_000 }, Duration::ZERO).asked;
        assert_eq!(asked(), asked());
    }
}
