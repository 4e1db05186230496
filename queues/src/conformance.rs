//! The suite that every queue passes; yours too.
//!
//! ```
//! # mod my {
//! // In a test file of your crate; `T` is the element type, which the suite chooses:
//! queues::conformance!(queues::SpscRingCached<T, queues::Boxed>);
//! queues::conformance!(vyukov: queues::MpmcRingVyukov<T, queues::Boxed>); // a second one
//! # }
//! ```
//!
//! The functions return what they found instead of panicking, so that the suite itself can be
//! tested on queues that are broken.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::iter;
use core::panic::AssertUnwindSafe;
use core::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use core::time::Duration;
use std::panic::catch_unwind;
use std::sync::OnceLock;
use std::thread;
use std::time::Instant;

use crate::contract::{CapacityError, Consumer, Full, Producer, Queue, Side, WithCapacity};

/// What a queue did that its contract forbids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation(String);

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Returns early with a violation unless the condition holds.
macro_rules! require {
    ($condition:expr, $($what:tt)*) => {
        if !$condition {
            return Err(Violation(format!($($what)*)));
        }
    };
}

/// How long a run of threads may take before it counts as stuck.
const PATIENCE: Duration = Duration::from_secs(40);

/// The capacities that every test walks through: with them, all of the ways in which a capacity
/// can lie between two powers of two.
const CAPACITIES: core::ops::RangeInclusive<usize> = 1..=17;

fn made<Q: WithCapacity>(capacity: usize) -> Result<Q, Violation> {
    Q::with_capacity(capacity)
        .map_err(|error| Violation(format!("with_capacity({capacity}) failed: {error}")))
}

/// How many elements a queue of `capacity` is filled with: one that is not bounded, with more.
fn fill_of<T: Send, Q: Queue<T>>(capacity: usize) -> usize {
    if Q::PROPERTIES.bounded { capacity } else { 3 * capacity + 1 }
}

/// Alone, each capacity from 1 to 17 takes exactly so many elements, gives the next one back, and
/// returns them in order, from every slot on. A queue that is not bounded takes more.
///
/// # Errors
/// When it does not.
pub fn capacity_and_order<Q: Queue<u64> + WithCapacity>() -> Result<(), Violation> {
    for capacity in CAPACITIES {
        let mut queue = made::<Q>(capacity)?;
        let bounded = Q::PROPERTIES.bounded;
        let room = if bounded { capacity } else { usize::MAX };
        require!(queue.capacity() == room, "{} slots, not {room}", queue.capacity());
        let (mut producer, mut consumer) = queue.split();
        let mut next = 0..;
        for round in 0..3 * capacity {
            let values: Vec<u64> = next.by_ref().take(fill_of::<u64, Q>(capacity)).collect();
            for &value in &values {
                require!(
                    producer.try_push(value).is_ok(),
                    "capacity {capacity}: full in round {round} at {value} of {values:?}"
                );
            }
            for refused in [u64::MAX, 0].into_iter().filter(|_| bounded) {
                require!(
                    producer.try_push(refused) == Err(Full(refused)),
                    "capacity {capacity}: a full queue did not hand {refused} back"
                );
            }
            for &value in &values {
                let popped = consumer.try_pop();
                require!(
                    popped == Some(value),
                    "capacity {capacity}: {popped:?} came out in place of {value}"
                );
            }
            require!(consumer.try_pop().is_none(), "capacity {capacity}: more out than in");
            // Begin the next round one slot further on.
            let value = round as u64;
            require!(producer.try_push(value).is_ok(), "capacity {capacity}: full when empty");
            let popped = consumer.try_pop();
            require!(popped == Some(value), "capacity {capacity}: {popped:?} is not {value}");
        }
    }
    Ok(())
}

