//! One measured window: threads begin together at a deadline of the clock, run for a fixed time,
//! and each keeps its own count.
//!
//! A barrier's release reaches its threads one after another; a deadline reaches all of them at
//! once, to within the period of the loop that watches the clock. All stop by the clock too, so no
//! flag is shared while the window is open.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use crossbeam_utils::CachePadded;

use crate::affinity::current_cpu;
use crate::clock::Clock;
use crate::layout::Object;
use crate::noise::ThreadUsage;
use crate::pmu::{self, Count, Reading};
use crate::syscalls;
use crate::team::{Team, TeamError};
use crate::unavailable::Unavailable;

/// What one thread of an experiment does over and over.
pub trait Work: Send {
    /// Is called on the pinned thread before anything else, to touch the thread's own memory
    /// first.
    fn prepare(&mut self) {}

    /// Does about `ops` operations and tells how many were completed. Must not be inlined into
    /// the measuring loop, and must return within a bounded time whatever other threads do.
    fn batch(&mut self, ops: u64) -> u64;

    /// Does one operation and tells when. Where an operation is a way to something that is had at
    /// its middle, a lock say, it tells when that was had; and it does not think.
    fn timed(&mut self, clock: &Clock) -> Timed {
        let began = clock.now();
        let ops = self.batch(1);
        Timed { began, done: clock.now(), ops, handed: None }
    }

    /// Tells after how many operations the work begins anew with memory that it has touched: what
    /// warms it up. An arena's blocks until it is reset, say.
    fn period(&self) -> u64 {
        1
    }

    /// Describes what this thread uses together with others, and what is its own, for a check of
    /// who writes what. Is called after [`prepare`](Self::prepare), of each thread; what several
    /// threads describe counts once.
    fn objects(&self) -> Vec<Object> {
        Vec::new()
    }

    /// Tells which roles this thread has that others have not, unless they tell the same.
    fn roles(&self) -> &'static [&'static str] {
        &[]
    }

    /// Tells what this thread saw go wrong. Is called on the pinned thread after the window.
    ///
    /// # Errors
    /// When the primitive broke a promise that this thread can see; the point is then broken.
    fn finish(&mut self) -> Result<(), String> {
        Ok(())
    }
}

/// When an operation was asked for and done, in ticks of the clock.
#[derive(Debug, Clone, Copy)]
pub struct Timed {
    /// When it was asked for.
    pub began: u64,
    /// When what was asked for was had.
    pub done: u64,
    /// Operations that were completed: 0 where it could not be done yet.
    pub ops: u64,
    /// Who had it before, where that is known; this thread itself perhaps.
    pub handed: Option<Handed>,
}

/// Who let go of what is had now.
#[derive(Debug, Clone, Copy)]
pub struct Handed {
    /// The rank of the thread.
    pub by: usize,
    /// When it let go, in ticks of the clock.
    pub released: u64,
}

impl dyn Work {
    /// Boxes a work on lines of its own, so that the counts of two threads never share one.
    pub fn boxed(work: impl Work + 'static) -> Box<dyn Work> {
        Box::new(CachePadded::new(work))
    }
}

impl<W: Work> Work for CachePadded<W> {
    fn prepare(&mut self) {
        (**self).prepare();
    }

    fn batch(&mut self, ops: u64) -> u64 {
        (**self).batch(ops)
    }

    fn timed(&mut self, clock: &Clock) -> Timed {
        (**self).timed(clock)
    }

    fn period(&self) -> u64 {
        (**self).period()
    }

    fn objects(&self) -> Vec<Object> {
        (**self).objects()
    }

    fn roles(&self) -> &'static [&'static str] {
        (**self).roles()
    }

    fn finish(&mut self) -> Result<(), String> {
        (**self).finish()
    }
}

/// What a thread had when its window closed. Ticks are the clock's.
#[derive(Debug, Clone)]
pub struct ThreadWindow {
    /// When the thread began.
    pub start: u64,
    /// When it had finished its last batch.
    pub end: u64,
    /// Operations in the window.
    pub ops: u64,
    /// Batches in the window; each was followed by one reading of the clock.
    pub batches: u64,
    /// All operations since the experiment was made, warm-up among them.
    pub ops_in_all: u64,
    /// Whether the thread ended on another CPU than it began on.
    pub migrated: bool,
    /// What the kernel charged it; `None` where the kernel does not tell.
    pub usage: Option<ThreadUsage>,
    /// System calls in the window, in a pass that counts them.
    pub syscalls: Option<Result<u64, Unavailable>>,
    /// What hardware counters counted, or why there are none; nothing in a pass that counts system
    /// calls.
    pub events: Option<Result<Vec<Count>, Unavailable>>,
    /// What the thread saw go wrong.
    pub verdict: Result<(), String>,
}

