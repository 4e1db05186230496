//! Adds on a CPU by restartable sequences, where the kernel and the C library have them.
//! # Algorithm
//! `AREA` says once and for all where the C library's areas are, if there are any. `add` runs the
//! sequence of `rseq_area`; where there is no area it does nothing and says so. `current` is that
//! of `CpuId`.
//! # Why
//! A thread that is moved between reading the number of its CPU and adding there would add on
//! another's word; the kernel sends it elsewhere instead, so that the add needs no lock.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `AREA` | 8 | 8 | 1 | the first use in the process |
//! # Cost
//! 1 load, 2 compares, and the sequence, 8 instructions of which 1 loads the number, 2 store to the
//! area and 1 adds to memory.
//! # Progress
//! Wait-free.
//! # Invariants
//! - I1: `AREA` is `UNKNOWN`, `NONE` or an offset that the C library gave.
//! # Synchronization
//! none: `AREA` is one word, and all threads find the same.
//! # Errors and limits
//! Restartable sequences are used on x86-64 Linux with feature `libc`, from version 2.35 of the GNU
//! C library on, if it was not told otherwise (`GLIBC_TUNABLES=glibc.pthread.rseq=0`), in threads
//! that it started. Valgrind has none, so that counts under it are those of atomic adds.
//! [`Rseq::way`] says what is used.
//! # References
//! The GNU C Library manual, "Restartable Sequences".

use core::fmt;

use crate::contract::ShardIndex;
use crate::cpu_id::{CpuId, CpuSource};
use crate::per_cpu::{AddOnCpu, CpuRow};
use crate::rseq_area as area;
use crate::sync::atomic::{AtomicUsize, Ordering};

/// What was found: otherwise the offset of the areas from the thread pointer, which is neither.
static AREA: AtomicUsize = AtomicUsize::new(UNKNOWN);

const UNKNOWN: usize = 0;
const NONE: usize = 1;

/// Adds in restartable sequences; where there are none, names CPUs as [`CpuId`] does.
#[derive(Debug, Clone, Copy, Default)]
pub struct Rseq;

/// How a [`PerCpuCounter`](crate::PerCpuCounter) adds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddWay {
    /// In restartable sequences; with an RMW only where the kernel interrupted one.
    Restartable,
    /// With an RMW each time, on the word of the CPU that this source names.
    Atomic(CpuSource),
}

impl Rseq {
    /// Tells how the calling thread adds.
    pub fn way() -> AddWay {
        if settled().is_some_and(|offset| area::cpu(offset).is_some()) {
            return AddWay::Restartable;
        }
        AddWay::Atomic(CpuId::source())
    }
}

impl fmt::Display for AddWay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Restartable => f.pad("restartable"),
            Self::Atomic(source) => write!(f, "atomic, by {source}"),
        }
    }
}

impl ShardIndex for Rseq {
    #[inline]
    fn current() -> usize {
        CpuId::current()
    }
}

impl AddOnCpu for Rseq {
    #[inline]
    fn add(rows: &[CpuRow], n: i64) -> bool {
        // ORDERING: Relaxed - one word, which says all.
        match AREA.load(Ordering::Relaxed) {
            NONE => false,
            UNKNOWN => settled().is_some_and(|offset| area::add(offset, rows, n)),
            offset => area::add(offset.cast_signed(), rows, n),
        }
    }
}

/// Looks for the areas, once.
#[cold]
fn settled() -> Option<isize> {
    let found = area::offset();
    // ORDERING: Relaxed - whoever looks finds the same, so it does not matter who is first.
    AREA.store(found.map_or(NONE, isize::cast_unsigned), Ordering::Relaxed);
    found
}
