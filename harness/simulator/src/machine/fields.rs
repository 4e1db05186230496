//! The fields of a machine file, one row each.

use super::absent::Absent;
use super::shape::Shape;

/// What a field holds and within which bounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Kind {
    /// A whole number from 1 to this.
    Count(usize),
    /// A whole number from 0 to this.
    OrNone(usize),
    /// One of these words.
    Word(&'static [&'static str]),
    /// A power of two from the first to the second.
    Power(usize, usize),
    /// A number from the first to the second.
    Number(f64, f64),
    /// `true` or `false`.
    Flag,
}

/// On which machines a field must be there; on others it must not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Needed {
    Always,
    /// More than one hardware thread per core.
    Threads,
    /// More than one L3 group per socket.
    Groups,
    /// More than one socket.
    Sockets,
    /// Nodes of memory without CPUs.
    MemoryOnly,
}

impl Needed {
    pub(super) fn on(self, shape: &Shape) -> bool {
        match self {
            Needed::Always => true,
            Needed::Threads => shape.threads_per_core > 1,
            Needed::Groups => shape.l3_groups_per_socket > 1,
            Needed::Sockets => shape.sockets > 1,
            Needed::MemoryOnly => shape.memory_only_nodes > 0,
        }
    }

    /// Says why the field must not be there.
    pub(super) fn reason_against(self) -> &'static str {
        match self {
            Needed::Always => "",
            Needed::Threads => "topology.threads_per_core is 1",
            Needed::Groups => "topology.l3_groups_per_socket is 1",
            Needed::Sockets => "topology.sockets is 1",
            Needed::MemoryOnly => "topology.memory_only_nodes is 0",
        }
    }
}

/// One field.
#[derive(Debug)]
pub(super) struct Field {
    /// Table and key: `transfer.same_l3_ns`.
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) needed: Needed,
    /// What holds where the file does not say; `None`: the file must say.
    pub(super) absent: Option<Absent>,
    /// What to put there.
    pub(super) about: &'static str,
}

impl Field {
    pub(super) fn table_and_key(&self) -> (&'static str, &'static str) {
        self.name.split_once('.').unwrap_or(("", self.name))
    }
}

/// The tables, in the order of the documentation.
pub(super) const TABLES: [&str; 10] = [
    "topology", "clock", "core", "cache", "transfer", "line", "home", "atomic", "memory", "kernel",
];

/// From a picosecond to a second, in nanoseconds.
const TIME: Kind = Kind::Number(0.001, 1e9);
/// From nothing to a millisecond, in nanoseconds.
const SHORT: Kind = Kind::Number(0.0, 1e6);
/// Up to 16 GiB of a cache.
const KIB: Kind = Kind::Count(1 << 24);
/// The ways of a cache.
const WAYS: Kind = Kind::Count(256);
/// A rate of bytes.
const GB_PER_S: Kind = Kind::Number(0.001, 1e5);
/// Up to a million clock cycles.
const CYCLES: Kind = Kind::Number(0.01, 1e6);

const fn field(name: &'static str, kind: Kind, about: &'static str) -> Field {
    Field { name, kind, needed: Needed::Always, absent: None, about }
}

const fn on(needed: Needed, name: &'static str, kind: Kind, about: &'static str) -> Field {
    Field { name, kind, needed, absent: None, about }
}

const fn or(absent: Absent, name: &'static str, kind: Kind, about: &'static str) -> Field {
    Field { name, kind, needed: Needed::Always, absent: Some(absent), about }
}

const fn on_or(
    needed: Needed,
    absent: Absent,
    name: &'static str,
    kind: Kind,
    about: &'static str,
) -> Field {
    Field { name, kind, needed, absent: Some(absent), about }
}

