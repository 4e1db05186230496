//! The exact-counts part: each row once under valgrind, with one thread.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::baseline::{Baseline, Saved, change};
use super::flags::Flags;
use super::measured::{self, OPS};
use super::{grid, note, print_line, says, skipped};
use crate::callgrind::{Callgrind, Cost, Counts};
use crate::native::Failure;
use crate::sweep::Row;
use crate::unavailable::Unavailable;

/// The names under which a row's counts are printed.
pub(super) fn ids(row: &Row) -> [String; 2] {
    ["instructions", "rmw"].map(|what| format!("{}/{what}", grid::name(row)))
}

/// What a part of this program says when it could not count a row.
type Outcome = Result<Counts, Unavailable>;

/// Counts the rows and gives the number of broken ones.
pub(super) fn run(package: &str, rows: &[Row], flags: &Flags) -> usize {
    if flags.ignored {
        return 0;
    }
    if rows.is_empty() {
        note("exact counts: the filter leaves no row of this part");
        return 0;
    }
    if flags.profile_time.is_some() {
        skipped("exact counts", &"--profile-time is for the wall clock: counts have no profile");
        return 0;
    }
    if flags.once() {
        return run_once(rows, flags);
    }
    let rustc = says("rustc", &["--version"]);
    let counted = match &flags.load_baseline {
        Some(name) => load(package, name, rows),
        None => match Callgrind::find() {
            Ok(callgrind) => count(&callgrind, rows, flags),
            Err(reason) => {
                skipped("exact counts", &reason);
                return 0;
            }
        },
    };
    let before = compared(package, &rustc, flags);
    let mut now = Baseline::new(rustc);
    let (mut broken, mut left_out) = (0, 0);
    for (row, outcome) in rows.iter().zip(counted) {
        match outcome {
            Ok((counts, functions)) => {
                let name = grid::name(row);
                let saved = before.as_ref().and_then(|before| before.counts.get(&name));
                print(row, counts, saved.copied(), flags);
                if flags.verbose {
                    note(&shares(&functions));
                }
                now.counts.insert(name, counts);
            }
            // The program under valgrind has found its row at fault.
            Err(reason) if reason.code == "callgrind_failed" => {
                note(&format!("BROKEN {}: {reason}", ids(row)[0]));
                broken += 1;
            }
            Err(reason) => {
                skipped(&ids(row)[0], &reason);
                left_out += 1;
            }
        }
    }
    if !flags.quiet {
        let (all, ran) = (rows.len(), rows.len() - broken - left_out);
        note(&format!("exact counts: {ran} of {all} rows counted"));
    }
    let compared = flags.compared_with();
    if compared.save
        && let Err(error) = now.save(package, compared.name)
    {
        note(&format!("exact counts: not saved: {error}"));
    }
    broken
}

/// Runs each row as valgrind would, without it.
fn run_once(rows: &[Row], flags: &Flags) -> usize {
    let mut broken = 0;
    for row in rows {
        let id = &ids(row)[0];
        match measured::run(row, 1) {
            Ok(()) if flags.quiet => {}
            Ok(()) => print_line(&format!("Testing {id}\nSuccess\n")),
            Err(Failure::Unavailable(reason)) => skipped(id, &reason),
            Err(Failure::Broken(reason)) => {
                note(&format!("BROKEN {id}: {reason}"));
                broken += 1;
            }
        }
    }
    broken
}

type Counted = Vec<Result<(Saved, Vec<Cost>), Unavailable>>;

/// Counts on all CPUs: what valgrind counts does not depend on what runs beside it.
fn count(callgrind: &Callgrind, rows: &[Row], flags: &Flags) -> Counted {
    if !flags.quiet {
        let (rows, version) = (rows.len(), &callgrind.version);
        note(&format!("exact counts: {rows} rows, 1 thread, {OPS} operations, {version}"));
    }
    let outcomes = count_all(callgrind, rows);
    outcomes
        .into_iter()
        .map(|outcome| {
            outcome.map(|counts| {
                let saved = Saved {
                    instructions_per_op: counts.instructions_per_op,
                    rmw_per_op: counts.rmw_per_op,
                };
                (saved, counts.functions)
            })
        })
        .collect()
}

