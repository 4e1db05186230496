//! Executes the threads: whichever core has the smallest simulated time goes on.
//!
//! # Order
//! What happens at a moment of simulated time is a block's begin, an access that does not hit, or
//! a system call. Of all of them the earliest is next; of equals the one of the core that the seed
//! puts first. A core runs on while what it does next comes before what any other core does next,
//! so the order does not depend on how long it ran.

use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::accesses::Wanted;
use crate::bandwidth::Bandwidth;
use crate::caches::Caches;
use crate::coherence::Coherence;
use crate::cores::Core;
use crate::dozing::Dozer;
use crate::enter;
use crate::faults;
use crate::halt::{Halt, stop};
use crate::kernel::Kernel;
use crate::lines::Lines;
use crate::machine::Machine;
use crate::os::{Ready, Thread};
use crate::queue::{LATEST, Queue};
use crate::report::Counts;
use crate::time::Time;
use crate::translate::{Exit, Kind, Translator};
use crate::waiting::{Request, Waiting};
use crate::waking::Foreseen;

/// What became of an exit.
pub(crate) enum Next {
    /// The thread goes on.
    Go,
    /// The core waits for its turn, or for something else; it is in a queue if need be.
    Wait,
}

/// The simulated machine with its threads.
pub(crate) struct Engine {
    pub(crate) machine: Machine,
    pub(crate) kernel: Kernel,
    pub(crate) threads: Vec<Thread>,
    /// Threads that have no core.
    pub(crate) ready: Ready,
    /// The moment at which something happens.
    pub(crate) now: Time,
    /// When the kernel wakes a thread by itself.
    pub(crate) timer: Time,
    /// The state of `rdrand`.
    pub(crate) random: u64,
    pub(crate) translator: Translator,
    pub(crate) coherence: Coherence,
    pub(crate) caches: Caches,
    pub(crate) bandwidth: Bandwidth,
    /// Whether the other line of a pair comes along with one that is fetched.
    pub(crate) brings_along: bool,
    /// How many stores can wait in a core.
    pub(crate) stores: usize,
    /// For each core: those that share its L1, itself among them.
    pub(crate) siblings: Vec<Vec<u32>>,
    /// Cores that wait for lines.
    pub(crate) waiting: Waiting,
    /// Cores that were woken and are known to ask for the line that they lost.
    pub(crate) foreseen: Vec<Foreseen>,
    /// Room for cores that are about to lose a line.
    pub(crate) losers: Vec<u32>,
    /// Room for those who are served together.
    pub(crate) readers: Vec<Request>,
    pub(crate) cores: Vec<Core>,
    /// What of each core is kept apart while it dozes.
    pub(crate) dozers: Vec<Dozer>,
    /// Cores by their rank.
    pub(crate) core_of_rank: Vec<u32>,
    /// Cores by their number on the machine.
    pub(crate) core_of_cpu: Vec<u32>,
    /// Cores by what they do next, and behind them lines by when they are free.
    pub(crate) queue: Queue,
    pub(crate) skip_spins: bool,
    /// Whether `cpuid` answers as under valgrind.
    pub(crate) like_valgrind: bool,
    /// Threads that have not ended.
    pub(crate) unfinished: usize,
    /// What was counted when the first thread ended.
    pub(crate) window: Option<Counts>,
    /// When the budget ends.
    pub(crate) deadline: Time,
    /// When the run ends, by the host's clock.
    pub(crate) give_up_at: Option<Instant>,
    /// Ends the run early.
    pub(crate) interrupt: Arc<AtomicBool>,
    /// The core that GS points to.
    pub(crate) current: usize,
    /// The moment before which the running core may begin something.
    pub(crate) limit: Time,
    /// The longest time after which generated code is left.
    pub(crate) longest: i64,
    /// What is seen of lines, if somebody wants to know.
    pub(crate) lines: Option<Box<Lines>>,
}

impl Engine {
    /// Runs until every thread has ended.
    ///
    /// # Errors
    /// What stopped the run before.
    pub(crate) fn run(&mut self, first_ended: &mut dyn FnMut()) -> Result<(), Box<Halt>> {
        let ended = self.run_to_the_end(first_ended);
        self.rouse_all();
        ended
    }

