//! What executes the threads of a step: simulated cores, or this host's.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use harness::affinity::pin_to;
use harness::native::Failure as Broken;
use harness::noise::ThreadUsage;
use harness::simulated::{LineReport, Machine, Simulation, stopped};
use harness::unavailable::Unavailable;
use simulator::Session;

use super::measured::Counted;
use super::scenario::Until;

/// Simulated time that no step needs unless it gets nowhere.
const BUDGET: Duration = Duration::from_secs(120);

/// What executes the threads of a step.
pub(crate) enum Stage {
    /// Simulated cores.
    Simulated(Session),
    /// The CPU of each thread.
    Native(Vec<u32>),
}

/// What a round cost.
#[derive(Debug, Default)]
pub(crate) struct Cost {
    /// Until the first thread ended, in nanoseconds.
    pub(crate) first_ns: f64,
    /// CPU time, in nanoseconds.
    pub(crate) cpu_ns: f64,
    /// How long threads of this host could have run and waited for their CPUs, in nanoseconds,
    /// where each has one of its own and the kernel tells.
    pub(crate) queued_ns: Option<u64>,
    /// Page faults.
    pub(crate) page_faults: u64,
    /// What the simulator counted.
    pub(crate) counts: Option<Counted>,
    /// What it saw of lines.
    pub(crate) lines: Option<LineReport>,
}

impl Stage {
    /// Opens one of simulated cores; thread i is on the core at place i.
    pub(crate) fn simulated(
        machine: &Machine,
        cores: &[u32],
        seed: u64,
        watch: bool,
    ) -> Result<Self, Broken> {
        let mut distinct: Vec<u32> = Vec::new();
        for core in cores {
            if !distinct.contains(core) {
                distinct.push(*core);
            }
        }
        let simulation = Simulation::on(machine)
            .threads(cores.len())
            .cores(&distinct)
            .seed(seed)
            .budget(BUDGET)
            .watch_lines(watch);
        let session = simulation.start().map_err(|error| {
            Broken::Unavailable(Unavailable::because("not_simulated", error.to_string()))
        })?;
        Ok(Self::Simulated(session))
    }

    /// Executes a closure on the first thread.
    pub(crate) fn once<R: Send>(
        &mut self,
        closure: impl FnOnce() -> R + Send,
    ) -> Result<R, Broken> {
        let nothing = || Broken::Broken("the first thread came back with nothing".into());
        match self {
            Self::Simulated(session) => {
                let report = session.once(closure).map_err(stopped)?;
                report.results.into_iter().next().ok_or_else(nothing)
            }
            Self::Native(cpus) => {
                let first = cpus.first().copied();
                std::thread::scope(|scope| {
                    let pinned = move || {
                        first.map(pin_to).transpose().map_err(|error| refused(&error))?;
                        Ok(closure())
                    };
                    scope.spawn(pinned).join().map_err(|_| panicked())?
                })
            }
        }
    }

    /// Executes a closure on every thread, and `first_ended` when the first one has ended.
    pub(crate) fn each(
        &mut self,
        until: Until,
        closure: impl Fn(usize) + Sync,
        first_ended: impl FnOnce() + Send,
    ) -> Result<Cost, Broken> {
        match self {
            Self::Simulated(session) => {
                let report = session.each_until(closure, first_ended).map_err(stopped)?;
                let (counts, cpu_ps) = match until {
                    Until::First => {
                        let all = report.window.time_ps * report.cores.len() as u64;
                        (report.window, all.saturating_sub(report.window.idle_ps))
                    }
                    Until::Last => {
                        let busy = report.cores.iter().map(|core| core.time_ps - core.idle_ps);
                        (report.total, busy.sum())
                    }
                };
                Ok(Cost {
                    first_ns: report.window.time_ns(),
                    cpu_ns: cpu_ps as f64 / 1e3,
                    queued_ns: None,
                    page_faults: counts.page_faults,
                    counts: Some(counts.into()),
                    lines: report.lines,
                })
            }
            Self::Native(cpus) => natively(cpus, &closure, first_ended),
        }
    }
}

fn refused(error: &dyn std::fmt::Display) -> Broken {
    Broken::Unavailable(Unavailable::because("not_pinned", error.to_string()))
}

fn panicked() -> Broken {
    Broken::Broken("a thread panicked".into())
}

/// CPU time of the calling thread; `getrusage` has it only as of the last tick.
fn cpu_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes a time to the place given; where it is refused the time stays 0.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

/// Whether each thread has a CPU of its own.
fn is_alone(cpus: &[u32]) -> bool {
    let distinct: std::collections::BTreeSet<_> = cpus.iter().collect();
    distinct.len() == cpus.len()
}

/// Threads of this host. They begin together: each waits until all are there.
fn natively(
    cpus: &[u32],
    closure: &(impl Fn(usize) + Sync),
    first_ended: impl FnOnce() + Send,
) -> Result<Cost, Broken> {
    let ready = AtomicU64::new(0);
    let somebody_ended = AtomicBool::new(false);
    let first_ended = Mutex::new(Some(first_ended));
    let first_ns = AtomicU64::new(0);
    let run = |thread: usize, cpu: u32| -> Result<ThreadUsage, Broken> {
        let pinned = pin_to(cpu);
        // ORDERING: SeqCst, here and below - once a thread and round; a barrier needs no less than
        // Release and Acquire, and the one who ended first is the same for all.
        ready.fetch_add(1, Ordering::SeqCst);
        pinned.map_err(|error| refused(&error))?;
        while ready.load(Ordering::SeqCst) < cpus.len() as u64 {
            std::thread::yield_now();
        }
        let (before, began) = (ThreadUsage::now(), std::time::Instant::now());
        let cpu_before = cpu_ns();
        closure(thread);
        if !somebody_ended.swap(true, Ordering::SeqCst) {
            first_ns.store(began.elapsed().as_nanos() as u64, Ordering::SeqCst);
            let close = first_ended.lock().unwrap_or_else(PoisonError::into_inner).take();
            close.into_iter().for_each(|close| close());
        }
        let cpu_ns = cpu_ns().saturating_sub(cpu_before);
        let used = before.zip(ThreadUsage::now()).map(|(before, now)| now.since(before));
        Ok(ThreadUsage { cpu_ns, ..used.unwrap_or_default() })
    };
    let usage = std::thread::scope(|scope| {
        let run = &run;
        let spawn = |(thread, &cpu): (usize, &u32)| {
            std::thread::Builder::new().spawn_scoped(scope, move || run(thread, cpu))
        };
        let running: Vec<_> = cpus.iter().enumerate().map(spawn).collect();
        if let Some(Err(error)) = running.iter().find(|thread| thread.is_err()) {
            // Those that began wait for the missing ones no longer.
            ready.fetch_add(cpus.len() as u64, Ordering::SeqCst);
            return Err(refused(error));
        }
        let ended = running.into_iter().flatten().map(|thread| thread.join());
        ended.map(|ended| ended.map_err(|_| panicked())?).collect::<Result<Vec<_>, _>>()
    })?;
    let queued = usage.iter().map(|one| one.run_queue_wait_ns);
    Ok(Cost {
        first_ns: first_ns.load(Ordering::SeqCst) as f64,
        cpu_ns: usage.iter().map(|one| one.cpu_ns as f64).sum(),
        queued_ns: if is_alone(cpus) { queued.sum() } else { None },
        page_faults: usage.iter().map(|one| one.minor_faults + one.major_faults).sum(),
        counts: None,
        lines: None,
    })
}