/// What one pair of endpoints left behind, the next one finds.
///
/// # Errors
/// When it does not.
pub fn splits_again<Q: Queue<u64> + WithCapacity>() -> Result<(), Violation> {
    let mut queue = made::<Q>(3)?;
    for round in 0..10 {
        let pushed = queue.split().0.try_push(round);
        require!(pushed.is_ok(), "round {round}: full");
        let popped = queue.split().1.try_pop();
        require!(popped == Some(round), "round {round}: {popped:?} after a second split");
    }
    Ok(())
}

/// Capacities that no queue can have are errors, not aborts.
///
/// # Errors
/// When a queue was made, or a small one was not.
pub fn bad_capacities<Q: Queue<u64> + WithCapacity>() -> Result<(), Violation> {
    require!(matches!(Q::with_capacity(0), Err(CapacityError::Zero)), "a queue of no slots");
    let bytes = isize::MAX as usize;
    for capacity in [usize::MAX, usize::MAX / 2 + 1, bytes, bytes / 8, bytes / 16] {
        require!(Q::with_capacity(capacity).is_err(), "a queue of {capacity} slots");
    }
    made::<Q>(1).map(drop)
}

/// Counts how often each of its elements was dropped.
#[derive(Debug)]
pub struct Ledger(Vec<AtomicU8>);

/// An element of a [`Ledger`]; may panic when it is dropped.
#[derive(Debug)]
pub struct Counted {
    ledger: Arc<Ledger>,
    number: usize,
    panics: bool,
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.ledger.0[self.number].fetch_add(1, Ordering::Relaxed);
        assert!(!self.panics, "an element of the suite panics when it is dropped");
    }
}

impl Ledger {
    fn new(elements: usize) -> Arc<Self> {
        Arc::new(Self((0..elements).map(|_| AtomicU8::new(0)).collect()))
    }

    fn element(self: &Arc<Self>, number: usize, panics: bool) -> Counted {
        Counted { ledger: Arc::clone(self), number, panics }
    }

    fn drops(&self) -> Vec<u8> {
        self.0.iter().map(|drops| drops.load(Ordering::Relaxed)).collect()
    }
}

/// At every fill level and from every slot on, each element is dropped once: those that came out
/// by their owner, those that came back from a full queue as well, the rest with the queue.
///
/// # Errors
/// When one was dropped twice, or not, or too early.
pub fn drops_once<Q: Queue<Counted> + WithCapacity>() -> Result<(), Violation> {
    for capacity in CAPACITIES {
        let bounded = Q::PROPERTIES.bounded;
        let most = fill_of::<Counted, Q>(capacity);
        for (offset, fill) in (0..capacity).flat_map(|o| (0..=most).map(move |f| (o, f))) {
            let what = format!("capacity {capacity}, {offset} passed through, {fill} left");
            let ledger = Ledger::new(offset + fill + 1);
            let mut queue = made::<Q>(capacity)?;
            let (mut producer, mut consumer) = queue.split();
            for number in 0..offset {
                let pushed = producer.try_push(ledger.element(number, false)).is_ok();
                require!(pushed && consumer.try_pop().is_some(), "{what}: nothing passes");
            }
            for number in offset..offset + fill {
                let pushed = producer.try_push(ledger.element(number, false)).is_ok();
                require!(pushed, "{what}: full");
            }
            let full = bounded && fill == capacity;
            if full {
                let refused = producer.try_push(ledger.element(offset + fill, false));
                require!(refused.is_err(), "{what}: not full");
            }
            drop((producer, consumer));
            let left = ledger.drops()[offset..offset + fill].iter().map(|&n| u64::from(n)).sum();
            require!(0u64 == left, "{what}: {left} drops of elements inside the queue");
            drop(queue);
            let mut expected = alloc::vec![1; offset + fill];
            expected.push(u8::from(full));
            let drops = ledger.drops();
            require!(drops == expected, "{what}: elements were dropped {drops:?} times");
        }
    }
    Ok(())
}

