//! Latencies in simulated time: rounds of their own, in which every operation is timed.

use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crossbeam_utils::CachePadded;
use simulator::Session;

use super::point::{Request, Rig, Shared, stopped};
use super::work::Quota;
use crate::clock::Clock;
use crate::distance;
use crate::latency::{
    Asker, LONGEST, Latencies, LatencySummary, Load, Measure, Sample, draw, random_of, summary,
};
use crate::native::{Conditions, Failure, Make};
use crate::records::Metric;
use crate::workload::Workload;

/// The part of the operations asked for that the round before has: what it touches is warm then.
const WARM_UP_SHARE: u64 = 4;

/// What a thread does in a round, drawn beforehand, and what came of it.
#[derive(Default)]
struct Sheet {
    /// Steps of thinking after each operation, or ticks from the beginning at which to ask.
    drawn: Vec<u64>,
    /// Has room for a sample of each, so that threads allocate nothing.
    samples: Vec<Sample>,
    asked: u64,
    served: u64,
    ops: u64,
}

type Sheets = Vec<CachePadded<Mutex<Sheet>>>;

fn open(sheet: &Mutex<Sheet>) -> MutexGuard<'_, Sheet> {
    // A thread that panicked ended the simulation.
    sheet.lock().unwrap_or_else(PoisonError::into_inner)
}

/// When threads ask, in words of the simulated machine.
struct Asking<'a> {
    load: Load,
    threads: usize,
    /// Mean steps of thinking.
    think: f64,
    seed: u64,
    clock: &'a Clock,
}

impl Asking<'_> {
    /// The window in which so many operations of each thread are asked for.
    fn window(&self, ops: u64) -> Duration {
        match self.load {
            Load::Closed => Duration::ZERO,
            Load::Open { per_s } => {
                Duration::from_secs_f64(ops as f64 * self.threads as f64 / per_s as f64)
            }
        }
    }

    /// Draws what each thread does.
    fn sheets(&self, ops: u64) -> Sheets {
        let window = self.clock.ticks(self.window(ops));
        let sheet = |rank| {
            let mut random = random_of(self.seed, rank);
            let drawn: Vec<u64> = match self.load {
                Load::Closed => (0..ops).map(|_| draw(&mut random, self.think) as u64).collect(),
                Load::Open { .. } => {
                    let mean = window as f64 / ops as f64;
                    let next = |after: &f64| Some(after + draw(&mut random, mean));
                    let ticks = std::iter::successors(Some(0.0), next).skip(1);
                    ticks.map(|tick| tick as u64).take_while(|&tick| tick < window).collect()
                }
            };
            let samples = Vec::with_capacity(drawn.len());
            CachePadded::new(Mutex::new(Sheet { drawn, samples, ..Sheet::default() }))
        };
        (0..self.threads).map(sheet).collect()
    }

    /// What one simulated thread does.
    fn work(&self, sheet: &Mutex<Sheet>, shared: &Shared, thread: usize, ops: u64) {
        let Sheet { drawn, samples, asked, served, ops: done } = &mut *open(sheet);
        // SAFETY: the place of this very thread.
        let work = unsafe { shared.places.of(thread) };
        let mut asker = Asker::new(work, self.clock);
        let progress = &shared.progress[thread];
        let count = |sample| {
            samples.push(sample);
            progress.set(samples.len() as u64);
        };
        match self.load {
            Load::Closed => {
                let over = |_| shared.stop.load(Ordering::Relaxed);
                asker.closed(drawn.iter().copied(), over, count);
            }
            Load::Open { .. } => {
                let begin = self.clock.now();
                let deadline = begin + self.clock.ticks(self.window(ops));
                asker.open(drawn.iter().map(|tick| begin + tick), deadline, count);
            }
        }
        (*asked, *served, *done) = (asker.asked, asker.served, asker.ops);
    }
}

