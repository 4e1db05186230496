//! Programs whose sharing is known, and what is said about their lines.

use core::hint::black_box;
use core::sync::atomic::{AtomicU64, Ordering};
use std::collections::BTreeMap;
use std::sync::{Mutex, mpsc};

use simulator::{
    Apart, ApartError, Error, HotLine, LineReport, Machine, Report, Sharing, Simulation, Wait,
};

#[global_allocator]
static HEAP: simulator::EngineHeap = simulator::EngineHeap;

/// A machine that fetches single lines.
const SINGLE: &str = "epyc-7742-2s";

/// A machine that fetches pairs of lines.
const PAIRS: &str = "xeon-8275cl-2s";

const ROUNDS: u64 = 200;

fn simulation(machine: &str, threads: usize) -> Simulation {
    Simulation::on(&Machine::named(machine).unwrap()).threads(threads).watch_lines(true)
}

fn run<R: Send>(
    simulation: Simulation,
    closure: impl Fn(usize) -> R + Sync,
) -> (Report<R>, LineReport) {
    let mut report = simulation.start().unwrap().each(closure).unwrap();
    let lines = report.lines.take().unwrap();
    (report, lines)
}

/// The line that holds a value.
fn line_of<'a, T>(lines: &'a LineReport, value: &T) -> &'a HotLine {
    let address = (&raw const *value).addr() as u64 & !63;
    lines.lines.iter().find(|line| line.address == address).unwrap()
}

/// A value in a pair of lines of its own.
#[repr(align(128))]
#[derive(Default)]
struct Own<T>(T);

#[repr(align(64))]
#[derive(Default)]
struct Line<T>(T);