impl ThreadWindow {
    /// Gives what was counted of one metric of [`pmu::METRICS`].
    ///
    /// # Errors
    /// Why it was not.
    pub fn event(&self, metric: &str) -> Result<u64, Unavailable> {
        let uncounted = || Unavailable::new("not_counted");
        let events = self.events.as_ref().ok_or_else(uncounted)?.as_ref().map_err(Clone::clone)?;
        let count = events.iter().find(|(name, _)| *name == metric);
        count.ok_or_else(uncounted)?.1.clone()
    }
}

/// How long to run, and whether to count system calls.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Time until the batch size is found and caches are warm.
    pub warm_up: Duration,
    /// Time that is measured.
    pub window: Duration,
    /// Whether this is the pass that counts system calls instead of time.
    pub count_syscalls: bool,
}

/// Time from the last arrival to the start, so that the start's value has reached every thread.
const LEAD: Duration = Duration::from_micros(50);

/// A batch shall last about this long: long against a reading of the clock, short against a window.
const BATCH: Duration = Duration::from_micros(20);

const MOST_OPS_A_BATCH: u64 = 1 << 20;

/// Runs one thread a work on `cpus`, and gives their windows in the same order.
///
/// # Errors
/// When a thread cannot be made or pinned, or a work panics.
pub fn run(
    team: &mut Team,
    clock: &Clock,
    cpus: &[u32],
    works: Vec<Box<dyn Work>>,
    plan: Plan,
) -> Result<Vec<ThreadWindow>, TeamError> {
    let warm_up = Arc::new(Rendezvous::new(works.len()));
    let measured = Arc::new(Rendezvous::new(works.len()));
    let jobs = works
        .into_iter()
        .map(|work| {
            let (clock, warm_up, measured) = (clock.clone(), warm_up.clone(), measured.clone());
            move || Thread { work, clock, plan, batch: 1 }.run(&warm_up, &measured)
        })
        .collect();
    team.run(cpus, jobs)
}

struct Thread {
    work: Box<dyn Work>,
    clock: Clock,
    plan: Plan,
    batch: u64,
}

impl Thread {
    fn run(mut self, warm_up: &Rendezvous, measured: &Rendezvous) -> ThreadWindow {
        self.work.prepare();
        let before = self.warm_up(warm_up.meet(&self.clock));
        let (cpu, usage) = (current_cpu(), ThreadUsage::now());
        let counters = (!self.plan.count_syscalls)
            .then(|| pmu::Group::open(pmu::Kernel, cpu.unwrap_or_default()));
        let group = counters.as_ref().and_then(|opened| opened.as_ref().ok());
        let begin = measured.meet(&self.clock);
        let (counted, syscalls) = if self.plan.count_syscalls {
            match syscalls::count_in(|| self.measure(begin, None)) {
                Ok((counted, calls)) => (counted, Some(Ok(calls))),
                Err(reason) => (self.measure(begin, None), Some(Err(reason))),
            }
        } else {
            (self.measure(begin, group), None)
        };
        let events = counters.as_ref().map(|opened| match (opened, &counted.readings) {
            (Ok(group), Some((before, after))) => Ok(group.between(before, after)),
            (Err(reason), _) => Err(reason.clone()),
            (Ok(_), None) => Err(Unavailable::new("not_counted")),
        });
        ThreadWindow {
            start: counted.start,
            end: counted.end,
            ops: counted.ops,
            batches: counted.batches,
            ops_in_all: before + counted.ops,
            migrated: cpu != current_cpu(),
            usage: ThreadUsage::now().zip(usage).map(|(now, then)| now.since(then)),
            syscalls,
            events,
            verdict: self.work.finish(),
        }
    }

    /// Runs until the warm-up is over, and finds the batch size while all threads contend.
    fn warm_up(&mut self, begin: u64) -> u64 {
        let clock = self.clock.clone();
        let (deadline, wanted) = (begin + clock.ticks(self.plan.warm_up), clock.ticks(BATCH));
        let (mut ops, mut last) = (0, clock.now());
        while last < deadline {
            ops += self.work.batch(self.batch);
            let now = clock.now();
            let took = now - last;
            if took < wanted / 2 && self.batch < MOST_OPS_A_BATCH {
                self.batch *= 2;
            } else if took > wanted * 2 && self.batch > 1 {
                self.batch /= 2;
            }
            last = now;
        }
        ops
    }

