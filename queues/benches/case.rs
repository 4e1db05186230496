//! The workload of a queue: producers push numbered elements, consumers pop and check them.
//!
//! One file for the crate's benchmark and for the program, which include it by `#[path]`. An
//! operation is a push or a pop that succeeded. One thread alone pushes and pops in turn.

use core::hint::spin_loop;
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
use harness::workload::Memory;
use queues::{Consumer, Full, HotFields, Order, Producer, Queue, Side, WithCapacity};

harness::described!(described, queues);

/// An element: its producer and number in the first word, and what makes it as large as asked.
#[derive(Clone, Copy)]
pub(crate) struct Element<const WORDS: usize>([u64; WORDS]);

impl<const WORDS: usize> Default for Element<WORDS> {
    fn default() -> Self {
        Self([0; WORDS])
    }
}

/// Bits of the number below the producer's.
const NUMBER_BITS: u32 = 44;

impl<const WORDS: usize> Element<WORDS> {
    fn new(producer: u64, number: u64) -> Self {
        Self([producer << NUMBER_BITS | number; WORDS])
    }

    fn producer(&self) -> usize {
        (self.0[0] >> NUMBER_BITS) as usize
    }

    fn number(&self) -> u64 {
        self.0[0] & ((1 << NUMBER_BITS) - 1)
    }
}

/// What went in and came out, known when the threads have ended.
#[derive(Default)]
struct Ledger {
    /// What went in and came out so far, if the queue is kept short.
    pushing: CachePadded<AtomicU64>,
    popping: CachePadded<AtomicU64>,
    pushed: AtomicU64,
    popped: AtomicU64,
    /// Sums of the first words, modulo 2⁶⁴.
    pushed_sum: AtomicU64,
    popped_sum: AtomicU64,
}

struct Pushing<P> {
    producer: P,
    id: u64,
    next: u64,
    sum: u64,
}

impl<P> Pushing<P> {
    #[inline(always)]
    fn push<const WORDS: usize>(&mut self) -> bool
    where
        P: Producer<Element<WORDS>>,
    {
        let element = Element::new(self.id, self.next);
        match self.producer.try_push(element) {
            Ok(()) => {
                self.next += 1;
                self.sum = self.sum.wrapping_add(element.0[0]);
                true
            }
            Err(Full(_)) => false,
        }
    }
}

struct Popping<C> {
    consumer: C,
    popped: u64,
    sum: u64,
    /// The least number that may come next, for each producer.
    least: Vec<u64>,
    out_of_order: u64,
}

impl<C> Popping<C> {
    #[inline(always)]
    fn pop<const WORDS: usize>(&mut self) -> bool
    where
        C: Consumer<Element<WORDS>>,
    {
        let Some(element) = self.consumer.try_pop() else { return false };
        self.popped += 1;
        self.sum = self.sum.wrapping_add(element.0[0]);
        match self.least.get_mut(element.producer()) {
            Some(least) => {
                self.out_of_order += u64::from(element.number() < *least);
                *least = element.number() + 1;
            }
            None => self.out_of_order += 1,
        }
        true
    }
}

/// One thread's part: a producer, a consumer, or both.
struct Worker<P, C, Q, const WORDS: usize> {
    // Before `queue`: dropped first.
    pushing: Option<Pushing<P>>,
    popping: Option<Popping<C>>,
    ledger: Arc<Ledger>,
    checks_order: bool,
    capacity: u64,
    /// Whether a queue without bounds has to be kept from growing.
    kept_short: bool,
    think: u64,
    /// Keeps alive what the endpoints borrow.
    queue: Shared<Q>,
}

impl<P, C, Q, const WORDS: usize> Worker<P, C, Q, WORDS> {
    /// Whether no more is inside than the workload's capacity, by what both sides tell each other
    /// after each batch: producers that are faster than consumers would else take as much memory as
    /// there is, and a look a batch does not slow the queue down.
    fn has_room(&self) -> bool {
        let read = |from: &CachePadded<AtomicU64>| from.load(Ordering::Relaxed);
        read(&self.ledger.pushing).wrapping_sub(read(&self.ledger.popping)) < self.capacity
    }
}

