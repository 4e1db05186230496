//! One lock around one cache that every request goes through.

use std::sync::Mutex;

use crossbeam_utils::CachePadded;
use harness::report::number::short;

use super::effect::{Done, Effect, ratio};
use super::job::{Facts, Job};
use super::lru::Lru;
use super::measured::Measured;
use super::reasons::{HARDLY, MUCH, parameter, reason, threads, waiting};
use super::scenario::{Parameter, Scenario, Setting, Step};
use super::text::{many, percent};
use super::turn::Turn;
use super::zipf::Zipf;

pub(crate) const SCENARIO: Scenario = Scenario {
    name: "global-lru",
    title: "every request through one lock around one LRU map, against shards",
    what: "Each request looks a key up in one map, and as asking makes a key the newest, every look \
           writes, under one lock. One core at a time goes on, and with more and farther cores the \
           lock's line and the list's lines take longer from holder to holder, while those who wait \
           sleep and are woken. Shards by the key's hash have locks and lists of their own, so that \
           requests for different keys seldom meet.",
    reported: "12 s of waiting in 30 s; P99 280 ms; half the throughput on 128 cores of that on 8",
    threads: 128,
    ops: 160,
    native_ops: 20_000,
    parameters: &[KEYS, SHARDS, ZIPF, THINK],
    steps: |setting| {
        let (threads, few) = (setting.threads, setting.threads.min(8));
        let shards = setting.count("shards");
        let few = (few < threads)
            .then(|| Step::new("one_few", "one lock, few threads", few).ops(setting.ops * 4));
        let all = [
            Step::new("one", "one lock", threads).watched(4),
            Step::new("sharded", many(shards, "lock"), threads).variant(1),
        ];
        Ok(few.into_iter().chain(all).collect())
    },
    make: |setting, step| {
        let shards = if step.variant == 0 { 1 } else { setting.count("shards") };
        Ok(Box::new(Caches::new(setting, shards)))
    },
    effects,
};

/// The gain that is looked for.
const GAIN: f64 = 10.0;

fn effects(done: &[Done<'_>]) -> Vec<Effect> {
    let (few, one, sharded) =
        (waiting(done, "one_few"), waiting(done, "one"), waiting(done, "sharded"));
    let all = threads(done, "one");
    let only = |name: &str| parameter(done, name) == 1.0;
    let nothing = || match (only("shards"), only("keys")) {
        (true, _) => (true, "one shard is one lock".to_owned()),
        (_, is) => (is, "all requests want the one key, so that one shard has them all".to_owned()),
    };
    let free = |hardly: f64| {
        let text = format!("one lock is waited for {} of the time only", percent(one));
        (one < hardly, text)
    };
    let waited = || {
        let text = format!(
            "shards are waited for as well, {} of the time: that with the most wanted keys most",
            percent(sharded)
        );
        (sharded >= MUCH, text)
    };
    let room = format!(
        "few threads leave the lock room, they wait {} of the time, and more fill it",
        percent(few)
    );
    let so_few = format!("one lock lets one of {all} threads go on, so that all do not gain more");
    let most = 1.0 / (1.0 - one).max(0.001);
    let no_more = format!(
        "threads wait {} of the time, and without waiting do {} times as much",
        percent(one),
        short(most)
    );
    vec![
        ratio(
            "throughput of one lock, few threads over all",
            done,
            Measured::throughput,
            ("one_few", "one"),
        )
        .reported(7.5 / 3.4)
        .shown_by(1.05, reason(done, &["one_few", "one"], [free(HARDLY), (few < 0.5, room)])),
        ratio("throughput, sharded over one lock", done, Measured::throughput, ("sharded", "one"))
            .shown_by(
                GAIN,
                reason(
                    done,
                    &["one", "sharded"],
                    [
                        nothing(),
                        free(HARDLY),
                        ((all as f64) < GAIN, so_few),
                        waited(),
                        (most < GAIN, no_more),
                    ],
                ),
            ),
        ratio("P99, one lock over sharded", done, Measured::p99, ("one", "sharded"))
            .shown_by(2.0, reason(done, &["one", "sharded"], [nothing(), free(HARDLY), waited()])),
    ]
}

pub(crate) const KEYS: Parameter =
    Parameter { name: "keys", default: 4096.0, range: (1.0, 1e6), means: "the number of keys" };
pub(crate) const SHARDS: Parameter = Parameter {
    name: "shards",
    default: 64.0,
    range: (1.0, 4096.0),
    means: "the number of parts with a lock of their own",
};
pub(crate) const ZIPF: Parameter = Parameter {
    name: "zipf",
    // Of web requests: 0.64 to 0.83 (L. Breslau et al., INFOCOM 1999).
    default: 0.8,
    range: (0.0, 4.0),
    means: "the exponent of Zipf's law, by which numbers are drawn; 0 draws all alike",
};
const THINK: Parameter = Parameter {
    name: "think-ns",
    default: 1000.0,
    range: (0.0, 1e6),
    means: "nanoseconds of work between two requests",
};

/// Of the keys, the part that fits into the caches.
const FITS: usize = 2;

struct Caches {
    shards: Vec<CachePadded<Mutex<Lru>>>,
    zipf: Zipf,
    think_ns: u64,
}

impl Caches {
    fn new(setting: &Setting, shards: usize) -> Self {
        let keys = setting.count("keys");
        let each = (keys / FITS).div_ceil(shards);
        Self {
            shards: (0..shards).map(|_| CachePadded::new(Mutex::new(Lru::new(each)))).collect(),
            zipf: Zipf::new(keys, setting.value("zipf")),
            think_ns: setting.count("think-ns") as u64,
        }
    }
}

/// Spreads keys over shards.
pub(crate) fn shard_of(key: u64, shards: usize) -> usize {
    let mixed = key.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    ((u128::from(mixed) * shards as u128) >> 64) as usize
}

impl Job for Caches {
    fn work(&self, turn: &mut Turn<'_>) {
        while turn.goes_on() {
            let key = self.zipf.draw(&mut turn.random) as u64;
            turn.clock.work(self.think_ns);
            let began = turn.clock.now();
            let shard = &self.shards[shard_of(key, self.shards.len())];
            let value = turn.lock(shard).get(key, |key| key ^ 1);
            turn.took(turn.clock.now() - began);
            turn.did(u64::from(value == key ^ 1));
        }
    }

    fn check(&self, _done: &[u64]) -> Result<Facts, String> {
        let poisoned = self.shards.iter().filter(|shard| shard.is_poisoned()).count();
        if poisoned > 0 { Err(format!("{poisoned} caches broke")) } else { Ok(Facts::new()) }
    }
}
