//! The whole incident: a gateway with every flaw at once, and its fixes one at a time.

use harness::placement::Placement;

use super::clock;
use super::gateway_effects::effects;
use super::gateway_parts::{Fixes, Gateway};
use super::global_lru::{KEYS, SHARDS, ZIPF};
use super::job::{Facts, Job, Round};
use super::scenario::{Parameter, Scenario, Setting, Step};
use super::text::many;
use super::turn::Turn;

pub(crate) const SCENARIO: Scenario = Scenario {
    name: "gateway",
    title: "a gateway that got slower on a bigger machine, and its fixes one at a time",
    what: "A request is received, authenticated, limited, looked up, counted, forwarded and logged, and \
           shares on its way a lock around an LRU map, counters side by side, a queue of tasks and \
           memory of one node. On few cores of one L3 group or two these cost some time; on many \
           each of them is taken from core to core through L3 groups and sockets, and the gateway \
           serves less than it did. The fixes take away one after the other, and at last the machine \
           is used as four small ones.",
    reported: "8 cores: 7-8 k requests/s, P99 55 ms; 128 cores: 3.4 k/s, 280 ms; fixed: up to 1.6 \
               times what 8 cores served, with a lower P99",
    threads: 128,
    ops: 48,
    native_ops: 4_000,
    parameters: &[
        Parameter {
            name: "rate",
            default: 1_500_000.0,
            range: (1.0, 1e9),
            means: "requests that arrive in a second, whoever serves them",
        },
        Parameter {
            name: "service-ns",
            default: 2000.0,
            range: (0.0, 1e7),
            means: "nanoseconds of work to receive and authenticate a request",
        },
        KEYS,
        SHARDS,
        ZIPF,
    ],
    steps,
    make: |setting, step| Gateway::new(setting, step).map(|gateway| Box::new(gateway) as _),
    effects,
};

/// Workers of the small machine.
const FEW: usize = 8;

fn steps(setting: &Setting) -> Result<Vec<Step>, String> {
    let threads = setting.threads;
    if threads < 2 {
        return Err("few workers are compared with all: at least 2 threads are needed".into());
    }
    let (few, cap) = (FEW.min(threads / 2), threads / 2);
    let requests = setting.ops * threads as u64;
    // All workers are on both nodes, where there are two, and so are fewer of them.
    let both = setting.order(&Placement::CrossNode).is_ok_and(|order| order.len() >= threads);
    let spread = if both { Placement::CrossNode } else { Placement::Compact };
    let step = |id: &str, title: String, threads: usize, fixes: usize| {
        let each = requests.div_ceil(threads as u64);
        Step::new(id, title, threads).variant(fixes).ops(each).whole().watched(4)
    };
    let all =
        |id: &str, title: String, fixes| step(id, title, threads, fixes).placed(spread.clone());
    let capped =
        |id: &str, title: String, fixes| step(id, title, cap, fixes).placed(spread.clone());
    let shards = setting.count("shards");
    Ok(vec![
        step(
            "before_few",
            format!("every flaw on the small machine: {}", many(few, "worker")),
            few,
            0,
        ),
        all("before", format!("every flaw, {}", many(threads, "worker")), 0),
        all("sharded", format!("the LRU map in {}", many(shards, "shard")), Fixes::SHARDED),
        // The lock around the tasks hides what the counters cost: it goes first.
        all("bounded", "and logs in a bounded buffer of each worker".into(), Fixes::BOUNDED),
        all("padded", "and counters padded and sharded".into(), Fixes::PADDED),
        capped("capped", format!("and {}", many(cap, "worker")), Fixes::PADDED),
        capped("local", "and arenas on the worker's node".into(), Fixes::LOCAL),
        capped(
            "isolated",
            "and instances that share nothing, four where there are workers for them".into(),
            Fixes::ISOLATED,
        ),
    ])
}

impl Job for Gateway {
    fn begin(&self, round: &Round) {
        self.open(round);
    }

    fn work(&self, turn: &mut Turn<'_>) {
        clock::sleep_exactly();
        self.prepare(turn.thread);
        for request in 0..turn.round.ops {
            let then = self.arrival(turn.thread, request);
            turn.clock.sleep_until(then);
            self.serve(turn);
            turn.served(then);
            turn.did(1);
        }
    }

    fn check(&self, done: &[u64]) -> Result<Facts, String> {
        let (served, counted) = (done.iter().sum::<u64>(), self.counted());
        if served != counted {
            return Err(format!("{served} requests were served, {counted} were counted"));
        }
        Ok([("offered_per_s".to_owned(), self.rate())].into())
    }
}
