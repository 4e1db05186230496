//! Experiments on simulated cores, in this very process.
#![cfg(all(target_arch = "x86_64", target_os = "linux"))]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use harness::native::{Conditions, Experiment, Failure};
use harness::records::Metric;
use harness::simulated::{DEFAULT_MACHINE, Machine, Measured, Request, measure, measured, metrics};
use harness::spin::chain;
use harness::unavailable::Unavailable;
use harness::window::Work;
use harness::workload::{Memory, Workload};

#[global_allocator]
static HEAP: harness::simulated::EngineHeap = harness::simulated::EngineHeap;

/// Adds to a counter that all share.
struct Add {
    total: Arc<AtomicU64>,
    step: u64,
    think: u64,
}

impl Work for Add {
    #[inline(never)]
    fn batch(&mut self, ops: u64) -> u64 {
        for _ in 0..ops {
            self.total.fetch_add(self.step, Ordering::Relaxed);
            chain(self.think);
        }
        ops
    }
}

fn adding<const STEP: u64>(conditions: &Conditions) -> Result<Experiment, Unavailable> {
    let total = Arc::new(AtomicU64::new(0));
    let think = conditions.steps.steps(conditions.workload.think_ns);
    let work = |_| <dyn Work>::boxed(Add { total: total.clone(), step: STEP, think });
    Ok(Experiment {
        works: (0..conditions.threads()).map(work).collect(),
        granted: None,
        verify: Box::new(move |ops| {
            let (counted, done) = (total.load(Ordering::Relaxed), ops.iter().sum::<u64>());
            if counted != done {
                return Err(format!("{done} adds made {counted}"));
            }
            Ok(vec![
                ("bytes_per_object", Metric::Count { value: 8 }),
                ("huge_bytes", Metric::Count { value: 1 }),
            ])
        }),
    })
}

const OPS: u64 = 1000;

fn machine() -> Machine {
    Machine::named(DEFAULT_MACHINE).unwrap()
}

fn run(
    make: harness::native::Make,
    cores: &[u32],
    seed: u64,
    workload: &Workload,
) -> Result<Measured, Failure> {
    measure(make, &Request { machine: &machine(), cores, ops: OPS, seed, workload })
}

fn added(cores: &[u32], seed: u64) -> Measured {
    run(adding::<1>, cores, seed, &Workload::default()).unwrap()
}

fn reason(outcome: Result<Measured, Failure>) -> String {
    match outcome.unwrap_err() {
        Failure::Broken(reason) => reason,
        Failure::Unavailable(reason) => reason.to_string(),
    }
}

#[test]
fn one_thread_is_counted_to_the_instruction_and_several_do_not_dilute_it() {
    let alone = added(&[0], 1);
    assert_eq!((&alone.ops, alone.sums.rmw), (&vec![OPS], OPS));
    assert_eq!(alone.sums.memory_reads, 0);
    let of_one = alone.sums.instructions / OPS;
    assert_eq!(alone.sums.instructions, of_one * OPS);
    let many: Vec<u32> = (0..16).collect();
    let crowd = added(&many, 1);
    let ops: u64 = crowd.ops.iter().sum();
    // Who is near to the line comes first, within bounds.
    assert!(crowd.ops.iter().all(|ops| (800..=1200).contains(ops)), "{:?}", crowd.ops);
    // Nobody spins, so that an operation costs what it costs one thread, but for what is under way
    // when a window closes.
    let all = of_one * ops;
    assert!(crowd.sums.instructions.abs_diff(all) < all / 50, "{crowd:?}");
    let transfers = crowd.sums.same_l3 + crowd.sums.same_socket;
    // Who gets the line may keep it for a second operation.
    assert!((ops / 3..ops + ops / 10).contains(&transfers), "{crowd:?}");
    assert_eq!(crowd.sums.cross_socket, 0);
    assert!(crowd.sums.time_ps > 10 * alone.sums.time_ps);
    let facts: Vec<&str> = crowd.facts.keys().map(String::as_str).collect();
    assert_eq!(facts, ["bytes_per_object"], "what the host granted is no fact of a simulation");
}