impl<P, C, Q, const WORDS: usize> Work for Worker<P, C, Q, WORDS>
where
    P: Producer<Element<WORDS>> + Send,
    C: Consumer<Element<WORDS>> + Send,
    Q: HotFields + Send + Sync,
{
    #[inline(never)]
    fn batch(&mut self, ops: u64) -> u64 {
        let mut done = 0;
        let may_push = !self.kept_short || self.has_room();
        match (&mut self.pushing, &mut self.popping) {
            (Some(pushing), Some(popping)) => {
                for _ in 0..ops.div_ceil(2) {
                    done += u64::from(pushing.push()) + u64::from(popping.pop());
                    chain(self.think);
                }
            }
            (Some(_), None) if !may_push => (0..ops).for_each(|_| spin_loop()),
            (Some(pushing), None) => {
                for _ in 0..ops {
                    if pushing.push() {
                        done += 1;
                    } else {
                        spin_loop();
                    }
                    chain(self.think);
                }
                if self.kept_short {
                    self.ledger.pushing.fetch_add(done, Ordering::Relaxed);
                }
            }
            (None, Some(popping)) => {
                for _ in 0..ops {
                    if popping.pop() {
                        done += 1;
                    } else {
                        spin_loop();
                    }
                    chain(self.think);
                }
                if self.kept_short {
                    self.ledger.popping.fetch_add(done, Ordering::Relaxed);
                }
            }
            (None, None) => {}
        }
        done
    }

    fn objects(&self) -> Vec<Object> {
        vec![described("queue".into(), &*self.queue)]
    }

    fn roles(&self) -> &'static [&'static str] {
        match (&self.pushing, &self.popping) {
            (Some(_), None) => &["producer", "producers"],
            (None, Some(_)) => &["consumer", "consumers"],
            _ => &["producer", "producers", "consumer", "consumers"],
        }
    }

    /// A round through the slots; one thread alone does two operations on each.
    fn period(&self) -> u64 {
        2 * self.capacity
    }

    fn finish(&mut self) -> Result<(), String> {
        let add = |to: &AtomicU64, value| to.fetch_add(value, Ordering::Relaxed);
        if let Some(pushing) = &self.pushing {
            add(&self.ledger.pushed, pushing.next);
            add(&self.ledger.pushed_sum, pushing.sum);
        }
        if let Some(popping) = &self.popping {
            add(&self.ledger.popped, popping.popped);
            add(&self.ledger.popped_sum, popping.sum);
            if self.checks_order && popping.out_of_order > 0 {
                return Err(format!(
                    "{} of {} elements came out of their producer's order",
                    popping.out_of_order, popping.popped
                ));
            }
        }
        Ok(())
    }
}

/// Shares the threads out: one alone does both, else producers and consumers.
fn sides(conditions: &Conditions) -> Result<(usize, usize), Unavailable> {
    let threads = conditions.threads();
    let workload = &conditions.workload;
    let (producers, consumers) = match (workload.producers, workload.consumers) {
        (None, None) if threads == 1 => return Ok((1, 1)),
        (None, None) => (threads / 2, threads - threads / 2),
        (Some(producers), None) => (producers, threads.saturating_sub(producers)),
        (None, Some(consumers)) => (threads.saturating_sub(consumers), consumers),
        (Some(producers), Some(consumers)) => (producers, consumers),
    };
    if producers == 0 || consumers == 0 || producers.saturating_add(consumers) != threads {
        return Err(Unavailable::because(
            "sides_do_not_add_up",
            format!("{producers} producers and {consumers} consumers on {threads} threads"),
        ));
    }
    Ok((producers, consumers))
}

fn refuse<T: Send, Q: Queue<T>>(conditions: &Conditions) -> Result<(usize, usize), Unavailable> {
    let (producers, consumers) = sides(conditions)?;
    let properties = Q::PROPERTIES;
    if properties.producers == Side::Single && producers > 1 {
        return Err(Unavailable::because("single_producer", format!("{producers} producers")));
    }
    if properties.consumers == Side::Single && consumers > 1 {
        return Err(Unavailable::because("single_consumer", format!("{consumers} consumers")));
    }
    if !matches!(conditions.workload.memory, Memory::Local) {
        return Err(Unavailable::because(
            "slots_on_heap",
            "the slots' pages cannot be placed; take --memory local",
        ));
    }
    Ok((producers, consumers))
}

/// Makes `count` endpoints from the first.
fn several<E>(first: E, count: usize, clone: impl Fn(&E) -> Option<E>) -> Option<Vec<E>> {
    let more = (1..count).map(|_| clone(&first)).collect::<Option<Vec<E>>>()?;
    Some(more.into_iter().chain([first]).collect())
}

