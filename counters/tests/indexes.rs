//! Shards by CPU and by probe, and what is built on them.
#![cfg(feature = "std")]

use counters::{
    BatchedCounter, Counter, CpuId, CpuSource, Drain, NodeId, Reprobe, ShardIndex, ShardedCounter,
    StripedCounter, TlsProbe, TlsSlot,
};
use std::sync::Barrier;
use std::thread;

#[test]
fn the_source_is_the_best_that_the_build_allows() {
    let source = CpuId::source();
    assert_eq!(CpuId::source(), source, "once and for all");
    println!("CPUs are told by {source}");
    if !cfg!(target_os = "linux") {
        assert_eq!(source, CpuSource::ThreadSlot);
        return;
    }
    if !cfg!(feature = "libc") {
        assert!(!matches!(source, CpuSource::Rseq | CpuSource::Getcpu), "{source}");
    }
    if source == CpuSource::ThreadSlot {
        assert_eq!(CpuId::current(), TlsSlot::current());
    }
}

/// The kernel's file says what the thread may run on; the number is one of these.
#[test]
#[cfg(target_os = "linux")]
fn the_number_is_of_a_cpu_that_the_thread_may_run_on() {
    if CpuId::source() == CpuSource::ThreadSlot {
        println!("SKIPPED: this host does not tell its CPUs");
        return;
    }
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
    let allowed: Vec<usize> = list
        .trim()
        .split(',')
        .flat_map(|range| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            first.parse().unwrap()..=last.parse::<usize>().unwrap()
        })
        .collect();
    for _ in 0..10_000 {
        let cpu = CpuId::current();
        assert!(allowed.contains(&cpu), "CPU {cpu} is not among {allowed:?}");
    }
}

/// Pinned to each CPU in turn, by the thread's own mask: the number is that CPU's, whatever gaps
/// the numbers have.
#[test]
#[cfg(all(target_os = "linux", feature = "libc"))]
fn a_pinned_thread_is_told_its_cpu() {
    if CpuId::source() == CpuSource::ThreadSlot {
        println!("SKIPPED: this host does not tell its CPUs");
        return;
    }
    let size = size_of::<libc::cpu_set_t>();
    let mut pinned = 0;
    for cpu in 0..libc::CPU_SETSIZE as usize {
        let told = thread::spawn(move || {
            // SAFETY: a set of no CPUs is all zeroes.
            let mut one: libc::cpu_set_t = unsafe { core::mem::zeroed() };
            // SAFETY: below the size of the set.
            unsafe { libc::CPU_SET(cpu, &mut one) };
            // SAFETY: the set is as long as it is said to be.
            let refused = unsafe { libc::sched_setaffinity(0, size, &raw const one) } != 0;
            (!refused).then(CpuId::current)
        });
        if let Some(told) = told.join().unwrap() {
            assert_eq!(told, cpu);
            pinned += 1;
        }
    }
    assert!(pinned > 0, "no CPU could be chosen");
}

/// The kernel's answer to the system call, of a thread that stays where it is.
#[test]
#[cfg(all(target_os = "linux", feature = "libc"))]
fn the_node_is_the_kernels() {
    let source = NodeId::source();
    println!("nodes are told by {source}");
    assert!(!matches!(source, CpuSource::Rseq | CpuSource::ThreadSlot), "{source}");
    let (mut cpu, mut node) = (0_u32, 0_u32);
    let told = (0..1000).find_map(|_| {
        // SAFETY: writes two words, which are there.
        unsafe { libc::syscall(libc::SYS_getcpu, &raw mut cpu, &raw mut node, 0_usize) };
        (CpuId::current() == cpu as usize).then(NodeId::current)
    });
    assert_eq!(told, Some(node as usize));
}

#[test]
fn more_cpus_than_shards_are_reduced() {
    struct High;
    impl ShardIndex for High {
        fn current() -> usize {
            4095
        }
    }
    let counter = ShardedCounter::<4, High>::new();
    counter.add(3);
    assert_eq!((counter.sum_at(3), counter.sum()), (3, 3));
}

#[test]
fn probes_of_threads_start_apart_and_visit_every_cell() {
    let barrier: &Barrier = Box::leak(Box::new(Barrier::new(16)));
    let threads: Vec<_> = (0..16)
        .map(|_| {
            thread::spawn(move || {
                let first = TlsProbe::current() & 127;
                barrier.wait();
                let seen: std::collections::BTreeSet<usize> =
                    (0..4096).map(|_| TlsProbe::advance() & 127).collect();
                assert_eq!(seen.len(), 128);
                first
            })
        })
        .collect();
    let mut first: Vec<usize> = threads.into_iter().map(|it| it.join().unwrap()).collect();
    first.sort_unstable();
    first.dedup();
    assert!(first.len() >= 14, "{first:?}");
}

#[test]
fn one_thread_needs_one_cell_and_contention_more() {
    let counter = StripedCounter::<8, TlsProbe>::new();
    (0..10_000).for_each(|_| counter.add(1));
    assert_eq!((counter.cells_in_use(), counter.sum()), (1, 10_000));
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| (0..50_000).for_each(|_| counter.add(1)));
        }
    });
    assert!(counter.cells_in_use().is_power_of_two() && counter.cells_in_use() <= 8);
    assert_eq!(counter.take(), 410_000);
    assert_eq!(counter.sum(), 0);
}

#[test]
fn estimates_stay_within_their_bound() {
    let counter = BatchedCounter::<4, 64, TlsSlot>::new();
    assert_eq!(counter.max_error(), 252);
    // A worst case: each shard one short of a batch.
    (0..4).for_each(|shard| counter.add_at(shard, 63));
    assert_eq!((counter.estimate(), counter.sum()), (0, 252));
    (0..4).for_each(|shard| counter.add_at(shard, -64));
    assert_eq!((counter.estimate(), counter.sum()), (-256, -4), "rounded down, not towards zero");
    thread::scope(|scope| {
        for n in [1, -3, 64, 1000] {
            let counter = &counter;
            scope.spawn(move || (0..10_000).for_each(|_| counter.add(n)));
        }
    });
    let (sum, estimate) = (counter.sum(), counter.estimate());
    assert_eq!(sum, 10_620_000 - 4);
    assert!((0..=252).contains(&(sum - estimate)), "{sum} {estimate}");
    assert_eq!((counter.take(), counter.sum(), counter.estimate()), (sum, 0, 0));
}

#[test]
fn estimates_wrap_with_the_sum() {
    let counter = BatchedCounter::<2, 16>::new();
    for n in [i64::MAX, 1, i64::MIN, -1, i64::MAX, 17, i64::MIN] {
        counter.add_at(0, n);
        let behind = counter.sum().wrapping_sub(counter.estimate());
        assert!((0..=15).contains(&behind), "{behind} after {n}");
    }
}
