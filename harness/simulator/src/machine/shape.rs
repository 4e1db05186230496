//! How the cores of a machine are arranged.

use super::MAX_CORES;

/// Says how far apart two cores are, nearest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Distance {
    /// The same hardware thread.
    Same,
    /// Two hardware threads of a core.
    Smt,
    /// Two cores that share an L3.
    SameL3,
    /// Two L3 groups of a socket.
    SameSocket,
    /// Two sockets.
    CrossSocket,
}

impl Distance {
    /// All distances, nearest first.
    pub const ALL: [Distance; 5] = [
        Distance::Same,
        Distance::Smt,
        Distance::SameL3,
        Distance::SameSocket,
        Distance::CrossSocket,
    ];
}

/// The counts of a file's `[topology]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) sockets: usize,
    pub(super) nodes_per_socket: usize,
    pub(super) l3_groups_per_socket: usize,
    pub(super) cores_per_l3_group: usize,
    pub(super) threads_per_core: usize,
    /// Further nodes, of memory without CPUs.
    pub(super) memory_only_nodes: usize,
    /// So many of the nodes with CPUs, the last ones, have no memory.
    pub(super) memoryless_nodes: usize,
}

impl Shape {
    pub(super) fn cores_per_socket(&self) -> usize {
        self.l3_groups_per_socket * self.cores_per_l3_group
    }

    pub(super) fn physical_cores(&self) -> usize {
        self.sockets * self.cores_per_socket()
    }

    pub(super) fn threads(&self) -> usize {
        self.physical_cores() * self.threads_per_core
    }

    pub(super) fn cpu_nodes(&self) -> usize {
        self.sockets * self.nodes_per_socket
    }

    /// Says what is contradictory: the fields, and why.
    pub(super) fn contradiction(&self) -> Option<(&'static str, String)> {
        let nodes = self.nodes_per_socket;
        let (groups, cores) = (self.l3_groups_per_socket, self.cores_per_socket());
        if self.threads() > MAX_CORES {
            return Some((
                "topology",
                format!("{} hardware threads are more than {MAX_CORES}", self.threads()),
            ));
        }
        if nodes > cores {
            return Some((
                "topology.nodes_per_socket",
                format!(
                    "{cores} cores of a socket leave {} of {nodes} nodes without CPUs",
                    nodes - cores
                ),
            ));
        }
        if !cores.is_multiple_of(nodes) {
            return Some((
                "topology.nodes_per_socket",
                format!("{cores} cores of a socket cannot be divided among {nodes} nodes"),
            ));
        }
        if !groups.is_multiple_of(nodes) && !nodes.is_multiple_of(groups) {
            return Some((
                "topology.nodes_per_socket",
                format!("{groups} L3 groups of a socket cannot be divided among {nodes} nodes"),
            ));
        }
        let with_cpus = self.cpu_nodes();
        if self.memoryless_nodes > with_cpus {
            return Some((
                "topology.memoryless_nodes",
                format!("{} are more than the {with_cpus} nodes with CPUs", self.memoryless_nodes),
            ));
        }
        if self.memoryless_nodes == with_cpus && self.memory_only_nodes == 0 {
            return Some(("topology.memoryless_nodes", "no node would have memory".into()));
        }
        None
    }
}

/// Where a hardware thread sits; each number is counted through the whole machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) socket: u16,
    pub(super) node: u16,
    pub(super) l3: u16,
    pub(super) core: u16,
}

/// The place of each hardware thread.
#[derive(Debug, Clone)]
pub(super) struct Places(Vec<Place>);

impl Places {
    /// Places the first `cores` hardware threads of a shape without contradictions.
    pub(super) fn new(shape: &Shape, cores: usize) -> Places {
        let (physical, in_socket) = (shape.physical_cores(), shape.cores_per_socket());
        let place = |cpu: usize| {
            let core = cpu % physical;
            let node_in_socket = core % in_socket * shape.nodes_per_socket / in_socket;
            Place {
                socket: (core / in_socket) as u16,
                node: (core / in_socket * shape.nodes_per_socket + node_in_socket) as u16,
                l3: (core / shape.cores_per_l3_group) as u16,
                core: core as u16,
            }
        };
        Places((0..cores).map(place).collect())
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    #[inline]
    pub(super) fn of(&self, cpu: u32) -> Place {
        self.0[cpu as usize]
    }

    #[inline]
    pub(super) fn distance(&self, a: u32, b: u32) -> Distance {
        let (one, other) = (self.of(a), self.of(b));
        if a == b {
            Distance::Same
        } else if one.core == other.core {
            Distance::Smt
        } else if one.l3 == other.l3 {
            Distance::SameL3
        } else if one.socket == other.socket {
            Distance::SameSocket
        } else {
            Distance::CrossSocket
        }
    }
}
