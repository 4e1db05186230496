//! A core, and what it does by itself.

use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
use core::mem::offset_of;
use std::collections::VecDeque;

use crate::caches::Reach;
use crate::context::Context;
use crate::pace::Pace;
use crate::report::Counts;
use crate::spin::{Seen, Spin};
use crate::time::Time;
use crate::translate::{Block, Counted, Translator};

/// A core and the thread on it.
#[repr(C)]
pub(crate) struct Core {
    /// How far it is; what its block was charged in advance is in it.
    pub(crate) time: Time,
    /// When everything that it stored is seen by others.
    pub(crate) drained: Time,
    /// Its number on the machine.
    pub(crate) cpu: u32,
    /// Its rank among equals.
    pub(crate) rank: u32,
    /// When the block of the pending matter begins, if it was begun in advance.
    pub(crate) begins: Option<Time>,
    /// Where generated code was left, while the matter waits for its turn.
    pub(crate) pending: Option<u32>,
    /// How fast it executes.
    pub(crate) pace: Pace,
    /// Whether its thread stands at the beginning of a block, where it may give way.
    pub(crate) stands: bool,
    /// What is known of a loop that it may be in.
    pub(crate) spin: Spin,
    pub(crate) counts: Counts,
    /// The caches that it uses.
    pub(crate) reach: Reach,
    /// The pace that it changes to, and from when on.
    pub(crate) changes: Option<(Time, Pace)>,
    /// The thread that it runs.
    pub(crate) thread: Option<usize>,
    /// The thread whose registers its context holds.
    pub(crate) resident: Option<usize>,
    /// When its thread's time slice is over.
    pub(crate) slice_end: Time,
    /// When stores leave its store buffer.
    buffered: VecDeque<Time>,
    /// `rcx` before a repeating string instruction.
    pub(crate) repeats: u64,
    /// Last, so that what is used most of both lies together: its large table is at its end.
    pub(crate) context: Context,
}

impl Core {
    pub(crate) fn new(cpu: u32, rank: u32, reach: Reach, vector_mask: u64) -> Self {
        Self {
            context: Context::new(vector_mask),
            cpu,
            rank,
            time: 0,
            drained: 0,
            reach,
            buffered: VecDeque::new(),
            thread: None,
            resident: None,
            slice_end: 0,
            pace: Pace::Whole,
            changes: None,
            stands: false,
            pending: None,
            begins: None,
            spin: Spin::default(),
            counts: Counts::default(),
            repeats: 0,
        }
    }
}

/// Lets the processor load a range of a structure of ours.
#[inline]
fn prefetch_range<T>(of: *const T, from: usize, to: usize) {
    for line in from / 64..to.div_ceil(64) {
        let place = of.wrapping_byte_add(line * 64).cast::<i8>();
        // SAFETY: a prefetch reads nothing and cannot fault.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(place) };
    }
}

impl Core {
    /// Lets the processor load what it needs of a core that comes next.
    #[inline]
    pub(crate) fn prefetch_all(&self) {
        prefetch_range(self, 0, offset_of!(Self, context) + offset_of!(Context, hits));
    }

    /// Lets the processor load what it needs of a core that spins on a line.
    #[inline]
    pub(crate) fn prefetch(&self, line: u64) {
        prefetch_range(self, 0, offset_of!(Self, spin) + Spin::HOT);
        let counts = offset_of!(Self, counts);
        prefetch_range(self, counts, counts + Counts::HOT);
        let context = offset_of!(Self, context);
        prefetch_range(self, context, context + Context::HOT);
        let hit = context + Context::hit_of(line);
        prefetch_range(self, hit, hit + 1);
    }

    /// Lets the core execute at a pace from its next block on.
    pub(crate) fn set_pace(&mut self, pace: Pace, translator: &Translator) {
        self.pace = pace;
        self.changes = None;
        self.context.targets = translator.targets(pace);
        self.spin.disturb();
    }

    /// Takes over what generated code counted.
    pub(crate) fn count(&mut self) {
        let context = &mut self.context;
        let counts = &mut self.counts;
        counts.instructions += context.counts & 0xffff;
        counts.loads += context.counts >> 16;
        context.counts = 0;
        counts.stores += core::mem::take(&mut context.stores);
        counts.rmw += context.locked & 0xffff;
        counts.fences += context.locked >> 16;
        context.locked = 0;
    }

