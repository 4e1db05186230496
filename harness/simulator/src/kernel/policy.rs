//! NUMA policies: which node a page goes to when it is touched for the first time.

use super::cpu_set::NodeSet;
use super::{Errno, Kernel, PAGE_BYTES};

use crate::machine::Machine;

/// A policy of a thread or of a range of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Policy {
    mode: Mode,
    /// The mode flags that came with the mode, which questions give back.
    flags: i32,
    nodes: NodeSet,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Default,
    Preferred,
    Bind,
    Interleave,
    Local,
    PreferredMany,
}

const MODES: [(i32, Mode); 7] = [
    (libc::MPOL_DEFAULT, Mode::Default),
    (libc::MPOL_PREFERRED, Mode::Preferred),
    (libc::MPOL_BIND, Mode::Bind),
    (libc::MPOL_INTERLEAVE, Mode::Interleave),
    (libc::MPOL_LOCAL, Mode::Local),
    (5, Mode::PreferredMany),
    // Weighted interleaving: all nodes of a machine file are alike, so all weights are.
    (6, Mode::Interleave),
];

const STATIC_NODES: i32 = 1 << 15;
const RELATIVE_NODES: i32 = 1 << 14;
const BALANCING: i32 = 1 << 13;

impl Default for Policy {
    fn default() -> Self {
        Policy { mode: Mode::Default, flags: 0, nodes: NodeSet::default() }
    }
}

impl Policy {
    /// Makes the policy that a call asks for, on a machine on which these nodes have memory.
    pub(super) fn asked(mode: i32, nodes: NodeSet, there: NodeSet) -> Result<Policy, Errno> {
        let flags = mode & (STATIC_NODES | RELATIVE_NODES | BALANCING);
        let found = MODES.iter().find(|(number, _)| *number == mode & !flags);
        let mode = found.ok_or(Errno(libc::EINVAL))?.1;
        let contradictory = flags & STATIC_NODES != 0 && flags & RELATIVE_NODES != 0;
        if contradictory || flags & BALANCING != 0 && mode != Mode::Bind {
            return Err(Errno(libc::EINVAL));
        }
        let usable = if flags & RELATIVE_NODES != 0 {
            let nth = |node: u32| there.iter().nth(node as usize % there.len());
            nodes.iter().filter_map(nth).collect()
        } else {
            nodes.intersection(&there)
        };
        let fits = match mode {
            Mode::Default | Mode::Local => nodes.is_empty(),
            Mode::Preferred => nodes.is_empty() || !usable.is_empty(),
            Mode::Bind | Mode::Interleave | Mode::PreferredMany => !usable.is_empty(),
        };
        if !fits {
            return Err(Errno(libc::EINVAL));
        }
        // Preferring no node is preferring the local one.
        let mode = if mode == Mode::Preferred && nodes.is_empty() { Mode::Local } else { mode };
        Ok(Policy { mode, flags, nodes: usable })
    }

    pub(super) fn is_default(&self) -> bool {
        self.mode == Mode::Default
    }

    pub(super) fn is_interleaving(&self) -> bool {
        self.mode == Mode::Interleave
    }

    /// The mode as calls have it, with its flags.
    pub(super) fn number(&self) -> i32 {
        let found = MODES.iter().find(|(_, mode)| *mode == self.mode);
        found.map_or(libc::MPOL_DEFAULT, |(number, _)| *number) | self.flags
    }

    pub(super) fn nodes(&self) -> &NodeSet {
        &self.nodes
    }

    /// The node on which a page goes that a CPU touches; `turn` is the page's number among those
    /// that are interleaved.
    pub(super) fn node_for(&self, machine: &Machine, cpu: u32, turn: u64) -> u16 {
        let listed = |node: usize| self.nodes.contains(node as u32);
        let node = match self.mode {
            Mode::Default | Mode::Local => None,
            Mode::Preferred => self.nodes.iter().next().map(|node| node as usize),
            Mode::Bind | Mode::PreferredMany => machine.nearest_memory(cpu, listed),
            Mode::Interleave => self.in_turn(turn),
        };
        let node = node.or_else(|| machine.nearest_memory(cpu, |_| true));
        node.unwrap_or_else(|| machine.node_of(cpu)) as u16
    }

    /// The node whose turn it is.
    pub(super) fn in_turn(&self, turn: u64) -> Option<usize> {
        let count = self.nodes.len().max(1) as u64;
        self.nodes.iter().nth((turn % count) as usize).map(|node| node as usize)
    }

    /// Says whether a page that is on this node is where the policy wants it.
    pub(super) fn allows(&self, node: u16) -> bool {
        match self.mode {
            Mode::Default | Mode::Local => true,
            _ => self.nodes.contains(u32::from(node)),
        }
    }
}

impl Kernel {
    /// Notes that a thread on a CPU touches a page (an address divided by the size of a page);
    /// gives the node that the page is on from the first touch.
    pub(crate) fn touch(&mut self, page: u64, thread: usize, cpu: u32) -> u16 {
        if let Some(home) = self.memory.home(page) {
            return home;
        }
        let node = match self.memory.policy(page * PAGE_BYTES) {
            Some(policy) => policy.node_for(&self.machine, cpu, page),
            None => {
                let thread = &mut self.threads[thread];
                let turn = thread.interleaved;
                if thread.policy.is_interleaving() {
                    thread.interleaved += 1;
                }
                thread.policy.node_for(&self.machine, cpu, turn)
            }
        };
        self.memory.set_home(page, node);
        node
    }

    /// Gives the node of a page, if it has been touched.
    pub(crate) fn home_of(&self, page: u64) -> Option<u16> {
        self.memory.home(page)
    }
}
