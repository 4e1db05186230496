//! Mutex ring: a plain ring behind one spin lock, for any number of producers and consumers.
//! # Algorithm
//! `locked` is a test-and-test-and-set flag. An operation swaps `true` into it until the old value
//! was `false`, reading only while it is `true`; then it changes `head` (the oldest element's
//! index), `length` and one slot, and stores `false`.
//! # Why
//! What everybody would write first, and the row that the others have to beat. Against the Vyukov
//! ring it has no word a slot, exact answers and an exact `len`; it adds a line that every
//! operation of either side writes, and waiting.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `MutexRing<T, Boxed>` | 256 | 128 | 4 | first pair: everybody; the rest: nobody |
//! | slot | that of `T` | that of `T` | - | holder |
//! | endpoint | 8 | 8 | - | nobody |
//! # Cost
//! Uncontended operation: 1 RMW, 2 (push) or 3 (pop) loads, 3 stores, 2 lines; and loads from what
//! nobody writes. Each change of thread transfers the first line; n waiters re-read it, then swap.
//! # Progress
//! Blocking and unfair: a thread stopped while it holds the lock stops all others, of both sides.
//! Nothing that a user wrote runs inside the lock.
//! # Invariants
//! - I1: `locked` is `true` exactly while some caller is between a swap that returned `false` and
//!   its store of `false`; only that caller touches `state` and the slots.
//! - I2: `head` is below the capacity, `length` at most the capacity.
//! - I3: the `length` slots from `head` on hold elements, the others hold none.
//! # Synchronization
//! | edge | release side | acquire side | publishes |
//! |---|---|---|---|
//! | E1 | store of `false` to `locked` | swap of `locked` that returned `false` | `state` and the elements |
//! # Errors and limits
//! Capacities from 1 to `isize::MAX`, as far as the storage goes. `Full` hands the value back. An
//! interrupt handler that uses the ring of the thread that it interrupted deadlocks.
//! # References
//! L. Rudolph, Z. Segall, "Dynamic Decentralized Cache Schemes for MIMD Parallel Processors",
//! ISCA 1984, section 4 (test-and-test-and-set). Differs from the paper in: a relax policy between
//! two looks.

use core::fmt;
use core::marker::PhantomData;

use crossbeam_utils::CachePadded;

use super::contract::{
    CapacityError, Full, Order, Progress, Properties, Queue, SharedQueue, Side, WithCapacity,
};
use super::drain::drain;
use super::hot::{HotField, HotFields, Role};
use super::relax::{Relax, Spin};
use super::shared::shared_ends;
use super::slot::{self, Slot};
use super::storage::Storage;
use super::sync::atomic::{AtomicBool, Ordering};
use super::sync::cell::UnsafeCell;
use super::sync::const_fn;

/// The largest capacity for which `head + length` does not overflow.
const LARGEST: usize = isize::MAX as usize;

/// The lock and what it protects, besides the slots.
#[repr(C)]
struct Locked {
    locked: AtomicBool,
    state: UnsafeCell<State>,
}

struct State {
    head: usize,
    length: usize,
}

/// Hands elements from any threads to any threads, one thread at a time.
///
/// ```
/// use queues::{Full, Inline, MutexRing};
/// static RING: MutexRing<u64, Inline<2>> = MutexRing::new();
/// RING.try_push(1).unwrap();
/// RING.try_push(2).unwrap();
/// assert_eq!(RING.try_push(3), Err(Full(3)));
/// assert_eq!(RING.try_pop(), Some(1));
/// assert_eq!(RING.len(), 1);
/// ```
#[repr(C)]
pub struct MutexRing<T, S: Storage, R = Spin> {
    shared: CachePadded<Locked>,
    slots: S::Slots<Slot<T>>,
    relax: PhantomData<fn() -> R>,
}

// SAFETY: the ring owns its elements and its slots (contract of `Storage`); nothing else in it is
// bound to a thread.
unsafe impl<T: Send, S: Storage, R> Send for MutexRing<T, S, R> {}
// SAFETY: by I1 one thread at a time touches the elements, so they have to be sendable and no more.
unsafe impl<T: Send, S: Storage, R> Sync for MutexRing<T, S, R> {}

