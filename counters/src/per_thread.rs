//! Per-thread counter: each thread adds to a word that nobody else writes, without an RMW.
//! # Algorithm
//! `words` holds a place for each of `N` threads, the first word of a pair of lines. `add` reads
//! the word of its thread's place and stores what it read plus `n`. A thread without a place adds
//! to `shared` with a `fetch_add`. No word is ever put back: `sum` is the sum of the words less
//! `taken`, and `take` moves `taken` up to the sum of the words with a CAS. A thread that ends
//! leaves its count where it is, and the next owner of the place goes on from there.
//! # Why
//! Against `sharded` it removes the RMW, which is most of an add that meets nobody, and one
//! instruction; it adds that a place must have one owner at a time, that a handler of signals must
//! not add, and to a read `taken` and `shared`.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `PerThreadCounter<N, I>` | 128 (N + 2) | 128 | 2 (N + 2) | each word: its owner; `shared`: threads without a place; `taken`: takers |
//! | `PerThreadCounter<128, I>` | 16640 | 128 | 260 | as above |
//!
//! 128 bytes are a pair of lines on x86-64 and AArch64.
//! # Cost
//! Add: 1 thread-local load, 1 compare, 1 load and 1 store on 1 line, which x86-64 does in one
//! instruction without a lock; no transfer until somebody reads. Sum: `N` + 2 loads on as many
//! lines. Take: the same and 1 RMW.
//! # Progress
//! Wait-free; a take lock-free. A preempted thread stops nobody.
//! # Invariants
//! - I1: a word of a place is written by the owner of the place only, and places change owner
//!   through E1.
//! - I2: a word holds the sum, modulo 2⁶⁴, of all adds made there, ever.
//! - I3: `taken` is the sum of what all takes gave.
//! # Synchronization
//! | edge | release side | acquire side | publishes |
//! |---|---|---|---|
//! | E1 | the last owner's end, in `I` | the next owner's beginning, in `I` | the word of the place (I1) |
//! | E2 | `take`, its CAS | `sum` and `take`, the load of `taken` and a failed CAS | the words that were read for it: a sum is not below what was taken |
//! # Errors and limits
//! Wraps modulo 2⁶⁴. No snapshot, as `sharded`. More than `N` threads at a time, and destructors
//! of thread-local values that run after the index's own, add to the one shared word: correct, and
//! as slow as `atomic`. An add in a handler of signals that interrupts an add of its own thread
//! may be lost, except where both are one instruction.
//! # References
//! P. E. McKenney, "Is Parallel Programming Hard, And, If So, What Can You Do About It?", chapter
//! "Counting", per-thread-variable-based statistical counters. Differs from the text in: counts of
//! threads that ended stay in their places, so that neither exit nor read needs a lock; takes.

use core::fmt;
use core::marker::PhantomData;

use crossbeam_utils::CachePadded;

use super::contract::{Counter, Drain, Explicit, OwnPlace, PLACE_STRIDE, Progress, Properties};
use super::hot::{HotField, HotFields, Role};
use super::sync::atomic::{AtomicI64, Ordering};
use super::sync::const_fn;

/// Counts in `N` words with one writer each; `I` gives the calling thread its place.
///
/// ```
/// # #[cfg(feature = "std")] {
/// use counters::{Counter, Drain, PerThreadCounter, TlsSlot};
/// static TOTAL: PerThreadCounter<128, TlsSlot> = PerThreadCounter::new();
/// std::thread::scope(|scope| {
///     for _ in 0..4 {
///         scope.spawn(|| TOTAL.add(1));
///     }
/// });
/// assert_eq!(TOTAL.take(), 4);
/// # }
/// ```
#[repr(C, align(128))]
pub struct PerThreadCounter<const N: usize, I = Explicit> {
    words: [[AtomicI64; PLACE_STRIDE]; N],
    shared: CachePadded<AtomicI64>,
    taken: CachePadded<AtomicI64>,
    index: PhantomData<fn() -> I>,
}

impl<const N: usize, I> PerThreadCounter<N, I> {
    const PLACES: usize = {
        assert!(N > 0, "there is a place");
        N
    };

    const_fn! {
        /// Makes a counter at zero.
        pub fn new() -> Self {
            let _ = Self::PLACES;
            Self {
                words: [const { [const { AtomicI64::new(0) }; PLACE_STRIDE] }; N],
                shared: CachePadded::new(AtomicI64::new(0)),
                taken: CachePadded::new(AtomicI64::new(0)),
                index: PhantomData,
            }
        }
    }

