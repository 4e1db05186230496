//! What the variants are for, on simulated cores of two sockets: ratios within one run.

use core::sync::atomic::{AtomicUsize, Ordering};

use crossbeam_utils::CachePadded;
use harness::simulated::{EngineHeap, Machine, Simulation};
use locks::{
    CohortLock, CpuBlocks, HmcsLock, McsLock, ProportionalTicketLock, RawLock, RawRwLock,
    RwBigReaderLock, RwSpinLock, TicketLock, TtasLock,
};

#[global_allocator]
static HEAP: EngineHeap = EngineHeap;

const ROUNDS: u64 = 40;

/// Nanoseconds and transfers an operation, with `threads` threads on cores of their own.
fn cost(threads: usize, visit: impl Fn() + Sync) -> (f64, f64) {
    let machine = Machine::named("epyc-7742-2s").unwrap();
    let mut session = Simulation::on(&machine).threads(threads).start().unwrap();
    let report = session.each(|_| (0..ROUNDS).for_each(|_| visit())).unwrap();
    let ops = ROUNDS * threads as u64;
    let transfers = report.per_operation(report.total.transfers.total(), ops);
    (report.total.time_ns() / ops as f64, transfers)
}

fn exclusive<L: RawLock + Default>(threads: usize) -> (f64, f64) {
    let lock = CachePadded::new(L::default());
    cost(threads, || {
        let slot = CachePadded::<L::Slot>::default();
        // SAFETY: the slot stays in place and is unlocked below.
        unsafe { lock.lock(&slot) };
        // SAFETY: taken above with this slot.
        unsafe { lock.unlock(&slot) };
    })
}

fn shared<L: RawRwLock + Default>(threads: usize) -> (f64, f64) {
    let lock = CachePadded::new(L::default());
    cost(threads, || {
        let slot = CachePadded::<L::ReadSlot>::default();
        // SAFETY: the slot stays in place and is unlocked below.
        unsafe { lock.lock_shared(&slot) };
        // SAFETY: entered above with this slot.
        unsafe { lock.unlock_shared(&slot) };
    })
}

#[test]
fn hmcs_is_faster_than_mcs_on_two_sockets() {
    let (mcs, _) = exclusive::<McsLock>(128);
    let (hmcs, _) = exclusive::<HmcsLock<CpuBlocks<4, 64, 128>, 2, 32>>(128);
    println!("mcs {mcs:.0} ns, hmcs {hmcs:.0} ns");
    assert!(mcs >= 1.3 * hmcs, "mcs {mcs:.0} ns, hmcs {hmcs:.0} ns");
}

#[test]
fn hmcs_without_a_topology_is_not() {
    let (near, _) = exclusive::<HmcsLock<CpuBlocks<4, 64, 128>, 2, 32>>(128);
    let (blind, _) = exclusive::<HmcsLock<locks::OneGroup, 2, 32>>(128);
    assert!(blind >= 1.3 * near, "knowing {near:.0} ns, not knowing {blind:.0} ns");
}

#[test]
fn a_cohort_is_faster_than_its_local_lock_on_two_sockets() {
    let (mcs, _) = exclusive::<McsLock>(128);
    type Cohort = CohortLock<TtasLock<locks::Exponential>, McsLock, CpuBlocks<64, 64, 128>, 2>;
    let (cohort, _) = exclusive::<Cohort>(128);
    println!("mcs {mcs:.0} ns, cohort {cohort:.0} ns");
    assert!(mcs >= 1.3 * cohort, "mcs {mcs:.0} ns, cohort {cohort:.0} ns");
}

#[test]
fn a_cohort_hands_over_with_no_more_transfers_than_its_local_lock() {
    let (_, alone) = exclusive::<McsLock>(64);
    let (_, inside) = exclusive::<CohortLock<TicketLock, McsLock, locks::OneGroup, 1>>(64);
    println!("transfers: mcs {alone:.2}, in a cohort {inside:.2}");
    assert!(inside < alone + 0.5, "transfers: mcs {alone:.2}, in a cohort {inside:.2}");
}

