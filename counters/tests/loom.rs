//! Every interleaving that loom can tell apart, on the shipped files.
//!
//! The variants import `super::sync`; here that module is made of loom's types, so the same files
//! are compiled again without a cfg or a feature. Most of the shipped files hold no ordering that
//! could be weakened; the models show that none is needed.

use counters::contract;
use counters::hot;
mod sync {
    pub(super) mod atomic {
        pub(in super::super) use loom::sync::atomic::Ordering;

        /// Loom's atomics cannot be made in constants, as arrays of them are in the shipped
        /// files. These are made at the first access, which each model makes before it spawns.
        macro_rules! lazy {
            ($($name:ident of $value:ty: $($operation:ident($($n:ident)?))*;)*) => { $(
                #[derive(Debug)]
                pub(in super::super) struct $name {
                    initial: $value,
                    atomic: std::sync::OnceLock<loom::sync::atomic::$name>,
                }

                impl $name {
                    pub(in super::super) const fn new(initial: $value) -> Self {
                        Self { initial, atomic: std::sync::OnceLock::new() }
                    }
                    fn atomic(&self) -> &loom::sync::atomic::$name {
                        self.atomic
                            .get_or_init(|| loom::sync::atomic::$name::new(self.initial))
                    }
                    /// Makes the atomic, if it is not there yet.
                    pub(in super::super) fn touch(&self) {
                        self.atomic();
                    }
                    pub(in super::super) fn compare_exchange(
                        &self,
                        current: $value,
                        new: $value,
                        success: Ordering,
                        failure: Ordering,
                    ) -> Result<$value, $value> {
                        self.atomic().compare_exchange(current, new, success, failure)
                    }
                    $( pub(in super::super) fn $operation(
                        &self,
                        $($n: $value,)?
                        order: Ordering,
                    ) -> $value {
                        self.atomic().$operation($($n,)? order)
                    } )*
                }
            )* };
        }
        lazy! {
            AtomicI64 of i64: load() fetch_add(n) swap(n);
            AtomicUsize of usize: load() fetch_add(n) fetch_or(n) fetch_and(n);
        }

        impl AtomicI64 {
            pub(in super::super) fn store(&self, value: i64, order: Ordering) {
                self.atomic().store(value, order);
            }
        }
    }
    macro_rules! const_fn {
        ($($item:item)*) => { $($item)* };
    }
    pub(super) use const_fn;
    std::thread_local! {
        pub(super) static SPINS_LEFT: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
    }

    /// Each look at a word that did not change is a new branch, so an unbounded wait is an
    /// unbounded model: the shim bounds the looks of all threads of one execution together.
    pub(super) fn spin_loop() {
        SPINS_LEFT.with(|left| match left.get() {
            0 => loom::skip_branch(),
            some => left.set(some - 1),
        });
        loom::thread::yield_now();
    }
}

#[path = "../src/approximate.rs"]
#[expect(dead_code, unreachable_pub, reason = "the models use a part of the file")]
mod approximate;
#[path = "../src/atomic.rs"]
#[expect(unreachable_pub, reason = "the models use a part of the file")]
mod atomic;
#[path = "../src/batched.rs"]
#[expect(dead_code, unreachable_pub, reason = "the models use a part of the file")]
mod batched;
#[path = "../src/limit.rs"]
#[expect(dead_code, unreachable_pub, reason = "the models use a part of the file")]
mod limit;
#[path = "../src/lossy.rs"]
#[expect(unreachable_pub, reason = "the models use a part of the file")]
mod lossy;
#[path = "../src/packed.rs"]
#[expect(dead_code, unreachable_pub, reason = "the models use a part of the file")]
mod packed;
#[path = "../src/per_cpu.rs"]
#[expect(dead_code, unreachable_pub, reason = "the models use a part of the file")]
mod per_cpu;
#[path = "../src/per_node.rs"]
#[expect(dead_code, unreachable_pub, reason = "the models use a part of the file")]
mod per_node;
#[path = "../src/per_thread.rs"]
#[expect(dead_code, unreachable_pub, reason = "the models use a part of the file")]
mod per_thread;
#[path = "../src/sharded.rs"]
#[expect(unreachable_pub, reason = "the models use a part of the file")]
mod sharded;
#[path = "../src/slots.rs"]
#[expect(dead_code, unreachable_pub, reason = "the models use a part of the file")]
mod slots;
#[path = "../src/striped.rs"]
#[expect(dead_code, unreachable_pub, reason = "the models use a part of the file")]
mod striped;

