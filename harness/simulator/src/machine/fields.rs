//! The fields of a machine file, one row each.

use super::shape::Shape;

/// What a field holds and within which bounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Kind {
    /// A whole number from 1 to this.
    Count(usize),
    /// A power of two from the first to the second.
    Power(usize, usize),
    /// A number above zero, from the first to the second.
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
}

impl Needed {
    pub(super) fn on(self, shape: &Shape) -> bool {
        match self {
            Needed::Always => true,
            Needed::Threads => shape.threads_per_core > 1,
            Needed::Groups => shape.l3_groups_per_socket > 1,
            Needed::Sockets => shape.sockets > 1,
        }
    }

    /// Says why the field must not be there.
    pub(super) fn reason_against(self) -> &'static str {
        match self {
            Needed::Always => "",
            Needed::Threads => "topology.threads_per_core is 1",
            Needed::Groups => "topology.l3_groups_per_socket is 1",
            Needed::Sockets => "topology.sockets is 1",
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
    /// What to put there.
    pub(super) about: &'static str,
}

impl Field {
    pub(super) fn table_and_key(&self) -> (&'static str, &'static str) {
        self.name.split_once('.').unwrap_or(("", self.name))
    }
}

/// The tables, in the order of the documentation.
pub(super) const TABLES: [&str; 8] =
    ["topology", "clock", "core", "cache", "transfer", "atomic", "memory", "kernel"];

/// From a picosecond to a second, in nanoseconds.
const TIME: Kind = Kind::Number(0.001, 1e9);
/// Up to a million clock cycles.
const CYCLES: Kind = Kind::Number(0.01, 1e6);

const fn field(name: &'static str, kind: Kind, about: &'static str) -> Field {
    Field { name, kind, needed: Needed::Always, about }
}

const fn on(needed: Needed, name: &'static str, kind: Kind, about: &'static str) -> Field {
    Field { name, kind, needed, about }
}

/// Every field, the topology first: the others are judged by it.
pub(super) const FIELDS: [Field; 27] = [
    field("topology.sockets", Kind::Count(64), "the number of sockets"),
    field("topology.nodes_per_socket", Kind::Count(64), "the NUMA nodes of a socket"),
    field("topology.l3_groups_per_socket", Kind::Count(1024), "the groups of cores with an L3"),
    field("topology.cores_per_l3_group", Kind::Count(1024), "the cores that share an L3"),
    field("topology.threads_per_core", Kind::Count(8), "the hardware threads of a core"),
    field("clock.core_ghz", Kind::Number(0.1, 10.0), "the clock rate of a core under load"),
    field("core.instructions_per_cycle", Kind::Number(0.1, 16.0), "sustained, nothing stalling"),
    field("core.pause_cycles", CYCLES, "the clock cycles of a spin-wait hint"),
    field("cache.line_bytes", Kind::Power(16, 1024), "the bytes of a cache line"),
    field("cache.adjacent_line_prefetch", Kind::Flag, "whether lines are fetched in pairs"),
    field("cache.l1_hit_cycles", CYCLES, "the clock cycles of a load that hits the L1"),
    on(Needed::Threads, "transfer.smt_ns", TIME, "between the threads of a core"),
    field("transfer.same_l3_ns", TIME, "between cores that share an L3"),
    on(Needed::Groups, "transfer.same_socket_ns", TIME, "between L3 groups of a socket"),
    on(Needed::Sockets, "transfer.cross_socket_ns", TIME, "between sockets"),
    field("atomic.rmw_owned_ns", TIME, "an atomic read-modify-write of an owned line"),
    field("atomic.fence_ns", TIME, "a full fence with nothing to wait for"),
    field("memory.local_ns", TIME, "a read of the socket's own memory"),
    on(Needed::Sockets, "memory.remote_ns", TIME, "a read of another socket's memory"),
    field("kernel.syscall_ns", TIME, "into the kernel and out again"),
    field("kernel.futex_wake_ns", TIME, "what a waker pays per woken thread"),
    field("kernel.wake_latency_ns", TIME, "from being woken to running"),
    field("kernel.context_switch_ns", TIME, "from one ready thread to another"),
    field("kernel.page_fault_ns", TIME, "the first touch of a page"),
    field("kernel.time_slice_ns", TIME, "how long a thread runs while another is ready"),
    field("kernel.timer_slack_ns", TIME, "how much later a sleep ends than asked for"),
    field("kernel.interrupt_ns", TIME, "an interrupt to other cores until all have answered"),
];
