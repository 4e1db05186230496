//! Shards chosen by the CPU that the thread runs on, from the cheapest source that this host has.
//! # Algorithm
//! `SOURCE` says once and for all where the number comes from, the first of these that answers:
//! the area that the C library shares with the kernel for restartable sequences (feature `libc`),
//! `rdpid`, `rdtscp`, `sched_getcpu` (feature `libc`), the thread's slot. `current` asks it.
//! # Why
//! Against `TlsSlot` it needs as many shards as CPUs however many threads there are, and a thread
//! that moves finds a shard that is warm there. It adds the cost of the source, and that two
//! threads may use a shard at once: the one that was moved away still has its number.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `SOURCE` | 8 | 8 | 1 | the first use in the process |
//! # Cost
//! 1 load, 2 compares and the source: `rseq` 1 load; `rdpid` 1 instruction; `rdtscp` 1, which waits
//! for those before it; `sched_getcpu` a call, which may be one of the kernel.
//! # Progress
//! Wait-free.
//! # Invariants
//! - I1: `SOURCE` names a source that answered in this process.
//! # Synchronization
//! none: a number is a hint. `SOURCE` is one word, and all threads find the same.
//! # Errors and limits
//! Numbers are the kernel's, with gaps where it has some; counters take the remainder. A thread
//! that was not registered for restartable sequences asks the next source. [`CpuId::source`] says
//! which one is used: valgrind hides `rseq`, so counts under it are those of `rdtscp`.
//! # References
//! P. Turner, A. Hunter, "Restartable Sequences", Linux Plumbers Conference, 2013; the GNU C
//! Library manual, "Restartable Sequences"; Intel SDM volume 2, RDPID and RDTSCP.

use core::fmt;

use crate::contract::ShardIndex;
use crate::rseq_area as area;
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::tls_slot::TlsSlot;

/// What [`CpuId`] asks, and where: 0 before the first use, otherwise one of the tags, above which
/// stands the offset of the area for restartable sequences.
static SOURCE: AtomicUsize = AtomicUsize::new(UNKNOWN);

const TAG_BITS: u32 = 3;
const TAG: usize = (1 << TAG_BITS) - 1;
pub(crate) const UNKNOWN: usize = 0;
const RSEQ: usize = 1;
pub(crate) const RDPID: usize = 2;
pub(crate) const RDTSCP: usize = 3;
const GETCPU: usize = 4;
pub(crate) const SLOT: usize = 5;

/// The CPU that the calling thread runs on, or ran on a moment ago.
///
/// ```
/// use counters::{Counter, CpuId, CpuSource, ShardedCounter};
/// static TOTAL: ShardedCounter<128, CpuId> = ShardedCounter::new();
/// TOTAL.add(1);
/// assert_eq!(TOTAL.sum(), 1);
/// if CpuId::source() == CpuSource::ThreadSlot {
///     println!("this host does not tell its CPUs: shards go by thread");
/// }
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct CpuId;

/// Where the number of a CPU comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CpuSource {
    /// The area that the C library shares with the kernel for restartable sequences.
    Rseq,
    /// The instruction `rdpid`.
    Rdpid,
    /// The instruction `rdtscp`.
    Rdtscp,
    /// The C library's `sched_getcpu`.
    Getcpu,
    /// No source: the number is the thread's slot, no CPU.
    ThreadSlot,
}

impl CpuId {
    /// Tells where the numbers come from in this process.
    pub fn source() -> CpuSource {
        match settled() & TAG {
            RSEQ => CpuSource::Rseq,
            RDPID => CpuSource::Rdpid,
            RDTSCP => CpuSource::Rdtscp,
            GETCPU => CpuSource::Getcpu,
            _ => CpuSource::ThreadSlot,
        }
    }
}

impl fmt::Display for CpuSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Rseq => "rseq",
            Self::Rdpid => "rdpid",
            Self::Rdtscp => "rdtscp",
            Self::Getcpu => "sched_getcpu",
            Self::ThreadSlot => "thread slot",
        })
    }
}

impl ShardIndex for CpuId {
    #[inline]
    fn current() -> usize {
        // ORDERING: Relaxed - one word, which says all.
        let source = SOURCE.load(Ordering::Relaxed);
        match ask(source) {
            Some(cpu) => cpu,
            None => elsewhere(),
        }
    }
}

/// Asks a source that is an instruction or a load.
#[inline(always)]
fn ask(source: usize) -> Option<usize> {
    match source & TAG {
        RSEQ => area::cpu(source.cast_signed() >> TAG_BITS),
        #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
        RDPID => Some(instruction::rdpid() & instruction::CPU),
        #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
        RDTSCP => Some(instruction::rdtscp() & instruction::CPU),
        _ => None,
    }
}

/// The first use in the process, a source that is a call, and a thread that its source knows not.
#[cold]
fn elsewhere() -> usize {
    ask(settled()).or_else(getcpu).unwrap_or_else(TlsSlot::current)
}

/// Looks for the source, once.
fn settled() -> usize {
    // ORDERING: Relaxed - as in `current`.
    match SOURCE.load(Ordering::Relaxed) {
        UNKNOWN => {
            let source = look();
            // ORDERING: Relaxed - whoever looks finds the same, so it does not matter who is first.
            SOURCE.store(source, Ordering::Relaxed);
            source
        }
        source => source,
    }
}

/// Tries the sources in turn.
fn look() -> usize {
    if let Some(offset) = area::offset()
        && area::cpu(offset).is_some()
    {
        return (offset << TAG_BITS).cast_unsigned() | RSEQ;
    }
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    if let Some(tag) = instruction::find() {
        return tag;
    }
    if getcpu().is_some() { GETCPU } else { SLOT }
}

#[cfg(all(feature = "libc", target_os = "linux"))]
fn getcpu() -> Option<usize> {
    // SAFETY: a call without arguments.
    usize::try_from(unsafe { libc::sched_getcpu() }).ok()
}

#[cfg(not(all(feature = "libc", target_os = "linux")))]
fn getcpu() -> Option<usize> {
    None
}

/// What Linux leaves where two instructions read it: the CPU in the low 12 bits, the NUMA node above.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub(crate) mod instruction {
    use core::arch::asm;
    use core::arch::x86_64::{__cpuid, __cpuid_count};

    pub(crate) const CPU_BITS: u32 = 12;
    pub(crate) const CPU: usize = (1 << CPU_BITS) - 1;

    /// Finds the cheapest one that the CPU has.
    pub(crate) fn find() -> Option<usize> {
        if __cpuid(0).eax >= 7 && __cpuid_count(7, 0).ecx & 1 << 22 != 0 {
            return Some(super::RDPID);
        }
        let has_rdtscp =
            __cpuid(0x8000_0000).eax > 0x8000_0000 && __cpuid(0x8000_0001).edx & 1 << 27 != 0;
        has_rdtscp.then_some(super::RDTSCP)
    }

    #[inline(always)]
    pub(crate) fn rdpid() -> usize {
        let processor: u64;
        // SAFETY: `find` saw that the CPU has the instruction, which writes one register.
        unsafe {
            asm!("rdpid {}", out(reg) processor, options(nomem, nostack, preserves_flags));
        }
        processor as usize
    }

    #[inline(always)]
    pub(crate) fn rdtscp() -> usize {
        let processor: u64;
        // SAFETY: `find` saw that the CPU has the instruction, which writes three registers.
        unsafe {
            asm!(
                "rdtscp",
                out("rax") _,
                out("rcx") processor,
                out("rdx") _,
                options(nomem, nostack, preserves_flags),
            );
        }
        processor as usize
    }
}
