//! Many elements at a time: what is reserved, committed in part, dropped or forgotten, and runs that
//! go in all or not at all. A ledger counts the drops of every element.

use queues::{Burst, Full, Inline, MpmcRingRte, SpscRingCached};
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

/// How often each element was dropped.
#[derive(Default)]
struct Ledger(RefCell<Vec<u32>>);

struct Counted<'l> {
    ledger: &'l Ledger,
    number: usize,
    panics: bool,
}

impl Ledger {
    fn made(&self, panics: bool) -> Counted<'_> {
        let mut drops = self.0.borrow_mut();
        drops.push(0);
        Counted { ledger: self, number: drops.len() - 1, panics }
    }

    fn element(&self) -> Counted<'_> {
        self.made(false)
    }

    fn drops(&self) -> Vec<u32> {
        self.0.borrow().clone()
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.ledger.0.borrow_mut()[self.number] += 1;
        assert!(!self.panics, "boom");
    }
}

type Ring<T> = SpscRingCached<T, Inline<5>>;

/// Every slot to start at, number of slots reserved, filled and committed: what was committed comes
/// out in order, the rest is dropped once, and the slots can be used again.
#[test]
fn reservations_are_committed_in_part() {
    for (start, room) in (0..5).flat_map(|start| (0..=5).map(move |room| (start, room))) {
        for (filled, most) in (0..=room).flat_map(|f| (0..=f + 1).map(move |most| (f, most))) {
            let what = format!("from {start}: {room} reserved, {filled} filled, {most} committed");
            let ledger = Ledger::default();
            let mut ring = Ring::starting_at(5, 0, start).unwrap();
            let (mut producer, mut consumer) = ring.split();
            let mut reserved = producer.reserve(room).expect("an empty ring has room");
            for _ in 0..filled {
                assert!(reserved.push(ledger.element()).is_ok(), "{what}");
            }
            assert_eq!((reserved.len(), reserved.room()), (filled, room - filled), "{what}");
            if filled == room {
                assert!(reserved.push(ledger.element()).is_err(), "{what}");
            }
            let committed = most.min(filled);
            assert_eq!(reserved.commit_first(most), committed, "{what}");
            let left = |drops: Vec<u32>| drops[..committed].iter().sum::<u32>();
            assert_eq!(left(ledger.drops()), 0, "{what}: dropped although committed");
            assert!(ledger.drops()[committed..].iter().all(|&drops| drops == 1), "{what}");
            for number in 0..committed {
                assert_eq!(consumer.try_pop().map(|it| it.number), Some(number), "{what}");
            }
            assert!(consumer.try_pop().is_none(), "{what}");
            assert_eq!(producer.reserve_up_to(9).room(), 5, "{what}: all slots are vacant again");
            assert!(ledger.drops().iter().all(|&drops| drops == 1), "{what}");
        }
    }
}

#[test]
fn reservations_that_are_dropped_or_forgotten_change_nothing() {
    let ledger = Ledger::default();
    let mut ring = Ring::<Counted<'_>>::new();
    let (mut producer, mut consumer) = ring.split();
    assert!(producer.try_push(ledger.element()).is_ok());
    let mut dropped = producer.reserve(4).unwrap();
    assert!(dropped.push(ledger.element()).is_ok());
    drop(dropped);
    assert_eq!(ledger.drops(), [0, 1]);
    let mut forgotten = producer.reserve(4).unwrap();
    assert!(forgotten.push(ledger.element()).is_ok());
    std::mem::forget(forgotten);
    assert_eq!(ledger.drops(), [0, 1, 0], "a forgotten element is never dropped");
    assert!(producer.reserve(5).is_none(), "one slot is taken");
    assert_eq!(producer.reserve(4).unwrap().room(), 4);
    assert_eq!(consumer.ready_up_to(9).len(), 1);
    let _unused = consumer.ready(1); // it ends here and releases nothing
    assert!(consumer.ready(2).is_none());
    assert_eq!(consumer.try_pop().map(|it| it.number), Some(0), "and once only");
    assert!(consumer.try_pop().is_none());
    drop(ring);
    assert_eq!(ledger.drops(), [1, 1, 0]);
}

