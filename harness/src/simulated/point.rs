//! One point: an experiment on simulated cores, from making it to checking it.

use std::collections::{BTreeMap, BTreeSet};
use std::hint::black_box;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crossbeam_utils::CachePadded;
use simulator::machine::Machine;
use simulator::{LineReport, Reason, Session, Simulation, Stopped};

use super::figures::{Measured, Sums};
use super::latencies::latencies;
use super::lines::Watch;
use super::work::{Places, Progress, Quota, work_through};
use crate::latency::Load;
use crate::memory::{Policy, make_plain};
use crate::native::{Conditions, Experiment, Failure, Make};
use crate::records::Metric;
use crate::spin::{StepRate, chain};
use crate::unavailable::Unavailable;
use crate::window::Work;
use crate::workload::Workload;

/// What to simulate.
#[derive(Debug, Clone)]
pub struct Request<'a> {
    /// The machine.
    pub machine: &'a Machine,
    /// The core of each thread. Threads may share cores.
    pub cores: &'a [u32],
    /// Operations of each thread; the window ends when the first one has done them.
    pub ops: u64,
    /// The interleaving, and the seed of everything drawn at random.
    pub seed: u64,
    /// What the threads do.
    pub workload: &'a Workload,
}

/// Steps of the chain that tell the length of a step.
const STEPS: u64 = 4000;

/// Operations of the rounds that tell the price of calling a batch, and batches that they are cut
/// into.
const TRIAL_OPS: u64 = 256;
const TRIAL_BATCHES: u64 = 16;

/// Operations that every thread tries before a window opens: its work's period, within these
/// bounds.
const LEAST_WARM_UP: u64 = 32;
const MOST_WARM_UP: u64 = 1 << 16;

/// Short rounds before that, until nothing comes from memory, but not more than so many: what a
/// round allocates for itself then lies where it lay in the round before.
const SETTLING_ROUNDS: usize = 9;
const SETTLING_OPS: u64 = 2;

/// The part of the operations asked for that the short window of threads in company has.
const SHORT_SHARE: u64 = 4;

/// Simulates one point. Figures depend on the program, the request and the machine, and on nothing
/// of the host, if this is the first thing that the process does.
///
/// # Errors
/// When the experiment cannot be made or simulated here, or is broken.
pub fn measure(make: Make, request: &Request<'_>) -> Result<Measured, Failure> {
    on_a_fresh_stack(|| simulate(make, request, None).map(|(measured, _)| measured))
}

/// Runs a closure on a thread of its own. The stack and the heap of the first thread begin where the
/// environment, the arguments and the kernel's own data leave them, and simulated threads read what
/// lies there: what they read must lie on the same lines each time.
///
/// # Errors
/// What the closure says, and when there is no thread or it panics.
pub fn on_a_fresh_stack<T: Send>(
    closure: impl FnOnce() -> Result<T, Failure> + Send,
) -> Result<T, Failure> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("simulation".into());
        let refused = |error: &std::io::Error| {
            Failure::Unavailable(Unavailable::syscall("no_thread", "a thread to begin on", error))
        };
        let running = thread.spawn_scoped(scope, closure).map_err(|error| refused(&error))?;
        running.join().unwrap_or_else(|_| Err(Failure::Broken("the simulation panicked".into())))
    })
}

pub(super) fn simulate(
    make: Make,
    request: &Request<'_>,
    watch: Option<&Watch>,
) -> Result<(Measured, Option<LineReport>), Failure> {
    make_plain();
    let mut session = start(request, watch)?;
    let steps = step_rate(&mut session)?;
    let all = conditions(request, request.cores, request.workload, steps)?;
    let alone = request.cores.len() == 1;
    let price = if alone {
        Sums::default()
    } else {
        let one = Workload { producers: None, consumers: None, ..request.workload.clone() };
        let one = conditions(request, &request.cores[..1], &one, steps)?;
        batch_price(&mut session, make, &one)?
    };
    let mut rig = Rig::make(&mut session, make, &all)?;
    let (short, quota): (u64, fn(u64) -> Quota) = match alone {
        true => (request.ops, Quota::whole),
        false => (request.ops.div_ceil(SHORT_SHARE), Quota::batches),
    };
    let [short, long] = rig.rounds([quota(short), quota(short + request.ops)])?;
    let lines = rig.lines.take();
    let facts = rig.end()?;
    let (ops, sums) = long.without(price).beyond(&short.without(price));
    let load = request.workload.latency;
    let latency =
        load.map(|load| latencies(&mut session, make, (request, load), &all)).transpose()?;
    Ok((Measured { ops, sums, facts, latency }, lines))
}

