//! Reader-writer lock whose waiters sleep: eight bytes; writers close the door behind the readers.
//! # Algorithm
//! `state` holds the bits `WRITER`, `ASLEEP` and `CLOSED`, the number of waiting writers and the
//! number of readers inside. A reader enters where no writer is inside and the door is not
//! `CLOSED`; else it sets `ASLEEP` and parks on `state`. A writer enters where nobody is inside; if
//! it has to wait it counts itself, closes the door and parks on `turns`, which whoever wakes a
//! writer counts up. The last reader to leave wakes a writer if one waits. A writer that leaves opens
//! the door if readers sleep, and wakes all of them and one waiting writer, which closes the door
//! again as soon as it looks.
//! # Why
//! Against `rw_spin` it removes the waste of waiting CPUs, and the starving of writers by
//! readers: of those that come after it only the ones that slept through another writer go first. It
//! adds a word and system calls to contended entries.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `RwFutexLock` | 8 | 4 | 1 | everybody |
//! | slots | 0 | 1 | 0 | nobody |
//! # Cost
//! Uncontended pair: reader 2 RMWs and 1 load, writer 2 RMWs; 1 line, no system call.
//! # Progress
//! Blocking; unfair among writers, and among readers and writers that a writer wakes. While a writer
//! waits no reader enters, but for those that slept when a writer left. A preempted reader stops
//! writers; a preempted writer everyone.
//! # Invariants
//! - I1: `WRITER` is set exactly while a writer is inside, and then the number of readers is 0.
//! - I2: the number of waiting writers is that of the callers of `lock` that have counted themselves
//!   and are not inside yet; `CLOSED` is set only if it is not 0.
//! - I3: while a reader sleeps, `ASLEEP` is set, or whoever cleared it is about to wake all.
//! - I4: while a writer sleeps, somebody is inside, or whoever left last is about to wake one: it
//!   counts `turns` up first, which no writer that looked before sleeps through.
//! # Synchronization
//! | edge | release side | acquire side | publishes |
//! |---|---|---|---|
//! | E1 | exchange in `unlock` that clears `WRITER` | exchange that enters, reader's or writer's | the writer's writes |
//! | E2 | `unlock_shared` subtracts | exchange by which a writer enters | that the readers have read |
//! | E3 | addition to `turns` | load of `turns` before a writer looks at `state` | what the one that left made of `state` |
//! # Errors and limits
//! Who wakes a writer uses the lock after it has left: the lock must outlive the call, as borrowing
//! sees to. 131071 readers and 4095 waiting writers; whoever would be one more spins. A reader that locks
//! again while a writer waits deadlocks. There is no upgrade. Every return of the parker is treated
//! as spurious.
//! # References
//! P. J. Courtois, F. Heymans, D. L. Parnas, "Concurrent Control with 'Readers' and 'Writers'", CACM
//! 14(10), 1971, problem 2; the two words are those of M. Bos, `std::sync::RwLock` of Rust 1.62, 2022.
//! Differs from them in: waiting writers are counted, so the door stays closed while one is being
//! woken; readers that slept get a turn after each writer.

use core::marker::PhantomData;

use super::contract::{
    Fairness, Properties, RawLock, RawRwLock, ThreadOblivious, TryLock, Waiting,
};
use super::hot::{HotField, HotFields, Role};
use super::parker::Parker;
use super::relax::{Relax, Spin};
use super::sync::atomic::{AtomicU32, Ordering};
use super::sync::const_fn;

const WRITER: u32 = 1;
const ASLEEP: u32 = 1 << 1;
const CLOSED: u32 = 1 << 2;
/// One waiting writer.
const WAITS: u32 = 1 << 3;
/// One reader inside.
const READER: u32 = 1 << 15;
const MOST_READERS: u32 = u32::MAX / READER;
const MOST_WAITING: u32 = READER / WAITS - 1;

fn readers(state: u32) -> u32 {
    state / READER
}

fn waiting(state: u32) -> u32 {
    state % READER / WAITS
}

fn is_empty(state: u32) -> bool {
    readers(state) == 0 && state & WRITER == 0
}

