//! A queue behind a lock, as many programs have one: who finds it empty sleeps.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use super::turn::Turn;

/// A bounded queue behind the standard library's lock.
#[derive(Debug)]
pub(crate) struct Mailbox<T> {
    state: Mutex<State<T>>,
    ready: Condvar,
    capacity: usize,
}

#[derive(Debug)]
struct State<T> {
    items: VecDeque<T>,
    closed: bool,
    /// Times that there was no room.
    full: u64,
}

/// How long who finds no room waits before another look.
const NO_ROOM: Duration = Duration::from_micros(20);

impl<T> Mailbox<T> {
    /// Makes an empty one for so many items.
    pub(crate) fn new(capacity: usize) -> Self {
        let items = VecDeque::with_capacity(capacity);
        let state = Mutex::new(State { items, closed: false, full: 0 });
        Self { state, ready: Condvar::new(), capacity }
    }

    /// Opens it again, empty.
    pub(crate) fn open(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.items.clear();
        (state.closed, state.full) = (false, 0);
    }

    /// Puts an item in, when there is room.
    #[track_caller]
    pub(crate) fn push(&self, turn: &mut Turn<'_>, item: T) {
        loop {
            let mut state = turn.lock(&self.state);
            if state.items.len() < self.capacity {
                state.items.push_back(item);
                drop(state);
                self.ready.notify_one();
                return;
            }
            state.full += 1;
            drop(state);
            std::thread::sleep(NO_ROOM);
        }
    }

    /// Takes up to `most` of the oldest items, when there is one; none when it is closed and empty.
    #[track_caller]
    pub(crate) fn pop(&self, turn: &mut Turn<'_>, most: usize, into: &mut Vec<T>) -> bool {
        let mut state = turn.lock(&self.state);
        while state.items.is_empty() && !state.closed {
            let began = turn.clock.now();
            state = self.ready.wait(state).unwrap_or_else(PoisonError::into_inner);
            turn.idled(turn.clock.now() - began);
        }
        let most = most.min(state.items.len());
        into.extend(state.items.drain(..most));
        !into.is_empty()
    }

    /// Takes the oldest item, when there is one; `None` when it is closed and empty.
    #[track_caller]
    pub(crate) fn pop_one(&self, turn: &mut Turn<'_>, into: &mut Vec<T>) -> Option<T> {
        into.clear();
        self.pop(turn, 1, into);
        into.pop()
    }

    /// Says that nothing comes any more.
    pub(crate) fn close(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).closed = true;
        self.ready.notify_all();
    }

    /// Gives how often there was no room.
    pub(crate) fn full(&self) -> u64 {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).full
    }
}