    /// Counters are read inside the window's borders, so that waiting for it is not counted; where
    /// that takes a system call, the window begins after it.
    fn measure(&mut self, begin: u64, group: Option<&pmu::Group<pmu::Kernel>>) -> Counted {
        let clock = &self.clock;
        let deadline = begin + clock.ticks(self.plan.window);
        let mut start = loop {
            let now = clock.now();
            if now >= begin {
                break now;
            }
        };
        let before = group.map(pmu::Group::now);
        if before.is_some() {
            start = clock.now();
        }
        let (mut ops, mut batches) = (0, 0);
        loop {
            ops += self.work.batch(self.batch);
            batches += 1;
            let now = clock.now();
            if now >= deadline {
                let readings = before.zip(group.map(pmu::Group::now));
                return Counted { start, end: now, ops, batches, readings };
            }
        }
    }
}

struct Counted {
    start: u64,
    end: u64,
    ops: u64,
    batches: u64,
    /// What the counters showed at the beginning and at the end.
    readings: Option<(Result<Reading, Unavailable>, Result<Reading, Unavailable>)>,
}

/// Where threads wait for each other; the last to arrive sets the start.
pub(crate) struct Rendezvous {
    threads: usize,
    arrived: CachePadded<AtomicUsize>,
    start: CachePadded<AtomicU64>,
}

impl Rendezvous {
    /// Waits for so many threads, once.
    pub(crate) fn new(threads: usize) -> Self {
        Self {
            threads,
            arrived: CachePadded::new(AtomicUsize::new(0)),
            start: CachePadded::new(AtomicU64::new(0)),
        }
    }

    /// Arrives, waits for the others, and gives the tick at which all begin.
    pub(crate) fn meet(&self, clock: &Clock) -> u64 {
        const LOOKS_BEFORE_YIELDING: u32 = 10_000;
        // Relaxed: the count only elects the last; `start` publishes what matters.
        if self.arrived.fetch_add(1, Ordering::Relaxed) + 1 == self.threads {
            let start = clock.now() + clock.ticks(LEAD);
            self.start.store(start, Ordering::Release);
            return start;
        }
        let mut looks = 0;
        loop {
            // Acquire: pairs with the store above.
            let start = self.start.load(Ordering::Acquire);
            if start != 0 {
                return start;
            }
            looks += 1;
            if looks % LOOKS_BEFORE_YIELDING == 0 {
                std::thread::yield_now(); // the one that is missing may need this CPU
            }
            std::hint::spin_loop();
        }
    }
}

/// Gives the part of the time in which all threads ran, of the time in which any did.
pub fn overlap(windows: &[ThreadWindow]) -> f64 {
    let (Some(first), Some(last)) =
        (windows.iter().map(|w| w.start).min(), windows.iter().map(|w| w.end).max())
    else {
        return 0.0;
    };
    let all_from = windows.iter().map(|w| w.start).max().unwrap_or(first);
    let all_until = windows.iter().map(|w| w.end).min().unwrap_or(last);
    all_until.saturating_sub(all_from) as f64 / (last - first).max(1) as f64
}

