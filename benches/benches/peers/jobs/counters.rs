//! Counters: add one.

use std::sync::atomic::{AtomicI64, Ordering};

use counters::Counter;
use crossbeam_utils::CachePadded;
use harness::memory::Shared;
use harness::native::{Conditions, Experiment};
use harness::spin::chain;
use harness::unavailable::Unavailable;
use harness::window::Work;

use super::{Bytes, Candidate, Job, candidate, theirs, whose};

/// A number that many add to.
trait Adds: Default + Send + Sync + 'static {
    /// Whether the sum is what was added.
    const EXACT: bool;

    fn add_one(&self);

    fn total(&self) -> i64;
}

#[derive(Default)]
struct Ours<C>(C);

impl<C: Counter + Default + 'static> Adds for Ours<C> {
    const EXACT: bool = C::PROPERTIES.exact;

    #[inline(always)]
    fn add_one(&self) {
        self.0.add(1);
    }

    fn total(&self) -> i64 {
        self.0.sum()
    }
}

impl Adds for AtomicI64 {
    const EXACT: bool = true;

    #[inline(always)]
    fn add_one(&self) {
        self.fetch_add(1, Ordering::Relaxed);
    }

    fn total(&self) -> i64 {
        self.load(Ordering::Relaxed)
    }
}

impl Adds for std::sync::Mutex<i64> {
    const EXACT: bool = true;

    #[inline(always)]
    fn add_one(&self) {
        *self.lock().unwrap_or_else(std::sync::PoisonError::into_inner) += 1;
    }

    fn total(&self) -> i64 {
        *self.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

struct Adder<A>(Shared<CachePadded<A>>);

impl<A: Adds> Work for Adder<A> {
    #[inline(never)]
    fn batch(&mut self, ops: u64) -> u64 {
        let number: &A = &self.0;
        for _ in 0..ops {
            number.add_one();
            // Keeps the loop where the number is none.
            chain(0);
        }
        ops
    }
}

fn make<A: Adds>(conditions: &Conditions) -> Result<Experiment, Unavailable> {
    let number = Shared::place(CachePadded::<A>::default(), &conditions.shared_memory)?;
    let adder = |_| <dyn Work>::boxed(Adder(number.clone()));
    Ok(Experiment {
        works: (0..conditions.threads()).map(adder).collect(),
        granted: Some(number.granted().clone()),
        verify: Box::new(move |ops| match (number.total(), ops.iter().sum::<u64>()) {
            (sum, added) if A::EXACT && u64::try_from(sum) != Ok(added) => {
                Err(format!("{added} were added and the sum is {sum}"))
            }
            _ => Ok(vec![]),
        }),
    })
}

macro_rules! ours {
    ($($id:ident => $counter:ty, $kind:ident;)*) => { vec![$(
        candidate(concat!("counters/", stringify!($id)), whose!($kind), make::<Ours<$counter>>)
            .taking(|| Bytes::of(size_of::<$counter>(), None))
    ),*] };
}

fn candidates() -> Vec<Candidate> {
    let mut all: Vec<Candidate> = counters::for_each_counter!(ours);
    all.push(
        theirs("std::sync::atomic::AtomicI64", make::<AtomicI64>).taking(|| Bytes::of(8, None)),
    );
    all.push(
        theirs("std::sync::Mutex<i64>", make::<std::sync::Mutex<i64>>)
            .taking(|| Bytes::of(size_of::<std::sync::Mutex<i64>>(), None)),
    );
    all
}

pub(super) fn jobs() -> Vec<Job> {
    vec![
        Job::alone("add", "add one; nobody else there", candidates()),
        Job::together("add_together", "add one, by all threads", 2, candidates()),
    ]
}
