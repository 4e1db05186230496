//! Queues that are not bounded, under an allocator that refuses: the value comes back, what is
//! inside stays, and the next push that finds memory goes in.
#![cfg(feature = "alloc")]

use queues::{
    CapacityError, Consumer, DequeChaseLevGrowing, Full, MpmcSegmented, MpscUnbounded, Producer,
    Queue, SpscUnbounded, WithCapacity,
};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    /// Whether this thread's allocations are refused.
    static REFUSES: Cell<bool> = const { Cell::new(false) };
    /// Bytes that this thread has allocated and not freed.
    static HELD: Cell<usize> = const { Cell::new(0) };
}

struct Moody;

// SAFETY: allocates by the system's allocator, or not at all.
unsafe impl GlobalAlloc for Moody {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if REFUSES.get() {
            return std::ptr::null_mut();
        }
        HELD.set(HELD.get().wrapping_add(layout.size()));
        // SAFETY: the caller's duty.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        HELD.set(HELD.get().wrapping_sub(layout.size()));
        // SAFETY: the caller's duty.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Moody = Moody;

fn refused<R>(action: impl FnOnce() -> R) -> R {
    REFUSES.set(true);
    let result = action();
    REFUSES.set(false);
    result
}

/// Fills, is refused, goes on, and gives all of its memory back.
fn is_refused_and_goes_on<Q: Queue<u64> + WithCapacity>() {
    let before = HELD.get();
    let not_made = refused(|| Q::with_capacity(4).err());
    assert!(matches!(not_made, Some(CapacityError::OutOfMemory { bytes: 1.. })), "{not_made:?}");
    assert_eq!(HELD.get(), before, "what was made of it is freed");
    let mut queue = Q::with_capacity(4).unwrap();
    let (mut producer, mut consumer) = queue.split();
    let (mut next, mut refusals) = (0, 0);
    for round in 0..200 {
        match refused(|| producer.try_push(next)) {
            Ok(()) => next += 1,
            Err(Full(back)) => {
                assert_eq!(back, next);
                refusals += 1;
                assert_eq!(refused(|| producer.try_push(u64::MAX)), Err(Full(u64::MAX)));
                assert_eq!(producer.try_push(next), Ok(()), "round {round}");
                next += 1;
            }
        }
    }
    assert!(refusals >= 5, "{refusals} pushes needed memory");
    for value in 0..next {
        assert_eq!(refused(|| consumer.try_pop()), Some(value), "{next} went in");
    }
    assert_eq!(consumer.try_pop(), None);
    assert!((0..50).all(|value| producer.try_push(value).is_ok()));
    drop((producer, consumer));
    drop(queue);
    assert_eq!(HELD.get(), before, "all is freed, with 50 elements inside");
}

#[test]
fn a_deque_that_cannot_grow_says_so() {
    is_refused_and_goes_on::<DequeChaseLevGrowing<u64>>();
}

#[test]
fn a_queue_without_another_block_says_so() {
    is_refused_and_goes_on::<MpmcSegmented<u64>>();
}

#[test]
fn a_queue_without_a_node_says_so() {
    is_refused_and_goes_on::<MpscUnbounded<u64>>();
}

#[test]
fn a_queue_for_two_without_another_block_says_so() {
    is_refused_and_goes_on::<SpscUnbounded<u64>>();
}

/// Blocks that were read out are used again: a queue that once held `most` elements takes no more
/// memory as long as it holds no more than `then`.
fn blocks_are_used_again<Q: Queue<u64> + WithCapacity>(most: u64, then: u64) {
    let mut queue = Q::with_capacity(1).unwrap();
    let (mut producer, mut consumer) = queue.split();
    let mut fill = |count| (0..count).for_each(|value| producer.try_push(value).unwrap());
    let mut empty = |count| (0..count).for_each(|n| assert_eq!(consumer.try_pop(), Some(n)));
    fill(most);
    empty(most);
    let held = HELD.get();
    for _ in 0..1000 {
        refused(|| fill(then));
        refused(|| empty(then));
    }
    assert_eq!(HELD.get(), held);
}

#[test]
fn a_block_that_was_read_out_is_used_again() {
    blocks_are_used_again::<MpmcSegmented<u64>>(40, 31);
}

#[test]
fn all_blocks_that_were_read_out_are_used_again() {
    blocks_are_used_again::<SpscUnbounded<u64>>(200, 168); // the consumer is in one of them
}

/// A batch is one claim; its elements are dropped once, also when the taker panics in the middle.
#[test]
fn a_batch_is_dropped_once_when_its_taker_panics() {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::rc::Rc;
    for panics_at in 0..=20 {
        let queue = MpmcSegmented::<Rc<u64>>::try_new().unwrap();
        let elements: Vec<Rc<u64>> = (0..40).map(Rc::new).collect();
        elements.iter().for_each(|element| assert!(queue.try_push(Rc::clone(element)).is_ok()));
        assert_eq!(queue.pop_each(0, drop), 0);
        assert_eq!(queue.pop_each(15, |_| ()), 15);
        let taken = Cell::new(0);
        let batch = catch_unwind(AssertUnwindSafe(|| {
            queue.pop_each(20, |element| {
                assert!(taken.get() != panics_at, "a taker of the suite panics");
                assert_eq!(*element, 15 + taken.get());
                taken.set(taken.get() + 1);
            })
        }));
        // The rest of the block: 31 slots, 15 of which were read.
        assert_eq!(batch.ok(), (panics_at > 15).then_some(16), "panics at {panics_at}");
        let out = elements.iter().filter(|element| Rc::strong_count(element) == 1).count();
        assert_eq!(out, 31, "the rest of the batch is dropped");
        assert_eq!(queue.try_pop().as_deref(), Some(&31));
        // The second block has 9 of its 31; behind it the first one is used again.
        let pushed = refused(|| (0..22).all(|n| queue.try_push(Rc::clone(&elements[n])).is_ok()));
        assert!(pushed, "panics at {panics_at}: the block that was read out is at hand");
        drop(queue);
        assert!(elements.iter().all(|element| Rc::strong_count(element) == 1));
    }
}
