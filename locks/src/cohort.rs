//! Cohort lock: one lock a group and one over all groups; hand-over stays in the group for a while.
//! # Algorithm
//! `lock` takes its group's `local` lock and then, if it was not told that the group holds `global`
//! already, `global`. `unlock` looks whether somebody waits in the group: if so, and if the group has
//! not had the lock `PASSES` times in a row, it leaves `global` held, unlocks `local` only, and tells
//! the next holder how many in a row have had it. Otherwise it unlocks both, `global` first.
//! # Why
//! Against `mcs` and `ticket` it removes most hand-overs between groups, which cost several times
//! one inside; it adds a second lock to each uncontended pair, a question for the group, a line a
//! group, and waiting times up to `PASSES` critical sections of every other group. The count goes with
//! the hand-over: on a line of its own it would cost each one two transfers more.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `CohortLock` | 128 + 128 a group | 128 | 2 + 2 a group | arrivals and holders |
//! | slot | the local lock's, and 8 | the local lock's | its | its waiter |
//! # Cost
//! Uncontended pair: those of both locks, and `rdtscp`. Hand-off inside a group: that of the local
//! lock. Between groups: those of both.
//! # Progress
//! Blocking. Bounded: in each group first come, first served if the local lock is; each group
//! has the lock at most `PASSES` times in a row, then competes for `global` by that lock's rules (with a
//! back-off lock there another group may lose for long; with tickets it may not). A preempted
//! waiter stops those behind it.
//! # Invariants
//! - I1: a holder of `local` was told something other than 0 exactly if its group holds `global`
//!   already, and takes it otherwise: it then has the lock.
//! - I2: `local` is unlocked with `global` held only if somebody waits for `local`, who is told so.
//! # Synchronization
//! | edge | release side | acquire side | publishes |
//! |---|---|---|---|
//! | E1 | unlock of `local` | lock of `local` | the critical section's writes, in the group |
//! | E2 | unlock of `global` | lock of `global` | the critical section's writes, between groups |
//! # Errors and limits
//! Groups beyond `GROUPS` share. A migrating thread unlocks the group that it locked: its slot
//! keeps the number. Recursion deadlocks.
//! # References
//! D. Dice, V. J. Marathe, N. Shavit, "Lock Cohorting: A General Technique for Designing NUMA
//! Locks", PPoPP 2012, sections 2 and 3 (C-BO-MCS, C-TKT-TKT). Differs from the paper in: the
//! bound's default is 64; the count is what is told; the group's number is asked at each acquisition.

use crossbeam_utils::CachePadded;

use super::array::array_of;
use super::contract::{
    ConstInit, Fairness, Properties, RawLock, TellsNext, ThreadOblivious, TryLock,
};
use super::hot::{HotField, HotFields, Role};
use super::sync::atomic::{AtomicUsize, Ordering};
use super::sync::const_fn;
use super::topology::Topology;

/// Keeps the lock in a group of near CPUs for up to `PASSES` holders in a row.
///
/// ```
/// use locks::{CohortLock, CpuBlocks, McsLock, Mutex, TicketLock};
/// type Lock = CohortLock<TicketLock, McsLock, CpuBlocks<64, 64, 128>, 2>;
/// let total = Mutex::<u64, Lock>::new(0);
/// total.with(|total| *total += 1);
/// assert_eq!(total.into_inner(), 1);
/// ```
#[derive(Debug)]
#[repr(C)]
pub struct CohortLock<G, L, T, const GROUPS: usize = 8, const PASSES: u32 = 64> {
    global: CachePadded<G>,
    groups: [CachePadded<L>; GROUPS],
    topology: T,
}

/// What a waiter brings to its group's lock, and the group's number.
#[derive(Debug, Default)]
#[repr(C)]
pub struct CohortSlot<S> {
    local: S,
    group: AtomicUsize,
}

impl<G: ConstInit, L: ConstInit, T: ConstInit, const GROUPS: usize, const PASSES: u32>
    CohortLock<G, L, T, GROUPS, PASSES>
{
    const_fn! {
        /// Makes an unlocked lock.
        pub fn new() -> Self {
            Self {
                global: CachePadded::new(G::INIT),
                groups: array_of![CachePadded::new(L::INIT); GROUPS],
                topology: T::INIT,
            }
        }
    }
}

impl<G: Default, L: Default, T, const GROUPS: usize, const PASSES: u32>
    CohortLock<G, L, T, GROUPS, PASSES>
{
    /// Makes an unlocked lock whose groups `topology` tells.
    pub fn on(topology: T) -> Self {
        Self {
            global: CachePadded::default(),
            groups: core::array::from_fn(|_| CachePadded::default()),
            topology,
        }
    }
}

impl<G: Default, L: Default, T: Default, const GROUPS: usize, const PASSES: u32> Default
    for CohortLock<G, L, T, GROUPS, PASSES>
{
    fn default() -> Self {
        Self::on(T::default())
    }
}

