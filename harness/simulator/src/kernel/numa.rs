//! The calls that ask and decide on which node pages are: answered from the simulated page table,
//! never executed.

use libc::c_long;

use super::cpu_set::{NodeSet, WORDS};
use super::policy::Policy;
use super::scheduling::read_set;
use super::{Call, Caller, Errno, Handler, Kernel, PAGE_BYTES, Reply, get, perform, value};

/// The longest node mask that the real kernel takes, in bits.
const LONGEST_MASK: u64 = PAGE_BYTES * 8;

// Flags that the `libc` crate lacks: of `mbind` and `move_pages`, then of `get_mempolicy`.
const STRICT: u32 = 1 << 0;
const MOVE: u32 = 1 << 1;
const MOVE_ALL: u32 = 1 << 2;

const ASK_NODE: u32 = 1 << 0;
const ASK_ADDRESS: u32 = 1 << 1;
const ASK_ALLOWED: u32 = 1 << 2;

pub(super) fn handler(number: c_long) -> Option<Handler> {
    Some(match number {
        libc::SYS_set_mempolicy => |kernel, caller, call| {
            let [mode, mask, bits, ..] = call.arguments;
            let there = kernel.nodes_with_memory();
            let policy = Policy::asked(mode as i32, read_mask(mask, bits)?, there)?;
            kernel.threads[caller.thread].policy = policy;
            kernel.threads[caller.thread].interleaved = 0;
            value(0)
        },
        libc::SYS_get_mempolicy => get_mempolicy,
        libc::SYS_mbind => mbind,
        libc::SYS_move_pages => move_pages,
        _ => return None,
    })
}

/// Reads a node mask; the kernel counts its bits one too high.
fn read_mask(pointer: u64, bits: u64) -> Result<NodeSet, Errno> {
    let bits = bits.wrapping_sub(1);
    if pointer == 0 || bits == 0 || bits == u64::MAX {
        return Ok(NodeSet::default());
    }
    if bits > LONGEST_MASK {
        return Err(Errno(libc::EINVAL));
    }
    let kept = (bits as usize).min(WORDS * 64);
    // No machine has so many nodes.
    for byte in WORDS as u64 * 8..bits.div_ceil(8) {
        if get::<u8>(pointer.wrapping_add(byte))? != 0 {
            return Err(Errno(libc::EINVAL));
        }
    }
    read_set(pointer, kept)
}

/// Says whether every page of a range is mapped, by anybody.
fn is_mapped(start: u64, bytes: u64) -> bool {
    // Asks for nothing: the call has had no effect with this flag since Linux 2.6.19, but for
    // its check of the range.
    perform(libc::SYS_msync, &[start, bytes, libc::MS_ASYNC as u64, 0, 0, 0]).is_ok()
}

fn get_mempolicy(kernel: &mut Kernel, caller: Caller, call: &Call) -> Reply {
    let [mode, mask, bits, address, flags, ..] = call.arguments;
    let flags = flags as u32;
    let nodes = kernel.machine.nodes();
    if flags & !(ASK_NODE | ASK_ADDRESS | ASK_ALLOWED) != 0
        || mask != 0 && bits < nodes as u64
        || flags & ASK_ALLOWED != 0 && flags != ASK_ALLOWED
        || flags & ASK_ADDRESS == 0 && address != 0
    {
        return Err(Errno(libc::EINVAL));
    }
    if flags == ASK_ALLOWED {
        kernel.write_mask(mask, bits, kernel.nodes_with_memory())?;
        if mode != 0 {
            kernel.put(mode, 0_i32)?;
        }
        return value(0);
    }
    let own = kernel.threads[caller.thread].policy;
    let page = address / PAGE_BYTES;
    let policy = if flags & ASK_ADDRESS != 0 {
        if !is_mapped(page * PAGE_BYTES, PAGE_BYTES) {
            return Err(Errno(libc::EFAULT));
        }
        kernel.memory.policy(address).unwrap_or(own)
    } else {
        own
    };
    let answer = if flags & ASK_NODE == 0 {
        policy.number()
    } else if flags & ASK_ADDRESS != 0 {
        i32::from(kernel.touch(page, caller.thread, caller.cpu))
    } else if own.is_interleaving() {
        own.in_turn(kernel.threads[caller.thread].interleaved).unwrap_or(0) as i32
    } else {
        return Err(Errno(libc::EINVAL));
    };
    if mode != 0 {
        kernel.put(mode, answer)?;
    }
    kernel.write_mask(mask, bits, *policy.nodes())?;
    value(0)
}

