//! Arenas on the thread's own node, on the other one, and half and half.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};

use harness::placement::Placement;
use harness::report::number::short;

use super::effect::ratio;
use super::job::{Facts, Job, Round};
use super::measured::Measured;
use super::pages::{LINE_WORDS, touch, untouched};
use super::reasons::{figure, reason};
use super::scenario::{Parameter, Scenario, Setting, Step};
use super::text::time;
use super::turn::Turn;

pub(crate) const SCENARIO: Scenario = Scenario {
    name: "numa-local",
    title: "arenas on the own node, interleaved, and on the other node",
    what: "Each thread reads its own arena, which is larger than what the caches have of it, one line \
           after another, each found by the one before. Where the pages lie was decided when they \
           were touched first: by the thread itself, or by another one that prepared everything at the \
           start, on the other socket. Lines of the other node cross the link each time, whatever the \
           program does later.",
    reported: "distance about +50 % for remote memory; \"cross-node share is not low\"",
    threads: 16,
    ops: 2048,
    native_ops: 16_384,
    parameters: &[Parameter {
        name: "mib",
        default: 2.0,
        range: (1.0, 1024.0),
        means: "mebibytes of each thread's arena, a power of two",
    }],
    steps: |setting| {
        let threads = setting.threads;
        let mib = setting.count("mib");
        if threads < 2 || threads % 2 == 1 {
            return Err(format!("threads of two nodes are paired: {threads} cannot be"));
        }
        if !mib.is_power_of_two() {
            return Err(format!("--mib is a power of two, not {mib}"));
        }
        if setting.ops > lines_of(mib) {
            let most = lines_of(mib);
            return Err(format!("{mib} MiB have {most} lines; choose fewer --ops or more --mib"));
        }
        let step = |id: &str, title: &str, variant| {
            Step::new(id, title, threads).placed(Placement::CrossNode).variant(variant)
        };
        Ok(vec![
            step("remote", "touched first by a thread of the other node", REMOTE).no_line(
                "no line or lock is at fault: threads share nothing, their pages are on the other node",
            ),
            step("interleaved", "every other page", INTERLEAVED),
            step("local", "touched first by the thread itself", LOCAL),
        ])
    },
    make: |setting, step| Arenas::new(setting, step.variant).map(|arenas| Box::new(arenas) as _),
    effects: |done| {
        let otherwise = |id: &str| {
            let reads = figure(done, id, |of| of.per_op(|counts| counts.memory_reads));
            let counted = done.iter().any(|one| one.measured.is_some_and(|of| of.counts.is_some()));
            let of_file = |name: &str| figure(done, id, |of| of.fact(name));
            let (local, remote) = (of_file(LOCAL_NS), of_file(REMOTE_NS));
            let cached = format!("lines are in caches: {} reads of memory a read", short(reads));
            let near = format!("the machine file has {} and {}", time(local), time(remote));
            let cases =
                [(counted && reads < 0.5, cached), (remote > 0.0 && remote < 1.2 * local, near)];
            reason(done, &[id, "local"], cases)
        };
        vec![
            ratio(
                "time of a read, remote over local",
                done,
                Measured::ns_per_op,
                ("remote", "local"),
            )
            .reported(1.5)
            .shown_by(1.2, otherwise("remote")),
            ratio(
                "time of a read, interleaved over local",
                done,
                Measured::ns_per_op,
                ("interleaved", "local"),
            )
            .shown_by(1.1, otherwise("interleaved")),
        ]
    },
};

/// Facts with what the machine file says.
const LOCAL_NS: &str = "local_by_the_machine_file_ns";
const REMOTE_NS: &str = "remote_by_the_machine_file_ns";

const LOCAL: usize = 0;
const INTERLEAVED: usize = 1;
const REMOTE: usize = 2;

fn lines_of(mib: usize) -> u64 {
    ((mib << 20) / (LINE_WORDS * size_of::<AtomicU64>())) as u64
}

struct Arenas {
    memory: Vec<&'static [AtomicU64]>,
    variant: usize,
    /// Rounds that began.
    rounds: AtomicU64,
    machine_ns: Option<(f64, f64)>,
}

impl Arenas {
    fn new(setting: &Setting, variant: usize) -> Result<Self, String> {
        let mib = setting.count("mib");
        let memory =
            (0..setting.threads).map(|_| untouched(mib)).collect::<Result<Vec<_>, String>>()?;
        let ns = |ps: u64| ps as f64 / 1e3;
        let machine = setting.machine();
        let machine_ns = machine.map(|one| (ns(one.memory_local_ps()), ns(one.memory_remote_ps())));
        Ok(Self { memory, variant, rounds: AtomicU64::new(0), machine_ns })
    }

    /// Touches the pages that this thread has to touch first: the thread beside it is on the other
    /// node.
    fn touch(&self, thread: usize) {
        let other = thread ^ 1;
        let touch = |whose: usize, odd| touch(self.memory[whose], odd);
        match self.variant {
            LOCAL => touch(thread, None),
            REMOTE => touch(other, None),
            _ => {
                touch(thread, Some(0));
                touch(other, Some(1));
            }
        }
    }
}

impl Job for Arenas {
    fn begin(&self, _round: &Round) {
        // ORDERING: Relaxed - before or after the round, when nobody else is at it.
        self.rounds.fetch_add(1, Ordering::Relaxed);
    }

    fn work(&self, turn: &mut Turn<'_>) {
        // ORDERING: Relaxed - before or after the round, when nobody else is at it.
        if self.rounds.load(Ordering::Relaxed) == 1 {
            self.touch(turn.thread);
            turn.did(turn.round.ops);
            return;
        }
        let memory = self.memory[turn.thread];
        let lines = memory.len() / LINE_WORDS;
        let mut at = 1_usize;
        while turn.goes_on() {
            let began = turn.random.next_u64().is_multiple_of(16).then(|| turn.clock.now());
            // A step that goes through all lines once, in an order that no prefetcher knows; the
            // next one depends on what was read, which is 0.
            let read = memory[at * LINE_WORDS].load(Ordering::Relaxed) as usize;
            at = (at.wrapping_mul(1_664_525).wrapping_add(1_013_904_223) + black_box(read)) % lines;
            if let Some(began) = began {
                turn.took(turn.clock.now() - began);
            }
            turn.did(1);
        }
        black_box(at);
    }

    fn check(&self, _done: &[u64]) -> Result<Facts, String> {
        let Some((local, remote)) = self.machine_ns else { return Ok(Facts::new()) };
        Ok([(LOCAL_NS.to_owned(), local), (REMOTE_NS.to_owned(), remote)].into())
    }
}