#[test]
fn a_queue_hands_over_with_as_many_transfers_for_few_as_for_many() {
    let (few, many) = (exclusive::<McsLock>(16).1, exclusive::<McsLock>(64).1);
    assert!((few - many).abs() < 0.5, "16 threads {few:.2}, 64 threads {many:.2}");
    let (few, many) = (exclusive::<TicketLock>(16).1, exclusive::<TicketLock>(64).1);
    assert!(many > 2.0 * few, "a ticket lock broadcasts: {few:.2}, {many:.2}");
}

#[test]
fn waiters_that_know_their_place_look_more_seldom() {
    let (often, seldom) =
        (exclusive::<TicketLock>(64).1, exclusive::<ProportionalTicketLock>(64).1);
    assert!(often > 2.0 * seldom, "transfers: {often:.1}, {seldom:.1}");
    let (often, seldom) =
        (exclusive::<TtasLock>(64).1, exclusive::<TtasLock<locks::Exponential>>(64).1);
    assert!(often > 2.0 * seldom, "transfers: {often:.1}, {seldom:.1}");
}

#[test]
fn readers_with_places_of_their_own_transfer_nothing() {
    type BigReader = RwBigReaderLock<TicketLock, CpuBlocks<1, 1, 128>, 128>;
    let ((one_line, moved), (places, still)) = (shared::<RwSpinLock>(64), shared::<BigReader>(64));
    println!("one word {one_line:.1} ns, {moved:.2} transfers; places {places:.1} ns, {still:.2}");
    assert!(still < 0.2, "{still:.2} transfers a read");
    assert!(one_line > 10.0 * places, "{one_line:.1} ns, {places:.1} ns");
}

/// Which of two groups of four threads had the lock, acquisition by acquisition, while both had
/// not done with it.
fn groups_in_turn<L: RawLock + Default>() -> Vec<usize> {
    const CORES: [u32; 8] = [0, 1, 2, 3, 64, 65, 66, 67];
    let all = CORES.len() * ROUNDS as usize;
    let (lock, at) = (CachePadded::new(L::default()), AtomicUsize::new(0));
    let log: Vec<AtomicUsize> = (0..all).map(|_| AtomicUsize::new(0)).collect();
    let machine = Machine::named("epyc-7742-2s").unwrap();
    let simulation = Simulation::on(&machine).threads(CORES.len()).cores(&CORES);
    let visit = |thread: usize| {
        let slot = CachePadded::<L::Slot>::default();
        for _ in 0..ROUNDS {
            // SAFETY: the slot stays in place and is unlocked below.
            unsafe { lock.lock(&slot) };
            let place = at.load(Ordering::Relaxed);
            at.store(place + 1, Ordering::Relaxed);
            log[place].store(thread / 4, Ordering::Relaxed);
            // SAFETY: taken above with this slot.
            unsafe { lock.unlock(&slot) };
        }
    };
    simulation.start().unwrap().each(visit).unwrap();
    let log: Vec<usize> = log.into_iter().map(AtomicUsize::into_inner).collect();
    let done = |group| log.iter().rposition(|&one| one == group).unwrap();
    let (begin, end) = (log.iter().position(|&one| one != log[0]).unwrap(), done(0).min(done(1)));
    log[begin..end].to_vec()
}

#[test]
fn a_group_has_the_lock_as_often_in_a_row_as_it_may() {
    type Blocks = CpuBlocks<64, 64, 128>;
    type Cohort<const PASSES: u32> = CohortLock<TicketLock, McsLock, Blocks, 2, PASSES>;
    type Hmcs<const PASSES: u32> = HmcsLock<Blocks, 1, 2, PASSES>;
    let runs = |log: Vec<usize>| {
        let mut runs: Vec<usize> = log.chunk_by(|one, next| one == next).map(<[_]>::len).collect();
        runs.pop(); // the end of the log cut it off
        (runs.iter().copied().max().unwrap_or(0), runs.len())
    };
    for (name, at_most, (longest, changes)) in [
        ("cohort", 3, runs(groups_in_turn::<Cohort<3>>())),
        ("cohort", 8, runs(groups_in_turn::<Cohort<8>>())),
        ("hmcs", 3, runs(groups_in_turn::<Hmcs<3>>())),
        ("hmcs", 8, runs(groups_in_turn::<Hmcs<8>>())),
    ] {
        println!("{name}, at most {at_most}: {longest} in a row, {changes} changes");
        assert_eq!(longest, at_most, "{name}");
        assert!(changes > 10, "{name}: {changes}");
    }
}
