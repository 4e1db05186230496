//! Every row of the lock table and of the queue table on up to 128 simulated cores: 200
//! interleavings each, with mutual exclusion, exact-once delivery and order watched.
//!
//! The baselines protect nothing, and the watch must see it.

use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::sync::Mutex;
use std::time::Instant;

use crossbeam_utils::CachePadded;
use locks::{Fairness, RawLock};
use queues::{Consumer, Full, Order, Producer, Queue, Side, WithCapacity};
use simulator::{Machine, Session, Simulation};

#[global_allocator]
static HEAP: simulator::EngineHeap = simulator::EngineHeap;

const SEEDS: u64 = 200;

const CORES: [usize; 6] = [3, 5, 8, 17, 64, 128];

fn machine() -> Machine {
    Machine::named("epyc-7742-2s").unwrap()
}

fn session(machine: &Machine, cores: &[u32], seed: u64) -> Session {
    let simulation = Simulation::on(machine).threads(cores.len()).cores(cores).seed(seed);
    simulation.budget(Duration::from_secs(2)).start().unwrap()
}

/// A lock, and what everybody who has it looks at.
#[derive(Default)]
struct Guarded<L> {
    lock: CachePadded<L>,
    /// Who has the lock, counted from 1.
    owner: CachePadded<AtomicU64>,
    /// How often it was had, added to in steps that lose updates when two have it.
    count: CachePadded<AtomicU64>,
    /// How often somebody else was there.
    violations: CachePadded<AtomicU64>,
}

impl<L: RawLock> Guarded<L> {
    /// Takes the lock, looks, writes down who it is, and lets go.
    fn visit(&self, slot: &L::Slot, thread: usize, log: &[AtomicU64]) {
        let me = thread as u64 + 1;
        // SAFETY: the slot stays in place, and is unlocked below.
        unsafe { self.lock.lock(slot) };
        let alone = self.owner.load(Ordering::Relaxed) == 0;
        self.owner.store(me, Ordering::Relaxed);
        let count = self.count.load(Ordering::Relaxed);
        if let Some(place) = log.get(count as usize) {
            place.store(me, Ordering::Relaxed);
        }
        self.count.store(count + 1, Ordering::Relaxed);
        let still = self.owner.load(Ordering::Relaxed) == me;
        self.owner.store(0, Ordering::Relaxed);
        if !(alone && still) {
            self.violations.fetch_add(1, Ordering::Relaxed);
        }
        // SAFETY: taken above with this slot.
        unsafe { self.lock.unlock(slot) };
    }
}

/// The most grants between two of one thread, up to the last grant of the thread that ends first.
fn longest_wait(log: &[u64], threads: usize, rounds: usize) -> usize {
    let mut seen = vec![0; threads + 1];
    let mut last = vec![0; threads + 1];
    let mut longest = 0;
    for (at, &who) in log.iter().enumerate() {
        let who = who as usize;
        // A first turn may have to allocate.
        if seen[who] > 1 {
            longest = longest.max(at - last[who]);
        }
        seen[who] += 1;
        last[who] = at;
        if seen[who] == rounds {
            break;
        }
    }
    longest
}

/// Runs one interleaving; whether the watch saw a violation.
fn visits<L: RawLock + Default>(machine: &Machine, seed: u64) -> bool {
    let threads = CORES[seed as usize % CORES.len()];
    let rounds = (40 / threads).max(4);
    let all = threads * rounds;
    let guarded = Guarded::<L>::default();
    let log: Vec<AtomicU64> = (0..all).map(|_| AtomicU64::new(0)).collect();
    let cores: Vec<u32> = (0..threads as u32).collect();
    session(machine, &cores, seed)
        .each(|thread| {
            let slot = CachePadded::<L::Slot>::default();
            (0..rounds).for_each(|_| guarded.visit(&slot, thread, &log));
        })
        .unwrap_or_else(|stopped| panic!("seed {seed}: {stopped}"));
    let log: Vec<u64> = log.iter().map(|who| who.load(Ordering::Relaxed)).collect();
    if L::PROPERTIES.fairness == Fairness::Fifo {
        // Who has just let go is back in the queue before all others have had it, or soon after.
        let longest = longest_wait(&log, threads, rounds);
        assert!(longest <= 2 * threads, "seed {seed}: {longest} grants on {threads} cores");
    }
    let lost = guarded.count.load(Ordering::Relaxed) != all as u64;
    lost || guarded.violations.load(Ordering::Relaxed) != 0 || log.contains(&0)
}

