//! What a lock promises: the traits that every variant implements and every driver uses.

use core::fmt;
use core::time::Duration;

/// Mutual exclusion between the callers of [`lock`](RawLock::lock) and
/// [`unlock`](RawLock::unlock).
///
/// The slot is what a waiter brings and the holder keeps: `()` for locks without context, the
/// queue node for MCS and its kin. What must travel from `lock` to `unlock` lives in it.
///
/// # Safety
/// An implementation guarantees that
/// - between the return of `lock` and the call of `unlock` no other call of `lock` (or of a
///   successful [`try_lock`](TryLock::try_lock)) on the same lock returns;
/// - everything written before `unlock` is visible after the `lock` that follows it;
/// - a slot is no longer referred to once `unlock` has returned.
pub unsafe trait RawLock: Send + Sync {
    /// What a waiter brings and the holder keeps.
    type Slot: Default;

    /// What the algorithm is and is not.
    const PROPERTIES: Properties;

    /// Waits until the caller is the only holder.
    ///
    /// # Safety
    /// Until the matching [`unlock`](Self::unlock) has returned, `slot` stays where it is, is
    /// alive, and is passed to no other `lock` or `try_lock`, of this or of another lock.
    unsafe fn lock(&self, slot: &Self::Slot);

    /// Lets the next waiter in.
    ///
    /// # Safety
    /// The caller holds the lock, having taken it with this `slot`.
    unsafe fn unlock(&self, slot: &Self::Slot);
}

/// A lock that can be asked without waiting.
///
/// # Safety
/// As for [`RawLock`]: `true` means that the caller is the only holder.
pub unsafe trait TryLock: RawLock {
    /// Takes the lock if that needs no waiting. May fail spuriously only where the variant's
    /// documentation says so.
    ///
    /// # Safety
    /// As for [`RawLock::lock`]; after `false` the slot is free again.
    unsafe fn try_lock(&self, slot: &Self::Slot) -> bool;
}

/// Readers together, or one writer: [`RawLock`] is the writer's side.
///
/// # Safety
/// An implementation guarantees that
/// - between the return of `lock_shared` and the call of `unlock_shared` no call of `lock` or
///   `try_lock` returns success, nor the other way round;
/// - everything written before `unlock` is visible after the `lock_shared` that follows it, and
///   everything read before `unlock_shared` was read before the `lock` that follows it;
/// - a slot is no longer referred to once its unlock has returned.
pub unsafe trait RawRwLock: RawLock {
    /// What a reader brings and keeps while it is inside.
    type ReadSlot: Default;

    /// Waits until no writer is inside.
    ///
    /// # Safety
    /// As for [`RawLock::lock`], with `unlock_shared`.
    unsafe fn lock_shared(&self, slot: &Self::ReadSlot);

    /// Leaves as a reader.
    ///
    /// # Safety
    /// The caller is inside as a reader, having entered with this `slot`.
    unsafe fn unlock_shared(&self, slot: &Self::ReadSlot);

    /// Enters as a reader if that needs no waiting.
    ///
    /// # Safety
    /// As for [`lock_shared`](Self::lock_shared); after `false` the slot is free again.
    unsafe fn try_lock_shared(&self, slot: &Self::ReadSlot) -> bool;
}

/// A lock whose waiters can give up.
///
/// # Safety
/// As for [`RawLock`]: `true` means that the caller is the only holder.
pub unsafe trait Timed: RawLock {
    /// Waits until the caller is the only holder, or until `expired` returns `true`, which is
    /// asked after each look at a lock that is taken; by a lock whose waiters sleep, each time they
    /// wake up. It must not panic.
    ///
    /// Without a clock of its own: `no_std` has none. `let end = Instant::now() + patience;
    /// lock.lock_until(&slot, || Instant::now() >= end)`.
    ///
    /// # Safety
    /// As for [`RawLock::lock`]; after `false` the slot is free again.
    unsafe fn lock_until(&self, slot: &Self::Slot, expired: impl FnMut() -> bool) -> bool;
}

/// A lock whose waiters sleep, and give up after a while.
///
/// # Safety
/// As for [`RawLock`]: `true` means that the caller is the only holder.
pub unsafe trait Patient: RawLock {
    /// Waits until the caller is the only holder, or for about so long. A patience beyond the end of
    /// the clock is endless.
    ///
    /// # Safety
    /// As for [`RawLock::lock`]; after `false` the slot is free again.
    unsafe fn lock_for(&self, slot: &Self::Slot, patience: Duration) -> bool;
}

/// A lock that another thread may unlock than the one that locked it.
///
/// # Safety
/// `unlock` works from any thread, as long as what the locking thread did happens before it.
pub unsafe trait ThreadOblivious: RawLock {}

/// A lock whose holder can see that somebody waits.
///
/// # Safety
/// `true` means that a caller of `lock` waits who takes the lock after the coming `unlock` and does
/// not give up before.
pub unsafe trait HasWaiters: RawLock {
    /// Whether somebody waits; may be stale: `false` also while a caller is just arriving.
    ///
    /// # Safety
    /// The caller holds the lock, having taken it with this `slot`.
    unsafe fn has_waiters(&self, slot: &Self::Slot) -> bool;
}

/// A lock whose holder can tell the next one something, where the hand-over goes anyway.
///
/// # Safety
/// `told` gives what was told at the unlock before the caller's lock, and nothing older.
pub unsafe trait TellsNext: HasWaiters {
    /// What the last holder told; 0 if it told nothing, or if there was none.
    ///
    /// # Safety
    /// The caller holds the lock, having taken it with this `slot`.
    unsafe fn told(&self, slot: &Self::Slot) -> u32;

    /// Lets the next waiter in, and tells it `word`, which is not `u32::MAX`.
    ///
    /// # Safety
    /// As for [`RawLock::unlock`]; and the caller has been told that somebody waits.
    unsafe fn unlock_telling(&self, slot: &Self::Slot, word: u32);
}

/// A lock that can stand in a `static`.
pub trait ConstInit {
    /// The unlocked lock.
    const INIT: Self;
}

/// What an algorithm is and is not; the table in the crate's documentation is tested against it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Properties {
    /// In which order waiters are served.
    pub fairness: Fairness,
    /// What a waiter does.
    pub waiting: Waiting,
    /// Whether the hand-over prefers waiters of the holder's NUMA node.
    pub numa_aware: bool,
}

/// In which order waiters are served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fairness {
    /// Nobody waits: the null baseline.
    NotALock,
    /// Any waiter or newcomer may win, any number of times.
    None,
    /// As `None`, but now and then the lock is handed to who has waited longest.
    Eventual,
    /// Nobody starves, but waiters of the holder's group go first, a stated number of times.
    Bounded,
    /// First come, first served, from one atomic step of `lock` on.
    Fifo,
}

/// What a waiter does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Waiting {
    /// Nothing: the null baseline.
    Nothing,
    /// Spins, never enters the kernel.
    Spins,
    /// Spins a while, then sleeps in the kernel.
    Blocks,
}

impl fmt::Display for Fairness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::NotALock => "-",
            Self::None => "none",
            Self::Eventual => "eventual",
            Self::Bounded => "bounded",
            Self::Fifo => "FIFO",
        })
    }
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Nothing => "-",
            Self::Spins => "spins",
            Self::Blocks => "blocks",
        })
    }
}
