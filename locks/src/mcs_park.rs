//! Spin-then-park MCS lock: FIFO queue whose waiters sleep in the kernel after a while.
//! # Algorithm
//! The queue is that of `mcs`. A waiter looks at `status` in its slot for `SPINS` rounds; then it
//! exchanges `WAIT` for `ASLEEP` and parks on the word. `unlock` swaps `GRANTED` into the
//! successor's `status`, and wakes it if the old value was `ASLEEP`.
//! # Why
//! Against `mcs` it removes waiters that burn a CPU each; against `futex` it removes overtaking.
//! It adds the price of both: each hand-off to a sleeper waits for the kernel to run it, and with
//! FIFO order nobody may go first meanwhile (the convoy). `SPINS = 0` blocks at once.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `McsParkLock` | 8 | 8 | 1 | arrivals and the last leaver |
//! | slot | 128 | 128 | 2 | its waiter, predecessor (`status`), successor (`next`) |
//! # Cost
//! Uncontended pair: 2 RMWs, 2 lines, no system call. Hand-off to a spinner: 1 RMW on its line;
//! to a sleeper: 1 wait and 1 wake besides.
//! # Progress
//! Blocking; FIFO from the swap on. A preempted waiter stops all waiters behind it, asleep.
//! # Invariants
//! - I1, I2: those of `queue_node`, with the slot as the node.
//! - I3: `status` is `ASLEEP` only while its waiter parks or is about to.
//! # Synchronization
//! | edge | release side | acquire side | publishes |
//! |---|---|---|---|
//! | E1 | swap of the successor's `status` in `unlock` | load of `status` that sees `GRANTED`, failed exchange in `sleep` | the critical section's writes |
//! | E2 to E4 | those of `queue_node` | | |
//! # Errors and limits
//! Recursion deadlocks. Every return of the parker is treated as spurious.
//! # References
//! D. Dice, "Malthusian Locks", EuroSys 2017, section 2 (spin-then-park waiting in MCS); H.
//! Guiroux, R. Lachaize, V. Quéma, "Multicore Locks: The Case Is Not Closed Yet", USENIX ATC 2016
//! (`mcs_stp`). Differs from them in: the bound is a number of looks, not a calibrated time.

use core::marker::PhantomData;
use core::ptr;

use crossbeam_utils::CachePadded;

use super::contract::{Fairness, Properties, RawLock, TryLock, Waiting};
use super::hot::{HotField, HotFields, Role};
use super::parker::Parker;
use super::queue_node::{Node, WAIT};
use super::relax::{Relax, Spin};
use super::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use super::sync::const_fn;

const GRANTED: u32 = 0;
const ASLEEP: u32 = 1;

/// Queues waiters in a list of their own slots, and lets them sleep after `SPINS` looks.
///
/// ```
/// # #[cfg(all(feature = "libc", target_os = "linux"))] {
/// use locks::{LinuxFutex, McsParkLock, Mutex};
/// let total = Mutex::<u64, McsParkLock<LinuxFutex>>::new(0);
/// total.with(|total| *total += 1);
/// assert_eq!(total.into_inner(), 1);
/// # }
/// ```
#[derive(Debug)]
pub struct McsParkLock<P, const SPINS: u32 = 1000, R = Spin> {
    tail: AtomicPtr<Node>,
    policy: PhantomData<fn() -> (P, R)>,
}

/// A waiter's place in the queue, on a pair of lines of its own.
#[derive(Debug)]
pub struct McsParkSlot(CachePadded<Node>);

impl Default for McsParkSlot {
    fn default() -> Self {
        Self(CachePadded::new(Node::new()))
    }
}

impl<P, const SPINS: u32, R> McsParkLock<P, SPINS, R> {
    const_fn! {
        /// Makes an unlocked lock.
        pub fn new() -> Self {
            Self { tail: AtomicPtr::new(ptr::null_mut()), policy: PhantomData }
        }
    }
}

impl<P, const SPINS: u32, R> Default for McsParkLock<P, SPINS, R> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: Parker, const SPINS: u32, R: Relax> McsParkLock<P, SPINS, R> {
    #[cold]
    fn wait(status: &AtomicU32) {
        let mut relax = R::new();
        for _ in 0..SPINS {
            // ORDERING: Acquire, E1 - the holder sees the last holder's writes.
            if status.load(Ordering::Acquire) == GRANTED {
                return;
            }
            relax.relax();
        }
        // ORDERING: Relaxed on success - nothing is published; Acquire on failure, E1 - the
        // predecessor was faster, and the holder sees its writes.
        if status.compare_exchange(WAIT, ASLEEP, Ordering::Relaxed, Ordering::Acquire).is_err() {
            return;
        }
        // ORDERING: Acquire, E1 - as above.
        while status.load(Ordering::Acquire) == ASLEEP {
            P::park(status, ASLEEP);
        }
    }
}

impl<P, const SPINS: u32, R> HotFields for McsParkLock<P, SPINS, R> {
    const ALIGNMENT: usize = align_of::<usize>();
    const ALONE: bool = false;

    fn hot_fields(&self, visit: &mut dyn FnMut(HotField)) {
        let Self { tail, policy: _ } = self;
        visit(HotField::of("tail", tail).written_by(Role::Many("arrivals and the last leaver")));
    }
}

impl HotFields for McsParkSlot {
    const ALIGNMENT: usize = align_of::<CachePadded<u8>>();
    const ALONE: bool = true;

    fn hot_fields(&self, visit: &mut dyn FnMut(HotField)) {
        self.0.hot_fields(&mut |field| visit(field.padded_in(&self.0)));
    }
}

// SAFETY: the queue has one head; a caller leaves `lock` when it found `tail` null or when its
// predecessor granted it the lock, which happens in that one's `unlock`. E1 and E2 hand the writes
// on. By I1 no slot is referred to after its `unlock`: the wake uses the address only.
unsafe impl<P: Parker, const SPINS: u32, R: Relax> RawLock for McsParkLock<P, SPINS, R> {
    type Slot = McsParkSlot;
    const PROPERTIES: Properties =
        Properties { fairness: Fairness::Fifo, waiting: Waiting::Blocks, numa_aware: false };

    #[inline]
    unsafe fn lock(&self, slot: &McsParkSlot) {
        if slot.0.queue(&self.tail) {
            Self::wait(&slot.0.status);
        }
    }

    #[inline]
    unsafe fn unlock(&self, slot: &McsParkSlot) {
        let Some(status) = slot.0.leave::<R>(&self.tail) else { return };
        let word = ptr::from_ref(status);
        // ORDERING: Release, E1 - hands the critical section's writes to the next holder. From
        // here on its slot may be gone: only the address is used.
        if status.swap(GRANTED, Ordering::Release) == ASLEEP {
            P::unpark_one(word);
        }
    }
}

// SAFETY: as for `RawLock`: success means having found `tail` null.
unsafe impl<P: Parker, const SPINS: u32, R: Relax> TryLock for McsParkLock<P, SPINS, R> {
    #[inline]
    unsafe fn try_lock(&self, slot: &McsParkSlot) -> bool {
        slot.0.try_queue(&self.tail)
    }
}