impl<T, S: Storage, R> MutexRing<T, S, R> {
    const_fn! {
        /// Makes an empty ring over vacant slots.
        pub(crate) fn over(slots: S::Slots<Slot<T>>) -> Self {
            Self {
                shared: CachePadded::new(Locked {
                    locked: AtomicBool::new(false),
                    state: UnsafeCell::new(State { head: 0, length: 0 }),
                }),
                slots,
                relax: PhantomData,
            }
        }
    }

    /// Makes an empty ring whose next push goes to slot `index`; laps are not counted.
    ///
    /// # Errors
    /// As `with_capacity`.
    #[doc(hidden)]
    pub fn starting_at(capacity: usize, _lap: usize, index: usize) -> Result<Self, CapacityError> {
        let mut ring = Self::with_capacity(capacity)?;
        ring.shared.state = UnsafeCell::new(State { head: index % capacity, length: 0 });
        Ok(ring)
    }

    /// Offset in bytes of the line that everybody writes, once for `head` and once for `tail`:
    /// they are not apart.
    pub const OFFSETS: (usize, usize) =
        (core::mem::offset_of!(Self, shared), core::mem::offset_of!(Self, shared));

    /// `index`, which is below twice the capacity, as the index of a slot.
    #[inline(always)]
    fn wrapped(&self, index: usize) -> usize {
        let capacity = S::as_slice(&self.slots).len();
        if index >= capacity { index - capacity } else { index }
    }

    /// # Safety
    /// `index` is below the capacity.
    #[inline(always)]
    unsafe fn slot(&self, index: usize) -> &Slot<T> {
        // SAFETY: the caller's duty.
        unsafe { S::as_slice(&self.slots).get_unchecked(index) }
    }
}

impl<T, S: Storage, R: Relax> MutexRing<T, S, R> {
    /// Runs `f` on the state while holding the lock; `f` does not panic.
    #[inline(always)]
    fn locked<X>(&self, f: impl FnOnce(&mut State) -> X) -> X {
        // ORDERING: Acquire, E1 - the holder sees the last one's writes.
        if self.shared.locked.swap(true, Ordering::Acquire) {
            self.wait();
        }
        // SAFETY: the lock is held; by I1 the state is ours.
        let result = self.shared.state.with_mut(|state| f(unsafe { &mut *state }));
        // ORDERING: Release, E1 - hands the state and the elements to the next holder.
        self.shared.locked.store(false, Ordering::Release);
        result
    }

    /// Waits until the caller holds the lock.
    #[cold]
    fn wait(&self) {
        let mut relax = R::new();
        loop {
            // ORDERING: Relaxed - a hint; the swap that follows decides.
            while self.shared.locked.load(Ordering::Relaxed) {
                relax.relax();
            }
            // ORDERING: Acquire, E1 - the holder sees the last one's writes.
            if !self.shared.locked.swap(true, Ordering::Acquire) {
                return;
            }
        }
    }

    /// Appends `value`, waiting for the lock.
    ///
    /// # Errors
    /// [`Full`] hands the value back when `capacity` elements are stored.
    #[inline]
    pub fn try_push(&self, value: T) -> Result<(), Full<T>> {
        let capacity = S::as_slice(&self.slots).len();
        self.locked(|state| {
            if state.length == capacity {
                return Err(Full(value));
            }
            // SAFETY: by I2 the sum is below twice the capacity, so `wrapped` makes it an index.
            let slot = unsafe { self.slot(self.wrapped(state.head + state.length)) };
            // SAFETY: by I1 the slots are ours, with E1 behind us; by I3 this one is vacant.
            unsafe { slot.put(value) };
            state.length += 1;
            Ok(())
        })
    }

