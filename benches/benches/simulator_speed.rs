//! How fast the simulator executes, against Callgrind with its cache model, paired in one run.
//!
//! `cargo bench -p manycore --bench simulator_speed [-- FILTER]`. Each row is a lock's loop with a
//! critical section of so many nanoseconds (on a machine where a step takes one). Callgrind runs
//! this very program; both are timed inside, around the loop. Rounds alternate, and the median of
//! the ratios decides. Skipped spin iterations are not counted as executed.

use std::env;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crossbeam_utils::CachePadded;
use harness::spin::chain;
use locks::RawLock;
use simulator::{EngineHeap, Machine, Simulation};

#[global_allocator]
static HEAP: EngineHeap = EngineHeap;

/// Rounds of a row.
const ROUNDS: usize = 5;

/// A lock with its data, and what one thread does with it.
trait Loop: Sync {
    fn run(&self, ops: u64, critical: u64);
    fn count(&self) -> u64;
}

#[derive(Default)]
struct Ours<L> {
    lock: CachePadded<L>,
    data: CachePadded<AtomicU64>,
}

impl<L: RawLock + Sync> Loop for Ours<L> {
    #[inline(never)]
    fn run(&self, ops: u64, critical: u64) {
        let slot = CachePadded::new(L::Slot::default());
        for _ in 0..ops {
            // SAFETY: the slot stays in place, and is unlocked below.
            unsafe { self.lock.lock(&slot) };
            self.data.store(self.data.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
            chain(critical);
            // SAFETY: taken above with this slot.
            unsafe { self.lock.unlock(&slot) };
        }
    }

    fn count(&self) -> u64 {
        self.data.load(Ordering::Relaxed)
    }
}

#[derive(Default)]
struct ParkingLot {
    lock: CachePadded<parking_lot::Mutex<()>>,
    data: CachePadded<AtomicU64>,
}

impl Loop for ParkingLot {
    #[inline(never)]
    fn run(&self, ops: u64, critical: u64) {
        for _ in 0..ops {
            let _guard = self.lock.lock();
            self.data.store(self.data.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
            chain(critical);
        }
    }

    fn count(&self) -> u64 {
        self.data.load(Ordering::Relaxed)
    }
}

fn make(lock: &str) -> Box<dyn Loop> {
    match lock {
        "ticket" => Box::new(Ours::<locks::TicketLock>::default()),
        "mcs" => Box::new(Ours::<locks::McsLock>::default()),
        "futex" => Box::new(Ours::<locks::FutexLock<locks::LinuxFutex>>::default()),
        _ => Box::new(ParkingLot::default()),
    }
}

const LOCKS: [&str; 4] = ["ticket", "mcs", "futex", "parking_lot"];

/// Runs as the guest of Callgrind: prints the nanoseconds of the loop.
fn native(lock: &str, ops: u64, critical: u64) {
    let work = make(lock);
    work.run(1, critical);
    let began = Instant::now();
    work.run(ops, critical);
    println!("{}", began.elapsed().as_nanos());
}

fn callgrind_ns(lock: &str, ops: u64, critical: u64) -> Option<u64> {
    let program = env::current_exe().ok()?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--cache-sim=yes", "--callgrind-out-file=/dev/null"])
        .arg(program)
        .args(["--native", lock, &ops.to_string(), &critical.to_string()])
        .output()
        .ok()?;
    String::from_utf8(output.stdout).ok()?.trim().parse().ok()
}

/// One run on simulated cores: executed instructions, skipped ones, and the time it took.
struct Run {
    executed: u64,
    skipped: u64,
    took: Duration,
}

fn simulated(machine: &Machine, lock: &str, cores: usize, ops: u64, critical: u64) -> Run {
    let mut session = Simulation::on(machine).threads(cores).start().expect("a session");
    let work = make(lock);
    session.each(|_| work.run(1, critical)).expect("a run");
    let began = Instant::now();
    let report = session.each(|_| work.run(ops, critical)).expect("a run");
    let took = began.elapsed();
    assert_eq!(work.count(), (ops + 1) * cores as u64, "{lock} lost updates");
    let (all, skipped) = (report.total.instructions, report.total.skipped);
    Run { executed: all - skipped, skipped, took }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    if let [flag, lock, ops, critical] = &arguments[..]
        && flag == "--native"
    {
        let number = |text: &String| text.parse().expect("a number");
        native(lock, number(ops), number(critical));
        return;
    }
    let filter = arguments.iter().find(|word| !word.starts_with('-'));
    let machine = Machine::named("epyc-7742-2s").expect("a machine of our own");
    println!("million executed instructions a second; ratio to callgrind --cache-sim=yes");
    println!(
        "{:<12} {:>8} {:>9}   {:>16}   {:>16} {:>8}   {:>16} {:>8}",
        "lock", "critical", "callgrind", "1 core", "8 cores", "skipped", "128 cores", "skipped"
    );
    for lock in LOCKS {
        for critical in [0, 50] {
            if filter.is_some_and(|filter| !format!("{lock}/{critical}").contains(&**filter)) {
                continue;
            }
            row(&machine, lock, critical);
        }
    }
}

fn row(machine: &Machine, lock: &str, critical: u64) {
    const CORES: [usize; 3] = [1, 8, 128];
    let weight = 1 + critical / 5;
    let all = 2_000_000 / weight;
    let mut reference = Vec::new();
    let mut speeds = [const { Vec::new() }; CORES.len()];
    let mut ratios = [const { Vec::new() }; CORES.len()];
    let mut skipped = [0.0; CORES.len()];
    for _ in 0..ROUNDS {
        let mut base = None;
        for (i, &cores) in CORES.iter().enumerate() {
            let ops = if cores == 1 { all } else { (all / 40 / cores as u64).max(2) };
            let run = simulated(machine, lock, cores, ops, critical);
            let speed = run.executed as f64 / run.took.as_secs_f64() / 1e6;
            if cores == 1 {
                let per_op = run.executed as f64 / ops as f64;
                base = callgrind_ns(lock, ops, critical)
                    .map(|ns| per_op * ops as f64 / ns as f64 * 1e3);
                reference.extend(base);
            }
            speeds[i].push(speed);
            ratios[i].extend(base.map(|base| speed / base));
            skipped[i] = run.skipped as f64 / (run.skipped + run.executed) as f64 * 100.0;
        }
    }
    let reference = if reference.is_empty() { f64::NAN } else { median(&mut reference) };
    let cell = |i: usize, speeds: &mut [Vec<f64>], ratios: &mut [Vec<f64>]| {
        let ratio = if ratios[i].is_empty() { f64::NAN } else { median(&mut ratios[i]) };
        format!("{:>7.1} (x{ratio:>5.2})", median(&mut speeds[i]))
    };
    let cells: Vec<String> = (0..3).map(|i| cell(i, &mut speeds, &mut ratios)).collect();
    println!(
        "{lock:<12} {critical:>5} ns {reference:>9.1}   {:>16}   {:>16} {:>6.1} %   {:>16} {:>6.1} %",
        cells[0], cells[1], skipped[1], cells[2], skipped[2]
    );
}