/// When the drop of an element panics, inside the queue's own drop or outside, no element is
/// dropped twice, none is forgotten, and a queue that is still there still works.
///
/// # Errors
/// When it is otherwise.
pub fn survives_drops_that_panic<Q: Queue<Counted> + WithCapacity>() -> Result<(), Violation> {
    for (capacity, bomb) in CAPACITIES.flat_map(|c| (0..c).map(move |b| (c, b))) {
        let ledger = Ledger::new(capacity + 1);
        let mut queue = made::<Q>(capacity)?;
        let (mut producer, mut consumer) = queue.split();
        let panics = producer.try_push(ledger.element(capacity, true)).is_ok();
        let popped = catch_unwind(AssertUnwindSafe(|| drop(consumer.try_pop())));
        require!(panics && popped.is_err(), "capacity {capacity}: the first element got lost");
        for number in 0..capacity {
            let pushed = producer.try_push(ledger.element(number, number == bomb));
            require!(pushed.is_ok(), "capacity {capacity}: full after a drop that panicked");
        }
        drop((producer, consumer));
        let dropped = catch_unwind(AssertUnwindSafe(|| drop(queue)));
        require!(dropped.is_err(), "capacity {capacity}: element {bomb} was not dropped");
        let drops = ledger.drops();
        require!(
            drops.iter().all(|&times| times == 1),
            "capacity {capacity}, element {bomb} panics: elements were dropped {drops:?} times"
        );
    }
    Ok(())
}

/// Elements without bytes are counted like all others.
///
/// # Errors
/// When more or fewer come out than went in, or the capacity is another.
pub fn zero_sized<Q: Queue<()> + WithCapacity>() -> Result<(), Violation> {
    for capacity in CAPACITIES {
        let mut queue = made::<Q>(capacity)?;
        let (mut producer, mut consumer) = queue.split();
        let most = fill_of::<(), Q>(capacity);
        for fill in (0..=most).chain((0..most).rev()) {
            let pushed = iter::from_fn(|| producer.try_push(()).ok()).take(fill).count();
            require!(pushed == fill, "capacity {capacity}: {pushed} of {fill} went in");
            let full = Q::PROPERTIES.bounded && fill == capacity;
            require!(!full || producer.try_push(()).is_err(), "capacity {capacity}: not full");
            let popped = iter::from_fn(|| consumer.try_pop()).take(2 * most + 2).count();
            require!(popped == fill, "capacity {capacity}: {popped} of {fill} came out");
        }
    }
    Ok(())
}

/// An element of 4 KiB that wants to lie on 256 bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[repr(align(256))]
pub struct Wide([u64; 512]);

impl Wide {
    fn numbered(number: u64) -> Self {
        Self(core::array::from_fn(|i| number ^ (i as u64) << 32))
    }
}

/// Elements that are large and aligned come out whole.
///
/// # Errors
/// When they are damaged.
pub fn large_and_aligned<Q: Queue<Wide> + WithCapacity>() -> Result<(), Violation> {
    for capacity in 1..=5 {
        let mut queue = made::<Q>(capacity)?;
        let (mut producer, mut consumer) = queue.split();
        for round in 0..10 {
            for number in 0..capacity as u64 {
                let pushed = producer.try_push(Wide::numbered(round + number)).is_ok();
                require!(pushed, "capacity {capacity}: full at {number}");
            }
            for number in 0..capacity as u64 {
                let popped = consumer.try_pop();
                require!(
                    popped == Some(Wide::numbered(round + number)),
                    "capacity {capacity}: element {number} of round {round} is damaged"
                );
            }
        }
    }
    Ok(())
}

/// Sides that say they are for many hand out more endpoints; the others do not.
///
/// # Errors
/// When they do not.
pub fn sides_are_as_they_say<Q: Queue<u64> + WithCapacity>() -> Result<(), Violation> {
    let mut queue = made::<Q>(2)?;
    let (producer, consumer) = queue.split();
    for (side, more, who) in [
        (Q::PROPERTIES.producers, producer.try_clone().is_some(), "producer"),
        (Q::PROPERTIES.consumers, consumer.try_clone().is_some(), "consumer"),
    ] {
        require!((side == Side::Multi) == more, "{who}s: {side}, but one more: {more}");
    }
    Ok(())
}

