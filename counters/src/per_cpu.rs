//! Per-CPU counter: each CPU has a word that only what runs there writes, without an RMW.
//! # Algorithm
//! `rows` holds a pair of lines for each of `N` CPUs, with two words on its first line. `add` asks
//! `W` to add to the first word of the row of the CPU that the thread runs on, which `Rseq` does
//! in a restartable sequence: load the CPU's number, add, and if the kernel came between, neither.
//! Where that is not to be had, and each time the kernel came between, the thread adds to the
//! second word of the row that `W` names, with a `fetch_add`. No word is ever put back: `sum` is
//! the sum of all words less `taken`, and `take` moves `taken` up to the sum of the words with a
//! CAS.
//! # Why
//! Against `per_thread` it needs as many words as CPUs however many threads there are, none has to
//! be claimed or given back, and handlers of signals may add. Against `sharded` by CPU it removes
//! the RMW. It adds some instructions, a dependency on the kernel, and a second load a row to a
//! read.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `PerCpuCounter<N, W>` | 128 (N + 1) | 128 | 2 (N + 1) | each row: what runs on its CPU; `taken`: takers |
//! | `PerCpuCounter<128, W>` | 16512 | 128 | 258 | as above |
//!
//! 128 bytes are a pair of lines on x86-64 and AArch64.
//! # Cost
//! Add by `Rseq`: 2 loads and 2 stores in the thread's own lines and one unlocked add to memory on
//! 1 line, no RMW; no transfer until somebody reads. Without restartable sequences: what `CpuId`
//! costs and 1 RMW. Sum: 2 `N` + 1 loads on `N` + 1 lines. Take: the same and 1 RMW.
//! # Progress
//! Wait-free: a sequence that was interrupted is not begun again. A take is lock-free. A preempted
//! thread stops nobody.
//! # Invariants
//! - I1: the first word of a row is written on its CPU only, and nothing else runs there between
//!   the load and the store of an add to it.
//! - I2: a row's words hold the sum, modulo 2⁶⁴, of all adds made there, ever.
//! - I3: `taken` is the sum of what all takes gave.
//! # Synchronization
//! | edge | release side | acquire side | publishes |
//! |---|---|---|---|
//! | E1 | the kernel takes a thread from a CPU | the kernel lets the next one run there | the first word of the row (I1) |
//! | E2 | `take`, its CAS | `sum` and `take`, the load of `taken` and a failed CAS | the words that were read for it: a sum is not below what was taken |
//! # Errors and limits
//! Wraps modulo 2⁶⁴. No snapshot, as `sharded`. On CPUs whose number is not below `N`, which has to
//! be a power of two, adds are the atomic ones. No add is lost: a sequence adds with its last
//! instruction, which is executed on the row's CPU or not at all, so that nothing can come between
//! its load and its store; and it never meets an atomic add, which has a word of its own. That
//! supposes that the kernel knows the thread: a child of `vfork` before it executes a program, and
//! a thread made by a bare `clone` that shares its maker's thread pointer, must not add.
//! # References
//! P. Turner, A. Hunter, "Restartable Sequences", Linux Plumbers Conference, 2013; M. Desnoyers,
//! "rseq(2)", librseq. Differs from them in: one try, then an atomic add to another word.

use core::fmt;
use core::marker::PhantomData;

use crossbeam_utils::CachePadded;

use super::contract::{Counter, Drain, PLACE_STRIDE, Progress, Properties, ShardIndex};
use super::hot::{HotField, HotFields, Role};
use super::sync::atomic::{AtomicI64, Ordering};
use super::sync::const_fn;

/// What a [`PerCpuCounter`] keeps for a CPU: a word that only it writes, and one for atomic adds.
pub type CpuRow = [AtomicI64; PLACE_STRIDE];

/// Adds on the CPU that the calling thread runs on; names a CPU where it cannot.
///
/// An implementation promises that between the load and the store of an add nothing else adds to
/// the same word, and that each add sees the one before. A [`PerCpuCounter`] loses adds where that
/// is not so.
pub trait AddOnCpu: ShardIndex {
    /// Adds `n` to the first word of the row of a CPU, the calling thread's; `false` if it could
    /// not, and then has added nothing. Must not panic.
    fn add(rows: &[CpuRow], n: i64) -> bool;
}