#[test]
fn distance_costs_time_and_a_seed_chooses_the_interleaving() {
    let near = added(&[0, 1], 1);
    let far = added(&[0, 64], 1);
    assert!(far.sums.time_ps > 3 * near.sums.time_ps, "{near:?} {far:?}");
    assert!(far.sums.cross_socket > OPS / 3 && near.sums.cross_socket == 0);
    assert_eq!(added(&[0, 1, 2, 5], 7), added(&[0, 1, 2, 5], 7));
    // Two threads on one core take turns in time slices.
    let shared = added(&[3, 3], 1);
    assert_eq!(shared.sums.same_l3, 0);
}

#[test]
fn nanoseconds_of_work_last_as_long_on_the_simulated_machine() {
    let thinking = |think_ns| {
        let workload = Workload { think_ns, ..Workload::default() };
        let measured = run(adding::<1>, &[0], 1, &workload).unwrap();
        metrics(&measured, &machine(), 1.0)["ns_per_op"].value().unwrap()
    };
    let more = thinking(500) - thinking(0);
    // The loop is compiled into each experiment anew, and takes an instruction more or less.
    assert!((475.0..525.0).contains(&more), "{more}");
}

#[test]
fn what_breaks_a_promise_panics_or_cannot_be_had_is_a_reason() {
    let plain = Workload::default();
    let lost = reason(run(adding::<2>, &[0, 1], 1, &plain));
    assert!(lost.contains("adds made"), "{lost}");

    struct Panics;
    impl Work for Panics {
        fn batch(&mut self, _: u64) -> u64 {
            panic!("on purpose")
        }
    }
    // A backtrace would be looked up in simulated time, of which a point has little.
    std::panic::set_hook(Box::new(|panic| eprintln!("{panic}")));
    let panics = reason(run(|conditions| with(conditions, || Panics), &[0, 1], 1, &plain));
    assert!(panics.contains("on purpose"), "{panics}");

    let never = reason(run(|_| Err(Unavailable::new("never")), &[0], 1, &plain));
    assert_eq!(never, "never");
    let absent = Workload { memory: Memory::Node(99), ..plain.clone() };
    assert!(reason(run(adding::<1>, &[0], 1, &absent)).contains("node_absent"));
    let beyond = reason(run(adding::<1>, &[999], 1, &plain));
    assert!(beyond.contains("999"), "{beyond}");
}

/// An experiment that checks nothing.
fn with<W: Work + 'static>(
    conditions: &Conditions,
    work: impl Fn() -> W,
) -> Result<Experiment, Unavailable> {
    Ok(Experiment {
        works: (0..conditions.threads()).map(|_| <dyn Work>::boxed(work())).collect(),
        granted: None,
        verify: Box::new(|_| Ok(vec![])),
    })
}

#[test]
fn who_is_stuck_is_broken_and_who_is_starved_is_unavailable() {
    /// Waits for what never comes.
    struct Stuck(Arc<AtomicU64>);
    impl Work for Stuck {
        fn batch(&mut self, ops: u64) -> u64 {
            while self.0.load(Ordering::Relaxed) == 0 {
                std::hint::spin_loop();
            }
            ops
        }
    }
    fn never() -> Stuck {
        Stuck(Arc::new(AtomicU64::new(0)))
    }
    /// Never succeeds.
    struct Futile;
    impl Work for Futile {
        fn batch(&mut self, ops: u64) -> u64 {
            chain(ops * 1000);
            0
        }
    }
    let plain = Workload::default();
    let stuck = run(|conditions| with(conditions, never), &[0, 1], 1, &plain);
    assert!(matches!(&stuck, Err(Failure::Broken(_))), "{stuck:?}");
    let futile = run(|conditions| with(conditions, || Futile), &[0, 1], 1, &plain);
    assert!(reason(futile).starts_with("starved"), "others kept working");
}

#[test]
fn counts_of_n_and_of_2n_differ_by_those_of_n() {
    let [once, twice] = measured(&machine(), adding::<1>, &Workload::default(), 64).unwrap();
    assert_eq!(twice.rmw - once.rmw, 64);
    let alone = added(&[0], 1);
    assert_eq!((twice.instructions - once.instructions) * OPS, alone.sums.instructions * 64);
}
