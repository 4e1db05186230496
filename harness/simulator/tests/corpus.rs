//! Every function of the corpus, counted by Callgrind and by the simulator: equal, or it fails.
//!
//! `corpus --native NAME OPS` runs one function and prints its checksum, `corpus --simulated NAME
//! OPS` lets the simulator do it and prints the count as well. `corpus [FILTER…]` compares counts of the functions whose names contain a filter, of all when there is none.

#[path = "corpus/callgrind.rs"]
mod callgrind;
#[path = "corpus/functions.rs"]
mod functions;

use std::hint::black_box;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use callgrind::{callgrind_counts, settle, valgrind};
use functions::CORPUS;
use simulator::{EngineHeap, Machine, Simulation};

#[global_allocator]
static HEAP: EngineHeap = EngineHeap;

/// Rounds of a run.
const OPS: u64 = 6;
/// The name under which nothing is called.
const NOTHING: &str = "nothing";
/// Runs under Callgrind at a time.
const WORKERS: usize = 2;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--native", name, ops] => child(name, ops, true),
        ["--simulated", name, ops] => child(name, ops, false),
        // Flags are those of the usual test harness: none means anything here.
        ref filters => compare(|name| {
            let mut filters = filters.iter().filter(|filter| !filter.starts_with('-')).peekable();
            filters.peek().is_none() || filters.any(|filter| name.contains(filter))
        }),
    }
}

/// The call that Callgrind counts: found by its name.
// SAFETY: no other function has this name.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn corpus_measured(row: usize, ops: u64) -> u64 {
    let function = CORPUS.get(row).map_or(nothing as fn(u64) -> u64, |(_, function)| *function);
    black_box(function)(black_box(ops))
}

fn nothing(ops: u64) -> u64 {
    ops
}

/// Runs a function on a thread of a session, the same one natively and simulated: what it finds on
/// its stack and heap is the same then.
fn child(name: &str, ops: &str, native: bool) -> ExitCode {
    let found = CORPUS.iter().map(|(known, _)| *known).chain([NOTHING]).position(|one| one == name);
    let (Some(row), Ok(ops)) = (found, ops.parse()) else {
        eprintln!("corpus: no function {name}, or not a number: {ops}");
        return ExitCode::FAILURE;
    };
    match measured(row, ops, native) {
        Ok((checksum, instructions)) => {
            println!("{checksum:016x} {instructions}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("corpus: {name}: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs a function after one round that is not counted: what is initialised once per process or
/// thread (detected features, thread locals, the arena of the C library) is, by then.
fn measured(row: usize, ops: u64, native: bool) -> Result<(u64, u64), Box<dyn std::error::Error>> {
    let machine = Machine::named("epyc-7742-2s")?;
    let simulation = Simulation::on(&machine).native(native).like_valgrind(true);
    let mut session = simulation.start()?;
    let warm_up = CORPUS.get(row).map_or(nothing as fn(u64) -> u64, |(_, function)| *function);
    session.each(|_| black_box(warm_up)(black_box(1)))?;
    let report = session.each(|_| corpus_measured(row, ops))?;
    Ok((report.results[0], report.total.instructions))
}

/// Runs the program once more as `--native` or `--simulated`: the checksum, and the instructions.
fn run(program: &Path, way: &str, name: &str, ops: u64) -> Result<(String, u64), String> {
    let mut command = Command::new(program);
    settle(command.args([way, name, &ops.to_string()]));
    let ran = command.output().map_err(|error| format!("{}: {error}", program.display()))?;
    let text = String::from_utf8_lossy(&ran.stdout);
    let words = text.split_once(' ').filter(|_| ran.status.success());
    let (checksum, count) = words.ok_or_else(|| {
        format!("{name} {way}: {} {}", ran.status, String::from_utf8_lossy(&ran.stderr))
    })?;
    let count = count.trim().parse().map_err(|error| format!("{name} {way}: {error}"))?;
    Ok((checksum.to_owned(), count))
}

/// What became of one function.
enum Verdict {
    Equal(u64),
    Different { callgrind: u64, simulated: u64 },
    Failed(String),
}

fn compare(chosen: impl Fn(&str) -> bool) -> ExitCode {
    let own = std::env::current_exe().map_err(|error| format!("own path: {error}"));
    let program = match own.and_then(|program| valgrind().map(|_| program)) {
        Ok(program) => program,
        Err(error) => {
            eprintln!("corpus: {error}");
            return ExitCode::FAILURE;
        }
    };
    let overhead = match overhead(&program) {
        Ok(overhead) => overhead,
        Err(error) => {
            eprintln!("corpus: {error}");
            return ExitCode::FAILURE;
        }
    };
    let wanted: Vec<&str> =
        CORPUS.iter().map(|(name, _)| *name).filter(|name| chosen(name)).collect();
    let (next, verdicts) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                // ORDERING: Relaxed - hands out numbers, publishes nothing.
                while let Some(name) = wanted.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let verdict = judge(&program, name, overhead);
                    if let Ok(mut verdicts) = verdicts.lock() {
                        verdicts.push((*name, verdict));
                    }
                }
            });
        }
    });
    report(&wanted, &verdicts.into_inner().unwrap_or_default())
}

/// What calling a function costs in a simulated run beside the function that Callgrind counts.
fn overhead(program: &Path) -> Result<u64, String> {
    let (_, simulated) = run(program, "--simulated", NOTHING, OPS)?;
    let counted = callgrind_counts(program, &["--native", NOTHING, &OPS.to_string()])?;
    Ok(simulated - counted.instructions)
}

fn judge(program: &Path, name: &str, overhead: u64) -> Verdict {
    match (counted(program, name), run(program, "--simulated", name, OPS)) {
        (Ok((expected, _)), Ok((checksum, _))) if checksum != expected => {
            Verdict::Failed(format!("{name}: {checksum} simulated, {expected} natively"))
        }
        (Ok((_, callgrind)), Ok((_, simulated))) if callgrind + overhead == simulated => {
            Verdict::Equal(callgrind)
        }
        (Ok((_, callgrind)), Ok((_, simulated))) => {
            Verdict::Different { callgrind, simulated: simulated - overhead }
        }
        (Err(error), _) | (_, Err(error)) => Verdict::Failed(error),
    }
}

/// The checksum, natively and under Callgrind the same, and Callgrind's count.
fn counted(program: &Path, name: &str) -> Result<(String, u64), String> {
    let (checksum, _) = run(program, "--native", name, OPS)?;
    let counted = callgrind_counts(program, &["--native", name, &OPS.to_string()])?;
    if counted.output != format!("{checksum} 0") {
        return Err(format!("{name}: {} under Callgrind, {checksum} natively", counted.output));
    }
    Ok((checksum, counted.instructions))
}

fn report(wanted: &[&str], verdicts: &[(&str, Verdict)]) -> ExitCode {
    let mut failures = 0;
    for name in wanted {
        match verdicts.iter().find(|(known, _)| known == name).map(|(_, verdict)| verdict) {
            Some(Verdict::Equal(count)) => println!("{name:26} {count:>10} equal"),
            Some(Verdict::Different { callgrind, simulated }) => {
                failures += 1;
                println!("{name:26} {callgrind:>10} of Callgrind, {simulated} simulated");
            }
            Some(Verdict::Failed(error)) => {
                failures += 1;
                println!("{name:26} {error}");
            }
            None => {
                failures += 1;
                println!("{name:26} no verdict");
            }
        }
    }
    println!("{} functions, {failures} failed", wanted.len());
    if failures > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
