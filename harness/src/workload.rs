//! What the threads of a point do, in the words of the command line and of records.

use std::fmt;

use serde_json::{Map, Value, json};
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
            "locks" => words.push(("critical_ns", json!(self.critical_ns))),
            "counters" => words.push(("read_percent", json!(self.read_percent))),
            "queues" => {
                words.push(("capacity", json!(self.capacity)));
                words.push(("element_bytes", json!(self.element_bytes)));
                let sides = [("producers", self.producers), ("consumers", self.consumers)];
                words.extend(sides.into_iter().filter_map(|(word, n)| Some((word, json!(n?)))));
            }
            _ => words.push(("alloc_bytes", json!(self.alloc_bytes))),
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
        let one_node = || Unavailable::because("one_node", "this machine has memory on one node");
        match (self, node) {
            (Self::Node(node), _) => Ok(Policy::Node(node)),
            (Self::Local, Some(node)) if with_memory.contains(&node) => Ok(Policy::Prefer(node)),
            (Self::Local, _) => Ok(Policy::FirstTouch),
            (Self::Remote, node) => with_memory
                .iter()
                .copied()
                .filter(|&other| Some(other) != node)
                .max_by_key(|&other| {
                    let distance = node.and_then(|node| topology.distance(node, other));
                    (distance, std::cmp::Reverse(other))
                })
                .filter(|_| with_memory.len() > 1)
                .map(Policy::Node)
                .ok_or_else(one_node),
            (Self::Interleave, _) if with_memory.len() < 2 => Err(one_node()),
            (Self::Interleave, _) => Ok(Policy::Interleave(with_memory)),
        }
    }
}
