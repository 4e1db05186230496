//! Files that tell of NUMA nodes: those of the simulated machine, in place of the host's.

use std::fs;

use super::files::pass;
use super::{Call, Caller, Errno, Kernel, Reply, get, perform, value};

/// Where the kernel lists nodes.
const NODES: &str = "/sys/devices/system/node/";

/// The files there that hold a list of nodes. Every simulated node has CPUs and memory.
const LISTS: [&str; 5] = ["online", "possible", "has_cpu", "has_memory", "has_normal_memory"];

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
        let list = if nodes == 1 { "0".to_owned() } else { format!("0-{}", nodes - 1) };
        if path.strip_prefix(NODES).is_some_and(|name| LISTS.contains(&name)) {
            return Some(format!("{list}\n"));
        }
        if !STATUS.contains(&path) {
            return None;
        }
        let mut told = String::new();
        for line in fs::read_to_string(path).ok()?.lines() {
            told.push_str(&match line.split_once(':') {
                Some(("Mems_allowed", _)) => format!("Mems_allowed:\t{}", mask(nodes)),
                Some(("Mems_allowed_list", _)) => format!("Mems_allowed_list:\t{list}"),
                _ => line.to_owned(),
            });
            told.push('\n');
        }
        Some(told)
    }
}

/// Writes the first `nodes` nodes as the kernel writes masks: words of 32 bits, the highest first.
fn mask(nodes: usize) -> String {
    let word = |at: usize| u32::MAX >> (32 - (nodes - at * 32).min(32));
    let words = (0..nodes.div_ceil(32)).rev().map(|at| format!("{:08x}", word(at)));
    words.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_are_written_as_the_kernel_does() {
        assert_eq!(mask(1), "00000001");
        assert_eq!(mask(8), "000000ff");
        assert_eq!(mask(32), "ffffffff");
        assert_eq!(mask(33), "00000001,ffffffff");
    }
}
