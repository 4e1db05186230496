//! Topologies: which threads are near one another, for locks that hand over nearby first.
//!
//! A lock asks at each acquisition, since threads migrate. A wrong answer costs time, never
//! exclusion: what a holder was told travels with it to its `unlock`.

use super::contract::ConstInit;

/// Tells the calling thread's group; a type parameter, and a value, of the NUMA-aware locks.
///
/// ```
/// use locks::{CohortLock, McsLock, Mutex, TicketLock, Topology};
///
/// /// Even CPUs are on one node, odd ones on the other.
/// struct Alternating(locks::CpuBlocks<1, 1, 64>);
/// impl Topology for Alternating {
///     fn group(&self, level: usize) -> usize {
///         self.0.group(level) % 2
///     }
/// }
/// type Lock = CohortLock<TicketLock, McsLock, Alternating, 2>;
/// let total = Mutex::<u64, Lock>::with_lock(Lock::on(Alternating(locks::CpuBlocks)), 0);
/// assert_eq!(total.with(|total| { *total += 1; *total }), 1);
/// ```
pub trait Topology: Send + Sync {
    /// The number of the calling thread's group: at level 0 the nearest (an L3 cache, say), at
    /// each further level one around it (a node). May be stale. A lock with fewer groups takes the
    /// number modulo theirs. Must not panic.
    fn group(&self, level: usize) -> usize;
}

/// Everybody is near everybody: a lock's behaviour without NUMA, for tests.
#[derive(Debug, Clone, Copy, Default)]
pub struct OneGroup;

impl ConstInit for OneGroup {
    const INIT: Self = Self;
}

impl Topology for OneGroup {
    #[inline(always)]
    fn group(&self, _level: usize) -> usize {
        0
    }
}

/// Groups of CPUs with consecutive numbers: `NEAR` of them at level 0, `FAR` at any other, of
/// `CPUS` numbers before they begin anew with the cores' second threads.
///
/// Two sockets of 64 cores, four to an L3 cache, are `CpuBlocks<4, 64, 128>`. Look at
/// `manycore topology` for how a machine numbers its CPUs: not all do it so.
///
/// The number is what Linux keeps in the time-stamp counter's auxiliary register on x86-64, read
/// by `rdtscp` without a system call (some 30 cycles). Elsewhere everybody is in group 0.
#[derive(Debug, Clone, Copy, Default)]
pub struct CpuBlocks<const NEAR: usize, const FAR: usize, const CPUS: usize>;

impl<const NEAR: usize, const FAR: usize, const CPUS: usize> CpuBlocks<NEAR, FAR, CPUS> {
    const FIT: () = assert!(
        NEAR > 0 && FAR >= NEAR && CPUS >= FAR,
        "a group has CPUs, a far group is no smaller than a near one and no larger than the machine"
    );
}

impl<const NEAR: usize, const FAR: usize, const CPUS: usize> ConstInit
    for CpuBlocks<NEAR, FAR, CPUS>
{
    const INIT: Self = Self;
}

impl<const NEAR: usize, const FAR: usize, const CPUS: usize> Topology
    for CpuBlocks<NEAR, FAR, CPUS>
{
    #[inline]
    fn group(&self, level: usize) -> usize {
        let () = Self::FIT;
        current_cpu() % CPUS / if level == 0 { NEAR } else { FAR }
    }
}

#[cfg(all(target_arch = "x86_64", target_os = "linux", not(miri)))]
#[inline]
fn current_cpu() -> usize {
    const NUMBER: u32 = (1 << 12) - 1; // above it is the node
    let mut auxiliary = 0;
    // SAFETY: every 64-bit x86 processor that runs a supported Linux has the instruction, and it
    // writes to a local.
    unsafe { core::arch::x86_64::__rdtscp(&raw mut auxiliary) };
    (auxiliary & NUMBER) as usize
}

#[cfg(not(all(target_arch = "x86_64", target_os = "linux", not(miri))))]
#[inline]
fn current_cpu() -> usize {
    0
}
