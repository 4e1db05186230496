//! Seats: which of a pool's or herd's places for threads are taken.
//!
//! A bitmap of `WORDS` words. `claim` sets the first clear bit from a start on with one `fetch_or`
//! and goes on where somebody else set it first; `release` clears the bit.
//!
//! | edge | release side | acquire side | publishes |
//! |---|---|---|---|
//! | S1 | `release`, the `fetch_and` | `claim`, the `fetch_or` that got the bit | what the last holder of the seat did there |

use super::sync::atomic::{AtomicUsize, Ordering};

/// A seat is a bit.
#[derive(Debug)]
pub(crate) struct Seats<const WORDS: usize> {
    taken: [AtomicUsize; WORDS],
}

impl<const WORDS: usize> Seats<WORDS> {
    const BITS: usize = usize::BITS as usize;

    /// Seats that can be taken at the same time.
    pub(crate) const CAPACITY: usize = Self::BITS * WORDS;

    /// Makes seats that are all free.
    pub(crate) fn new() -> Self {
        Self { taken: core::array::from_fn(|_| AtomicUsize::new(0)) }
    }

    /// Claims the lowest free seat below `count`, which is at most `CAPACITY`.
    pub(crate) fn claim(&self, count: usize) -> Option<usize> {
        (0..count).find(|&seat| self.claim_seat(seat))
    }

    /// Claims this seat, if it is free.
    pub(crate) fn claim_seat(&self, seat: usize) -> bool {
        let (word, bit) = (&self.taken[seat / Self::BITS], 1 << (seat % Self::BITS));
        // ORDERING: Relaxed - a look, so that a taken seat costs no RMW. Acquire, S1 - the claimer
        // goes on where the last holder stopped.
        word.load(Ordering::Relaxed) & bit == 0 && word.fetch_or(bit, Ordering::Acquire) & bit == 0
    }

    /// Gives up a seat that the caller claimed.
    pub(crate) fn release(&self, seat: usize) {
        // ORDERING: Release, S1 - hands what was done at the seat to its next holder.
        self.taken[seat / Self::BITS].fetch_and(!(1 << (seat % Self::BITS)), Ordering::Release);
    }
}
