//! Chase and Lev's deque: one worker pushes and pops at one end without an RMW, any number of
//! thieves take the oldest at the other.
//! # Algorithm
//! `bottom` is the position of the worker's next push, `top` that of the oldest element; a position
//! is a slot's index with the number of its lap above it. `try_push` looks at the flag of slot
//! `bottom`: if it is set the deque is full, else it puts the element in, sets the flag and stores
//! the next `bottom`. `pop` takes `bottom` one back, and then looks at `top`: if elements are left
//! beyond the one at `bottom` it takes that; if it is the last one, a CAS of `top` decides between
//! the worker and the thieves. `steal` reads `top`, then `bottom`; if the deque is not empty it
//! claims the oldest element by a CAS of `top`, moves it out and clears the slot's flag.
//! # Why
//! Against a ring for many it spares the worker all RMWs, but for the last element, and lets it take
//! back what it pushed last, which its cache still holds. It adds a fence to `pop` and to `steal`.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `DequeChaseLev<T, Boxed>` | 384 | 128 | 6 | `bottom` pair: worker; `top` pair: thieves, and the worker for the last element; the rest: nobody |
//! | slot | 8 more than `T` | that of `T` | - | worker and thieves |
//! | endpoint | 8 | 8 | - | nobody |
//! # Cost
//! Uncontended: push 0 RMWs, 2 loads, 3 stores; pop 0 RMWs (1 for the last element), 1 fence; steal
//! 1 RMW, 1 fence. Each steal transfers the lines of `top`, `bottom` and the slot.
//! # Progress
//! `pop` and `steal` are wait-free; a `steal` that another thread has overtaken says `Retry`, and
//! `try_pop` of a thief, which then looks again, is lock-free. A thief stopped between its CAS and
//! its store of the flag lets pushes to that slot, a lap later, fail.
//! # Invariants
//! - I1: `bottom` is written by the worker only; `split` borrows the deque exclusively, so that there
//!   is one worker.
//! - I2: the index in a position is below the capacity.
//! - I3: an element belongs to who moved `top` past its position by a CAS, or to the worker, if it has
//!   taken `bottom` back to that position and then seen `top` before it: by E3 no thief that has not
//!   yet claimed sees `bottom` beyond it any more.
//! - I4: a slot whose flag is set holds an element, or its owner is about to clear the flag; a slot
//!   whose flag is not set is vacant and the worker's.
//! # Synchronization
//! | edge | release side | acquire side | publishes |
//! |---|---|---|---|
//! | E1 | store of `bottom` in `try_push`, and the first one in `pop` | load of `bottom` in `steal` | the elements before it |
//! | E2 | store of the flag in `steal` | load of the flag in `try_push` | that the element has been moved out |
//! | E3 | fence in `pop`, after the store of `bottom` and before the load of `top` | fence in `steal`, after the load of `top` and before the load of `bottom` | one of the two sees the other's word (store buffering: the worker stores `bottom` and reads `top`, a thief has `top` and reads `bottom`) |
//! # Errors and limits
//! Capacities from 1 to `usize::MAX / 8`, as far as the storage goes; it does not grow. `Full` hands
//! the value back; it may be said early while a thief is inside `steal`. Positions wrap after
//! `usize::MAX` pushes or more: with 32 bits a thief would be wrong that stops inside `steal` while
//! 2³² elements pass.
//! # References
//! D. Chase, Y. Lev, "Dynamic Circular Work-Stealing Deque", SPAA 2005; N. M. Lê, A. Pop, A. Cohen,
//! F. Zappa Nardelli, "Correct and Efficient Work-Stealing for Weak Memory Models", PPoPP 2013,
//! figure 1. Differs from the papers in: the element is read after the claim and not before, so no
//! read races with a write, whatever the element is; a flag a slot, which makes that possible; a fixed
//! capacity; `top` is moved without SeqCst, since both sides have a fence; `pop` stores `bottom` with
//! Release, since a release sequence does not go on over plain stores any more (C++20, P0982).

use core::fmt;

use crossbeam_utils::CachePadded;

use super::contract::{
    CapacityError, Full, Order, Progress, Properties, Queue, Side, Steal, WithCapacity,
};
use super::deque_ends::{self, Deque, Thief, Worker};
use super::drain::drain;
use super::flag_slot::FlagSlot;
use super::hot::{HotField, HotFields, Role};
use super::laps::{self, LARGEST, index_mask, is_older};
use super::storage::Storage;
use super::sync::atomic::{AtomicUsize, Ordering, fence};
use super::sync::const_fn;

