//! Every interleaving that loom can tell apart, on the shipped files.
//!
//! The variants import `super::sync`; here that module is made of loom's types, so the same files
//! are compiled again without a cfg or a feature. The shipped files hold no ordering that could be
//! weakened; the models show that none is needed.

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
    }
    macro_rules! const_fn {
        ($($item:item)*) => { $($item)* };
    }
    pub(super) use const_fn;
}

#[path = "../src/atomic.rs"]
#[expect(unreachable_pub, reason = "the models use a part of the file")]
mod atomic;
#[path = "../src/packed.rs"]
#[expect(dead_code, unreachable_pub, reason = "the models use a part of the file")]
mod packed;
#[path = "../src/sharded.rs"]
#[expect(dead_code, unreachable_pub, reason = "the models use a part of the file")]
mod sharded;
#[path = "../src/slots.rs"]
#[expect(dead_code, unreachable_pub, reason = "the models use a part of the file")]
mod slots;

use contract::{Counter, Drain, ShardIndex};
use loom::sync::Arc;
use loom::thread;
use std::cell::Cell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

loom::thread_local! {
    static SHARD: Cell<usize> = Cell::new(0);
}

/// A slot that the model assigns, as a thread or the scheduler might have got it.
struct ModelSlot;

impl ModelSlot {
    fn set(shard: usize) {
        SHARD.with(|slot| slot.set(shard));
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
fn fresh<C: Counter + Default>() -> Arc<C> {
    let counter = Arc::new(C::default());
    assert_eq!(counter.sum(), 0);
    counter
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
fn adds_against_sums<C: Counter + Default + 'static>(name: &str) {
    explore(name, 3, None, || {
        let counter = fresh::<C>();
        let adders: Vec<_> = [(0, 2), (1, 4)]
            .into_iter()
            .map(|(shard, n)| {
                let counter = Arc::clone(&counter);
                spawn_at(shard, move || counter.add(n))
            })
            .collect();
        counter.add(1);
        let (first, second) = (counter.sum(), counter.sum());
        assert!(1 <= first && first <= second && second <= 7, "{first}, then {second}");
        adders.into_iter().for_each(|adder| adder.join().unwrap());
        assert_eq!(counter.sum(), 7);
    });
}

/// Two adders and two takers: each add is in exactly one take or in what is left.
fn adds_against_takes<C: Counter + Drain + Default + 'static>(name: &str) {
    explore(name, 3, None, || {
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
            spawn_at(1, move || {
                counter.add(4);
                counter.take()
            })
        };
        let mine = counter.take();
        adder.join().unwrap();
        let taken = mine + taker.join().unwrap() + counter.take();
        // Every add is a bit of its own, so a bit that is twice or nowhere shows.
        assert_eq!(taken, 7);
        assert_eq!(counter.sum(), 0);
    });
}

/// A thread adds 1, moves to another shard and adds −1: whoever claims that a sum is one atomic
/// step never shows −1, and whoever does not claim it shows it somewhere.
fn a_sum_is_a_snapshot_if_it_says_so<C: Counter + Default + 'static>(name: &str) {
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
        if counter.sum() < 0 {
            NEGATIVE.lock().unwrap().push(id);
        }
        mover.join().unwrap();
        assert_eq!(counter.sum(), 0);
    });
    assert_eq!(NEGATIVE.lock().unwrap().contains(&id), !C::PROPERTIES.linearizable);
}

macro_rules! models {
    ($($id:ident $counter:ty;)*) => { $( mod $id {
        use super::*;
        #[test]
        fn adds_and_sums() {
            adds_against_sums::<$counter>(concat!(stringify!($id), " add, sum"));
        }
        #[test]
        fn adds_and_takes() {
            adds_against_takes::<$counter>(concat!(stringify!($id), " add, take"));
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
        atomic crate::atomic::AtomicCounter;
        sharded crate::sharded::ShardedCounter<2, ModelSlot>;
        packed crate::packed::PackedCounter<2, ModelSlot>;
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

/// Rows without a model: `null` has nothing to interleave.
const WITHOUT_A_MODEL: [&str; 1] = ["null"];

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
