//! In place of `rseq_area` where no area for restartable sequences can be asked for.

use crate::per_cpu::CpuRow;

/// Finds none.
pub(crate) fn offset() -> Option<isize> {
    None
}

/// Knows no CPU.
pub(crate) fn cpu(_offset: isize) -> Option<usize> {
    None
}

/// Adds nothing and says so.
pub(crate) fn add(_offset: isize, _rows: &[CpuRow], _n: i64) -> bool {
    false
}
