//! Index ring: the ring of small numbers that `mpmc_scq` is made of twice.
//!
//! It holds at most half as many indices as it has entries, so whoever puts one in always finds a
//! vacant entry, and it never says full. The algorithm, the invariants and the edges are those of
//! `mpmc_scq`; n is half the number of entries.

use core::mem::offset_of;

use crossbeam_utils::CachePadded;

use super::hot::{HotField, Role};
use super::sync::atomic::{AtomicUsize, Ordering};
use super::sync::const_fn;

/// What both rings of a queue have in common, which nobody writes.
///
/// Positions leave their lowest `UNUSED` bits alone, so that tests can let them wrap after few
/// operations.
#[repr(C)]
pub(crate) struct Geometry<const UNUSED: u32> {
    /// The bits of an entry that are its index; all of them set are none. One less than the number
    /// of entries.
    pub(crate) index_mask: usize,
    /// How many attempts to take may fail after the last index that was put in.
    pub(crate) limit: usize,
}

impl<const UNUSED: u32> Geometry<UNUSED> {
    /// For rings of `entries` entries, a power of two, and at most `threads` threads that are inside
    /// an operation at once.
    pub(crate) const fn of(entries: usize, threads: usize) -> Self {
        Self { index_mask: entries - 1, limit: entries - 1 + threads }
    }

    /// The bit of an entry that says that it may be filled without a look at `head`.
    #[inline(always)]
    const fn safe(&self) -> usize {
        self.index_mask + 1
    }

    /// The bits of an entry that are its cycle.
    #[inline(always)]
    const fn cycle_mask(&self) -> usize {
        ((self.index_mask + 1) << (UNUSED + 1)).wrapping_neg()
    }

    /// The cycle of a position, as it stands in an entry.
    #[inline(always)]
    const fn cycle(&self, position: usize) -> usize {
        position << 1 & self.cycle_mask()
    }

    /// Which entry a position is that of.
    #[inline(always)]
    const fn entry(&self, position: usize) -> usize {
        position >> UNUSED & self.index_mask
    }

    #[inline(always)]
    const fn is_vacant(&self, word: usize) -> bool {
        word & self.index_mask == self.index_mask
    }

    /// Whether the entry was filled or given up in a cycle before `cycle`, also across the wrap.
    #[inline(always)]
    const fn is_older(&self, word: usize, cycle: usize) -> bool {
        (word & self.cycle_mask()).wrapping_sub(cycle).cast_signed() < 0
    }

    /// The position that lies `count` after `position`.
    #[inline(always)]
    pub(crate) const fn advance(position: usize, count: usize) -> usize {
        position.wrapping_add(count << UNUSED)
    }

    /// What entry `entry` holds in a ring that starts at `start` and is filled with the indices
    /// below `filled`.
    pub(crate) const fn initial(&self, entry: usize, start: usize, filled: usize) -> usize {
        let ahead = entry.wrapping_sub(self.entry(start)) & self.index_mask;
        let position = Self::advance(start, ahead);
        if ahead < filled {
            self.cycle(position) | self.safe() | ahead
        } else {
            let lap_before = Self::advance(position, (self.index_mask + 1).wrapping_neg());
            self.cycle(lap_before) | self.safe() | self.index_mask
        }
    }
}

/// Whether `position` comes after `reference`, also across the wrap.
#[inline(always)]
const fn is_after(position: usize, reference: usize) -> bool {
    position.wrapping_sub(reference).cast_signed() > 0
}

/// The three words of a ring whose entries lie elsewhere.
#[repr(C)]
pub(crate) struct IndexRing {
    tail: CachePadded<AtomicUsize>,
    head: CachePadded<AtomicUsize>,
    threshold: CachePadded<AtomicUsize>,
}

impl IndexRing {
    const_fn! {
        /// Makes a ring of what lies between the positions `head` and `tail`, over entries that are
        /// as [`Geometry::initial`] says.
        pub(crate) fn between(head: usize, tail: usize, threshold: usize) -> Self {
            Self {
                tail: CachePadded::new(AtomicUsize::new(tail)),
                head: CachePadded::new(AtomicUsize::new(head)),
                threshold: CachePadded::new(AtomicUsize::new(threshold)),
            }
        }
    }

    /// Offsets in bytes of `head` and of `tail`.
    pub(crate) const OFFSETS: (usize, usize) = (offset_of!(Self, head), offset_of!(Self, tail));

