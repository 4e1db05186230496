//! The relax policy that asks the scheduler.

use crate::relax::Relax;

/// Gives the CPU to another thread after each look: the waiter enters the kernel, so it is no
/// spinning row's policy; with more threads than CPUs it lets the holder run.
///
/// ```
/// use locks::{Mutex, TicketLock, Yield};
/// let total = Mutex::<u64, TicketLock<Yield>>::new(0);
/// *total.lock() += 1;
/// assert_eq!(total.into_inner(), 1);
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct Yield;

impl Relax for Yield {
    #[inline(always)]
    fn new() -> Self {
        Self
    }

    fn relax(&mut self) {
        std::thread::yield_now();
    }
}
