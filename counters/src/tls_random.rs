//! Random numbers, a seeded sequence a thread.
//! # Algorithm
//! `STATE` is a counter that goes up by an odd constant; a number is the counter, mixed
//! (SplitMix64). A thread begins at a number of its own, mixed too, which `THREADS` deals out in
//! turn, unless it was told a seed.
//! # Why
//! Threads that draw from one sequence would fight for its word, which is what approximate counting
//! avoids.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `STATE` | 8 a thread | 8 | 1 | its thread |
//! | `THREADS` | 1 word | 1 word | 1 | threads at their first use |
//! # Cost
//! 1 thread-local load and store, 1 compare, 2 multiplications.
//! # Progress
//! Wait-free.
//! # Invariants
//! none
//! # Synchronization
//! none: `THREADS` needs atomicity only.
//! # Errors and limits
//! The same from run to run, if threads come to it in the same order; no secrets. Where
//! thread-local values without destructors are destroyed too, late destructors get 0.
//! # References
//! G. Steele, D. Lea, C. Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014.

use core::cell::Cell;

use crate::approximate::Random;
use crate::sync::atomic::{AtomicUsize, Ordering};

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

static THREADS: AtomicUsize = AtomicUsize::new(1);

std::thread_local! {
    static STATE: Cell<u64> = const { Cell::new(0) };
}

/// The calling thread's random numbers.
///
/// ```
/// use counters::{Random, TlsRandom};
/// TlsRandom::seed(7);
/// let first = TlsRandom::next();
/// assert_ne!(TlsRandom::next(), first);
/// TlsRandom::seed(7);
/// assert_eq!(TlsRandom::next(), first);
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct TlsRandom;

impl TlsRandom {
    /// Begins the calling thread's sequence that `seed` names.
    pub fn seed(seed: u64) {
        // 0 is what a thread has that has not begun.
        let _ = STATE.try_with(|state| state.set(mix(seed).max(1)));
    }
}

impl Random for TlsRandom {
    #[inline]
    fn next() -> u64 {
        let next = STATE.try_with(|state| {
            if state.get() == 0 {
                begin();
            }
            state.set(state.get().wrapping_add(STEP));
            mix(state.get())
        });
        next.unwrap_or(0)
    }
}

#[cold]
fn begin() {
    // ORDERING: Relaxed - the numbers only need atomicity.
    TlsRandom::seed(THREADS.fetch_add(1, Ordering::Relaxed) as u64);
}

const fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}
