//! A task for each item, and one for many.

use std::sync::{Condvar, Mutex, PoisonError};

use crossbeam_utils::CachePadded;
use harness::report::number::short;

use super::effect::{Done, Effect, ratio};
use super::job::{Facts, Job, Round};
use super::mailbox::Mailbox;
use super::measured::Measured;
use super::reasons::{figure, parameter, reason, threads};
use super::scenario::{Parameter, Scenario, Setting, Step};
use super::text::{many, time};
use super::turn::Turn;

pub(crate) const SCENARIO: Scenario = Scenario {
    name: "batching",
    title: "a task for each item against batches",
    what: "Clients each hand an item to a server and wait for it; the server works on items \
           and ends each task by waiting for somebody else, a commit say. With a task for each item \
           that wait comes with every item; with one for many of them it comes once, and more items \
           are done. The first item of a batch pays for it: it is not done before the last one is.",
    reported: "182 → 893 items/s; 548 → 112 ms; batches of 50, figures that 100 clients, 1.03 ms an item \
               and 4.46 ms a task account for",
    threads: 101,
    ops: 20,
    native_ops: 80,
    parameters: &[
        Parameter {
            name: "batch",
            default: 50.0,
            range: (1.0, 1e5),
            means: "items of a batch, at most",
        },
        Parameter {
            name: "service-ns",
            default: 103_000.0,
            range: (0.0, 1e8),
            means: "nanoseconds of work for an item, a tenth of the field report's",
        },
        Parameter {
            name: "wait-us",
            default: 446.0,
            range: (0.0, 1e6),
            means: "microseconds that the end of a task takes, a tenth of the field report's",
        },
    ],
    steps: |setting| {
        let (threads, batch) = (setting.threads, setting.count("batch"));
        if threads < 2 {
            return Err("a server and a client need two threads".into());
        }
        let step = |id: &str, title: String, batch: usize| {
            Step::new(id, title, threads).variant(batch).whole()
        };
        Ok(vec![
            step("single", "a task for each item".into(), 1),
            step("batched", format!("up to {batch} items a task"), batch),
        ])
    },
    make: |setting, step| Ok(Box::new(Server::new(setting, step))),
    effects,
};

fn effects(done: &[Done<'_>]) -> Vec<Effect> {
    let both = ["single", "batched"];
    let tasks = figure(done, "batched", |of| of.fact("tasks"));
    let items = figure(done, "batched", |of| Some(of.ops_in_all as f64)) / tasks.max(1.0);
    let (service, end) = (parameter(done, "service-ns"), 1000.0 * parameter(done, "wait-us"));
    let clients = threads(done, "batched").saturating_sub(1);
    let little = format!(
        "tasks had {} items on average, of {} and batches of up to {}",
        short(items),
        many(clients, "client"),
        parameter(done, "batch")
    );
    let short_end =
        format!("the end of a task takes {} beside {} of an item", time(end), time(service));
    let cases = || [(items < 2.0, little.clone()), (end < service, short_end.clone())];
    let no_work = format!(
        "an item takes {} of work, of {} until its task has ended",
        time(service),
        time(end)
    );
    vec![
        ratio(
            "throughput, batches over single items",
            done,
            Measured::throughput,
            ("batched", "single"),
        )
        .reported(893.0 / 182.0)
        .shown_by(2.0, reason(done, &both, cases())),
        ratio(
            "mean time of an item, single over batches",
            done,
            Measured::mean,
            ("single", "batched"),
        )
        .reported(548.0 / 112.0)
        .shown_by(2.0, reason(done, &both, cases())),
        ratio(
            "time that an item is under way with others' work, batches over single",
            done,
            |measured| measured.fact("first_item_in_service_ns"),
            ("batched", "single"),
        )
        .shown_by(
            1.05,
            reason(
                done,
                &both,
                [(items < 1.05, little.clone()), (service * items < 0.05 * end, no_work)],
            ),
        ),
    ]
}

/// One client's item.
struct Item {
    done: Mutex<bool>,
    ready: Condvar,
}

struct Server {
    queue: Mailbox<usize>,
    items: Vec<CachePadded<Item>>,
    batch: usize,
    service_ns: u64,
    wait_ns: u64,
    /// Tasks, and how long their first items were in service, in nanoseconds.
    tasks: Mutex<(u64, u64)>,
}

impl Server {
    fn new(setting: &Setting, step: &Step) -> Self {
        let item = || Item { done: Mutex::new(false), ready: Condvar::new() };
        Self {
            queue: Mailbox::new(setting.threads),
            items: (0..setting.threads).map(|_| CachePadded::new(item())).collect(),
            batch: step.variant,
            service_ns: setting.count("service-ns") as u64,
            wait_ns: setting.count("wait-us") as u64 * 1000,
            tasks: Mutex::new((0, 0)),
        }
    }

    fn serve(&self, turn: &mut Turn<'_>) {
        turn.stands_apart();
        super::clock::sleep_exactly();
        let (mut left, mut batch) = (turn.round.ops * (self.items.len() as u64 - 1), Vec::new());
        while left > 0 && self.queue.pop(turn, self.batch, &mut batch) {
            let began = turn.clock.now();
            turn.clock.work(self.service_ns * batch.len() as u64);
            turn.clock.sleep_until(turn.clock.now() + self.wait_ns);
            {
                let mut tasks = turn.lock(&self.tasks);
                *tasks = (tasks.0 + 1, tasks.1 + turn.clock.now() - began);
            }
            left -= batch.len() as u64;
            for client in batch.drain(..) {
                let item = &self.items[client];
                *turn.lock(&item.done) = true;
                item.ready.notify_one();
            }
        }
    }
}

impl Job for Server {
    fn begin(&self, _round: &Round) {
        self.queue.open();
        *self.tasks.lock().unwrap_or_else(PoisonError::into_inner) = (0, 0);
    }

    fn work(&self, turn: &mut Turn<'_>) {
        if turn.thread == 0 {
            return self.serve(turn);
        }
        let item = &self.items[turn.thread];
        turn.clock.sleep_until(turn.round.start);
        while turn.goes_on() {
            let began = turn.clock.now();
            self.queue.push(turn, turn.thread);
            let done = turn.lock(&item.done);
            let mut done = turn.wait_while(&item.ready, done, |done| !*done);
            *done = false;
            drop(done);
            turn.took(turn.clock.now() - began);
            turn.did(1);
        }
    }

    fn check(&self, _done: &[u64]) -> Result<Facts, String> {
        let (tasks, ns) = *self.tasks.lock().map_err(|_| "the server panicked")?;
        let mean = ns as f64 / tasks.max(1) as f64;
        Ok([("tasks".to_owned(), tasks as f64), ("first_item_in_service_ns".to_owned(), mean)]
            .into())
    }
}
