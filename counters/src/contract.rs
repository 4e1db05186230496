//! What a counter promises: the traits that every variant implements and every driver uses.

use core::fmt;

/// A number that many threads add to and anyone may read.
///
/// Numbers wrap modulo 2⁶⁴, in two's complement; modulo 2³² where the target has no 64-bit
/// atomics. Adds and reads are relaxed: they publish nothing
/// but the number.
pub trait Counter: Send + Sync {
    /// What the algorithm is and is not.
    const PROPERTIES: Properties;

    /// Adds `n`, which may be negative. Must not panic, also not in the destructor of a
    /// thread-local value.
    fn add(&self, n: i64);

    /// Reads the total. May be stale while others add, with one-sided guarantees that hold of
    /// every exact counter:
    /// - each add that happened before the call is in it, and each add is in it at most once;
    /// - no add that happens after the call is in it;
    /// - while nothing negative is added, nothing taken and nothing wraps, a reader never sees it
    ///   decrease.
    fn sum(&self) -> i64;
}

/// A counter that can be emptied without losing an add.
pub trait Drain: Send + Sync {
    /// Takes the total out and leaves zero. A concurrent add is in this take or in the next one,
    /// never in both and never in neither.
    ///
    /// A [`sum`](Counter::sum) at the same time as a take may see any part of what is taken.
    fn take(&self) -> i64;
}

/// Names a shard for the calling thread.
///
/// The shard is a hint about where not to meet others, never a right to be alone there: several
/// threads may be given the same one, and a thread may be given another one next time.
pub trait ShardIndex {
    /// The calling thread's shard: any number, of which the counter takes the remainder. Must not
    /// panic, also not in the destructor of a thread-local value.
    fn current() -> usize;
}

/// A [`ShardIndex`] whose threads can be moved to another shard.
pub trait Reprobe: ShardIndex {
    /// Gives the calling thread another shard from now on, and names it. Must not panic.
    fn advance() -> usize;
}

/// Words from one thread's place to the next thread's: a pair of lines of 8-byte words.
pub const PLACE_STRIDE: usize = 16;

/// Gives each thread a place where nobody else writes.
///
/// A place is a small number, the same as long as the thread has it, times [`PLACE_STRIDE`]; the
/// product is what is cached, so that it indexes an array of words without a multiplication.
///
/// An implementation promises that no two threads have a place at the same time, and that a
/// thread which is given one has synchronised with all that its last owner did. A counter with one
/// writer a word loses adds where that is not so.
pub trait OwnPlace {
    /// Reads the calling thread's place; `usize::MAX` if it has none or was not asked yet. Must not
    /// panic, also not in the destructor of a thread-local value.
    fn cached() -> usize;

    /// Looks for a place for the calling thread if it has none yet; `usize::MAX` if there is none
    /// for it. Must not panic, also not in the destructor of a thread-local value.
    fn find() -> usize;
}

/// A counter that answers at once with a number that is near the total.
pub trait Estimate: Counter {
    /// Reads a number that is near the total.
    ///
    /// Once the adds are over and the reader has synchronised with them, it is at most
    /// [`max_error`](Self::max_error) below the sum and never above it. Each add of `n` that is
    /// under way meanwhile may add `|n|` and a batch to the error, in either direction.
    fn estimate(&self) -> i64;

    /// The most that the sum exceeds the estimate by when no add is under way.
    fn max_error(&self) -> u64;
}

/// No [`ShardIndex`]: the caller names the shard in each `add_at`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Explicit;

/// What an algorithm is and is not; the table in the crate's documentation is tested against it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Properties {
    /// What an add promises about its own end.
    pub progress: Progress,
    /// Whether the sum is exact once the adds are over and the reader has synchronised with them.
    pub exact: bool,
    /// Whether the sum is one atomic step, also while the counter moves.
    pub linearizable: bool,
    /// Words that the count is spread over; a read costs as many loads.
    pub shards: usize,
}

/// What an operation promises about its own end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Progress {
    /// Ends after a bounded number of steps, where the CPU has an atomic add (x86-64, AArch64 with
    /// LSE, RISC-V with A); elsewhere, with a load-reserve loop, lock-free.
    WaitFree,
    /// Somebody's operation ends.
    LockFree,
    /// A stopped thread may stop the others.
    Blocking,
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::WaitFree => "wait-free",
            Self::LockFree => "lock-free",
            Self::Blocking => "blocking",
        })
    }
}
