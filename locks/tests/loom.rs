//! Every interleaving that loom can tell apart, on the shipped files.
//!
//! The variants import `super::sync`; here that module is made of loom's types, so the same files
//! are compiled again without a cfg or a feature. The weakening of each ordering that these models
//! catch is listed by `scripts/mutants.sh`; what they cannot see stands in `survivors.toml`.

extern crate alloc;

use locks::contract;
use locks::hot;
/// Constructors are not const here.
mod array {
    macro_rules! array_of {
        ($value:expr; $n:expr) => {
            core::array::from_fn::<_, { $n }, _>(|_| $value)
        };
    }
    pub(super) use array_of;
}
mod topology {
    pub(super) use locks::Topology;

    loom::thread_local! {
        /// The number of the thread in its model, counted from 0.
        pub(super) static NUMBER: std::cell::Cell<usize> = std::cell::Cell::new(0);
    }

    /// The first thread is alone in its group, the others are together, on every level.
    #[derive(Default)]
    pub(super) struct ByThread;

    impl Topology for ByThread {
        fn group(&self, _level: usize) -> usize {
            NUMBER.with(|number| number.get().min(1))
        }
    }
}
/// For files whose threads load a word before they store to it: loom remembers the last access to
/// a word only, so that load hides another thread's earlier one, and loom never tries the store
/// before that. The remedy is a step in front of each load that changes nothing, orders nothing,
/// and counts as an access that depends on all others of its kind.
#[path = "."]
mod stepped {
    use crate::{array, contract, relax};

    mod sync {
        pub(super) use crate::sync::const_fn;

        pub(super) mod atomic {
            pub(in super::super) use loom::sync::atomic::{Ordering, fence};

            #[derive(Debug)]
            pub(in super::super) struct AtomicUsize {
                value: loom::sync::atomic::AtomicUsize,
                step: loom::sync::atomic::AtomicBool,
            }

            impl AtomicUsize {
                pub(in super::super) fn new(value: usize) -> Self {
                    Self {
                        value: loom::sync::atomic::AtomicUsize::new(value),
                        step: loom::sync::atomic::AtomicBool::new(false),
                    }
                }
                pub(in super::super) fn load(&self, order: Ordering) -> usize {
                    let relaxed = Ordering::Relaxed;
                    self.step.compare_exchange(true, true, relaxed, relaxed).unwrap_err();
                    self.value.load(order)
                }
                pub(in super::super) fn store(&self, value: usize, order: Ordering) {
                    self.value.store(value, order);
                }
            }
        }
    }

    #[path = "../src/seqlock.rs"]
    #[expect(dead_code, unreachable_pub, reason = "the models use a part of the file")]
    pub(super) mod seqlock;
}
/// Threads of a model are none, so a slot is made for each acquisition.
mod tls_slots {
    pub(super) fn take<S: Default>() -> Box<S> {
        Box::default()
    }
    pub(super) fn put_back<S>(slot: Box<S>) {
        drop(slot);
    }
}
mod sync {
    pub(super) mod atomic {
        pub(in super::super) use loom::sync::atomic::{
            AtomicPtr, AtomicU8, AtomicU32, AtomicUsize, Ordering, fence,
        };

        /// Loom orders a store and another thread's exchange only partly, so a waiter that swaps
        /// `true` into `true` for ever never meets the holder's `false`. Such a swap is modelled
        /// as the failed exchange that it is for everyone who looks at values; its orderings are
        /// the weaker for it, never the stronger.
        #[derive(Debug, Default)]
        pub(in super::super) struct AtomicBool(loom::sync::atomic::AtomicBool);

