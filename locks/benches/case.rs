//! The workload of a lock: take it, change shared data, let go, think.
//!
//! One file for the crate's benchmark and for the program, which include it by `#[path]`.

use core::marker::PhantomData;
use core::sync::atomic::{AtomicU64, Ordering};

use crossbeam_utils::CachePadded;
use harness::clock::Clock;
use harness::layout::{Field, Object, Role};
use harness::memory::Shared;
use harness::native::{Conditions, Experiment, Make};
use harness::records::Metric;
use harness::spin::chain;
use harness::unavailable::Unavailable;
use harness::window::{Handed, Timed, Work};
use locks::{Fairness, HotFields, RawLock, RawRwLock};

#[path = "readers.rs"]
mod readers;

harness::described!(described, locks);

/// Asks a row's type for what drives it: a reader-writer lock's readers are together. The method is
/// found on the type itself if the lock is one, and else on a reference to it.
pub(crate) struct Of<L>(pub(crate) PhantomData<L>);

/// What drives a reader-writer lock.
pub(crate) trait ReaderWriter {
    /// Gives the function that builds the experiment.
    fn make(&self) -> Make;
}

/// What drives any lock.
pub(crate) trait Exclusive {
    /// Gives the function that builds the experiment.
    fn make(&self) -> Make;
}

impl<L> ReaderWriter for Of<L>
where
    L: RawRwLock + HotFields + Default + 'static,
    L::Slot: Send + HotFields,
    L::ReadSlot: Send + HotFields,
{
    fn make(&self) -> Make {
        |conditions| match conditions.workload.read_percent {
            0 => experiment::<L>(conditions),
            _ => readers::experiment::<L, readers::Together>(conditions),
        }
    }
}

impl<L> Exclusive for &Of<L>
where
    L: RawLock + HotFields + Default + 'static,
    L::Slot: Send + HotFields,
{
    fn make(&self) -> Make {
        |conditions| match conditions.workload.read_percent {
            0 => experiment::<L>(conditions),
            _ => readers::experiment::<L, readers::Alone>(conditions),
        }
    }
}

/// What a lock protects.
#[derive(Default)]
struct Data {
    acquisitions: AtomicU64,
    /// Rank of the last holder that was timed, from 1, and when it let go.
    holder: AtomicU64,
    released: AtomicU64,
}

/// A lock and its data, each on lines of its own.
#[derive(Default)]
struct Guarded<L> {
    lock: CachePadded<L>,
    data: CachePadded<Data>,
}

struct Visitor<L: RawLock> {
    guarded: Shared<Guarded<L>>,
    slot: CachePadded<L::Slot>,
    /// Used in place of the shared data under the baseline, which protects nothing.
    own: CachePadded<Data>,
    rank: usize,
    critical: u64,
    think: u64,
}

fn is_a_lock<L: RawLock>() -> bool {
    L::PROPERTIES.fairness != Fairness::NotALock
}

impl Data {
    #[inline(always)]
    fn count(&self) {
        let count = &self.acquisitions;
        count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// Who had it before, and when it let go.
    fn handed(&self) -> Option<Handed> {
        let by = usize::try_from(self.holder.load(Ordering::Relaxed)).ok()?.checked_sub(1)?;
        Some(Handed { by, released: self.released.load(Ordering::Relaxed) })
    }
}

impl<L: RawLock + HotFields> Work for Visitor<L>
where
    L::Slot: Send + HotFields,
{
    #[inline(never)]
    fn batch(&mut self, ops: u64) -> u64 {
        let lock: &L = &self.guarded.lock;
        let data = if is_a_lock::<L>() { &self.guarded.data } else { &self.own };
        for _ in 0..ops {
            // SAFETY: the slot is boxed with this work, stays in place, and is unlocked below.
            unsafe { lock.lock(&self.slot) };
            // Two plain moves: under a lock nobody comes between.
            data.count();
            chain(self.critical);
            // SAFETY: taken above with this slot.
            unsafe { lock.unlock(&self.slot) };
            chain(self.think);
        }
        ops
    }

    #[inline(never)]
    fn timed(&mut self, clock: &Clock) -> Timed {
        let lock: &L = &self.guarded.lock;
        let data = if is_a_lock::<L>() { &self.guarded.data } else { &self.own };
        let began = clock.now();
        // SAFETY: the slot is boxed with this work, stays in place, and is unlocked below.
        unsafe { lock.lock(&self.slot) };
        let done = clock.now();
        let handed = data.handed();
        data.count();
        chain(self.critical);
        data.holder.store(self.rank as u64 + 1, Ordering::Relaxed);
        data.released.store(clock.now(), Ordering::Relaxed);
        // SAFETY: taken above with this slot.
        unsafe { lock.unlock(&self.slot) };
        Timed { began, done, ops: 1, handed }
    }

    fn objects(&self) -> Vec<Object> {
        let (lock, data) = (&*self.guarded.lock, &*self.guarded.data);
        let slot = described("slot".into(), &*self.slot);
        vec![
            described("lock".into(), lock),
            slot,
            words("data", data),
            words("own data", &self.own),
        ]
    }
}

/// Describes data that the holder uses.
fn words<D>(name: &'static str, data: &D) -> Object {
    let (start, bytes) = (core::ptr::from_ref(data).addr(), size_of_val(data));
    let field = Field::at("words", start, bytes).written_by(Role::named("holder"));
    Object::at(name, start, bytes).with([field.alone()])
}

/// Builds the experiment for one lock; the data must have counted every acquisition.
///
/// # Errors
/// When no memory can be had where it is asked for.
pub(crate) fn experiment<L>(conditions: &Conditions) -> Result<Experiment, Unavailable>
where
    L: RawLock + HotFields + Default + 'static,
    L::Slot: Send + HotFields,
{
    let guarded = Shared::place(Guarded::<L>::default(), &conditions.shared_memory)?;
    let work = |rank| -> Box<dyn Work> {
        <dyn Work>::boxed(Visitor {
            guarded: guarded.clone(),
            slot: CachePadded::default(),
            own: CachePadded::default(),
            rank,
            critical: conditions.steps.steps(conditions.workload.critical_ns),
            think: conditions.steps.steps(conditions.workload.think_ns),
        })
    };
    let works = (0..conditions.threads()).map(work).collect();
    Ok(Experiment {
        works,
        granted: Some(guarded.granted().clone()),
        verify: Box::new(move |ops| {
            let counted = guarded.data.acquisitions.load(Ordering::Relaxed);
            let expected: u64 = if is_a_lock::<L>() { ops.iter().sum() } else { 0 };
            if counted != expected {
                return Err(format!(
                    "{expected} acquisitions left {counted} in the data: updates were lost"
                ));
            }
            Ok(vec![
                ("bytes_per_object", Metric::Count { value: size_of::<L>() as u64 }),
                ("bytes_per_waiter", Metric::Count { value: size_of::<L::Slot>() as u64 }),
            ])
        }),
    })
}

/// Gives what the type states about itself, by name.
pub(crate) fn properties<L: RawLock>() -> Vec<(&'static str, String)> {
    let stated = L::PROPERTIES;
    vec![
        ("fairness", stated.fairness.to_string()),
        ("waiting", stated.waiting.to_string()),
        ("numa_aware", if stated.numa_aware { "yes" } else { "no" }.to_owned()),
        ("bytes", size_of::<L>().to_string()),
        ("bytes_per_waiter", size_of::<L::Slot>().to_string()),
    ]
}
