//! What memory, the ways between sockets and a core's own requests deliver: a line at a time.

use crate::machine::Machine;
use crate::time::{NANOSECOND, Time};

/// When each of them has delivered what was asked for.
#[derive(Debug)]
pub(crate) struct Bandwidth {
    /// By node: its memory.
    nodes: Vec<Channel>,
    /// By socket: what comes in from others.
    links: Vec<Channel>,
    /// By core of the run.
    cores: Vec<Channel>,
    sockets: Vec<usize>,
}

#[derive(Debug, Clone, Copy)]
struct Channel {
    /// The time of a line.
    line: Time,
    free: Time,
}

impl Channel {
    fn new(gb_per_s: f64) -> Self {
        Self { line: (64.0 / gb_per_s * NANOSECOND as f64) as Time, free: 0 }
    }

    /// Lets a line through that is there at `now`; gives when it is through.
    fn pass(&mut self, now: Time) -> Time {
        self.free = self.free.max(now) + self.line;
        self.free
    }
}

impl Bandwidth {
    pub(crate) fn new(machine: &Machine, cores: usize) -> Self {
        let link = machine.link_gb_per_s().unwrap_or(f64::INFINITY);
        let nodes = machine.nodes();
        let of_node = |node: usize| match machine.memory_only_gb_per_s() {
            Some(rate) if node >= machine.cpu_nodes() => Channel::new(rate),
            _ => Channel::new(machine.node_gb_per_s()),
        };
        Self {
            nodes: (0..nodes).map(of_node).collect(),
            links: vec![Channel::new(link); machine.sockets()],
            cores: vec![Channel::new(machine.core_gb_per_s()); cores],
            sockets: (0..nodes).map(|node| machine.socket_of_node(node)).collect(),
        }
    }

    /// Gives how much longer than an idle machine's latency a line takes that a core of a socket
    /// asks a node for.
    pub(crate) fn wait(&mut self, core: usize, socket: usize, node: usize, now: Time) -> Time {
        let mut there = self.nodes[node].pass(now);
        if self.sockets[node] != socket {
            there = there.max(self.links[socket].pass(now));
        }
        there.max(self.cores[core].pass(now)) - now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_narrowest_part_decides() {
        let machine = Machine::named("epyc-7742-2s").unwrap();
        let mut bandwidth = Bandwidth::new(&machine, 64);
        let rate = |gb_per_s: f64| (64e3 / gb_per_s) as Time;
        let mut last = |cores: usize, node: usize| {
            let begin = 1 << 40;
            let waits = (0..6400).map(|i| bandwidth.wait(i % cores, 0, node, begin));
            waits.max().unwrap() / 6400
        };
        let near = |one: Time, other: Time| one.abs_diff(other) * 100 <= other;
        assert!(near(last(1, 0), rate(machine.core_gb_per_s())));
        let mut bandwidth = Bandwidth::new(&machine, 64);
        let mut last = |cores: usize, node: usize| {
            let begin = 1 << 40;
            let waits = (0..6400).map(|i| bandwidth.wait(i % cores, 0, node, begin));
            waits.max().unwrap() / 6400
        };
        assert!(near(last(64, 0), rate(machine.node_gb_per_s())));
        assert!(near(last(64, 1), rate(machine.link_gb_per_s().unwrap())));
    }
}
