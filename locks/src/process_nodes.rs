//! The nodes of this process for queued spin locks.

use crate::qspin::{QueueNode, QueueNodes};
use crate::topology::{CpuBlocks, Topology};

const NODES: usize = 256;

/// Names the one table of the process: 256 nodes of 128 bytes, the first choice by the CPU's number.
#[derive(Debug, Clone, Copy, Default)]
pub struct ProcessNodes;

static TABLE: [QueueNode; NODES] = [const { QueueNode::new() }; NODES];

impl QueueNodes for ProcessNodes {
    fn nodes() -> &'static [QueueNode] {
        &TABLE
    }

    fn begin() -> usize {
        CpuBlocks::<1, 1, NODES>.group(0)
    }
}
