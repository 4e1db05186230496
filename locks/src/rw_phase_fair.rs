//! Phase-fair reader-writer lock: readers and writers take turns; nobody waits for more than one
//! phase of the others (and writers for the writers before them).
//! # Algorithm
//! `entered` counts readers in steps of `READER`, and below them has `WRITER` and the writer's
//! `PHASE`; `left` counts readers that have left. A reader adds `READER` to `entered`; if a writer
//! was there it waits until that writer's bits change. Writers queue by `tickets` and `served`; the
//! one whose turn it is adds its bits to `entered` and waits until all readers that came before
//! have left. `unlock` clears the bits, which lets the waiting readers in, and serves the next.
//! # Why
//! Against `rw_spin` it removes starvation on both sides: a reader waits for at most one writer, a
//! writer for the readers of one phase. It adds three words and an RMW for each reader's leaving on
//! another word than its entering.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `RwPhaseFairLock` | 16 | 4 | 1 | everybody |
//! | slots | 0 | 1 | 0 | nobody |
//! # Cost
//! Uncontended pair: 2 RMWs for readers; 3 RMWs, 3 loads, 1 store for writers; 1 line.
//! # Progress
//! Blocking; readers and writers alternate, writers are served first come, first served. A
//! preempted waiting writer stops everyone behind it.
//! # Invariants
//! - I1: the bits of `entered` are set by the writer that is served, and cleared by it.
//! - I2: `entered` and `left`, without bits, count the same readers; they are equal exactly if no
//!   reader is inside or waits.
//! - I3: `PHASE` differs from one writer to the next, so that a reader never takes the next writer
//!   for the one that it waits for.
//! # Synchronization
//! | edge | release side | acquire side | publishes |
//! |---|---|---|---|
//! | E1 | `unlock` clears the bits of `entered` | a reader's addition, load that ends its wait, exchange in `try_lock_shared` | the writer's writes |
//! | E2 | `unlock_shared` adds to `left` | a writer's load of `left` | that the readers have read |
//! | E3 | store of `served` in `unlock` | a writer's load of `served` | the last writer's writes |
//! # Errors and limits
//! 2³⁰ − 1 readers at once. A reader that locks again while a writer waits deadlocks.
//! # References
//! B. B. Brandenburg, J. H. Anderson, "Spin-Based Reader-Writer Synchronization for Multiprocessor
//! Real-Time Systems", Real-Time Systems 46, 2010, section 4.1 (PF-T).

use core::marker::PhantomData;

use super::contract::{
    Fairness, Properties, RawLock, RawRwLock, ThreadOblivious, TryLock, Waiting,
};
use super::hot::{HotField, HotFields, Role};
use super::relax::{Relax, Spin};
use super::sync::atomic::{AtomicU32, Ordering};
use super::sync::const_fn;

const PHASE: u32 = 1;
const WRITER: u32 = 2;
const BITS: u32 = WRITER | PHASE;
const READER: u32 = 4;

/// Lets readers and writers take turns.
///
/// ```
/// use locks::{RwLock, RwPhaseFairLock};
/// static TABLE: RwLock<u32, RwPhaseFairLock> = RwLock::new(1);
/// *TABLE.write() += 1;
/// assert_eq!(*TABLE.read() + *TABLE.read(), 4);
/// ```
#[derive(Debug)]
#[repr(C)]
pub struct RwPhaseFairLock<R = Spin> {
    entered: AtomicU32,
    left: AtomicU32,
    tickets: AtomicU32,
    served: AtomicU32,
    relax: PhantomData<fn() -> R>,
}

impl<R> RwPhaseFairLock<R> {
    const_fn! {
        /// Makes an unlocked lock.
        pub fn new() -> Self {
            Self::after(0)
        }

        /// Makes an unlocked lock after so many readers and writers; tests begin near the wrap.
        pub fn after(visits: u32) -> Self {
            Self {
                entered: AtomicU32::new(visits.wrapping_mul(READER)),
                left: AtomicU32::new(visits.wrapping_mul(READER)),
                tickets: AtomicU32::new(visits),
                served: AtomicU32::new(visits),
                relax: PhantomData,
            }
        }
    }
}

impl<R> Default for RwPhaseFairLock<R> {
    fn default() -> Self {
        Self::new()
    }
}

impl<R: Relax> RwPhaseFairLock<R> {
    /// Keeps new readers out; the readers that came before.
    fn begin_phase(&self, ticket: u32) -> u32 {
        // ORDERING: Relaxed - the readers' counts are only compared; E1 to E3 order the data.
        self.entered.fetch_add(WRITER | ticket & PHASE, Ordering::Relaxed) & !BITS
    }

    fn all_left(&self, before: u32) -> bool {
        // ORDERING: Acquire, E2 - the readers have read.
        self.left.load(Ordering::Acquire) == before
    }
}

