//! Relax policies: what a waiter does between two looks at the word it waits for.
//!
//! A policy is a type parameter of the algorithm, never a feature: a feature would change the
//! lock for every dependant. The crates that spin carry identical copies of this file; a test
//! compares them byte for byte.

use super::sync::spin_loop;

/// What a waiter does each time round its waiting loop.
pub trait Relax: Send + Sync + 'static {
    /// Begins one wait.
    fn new() -> Self;

    /// Is called each time the waiter has looked and must look again.
    ///
    /// Must not panic: a waiter that unwinds out of a queue leaves its successors waiting for
    /// ever.
    fn relax(&mut self);
}

/// One spin hint (`pause` on x86-64) between two looks.
#[derive(Debug, Clone, Copy, Default)]
pub struct Spin;

impl Relax for Spin {
    #[inline(always)]
    fn new() -> Self {
        Self
    }

    #[inline(always)]
    fn relax(&mut self) {
        spin_loop();
    }
}