#[test]
fn what_is_released_is_dropped_once_also_when_a_drop_panics() {
    for bomb in 0..4 {
        let ledger = Ledger::default();
        let mut ring = Ring::<Counted<'_>>::starting_at(5, 1, 3).unwrap();
        let (mut producer, mut consumer) = ring.split();
        for number in 0..5 {
            assert!(producer.try_push(ledger.made(number == bomb)).is_ok());
        }
        let ready = consumer.ready_up_to(4);
        assert_eq!(ready.get(3).map(|it| it.number), Some(3));
        assert!(ready.get(4).is_none(), "not asked for");
        let (first, second) = ready.as_slices();
        let numbers: Vec<_> = first.iter().chain(second).map(|it| it.number).collect();
        assert_eq!((first.len(), numbers), (2, vec![0, 1, 2, 3]));
        catch_unwind(AssertUnwindSafe(|| ready.release(4))).expect_err("the bomb");
        assert_eq!(ledger.drops(), [1, 1, 1, 1, 0], "bomb {bomb}");
        assert_eq!(producer.reserve_up_to(9).room(), 4, "the slots came back");
        assert_eq!(consumer.try_pop().map(|it| it.number), Some(4));
    }
    let ledger = Ledger::default();
    let mut ring = Ring::<Counted<'_>>::new();
    let (mut producer, mut consumer) = ring.split();
    let mut reserved = producer.reserve(3).unwrap();
    for number in 0..3 {
        assert!(reserved.push(ledger.made(number == 1)).is_ok());
    }
    catch_unwind(AssertUnwindSafe(|| reserved.commit_first(1))).expect_err("the bomb");
    assert_eq!((ledger.drops(), consumer.ready_up_to(9).len()), (vec![0, 1, 1], 1));
}

#[test]
fn slices_of_copies_go_round_the_ring() {
    let mut ring = Ring::<u64>::new();
    let (mut producer, mut consumer) = ring.split();
    let (mut next, mut expected) = (0, 0);
    for round in 0..40 {
        let values: Vec<u64> = (next..next + 1 + round % 6).collect();
        let mut reserved = producer.reserve_up_to(5);
        let (one, other) = reserved.vacant_mut();
        let vacant = one.len() + other.len();
        let copied = reserved.copy_from(&values);
        assert_eq!(copied, values.len().min(vacant), "round {round}");
        assert_eq!(reserved.commit(), copied);
        next += copied as u64;
        let ready = consumer.ready_up_to(1 + round as usize % 4);
        let (one, other) = ready.as_slices();
        for value in one.iter().chain(other) {
            assert_eq!(*value, expected, "round {round}");
            expected += 1;
        }
        let all = ready.len();
        assert_eq!(ready.release(usize::MAX), all);
    }
    assert!(expected > 40);
}

#[test]
fn elements_without_bytes_are_reserved_and_released() {
    let mut ring = Ring::<()>::new();
    let (mut producer, mut consumer) = ring.split();
    for _ in 0..4 {
        let mut reserved = producer.reserve(3).unwrap();
        assert_eq!(reserved.copy_from(&[(); 4]), 3);
        assert_eq!(reserved.commit_first(2), 2);
        let ready = consumer.ready(2).unwrap();
        let (one, other) = ready.as_slices();
        assert_eq!(one.len() + other.len(), 2);
        assert_eq!(ready.release(2), 2);
    }
}

#[test]
#[should_panic(expected = "2 slots were not reserved")]
fn no_more_is_assumed_than_was_reserved() {
    let mut ring = Ring::<u8>::new();
    let mut producer = ring.split().0;
    let mut reserved = producer.reserve(1).unwrap();
    // SAFETY: it panics before anything is assumed.
    unsafe { reserved.assume_filled(2) };
}

