//! Executes the threads: whichever core has the smallest simulated time goes on.
//!
//! # Order
//! What happens at a moment of simulated time is a block's begin, an access that does not hit, or
//! a system call. Of all of them the earliest is next; of equals the one of the core that the seed
//! puts first. A core runs on while what it does next comes before what any other core does next,
//! so the order does not depend on how long it ran.

use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::coherence::{Access, Coherence, LineId, Source};
use crate::context::Context;
use crate::cores::Core;
use crate::enter;
use crate::faults;
use crate::halt::{Halt, stop};
use crate::kernel::{self, Kernel, PAGE_BYTES};
use crate::lines::{self, Fetched, Lines};
use crate::machine::Machine;
use crate::os::{Ready, Thread};
use crate::queue::{LATEST, Queue};
use crate::report::Counts;
use crate::time::Time;
use crate::translate::{Exit, Kind, Translator};

/// An access that does not hit.
#[derive(Debug, Clone, Copy)]
struct Wanted {
    address: u64,
    bytes: u8,
    write: bool,
    /// Whether it is the last of its block.
    last: bool,
    /// How much of the block's cost lies behind it.
    remaining: u32,
}

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
    pub(crate) cores: Vec<Core>,
    /// Cores by their rank.
    pub(crate) core_of_rank: Vec<u32>,
    /// Cores by their number on the machine.
    pub(crate) core_of_cpu: Vec<u32>,
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
            self.step(self.core_of_rank[next.rank() as usize] as usize)?;
            if self.unfinished < all && self.window.is_none() {
                self.window = Some(self.counted_so_far());
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

    fn counted_so_far(&self) -> Counts {
        let mut sum = Counts::default();
        self.cores.iter().for_each(|core| sum += core.counts);
        sum
    }

    /// Gives the moment before which `core` may begin something.
    fn limit_of(&self, core: usize) -> Time {
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
        let next = &raw const self.cores[self.core_of_rank[next.rank() as usize] as usize];
        const HOT: usize =
            core::mem::offset_of!(Core, context) + core::mem::offset_of!(Context, loads);
        for line in 0..HOT / 64 {
            let place = next.wrapping_byte_add(line * 64).cast::<i8>();
            // SAFETY: a prefetch reads nothing and cannot fault.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(place) };
        }
    }

    /// Lets a core wait for its turn at `time`.
    pub(crate) fn enqueue(&mut self, core: usize, time: Time) {
        let rank = self.cores[core].rank;
        self.queue.set(time, rank);
    }

    /// Runs a core until another one comes first.
    fn step(&mut self, at: usize) -> Result<(), Box<Halt>> {
        if core::mem::take(&mut self.cores[at].stands) && self.has_to_give_way(at) {
            let rip = self.cores[at].thread.map_or(0, |thread| self.threads[thread].rip);
            return self.give_way(at, rip);
        }
        self.queue.remove(self.cores[at].rank);
        self.limit = self.limit_of(at);
        self.prefetch_next();
        self.cores[at].spin.goes_on();
        if let Some(exit) = self.cores[at].pending.take()
            && let Next::Wait = self.settle(at, exit)?
        {
            return Ok(());
        }
        loop {
            if self.interrupt.load(Ordering::Relaxed) {
                let time = self.cores[at].time;
                self.enqueue(at, time);
                return stop(Halt::Interrupted);
            }
            let longest = self.longest;
            let core = &mut self.cores[at];
            let left = (self.limit as i64 - core.time as i64).clamp(-longest, longest);
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
                let block = self.block(target)?;
                self.translator.link(jump, block);
                self.go_to_block(at, block);
            }
            Kind::Indirect => {
                core.context.vector_loaded = 0;
                let target = core.context.target;
                let block = self.block(target)?;
                self.translator.let_find(block);
                self.go_to_block(at, block);
            }
            Kind::Vector => {
                core.context.vector_loaded = 1;
                core.spin.disturb();
            }
            Kind::Access { bytes, write, last } => {
                let address = core.context.address;
                let block = core.context.block;
                let (address, one_line) = match &self.lines {
                    Some(lines) => lines.place(address, bytes.into()),
                    None => (address, address % 64 + u64::from(bytes) <= 64),
                };
                if rip == self.translator.blocks[block as usize].rip {
                    core.spin.missed(block, exit, address);
                }
                if one_line {
                    let wanted = Wanted { address, bytes, write, last, remaining };
                    return Ok(self.access(at, exit, wanted));
                }
                return Ok(self.accesses(at, exit, remaining, &[(address, bytes.into(), write)]));
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

    /// Gives the block at an address, with room left for more.
    pub(crate) fn block(&mut self, rip: u64) -> Result<u32, Box<Halt>> {
        if self.translator.is_full() {
            return stop(Halt::TooMuchCode);
        }
        Ok(self.translator.block_at(rip))
    }

    fn go_to_block(&mut self, at: usize, block: u32) {
        let entry = self.translator.blocks[block as usize].entry;
        self.cores[at].context.resume = entry;
    }

    /// A block may begin, unless another core comes first.
    fn block_begins(&mut self, at: usize, id: u32) -> Next {
        let Self { cores, translator, .. } = self;
        let core = &mut cores[at];
        let block = &translator.blocks[id as usize];
        if let Some(thread) = core.thread {
            core.stands = true;
            self.threads[thread].rip = block.rip;
        }
        let last = translator.blocks[core.context.block as usize].cost;
        let last = Time::from(last) + core.context.silent;
        if self.skip_spins && self.ready.is_empty() && core.spins(id, block, last) {
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

    /// Asks for one line, if it is the core's turn.
    ///
    /// The access itself is executed when the line is there. If nothing else of its block touches
    /// memory, and nobody is still at work on the line, nobody can tell whether it was executed
    /// at once, and it is: a core that wants the line from now on gets it after this one.
    fn access(&mut self, at: usize, exit: u32, wanted: Wanted) -> Next {
        let Wanted { address, bytes, write, last, remaining } = wanted;
        let line = address & !63;
        let id = self.coherence.line(line);
        let core = &mut self.cores[at];
        if let Some(owns) = self.coherence.hit(id, core.cpu, write) {
            core.context.may(line, owns);
            self.touched(at, exit, &[(address, bytes.into(), write)]);
            return Next::Go;
        }
        let now = core.time - Time::from(remaining);
        if now >= self.limit || write && self.wakes_spinners(at, &[(address, 1, true)], now) {
            return self.wait_for_turn(at, exit, now);
        }
        let at_once = last && !self.coherence.is_under_way(id, now);
        let stall = self.fetch(at, line, id, write, now);
        self.touched(at, exit, &[(address, bytes.into(), write)]);
        let core = &mut self.cores[at];
        core.time += stall;
        core.counts.stall_ps += stall;
        if write {
            self.limit = self.limit_of(at); // woken cores may come before it now
        }
        if at_once || now + stall < self.limit {
            return Next::Go;
        }
        self.enqueue(at, now + stall);
        Next::Wait
    }

    /// Asks for lines, if it is the core's turn.
    pub(crate) fn accesses(
        &mut self,
        at: usize,
        exit: u32,
        remaining: u32,
        accesses: &[(u64, u64, bool)],
    ) -> Next {
        let apart = self.lines.as_ref().and_then(|lines| lines.pieces(accesses));
        let accesses = apart.as_deref().unwrap_or(accesses);
        let now = self.cores[at].time - Time::from(remaining);
        let mut turn = false;
        let mut stall = 0;
        for &(address, bytes, write) in accesses {
            let lines = address >> 6..=(address + bytes.max(1) - 1) >> 6;
            for line in lines.map(|line| line << 6) {
                let cpu = self.cores[at].cpu;
                let id = self.coherence.line(line);
                if let Some(owns) = self.coherence.hit(id, cpu, write) {
                    self.cores[at].context.may(line, owns);
                    continue;
                }
                if !turn {
                    if now >= self.limit {
                        return self.wait_for_turn(at, exit, now);
                    }
                    if self.wakes_spinners(at, accesses, now) {
                        return self.wait_for_turn(at, exit, now);
                    }
                    self.limit = self.limit_of(at);
                    turn = true;
                }
                stall += self.fetch(at, line, id, write, now + stall);
            }
        }
        self.touched(at, exit, accesses);
        if stall == 0 {
            return Next::Go;
        }
        let core = &mut self.cores[at];
        core.time += stall;
        core.counts.stall_ps += stall;
        if now + stall >= self.limit {
            self.enqueue(at, now + stall);
            return Next::Wait;
        }
        Next::Go
    }

    pub(crate) fn wait_for_turn(&mut self, at: usize, exit: u32, now: Time) -> Next {
        self.cores[at].pending = Some(exit);
        self.enqueue(at, now);
        Next::Wait
    }

    /// Wakes cores that spin on lines which these accesses will take from them; whether one of
    /// them has something left to do before that.
    pub(crate) fn wakes_spinners(
        &mut self,
        at: usize,
        accesses: &[(u64, u64, bool)],
        now: Time,
    ) -> bool {
        let Self { cores, coherence, queue, core_of_cpu, translator, .. } = self;
        let (cpu, rank) = (cores[at].cpu, cores[at].rank);
        let mut before = false;
        let mut woken = 0;
        for &(address, bytes, _) in accesses.iter().filter(|(.., write)| *write) {
            for line in address >> 6..=(address + bytes.max(1) - 1) >> 6 {
                let id = coherence.line(line << 6);
                coherence.others(id, cpu, |other| {
                    let core = &mut cores[core_of_cpu[other as usize] as usize];
                    if core.spin.is_parked() {
                        core.wake(now + Time::from(core.rank < rank));
                        let first = (core.time, core.rank) < (now, rank);
                        before |= first;
                        let next = match first {
                            true => core.time,
                            false => core.foresee(line << 6, translator),
                        };
                        queue.set_leaf(next, core.rank);
                        woken += 1;
                    }
                });
            }
        }
        if woken > 0 {
            queue.rebuild();
        }
        before
    }

    /// Wakes all cores that spin; whether one of them has something left to do before `at` goes on.
    pub(crate) fn wakes_all(&mut self, at: usize, now: Time) -> bool {
        let rank = self.cores[at].rank;
        let mut before = false;
        for other in 0..self.cores.len() {
            let core = &mut self.cores[other];
            if core.spin.is_parked() {
                core.wake(now + Time::from(core.rank < rank));
                before |= (core.time, core.rank) < (now, rank);
                let time = core.time;
                self.enqueue(other, time);
            }
        }
        before
    }

    /// Gets a line; how long that takes.
    pub(crate) fn fetch(
        &mut self,
        at: usize,
        line: u64,
        id: LineId,
        write: bool,
        now: Time,
    ) -> Time {
        let memory =
            if self.coherence.is_in_memory(id) { self.memory_latency(at, line) } else { 0 };
        let Self { cores, coherence, core_of_cpu, machine, .. } = self;
        let cpu = cores[at].cpu;
        let mut lost = 0;
        let access = if write {
            coherence.others(id, cpu, |other| {
                let core = &mut cores[core_of_cpu[other as usize] as usize];
                core.context.may_not(line, true);
                core.spin.losses += 1;
                lost += 1;
            });
            cores[at].counts.invalidations += lost;
            coherence.write(machine, id, cpu, now, memory)
        } else {
            coherence.read(machine, id, cpu, now, memory)
        };
        let Access { done, source, may_write, demoted } = access;
        if let Some(other) = demoted {
            cores[core_of_cpu[other as usize] as usize].context.may_not(line, false);
        }
        if let Some(lines) = &mut self.lines {
            lines.fetched(Fetched { line, source, lost, asked: now, takes: done - now });
        }
        let core = &mut cores[at];
        core.context.may(line, may_write);
        match source {
            Source::Own => {}
            Source::Upgrade(distance) => {
                core.counts.upgrades += 1;
                core.counts.transfers.count(distance);
            }
            Source::Core(distance) => core.counts.transfers.count(distance),
            Source::Memory => core.counts.memory_reads += 1,
        }
        done - now
    }

    /// How long a line takes from memory: from the node that its page is on, which the first touch
    /// decides.
    fn memory_latency(&mut self, at: usize, line: u64) -> Time {
        let line = lines::real(line);
        let page = line / PAGE_BYTES;
        let core = &mut self.cores[at];
        let thread = core.thread.unwrap_or(0);
        let faults = kernel::is_placed(line) && self.kernel.home_of(page).is_none();
        let node = self.kernel.touch(page, thread, core.cpu);
        core.counts.page_faults += u64::from(faults);
        let fault = if faults { self.machine.page_fault_ps() } else { 0 };
        fault + self.machine.memory_ps(core.cpu, node.into())
    }

    fn fault(&self, at: usize) -> Halt {
        let fault = faults::last();
        let rip = self.translator.place(fault.place).unwrap_or(0);
        let address = (!fault.no_address).then_some(fault.address);
        Halt::Fault { core: at, rip, signal: fault.signal, address }
    }
}
