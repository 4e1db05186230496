//! Caches, queues at a line, homes, bandwidth: what the time model asks a machine for.

use super::Machine;

use crate::time::NANOSECOND;

/// One level of cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cache {
    /// Its size.
    pub bytes: usize,
    /// The lines of a set.
    pub ways: usize,
    /// The time of a load that hits it, in picoseconds.
    pub hit_ps: u64,
}

/// Says which transfers visit the home of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HomeVisits {
    /// Each one that leaves its L3 group.
    Always,
    /// Those between sockets.
    AcrossSockets,
}

/// Says where a contended atomic read-modify-write runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Atomics {
    /// In the core, which gets the line first.
    Near,
    /// At the home of the line, to which the core sends the operation.
    Far,
}

/// What lines, caches, homes and memory do under load.
impl Machine {
    /// Gives a core's first-level data cache.
    #[must_use]
    pub fn l1(&self) -> Cache {
        self.cache("cache.l1_kib", "cache.l1_ways", self.l1_hit_ps())
    }

    /// Gives a core's second-level cache.
    #[must_use]
    pub fn l2(&self) -> Cache {
        self.cache("cache.l2_kib", "cache.l2_ways", self.picoseconds("cache.l2_hit_ns"))
    }

    /// Gives the third-level cache of an L3 group.
    #[must_use]
    pub fn l3(&self) -> Cache {
        self.cache("cache.l3_kib", "cache.l3_ways", self.picoseconds("cache.l3_hit_ns"))
    }

    /// Says whether the L3 holds everything that the L2 caches of its group hold.
    #[must_use]
    pub fn l3_inclusive(&self) -> bool {
        self.figures.flag("cache.l3_inclusive")
    }

    /// Gives the number of stores that can wait in a core.
    #[must_use]
    pub fn store_buffer_entries(&self) -> usize {
        self.figures.count("core.store_buffer_entries")
    }

    /// Gives the share of a core's issue slots that a thread has while its sibling runs; 1 where
    /// a core has one thread.
    #[must_use]
    pub fn smt_share(&self) -> f64 {
        if self.threads_per_core() == 1 { 1.0 } else { self.figures.number("core.smt_share") }
    }

    /// Gives how long a line's home is busy with an atomic, where atomics are far.
    #[must_use]
    pub fn far_atomic_ps(&self) -> u64 {
        self.picoseconds("atomic.far_ns")
    }

    /// Gives the time that a queued read-modify-write occupies a line, as a share of the transfer
    /// of its distance.
    #[must_use]
    pub fn rmw_queue_ratio(&self) -> f64 {
        self.figures.number("line.rmw_queue_ratio")
    }

    /// Gives how long an owner keeps a line before it answers a request.
    #[must_use]
    pub fn hold_ps(&self) -> u64 {
        self.picoseconds("line.hold_ns")
    }

    /// Gives how many near requesters in a row a line serves before a far one.
    #[must_use]
    pub fn near_grants(&self) -> usize {
        self.figures.count("line.near_grants")
    }

    /// Gives how long the first read of an L3 group occupies the home of a line.
    #[must_use]
    pub fn read_group_ps(&self) -> u64 {
        self.picoseconds("line.read_group_ns")
    }

    /// Gives what a write pays for each sharer of a line.
    #[must_use]
    pub fn invalidate_ps(&self) -> u64 {
        self.picoseconds("line.invalidate_ns")
    }

    /// Gives by how many percent service times vary.
    #[must_use]
    pub fn jitter_percent(&self) -> f64 {
        self.figures.number("line.jitter_percent")
    }

    /// Says which transfers visit the home of a line.
    #[must_use]
    pub fn home_visits(&self) -> HomeVisits {
        match self.figures.word("home.visits") {
            "always" => HomeVisits::Always,
            _ => HomeVisits::AcrossSockets,
        }
    }

    /// Says where contended atomics run.
    #[must_use]
    pub fn atomics(&self) -> Atomics {
        match self.figures.word("home.atomics") {
            "far" => Atomics::Far,
            _ => Atomics::Near,
        }
    }

    /// Gives what the memory of a node delivers in all, in 10^9 bytes per second.
    #[must_use]
    pub fn node_gb_per_s(&self) -> f64 {
        self.figures.number("memory.node_gb_per_s")
    }

    /// Gives what the memory of a node without CPUs delivers in all, in 10^9 bytes per second; none
    /// where there is no such node.
    #[must_use]
    pub fn memory_only_gb_per_s(&self) -> Option<f64> {
        (self.nodes() > self.cpu_nodes())
            .then(|| self.figures.number("memory.memory_only_gb_per_s"))
    }

    /// Gives what the way between two sockets delivers in one direction, in 10^9 bytes per second;
    /// none where there is one socket.
    #[must_use]
    pub fn link_gb_per_s(&self) -> Option<f64> {
        (self.sockets() > 1).then(|| self.figures.number("memory.link_gb_per_s"))
    }

    /// Gives what a core alone gets of its node's memory, in 10^9 bytes per second.
    #[must_use]
    pub fn core_gb_per_s(&self) -> f64 {
        self.figures.number("memory.core_gb_per_s")
    }

    fn cache(&self, kib: &str, ways: &str, hit_ps: u64) -> Cache {
        Cache { bytes: self.figures.count(kib) * 1024, ways: self.figures.count(ways), hit_ps }
    }

    fn picoseconds(&self, field: &str) -> u64 {
        (self.figures.number(field) * NANOSECOND as f64).round() as u64
    }
}