#[path = "loom/companions.rs"]
mod companions;

use contract::{Counter, Drain, OwnPlace, PLACE_STRIDE, Reprobe, ShardIndex};
use hot::HotFields;
use loom::sync::Arc;
use loom::thread;
use std::cell::Cell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

loom::thread_local! {
    static SHARD: Cell<usize> = Cell::new(0);
    static PLACE: Cell<usize> = Cell::new(usize::MAX);
}

/// A slot that the model assigns, as a thread or the scheduler might have got it.
struct ModelSlot;

impl ModelSlot {
    /// Moves the thread to a shard, and to the place of that number, where nobody else may be.
    fn set(shard: usize) {
        SHARD.with(|slot| slot.set(shard));
        PLACE.with(|place| place.set(shard * PLACE_STRIDE));
    }
}

impl OwnPlace for ModelSlot {
    fn cached() -> usize {
        PLACE.with(Cell::get)
    }
    fn find() -> usize {
        Self::cached()
    }
}

/// Nobody else is on the CPU of a thread that was moved there; one that was not is interrupted.
impl per_cpu::AddOnCpu for ModelSlot {
    fn add(rows: &[per_cpu::CpuRow], n: i64) -> bool {
        let Some([word, ..]) = rows.get(Self::cached() / PLACE_STRIDE) else { return false };
        let old = word.load(Ordering::Relaxed);
        word.store(old.wrapping_add(n), Ordering::Relaxed);
        true
    }
}

impl Reprobe for ModelSlot {
    fn advance() -> usize {
        SHARD.with(|slot| {
            slot.set(slot.get() + 1);
            slot.get()
        })
    }
}

impl ShardIndex for ModelSlot {
    fn current() -> usize {
        SHARD.with(Cell::get)
    }
}

fn explore(
    name: &str,
    threads: u64,
    preemptions: Option<usize>,
    body: impl Fn() + Sync + Send + 'static,
) {
    let executions = std::sync::Arc::new(AtomicU64::new(0));
    let counted = std::sync::Arc::clone(&executions);
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = preemptions;
    builder.check(move || {
        counted.fetch_add(1, Ordering::Relaxed);
        sync::SPINS_LEFT.set(2);
        body();
    });
    let bound = preemptions.map_or("none".into(), |bound| bound.to_string());
    let executions = executions.load(Ordering::Relaxed);
    println!(
        "loom | {name} | threads {threads} | preemption bound {bound} | executions {executions}"
    );
    assert!(executions > 1, "nothing was explored");
}

/// Makes the counter and all its words.
fn fresh<C: Counter + HotFields + Default>() -> Arc<C> {
    let counter = touched(C::default());
    assert_eq!(counter.sum(), 0);
    counter
}

/// Makes all words of a counter.
fn touched<C: HotFields>(counter: C) -> Arc<C> {
    let counter = Arc::new(counter);
    let base = core::ptr::from_ref(&*counter).cast::<u8>();
    counter.hot_fields(&mut |field| {
        let word = base.with_addr(field.start);
        if field.is_cold() {
            return;
        }
        if field.name == "limit" {
            // No atomic.
        } else if field.name == "mask" {
            assert_eq!(field.bytes, size_of::<sync::atomic::AtomicUsize>());
            // SAFETY: a field of that type of the counter, which is alive.
            unsafe { &*word.cast::<sync::atomic::AtomicUsize>() }.touch();
        } else {
            assert_eq!(field.bytes, size_of::<sync::atomic::AtomicI64>(), "{}", field.name);
            // SAFETY: as above.
            unsafe { &*word.cast::<sync::atomic::AtomicI64>() }.touch();
        }
    });
    counter
}

/// Reads in a thread of its own that is the last to start. Loom does not try every place of a load
/// among the loads and stores of somebody else; but a load that runs late sees old values as well
/// as new ones, unless its thread has seen or yielded.
fn late<R: 'static>(read: impl FnOnce() -> R + 'static) -> R {
    thread::spawn(read).join().unwrap()
}

