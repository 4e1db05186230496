//! One thread's part of a round: how much is to do, and what is noted down.

use std::panic::Location;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crossbeam_utils::CachePadded;
use harness::stats::SplitMix;

use super::clock::Clock;
use super::job::Round;

/// Of short operations, one in so many is timed.
const SAMPLED: u64 = 64;

/// Waiting for one lock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wait {
    /// Where it was waited for.
    pub(crate) place: &'static Location<'static>,
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
    /// How long it waited for which lock.
    pub(crate) waits: Vec<Wait>,
    /// How long it had nothing to do, in nanoseconds.
    pub(crate) idle_ns: u64,
    /// Whether it is one of those that are idle when there is nothing to do.
    pub(crate) worker: bool,
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
        }
        self.latencies.clear();
        self.waits.clear();
        self.waits.reserve(16);
        (self.idle_ns, self.worker) = (0, false);
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
        self.stop.store(false, Ordering::Relaxed);
        self.done.iter().for_each(|done| done.store(0, Ordering::Relaxed));
    }

    /// Tells the threads to stop.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Gives what each thread has done.
    pub(crate) fn done(&self) -> Vec<u64> {
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
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
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
        self.count < self.round.ops && !self.stop.load(Ordering::Relaxed)
    }

    /// Counts operations.
    #[inline]
    pub(crate) fn did(&mut self, ops: u64) {
        self.count += ops;
        self.done.store(self.count, Ordering::Relaxed);
    }

    /// Does a batch of operations of a few nanoseconds each, and takes the time of the last one.
    #[inline(always)]
    pub(crate) fn batch(&mut self, mut operation: impl FnMut()) {
        for _ in 1..SAMPLED {
            operation();
        }
        let began = self.clock.now();
        operation();
        let ended = self.clock.now();
        // Two readings with nothing in between cost what is too much in the first difference.
        self.took((ended - began).saturating_sub(self.clock.now() - ended));
        self.did(SAMPLED);
    }

    /// Notes how long an operation took.
    #[inline]
    pub(crate) fn took(&mut self, ns: u64) {
        if self.log.latencies.len() < self.log.latencies.capacity() {
            self.log.latencies.push(ns);
        }
    }

    /// Notes that this is a worker: what it does not work until the round ends, it is idle.
    pub(crate) fn works(&mut self) {
        self.log.worker = true;
    }

    /// Notes that there was nothing to do for so long.
    pub(crate) fn idled(&mut self, ns: u64) {
        self.log.idle_ns += ns;
    }

    /// Notes that a lock was waited for.
    pub(crate) fn waited(&mut self, place: &'static Location<'static>, ns: u64) {
        match self.log.waits.iter_mut().find(|wait| wait.place == place) {
            Some(wait) => (wait.ns, wait.times) = (wait.ns + ns, wait.times + 1),
            None => self.log.waits.push(Wait { place, ns, times: 1 }),
        }
    }

    /// Takes a lock, and notes how long that took if somebody held it.
    #[track_caller]
    pub(crate) fn lock<'m, T>(&mut self, mutex: &'m Mutex<T>) -> MutexGuard<'m, T> {
        if let Ok(guard) = mutex.try_lock() {
            return guard;
        }
        let began = self.clock.now();
        let guard = lock(mutex);
        self.waited(Location::caller(), self.clock.now() - began);
        guard
    }
}