/// Under which conditions an experiment is made on these cores.
pub(super) fn conditions(
    request: &Request<'_>,
    cores: &[u32],
    workload: &Workload,
    steps: StepRate,
) -> Result<Conditions, Failure> {
    let policy = |&cpu: &u32| workload.memory.policy_on(request.machine, cpu);
    let own_memory: Result<Vec<Policy>, Unavailable> = cores.iter().map(policy).collect();
    let own_memory = own_memory.map_err(Failure::Unavailable)?;
    Ok(Conditions {
        cpus: cores.to_vec(),
        shared_memory: own_memory.first().cloned().unwrap_or(Policy::FirstTouch),
        own_memory,
        workload: workload.clone(),
        steps,
        seed: request.seed,
    })
}

pub(super) fn start(request: &Request<'_>, watch: Option<&Watch>) -> Result<Session, Failure> {
    let mut distinct: Vec<u32> = Vec::new();
    for core in request.cores {
        if !distinct.contains(core) {
            distinct.push(*core);
        }
    }
    let mut simulation = Simulation::on(request.machine)
        .threads(request.cores.len())
        .cores(&distinct)
        .seed(request.seed)
        .budget(budget(request));
    if let Some(Watch { apart, trace }) = watch {
        simulation = simulation.put_apart(apart);
        simulation = trace.iter().fold(simulation, |simulation, &most| simulation.trace(most));
    }
    simulation.start().map_err(|error| {
        Failure::Unavailable(Unavailable::because("not_simulated", error.to_string()))
    })
}

/// Simulated time that no round needs unless it gets nowhere: all operations one after the other,
/// each with its work and a wait for every other thread; a wait of several time slices where threads
/// share cores.
fn budget(request: &Request<'_>) -> Duration {
    let Workload { critical_ns, think_ns, .. } = request.workload;
    let threads = request.cores.len() as u64;
    let cores = request.cores.iter().collect::<BTreeSet<_>>().len() as u64;
    let wait = if cores < threads { 10_000_000 } else { 500 * threads };
    let all = (critical_ns + think_ns + wait).saturating_mul(2 * request.ops * threads);
    let open = match request.workload.latency {
        Some(Load::Open { per_s }) => (2 * request.ops * threads) as f64 / per_s as f64,
        _ => 0.0,
    };
    Duration::from_nanos(all) + Duration::from_secs_f64(open) + Duration::from_millis(200)
}

/// Not inlined: each run of it costs the same but for the steps.
#[inline(never)]
fn steps(count: u64) -> u64 {
    chain(black_box(count))
}

/// Measures the length of a step of work.
pub(super) fn step_rate(session: &mut Session) -> Result<StepRate, Failure> {
    let mut time = |count: u64| {
        let report = session.once(move || black_box(steps(count))).map_err(stopped)?;
        Ok::<u64, Failure>(report.window.time_ps)
    };
    // What is touched first costs more.
    time(STEPS)?;
    let (once, twice) = (time(STEPS)?, time(STEPS * 2)?);
    Ok(StepRate { ns_per_step: twice.saturating_sub(once) as f64 / STEPS as f64 / 1e3 })
}

/// The most lines of what the engine says about threads that it stopped.
const MOST_LINES: usize = 4;

/// Why a run stopped, and where the first threads were.
pub fn stopped(stopped: Stopped) -> Failure {
    let lines: Vec<&str> = stopped.message.lines().map(str::trim).collect();
    let more = match lines.len().saturating_sub(MOST_LINES) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    let shown = lines[..lines.len().min(MOST_LINES)].join("; ");
    Failure::Broken(format!("{shown}{more}"))
}

/// What the batches that [`TRIAL_OPS`] operations are cut into cost beyond one batch of them all.
fn batch_price(
    session: &mut Session,
    make: Make,
    conditions: &Conditions,
) -> Result<Sums, Failure> {
    let mut rig = Rig::make(session, make, conditions)?;
    let whole = Quota::whole(TRIAL_OPS);
    let pieces = Quota::pieces_of(TRIAL_OPS / TRIAL_BATCHES, TRIAL_OPS);
    let [whole, pieces] = rig.rounds([whole, pieces])?;
    rig.end()?;
    Ok(pieces.sums - whole.sums)
}

