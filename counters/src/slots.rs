//! Slots: small numbers that threads claim and give back, the lowest free one first.
//! # Algorithm
//! `taken` is a bitmap. `claim` looks for the first clear bit and sets it with one `fetch_or`; if
//! somebody else set it first it goes on with what that returned. `release` clears the bit.
//! `share` deals the numbers out in turn, without marking them, to those who found none free.
//! # Why
//! Thread ids that only grow spread unevenly over shards once threads come and go; recycled dense
//! ones put up to `N` living threads into `N` different shards.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `Slots<WORDS>` | `WORDS` + 1 words | 1 word | 1 + WORDS / 8 | threads that begin or end |
//! # Cost
//! Claim: up to `WORDS` loads, 1 RMW and 1 more for each claim that came between. Release: 1 RMW.
//! # Progress
//! Lock-free. A preempted thread stops nobody; one that ends without a release keeps its number.
//! # Invariants
//! - I1: of the claims between two releases of a number, one set its bit from 0 to 1, and only
//!   that one returned the number.
//! - I2: a claim that has synchronised with every earlier release, and meets none under way,
//!   returns the lowest number that nobody holds.
//! # Synchronization
//! | edge | release side | acquire side | publishes |
//! |---|---|---|---|
//! | E1 | `release`, the `fetch_and` | `claim`, the `fetch_or` that got the bit | what the last holder did under its number |
//!
//! I1 is atomicity on one word. E1 serves those who write alone under their number (`per_thread`);
//! numbers that `share` dealt out have no such edge, and more than one holder.
//! # Errors and limits
//! As many numbers as `WORDS` pointer-sized words have bits. A claim that finds all of them taken
//! returns nothing, and may do so when one was released meanwhile.
//! # References
//! none

use super::sync::atomic::{AtomicUsize, Ordering};
use super::sync::const_fn;

/// A bitmap of `WORDS` pointer-sized words, a number a bit, that threads claim and give back.
///
/// ```
/// use counters::Slots;
/// static SLOTS: Slots<1> = Slots::new();
/// assert_eq!((SLOTS.claim(), SLOTS.claim()), (Some(0), Some(1)));
/// SLOTS.release(0);
/// assert_eq!(SLOTS.claim(), Some(0));
/// ```
#[derive(Debug)]
pub struct Slots<const WORDS: usize> {
    taken: [AtomicUsize; WORDS],
    shared: AtomicUsize,
}

impl<const WORDS: usize> Slots<WORDS> {
    const BITS: usize = usize::BITS as usize;

    /// Numbers that can be claimed at the same time.
    pub const CAPACITY: usize = {
        assert!(WORDS > 0, "at least one word");
        Self::BITS * WORDS
    };

    const_fn! {
        /// Makes a bitmap of free numbers.
        pub fn new() -> Self {
            let _ = Self::CAPACITY;
            Self { taken: [const { AtomicUsize::new(0) }; WORDS], shared: AtomicUsize::new(0) }
        }
    }

    /// Claims the lowest free number, below [`CAPACITY`](Self::CAPACITY); `None` if all are taken.
    pub fn claim(&self) -> Option<usize> {
        for (index, word) in self.taken.iter().enumerate() {
            // ORDERING: Relaxed - a hint; the RMW below decides.
            let mut seen = word.load(Ordering::Relaxed);
            while seen != usize::MAX {
                let lowest = seen.trailing_ones();
                // ORDERING: Acquire, E1 - atomicity gives the bit to one claimer (I1), which goes on
                // where the last holder of the number stopped.
                seen = word.fetch_or(1 << lowest, Ordering::Acquire);
                if seen & (1 << lowest) == 0 {
                    return Some(Self::BITS * index + lowest as usize);
                }
            }
        }
        None
    }

    /// Gives a claimed number back. Giving back another's lets two threads hold it.
    ///
    /// # Panics
    /// If `slot` is not below [`CAPACITY`](Self::CAPACITY).
    pub fn release(&self, slot: usize) {
        // ORDERING: Release, E1 - hands what was done under the number to its next holder.
        self.taken[slot / Self::BITS].fetch_and(!(1 << (slot % Self::BITS)), Ordering::Release);
    }

    /// Deals out the numbers below [`CAPACITY`](Self::CAPACITY) in turn, whether claimed or not.
    /// What it returns is not given back.
    pub fn share(&self) -> usize {
        // ORDERING: Relaxed - the numbers only need atomicity.
        self.shared.fetch_add(1, Ordering::Relaxed) % Self::CAPACITY
    }

    /// Counts the claimed numbers; may be stale while others claim and release.
    pub fn taken(&self) -> usize {
        // ORDERING: Relaxed - a racy look.
        self.taken.iter().map(|word| word.load(Ordering::Relaxed).count_ones() as usize).sum()
    }
}

impl<const WORDS: usize> Default for Slots<WORDS> {
    fn default() -> Self {
        Self::new()
    }
}