fn count(counter: &AtomicU64) {
    for _ in 0..ROUNDS {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn two_counters_in_a_line_are_false_sharing_and_putting_them_apart_ends_it() {
    static COUNTERS: Own<[AtomicU64; 2]> = Own([AtomicU64::new(0), AtomicU64::new(0)]);
    let (report, lines) = run(simulation(SINGLE, 2), |thread| count(&COUNTERS.0[thread]));
    let hottest = &lines.lines[0];
    assert_eq!(hottest, line_of(&lines, &COUNTERS));
    assert_eq!(hottest.sharing, Sharing::False);
    assert_eq!(hottest.shared_bytes(), 0);
    assert_eq!(hottest.true_transfers, 0);
    assert!(hottest.object.contains("COUNTERS"), "{}", hottest.object);
    let [first, second] = hottest.cores[..] else { panic!("{:?}", hottest.cores) };
    assert_eq!((first.cpu, first.read, first.written), (0, 0xff, 0xff));
    assert_eq!((second.cpu, second.read, second.written), (1, 0xff00, 0xff00));
    assert_eq!((first.loads, first.stores), (ROUNDS, ROUNDS));
    let place = &hottest.places[0];
    assert!(place.line.as_ref().unwrap().contains("tests/lines.rs:"), "{place:?}");
    assert_eq!((place.loads, place.stores), (2 * ROUNDS, 2 * ROUNDS));
    let apart = hottest.apart.clone().unwrap();
    assert_eq!(apart.groups, [0xff00]);

    let what_if = simulation(SINGLE, 2).put_apart(&[apart]);
    let (better, lines) = run(what_if, |thread| count(&COUNTERS.0[thread]));
    let after = line_of(&lines, &COUNTERS);
    assert_eq!(better.total.instructions, report.total.instructions);
    assert!(after.transfers.total() * 5 <= hottest.transfers.total());
    assert!(better.total.time_ps < report.total.time_ps);
    // What was seen of the bytes is the same.
    assert_eq!((after.cores[1].written, after.cores[1].stores), (0xff00, ROUNDS));
}

#[test]
fn one_counter_is_true_sharing() {
    static COUNTER: Own<AtomicU64> = Own(AtomicU64::new(0));
    let (report, lines) = run(simulation(SINGLE, 4), |_| count(&COUNTER.0));
    let line = line_of(&lines, &COUNTER);
    assert_eq!(line, &lines.lines[0]);
    assert_eq!(line.sharing, Sharing::True);
    assert_eq!(line.shared_bytes(), 0xff);
    assert_eq!(line.true_transfers, line.transfers.total());
    assert_eq!(line.apart, None);
    assert_eq!(line.cores.len(), 4);
    assert!(line.transfers.total() <= report.total.transfers.total());
}

#[test]
fn counters_a_line_apart_share_a_pair_where_pairs_are_fetched() {
    static COUNTERS: Own<[Line<AtomicU64>; 2]> =
        Own([Line(AtomicU64::new(0)), Line(AtomicU64::new(0))]);
    for (machine, sharing) in [(PAIRS, Sharing::Pair), (SINGLE, Sharing::Private)] {
        let (_, lines) = run(simulation(machine, 2), |thread| count(&COUNTERS.0[thread].0));
        for counter in &COUNTERS.0 {
            let line = line_of(&lines, counter);
            assert_eq!(line.sharing, sharing, "{machine}");
            assert_eq!(line.cores.len(), 1);
            assert_eq!(line.apart, None);
        }
    }
}

#[test]
fn counters_a_pair_apart_are_private_everywhere() {
    static COUNTERS: [Own<AtomicU64>; 2] = [Own(AtomicU64::new(0)), Own(AtomicU64::new(0))];
    for machine in [PAIRS, SINGLE] {
        let (_, lines) = run(simulation(machine, 2), |thread| count(&COUNTERS[thread].0));
        for counter in &COUNTERS {
            assert_eq!(line_of(&lines, counter).sharing, Sharing::Private, "{machine}");
        }
    }
}

#[test]
fn a_table_that_nobody_writes_is_read_only() {
    static TABLE: Own<[u64; 8]> = Own([3; 8]);
    let (_, lines) = run(simulation(SINGLE, 3), |thread| black_box(&TABLE.0)[thread]);
    let line = line_of(&lines, &TABLE);
    assert_eq!(line.sharing, Sharing::ReadOnly);
    assert_eq!(line.cores.iter().map(|core| core.written).sum::<u64>(), 0);
}

#[test]
fn a_line_with_both_kinds_says_how_many_transfers_are_of_which() {
    static MIXED: Own<[AtomicU64; 4]> = Own([const { AtomicU64::new(0) }; 4]);
    let program = |thread: usize| {
        for _ in 0..ROUNDS {
            MIXED.0[0].fetch_add(1, Ordering::Relaxed);
            core::hint::spin_loop(); // or the line would still be there
            MIXED.0[1 + thread].fetch_add(1, Ordering::Relaxed);
        }
    };
    let (_, lines) = run(simulation(SINGLE, 3), program);
    let line = line_of(&lines, &MIXED);
    assert_eq!(line.sharing, Sharing::Mixed);
    assert_eq!(line.shared_bytes(), 0xff);
    assert!(line.true_transfers > 0 && line.true_transfers < line.transfers.total());
    let apart = line.apart.clone().unwrap();
    assert_eq!(apart.groups, [0xff00, 0xff_0000, 0xff00_0000]);
    let (_, lines) = run(simulation(SINGLE, 3).put_apart(&[apart]), program);
    let after = line_of(&lines, &MIXED);
    assert_eq!(after.sharing, Sharing::True, "what is left is for the bytes that are shared");
    assert_eq!(after.true_transfers, after.transfers.total());
}

/// Each thread lets a vector of its own grow from page to page until the kernel moves it, and hands
/// it on to its neighbour, who reads it.
#[test]
fn a_vector_that_moves_is_private_until_it_is_handed_on() {
    const WORDS: usize = 1 << 16;
    let grown = |start: usize| {
        let mut vector = Vec::new();
        for i in 0..WORDS {
            vector.push(black_box(start + i));
        }
        vector
    };
    let (report, lines) = run(simulation(SINGLE, 2), |thread| grown(thread).iter().sum::<usize>());
    assert_eq!(report.results.len(), 2);
    let shared = |line: &&HotLine| {
        !matches!(line.sharing, Sharing::Private | Sharing::ReadOnly)
            && line.object == "heap"
            && line.cores.iter().map(|core| core.stores).sum::<u64>() > 7
    };
    let words: u64 = lines.lines.iter().map(|line| line.accesses()).sum();
    assert!(words > 0);
    assert_eq!(lines.lines.iter().filter(shared).count(), 0, "{:#?}", lines.lines[0]);

    let (send, receive) = mpsc::channel();
    let (send, receive) = (Mutex::new(Some(send)), Mutex::new(receive));
    let (_, lines) = run(simulation(SINGLE, 2), |thread| match thread {
        0 => {
            let send = send.lock().unwrap().take().unwrap();
            let vector = grown(7);
            let place = vector.as_ptr().addr() as u64;
            send.send(vector).unwrap();
            place
        }
        _ => receive.lock().unwrap().recv().unwrap().iter().map(|&word| word as u64).sum(),
    });
    let handed: Vec<&HotLine> =
        lines.lines.iter().filter(|line| line.object == "heap" && line.transfer_ps > 0).collect();
    assert!(handed.len() > 100, "{}", handed.len());
    for line in handed.iter().filter(|line| line.cores.iter().all(|core| core.stores == 0)) {
        assert_eq!(line.sharing, Sharing::ReadOnly);
    }
    let true_sharing = handed.iter().filter(|line| line.sharing == Sharing::True).count();
    assert!(true_sharing > 100, "{true_sharing}");
}

/// Locks, channels, allocations, system calls, copies.
fn busy(thread: usize, map: &Mutex<BTreeMap<usize, Vec<u8>>>, send: &mpsc::Sender<usize>) {
    for i in 0..10 {
        let mut map = map.lock().unwrap();
        map.entry(i * thread % 7).or_default().extend(vec![thread as u8; 100 * i]);
        drop(map);
        send.send(i).unwrap();
        std::thread::yield_now();
    }
}

#[test]
fn every_transfer_and_every_wait_is_a_lines() {
    for (seed, threads, cores) in [(0, 1, 1), (3, 4, 4), (5, 9, 4)] {
        let cores: Vec<u32> = (0..cores).collect();
        let map = Mutex::new(BTreeMap::new());
        let (send, _receive) = mpsc::channel();
        let simulation = simulation(SINGLE, threads).cores(&cores).seed(seed);
        let (report, lines) = run(simulation, |thread| busy(thread, &map, &send.clone()));
        let sum = |of: &dyn Fn(&HotLine) -> u64| lines.lines.iter().map(of).sum::<u64>();
        let transfers = sum(&|line| line.transfers.total()) + lines.others.transfers;
        assert_eq!(transfers, report.total.transfers.total(), "seed {seed}");
        let stalls = sum(&|line| line.transfer_ps + line.memory_ps) + lines.others.stall_ps;
        assert_eq!(stalls, report.total.stall_ps, "seed {seed}");
        for line in &lines.lines {
            let transfers: u64 = line.cores.iter().map(|core| core.transfers).sum();
            assert_eq!(transfers, line.transfers.total());
            assert!(line.true_transfers <= transfers);
            let stall: u64 = line.cores.iter().map(|core| core.stall_ps).sum();
            assert_eq!(stall, line.transfer_ps + line.memory_ps);
        }
    }
}

#[test]
fn stacks_and_thread_locals_are_named() {
    std::thread_local! {
        static KEPT: AtomicU64 = const { AtomicU64::new(0) };
    }
    let (report, lines) = run(simulation(SINGLE, 2), |_| {
        let here = AtomicU64::new(0);
        count(black_box(&here));
        KEPT.with(count);
        let kept = KEPT.with(|kept| (&raw const *kept).addr());
        ((&raw const here).addr() as u64, kept as u64)
    });
    for (thread, (stack, kept)) in report.results.iter().enumerate() {
        let object = |address: u64| {
            let line = lines.lines.iter().find(|line| line.address == address & !63).unwrap();
            assert!(matches!(line.sharing, Sharing::Private), "{line:?}");
            line.object.clone()
        };
        assert_eq!(object(*stack), format!("stack of thread {thread}"));
        assert_eq!(object(*kept), format!("thread-local storage of thread {thread}"));
    }
}

static TRACED: Own<AtomicU64> = Own(AtomicU64::new(0));

#[inline(never)]
fn inner() {
    count(&TRACED.0);
    black_box(());
}

#[inline(never)]
fn outer() {
    inner();
    std::thread::sleep(std::time::Duration::from_micros(2));
    black_box(());
}

#[test]
fn waits_are_told_in_order_with_the_calls_that_led_there() {
    let (report, lines) = run(simulation(SINGLE, 3).trace(100_000), |_| outer());
    assert_eq!(lines.events_lost, 0);
    assert!(lines.events.is_sorted_by_key(|event| event.begin_ps));
    let sum = |which: &dyn Fn(&Wait) -> bool| {
        let events = lines.events.iter().filter(|event| which(&event.wait));
        events.map(|event| event.takes_ps).sum::<u64>()
    };
    let waits = sum(&|wait| matches!(wait, Wait::Line(_) | Wait::Memory(_)));
    assert_eq!(waits, report.total.stall_ps);
    assert_eq!(sum(&|wait| *wait == Wait::Idle), report.total.idle_ps);
    assert!(sum(&|wait| matches!(wait, Wait::Kernel(name) if name == "clock_nanosleep")) > 0);
    let last = lines.events.iter().map(|event| event.begin_ps + event.takes_ps).max();
    assert!(last <= Some(report.total.time_ps));
    let stalls: u64 = lines.stacks.iter().map(|stack| stack.stall_ps).sum();
    assert_eq!(stalls, report.total.stall_ps);
    let counted = lines.stacks.iter().filter(|stack| {
        let at = |name: &str| stack.functions.iter().position(|function| function.contains(name));
        matches!((at("outer"), at("inner")), (Some(outer), Some(inner)) if outer < inner)
    });
    let counted: u64 = counted.map(|stack| stack.stall_ps).sum();
    assert!(counted >= line_of(&lines, &TRACED).transfer_ps, "{:#?}", lines.stacks);

    let (_, lines) = run(simulation(SINGLE, 3).trace(10), |_| outer());
    assert_eq!(lines.events.len(), 10);
    assert!(lines.events_lost > 0);
}

#[test]
fn what_cannot_be_put_apart_is_refused() {
    let apart = Apart { line: 77, groups: vec![1] };
    let refused = simulation(SINGLE, 1).put_apart(&[apart]).start();
    assert!(matches!(refused, Err(Error::Apart(ApartError::NoLine(77)))), "{refused:?}");
}
