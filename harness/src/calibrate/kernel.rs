//! System calls, page faults, waking, switching.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use memmap2::{Advice, MmapOptions};
use simulator::machine::{Confidence, FigureValue};
use topology::Topology;

use super::single::per_op;
use super::{Bench, Found, Sample};
use crate::clock::Clock;
use crate::memory::page_bytes;
use crate::team::TeamError;

/// Wakes of a repetition.
const WAKES: u32 = 40;
/// Hand-offs of a repetition.
const HAND_OFFS: u32 = 2_000;
/// How long a thread is given to fall asleep.
const ASLEEP: Duration = Duration::from_micros(100);

pub(super) fn measure(
    bench: &mut Bench,
    host: &Topology,
    cpu: u32,
    found: &mut Found,
) -> Result<(), TeamError> {
    let call = bench.on(cpu, |clock| per_op(clock, 1, enter_and_leave, 5_000))?;
    found.sample("kernel.syscall_ns", &call, "a loop of getppid");
    let fault = bench.on(cpu, page_fault)?;
    match fault.values.iter().all(|ns| ns.is_finite()) {
        true => found.sample("kernel.page_fault_ns", &fault, "first writes to 1000 pages"),
        false => found.missing(&["kernel.page_fault_ns"], "no pages could be mapped"),
    }
    let other = host.usable().iter().find(|&other| other != cpu);
    match other {
        Some(other) => waking(bench, cpu, other, call.median(), found)?,
        None => found.missing(
            &["kernel.futex_wake_ns", "kernel.wake_latency_ns"],
            "one CPU is too few to wake a thread on another one",
        ),
    }
    switching(bench, cpu, 2.0 * call.median(), found)?;
    slack(found);
    time_slice(found);
    found.missing(&["kernel.interrupt_ns"], "no program can send one by itself");
    Ok(())
}

fn enter_and_leave() {
    // SAFETY: takes nothing and touches nothing.
    unsafe { libc::syscall(libc::SYS_getppid) };
}

fn page_fault(clock: &Clock) -> f64 {
    let (pages, size) = (1000, page_bytes());
    let Ok(mut memory) = MmapOptions::new().len(pages * size).map_anon() else {
        return f64::NAN;
    };
    // Where the advice is refused, pages are small already.
    let _ = memory.advise(Advice::NoHugePage);
    let began = clock.now();
    memory.iter_mut().step_by(size).for_each(|byte| *byte = 1);
    let ticks = clock.now() - began;
    std::hint::black_box(&memory);
    clock.ns(ticks as f64) / pages as f64
}

/// What two threads share that wake each other.
#[derive(Default)]
struct Bell {
    word: AtomicU32,
    /// The clock's reading when the sleeper ran again.
    ran: AtomicU64,
}

fn wait(word: &AtomicU32, seen: u32) {
    let none = std::ptr::null::<libc::timespec>();
    // SAFETY: the word lives as long as the call; it returns at once if the word is another.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word,
            libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
            seen,
            none,
        )
    };
}

fn wake(word: &AtomicU32) {
    // SAFETY: only the address of the word is used.
    unsafe { libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, 1) };
}

/// Enters what a wake costs and how long it takes.
fn waking(
    bench: &mut Bench,
    waker: u32,
    sleeper: u32,
    call_ns: f64,
    found: &mut Found,
) -> Result<(), TeamError> {
    let (mut costs, mut latencies) = (Vec::new(), Vec::new());
    for _ in 0..bench.effort.repetitions() {
        let bell = Arc::new(Bell::default());
        let jobs = [true, false].map(|rings| {
            let (bell, clock) = (bell.clone(), bench.clock.clone());
            move || if rings { ring(&clock, &bell) } else { sleep(&clock, &bell) }
        });
        let both = bench.team.run(&[waker, sleeper], jobs.into())?;
        costs.push((both[0].0 - call_ns).max(1.0));
        latencies.push(both[0].1);
    }
    let (cost, latency) = (Sample::new(costs), Sample::new(latencies));
    found.sample(
        "kernel.futex_wake_ns",
        &cost,
        "futex wake of a sleeper on another CPU, less a system call",
    );
    found.sample(
        "kernel.wake_latency_ns",
        &latency,
        "from a futex wake until the sleeper, 100 us asleep on an idle CPU, reads the clock",
    );
    Ok(())
}