/// Every field, in the order of the documentation; the topology first, since the others are judged
/// by it.
pub(super) const FIELDS: [Field; 54] = [
    field("topology.sockets", Kind::Count(64), "the number of sockets"),
    field("topology.nodes_per_socket", Kind::Count(64), "the NUMA nodes of a socket"),
    field("topology.l3_groups_per_socket", Kind::Count(1024), "the groups of cores with an L3"),
    field("topology.cores_per_l3_group", Kind::Count(1024), "the cores that share an L3"),
    field("topology.threads_per_core", Kind::Count(8), "the hardware threads of a core"),
    or(
        Absent::Count(0),
        "topology.memory_only_nodes",
        Kind::OrNone(64),
        "further NUMA nodes that have memory and no CPUs, on the sockets in turn",
    ),
    or(
        Absent::Count(0),
        "topology.memoryless_nodes",
        Kind::OrNone(1024),
        "the nodes with CPUs, counted from the last one, that have no memory",
    ),
    field("clock.core_ghz", Kind::Number(0.1, 10.0), "the clock rate of a core under load"),
    field("core.instructions_per_cycle", Kind::Number(0.1, 16.0), "sustained, nothing stalling"),
    field("core.pause_cycles", CYCLES, "the clock cycles of a spin-wait hint"),
    or(Absent::Count(56), "core.store_buffer_entries", Kind::Count(1024), "stores that can wait"),
    on_or(
        Needed::Threads,
        Absent::Number(0.6),
        "core.smt_share",
        Kind::Number(0.5, 1.0),
        "the share of a core's issue slots that a thread has beside its sibling",
    ),
    field("cache.line_bytes", Kind::Power(16, 1024), "the bytes of a cache line"),
    field("cache.adjacent_line_prefetch", Kind::Flag, "whether lines are fetched in pairs"),
    field("cache.l1_hit_cycles", CYCLES, "the clock cycles of a load that hits the L1"),
    or(Absent::Count(32), "cache.l1_kib", KIB, "the KiB of a core's first-level data cache"),
    or(Absent::Count(8), "cache.l1_ways", WAYS, "its ways"),
    or(Absent::Count(512), "cache.l2_kib", KIB, "the KiB of a core's second-level cache"),
    or(Absent::Count(8), "cache.l2_ways", WAYS, "its ways"),
    or(Absent::L2Hit, "cache.l2_hit_ns", TIME, "a load that hits the L2"),
    or(Absent::L3Kib, "cache.l3_kib", KIB, "the KiB of the L3 of a group"),
    or(Absent::Count(16), "cache.l3_ways", WAYS, "its ways"),
    or(Absent::L3Hit, "cache.l3_hit_ns", TIME, "a load that hits the L3 of the core's group"),
    or(
        Absent::Flag(false),
        "cache.l3_inclusive",
        Kind::Flag,
        "whether the L3 holds all that the L2 caches hold",
    ),
    on(Needed::Threads, "transfer.smt_ns", TIME, "between the threads of a core"),
    field("transfer.same_l3_ns", TIME, "between cores that share an L3"),
    on(Needed::Groups, "transfer.same_socket_ns", TIME, "between L3 groups of a socket"),
    on(Needed::Sockets, "transfer.cross_socket_ns", TIME, "between sockets"),
    or(
        Absent::Number(0.6),
        "line.rmw_queue_ratio",
        Kind::Number(0.0, 1.0),
        "the time that a queued read-modify-write occupies a line, as a share of the transfer of its distance",
    ),
    or(
        Absent::Number(0.0),
        "line.hold_ns",
        SHORT,
        "how long an owner keeps a line before it answers",
    ),
    or(
        Absent::Count(12),
        "line.near_grants",
        Kind::Count(1024),
        "how many near requesters in a row are served before a far one",
    ),
    or(
        Absent::Number(15.0),
        "line.read_group_ns",
        SHORT,
        "how long a read that is the first of its L3 group occupies the line's home",
    ),
    or(Absent::Number(7.0), "line.invalidate_ns", SHORT, "what a write pays for each sharer"),
    or(
        Absent::Number(5.0),
        "line.jitter_percent",
        Kind::Number(0.0, 50.0),
        "by how much a service time varies, seeded",
    ),
    or(
        Absent::HomeVisits,
        "home.visits",
        Kind::Word(&["always", "across_sockets"]),
        "which transfers visit the line's home",
    ),
    or(
        Absent::Word("near"),
        "home.atomics",
        Kind::Word(&["near", "far"]),
        "where contended atomics run: at the core or at the line's home",
    ),
    field("atomic.rmw_owned_ns", TIME, "an atomic read-modify-write of an owned line"),
    or(
        Absent::FarAtomic,
        "atomic.far_ns",
        TIME,
        "how long a line's home is busy with an atomic, where atomics are far",
    ),
    field("atomic.fence_ns", TIME, "a full fence with nothing to wait for"),
    field("memory.local_ns", TIME, "a read of the socket's own memory"),
    on(Needed::Sockets, "memory.remote_ns", TIME, "a read of another socket's memory"),
    on(
        Needed::MemoryOnly,
        "memory.memory_only_ns",
        TIME,
        "a read of a node without CPUs on the core's socket",
    ),
    or(
        Absent::Number(100.0),
        "memory.node_gb_per_s",
        GB_PER_S,
        "what the memory of a node gives in all",
    ),
    on_or(
        Needed::MemoryOnly,
        Absent::Number(30.0),
        "memory.memory_only_gb_per_s",
        GB_PER_S,
        "what a node without CPUs gives in all",
    ),
    on_or(
        Needed::Sockets,
        Absent::Number(50.0),
        "memory.link_gb_per_s",
        GB_PER_S,
        "what the way between two sockets gives, one way",
    ),
    or(
        Absent::CoreBandwidth,
        "memory.core_gb_per_s",
        GB_PER_S,
        "what one core alone gets of its node's memory",
    ),
    field("kernel.syscall_ns", TIME, "into the kernel and out again"),
    field("kernel.futex_wake_ns", TIME, "what a waker pays per woken thread"),
    field("kernel.wake_latency_ns", TIME, "from being woken to running"),
    field("kernel.context_switch_ns", TIME, "from one ready thread to another"),
    field("kernel.page_fault_ns", TIME, "the first touch of a page"),
    field("kernel.time_slice_ns", TIME, "how long a thread runs while another is ready"),
    field("kernel.timer_slack_ns", TIME, "how much later a sleep ends than asked for"),
    field("kernel.interrupt_ns", TIME, "an interrupt to other cores until all have answered"),
];
