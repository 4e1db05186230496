//! Threads on cores: who runs where, who waits, who comes next.
//!
//! A thread that becomes ready goes to the core that it ran on last if that is idle, else to the
//! first idle core that it may use, else behind the other ready threads. A core whose thread waits
//! or ends takes the first ready one that may run there. While threads are ready and no core is
//! free, a running thread gives way when its time slice is over.

use std::collections::VecDeque;

use crate::accesses::Turn;
use crate::context::{VectorState, register};
use crate::engine::{Engine, Next};
use crate::guest_memory;
use crate::halt::{Halt, stop};
use crate::kernel::{Call, Caller, Effect, Outcome};
use crate::time::Time;
use crate::translate::Touch;

/// A thread and what it has when no core holds it.
pub(crate) struct Thread {
    /// The core whose context holds its registers.
    resides: Option<usize>,
    /// The core that it ran on last.
    pub(crate) last: usize,
    pub(crate) state: State,
    registers: [u64; 16],
    flags: u64,
    vector: Box<VectorState>,
    x87_used: u64,
    pub(crate) fs_base: u64,
    /// Where it goes on.
    pub(crate) rip: u64,
    /// Its restartable-sequences area, if it is registered.
    rseq: Option<u64>,
}

/// What a thread does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// It runs on the core.
    Running(usize),
    /// It could run.
    Ready,
    /// It sleeps in the kernel.
    Waiting,
    /// It has nothing to do, any more or yet.
    Ended,
}

impl Thread {
    pub(crate) fn new(fs_base: u64, rseq: Option<u64>) -> Self {
        Self {
            resides: None,
            last: 0,
            state: State::Ended,
            registers: [0; 16],
            flags: 0x202,
            vector: Box::new(VectorState::new()),
            x87_used: 0,
            fs_base,
            rip: 0,
            rseq,
        }
    }

    /// Prepares the thread to begin a function.
    pub(crate) fn begin(&mut self, rip: u64, stack: u64, first: u64, second: u64) {
        self.registers = [0; 16];
        self.registers[register::RSP] = stack;
        self.registers[register::RDI] = first;
        self.registers[register::RSI] = second;
        self.flags = 0x202;
        *self.vector = VectorState::new();
        self.x87_used = 0;
        self.rip = rip;
    }
}

/// Threads that are ready and have no core.
#[derive(Debug, Default)]
pub(crate) struct Ready(VecDeque<usize>);

impl Ready {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

/// The addresses whose mapping a call changes.
fn remapped(call: &Call) -> Option<core::ops::Range<u64>> {
    let [address, length, third, fourth, fifth, _] = call.arguments;
    let range = |start: u64, length: u64| start..start.saturating_add(length);
    match call.number as libc::c_long {
        libc::SYS_munmap | libc::SYS_mprotect => Some(range(address, length)),
        libc::SYS_mmap if fourth as i32 & libc::MAP_FIXED != 0 => Some(range(address, length)),
        libc::SYS_mremap if fourth as i32 & libc::MREMAP_FIXED != 0 => Some(range(fifth, third)),
        libc::SYS_mremap => Some(range(address, length)),
        _ => None,
    }
}

/// Whether a call may write to its caller's memory: spinners must have seen what was there before.
fn may_write(number: u64) -> bool {
    !matches!(
        number as libc::c_long,
        libc::SYS_futex
            | libc::SYS_sched_yield
            | libc::SYS_gettid
            | libc::SYS_getpid
            | libc::SYS_madvise
            | libc::SYS_mprotect
            | libc::SYS_mmap
            | libc::SYS_munmap
            | libc::SYS_brk
            | libc::SYS_write
            | libc::SYS_membarrier
    )
}

impl Engine {
    /// Forgets which registers contexts hold, before all threads begin anew.
    pub(crate) fn vacate(&mut self) {
        self.threads.iter_mut().for_each(|thread| thread.resides = None);
        for core in &mut self.cores {
            core.resident = None;
            core.thread = None;
            core.changes = None;
        }
    }

