//! Chase and Lev's deque, growing: its worker pushes as long as there is memory.
//! # Algorithm
//! As in `deque_chase_lev`, `bottom` is the position of the worker's next push and `top` that of the
//! oldest element; here positions count on, and a buffer of a power of two of slots takes position
//! `p` at slot `p` modulo their number. If the slot of a push is filled, the worker makes a buffer
//! twice as large, copies what lies between `top` and `bottom` bit by bit, and publishes it as
//! `current`; nothing is moved, and nobody writes to the older buffer's elements again. A thief reads
//! `top`, `bottom` and `current` in this order, claims the oldest element by a CAS of `top`, and only
//! then moves it out of the buffer that it had read, old or new, and clears the flag there. So a flag
//! that is set in a buffer may stand for an element that was taken from an older one: before the
//! worker grows it looks at the older flags of that position.
//! # Why
//! Against `deque_chase_lev` there is no `Full` to handle, and a thief that is stopped inside `steal`
//! keeps no push out. It adds three loads an operation, and memory that is given back at the end.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `DequeChaseLevGrowing<T>` | 384 | 128 | 6 | `bottom` pair: worker; `top` pair: thieves, and the worker for the last element; `current` pair: worker, when it grows |
//! | slot | 8 more than `T` | that of `T` | - | worker and thieves |
//! | endpoint | 8 | 8 | - | nobody |
//! # Cost
//! Uncontended: push 0 RMWs, 5 loads, 3 stores; pop 0 RMWs (1 for the last element), 1 fence; steal
//! 1 RMW, 1 fence. Each steal transfers the lines of `top`, `bottom` and the slot. Growth copies each
//! element that is there, so a push copies one element more in the mean, at most.
//! # Progress
//! `pop` and `steal` are wait-free, as is `try_push` but for the allocator's part; a `steal` that
//! another thread has overtaken says `Retry`, and `try_pop` of a thief, which then looks again, is
//! lock-free. A thief stopped inside `steal` costs a worker that comes round to its slot a growth.
//! # Invariants
//! - I1: `bottom` and `current` are written by the worker only; `split` borrows the deque exclusively,
//!   so that there is one worker.
//! - I2: the number of slots of a buffer is a power of two.
//! - I3: an element belongs to who moved `top` past its position by a CAS, or to the worker, if it has
//!   taken `bottom` back to that position and then seen `top` before it: by E3 no thief that has not
//!   yet claimed sees `bottom` beyond it any more.
//! - I4: a slot of `current` whose flag is not set is vacant and the worker's; so is one whose flag
//!   is set if the flag of the same position in an older buffer, from which it was copied, is not:
//!   only who claimed the position has cleared it there, and takes the element from nowhere else.
//! - I5: a thief whose claim succeeds has read a buffer that holds the element. By E1 it is that into
//!   which the element was pushed, or a newer one; and one whose copy began behind the element was
//!   published after `top` was seen to have passed it, so that by E4 the claim fails.
//! - I6: buffers stay where they are until the deque is dropped; in all but `current` only flags are
//!   written.
//! # Synchronization
//! | edge | release side | acquire side | publishes |
//! |---|---|---|---|
//! | E1 | store of `bottom` in `try_push`, and the first one in `pop` | load of `bottom` in `steal` | the elements before it |
//! | E2 | store of the flag in `steal` | load of the flag in `try_push` | that the element has been moved out |
//! | E3 | fence in `pop`, after the store of `bottom` and before the load of `top` | fence in `steal`, after the load of `top` and before the load of `bottom` | one of the two sees the other's word (store buffering: the worker stores `bottom` and reads `top`, a thief has `top` and reads `bottom`) |
//! | E4 | store of `current` in `grow` | load of `current` in `steal` | the buffer with its copies |
//! # Errors and limits
//! The capacity it is made with is that of the first buffer, up to the next power of two. `Full` hands
//! the value back when the allocator refuses, or past `usize::MAX / 8` slots. Reclamation: none is
//! needed while threads run. Buffers double, so all older ones together are smaller than the current
//! one, and are kept until the deque is dropped: thieves announce nothing and a `steal` stays at one
//! RMW. It does not shrink. A buffer has at most twice as many slots as elements were inside at once,
//! or were pushed while a thief was stopped inside one `steal`, whichever is more. Positions wrap
//! after 2⁶⁴ pushes: with 32 bits a thief would be wrong that stops inside `steal` while 2³² elements
//! pass.
//! # References
//! D. Chase, Y. Lev, "Dynamic Circular Work-Stealing Deque", SPAA 2005, section 3; N. M. Lê, A. Pop,
//! A. Cohen, F. Zappa Nardelli, "Correct and Efficient Work-Stealing for Weak Memory Models", PPoPP
//! 2013, figure 1. Differs from the papers in: the element is read after the claim and not before, so
//! no read races with a write, whatever the element is; a flag a slot, which makes that possible, and
//! decides about growth; it does not shrink.

