//! What the time model must show without being told: the shapes that published measurements have.
//! Nothing here was fitted; the figures are those of the machine files.

use core::hint::{black_box, spin_loop};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use crossbeam_utils::CachePadded;
use simulator::machine::Distance;
use simulator::{Machine, Report, Simulation};

#[global_allocator]
static HEAP: simulator::EngineHeap = simulator::EngineHeap;

const ROME: &str = "epyc-7742-2s";
const ICE_LAKE: &str = "xeon-8375c-2s";

/// Operations of each thread.
const OPS: u64 = 200;

fn run(machine: &str, cores: &[u32], body: impl Fn(usize) + Sync) -> Report<()> {
    let machine = Machine::named(machine).unwrap();
    let simulation = Simulation::on(&machine).threads(cores.len()).cores(cores).seed(1);
    simulation.start().unwrap().each(body).unwrap()
}

fn first(cores: usize) -> Vec<u32> {
    (0..cores as u32).collect()
}

/// Picoseconds of all for an operation, while all are at work.
fn ps_per_op(report: &Report<()>, ops: u64) -> u64 {
    report.total.time_ps / ops
}

fn close(one: u64, other: u64, percent: u64) -> bool {
    one.abs_diff(other) * 100 <= percent * other
}

fn adds(machine: &str, cores: usize) -> u64 {
    let sum = CachePadded::new(AtomicU64::new(0));
    let report = run(machine, &first(cores), |_| {
        for _ in 0..OPS {
            black_box(sum.fetch_add(1, Ordering::Relaxed));
        }
    });
    let ops = OPS * cores as u64;
    assert_eq!(sum.load(Ordering::Relaxed), ops);
    ps_per_op(&report, ops)
}

/// A lock of the test's own: what is shown is the model's doing.
trait Lock: Default + Sync {
    fn lock(&self, thread: usize);
    fn unlock(&self, thread: usize);
}

#[derive(Default)]
struct TestAndSet(AtomicBool);

impl Lock for TestAndSet {
    fn lock(&self, _: usize) {
        while self.0.swap(true, Ordering::Acquire) {}
    }
    fn unlock(&self, _: usize) {
        self.0.store(false, Ordering::Release);
    }
}

#[derive(Default)]
struct TestTestAndSet(AtomicBool);

impl Lock for TestTestAndSet {
    fn lock(&self, _: usize) {
        while self.0.load(Ordering::Relaxed) || self.0.swap(true, Ordering::Acquire) {
            spin_loop();
        }
    }
    fn unlock(&self, _: usize) {
        self.0.store(false, Ordering::Release);
    }
}

#[derive(Default)]
struct Ticket {
    next: CachePadded<AtomicU32>,
    serving: CachePadded<AtomicU32>,
}

impl Lock for Ticket {
    fn lock(&self, _: usize) {
        let mine = self.next.fetch_add(1, Ordering::Relaxed);
        while self.serving.load(Ordering::Acquire) != mine {
            spin_loop();
        }
    }
    fn unlock(&self, _: usize) {
        let next = self.serving.load(Ordering::Relaxed) + 1;
        self.serving.store(next, Ordering::Release);
    }
}

/// The lock of Mellor-Crummey and Scott, with a node for each thread.
struct Mcs {
    tail: CachePadded<AtomicUsize>,
    nodes: Vec<CachePadded<(AtomicUsize, AtomicBool)>>,
}

const NOBODY: usize = usize::MAX;

impl Default for Mcs {
    fn default() -> Self {
        let node = || CachePadded::new((AtomicUsize::new(NOBODY), AtomicBool::new(false)));
        Self {
            tail: CachePadded::new(AtomicUsize::new(NOBODY)),
            nodes: (0..224).map(|_| node()).collect(),
        }
    }
}

impl Lock for Mcs {
    fn lock(&self, thread: usize) {
        let (next, waits) = &*self.nodes[thread];
        next.store(NOBODY, Ordering::Relaxed);
        waits.store(true, Ordering::Relaxed);
        let before = self.tail.swap(thread, Ordering::AcqRel);
        if before != NOBODY {
            self.nodes[before].0.store(thread, Ordering::Release);
            while waits.load(Ordering::Acquire) {
                spin_loop();
            }
        }
    }

    fn unlock(&self, thread: usize) {
        let next = &self.nodes[thread].0;
        if next.load(Ordering::Acquire) == NOBODY {
            let swapped =
                self.tail.compare_exchange(thread, NOBODY, Ordering::Release, Ordering::Relaxed);
            if swapped.is_ok() {
                return;
            }
            while next.load(Ordering::Acquire) == NOBODY {
                spin_loop();
            }
        }
        self.nodes[next.load(Ordering::Acquire)].1.store(false, Ordering::Release);
    }
}

