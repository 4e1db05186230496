//! The parking lot of this process, over the Linux futex.

use crate::linux_futex::LinuxFutex;
use crate::lot::{Lot, Parking};

/// Names the one table of the process. Two copies of this crate in one process (a plugin's, say)
/// have two, which does no harm: a lock's type belongs to one copy.
#[derive(Debug, Clone, Copy, Default)]
pub struct LinuxLot;

static LOT: Lot<LinuxFutex> = Lot::new();

impl Parking for LinuxLot {
    type Parker = LinuxFutex;

    fn lot() -> &'static Lot<LinuxFutex> {
        &LOT
    }
}
