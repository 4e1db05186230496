//! The exported suite over every row of the table, over the same rings with their slots inside,
//! and over queues that are broken.
#![cfg(feature = "std")]

use queues::conformance as suite;
use queues::{CapacityError, Full, Inline, Properties, Queue, SharedQueue, WithCapacity};
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard};

macro_rules! row {
    ($id:ident, $queue:ty, baseline) => {};
    ($id:ident, $queue:ty, $kind:ident) => {
        mod $id {
            queues::conformance!($queue);
        }
    };
}

macro_rules! rows {
    ($($id:ident => $queue:ty, $kind:ident;)*) => { $( row!($id, $queue, $kind); )* };
}

queues::for_each_queue!(rows);

/// Not in the table: it allocates for every element.
#[cfg(feature = "alloc")]
mod mpsc_unbounded {
    queues::conformance!(queues::MpscUnbounded<T>);
}

mod inline {
    use super::*;
    queues::conformance!(spsc_ring_cached: queues::SpscRingCached<T, Inline<64>>);
    queues::conformance!(spsc_lamport: queues::SpscLamport<T, Inline<64>>);
    queues::conformance!(spsc_fastforward: queues::SpscFastForward<T, Inline<64>>);
    queues::conformance!(deque_chase_lev: queues::DequeChaseLev<T, Inline<64>>);
    queues::conformance!(deque_packed_fifo: queues::DequePackedFifo<T, Inline<64>>);
    queues::conformance!(mpmc_ticket: queues::MpmcTicket<T, Inline<64>>);
    queues::conformance!(mpmc_ring_rte: queues::MpmcRingRte<T, Inline<64>>);
    queues::conformance!(mpmc_scq: queues::MpmcScq<T, Inline<64>>);
    queues::conformance!(mpmc_michael_scott: queues::MpmcMichaelScott<T, Inline<64>>);
    queues::conformance!(mpmc_ring_vyukov: queues::MpmcRingVyukov<T, Inline<64>>);
    queues::conformance!(mutex_ring: queues::MutexRing<T, Inline<64>>);
    queues::conformance!(spsc_ring_unpadded: queues::SpscRingUnpadded<T, Inline<64>>);
}

/// What is wrong with a [`Deque`].
const NOTHING: u8 = 0;
const LOSES: u8 = 1;
const LAST_FIRST: u8 = 2;
const DUPLICATES: u8 = 3;
const ONE_SHORT: u8 = 4;
const ONE_MORE: u8 = 5;
const FORGETS: u8 = 6;
const ALTERS: u8 = 7;

/// A queue of the standard library's parts, with one fault.
struct Deque<T, const FAULT: u8> {
    state: Mutex<(VecDeque<T>, u64)>,
    capacity: usize,
}

impl<T, const FAULT: u8> Deque<T, FAULT> {
    fn state(&self) -> MutexGuard<'_, (VecDeque<T>, u64)> {
        self.state.lock().unwrap()
    }
}

impl<T, const FAULT: u8> WithCapacity for Deque<T, FAULT> {
    fn with_capacity(capacity: usize) -> Result<Self, CapacityError> {
        match capacity {
            0 => Err(CapacityError::Zero),
            1..100_000 => Ok(Self { state: Mutex::default(), capacity }),
            _ => Err(CapacityError::TooLarge { largest: 99_999 }),
        }
    }
}

impl<T: Send + Subject, const FAULT: u8> Queue<T> for Deque<T, FAULT> {
    type Producer<'q>
        = queues::SharedProducer<'q, Self, T>
    where
        Self: 'q;
    type Consumer<'q>
        = queues::SharedConsumer<'q, Self, T>
    where
        Self: 'q;
    const PROPERTIES: Properties = <queues::MutexRing<u64, Inline<1>> as Queue<u64>>::PROPERTIES;
    const BYTES_PER_SLOT: usize = size_of::<T>();

    fn split(&mut self) -> (Self::Producer<'_>, Self::Consumer<'_>) {
        (queues::SharedProducer::new(self), queues::SharedConsumer::new(self))
    }

    fn capacity(&self) -> usize {
        self.capacity
    }
}

/// What a fault can do to an element.
trait Subject: Sized {
    fn twin(&self) -> Option<Self> {
        None
    }
    fn altered(self) -> Self {
        self
    }
}

