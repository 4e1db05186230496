//! Dissemination barrier: nobody goes on before all have come; each tells another, in log n rounds.
//! # Algorithm
//! In round r each of n threads writes the number of the phase into flag r of the thread 2ʳ places
//! on, and waits until its own flag r has that number. After round ⌈log₂ n⌉ − 1 each has heard, by
//! way of others, from all. A flag may be one phase ahead already: whoever writes it has gone on, as
//! we have come.
//! # Why
//! Against `SpinBarrier` it removes the line that all write and the broadcast: each thread
//! writes and reads lines of one other at a time. It adds n log n transfers in all, memory, and a
//! place that each thread has to take before.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `DisseminationBarrier` | 128 a thread, and 128 | 128 | 2 a thread, and 2 | a flag: one other thread |
//! | `Party` | 16 on 64-bit targets | 8 | 1 | its thread |
//! # Cost
//! n arrivals: n ⌈log₂ n⌉ stores and as many loads or more, no RMW; ⌈log₂ n⌉ transfers on the way
//! from the last arrival to the last departure.
//! # Progress
//! Blocking: a stopped thread stops all.
//! # Invariants
//! - I1: each party has a rank of its own, below `THREADS`.
//! - I2: flag r of a rank is written by the party 2ʳ ranks before only, with growing numbers.
//! # Synchronization
//! | edge | release side | acquire side | publishes |
//! |---|---|---|---|
//! | E1 | store of a flag | load of a flag that ends a wait | what its writer did before it came, and what it has heard of |
//! # Errors and limits
//! At most 2¹⁶ threads. Places are handed out once: a party that is dropped leaves the others
//! waiting.
//! # References
//! D. Hensgen, R. Finkel, U. Manber, "Two Algorithms for Barrier Synchronization", IJPP 17(1), 1988;
//! J. M. Mellor-Crummey, M. L. Scott, ACM TOCS 9(1), 1991, section 3.3. Differs from them in: numbers of
//! phases in place of parity and sense.

use core::marker::PhantomData;

use crossbeam_utils::CachePadded;

use super::array::array_of;
use super::relax::{Relax, Spin};
use super::sync::atomic::{AtomicU32, Ordering};
use super::sync::const_fn;

/// Flags a thread has: rounds of 2¹⁶ threads.
const ROUNDS: usize = 16;

/// Lets `THREADS` threads wait for one another, again and again, without a line that all write.
///
/// ```
/// use locks::DisseminationBarrier;
/// let barrier = <DisseminationBarrier<3>>::new();
/// std::thread::scope(|scope| {
///     while let Some(mut party) = barrier.join() {
///         scope.spawn(move || (party.wait(), party.wait()));
///     }
/// });
/// ```
#[derive(Debug)]
pub struct DisseminationBarrier<const THREADS: usize, R = Spin> {
    joined: CachePadded<AtomicU32>,
    flags: [CachePadded<[AtomicU32; ROUNDS]>; THREADS],
    relax: PhantomData<fn() -> R>,
}

/// A thread's place at a [`DisseminationBarrier`].
#[derive(Debug)]
pub struct Party<'a, const THREADS: usize, R = Spin> {
    barrier: &'a DisseminationBarrier<THREADS, R>,
    rank: u32,
    phase: u32,
}

impl<const THREADS: usize, R> DisseminationBarrier<THREADS, R> {
    const ENOUGH_ROUNDS: () = assert!(THREADS <= 1 << ROUNDS, "at most 65536 threads");

    const_fn! {
        /// Makes a barrier that nobody has joined.
        pub fn new() -> Self {
            let () = Self::ENOUGH_ROUNDS;
            Self {
                joined: CachePadded::new(AtomicU32::new(0)),
                flags: array_of![CachePadded::new(array_of![AtomicU32::new(0); ROUNDS]); THREADS],
                relax: PhantomData,
            }
        }
    }

    /// Takes a place; `None` if all `THREADS` are taken.
    pub fn join(&self) -> Option<Party<'_, THREADS, R>> {
        // ORDERING: Relaxed - gives a number and publishes nothing.
        let mut rank = self.joined.load(Ordering::Relaxed);
        while (rank as usize) < THREADS {
            let more = rank + 1;
            // ORDERING: Relaxed on success and failure - as above.
            let taken =
                self.joined.compare_exchange(rank, more, Ordering::Relaxed, Ordering::Relaxed);
            match taken {
                Ok(_) => return Some(Party { barrier: self, rank, phase: 0 }),
                Err(now) => rank = now,
            }
        }
        None
    }
}

impl<const THREADS: usize, R> Default for DisseminationBarrier<THREADS, R> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const THREADS: usize, R: Relax> Party<'_, THREADS, R> {
    /// Waits until all have come.
    pub fn wait(&mut self) {
        self.phase = self.phase.wrapping_add(1);
        let (own, flags) = (self.rank as usize, &self.barrier.flags);
        let rounds = (0..ROUNDS).map(|round| (round, 1_usize << round));
        for (round, distance) in rounds.take_while(|&(_, distance)| distance < THREADS) {
            // ORDERING: Release, E1 - hands on what we did, and what we have heard of.
            flags[(own + distance) % THREADS][round].store(self.phase, Ordering::Release);
            let mut relax = R::new();
            // ORDERING: Acquire, E1 - see what the other did, and has heard of.
            while flags[own][round].load(Ordering::Acquire).wrapping_sub(self.phase) > 1 {
                relax.relax();
            }
        }
    }
}
