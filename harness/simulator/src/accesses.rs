//! Accesses that do not hit: whose turn it is, and what becomes of everybody else.
//!
//! A request finds its line free and is served at once, or waits in the line's queue; when the line
//! is free again, the request whose turn it is gets it. That happens behind everything else that
//! happens at the same moment.
//!
//! An access is executed when its line is there. The last one of its block is executed when it is
//! served: nothing else of its block touches memory, so nobody can tell, and who is served later
//! sees what it did.

use crate::caches::Level;
use crate::coherence::{Access, Asks, LineId, Source};
use crate::dozing::rouse;
use crate::engine::{Engine, Next};
use crate::halt::Halt;
use crate::kernel::{self, PAGE_BYTES};
use crate::lines::{self, Fetched};
use crate::queue::Key;
use crate::time::Time;
use crate::translate::{Exit, Kind, Touch};
use crate::waiting::Request;

/// An access that does not hit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted {
    pub(crate) address: u64,
    pub(crate) bytes: u8,
    pub(crate) touch: Touch,
    /// Whether it is the last of its block.
    pub(crate) last: bool,
    /// How much of the block's cost lies behind it.
    pub(crate) remaining: u32,
}

/// When a line is given.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Turn {
    now: Time,
    /// When it was asked for.
    asked: Time,
    /// Whether others were before.
    queued: bool,
    /// Whether others wait behind.
    backlog: bool,
}

impl Turn {
    /// Nobody waits.
    pub(crate) fn at(now: Time) -> Self {
        Self { now, asked: now, queued: false, backlog: false }
    }
}

impl Engine {
    /// Asks for one line, if it is the core's turn.
    pub(crate) fn access(&mut self, at: usize, exit: u32, wanted: Wanted) -> Next {
        let line = wanted.address & !63;
        let id = self.coherence.line(line);
        let core = &mut self.cores[at];
        let write = wanted.touch.writes();
        let mut now = core.time - Time::from(wanted.remaining);
        let hit = self.coherence.hit(id, core.cpu, write);
        // What the core has stored must be seen before a locked instruction: all of it if that
        // misses, and what is under way to its line in any case.
        let seen = match hit {
            Some(_) => self.coherence.ready_at(id),
            None => core.drained,
        };
        if wanted.touch.is_locked() && seen > now {
            core.counts.drain_ps += seen - now;
            core.time += seen - now;
            now = seen;
        }
        if let Some(owns) = hit {
            if seen > now {
                // The store is still in the buffer, and so is what a load finds.
                let Wanted { address, bytes, .. } = wanted;
                self.touched(at, exit, &[(address, bytes.into(), write)]);
                return Next::Go;
            }
            return self.has_line(at, exit, id, wanted, owns);
        }
        if now >= self.limit {
            return self.wait_for_turn(at, exit, now);
        }
        if self.coherence.is_busy(id, now) {
            core.pending = Some(exit);
            let request = Request {
                key: Key::new(now, core.rank),
                group: self.coherence.group_of(core.cpu),
                write,
            };
            self.wait_for_line(id, line, request);
            return Next::Wait;
        }
        let rank = core.rank;
        if write && self.wakes_spinners(at, rank, &[(line, 1, true)], now) {
            self.wait_for_turns();
            return self.wait_for_turn(at, exit, now);
        }
        let next = self.serve(at, exit, id, wanted, Turn::at(now));
        if write {
            self.limit = self.limit_of(at); // woken cores may come before it now
        }
        next
    }

    /// A core may touch the line: it finds it in one of its caches, or has to fetch it from memory
    /// again.
    fn has_line(&mut self, at: usize, exit: u32, id: LineId, wanted: Wanted, owns: bool) -> Next {
        let Wanted { address, bytes, touch, remaining, .. } = wanted;
        let line = address & !63;
        let core = &self.cores[at];
        if core.context.is_cached(line) {
            let now = core.time - Time::from(remaining);
            self.may(at, line, id, owns, now);
            return Next::Go;
        }
        let level = self.caches.find(core.reach, line);
        let now = core.time - Time::from(remaining);
        // Others use what is behind the L2.
        if level > Level::L2 && now >= self.limit {
            return self.wait_for_turn(at, exit, now);
        }
        let takes = self.refill(at, line, id, owns, touch, now);
        self.touched(at, exit, &[(address, bytes.into(), touch.writes())]);
        let core = &mut self.cores[at];
        if takes == 0 {
            return Next::Go;
        }
        if touch == Touch::Store {
            core.drained = core.drained.max(now + takes);
        } else {
            core.time += takes;
            core.counts.stall_ps += takes;
        }
        Next::Go
    }

