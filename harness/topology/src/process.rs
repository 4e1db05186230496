//! What this process may use: its affinity and its status file.

use std::io;

use crate::cgroup::own_file;
use crate::cpuset::{CpuSet, MAX_CPU, NodeSet};
use crate::error::TopologyError;
use crate::sysfs::Tree;

/// Bits of one word of the kernel's mask.
const WORD_BITS: usize = libc::c_ulong::BITS as usize;

/// Asks the kernel for the CPUs that the calling thread may run on.
///
/// The mask grows until the kernel accepts it, so CPU numbers beyond 1024 are fine.
pub(crate) fn affinity() -> Result<CpuSet, TopologyError> {
    let mut words = 1024 / WORD_BITS;
    loop {
        match affinity_into(words) {
            Ok(mask) => return Ok(to_set(&mask)),
            Err(libc::EINVAL) if words * WORD_BITS <= MAX_CPU as usize => words *= 2,
            Err(errno) => return Err(TopologyError::Affinity { errno }),
        }
    }
}

/// Makes the system call with a mask of so many words; the error is the errno.
fn affinity_into(words: usize) -> Result<Vec<libc::c_ulong>, i32> {
    let mut mask: Vec<libc::c_ulong> = vec![0; words];
    let bytes = size_of_val(mask.as_slice());
    // SAFETY: the mask is a live, writable and aligned buffer of `bytes` bytes, and the kernel
    // writes no more than that; any bit pattern is a valid word.
    let status = unsafe { libc::sched_getaffinity(0, bytes, mask.as_mut_ptr().cast()) };
    match status {
        0 => Ok(mask),
        _ => Err(io::Error::last_os_error().raw_os_error().unwrap_or(libc::EINVAL)),
    }
}

fn to_set(mask: &[libc::c_ulong]) -> CpuSet {
    let bits = (0..mask.len() * WORD_BITS)
        .filter(|bit| mask[bit / WORD_BITS] & (1 << (bit % WORD_BITS)) != 0);
    // The mask never grows beyond the limit of the set, so nothing is cut off.
    CpuSet::from_ids(bits.filter_map(|bit| u32::try_from(bit).ok())).unwrap_or_default()
}

/// Holds the two lists of a status file.
pub(crate) struct Status {
    pub(crate) path: String,
    pub(crate) cpus: Option<CpuSet>,
    pub(crate) mems: Option<NodeSet>,
}

/// Reads `Cpus_allowed_list` and `Mems_allowed_list`.
pub(crate) fn status(tree: &Tree) -> Option<Status> {
    let path = own_file(tree, "status");
    let text = tree.read(&path).ok()?;
    let list = |key: &str| {
        let value = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
        CpuSet::parse_list(value)
            .map_err(|error| tree.damaged(&path, format!("{key}: {error}")))
            .ok()
    };
    let (cpus, mems) = (list("Cpus_allowed_list"), list("Mems_allowed_list"));
    Some(Status { cpus, mems, path })
}

/// Asks for the page size in bytes.
pub(crate) fn page_bytes() -> Option<u64> {
    // SAFETY: sysconf takes a plain number and touches no memory of ours.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    u64::try_from(bytes).ok().filter(|&bytes| bytes > 0)
}

#[cfg(test)]
mod tests {
    use super::{affinity, affinity_into, to_set};

    #[test]
    fn the_mask_grows_until_it_fits() {
        assert_eq!(affinity_into(0).unwrap_err(), libc::EINVAL);
        let small = affinity().unwrap();
        assert!(!small.is_empty());
        assert_eq!(to_set(&affinity_into(1 << 14).unwrap()), small);
    }

    #[test]
    fn bits_become_numbers() {
        let mut mask = vec![0; 20];
        mask[0] = 0b1010;
        mask[1_030 / super::WORD_BITS] |= 1 << (1_030 % super::WORD_BITS);
        assert_eq!(to_set(&mask).to_string(), "1,3,1030");
    }
}