/// An experiment whose threads are ready.
///
/// Dropped in [`end`](Rig::end) only: after a run that stopped, threads stand in the middle of
/// something for ever.
pub(super) struct Rig<'a> {
    session: &'a mut Session,
    experiment: ManuallyDrop<Experiment>,
    shared: ManuallyDrop<Box<Shared>>,
    /// Operations of each thread since the experiment was made.
    done: Vec<u64>,
    /// Operations of each thread in the round under way: a thread that had more batches than that
    /// had some in which nothing succeeded.
    quota: u64,
    /// The lines of the last round, if they are watched.
    pub(super) lines: Option<LineReport>,
}

/// What the threads reach.
pub(super) struct Shared {
    pub(super) places: Places,
    pub(super) progress: Vec<CachePadded<Progress>>,
    pub(super) stop: CachePadded<AtomicBool>,
    /// How far each thread was when the window closed.
    then: Vec<(AtomicU64, AtomicU64)>,
}

impl Shared {
    /// Takes the works of an experiment.
    fn of(mut experiment: Experiment) -> (Experiment, Box<Self>) {
        let works = std::mem::take(&mut experiment.works);
        let threads = works.len();
        let shared = Self {
            places: Places::new(works),
            progress: (0..threads).map(|_| CachePadded::default()).collect(),
            stop: CachePadded::default(),
            then: (0..threads).map(|_| Default::default()).collect(),
        };
        (experiment, Box::new(shared))
    }
}

/// What became of a round.
pub(super) struct Round {
    ops: Vec<u64>,
    batches: u64,
    sums: Sums,
}

impl Round {
    /// Takes away what calling the batches cost.
    fn without(self, price: Sums) -> Self {
        let price = price.times(self.batches, TRIAL_BATCHES - 1);
        let threads = self.ops.len().max(1) as u64;
        let price = Sums { time_ps: price.time_ps / threads, ..price };
        Self { sums: self.sums - price, ..self }
    }

    /// What this round has beyond a shorter one: beginning and ending, which both have, is not in
    /// it. Where threads take turns so unevenly that one did less in the longer round, this round
    /// stands alone.
    fn beyond(self, shorter: &Self) -> (Vec<u64>, Sums) {
        let pairs = self.ops.iter().zip(&shorter.ops);
        let more: Option<Vec<u64>> = pairs.map(|(long, short)| long.checked_sub(*short)).collect();
        match more {
            Some(ops) => (ops, self.sums - shorter.sums),
            None => (self.ops, self.sums),
        }
    }
}

impl<'a> Rig<'a> {
    /// Makes the experiment on the first thread; each thread prepares its own work.
    pub(super) fn make(
        session: &'a mut Session,
        make: Make,
        conditions: &Conditions,
    ) -> Result<Self, Failure> {
        // Whatever threads touch is made by one of them or moves to them: where the program's own
        // memory and stack lie depends on what the program did before.
        let own = conditions.clone();
        let made = session.once(move || make(&own).map(Shared::of)).map_err(stopped)?;
        let made = made.results.into_iter().next();
        let nothing = || Failure::Broken("the experiment was not made".into());
        let (experiment, shared) = made.ok_or_else(nothing)?.map_err(Failure::Unavailable)?;
        let threads = shared.places.len();
        if threads != conditions.threads() {
            return Err(Failure::Broken(format!("the experiment has {threads} threads")));
        }
        let (experiment, shared) = (ManuallyDrop::new(experiment), ManuallyDrop::new(shared));
        let done = vec![0; threads];
        let mut rig = Self { session, experiment, shared, done, quota: 0, lines: None };
        rig.each(|shared, thread| {
            // SAFETY: the place of this very thread.
            unsafe { shared.places.of(thread) }.prepare();
        })?;
        Ok(rig)
    }

    /// Gives the threads' works, which nobody has in hand between two rounds.
    pub(super) fn works(&mut self) -> impl Iterator<Item = &dyn Work> {
        self.shared.places.works()
    }

    /// Gives the operations that every thread tries before a window opens.
    pub(super) fn period(&mut self) -> u64 {
        self.shared.places.period().clamp(LEAST_WARM_UP, MOST_WARM_UP)
    }

    /// Begins a round of which any operation that is done shows that threads get somewhere.
    pub(super) fn begin(&mut self) {
        self.shared.stop.store(false, Ordering::Relaxed);
        self.shared.progress.iter().for_each(|progress| progress.reset());
        self.quota = 0;
    }

    /// Takes notice of what each thread did in a round.
    pub(super) fn did(&mut self, ops: impl IntoIterator<Item = u64>) {
        self.done.iter_mut().zip(ops).for_each(|(done, ops)| *done += ops);
    }