        impl AtomicBool {
            pub(in super::super) fn new(value: bool) -> Self {
                Self(loom::sync::atomic::AtomicBool::new(value))
            }
            pub(in super::super) fn load(&self, order: Ordering) -> bool {
                self.0.load(order)
            }
            pub(in super::super) fn store(&self, value: bool, order: Ordering) {
                self.0.store(value, order);
            }
            pub(in super::super) fn swap(&self, value: bool, order: Ordering) -> bool {
                match self.0.compare_exchange(!value, value, order, Ordering::Relaxed) {
                    Ok(old) | Err(old) => old,
                }
            }
        }
    }
    pub(super) mod cell {
        pub(in super::super) use loom::cell::UnsafeCell;
    }
    std::thread_local! {
        /// Looks left in this execution before its remaining branches are no longer explored.
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
    macro_rules! const_fn {
        ($($item:item)*) => { $($item)* };
    }
    pub(super) use const_fn;
}

#[path = "../src/anderson.rs"]
#[expect(unreachable_pub, reason = "the models use a part of the file")]
mod anderson;
#[path = "../src/backoff.rs"]
#[expect(unreachable_pub, reason = "the models use a part of the file")]
mod backoff;
#[path = "../src/barrier.rs"]
#[expect(unreachable_pub, reason = "the models use a part of the file")]
mod barrier;
#[path = "../src/barrier_dissemination.rs"]
#[expect(unreachable_pub, reason = "the models use a part of the file")]
mod barrier_dissemination;
#[path = "../src/clh.rs"]
#[expect(unreachable_pub, reason = "the models use a part of the file")]
mod clh;
#[path = "../src/cohort.rs"]
#[expect(dead_code, unreachable_pub, reason = "the models use a part of the file")]
mod cohort;
#[path = "../src/condvar.rs"]
#[expect(unreachable_pub, reason = "the models use a part of the file")]
mod condvar;
#[path = "../src/futex.rs"]
#[expect(unreachable_pub, reason = "the models use a part of the file")]
mod futex;
#[path = "../src/hmcs.rs"]
#[expect(dead_code, unreachable_pub, reason = "the models use a part of the file")]
mod hmcs;
#[path = "../src/lot.rs"]
#[expect(unreachable_pub, reason = "the models use a part of the file")]
mod lot;
#[path = "../src/mcs.rs"]
#[expect(unreachable_pub, reason = "the models use a part of the file")]
mod mcs;
#[path = "../src/mcs_k42.rs"]
#[expect(unreachable_pub, reason = "the models use a part of the file")]
mod mcs_k42;
#[path = "../src/mcs_park.rs"]
#[expect(unreachable_pub, reason = "the models use a part of the file")]
mod mcs_park;
#[path = "../src/mcs_try.rs"]
#[expect(unreachable_pub, reason = "the models use a part of the file")]
mod mcs_try;
#[path = "../src/once.rs"]
#[expect(dead_code, unreachable_pub, reason = "the models use a part of the file")]
mod once;
#[path = "../src/parker.rs"]
#[expect(unreachable_pub, reason = "the models use a part of the file")]
mod parker;
#[path = "../src/parking.rs"]
#[expect(unreachable_pub, reason = "the models use a part of the file")]
mod parking;
#[path = "../src/pooled.rs"]
#[expect(unreachable_pub, reason = "the models use a part of the file")]
mod pooled;
#[path = "../src/qspin.rs"]
#[expect(unreachable_pub, reason = "the models use a part of the file")]
mod qspin;
#[path = "../src/queue_node.rs"]
mod queue_node;
#[path = "../src/relax.rs"]
#[expect(unreachable_pub, reason = "the models use a part of the file")]
mod relax;
#[path = "../src/rw_big_reader.rs"]
#[expect(dead_code, unreachable_pub, reason = "the models use a part of the file")]
mod rw_big_reader;
#[path = "../src/rw_futex.rs"]
#[expect(dead_code, unreachable_pub, reason = "the models use a part of the file")]
mod rw_futex;
#[path = "../src/rw_phase_fair.rs"]
#[expect(unreachable_pub, reason = "the models use a part of the file")]
mod rw_phase_fair;
#[path = "../src/rw_spin.rs"]
#[expect(dead_code, unreachable_pub, reason = "the models use a part of the file")]
mod rw_spin;
#[path = "../src/semaphore.rs"]
#[expect(unreachable_pub, reason = "the models use a part of the file")]
mod semaphore;
#[path = "../src/tas.rs"]
#[expect(unreachable_pub, reason = "the models use a part of the file")]
mod tas;
#[path = "../src/tas_neighbour.rs"]
#[expect(dead_code, unreachable_pub, reason = "the models use a part of the file")]
mod tas_neighbour;
#[path = "../src/telling.rs"]
#[expect(dead_code, unreachable_pub, reason = "the models use a part of the file")]
mod telling;
#[path = "../src/ticket.rs"]
#[expect(unreachable_pub, reason = "the models use a part of the file")]
mod ticket;
#[path = "../src/ticket_park.rs"]
#[expect(dead_code, unreachable_pub, reason = "the models use a part of the file")]
mod ticket_park;
#[path = "../src/ticket_proportional.rs"]
#[expect(unreachable_pub, reason = "the models use a part of the file")]
mod ticket_proportional;
#[path = "../src/ticket_two_lines.rs"]
#[expect(unreachable_pub, reason = "the models use a part of the file")]
mod ticket_two_lines;
#[path = "../src/tls.rs"]
#[expect(unreachable_pub, reason = "the models use a part of the file")]
mod tls;
#[path = "../src/ttas.rs"]
#[expect(unreachable_pub, reason = "the models use a part of the file")]
mod ttas;

#[path = "loom/companions.rs"]
mod companions;
#[path = "loom/drivers.rs"]
mod drivers;

use drivers::{model, model_seqlock, model_shared, model_timed, model_try};

/// A futex made of loom's mutex and condition variable: looking and going to sleep are one step.
/// It neither wakes spuriously nor forgets, so a lost wake-up shows as a deadlock.
struct ModelFutex;

/// Where the models' parked threads are found.
struct ModelLot;

impl lot::Parking for ModelLot {
    type Parker = ModelFutex;