fn lock_row<L: RawLock + Default>(id: &str) {
    let began = Instant::now();
    let machine = machine();
    let seen = (0..SEEDS).filter(|&seed| visits::<L>(&machine, seed)).count();
    println!("{id}: {SEEDS} interleavings in {:.1} s", began.elapsed().as_secs_f64());
    if L::PROPERTIES.fairness == Fairness::NotALock {
        assert!(seen > 0, "the watch sees nothing");
    } else {
        assert_eq!(seen, 0, "interleavings in which two had the lock");
    }
}

/// What is known of an element: when its push began and had ended, by a clock that counts.
struct Pushed {
    began: AtomicU64,
    ended: AtomicU64,
    popped: AtomicU64,
}

/// Lets others come first, now for a shorter and now for a longer while, and sleeps in the end:
/// those that retry in step could keep somebody out for ever.
struct Pause {
    state: u64,
    tries: u32,
    sleep: Duration,
}

impl Pause {
    /// Sleeps longer where many would come back at once: a lock that they all spin on is taken
    /// over in the time of a transfer to each of them.
    fn new(seed: usize, threads: usize) -> Self {
        let sleep = Duration::from_micros(20 * threads as u64);
        Self { state: seed as u64 + 1, tries: 0, sleep }
    }

    fn a_while(&mut self) {
        self.tries += 1;
        if self.tries > 2 {
            return std::thread::sleep(self.sleep);
        }
        self.state = self.state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        (0..=self.state >> 59).for_each(|_| core::hint::spin_loop());
    }
}

/// The elements of a run: numbers from 0, the producer's times `each` and its own.
struct Ledger {
    each: usize,
    clock: CachePadded<AtomicU64>,
    taken: CachePadded<AtomicU64>,
    elements: Vec<Pushed>,
}

impl Ledger {
    fn new(producers: usize, each: usize) -> Self {
        let new = || AtomicU64::new(0);
        let pushed = |_| Pushed { began: new(), ended: new(), popped: new() };
        let elements = (0..producers * each).map(pushed).collect();
        Self { each, clock: CachePadded::default(), taken: CachePadded::default(), elements }
    }

    fn now(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::Relaxed)
    }

    fn push_all(&self, index: usize, producer: &mut impl Producer<u64>) {
        for number in index * self.each..(index + 1) * self.each {
            let began = self.now();
            let mut element = number as u64;
            let mut pause = Pause::new(number, self.elements.len() / self.each);
            while let Err(Full(back)) = producer.try_push(element) {
                element = back;
                pause.a_while();
            }
            self.elements[number].began.store(began, Ordering::Relaxed);
            self.elements[number].ended.store(self.now(), Ordering::Relaxed);
        }
    }

    fn pop_all(&self, index: usize, consumer: &mut impl Consumer<u64>) -> Vec<u64> {
        let mut popped = Vec::with_capacity(self.elements.len());
        let mut pause = Pause::new(self.elements.len() + index, 1);
        while self.taken.load(Ordering::Relaxed) < self.elements.len() as u64 {
            let Some(element) = consumer.try_pop() else {
                pause.a_while();
                continue;
            };
            self.taken.fetch_add(1, Ordering::Relaxed);
            self.elements[element as usize].popped.fetch_add(1, Ordering::Relaxed);
            popped.push(element);
        }
        popped
    }

    /// Says what is wrong with what the consumers popped.
    fn judge(&self, consumers: &[Vec<u64>]) -> Option<&'static str> {
        let read = |from: &AtomicU64| from.load(Ordering::Relaxed);
        if self.elements.iter().any(|element| read(&element.popped) != 1) {
            return Some("an element came out never, or twice");
        }
        for popped in consumers {
            let mut least = vec![0; self.elements.len() / self.each];
            for &element in popped {
                let (producer, number) = (element as usize / self.each, element as usize);
                if number < least[producer] {
                    return Some("elements of a producer came out in another order");
                }
                least[producer] = number;
            }
        }
        if let [popped] = consumers {
            let mut latest = 0;
            for element in popped.iter().map(|&element| &self.elements[element as usize]) {
                if read(&element.ended) < latest {
                    return Some("an element came out after one that was pushed later");
                }
                latest = latest.max(read(&element.began));
            }
        }
        None
    }
}

