//! One counter for all, or a word for each and a sum now and then.

use std::sync::atomic::{AtomicU64, Ordering};

use counters::{AtomicCounter, Counter, ShardedCounter};
use harness::simulated::MAX_CORES;

use super::effect::ratio;
use super::job::{Facts, Job, Round};
use super::measured::Measured;
use super::reasons::{reason, threads};
use super::scenario::{Scenario, Step};
use super::turn::Turn;

pub(crate) const SCENARIO: Scenario = Scenario {
    name: "atomic-vs-sharded",
    title: "one atomic counter for all cores against a sharded one",
    what: "All threads add to one counter, and each addition needs its line, which comes from core to \
           core, through L3 groups and sockets. However many cores there are, the line is in one \
           place at a time, so more of them add no more, and farther ones make it slower. A sharded \
           counter gives each thread a word on a line of its own, and sums them when somebody asks.",
    reported: "one to two orders of magnitude at 128 threads",
    threads: 128,
    ops: 1024,
    native_ops: 2_000_000,
    parameters: &[],
    steps: |setting| {
        let threads = setting.threads;
        let few = threads.min(8);
        let mut steps = vec![Step::new("atomic_few", "one word, few threads", few)];
        steps.truncate(usize::from(few < threads));
        steps.push(Step::new("atomic", "one word", threads).watched(1));
        steps.push(Step::new("sharded", "a word and its lines each", threads).variant(1));
        Ok(steps)
    },
    make: |_, step| {
        Ok(match step.variant {
            0 => Counts::of(AtomicCounter::new()),
            _ if step.threads <= FEW => Counts::of(ShardedCounter::<FEW>::new()),
            _ => Counts::of(ShardedCounter::<MAX_CORES>::new()),
        })
    },
    effects: |done| {
        let alone = threads(done, "atomic") == 1;
        let alone = (alone, "one thread has the line for itself, sharded or not".to_owned());
        vec![
            ratio(
                "throughput, sharded over atomic",
                done,
                Measured::throughput,
                ("sharded", "atomic"),
            )
            .shown_by(10.0, reason(done, &["atomic", "sharded"], [alone])),
            ratio(
                "throughput of the atomic word, few threads over all",
                done,
                Measured::throughput,
                ("atomic_few", "atomic"),
            )
            .shown_by(1.05, reason(done, &["atomic_few", "atomic"], [])),
        ]
    },
};

/// Shards for few threads, where there are not more.
const FEW: usize = 128;

/// A counter with a shard for each thread, or without.
trait Words: Sync + Send {
    fn add(&self, thread: usize);
    fn sum(&self) -> i64;
}

impl Words for AtomicCounter {
    #[inline(always)]
    fn add(&self, _thread: usize) {
        Counter::add(self, 1);
    }

    fn sum(&self) -> i64 {
        Counter::sum(self)
    }
}

impl<const N: usize> Words for ShardedCounter<N> {
    #[inline(always)]
    fn add(&self, thread: usize) {
        self.add_at(thread, 1);
    }

    fn sum(&self) -> i64 {
        self.sum()
    }
}

struct Counts<W> {
    words: W,
    before: AtomicU64,
}

impl<W: Words + 'static> Counts<W> {
    fn of(words: W) -> Box<dyn Job + Send> {
        Box::new(Self { words, before: AtomicU64::new(0) })
    }
}

impl<W: Words> Job for Counts<W> {
    fn begin(&self, _round: &Round) {
        // ORDERING: Relaxed - before or after the round, when nobody else is at it.
        self.before.store(self.words.sum() as u64, Ordering::Relaxed);
    }

    fn work(&self, turn: &mut Turn<'_>) {
        let thread = turn.thread;
        while turn.goes_on() {
            turn.batch(|| self.words.add(thread));
        }
    }

    fn check(&self, done: &[u64]) -> Result<Facts, String> {
        // ORDERING: Relaxed - before or after the round, when nobody else is at it.
        let counted = self.words.sum() as u64 - self.before.load(Ordering::Relaxed);
        let done: u64 = done.iter().sum();
        if counted != done {
            return Err(format!("{done} were added, {counted} were counted"));
        }
        Ok(Facts::new())
    }
}
