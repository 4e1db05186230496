//! Adding without and with what keeps the count right.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use crossbeam_utils::CachePadded;
use harness::report::number::short;

use super::effect::{counted, ratio};
use super::job::{Facts, Job, Round};
use super::measured::Measured;
use super::reasons::{figure, reason, threads};
use super::scenario::{Scenario, Step};
use super::turn::Turn;

pub(crate) const SCENARIO: Scenario = Scenario {
    name: "barrier-cost",
    title: "an increment that loses updates, an atomic one, one with a fence",
    what: "A load and a store are no increment: what another core stores between them is \
           overwritten, and the count is wrong without a word. An atomic addition keeps the line for \
           the length of one instruction, and nothing is lost. A full fence after it waits until \
           every store before it is seen by all, which the addition on this processor did already.",
    reported: "8.7 ns (wrong result), 12.3 ns, 15.1 ns per operation at 4 threads",
    threads: 4,
    ops: 4096,
    native_ops: 2_000_000,
    parameters: &[],
    steps: |setting| {
        let threads = setting.threads;
        Ok(vec![
            Step::new("racy", "a load and a store", threads),
            Step::new("atomic", "fetch_add", threads).variant(1).watched(4),
            Step::new("fenced", "fetch_add and a full fence", threads).variant(2),
        ])
    },
    make: |_, step| {
        Ok(Box::new(Increments { variant: step.variant, count: CachePadded::default() }))
    },
    effects: |done| {
        let alone = threads(done, "racy") == 1;
        let alone = (alone, "one thread has nobody who stores in between".to_owned());
        let lines = |id| figure(done, id, Measured::transfers);
        let twice = (
            lines("racy") > lines("atomic"),
            format!(
                "the racy one waits for the line to read it and again to write it: {} lines from \
                 other cores an operation, where the atomic one has {}",
                short(lines("racy")),
                short(lines("atomic"))
            ),
        );
        let lost = |what, of| counted(what, done, of, |measured| measured.fact("lost_updates"));
        vec![
            lost("updates lost without atomicity", "racy").shown_by(
                1.0,
                reason(done, &[], [alone, (true, "no two were in between at once".into())]),
            ),
            ratio("time, atomic over racy", done, Measured::ns_per_op, ("atomic", "racy"))
                .reported(12.3 / 8.7)
                .shown_by(1.05, reason(done, &["racy", "atomic"], [twice])),
            ratio("time, fenced over atomic", done, Measured::ns_per_op, ("fenced", "atomic"))
                .reported(15.1 / 12.3)
                .shown_by(1.05, reason(done, &["atomic", "fenced"], [])),
        ]
    },
};

struct Increments {
    variant: usize,
    count: CachePadded<AtomicU64>,
}

impl Job for Increments {
    fn begin(&self, _round: &Round) {
        // ORDERING: Relaxed - before or after the round, when nobody else is at it.
        self.count.store(0, Ordering::Relaxed);
    }

    fn work(&self, turn: &mut Turn<'_>) {
        let count = &*self.count;
        // ORDERING: Relaxed - the count alone is looked at.
        while turn.goes_on() {
            match self.variant {
                0 => turn.batch(|| {
                    // Two instructions, as soon as anything is done with the value in between;
                    // one alone would not be torn by the simulator, and is torn by processors.
                    let seen = black_box(count.load(Ordering::Relaxed));
                    count.store(seen + 1, Ordering::Relaxed);
                }),
                1 => turn.batch(|| {
                    count.fetch_add(1, Ordering::Relaxed);
                }),
                _ => turn.batch(|| {
                    count.fetch_add(1, Ordering::Relaxed);
                    // ORDERING: SeqCst - the full fence is what is measured.
                    fence(Ordering::SeqCst);
                }),
            }
        }
    }

    fn check(&self, done: &[u64]) -> Result<Facts, String> {
        // ORDERING: Relaxed - before or after the round, when nobody else is at it.
        let (done, count) = (done.iter().sum::<u64>(), self.count.load(Ordering::Relaxed));
        if count > done || self.variant > 0 && count != done {
            return Err(format!("{done} were added, {count} were counted"));
        }
        Ok([("lost_updates".to_owned(), (done - count) as f64)].into())
    }
}
