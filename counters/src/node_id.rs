//! Shards chosen by the NUMA node that the thread runs on.
//! # Algorithm
//! `SOURCE` says once and for all where the number comes from, the first of these that there is:
//! `rdpid`, `rdtscp`, the system call `getcpu` (feature `libc`), the thread's slot.
//! # Why
//! Against `CpuId` it names as many shards as the machine has memories, for counters of which a
//! read has to be short.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `SOURCE` | 8 | 8 | 1 | the first use in the process |
//! # Cost
//! 1 load, 2 compares, and the source: `rdpid` 1 instruction; `rdtscp` 1, which waits for those
//! before it; `getcpu` a call of the kernel.
//! # Progress
//! Wait-free.
//! # Invariants
//! - I1: `SOURCE` names a source that there is in this process.
//! # Synchronization
//! none: a number is a hint. `SOURCE` is one word, and all threads find the same.
//! # Errors and limits
//! Numbers are the kernel's. [`NodeId::source`] says where they come from.
//! # References
//! Intel SDM volume 2, RDPID and RDTSCP; getcpu(2).

use crate::contract::ShardIndex;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
use crate::cpu_id::instruction;
use crate::cpu_id::{CpuSource, RDPID, RDTSCP, SLOT, UNKNOWN};
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::tls_slot::TlsSlot;

/// One of the tags; a call of the kernel is under [`SLOT`] too, and tried first.
static SOURCE: AtomicUsize = AtomicUsize::new(UNKNOWN);

/// The NUMA node that the calling thread runs on, or ran on a moment ago.
///
/// ```
/// use counters::{Counter, NodeCounter, NodeId};
/// static TOTAL: NodeCounter<16, NodeId> = NodeCounter::new();
/// TOTAL.add(1);
/// assert_eq!(TOTAL.sum(), 1);
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct NodeId;

impl NodeId {
    /// Tells where the numbers come from in this process; never [`CpuSource::Rseq`].
    pub fn source() -> CpuSource {
        match settled() {
            RDPID => CpuSource::Rdpid,
            RDTSCP => CpuSource::Rdtscp,
            _ if getcpu().is_some() => CpuSource::Getcpu,
            _ => CpuSource::ThreadSlot,
        }
    }
}

impl ShardIndex for NodeId {
    #[inline]
    fn current() -> usize {
        // ORDERING: Relaxed - one word, which says all.
        ask(SOURCE.load(Ordering::Relaxed)).unwrap_or_else(elsewhere)
    }
}

/// Asks a source that is an instruction.
#[inline(always)]
fn ask(source: usize) -> Option<usize> {
    match source {
        #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
        RDPID => Some(instruction::rdpid() >> instruction::CPU_BITS),
        #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
        RDTSCP => Some(instruction::rdtscp() >> instruction::CPU_BITS),
        _ => None,
    }
}

/// The first use in the process, and where no instruction tells the node.
#[cold]
fn elsewhere() -> usize {
    ask(settled()).or_else(getcpu).unwrap_or_else(TlsSlot::current)
}

/// Looks for the source, once.
fn settled() -> usize {
    // ORDERING: Relaxed - as in `current`.
    match SOURCE.load(Ordering::Relaxed) {
        UNKNOWN => {
            #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
            let source = instruction::find().unwrap_or(SLOT);
            #[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
            let source = SLOT;
            // ORDERING: Relaxed - whoever looks finds the same, so it does not matter who is first.
            SOURCE.store(source, Ordering::Relaxed);
            source
        }
        source => source,
    }
}

#[cfg(all(feature = "libc", target_os = "linux"))]
fn getcpu() -> Option<usize> {
    let (mut cpu, mut node) = (0_u32, 0_u32);
    // SAFETY: writes two words, which are there; the third argument is not used any more.
    let refused = unsafe { libc::syscall(libc::SYS_getcpu, &raw mut cpu, &raw mut node, 0_usize) };
    (refused == 0).then_some(node as usize)
}

#[cfg(not(all(feature = "libc", target_os = "linux")))]
fn getcpu() -> Option<usize> {
    None
}