impl<R> HotFields for RwPhaseFairLock<R> {
    const ALIGNMENT: usize = 4;
    const ALONE: bool = false;

    fn hot_fields(&self, visit: &mut dyn FnMut(HotField)) {
        const BECAUSE: &str = "one line a lock: each reader touches two of the words, each writer \
                               all of them";
        let Self { entered, left, tickets, served, relax: _ } = self;
        let everybody = Role::Many("readers and writers");
        let words =
            [("entered", entered), ("left", left), ("tickets", tickets), ("served", served)];
        for (name, word) in words {
            visit(HotField::of(name, word).written_by(everybody).one_line("lock", BECAUSE));
        }
    }
}

// SAFETY: one writer at a time is served, and begins when the readers before it have left and the
// others wait (I1, I2). E1 to E3 hand on what was done; the slots are empty.
unsafe impl<R: Relax> RawLock for RwPhaseFairLock<R> {
    type Slot = ();
    const PROPERTIES: Properties =
        Properties { fairness: Fairness::Fifo, waiting: Waiting::Spins, numa_aware: false };

    #[inline]
    unsafe fn lock(&self, _slot: &()) {
        // ORDERING: Relaxed - the number only needs atomicity.
        let ticket = self.tickets.fetch_add(1, Ordering::Relaxed);
        let mut relax = R::new();
        // ORDERING: Acquire, E3 - the writer sees the last writer's writes.
        while self.served.load(Ordering::Acquire) != ticket {
            relax.relax();
        }
        let before = self.begin_phase(ticket);
        let mut relax = R::new();
        while !self.all_left(before) {
            relax.relax();
        }
    }

    #[inline]
    unsafe fn unlock(&self, _slot: &()) {
        // ORDERING: Release, E1 - hands the writer's writes to the readers.
        self.entered.fetch_and(!BITS, Ordering::Release);
        // ORDERING: Relaxed - written by the writer that is served.
        let ticket = self.served.load(Ordering::Relaxed);
        // ORDERING: Release, E3 - hands the writer's writes to the next writer.
        self.served.store(ticket.wrapping_add(1), Ordering::Release);
    }
}

// SAFETY: as for `RawLock`: success means to be served and to find no reader.
unsafe impl<R: Relax> TryLock for RwPhaseFairLock<R> {
    #[inline]
    unsafe fn try_lock(&self, slot: &()) -> bool {
        // ORDERING: Acquire, E3 - if the exchange succeeds, the last writer's writes are visible.
        let ticket = self.served.load(Ordering::Acquire);
        // ORDERING: Relaxed on success and failure - draws the number, as `lock` does.
        let drawn = self.tickets.compare_exchange(
            ticket,
            ticket.wrapping_add(1),
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
        if drawn.is_err() {
            return false;
        }
        let before = self.begin_phase(ticket);
        let free = self.all_left(before);
        if !free {
            // SAFETY: served, as a writer is; readers that came meanwhile go on.
            unsafe { self.unlock(slot) };
        }
        free
    }
}

// SAFETY: a reader is inside with readers only: a writer waits for those before it (I2), and those
// after it wait for the writer. E1 shows them the writer's writes.
unsafe impl<R: Relax> RawRwLock for RwPhaseFairLock<R> {
    type ReadSlot = ();

    #[inline]
    unsafe fn lock_shared(&self, _slot: &()) {
        // ORDERING: Acquire, E1 - without a writer inside, see the last one's writes.
        let writer = self.entered.fetch_add(READER, Ordering::Acquire) & BITS;
        if writer == 0 {
            return;
        }
        let mut relax = R::new();
        // ORDERING: Acquire, E1 - see that writer's writes.
        while self.entered.load(Ordering::Acquire) & BITS == writer {
            relax.relax();
        }
    }

    #[inline]
    unsafe fn unlock_shared(&self, _slot: &()) {
        // ORDERING: Release, E2 - the next writer writes after we have read.
        self.left.fetch_add(READER, Ordering::Release);
    }

    #[inline]
    unsafe fn try_lock_shared(&self, _slot: &()) -> bool {
        // ORDERING: Relaxed - a hint; the exchange decides.
        let mut entered = self.entered.load(Ordering::Relaxed);
        while entered & BITS == 0 {
            // ORDERING: Acquire on success, E1 - see the last writer's writes. Relaxed on failure
            // - the value is compared again.
            let exchanged = self.entered.compare_exchange(
                entered,
                entered.wrapping_add(READER),
                Ordering::Acquire,
                Ordering::Relaxed,
            );
            match exchanged {
                Ok(_) => return true,
                Err(now) => entered = now,
            }
        }
        false
    }
}

// SAFETY: nothing depends on which thread unlocks.
unsafe impl<R: Relax> ThreadOblivious for RwPhaseFairLock<R> {}
