//! Lines of a run: who touches which of their bytes, from where, and what waiting for them costs.
//!
//! While lines are watched, no line is entered into the tables of lines that are known to hit, so
//! that every access leaves generated code and is seen here. Nothing else changes: an access that
//! hits costs what it costs otherwise, so all figures of a run are the same, but for how many
//! rounds of spin loops were executed before the others were computed.

mod apart;
mod changes;
mod trace;
mod verdict;
mod whose;

use core::hash::{BuildHasherDefault, Hasher};
use std::collections::HashMap;

use iced_x86::InstructionInfoFactory;

use self::apart::Lots;
pub(crate) use self::apart::real;
use self::changes::Changes;
use self::trace::{Trace, wait_for};
use crate::coherence::Source;
use crate::engine::Engine;
use crate::kernel;
use crate::lend::Lender;
use crate::line_report::{Apart, LineReport, Touches, Wait};
use crate::machine::Distance;
use crate::report::Transfers;
use crate::symbols::Symbols;
use crate::time::Time;
use crate::translate::reads_what_it_writes;
use crate::unwind::Frame;

/// Distinct instructions, and distinct sets of bytes, that are kept apart for a line.
const KINDS: usize = 64;

/// An access: address, bytes, whether it writes.
pub(crate) type Access = (u64, u64, bool);

/// All lines that were touched since the run began.
pub(crate) struct Lines {
    lots: Lots,
    index: HashMap<u64, u32, BuildHasherDefault<ByAddress>>,
    lines: Vec<Line>,
    /// What the access under way has waited for.
    fetched: Vec<Fetched>,
    /// Whether the instruction at an address reads what it writes.
    both: HashMap<u64, bool, BuildHasherDefault<ByAddress>>,
    info: InstructionInfoFactory,
    /// Kept from run to run: reading them takes long.
    symbols: Option<Symbols>,
    pairs: bool,
    trace: Option<Trace>,
}

/// A line.
#[derive(Debug, Default)]
struct Line {
    address: u64,
    /// Who touched it, by core.
    cores: Vec<Touches>,
    /// What others did to its bytes, by lot; nothing as long as one core touched it.
    changes: Vec<(u64, Box<Changes>)>,
    /// Bytes that accesses touched together.
    sets: Vec<u64>,
    places: Vec<PlaceSeen>,
    /// Transfers for what others had changed or used.
    true_transfers: u64,
    transfers: Transfers,
    invalidations: u64,
    memory_reads: u64,
    transfer_ps: Time,
    memory_ps: Time,
}

/// An instruction that touched a line.
#[derive(Debug, Clone, Copy, Default)]
struct PlaceSeen {
    rip: u64,
    loads: u64,
    stores: u64,
    transfers: u64,
    stall_ps: Time,
}

/// A line that came.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fetched {
    pub(crate) line: u64,
    pub(crate) source: Source,
    /// How many cores lost it.
    pub(crate) lost: u64,
    pub(crate) asked: Time,
    pub(crate) takes: Time,
}

impl Lines {
    /// Nothing was touched.
    pub(crate) fn new(apart: &[Apart], pairs: bool, trace: Option<usize>) -> Self {
        Self {
            lots: Lots::new(apart),
            index: HashMap::default(),
            lines: Vec::new(),
            fetched: Vec::new(),
            both: HashMap::default(),
            info: InstructionInfoFactory::new(),
            symbols: None,
            pairs,
            trace: trace.map(Trace::new),
        }
    }

    /// Forgets what was touched: a run begins.
    pub(crate) fn begin(&mut self, time: Time) {
        self.index.clear();
        self.lines.clear();
        self.fetched.clear();
        if let Some(trace) = &mut self.trace {
            trace.begin(time);
        }
    }

    /// Where an access counts as done: on another line if its bytes were put apart. And whether it
    /// is on one line only.
    pub(crate) fn place(&self, address: u64, bytes: u64) -> (u64, bool) {
        self.lots.place(address, bytes)
    }

    /// Where accesses count as done, if some of their bytes were put apart.
    pub(crate) fn pieces(&self, accesses: &[Access]) -> Option<Vec<Access>> {
        self.lots.pieces(accesses)
    }

    /// A line came to the core under way; what for is told when the access is done.
    pub(crate) fn fetched(&mut self, came: Fetched) {
        self.fetched.push(came);
    }

