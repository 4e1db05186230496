//! The workload of a counter: add one, now and then read the sum, think.
//!
//! One file for the crate's benchmark and for the program, which include it by `#[path]`.

use core::hint::black_box;
use core::sync::atomic::{AtomicI64, Ordering};
use std::sync::Arc;

use counters::{Counter, HotFields};
use crossbeam_utils::CachePadded;
use harness::layout::Object;
use harness::memory::Shared;
use harness::native::{Conditions, Experiment};
use harness::records::Metric;
use harness::spin::chain;
use harness::unavailable::Unavailable;
use harness::window::Work;

harness::described!(described, counters);

struct Adder<C> {
    counter: Shared<CachePadded<C>>,
    /// What all threads have added, known when they have ended.
    expected: Arc<AtomicI64>,
    added: i64,
    read_percent: u64,
    /// Sums up `read_percent`; each hundred is a read.
    phase: u64,
    think: u64,
}

impl<C: Counter + HotFields> Work for Adder<C> {
    #[inline(never)]
    fn batch(&mut self, ops: u64) -> u64 {
        let counter: &C = &self.counter;
        // Locals, so that the loop keeps them in registers.
        let (read_percent, think) = (self.read_percent, self.think);
        let (mut phase, mut added) = (self.phase, 0);
        for _ in 0..ops {
            phase += read_percent;
            if phase >= 100 {
                phase -= 100;
                black_box(counter.sum());
            } else {
                counter.add(1);
                added += 1;
            }
            chain(think);
        }
        self.phase = phase;
        self.added += added;
        ops
    }

    fn objects(&self) -> Vec<Object> {
        vec![described("counter".into(), &**self.counter)]
    }

    fn finish(&mut self) -> Result<(), String> {
        self.expected.fetch_add(self.added, Ordering::Relaxed);
        Ok(())
    }
}

/// Builds the experiment for one counter; the sum must be what was added.
///
/// # Errors
/// When no memory can be had where it is asked for.
pub(crate) fn experiment<C>(conditions: &Conditions) -> Result<Experiment, Unavailable>
where
    C: Counter + HotFields + Default + 'static,
{
    let counter = Shared::place(CachePadded::<C>::default(), &conditions.shared_memory)?;
    let expected = Arc::new(AtomicI64::new(0));
    let work = |_| -> Box<dyn Work> {
        <dyn Work>::boxed(Adder {
            counter: counter.clone(),
            expected: expected.clone(),
            added: 0,
            read_percent: conditions.workload.read_percent,
            phase: 0,
            think: conditions.steps.steps(conditions.workload.think_ns),
        })
    };
    let works = (0..conditions.threads()).map(work).collect();
    Ok(Experiment {
        works,
        granted: Some(counter.granted().clone()),
        verify: Box::new(move |_| {
            let (sum, expected) = (counter.sum(), expected.load(Ordering::Relaxed));
            if C::PROPERTIES.exact && sum != expected {
                return Err(format!("{expected} were added and the sum is {sum}"));
            }
            Ok(vec![("bytes_per_object", Metric::Count { value: size_of::<C>() as u64 })])
        }),
    })
}

/// Gives what the type states about itself, by name.
pub(crate) fn properties<C: Counter>() -> Vec<(&'static str, String)> {
    let yes = |it: bool| if it { "yes" } else { "no" }.to_owned();
    let stated = C::PROPERTIES;
    vec![
        ("progress", stated.progress.to_string()),
        ("exact_when_quiet", yes(stated.exact)),
        ("linearizable", yes(stated.linearizable)),
        ("shards", stated.shards.to_string()),
        ("bytes", size_of::<C>().to_string()),
    ]
}
