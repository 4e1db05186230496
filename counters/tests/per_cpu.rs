//! Words of CPUs: adds that the kernel interrupts, moves of threads, handlers of signals, and what
//! counts where there are no restartable sequences.
#![cfg(feature = "std")]

use counters::conformance::{keeps_every_add, takes_every_add_once};
use counters::{AddOnCpu, AddWay, Counter, CpuRow, PerCpuCounter, Rseq};
use std::sync::atomic::Ordering;
use std::thread;

#[test]
fn the_way_is_that_of_the_source_of_numbers() {
    let way = Rseq::way();
    println!("adds are {way}");
    let source = counters::CpuId::source();
    match way {
        AddWay::Restartable => assert_eq!(source, counters::CpuSource::Rseq),
        AddWay::Atomic(by) => assert_eq!(source, by),
    }
    assert_eq!(thread::spawn(Rseq::way).join().unwrap(), way, "in every thread");
}

/// Runs in a process of its own that `without_areas_every_add_is_atomic_and_none_is_lost` starts.
#[test]
#[ignore = "a part of another test"]
fn alone_without_areas() {
    assert!(matches!(Rseq::way(), AddWay::Atomic(_)), "{}", Rseq::way());
    keeps_every_add::<PerCpuCounter<128, Rseq>>(4, 50_000).unwrap();
    takes_every_add_once::<PerCpuCounter<128, Rseq>>(2, 50_000).unwrap();
    let counter = PerCpuCounter::<2, Rseq>::new();
    assert!(!Rseq::add(&[], 1), "no row");
    counter.add(5);
    assert_eq!(words(&counter, 0).iter().sum::<i64>(), 0, "only atomic ones");
    assert_eq!(counter.sum(), 5);
}

#[test]
#[cfg(target_os = "linux")]
fn without_areas_every_add_is_atomic_and_none_is_lost() {
    let child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "alone_without_areas", "--ignored"])
        .env("GLIBC_TUNABLES", "glibc.pthread.rseq=0")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stdout);
    assert!(child.status.success() && said.contains("1 passed"), "{said}");
}

/// What the first words of the rows hold, or the second ones.
fn words<const N: usize>(counter: &PerCpuCounter<N, Rseq>, nth: usize) -> [i64; N] {
    let base = core::ptr::from_ref(counter);
    core::array::from_fn(|cpu| {
        // SAFETY: the offset is that of a row of this very counter.
        let row = unsafe { base.byte_add(PerCpuCounter::<N, Rseq>::offset_of_shard(cpu)) };
        // SAFETY: a row, which is alive and shared.
        let row = unsafe { &*row.cast::<CpuRow>() };
        row[nth].load(Ordering::Relaxed)
    })
}

#[cfg(all(target_os = "linux", feature = "libc"))]
mod moved {
    use super::*;
    use std::sync::atomic::{AtomicBool, AtomicI64};
    use std::sync::mpsc;

    const SIZE: usize = size_of::<libc::cpu_set_t>();

    /// CPUs that this process may use.
    fn allowed() -> Vec<usize> {
        // SAFETY: a set of no CPUs is all zeroes.
        let mut set: libc::cpu_set_t = unsafe { core::mem::zeroed() };
        // SAFETY: the set is as long as it is said to be.
        assert_eq!(unsafe { libc::sched_getaffinity(0, SIZE, &raw mut set) }, 0);
        // SAFETY: below the size of the set.
        let is_set = |cpu: &usize| unsafe { libc::CPU_ISSET(*cpu, &set) };
        (0..libc::CPU_SETSIZE as usize).filter(is_set).collect()
    }

    /// Moves a thread of this process; 0 is the calling one.
    fn pin(thread: libc::pid_t, cpu: usize) {
        // SAFETY: a set of no CPUs is all zeroes.
        let mut one: libc::cpu_set_t = unsafe { core::mem::zeroed() };
        // SAFETY: below the size of the set.
        unsafe { libc::CPU_SET(cpu, &mut one) };
        // SAFETY: the set is as long as it is said to be.
        unsafe { libc::sched_setaffinity(thread, SIZE, &raw const one) };
    }