fn mbind(kernel: &mut Kernel, caller: Caller, call: &Call) -> Reply {
    let [start, bytes, mode, mask, bits, flags] = call.arguments;
    let flags = flags as u32;
    if !start.is_multiple_of(PAGE_BYTES) || flags & !(STRICT | MOVE | MOVE_ALL) != 0 {
        return Err(Errno(libc::EINVAL));
    }
    let size = bytes.checked_next_multiple_of(PAGE_BYTES).ok_or(Errno(libc::EINVAL))?;
    let end = start.checked_add(size).ok_or(Errno(libc::EINVAL))?;
    let there = kernel.nodes_with_memory();
    let policy = Policy::asked(mode as i32, read_mask(mask, bits)?, there)?;
    if size == 0 {
        return value(0);
    }
    if !is_mapped(start, size) {
        return Err(Errno(libc::EFAULT));
    }
    let misplaced: Vec<u64> = kernel
        .memory
        .homes(start, end)
        .into_iter()
        .filter_map(|(page, node)| (!policy.allows(node)).then_some(page))
        .collect();
    if flags & STRICT != 0 && flags & (MOVE | MOVE_ALL) == 0 && !misplaced.is_empty() {
        return Err(Errno(libc::EIO));
    }
    kernel.memory.set_policy(start, end, (!policy.is_default()).then_some(policy));
    if flags & (MOVE | MOVE_ALL) != 0 {
        for page in misplaced {
            let node = policy.node_for(&kernel.machine, caller.cpu, page);
            kernel.migrate(page, node);
        }
    }
    value(0)
}

fn move_pages(kernel: &mut Kernel, _: Caller, call: &Call) -> Reply {
    let [pid, count, pages, nodes, status, flags] = call.arguments;
    if flags as u32 & !(MOVE | MOVE_ALL) != 0 {
        return Err(Errno(libc::EINVAL));
    }
    let pid = pid as i32;
    let own = pid == 0 || pid == std::process::id() as i32;
    if !own && !kernel.threads.iter().any(|thread| thread.tid == pid) {
        return Err(Errno(libc::ESRCH));
    }
    for index in 0..count {
        let address: u64 = get(pages.wrapping_add(index.wrapping_mul(8)))?;
        let page = address / PAGE_BYTES;
        let wanted = match nodes {
            0 => None,
            nodes => Some(get::<i32>(nodes.wrapping_add(index.wrapping_mul(4)))?),
        };
        let known =
            |node: i32| usize::try_from(node).is_ok_and(|node| kernel.machine.has_memory(node));
        if !wanted.is_none_or(known) {
            return Err(Errno(libc::ENODEV));
        }
        let found = match (kernel.memory.home(page), wanted) {
            (Some(_), Some(node)) => {
                kernel.migrate(page, node as u16);
                node
            }
            (Some(node), None) => i32::from(node),
            (None, _) if is_mapped(page * PAGE_BYTES, PAGE_BYTES) => -libc::ENOENT,
            (None, _) => -libc::EFAULT,
        };
        kernel.put(status.wrapping_add(index.wrapping_mul(4)), found)?;
    }
    value(0)
}

impl Kernel {
    /// The nodes that have memory.
    pub(super) fn nodes_with_memory(&self) -> NodeSet {
        let has = |node: &u32| self.machine.has_memory(*node as usize);
        (0..self.machine.nodes() as u32).filter(has).collect()
    }

    /// Moves a page to a node, which costs what a fault does.
    fn migrate(&mut self, page: u64, node: u16) {
        if self.memory.home(page) != Some(node) {
            self.memory.set_home(page, node);
            self.charge += self.machine.page_fault_ps();
        }
    }

    /// Writes a node mask of so many bits, in whole words; nothing where there is no pointer.
    fn write_mask(&mut self, pointer: u64, bits: u64, nodes: NodeSet) -> Result<(), Errno> {
        if pointer == 0 {
            return Ok(());
        }
        for index in 0..bits.min(LONGEST_MASK).div_ceil(64) {
            let word = nodes.words().get(index as usize).copied().unwrap_or(0);
            self.put(pointer.wrapping_add(index * 8), word)?;
        }
        Ok(())
    }
}