use alloc::boxed::Box;
use core::fmt;
use core::marker::PhantomData;
use core::ptr::NonNull;

use crossbeam_utils::CachePadded;

use super::boxed::{Boxed, BoxedSlots};
use super::contract::{
    CapacityError, Full, Order, Progress, Properties, Queue, Side, Steal, WithCapacity,
};
use super::deque_ends::{self, Deque, Thief, Worker};
use super::drain::drain;
use super::flag_slot::FlagSlot;
use super::hot::{HotField, HotFields, Role};
use super::laps::{LARGEST, is_older};
use super::on_heap::try_box;
use super::storage::Storage;
use super::sync::atomic::{AtomicPtr, AtomicUsize, Ordering, fence};

/// The slots of one size, and what was copied into them.
struct Buffer<T> {
    slots: BoxedSlots<FlagSlot<T>>,
    /// Half as large, and owned by this one.
    older: Option<NonNull<OwnLines<T>>>,
    /// The first position that was copied from `older`, and how many were.
    copied: (usize, usize),
}

type OwnLines<T> = CachePadded<Buffer<T>>;

impl<T> Buffer<T> {
    /// Makes a buffer of vacant slots.
    fn vacant(slots: usize) -> Result<Self, CapacityError> {
        let slots = Boxed::allocate(slots, |_| FlagSlot::vacant())?;
        Ok(Self { slots, older: None, copied: (0, 0) })
    }

    #[inline(always)]
    fn slots(&self) -> &[FlagSlot<T>] {
        Boxed::as_slice(&self.slots)
    }

    /// The slot of a position.
    #[inline(always)]
    fn at(&self, position: usize) -> &FlagSlot<T> {
        let slots = self.slots();
        // SAFETY: the number of slots is a power of two (I2), so the index is below it.
        unsafe { slots.get_unchecked(position & (slots.len() - 1)) }
    }

    fn older(&self) -> Option<&Self> {
        // SAFETY: owned by this buffer, which lives.
        self.older.map(|older| &**unsafe { older.as_ref() })
    }

    /// Whether the element of `position`, whose flag is set here, was taken from an older buffer.
    fn was_taken_from_an_older(&self, position: usize) -> bool {
        let mut buffer = self;
        while let Some(older) = buffer.older() {
            let (first, count) = buffer.copied;
            if position.wrapping_sub(first) >= count {
                return false;
            }
            // ORDERING: Acquire, E2 - the element has been moved out.
            if !older.at(position).filled.load(Ordering::Acquire) {
                return true;
            }
            buffer = older;
        }
        false
    }
}