    /// Takes a line into a core's caches; the line that leaves its L1 for it must be asked for.
    fn fill(&mut self, at: usize, line: u64) {
        let reach = self.cores[at].reach;
        let Some(gone) = self.caches.fill(reach, line) else { return };
        let Self { cores, dozers, siblings, translator, .. } = self;
        for &core in &siblings[at] {
            let (core, dozer) = (&mut cores[core as usize], &mut dozers[core as usize]);
            if dozer.is_at(gone) {
                rouse(dozer, core, translator);
            }
            core.context.gone(gone);
        }
    }

    /// Gives a core the line that it asks for.
    fn serve(&mut self, at: usize, exit: u32, id: LineId, wanted: Wanted, turn: Turn) -> Next {
        let Wanted { address, bytes, touch, last, .. } = wanted;
        let line = address & !63;
        let Turn { now, asked, .. } = turn;
        let done = self.fetch(at, line, id, touch, turn);
        self.wait_for_lines(id, line);
        self.touched(at, exit, &[(address, bytes.into(), touch.writes())]);
        let core = &mut self.cores[at];
        let mut goes_on = done;
        if touch == Touch::Store {
            // It goes to the store buffer, and out of it after those before it.
            core.drained = core.drained.max(done);
            goes_on = core.buffer(now, self.stores);
            core.counts.drain_ps += goes_on - now;
            core.counts.stall_ps += now - asked;
        } else {
            core.counts.stall_ps += done - asked;
        }
        core.time += goes_on - asked;
        if last || goes_on < self.limit {
            return Next::Go;
        }
        self.coherence.keep_until(id, goes_on);
        self.enqueue(at, goes_on);
        Next::Wait
    }

    /// A line is free for which cores wait: who comes next gets it.
    pub(crate) fn grant(&mut self, list: usize) -> Result<(), Box<Halt>> {
        let (id, line) = self.waiting.line(list);
        let slot = self.slot_of(list);
        let now = self.now;
        let free = self.coherence.free_at(id);
        if free > now {
            self.queue.set(free, slot);
            return Ok(());
        }
        let bound = self.coherence.model.near_grants;
        let next = self.waiting.next(list, bound, self.coherence.place(id));
        if let Some((request, passes_over)) = next {
            let at = self.core_of_rank[request.key.rank() as usize] as usize;
            if request.write && self.wakes_spinners(at, slot, &[(line, 1, true)], now) {
                self.wait_for_turns();
                self.queue.set(now, slot);
                return Ok(());
            }
            self.waiting.grant(list, (request, passes_over));
            self.granted(at, list, now)?;
            if !request.write {
                let mut readers = core::mem::take(&mut self.readers);
                self.waiting.readers(list, request.group, &mut readers);
                for (i, reader) in readers.iter().enumerate() {
                    if let Some(next) = readers.get(i + 1) {
                        self.prefetch(self.core_of_rank[next.key.rank() as usize], line);
                    }
                    let at = self.core_of_rank[reader.key.rank() as usize] as usize;
                    self.granted(at, list, now)?;
                }
                self.readers = readers;
            }
        }
        if self.waiting.is_empty(list) {
            self.coherence.set_queue(id, None);
            self.waiting.end(list);
            self.queue.remove(slot);
        } else {
            self.queue.set(self.coherence.free_at(id).max(now), slot);
        }
        Ok(())
    }

    /// A core gets the line for which it waited, and goes on up to the next thing that has an
    /// order.
    fn granted(&mut self, at: usize, list: usize, now: Time) -> Result<(), Box<Halt>> {
        let (id, line) = self.waiting.line(list);
        let foreseen = self.dozers[at].is_at(line) || self.cores[at].is_foreseen();
        if foreseen && self.goes_round(at, id, line, now) {
            return Ok(());
        }
        let core = &mut self.cores[at];
        let Some(exit) = core.take_pending() else { return Ok(()) };
        let Exit { resume, remaining, kind, .. } = self.translator.exits[exit as usize];
        let Kind::Access { bytes, touch, last } = kind else { return Ok(()) };
        core.context.resume = resume;
        self.limit = now;
        let address = line + core.context.address % 64;
        let wanted = Wanted { address, bytes, touch, last, remaining };
        let asked = core.time - Time::from(remaining);
        let backlog = !self.waiting.is_empty(list);
        let turn = Turn { now, asked, queued: true, backlog };
        match self.serve(at, exit, id, wanted, turn) {
            Next::Go => self.execute(at),
            Next::Wait => Ok(()),
        }
    }