/// Builds the experiment for one queue; what came out and what is left must be what went in, in
/// each producer's order.
///
/// # Errors
/// When the queue serves fewer producers or consumers than asked, or no memory can be had.
pub(crate) fn experiment<const WORDS: usize, Q>(
    conditions: &Conditions,
) -> Result<Experiment, Unavailable>
where
    Q: Queue<Element<WORDS>> + HotFields + WithCapacity + 'static,
{
    let (producers, consumers) = refuse::<Element<WORDS>, Q>(conditions)?;
    let queue = Q::with_capacity(conditions.workload.capacity)
        .map_err(|error| Unavailable::because("no_capacity", error.to_string()))?;
    let mut shared = Shared::place(queue, &conditions.shared_memory)?;
    let Some(queue) = shared.get_mut() else { return Err(Unavailable::new("shared_already")) };
    // SAFETY: every endpoint is stored beside a `Shared` that keeps the queue alive and in place,
    // and is dropped before it; `verify` reaches the queue again only through `get_mut`, which
    // succeeds when all of those are gone.
    let queue: &'static mut Q = unsafe { &mut *core::ptr::from_mut(queue) };
    let (producer, consumer) = queue.split();
    let single = || Unavailable::new("endpoint_not_cloned");
    let pushing = several(producer, producers, Producer::try_clone).ok_or_else(single)?;
    let popping = several(consumer, consumers, Consumer::try_clone).ok_or_else(single)?;
    let ledger = Arc::new(Ledger::default());
    let pushing = pushing.into_iter().zip(0..).map(|(producer, id)| Pushing {
        producer,
        id,
        next: 0,
        sum: 0,
    });
    let popping = popping.into_iter().map(|consumer| Popping {
        consumer,
        popped: 0,
        sum: 0,
        least: vec![0; producers],
        out_of_order: 0,
    });
    let worker = |pushing, popping| -> Box<dyn Work> {
        <dyn Work>::boxed(Worker::<_, _, Q, WORDS> {
            pushing,
            popping,
            ledger: ledger.clone(),
            checks_order: is_a_queue::<Element<WORDS>, Q>(),
            capacity: conditions.workload.capacity as u64,
            kept_short: !Q::PROPERTIES.bounded,
            think: conditions.steps.steps(conditions.workload.think_ns),
            queue: shared.clone(),
        })
    };
    let works = if conditions.threads() == 1 {
        pushing.zip(popping).map(|(push, pop)| worker(Some(push), Some(pop))).collect()
    } else {
        let producers = pushing.map(|push| worker(Some(push), None));
        producers.chain(popping.map(|pop| worker(None, Some(pop)))).collect()
    };
    Ok(Experiment {
        works,
        granted: Some(shared.granted().clone()),
        verify: Box::new(move |_| verify::<WORDS, Q>(shared, &ledger)),
    })
}

fn is_a_queue<T: Send, Q: Queue<T>>() -> bool {
    Q::PROPERTIES.order != Order::NotAQueue
}

fn verify<const WORDS: usize, Q: Queue<Element<WORDS>>>(
    mut shared: Shared<Q>,
    ledger: &Ledger,
) -> Result<Vec<(&'static str, Metric)>, String> {
    let Some(queue) = shared.get_mut() else { return Err("endpoints outlived the threads".into()) };
    let capacity = queue.capacity() as u64;
    let facts = vec![
        ("bytes_per_object", Metric::Count { value: size_of::<Q>() as u64 }),
        ("bytes_per_slot", Metric::Count { value: Q::BYTES_PER_SLOT as u64 }),
    ];
    if !is_a_queue::<Element<WORDS>, Q>() {
        return Ok(facts);
    }
    let read = |from: &AtomicU64| from.load(Ordering::Relaxed);
    let (mut left, mut sum) = (0, read(&ledger.popped_sum));
    let (_, mut consumer) = queue.split();
    while let Some(element) = consumer.try_pop() {
        left += 1;
        sum = sum.wrapping_add(element.0[0]);
        if left > capacity {
            break;
        }
    }
    let (pushed, popped) = (read(&ledger.pushed), read(&ledger.popped));
    if pushed != popped + left || sum != read(&ledger.pushed_sum) || left > capacity {
        return Err(format!(
            "{pushed} elements went in, {popped} came out and {left} were left (capacity \
             {capacity}); the sums of what they hold {}",
            if sum == read(&ledger.pushed_sum) { "agree" } else { "differ" }
        ));
    }
    Ok(facts)
}

/// Gives what the type states about itself, by name.
pub(crate) fn properties<T: Send, Q: Queue<T>>() -> Vec<(&'static str, String)> {
    let yes = |it: bool| if it { "yes" } else { "no" }.to_owned();
    let stated = Q::PROPERTIES;
    vec![
        ("producers", stated.producers.to_string()),
        ("consumers", stated.consumers.to_string()),
        ("order", stated.order.to_string()),
        ("bounded", yes(stated.bounded)),
        ("progress", stated.progress.to_string()),
        ("linearizable", yes(stated.linearizable)),
        ("bytes", size_of::<Q>().to_string()),
        ("bytes_per_slot", Q::BYTES_PER_SLOT.to_string()),
    ]
}