    /// Puts `index` in.
    #[inline(always)]
    pub(crate) fn put<'e, const UNUSED: u32>(
        &self,
        geometry: &Geometry<UNUSED>,
        entries: impl Fn(usize) -> &'e AtomicUsize,
        index: usize,
    ) {
        loop {
            // ORDERING: AcqRel, E4 - whoever took an index before we drew this position is behind
            // us, when we look at `threshold`.
            let tail = self.tail.fetch_add(1 << UNUSED, Ordering::AcqRel);
            let cycle = geometry.cycle(tail);
            let entry = entries(geometry.entry(tail));
            // ORDERING: Acquire, E3, here and where the CAS fails - an entry that is not safe is
            // seen with the `head` of who made it so.
            let mut seen = entry.load(Ordering::Acquire);
            while geometry.is_older(seen, cycle) && geometry.is_vacant(seen) {
                // ORDERING: Relaxed - E3 is behind us; an older value is as good as an older `seen`.
                let safe = seen & geometry.safe() != 0
                    || !is_after(self.head.load(Ordering::Relaxed), tail);
                if !safe {
                    break;
                }
                // ORDERING: Release on success, E1 and E2 - hands over what the index stands for;
                // Acquire on failure, E3 - as above.
                match entry.compare_exchange(
                    seen,
                    cycle | geometry.safe() | index,
                    Ordering::Release,
                    Ordering::Acquire,
                ) {
                    Ok(_) => return self.allow(geometry.limit),
                    Err(newer) => seen = newer,
                }
            }
        }
    }

    /// Lets as many attempts to take fail as may be needed to find what was put in.
    #[inline(always)]
    fn allow(&self, limit: usize) {
        // ORDERING: Relaxed, also the store - a number; whoever comes after this operation does not
        // see an older one, and E4 orders it behind the failures that do not count any more.
        if self.threshold.load(Ordering::Relaxed) != limit {
            // ORDERING: Relaxed - as above.
            self.threshold.store(limit, Ordering::Relaxed);
        }
    }

    /// Takes the oldest index, if there is one.
    #[inline(always)]
    pub(crate) fn take<'e, const UNUSED: u32>(
        &self,
        geometry: &Geometry<UNUSED>,
        entries: impl Fn(usize) -> &'e AtomicUsize,
    ) -> Option<usize> {
        // ORDERING: Relaxed - a number; not older than that of a `put` that has returned.
        if self.threshold.load(Ordering::Relaxed).cast_signed() < 0 {
            return None;
        }
        loop {
            // ORDERING: AcqRel, E4 - our failures so far are behind whoever draws a later position.
            let head = self.head.fetch_add(1 << UNUSED, Ordering::AcqRel);
            let entry = entries(geometry.entry(head));
            if let Some(index) = Self::take_from(geometry, entry, geometry.cycle(head)) {
                return Some(index);
            }
            let next = Geometry::<UNUSED>::advance(head, 1);
            // ORDERING: Relaxed - not older than what a `put` that has returned left (coherence).
            let tail = self.tail.load(Ordering::Relaxed);
            let empty = !is_after(tail, next);
            if empty {
                self.catch_up(tail, next);
            }
            // ORDERING: Relaxed - a number; E4 orders it.
            let left = self.threshold.fetch_sub(1, Ordering::Relaxed).cast_signed();
            if empty || left <= 0 {
                return None;
            }
        }
    }

    /// Takes the index of the position that was drawn, or makes sure that none will be put there.
    #[inline(always)]
    fn take_from<const UNUSED: u32>(
        geometry: &Geometry<UNUSED>,
        entry: &AtomicUsize,
        cycle: usize,
    ) -> Option<usize> {
        // ORDERING: Acquire, E1 and E2, here and where the CAS fails - what the index stands for.
        let mut seen = entry.load(Ordering::Acquire);
        loop {
            if seen & geometry.cycle_mask() == cycle {
                // ORDERING: Relaxed - tells only that the entry is vacant.
                entry.fetch_or(geometry.index_mask, Ordering::Relaxed);
                return Some(seen & geometry.index_mask);
            }
            if !geometry.is_older(seen, cycle) {
                return None;
            }
            let given_up = if geometry.is_vacant(seen) {
                cycle | seen & geometry.safe() | geometry.index_mask
            } else {
                seen & !geometry.safe()
            };
            // ORDERING: Release on success, E3 - who sees the entry sees the `head` that we drew
            // from; Acquire on failure - as above.
            match entry.compare_exchange(seen, given_up, Ordering::Release, Ordering::Acquire) {
                Ok(_) => return None,
                Err(newer) => seen = newer,
            }
        }
    }

    /// Moves `tail` on to where `head` is, so that the next `put` need not walk there.
    fn catch_up(&self, mut tail: usize, mut head: usize) {
        // ORDERING: Relaxed, all - saves steps and decides nothing; as an RMW it keeps up E4.
        while self.tail.compare_exchange(tail, head, Ordering::Relaxed, Ordering::Relaxed).is_err()
        {
            // ORDERING: Relaxed - as above.
            head = self.head.load(Ordering::Relaxed);
            // ORDERING: Relaxed - as above.
            tail = self.tail.load(Ordering::Relaxed);
            if !is_after(head, tail) {
                return;
            }
        }
    }

    /// Describes the three words by their names in the queue: `takers` draw from `head`.
    pub(crate) fn describe(
        &self,
        [tail_name, head_name, threshold_name]: [&'static str; 3],
        [putters, takers]: [&'static str; 2],
        visit: &mut dyn FnMut(HotField),
    ) {
        let Self { tail, head, threshold } = self;
        let both = Role::Many("producers and consumers");
        visit(HotField::of(tail_name, &**tail).written_by(both).padded_in(tail));
        let head_field = HotField::of(head_name, &**head).written_by(Role::Many(takers));
        visit(head_field.read_by(Role::Many(putters)).padded_in(head));
        visit(HotField::of(threshold_name, &**threshold).written_by(both).padded_in(threshold));
    }
}