impl Subject for u64 {
    fn twin(&self) -> Option<Self> {
        Some(*self)
    }
    fn altered(self) -> Self {
        self ^ 1
    }
}
impl Subject for () {
    fn twin(&self) -> Option<Self> {
        Some(())
    }
}
impl Subject for suite::Counted {}
impl Subject for suite::Wide {
    fn altered(self) -> Self {
        suite::Wide::clone(&self)
    }
}

impl<T: Send + Subject, const FAULT: u8> SharedQueue<T> for Deque<T, FAULT> {
    fn try_push(&self, value: T) -> Result<(), Full<T>> {
        let mut state = self.state();
        let room = match FAULT {
            ONE_SHORT => self.capacity - 1,
            ONE_MORE => self.capacity + 1,
            _ => self.capacity,
        };
        if state.0.len() >= room {
            return Err(Full(if FAULT == ALTERS { value.altered() } else { value }));
        }
        state.1 += 1;
        if FAULT == LOSES && state.1.is_multiple_of(1000) {
            return Ok(());
        }
        if FAULT == DUPLICATES
            && state.1.is_multiple_of(1000)
            && let Some(twin) = value.twin()
        {
            state.0.push_back(twin);
        }
        state.0.push_back(value);
        Ok(())
    }

    fn try_pop(&self) -> Option<T> {
        let mut state = self.state();
        if FAULT == LAST_FIRST { state.0.pop_back() } else { state.0.pop_front() }
    }
}

impl<T, const FAULT: u8> Drop for Deque<T, FAULT> {
    fn drop(&mut self) {
        if FAULT == FORGETS {
            std::mem::forget(std::mem::take(&mut self.state().0));
        }
    }
}

queues::conformance!(sound: Deque<T, NOTHING>);

/// What the suite says about two threads a side and room for 64.
fn crowd<const FAULT: u8>() -> String {
    suite::exactly_once::<Deque<u64, FAULT>>(64, 2, 2, 5_000).unwrap_err().to_string()
}

/// The same for one thread a side.
fn pair<const FAULT: u8>() -> String {
    suite::exactly_once::<Deque<u64, FAULT>>(64, 1, 1, 5_000).unwrap_err().to_string()
}

#[test]
fn the_suite_catches_a_queue_that_loses() {
    for verdict in [crowd::<LOSES>(), pair::<LOSES>()] {
        assert!(verdict.contains("never came out"), "{verdict}");
    }
}

#[test]
fn the_suite_catches_a_queue_that_is_last_in_first_out() {
    let verdict = suite::capacity_and_order::<Deque<u64, LAST_FIRST>>().unwrap_err().to_string();
    assert!(verdict.contains("in place of"), "{verdict}");
    let verdict = pair::<LAST_FIRST>();
    assert!(verdict.contains("after"), "{verdict}");
}

#[test]
fn the_suite_catches_a_queue_that_duplicates() {
    for verdict in [crowd::<DUPLICATES>(), pair::<DUPLICATES>()] {
        assert!(verdict.contains("twice"), "{verdict}");
    }
}

#[test]
fn the_suite_catches_wrong_capacities() {
    let verdict = suite::capacity_and_order::<Deque<u64, ONE_SHORT>>().unwrap_err().to_string();
    assert!(verdict.contains("full in round"), "{verdict}");
    let verdict = suite::capacity_and_order::<Deque<u64, ONE_MORE>>().unwrap_err().to_string();
    assert!(verdict.contains("did not hand"), "{verdict}");
    suite::zero_sized::<Deque<(), ONE_SHORT>>().unwrap_err();
    suite::zero_sized::<Deque<(), ONE_MORE>>().unwrap_err();
}

#[test]
fn the_suite_catches_another_value_handed_back() {
    let verdict = suite::capacity_and_order::<Deque<u64, ALTERS>>().unwrap_err().to_string();
    assert!(verdict.contains("hand"), "{verdict}");
}

#[test]
fn the_suite_catches_elements_that_are_never_dropped() {
    let verdict = suite::drops_once::<Deque<suite::Counted, FORGETS>>().unwrap_err().to_string();
    assert!(verdict.contains("dropped"), "{verdict}");
    suite::survives_drops_that_panic::<Deque<suite::Counted, FORGETS>>().unwrap_err();
}

#[test]
fn the_suite_catches_the_null_baseline() {
    type Null = queues::NullQueue<u64>;
    suite::capacity_and_order::<Null>().unwrap_err();
    suite::bad_capacities::<Null>().unwrap_err();
    suite::zero_sized::<queues::NullQueue<()>>().unwrap_err();
}