/// Keeps the tasks of one worker, as many as there are, of which thieves take the oldest.
///
/// ```
/// use queues::{DequeChaseLevGrowing, Steal, WithCapacity};
/// let mut deque = DequeChaseLevGrowing::<u64>::with_capacity(2).unwrap();
/// let (mut worker, thief) = deque.split();
/// for task in 0..1000 {
///     worker.try_push(task).unwrap();
/// }
/// assert_eq!(worker.pop(), Some(999));
/// assert_eq!(thief.steal(), Steal::Success(0));
/// ```
///
/// ```compile_fail,E0277
/// fn shared<T: Sync>(_: T) {}
/// let mut deque = <queues::DequeChaseLevGrowing::<u64> as queues::WithCapacity>::with_capacity(2);
/// shared(deque.unwrap().split().0); // there is one worker
/// ```
#[repr(C)]
pub struct DequeChaseLevGrowing<T> {
    bottom: CachePadded<AtomicUsize>,
    top: CachePadded<AtomicUsize>,
    /// The newest buffer; it owns the older ones.
    current: CachePadded<AtomicPtr<OwnLines<T>>>,
    owns: PhantomData<Buffer<T>>,
}

// SAFETY: the deque owns its elements and its buffers; nothing else in it is bound to a thread.
unsafe impl<T: Send> Send for DequeChaseLevGrowing<T> {}
// SAFETY: elements move through the endpoints, each to the one thread that it belongs to (I3), so
// they have to be sendable and no more.
unsafe impl<T: Send> Sync for DequeChaseLevGrowing<T> {}

impl<T> DequeChaseLevGrowing<T> {
    /// Makes an empty deque whose next push goes to slot `index` in lap `lap`, modulo the number of
    /// laps; tests start near the wrap.
    ///
    /// # Errors
    /// As `with_capacity`.
    #[doc(hidden)]
    pub fn starting_at(capacity: usize, lap: usize, index: usize) -> Result<Self, CapacityError> {
        if capacity > LARGEST {
            return Err(CapacityError::TooLarge { largest: LARGEST });
        }
        let slots = if capacity == 0 { 0 } else { capacity.next_power_of_two() };
        let bytes = size_of::<OwnLines<T>>();
        let buffer = try_box(CachePadded::new(Buffer::vacant(slots)?))
            .map_err(|_| CapacityError::OutOfMemory { bytes })?;
        let start = lap.wrapping_mul(slots).wrapping_add(index);
        Ok(Self {
            bottom: CachePadded::new(AtomicUsize::new(start)),
            top: CachePadded::new(AtomicUsize::new(start)),
            current: CachePadded::new(AtomicPtr::new(Box::into_raw(buffer))),
            owns: PhantomData,
        })
    }

    /// Offsets in bytes of `top`, where elements leave first, and of `bottom`.
    pub const OFFSETS: (usize, usize) =
        (core::mem::offset_of!(Self, top), core::mem::offset_of!(Self, bottom));

    /// Gives out the worker's end and the first thief's. The exclusive borrow proves that no others
    /// exist.
    #[inline]
    pub fn split(&mut self) -> (Worker<'_, Self, T>, Thief<'_, Self, T>) {
        deque_ends::ends(self)
    }

    /// The newest buffer, as the given ordering shows it.
    #[inline(always)]
    fn current(&self, order: Ordering) -> &Buffer<T> {
        let current = self.current.load(order);
        // SAFETY: made by `try_box`, and lives as long as the deque (I6).
        unsafe { &*current }
    }

