//! Big-reader lock: readers count themselves at a place of their group's, writers ask every place.
//! # Algorithm
//! A reader adds 1 to its place and looks at `writer`; if that is set it takes the 1 away again,
//! waits until it is clear, and begins anew. A writer takes the lock `W` of the writers, sets
//! `writer`, and waits until each place is 0 in turn.
//! # Why
//! Against `rw_spin` it removes the line that all readers write: reads in different groups share
//! a line that is only read. It adds `PLACES` lines to the lock and to each write.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `RwBigReaderLock` | 256 + 128 a place, and `W` in the first 128 | 128 | 4 + 2 a place | places: readers of a group; the rest: writers |
//! | slot of a reader | 8 | 8 | 1 | the reader |
//! # Cost
//! Reader's pair: 2 RMWs, 1 load, 1 fence, `rdtscp`, 2 lines. Writer's: that of `W`, 2 stores, 1
//! fence, `PLACES` loads.
//! # Progress
//! Blocking; writers are preferred: new readers wait for a writer that waits for old ones, and may
//! starve. A preempted reader stops writers; a preempted writer everyone.
//! # Invariants
//! - I1: a place counts the readers of its group that are inside or about to look at `writer`.
//! - I2: `writer` is written by the holder of `W` only, and is set while a writer is inside.
//! # Synchronization
//! | edge | release side | acquire side | publishes |
//! |---|---|---|---|
//! | E1 | `unlock` clears `writer` | a reader's load of `writer` | the writer's writes |
//! | E2 | `unlock_shared` takes 1 away | a writer's load of the place | that the readers have read |
//! | E3 | fence of a reader, after its 1 | fence of a writer, after `writer` | one of the two sees the other (store buffering): a reader that saw no writer is seen by it |
//! | E4 | unlock of `W` | lock of `W` | the last writer's writes |
//! # Errors and limits
//! 2³² − 1 readers of a group at once. A reader that locks again while a writer waits deadlocks.
//! A reader unlocks the place that it locked, wherever it runs by then: its slot keeps it.
//! # References
//! "brlock" of Linux 2.4, I. Molnar, 2000; Y. Liu, S. Lu, "Distributed reader-writer locks", as
//! described in I. Calciu et al., "NUMA-Aware Reader-Writer Locks", PPoPP 2013, section 2.
//! Differs from them in: a place a group of CPUs, not a CPU.

use crossbeam_utils::CachePadded;

use super::array::array_of;
use super::contract::{ConstInit, Properties, RawLock, RawRwLock, TryLock};
use super::hot::{HotField, HotFields, Role};
use super::relax::{Relax, Spin};
use super::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering, fence};
use super::sync::const_fn;
use super::topology::Topology;

/// Gives each group of CPUs a place to count its readers.
///
/// ```
/// use locks::{CpuBlocks, RwBigReaderLock, RwLock, TicketLock};
/// type Lock = RwBigReaderLock<TicketLock, CpuBlocks<1, 1, 128>, 128>;
/// static TABLE: RwLock<u32, Lock> = RwLock::new(1);
/// TABLE.write_with(|value| *value += 1);
/// assert_eq!(TABLE.read_with(|value| *value), 2);
/// ```
#[derive(Debug)]
#[repr(C)]
pub struct RwBigReaderLock<W, T, const PLACES: usize, R = Spin> {
    writers: CachePadded<W>,
    writer: CachePadded<AtomicBool>,
    places: [CachePadded<AtomicU32>; PLACES],
    topology: T,
    relax: core::marker::PhantomData<fn() -> R>,
}

/// Which place a reader has.
#[derive(Debug, Default)]
pub struct ReaderPlace(AtomicUsize);

impl<W: ConstInit, T: ConstInit, const PLACES: usize, R> RwBigReaderLock<W, T, PLACES, R> {
    const_fn! {
        /// Makes an unlocked lock.
        pub fn new() -> Self {
            Self {
                writers: CachePadded::new(W::INIT),
                writer: CachePadded::new(AtomicBool::new(false)),
                places: array_of![CachePadded::new(AtomicU32::new(0)); PLACES],
                topology: T::INIT,
                relax: core::marker::PhantomData,
            }
        }
    }
}

impl<W: Default, T, const PLACES: usize, R> RwBigReaderLock<W, T, PLACES, R> {
    /// Makes an unlocked lock whose groups `topology` tells.
    pub fn on(topology: T) -> Self {
        Self {
            writers: CachePadded::default(),
            writer: CachePadded::new(AtomicBool::new(false)),
            places: array_of![CachePadded::new(AtomicU32::new(0)); PLACES],
            topology,
            relax: core::marker::PhantomData,
        }
    }
}

impl<W: Default, T: Default, const PLACES: usize, R> Default for RwBigReaderLock<W, T, PLACES, R> {
    fn default() -> Self {
        Self::on(T::default())
    }
}

impl<W, T: Topology, const PLACES: usize, R: Relax> RwBigReaderLock<W, T, PLACES, R> {
    const SOME_PLACES: () = assert!(PLACES > 0, "readers count themselves somewhere");

    /// The caller's place, written down for its `unlock_shared`.
    fn take_place(&self, slot: &ReaderPlace) -> &AtomicU32 {
        let () = Self::SOME_PLACES;
        let nth = self.topology.group(0) % PLACES;
        // ORDERING: Relaxed - the reader's alone.
        slot.0.store(nth, Ordering::Relaxed);
        &self.places[nth]
    }

