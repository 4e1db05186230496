//! One thread's part of a round: how much is to do, and what is noted down.

use std::panic::Location;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crossbeam_utils::CachePadded;
use harness::stats::SplitMix;

use super::clock::Clock;
use super::job::Round;

/// Short operations are timed so many at once.
const BATCH: u64 = 64;

/// Waiting for one lock or condition.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wait {
    /// Where it was waited for.
    pub(crate) place: &'static Location<'static>,
    /// Whether it is a condition, and not a lock.
    pub(crate) condition: bool,
    /// How long, in nanoseconds.
    pub(crate) ns: u64,
    /// How often.
    pub(crate) times: u64,
}

/// What one thread notes down. Room is made before the round that is measured.
#[derive(Debug, Clone, Default)]
pub(crate) struct Log {
    /// How long operations took, in nanoseconds.
    pub(crate) latencies: Vec<u64>,
    /// When those requests had arrived, where they do by themselves.
    pub(crate) arrivals: Vec<u64>,
    /// How long it waited for which lock.
    pub(crate) waits: Vec<Wait>,
    /// How long it had nothing to do, in nanoseconds.
    pub(crate) idle_ns: u64,
    /// Whether it is one of those that are idle when there is nothing to do.
    pub(crate) worker: bool,
    /// Whether it has no operations of its own.
    pub(crate) apart: bool,
    /// When it began, by the clock of the step.
    pub(crate) began: u64,
    /// When it ended.
    pub(crate) ended: u64,
}

impl Log {
    /// Makes room and forgets.
    fn clear(&mut self, room: usize) {
        if self.latencies.capacity() < room {
            // Touches the pages, so that no later push does.
            self.latencies.resize(room, 1);
            self.arrivals.resize(room, 1);
        }
        self.latencies.clear();
        self.arrivals.clear();
        self.waits.clear();
        self.waits.reserve(16);
        (self.idle_ns, self.worker, self.apart) = (0, false, false);
    }
}

/// What the threads of a round share.
#[derive(Debug)]
pub(crate) struct Shared {
    /// The clock of the step.
    pub(crate) clock: Clock,
    logs: Vec<CachePadded<Mutex<Log>>>,
    done: Vec<CachePadded<AtomicU64>>,
    stop: CachePadded<AtomicBool>,
    seed: u64,
    /// Times that each thread may note.
    room: usize,
}

impl Shared {
    /// Makes places for so many threads, each of which notes up to `room` times.
    pub(crate) fn new(threads: usize, seed: u64, room: usize) -> Self {
        Self {
            clock: Clock::new(),
            logs: (0..threads).map(|_| CachePadded::default()).collect(),
            done: (0..threads).map(|_| CachePadded::default()).collect(),
            stop: CachePadded::default(),
            seed,
            room,
        }
    }

    /// Begins a round: nothing is done yet.
    pub(crate) fn reset(&self) {
        // ORDERING: Relaxed - threads begin after this, by a barrier or by the simulator.
        self.stop.store(false, Ordering::Relaxed);
        self.done.iter().for_each(|done| done.store(0, Ordering::Relaxed));
    }

    /// Tells the threads to stop.
    pub(crate) fn stop(&self) {
        // ORDERING: Relaxed - nothing is read because of it; it may be seen a little later.
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Gives what each thread has done.
    pub(crate) fn done(&self) -> Vec<u64> {
        // ORDERING: Relaxed - counts that publish nothing.
        self.done.iter().map(|done| done.load(Ordering::Relaxed)).collect()
    }

    /// Lets a thread do its part.
    pub(crate) fn turn(&self, thread: usize, round: &Round, work: impl FnOnce(&mut Turn<'_>)) {
        let mut log = lock(&self.logs[thread]);
        log.clear(self.room);
        log.began = self.clock.now();
        let mut turn = Turn {
            thread,
            round: *round,
            clock: self.clock,
            random: SplitMix(self.seed ^ (thread as u64 + 1).wrapping_mul(0x9E37_79B9)),
            log: &mut log,
            done: &self.done[thread],
            stop: &self.stop,
            count: 0,
        };
        work(&mut turn);
        log.ended = self.clock.now();
    }

    /// Gives what each thread has noted down.
    pub(crate) fn logs(&self) -> Vec<Log> {
        self.logs.iter().map(|log| lock(log).clone()).collect()
    }
}

/// Takes a lock that a thread which panicked may have held.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One thread's part of a round.
pub(crate) struct Turn<'a> {
    /// Its number.
    pub(crate) thread: usize,
    /// The round.
    pub(crate) round: Round,
    /// The clock of the step.
    pub(crate) clock: Clock,
    /// What it draws from.
    pub(crate) random: SplitMix,
    log: &'a mut Log,
    done: &'a AtomicU64,
    stop: &'a AtomicBool,
    count: u64,
}

impl Turn<'_> {
    /// Whether there is more to do.
    #[inline]
    pub(crate) fn goes_on(&self) -> bool {
        // ORDERING: Relaxed - as in `stop`.
        self.count < self.round.ops && !self.stop.load(Ordering::Relaxed)
    }

