//! What a run gives: exact counts, by core and in total.

use core::ops::AddAssign;

use serde::{Deserialize, Serialize};

use crate::line_report::LineReport;
use crate::machine::Distance;

/// What a core did, or all of them.
///
/// Loads and stores are counted by operand, a read-modify-write as one of each. A repeating string
/// instruction counts once an iteration and once more when it finds nothing left to do, as under
/// valgrind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
#[repr(C)]
pub struct Counts {
    /// Instructions, those of skipped spin iterations included.
    pub instructions: u64,
    /// Of the instructions, those of spin iterations that were known to change nothing and were
    /// not executed. Only this figure differs when skipping is switched off.
    pub skipped: u64,
    /// Memory operands read.
    pub loads: u64,
    /// Memory fences: `mfence`, `lfence`, `sfence`.
    pub fences: u64,
    /// Time that accesses waited for lines, in picoseconds.
    pub stall_ps: u64,
    /// Lines that came from another core, by its distance.
    pub transfers: Transfers,
    /// Memory operands written.
    pub stores: u64,
    /// Locked read-modify-writes, exchanges with memory included.
    pub rmw: u64,
    /// Calls of the simulated kernel.
    pub syscalls: u64,
    /// Pages that were touched for the first time, of those that threads mapped.
    pub page_faults: u64,
    /// Threads that gave way to another on their core, or to none.
    pub context_switches: u64,
    /// Of the transfers, those for lines that the core already had to read.
    pub upgrades: u64,
    /// Lines that other cores lost by writes of this one.
    pub invalidations: u64,
    /// Lines that came from memory.
    pub memory_reads: u64,
    /// Of these, lines from the memory of another node than the core's.
    pub remote_reads: u64,
    /// Time that stores had to be seen by others first, before a locked instruction or for room in
    /// the store buffer, in picoseconds.
    pub drain_ps: u64,
    /// Time that the core had no thread to run, in picoseconds.
    pub idle_ps: u64,
    /// Simulated time, in picoseconds: for a core until it ended, in total until the last ended.
    pub time_ps: u64,
}

impl Counts {
    /// The bytes that change when a core waits for a line: fields are in their order.
    pub(crate) const HOT: usize = 9 * size_of::<u64>();

    /// Gives loads and stores together.
    pub fn accesses(&self) -> u64 {
        self.loads + self.stores
    }

    /// Gives the time in nanoseconds.
    pub fn time_ns(&self) -> f64 {
        self.time_ps as f64 / 1e3
    }
}

impl AddAssign for Counts {
    /// Adds everything but time, of which the later is kept.
    fn add_assign(&mut self, other: Self) {
        self.instructions += other.instructions;
        self.skipped += other.skipped;
        self.loads += other.loads;
        self.stores += other.stores;
        self.rmw += other.rmw;
        self.fences += other.fences;
        self.syscalls += other.syscalls;
        self.page_faults += other.page_faults;
        self.context_switches += other.context_switches;
        self.transfers += other.transfers;
        self.upgrades += other.upgrades;
        self.invalidations += other.invalidations;
        self.memory_reads += other.memory_reads;
        self.remote_reads += other.remote_reads;
        self.stall_ps += other.stall_ps;
        self.drain_ps += other.drain_ps;
        self.idle_ps += other.idle_ps;
        self.time_ps = self.time_ps.max(other.time_ps);
    }
}

/// Transfers of lines by the distance that they came.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Transfers {
    /// From the sibling on the same core.
    pub smt: u64,
    /// From a core under the same L3.
    pub same_l3: u64,
    /// From a core of the same socket under another L3.
    pub same_socket: u64,
    /// From another socket.
    pub cross_socket: u64,
}

impl Transfers {
    /// Gives all of them.
    pub fn total(&self) -> u64 {
        self.smt + self.same_l3 + self.same_socket + self.cross_socket
    }

    pub(crate) fn count(&mut self, distance: Distance) {
        match distance {
            Distance::Same => {}
            Distance::Smt => self.smt += 1,
            Distance::SameL3 => self.same_l3 += 1,
            Distance::SameSocket => self.same_socket += 1,
            Distance::CrossSocket => self.cross_socket += 1,
        }
    }
}

impl AddAssign for Transfers {
    fn add_assign(&mut self, other: Self) {
        self.smt += other.smt;
        self.same_l3 += other.same_l3;
        self.same_socket += other.same_socket;
        self.cross_socket += other.cross_socket;
    }
}

/// What became of a run: what each thread's closure returned, and the counts.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Report<R> {
    /// What the closure returned, by thread.
    pub results: Vec<R>,
    /// What each core did.
    pub cores: Vec<Counts>,
    /// What all of them did.
    pub total: Counts,
    /// What all of them had done when the first thread ended.
    pub window: Counts,
    /// What was seen of lines, if [`Simulation::watch_lines`](crate::Simulation::watch_lines) asked
    /// for it.
    pub lines: Option<LineReport>,
}

impl<R> Report<R> {
    /// Gives a count for each of `operations`.
    pub fn per_operation(&self, count: u64, operations: u64) -> f64 {
        count as f64 / operations as f64
    }
}