/// Simulates the rounds that time single operations, and summarises the last.
pub(super) fn latencies(
    session: &mut Session,
    make: Make,
    (request, load): (&Request<'_>, Load),
    conditions: &Conditions,
) -> Result<LatencySummary, Failure> {
    let mut clock = Clock::simulated(request.machine);
    let price = session.once(|| clock.price()).map_err(stopped)?;
    clock.reading_ticks = price.results.first().copied().unwrap_or_default();
    // The loop that times thinks itself, and not always for the same time.
    let workload = Workload { think_ns: 0, ..conditions.workload.clone() };
    let think = conditions.steps.steps(conditions.workload.think_ns) as f64;
    let mut rig = Rig::make(session, make, &Conditions { workload, ..conditions.clone() })?;
    let period = rig.period();
    rig.round(Quota::attempts(period))?;
    let threads = request.cores.len();
    let asking = Asking { load, threads, think, seed: request.seed, clock: &clock };
    let mut sheets = Sheets::new();
    for ops in [request.ops.div_ceil(WARM_UP_SHARE), request.ops] {
        sheets = asking.sheets(ops);
        rig.begin();
        rig.each(|shared, thread| asking.work(&sheets[thread], shared, thread, ops))?;
        rig.did(sheets.iter().map(|sheet| open(sheet).ops));
    }
    rig.end()?;
    let mut all = Latencies::empty(clock.ticks(LONGEST));
    for (rank, sheet) in sheets.iter().enumerate() {
        let sheet = open(sheet);
        (all.asked, all.served) = (all.asked + sheet.asked, all.served + sheet.served);
        let distance = |by: usize| {
            let between = request.machine.distance(request.cores[rank], *request.cores.get(by)?);
            Some(distance::place(between))
        };
        sheet.samples.iter().for_each(|&sample| all.count(sample, distance));
    }
    // One run is all there is: it repeats exactly.
    let estimate = |values: &[f64]| Metric::figure(values.first().copied().unwrap_or(f64::NAN));
    let measure = Measure {
        load,
        window: asking.window(request.ops),
        ns_per_tick: clock.ns(1.0),
        reading_ticks: clock.reading_ticks,
        estimate: &estimate,
    };
    Ok(summary(&[all], &measure))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulated::{DEFAULT_MACHINE, Machine};

    fn drawn(load: Load, think: f64) -> Vec<Vec<u64>> {
        let clock = Clock::simulated(&Machine::named(DEFAULT_MACHINE).unwrap());
        let asking = Asking { load, threads: 4, think, seed: 1, clock: &clock };
        asking.sheets(1000).iter().map(|sheet| open(sheet).drawn.clone()).collect()
    }

    #[test]
    fn as_much_is_asked_for_as_the_rate_says_and_at_other_times_by_each() {
        let clock = Clock::simulated(&Machine::named(DEFAULT_MACHINE).unwrap());
        let of_each = drawn(Load::Open { per_s: 1_000_000 }, 0.0);
        // A thousand of each of four threads, a million a second of all: four milliseconds.
        let window = clock.ticks(Duration::from_millis(4));
        for ticks in &of_each {
            assert!((900..1100).contains(&ticks.len()), "{}", ticks.len());
            assert!(ticks.is_sorted() && ticks.last().unwrap() < &window);
        }
        assert_ne!(of_each[0], of_each[1]);
        assert_eq!(of_each, drawn(Load::Open { per_s: 1_000_000 }, 0.0));
    }

    #[test]
    fn thinking_is_drawn_around_its_mean() {
        for steps in drawn(Load::Closed, 500.0) {
            let mean = steps.iter().sum::<u64>() as f64 / steps.len() as f64;
            assert!(steps.len() == 1000 && (450.0..550.0).contains(&mean), "{mean}");
        }
        assert!(drawn(Load::Closed, 0.0).iter().flatten().all(|steps| *steps == 0));
    }
}
