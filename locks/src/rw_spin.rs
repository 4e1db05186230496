//! Reader-writer spin lock: one word; readers together or one writer, preference by type.
//! # Algorithm
//! `state` holds the bits `WRITER` and `WAITING` and above them the number of readers. A reader
//! adds `READER` where no writer is inside, nor waits if writers are preferred. A writer exchanges
//! a word without readers for `WRITER`; if it has to wait and is preferred it sets `WAITING`, which
//! whoever enters as writer clears and the next waiting writer sets again.
//! # Why
//! Against a mutex it lets readers in together; each of them still moves the line twice, so short
//! reads scale no better than exclusion does.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `RwSpinLock` | 4 | 4 | 1 | everybody |
//! | slots | 0 | 1 | 0 | nobody |
//! # Cost
//! Uncontended pair, reader or writer: 2 RMWs, 1 load for readers, 1 line.
//! # Progress
//! Blocking; unfair. With [`PreferReaders`] readers starve writers, with [`PreferWriters`] (the
//! default) writers starve readers. A preempted reader stops writers; a preempted writer everyone.
//! # Invariants
//! - I1: `WRITER` is set exactly while a writer is inside, and then the number of readers is 0.
//! - I2: the number is that of readers inside, and never passes its top: who would make it waits.
//! # Synchronization
//! | edge | release side | acquire side | publishes |
//! |---|---|---|---|
//! | E1 | `unlock` clears `WRITER` | exchange that enters, reader's or writer's | the writer's writes |
//! | E2 | `unlock_shared` subtracts | exchange by which a writer enters | that the readers have read |
//! # Errors and limits
//! 2³⁰ − 1 readers; one more waits. A reader that locks again while a preferred writer waits
//! deadlocks. There is no upgrade.
//! # References
//! P. J. Courtois, F. Heymans, D. L. Parnas, "Concurrent Control with 'Readers' and 'Writers'",
//! CACM 14(10), 1971, problems 1 and 2. Differs from the paper in: one word, spinning.

use core::marker::PhantomData;

use super::contract::{
    Fairness, Properties, RawLock, RawRwLock, ThreadOblivious, TryLock, Waiting,
};
use super::hot::{HotField, HotFields, Role};
use super::relax::{Relax, Spin};
use super::sync::atomic::{AtomicU32, Ordering};
use super::sync::const_fn;

const WRITER: u32 = 1;
const WAITING: u32 = 2;
const READER: u32 = 4;
const MOST_READERS: u32 = u32::MAX - (READER - 1);

/// Who goes first when both wait: a type parameter.
pub trait Preference: Send + Sync + 'static {
    /// Whether readers wait for waiting writers.
    const WRITERS: bool;
}

/// Readers do not wait for waiting writers, who may starve.
#[derive(Debug, Clone, Copy, Default)]
pub struct PreferReaders;

/// Readers wait for waiting writers, and may starve.
#[derive(Debug, Clone, Copy, Default)]
pub struct PreferWriters;

impl Preference for PreferReaders {
    const WRITERS: bool = false;
}

impl Preference for PreferWriters {
    const WRITERS: bool = true;
}

/// Spins until readers may share it or a writer has it alone.
///
/// ```
/// use locks::{RwLock, RwSpinLock};
/// static TABLE: RwLock<[u8; 4], RwSpinLock> = RwLock::new([0; 4]);
/// TABLE.write()[1] = 7;
/// assert_eq!((TABLE.read()[1], TABLE.read()[0]), (7, 0));
/// ```
#[derive(Debug)]
pub struct RwSpinLock<P = PreferWriters, R = Spin> {
    state: AtomicU32,
    policy: PhantomData<fn() -> (P, R)>,
}

impl<P, R> RwSpinLock<P, R> {
    const_fn! {
        /// Makes an unlocked lock.
        pub fn new() -> Self {
            Self { state: AtomicU32::new(0), policy: PhantomData }
        }

        /// Makes a lock with `readers` inside, modulo 2³⁰, who will not leave; tests begin near
        /// the top.
        pub fn with_readers(readers: u32) -> Self {
            Self { state: AtomicU32::new(readers.wrapping_mul(READER)), policy: PhantomData }
        }
    }
}

