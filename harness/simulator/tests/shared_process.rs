//! Guests share a process with real threads: its allocator, its standard output, its locks. Nobody
//! may wait for ever for somebody who has let go, or whose run was stopped.

use core::hint::black_box;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::collections::HashMap;
use std::process::Stdio;
use std::sync::Mutex;
use std::thread;

use simulator::{Machine, Reason, Session, Simulation};

#[path = "support/child.rs"]
mod child;

#[global_allocator]
static HEAP: simulator::EngineHeap = simulator::EngineHeap;

fn session(threads: usize, budget: Duration, seed: u64) -> Session {
    let machine = Machine::named("epyc-7742-2s").unwrap();
    Simulation::on(&machine).threads(threads).budget(budget).seed(seed).start().unwrap()
}

/// Does the part in a process of its own, which must end within a minute.
fn alone(test: &str, part: impl FnOnce()) {
    if child::part().is_some() {
        thread::spawn(|| {
            thread::sleep(Duration::from_secs(60));
            // SAFETY: ends the process whatever it waits for.
            unsafe { libc::_exit(86) };
        });
        return part();
    }
    let path = std::env::current_exe().unwrap();
    let mut command = child::command(&path, test, "1");
    let output = command.stdout(Stdio::null()).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_ne!(output.status.code(), Some(86), "it hangs: {errors}");
    assert!(output.status.success(), "{}: {errors}", output.status);
}

/// Allocates and frees in all sizes, and lets others free what it allocated.
fn allocates(seed: usize, exchange: &Mutex<Vec<String>>) -> usize {
    let mut map = HashMap::new();
    for i in 0..40 {
        let text = format!("{seed} {i} ").repeat(1 + (seed * 7 + i * i) % 90);
        map.insert(i * seed, vec![i; (i * 37) % 300]);
        let mut exchange = exchange.lock().unwrap();
        exchange.push(text);
        if exchange.len() > 30 {
            exchange.swap_remove(i % 30);
        }
    }
    map.into_values().map(|numbers| numbers.len()).sum()
}

/// This process allocates, frees, prints and starts threads.
fn works(exchange: &Mutex<Vec<String>>) {
    // What was locked when a run stopped stays so.
    let _ = exchange.try_lock().map(|mut exchange| exchange.clear());
    for threads in [1, 6] {
        thread::scope(|scope| {
            (0..threads).for_each(|seed| {
                let own = Mutex::default();
                scope.spawn(move || black_box(allocates(seed, &own)));
            });
        });
        println!("{threads} threads have allocated");
        eprint!("");
    }
}

#[test]
fn real_threads_allocate_while_guests_do() {
    alone("real_threads_allocate_while_guests_do", || {
        let stop = AtomicBool::new(false);
        let exchange = Mutex::default();
        let expected: Vec<usize> = (0..60).map(|seed| allocates(seed, &exchange)).collect();
        thread::scope(|scope| {
            for seed in 0..3 {
                let stop = &stop;
                scope.spawn(move || {
                    while !stop.load(Ordering::Relaxed) {
                        let own = Mutex::default();
                        // Threads that begin and end use the allocator's lists of arenas.
                        let allocate = || black_box(allocates(seed, &own));
                        thread::scope(|scope| scope.spawn(allocate).join().unwrap());
                    }
                });
            }
            for seed in 0..12 {
                let exchange = Mutex::default();
                let mut session = session(60, Duration::from_secs(10), seed);
                let report = session.each(|thread| allocates(thread, &exchange)).unwrap();
                assert_eq!(report.results, expected);
            }
            stop.store(true, Ordering::Relaxed);
        });
    });
}

#[test]
fn guests_that_are_stopped_while_they_allocate() {
    alone("guests_that_are_stopped_while_they_allocate", || {
        for seed in 0..30 {
            let exchange = Mutex::default();
            let budget = Duration::from_nanos(9_000 + 1_777 * seed);
            let stopped = session(20, budget, seed).each(|thread| {
                loop {
                    allocates(thread, &exchange);
                }
            });
            let stopped = stopped.map(|report: simulator::Report<()>| report.total).unwrap_err();
            assert_eq!(stopped.reason, Reason::Budget, "{stopped}");
            works(&exchange);
            core::mem::forget(exchange);
        }
    });
}

#[test]
fn guests_that_are_stopped_while_they_print() {
    alone("guests_that_are_stopped_while_they_print", || {
        for seed in 0..30 {
            let budget = Duration::from_nanos(5_000 + 1_777 * seed);
            let stopped = session(5, budget, seed).each(|thread| {
                loop {
                    println!("{thread} {}", "prints ".repeat(thread));
                    eprint!("");
                }
            });
            let stopped = stopped.map(|report: simulator::Report<()>| report.total).unwrap_err();
            assert_eq!(stopped.reason, Reason::Budget, "{stopped}");
            works(&Mutex::default());
        }
    });
}

#[test]
fn guests_that_are_stopped_while_they_panic() {
    alone("guests_that_are_stopped_while_they_panic", || {
        for seed in 0..10 {
            let budget = Duration::from_micros(3 + 29 * seed);
            let stopped = session(3, budget, seed).each(|_| {
                loop {
                    let _ = std::panic::catch_unwind(|| panic!("once more"));
                }
            });
            let stopped = stopped.map(|report: simulator::Report<()>| report.total).unwrap_err();
            assert_eq!(stopped.reason, Reason::Budget, "{stopped}");
            let caught = std::panic::catch_unwind(|| panic!("here"));
            assert!(caught.is_err());
            works(&Mutex::default());
        }
    });
}

#[test]
fn a_real_thread_sleeps_on_a_lock_that_a_guest_lets_go() {
    alone("a_real_thread_sleeps_on_a_lock_that_a_guest_lets_go", || {
        let lock = Mutex::new(0_u64);
        let begun = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !begun.load(Ordering::Relaxed) {
                    core::hint::spin_loop();
                }
                *lock.lock().unwrap() += 1;
            });
            let mut session = session(1, Duration::from_secs(10), 0);
            let report = session.each(|_| {
                let mut locked = lock.lock().unwrap();
                begun.store(true, Ordering::Relaxed);
                for _ in 0..3_000_000 {
                    *locked = black_box(*locked);
                }
            });
            assert!(report.is_ok());
        });
        assert_eq!(*lock.lock().unwrap(), 1);
    });
}