/// The medians of the call's length and of the time until the sleeper ran.
fn ring(clock: &Clock, bell: &Bell) -> (f64, f64) {
    let (mut costs, mut latencies) = (Vec::new(), Vec::new());
    for number in 1..=WAKES {
        let until = clock.now() + clock.ticks(ASLEEP);
        while clock.now() < until {}
        bell.ran.store(0, Ordering::Relaxed);
        let began = clock.now();
        bell.word.store(number, Ordering::Release);
        wake(&bell.word);
        costs.push(clock.ns((clock.now() - began) as f64));
        let ran = loop {
            match bell.ran.load(Ordering::Acquire) {
                0 => std::thread::yield_now(),
                ran => break ran,
            }
        };
        latencies.push(clock.ns(ran.saturating_sub(began) as f64));
    }
    (Sample::new(costs).median(), Sample::new(latencies).median())
}

fn sleep(clock: &Clock, bell: &Bell) -> (f64, f64) {
    for number in 1..=WAKES {
        while bell.word.load(Ordering::Acquire) != number {
            wait(&bell.word, number - 1);
        }
        bell.ran.store(clock.now().max(1), Ordering::Release);
    }
    (0.0, 0.0)
}

/// Two threads on one CPU that wake each other in turn.
fn switching(
    bench: &mut Bench,
    cpu: u32,
    besides_ns: f64,
    found: &mut Found,
) -> Result<(), TeamError> {
    let mut values = Vec::new();
    for _ in 0..bench.effort.repetitions() {
        let word = Arc::new(AtomicU32::new(0));
        let jobs = [0, 1].map(|rank| {
            let (word, clock) = (word.clone(), bench.clock.clone());
            move || hand_off(&clock, &word, rank)
        });
        let both = bench.team.run(&[cpu, cpu], jobs.into())?;
        values.push(both[0].max(both[1]));
    }
    let hand_off = Sample::new(values);
    let switch = hand_off.median() - besides_ns;
    let how = format!(
        "hand-off between two threads of one CPU by futex, {hand_off}, less {besides_ns:.0} ns of its two system calls; the wake of a thread of the same CPU is part of it"
    );
    match switch > 1.0 {
        true => found.derived("kernel.context_switch_ns", switch, &how),
        false => found.missing(
            &["kernel.context_switch_ns"],
            "a hand-off took no longer than its system calls",
        ),
    }
    Ok(())
}

fn hand_off(clock: &Clock, word: &AtomicU32, rank: u32) -> f64 {
    let began = clock.now();
    for turn in (rank..HAND_OFFS).step_by(2) {
        loop {
            let seen = word.load(Ordering::Acquire);
            if seen >= turn {
                break;
            }
            wait(word, seen);
        }
        word.store(turn + 1, Ordering::Release);
        wake(word);
    }
    clock.ns((clock.now() - began) as f64) / f64::from(HAND_OFFS)
}

fn slack(found: &mut Found) {
    // SAFETY: asks for a number.
    let ns = unsafe { libc::prctl(libc::PR_GET_TIMERSLACK) };
    match ns > 0 {
        true => found.put(
            "kernel.timer_slack_ns",
            FigureValue::Number(f64::from(ns)),
            "prctl(PR_GET_TIMERSLACK)",
            Confidence::Measured,
        ),
        false => found.missing(&["kernel.timer_slack_ns"], "the kernel does not tell"),
    }
}

fn time_slice(found: &mut Found) {
    let path = "/sys/kernel/debug/sched/base_slice_ns";
    let read = fs::read_to_string(path).ok().and_then(|text| text.trim().parse::<u32>().ok());
    match read.filter(|&ns| ns > 0) {
        Some(ns) => found.put(
            "kernel.time_slice_ns",
            FigureValue::Number(f64::from(ns)),
            path,
            Confidence::Measured,
        ),
        None => {
            found
                .missing(&["kernel.time_slice_ns"], "the kernel tells it, if at all, only to root");
        }
    }
}