    /// Lets a thread run on an idle core from `time` on.
    pub(crate) fn put_on(&mut self, thread: usize, at: usize, time: Time) -> Result<(), Box<Halt>> {
        if self.cores[at].resident != Some(thread) {
            if let Some(old) = self.cores[at].resident {
                self.move_out(old, at);
            }
            if let Some(elsewhere) = self.threads[thread].resides {
                self.move_out(thread, elsewhere);
            }
            let (core, thread) = (&mut self.cores[at], &self.threads[thread]);
            core.context.registers = thread.registers;
            core.context.flags = thread.flags;
            core.context.vector = (*thread.vector).clone();
            core.context.x87_used = thread.x87_used;
            core.context.fs_base = thread.fs_base;
        }
        let pace = self.pace_of(at);
        self.cores[at].set_pace(pace, &self.translator);
        let block = self.block(at, self.threads[thread].rip)?;
        let entry = self.translator.blocks[block as usize].entry;
        let slice = self.machine.time_slice_ps();
        let (cpu, node) = (self.cores[at].cpu, self.machine.node_of(self.cores[at].cpu));
        self.was_idle(at, time);
        let core = &mut self.cores[at];
        core.context.resume = entry;
        core.context.vector_loaded = 0;
        core.resident = Some(thread);
        core.thread = Some(thread);
        core.counts.idle_ps += time.saturating_sub(core.time);
        core.time = core.time.max(time);
        core.slice_end = core.time + slice;
        core.spin.disturb();
        core.stands = true;
        let lent = &mut self.threads[thread];
        lent.resides = Some(at);
        lent.last = at;
        lent.state = State::Running(at);
        if let Some(area) = lent.rseq {
            // cpu_id_start, cpu_id; node_id, mm_cid
            let _ = guest_memory::write(area, [cpu, cpu]);
            let _ = guest_memory::write(area + 20, [node as u32, at as u32]);
        }
        let time = core.time;
        self.enqueue(at, time);
        self.siblings_change(at, time);
        Ok(())
    }

    /// Saves the registers of a thread that a core's context holds.
    fn move_out(&mut self, thread: usize, at: usize) {
        let (core, thread) = (&mut self.cores[at], &mut self.threads[thread]);
        thread.registers = core.context.registers;
        thread.flags = core.context.flags;
        *thread.vector = core.context.vector.clone();
        thread.x87_used = core.context.x87_used;
        thread.resides = None;
        core.resident = None;
    }

    /// Gives a thread's registers to change.
    pub(crate) fn registers(&mut self, thread: usize) -> &mut [u64; 16] {
        match self.threads[thread].resides {
            Some(at) => &mut self.cores[at].context.registers,
            None => &mut self.threads[thread].registers,
        }
    }

    /// Gives a thread's registers, wherever they are.
    pub(crate) fn registers_of(&self, thread: usize) -> &[u64; 16] {
        match self.threads[thread].resides {
            Some(at) => &self.cores[at].context.registers,
            None => &self.threads[thread].registers,
        }
    }

    /// Gives a thread's stack pointer, wherever it is.
    pub(crate) fn stack_of(&self, thread: usize) -> u64 {
        self.registers_of(thread)[register::RSP]
    }

    fn may_run(&self, thread: usize, at: usize) -> bool {
        self.kernel.affinity(thread).contains(self.cores[at].cpu)
    }

    /// A thread can run from `time` on: on an idle core, or behind others.
    pub(crate) fn make_ready(&mut self, thread: usize, time: Time) -> Result<(), Box<Halt>> {
        let last = self.threads[thread].last;
        let idle = |at: &usize| self.cores[*at].thread.is_none() && self.may_run(thread, *at);
        let place = Some(last).filter(idle).or_else(|| (0..self.cores.len()).find(idle));
        if let Some(at) = place {
            return self.put_on(thread, at, time);
        }
        self.threads[thread].state = State::Ready;
        self.ready.0.push_back(thread);
        // Cores that spin may have to give way.
        self.wakes_all(last, self.now);
        Ok(())
    }

    /// A core has no thread any more: takes the first ready one that may run there.
    pub(crate) fn next_thread(&mut self, at: usize) -> Result<(), Box<Halt>> {
        self.cores[at].thread = None;
        self.queue.remove(self.cores[at].rank);
        let found = self.ready.0.iter().position(|&thread| self.may_run(thread, at));
        if let Some(thread) = found.and_then(|found| self.ready.0.remove(found)) {
            let time = self.cores[at].time + self.machine.context_switch_ps();
            return self.put_on(thread, at, time);
        }
        self.siblings_change(at, self.cores[at].time);
        Ok(())
    }