    /// Runs a closure on every thread that has a work.
    pub(super) fn each<R: Send>(
        &mut self,
        closure: impl Fn(&Shared, usize) -> R + Send + Sync,
    ) -> Result<(Vec<R>, Sums), Failure> {
        let shared: &Shared = &self.shared;
        let run = move |thread: usize| closure(shared, thread);
        let report = if shared.places.len() == 1 {
            self.session.once(move || run(0))
        } else {
            self.session.each_until(run, || {
                for (then, progress) in shared.then.iter().zip(&shared.progress) {
                    let (ops, batches) = progress.now();
                    then.0.store(ops, Ordering::Relaxed);
                    then.1.store(batches, Ordering::Relaxed);
                }
                // All threads are stopped; each finds it when it has ended its batch.
                shared.stop.store(true, Ordering::Relaxed);
            })
        };
        match report {
            Ok(report) => {
                self.lines = report.lines;
                Ok((report.results, report.window.into()))
            }
            Err(error) => Err(self.why(error)),
        }
    }

    /// Threads that got nowhere are starved if others kept working: that breaks no promise, but
    /// there is no figure either. Where none came back any more, somebody is stuck.
    fn why(&self, error: Stopped) -> Failure {
        let most = self.shared.progress.iter().map(|progress| progress.now().1).max();
        match (error.reason, stopped(error)) {
            (Reason::Budget, Failure::Broken(reason)) if most > Some(self.quota) => {
                Failure::Unavailable(Unavailable::because("starved", reason))
            }
            (_, failure) => failure,
        }
    }

    /// Lets all work until the first one has done its quota.
    pub(super) fn round(&mut self, quota: Quota) -> Result<Round, Failure> {
        self.begin();
        self.quota = quota.ops;
        let (_, sums) = self.each(move |shared, thread| {
            // SAFETY: the place of this very thread.
            let work = unsafe { shared.places.of(thread) };
            work_through(work, quota, &shared.stop, &shared.progress[thread]);
        })?;
        let at_the_end: Vec<(u64, u64)> =
            self.shared.progress.iter().map(|progress| progress.now()).collect();
        self.did(at_the_end.iter().map(|(ops, _)| *ops));
        let window = if at_the_end.len() == 1 {
            at_the_end
        } else {
            let read = |from: &AtomicU64| from.load(Ordering::Relaxed);
            self.shared.then.iter().map(|then| (read(&then.0), read(&then.1))).collect()
        };
        let batches = window.iter().map(|(_, batches)| batches).sum();
        Ok(Round { ops: window.into_iter().map(|(ops, _)| ops).collect(), batches, sums })
    }

    /// Lets every thread warm up, then does the rounds asked for. All in one loop, so that what
    /// threads touch on its stack lies where it lay before.
    pub(super) fn rounds(&mut self, quotas: [Quota; 2]) -> Result<[Round; 2], Failure> {
        let period = self.period();
        let mut schedule = [Quota::attempts(period)].into_iter().chain(quotas);
        let (mut settling, mut rounds) = (SETTLING_ROUNDS, Vec::new());
        loop {
            let quota = match settling {
                0 => schedule.next(),
                _ => Some(Quota::attempts(SETTLING_OPS)),
            };
            let Some(quota) = quota else { break };
            let round = self.round(quota)?;
            if settling == 0 {
                rounds.push(round);
            } else {
                settling = if round.sums.memory_reads == 0 { 0 } else { settling - 1 };
            }
        }
        rounds.split_off(1).try_into().map_err(|_| Failure::Broken("a round is missing".into()))
    }

    /// Lets every thread end its work, and checks that the primitive did its job. The check is not
    /// simulated: it is no part of the figures.
    pub(super) fn end(mut self) -> Result<BTreeMap<String, Metric>, Failure> {
        let (ended, _) = self.each(|shared, thread| {
            // SAFETY: the place of this very thread.
            unsafe { shared.places.of(thread) }.finish()
        })?;
        ended.into_iter().collect::<Result<(), String>>().map_err(Failure::Broken)?;
        let shared = ManuallyDrop::into_inner(self.shared);
        shared.places.into_works().for_each(drop);
        let experiment = ManuallyDrop::into_inner(self.experiment);
        let facts = (experiment.verify)(&self.done).map_err(Failure::Broken)?;
        // Which pages are huge is the host's affair.
        let simulated = facts.into_iter().filter(|(name, _)| *name != "huge_bytes");
        Ok(simulated.map(|(name, metric)| (name.to_owned(), metric)).collect())
    }
}
