//! What lives on the engine's thread: the engine, and the threads that lend to its guests.

use std::collections::BTreeMap;

use crate::bandwidth::Bandwidth;
use crate::caches::{Caches, Reach};
use crate::coherence::{CORES, Coherence};
use crate::context::longest_slice;
use crate::cores::Core;
use crate::dozing::Dozer;
use crate::engine::Engine;
use crate::enter;
use crate::error::{Error, Stopped};
use crate::explain::explain;
use crate::guest_memory;
use crate::halt::{Halt, stop};
use crate::host::Host;
use crate::kernel::{CpuSet, Kernel, ThreadIdentity};
use crate::lend::Lender;
use crate::line_report::LineReport;
use crate::lines::Lines;
use crate::machine::Machine;
use crate::os::{Ready, Thread};
use crate::queue::{LATEST, Queue};
use crate::report::Counts;
use crate::simulation::Simulation;
use crate::spin::Spin;
use crate::symbols::Symbols;
use crate::time::{NANOSECOND, Time};
use crate::translate::{Costs, Special, Translator};
use crate::waiting::Waiting;
use crate::{forbidden, vdso};

/// The engine with everything around it.
pub(crate) struct Workshop {
    /// None if threads run by themselves.
    engine: Option<Engine>,
    lenders: Vec<Lender>,
    seed: u64,
    budget: Time,
    /// Whether a run stopped in the middle.
    broken: bool,
}

/// The counts of a run.
#[derive(Debug)]
pub(crate) struct RunCounts {
    pub(crate) cores: Vec<Counts>,
    pub(crate) total: Counts,
    pub(crate) window: Counts,
    pub(crate) lines: Option<LineReport>,
}

impl Workshop {
    /// Creates the threads that lend; all of them or none.
    fn lenders(settings: &Simulation) -> Result<Vec<Lender>, Error> {
        own_arenas();
        let mut lenders = Vec::with_capacity(settings.threads);
        for index in 0..settings.threads {
            match Lender::new(index) {
                Ok(lender) => lenders.push(lender),
                Err(error) => {
                    lenders.into_iter().for_each(Lender::release);
                    return Err(Error::Thread(error));
                }
            }
        }
        Ok(lenders)
    }

    /// Threads that run by themselves.
    pub(crate) fn native(settings: &Simulation) -> Result<Self, Error> {
        let lenders = Self::lenders(settings)?;
        Ok(Self { engine: None, lenders, seed: 0, budget: 0, broken: false })
    }