/// Sleeps until readers may share it or a writer has it alone; `P` says how, `SPINS` how long it
/// looks on before.
///
/// ```
/// # #[cfg(all(feature = "libc", target_os = "linux"))] {
/// use locks::{LinuxFutex, RwFutexLock, RwLock};
/// static TABLE: RwLock<[u8; 4], RwFutexLock<LinuxFutex>> = RwLock::new([0; 4]);
/// TABLE.write()[1] = 7;
/// assert_eq!((TABLE.read()[1], TABLE.read()[0]), (7, 0));
/// # }
/// ```
#[derive(Debug)]
#[repr(C)]
pub struct RwFutexLock<P, const SPINS: u32 = 100, R = Spin> {
    state: AtomicU32,
    turns: AtomicU32,
    policy: PhantomData<fn() -> (P, R)>,
}

impl<P, const SPINS: u32, R> RwFutexLock<P, SPINS, R> {
    const_fn! {
        /// Makes an unlocked lock.
        pub fn new() -> Self {
            Self { state: AtomicU32::new(0), turns: AtomicU32::new(0), policy: PhantomData }
        }

        /// Makes a lock with `readers` inside, modulo 2¹⁷, who will not leave; tests begin near the
        /// top.
        pub fn with_readers(readers: u32) -> Self {
            Self {
                state: AtomicU32::new(readers.wrapping_mul(READER)),
                turns: AtomicU32::new(u32::MAX),
                policy: PhantomData,
            }
        }
    }
}

impl<P, const SPINS: u32, R> Default for RwFutexLock<P, SPINS, R> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: Parker, const SPINS: u32, R: Relax> RwFutexLock<P, SPINS, R> {
    fn look(&self) -> u32 {
        // ORDERING: Relaxed - a hint; the exchanges decide.
        self.state.load(Ordering::Relaxed)
    }

    /// Exchanges what the state was for something by which the caller enters.
    #[inline]
    fn enter(&self, from: u32, to: u32) -> Result<u32, u32> {
        // ORDERING: Acquire on success, E1 and E2 - see the last writer's writes, and as a writer
        // that the readers have read. Relaxed on failure - the value is looked at again.
        self.state.compare_exchange(from, to, Ordering::Acquire, Ordering::Relaxed)
    }

