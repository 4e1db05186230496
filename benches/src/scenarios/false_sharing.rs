//! Counters of their own that lie side by side.

use std::sync::atomic::{AtomicU64, Ordering};

use counters::{PackedCounter, ShardedCounter};
use harness::placement::Placement;
use harness::simulated::MAX_CORES;

use super::effect::{Done, Effect, ratio};
use super::job::{Facts, Job};
use super::measured::Measured;
use super::reasons::{reason, threads};
use super::scenario::{Scenario, Setting, Step};
use super::turn::Turn;

pub(crate) const SCENARIO: Scenario = Scenario {
    name: "false-sharing",
    title: "counters side by side in one line against one line each",
    what: "Each thread counts in a word of its own, and no word is shared. But eight words lie in one \
           line of 64 bytes, and a core that writes takes the whole line from the others, so each \
           count waits for a transfer. Padding gives each word a line (or a pair, where the machine \
           fetches pairs), and nobody waits any more.",
    reported: "842 ms packed, 167 ms padded by an attribute, 179 ms padded by hand; \"5-10x\"",
    threads: 4,
    ops: 8192,
    native_ops: 4_000_000,
    parameters: &[],
    steps: |setting| {
        let threads = setting.threads;
        // As kernels place threads: under L3s of their own, as far as there are some.
        let spread = setting.order(&Placement::CrossL3);
        let has_l3s = spread.is_ok_and(|order| order.len() >= threads);
        let place = |step: Step| if has_l3s { step.placed(Placement::CrossL3) } else { step };
        let mut steps = vec![place(Step::new("packed", "words side by side", threads)).watched(4)];
        steps.extend(has_l3s.then(|| Step::new("packed_near", "the same under few L3s", threads)));
        steps.push(place(Step::new("padded_64", "a line each", threads).variant(1)));
        steps.push(place(Step::new("padded_128", "a pair of lines each", threads).variant(2)));
        Ok(steps)
    },
    make: |_: &Setting, step: &Step| {
        Ok(match step.variant {
            0 if step.threads <= FEW => Box::new(Counts(PackedCounter::<FEW>::new())),
            0 => Box::new(Counts(PackedCounter::<MAX_CORES>::new())),
            1 => Box::new(Counts(Lines::new(step.threads))),
            _ if step.threads <= FEW => Box::new(Counts(ShardedCounter::<FEW>::new())),
            _ => Box::new(Counts(ShardedCounter::<MAX_CORES>::new())),
        })
    },
    effects: |done: &[Done<'_>]| -> Vec<Effect> {
        let gain = |what, padded, packed| {
            let alone = (
                threads(done, packed) == 1,
                "one thread has its line for itself, packed or not".to_owned(),
            );
            ratio(what, done, Measured::throughput, (padded, packed))
                .shown_by(5.0, reason(done, &[packed, padded], [alone]))
        };
        vec![
            gain("throughput, padded to a line over packed", "padded_64", "packed")
                .reported(842.0 / 167.0),
            gain("throughput, padded to a pair over packed", "padded_128", "packed")
                .reported(842.0 / 179.0),
            gain("the same where cores share an L3", "padded_64", "packed_near")
                .reported(842.0 / 167.0),
        ]
    },
};

/// Words for few threads, and for as many as there can be.
const FEW: usize = 128;

/// Words that threads count in.
trait Words: Sync + Send {
    fn add_at(&self, word: usize);
    fn sum(&self) -> i64;
}

impl<const N: usize> Words for PackedCounter<N> {
    #[inline(always)]
    fn add_at(&self, word: usize) {
        self.add_at(word, 1);
    }

    fn sum(&self) -> i64 {
        (0..N).map(|word| self.sum_at(word)).sum()
    }
}

impl<const N: usize> Words for ShardedCounter<N> {
    #[inline(always)]
    fn add_at(&self, word: usize) {
        self.add_at(word, 1);
    }

    fn sum(&self) -> i64 {
        self.sum()
    }
}

/// A word with its line.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Line(AtomicU64);

/// Words with a line each.
#[derive(Debug)]
struct Lines(Vec<Line>);

impl Lines {
    fn new(words: usize) -> Self {
        Self((0..words).map(|_| Line::default()).collect())
    }
}

impl Words for Lines {
    #[inline(always)]
    fn add_at(&self, word: usize) {
        // ORDERING: Relaxed - the count publishes nothing.
        self.0[word].0.fetch_add(1, Ordering::Relaxed);
    }

    fn sum(&self) -> i64 {
        // ORDERING: Relaxed - before or after the round, when nobody else is at it.
        self.0.iter().map(|line| line.0.load(Ordering::Relaxed) as i64).sum()
    }
}

struct Counts<W>(W);

impl<W: Words> Job for Counts<W> {
    fn work(&self, turn: &mut Turn<'_>) {
        let word = turn.thread;
        while turn.goes_on() {
            turn.batch(|| self.0.add_at(word));
        }
    }

    fn check(&self, done: &[u64]) -> Result<Facts, String> {
        // Rounds add up.
        let (sum, done) = (self.0.sum(), done.iter().sum::<u64>());
        if sum < done as i64 {
            return Err(format!("{done} were counted, the sum is {sum}"));
        }
        Ok(Facts::new())
    }
}