    fn lot() -> &'static lot::Lot<ModelFutex> {
        &LOT
    }
}

/// Two nodes, of which the threads after the first try the second first.
struct ModelNodes;

impl qspin::QueueNodes for ModelNodes {
    fn nodes() -> &'static [qspin::QueueNode] {
        &*NODES
    }
    fn begin() -> usize {
        topology::NUMBER.with(|number| number.get().min(1))
    }
}

/// One node: whoever comes second spins on the lock.
struct OneNode;

impl qspin::QueueNodes for OneNode {
    fn nodes() -> &'static [qspin::QueueNode] {
        &NODES[..1]
    }
    fn begin() -> usize {
        7
    }
}

loom::lazy_static! {
    static ref LOT: lot::Lot<ModelFutex> = lot::Lot::new();
    static ref NODES: [qspin::QueueNode; 2] = core::array::from_fn(|_| qspin::QueueNode::new());
    static ref SLEEPERS: (loom::sync::Mutex<Sleepers>, loom::sync::Condvar) =
        (loom::sync::Mutex::new(Sleepers::default()), loom::sync::Condvar::new());
}

/// Who sleeps on which word, first come first.
#[derive(Default)]
struct Sleepers {
    came: usize,
    asleep: Vec<(usize, usize)>,
}

// SAFETY: the word is compared under the mutex that `unpark_one` takes before it wakes.
unsafe impl parker::Parker for ModelFutex {
    fn park(word: &sync::atomic::AtomicU32, expected: u32) {
        let mut sleepers = SLEEPERS.0.lock().unwrap();
        if word.load(sync::atomic::Ordering::Relaxed) != expected {
            return;
        }
        sleepers.came += 1;
        let own = (core::ptr::from_ref(word).addr(), sleepers.came);
        sleepers.asleep.push(own);
        while sleepers.asleep.contains(&own) {
            sleepers = SLEEPERS.1.wait(sleepers).unwrap();
        }
    }
    fn unpark_one(word: *const sync::atomic::AtomicU32) {
        let mut sleepers = SLEEPERS.0.lock().unwrap();
        if let Some(first) = sleepers.asleep.iter().position(|&(at, _)| at == word.addr()) {
            sleepers.asleep.remove(first);
            SLEEPERS.1.notify_all();
        }
        drop(sleepers);
    }
    fn unpark_all(word: *const sync::atomic::AtomicU32) {
        let mut sleepers = SLEEPERS.0.lock().unwrap();
        sleepers.asleep.retain(|&(at, _)| at != word.addr());
        SLEEPERS.1.notify_all();
        drop(sleepers);
    }
}

// SAFETY: as for `Parker`; who is not woken while the others may run has waited too long, and is in
// the list no more.
unsafe impl parker::TimedParker for ModelFutex {
    type Instant = ();

    fn after(_patience: core::time::Duration) -> Option<()> {
        Some(())
    }
    fn park_until(word: &sync::atomic::AtomicU32, expected: u32, (): ()) -> bool {
        let mut sleepers = SLEEPERS.0.lock().unwrap();
        if word.load(sync::atomic::Ordering::Relaxed) != expected {
            return false;
        }
        sleepers.came += 1;
        let own = (core::ptr::from_ref(word).addr(), sleepers.came);
        sleepers.asleep.push(own);
        drop(sleepers);
        loom::thread::yield_now();
        let mut sleepers = SLEEPERS.0.lock().unwrap();
        let asleep = sleepers.asleep.iter().position(|&one| one == own);
        asleep.map(|nth| sleepers.asleep.remove(nth)).is_some()
    }
}