/// Keeps the tasks of one worker, of which thieves take the oldest.
///
/// ```
/// use queues::{DequeChaseLev, Inline, Steal};
/// let mut deque = DequeChaseLev::<u64, Inline<4>>::new();
/// let (mut worker, thief) = deque.split();
/// for task in 0..3 {
///     worker.try_push(task).unwrap();
/// }
/// assert_eq!(worker.pop(), Some(2));
/// assert_eq!(thief.steal(), Steal::Success(0));
/// assert_eq!(worker.pop(), Some(1));
/// assert_eq!(thief.steal(), Steal::Empty);
/// ```
///
/// ```compile_fail,E0277
/// fn shared<T: Sync>(_: T) {}
/// let mut deque = queues::DequeChaseLev::<u64, queues::Inline<4>>::new();
/// shared(deque.split().0); // there is one worker
/// ```
/// ```compile_fail,E0277
/// fn sent<T: Send>(_: T) {}
/// let mut deque = queues::DequeChaseLev::<std::rc::Rc<u64>, queues::Inline<4>>::new();
/// sent(deque.split().1);
/// ```
#[repr(C)]
pub struct DequeChaseLev<T, S: Storage> {
    bottom: CachePadded<AtomicUsize>,
    top: CachePadded<AtomicUsize>,
    /// The bits of a position that are its index.
    index_mask: usize,
    slots: S::Slots<FlagSlot<T>>,
}

// SAFETY: the deque owns its elements and its slots (contract of `Storage`); nothing else in it is
// bound to a thread.
unsafe impl<T: Send, S: Storage> Send for DequeChaseLev<T, S> {}
// SAFETY: elements move through the endpoints, each to the one thread that it belongs to (I3), so
// they have to be sendable and no more.
unsafe impl<T: Send, S: Storage> Sync for DequeChaseLev<T, S> {}

impl<T, S: Storage> DequeChaseLev<T, S> {
    const_fn! {
        /// Makes an empty deque over vacant slots, whose next push goes to position `start`.
        pub(crate) fn over(
            slots: S::Slots<FlagSlot<T>>,
            capacity: usize,
            start: usize,
        ) -> Self {
            Self {
                bottom: CachePadded::new(AtomicUsize::new(start)),
                top: CachePadded::new(AtomicUsize::new(start)),
                index_mask: index_mask(capacity),
                slots,
            }
        }
    }

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
        let slots = S::allocate(capacity, |_| FlagSlot::vacant())?;
        let lap = lap.wrapping_mul(index_mask(capacity) + 1);
        Ok(Self::over(slots, capacity, lap + index % capacity))
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

    #[inline(always)]
    fn capacity(&self) -> usize {
        S::as_slice(&self.slots).len()
    }

    /// The slot of a position.
    ///
    /// # Safety
    /// The position was read from `bottom` or `top`, or made from one by `laps`.
    #[inline(always)]
    unsafe fn at(&self, position: usize) -> &FlagSlot<T> {
        // SAFETY: by I2 and the caller's duty.
        unsafe { S::as_slice(&self.slots).get_unchecked(position & self.index_mask) }
    }

