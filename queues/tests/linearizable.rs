//! Recorded histories of real threads against the specification of a queue: is there an order of
//! the operations that respects their times and that a queue could have executed?
//!
//! The search is that of J. Wing and C. Gong, "Testing and Verifying Concurrent Objects", Journal of
//! Parallel and Distributed Computing 17, 1993, with visited states remembered. Rows that say that
//! they are linearizable are held to every answer, the others to the answers that carry elements:
//! their `Full` and empty may be spurious while a peer is inside an operation.
#![cfg(feature = "std")]

#[path = "linearizable/history.rs"]
mod history;

use history::{Answer, Event, is_linearizable};
use queues::{Consumer, Producer, Queue, Side, WithCapacity};
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};

use Answer::{Empty, Full, Popped, Pushed};

fn event(from: u64, to: u64, answer: Answer) -> Event {
    Event { from, to, answer }
}

#[test]
fn the_checker_tells_histories_apart() {
    let overlap = [event(0, 5, Pushed(1)), event(1, 2, Pushed(2)), event(6, 7, Popped(1))];
    assert!(is_linearizable(&overlap, 2), "either push may be first");
    assert!(!is_linearizable(&overlap, 1), "two do not fit");
    let apart = [event(0, 1, Pushed(1)), event(2, 3, Pushed(2)), event(4, 5, Popped(2))];
    assert!(!is_linearizable(&apart, 2), "last in, first out");
    let lost = [event(0, 1, Pushed(1)), event(2, 3, Empty)];
    assert!(!is_linearizable(&lost, 2), "empty after a push that had ended");
    let early = [event(0, 1, Pushed(1)), event(2, 3, Full)];
    assert!(is_linearizable(&early, 1) && !is_linearizable(&early, 2), "full below capacity");
    let twice = [event(0, 1, Pushed(1)), event(2, 3, Popped(1)), event(2, 3, Popped(1))];
    assert!(!is_linearizable(&twice, 2), "out twice");
    let stalled = [
        event(0, 9, Pushed(1)),
        event(1, 2, Pushed(2)),
        event(3, 4, Empty),
        event(10, 11, Popped(1)),
    ];
    assert!(!is_linearizable(&stalled, 4), "what Vyukov's ring may say: 2 is in, and not found");
}

/// Records what `threads` do at once on a fresh queue: producers push, consumers pop, `ops` each.
fn record<Q: Queue<u64> + WithCapacity>(
    capacity: usize,
    [producers, consumers]: [usize; 2],
    ops: u64,
) -> Vec<Event> {
    let mut queue = Q::with_capacity(capacity).unwrap();
    let (producer, consumer) = queue.split();
    let mut pushing: Vec<_> = (1..producers).filter_map(|_| producer.try_clone()).collect();
    let mut popping: Vec<_> = (1..consumers).filter_map(|_| consumer.try_clone()).collect();
    pushing.push(producer);
    popping.push(consumer);
    let clock = AtomicU64::new(0);
    let start = Barrier::new(producers + consumers);
    // ORDERING: SeqCst - the times have to be one order that respects what really came first.
    let now = || clock.fetch_add(1, Ordering::SeqCst);
    let timed = |operation: &mut dyn FnMut() -> Answer| {
        let from = now();
        let answer = operation();
        Event { from, to: now(), answer }
    };
    let (start, timed) = (&start, &timed);
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for (who, mut producer) in (0..).zip(pushing) {
            threads.push(scope.spawn(move || {
                start.wait();
                let push = |number| {
                    let value = who * 100 + number;
                    timed(&mut || producer.try_push(value).map_or(Full, |()| Pushed(value)))
                };
                (0..ops).map(push).collect::<Vec<_>>()
            }));
        }
        for mut consumer in popping {
            threads.push(scope.spawn(move || {
                start.wait();
                let pop = |_| timed(&mut || consumer.try_pop().map_or(Empty, Popped));
                (0..ops).map(pop).collect::<Vec<_>>()
            }));
        }
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    })
}

/// Records and judges; gives how many operations overlapped another thread's.
fn judge<Q: Queue<u64> + WithCapacity>(id: &str) -> usize {
    let properties = Q::PROPERTIES;
    let many = |side| if side == Side::Multi { 2 } else { 1 };
    let sides = [many(properties.producers), many(properties.consumers)];
    let mut overlapping = 0;
    for round in 0..600 {
        let capacity = 1 + round % 3;
        let mut history = record::<Q>(capacity, sides, 6);
        overlapping += history.iter().filter(|event| event.to > event.from + 1).count();
        let room = if properties.linearizable {
            if properties.bounded { capacity } else { usize::MAX }
        } else {
            // Spurious answers are left out, and with them what they say about room.
            history.retain(|event| matches!(event.answer, Pushed(_) | Popped(_)));
            usize::MAX
        };
        assert!(is_linearizable(&history, room), "{id}, capacity {capacity}: {history:#?}");
    }
    overlapping
}

#[test]
fn histories_of_every_row_are_those_of_a_queue() {
    macro_rules! rows {
        ($($id:ident => $queue:ty, $kind:ident;)*) => { $(
            if stringify!($kind) != "baseline" {
                type T = u64;
                let overlapping = judge::<$queue>(stringify!($id));
                println!("{}: {overlapping} operations overlapped others", stringify!($id));
            }
        )* };
    }
    queues::for_each_queue!(rows);
}
