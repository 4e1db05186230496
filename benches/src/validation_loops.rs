//! What published measurements executed, executed on simulated cores: loops in which each thread
//! bumps one counter, through one primitive.

use std::cell::UnsafeCell;
use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use crossbeam_utils::CachePadded;
use harness::simulated::{Error, Machine, Simulation};

/// What all threads share; each loop uses some of it.
#[derive(Debug, Default)]
struct Shared {
    counter: CachePadded<AtomicU64>,
    mutex: CachePadded<PosixMutex>,
    taken: CachePadded<AtomicBool>,
    ticket: CachePadded<(AtomicU32, AtomicU32)>,
}

/// The C library's mutex, which published measurements took.
#[derive(Debug)]
struct PosixMutex(UnsafeCell<libc::pthread_mutex_t>);

// SAFETY: the C library's functions on it may be called by any thread.
unsafe impl Sync for PosixMutex {}

impl Default for PosixMutex {
    fn default() -> Self {
        Self(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER))
    }
}

impl PosixMutex {
    /// Calls a function with the mutex held.
    fn with(&self, call: impl FnOnce()) {
        // SAFETY: the mutex is initialised, stays in place, and is not held by this thread.
        unsafe { libc::pthread_mutex_lock(self.0.get()) };
        call();
        // SAFETY: this thread holds it.
        unsafe { libc::pthread_mutex_unlock(self.0.get()) };
    }
}

/// One bump.
type Bump = fn(&Shared);

/// Gives the primitive that a loop is about.
pub(crate) fn primitive(name: &str) -> &'static str {
    if name.ends_with("add") { "counters" } else { "locks" }
}

/// Gives a loop by its name in the table of published values.
fn bump(name: &str) -> Option<Bump> {
    Some(match name {
        "add" => |shared| {
            shared.counter.fetch_add(1, Ordering::Relaxed);
        },
        "cas_add" => |shared| {
            let mut seen = shared.counter.load(Ordering::Relaxed);
            while let Err(now) = shared.counter.compare_exchange(
                seen,
                seen + 1,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                seen = now;
            }
        },
        "mutex" => |shared| shared.mutex.with(|| plain(&shared.counter)),
        "tas" => |shared| {
            while shared.taken.swap(true, Ordering::Acquire) {}
            plain(&shared.counter);
            shared.taken.store(false, Ordering::Release);
        },
        "tas_pause" => |shared| {
            while shared.taken.swap(true, Ordering::Acquire) {
                spin_loop();
            }
            plain(&shared.counter);
            shared.taken.store(false, Ordering::Release);
        },
        "ticket" => |shared| {
            let (next, serving) = &*shared.ticket;
            let mine = next.fetch_add(1, Ordering::Relaxed);
            while serving.load(Ordering::Acquire) != mine {}
            plain(&shared.counter);
            serving.store(mine.wrapping_add(1), Ordering::Release);
        },
        _ => return None,
    })
}

fn plain(counter: &AtomicU64) {
    counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

/// How many seeds a time is the average of: locks that sleep depend on who comes first.
const SEEDS: u64 = 5;

/// Simulated nanoseconds between two operations of whatever thread, with threads on the machine's
/// first cores, on average over some seeds; `None` if there is no such loop.
pub(crate) fn ns_per_op(
    machine: &Machine,
    name: &str,
    threads: usize,
) -> Option<Result<f64, String>> {
    let bump = bump(name)?;
    let ops = (4_000 / threads).max(100);
    let run = |seed: u64| -> Result<f64, Error> {
        let simulation = Simulation::on(machine).threads(threads).seed(seed);
        let mut session = simulation.start()?;
        let made = session.once(|| Box::new(Shared::default()))?;
        let Some(shared) = made.results.into_iter().next() else { return Ok(f64::NAN) };
        let round = |_| (0..ops).for_each(|_| bump(&shared));
        // The first round finds its lines and pages. The second is told until its first thread
        // ends: all are at work until then.
        session.each(round)?;
        let before = shared.counter.load(Ordering::Relaxed);
        let mut done = 0;
        let report =
            session.each_until(round, || done = shared.counter.load(Ordering::Relaxed) - before)?;
        Ok(report.window.time_ns() / done as f64)
    };
    let times: Result<Vec<f64>, Error> = (1..=SEEDS).map(run).collect();
    let average = |times: Vec<f64>| times.iter().sum::<f64>() / SEEDS as f64;
    Some(times.map(average).map_err(|error| error.to_string()))
}
