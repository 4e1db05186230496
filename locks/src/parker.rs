//! Parkers: how a waiter sleeps until the word it waits for has changed.

use core::time::Duration;

use super::sync::atomic::AtomicU32;

/// Puts threads to sleep on a word and wakes them; a type parameter of the blocking locks.
///
/// # Safety
/// An implementation guarantees that
/// - `park` returns if the word differs from `expected` when it looks, and that looking and going
///   to sleep are one step against the two others: a change followed by `unpark_one` (if nobody else
///   sleeps there) or `unpark_all` is never slept through;
/// - these two do not read through `word`: the lock may have been freed by then.
pub unsafe trait Parker: Send + Sync + 'static {
    /// Sleeps while the word holds `expected`; may return at any time for no reason.
    fn park(word: &AtomicU32, expected: u32);

    /// Wakes at most one sleeper of the word at this address, if there is one.
    fn unpark_one(word: *const AtomicU32);

    /// Wakes all sleepers of the word at this address.
    fn unpark_all(word: *const AtomicU32);
}

/// A parker whose sleepers wake up at a time of their choice.
///
/// # Safety
/// `park_until` keeps what [`park`](Parker::park) promises, and a sleeper that it returns to has
/// not used up an `unpark_one` unless it returns `false`.
pub unsafe trait TimedParker: Parker {
    /// A point in time of the parker's clock.
    type Instant: Copy;

    /// The point so long after now; `None` if the clock ends before.
    fn after(patience: Duration) -> Option<Self::Instant>;

    /// As [`park`](Parker::park), but not after `end`; whether `end` has come.
    fn park_until(word: &AtomicU32, expected: u32, end: Self::Instant) -> bool;
}
