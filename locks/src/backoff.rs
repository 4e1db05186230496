//! Relax policies that wait longer than one hint: for waiters that disturb one another.
//!
//! | policy | between two looks | for |
//! |---|---|---|
//! | [`Spin`](crate::Spin) | one hint | waiters on a line of their own |
//! | [`Loop`](crate::Loop) | nothing | the shortest hand-off, at the sibling thread's expense |
//! | [`Exponential`] | 1, 2, 4 … hints up to a cap | waiters that all write one line |
//! | [`Proportional`] | hints for each waiter ahead | waiters that know their place |
//! | [`Tpause`](crate::Tpause), [`Mwaitx`](crate::Mwaitx), [`Wfe`](crate::Wfe) | rest, where the CPU can | long waits, the sibling thread, power |
//! | [`Yield`](crate::Yield) | the scheduler (feature `std`) | more threads than CPUs |

use super::relax::{Relax, Spin};
use super::sync::spin_loop;

/// A policy of waiters that know how many are before them.
pub trait RelaxBehind: Relax {
    /// Is called in place of [`relax`](Relax::relax) with the number of waiters that are served
    /// earlier, 1 or more. Must not panic.
    fn relax_behind(&mut self, ahead: u32);
}

/// Twice as many hints after each look, from 1 to `CAP`.
///
/// ```
/// use locks::{Exponential, Mutex, TtasLock};
/// let total = Mutex::<u64, TtasLock<Exponential<64>>>::new(0);
/// *total.lock() += 1;
/// assert_eq!(total.into_inner(), 1);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Exponential<const CAP: u32 = 256> {
    hints: u32,
}

impl<const CAP: u32> Relax for Exponential<CAP> {
    #[inline(always)]
    fn new() -> Self {
        Self { hints: 1 }
    }

    #[inline]
    fn relax(&mut self) {
        for _ in 0..self.hints {
            spin_loop();
        }
        self.hints = self.hints.saturating_mul(2).min(CAP);
    }
}

/// `UNIT` hints for each waiter ahead: about the time of its critical section.
#[derive(Debug, Clone, Copy, Default)]
pub struct Proportional<const UNIT: u32 = 8>;

impl<const UNIT: u32> Relax for Proportional<UNIT> {
    #[inline(always)]
    fn new() -> Self {
        Self
    }

    #[inline]
    fn relax(&mut self) {
        self.relax_behind(1);
    }
}

impl<const UNIT: u32> RelaxBehind for Proportional<UNIT> {
    #[inline]
    fn relax_behind(&mut self, ahead: u32) {
        for _ in 0..ahead.saturating_mul(UNIT) {
            spin_loop();
        }
    }
}

/// One hint, however many are ahead.
impl RelaxBehind for Spin {
    #[inline(always)]
    fn relax_behind(&mut self, _ahead: u32) {
        self.relax();
    }
}