/// Has this very program count each row, several at a time.
pub(super) fn count_all(callgrind: &Callgrind, rows: &[Row]) -> Vec<Outcome> {
    let program = match std::env::current_exe() {
        Ok(program) => program,
        Err(error) => {
            let reason = Unavailable::syscall("no_program", "finding this program", &error);
            return rows.iter().map(|_| Err(reason.clone())).collect();
        }
    };
    let outcomes: Vec<Mutex<Outcome>> =
        rows.iter().map(|_| Mutex::new(Err(Unavailable::new("not_counted")))).collect();
    let next = AtomicUsize::new(0);
    let workers = std::thread::available_parallelism().map_or(1, |cpus| cpus.get().min(rows.len()));
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    // Relaxed: the number alone is shared; outcomes lie behind locks.
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let (Some(row), Some(outcome)) = (rows.get(at), outcomes.get(at)) else {
                        break;
                    };
                    let counts = callgrind.count(&program, &measured::arguments(row), OPS);
                    *outcome.lock().unwrap_or_else(PoisonError::into_inner) = counts;
                }
            });
        }
    });
    let taken = |outcome: Mutex<Outcome>| outcome.into_inner();
    outcomes.into_iter().map(|it| taken(it).unwrap_or_else(PoisonError::into_inner)).collect()
}

/// Takes saved counts for those of now.
fn load(package: &str, name: &str, rows: &[Row]) -> Counted {
    let saved = match Baseline::read(package, name) {
        Ok(Some(baseline)) => Ok(baseline.counts),
        Ok(None) => Err(Unavailable::because("not_saved", format!("no baseline `{name}`"))),
        Err(error) => Err(Unavailable::because("not_saved", error)),
    };
    let of_row = |row: &Row| match &saved {
        Err(reason) => Err(reason.clone()),
        Ok(counts) => counts
            .get(&grid::name(row))
            .map(|counts| (*counts, Vec::new()))
            .ok_or_else(|| Unavailable::because("not_saved", format!("`{name}` has no such row"))),
    };
    rows.iter().map(of_row).collect()
}

/// Reads what to compare with, and says what makes it less than comparable.
fn compared(package: &str, rustc: &str, flags: &Flags) -> Option<Baseline> {
    if flags.discard_baseline {
        return None;
    }
    let name = flags.compared_with().name;
    match Baseline::read(package, name) {
        Ok(Some(baseline)) => {
            if baseline.rustc != rustc {
                let before = &baseline.rustc;
                note(&format!("exact counts: `{name}` is of {before}, this is {rustc}"));
            }
            Some(baseline)
        }
        Ok(None) => {
            if name != "base" {
                note(&format!("exact counts: no baseline `{name}`: all rows are new"));
            }
            None
        }
        Err(error) => {
            note(&format!("exact counts: cannot compare: {error}"));
            None
        }
    }
}

fn print(row: &Row, now: Saved, before: Option<Saved>, flags: &Flags) {
    let [instructions, rmw] = ids(row);
    let lines = [
        (
            instructions,
            "instr/op",
            now.instructions_per_op,
            before.map(|saved| saved.instructions_per_op),
        ),
        (rmw, "rmw/op", now.rmw_per_op, before.map(|saved| saved.rmw_per_op)),
    ];
    for (id, unit, now, before) in lines {
        if flags.bencher() {
            print_line(&format!("test {id} ... bench: {now:>11} {unit} (+/- 0)"));
        } else {
            let change = if flags.discard_baseline { String::new() } else { change(now, before) };
            print_line(format!("{id:<40} {now:>11} {unit:<9} {change}").trim_end());
        }
    }
}

/// The functions that hold a hundredth of the instructions or more.
fn shares(functions: &[Cost]) -> String {
    let all: u64 = functions.iter().map(|cost| cost.instructions).sum();
    let shown = functions.iter().filter(|cost| cost.instructions * 100 >= all);
    let shown: Vec<String> = shown
        .map(|cost| {
            let share = cost.instructions as f64 * 100.0 / all as f64;
            let object = Path::new(&cost.object).file_name().unwrap_or_default().to_string_lossy();
            format!("    {share:.0} % {} ({object})", cost.function)
        })
        .collect();
    shown.join("\n")
}
