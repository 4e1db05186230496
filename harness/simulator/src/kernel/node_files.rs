//! Files that tell of NUMA nodes: those of the simulated machine, in place of the host's.

use std::fs;

use super::cpu_set::NodeSet;
use super::files::pass;
use super::{Call, Caller, Errno, Kernel, Reply, get, perform, value};

/// Where the kernel lists nodes.
const NODES: &str = "/sys/devices/system/node/";

/// The files there that list all nodes, and those that list the ones with memory; one lists those
/// with CPUs.
const ALL: [&str; 2] = ["online", "possible"];
const WITH_MEMORY: [&str; 2] = ["has_memory", "has_normal_memory"];
const WITH_CPUS: &str = "has_cpu";

/// What tells which nodes a process may use.
const STATUS: [&str; 2] = ["/proc/self/status", "/proc/thread-self/status"];

/// The longest path that is looked at.
const LONGEST: usize = 64;

/// Opens a file: the host's, or a copy that speaks of the simulated nodes.
pub(super) fn open(kernel: &mut Kernel, caller: Caller, call: &Call) -> Reply {
    let [first, second, third, ..] = call.arguments;
    let (path, flags) = match call.number as libc::c_long {
        libc::SYS_open => (first, second),
        _ => (second, third),
    };
    let reads = flags as i32 & libc::O_ACCMODE == libc::O_RDONLY;
    match path_at(path).and_then(|path| kernel.told_of_nodes(&path)) {
        Some(text) if reads => in_memory(&text, flags),
        _ => pass(kernel, caller, call),
    }
}

/// Reads a short path; nothing where there is none.
fn path_at(pointer: u64) -> Option<String> {
    let mut path = Vec::new();
    while path.len() < LONGEST {
        match get::<u8>(pointer.wrapping_add(path.len() as u64)).ok()? {
            0 => return String::from_utf8(path).ok(),
            byte => path.push(byte),
        }
    }
    None
}

/// Makes a file in memory that holds `text`.
fn in_memory(text: &str, flags: u64) -> Reply {
    let close = flags as i32 & libc::O_CLOEXEC != 0;
    let name = c"nodes".as_ptr().expose_provenance() as u64;
    let close = if close { u64::from(libc::MFD_CLOEXEC) } else { 0 };
    let file = perform(libc::SYS_memfd_create, &[name, close, 0, 0, 0, 0])?;
    let (start, bytes) = (text.as_ptr().expose_provenance() as u64, text.len() as u64);
    let number = file.cast_unsigned();
    match perform(libc::SYS_pwrite64, &[number, start, bytes, 0, 0, 0]) {
        Ok(written) if written.cast_unsigned() == bytes => value(file),
        other => {
            let _ = perform(libc::SYS_close, &[number, 0, 0, 0, 0, 0]);
            Err(other.err().unwrap_or(Errno(libc::EIO)))
        }
    }
}

impl Kernel {
    /// What a file says about nodes, if it is one that does and the host has it.
    fn told_of_nodes(&self, path: &str) -> Option<String> {
        let nodes = self.machine.nodes();
        let with_memory = self.nodes_with_memory();
        if let Some(name) = path.strip_prefix(NODES) {
            let listed = match name {
                WITH_CPUS => NodeSet::first(self.machine.cpu_nodes()),
                name if ALL.contains(&name) => NodeSet::first(nodes),
                name if WITH_MEMORY.contains(&name) => with_memory,
                _ => return None,
            };
            return Some(format!("{}\n", list(&listed)));
        }
        if !STATUS.contains(&path) {
            return None;
        }
        let mut told = String::new();
        for line in fs::read_to_string(path).ok()?.lines() {
            told.push_str(&match line.split_once(':') {
                Some(("Mems_allowed", _)) => {
                    format!("Mems_allowed:\t{}", mask(&with_memory, nodes))
                }
                Some(("Mems_allowed_list", _)) => {
                    format!("Mems_allowed_list:\t{}", list(&with_memory))
                }
                _ => line.to_owned(),
            });
            told.push('\n');
        }
        Some(told)
    }
}

/// Writes nodes as the kernel lists them: ranges of numbers.
fn list(nodes: &NodeSet) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for node in nodes.iter() {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == node => *last = node,
            _ => ranges.push((node, node)),
        }
    }
    let text = |&(first, last): &(u32, u32)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    ranges.iter().map(text).collect::<Vec<_>>().join(",")
}

/// Writes nodes, of so many, as the kernel writes masks: words of 32 bits, the highest first.
fn mask(nodes: &NodeSet, of: usize) -> String {
    let bit = |at: u32| u32::from(nodes.contains(at)) << (at % 32);
    let word = |at: u32| (at * 32..at * 32 + 32).map(bit).sum::<u32>();
    let words = (0..of.div_ceil(32) as u32).rev().map(|at| format!("{:08x}", word(at)));
    words.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_written_as_the_kernel_does() {
        assert_eq!(list(&NodeSet::first(1)), "0");
        assert_eq!(list(&NodeSet::first(8)), "0-7");
        assert_eq!(list(&[0, 1, 4, 6, 7].into_iter().collect()), "0-1,4,6-7");
    }

    #[test]
    fn masks_are_written_as_the_kernel_does() {
        let all = |nodes: usize| mask(&NodeSet::first(nodes), nodes);
        assert_eq!(all(1), "00000001");
        assert_eq!(all(8), "000000ff");
        assert_eq!(all(32), "ffffffff");
        assert_eq!(all(33), "00000001,ffffffff");
        assert_eq!(mask(&NodeSet::single(2), 3), "00000004");
    }
}
