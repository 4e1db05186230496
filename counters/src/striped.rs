//! Striped counter: one word until threads meet there, then more, up to one a core.
//! # Algorithm
//! `mask` + 1 of the `N` `cells` are in use, at first `START`, which is 1. `add` tries once to replace the cell
//! that its thread's probe names by the cell plus `n`, with a CAS. If that fails somebody else was
//! there: the thread gets another probe and tries again; if that fails too, twice as many cells
//! are in use from now on. `sum` adds up the cells in use, `take` swaps 0 into them.
//! # Why
//! Against `sharded` it removes the reads of words that nobody uses: a counter that few threads
//! add to is read with few loads, and threads need no numbers, since those who meet move apart. It
//! adds a load of `mask`, a CAS that may fail in place of an add that cannot, and a search whenever
//! threads come and go.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `StripedCounter<N, I, START>` | 128 (N + 1) | 128 | 2 (N + 1) | each cell: the threads whose probe names it; `mask`: who fails twice |
//! | `StripedCounter<128, I>` | 16512 | 128 | 258 | as above |
//!
//! 128 bytes are a pair of lines on x86-64 and AArch64; other targets pad to what their CPUs need.
//! # Cost
//! Add: the probe, 2 loads, 1 RMW on 1 line. Sum: as many loads as cells are in use, and 1. Take:
//! as many RMWs. Meeting another thread: 1 transfer, 1 failed RMW, a new probe.
//! # Progress
//! Lock-free: a CAS fails because another add succeeded. A preempted thread stops nobody.
//! # Invariants
//! - I1: each cell is the sum, modulo 2⁶⁴, of the adds that precede it in its modification order
//!   since the last swap of 0.
//! - I2: an add changes one cell, once, and that one is below a `mask` + 1 that it has read.
//! - I3: `mask` only grows.
//! # Synchronization
//! none: every access is relaxed. Who has synchronised with an add sees by coherence a `mask` as
//! large as the add saw (I3), and so reads its cell (I2); the cells are as the shards of `sharded`.
//! # Errors and limits
//! Wraps modulo 2⁶⁴. No snapshot, as `sharded`. Cells once in use stay so. All `N` cells are there
//! from the start: growing costs no allocation, and idle counters save none.
//! # References
//! D. Lea, `java.util.concurrent.atomic.Striped64` and `LongAdder`, JDK 8, 2014. Differs from it
//! in: cells that are part of the object, no separate base.

use core::fmt;
use core::marker::PhantomData;

use crossbeam_utils::CachePadded;

use super::contract::{Counter, Drain, Explicit, Progress, Properties, Reprobe};
use super::hot::{HotField, HotFields, Role};
use super::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use super::sync::const_fn;

/// Counts in up to `N` padded words, as many as threads have needed and at least `START`; `I` is
/// the thread's probe.
///
/// ```
/// # #[cfg(feature = "std")] {
/// use counters::{Counter, StripedCounter, TlsProbe};
/// static TOTAL: StripedCounter<64, TlsProbe> = StripedCounter::new();
/// TOTAL.add(3);
/// assert_eq!((TOTAL.sum(), TOTAL.cells_in_use()), (3, 1));
/// # }
/// ```
pub struct StripedCounter<const N: usize, I = Explicit, const START: usize = 1> {
    cells: [CachePadded<AtomicI64>; N],
    mask: CachePadded<AtomicUsize>,
    probe: PhantomData<fn() -> I>,
}

impl<const N: usize, I, const START: usize> StripedCounter<N, I, START> {
    const MASK: usize = {
        assert!(N.is_power_of_two(), "the number of cells is a power of two");
        assert!(START.is_power_of_two() && START <= N, "so is the number at the start");
        N - 1
    };

    const_fn! {
        /// Makes a counter at zero.
        pub fn new() -> Self {
            let _ = Self::MASK;
            Self {
                cells: [const { CachePadded::new(AtomicI64::new(0)) }; N],
                mask: CachePadded::new(AtomicUsize::new(START - 1)),
                probe: PhantomData,
            }
        }
    }

    /// Counts the cells that adds have needed so far; a read costs as many loads. May be stale.
    pub fn cells_in_use(&self) -> usize {
        // ORDERING: Relaxed - by I3 and coherence no cell of an earlier add is missed.
        (self.mask.load(Ordering::Relaxed) & Self::MASK) + 1
    }