    /// Whether the access under way waited, and calls are to be told.
    fn wants_calls(&self) -> bool {
        self.trace.is_some() && self.fetched.iter().any(|came| came.takes > 0)
    }

    /// A core did accesses of an instruction.
    pub(crate) fn touched(&mut self, cpu: u32, rip: u64, accesses: &[Access]) {
        let Self { index, lines, fetched, both, info, trace, .. } = self;
        if let Some(trace) = trace {
            for Fetched { line, source, asked, takes, .. } in &*fetched {
                trace.waited(cpu, *asked, *takes, wait_for(real(*line), *source));
            }
        }
        for &(address, bytes, write) in accesses {
            let reads =
                !write || *both.entry(rip).or_insert_with(|| reads_what_it_writes(info, rip));
            let end = address.saturating_add(bytes.max(1));
            let mut from = address;
            while from < end {
                let to = end.min((from | 63).saturating_add(1));
                let mask = mask(from, to - from);
                let came = fetched.iter().position(|fetched| fetched.line == from & !63);
                let came = came.map(|at| fetched.swap_remove(at));
                let lot = from ^ real(from);
                let touch = Touch { cpu, rip, lot, mask, reads, write };
                line_at(index, lines, real(from & !63)).touched(touch, came);
                from = to;
            }
        }
    }

    /// The kernel read a word for a core that called it; the wait for it is part of the call.
    pub(crate) fn kernel_read(&mut self, cpu: u32, rip: u64, address: u64) {
        if let Some(came) = self.fetched.last_mut() {
            came.takes = 0;
        }
        self.touched(cpu, rip, &[(address, 4, false)]);
    }

    /// Memory is gone, or is other memory now: what is touched there next is another object.
    pub(crate) fn moved(&mut self, range: core::ops::Range<u64>) {
        if range.end - range.start > 64 * self.index.len() as u64 {
            self.index.retain(|line, _| !range.contains(line));
            return;
        }
        for line in range.step_by(64) {
            self.index.remove(&(line & !63));
        }
    }

    /// Tells what was touched; names are looked up for the first lines only.
    pub(crate) fn report(&mut self, lenders: &[Lender]) -> LineReport {
        let mut symbols = self.symbols.take().unwrap_or_else(Symbols::of_this_process);
        let mut report = verdict::report(&self.lines, self.pairs, lenders, &mut symbols);
        self.symbols = Some(symbols);
        if let Some(trace) = &mut self.trace {
            (report.events, report.events_lost) = trace.events();
            report.stacks = trace.stacks();
        }
        report
    }
}

/// Gives a line, which is a new one if it was not touched.
fn line_at<'a>(
    index: &mut HashMap<u64, u32, BuildHasherDefault<ByAddress>>,
    lines: &'a mut Vec<Line>,
    address: u64,
) -> &'a mut Line {
    let at = *index.entry(address).or_insert_with(|| {
        lines.push(Line { address, ..Line::default() });
        lines.len() as u32 - 1
    });
    &mut lines[at as usize]
}

/// Gives the bytes of a line as bits.
fn mask(address: u64, bytes: u64) -> u64 {
    (u64::MAX >> (64 - bytes.clamp(1, 64))) << (address % 64)
}

/// What a core did to a line.
#[derive(Debug, Clone, Copy)]
struct Touch {
    cpu: u32,
    rip: u64,
    /// The lot of the line that it is on.
    lot: u64,
    mask: u64,
    reads: bool,
    write: bool,
}

impl Line {
    /// Gives a core's place in the list, where it is put if it is new.
    fn place_of(&mut self, cpu: u32) -> usize {
        let place = match self.cores.binary_search_by_key(&cpu, |core| core.cpu) {
            Ok(place) => return place,
            Err(place) => place,
        };
        self.cores.insert(place, Touches { cpu, ..Touches::default() });
        self.changes.iter_mut().for_each(|(_, changes)| changes.joins(place));
        place
    }

    /// Gives what became of the bytes of a lot. What others did before this is looked at for the
    /// first time is done at one moment.
    fn changes(&mut self, lot: u64, place: usize) -> &mut Changes {
        let at = self.changes.iter().position(|(known, _)| *known == lot).unwrap_or_else(|| {
            let mut changes = Changes::new(self.cores.len());
            for (other, core) in self.cores.iter().enumerate().filter(|(other, _)| *other != place)
            {
                changes.touch(other, core.cpu, core.read, false);
                changes.touch(other, core.cpu, core.written, true);
            }
            self.changes.push((lot, Box::new(changes)));
            self.changes.len() - 1
        });
        &mut self.changes[at].1
    }