/// `producers` threads push `items` elements each, `consumers` threads pop them: each element
/// comes out once, and those of one producer in its order, for each consumer. With one thread a
/// side that is the order of all.
///
/// Sides for one thread get one, whatever was asked for.
///
/// # Errors
/// When an element was lost, doubled or overtaken, or there was no end after 40 s.
pub fn exactly_once<Q: Queue<u64> + WithCapacity>(
    capacity: usize,
    producers: usize,
    consumers: usize,
    items: u64,
) -> Result<(), Violation> {
    let wanted = |side, threads| if side == Side::Multi { threads } else { 1 };
    let producers = wanted(Q::PROPERTIES.producers, producers);
    let consumers = wanted(Q::PROPERTIES.consumers, consumers);
    let run = Run::new(producers, items);
    let mut queue = made::<Q>(capacity)?;
    let (producer, consumer) = queue.split();
    let mut pushing: Vec<_> = (1..producers).filter_map(|_| producer.try_clone()).collect();
    let mut popping: Vec<_> = (1..consumers).filter_map(|_| consumer.try_clone()).collect();
    pushing.push(producer);
    popping.push(consumer);
    require!(pushing.len() == producers, "a side for many handed out no more producers");
    require!(popping.len() == consumers, "a side for many handed out no more consumers");
    thread::scope(|scope| {
        let run = &run;
        for (number, producer) in pushing.into_iter().enumerate() {
            scope.spawn(move || run.watch(|| run.push_all(producer, number as u64)));
        }
        for consumer in popping {
            scope.spawn(move || run.watch(|| run.pop_all(consumer)));
        }
    });
    run.verdict()
}

/// One run of [`exactly_once`], as its threads see it.
struct Run {
    /// Elements of each producer: number `n` pushes from `n * items` on.
    items: u64,
    all: u64,
    /// One bit for each element that came out.
    seen: Vec<AtomicU64>,
    /// Producers that have not ended.
    producing: AtomicU64,
    deadline: Instant,
    /// The first violation; whoever sees that there is one ends.
    violation: OnceLock<Violation>,
}

impl Run {
    fn new(producers: usize, items: u64) -> Self {
        let all = producers as u64 * items;
        Self {
            items,
            all,
            seen: (0..all.div_ceil(64)).map(|_| AtomicU64::new(0)).collect(),
            producing: AtomicU64::new(producers as u64),
            deadline: Instant::now() + PATIENCE,
            violation: OnceLock::new(),
        }
    }

    /// Keeps the first violation, a panic among them.
    fn watch(&self, thread: impl FnOnce() -> Result<(), Violation>) {
        let end = catch_unwind(AssertUnwindSafe(thread));
        if let Err(violation) = end.unwrap_or_else(|_| Err(Violation("a thread panicked".into()))) {
            self.violation.get_or_init(|| violation);
        }
    }

    /// Lets others run; whether the caller may try again.
    fn may_go_on(&self) -> Result<bool, Violation> {
        thread::yield_now();
        require!(Instant::now() < self.deadline, "no end after {PATIENCE:?}");
        Ok(self.violation.get().is_none())
    }

    fn push_all<P: Producer<u64>>(&self, mut producer: P, number: u64) -> Result<(), Violation> {
        for value in number * self.items..(number + 1) * self.items {
            while let Err(Full(back)) = producer.try_push(value) {
                require!(back == value, "{value} did not go in, but {back} came back");
                if !self.may_go_on()? {
                    return Ok(());
                }
            }
        }
        // ORDERING: Release - against the consumers' look: this producer's pushes are over.
        self.producing.fetch_sub(1, Ordering::Release);
        Ok(())
    }

