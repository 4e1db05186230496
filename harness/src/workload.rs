//! What the threads of a point do, in the words of the command line and of records.

use std::fmt;

use serde_json::{Map, Value, json};
use simulator::machine::Machine;
use topology::Topology;

use crate::latency::Load;
use crate::memory::Policy;
use crate::unavailable::Unavailable;

/// What the threads of a point do, in the words of the command line.
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    /// Nanoseconds of work inside a critical section.
    pub critical_ns: u64,
    /// Nanoseconds of work between two operations.
    pub think_ns: u64,
    /// Of 100 operations, how many only read.
    pub read_percent: u64,
    /// Threads that push; half of the threads if not said.
    pub producers: Option<usize>,
    /// Threads that pop; the others if not said.
    pub consumers: Option<usize>,
    /// Slots of a queue.
    pub capacity: usize,
    /// Bytes of a queue's element.
    pub element_bytes: usize,
    /// Bytes of an allocation.
    pub alloc_bytes: usize,
    /// Bytes of each thread's arena.
    pub arena_bytes: usize,
    /// Where pages shall lie.
    pub memory: Memory,
    /// Whether single operations are timed too, and when they are asked for.
    pub latency: Option<Load>,
}

impl Default for Workload {
    fn default() -> Self {
        Self {
            critical_ns: 0,
            think_ns: 0,
            read_percent: 0,
            producers: None,
            consumers: None,
            capacity: 1024,
            element_bytes: 8,
            alloc_bytes: 64,
            arena_bytes: 64 << 10,
            memory: Memory::Local,
            latency: None,
        }
    }
}

impl Workload {
    /// Gives the words that matter to `primitive`, as records carry them.
    pub fn words(&self, primitive: &str) -> Map<String, Value> {
        let mut words = vec![("think_ns", json!(self.think_ns))];
        match primitive {
            "locks" => {
                words.push(("critical_ns", json!(self.critical_ns)));
                if self.read_percent > 0 {
                    words.push(("read_percent", json!(self.read_percent)));
                }
            }
            "counters" => words.push(("read_percent", json!(self.read_percent))),
            "queues" => {
                words.push(("capacity", json!(self.capacity)));
                words.push(("element_bytes", json!(self.element_bytes)));
                let sides = [("producers", self.producers), ("consumers", self.consumers)];
                words.extend(sides.into_iter().filter_map(|(word, n)| Some((word, json!(n?)))));
            }
            _ => {
                words.push(("alloc_bytes", json!(self.alloc_bytes)));
                words.push(("arena_bytes", json!(self.arena_bytes)));
            }
        }
        words.push(("memory", json!(self.memory.to_string())));
        if let Some(load) = self.latency {
            words.push(("latency", json!(load.to_string())));
            if let Load::Open { per_s } = load {
                words.push(("rate_per_s", json!(per_s)));
            }
        }
        words.into_iter().map(|(word, value)| (word.to_owned(), value)).collect()
    }
}

/// Where pages shall lie, seen from the threads that use them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Memory {
    /// On the thread's own node.
    Local,
    /// On the node farthest from the thread's own.
    Remote,
    /// In turn on every node with memory.
    Interleave,
    /// On this node.
    Node(u32),
}

impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local => f.write_str("local"),
            Self::Remote => f.write_str("remote"),
            Self::Interleave => f.write_str("interleave"),
            Self::Node(node) => write!(f, "node={node}"),
        }
    }
}

impl std::str::FromStr for Memory {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        match word {
            "local" => Ok(Self::Local),
            "remote" => Ok(Self::Remote),
            "interleave" => Ok(Self::Interleave),
            _ => word
                .strip_prefix("node=")
                .and_then(|node| node.parse().ok())
                .map(Self::Node)
                .ok_or_else(|| {
                    format!("unknown memory `{word}`; one of local, remote, interleave, node=N")
                }),
        }
    }
}

