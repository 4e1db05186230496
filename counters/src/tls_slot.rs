//! Shards chosen by a thread-local slot that is claimed at the first use and recycled at exit.
//! # Algorithm
//! `SLOT` caches the calling thread's number. While it is `UNKNOWN`, `claim` initialises `CLAIM`,
//! which takes the lowest free number out of `SLOTS` and whose destructor gives it back and
//! leaves `AFTER_EXIT` in `SLOT`. A thread that finds all of them taken is dealt a number that
//! another thread has as well. `PLACE` caches the number times the stride for those who write
//! alone: it is there only while `CLAIM` holds the number.
//! # Why
//! Dense recycled numbers put as many threads as there are shards into different shards, however
//! many threads have come and gone. `SLOT` has no destructor, so reading it needs no registration
//! check: the fast path is one thread-local load and one compare.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `SLOTS` | 136 | 8 | 3 or 4 | threads at their first use and at exit |
//! | `SLOT`, `PLACE`, `CLAIM` | some 40 a thread | 8 | 1 or 2 | their thread |
//!
//! `SLOTS` is the one piece of global state of this crate: a bitmap of atomics that starts at zero
//! and holds no count.
//! # Cost
//! 1 load, 1 compare. The first use in a thread: one claim, and the registration of a destructor.
//! # Progress
//! Wait-free; the first use in a thread is lock-free.
//! # Invariants
//! - I1: no two living threads cache the same number, except `AFTER_EXIT` and numbers dealt out
//!   when more than [`TlsSlot::CAPACITY`] threads lived.
//! - I2: `PLACE` is a number from I1 without the exceptions, and is forgotten before the number is
//!   given back.
//! # Synchronization
//! E1 of `slots`, from a thread's exit to the next owner of its place.
//! # Errors and limits
//! Counts are never lost, whatever the number; what I1 excepts costs transfers. In destructors of
//! thread-local values that run after `CLAIM`'s the number is `AFTER_EXIT`, that is shard 0, and
//! so it is where a platform has no native thread-local storage and destroys `SLOT` as well.
//! Such threads have no place of their own then. The child of a `fork` inherits the numbers of
//! threads that it does not have.
//! # References
//! none

use core::cell::Cell;

use crate::contract::{OwnPlace, PLACE_STRIDE, ShardIndex};
use crate::slots::Slots;

const UNKNOWN: usize = usize::MAX;
const AFTER_EXIT: usize = 0;
const NOWHERE: usize = usize::MAX;

/// Words of a bitmap of 1024 numbers.
const WORDS: usize = 1024 / usize::BITS as usize;

static SLOTS: Slots<WORDS> = Slots::new();

std::thread_local! {
    static SLOT: Cell<usize> = const { Cell::new(UNKNOWN) };
    static PLACE: Cell<usize> = const { Cell::new(NOWHERE) };
    static CLAIM: Claim = Claim(SLOTS.claim());
}

/// The calling thread's number, while it lives.
struct Claim(Option<usize>);

impl Drop for Claim {
    fn drop(&mut self) {
        // These fail only where thread-local values without destructors are destroyed as well.
        let _ = SLOT.try_with(|slot| slot.set(AFTER_EXIT));
        let _ = PLACE.try_with(|place| place.set(NOWHERE));
        if let Some(slot) = self.0 {
            SLOTS.release(slot);
        }
    }
}

/// The calling thread's slot: the lowest number that no living thread had at its first use.
///
/// ```
/// use counters::{ShardIndex, TlsSlot};
/// let mine = TlsSlot::current();
/// assert_eq!(TlsSlot::current(), mine);
/// std::thread::spawn(move || assert_ne!(TlsSlot::current(), mine)).join().unwrap();
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct TlsSlot;

impl TlsSlot {
    /// Threads that can have a slot of their own at the same time.
    pub const CAPACITY: usize = Slots::<WORDS>::CAPACITY;

    /// Whether no other living thread has the calling thread's slot.
    ///
    /// `false` if more than [`CAPACITY`](Self::CAPACITY) threads lived at its first use, and in
    /// late destructors of thread-local values.
    pub fn is_exclusive() -> bool {
        CLAIM.try_with(|claim| claim.0.is_some()).unwrap_or(false)
    }

    /// Counts the slots that living threads have; may be stale.
    pub fn taken() -> usize {
        SLOTS.taken()
    }
}

impl ShardIndex for TlsSlot {
    #[inline]
    fn current() -> usize {
        match SLOT.try_with(Cell::get) {
            Ok(UNKNOWN) => claim(),
            Ok(slot) => slot,
            Err(_) => AFTER_EXIT,
        }
    }
}

impl OwnPlace for TlsSlot {
    #[inline]
    fn cached() -> usize {
        PLACE.try_with(Cell::get).unwrap_or(NOWHERE)
    }

    #[cold]
    fn find() -> usize {
        let place = CLAIM.try_with(|claim| claim.0.map_or(NOWHERE, |slot| slot * PLACE_STRIDE));
        let place = place.unwrap_or(NOWHERE);
        // Fails only where `cached` has nothing either.
        let _ = PLACE.try_with(|cached| cached.set(place));
        place
    }
}

#[cold]
fn claim() -> usize {
    let slot = CLAIM.try_with(|claim| claim.0.unwrap_or_else(|| SLOTS.share()));
    let slot = slot.unwrap_or(AFTER_EXIT);
    // Fails only where `current` returns `AFTER_EXIT` before it comes here.
    let _ = SLOT.try_with(|cached| cached.set(slot));
    slot
}