    /// Counts operations.
    #[inline]
    pub(crate) fn did(&mut self, ops: u64) {
        self.count += ops;
        // ORDERING: Relaxed - a count that publishes nothing.
        self.done.store(self.count, Ordering::Relaxed);
    }

    /// Does a batch of operations of a few nanoseconds each, and notes how long one took on
    /// average: who reads the clock between two of them lets the line go that they need.
    #[inline(always)]
    pub(crate) fn batch(&mut self, mut operation: impl FnMut()) {
        let began = self.clock.now();
        for _ in 0..BATCH {
            operation();
        }
        let ended = self.clock.now();
        // Two readings with nothing in between cost what is too much in the first difference.
        let took = (ended - began).saturating_sub(self.clock.now() - ended);
        self.took((took + BATCH / 2) / BATCH);
        self.did(BATCH);
    }

    /// Notes how long an operation took.
    #[inline]
    pub(crate) fn took(&mut self, ns: u64) {
        if self.log.latencies.len() < self.log.latencies.capacity() {
            self.log.latencies.push(ns);
        }
    }

    /// Notes that a request is served that had arrived at a time.
    #[inline]
    pub(crate) fn served(&mut self, arrived: u64) {
        if self.log.latencies.len() < self.log.latencies.capacity() {
            self.log.arrivals.push(arrived);
        }
        self.took(self.clock.now().saturating_sub(arrived));
    }

    /// Notes that this thread hands out or serves what the others do.
    pub(crate) fn stands_apart(&mut self) {
        self.log.apart = true;
    }

    /// Notes that this is a worker: what it does not work until the round ends, it is idle.
    pub(crate) fn works(&mut self) {
        self.log.worker = true;
    }

    /// Notes that there was nothing to do for so long.
    pub(crate) fn idled(&mut self, ns: u64) {
        self.log.idle_ns += ns;
    }

    /// Notes that a lock or a condition was waited for.
    fn waited(&mut self, place: &'static Location<'static>, condition: bool, ns: u64) {
        match self.log.waits.iter_mut().find(|wait| wait.place == place) {
            Some(wait) => (wait.ns, wait.times) = (wait.ns + ns, wait.times + 1),
            None => self.log.waits.push(Wait { place, condition, ns, times: 1 }),
        }
    }

    /// Waits for a condition, and notes how long.
    #[track_caller]
    pub(crate) fn wait_while<'m, T>(
        &mut self,
        condition: &Condvar,
        guard: MutexGuard<'m, T>,
        mut goes_on: impl FnMut(&mut T) -> bool,
    ) -> MutexGuard<'m, T> {
        let mut guard = guard;
        if !goes_on(&mut guard) {
            return guard;
        }
        let began = self.clock.now();
        let waiting = condition.wait_while(guard, goes_on);
        guard = waiting.unwrap_or_else(PoisonError::into_inner);
        self.waited(Location::caller(), true, self.clock.now() - began);
        guard
    }

    /// Takes a lock, and notes how long that took if somebody held it.
    #[track_caller]
    pub(crate) fn lock<'m, T>(&mut self, mutex: &'m Mutex<T>) -> MutexGuard<'m, T> {
        if let Ok(guard) = mutex.try_lock() {
            return guard;
        }
        let began = self.clock.now();
        let guard = lock(mutex);
        self.waited(Location::caller(), false, self.clock.now() - began);
        guard
    }
}