    /// Counts the reader; whether no writer is there.
    fn enter(&self, place: &AtomicU32) -> bool {
        // ORDERING: Relaxed - the fence orders it (E3).
        place.fetch_add(1, Ordering::Relaxed);
        // ORDERING: SeqCst, E3 - store buffering: our 1, then the load of `writer`; the writer's
        // `true`, then its loads of the places. Both loads must not miss the other's store.
        fence(Ordering::SeqCst);
        // ORDERING: Acquire, E1 - the reader sees the last writer's writes.
        !self.writer.load(Ordering::Acquire)
    }

    fn leave(place: &AtomicU32) {
        // ORDERING: Release, E2 - the next writer writes after we have read.
        place.fetch_sub(1, Ordering::Release);
    }

    /// Tells the readers; the caller holds `writers`.
    fn announce(&self) {
        // ORDERING: Relaxed - the fence orders it (E3).
        self.writer.store(true, Ordering::Relaxed);
        // ORDERING: SeqCst, E3 - as in `enter`.
        fence(Ordering::SeqCst);
    }

    fn is_empty(place: &AtomicU32) -> bool {
        // ORDERING: Acquire, E2 - the readers have read.
        place.load(Ordering::Acquire) == 0
    }
}

impl<W, T, const PLACES: usize, R> HotFields for RwBigReaderLock<W, T, PLACES, R> {
    const ALIGNMENT: usize = align_of::<CachePadded<u8>>();
    const ALONE: bool = true;

    fn hot_fields(&self, visit: &mut dyn FnMut(HotField)) {
        let Self { writers, writer, places, topology, relax: _ } = self;
        let all = Role::Many("writers");
        visit(HotField::of("writers", &**writers).written_by(all).padded_in(writers));
        let flag = HotField::of("writer", &**writer).written_by(all).read_by(Role::Many("readers"));
        visit(flag.padded_in(writer));
        for (nth, place) in places.iter().enumerate() {
            let field = HotField::of("places", &**place).read_by(all).padded_in(place).nth(nth);
            visit(field.written_by(Role::Nth("readers of group", nth)));
        }
        visit(HotField::of("topology", topology));
        visit(HotField::rest(self, topology));
    }
}

impl HotFields for ReaderPlace {
    const ALIGNMENT: usize = align_of::<usize>();
    const ALONE: bool = false;

    fn hot_fields(&self, visit: &mut dyn FnMut(HotField)) {
        let Self(place) = self;
        visit(HotField::of("place", place).written_by(Role::One("reader")));
    }
}

// SAFETY: one writer at a time holds `writers`, and by I1, I2 and E3 it waits for each reader that
// has not seen it. E1, E2, E4 hand on what was done. The slot is that of `writers`.
unsafe impl<W: RawLock, T: Topology, const PLACES: usize, R: Relax> RawLock
    for RwBigReaderLock<W, T, PLACES, R>
{
    type Slot = W::Slot;
    const PROPERTIES: Properties = W::PROPERTIES;

    #[inline]
    unsafe fn lock(&self, slot: &W::Slot) {
        // SAFETY: the caller's promise, passed on.
        unsafe { self.writers.lock(slot) };
        self.announce();
        for place in &self.places {
            let mut relax = R::new();
            while !Self::is_empty(place) {
                relax.relax();
            }
        }
    }

    #[inline]
    unsafe fn unlock(&self, slot: &W::Slot) {
        // ORDERING: Release, E1 - hands the writer's writes to the readers.
        self.writer.store(false, Ordering::Release);
        // SAFETY: the caller's promise, passed on.
        unsafe { self.writers.unlock(slot) };
    }
}

// SAFETY: as for `RawLock`: success means to hold `writers` and to have found no reader.
unsafe impl<W: TryLock, T: Topology, const PLACES: usize, R: Relax> TryLock
    for RwBigReaderLock<W, T, PLACES, R>
{
    #[inline]
    unsafe fn try_lock(&self, slot: &W::Slot) -> bool {
        // SAFETY: the caller's promise, passed on.
        if !unsafe { self.writers.try_lock(slot) } {
            return false;
        }
        self.announce();
        let free = self.places.iter().all(|place| Self::is_empty(place));
        if !free {
            // SAFETY: taken above with this slot; readers that came meanwhile go on.
            unsafe { self.unlock(slot) };
        }
        free
    }
}

// SAFETY: a reader that saw no writer after counting itself is waited for (E3); E1 shows it the
// last writer's writes.
unsafe impl<W: RawLock, T: Topology, const PLACES: usize, R: Relax> RawRwLock
    for RwBigReaderLock<W, T, PLACES, R>
{
    type ReadSlot = ReaderPlace;

    #[inline]
    unsafe fn lock_shared(&self, slot: &ReaderPlace) {
        let place = self.take_place(slot);
        while !self.enter(place) {
            Self::leave(place);
            let mut relax = R::new();
            // ORDERING: Relaxed - a hint; `enter` decides.
            while self.writer.load(Ordering::Relaxed) {
                relax.relax();
            }
        }
    }

    #[inline]
    unsafe fn unlock_shared(&self, slot: &ReaderPlace) {
        // ORDERING: Relaxed - the reader's alone.
        Self::leave(&self.places[slot.0.load(Ordering::Relaxed) % PLACES]);
    }

    #[inline]
    unsafe fn try_lock_shared(&self, slot: &ReaderPlace) -> bool {
        let place = self.take_place(slot);
        let entered = self.enter(place);
        if !entered {
            Self::leave(place);
        }
        entered
    }
}