    /// Claims the element at `top`; whether nobody else had it.
    #[inline(always)]
    fn claim(&self, top: usize) -> bool {
        let next = laps::next(top, self.index_mask, self.capacity());
        // ORDERING: Relaxed on success and failure - the claim needs atomicity only (I3); the
        // element came by E1, the slot goes back by E2.
        self.top.compare_exchange(top, next, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

impl<T, S: Storage> Deque<T> for DequeChaseLev<T, S> {
    #[inline(always)]
    unsafe fn push(&self, value: T) -> Result<(), Full<T>> {
        // ORDERING: Relaxed - by I1 the worker reads its own position back.
        let bottom = self.bottom.load(Ordering::Relaxed);
        // SAFETY: read from `bottom`.
        let FlagSlot { filled, slot } = unsafe { self.at(bottom) };
        // ORDERING: Acquire, E2 - the element of the lap before has been moved out.
        if filled.load(Ordering::Acquire) {
            return Err(Full(value));
        }
        // SAFETY: the flag is not set, so the slot is vacant and the worker's (I4), with E2 behind us.
        unsafe { slot.put(value) };
        // ORDERING: Relaxed - thieves clear it after E1, the worker itself reads it.
        filled.store(true, Ordering::Relaxed);
        // ORDERING: Release, E1 - hands the element to who steals it.
        let next = laps::next(bottom, self.index_mask, self.capacity());
        self.bottom.store(next, Ordering::Release);
        Ok(())
    }

    #[inline(always)]
    unsafe fn pop(&self) -> Option<T> {
        // ORDERING: Relaxed - by I1 the worker reads its own position back.
        let bottom = self.bottom.load(Ordering::Relaxed);
        let newest = laps::previous(bottom, self.index_mask, self.capacity());
        // ORDERING: Release, E1 - a thief may read this store and none before it, and steal what was
        // pushed before `newest`; the fence orders it before the load of `top`.
        self.bottom.store(newest, Ordering::Release);
        // ORDERING: SeqCst, E3 - against a thief that does not see this `bottom`: then we see its
        // `top`.
        fence(Ordering::SeqCst);
        // ORDERING: Relaxed - the fence is in front of it.
        let top = self.top.load(Ordering::Relaxed);
        let beyond = is_older(top, newest);
        if !beyond {
            let ours = top == newest && self.claim(top);
            // ORDERING: Relaxed - the deque is empty now: `top` is here, so who reads this store has
            // nothing to claim.
            self.bottom.store(bottom, Ordering::Relaxed);
            if !ours {
                return None;
            }
        }
        // SAFETY: made from `bottom`.
        let FlagSlot { filled, slot } = unsafe { self.at(newest) };
        // SAFETY: the element is ours (I3), and we have put it there.
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
        if !self.claim(top) {
            return Steal::Retry;
        }
        // SAFETY: read from `top`.
        let FlagSlot { filled, slot } = unsafe { self.at(top) };
        // SAFETY: the element is ours (I3), with E1 behind us.
        let value = unsafe { slot.take() };
        // ORDERING: Release, E2 - tells the worker that the element has been moved out.
        filled.store(false, Ordering::Release);
        Steal::Success(value)
    }
}

impl<T, S: Storage> WithCapacity for DequeChaseLev<T, S> {
    fn with_capacity(capacity: usize) -> Result<Self, CapacityError> {
        Self::starting_at(capacity, 0, 0)
    }
}

impl<T: Send, S: Storage> Queue<T> for DequeChaseLev<T, S> {
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
        bounded: true,
        order: Order::Fifo,
        progress: Progress::Obstructed,
        linearizable: false,
    };
    const BYTES_PER_SLOT: usize = size_of::<FlagSlot<T>>();

    #[inline]
    fn split(&mut self) -> (Worker<'_, Self, T>, Thief<'_, Self, T>) {
        self.split()
    }

    #[inline]
    fn capacity(&self) -> usize {
        self.capacity()
    }
}

impl<T, S: Storage> Drop for DequeChaseLev<T, S> {
    fn drop(&mut self) {
        // SAFETY: the ends are gone.
        drain(|| unsafe { self.pop() });
    }
}

impl<T, S: Storage> HotFields for DequeChaseLev<T, S> {
    const ALIGNMENT: usize = align_of::<CachePadded<u8>>();
    const ALONE: bool = true;

    fn hot_fields(&self, visit: &mut dyn FnMut(HotField)) {
        let Self { bottom, top, index_mask, slots } = self;
        let (worker, thieves) = (Role::One("producer"), Role::Many("consumers"));
        let bottom_word = HotField::of("bottom", &**bottom).written_by(worker).read_by(thieves);
        visit(bottom_word.padded_in(bottom));
        let both = Role::Many("producers and consumers");
        visit(HotField::of("top", &**top).written_by(both).padded_in(top));
        visit(HotField::of("index_mask", index_mask).read_by(Role::Anybody));
        visit(HotField::between(index_mask, slots));
        visit(S::header(slots).read_by(Role::Anybody));
        for (index, slot) in S::as_slice(slots).iter().enumerate() {
            slot.describe(index, [worker, thieves], visit);
        }
        visit(HotField::rest(self, slots));
    }
}

impl<T, S: Storage> fmt::Debug for DequeChaseLev<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DequeChaseLev").finish_non_exhaustive()
    }
}
