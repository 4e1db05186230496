//! Fewer or more cores than the machine file describes.

use super::error::MachineError;
use super::shape::{Places, Shape};
use super::{MAX_CORES, Machine};

pub(super) fn with_cores(machine: &Machine, cores: usize) -> Result<Machine, MachineError> {
    let refused = |reason: String| MachineError::Cores {
        machine: machine.name.clone(),
        asked: cores,
        reason,
    };
    if cores == 0 {
        return Err(refused("at least one core is needed".into()));
    }
    if cores > MAX_CORES {
        return Err(refused(format!("the limit is {MAX_CORES}")));
    }
    let mut scaled = machine.clone();
    if cores > machine.shape.threads() {
        scaled.shape = grown(&machine.shape, cores);
        scaled.grown = true;
        if scaled.shape.threads() > MAX_CORES {
            return Err(refused(format!(
                "whole L3 groups in each socket would make {} hardware threads, and the limit is \
                 {MAX_CORES}",
                scaled.shape.threads()
            )));
        }
    }
    scaled.places = Places::new(&scaled.shape, cores);
    Ok(scaled)
}

/// The smallest shape that has so many threads and is made of the same parts: more L3 groups in
/// each socket, in multiples of its nodes; more cores where a socket is one group.
fn grown(shape: &Shape, cores: usize) -> Shape {
    let per_socket = cores.div_ceil(shape.threads_per_core).div_ceil(shape.sockets);
    let nodes = shape.nodes_per_socket;
    if shape.l3_groups_per_socket == 1 {
        return Shape { cores_per_l3_group: per_socket.next_multiple_of(nodes), ..*shape };
    }
    let step = if shape.l3_groups_per_socket.is_multiple_of(nodes) { nodes } else { 1 };
    let mut groups = per_socket.div_ceil(shape.cores_per_l3_group).next_multiple_of(step);
    // Nodes smaller than a group: their number has to stay a multiple of the number of groups.
    while step == 1 && nodes > 1 && !groups.is_multiple_of(nodes) {
        groups += 1;
    }
    Shape { l3_groups_per_socket: groups, ..*shape }
}
