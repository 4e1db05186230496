//! Mutexes, by their safe faces: lock, add one to what is inside, let go.

use crossbeam_utils::CachePadded;
use harness::memory::Shared;
use harness::native::{Conditions, Experiment};
use harness::spin::chain;
use harness::unavailable::Unavailable;
use harness::window::Work;
use harness::workload::Workload;
use locks::{ConstInit, RawLock};

use super::{Bytes, Candidate, Job, Whose, candidate, theirs, whose};

/// A number behind a lock.
trait Guarded: Default + Send + Sync + 'static {
    /// Adds one, and works so many steps, under the lock.
    fn add(&self, steps: u64);

    /// Reads the number.
    fn total(&self) -> u64;
}

/// What is done under the lock.
#[inline(always)]
fn critical(number: &mut u64, steps: u64) {
    *number += 1;
    chain(steps);
}

struct Ours<L: RawLock>(locks::Mutex<u64, L>);

impl<L: RawLock + ConstInit> Default for Ours<L> {
    fn default() -> Self {
        Self(locks::Mutex::new(0))
    }
}

impl<L: RawLock + ConstInit + 'static> Guarded for Ours<L> {
    #[inline(always)]
    fn add(&self, steps: u64) {
        self.0.with(|number| critical(number, steps));
    }

    fn total(&self) -> u64 {
        self.0.with(|number| *number)
    }
}

impl Guarded for std::sync::Mutex<u64> {
    #[inline(always)]
    fn add(&self, steps: u64) {
        let mut number = self.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        critical(&mut number, steps);
    }

    fn total(&self) -> u64 {
        *self.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

macro_rules! guarded {
    ($($lock:ty;)*) => { $(impl Guarded for $lock {
        #[inline(always)]
        fn add(&self, steps: u64) {
            critical(&mut self.lock(), steps);
        }

        fn total(&self) -> u64 {
            *self.lock()
        }
    })* };
}

guarded! {
    parking_lot::Mutex<u64>;
    parking_lot::FairMutex<u64>;
    spin::mutex::SpinMutex<u64>;
    spin::mutex::TicketMutex<u64>;
}

impl Guarded for mcslock::raw::spins::Mutex<u64> {
    #[inline(always)]
    fn add(&self, steps: u64) {
        let mut node = mcslock::raw::MutexNode::new();
        self.lock_with_then(&mut node, |number| critical(number, steps));
    }

    fn total(&self) -> u64 {
        self.lock_then(|number| *number)
    }
}

/// One thread's part.
struct Visitor<G> {
    guarded: Shared<CachePadded<G>>,
    critical: u64,
    think: u64,
}

impl<G: Guarded> Work for Visitor<G> {
    #[inline(never)]
    fn batch(&mut self, ops: u64) -> u64 {
        let guarded: &G = &self.guarded;
        let (critical, think) = (self.critical, self.think);
        for _ in 0..ops {
            guarded.add(critical);
            chain(think);
        }
        ops
    }
}

fn make<G: Guarded>(conditions: &Conditions) -> Result<Experiment, Unavailable> {
    let guarded = Shared::place(CachePadded::new(G::default()), &conditions.shared_memory)?;
    let steps = |ns| conditions.steps.steps(ns);
    let work = |_| -> Box<dyn Work> {
        <dyn Work>::boxed(Visitor {
            guarded: guarded.clone(),
            critical: steps(conditions.workload.critical_ns),
            think: steps(conditions.workload.think_ns),
        })
    };
    let works = (0..conditions.threads()).map(work).collect();
    Ok(Experiment {
        works,
        granted: Some(guarded.granted().clone()),
        verify: Box::new(move |ops| match (guarded.total(), ops.iter().sum::<u64>()) {
            (counted, expected) if counted == expected => Ok(vec![]),
            (counted, expected) => Err(format!("{expected} additions came to {counted}")),
        }),
    })
}

/// The loop without a lock, for one thread.
#[derive(Default)]
struct Bare(std::sync::atomic::AtomicU64);

impl Guarded for Bare {
    #[inline(always)]
    fn add(&self, steps: u64) {
        use std::sync::atomic::Ordering::Relaxed;
        self.0.store(self.0.load(Relaxed) + 1, Relaxed);
        chain(steps);
    }

    fn total(&self) -> u64 {
        self.0.load(std::sync::atomic::Ordering::Relaxed)
    }
}

fn own<L: RawLock + ConstInit + 'static>(id: &'static str, whose: Whose) -> Candidate {
    let bytes = || Bytes::of(size_of::<L>(), Some(size_of::<L::Slot>()));
    candidate(id, whose, make::<Ours<L>>).taking(bytes)
}

/// `locks::Mutex` refuses the baseline, which is no lock.
macro_rules! own {
    (baseline $id:ident $lock:ty) => {
        None
    };
    ($kind:ident $id:ident $lock:ty) => {
        Some(own::<$lock>(concat!("locks/", stringify!($id)), whose!($kind)))
    };
}

macro_rules! ours {
    ($($id:ident => $lock:ty, $kind:ident;)*) => {
        [$(own!($kind $id $lock)),*].into_iter().flatten()
    };
}

fn candidates() -> Vec<Candidate> {
    use mcslock::raw::{MutexNode, spins};
    use spin::mutex::{SpinMutex, TicketMutex};
    // Who waits in parking_lot's table has data of its thread there, whose size is not told.
    let peers = [
        theirs("std::sync::Mutex", make::<std::sync::Mutex<u64>>)
            .taking(|| Bytes::of(size_of::<std::sync::Mutex<()>>(), Some(0))),
        theirs("parking_lot::Mutex", make::<parking_lot::Mutex<u64>>)
            .taking(|| Bytes::of(size_of::<parking_lot::Mutex<()>>(), None)),
        theirs("parking_lot::FairMutex", make::<parking_lot::FairMutex<u64>>)
            .taking(|| Bytes::of(size_of::<parking_lot::FairMutex<()>>(), None)),
        theirs("spin::SpinMutex", make::<SpinMutex<u64>>)
            .taking(|| Bytes::of(size_of::<SpinMutex<()>>(), Some(0))),
        theirs("spin::TicketMutex", make::<TicketMutex<u64>>)
            .taking(|| Bytes::of(size_of::<TicketMutex<()>>(), Some(0))),
        theirs("mcslock::raw::Mutex", make::<spins::Mutex<u64>>)
            .taking(|| Bytes::of(size_of::<spins::Mutex<()>>(), Some(size_of::<MutexNode>()))),
    ];
    locks::for_each_lock!(ours).chain(peers).collect()
}

pub(super) fn jobs() -> Vec<Job> {
    let mut alone = candidates();
    alone.push(candidate("(loop)", Whose::Nobody, make::<Bare>));
    let contended = Workload { critical_ns: 50, think_ns: 50, ..Workload::default() };
    vec![
        Job::alone("mutex", "lock, add one, unlock; nobody else there", alone),
        Job {
            workload: contended,
            ..Job::together(
                "mutex_contended",
                "the same by all threads, 50 ns inside and 50 ns outside",
                2,
                candidates(),
            )
        },
    ]
}