type Futex = futex::FutexLock<ModelFutex, 1>;
type TtasBackoff = ttas::TtasLock<backoff::Exponential<1>>;
type Anderson = anderson::AndersonLock<2>;
type Proportional = ticket_proportional::ProportionalTicketLock<relax::Spin>;
type CohortBoMcs = cohort::CohortLock<ttas::TtasLock, mcs::McsLock, topology::ByThread, 2, 2>;
type TellingTicket = telling::Telling<ticket::TicketLock>;
type CohortTicket = cohort::CohortLock<ticket::TicketLock, TellingTicket, topology::ByThread, 2, 2>;
type RwSpin = rw_spin::RwSpinLock;
type RwPhaseFair = rw_phase_fair::RwPhaseFairLock;
type RwBigReader = rw_big_reader::RwBigReaderLock<ticket::TicketLock, topology::ByThread, 2>;
type PooledMcs = pooled::Pooled<mcs::McsLock, 1>;
type TlsMcs = tls::Tls<mcs::McsLock>;
type QSpin = qspin::QSpinLock<ModelNodes>;
type QSpinQueue = qspin::QSpinLock<ModelNodes, false>;
type QSpinOneNode = qspin::QSpinLock<OneNode, false>;
type RwFutex = rw_futex::RwFutexLock<ModelFutex, 0>;
type TicketPark = ticket_park::TicketParkLock<ModelFutex, 2, 1>;
type McsPark = mcs_park::McsParkLock<ModelFutex, 1>;
type Parking = parking::ParkingLock<ModelLot, 0, 0>;
type ParkingFair = parking::ParkingLock<ModelLot, 1, 0>;
type Hmcs = hmcs::HmcsLock<topology::ByThread, 1, 2, 2>;
type HmcsTwoLevels = hmcs::HmcsLock<topology::ByThread, 2, 2, 1>;

macro_rules! models {
    ($($id:ident $lock:ty, three threads at $bound:expr $(, [$($try_lock:tt)+])?;)*) => { $( mod $id {
        use super::*;
        #[test]
        fn two_threads_twice() {
            model::<$lock>(concat!(stringify!($id), " twice"), 2, 2, Some(4));
        }
        #[test]
        fn three_threads() {
            model::<$lock>(concat!(stringify!($id), " once"), 3, 1, $bound);
        }
        try_model!($id $lock $(, $($try_lock)+)?);
    } )* };
}

macro_rules! try_model {
    ($id:ident $lock:ty) => {
        try_model!($id $lock, try_lock at None);
    };
    ($id:ident $lock:ty, try_lock at $bound:expr) => {
        #[test]
        fn lock_against_try_lock() {
            model_try::<$lock>(concat!(stringify!($id), " try_lock"), $bound);
        }
    };
}

macro_rules! timed_models {
    ($($id:ident $lock:ty, three threads at $bound:expr;)*) => { $( mod $id {
        use super::*;
        #[test]
        fn two_give_up() {
            model_timed::<$lock>(concat!(stringify!($id), " timed"), $bound);
        }
    } )* };
}

macro_rules! shared_models {
    ($($id:ident $lock:ty, three threads at $bound:expr;)*) => { $( mod $id {
        use super::*;
        #[test]
        fn writer_and_readers() {
            model_shared::<$lock>(concat!(stringify!($id), " shared"), $bound);
        }
    } )* };
}

mod models {
    use super::*;