/// Runs `body` in a thread whose slot is `shard`.
fn spawn_at<R: 'static>(shard: usize, body: impl FnOnce() -> R + 'static) -> thread::JoinHandle<R> {
    thread::spawn(move || {
        ModelSlot::set(shard);
        body()
    })
}

/// Two adders, one in the reader's shard and one in another: the reader's sums do not fall, hold
/// its own add and never exceed the total, which is exact after the joins.
fn adds_against_sums<C: Counter + HotFields + Default + 'static>(
    name: &str,
    preemptions: Option<usize>,
) {
    explore(name, 3, preemptions, || {
        let counter = fresh::<C>();
        let adders: Vec<_> = [(0, 2), (1, 4)]
            .into_iter()
            .map(|(shard, n)| {
                let counter = Arc::clone(&counter);
                spawn_at(shard, move || counter.add(n))
            })
            .collect();
        let reader = Arc::clone(&counter);
        let (first, second) = late(move || {
            reader.add(1);
            (reader.sum(), reader.sum())
        });
        assert!(1 <= first && first <= second && second <= 7, "{first}, then {second}");
        adders.into_iter().for_each(|adder| adder.join().unwrap());
        assert_eq!(counter.sum(), 7);
    });
}

/// Two adders and two takers: each add is in exactly one take or in what is left, and no take gives
/// back what another took.
fn adds_against_takes<C: Counter + HotFields + Drain + Default + 'static>(
    name: &str,
    preemptions: Option<usize>,
) {
    explore(name, 3, preemptions, || {
        let counter = fresh::<C>();
        let adder = {
            let counter = Arc::clone(&counter);
            spawn_at(0, move || {
                counter.add(1);
                ModelSlot::set(1);
                counter.add(2);
            })
        };
        let taker = {
            let counter = Arc::clone(&counter);
            spawn_at(2, move || {
                counter.add(4);
                counter.take()
            })
        };
        let mine = counter.take();
        adder.join().unwrap();
        let theirs = taker.join().unwrap();
        assert!(mine >= 0 && theirs >= 0, "{mine}, {theirs}");
        let taken = mine + theirs + counter.take();
        // Every add is a bit of its own, so a bit that is twice or nowhere shows.
        assert_eq!(taken, 7);
        assert_eq!(counter.sum(), 0);
    });
}

/// A thread adds 1, moves to another shard and adds −1: whoever claims that a sum is one atomic
/// step never shows −1, and whoever does not claim it shows it somewhere.
fn a_sum_is_a_snapshot_if_it_says_so<C: Counter + HotFields + Default + 'static>(name: &str) {
    static NEGATIVE: Mutex<Vec<&str>> = Mutex::new(Vec::new());
    let id: &'static str = Box::leak(name.into());
    explore(name, 2, None, move || {
        let counter = fresh::<C>();
        let mover = {
            let counter = Arc::clone(&counter);
            spawn_at(0, move || {
                counter.add(1);
                ModelSlot::set(1);
                counter.add(-1);
            })
        };
        let reader = Arc::clone(&counter);
        if late(move || reader.sum()) < 0 {
            NEGATIVE.lock().unwrap().push(id);
        }
        mover.join().unwrap();
        assert_eq!(counter.sum(), 0);
    });
    assert_eq!(NEGATIVE.lock().unwrap().contains(&id), !C::PROPERTIES.linearizable);
}

macro_rules! models {
    ($($id:ident $counter:ty, at $bound:expr;)*) => { $( mod $id {
        use super::*;
        #[test]
        fn adds_and_sums() {
            adds_against_sums::<$counter>(concat!(stringify!($id), " add, sum"), $bound);
        }
        #[test]
        fn adds_and_takes() {
            adds_against_takes::<$counter>(concat!(stringify!($id), " add, take"), $bound);
        }
        #[test]
        fn snapshot() {
            a_sum_is_a_snapshot_if_it_says_so::<$counter>(concat!(stringify!($id), " snapshot"));
        }
    } )* };
}

mod models {
    use super::*;

    // One line a variant; the rows of the table that are missing here are named below, with reasons.
    models! {
        atomic crate::atomic::AtomicCounter, at None;
        sharded crate::sharded::ShardedCounter<2, ModelSlot>, at None;
        per_thread crate::per_thread::PerThreadCounter<2, ModelSlot>, at None;
        per_cpu crate::per_cpu::PerCpuCounter<2, ModelSlot>, at None;
        per_node crate::per_node::NodeCounter<2, ModelSlot>, at None;
        batched crate::batched::BatchedCounter<2, 2, ModelSlot>, at Some(3);
        striped crate::striped::StripedCounter<2, ModelSlot, 2>, at Some(2);
        packed crate::packed::PackedCounter<2, ModelSlot>, at None;
    }