    /// Makes the engine.
    pub(crate) fn new(settings: &Simulation, host: Host) -> Result<Self, Error> {
        let machine = &settings.machine;
        let instruction = machine.instructions_ps(1).max(1);
        let costs = Costs {
            instruction,
            shared: (instruction as f64 / machine.smt_share()).round() as Time,
            locked: machine.rmw_owned_ps(),
            fence: machine.fence_ps(),
            pause: machine.pause_ps(),
        };
        let translator =
            Translator::new(costs, intercepted()).map_err(Error::NoExecutableMemory)?;
        let lenders = Self::lenders(settings)?;
        let cpus: Vec<u32> =
            settings.cores.clone().unwrap_or_else(|| (0..settings.threads as u32).collect());
        let mut core_of_cpu = vec![0; CORES];
        let ranks = ranks(settings.seed, cpus.len());
        let mut cores = Vec::with_capacity(cpus.len());
        for (i, &cpu) in cpus.iter().enumerate() {
            core_of_cpu[cpu as usize] = i as u32;
            let reach = Reach::of(machine, cpu);
            cores.push(Core::new(cpu, ranks[i], reach, host.vector_mask));
        }
        for core in &mut cores {
            core.context.watched = settings.watch;
            core.context.settle();
        }
        let mut core_of_rank = vec![0; cpus.len()];
        for (core, &rank) in ranks.iter().enumerate() {
            core_of_rank[rank as usize] = core as u32;
        }
        let affinity = cpus.iter().fold(CpuSet::first(0), |mut set, &cpu| {
            set.insert(cpu);
            set
        });
        let identities: Vec<ThreadIdentity> =
            lenders.iter().map(|lender| ThreadIdentity { tid: lender.tid, affinity }).collect();
        let threads =
            lenders.iter().map(|lender| Thread::new(lender.fs_base, lender.rseq())).collect();
        let engine = Engine {
            machine: machine.clone(),
            kernel: Kernel::new(machine, &identities, settings.seed),
            threads,
            ready: Ready::default(),
            now: 0,
            timer: Time::MAX,
            random: settings.seed,
            translator,
            coherence: Coherence::new(machine, &cpus, settings.seed),
            caches: Caches::new(machine),
            bandwidth: Bandwidth::new(machine, cpus.len()),
            brings_along: machine.adjacent_line_prefetch(),
            stores: machine.store_buffer_entries(),
            siblings: siblings(machine, &cpus),
            waiting: Waiting::new(machine.l3_groups()),
            foreseen: Vec::new(),
            losers: Vec::new(),
            readers: Vec::new(),
            dozers: vec![Dozer::default(); cores.len()],
            cores,
            core_of_rank,
            core_of_cpu,
            queue: Queue::new(2 * cpus.len()),
            skip_spins: settings.skip_spins,
            like_valgrind: settings.like_valgrind,
            unfinished: 0,
            window: None,
            deadline: 0,
            give_up_at: None,
            interrupt: settings.interrupt.clone(),
            current: usize::MAX,
            limit: 0,
            longest: longest_slice(instruction) as i64,
            lines: settings.watch.then(|| {
                let pairs = machine.adjacent_line_prefetch();
                Box::new(Lines::new(&settings.apart, pairs, settings.trace))
            }),
        };
        let budget = u64::try_from(settings.budget.as_nanos()).unwrap_or(u64::MAX);
        let budget = budget.saturating_mul(NANOSECOND).min(LATEST / 2);
        Ok(Self { engine: Some(engine), lenders, seed: settings.seed, budget, broken: false })
    }

    /// Lets the first `threads` threads execute the function at `entry` with a task and their
    /// number.
    pub(crate) fn run(
        &mut self,
        threads: usize,
        entry: u64,
        task: u64,
        first_ended: &mut dyn FnMut(),
    ) -> Result<RunCounts, Box<Stopped>> {
        let Self { engine, lenders, seed, budget, broken } = self;
        let Some(engine) = engine else {
            return Ok(run_natively(&lenders[..threads], entry, task, first_ended));
        };
        let begin = engine.cores.iter().map(|core| core.time).max().unwrap_or(0);
        engine.deadline = begin.saturating_add(*budget).min(LATEST - 1);
        let started =
            start(engine, lenders, Begin { threads, entry, task, time: begin, seed: *seed });
        if let Err(halt) = started.and_then(|()| engine.run(first_ended)) {
            *broken = true;
            let mut symbols = Symbols::of_this_process();
            let stopped = explain(engine, lenders, &mut symbols, &halt);
            engine.let_go(&halt, &mut symbols);
            return Err(Box::new(stopped));
        }
        let since =
            |counts: Counts| Counts { time_ps: counts.time_ps.saturating_sub(begin), ..counts };
        let window = since(engine.window.unwrap_or_default());
        let cores: Vec<Counts> = engine.cores.iter().map(|core| since(core.counts)).collect();
        let mut total = Counts::default();
        cores.iter().for_each(|&core| total += core);
        let lines = engine.lines.as_mut().map(|lines| lines.report(lenders));
        Ok(RunCounts { cores, total, window, lines })
    }

    /// Ends the threads, or leaves them where they are if they cannot end.
    pub(crate) fn close(&mut self) {
        let lenders = core::mem::take(&mut self.lenders);
        if self.broken {
            Lender::abandon(lenders);
        } else {
            lenders.into_iter().for_each(Lender::release);
        }
    }
}

/// What threads begin with, and when.
struct Begin {
    threads: usize,
    entry: u64,
    task: u64,
    time: Time,
    seed: u64,
}