    /// Reads the total; may be stale, as [`Counter::sum`].
    #[inline]
    pub fn sum(&self) -> i64 {
        // ORDERING: Acquire, E2 - what was taken is in the words that are read after it.
        let taken = self.taken.load(Ordering::Acquire);
        self.counted().wrapping_sub(taken)
    }

    /// Adds up all that was ever added.
    fn counted(&self) -> i64 {
        let mut counted = 0_i64;
        for word in self.words.iter().map(|row| &row[0]).chain([&*self.shared]) {
            // ORDERING: Relaxed - coherence makes earlier adds visible, and E2 those that were
            // taken.
            counted = counted.wrapping_add(word.load(Ordering::Relaxed));
        }
        counted
    }

    /// Where the word of the place `place mod N` lies: its offset in bytes from the counter's
    /// start.
    pub const fn offset_of_shard(place: usize) -> usize {
        core::mem::offset_of!(Self, words)
            + (place % Self::PLACES) * size_of::<[AtomicI64; PLACE_STRIDE]>()
    }
}

/// Adds to a word that no other thread writes.
#[inline(always)]
fn add_alone(word: &AtomicI64, n: i64) {
    // ORDERING: Relaxed - by I1 the last write to the word is this thread's or came by E1.
    let old = word.load(Ordering::Relaxed);
    // ORDERING: Relaxed - the count publishes nothing.
    word.store(old.wrapping_add(n), Ordering::Relaxed);
}

impl<const N: usize, I: OwnPlace> PerThreadCounter<N, I> {
    /// The first add of a thread, and each add of one without a place here.
    #[cold]
    fn add_elsewhere(&self, n: i64) {
        match self.words.as_flattened().get(I::find()) {
            Some(word) => add_alone(word, n),
            None => {
                // ORDERING: Relaxed - atomicity keeps I2; the count publishes nothing.
                self.shared.fetch_add(n, Ordering::Relaxed);
            }
        }
    }
}

impl<const N: usize, I> Default for PerThreadCounter<N, I> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const N: usize, I: OwnPlace> Counter for PerThreadCounter<N, I> {
    const PROPERTIES: Properties =
        Properties { progress: Progress::WaitFree, exact: true, linearizable: false, shards: N };

    #[inline]
    fn add(&self, n: i64) {
        match self.words.as_flattened().get(I::cached()) {
            Some(word) => add_alone(word, n),
            None => self.add_elsewhere(n),
        }
    }

    #[inline]
    fn sum(&self) -> i64 {
        self.sum()
    }
}

impl<const N: usize, I> Drain for PerThreadCounter<N, I> {
    fn take(&self) -> i64 {
        // ORDERING: Acquire, E2 - as in `sum`.
        let mut taken = self.taken.load(Ordering::Acquire);
        loop {
            let counted = self.counted();
            // ORDERING: Release, E2 - whoever sees the new value sees the words read for it;
            // Acquire, E2, where another taker was faster.
            match self.taken.compare_exchange(taken, counted, Ordering::Release, Ordering::Acquire)
            {
                Ok(_) => return counted.wrapping_sub(taken),
                Err(others) => taken = others,
            }
        }
    }
}

impl<const N: usize, I> HotFields for PerThreadCounter<N, I> {
    const ALIGNMENT: usize = 128;
    const ALONE: bool = true;

    fn hot_fields(&self, visit: &mut dyn FnMut(HotField)) {
        let Self { words, shared, taken, index: _ } = self;
        for (place, row) in words.iter().enumerate() {
            let word = HotField::of("words", &row[0]).nth(place).padded_in(row).aligned(128);
            visit(word.written_by(Role::Nth("owner", place)).read_by(Role::Many("readers")));
        }
        let shared_word = HotField::of("shared", &**shared).padded_in(shared);
        visit(shared_word.written_by(Role::Many("adders")).read_by(Role::Many("readers")));
        let taken_word = HotField::of("taken", &**taken).padded_in(taken);
        visit(taken_word.written_by(Role::Many("takers")).read_by(Role::Many("readers")));
    }
}

impl<const N: usize, I> fmt::Debug for PerThreadCounter<N, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PerThreadCounter").field("sum", &self.sum()).finish_non_exhaustive()
    }
}
