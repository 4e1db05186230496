//! The index: dense slots, recycled at exit, honest beyond the bitmap.
#![cfg(feature = "std")]

use counters::{Counter, ShardIndex, ShardedCounter, Slots, TlsSlot};
use std::cell::RefCell;
use std::sync::{Barrier, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;

/// Slots are a matter of the process, so the tests that look at them take turns.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    assert_eq!(TlsSlot::taken(), 0, "somebody forgot to join a thread");
    turn
}

/// The slots of `threads` fresh threads that live at the same time, in ascending order.
fn slots_at_once(threads: usize) -> Vec<usize> {
    let barrier = std::sync::Arc::new(Barrier::new(threads));
    let threads: Vec<_> = (0..threads)
        .map(|_| {
            let barrier = std::sync::Arc::clone(&barrier);
            thread::spawn(move || {
                let slot = TlsSlot::current();
                barrier.wait();
                assert_eq!(TlsSlot::current(), slot, "a thread keeps its slot");
                assert!(TlsSlot::is_exclusive());
                slot
            })
        })
        .collect();
    // `join` returns after the destructors of thread-local values, which `scope` does not.
    let mut slots: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    slots.sort_unstable();
    slots
}

#[test]
fn fresh_threads_fill_the_shards_densely_again_and_again() {
    let _turn = alone();
    for threads in [64, 8, 64, 100, 64] {
        assert_eq!(slots_at_once(threads), Vec::from_iter(0..threads));
        assert_eq!(TlsSlot::taken(), 0, "all slots are free again");
    }
}

#[test]
fn sixty_four_threads_add_to_sixty_four_shards() {
    static COUNTER: ShardedCounter<64, TlsSlot> = ShardedCounter::new();
    let _turn = alone();
    let barrier: &Barrier = Box::leak(Box::new(Barrier::new(64)));
    let threads: Vec<_> = (0..64)
        .map(|_| {
            thread::spawn(move || {
                COUNTER.add(1);
                barrier.wait();
                COUNTER.add(1);
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let loads: Vec<i64> = (0..64).map(|shard| COUNTER.sum_at(shard)).collect();
    assert_eq!(loads, [2; 64]);
}

#[test]
fn short_threads_reuse_one_slot() {
    let _turn = alone();
    for _ in 0..1_000 {
        assert_eq!(thread::spawn(TlsSlot::current).join().unwrap(), 0);
    }
}

#[test]
fn a_panic_gives_the_slot_back() {
    let _turn = alone();
    let panicked = thread::spawn(|| {
        assert_eq!(TlsSlot::current(), 0);
        panic!("on purpose");
    });
    assert!(panicked.join().is_err());
    assert_eq!(TlsSlot::taken(), 0);
}

#[test]
fn after_exit_the_shard_is_zero_and_not_exclusive() {
    struct Report(mpsc::Sender<(usize, bool)>);
    impl Drop for Report {
        fn drop(&mut self) {
            self.0.send((TlsSlot::current(), TlsSlot::is_exclusive())).unwrap();
        }
    }
    thread_local! {
        static EARLY: RefCell<Option<Report>> = const { RefCell::new(None) };
        static LATE: RefCell<Option<Report>> = const { RefCell::new(None) };
    }
    let _turn = alone();
    let (sender, receiver) = mpsc::channel();
    let (has_slot, may_leave) = (Barrier::new(2), Barrier::new(2));
    thread::scope(|scope| {
        // Holds slot 0, so that a slot of one's own differs from shard 0.
        let holder = scope.spawn(|| {
            assert_eq!(TlsSlot::current(), 0);
            has_slot.wait();
            may_leave.wait();
        });
        has_slot.wait();
        let thread = thread::spawn(move || {
            EARLY.with(|report| report.replace(Some(Report(sender.clone()))));
            assert_eq!(TlsSlot::current(), 1);
            LATE.with(|report| report.replace(Some(Report(sender))));
        });
        thread.join().unwrap();
        may_leave.wait();
        holder.join().unwrap();
    });
    // One of the two destructors ran before the slot went back, the other one after.
    let mut reports: Vec<_> = receiver.iter().collect();
    reports.sort_unstable();
    assert_eq!(reports, [(0, false), (1, true)]);
}

#[test]
fn beyond_the_bitmap_numbers_are_shared_in_turn() {
    let slots = Slots::<1>::new();
    let all: Vec<_> = (0..64).map_while(|_| slots.claim()).collect();
    assert_eq!((all, slots.taken()), (Vec::from_iter(0..64), 64));
    assert_eq!(slots.claim(), None);
    let shared: Vec<_> = (0..128).map(|_| slots.share()).collect();
    assert_eq!(shared, Vec::from_iter((0..64).chain(0..64)), "evenly");
    slots.release(17);
    slots.release(63);
    assert_eq!([slots.claim(), slots.claim(), slots.claim()], [Some(17), Some(63), None]);
}

#[test]
fn more_threads_than_slots_keep_the_total() {
    static COUNTER: ShardedCounter<64, TlsSlot> = ShardedCounter::new();
    let _turn = alone();
    let threads = TlsSlot::CAPACITY + 6;
    let barrier: &Barrier = Box::leak(Box::new(Barrier::new(threads)));
    let threads: Vec<_> = (0..threads)
        .map(|_| {
            let body = move || {
                COUNTER.add(1);
                barrier.wait();
                (TlsSlot::current(), TlsSlot::is_exclusive())
            };
            thread::Builder::new().stack_size(1 << 16).spawn(body).expect("a thread")
        })
        .collect();
    let mut seen: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    seen.sort_unstable();
    let shared: Vec<_> = seen.iter().filter(|(_, exclusive)| !exclusive).collect();
    assert_eq!(shared.len(), 6);
    assert!(seen.iter().all(|&(slot, _)| slot < TlsSlot::CAPACITY));
    assert_eq!(COUNTER.sum(), seen.len() as i64);
    assert_eq!(TlsSlot::taken(), 0, "shared numbers are not given back");
}
