//! Barrier: nobody goes on before all have come; counted centrally, waited for by spinning.
//! # Algorithm
//! Each arrival adds 1 to `arrived`. The last one sets it to 0 again and adds 1 to `phase`, for
//! which the others spin. The phase's number takes the part of the reversed sense: whoever is
//! late to look sees that it changed, however often the barrier was used meanwhile.
//! # Why
//! Two lines, whatever the number of threads; each arrival moves one line, and the release is a
//! broadcast. For many threads a tree or dissemination would be quicker.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `SpinBarrier` | 384 | 128 | 6 | `arrived`: arrivals; `phase`: the last one |
//! # Cost
//! n arrivals: n RMWs, n loads or more, 1 store; 1 broadcast.
//! # Progress
//! Blocking: a stopped thread stops all.
//! # Invariants
//! - I1: `arrived` counts the arrivals of this phase; `phase` changes when it has reached all.
//! # Synchronization
//! | edge | release side | acquire side | publishes |
//! |---|---|---|---|
//! | E1 | addition to `arrived` | addition of the last arrival | what each did before it came |
//! | E2 | store of `phase` by the last arrival | load of `phase` that ends a wait | what all did before they came |
//! # Errors and limits
//! More threads than it was made for belong to the next phase. For 0 threads it is as for 1.
//! # References
//! J. M. Mellor-Crummey, M. L. Scott, "Algorithms for Scalable Synchronization on Shared-Memory
//! Multiprocessors", ACM TOCS 9(1), 1991, section 3.1 (sense-reversing centralized barrier). Differs
//! from the paper in: a counted phase in place of a sense, so no state a thread.

use core::marker::PhantomData;

use crossbeam_utils::CachePadded;

use super::relax::{Relax, Spin};
use super::sync::atomic::{AtomicU32, Ordering};
use super::sync::const_fn;

/// Lets threads wait for one another, again and again.
///
/// ```
/// use locks::SpinBarrier;
/// let barrier = <SpinBarrier>::new(2);
/// std::thread::scope(|scope| {
///     let other = scope.spawn(|| barrier.wait());
///     assert_ne!(barrier.wait(), other.join().unwrap()); // one of the two came last
/// });
/// ```
#[derive(Debug)]
pub struct SpinBarrier<R = Spin> {
    arrived: CachePadded<AtomicU32>,
    phase: CachePadded<AtomicU32>,
    threads: u32,
    relax: PhantomData<fn() -> R>,
}

impl<R> SpinBarrier<R> {
    const_fn! {
        /// Makes a barrier for so many threads.
        pub fn new(threads: u32) -> Self {
            Self {
                arrived: CachePadded::new(AtomicU32::new(0)),
                phase: CachePadded::new(AtomicU32::new(0)),
                threads,
                relax: PhantomData,
            }
        }
    }
}

impl<R: Relax> SpinBarrier<R> {
    /// Waits until all have come; whether the caller was the last one.
    pub fn wait(&self) -> bool {
        // ORDERING: Relaxed - the phase cannot end before we have come.
        let phase = self.phase.load(Ordering::Relaxed);
        // ORDERING: AcqRel, E1; release - what we did before; acquire - as the last one, what all
        // did.
        let before = self.arrived.fetch_add(1, Ordering::AcqRel);
        if before + 1 >= self.threads {
            // ORDERING: Relaxed - published by the store of `phase`.
            self.arrived.store(0, Ordering::Relaxed);
            // ORDERING: Release, E2 - hands on what all did, and the 0.
            self.phase.store(phase.wrapping_add(1), Ordering::Release);
            return true;
        }
        let mut relax = R::new();
        // ORDERING: Acquire, E2 - see what all did.
        while self.phase.load(Ordering::Acquire) == phase {
            relax.relax();
        }
        false
    }
}