    fn touched(&mut self, touch: Touch, came: Option<Fetched>) {
        let Touch { cpu, rip, lot, mask, reads, write } = touch;
        let moved = came.and_then(|came| distance(came.source));
        let (transfers, takes) = (u64::from(moved.is_some()), came.map_or(0, |came| came.takes));
        let place = self.place_of(cpu);
        let needed =
            self.cores.len() > 1 && self.changes(lot, place).touch(place, cpu, mask, write);
        self.true_transfers += u64::from(needed) * transfers;
        let core = &mut self.cores[place];
        core.read |= if reads { mask } else { 0 };
        core.written |= if write { mask } else { 0 };
        core.loads += u64::from(reads);
        core.stores += u64::from(write);
        core.transfers += transfers;
        core.stall_ps += takes;
        *entry(&mut self.sets, |set| *set == mask, || mask) |= mask;
        let new = || PlaceSeen { rip, ..PlaceSeen::default() };
        let place = entry(&mut self.places, |place| place.rip == rip, new);
        place.loads += u64::from(reads);
        place.stores += u64::from(write);
        place.transfers += transfers;
        place.stall_ps += takes;
        let Some(Fetched { source, lost, takes, .. }) = came else { return };
        self.invalidations += lost;
        if let Some(distance) = moved {
            self.transfers.count(distance);
        }
        if source == Source::Memory {
            self.memory_reads += 1;
            self.memory_ps += takes;
        } else {
            self.transfer_ps += takes;
        }
    }
}

/// Gives an entry, which is a new one if there was none. Where there are too many, the last one
/// stands for whatever else comes.
fn entry<T>(entries: &mut Vec<T>, is_it: impl Fn(&T) -> bool, new: impl FnOnce() -> T) -> &mut T {
    let at = entries.iter().position(is_it).unwrap_or_else(|| {
        if entries.len() < KINDS {
            entries.push(new());
        }
        entries.len() - 1
    });
    &mut entries[at]
}

/// How far a line came from another core.
fn distance(source: Source) -> Option<Distance> {
    match source {
        Source::Upgrade(distance) | Source::Core(distance) => Some(distance),
        Source::Own | Source::Memory | Source::Home => None,
    }
}

/// Spreads addresses.
#[derive(Debug, Default)]
struct ByAddress(u64);

impl Hasher for ByAddress {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(byte.into()));
    }

    fn write_u64(&mut self, address: u64) {
        let product = (self.0 ^ address).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = product ^ product >> 32;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

impl Engine {
    /// A core did accesses of the instruction at an exit.
    #[inline]
    pub(crate) fn touched(&mut self, at: usize, exit: u32, accesses: &[Access]) {
        if let Some(lines) = &mut self.lines {
            let rip = self.translator.exits[exit as usize].rip;
            if lines.wants_calls() {
                let takes = lines.fetched.iter().map(|came| came.takes).sum();
                let thread = Frame { rip, registers: self.cores[at].context.registers };
                lines.trace.iter_mut().for_each(|trace| trace.stalled(&thread, takes));
            }
            lines.touched(self.cores[at].cpu, rip, accesses);
        }
    }

    /// A core was in the kernel.
    pub(crate) fn was_in_kernel(&mut self, at: usize, number: u64, from: Time, takes: Time) {
        let cpu = self.cores[at].cpu;
        if let Some(trace) = self.lines.as_mut().and_then(|lines| lines.trace.as_mut()) {
            let name = kernel::name(number).map_or_else(|| format!("call {number}"), Into::into);
            trace.waited(cpu, from, takes, Wait::Kernel(name));
        }
    }

    /// A core had nothing to do.
    pub(crate) fn was_idle(&mut self, at: usize, until: Time) {
        let (cpu, from) = (self.cores[at].cpu, self.cores[at].time);
        if let Some(trace) = self.lines.as_mut().and_then(|lines| lines.trace.as_mut()) {
            trace.waited(cpu, from, until.saturating_sub(from), Wait::Idle);
        }
    }
}
