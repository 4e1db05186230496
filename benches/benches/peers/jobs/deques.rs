//! Work-stealing deques: the worker pushes eight and takes eight back, thieves steal.

use std::hint::spin_loop;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use harness::memory::Shared;
use harness::native::{Conditions, Experiment};
use harness::unavailable::Unavailable;
use harness::window::Work;
use queues::{
    Boxed, Deque, DequeChaseLev, DequeChaseLevGrowing, DequePackedFifo, Queue, WithCapacity,
};

use super::{Bytes, Candidate, Job, Whose, candidate, theirs};

/// Elements in the deque at the most.
const TOGETHER: u64 = 8;

trait Worker: Send + 'static {
    fn push(&mut self, value: u64) -> bool;

    fn pop(&mut self) -> Option<u64>;
}

trait Thief: Send + Clone + 'static {
    fn steal(&self) -> Option<u64>;
}

/// A worker's end, which keeps its deque alive.
struct OurWorker<D: 'static> {
    // Before what it borrows.
    end: queues::Worker<'static, D, u64>,
    _deque: Shared<D>,
}

struct OurThief<D: 'static> {
    end: queues::Thief<'static, D, u64>,
    deque: Shared<D>,
}

impl<D> Clone for OurThief<D> {
    fn clone(&self) -> Self {
        Self { end: self.end.clone(), deque: self.deque.clone() }
    }
}

impl<D: Deque<u64> + Send + Sync> Worker for OurWorker<D> {
    #[inline(always)]
    fn push(&mut self, value: u64) -> bool {
        self.end.try_push(value).is_ok()
    }

    #[inline(always)]
    fn pop(&mut self) -> Option<u64> {
        self.end.pop()
    }
}

impl<D: Deque<u64> + Send + Sync> Thief for OurThief<D> {
    #[inline(always)]
    fn steal(&self) -> Option<u64> {
        self.end.steal().success()
    }
}

impl Worker for crossbeam_deque::Worker<u64> {
    #[inline(always)]
    fn push(&mut self, value: u64) -> bool {
        crossbeam_deque::Worker::push(self, value);
        true
    }

    #[inline(always)]
    fn pop(&mut self) -> Option<u64> {
        crossbeam_deque::Worker::pop(self)
    }
}

impl Thief for crossbeam_deque::Stealer<u64> {
    #[inline(always)]
    fn steal(&self) -> Option<u64> {
        crossbeam_deque::Stealer::steal(self).success()
    }
}

/// Sums of what went in and came out, modulo 2⁶⁴.
#[derive(Default)]
struct Ledger {
    pushed: AtomicU64,
    taken: AtomicU64,
}

struct Working<W> {
    end: W,
    next: u64,
    pushed: u64,
    taken: u64,
    ledger: Arc<Ledger>,
}

impl<W: Worker> Work for Working<W> {
    #[inline(never)]
    fn batch(&mut self, ops: u64) -> u64 {
        let (mut done, mut pushed, mut taken) = (0, 0_u64, 0_u64);
        for _ in 0..ops.div_ceil(2 * TOGETHER) {
            for _ in 0..TOGETHER {
                if self.end.push(self.next) {
                    done += 1;
                    pushed = pushed.wrapping_add(self.next);
                    self.next += 1;
                }
            }
            for _ in 0..TOGETHER {
                if let Some(value) = self.end.pop() {
                    done += 1;
                    taken = taken.wrapping_add(value);
                }
            }
        }
        self.pushed = self.pushed.wrapping_add(pushed);
        self.taken = self.taken.wrapping_add(taken);
        done
    }

    fn finish(&mut self) -> Result<(), String> {
        while let Some(value) = self.end.pop() {
            self.taken = self.taken.wrapping_add(value);
        }
        self.ledger.pushed.fetch_add(self.pushed, Ordering::Relaxed);
        self.ledger.taken.fetch_add(self.taken, Ordering::Relaxed);
        Ok(())
    }
}

struct Stealing<S> {
    end: S,
    taken: u64,
    ledger: Arc<Ledger>,
}

impl<S: Thief> Work for Stealing<S> {
    #[inline(never)]
    fn batch(&mut self, ops: u64) -> u64 {
        let (mut done, mut taken) = (0, 0_u64);
        for _ in 0..ops {
            match self.end.steal() {
                Some(value) => {
                    done += 1;
                    taken = taken.wrapping_add(value);
                }
                None => spin_loop(),
            }
        }
        self.taken = self.taken.wrapping_add(taken);
        done
    }

