//! Array lock: each waiter spins on a line of the lock's own array.
//! # Algorithm
//! `lock` draws the number `next` with one `fetch_add` and waits until the place `number % PLACES`
//! shows that number; the holder writes it down in `holder`. `unlock` writes the number after it
//! into the next place.
//! # Why
//! Against `ticket` it removes the broadcast: a hand-off invalidates one waiter's line. Against
//! `mcs` it removes the slot and the link, and adds `PLACES` lines to each lock and a second RMW
//! nowhere: guards work.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `AndersonLock` | 256 + 128 a place | 128 | 4 + 2 a place | `next`: arrivals; `holder`, places: holders |
//! | slot | 0 | 1 | 0 | nobody |
//! # Cost
//! Uncontended pair: 1 RMW, 2 loads, 2 stores, 4 lines, other ones each time. Hand-off with n
//! waiters: 1 transfer to write the place, 1 for its waiter to read it, 1 for `holder`.
//! # Progress
//! Blocking; FIFO from the `fetch_add` on. A preempted waiter stops all waiters behind it.
//! # Invariants
//! - I1: places and `holder` are written by the holder only.
//! - I2: a place shows numbers that belong to it and the number 0, and while fewer than 2³²
//!   callers wait at once, only one of them waits for the number it shows.
//! # Synchronization
//! | edge | release side | acquire side | publishes |
//! |---|---|---|---|
//! | E1 | store of a place in `unlock` | load of the place in `lock`, `try_lock` | the critical section's writes, and `holder` |
//! # Errors and limits
//! More waiters than `PLACES`, a power of two, share places and disturb one another, and lose
//! nothing else. At most 2³² − 1 callers at once. Recursion deadlocks.
//! # References
//! T. E. Anderson, "The Performance of Spin Lock Alternatives for Shared-Memory
//! Multiprocessors", IEEE TPDS 1(1), 1990, section "Queueing in Shared Memory". Differs from the
//! paper in: places show numbers, not flags, so that more waiters than places do no harm (as in
//! D. Dice, "Brief Announcement: A Partitioned Ticket Lock", SPAA 2011).

use core::marker::PhantomData;

use crossbeam_utils::CachePadded;

use super::array::array_of;
use super::contract::{Fairness, Properties, RawLock, ThreadOblivious, TryLock, Waiting};
use super::hot::{HotField, HotFields, Role};
use super::relax::{Relax, Spin};
use super::sync::atomic::{AtomicU32, Ordering};
use super::sync::const_fn;

/// Serves waiters in the order of their numbers, each at a place of its own.
///
/// ```
/// use locks::{AndersonLock, Mutex};
/// static TOTAL: Mutex<u64, AndersonLock<8>> = Mutex::new(0);
/// *TOTAL.lock() += 1;
/// assert_eq!(*TOTAL.lock(), 1);
/// ```
#[derive(Debug)]
#[repr(C)]
pub struct AndersonLock<const PLACES: usize = 128, R = Spin> {
    next: CachePadded<AtomicU32>,
    holder: CachePadded<AtomicU32>,
    places: [CachePadded<AtomicU32>; PLACES],
    relax: PhantomData<fn() -> R>,
}

impl<const PLACES: usize, R> AndersonLock<PLACES, R> {
    const POWER_OF_TWO: () =
        assert!(PLACES.is_power_of_two(), "numbers wrap: the number of places is a power of two");

    const_fn! {
        /// Makes an unlocked lock.
        pub fn new() -> Self {
            let () = Self::POWER_OF_TWO;
            // The place 0 shows the number 0, and 0 belongs to no other place.
            Self {
                next: CachePadded::new(AtomicU32::new(0)),
                holder: CachePadded::new(AtomicU32::new(0)),
                places: array_of![CachePadded::new(AtomicU32::new(0)); PLACES],
                relax: PhantomData,
            }
        }
    }
}

impl<const PLACES: usize, R> AndersonLock<PLACES, R> {
    /// Where the number is shown.
    fn place(&self, number: u32) -> &AtomicU32 {
        &self.places[number as usize % PLACES]
    }

    fn hold(&self, number: u32) {
        // ORDERING: Relaxed - by I1 ours alone; E1 orders it.
        self.holder.store(number, Ordering::Relaxed);
    }
}

impl<const PLACES: usize, R> Default for AndersonLock<PLACES, R> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const PLACES: usize, R> HotFields for AndersonLock<PLACES, R> {
    const ALIGNMENT: usize = align_of::<CachePadded<u8>>();
    const ALONE: bool = true;

    fn hot_fields(&self, visit: &mut dyn FnMut(HotField)) {
        let Self { next, holder, places, relax: _ } = self;
        let arrivals = Role::Many("arrivals");
        visit(HotField::of("next", &**next).written_by(arrivals).padded_in(next));
        visit(HotField::of("holder", &**holder).written_by(Role::One("holder")).padded_in(holder));
        for (nth, place) in places.iter().enumerate() {
            let field = HotField::of("places", &**place).written_by(Role::One("holder"));
            visit(field.read_by(Role::Nth("waiter at place", nth)).padded_in(place).nth(nth));
        }
    }
}

// SAFETY: by I2 one caller waits for the number that a place shows, and by I1 one place at a time
// shows a number that was not served yet; E1 hands the writes on; the slot is empty.
unsafe impl<const PLACES: usize, R: Relax> RawLock for AndersonLock<PLACES, R> {
    type Slot = ();
    const PROPERTIES: Properties =
        Properties { fairness: Fairness::Fifo, waiting: Waiting::Spins, numa_aware: false };

    #[inline]
    unsafe fn lock(&self, _slot: &()) {
        // ORDERING: Relaxed - the number only needs atomicity; E1 orders the data.
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let place = self.place(number);
        let mut relax = R::new();
        // ORDERING: Acquire, E1 - the holder sees the last holder's writes.
        while place.load(Ordering::Acquire) != number {
            relax.relax();
        }
        self.hold(number);
    }

    #[inline]
    unsafe fn unlock(&self, _slot: &()) {
        // ORDERING: Relaxed - by I1 the holder reads its own number back.
        let next = self.holder.load(Ordering::Relaxed).wrapping_add(1);
        // ORDERING: Release, E1 - hands the critical section's writes to the next holder.
        self.place(next).store(next, Ordering::Release);
    }
}

// SAFETY: as for `RawLock`: success means having drawn the number that its place shows.
unsafe impl<const PLACES: usize, R: Relax> TryLock for AndersonLock<PLACES, R> {
    #[inline]
    unsafe fn try_lock(&self, _slot: &()) -> bool {
        // ORDERING: Relaxed - a hint; the exchange below fails if it was stale.
        let number = self.next.load(Ordering::Relaxed);
        // ORDERING: Acquire, E1 - if the exchange succeeds, the last holder's writes are visible.
        if self.place(number).load(Ordering::Acquire) != number {
            return false;
        }
        // ORDERING: Relaxed on success and failure - draws the number, as `lock` does; as nobody
        // drew it before, its place still shows it.
        let drawn = self.next.compare_exchange(
            number,
            number.wrapping_add(1),
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
        if drawn.is_ok() {
            self.hold(number);
        }
        drawn.is_ok()
    }
}

// SAFETY: nothing depends on which thread writes the next place.
unsafe impl<const PLACES: usize, R: Relax> ThreadOblivious for AndersonLock<PLACES, R> {}
