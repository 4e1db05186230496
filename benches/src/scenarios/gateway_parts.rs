//! What the requests of a gateway go through.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use counters::{PackedCounter, ShardedCounter};
use crossbeam_utils::CachePadded;

use super::arrivals::Arrivals;
use super::global_lru::shard_of;
use super::job::Round;
use super::lru::Lru;
use super::pages::{LINE_WORDS, touch, untouched};
use super::scenario::{Setting, Step};
use super::shards::Shards;
use super::turn::{Turn, lock};
use super::zipf::Zipf;

/// Which flaws are mended; each step has those before it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fixes(usize);

impl Fixes {
    /// The LRU map is in shards.
    pub(crate) const SHARDED: usize = 1;
    /// Logs go to a bounded buffer of the worker, not to tasks that anybody does.
    pub(crate) const BOUNDED: usize = 2;
    /// Counters have lines of their own.
    pub(crate) const PADDED: usize = 3;
    /// Arenas lie on their worker's node.
    pub(crate) const LOCAL: usize = 4;
    /// There are four instances.
    pub(crate) const ISOLATED: usize = 5;

    fn has(self, fix: usize) -> bool {
        self.0 >= fix
    }
}

/// Of the keys, the part that fits into the caches.
const FITS: usize = 2;
/// Lines of an answer.
const ANSWER_LINES: usize = 16;
/// Mebibytes of each worker's arena.
const ARENA_MIB: usize = 1;
/// Nanoseconds that a line of the log takes to be written.
const LOG_NS: u64 = 500;
/// Lines of the log that a worker keeps.
const LOGS: usize = 32;
/// Clients that are limited.
const CLIENTS: usize = 64;
/// What is counted of a request: that it was, and whether it hit, was limited, failed.
const METRICS: usize = 4;
/// Instances that share nothing, where each has two workers.
const INSTANCES: usize = 4;

/// Counters, side by side or on lines of their own.
enum Words {
    Packed { limits: Box<PackedCounter<CLIENTS>>, metrics: Box<PackedCounter<8>> },
    Padded { limits: Box<ShardedCounter<CLIENTS>>, metrics: Vec<Shards> },
}

impl Words {
    fn new(padded: bool, workers: usize) -> Self {
        if padded {
            let metrics = (0..METRICS).map(|_| Shards::new(workers)).collect();
            return Self::Padded { limits: Box::default(), metrics };
        }
        Self::Packed { limits: Box::default(), metrics: Box::default() }
    }

    /// Takes a token of a client, and says how many it has taken.
    #[inline(never)]
    fn limit(&self, client: usize) -> i64 {
        match self {
            Self::Packed { limits, .. } => {
                limits.add_at(client, 1);
                limits.sum_at(client)
            }
            Self::Padded { limits, .. } => {
                limits.add_at(client, 1);
                limits.sum_at(client)
            }
        }
    }

    #[inline(never)]
    fn count(&self, worker: usize, metric: usize) {
        match self {
            Self::Packed { metrics, .. } => metrics.add_at(metric, 1),
            Self::Padded { metrics, .. } => metrics[metric].add_at(worker, 1),
        }
    }

    fn requests(&self) -> i64 {
        match self {
            Self::Packed { metrics, .. } => metrics.sum_at(0),
            Self::Padded { metrics, .. } => metrics[0].sum(),
        }
    }
}

/// What the workers of an instance share.
struct Instance {
    caches: Vec<CachePadded<Mutex<Lru>>>,
    words: CachePadded<Words>,
    tasks: CachePadded<Mutex<VecDeque<u64>>>,
}

/// What a worker has for itself.
struct Desk {
    memory: &'static [AtomicU64],
    /// When its requests arrive.
    arrivals: Vec<u64>,
    /// Its next line.
    line: usize,
    logs: [u64; LOGS],
    is_new: bool,
}

/// A gateway.
pub(crate) struct Gateway {
    instances: Vec<Instance>,
    desks: Vec<CachePadded<Mutex<Desk>>>,
    fixes: Fixes,
    zipf: Zipf,
    rate: f64,
    service_ns: u64,
    workers: usize,
    seed: u64,
    /// Requests of the rounds before.
    before: AtomicU64,
}

