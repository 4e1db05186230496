//! Ticket lock whose waiters sleep: FIFO, and each holder hands the lock to the next one itself.
//! # Algorithm
//! `lock` takes the number `next` and waits at the place of that number, one of `PLACES`, until the
//! word there names it: it looks for `SPINS` rounds, then marks the word as `ASLEEP` and parks on
//! it. `unlock` swaps the next number into that number's place, and wakes who sleeps there if
//! the old word was marked. A place names a number also when nobody has taken that one yet: then
//! the lock is free.
//! # Why
//! Against `futex` it removes overtaking, and with it starvation; against `mcs_park` whatever a
//! waiter brings, so that guards work. It adds places, whose sleepers are woken together
//! if they are more than one, and the convoy: each hand-off to a sleeper waits for the kernel to
//! run it, and nobody may go first meanwhile.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `TicketParkLock` | 8 and 4 a place | 4 | 1 | arrivals, holder, sleepers |
//! | slot | 0 | 1 | 0 | nobody |
//! # Cost
//! Uncontended pair: 2 RMWs, 2 loads, 1 store, 1 line, no system call. Hand-off to a sleeper: 1 RMW,
//! 1 wait and 1 wake besides.
//! # Progress
//! Blocking; FIFO from the addition to `next` on. A preempted waiter stops all waiters behind it.
//! # Invariants
//! - I1: the place of a number names that number from the unlock of the number before it until the
//!   lock of `PLACES` numbers later is let go; no other number lets a caller in there.
//! - I2: `holder` is written and read by the holder only.
//! - I3: whoever sleeps at a place has marked the word there, and who swaps a marked word wakes all
//!   that sleep there.
//! # Synchronization
//! | edge | release side | acquire side | publishes |
//! |---|---|---|---|
//! | E1 | swap of a place in `unlock` | load of the place that names the caller's number | the critical section's writes |
//! # Errors and limits
//! Numbers wrap at 2³¹, so at most as many waiters. `PLACES` is a power of two; with more
//! waiters than places some are woken in vain. Recursion deadlocks. Every return of the parker
//! is treated as spurious.
//! # References
//! D. P. Reed, R. K. Kanodia, "Synchronization with Eventcounts and Sequencers", CACM 22(2), 1979.
//! Differs from the paper in: an eventcount a place, so that a hand-off wakes one sleeper.

use core::marker::PhantomData;

use super::array::array_of;
use super::contract::{Fairness, Properties, RawLock, ThreadOblivious, TryLock, Waiting};
use super::hot::{HotField, HotFields, Role};
use super::parker::Parker;
use super::relax::{Relax, Spin};
use super::sync::atomic::{AtomicU32, Ordering};
use super::sync::const_fn;

const ASLEEP: u32 = 1;
/// Numbers are counted by this, so that the mark has room.
const NUMBER: u32 = 2;

/// Hands out numbers, and lets who has one sleep until it is its turn.
///
/// ```
/// # #[cfg(all(feature = "libc", target_os = "linux"))] {
/// use locks::{LinuxFutex, Mutex, TicketParkLock};
/// static TOTAL: Mutex<u64, TicketParkLock<LinuxFutex>> = Mutex::new(0);
/// *TOTAL.lock() += 1;
/// assert_eq!(*TOTAL.lock(), 1);
/// # }
/// ```
#[derive(Debug)]
#[repr(C)]
pub struct TicketParkLock<P, const PLACES: usize = 8, const SPINS: u32 = 100, R = Spin> {
    next: AtomicU32,
    holder: AtomicU32,
    places: [AtomicU32; PLACES],
    policy: PhantomData<fn() -> (P, R)>,
}

impl<P, const PLACES: usize, const SPINS: u32, R> TicketParkLock<P, PLACES, SPINS, R> {
    const A_POWER_OF_TWO: () = assert!(PLACES.is_power_of_two(), "numbers wrap within the places");

    const_fn! {
        /// Makes an unlocked lock.
        pub fn new() -> Self {
            let () = Self::A_POWER_OF_TWO;
            Self {
                next: AtomicU32::new(0),
                holder: AtomicU32::new(0),
                places: array_of![AtomicU32::new(0); PLACES],
                policy: PhantomData,
            }
        }
    }

    /// Makes an unlocked lock whose first number is `number` modulo 2³¹; tests begin before it wraps.
    pub fn starting_at(number: u32) -> Self {
        let () = Self::A_POWER_OF_TWO;
        let number = number.wrapping_mul(NUMBER);
        Self {
            next: AtomicU32::new(number),
            holder: AtomicU32::new(number),
            // One of them is its place, the others wait for other numbers.
            places: core::array::from_fn(|_| AtomicU32::new(number)),
            policy: PhantomData,
        }
    }

    fn place(&self, number: u32) -> &AtomicU32 {
        &self.places[(number / NUMBER) as usize % PLACES]
    }