/// Counts in a word a CPU; `W` is how one adds there.
///
/// ```
/// # #[cfg(feature = "std")] {
/// use counters::{AddWay, Counter, Drain, PerCpuCounter, Rseq};
/// static TOTAL: PerCpuCounter<128, Rseq> = PerCpuCounter::new();
/// std::thread::scope(|scope| {
///     for _ in 0..4 {
///         scope.spawn(|| TOTAL.add(1));
///     }
/// });
/// assert_eq!(TOTAL.take(), 4);
/// if Rseq::way() != AddWay::Restartable {
///     println!("this host has no restartable sequences: each add is atomic");
/// }
/// # }
/// ```
///
/// A number of CPUs that is no power of two is refused when the program is compiled:
///
/// ```compile_fail,E0080
/// let counter = counters::PerCpuCounter::<48, ()>::new();
/// ```
#[repr(C, align(128))]
pub struct PerCpuCounter<const N: usize, W> {
    rows: [CpuRow; N],
    taken: CachePadded<AtomicI64>,
    way: PhantomData<fn() -> W>,
}

impl<const N: usize, W> PerCpuCounter<N, W> {
    const MASK: usize = {
        assert!(N.is_power_of_two(), "the number of CPUs is a power of two");
        N - 1
    };

    const_fn! {
        /// Makes a counter at zero.
        pub fn new() -> Self {
            let _ = Self::MASK;
            Self {
                rows: [const { [const { AtomicI64::new(0) }; PLACE_STRIDE] }; N],
                taken: CachePadded::new(AtomicI64::new(0)),
                way: PhantomData,
            }
        }
    }

    /// Reads the total; may be stale, as [`Counter::sum`].
    #[inline]
    pub fn sum(&self) -> i64 {
        // ORDERING: Acquire, E2 - what was taken is in the words that are read after it.
        let taken = self.taken.load(Ordering::Acquire);
        self.counted().wrapping_sub(taken)
    }

    /// Adds up all that was ever added.
    fn counted(&self) -> i64 {
        let mut counted = 0_i64;
        for word in self.rows.iter().flat_map(|row| &row[..2]) {
            // ORDERING: Relaxed - coherence makes earlier adds visible, and E2 those that were
            // taken.
            counted = counted.wrapping_add(word.load(Ordering::Relaxed));
        }
        counted
    }

    /// Where the row of the CPU `cpu mod N` begins: its offset in bytes from the counter's start.
    pub const fn offset_of_shard(cpu: usize) -> usize {
        core::mem::offset_of!(Self, rows) + (cpu & Self::MASK) * size_of::<CpuRow>()
    }
}

impl<const N: usize, W: AddOnCpu> PerCpuCounter<N, W> {
    /// An add that the kernel interrupted, and each add where it does not help.
    #[inline(never)]
    fn add_atomically(&self, n: i64) {
        // ORDERING: Relaxed - atomicity keeps I2; the count publishes nothing.
        self.rows[W::current() & Self::MASK][1].fetch_add(n, Ordering::Relaxed);
    }
}

impl<const N: usize, W> Default for PerCpuCounter<N, W> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const N: usize, W: AddOnCpu> Counter for PerCpuCounter<N, W> {
    const PROPERTIES: Properties = Properties {
        progress: Progress::WaitFree,
        exact: true,
        linearizable: false,
        shards: 2 * N,
    };

    #[inline]
    fn add(&self, n: i64) {
        if !W::add(&self.rows, n) {
            self.add_atomically(n);
        }
    }

    #[inline]
    fn sum(&self) -> i64 {
        self.sum()
    }
}

impl<const N: usize, W> Drain for PerCpuCounter<N, W> {
    fn take(&self) -> i64 {
        // ORDERING: Acquire, E2 - as in `sum`.
        let mut taken = self.taken.load(Ordering::Acquire);
        loop {
            let counted = self.counted();
            // ORDERING: Release, E2 - whoever sees the new value sees the words read for it;
            // Acquire, E2, where another taker was faster.
            match self.taken.compare_exchange(taken, counted, Ordering::Release, Ordering::Acquire)
            {
                Ok(_) => return counted.wrapping_sub(taken),
                Err(others) => taken = others,
            }
        }
    }
}

impl<const N: usize, W> HotFields for PerCpuCounter<N, W> {
    const ALIGNMENT: usize = 128;
    const ALONE: bool = true;

    fn hot_fields(&self, visit: &mut dyn FnMut(HotField)) {
        const BECAUSE: &str = "an add that the kernel interrupted goes to the word beside, mostly on \
                               the same CPU: the line is there";
        let Self { rows, taken, way: _ } = self;
        for (cpu, row) in rows.iter().enumerate() {
            for (name, word) in ["words", "atomic words"].into_iter().zip(row) {
                let word = HotField::of(name, word).nth(cpu).padded_in(row);
                let word = word.written_by(Role::Nth("cpu", cpu)).read_by(Role::Many("readers"));
                visit(word.one_line("row", BECAUSE));
            }
        }
        let word = HotField::of("taken", &**taken).padded_in(taken);
        visit(word.written_by(Role::Many("takers")).read_by(Role::Many("readers")));
    }
}

impl<const N: usize, W> fmt::Debug for PerCpuCounter<N, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PerCpuCounter").field("sum", &self.sum()).finish_non_exhaustive()
    }
}
