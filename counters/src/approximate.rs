//! Approximate counter: one word that is written ever more seldom, with a known standard error.
//! # Algorithm
//! `total` counts exactly up to 2^`BITS`. From there on, in [2^(`BITS` + k − 1), 2^(`BITS` + k)),
//! `inc` adds 2^k with probability 2^−k, so that what it adds on average is 1: it does so if the
//! lowest k bits of a random number are 0, with a CAS. If the CAS fails it looks again with the
//! same number; of a larger k, the same bits and some more have to be 0.
//! # Why
//! Against `atomic` it removes the transfers: after n increments, one in n / 2^(`BITS` − 1) writes,
//! and all others read a line that every core may keep. Against all others it needs 8 bytes. It
//! adds a random number, and the error.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `ApproximateCounter<BITS, R>` | 8 | 8 | 1 | 1 of 2^k increments |
//! # Cost
//! Increment: the random number and 1 load; 1 RMW at first always, later seldom. Estimate: 1 load.
//! # Progress
//! Lock-free. A preempted thread stops nobody.
//! # Invariants
//! - I1: `total` only grows, and by 2^k only from a number whose k that is.
//! # Synchronization
//! none: one word, relaxed.
//! # Errors and limits
//! The estimate is unbiased; its standard error is at most √(0.75 / 2^`BITS`) of the count, 0.96 %
//! for 13 bits, whoever counts: between two writes at k lie 2^k increments on average, with a
//! variance of not more than 4^k, and each doubling of the total is made of 2^(`BITS` − 1) of them.
//! That supposes random numbers whose bits are independent. It counts up and only by 1, does not
//! wrap, and stops at 2⁶², 2³⁰ where the target has no 64-bit atomics.
//! # References
//! R. Morris, "Counting Large Numbers of Events in Small Registers", Communications of the ACM
//! 21(10), 1978; D. Dice, Y. Lev, M. Moir, "Scalable Statistics Counters", SPAA 2013. Differs
//! from them in: the total itself is kept, not its exponent and mantissa.

use core::fmt;
use core::marker::PhantomData;

use super::contract::Explicit;
use super::hot::{HotField, HotFields, Role};
use super::sync::atomic::{AtomicI64, Ordering};
use super::sync::const_fn;

/// Where counting stops.
const MOST: i64 = if cfg!(target_has_atomic = "64") { 1 << 62 } else { 1 << 30 };

/// Gives random numbers.
pub trait Random {
    /// Gives 64 independent random bits. Must not panic.
    fn next() -> u64;
}

/// Counts approximately in one word; `R` gives the calling thread's random numbers.
///
/// ```
/// # #[cfg(feature = "std")] {
/// use counters::{ApproximateCounter, TlsRandom};
/// static TOTAL: ApproximateCounter<13, TlsRandom> = ApproximateCounter::new();
/// (0..100_000).for_each(|_| TOTAL.inc());
/// let sigma = (TOTAL.relative_variance()).sqrt() * 100_000.0;
/// assert!((TOTAL.estimate() as f64 - 100_000.0).abs() < 5.0 * sigma);
/// # }
/// ```
pub struct ApproximateCounter<const BITS: u32 = 13, R = Explicit> {
    total: AtomicI64,
    random: PhantomData<fn() -> R>,
}

impl<const BITS: u32, R> ApproximateCounter<BITS, R> {
    const EXACT_BITS: u32 = {
        assert!(BITS >= 1 && BITS < 30, "from 1 to 29 bits");
        BITS
    };

    const_fn! {
        /// Makes a counter at zero.
        pub fn new() -> Self {
            let _ = Self::EXACT_BITS;
            Self { total: AtomicI64::new(0), random: PhantomData }
        }
    }

    /// Counts 1, with a random number of the caller's of which no other use is made.
    #[inline]
    pub fn inc_with(&self, random: u64) {
        // ORDERING: Relaxed - a look; the CAS decides.
        let mut total = self.total.load(Ordering::Relaxed);
        loop {
            let step = step(total, Self::EXACT_BITS);
            if random & (step - 1) != 0 || total >= MOST {
                return;
            }
            // ORDERING: Relaxed, both - atomicity keeps I1; the count publishes nothing.
            let (success, failure) = (Ordering::Relaxed, Ordering::Relaxed);
            match self.total.compare_exchange(total, total + step as i64, success, failure) {
                Ok(_) => return,
                Err(found) => total = found,
            }
        }
    }

    /// Reads what was counted, approximately; may be stale. Exact up to 2^`BITS`.
    #[inline]
    pub fn estimate(&self) -> i64 {
        // ORDERING: Relaxed - coherence alone makes earlier increments visible.
        self.total.load(Ordering::Relaxed)
    }

    /// The square of the estimate's standard error, in parts of the count, at the most.
    pub fn relative_variance(&self) -> f64 {
        0.75 / (1_u64 << Self::EXACT_BITS) as f64
    }
}

/// What is added at a total: a power of two.
#[inline(always)]
const fn step(total: i64, exact_bits: u32) -> u64 {
    let bits = i64::BITS - total.leading_zeros();
    1 << bits.saturating_sub(exact_bits)
}

impl<const BITS: u32, R: Random> ApproximateCounter<BITS, R> {
    /// Counts 1.
    #[inline]
    pub fn inc(&self) {
        self.inc_with(R::next());
    }
}

impl<const BITS: u32, R> Default for ApproximateCounter<BITS, R> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const BITS: u32, R> HotFields for ApproximateCounter<BITS, R> {
    const ALIGNMENT: usize = align_of::<AtomicI64>();
    const ALONE: bool = false;

    fn hot_fields(&self, visit: &mut dyn FnMut(HotField)) {
        let Self { total, random: _ } = self;
        let total = HotField::of("total", total).written_by(Role::Many("adders"));
        visit(total.read_by(Role::Many("readers")));
    }
}

impl<const BITS: u32, R> fmt::Debug for ApproximateCounter<BITS, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApproximateCounter").field("estimate", &self.estimate()).finish()
    }
}