#[test]
fn bulk_is_all_or_nothing_and_bursts_are_what_fits() {
    for (lap, index) in [(0, 0), (usize::MAX, 3), (usize::MAX, 7)] {
        let ring = MpmcRingRte::<u32, Inline<8>>::starting_at(5, lap, index).unwrap();
        assert_eq!(ring.pop_bulk::<1>(), None);
        assert_eq!(ring.pop_burst::<3>().len(), 0);
        assert_eq!(ring.push_bulk([0, 1, 2]), Ok(()));
        assert_eq!(ring.push_bulk([3, 4, 5]), Err(Full([3, 4, 5])));
        assert_eq!(ring.push_bulk([0; 6]), Err(Full([0; 6])), "more than the capacity");
        assert_eq!((ring.push_bulk([]), ring.pop_bulk()), (Ok(()), Some([])));
        let mut burst = Burst::from([3, 4, 5, 6]);
        assert_eq!((ring.push_burst(&mut burst), burst.len()), (2, 2));
        assert_eq!((ring.push_burst(&mut burst), ring.try_push(9)), (0, Err(Full(9))));
        assert_eq!(ring.pop_bulk::<6>(), None, "fewer are there");
        assert_eq!(ring.pop_bulk(), Some([0, 1]));
        assert_eq!(ring.pop_burst::<2>().collect::<Vec<_>>(), [2, 3]);
        assert_eq!((ring.push_burst(&mut burst), burst.next()), (2, None));
        assert_eq!(ring.pop_burst::<9>().into_array().unwrap_err().collect::<Vec<_>>(), [4, 5, 6]);
    }
}

#[test]
fn bursts_drop_what_nobody_took_once() {
    let ledger = Ledger::default();
    let ring = MpmcRingRte::<Counted<'_>, Inline<4>>::new();
    let mut burst = Burst::from([(); 6].map(|()| ledger.element()));
    assert_eq!(ring.push_burst(&mut burst), 4);
    assert_eq!(burst.next().map(|it| it.number), Some(4));
    drop(burst);
    assert_eq!(ledger.drops(), [0, 0, 0, 0, 1, 1]);
    let mut popped = ring.pop_burst::<3>();
    drop(popped.next());
    assert_eq!(ledger.drops(), [1, 0, 0, 0, 1, 1]);
    drop(popped);
    assert_eq!(ledger.drops(), [1, 1, 1, 0, 1, 1]);
    drop(ring);
    assert_eq!(ledger.drops(), [1, 1, 1, 1, 1, 1]);
    let bombs = Burst::from([0, 1, 2].map(|number| ledger.made(number == 0)));
    catch_unwind(AssertUnwindSafe(|| drop(bombs))).expect_err("the bomb");
    assert_eq!(ledger.drops()[6..], [1, 1, 1]);
}

/// Producers push runs of three, consumers pop runs of up to four: runs stay together, and nothing is
/// lost or doubled.
#[test]
fn runs_of_many_threads_stay_together() {
    const RUNS: u64 = 2_000;
    let ring = MpmcRingRte::<u64, Inline<8>>::new();
    let left = &AtomicU64::new(2 * RUNS * 3);
    let popped: Vec<Vec<u64>> = std::thread::scope(|scope| {
        for who in 0..2 {
            let ring = &ring;
            scope.spawn(move || {
                for run in 0..RUNS {
                    let first = (who * RUNS + run) * 3;
                    while ring.push_bulk([first, first + 1, first + 2]).is_err() {
                        std::thread::yield_now();
                    }
                }
            });
        }
        let popping: Vec<_> = (0..2)
            .map(|_| {
                let ring = &ring;
                scope.spawn(move || {
                    let mut popped = Vec::new();
                    while left.load(Ordering::Relaxed) > 0 {
                        let burst = ring.pop_burst::<4>();
                        left.fetch_sub(burst.len() as u64, Ordering::Relaxed);
                        if burst.len() == 0 {
                            std::thread::yield_now();
                        }
                        popped.extend(burst);
                    }
                    popped
                })
            })
            .collect();
        popping.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for history in &popped {
        for who in 0..2 {
            let of_one = history.iter().filter(|&&value| value / (3 * RUNS) == who);
            assert!(of_one.is_sorted(), "a producer was overtaken");
        }
    }
    let mut all: Vec<u64> = popped.into_iter().flatten().collect();
    all.sort_unstable();
    assert!(all.into_iter().eq(0..2 * RUNS * 3), "each once");
}