    fn pop_all<C: Consumer<u64>>(&self, mut consumer: C) -> Result<(), Violation> {
        let mut last: Vec<Option<u64>> = Vec::new();
        loop {
            // Looked at first: what is empty afterwards is empty with all pushes behind it.
            // ORDERING: Acquire - against the producers' last step: every push is visible.
            let all_in = self.producing.load(Ordering::Acquire) == 0;
            let Some(value) = consumer.try_pop() else {
                if all_in || !self.may_go_on()? {
                    return Ok(());
                }
                continue;
            };
            require!(value < self.all, "{value} came out, and never went in");
            let bit = 1 << (value % 64);
            let word = &self.seen[(value / 64) as usize];
            require!(word.fetch_or(bit, Ordering::Relaxed) & bit == 0, "{value} came out twice");
            let producer = (value / self.items) as usize;
            last.resize(last.len().max(producer + 1), None);
            let older = last[producer].replace(value);
            require!(older < Some(value), "producer {producer}: {value} after {older:?}");
        }
    }

    fn verdict(mut self) -> Result<(), Violation> {
        if let Some(violation) = self.violation.take() {
            return Err(violation);
        }
        for value in 0..self.all {
            let word = self.seen[(value / 64) as usize].load(Ordering::Relaxed);
            require!(word >> (value % 64) & 1 == 1, "{value} of {} never came out", self.all);
        }
        Ok(())
    }
}

/// Runs the suite over a type that implements [`Queue`] and [`WithCapacity`], written with the
/// element type `T`.
///
/// `queues::conformance!(MyQueue<T>)` makes one module of tests; a second queue in the same module
/// needs a name: `queues::conformance!(other: OtherQueue<T>)`.
#[macro_export]
macro_rules! conformance {
    ($queue:ty) => { $crate::conformance!(queue_conformance: $queue); };
    ($name:ident: $queue:ty) => {
        mod $name {
            #[allow(unused_imports, reason = "the type may be written with a full path")]
            use super::*;
            use $crate::conformance as suite;

            type Subject<T> = $queue;

            fn judge(verdict: Result<(), suite::Violation>) {
                verdict.unwrap_or_else(|violation| panic!("{violation}"));
            }

            #[test]
            fn keeps_capacity_and_order() {
                judge(suite::capacity_and_order::<Subject<u64>>());
            }
            #[test]
            fn splits_again() {
                judge(suite::splits_again::<Subject<u64>>());
            }
            #[test]
            #[cfg_attr(miri, ignore = "ends when the allocator refuses")]
            fn refuses_bad_capacities() {
                judge(suite::bad_capacities::<Subject<u64>>());
            }
            #[test]
            fn drops_each_element_once() {
                judge(suite::drops_once::<Subject<suite::Counted>>());
            }
            #[test]
            fn survives_drops_that_panic() {
                judge(suite::survives_drops_that_panic::<Subject<suite::Counted>>());
            }
            #[test]
            fn counts_elements_without_bytes() {
                judge(suite::zero_sized::<Subject<()>>());
            }
            #[test]
            fn moves_large_and_aligned_elements() {
                judge(suite::large_and_aligned::<Subject<suite::Wide>>());
            }
            #[test]
            fn has_the_sides_that_it_says() {
                judge(suite::sides_are_as_they_say::<Subject<u64>>());
            }
            #[test]
            fn hands_over_in_order() {
                for capacity in [1, 3, 64] {
                    judge(suite::exactly_once::<Subject<u64>>(capacity, 1, 1, 20_000));
                }
            }
            #[test]
            fn hands_over_exactly_once_among_many() {
                for (capacity, producers, consumers) in [(1, 2, 2), (3, 3, 1), (4, 1, 3), (64, 2, 2)] {
                    judge(suite::exactly_once::<Subject<u64>>(capacity, producers, consumers, 5_000));
                }
            }
        }
    };
}