    /// The place in the queue of a line for which cores wait: behind all cores.
    fn slot_of(&self, list: usize) -> u32 {
        (self.cores.len() + list) as u32
    }

    /// Lets a core wait until a line is free.
    pub(crate) fn wait_for_line(&mut self, id: LineId, line: u64, request: Request) {
        let list = self.coherence.queue(id).unwrap_or_else(|| {
            let list = self.waiting.begin(id, line);
            self.coherence.set_queue(id, Some(list));
            let slot = self.slot_of(list);
            self.queue.set(self.coherence.free_at(id).max(request.key.time()), slot);
            list
        });
        self.waiting.join(list, request);
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
        let mut done = now;
        for &(address, bytes, write) in accesses {
            let touch = if write { Touch::Update } else { Touch::Load };
            let lines = address >> 6..=(address + bytes.max(1) - 1) >> 6;
            for line in lines.map(|line| line << 6) {
                let cpu = self.cores[at].cpu;
                let id = self.coherence.line(line);
                let owns = self.coherence.hit(id, cpu, write);
                if let Some(owns) = owns
                    && self.caches.find(self.cores[at].reach, line) == Level::L1
                {
                    self.may(at, line, id, owns, now);
                    continue;
                }
                if !turn {
                    if now >= self.limit {
                        return self.wait_for_turn(at, exit, now);
                    }
                    let before = self.wakes_spinners(at, self.cores[at].rank, accesses, now);
                    self.wait_for_turns();
                    if before {
                        return self.wait_for_turn(at, exit, now);
                    }
                    self.limit = self.limit_of(at);
                    turn = true;
                }
                done = match owns {
                    Some(owns) => done + self.refill(at, line, id, owns, touch, done),
                    None => self.fetch(at, line, id, touch, Turn::at(done)),
                };
            }
        }
        self.touched(at, exit, accesses);
        if done == now {
            return Next::Go;
        }
        let core = &mut self.cores[at];
        core.time += done - now;
        core.counts.stall_ps += done - now;
        if done >= self.limit {
            self.enqueue(at, done);
            return Next::Wait;
        }
        Next::Go
    }

    /// Takes a line into the L1 that the core may touch and that has gone from there; how long it
    /// takes.
    fn refill(
        &mut self,
        at: usize,
        line: u64,
        id: LineId,
        owns: bool,
        touch: Touch,
        now: Time,
    ) -> Time {
        let level = self.caches.find(self.cores[at].reach, line);
        let takes = match level {
            Level::Memory => self.memory_latency(at, line, now),
            level => self.caches.hit_ps(level),
        };
        self.fill(at, line);
        self.may(at, line, id, owns, now);
        let core = &mut self.cores[at];
        core.counts.memory_reads += u64::from(level == Level::Memory);
        if let Some(lines) = &mut self.lines
            && level > Level::L1
        {
            let source = if level == Level::Memory { Source::Memory } else { Source::Own };
            let takes = if touch == Touch::Store { 0 } else { takes };
            lines.fetched(Fetched { line, source, lost: 0, asked: now, takes });
        }
        takes
    }

    /// Lets a core's next accesses hit a line; not while a store to it is still under way, for
    /// which locked instructions wait.
    fn may(&mut self, at: usize, line: u64, id: LineId, owns: bool, now: Time) {
        if self.coherence.ready_at(id) <= now {
            self.cores[at].context.may(line, owns);
        }
    }

    pub(crate) fn wait_for_turn(&mut self, at: usize, exit: u32, now: Time) -> Next {
        self.cores[at].pending = Some(exit);
        self.enqueue(at, now);
        Next::Wait
    }