    /// Takes the oldest element, if there is one, waiting for the lock.
    #[inline]
    pub fn try_pop(&self) -> Option<T> {
        self.locked(|state| {
            if state.length == 0 {
                return None;
            }
            // SAFETY: by I2.
            let slot = unsafe { self.slot(state.head) };
            state.head = self.wrapped(state.head + 1);
            state.length -= 1;
            // SAFETY: by I1 the slots are ours, with E1 behind us; by I3 this one holds an element.
            Some(unsafe { slot.take() })
        })
    }

    /// How many elements are stored: exact at one instant during the call, stale after it.
    pub fn len(&self) -> usize {
        self.locked(|state| state.length)
    }

    /// Whether nothing is stored: exact at one instant during the call, stale after it.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T, S: Storage, R> WithCapacity for MutexRing<T, S, R> {
    fn with_capacity(capacity: usize) -> Result<Self, CapacityError> {
        if capacity > LARGEST {
            return Err(CapacityError::TooLarge { largest: LARGEST });
        }
        Ok(Self::over(S::allocate(capacity, |_| Slot::vacant())?))
    }
}

impl<T: Send, S: Storage, R: Relax> Queue<T> for MutexRing<T, S, R> {
    shared_ends!(T);

    const PROPERTIES: Properties = Properties {
        producers: Side::Multi,
        consumers: Side::Multi,
        bounded: true,
        order: Order::Fifo,
        progress: Progress::Blocking,
        linearizable: true,
    };
    const BYTES_PER_SLOT: usize = size_of::<Slot<T>>();

    #[inline]
    fn capacity(&self) -> usize {
        S::as_slice(&self.slots).len()
    }
}

impl<T: Send, S: Storage, R: Relax> SharedQueue<T> for MutexRing<T, S, R> {
    #[inline]
    fn try_push(&self, value: T) -> Result<(), Full<T>> {
        self.try_push(value)
    }

    #[inline]
    fn try_pop(&self) -> Option<T> {
        self.try_pop()
    }
}

impl<T, S: Storage, R> HotFields for MutexRing<T, S, R> {
    const ALIGNMENT: usize = align_of::<CachePadded<u8>>();
    const ALONE: bool = true;

    fn hot_fields(&self, visit: &mut dyn FnMut(HotField)) {
        const BECAUSE: &str = "whoever takes the lock needs the state at once: one line moves \
                               instead of two; spinners pay for it, reading";
        let Self { shared, slots, relax: _ } = self;
        let Locked { locked, state } = &**shared;
        let locked = HotField::of("locked", locked).written_by(Role::Many("holder and waiters"));
        visit(locked.one_line("shared", BECAUSE).padded_in(shared));
        let state = HotField::of("state", state).written_by(Role::One("holder"));
        visit(state.one_line("shared", BECAUSE).padded_in(shared));
        visit(S::header(slots).read_by(Role::Anybody));
        for slot in slot::describe(S::as_slice(slots)) {
            visit(slot.written_by(Role::One("holder")));
        }
        visit(HotField::rest(self, slots));
    }
}

impl<T, S: Storage, R> Drop for MutexRing<T, S, R> {
    fn drop(&mut self) {
        drain(|| self.pop_alone());
    }
}

impl<T, S: Storage, R> MutexRing<T, S, R> {
    /// `try_pop` without the lock: the exclusive borrow proves that nobody else is here.
    fn pop_alone(&mut self) -> Option<T> {
        let head = self.shared.state.with_mut(|state| {
            // SAFETY: the ring is borrowed exclusively.
            let state = unsafe { &mut *state };
            state.length = state.length.checked_sub(1)?;
            let head = state.head;
            state.head = self.wrapped(head + 1);
            Some(head)
        })?;
        // SAFETY: by I2.
        let slot = unsafe { self.slot(head) };
        // SAFETY: the ring is borrowed exclusively; by I3 the slot at the old `head` held an
        // element, and now nobody will look for it again.
        Some(unsafe { slot.take() })
    }
}

impl<T, S: Storage, R> fmt::Debug for MutexRing<T, S, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MutexRing").finish_non_exhaustive()
    }
}