    /// Claims the element at `top`; whether nobody else had it.
    #[inline(always)]
    fn claim(&self, top: usize) -> bool {
        let next = top.wrapping_add(1);
        // ORDERING: Relaxed on success and failure - the claim needs atomicity only (I3); the
        // element came by E1 or E4, the slot goes back by E2.
        self.top.compare_exchange(top, next, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// The buffer in which the slot of `bottom`, filled in `buffer`, is vacant: this one all the
    /// same, or a larger one; `None` when the allocator refuses.
    #[cold]
    #[inline(never)]
    fn with_room<'q>(&'q self, buffer: &'q Buffer<T>, bottom: usize) -> Option<&'q Buffer<T>> {
        let slots = buffer.slots().len();
        if buffer.was_taken_from_an_older(bottom.wrapping_sub(slots)) {
            return Some(buffer);
        }
        if slots > LARGEST / 2 {
            return None;
        }
        let mut larger = Buffer::vacant(2 * slots).ok()?;
        // ORDERING: Relaxed - too old a value costs copies of what is gone; it is not older than a
        // lap, since by E2 the worker has seen who took what its pushes overwrote.
        let top = self.top.load(Ordering::Relaxed);
        let count = bottom.wrapping_sub(top);
        for position in (0..count).map(|n| top.wrapping_add(n)) {
            let FlagSlot { filled, slot } = larger.at(position);
            // SAFETY: the slot is new, and nobody writes to the other one: the worker has pushed to
            // it, and thieves that take its element only read it.
            unsafe { slot.copy(&buffer.at(position).slot) };
            // ORDERING: Relaxed - E4 publishes it.
            filled.store(true, Ordering::Relaxed);
        }
        larger.copied = (top, count);
        // ORDERING: Relaxed - by I1 the worker reads its own buffer back.
        larger.older = NonNull::new(self.current.load(Ordering::Relaxed));
        let larger = try_box(CachePadded::new(larger)).ok()?;
        // ORDERING: Release, E4 - hands the buffer with its copies to thieves.
        self.current.store(Box::into_raw(larger), Ordering::Release);
        // ORDERING: Relaxed - as above.
        Some(self.current(Ordering::Relaxed))
    }
}

impl<T> Deque<T> for DequeChaseLevGrowing<T> {
    #[inline(always)]
    unsafe fn push(&self, value: T) -> Result<(), Full<T>> {
        // ORDERING: Relaxed - by I1 the worker reads its own position back.
        let bottom = self.bottom.load(Ordering::Relaxed);
        // ORDERING: Relaxed - by I1 the worker reads its own buffer back.
        let mut buffer = self.current(Ordering::Relaxed);
        // ORDERING: Acquire, E2 - the element of the lap before has been moved out.
        if buffer.at(bottom).filled.load(Ordering::Acquire) {
            match self.with_room(buffer, bottom) {
                Some(roomy) => buffer = roomy,
                None => return Err(Full(value)),
            }
        }
        let FlagSlot { filled, slot } = buffer.at(bottom);
        // SAFETY: the slot is vacant and the worker's (I4), with E2 behind us.
        unsafe { slot.put(value) };
        // ORDERING: Relaxed - thieves clear it after E1, the worker itself reads it.
        filled.store(true, Ordering::Relaxed);
        // ORDERING: Release, E1 - hands the element to who steals it.
        self.bottom.store(bottom.wrapping_add(1), Ordering::Release);
        Ok(())
    }

    #[inline(always)]
    unsafe fn pop(&self) -> Option<T> {
        // ORDERING: Relaxed - by I1 the worker reads its own position back.
        let bottom = self.bottom.load(Ordering::Relaxed);
        let newest = bottom.wrapping_sub(1);
        // ORDERING: Release, E1 - a thief may read this store and none before it, and steal what was
        // pushed before `newest`; the fence orders it before the load of `top`.
        self.bottom.store(newest, Ordering::Release);
        // ORDERING: SeqCst, E3 - against a thief that does not see this `bottom`: then we see its
        // `top`.
        fence(Ordering::SeqCst);
        // ORDERING: Relaxed - the fence is in front of it.
        let top = self.top.load(Ordering::Relaxed);
        if !is_older(top, newest) {
            let ours = top == newest && self.claim(top);
            // ORDERING: Relaxed - the deque is empty now: `top` is here, so who reads this store has
            // nothing to claim.
            self.bottom.store(bottom, Ordering::Relaxed);
            if !ours {
                return None;
            }
        }
        // ORDERING: Relaxed - by I1 the worker reads its own buffer back.
        let FlagSlot { filled, slot } = self.current(Ordering::Relaxed).at(newest);
        // SAFETY: the element is ours (I3), and we have put or copied it there.
        let value = unsafe { slot.take() };
        // ORDERING: Relaxed - only the worker reads it until a later push publishes it.
        filled.store(false, Ordering::Relaxed);
        Some(value)
    }

    #[inline(always)]
    fn steal(&self) -> Steal<T> {
        // ORDERING: Relaxed - the fence behind it orders it before the load of `bottom`.
        let top = self.top.load(Ordering::Relaxed);
        // ORDERING: SeqCst, E3 - against a worker that does not see this `top`: then we see its
        // `bottom`.
        fence(Ordering::SeqCst);
        // ORDERING: Acquire, E1 - the elements before `bottom` are there.
        let bottom = self.bottom.load(Ordering::Acquire);
        if !is_older(top, bottom) {
            return Steal::Empty;
        }
        // ORDERING: Acquire, E4 - the copies are there, if the element is one (I5).
        let buffer = self.current(Ordering::Acquire);
        if !self.claim(top) {
            return Steal::Retry;
        }
        let FlagSlot { filled, slot } = buffer.at(top);
        // SAFETY: the element is ours (I3) and in this buffer (I5), with E1 or E4 behind us.
        let value = unsafe { slot.take() };
        // ORDERING: Release, E2 - tells the worker that the element has been moved out.
        filled.store(false, Ordering::Release);
        Steal::Success(value)
    }
}

impl<T> WithCapacity for DequeChaseLevGrowing<T> {
    fn with_capacity(capacity: usize) -> Result<Self, CapacityError> {
        Self::starting_at(capacity, 0, 0)
    }
}

impl<T: Send> Queue<T> for DequeChaseLevGrowing<T> {
    type Producer<'q>
        = Worker<'q, Self, T>
    where
        Self: 'q;
    type Consumer<'q>
        = Thief<'q, Self, T>
    where
        Self: 'q;
    const PROPERTIES: Properties = Properties {
        producers: Side::Single,
        consumers: Side::Multi,
        bounded: false,
        order: Order::Fifo,
        progress: Progress::LockFree,
        linearizable: true,
    };
    const BYTES_PER_SLOT: usize = size_of::<FlagSlot<T>>();

    #[inline]
    fn split(&mut self) -> (Worker<'_, Self, T>, Thief<'_, Self, T>) {
        self.split()
    }

    #[inline]
    fn capacity(&self) -> usize {
        usize::MAX
    }
}

impl<T> Drop for DequeChaseLevGrowing<T> {
    fn drop(&mut self) {
        /// Frees the buffers, also when the drop of an element panics.
        struct Buffers<T>(Option<NonNull<OwnLines<T>>>);
        impl<T> Drop for Buffers<T> {
            fn drop(&mut self) {
                while let Some(newest) = self.0 {
                    // SAFETY: made by `try_box`, and nobody else has it any more.
                    let newest = unsafe { Box::from_raw(newest.as_ptr()) };
                    self.0 = newest.older;
                }
            }
        }
        // ORDERING: Relaxed - the deque is borrowed exclusively.
        let _buffers = Buffers(NonNull::new(self.current.load(Ordering::Relaxed)));
        // SAFETY: the ends are gone.
        drain(|| unsafe { self.pop() });
    }
}

impl<T> HotFields for DequeChaseLevGrowing<T> {
    const ALIGNMENT: usize = align_of::<CachePadded<u8>>();
    const ALONE: bool = true;

    fn hot_fields(&self, visit: &mut dyn FnMut(HotField)) {
        let Self { bottom, top, current, owns: _ } = self;
        let (worker, thieves) = (Role::One("producer"), Role::Many("consumers"));
        let bottom_word = HotField::of("bottom", &**bottom).written_by(worker).read_by(thieves);
        visit(bottom_word.padded_in(bottom));
        let both = Role::Many("producers and consumers");
        visit(HotField::of("top", &**top).written_by(both).padded_in(top));
        let current_word = HotField::of("current", &**current).written_by(worker).read_by(thieves);
        visit(current_word.padded_in(current));
        // ORDERING: Acquire, E4 - the buffer is there.
        let buffer = self.current(Ordering::Acquire);
        visit(HotField::of("buffer", buffer).written_by(worker).read_by(thieves));
        for (index, slot) in buffer.slots().iter().enumerate() {
            slot.describe(index, [worker, thieves], visit);
        }
    }
}

impl<T> fmt::Debug for DequeChaseLevGrowing<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DequeChaseLevGrowing").finish_non_exhaustive()
    }
}