    /// Undoes the beginning of a block that was begun in advance, if it begins at `from` or later;
    /// the core stands there. Gives when it begins.
    pub(crate) fn has_not_begun(&mut self, from: Time, translator: &Translator) -> Option<Time> {
        let begins = self.begins.filter(|&begins| begins >= from && self.pending.is_some())?;
        self.take_back(translator);
        self.stands = true;
        Some(begins)
    }

    /// Undoes the beginning of a block that was begun in advance.
    pub(crate) fn take_back(&mut self, translator: &Translator) {
        self.time = self.begins.unwrap_or(self.time);
        let block = &translator.blocks[self.context.block as usize];
        change(&mut self.counts, block.counted, u64::wrapping_sub);
        self.take_pending();
    }

    /// Takes the matter that waited for its turn.
    #[inline]
    pub(crate) fn take_pending(&mut self) -> Option<u32> {
        self.begins = None;
        self.pending.take()
    }

    /// A store goes to the buffer, of `size`, and leaves it when all are seen; gives when there is
    /// room for it.
    pub(crate) fn buffer(&mut self, now: Time, size: usize) -> Time {
        while self.buffered.front().is_some_and(|&leaves| leaves <= now) {
            self.buffered.pop_front();
        }
        let room = if self.buffered.len() < size { None } else { self.buffered.pop_front() };
        self.buffered.push_back(self.drained);
        room.map_or(now, |leaves| now.max(leaves))
    }

    /// Whether the core is in a loop that changes nothing, standing at a block now. `last` is the
    /// time since the last block with an access began.
    pub(crate) fn spins(&mut self, id: u32, block: &Block, last: Time) -> bool {
        let Self { context, counts, spin, time, .. } = self;
        let seen =
            Seen { block: id, registers: &context.registers, flags: context.flags, time: *time };
        spin.look(&seen, block, counts, last)
    }

    /// What the core had counted by a moment of a core of some rank: without the block that was begun
    /// in advance.
    pub(crate) fn counted_by(&self, time: Time, rank: u32, translator: &Translator) -> Counts {
        let mut counts = self.counts;
        if let (Some(begins), true) = (self.begins, self.pending.is_some())
            && (begins, self.rank) > (time, rank)
        {
            let block = &translator.blocks[self.context.block as usize];
            change(&mut counts, block.counted, u64::wrapping_sub);
        }
        counts
    }

    /// Ends the core's waiting: it is as far as if it had executed every access that comes before
    /// `until`, up to the end of the last whole round of its loop.
    pub(crate) fn wake(&mut self, until: Time) {
        self.time = self.spin.wake(self.time, until, &mut self.counts);
    }

    /// Whether the block of the pending matter was begun in advance: the core stands at the
    /// beginning of its loop, but for what that block was charged.
    #[inline]
    pub(crate) fn is_foreseen(&self) -> bool {
        self.begins.is_some()
    }

    /// A core was woken because a line is being taken; if the first thing that its block
    /// does is to ask for that line, the block is begun here. Gives when it asks.
    pub(crate) fn foresee(&mut self, line: u64, translator: &Translator) -> Option<Time> {
        let id = self.spin.block();
        let (exit, address) = self.spin.next_miss(line)?;
        let block = &translator.blocks[id as usize];
        self.begins = Some(self.time);
        self.time += Time::from(block.cost);
        change(&mut self.counts, block.counted, u64::wrapping_add);
        self.context.block = id;
        self.context.silent = 0;
        self.context.address = address;
        self.pending = Some(exit);
        Some(self.time - Time::from(translator.exits[exit as usize].remaining))
    }
}

/// Adds what a block counts, or takes it back.
fn change(counts: &mut Counts, by: Counted, with: fn(u64, u64) -> u64) {
    counts.instructions = with(counts.instructions, by.instructions.into());
    counts.loads = with(counts.loads, by.loads.into());
    counts.stores = with(counts.stores, by.stores.into());
    counts.rmw = with(counts.rmw, by.locked.into());
    counts.fences = with(counts.fences, by.fences.into());
}