    #[test]
    fn a_pinned_thread_adds_to_its_row() {
        for cpu in allowed() {
            let counter = PerCpuCounter::<128, Rseq>::new();
            thread::scope(|scope| {
                scope.spawn(|| {
                    pin(0, cpu);
                    (0..1000).for_each(|_| counter.add(1));
                });
            });
            let there = [0, 1].map(|nth| words(&counter, nth)[cpu % 128]);
            match Rseq::way() {
                AddWay::Restartable if cpu < 128 => assert!(there[0] > 0, "CPU {cpu}: {there:?}"),
                _ => assert_eq!(there[0], 0, "CPU {cpu}"),
            }
            if Rseq::way() != AddWay::Atomic(counters::CpuSource::ThreadSlot) {
                assert_eq!(there[0] + there[1], 1000, "CPU {cpu}");
            }
        }
    }

    static COUNTER: PerCpuCounter<128, Rseq> = PerCpuCounter::new();
    static HANDLED: AtomicI64 = AtomicI64::new(0);

    extern "C" fn adds(_signal: libc::c_int) {
        COUNTER.add(1);
        HANDLED.fetch_add(1, Ordering::Relaxed);
    }

    /// Four threads add while they are moved from CPU to CPU and handlers of signals add as well.
    fn disturbed(adds: i64) {
        let (over, (tell, told)) = (AtomicBool::new(false), mpsc::channel());
        let (cpus, over) = (allowed(), &over);
        thread::scope(|scope| {
            let adders: Vec<_> = (0..4)
                .map(|_| {
                    let tell = tell.clone();
                    scope.spawn(move || {
                        COUNTER.add(0); // looks for the area outside of handlers
                        // SAFETY: a call without arguments.
                        tell.send(unsafe { libc::gettid() }).unwrap();
                        (0..adds).for_each(|_| COUNTER.add(1));
                    })
                })
                .collect();
            let adding: Vec<_> = told.iter().take(4).collect();
            let mover = scope.spawn(move || {
                for turn in 0.. {
                    // ORDERING: Acquire - against the store below.
                    if over.load(Ordering::Acquire) {
                        break;
                    }
                    let thread = adding[turn % 4];
                    pin(thread, cpus[(turn / 4 + turn) % cpus.len()]);
                    // SAFETY: a call without arguments.
                    let process = unsafe { libc::getpid() };
                    // SAFETY: the signal has a handler. A thread that has ended has none to run.
                    unsafe { libc::syscall(libc::SYS_tgkill, process, thread, libc::SIGUSR1) };
                }
            });
            adders.into_iter().for_each(|adder| adder.join().unwrap());
            // ORDERING: Release - against the mover's look.
            over.store(true, Ordering::Release);
            mover.join().unwrap();
        });
    }

    #[test]
    fn moved_threads_and_handlers_of_signals_lose_nothing() {
        // SAFETY: an action of all zeroes has no flags and blocks no signal.
        let mut action: libc::sigaction = unsafe { core::mem::zeroed() };
        action.sa_sigaction = adds as extern "C" fn(libc::c_int) as usize;
        action.sa_flags = libc::SA_RESTART;
        // SAFETY: the handler does nothing but add.
        let done =
            unsafe { libc::sigaction(libc::SIGUSR1, &raw const action, core::ptr::null_mut()) };
        assert_eq!(done, 0);
        const ADDS: i64 = 1_000_000;
        for round in 1..=100 {
            disturbed(ADDS);
            let handled = HANDLED.load(Ordering::Relaxed);
            assert_eq!(COUNTER.sum(), round * 4 * ADDS + handled, "{handled} by handlers");
            let interrupted: i64 = words(&COUNTER, 1).iter().sum();
            if Rseq::way() != AddWay::Restartable {
                assert_eq!(interrupted, COUNTER.sum());
                return;
            }
            if handled > 0 && interrupted >= 20 {
                println!("{interrupted} adds were interrupted, {handled} were those of handlers");
                return;
            }
        }
        println!("the kernel hardly came between: fewer than 20 adds were interrupted");
    }
}
