//! Rounds of spin loops that are computed instead of executed change no figure: every program here
//! gives the same counts, core by core, and the same results with skipping and without, and when
//! its lines are watched.

use core::fmt::Write as _;
use core::sync::atomic::AtomicU64;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::process::{Output, Stdio};

use simulator::{Counts, Machine, Report, Simulation};

#[path = "support/arena.rs"]
mod arena;
#[path = "spins/channels.rs"]
mod channels;
#[path = "support/child.rs"]
mod child;
#[path = "spins/locks.rs"]
mod locks;
#[path = "spins/relay.rs"]
mod relay;

#[global_allocator]
static HEAP: arena::Heap = arena::Heap;

/// A word on lines that nothing else is on.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Line(AtomicU64);

/// What every thread does; it checks itself, and gives a number that has to be the same.
struct Program(Box<dyn Fn(usize) -> u64 + Sync>);

impl Program {
    fn new(work: impl Fn(usize) -> u64 + Sync + 'static) -> Self {
        Self(Box::new(work))
    }
}

/// How often each thread does it: fewer times if there are many.
fn rounds(threads: usize) -> usize {
    (24 / threads).max(1)
}

/// How many threads on how many cores; and of how many cores' siblings they are besides.
type Size = (usize, usize, usize);

/// A core for each thread, the last time with both hardware threads of some.
const APART: &[Size] = &[(2, 2, 0), (3, 3, 0), (8, 8, 0), (32, 32, 0), (128, 128, 0), (6, 4, 2)];

/// More threads than cores.
const CROWDED: &[Size] = &[(7, 3, 0), (7, 3, 2)];

const SEEDS: [u64; 4] = [0, 1, 2, 3];

/// Describes everything that must not depend on skipping.
fn described(report: &Report<u64>) -> String {
    let plain = |counts: &Counts| {
        let mut counts = *counts;
        counts.skipped = 0;
        format!("{counts:?}")
    };
    let mut hasher = DefaultHasher::new();
    report.cores.iter().for_each(|core| plain(core).hash(&mut hasher));
    let sum: u64 =
        report.results.iter().fold(0, |sum, &result| sum.wrapping_mul(31) + result % 997);
    format!(
        "total {} window {} cores {:x} results {sum}",
        plain(&report.total),
        plain(&report.window),
        hasher.finish()
    )
}

/// Runs a program on every size with every seed, twice with the last one, and prints what came.
fn run(sizes: &[Size], program: fn(usize) -> Program, skip: bool, watch: bool) {
    arena::map();
    let machine = Machine::named("epyc-7742-2s").unwrap();
    let mut text = String::new();
    let mut skipped = 0;
    for &(threads, cores, siblings) in sizes {
        let beside = 128..128 + siblings as u32;
        let cores: Vec<u32> = (0..cores as u32).chain(beside).collect();
        for seed in SEEDS {
            let simulation = Simulation::on(&machine).threads(threads).cores(&cores).seed(seed);
            let mut session = simulation.skip_spins(skip).watch_lines(watch).start().unwrap();
            for _ in 0..1 + seed / 3 {
                arena::enter(0);
                let Program(work) = program(threads);
                arena::leave(0);
                arena::enter(0);
                let report = session.each(|thread| {
                    arena::enter(1 + thread);
                    let result = work(thread);
                    arena::leave(1 + thread);
                    result
                });
                arena::leave(0);
                let report = report.unwrap_or_else(|stopped| {
                    panic!("{threads} threads, seed {seed}, skip {skip}: {stopped}")
                });
                skipped += report.total.skipped;
                let _ = writeln!(text, "# {threads} threads, seed {seed}: {}", described(&report));
            }
        }
    }
    println!("{text}# skipped {skipped}");
}

/// Asserts that a child succeeded, and gives what it counted.
fn printed(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{text}\n{errors}", output.status);
    text.lines().filter_map(|line| line.strip_prefix("# ")).collect::<Vec<_>>().join("\n")
}

/// How long cores had waited in all when the first thread ended, and everything else of a run. That
/// figure differs in watched runs now and then, by a few nanoseconds; why is not known.
fn waits(run: &str) -> (u64, [&str; 3]) {
    let (total, window) = run.split_once(" window ").unwrap();
    let (before, after) = window.split_once(" stall_ps: ").unwrap();
    let (waits, after) = after.split_once(',').unwrap();
    (waits.parse().unwrap(), [total, before, after])
}

/// Compares runs with skipping and without, in processes that differ in nothing else.
fn compare(test: &str, sizes: &[Size], program: fn(usize) -> Program) {
    match child::part().as_deref() {
        Some("watched") => return run(sizes, program, true, true),
        Some("1") => return run(sizes, program, true, false),
        Some(_) => return run(sizes, program, false, false),
        None => {}
    }
    let path = std::env::current_exe().unwrap();
    let children = ["1", "0", "watched"].map(|part| {
        let mut command = child::command(&path, test, part);
        let command = command.stdout(Stdio::piped());
        command.stderr(Stdio::piped()).spawn().unwrap()
    });
    let [with, without, watched] =
        children.map(|child| printed(&child.wait_with_output().unwrap()));
    let (with, skipped) = with.rsplit_once("\nskipped ").unwrap();
    let (without, none) = without.rsplit_once("\nskipped ").unwrap();
    println!("{test}: {skipped} instructions were skipped");
    assert_eq!(none, "0");
    for (with, without) in with.lines().zip(without.lines()) {
        assert_eq!(with, without);
    }
    assert_eq!(with, without);
    let (watched, _) = watched.rsplit_once("\nskipped ").unwrap();
    assert_eq!(watched.lines().count(), without.lines().count());
    for (watched, without) in watched.lines().zip(without.lines()) {
        let ((watched, others), (waits, same)) = (waits(watched), waits(without));
        assert_eq!(others, same, "watched");
        assert!(watched.abs_diff(waits) * 1000 <= waits, "watched: {watched} and {waits}");
    }
}

macro_rules! programs {
    ($($group:ident $sizes:ident $module:ident: $($name:ident)*;)*) => { $(
        mod $group {
            $(
                #[test]
                fn $name() {
                    let test = concat!(stringify!($group), "::", stringify!($name));
                    super::compare(test, super::$sizes, super::$module::$name);
                }
            )*
        }
    )* };
}

programs! {
    lock APART locks: tas ttas_backoff backoff ticket mcs clh spin_then_sleep parking_lot_like
        std_mutex std_rwlock other_mutex other_rwlock;
    channel APART channels: std_channel std_bounded_channel other_channel array_queue segment_queue
        std_condition other_condition std_barrier spinning_barrier std_once sequence_lock;
    wait APART relay: with_pause without_pause with_lfence with_mfence with_yield with_sleep
        until_a_tick until_an_instant by_vector counting_in_a_vector counting_in_a_coprocessor
        counting_in_a_register counting_in_half_a_register counting_in_a_flag counting_in_memory
        counting_to_four counting_in_the_direction in_loops_in_loops on_two_lines on_many_lines
        across_two_lines by_comparing_strings by_adding_nothing by_exchanging_equals in_a_function
        through_a_pointer with_cpuid with_sqrt beside_a_counter on_what_the_kernel_writes;
    crowded_lock CROWDED locks: tas backoff ticket spin_then_sleep parking_lot_like std_mutex
        std_rwlock other_mutex other_rwlock;
    crowded_channel CROWDED channels: std_channel other_channel array_queue std_condition
        other_condition std_barrier std_once sequence_lock;
    crowded_wait CROWDED relay: with_yield with_sleep;
}
