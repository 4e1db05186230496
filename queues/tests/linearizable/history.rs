//! Is there an order of recorded operations that respects their times and that a queue could have
//! executed?

use std::collections::{HashSet, VecDeque};

use Answer::{Empty, Full, Popped, Pushed};

/// What a thread asked for and was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    Pushed(u64),
    Full,
    Popped(u64),
    Empty,
}

/// One operation: between `from` and `to`, on a clock that all threads share.
#[derive(Debug, Clone, Copy)]
pub(super) struct Event {
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) answer: Answer,
}

/// Whether some order of the events is one that a queue of `capacity` could have executed.
pub(super) fn is_linearizable(history: &[Event], capacity: usize) -> bool {
    assert!(history.len() <= 64, "one bit an event");
    search(history, capacity, 0, &VecDeque::new(), &mut HashSet::new())
}

fn search(
    history: &[Event],
    capacity: usize,
    done: u64,
    queue: &VecDeque<u64>,
    visited: &mut HashSet<(u64, VecDeque<u64>)>,
) -> bool {
    let left = || history.iter().enumerate().filter(|(index, _)| done >> index & 1 == 0);
    let Some(first_end) = left().map(|(_, event)| event.to).min() else { return true };
    if !visited.insert((done, queue.clone())) {
        return false;
    }
    // Whoever began after another one ended comes after it.
    left().filter(|(_, event)| event.from <= first_end).any(|(index, event)| {
        let mut queue = queue.clone();
        let possible = match event.answer {
            Pushed(value) => {
                queue.push_back(value);
                queue.len() <= capacity
            }
            Full => queue.len() == capacity,
            Popped(value) => queue.pop_front() == Some(value),
            Empty => queue.is_empty(),
        };
        possible && search(history, capacity, done | 1 << index, &queue, visited)
    })
}
