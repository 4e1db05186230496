//! Reader-writer locks, from a reader's side: enter, read what is inside, leave.

use crossbeam_utils::CachePadded;
use harness::memory::Shared;
use harness::native::{Conditions, Experiment};
use harness::unavailable::Unavailable;
use harness::window::Work;
use locks::{
    ConstInit, CpuBlocks, LinuxFutex, RawRwLock, RwBigReaderLock, RwFutexLock, RwPhaseFairLock,
    RwSpinLock,
};

use super::{Bytes, Candidate, Job, Whose, candidate, theirs};

/// The number one behind a lock.
trait Readable: Send + Sync + 'static {
    fn new() -> Self;

    fn read(&self) -> u64;
}

struct Ours<L: RawRwLock>(locks::RwLock<u64, L>);

impl<L: RawRwLock + ConstInit + 'static> Readable for Ours<L> {
    fn new() -> Self {
        Self(locks::RwLock::new(1))
    }

    #[inline(always)]
    fn read(&self) -> u64 {
        self.0.read_with(|number| *number)
    }
}

impl Readable for std::sync::RwLock<u64> {
    fn new() -> Self {
        Self::new(1)
    }

    #[inline(always)]
    fn read(&self) -> u64 {
        *std::sync::RwLock::read(self).unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Readable for parking_lot::RwLock<u64> {
    fn new() -> Self {
        Self::new(1)
    }

    #[inline(always)]
    fn read(&self) -> u64 {
        *parking_lot::RwLock::read(self)
    }
}

impl Readable for spin::RwLock<u64> {
    fn new() -> Self {
        Self::new(1)
    }

    #[inline(always)]
    fn read(&self) -> u64 {
        *spin::RwLock::read(self)
    }
}

/// The loop without a lock.
struct Bare(std::sync::atomic::AtomicU64);

impl Readable for Bare {
    fn new() -> Self {
        Self(1.into())
    }

    #[inline(always)]
    fn read(&self) -> u64 {
        self.0.load(std::sync::atomic::Ordering::Relaxed)
    }
}

struct Reader<R> {
    shared: Shared<CachePadded<R>>,
    ops: u64,
    read: u64,
}

impl<R: Readable> Work for Reader<R> {
    #[inline(never)]
    fn batch(&mut self, ops: u64) -> u64 {
        let shared: &R = &self.shared;
        let mut read = 0;
        for _ in 0..ops {
            read += shared.read();
        }
        self.read += read;
        self.ops += ops;
        ops
    }

    fn finish(&mut self) -> Result<(), String> {
        if self.read == self.ops {
            return Ok(());
        }
        Err(format!("{} reads of the number one came to {}", self.ops, self.read))
    }
}

fn make<R: Readable>(conditions: &Conditions) -> Result<Experiment, Unavailable> {
    let shared = Shared::place(CachePadded::new(R::new()), &conditions.shared_memory)?;
    let reader = |_| <dyn Work>::boxed(Reader { shared: shared.clone(), ops: 0, read: 0 });
    Ok(Experiment {
        works: (0..conditions.threads()).map(reader).collect(),
        granted: Some(shared.granted().clone()),
        verify: Box::new(move |_| Ok(vec![])),
    })
}

fn ours<L: RawRwLock + ConstInit + 'static>(id: &'static str) -> Candidate {
    let bytes = || Bytes::of(size_of::<L>(), Some(size_of::<L::ReadSlot>()));
    candidate(id, Whose::Ours, make::<Ours<L>>).taking(bytes)
}

/// Only some rows of the table have a reader's side: a new one needs a line here.
fn candidates() -> Vec<Candidate> {
    vec![
        ours::<RwSpinLock>("locks/rw_spin"),
        ours::<RwPhaseFairLock>("locks/rw_phase_fair"),
        ours::<RwBigReaderLock<locks::TicketLock, CpuBlocks<4, 64, 128>, 32>>(
            "locks/rw_big_reader",
        ),
        ours::<RwFutexLock<LinuxFutex>>("locks/rw_futex"),
        theirs("std::sync::RwLock", make::<std::sync::RwLock<u64>>)
            .taking(|| Bytes::of(size_of::<std::sync::RwLock<()>>(), Some(0))),
        theirs("parking_lot::RwLock", make::<parking_lot::RwLock<u64>>)
            .taking(|| Bytes::of(size_of::<parking_lot::RwLock<()>>(), None)),
        theirs("spin::RwLock", make::<spin::RwLock<u64>>)
            .taking(|| Bytes::of(size_of::<spin::RwLock<()>>(), Some(0))),
    ]
}

pub(super) fn jobs() -> Vec<Job> {
    let mut alone = candidates();
    alone.push(candidate("(loop)", Whose::Nobody, make::<Bare>));
    vec![
        Job::alone("read", "enter as a reader, read, leave; nobody else there", alone),
        Job::together("read_together", "the same by all threads, no writer", 2, candidates()),
    ]
}