impl<P, R> Default for RwSpinLock<P, R> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: Preference, R: Relax> RwSpinLock<P, R> {
    /// Enters as reader if nobody is in the way; the state seen was wrong if `None`.
    fn try_read(&self) -> Option<bool> {
        // ORDERING: Relaxed - a hint; the exchange decides.
        let state = self.state.load(Ordering::Relaxed);
        let in_the_way = if P::WRITERS { WRITER | WAITING } else { WRITER };
        if state & in_the_way != 0 || state >= MOST_READERS {
            return Some(false);
        }
        // ORDERING: Acquire on success, E1 - the reader sees the last writer's writes; Relaxed on
        // failure - nothing is read.
        self.state
            .compare_exchange(state, state + READER, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
            .then_some(true)
    }

    /// Enters as writer where `state` has neither readers nor a writer.
    fn try_write(&self, state: u32) -> bool {
        // ORDERING: Acquire on success, E1 and E2 - the writer sees the last writer's writes, and
        // the readers have read. Relaxed on failure - nothing is read.
        state & !WAITING == 0
            && self
                .state
                .compare_exchange(state, WRITER, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
    }
}

impl<P, R> HotFields for RwSpinLock<P, R> {
    const ALIGNMENT: usize = 4;
    const ALONE: bool = false;

    fn hot_fields(&self, visit: &mut dyn FnMut(HotField)) {
        let Self { state, policy: _ } = self;
        visit(HotField::of("state", state).written_by(Role::Many("readers and writers")));
    }
}

// SAFETY: by I1 one writer at a time, and no reader with it; E1 and E2 hand on what was done; the
// slots are empty.
unsafe impl<P: Preference, R: Relax> RawLock for RwSpinLock<P, R> {
    type Slot = ();
    const PROPERTIES: Properties =
        Properties { fairness: Fairness::None, waiting: Waiting::Spins, numa_aware: false };

    #[inline]
    unsafe fn lock(&self, _slot: &()) {
        let mut relax = R::new();
        while !self.try_write(0) {
            // ORDERING: Relaxed - a hint; the exchanges decide.
            let state = self.state.load(Ordering::Relaxed);
            if self.try_write(state) {
                return;
            }
            if P::WRITERS && state & WAITING == 0 {
                // ORDERING: Relaxed on success and failure - a sign for readers, nothing more.
                let _ = self.state.compare_exchange(
                    state,
                    state | WAITING,
                    Ordering::Relaxed,
                    Ordering::Relaxed,
                );
            }
            relax.relax();
        }
    }

    #[inline]
    unsafe fn unlock(&self, _slot: &()) {
        // ORDERING: Release, E1 - hands the writer's writes to whoever is next. `WAITING` stays.
        self.state.fetch_and(!WRITER, Ordering::Release);
    }
}

// SAFETY: as for `RawLock`: only an exchange that set `WRITER` reports success.
unsafe impl<P: Preference, R: Relax> TryLock for RwSpinLock<P, R> {
    #[inline]
    unsafe fn try_lock(&self, _slot: &()) -> bool {
        // ORDERING: Relaxed - a hint; the exchange decides.
        let state = self.state.load(Ordering::Relaxed);
        self.try_write(state)
    }
}

// SAFETY: by I1 and I2 readers are inside with readers only, and E1 shows them the writer's
// writes.
unsafe impl<P: Preference, R: Relax> RawRwLock for RwSpinLock<P, R> {
    type ReadSlot = ();

    #[inline]
    unsafe fn lock_shared(&self, _slot: &()) {
        let mut relax = R::new();
        while self.try_read() != Some(true) {
            relax.relax();
        }
    }

    #[inline]
    unsafe fn unlock_shared(&self, _slot: &()) {
        // ORDERING: Release, E2 - the next writer writes after we have read.
        self.state.fetch_sub(READER, Ordering::Release);
    }

    #[inline]
    unsafe fn try_lock_shared(&self, _slot: &()) -> bool {
        loop {
            // Only another reader's or writer's step makes the exchange fail.
            if let Some(entered) = self.try_read() {
                return entered;
            }
        }
    }
}

// SAFETY: nothing depends on which thread unlocks.
unsafe impl<P: Preference, R: Relax> ThreadOblivious for RwSpinLock<P, R> {}