    fn run_to_the_end(&mut self, first_ended: &mut dyn FnMut()) -> Result<(), Box<Halt>> {
        let all = self.unfinished;
        faults::watch(self.translator.code_range());
        self.current = usize::MAX;
        while self.unfinished > 0 {
            if self.give_up_at.is_some_and(|end| Instant::now() > end) {
                return stop(Halt::Interrupted);
            }
            let next = self.queue.first();
            if self.timer <= next.map_or(LATEST, |next| next.time()) {
                self.now = self.timer;
                self.kernel.expire(self.now);
                self.wake_up()?;
                continue;
            }
            let Some(next) = next else {
                if self.timer == Time::MAX && self.others_may_help()? {
                    continue;
                }
                // Somebody sleeps for longer than simulated time lasts, or nobody does.
                return stop(if self.timer < Time::MAX { Halt::Budget } else { Halt::Stuck });
            };
            if next.time() > self.deadline {
                return stop(Halt::Budget);
            }
            self.now = next.time();
            let Some(&core) = self.core_of_rank.get(next.rank() as usize) else {
                self.grant(next.rank() as usize - self.cores.len())?;
                continue;
            };
            self.step(core as usize)?;
            if self.unfinished < all && self.window.is_none() {
                self.window = Some(self.counted_when_ended(core as usize));
                first_ended();
            }
        }
        Ok(())
    }

    /// Nobody can go on: waits a little for threads of the process that are not simulated, who may
    /// hold a lock that guests want.
    fn others_may_help(&mut self) -> Result<bool, Box<Halt>> {
        const LOOKS: u32 = 20;
        const PAUSE: Duration = Duration::from_millis(1);
        for look in 0..LOOKS {
            if self.kernel.wake_changed(self.now) {
                self.wake_up()?;
                return Ok(true);
            }
            if look + 1 < LOOKS {
                std::thread::sleep(PAUSE);
            }
        }
        Ok(false)
    }

    /// What all had counted when a core's thread ended.
    fn counted_when_ended(&mut self, core: usize) -> Counts {
        self.rouse_all();
        let Core { rank, counts: Counts { time_ps, .. }, .. } = self.cores[core];
        let mut sum = Counts::default();
        for core in &self.cores {
            sum += core.counted_by(time_ps, rank, &self.translator);
        }
        sum
    }

    /// Gives the moment before which `core` may begin something.
    pub(crate) fn limit_of(&self, core: usize) -> Time {
        let mut end = (self.deadline + 1).min(LATEST).min(self.timer);
        if !self.ready.is_empty() {
            end = end.min(self.cores[core].slice_end);
        }
        let rank = self.cores[core].rank;
        let Some(next) = self.queue.first() else { return end };
        end.min(next.time() + Time::from(rank < next.rank()))
    }

    /// Lets the processor load what it needs of the core that comes next.
    #[inline]
    fn prefetch_next(&self) {
        let Some(next) = self.queue.first() else { return };
        let Some(&core) = self.core_of_rank.get(next.rank() as usize) else { return };
        self.cores[core as usize].prefetch_all();
    }

    /// Lets a core wait for its turn at `time`.
    pub(crate) fn enqueue(&mut self, core: usize, time: Time) {
        let rank = self.cores[core].rank;
        self.queue.set(time, rank);
    }

    /// Runs a core until another one comes first.
    fn step(&mut self, at: usize) -> Result<(), Box<Halt>> {
        if core::mem::take(&mut self.cores[at].stands) {
            let rip = self.cores[at].thread.map_or(0, |thread| self.threads[thread].rip);
            if self.has_to_give_way(at) {
                return self.give_way(at, rip);
            }
            if self.has_to_change(at) {
                self.change_pace(at, rip)?;
            }
        }
        self.queue.remove(self.cores[at].rank);
        self.limit = self.limit_of(at);
        self.prefetch_next();
        self.cores[at].spin.goes_on();
        if let Some(exit) = self.cores[at].take_pending()
            && let Next::Wait = self.settle(at, exit)?
        {
            return Ok(());
        }
        self.execute(at)
    }

    /// Lets a core execute until it has to wait.
    pub(crate) fn execute(&mut self, at: usize) -> Result<(), Box<Halt>> {
        loop {
            if self.interrupt.load(Ordering::Relaxed) {
                let time = self.cores[at].time;
                self.enqueue(at, time);
                return stop(Halt::Interrupted);
            }
            let longest = self.longest;
            let core = &mut self.cores[at];
            let limit = core.changes.map_or(self.limit, |(from, _)| self.limit.min(from));
            let left = (limit as i64 - core.time as i64).clamp(-longest, longest);
            core.context.left = left;
            if self.current != at {
                self.current = at;
                // SAFETY: contexts stay in place while there are threads; the session checked FSGSBASE.
                unsafe { enter::point_to(&raw const core.context) };
            }
            // SAFETY: `resume` is an entry of a block, or the place at which a block was left, and
            // the context holds what the thread's registers held there.
            unsafe { enter::enter() };
            core.time += (left - core.context.left).cast_unsigned();
            let exit = core.context.exit;
            core.count();
            if let Next::Wait = self.settle(at, exit)? {
                return Ok(());
            }
        }
    }