    /// Puts a sign into the state.
    fn sign(&self, from: u32, to: u32) -> bool {
        // ORDERING: Relaxed on success and failure - only the value counts.
        self.state.compare_exchange(from, to, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Enters as a reader if nobody is in the way; `None` if the state changed meanwhile.
    #[inline]
    fn try_read(&self, state: u32) -> Option<bool> {
        if state & (WRITER | CLOSED) != 0 || readers(state) == MOST_READERS {
            return Some(false);
        }
        self.enter(state, state + READER).is_ok().then_some(true)
    }

    #[cold]
    fn read_contended(&self) {
        let (mut relax, mut left) = (R::new(), SPINS);
        loop {
            let state = self.look();
            match self.try_read(state) {
                Some(true) => return,
                None => continue,
                Some(false) => {}
            }
            if left > 0 || state & (WRITER | CLOSED) == 0 {
                relax.relax();
                left = left.saturating_sub(1);
            } else if state & ASLEEP != 0 || self.sign(state, state | ASLEEP) {
                P::park(&self.state, state | ASLEEP);
            }
        }
    }

    #[cold]
    fn write_contended(&self) {
        let (mut relax, mut left) = (R::new(), SPINS);
        loop {
            let state = self.look();
            if is_empty(state) {
                if self.enter(state, state | WRITER).is_ok() {
                    return;
                }
            } else if left > 0 || waiting(state) == MOST_WAITING {
                relax.relax();
                left = left.saturating_sub(1);
            } else if self.sign(state, (state + WAITS) | CLOSED) {
                return self.wait_for_a_turn();
            }
        }
    }

    /// Sleeps until nobody is inside, and enters; the caller has counted itself.
    fn wait_for_a_turn(&self) {
        loop {
            // ORDERING: Acquire, E3 - if somebody has left and counted, we see what it left.
            let turn = self.turns.load(Ordering::Acquire);
            let state = self.look();
            if is_empty(state) {
                let last = if waiting(state) == 1 { CLOSED } else { 0 };
                if self.enter(state, ((state - WAITS) | WRITER) & !last).is_ok() {
                    return;
                }
            } else if state & CLOSED != 0 || self.sign(state, state | CLOSED) {
                P::park(&self.turns, turn);
            }
        }
    }

    /// Wakes a waiting writer; the caller has left.
    #[cold]
    fn wake_a_writer(&self) {
        // ORDERING: Release, E3 - publishes what we made of the state.
        self.turns.fetch_add(1, Ordering::Release);
        P::unpark_one(&self.turns);
    }

    #[cold]
    fn unlock_contended(&self) {
        let mut state = self.look();
        loop {
            let left = if state & ASLEEP == 0 {
                state & !WRITER
            } else {
                state & !(WRITER | ASLEEP | CLOSED)
            };
            // ORDERING: Release on success, E1 - hands the writer's writes to whoever is next;
            // Relaxed on failure - the value is compared again.
            let done =
                self.state.compare_exchange(state, left, Ordering::Release, Ordering::Relaxed);
            match done {
                Ok(_) => break,
                Err(now) => state = now,
            }
        }
        if waiting(state) > 0 {
            self.wake_a_writer();
        }
        if state & ASLEEP != 0 {
            P::unpark_all(&self.state);
        }
    }
}

impl<P, const SPINS: u32, R> HotFields for RwFutexLock<P, SPINS, R> {
    const ALIGNMENT: usize = 4;
    const ALONE: bool = false;

    fn hot_fields(&self, visit: &mut dyn FnMut(HotField)) {
        const BECAUSE: &str = "whoever counts up a turn has just written the state";
        let Self { state, turns, policy: _ } = self;
        for field in [HotField::of("state", state), HotField::of("turns", turns)] {
            let field = field.written_by(Role::Many("readers and writers"));
            visit(field.one_line("lock", BECAUSE));
        }
    }
}

// SAFETY: by I1 one writer at a time, and no reader with it; E1 and E2 hand on what was done; the
// slots are empty.
unsafe impl<P: Parker, const SPINS: u32, R: Relax> RawLock for RwFutexLock<P, SPINS, R> {
    type Slot = ();
    const PROPERTIES: Properties =
        Properties { fairness: Fairness::None, waiting: Waiting::Blocks, numa_aware: false };

    #[inline]
    unsafe fn lock(&self, _slot: &()) {
        if self.enter(0, WRITER).is_err() {
            self.write_contended();
        }
    }

    #[inline]
    unsafe fn unlock(&self, _slot: &()) {
        // ORDERING: Release on success, E1 - hands the writer's writes to whoever is next; Relaxed
        // on failure - nothing is read.
        let left = self.state.compare_exchange(WRITER, 0, Ordering::Release, Ordering::Relaxed);
        if left.is_err() {
            self.unlock_contended();
        }
    }
}

// SAFETY: as for `RawLock`: only an exchange that set `WRITER` reports success.
unsafe impl<P: Parker, const SPINS: u32, R: Relax> TryLock for RwFutexLock<P, SPINS, R> {
    #[inline]
    unsafe fn try_lock(&self, _slot: &()) -> bool {
        let state = self.look();
        is_empty(state) && self.enter(state, state | WRITER).is_ok()
    }
}

// SAFETY: by I1 readers are inside with readers only, and E1 shows them the writer's writes.
unsafe impl<P: Parker, const SPINS: u32, R: Relax> RawRwLock for RwFutexLock<P, SPINS, R> {
    type ReadSlot = ();

    #[inline]
    unsafe fn lock_shared(&self, _slot: &()) {
        if self.try_read(self.look()) != Some(true) {
            self.read_contended();
        }
    }

    #[inline]
    unsafe fn unlock_shared(&self, _slot: &()) {
        // ORDERING: Release, E2 - the next writer writes after we have read.
        let state = self.state.fetch_sub(READER, Ordering::Release);
        if readers(state) == 1 && waiting(state) > 0 {
            self.wake_a_writer();
        }
    }

    #[inline]
    unsafe fn try_lock_shared(&self, _slot: &()) -> bool {
        loop {
            if let Some(entered) = self.try_read(self.look()) {
                return entered;
            }
        }
    }
}

// SAFETY: nothing depends on which thread unlocks.
unsafe impl<P: Parker, const SPINS: u32, R: Relax> ThreadOblivious for RwFutexLock<P, SPINS, R> {}