    /// Whether the thread of a core has to give way to a ready one.
    pub(crate) fn has_to_give_way(&self, at: usize) -> bool {
        !self.ready.is_empty()
            && self.cores[at].time >= self.cores[at].slice_end
            && self.ready.0.iter().any(|&thread| self.may_run(thread, at))
    }

    /// The thread of a core, which stands at a block, goes behind the ready ones.
    pub(crate) fn give_way(&mut self, at: usize, rip: u64) -> Result<(), Box<Halt>> {
        let Some(thread) = self.cores[at].thread else { return Ok(()) };
        self.cores[at].counts.context_switches += 1;
        self.threads[thread].rip = self.restart(thread, rip);
        self.threads[thread].state = State::Ready;
        self.ready.0.push_back(thread);
        self.next_thread(at)
    }

    /// A preempted thread inside of a restartable sequence goes on at its abort handler.
    fn restart(&self, thread: usize, rip: u64) -> u64 {
        let Some(area) = self.threads[thread].rseq else { return rip };
        let sequence = guest_memory::read::<u64>(area + 8).filter(|&sequence| sequence != 0);
        // struct rseq_cs: version, flags, start_ip, post_commit_offset, abort_ip
        let Some([_, start, length, abort]) = sequence.and_then(guest_memory::read::<[u64; 4]>)
        else {
            return rip;
        };
        let _ = guest_memory::write(area + 8, 0_u64);
        if rip.wrapping_sub(start) < length { abort } else { rip }
    }

    /// The thread of a core calls the kernel; `next` is the instruction after the call.
    pub(crate) fn syscall(&mut self, at: usize, exit: u32, next: u64) -> Result<Next, Box<Halt>> {
        let now = self.cores[at].time;
        if now >= self.limit {
            return Ok(self.wait_for_turn(at, exit, now));
        }
        let Some(thread) = self.cores[at].thread else { return Ok(Next::Wait) };
        self.now = now;
        let number = self.cores[at].context.registers[register::RAX];
        if may_write(number) && self.wakes_all(at, now) {
            return Ok(self.wait_for_turn(at, exit, now));
        }
        self.threads[thread].rip = next;
        let core = &mut self.cores[at];
        let registers = &mut core.context.registers;
        use register as r;
        let places = [r::RDI, r::RSI, r::RDX, r::R10, r::R8, r::R9];
        let call =
            Call { number: registers[r::RAX], arguments: places.map(|place| registers[place]) };
        registers[r::RCX] = next;
        registers[r::R11] = core.context.flags;
        core.counts.syscalls += 1;
        if let Some(range) = remapped(&call)
            && self.translator.has_code(range)
        {
            let reason = "code that was executed shall be mapped anew or protected, and code that \
                          changes is not simulated"
                .into();
            return stop(Halt::Refused { core: at, reason });
        }
        if let (Some(lines), Some(range)) = (&mut self.lines, remapped(&call))
            && call.number as libc::c_long != libc::SYS_mprotect
        {
            lines.moved(range);
        }
        let core = &self.cores[at];
        let caller = Caller { thread, cpu: core.cpu, now };
        let answer = self.kernel.call(caller, &call);
        self.cores[at].time += answer.cost;
        self.effects(at, now)?;
        let takes = self.cores[at].time - now;
        self.was_in_kernel(at, number, now, takes);
        match answer.outcome {
            Outcome::Return(value) => self.cores[at].context.registers[r::RAX] = value as u64,
            Outcome::Yield(value) => {
                self.cores[at].context.registers[r::RAX] = value as u64;
                self.yields(at, thread, next)?;
            }
            Outcome::Block => {
                self.threads[thread].state = State::Waiting;
                self.cores[at].counts.context_switches += 1;
                self.next_thread(at)?;
            }
            Outcome::ExitThread => return stop(Halt::ThreadExit { core: at }),
            Outcome::ExitProcess(status) => return stop(Halt::Exit { core: at, status }),
            Outcome::Refused(reason) => return stop(Halt::Refused { core: at, reason }),
        }
        self.wake_up()?;
        if self.cores[at].thread != Some(thread) {
            return Ok(Next::Wait);
        }
        self.stand_at(at, next)
    }