    /// Settles the matter for which generated code was left.
    fn settle(&mut self, at: usize, exit: u32) -> Result<Next, Box<Halt>> {
        let Exit { rip, resume, remaining, kind } = self.translator.exits[exit as usize];
        let core = &mut self.cores[at];
        core.context.resume = resume;
        match kind {
            Kind::Time(block) => {
                core.context.vector_loaded = 0;
                if self.has_to_change(at) {
                    self.change_pace(at, rip)?;
                    return Ok(Next::Go);
                }
                return Ok(self.block_begins(at, block));
            }
            Kind::Rest => {
                core.context.vector_loaded = 0;
                if core.time > self.deadline || self.has_to_give_way(at) {
                    return self.stand_at(at, rip);
                }
            }
            Kind::Link { target, jump } => {
                core.context.vector_loaded = 0;
                let block = self.block(at, target)?;
                self.translator.link(jump, block);
                self.go_to_block(at, block);
            }
            Kind::Indirect => {
                core.context.vector_loaded = 0;
                let target = core.context.target;
                let block = self.block(at, target)?;
                self.translator.let_find(block);
                self.go_to_block(at, block);
            }
            Kind::Vector => {
                core.context.vector_loaded = 1;
                core.spin.disturb();
            }
            Kind::Access { bytes, touch, last } => {
                let address = core.context.address;
                let block = core.context.block;
                let (address, one_line) = match &self.lines {
                    Some(lines) => lines.place(address, bytes.into()),
                    None => (address, address % 64 + u64::from(bytes) <= 64),
                };
                if rip == self.translator.blocks[block as usize].rip {
                    let Core { spin, context, .. } = &mut self.cores[at];
                    spin.missed(block, exit, address, &context.registers);
                }
                if one_line {
                    let wanted = Wanted { address, bytes, touch, last, remaining };
                    return Ok(self.access(at, exit, wanted));
                }
                return Ok(self.accesses(
                    at,
                    exit,
                    remaining,
                    &[(address, bytes.into(), touch.writes())],
                ));
            }
            Kind::Computed { index, write } => {
                let accesses = self.computed(at, index as usize, write);
                return Ok(self.accesses(at, exit, remaining, &accesses));
            }
            Kind::Repeat(repeat) => return Ok(self.repeat(at, exit, remaining, repeat)),
            Kind::Repeated(repeat) => self.repeated(at, repeat),
            Kind::Special(special) => return self.special(at, exit, special, resume),
            Kind::Fault => return stop(self.fault(at)),
        }
        Ok(Next::Go)
    }

    /// Gives the block at an address for a core's pace, with room left for more.
    pub(crate) fn block(&mut self, at: usize, rip: u64) -> Result<u32, Box<Halt>> {
        if self.translator.is_full() {
            return stop(Halt::TooMuchCode);
        }
        Ok(self.translator.block_at(rip, self.cores[at].pace))
    }

    pub(crate) fn go_to_block(&mut self, at: usize, block: u32) {
        let entry = self.translator.blocks[block as usize].entry;
        self.cores[at].context.resume = entry;
    }

    /// Whether rounds of a core's loop that change nothing may be computed.
    pub(crate) fn may_skip(&self, at: usize) -> bool {
        self.skip_spins && self.ready.is_empty() && self.cores[at].changes.is_none()
    }

    /// A block may begin, unless another core comes first.
    fn block_begins(&mut self, at: usize, id: u32) -> Next {
        let may_skip = self.may_skip(at);
        let Self { cores, translator, .. } = self;
        let core = &mut cores[at];
        let block = &translator.blocks[id as usize];
        if let Some(thread) = core.thread {
            core.stands = true;
            self.threads[thread].rip = block.rip;
        }
        let last = translator.blocks[core.context.block as usize].cost;
        let last = Time::from(last) + core.context.silent;
        if may_skip && core.spins(id, block, last) {
            return Next::Wait;
        }
        let time = core.time;
        if time < self.limit {
            core.stands = false;
            return Next::Go;
        }
        self.enqueue(at, time);
        Next::Wait
    }

    fn fault(&self, at: usize) -> Halt {
        let fault = faults::last();
        let rip = self.translator.place(fault.place).unwrap_or(0);
        let address = (!fault.no_address).then_some(fault.address);
        Halt::Fault { core: at, rip, signal: fault.signal, address }
    }
}