    /// Gets a line, which others may lose by that; gives when it is there.
    pub(crate) fn fetch(
        &mut self,
        at: usize,
        line: u64,
        id: LineId,
        touch: Touch,
        turn: Turn,
    ) -> Time {
        let Turn { now, asked, queued, backlog } = turn;
        self.look_for_owner(id, line);
        let memory =
            if self.coherence.is_in_memory(id) { self.first_read(at, id, line, now) } else { 0 };
        let Self { cores, dozers, coherence, core_of_cpu, translator, .. } = self;
        let cpu = cores[at].cpu;
        let mut lost = 0;
        if touch.writes() {
            coherence.others(id, cpu, |other| {
                lost += 1;
                let other = core_of_cpu[other as usize] as usize;
                let (core, dozer) = (&mut cores[other], &mut dozers[other]);
                if !dozer.is_at(line) {
                    rouse(dozer, core, translator);
                    core.context.lost(line);
                    core.spin.losses += 1;
                }
            });
            cores[at].counts.invalidations += lost;
        }
        let asks = Asks { cpu, touch, at: now, queued, backlog, memory };
        let Access { done, source, may_write, demoted } = coherence.get(id, &asks);
        if let Some(other) = demoted {
            cores[core_of_cpu[other as usize] as usize].context.may_not_store(line);
        }
        if let Some(lines) = &mut self.lines {
            let until = if touch == Touch::Store { now } else { done };
            lines.fetched(Fetched { line, source, lost, asked, takes: until - asked });
        }
        let core = &mut cores[at];
        let is_cached = core.context.is_cached(line);
        let done_at_home = touch.writes() && !may_write;
        if done_at_home || touch == Touch::Store {
            core.context.lost(line); // a store's line is asked for again when it is there
        } else {
            core.context.may(line, may_write);
        }
        match source {
            Source::Own | Source::Home => {}
            Source::Upgrade(distance) => {
                core.counts.upgrades += 1;
                core.counts.transfers.count(distance);
            }
            Source::Core(distance) => core.counts.transfers.count(distance),
            Source::Memory => core.counts.memory_reads += 1,
        }
        if !is_cached && !done_at_home {
            self.fill(at, line);
        }
        if self.brings_along && matches!(source, Source::Core(_) | Source::Memory) {
            self.bring_along(at, line, now);
        }
        done
    }

    /// A line that has left its owner's caches is in memory.
    pub(crate) fn look_for_owner(&mut self, id: LineId, line: u64) {
        if let Some(owner) = self.coherence.owner(id) {
            let owner = &self.cores[self.core_of_cpu[owner as usize] as usize];
            if !owner.context.is_cached(line)
                && self.caches.find(owner.reach, line) == Level::Memory
            {
                self.coherence.written_back(id);
            }
        }
    }

    /// The other line of the pair comes along, where the machine fetches pairs.
    pub(crate) fn bring_along(&mut self, at: usize, line: u64, now: Time) {
        let other = line ^ 64;
        let cpu = self.cores[at].cpu;
        let Some(id) = self.coherence.known(other) else { return };
        let Some(owner) = self.coherence.bring_along(id, cpu, now) else { return };
        self.cores[self.core_of_cpu[owner as usize] as usize].context.may_not_store(other);
        let core = &mut self.cores[at];
        self.caches.bring_along(core.reach, other);
        core.counts.transfers.count(self.machine.distance(cpu, owner));
    }

    /// How long a line takes from memory that no core has.
    fn first_read(&mut self, at: usize, id: LineId, line: u64, now: Time) -> Time {
        let line = lines::real(line);
        let page = line / PAGE_BYTES;
        let faults = kernel::is_placed(line) && self.kernel.home_of(page).is_none();
        let core = &mut self.cores[at];
        core.counts.page_faults += u64::from(faults);
        let fault = if faults { self.machine.page_fault_ps() } else { 0 };
        let takes = self.memory_latency(at, line, now + fault);
        let node = self.kernel.home_of(page).unwrap_or_default();
        self.coherence.set_home(id, self.machine.socket_of_node(node.into()));
        fault + takes
    }

    /// How long a line takes from memory: from the node that its page is on, which the first touch
    /// decides, and behind what its memory and the way to it still deliver.
    fn memory_latency(&mut self, at: usize, line: u64, now: Time) -> Time {
        let core = &self.cores[at];
        let line = lines::real(line);
        let node = self.kernel.touch(line / PAGE_BYTES, core.thread.unwrap_or(0), core.cpu).into();
        let (cpu, socket) = (core.cpu, self.machine.socket_of(core.cpu));
        self.cores[at].counts.remote_reads += u64::from(node != self.machine.node_of(cpu));
        self.bandwidth.wait(at, socket, node, now) + self.machine.memory_ps(cpu, node)
    }
}
