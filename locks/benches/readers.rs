//! The workload of a lock of which many operations only read: enter, look at shared data, leave, think.

use core::hint::black_box;
use core::marker::PhantomData;
use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use crossbeam_utils::CachePadded;
use harness::layout::Object;
use harness::memory::Shared;
use harness::native::{Conditions, Experiment};
use harness::records::Metric;
use harness::spin::chain;
use harness::unavailable::Unavailable;
use harness::window::Work;
use locks::{HotFields, RawLock, RawRwLock};

use super::{described, is_a_lock, words};

/// How an operation that only reads uses a lock `L`.
pub(crate) trait Reads<L>: Send + 'static {
    /// What it brings.
    type Slot: Default + Send + HotFields;

    /// Waits until no writer is inside.
    ///
    /// # Safety
    /// As for [`RawRwLock::lock_shared`].
    unsafe fn enter(lock: &L, slot: &Self::Slot);

    /// Lets go.
    ///
    /// # Safety
    /// As for [`RawRwLock::unlock_shared`].
    unsafe fn leave(lock: &L, slot: &Self::Slot);
}

/// Readers are together.
pub(crate) struct Together;

/// Readers are alone, since the lock knows no other way.
pub(crate) struct Alone;

impl<L: RawRwLock> Reads<L> for Together
where
    L::ReadSlot: Send + HotFields,
{
    type Slot = L::ReadSlot;

    #[inline(always)]
    unsafe fn enter(lock: &L, slot: &L::ReadSlot) {
        // SAFETY: the caller's promise, passed on.
        unsafe { lock.lock_shared(slot) };
    }

    #[inline(always)]
    unsafe fn leave(lock: &L, slot: &L::ReadSlot) {
        // SAFETY: the caller's promise, passed on.
        unsafe { lock.unlock_shared(slot) };
    }
}

impl<L: RawLock> Reads<L> for Alone
where
    L::Slot: Send + HotFields,
{
    type Slot = L::Slot;

    #[inline(always)]
    unsafe fn enter(lock: &L, slot: &L::Slot) {
        // SAFETY: the caller's promise, passed on.
        unsafe { lock.lock(slot) };
    }

    #[inline(always)]
    unsafe fn leave(lock: &L, slot: &L::Slot) {
        // SAFETY: the caller's promise, passed on.
        unsafe { lock.unlock(slot) };
    }
}

/// Two words that writers change together, so that a reader sees whether one was inside.
#[derive(Default)]
struct Data([AtomicU64; 2]);

impl Data {
    fn look(&self) -> [u64; 2] {
        let Self([one, other]) = self;
        [one.load(Ordering::Relaxed), other.load(Ordering::Relaxed)]
    }

    #[inline(always)]
    fn count(&self) {
        let Self(words) = self;
        let values = self.look();
        for (word, value) in words.iter().zip(values) {
            word.store(value + 1, Ordering::Relaxed);
        }
    }
}

#[derive(Default)]
struct Guarded<L> {
    lock: CachePadded<L>,
    data: CachePadded<Data>,
}

struct Visitor<L: RawLock, S: Reads<L>> {
    guarded: Shared<Guarded<L>>,
    slot: CachePadded<L::Slot>,
    read_slot: CachePadded<S::Slot>,
    /// Used in place of the shared data under the baseline, which protects nothing.
    own: CachePadded<Data>,
    /// What all threads have written, known when they have ended.
    expected: Arc<AtomicU64>,
    written: u64,
    torn: u64,
    read_percent: u64,
    /// Sums up `read_percent`; each hundred is a read.
    phase: u64,
    critical: u64,
    think: u64,
    reads: PhantomData<S>,
}

impl<L: RawLock + HotFields, S: Reads<L>> Work for Visitor<L, S>
where
    L::Slot: Send + HotFields,
{
    #[inline(never)]
    fn batch(&mut self, ops: u64) -> u64 {
        let lock: &L = &self.guarded.lock;
        let data = if is_a_lock::<L>() { &self.guarded.data } else { &self.own };
        let (read_percent, critical, think) = (self.read_percent, self.critical, self.think);
        let (mut phase, mut written, mut torn) = (self.phase, 0, 0);
        for _ in 0..ops {
            phase += read_percent;
            if phase >= 100 {
                phase -= 100;
                // SAFETY: the slot is boxed with this work, stays in place, and is left below.
                unsafe { S::enter(lock, &self.read_slot) };
                let [one, other] = black_box(data.look());
                torn += u64::from(one != other);
                chain(critical);
                // SAFETY: entered above with this slot.
                unsafe { S::leave(lock, &self.read_slot) };
            } else {
                // SAFETY: as above.
                unsafe { lock.lock(&self.slot) };
                data.count();
                written += 1;
                chain(critical);
                // SAFETY: taken above with this slot.
                unsafe { lock.unlock(&self.slot) };
            }
            chain(think);
        }
        self.phase = phase;
        self.written += written;
        self.torn += torn;
        ops
    }

    fn objects(&self) -> Vec<Object> {
        vec![
            described("lock".into(), &*self.guarded.lock),
            described("slot".into(), &*self.slot),
            described("reader's slot".into(), &*self.read_slot),
            words("data", &*self.guarded.data),
            words("own data", &*self.own),
        ]
    }

    fn finish(&mut self) -> Result<(), String> {
        self.expected.fetch_add(self.written, Ordering::Relaxed);
        match self.torn {
            0 => Ok(()),
            torn => Err(format!("{torn} reads saw data that a writer was changing")),
        }
    }
}

/// Builds the experiment for one lock; the data must have counted every write.
///
/// # Errors
/// When no memory can be had where it is asked for.
pub(crate) fn experiment<L, S>(conditions: &Conditions) -> Result<Experiment, Unavailable>
where
    L: RawLock + HotFields + Default + 'static,
    L::Slot: Send + HotFields,
    S: Reads<L>,
{
    let guarded = Shared::place(Guarded::<L>::default(), &conditions.shared_memory)?;
    let expected = Arc::new(AtomicU64::new(0));
    let threads = conditions.threads() as u64;
    let work = |rank: usize| -> Box<dyn Work> {
        <dyn Work>::boxed(Visitor::<L, S> {
            guarded: guarded.clone(),
            slot: CachePadded::default(),
            read_slot: CachePadded::default(),
            own: CachePadded::default(),
            expected: Arc::clone(&expected),
            written: 0,
            torn: 0,
            read_percent: conditions.workload.read_percent,
            // Threads that run alike do not write at the same moment.
            phase: rank as u64 * 100 / threads,
            critical: conditions.steps.steps(conditions.workload.critical_ns),
            think: conditions.steps.steps(conditions.workload.think_ns),
            reads: PhantomData,
        })
    };
    let works = (0..conditions.threads()).map(work).collect();
    Ok(Experiment {
        works,
        granted: Some(guarded.granted().clone()),
        verify: Box::new(move |_| {
            let counted = guarded.data.look();
            let written = if is_a_lock::<L>() { expected.load(Ordering::Relaxed) } else { 0 };
            if counted != [written; 2] {
                return Err(format!(
                    "{written} writes left {counted:?} in the data: updates were lost"
                ));
            }
            Ok(vec![
                ("bytes_per_object", Metric::Count { value: size_of::<L>() as u64 }),
                ("bytes_per_waiter", Metric::Count { value: size_of::<L::Slot>() as u64 }),
            ])
        }),
    })
}