impl Gateway {
    /// Builds one on the first thread.
    pub(crate) fn new(setting: &Setting, step: &Step) -> Result<Self, String> {
        let (fixes, workers) = (Fixes(step.variant), step.threads);
        let keys = setting.count("keys");
        let shards = if fixes.has(Fixes::SHARDED) { setting.count("shards") } else { 1 };
        let instance = || Instance {
            caches: (0..shards)
                .map(|_| CachePadded::new(Mutex::new(Lru::new((keys / FITS).div_ceil(shards)))))
                .collect(),
            words: CachePadded::new(Words::new(fixes.has(Fixes::PADDED), workers)),
            tasks: CachePadded::new(Mutex::new(VecDeque::with_capacity(1 << 16))),
        };
        let most = INSTANCES.min(workers / 2).max(1);
        let instances = if fixes.has(Fixes::ISOLATED) { most } else { 1 };
        let desk = || {
            let memory = untouched(ARENA_MIB)?;
            if !fixes.has(Fixes::LOCAL) {
                // All of it on the node of whoever builds the gateway.
                touch(memory, None);
            }
            Ok(CachePadded::new(Mutex::new(Desk {
                memory,
                arrivals: Vec::new(),
                line: 0,
                logs: [0; LOGS],
                is_new: true,
            })))
        };
        Ok(Self {
            instances: (0..instances).map(|_| instance()).collect(),
            desks: (0..workers).map(|_| desk()).collect::<Result<_, String>>()?,
            fixes,
            zipf: Zipf::new(keys, setting.value("zipf")),
            rate: setting.value("rate"),
            service_ns: setting.count("service-ns") as u64,
            workers,
            seed: setting.seed,
            before: AtomicU64::new(0),
        })
    }

    /// Gives the requests that arrive in a second.
    pub(crate) fn rate(&self) -> f64 {
        self.rate
    }

    /// Begins a round: requests arrive one after the other, and are dealt out.
    pub(crate) fn open(&self, round: &Round) {
        // ORDERING: Relaxed - before or after the round, when nobody else is at it.
        self.before.store(self.all(), Ordering::Relaxed);
        let mut arrivals = Arrivals::new(self.rate, round, self.seed);
        self.desks.iter().for_each(|desk| lock(desk).arrivals.clear());
        for _ in 0..round.ops {
            self.desks.iter().for_each(|desk| lock(desk).arrivals.push(arrivals.next()));
        }
    }

    /// Gives when a worker's next request arrives.
    pub(crate) fn arrival(&self, worker: usize, request: u64) -> u64 {
        let desk = lock(&self.desks[worker]);
        desk.arrivals.get(request as usize).copied().unwrap_or_default()
    }

    fn all(&self) -> u64 {
        self.instances.iter().map(|instance| instance.words.requests().cast_unsigned()).sum()
    }

    /// Gives the requests that were counted in this round.
    pub(crate) fn counted(&self) -> u64 {
        // ORDERING: Relaxed - before or after the round, when nobody else is at it.
        self.all() - self.before.load(Ordering::Relaxed)
    }

    /// Lets a worker get ready: with local arenas it is the first to touch its own.
    pub(crate) fn prepare(&self, worker: usize) {
        let mut desk = lock(&self.desks[worker]);
        if std::mem::take(&mut desk.is_new) && self.fixes.has(Fixes::LOCAL) {
            touch(desk.memory, None);
        }
    }

    /// Gives a worker's instance: neighbours share one. Workers alternate between nodes.
    fn instance_of(&self, worker: usize) -> &Instance {
        let all = self.instances.len();
        let of_node = all.div_ceil(2);
        let among = (worker / 2 * of_node) / self.workers.div_ceil(2);
        &self.instances[(worker % 2 * of_node + among) % all]
    }

    /// Serves a request.
    pub(crate) fn serve(&self, turn: &mut Turn<'_>) {
        let instance = self.instance_of(turn.thread);
        let mut desk = lock(&self.desks[turn.thread]);
        let key = self.zipf.draw(&mut turn.random) as u64;
        // Received and authenticated.
        turn.clock.work(self.service_ns);
        let client = shard_of(key ^ turn.random.next_u64(), CLIENTS);
        let is_limited = instance.words.limit(client) == i64::MAX;
        let cache = &instance.caches[shard_of(key, instance.caches.len())];
        let mut is_hit = true;
        let value = turn.lock(cache).get(key, |key| {
            is_hit = false;
            key
        });
        let told = [true, is_hit, is_limited, value != key];
        for (metric, _) in told.into_iter().enumerate().filter(|(_, is)| *is) {
            instance.words.count(turn.thread, metric);
        }
        desk.forward(value);
        self.log(instance, turn, &mut desk, key);
    }

    /// Logs a request: as a task that anybody does, or by the worker itself.
    fn log(&self, instance: &Instance, turn: &mut Turn<'_>, desk: &mut Desk, key: u64) {
        if self.fixes.has(Fixes::BOUNDED) {
            desk.logs[key as usize % LOGS] = key;
            return turn.clock.work(LOG_NS);
        }
        turn.lock(&instance.tasks).push_back(key);
        let task = turn.lock(&instance.tasks).pop_front();
        if task.is_some() {
            turn.clock.work(LOG_NS);
        }
    }
}

impl Desk {
    /// Writes an answer into the arena, reading what was there.
    #[inline(never)]
    fn forward(&mut self, value: u64) {
        let lines = self.memory.len() / LINE_WORDS;
        for _ in 0..ANSWER_LINES {
            let word = &self.memory[self.line % lines * LINE_WORDS];
            // ORDERING: Relaxed - the worker's own memory.
            word.store(word.load(Ordering::Relaxed) ^ value, Ordering::Relaxed);
            self.line += 1;
        }
    }
}