    // One line a variant; the rows of the table that are missing here are named below, with reasons.
    models! {
        tas crate::tas::TasLock, three threads at Some(4);
        ttas crate::ttas::TtasLock, three threads at Some(4);
        ttas_backoff TtasBackoff, three threads at Some(4);
        ticket crate::ticket::TicketLock, three threads at Some(5);
        ticket_proportional Proportional, three threads at Some(5);
        ticket_two_lines crate::ticket_two_lines::TwoLineTicketLock, three threads at Some(5);
        anderson Anderson, three threads at Some(4);
        mcs crate::mcs::McsLock, three threads at Some(4);
        mcs_try crate::mcs_try::McsTryLock, three threads at Some(3);
        mcs_k42 crate::mcs_k42::K42Lock, three threads at Some(3), [try_lock at Some(4)];
        qspin QSpin, three threads at Some(3), [try_lock at Some(4)];
        clh crate::clh::ClhLock, three threads at Some(4);
        futex Futex, three threads at Some(3);
        rw_spin RwSpin, three threads at Some(3);
        rw_phase_fair RwPhaseFair, three threads at Some(3);
        rw_big_reader RwBigReader, three threads at Some(3);
        rw_futex RwFutex, three threads at Some(3), [try_lock at Some(3)];
        ticket_park TicketPark, three threads at Some(3);
        tas_neighbour crate::tas_neighbour::TasNeighbourLock, three threads at Some(4);
    }

    /// Rows whose files share the one with this name.
    mod queue_node {
        use super::*;
        models! {
            hmcs Hmcs, three threads at Some(3);
            mcs_park McsPark, three threads at Some(3), [try_lock at Some(4)];
        }
    }

    /// Without a pending waiter, so that three threads make a queue; and with too few nodes.
    mod qspin_queue {
        use super::*;
        models! {
            qspin QSpinQueue, three threads at Some(3), [try_lock at Some(4)];
        }
        #[test]
        fn too_few_nodes() {
            model::<QSpinOneNode>("qspin, one node", 3, 1, Some(2));
        }
    }

    /// A writer and two readers.
    mod shared {
        use super::*;
        shared_models! {
            rw_spin RwSpin, three threads at Some(2);
            rw_phase_fair RwPhaseFair, three threads at Some(2);
            rw_big_reader RwBigReader, three threads at Some(2);
            rw_futex RwFutex, three threads at Some(2);
        }
        mod rw_spin_prefers_readers {
            use super::*;
            #[test]
            fn writer_and_readers() {
                type Lock = crate::rw_spin::RwSpinLock<crate::rw_spin::PreferReaders>;
                model_shared::<Lock>("rw_spin, readers preferred", Some(2));
            }
        }
    }

    mod seqlock {
        use super::*;
        #[test]
        fn words_are_read_together() {
            model_seqlock("seqlock, one writer", 1, Some(3));
            model_seqlock("seqlock, two writers", 2, Some(1));
        }
    }

    /// An adapter: a lock, and no row.
    mod adapters {
        use super::*;
        models! {
            pooled PooledMcs, three threads at Some(3), [try_lock at Some(4)];
            tls TlsMcs, three threads at Some(3), [try_lock at Some(4)];
        }
    }

    /// Waiters that give up after two looks.
    mod timed {
        use super::*;
        timed_models! {
            ttas crate::ttas::TtasLock, three threads at Some(3);
            clh crate::clh::ClhLock, three threads at Some(3);
            mcs_try crate::mcs_try::McsTryLock, three threads at Some(2);
            futex Futex, three threads at Some(2);
        }
    }

    /// The table of sleepers, and the rows that use it.
    mod lot {
        use super::*;
        mod parking {
            use super::*;
            models! {
                parking Parking, three threads at Some(3), [try_lock at Some(3)];
                parking_fair ParkingFair, three threads at Some(3), [try_lock at Some(3)];
            }
        }
    }

    /// Two rows of one file, whose name the module has.
    mod cohort {
        use super::*;
        models! {
            cohort_bo_mcs CohortBoMcs, three threads at Some(3), [try_lock at Some(5)];
            cohort_ticket CohortTicket, three threads at Some(3);
        }
    }
}

/// Rows without a model: `null` has nothing to interleave.
const WITHOUT_A_MODEL: [&str; 1] = ["null"];

#[test]
fn hmcs_climbs_two_levels() {
    model::<HmcsTwoLevels>("hmcs, two levels", 3, 1, Some(2));
}

#[test]
fn no_row_is_missing() {
    macro_rules! ids {
        ($($id:ident => $lock:ty, $kind:ident;)*) => { [$(stringify!($id)),*] };
    }
    let here = include_str!("loom.rs");
    for id in locks::for_each_lock!(ids) {
        let line = format!("{id} ");
        let modelled = here
            .lines()
            .map(str::trim_start)
            .any(|text| text.starts_with(&line) && text.contains(", three threads at "));
        assert!(
            modelled != WITHOUT_A_MODEL.contains(&id),
            "{id}: add its line to models! in tests/loom.rs, or its reason"
        );
    }
}
