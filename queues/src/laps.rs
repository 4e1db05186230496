//! Laps: positions that only grow, for rings of any capacity.
//!
//! A position is a slot's index with the number of its lap above it: laps count in steps of the
//! power of two that is not less than the capacity (2 at least), so a mask takes a position apart
//! whatever the capacity is. Positions wrap; they are compared by their distance.

/// The largest capacity: leaves eight laps to tell an older position from a newer one.
pub(crate) const LARGEST: usize = 1 << (usize::BITS - 3);

/// The bits of a position that are its index.
pub(crate) const fn index_mask(capacity: usize) -> usize {
    let one_lap = capacity.next_power_of_two();
    // With one bit for the index at least, `lap + 1` is not the next lap.
    if one_lap < 2 { 1 } else { one_lap - 1 }
}

/// Whether `position` comes before `reference`, also across the wrap.
#[inline(always)]
pub(crate) fn is_older(position: usize, reference: usize) -> bool {
    position.wrapping_sub(reference).cast_signed() < 0
}

/// The lap after `lap`.
#[inline(always)]
pub(crate) fn next_lap(lap: usize, index_mask: usize) -> usize {
    lap.wrapping_add(index_mask).wrapping_add(1)
}

/// The position after `position` in a ring of `capacity` slots.
#[inline(always)]
pub(crate) fn next(position: usize, index_mask: usize, capacity: usize) -> usize {
    if (position & index_mask) + 1 < capacity {
        position + 1
    } else {
        next_lap(position & !index_mask, index_mask)
    }
}

/// The position before `position` in a ring of `capacity` slots.
#[inline(always)]
pub(crate) fn previous(position: usize, index_mask: usize, capacity: usize) -> usize {
    if position & index_mask != 0 {
        position - 1
    } else {
        position.wrapping_sub(index_mask).wrapping_sub(1).wrapping_add(capacity - 1)
    }
}