impl Memory {
    /// Gives the policy for memory used from `node`; `None` is a machine without node numbers.
    ///
    /// # Errors
    /// `one_node` when another node is asked for and there is none.
    pub fn policy(self, topology: &Topology, node: Option<u32>) -> Result<Policy, Unavailable> {
        let with_memory: Vec<u32> = topology
            .numa_nodes
            .iter()
            .filter(|node| node.is_memoryless() != Some(true))
            .map(|node| node.id)
            .collect();
        match self {
            Self::Node(node) => Ok(Policy::Node(node)),
            Self::Local => Ok(node
                .filter(|node| with_memory.contains(node))
                .map_or(Policy::FirstTouch, Policy::Prefer)),
            Self::Remote | Self::Interleave => {
                let far = |one, other| topology.distance(one, other).map(u64::from);
                self.elsewhere(with_memory, node, far)
            }
        }
    }

    /// Gives the policy for memory used from a CPU of a simulated machine.
    ///
    /// # Errors
    /// `one_node` when another node is asked for and there is none, `node_absent`.
    pub fn policy_on(self, machine: &Machine, cpu: u32) -> Result<Policy, Unavailable> {
        let has = |node: &u32| machine.has_memory(*node as usize);
        let with_memory: Vec<u32> = (0..machine.nodes() as u32).filter(has).collect();
        match self {
            Self::Local => Ok(Policy::FirstTouch),
            Self::Node(node) if with_memory.contains(&node) => Ok(Policy::Node(node)),
            Self::Node(node) => Err(Unavailable::because(
                "node_absent",
                format!(
                    "{} has no memory on a node {node}; choose one of {with_memory:?}",
                    machine.name()
                ),
            )),
            Self::Remote | Self::Interleave => {
                let far = |_, other| Some(machine.memory_ps(cpu, other as usize));
                self.elsewhere(with_memory, Some(machine.node_of(cpu) as u32), far)
            }
        }
    }

    /// Gives the policy for memory on another node than the thread's own, or on all.
    fn elsewhere(
        self,
        with_memory: Vec<u32>,
        node: Option<u32>,
        distance: impl Fn(u32, u32) -> Option<u64>,
    ) -> Result<Policy, Unavailable> {
        if with_memory.len() < 2 {
            return Err(Unavailable::because(
                "one_node",
                "this machine has memory on one node; take --memory local, or --engine simulated \
                 with a --machine of several nodes, epyc-7742-2s say",
            ));
        }
        if self == Self::Interleave {
            return Ok(Policy::Interleave(with_memory));
        }
        let others = with_memory.into_iter().filter(|&other| Some(other) != node);
        let farthest = others.max_by_key(|&other| {
            (node.and_then(|node| distance(node, other)), std::cmp::Reverse(other))
        });
        farthest.map(Policy::Node).ok_or_else(|| Unavailable::new("one_node"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_a_simulated_machine() {
        let of = |machine: &str, memory: Memory, cpu| {
            memory.policy_on(&Machine::named(machine).unwrap(), cpu)
        };
        let two = |memory, cpu| of("epyc-7742-2s", memory, cpu).unwrap();
        assert_eq!(two(Memory::Local, 64), Policy::FirstTouch);
        assert_eq!(two(Memory::Remote, 0), Policy::Node(1));
        assert_eq!(two(Memory::Remote, 64), Policy::Node(0));
        assert_eq!(two(Memory::Node(1), 64), Policy::Node(1));
        assert_eq!(two(Memory::Interleave, 0), Policy::Interleave(vec![0, 1]));
        let eight = |memory, cpu| of("xeon-8176-8s", memory, cpu).unwrap();
        assert_eq!(eight(Memory::Remote, 0), Policy::Node(1), "all others are as far: the first");
        assert_eq!(eight(Memory::Interleave, 0), Policy::Interleave((0..8).collect()));
        let code = |machine, memory| of(machine, memory, 0).unwrap_err().code;
        assert_eq!(code("epyc-7742-2s", Memory::Node(2)), "node_absent");
        assert_eq!(code("graviton2", Memory::Node(1)), "node_absent");
        assert_eq!(code("graviton2", Memory::Remote), "one_node");
        assert_eq!(code("graviton2", Memory::Interleave), "one_node");
        let why = of("graviton2", Memory::Remote, 0).unwrap_err().to_string();
        assert!(why.contains("epyc-7742-2s") && why.contains("--memory local"), "{why}");
    }
}