    /// Writes down the number that has the lock, for its `unlock`.
    fn hold(&self, number: u32) {
        // ORDERING: Relaxed - by I2 ours alone; E1 orders it.
        self.holder.store(number, Ordering::Relaxed);
    }
}

impl<P, const PLACES: usize, const SPINS: u32, R> Default for TicketParkLock<P, PLACES, SPINS, R> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: Parker, const PLACES: usize, const SPINS: u32, R: Relax>
    TicketParkLock<P, PLACES, SPINS, R>
{
    #[cold]
    fn wait(place: &AtomicU32, number: u32) {
        let (mut relax, mut left) = (R::new(), SPINS);
        loop {
            // ORDERING: Acquire, E1 - the holder sees the last holder's writes.
            let word = place.load(Ordering::Acquire);
            if word & !ASLEEP == number {
                return;
            }
            if left > 0 {
                relax.relax();
                left -= 1;
                continue;
            }
            // ORDERING: Relaxed on success and failure - a sign for who swaps the word (I3); what
            // the word says is looked at again.
            let marked = word & ASLEEP != 0
                || place
                    .compare_exchange(word, word | ASLEEP, Ordering::Relaxed, Ordering::Relaxed)
                    .is_ok();
            if marked {
                P::park(place, word | ASLEEP);
            }
        }
    }
}

impl<P, const PLACES: usize, const SPINS: u32, R> HotFields
    for TicketParkLock<P, PLACES, SPINS, R>
{
    const ALIGNMENT: usize = 4;
    const ALONE: bool = false;

    fn hot_fields(&self, visit: &mut dyn FnMut(HotField)) {
        const BECAUSE: &str = "waiters sleep, so few look at the line while the holder writes it";
        let Self { next, holder, places, policy: _ } = self;
        let next = HotField::of("next", next).written_by(Role::Many("arrivals"));
        visit(next.one_line("lock", BECAUSE));
        let holder = HotField::of("holder", holder).written_by(Role::Many("holders"));
        visit(holder.one_line("lock", BECAUSE));
        let places = HotField::of("places", places).written_by(Role::Many("holder and sleepers"));
        visit(places.one_line("lock", BECAUSE));
    }
}

// SAFETY: each caller has a number of its own, and a caller leaves `lock` when its place names that
// number, which by I1 the unlock of the number before it said. E1 hands the writes on; the slot is
// empty.
unsafe impl<P: Parker, const PLACES: usize, const SPINS: u32, R: Relax> RawLock
    for TicketParkLock<P, PLACES, SPINS, R>
{
    type Slot = ();
    const PROPERTIES: Properties =
        Properties { fairness: Fairness::Fifo, waiting: Waiting::Blocks, numa_aware: false };

    #[inline]
    unsafe fn lock(&self, _slot: &()) {
        // ORDERING: Relaxed - gives a number and publishes nothing; the place decides.
        let number = self.next.fetch_add(NUMBER, Ordering::Relaxed);
        let place = self.place(number);
        // ORDERING: Acquire, E1 - the holder sees the last holder's writes.
        if place.load(Ordering::Acquire) != number {
            Self::wait(place, number);
        }
        self.hold(number);
    }

    #[inline]
    unsafe fn unlock(&self, _slot: &()) {
        // ORDERING: Relaxed - by I2 ours alone; E1 orders it.
        let next = self.holder.load(Ordering::Relaxed).wrapping_add(NUMBER);
        let place = self.place(next);
        let address = core::ptr::from_ref(place);
        // ORDERING: Release, E1 - hands the critical section's writes to the next holder. From here
        // on the lock may be freed by that holder: only the address is used.
        if place.swap(next, Ordering::Release) & ASLEEP != 0 {
            P::unpark_all(address);
        }
    }
}

// SAFETY: as for `RawLock`: success means to have taken a number that its place names already.
unsafe impl<P: Parker, const PLACES: usize, const SPINS: u32, R: Relax> TryLock
    for TicketParkLock<P, PLACES, SPINS, R>
{
    #[inline]
    unsafe fn try_lock(&self, _slot: &()) -> bool {
        // ORDERING: Relaxed - a hint; the exchange decides whether the number is ours.
        let number = self.next.load(Ordering::Relaxed);
        // ORDERING: Acquire, E1 - the holder sees the last holder's writes.
        let free = self.place(number).load(Ordering::Acquire) & !ASLEEP == number;
        let taken = free
            // ORDERING: Relaxed on success and failure - as the addition in `lock`.
            && self
                .next
                .compare_exchange(
                    number,
                    number.wrapping_add(NUMBER),
                    Ordering::Relaxed,
                    Ordering::Relaxed,
                )
                .is_ok();
        if taken {
            self.hold(number);
        }
        taken
    }
}

// SAFETY: the number that has the lock lies in it.
unsafe impl<P: Parker, const PLACES: usize, const SPINS: u32, R: Relax> ThreadOblivious
    for TicketParkLock<P, PLACES, SPINS, R>
{
}