/// Gives the ticks between the first and the last thread's start.
pub fn start_skew(windows: &[ThreadWindow]) -> u64 {
    let starts = windows.iter().map(|w| w.start);
    starts.clone().max().zip(starts.min()).map_or(0, |(last, first)| last - first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::affinity::allowed_cpus;
    use crate::stats::median;

    struct Nothing;
    impl Work for Nothing {
        #[inline(never)]
        fn batch(&mut self, ops: u64) -> u64 {
            crate::spin::chain(ops);
            ops
        }
    }

    fn works(threads: usize) -> Vec<Box<dyn Work>> {
        (0..threads).map(|_| <dyn Work>::boxed(Nothing)).collect()
    }

    fn clock() -> Clock {
        Clock::calibrated(&topology::Topology::this_host().unwrap().cpuid)
    }

    const SHORT: Plan = Plan {
        warm_up: Duration::from_millis(2),
        window: Duration::from_millis(5),
        count_syscalls: false,
    };

    #[test]
    fn every_thread_counts_and_runs_for_the_window() {
        let (clock, cpus) = (clock(), allowed_cpus().unwrap());
        let mut team = Team::new();
        // A thread that is kept from its CPU gets a shorter window, or none; not every time.
        let longest = (0..10).filter_map(|_| {
            let windows = run(&mut team, &clock, &cpus, works(cpus.len()), SHORT).unwrap();
            assert_eq!(windows.len(), cpus.len());
            if windows.iter().any(|window| window.ops == 0 || window.ops_in_all == window.ops) {
                return None;
            }
            for window in &windows {
                assert!(window.batches > 0 && window.ops_in_all > window.ops);
                assert!(window.end > window.start && !window.migrated);
                assert_eq!(window.verdict, Ok(()));
            }
            windows.iter().map(|w| w.end - w.start).min()
        });
        assert!(
            longest.max().expect("windows with work in them") as f64
                >= clock.ticks(SHORT.window) as f64 * 0.99
        );
    }

    #[test]
    fn the_pass_that_counts_system_calls_finds_none_in_computation() {
        let (clock, cpus) = (clock(), allowed_cpus().unwrap());
        let plan = Plan { count_syscalls: true, ..SHORT };
        for window in run(&mut Team::new(), &clock, &cpus, works(cpus.len()), plan).unwrap() {
            match window.syscalls {
                Some(Ok(calls)) => assert_eq!(calls, 0),
                Some(Err(reason)) => println!("SKIPPED: {reason}"),
                None => panic!("asked for and not done"),
            }
        }
    }

    /// A ratio in one run: how far apart threads start after a deadline and after a barrier.
    #[test]
    fn a_deadline_starts_threads_closer_together_than_a_barrier() {
        let (clock, cpus) = (clock(), allowed_cpus().unwrap());
        let Some(cpus) = cpus.get(..2) else {
            println!("SKIPPED: one CPU");
            return;
        };
        let mut team = Team::new();
        let plan = Plan {
            warm_up: Duration::from_micros(50),
            window: Duration::from_micros(50),
            count_syscalls: false,
        };
        let deadline: Vec<f64> = (0..200)
            .map(|_| start_skew(&run(&mut team, &clock, cpus, works(2), plan).unwrap()) as f64)
            .collect();
        let barrier: Vec<f64> = (0..200)
            .map(|_| {
                let meet = Arc::new(std::sync::Barrier::new(2));
                let jobs = (0..2)
                    .map(|_| {
                        let (meet, clock) = (meet.clone(), clock.clone());
                        move || {
                            meet.wait();
                            clock.now()
                        }
                    })
                    .collect();
                let starts = team.run(cpus, jobs).unwrap();
                starts[0].abs_diff(starts[1]) as f64
            })
            .collect();
        let (deadline, barrier) = (median(&deadline).unwrap(), median(&barrier).unwrap());
        println!("median start skew: deadline {deadline} ticks, barrier {barrier} ticks");
        assert!(deadline * 10.0 < barrier, "deadline {deadline} ticks, barrier {barrier} ticks");
    }

    #[test]
    fn each_metric_is_counted_or_has_a_reason() {
        let (clock, cpus) = (clock(), allowed_cpus().unwrap());
        for window in run(&mut Team::new(), &clock, &cpus, works(cpus.len()), SHORT).unwrap() {
            for metric in pmu::METRICS {
                match window.event(metric) {
                    // An operation of this work is more than an instruction.
                    Ok(count) if metric == "instructions_per_op" => assert!(count > window.ops),
                    Ok(_) => {}
                    Err(reason) => println!("SKIPPED {metric}: {reason}"),
                }
            }
            assert!(window.event("nothing").is_err());
        }
        let plan = Plan { count_syscalls: true, ..SHORT };
        let windows = run(&mut Team::new(), &clock, &cpus[..1], works(1), plan).unwrap();
        assert_eq!(windows[0].event("llc_misses").unwrap_err().code, "not_counted");
    }

    #[test]
    fn boxed_works_have_lines_of_their_own() {
        struct Small(u8);
        impl Work for Small {
            fn batch(&mut self, ops: u64) -> u64 {
                self.0 = self.0.wrapping_add(1);
                ops
            }
        }
        let works: Vec<_> = (0..32).map(|_| <dyn Work>::boxed(Small(0))).collect();
        for work in &works {
            let address = (&raw const **work).addr();
            assert_eq!(address % align_of::<CachePadded<u8>>(), 0);
            assert!(size_of_val(&**work) >= 64);
        }
    }

    #[test]
    fn overlap_is_the_common_part() {
        let window = |start, end| ThreadWindow {
            start,
            end,
            ops: 1,
            batches: 1,
            ops_in_all: 1,
            migrated: false,
            usage: None,
            syscalls: None,
            events: None,
            verdict: Ok(()),
        };
        assert_eq!(overlap(&[window(0, 100)]), 1.0);
        assert_eq!(overlap(&[window(0, 100), window(10, 110)]), 90.0 / 110.0);
        assert_eq!(overlap(&[window(0, 10), window(20, 30)]), 0.0);
        assert_eq!(start_skew(&[window(5, 100), window(2, 10), window(9, 10)]), 7);
    }
}