    fn finish(&mut self) -> Result<(), String> {
        self.ledger.taken.fetch_add(self.taken, Ordering::Relaxed);
        Ok(())
    }
}

fn experiment<W: Worker, S: Thief>(threads: usize, worker: W, thief: S) -> Experiment {
    let ledger = Arc::new(Ledger::default());
    let working =
        Working { end: worker, next: 1, pushed: 0, taken: 0, ledger: Arc::clone(&ledger) };
    let mut works = vec![<dyn Work>::boxed(working)];
    works.extend((1..threads).map(|_| -> Box<dyn Work> {
        <dyn Work>::boxed(Stealing { end: thief.clone(), taken: 0, ledger: Arc::clone(&ledger) })
    }));
    let verify = move |_: &[u64]| {
        let read = |sum: &AtomicU64| sum.load(Ordering::Relaxed);
        match (read(&ledger.pushed), read(&ledger.taken)) {
            (pushed, taken) if pushed == taken => Ok(vec![]),
            (pushed, taken) => Err(format!("what went in sums up to {pushed}, out {taken}")),
        }
    };
    Experiment { works, granted: None, verify: Box::new(verify) }
}

/// Of ours, with slots for 1024.
fn ours<D>(conditions: &Conditions) -> Result<Experiment, Unavailable>
where
    D: Deque<u64> + WithCapacity + Send + Sync + 'static,
    D: for<'q> Queue<
            u64,
            Producer<'q> = queues::Worker<'q, D, u64>,
            Consumer<'q> = queues::Thief<'q, D, u64>,
        >,
{
    let deque = D::with_capacity(1024)
        .map_err(|error| Unavailable::because("no_capacity", error.to_string()))?;
    let mut deque = Shared::place(deque, &conditions.shared_memory)?;
    let Some(ring) = deque.get_mut() else { return Err(Unavailable::new("shared_already")) };
    // SAFETY: each end stands before a `Shared` that keeps the deque alive and in place, and is
    // dropped before it; nobody else reaches the deque.
    let ring: &'static mut D = unsafe { &mut *core::ptr::from_mut(ring) };
    let (worker, thief) = ring.split();
    let worker = OurWorker { end: worker, _deque: deque.clone() };
    let thief = OurThief { end: thief, deque };
    Ok(experiment(conditions.threads(), worker, thief))
}

fn crossbeam(
    conditions: &Conditions,
    worker: crossbeam_deque::Worker<u64>,
) -> Result<Experiment, Unavailable> {
    let thief = worker.stealer();
    Ok(experiment(conditions.threads(), worker, thief))
}

fn bytes<D: Queue<u64>>(candidate: Candidate) -> Candidate {
    candidate.taking(|| Bytes::of(size_of::<D>(), Some(D::BYTES_PER_SLOT)))
}

/// Whose workers take back the newest.
fn candidates() -> Vec<Candidate> {
    type Fixed = DequeChaseLev<u64, Boxed>;
    type Growing = DequeChaseLevGrowing<u64>;
    let of = |id, make| candidate(id, Whose::Ours, make);
    vec![
        bytes::<Fixed>(of("queues/deque_chase_lev", ours::<Fixed>)),
        bytes::<Growing>(of("queues/deque_chase_lev_growing", ours::<Growing>)),
        theirs("crossbeam_deque::Worker", |conditions| {
            crossbeam(conditions, crossbeam_deque::Worker::new_lifo())
        }),
    ]
}

/// Whose workers take the oldest.
fn in_order() -> Vec<Candidate> {
    type Packed = DequePackedFifo<u64, Boxed>;
    vec![
        bytes::<Packed>(candidate("queues/deque_packed_fifo", Whose::Ours, ours::<Packed>)),
        theirs("crossbeam_deque::Worker, FIFO", |conditions| {
            crossbeam(conditions, crossbeam_deque::Worker::new_fifo())
        }),
    ]
}

pub(super) fn jobs() -> Vec<Job> {
    vec![
        Job::alone("deque", "push or pop by the worker, eight of each in turn", candidates()),
        Job::alone("deque_fifo", "the same, where the worker takes the oldest", in_order()),
        Job::together(
            "deque_steal",
            "one thread pushes eight and pops, all others steal: a push, pop or steal",
            2,
            candidates(),
        ),
    ]
}