    /// Reads the total; may be stale, as [`Counter::sum`].
    #[inline]
    pub fn sum(&self) -> i64 {
        let mut sum = 0_i64;
        for cell in &self.cells[..self.cells_in_use()] {
            // ORDERING: Relaxed - coherence alone makes earlier adds visible.
            sum = sum.wrapping_add(cell.load(Ordering::Relaxed));
        }
        sum
    }

    /// Adds to the cell that a probe names, unless somebody adds there meanwhile.
    #[inline(always)]
    fn try_add(&self, probe: usize, mask: usize, n: i64) -> bool {
        let cell = &self.cells[probe & mask & Self::MASK];
        // ORDERING: Relaxed - a hint; the CAS decides.
        let old = cell.load(Ordering::Relaxed);
        let new = old.wrapping_add(n);
        // ORDERING: Relaxed, both - atomicity keeps I1; the count publishes nothing.
        cell.compare_exchange(old, new, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Where the cell `cell mod N` lies: its offset in bytes from the counter's start.
    pub const fn offset_of_shard(cell: usize) -> usize {
        core::mem::offset_of!(Self, cells)
            + (cell & Self::MASK) * size_of::<CachePadded<AtomicI64>>()
    }
}

impl<const N: usize, I: Reprobe, const START: usize> StripedCounter<N, I, START> {
    /// Goes on after a first failure.
    #[cold]
    fn add_where_nobody_is(&self, n: i64) {
        loop {
            // ORDERING: Relaxed - any mask that was ever stored names cells of ours.
            let mask = self.mask.load(Ordering::Relaxed);
            if self.try_add(I::advance(), mask, n) {
                return;
            }
            if mask < Self::MASK {
                let more = 2 * mask + 1;
                // ORDERING: Relaxed, both - I3 is all that readers need. Who fails finds more.
                let _ =
                    self.mask.compare_exchange(mask, more, Ordering::Relaxed, Ordering::Relaxed);
            }
        }
    }
}

impl<const N: usize, I, const START: usize> Default for StripedCounter<N, I, START> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const N: usize, I: Reprobe, const START: usize> Counter for StripedCounter<N, I, START> {
    const PROPERTIES: Properties =
        Properties { progress: Progress::LockFree, exact: true, linearizable: false, shards: N };

    #[inline]
    fn add(&self, n: i64) {
        // ORDERING: Relaxed - any mask that was ever stored names cells of ours.
        let mask = self.mask.load(Ordering::Relaxed);
        if !self.try_add(I::current(), mask, n) {
            self.add_where_nobody_is(n);
        }
    }

    #[inline]
    fn sum(&self) -> i64 {
        self.sum()
    }
}

impl<const N: usize, I, const START: usize> Drain for StripedCounter<N, I, START> {
    fn take(&self) -> i64 {
        let mut taken = 0_i64;
        for cell in &self.cells[..self.cells_in_use()] {
            // ORDERING: Relaxed - by I2 each add stands before or after one swap in one
            // modification order, so it is in exactly one take.
            taken = taken.wrapping_add(cell.swap(0, Ordering::Relaxed));
        }
        taken
    }
}

impl<const N: usize, I, const START: usize> HotFields for StripedCounter<N, I, START> {
    const ALIGNMENT: usize = align_of::<CachePadded<u8>>();
    const ALONE: bool = true;

    fn hot_fields(&self, visit: &mut dyn FnMut(HotField)) {
        let Self { cells, mask, probe: _ } = self;
        for (at, padded) in cells.iter().enumerate() {
            let cell = HotField::of("cells", &**padded).nth(at).padded_in(padded);
            visit(cell.written_by(Role::Nth("probe", at)).read_by(Role::Many("readers")));
        }
        let mask_word = HotField::of("mask", &**mask).padded_in(mask);
        visit(mask_word.written_by(Role::Many("adders")).read_by(Role::Many("readers")));
    }
}

impl<const N: usize, I, const START: usize> fmt::Debug for StripedCounter<N, I, START> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StripedCounter").field("sum", &self.sum()).finish_non_exhaustive()
    }
}