impl<G, L, T: Topology, const GROUPS: usize, const PASSES: u32>
    CohortLock<G, L, T, GROUPS, PASSES>
{
    const SOME_GROUPS: () =
        assert!(GROUPS > 0 && PASSES > 0, "no group, or none that has the lock");

    /// The lock of the caller's group, which is written down for its `unlock`.
    fn enter<S>(&self, slot: &CohortSlot<S>) -> &L {
        let () = Self::SOME_GROUPS;
        let group = self.topology.group(0) % GROUPS;
        // ORDERING: Relaxed - the slot is its waiter's alone.
        slot.group.store(group, Ordering::Relaxed);
        &self.groups[group]
    }

    fn entered<S>(&self, slot: &CohortSlot<S>) -> &L {
        // ORDERING: Relaxed - as in `enter`.
        &self.groups[slot.group.load(Ordering::Relaxed) % GROUPS]
    }
}

impl<G, L, T, const GROUPS: usize, const PASSES: u32> HotFields
    for CohortLock<G, L, T, GROUPS, PASSES>
{
    const ALIGNMENT: usize = align_of::<CachePadded<u8>>();
    const ALONE: bool = true;

    fn hot_fields(&self, visit: &mut dyn FnMut(HotField)) {
        let Self { global, groups, topology } = self;
        let everybody = Role::Many("holders and arrivals");
        visit(HotField::of("global", &**global).written_by(everybody).padded_in(global));
        for (nth, local) in groups.iter().enumerate() {
            let of_group = Role::Many("holders and arrivals of a group");
            let local = HotField::of("local", &**local).written_by(of_group).padded_in(local);
            visit(local.nth(nth));
        }
        visit(HotField::of("topology", topology));
        visit(HotField::rest(self, topology));
    }
}

impl<S: HotFields> HotFields for CohortSlot<S> {
    const ALIGNMENT: usize = align_of::<Self>();
    const ALONE: bool = S::ALONE;

    fn hot_fields(&self, visit: &mut dyn FnMut(HotField)) {
        let Self { local, group } = self;
        local.hot_fields(visit);
        visit(HotField::of("group", group).written_by(Role::One("waiter")));
        visit(HotField::rest(self, group));
    }
}

// SAFETY: the holder of its group's `local` is the only one in the group, and by I1 the group is
// the only one that holds `global`. E1 and E2 hand the writes on. The slot's part that others may
// refer to is the local lock's, which keeps the contract.
unsafe impl<G, L, T, const GROUPS: usize, const PASSES: u32> RawLock
    for CohortLock<G, L, T, GROUPS, PASSES>
where
    G: ThreadOblivious<Slot = ()>,
    L: TellsNext,
    T: Topology,
{
    type Slot = CohortSlot<L::Slot>;
    const PROPERTIES: Properties =
        Properties { fairness: Fairness::Bounded, numa_aware: true, ..L::PROPERTIES };

    #[inline]
    unsafe fn lock(&self, slot: &Self::Slot) {
        let local = self.enter(slot);
        // SAFETY: the caller's promise about the slot, for its part.
        unsafe { local.lock(&slot.local) };
        // SAFETY: taken above with this slot.
        if unsafe { local.told(&slot.local) } == 0 {
            // SAFETY: the slot is empty; whoever unlocks has it by way of `local`.
            unsafe { self.global.lock(&()) };
        }
    }

    #[inline]
    unsafe fn unlock(&self, slot: &Self::Slot) {
        let local = self.entered(slot);
        // SAFETY: the caller holds the lock, and with it `local`, taken with this slot.
        let in_a_row = unsafe { local.told(&slot.local) } + 1;
        // SAFETY: as above.
        if in_a_row < PASSES && unsafe { local.has_waiters(&slot.local) } {
            // SAFETY: as above; somebody waits.
            unsafe { local.unlock_telling(&slot.local, in_a_row) };
        } else {
            // SAFETY: by I1 the group holds it.
            unsafe { self.global.unlock(&()) };
            // SAFETY: as above.
            unsafe { local.unlock(&slot.local) };
        }
    }
}

// SAFETY: as for `RawLock`: success means to hold `local`, and `global` by way of the group.
unsafe impl<G, L, T, const GROUPS: usize, const PASSES: u32> TryLock
    for CohortLock<G, L, T, GROUPS, PASSES>
where
    G: ThreadOblivious<Slot = ()> + TryLock,
    L: TellsNext + TryLock,
    T: Topology,
{
    #[inline]
    unsafe fn try_lock(&self, slot: &Self::Slot) -> bool {
        let local = self.enter(slot);
        // SAFETY: the caller's promise about the slot, for its part.
        if !unsafe { local.try_lock(&slot.local) } {
            return false;
        }
        // SAFETY: taken above with this slot; the slot of `global` as in `lock`.
        let taken = unsafe { local.told(&slot.local) } != 0 || unsafe { self.global.try_lock(&()) };
        if !taken {
            // SAFETY: taken above with this slot.
            unsafe { local.unlock(&slot.local) };
        }
        taken
    }
}