/// Picoseconds from one holder to the next.
fn hand_offs<L: Lock>(machine: &str, cores: usize) -> u64 {
    let (report, ops) = episodes::<L>(machine, cores);
    ps_per_op(&report, ops)
}

/// Transfers for one acquisition with its release, and for the data that the lock guards.
fn transfers<L: Lock>(machine: &str, cores: usize) -> f64 {
    let (report, ops) = episodes::<L>(machine, cores);
    report.total.transfers.total() as f64 / ops as f64
}

fn episodes<L: Lock>(machine: &str, cores: usize) -> (Report<()>, u64) {
    let lock = L::default();
    let data = CachePadded::new(AtomicU64::new(0));
    let report = run(machine, &first(cores), |thread| {
        for _ in 0..OPS {
            lock.lock(thread);
            data.store(data.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
            lock.unlock(thread);
        }
    });
    let ops = OPS * cores as u64;
    assert_eq!(data.load(Ordering::Relaxed), ops);
    (report, ops)
}

#[test]
fn a_hand_off_moves_as_many_lines_as_its_lock_must() {
    // Swap of the tail, the predecessor's link, the own node again, the successor's flag, the
    // successor's read of it; and the data, to read and then to write.
    let mcs = [8, 16, 64].map(|cores| transfers::<Mcs>(ROME, cores));
    println!("transfers of an episode with 8, 16 and 64 cores: mcs {mcs:.2?}");
    assert!(mcs.iter().all(|&of_one| (6.5..=8.5).contains(&of_one)), "{mcs:?}");
    // An arrival and a release to write, each waiter's read; and the data, to read and to write.
    let ticket = [8, 16, 64].map(|cores| transfers::<Ticket>(ROME, cores));
    println!("ticket {ticket:.2?}");
    for (&of_one, waiters) in ticket.iter().zip([7.0, 15.0, 63.0]) {
        assert!(of_one > 0.75 * waiters && of_one < 5.0 + waiters, "{waiters} waiters: {of_one}");
    }
    // Every waiter asks to write, over and over: more with each.
    let tas = [8, 16, 64].map(|cores| transfers::<TestAndSet>(ROME, cores));
    println!("test-and-set {tas:.2?}");
    assert!(tas[0] < tas[1] && tas[1] < tas[2] && tas[2] > 2.0 * tas[0], "{tas:?}");
}

#[test]
fn a_stream_of_read_modify_writes_is_nearly_flat() {
    for machine in [ROME, "epyc-9654-2s", ICE_LAKE, "xeon-8176-8s", "graviton2"] {
        let [two, many] = [2, 64].map(|cores| adds(machine, cores));
        println!("{machine}: {two} ps at 2 cores, {many} at 64");
        assert!(many < 2 * two, "{machine}: {two} {many}");
    }
}

#[test]
fn queue_locks_step_at_borders_and_are_flat_between() {
    let at = |cores| hand_offs::<Mcs>(ROME, cores);
    let [group, beyond, most, all] = [4, 16, 64, 128].map(at);
    println!("mcs: {group} ps in a group, {beyond} and {most} in a socket, {all} in both");
    assert!(beyond > 3 * group / 2 && all > 6 * most / 5);
    assert!(close(beyond, most, 10));
    let at = |cores| hand_offs::<Mcs>("xeon-8176-8s", cores);
    let [few, socket, more, all] = [8, 28, 112, 224].map(at);
    println!("mcs: {few} ps and {socket} in a socket, {more} in four, {all} in eight");
    // Its few borders are crossed by few of the hand-offs: cores queue up in their order.
    assert!(close(few, socket, 10) && more > socket && close(more, all, 10));
}

#[test]
fn ticket_locks_step_at_borders_and_decline() {
    let at = |cores| hand_offs::<Ticket>(ROME, cores);
    let [group, beyond, many, all] = [4, 8, 64, 128].map(at);
    println!(
        "ticket: {group} ps in a group, {beyond} beyond it, {many} in a socket, {all} in both"
    );
    assert!(beyond > 2 * group && many > 2 * beyond && all > 3 * many / 2);
}

#[test]
fn test_and_set_collapses_across_sockets() {
    for (machine, socket, others) in [("xeon-8176-8s", 14, 112), (ROME, 8, 128)] {
        let [one, all] = [socket, others].map(|cores| hand_offs::<TestAndSet>(machine, cores));
        println!("test-and-set on {machine}: {one} ps with {socket} cores, {all} with {others}");
        assert!(all > 4 * one, "{machine}");
    }
}

#[test]
fn test_and_test_and_set_declines() {
    for machine in [ROME, "xeon-8176-8s", ICE_LAKE] {
        let at = [4, 16, 64].map(|cores| hand_offs::<TestTestAndSet>(machine, cores));
        println!("test and test-and-set on {machine}: {at:?} ps with 4, 16 and 64 cores");
        assert!(at[0] < at[1] && at[1] < at[2] && at[2] > 2 * at[0], "{machine}");
    }
}

/// Counters of so many bytes each, one for each thread; picoseconds of a thread for an increment.
fn counters<C: Sync + Default>(
    machine: &str,
    cores: usize,
    of: fn(&C) -> &AtomicU64,
) -> (u64, Report<()>) {
    let counters: Vec<C> = (0..cores).map(|_| C::default()).collect();
    let report = run(machine, &first(cores), |thread| {
        let counter = of(&counters[thread]);
        for _ in 0..25 * OPS {
            black_box(counter.fetch_add(1, Ordering::Relaxed));
            black_box(counter.fetch_add(1, Ordering::Relaxed));
        }
    });
    (report.total.time_ps / (50 * OPS), report)
}

#[derive(Default)]
#[repr(align(64))]
struct OneLine(AtomicU64);

#[derive(Default)]
#[repr(align(128))]
struct Pair(AtomicU64);

/// Two lines that are fetched together.
#[derive(Default)]
#[repr(align(128))]
struct Two([OneLine; 2]);

#[test]
fn packed_counters_cost_ten_times_as_much_as_padded_ones() {
    let (packed, _) = counters::<AtomicU64>(ROME, 64, |counter| counter);
    let (padded, report) = counters::<Pair>(ROME, 64, |counter| &counter.0);
    println!("packed {packed} ps, padded {padded} ps");
    assert!(packed > 10 * padded);
    // Nobody takes anything from anybody but when all begin.
    assert!(report.total.transfers.total() < 64 * 20, "{:?}", report.total.transfers);
}

#[test]
fn a_line_of_ones_own_is_not_enough_where_pairs_are_fetched() {
    let transfers = |report: &Report<()>| report.total.transfers.total();
    let (_, lines) = counters::<OneLine>(ROME, 16, |counter| &counter.0);
    let (_, pairs) = counters::<Pair>(ROME, 16, |counter| &counter.0);
    assert!(transfers(&lines) < 2 * transfers(&pairs), "pairs are not fetched");
    assert!(Machine::named(ICE_LAKE).unwrap().adjacent_line_prefetch());
    // Two counters, of which one is read by others all the time: each miss on it takes the right
    // to write the other half from its owner.
    let apart = |lines: usize| {
        let pairs: [Two; 2] = Default::default();
        let word = |line: usize| &pairs[line / 2].0[line % 2].0;
        let report = run(ICE_LAKE, &[0, 1, 2], |thread| {
            for _ in 0..OPS {
                match thread {
                    0 => black_box(word(0).fetch_add(1, Ordering::Relaxed)),
                    1 => black_box(word(0).load(Ordering::Relaxed)),
                    _ => black_box(word(lines).fetch_add(1, Ordering::Relaxed)),
                };
            }
        });
        report.cores[2].stall_ps
    };
    let (near, far) = (apart(1), apart(2));
    println!("beside a busy line: {near} ps of waits in a pair, {far} apart");
    assert!(near > 4 * far);
}

/// A ring of one producer and one consumer, half full of `lag` items at first; each computes so many
/// rounds beside an item. Transfers for an item.
fn ring(cached: bool, rounds: u64, lag: usize) -> f64 {
    const ITEMS: usize = 4_000;
    let size = (2 * lag).max(64);
    let slots: Vec<AtomicU64> = (0..size).map(|item| AtomicU64::new(item as u64)).collect();
    let head = CachePadded::new(AtomicUsize::new(0));
    let tail = CachePadded::new(AtomicUsize::new(lag));
    let report = run(ROME, &[0, 1], |thread| {
        let mut seen = 0;
        let first = if thread == 0 { lag } else { 0 };
        for i in first..first + ITEMS {
            for round in 0..rounds {
                black_box(round);
            }
            if thread == 0 {
                while !cached || i - seen == size {
                    seen = head.load(Ordering::Acquire);
                    if i - seen < size {
                        break;
                    }
                }
                slots[i % size].store(i as u64, Ordering::Relaxed);
                tail.store(i + 1, Ordering::Release);
            } else {
                while !cached || seen == i {
                    seen = tail.load(Ordering::Acquire);
                    if seen > i {
                        break;
                    }
                }
                assert_eq!(slots[i % size].load(Ordering::Relaxed), i as u64);
                head.store(i + 1, Ordering::Release);
            }
        }
    });
    report.total.transfers.total() as f64 / ITEMS as f64
}

#[test]
fn a_ring_that_remembers_indices_moves_fewer_lines() {
    let (plain, cached) = (ring(false, 0, 0), ring(true, 0, 0));
    println!("transfers for an item: {plain:.2}, with remembered indices {cached:.2}");
    assert!(plain > 2.0 && cached < plain / 2.0);
    // Neither full nor empty, each side reads the other's index and takes its own back for each
    // item; and the line of every eighth item is brought and taken back.
    let steady = ring(false, 400, 1000);
    println!("transfers for an item at a distance: {steady:.2}");
    assert!((4.0..=4.5).contains(&steady), "{steady}");
    // An index is asked for only when the ring seems full or empty, here for every 100th item, and
    // taken back; and every eighth item's line is brought and taken back: 4/100 + 2/8.
    let remembered = ring(true, 400, 100);
    println!("transfers for an item at a distance, with remembered indices: {remembered:.2}");
    assert!((0.2..=0.45).contains(&remembered), "{remembered}");
    // Where the consumer waits for each item, its line goes back and forth as well.
    let waits = ring(false, 400, 0);
    println!("transfers for an item waited for: {waits:.2}");
    assert!((4.5..=6.5).contains(&waits), "{waits}");
}

/// Two cores take turns; picoseconds from one to the other.
fn turns(machine: &str, cores: [u32; 2]) -> u64 {
    const TURNS: u64 = 400;
    let ball = CachePadded::new(AtomicU64::new(0));
    let report = run(machine, &cores, |thread| {
        for turn in 0..TURNS {
            let mine = 2 * turn + thread as u64;
            while ball
                .compare_exchange(mine, mine + 1, Ordering::AcqRel, Ordering::Relaxed)
                .is_err()
            {}
        }
    });
    report.total.time_ps / (2 * TURNS)
}

#[test]
fn the_model_gives_back_the_transfers_that_it_was_given() {
    for name in Machine::names() {
        let machine = Machine::named(name).unwrap();
        let mut seen = Vec::new();
        for other in 1..machine.cores() as u32 {
            let distance = machine.distance(0, other);
            if seen.contains(&distance) {
                continue;
            }
            seen.push(distance);
            let (given, got) = (machine.transfer_ps(distance), turns(name, [0, other]));
            println!("{name} {distance:?}: {given} ps given, {got} ps a turn");
            // What the two execute in between is in it.
            let share = if distance == Distance::Smt { machine.smt_share() } else { 1.0 };
            let executed = (2.0 * machine.instructions_ps(3) as f64 / share) as u64;
            assert!(got + executed > given && got < given + executed + given / 50, "{name}");
        }
        assert!(seen.contains(&Distance::SameL3));
    }
}

#[test]
fn an_owned_line_costs_what_the_file_says() {
    for name in Machine::names() {
        let machine = Machine::named(name).unwrap();
        let sum = CachePadded::new(AtomicU64::new(0));
        let time = |ops: u64| {
            let body = |_| {
                for _ in 0..ops {
                    black_box(sum.fetch_add(1, Ordering::Relaxed));
                }
            };
            run(name, &[0], body).total
        };
        let (some, more) = (time(1_000), time(2_000));
        let plain =
            machine.instructions_ps((more.instructions - some.instructions - 1_000) / 1_000);
        let of_one = (more.time_ps - some.time_ps) / 1_000;
        assert!(close(of_one, machine.rmw_owned_ps() + plain, 5), "{name}: {of_one} {plain}");
    }
}

#[test]
fn siblings_share_issue_slots_while_both_are_at_work() {
    let machine = Machine::named(ROME).unwrap();
    let share = machine.smt_share();
    // Rounds of the first and the second thread; the time of the first.
    let time = |cores: [u32; 2], rounds: [u64; 2]| {
        let report = run(ROME, &cores, |thread| {
            for round in 0..rounds[thread] {
                black_box(round.wrapping_mul(round));
            }
        });
        report.cores[0].time_ps as f64
    };
    let close = |one: f64, other: f64| (one / other - 1.0).abs() < 0.01;
    let alone = time([0, 1], [40_000, 40_000]);
    let beside = time([0, 128], [40_000, 40_000]);
    println!("{alone} ps on a core of its own, {beside} ps beside a sibling");
    assert!(close(beside, alone / share), "{beside} {alone}");
    // The sibling ends after a quarter, which took it longer.
    let half = time([0, 128], [40_000, 10_000]);
    let slower = alone / 4.0 / share + alone * 3.0 / 4.0;
    assert!(close(half, slower), "{half} {slower}");
    // A sibling that sleeps leaves the slots to the other.
    let awake = AtomicBool::new(false);
    let waits = std::sync::Mutex::new(false);
    let told = std::sync::Condvar::new();
    let report = run(ROME, &[0, 128], |thread| {
        if thread == 1 {
            let mut told_so = waits.lock().unwrap();
            awake.store(true, Ordering::Release);
            while !*told_so {
                told_so = told.wait(told_so).unwrap();
            }
            return;
        }
        while !awake.load(Ordering::Acquire) {
            spin_loop();
        }
        for round in 0..400_000_u64 {
            black_box(round.wrapping_mul(round));
        }
        *waits.lock().unwrap() = true;
        told.notify_one();
    });
    let asleep = report.cores[0].time_ps as f64;
    assert!(asleep < 1.1 * 10.0 * alone, "{asleep} {alone}");
}

#[test]
fn a_larger_table_is_slower_to_walk() {
    let machine = Machine::named(ROME).unwrap();
    let (l1, l2, l3) = (machine.l1(), machine.l2(), machine.l3());
    let walk = |bytes: usize| {
        let table = vec![1_u8; bytes];
        let rounds = |rounds: usize| {
            let body = |_| {
                for _ in 0..rounds {
                    for at in (0..bytes).step_by(64) {
                        black_box(table[at]);
                    }
                }
            };
            run(ROME, &[0], body).total.stall_ps
        };
        (rounds(3) - rounds(2)) / (bytes / 64) as u64
    };
    assert_eq!(walk(l1.bytes / 2), 0);
    assert!(close(walk(l2.bytes / 2), l2.hit_ps, 5));
    assert!(close(walk(l3.bytes / 2), l3.hit_ps, 5));
    let memory = walk(2 * l3.bytes);
    assert!(memory >= machine.memory_local_ps(), "{memory}");
}

#[test]
fn reads_of_another_nodes_memory_are_counted() {
    const BYTES: usize = 64 << 12;
    let machine = Machine::named(ROME).unwrap();
    let read = |cores: [u32; 2]| {
        let simulation = Simulation::on(&machine).threads(2).cores(&cores);
        let mut session = simulation.start().unwrap();
        // So much comes from the kernel: the first touch of a page decides where it lies.
        let made = session.once(|| {
            let mut table = vec![0_u8; 64 << 20];
            table[..BYTES].iter_mut().step_by(4096).for_each(|byte| *byte = 1);
            table
        });
        let table = made.unwrap().results.remove(0);
        let report = session.each(|thread| {
            for line in (0..BYTES).step_by(64).filter(|line| thread == 1 && line % 4096 > 64) {
                black_box(table[line]);
            }
        });
        report.unwrap().cores[1]
    };
    let (near, far) = (read([0, 1]), read([0, 64]));
    let lines = 64 * 62;
    assert_eq!(near.remote_reads, 0);
    assert!((lines..lines + 64).contains(&far.remote_reads), "{far:?}");
    assert!(far.memory_reads >= far.remote_reads);
    let longer = machine.memory_remote_ps() - machine.memory_local_ps();
    assert!(far.stall_ps > near.stall_ps + lines * longer / 2, "{far:?} {near:?}");
}

#[test]
fn what_has_left_its_writers_caches_comes_from_memory() {
    let machine = Machine::named(ROME).unwrap();
    let bytes = 2 * (machine.l2().bytes + machine.l3().bytes);
    let mut session = Simulation::on(&machine).threads(2).cores(&[0, 64]).start().unwrap();
    let table: Box<[AtomicU64]> = (0..bytes / 8).map(|_| AtomicU64::new(0)).collect();
    let walk = |end: usize, write: bool| {
        for word in table[..end / 8].iter().step_by(8) {
            match write {
                true => word.store(1, Ordering::Relaxed),
                false => drop(black_box(word.load(Ordering::Relaxed))),
            }
        }
    };
    let mut of = |thread: usize, end: usize, write: bool| {
        let report = session
            .each(|at| {
                if at == thread {
                    walk(end, write)
                }
            })
            .unwrap();
        report.cores[thread]
    };
    of(0, bytes, true);
    let read = of(1, bytes / 4, false);
    let lines = bytes as u64 / 4 / 64;
    assert!(read.memory_reads >= lines && read.transfers.total() < lines / 50, "{read:?}");
    of(0, 1 << 14, true);
    let read = of(1, 1 << 14, false);
    assert!(read.transfers.cross_socket >= 1 << 8, "{read:?}");
}