/// Puts the threads on their cores, ready to begin.
fn start(engine: &mut Engine, lenders: &[Lender], begin: Begin) -> Result<(), Box<Halt>> {
    engine.queue.clear();
    engine.ready.clear();
    engine.vacate();
    engine.unfinished = begin.threads;
    engine.window = None;
    engine.coherence.begin(begin.seed);
    if let Some(lines) = &mut engine.lines {
        lines.begin(begin.time);
    }
    for (at, core) in engine.cores.iter_mut().enumerate() {
        core.pending = None;
        core.stands = false;
        core.spin = Spin::default();
        core.counts = Counts::default();
        core.time = begin.time + skew(begin.seed, at);
        core.drained = 0;
    }
    for (thread, lender) in lenders.iter().enumerate().take(begin.threads) {
        let top = lender.top - 8;
        if guest_memory::write(top, enter::end_address()).is_none() {
            return stop(Halt::Stuck); // its own stack is mapped as long as the lender sleeps
        }
        engine.threads[thread].begin(begin.entry, top, begin.task, thread as u64);
        let at = thread % engine.cores.len();
        engine.threads[thread].last = at;
        let time = engine.cores[at].time;
        engine.make_ready(thread, time)?;
    }
    Ok(())
}

/// Lets the threads call the function themselves.
fn run_natively(
    lenders: &[Lender],
    entry: u64,
    task: u64,
    first_ended: &mut dyn FnMut(),
) -> RunCounts {
    for (thread, lender) in lenders.iter().enumerate() {
        lender.call(entry, task, thread as u64);
    }
    lenders.iter().for_each(Lender::wait);
    first_ended();
    let none = Counts::default();
    RunCounts { cores: vec![none; lenders.len()], total: none, window: none, lines: None }
}

/// Gives every thread an arena of the C library's allocator, as a machine with that many cores
/// would: it allows eight for each core of this host, and more threads would share with the
/// program's own, whose locks a stopped thread may hold.
fn own_arenas() {
    #[cfg(target_env = "gnu")]
    {
        const M_ARENA_MAX: libc::c_int = -8;
        // SAFETY: sets a limit of the allocator.
        unsafe { libc::mallopt(M_ARENA_MAX, 8 * CORES as libc::c_int) };
    }
}

/// Functions that are not executed but answered.
fn intercepted() -> BTreeMap<u64, Special> {
    let vdso = vdso::functions().into_iter();
    let forbidden = forbidden::functions().into_iter();
    vdso.map(|(address, function)| (address, Special::Vdso(function)))
        .chain(forbidden.map(|(address, function)| (address, Special::Forbidden(function))))
        .chain([(enter::end_address(), Special::End)])
        .collect()
}

/// A step of a mixing function.
pub(crate) fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// Gives for each core the cores of the run that share its L1.
fn siblings(machine: &Machine, cpus: &[u32]) -> Vec<Vec<u32>> {
    let own = |cpu: u32| machine.physical_core_of(cpu);
    let of = |&cpu: &u32| {
        let shares = |&other: &u32| own(cpus[other as usize]) == own(cpu);
        (0..cpus.len() as u32).filter(shares).collect()
    };
    cpus.iter().map(of).collect()
}

/// Who comes first among equals: the order of numbers, or one that the seed chooses.
fn ranks(seed: u64, cores: usize) -> Vec<u32> {
    let mut order: Vec<usize> = (0..cores).collect();
    if seed != 0 {
        order.sort_by_key(|&core| mix(seed ^ mix(core as u64)));
    }
    let mut ranks = vec![0; cores];
    for (rank, core) in order.into_iter().enumerate() {
        ranks[core] = rank as u32;
    }
    ranks
}

/// How much later than the others a thread begins.
fn skew(seed: u64, thread: usize) -> Time {
    const LONGEST: Time = 50 * NANOSECOND;
    if seed == 0 { 0 } else { mix(seed.wrapping_mul(31) ^ mix(thread as u64)) % LONGEST }
}