    /// The estimate stays within its bound once the adds are over, and never exceeds the sum then.
    #[test]
    fn batched_estimates() {
        type Batched = crate::batched::BatchedCounter<2, 4, ModelSlot>;
        explore("batched estimate", 3, None, || {
            let counter = fresh::<Batched>();
            assert_eq!(counter.estimate(), 0);
            let others: Vec<_> = [(0, 3), (1, -2)]
                .into_iter()
                .map(|(shard, n)| {
                    let counter = Arc::clone(&counter);
                    spawn_at(shard, move || counter.add(n))
                })
                .collect();
            counter.add(6);
            others.into_iter().for_each(|other| other.join().unwrap());
            // The shards hold 9 and -2, rounded down to 8 and -4.
            assert_eq!((counter.sum(), counter.estimate(), counter.max_error()), (7, 4, 6));
            assert_eq!((counter.take(), counter.estimate()), (7, 0));
        });
    }

    /// From one cell on: who meets another grows the counter while others add and take.
    #[test]
    fn striped_grows() {
        type Striped = crate::striped::StripedCounter<2, ModelSlot>;
        adds_against_takes::<Striped>("striped, growing", Some(2));
        adds_against_sums::<Striped>("striped, growing, sum", Some(2));
    }

    /// A place changes hands through the registry: its next owner goes on from the last count.
    #[test]
    fn per_thread_places_change_hands() {
        type PerThread = crate::per_thread::PerThreadCounter<1, ModelSlot>;
        explore("per_thread, a place changes hands", 3, None, || {
            let shared = Arc::new((crate::slots::Slots::<1>::new(), PerThread::new()));
            assert_eq!((shared.0.taken(), shared.1.sum()), (0, 0));
            // All but one number are taken, so that all three threads want the same.
            (0..64).for_each(|number| assert_eq!(shared.0.claim(), Some(number)));
            shared.0.release(0);
            let visit = |shared: &(crate::slots::Slots<1>, PerThread), n: i64| {
                let Some(number) = shared.0.claim() else { return 0 };
                PLACE.with(|place| place.set(number * PLACE_STRIDE));
                shared.1.add(n);
                shared.0.release(number);
                n
            };
            let others: Vec<_> = [1, 2]
                .into_iter()
                .map(|n| {
                    let shared = Arc::clone(&shared);
                    thread::spawn(move || visit(&shared, n))
                })
                .collect();
            let mine = visit(&shared, 4);
            let theirs: i64 = others.into_iter().map(|other| other.join().unwrap()).sum();
            assert_eq!(shared.1.sum(), mine + theirs);
        });
    }