    /// A core's thread stands at the beginning of a block that the engine chose.
    pub(crate) fn stand_at(&mut self, at: usize, rip: u64) -> Result<Next, Box<Halt>> {
        let block = self.block(at, rip)?;
        self.go_to_block(at, block);
        self.cores[at].stands = true;
        if let Some(thread) = self.cores[at].thread {
            self.threads[thread].rip = rip;
        }
        let time = self.cores[at].time;
        self.enqueue(at, time);
        Ok(Next::Wait)
    }

    fn yields(&mut self, at: usize, thread: usize, next: u64) -> Result<(), Box<Halt>> {
        if !self.may_run(thread, at) {
            // It moved itself away from this core.
            self.cores[at].counts.context_switches += 1;
            let time = self.cores[at].time + self.machine.context_switch_ps();
            self.next_thread(at)?;
            return self.make_ready(thread, time);
        }
        if self.ready.0.iter().any(|&other| self.may_run(other, at)) {
            return self.give_way(at, next);
        }
        Ok(())
    }

    /// Threads that the kernel woke become ready.
    pub(crate) fn wake_up(&mut self) -> Result<(), Box<Halt>> {
        while let Some(woken) = self.kernel.take_woken() {
            self.registers(woken.thread)[register::RAX] = woken.value as u64;
            self.make_ready(woken.thread, woken.at)?;
        }
        // The end of time is a deadline as well: whoever waits for it sleeps.
        self.timer = self.kernel.next_deadline().map_or(Time::MAX, |end| end.min(Time::MAX - 1));
        Ok(())
    }

    /// What the kernel wrote on behalf of a core, the core wrote.
    fn effects(&mut self, at: usize, now: Time) -> Result<(), Box<Halt>> {
        while let Some(effect) = self.kernel.take_effect() {
            match effect {
                Effect::Read { address } => {
                    let id = self.coherence.line(address & !63);
                    let cpu = self.cores[at].cpu;
                    if self.coherence.hit(id, cpu, false).is_none() {
                        let turn = Turn::at(now);
                        let done = self.fetch(at, address & !63, id, Touch::Load, turn);
                        self.cores[at].time += done - now;
                        let thread = self.cores[at].thread.unwrap_or(0);
                        if let Some(lines) = &mut self.lines {
                            lines.kernel_read(cpu, self.threads[thread].rip, address);
                        }
                    }
                }
                Effect::Written { address, bytes } => {
                    let written = [(address, bytes, true)];
                    let apart = self.lines.as_ref().and_then(|lines| lines.pieces(&written));
                    let written = apart.as_deref().unwrap_or(&written);
                    for &(address, bytes, _) in written {
                        for line in address >> 6..=(address + bytes.max(1) - 1) >> 6 {
                            let id = self.coherence.line(line << 6);
                            let cpu = self.cores[at].cpu;
                            if self.coherence.hit(id, cpu, true).is_none() {
                                let turn = Turn::at(now);
                                let done = self.fetch(at, line << 6, id, Touch::Update, turn);
                                self.cores[at].time += done - now;
                                self.cores[at].counts.stall_ps += done - now;
                            }
                        }
                    }
                    self.touched(at, self.cores[at].context.exit, written);
                }
                Effect::Remapped { .. } => {} // code was looked for before the call
            }
        }
        Ok(())
    }

    /// A thread has returned from its first function.
    pub(crate) fn ends(&mut self, at: usize, exit: u32) -> Result<Next, Box<Halt>> {
        let now = self.cores[at].time;
        if now >= self.limit || self.wakes_all(at, now) {
            return Ok(self.wait_for_turn(at, exit, now));
        }
        let Some(thread) = self.cores[at].thread else { return Ok(Next::Wait) };
        let core = &mut self.cores[at];
        core.counts.time_ps = core.time;
        self.threads[thread].state = State::Ended;
        self.unfinished -= 1;
        self.next_thread(at)?;
        Ok(Next::Wait)
    }
}
