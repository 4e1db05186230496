//! Rounded: slots whose number is a power of two, for rings whose positions are plain counters.
//!
//! A counter that is added to without a look cannot skip from the last slot of a lap to the first
//! of the next one, unless their number is a power of two. The ring counts its elements apart, so
//! its capacity stays what was asked for.

use super::contract::CapacityError;
use super::laps::{LARGEST, index_mask};
use super::storage::Storage;

/// Makes as many slots as laps of `capacity` slots are long.
///
/// # Errors
/// As [`Storage::allocate`]; the largest capacity is the one that fits when it is rounded up.
pub(crate) fn allocate<S: Storage, Slot>(
    capacity: usize,
    vacant: impl FnMut(usize) -> Slot,
) -> Result<S::Slots<Slot>, CapacityError> {
    if capacity == 0 {
        return Err(CapacityError::Zero);
    }
    if capacity > LARGEST {
        return Err(CapacityError::TooLarge { largest: LARGEST });
    }
    S::allocate(index_mask(capacity) + 1, vacant).map_err(|error| match error {
        CapacityError::TooLarge { largest } => {
            let power = largest.checked_ilog2().map_or(0, |bits| 1 << bits);
            // One lap is two slots at least.
            CapacityError::TooLarge { largest: if power < 2 { 0 } else { power.min(LARGEST) } }
        }
        other => other,
    })
}