    /// A sum after a take of somebody else's is not below zero.
    fn sums_after_takes<C: Counter + HotFields + Drain + Default + 'static>(name: &str) {
        explore(name, 3, None, || {
            let counter = fresh::<C>();
            let adder = Arc::clone(&counter);
            let adder = spawn_at(0, move || adder.add(1));
            let taker = Arc::clone(&counter);
            let taker = spawn_at(1, move || taker.take());
            let reader = Arc::clone(&counter);
            let sum = late(move || reader.sum());
            assert!((0..=1).contains(&sum), "{sum}");
            adder.join().unwrap();
            assert_eq!(taker.join().unwrap() + counter.sum(), 1);
        });
    }

    /// Nor is a take after a take of somebody else's.
    fn takes_after_takes<C: Counter + HotFields + Drain + Default + 'static>(name: &str) {
        explore(name, 3, Some(3), || {
            let counter = fresh::<C>();
            let adder = Arc::clone(&counter);
            let adder = spawn_at(0, move || adder.add(1));
            let taker = Arc::clone(&counter);
            let taker = spawn_at(1, move || taker.take());
            let second = Arc::clone(&counter);
            let second = late(move || second.take());
            adder.join().unwrap();
            let first = taker.join().unwrap();
            assert!(first >= 0 && second >= 0, "{first}, {second}");
            assert_eq!(first + second + counter.sum(), 1);
        });
    }

    #[test]
    fn per_thread_after_takes() {
        type PerThread = crate::per_thread::PerThreadCounter<2, ModelSlot>;
        sums_after_takes::<PerThread>("per_thread sum, take");
        takes_after_takes::<PerThread>("per_thread take, take");
    }

    #[test]
    fn per_cpu_after_takes() {
        type PerCpu = crate::per_cpu::PerCpuCounter<2, ModelSlot>;
        sums_after_takes::<PerCpu>("per_cpu sum, take");
        takes_after_takes::<PerCpu>("per_cpu take, take");
    }

    /// The control loses an add in some interleaving.
    #[test]
    fn lossy_loses() {
        static LEAST: std::sync::atomic::AtomicI64 = std::sync::atomic::AtomicI64::new(2);
        explore("lossy", 2, None, || {
            let counter = fresh::<crate::lossy::LossyCounter>();
            let other = Arc::clone(&counter);
            let other = thread::spawn(move || other.add(1));
            counter.add(1);
            other.join().unwrap();
            LEAST.fetch_min(counter.sum(), Ordering::Relaxed);
        });
        assert_eq!(LEAST.load(Ordering::Relaxed), 1);
    }

    /// Without a row: the registry under `TlsSlot`, whose thread-local half stays with `std`'s
    /// thread-locals and their destructors and is tested in `tests/slots.rs`.
    mod slots {
        use super::*;

        type Slots = crate::slots::Slots<2>;

        struct Registry {
            slots: Slots,
            held: [AtomicBool; Slots::CAPACITY],
        }

        /// A registry of 128 slots of which only the first and the one at `free` are free.
        fn almost_full(free: usize) -> Arc<Registry> {
            let slots = Slots::new();
            assert_eq!(slots.taken(), 0);
            for slot in 0..Slots::CAPACITY {
                assert_eq!(slots.claim(), Some(slot));
            }
            slots.release(0);
            slots.release(free);
            Arc::new(Registry { slots, held: [const { AtomicBool::new(false) }; Slots::CAPACITY] })
        }

        /// Claims, holds and releases; nobody else may hold the same slot.
        fn visit(registry: &Registry) -> Option<usize> {
            let slot = registry.slots.claim()?;
            assert!(!registry.held[slot].swap(true, Ordering::SeqCst), "{slot} is held twice");
            thread::yield_now();
            registry.held[slot].store(false, Ordering::SeqCst);
            registry.slots.release(slot);
            Some(slot)
        }

        fn claims_and_releases(name: &str, free: usize) {
            explore(name, 3, Some(3), move || {
                let registry = almost_full(free);
                let others: Vec<_> = (0..2)
                    .map(|_| {
                        let registry = Arc::clone(&registry);
                        thread::spawn(move || visit(&registry))
                    })
                    .collect();
                let mine = visit(&registry);
                let theirs = others.into_iter().map(|other| other.join().unwrap());
                for slot in theirs.chain([mine]).flatten() {
                    assert!(slot == 0 || slot == free, "{slot} was not free");
                }
                assert_eq!(registry.slots.taken(), Slots::CAPACITY - 2);
                assert_eq!(registry.slots.claim(), Some(0), "the lowest after the joins");
                assert_eq!(registry.slots.claim(), Some(free));
                assert_eq!(registry.slots.claim(), None);
            });
        }

        #[test]
        fn in_one_word() {
            claims_and_releases("slots, one word", 1);
        }

        #[test]
        fn in_two_words() {
            claims_and_releases("slots, two words", 64);
        }
    }
}

/// Rows without a line in `models!`: `null` has nothing to interleave, `lossy` has a model of
/// its own.
const WITHOUT_A_MODEL: [&str; 2] = ["null", "lossy"];

#[test]
fn no_row_is_missing() {
    macro_rules! ids {
        ($($id:ident => $counter:ty, $kind:ident;)*) => { [$(stringify!($id)),*] };
    }
    let here = include_str!("loom.rs");
    for id in counters::for_each_counter!(ids) {
        let modelled = here.contains(&format!("\n        {id} crate::{id}::"));
        assert!(
            modelled != WITHOUT_A_MODEL.contains(&id),
            "{id}: add its line to models! in tests/loom.rs, or its reason"
        );
    }
}
