//! What the two CPUs do: code that runs natively and on simulated cores.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_utils::CachePadded;

use super::Shape;

/// The lines of a pair. Each of the two sides may write its own.
#[derive(Debug, Default)]
pub(super) struct Lines {
    one: CachePadded<AtomicU64>,
    other: CachePadded<AtomicU64>,
}

impl Lines {
    /// Hands lines over and back in each of these rounds, as the side of this rank.
    pub(super) fn bounce(&self, shape: Shape, rank: u64, trips: Range<u64>) {
        match shape {
            Shape::Cas => cas(&self.one, rank, trips),
            Shape::Flags => self.flags(rank, trips),
        }
    }

    /// The first side raises its flag and waits for the other's, which waits for the first one's.
    fn flags(&self, rank: u64, trips: Range<u64>) {
        for trip in trips {
            if rank == 0 {
                // ORDERING: Release, pairs with the Acquire of the other side, which sees what
                // came before; nothing but the flag matters here.
                self.one.store(trip + 1, Ordering::Release);
            }
            let theirs = if rank == 0 { &self.other } else { &self.one };
            // ORDERING: Acquire, pairs with the Release of the other side.
            while theirs.load(Ordering::Acquire) != trip + 1 {}
            if rank == 1 {
                // ORDERING: Release, as above.
                self.other.store(trip + 1, Ordering::Release);
            }
        }
    }
}

/// Rank 0 makes the number odd, rank 1 even, in each of these rounds; the number is twice the first
/// round's at the beginning.
pub fn cas(line: &AtomicU64, rank: u64, trips: Range<u64>) {
    for trip in trips {
        let mine = 2 * trip + rank;
        // ORDERING: AcqRel on success, a hand-over in both directions; Relaxed on failure, which is
        // only tried again.
        let turn = || line.compare_exchange(mine, mine + 1, Ordering::AcqRel, Ordering::Relaxed);
        while turn().is_err() {}
    }
}