/// Gives out endpoints, one to each thread.
fn several<E>(first: E, count: usize, clone: impl Fn(&E) -> Option<E>) -> Vec<Mutex<E>> {
    let more: Vec<E> = (1..count).map(|_| clone(&first).unwrap()).collect();
    more.into_iter().chain([first]).map(Mutex::new).collect()
}

/// Runs one interleaving; gives what was wrong.
fn passes<Q: Queue<u64> + WithCapacity>(machine: &Machine, seed: u64) -> Option<&'static str> {
    let most = CORES[seed as usize % CORES.len()];
    let turn = seed as usize / CORES.len();
    let properties = Q::PROPERTIES;
    let (producers, consumers) = match (properties.producers, properties.consumers) {
        (Side::Single, _) => (1, 1),
        (_, Side::Single) => (most - 1, 1),
        _ if turn.is_multiple_of(2) => (most - 1, 1),
        _ => (most / 2, most - most / 2),
    };
    let cores: Vec<u32> = match producers + consumers {
        2 => vec![0, most as u32 - 1],
        _ => (0..most as u32).collect(),
    };
    let ledger = Ledger::new(producers, (60 / producers).max(1));
    let capacity = [1, 2, 3, 8, 100][turn % 5].max(producers / 8);
    let mut queue = Q::with_capacity(capacity).unwrap();
    let (producer, consumer) = queue.split();
    let pushing = several(producer, producers, Producer::try_clone);
    let popping = several(consumer, consumers, Consumer::try_clone);
    let report = session(machine, &cores, seed).each(|thread| {
        if thread < producers {
            ledger.push_all(thread, &mut *pushing[thread].lock().unwrap());
            Vec::new()
        } else {
            ledger.pop_all(thread, &mut *popping[thread - producers].lock().unwrap())
        }
    });
    let report = report.unwrap_or_else(|stopped| panic!("seed {seed}: {stopped}"));
    let left = popping[0].lock().unwrap().try_pop().is_some();
    ledger.judge(&report.results[producers..]).or(left.then_some("an element was left"))
}

fn queue_row<Q: Queue<u64> + WithCapacity>(id: &str) {
    let began = Instant::now();
    let machine = machine();
    let wrong: Vec<_> = (0..SEEDS)
        .filter_map(|seed| passes::<Q>(&machine, seed).map(|wrong| (seed, wrong)))
        .collect();
    println!("{id}: {SEEDS} interleavings in {:.1} s", began.elapsed().as_secs_f64());
    if Q::PROPERTIES.order == Order::NotAQueue {
        assert!(!wrong.is_empty(), "the watch sees nothing");
    } else {
        assert!(wrong.is_empty(), "{wrong:?}");
    }
}

macro_rules! lock_tests {
    ($($id:ident => $lock:ty, $kind:ident;)*) => { $(
        #[test]
        fn $id() {
            super::lock_row::<$lock>(concat!("locks/", stringify!($id)));
        }
    )* };
}

macro_rules! queue_tests {
    ($($id:ident => $queue:ty, $kind:ident;)*) => { $(
        #[test]
        fn $id() {
            super::queue_row::<$queue>(concat!("queues/", stringify!($id)));
        }
    )* };
}

mod each_lock {
    locks::for_each_lock!(lock_tests);
}

mod each_queue {
    type T = u64;
    queues::for_each_queue!(queue_tests);
}
