//! What to simulate on, and how.

use core::sync::atomic::AtomicBool;
use core::time::Duration;
use std::sync::Arc;

use crate::error::Error;
use crate::line_report::Apart;
use crate::machine::Machine;
use crate::report::Report;

/// What to simulate on, and how.
///
/// ```
/// # #[global_allocator]
/// # static HEAP: simulator::EngineHeap = simulator::EngineHeap;
/// use std::sync::Mutex;
/// use simulator::{Machine, Simulation};
///
/// let machine = Machine::named("epyc-7742-2s")?;
/// let total = Mutex::new(0);
/// let mut session = Simulation::on(&machine).threads(64).seed(7).start()?;
/// let report = session.each(|thread| *total.lock().unwrap() += thread)?;
/// assert_eq!(*total.lock().unwrap(), 64 * 63 / 2);
/// assert!(report.total.transfers.total() > 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Simulation {
    pub(crate) machine: Machine,
    pub(crate) threads: usize,
    pub(crate) cores: Option<Vec<u32>>,
    pub(crate) seed: u64,
    pub(crate) skip_spins: bool,
    pub(crate) budget: Duration,
    pub(crate) interrupt: Arc<AtomicBool>,
    pub(crate) native: bool,
    pub(crate) like_valgrind: bool,
    pub(crate) watch: bool,
    pub(crate) apart: Vec<Apart>,
    pub(crate) trace: Option<usize>,
}

impl Simulation {
    /// One thread on `machine`; change that with the other methods.
    pub fn on(machine: &Machine) -> Self {
        Self {
            machine: machine.clone(),
            threads: 1,
            cores: None,
            seed: 0,
            skip_spins: true,
            budget: Duration::from_secs(10),
            interrupt: Arc::new(AtomicBool::new(false)),
            native: false,
            like_valgrind: false,
            watch: false,
            apart: Vec::new(),
            trace: None,
        }
    }

    /// Sets the number of threads.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Says which cores of the machine are there, by their numbers. Thread i begins on the core at
    /// place i, counted round if there are more threads than cores. Without it, each thread has a
    /// core of its own, the first ones of the machine.
    #[must_use]
    pub fn cores(mut self, cores: &[u32]) -> Self {
        self.cores = Some(cores.to_vec());
        self
    }

    /// Chooses an interleaving: who comes first at equal times, and who begins a little later. 0
    /// begins all at once and prefers lower numbers.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Says whether rounds of spin loops that change nothing are computed instead of executed. No
    /// figure depends on it but [`Counts::skipped`](crate::Counts::skipped), and the time it takes.
    #[must_use]
    pub fn skip_spins(mut self, skip: bool) -> Self {
        self.skip_spins = skip;
        self
    }

    /// Sets the simulated time after which a run is stopped; 10 s if not said.
    #[must_use]
    pub fn budget(mut self, budget: Duration) -> Self {
        self.budget = budget;
        self
    }

    /// Gives a flag that stops runs when it is set, from a signal handler say.
    #[must_use]
    pub fn interrupt(mut self, flag: &Arc<AtomicBool>) -> Self {
        self.interrupt = flag.clone();
        self
    }

    /// Says whether `cpuid` answers as under valgrind, so that code which asks it takes the same
    /// ways there and here, and counts can be compared.
    #[must_use]
    pub fn like_valgrind(mut self, like: bool) -> Self {
        self.like_valgrind = like;
        self
    }

    /// Says whether each access is looked at, so that reports tell which lines cores share, and
    /// what that cost: [`Report::lines`]. Runs take several times as long. No figure depends on it
    /// but [`Counts::skipped`](crate::Counts::skipped).
    #[must_use]
    pub fn watch_lines(mut self, watch: bool) -> Self {
        self.watch = watch;
        self
    }

    /// Puts bytes on lines of their own, and watches lines: what a run would cost if a program's
    /// fields lay so. The program's code and memory stay as they are; the memory model alone takes
    /// these bytes for other lines. [`HotLine::apart`](crate::HotLine::apart) suggests some.
    #[must_use]
    pub fn put_apart(mut self, apart: &[Apart]) -> Self {
        self.watch = true;
        self.apart = apart.to_vec();
        self
    }

    /// Watches lines, and keeps what each core waited for and when, `most` waits at most, and in
    /// which calls threads waited for lines.
    #[must_use]
    pub fn trace(mut self, most: usize) -> Self {
        self.watch = true;
        self.trace = Some(most);
        self
    }

    /// Says whether the threads execute closures themselves, on this host's processors and without
    /// an engine. All counts are 0 then. Stacks, thread-local storage and what was allocated before
    /// are as in a simulated run, so another tool can count the same instructions.
    #[must_use]
    pub fn native(mut self, native: bool) -> Self {
        self.native = native;
        self
    }

    /// Looks whether the numbers fit the machine.
    pub(crate) fn check(&self) -> Result<(), Error> {
        Apart::check(&self.apart).map_err(Error::Apart)?;
        let available = self.machine.cores();
        let cores = self.cores.as_ref().map_or(self.threads, Vec::len);
        if self.threads == 0 || cores == 0 {
            return Err(Error::NoThreads);
        }
        if cores > available || self.threads > available.max(1024) {
            return Err(Error::TooManyCores {
                asked: cores.max(self.threads),
                machine: self.machine.name().to_owned(),
                available,
            });
        }
        let mut seen = vec![false; available];
        for &core in self.cores.iter().flatten() {
            match seen.get_mut(core as usize) {
                None => {
                    return Err(Error::NoSuchCore {
                        core,
                        machine: self.machine.name().to_owned(),
                        available,
                    });
                }
                Some(true) => return Err(Error::CoreTwice(core)),
                Some(free) => *free = true,
            }
        }
        Ok(())
    }
}

impl Machine {
    /// Executes a closure on `threads` simulated cores, with the thread's number.
    ///
    /// # Errors
    /// See [`Simulation::start`] and [`Session::each`](crate::Session::each).
    pub fn run<R, F>(&self, threads: usize, closure: F) -> Result<Report<R>, Error>
    where
        R: Send,
        F: Fn(usize) -> R + Sync,
    {
        let mut session = Simulation::on(self).threads(threads).start()?;
        Ok(session.each(closure)?)
    }
}
