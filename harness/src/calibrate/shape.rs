//! The host's shape in the words of a machine file, in which all groups are alike.

use simulator::machine::{Confidence, FigureValue};
use topology::Topology;

use super::{Found, is_virtual};

/// Counts of the CPUs that are online.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) sockets: usize,
    pub(super) nodes_per_socket: usize,
    pub(super) groups_per_socket: usize,
    pub(super) cores_per_group: usize,
    pub(super) threads_per_core: usize,
    /// Whether the host really is made of such equal parts.
    even: bool,
}

impl Shape {
    pub(super) fn of(host: &Topology) -> Shape {
        let cores = host.cores.len().max(1);
        let sockets = host.packages.len().clamp(1, 64);
        let groups = host.l3_groups().len().max(sockets);
        let groups_per_socket = groups.div_ceil(sockets);
        let cores_per_group = cores.div_ceil(groups_per_socket * sockets);
        let threads_per_core =
            host.cores.iter().map(|core| core.smt_width()).max().unwrap_or(1).clamp(1, 8);
        let nodes = host.numa_nodes.iter().filter(|node| node.is_cpuless() != Some(true)).count();
        let nodes_per_socket = nodes.max(1).div_ceil(sockets);
        let in_socket = groups_per_socket * cores_per_group;
        let divided = in_socket.is_multiple_of(nodes_per_socket)
            && (groups_per_socket.is_multiple_of(nodes_per_socket)
                || nodes_per_socket.is_multiple_of(groups_per_socket));
        let even = sockets * in_socket == cores
            && divided
            && sockets * in_socket * threads_per_core == host.cpus.online.len();
        let nodes_per_socket = if divided { nodes_per_socket } else { 1 };
        Shape {
            sockets,
            nodes_per_socket,
            groups_per_socket,
            cores_per_group,
            threads_per_core,
            even,
        }
    }

    pub(super) fn enter(self, host: &Topology, found: &mut Found) {
        let (mut how, trust) = match self.even {
            true => ("sysfs".to_owned(), Confidence::Measured),
            false => ("sysfs; the parts of this host are uneven, and these are equal ones that hold as many CPUs".to_owned(), Confidence::Derived),
        };
        if is_virtual(host) {
            how += ", as the hypervisor shows it";
        }
        for (field, count) in [
            ("topology.sockets", self.sockets),
            ("topology.nodes_per_socket", self.nodes_per_socket),
            ("topology.l3_groups_per_socket", self.groups_per_socket),
            ("topology.cores_per_l3_group", self.cores_per_group),
            ("topology.threads_per_core", self.threads_per_core),
        ] {
            found.put(field, FigureValue::Count(count), &how, trust);
        }
        match host
            .line_bytes()
            .filter(|bytes| (16..=1024).contains(bytes) && bytes.is_power_of_two())
        {
            Some(bytes) => found.put(
                "cache.line_bytes",
                FigureValue::Count(bytes as usize),
                "sysfs",
                Confidence::Measured,
            ),
            None => found.missing(&["cache.line_bytes"], "the kernel does not tell"),
        }
    }

    /// Whether a machine of this shape has the field.
    pub(super) fn has(self, field: &str) -> bool {
        match field {
            "transfer.smt_ns" | "core.smt_share" => self.threads_per_core > 1,
            "transfer.same_socket_ns" => self.groups_per_socket > 1,
            "transfer.cross_socket_ns" | "memory.remote_ns" | "memory.link_gb_per_s" => {
                self.sockets > 1
            }
            _ => true,
        }
    }
}
