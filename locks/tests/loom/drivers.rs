//! What the threads of a model do, and what must hold afterwards.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use loom::cell::UnsafeCell;

use crate::contract::{RawLock, RawRwLock, Timed, TryLock};
use crate::stepped::seqlock;
use crate::{sync, ticket, topology};

/// Looks at unchanged words that one execution may make in all before its branches end.
const SPINS: u32 = 4;

/// Adds one to a plain cell under the lock; loom reports a race if two are inside or if a holder
/// does not see the last one's writes.
fn visit<L: RawLock>(shared: &(L, UnsafeCell<u64>), slot: &L::Slot) {
    // SAFETY: each slot is a local of its thread and is unlocked below.
    unsafe { shared.0.lock(slot) };
    // SAFETY: the lock is held; loom checks that claim.
    shared.1.with_mut(|value| unsafe { *value += 1 });
    // SAFETY: taken above with this slot.
    unsafe { shared.0.unlock(slot) };
}

/// `threads` threads (the main one among them) take the lock `rounds` times each, with one slot.
pub(super) fn model<L: RawLock + Default + 'static>(
    name: &str,
    threads: u64,
    rounds: u64,
    preemptions: Option<usize>,
) {
    let make = || loom::sync::Arc::new((L::default(), UnsafeCell::new(0)));
    let run = move |shared: &(L, UnsafeCell<u64>), number: usize| {
        topology::NUMBER.with(|own| own.set(number));
        let slot = L::Slot::default();
        for _ in 0..rounds {
            visit(shared, &slot);
        }
    };
    explore_alike(name, threads as usize, preemptions, make, run, move |shared| {
        // SAFETY: all threads have ended.
        assert_eq!(shared.1.with(|value| unsafe { *value }), threads * rounds);
    });
}

/// Tries once, then locks: a slot is free again after success and after failure. Whether the first
/// attempt succeeded.
fn try_and_visit<L: TryLock>(shared: &(L, UnsafeCell<u64>)) -> bool {
    let slot = L::Slot::default();
    // SAFETY: the slot is a local and is unlocked below if it was taken.
    let taken = unsafe { shared.0.try_lock(&slot) };
    if taken {
        // SAFETY: the lock is held; loom checks that claim.
        shared.1.with_mut(|value| unsafe { *value += 1 });
        // SAFETY: taken above with this slot.
        unsafe { shared.0.unlock(&slot) };
    }
    visit(shared, &slot);
    taken
}

/// One thread locks, one tries: success must exclude and see the other's writes. Loom explores too
/// few orders if the main thread tries (with `ticket`, none in which it tries after the other's
/// unlock), so each of the two does in turn.
pub(super) fn model_try<L: TryLock + Default + 'static>(name: &str, preemptions: Option<usize>) {
    for spawned_tries in [false, true] {
        let executions = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&executions);
        explore(name, 2, preemptions, &executions, move || {
            counted.fetch_add(1, Ordering::Relaxed);
            let shared = loom::sync::Arc::new((L::default(), UnsafeCell::new(0)));
            let run = move |shared: &(L, UnsafeCell<u64>), tries: bool| {
                if tries {
                    return try_and_visit(shared);
                }
                visit(shared, &L::Slot::default());
                false
            };
            let other = {
                let shared = loom::sync::Arc::clone(&shared);
                loom::thread::spawn(move || run(&shared, spawned_tries))
            };
            let taken = run(&shared, !spawned_tries) | other.join().unwrap();
            // SAFETY: all threads have ended.
            assert_eq!(shared.1.with(|value| unsafe { *value }), 2 + u64::from(taken));
        });
    }
}

/// Enters as a reader and looks; loom reports a race if a writer is inside.
fn look<L: RawRwLock>(shared: &(L, UnsafeCell<u64>), tries: bool) -> u64 {
    let slot = L::ReadSlot::default();
    // SAFETY: the slot is a local of its thread and is unlocked below.
    if !tries || !unsafe { shared.0.try_lock_shared(&slot) } {
        // SAFETY: as above.
        unsafe { shared.0.lock_shared(&slot) };
    }
    // SAFETY: no writer is inside; loom checks that claim.
    let seen = shared.1.with(|value| unsafe { *value });
    // SAFETY: entered above with this slot.
    unsafe { shared.0.unlock_shared(&slot) };
    seen
}

/// One thread writes, two read, one of which tries first; and with one reader less, a writer that
/// tries first and then reads.
pub(super) fn model_shared<L: RawRwLock + TryLock + Default + 'static>(
    name: &str,
    preemptions: Option<usize>,
) {
    let written = |shared: &(L, UnsafeCell<u64>)| {
        visit(shared, &L::Slot::default());
        1
    };
    shared_by(name, preemptions, &[(1, false), (2, true)], written);
    let written_after_trying = |shared: &(L, UnsafeCell<u64>)| {
        let written = 1 + u64::from(try_and_visit(shared));
        assert_eq!(look(shared, false), written);
        written
    };
    shared_by(name, Some(3), &[(1, true)], written_after_trying);
}

/// Readers, by number and whether they try first, see no more than what was written.
fn shared_by<L: RawRwLock + Default + 'static>(
    name: &str,
    preemptions: Option<usize>,
    readers: &'static [(usize, bool)],
    write: impl Fn(&(L, UnsafeCell<u64>)) -> u64 + Send + Sync + 'static,
) {
    let executions = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&executions);
    explore(name, 1 + readers.len() as u64, preemptions, &executions, move || {
        counted.fetch_add(1, Ordering::Relaxed);
        let shared = loom::sync::Arc::new((L::default(), UnsafeCell::new(0)));
        let readers = readers.iter().map(|&(number, tries)| {
            let shared = loom::sync::Arc::clone(&shared);
            loom::thread::spawn(move || {
                topology::NUMBER.with(|own| own.set(number));
                look(&shared, tries)
            })
        });
        let readers: Vec<_> = readers.collect();
        let written = write(&shared);
        for reader in readers {
            assert!(reader.join().unwrap() <= written);
        }
    });
}

/// Writers and a reader, whose two words must be of one writer.
pub(super) fn model_seqlock(name: &str, writers: usize, preemptions: Option<usize>) {
    type Lock = seqlock::SeqLock<ticket::TicketLock, 2>;
    let make = || loom::sync::Arc::new(Lock::with_lock(ticket::TicketLock::new(), [0, 0]));
    let run = |shared: &Lock, number: usize| {
        if number > 0 {
            return shared.update(|[one, other]| [one + 1, other + 1]);
        }
        let [one, other] = shared.read();
        assert_eq!(one, other);
    };
    explore_alike(name, 1 + writers, preemptions, make, run, move |shared| {
        assert_eq!(shared.try_read(), Some([writers, writers]));
    });
}

/// Gives up after two looks, then locks with the same slot. Whether it did not give up.
fn wait_and_visit<L: Timed>(shared: &(L, UnsafeCell<u64>)) -> bool {
    let slot = L::Slot::default();
    let mut looks = 0;
    let expired = || {
        looks += 1;
        looks == 2
    };
    // SAFETY: the slot is a local and is unlocked below if it was taken.
    let taken = unsafe { shared.0.lock_until(&slot, expired) };
    if taken {
        // SAFETY: the lock is held; loom checks that claim.
        shared.1.with_mut(|value| unsafe { *value += 1 });
        // SAFETY: taken above with this slot.
        unsafe { shared.0.unlock(&slot) };
    }
    visit(shared, &slot);
    taken
}

/// Two threads that may give up, one that does not.
pub(super) fn model_timed<L: Timed + Default + 'static>(name: &str, preemptions: Option<usize>) {
    let executions = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&executions);
    let gave_up = Arc::new(AtomicU64::new(0));
    let counted_gave_up = Arc::clone(&gave_up);
    explore(name, 3, preemptions, &executions, move || {
        counted.fetch_add(1, Ordering::Relaxed);
        let shared = loom::sync::Arc::new((L::default(), UnsafeCell::new(0)));
        let others = [(); 2].map(|()| {
            let shared = loom::sync::Arc::clone(&shared);
            loom::thread::spawn(move || wait_and_visit(&shared))
        });
        visit(&shared, &L::Slot::default());
        let taken = others.map(|other| u64::from(other.join().unwrap())).iter().sum::<u64>();
        counted_gave_up.fetch_add(2 - taken, Ordering::Relaxed);
        // SAFETY: all threads have ended.
        assert_eq!(shared.1.with(|value| unsafe { *value }), 3 + taken);
    });
    assert!(gave_up.load(Ordering::Relaxed) > 0, "nobody gave up");
}

/// `threads` threads (the main one among them) do the same on what `make` makes; then `end` holds.
pub(super) fn explore_alike<S: 'static>(
    name: &str,
    threads: usize,
    preemptions: Option<usize>,
    make: impl Fn() -> loom::sync::Arc<S> + Send + Sync + 'static,
    run: impl Fn(&S, usize) + Copy + Send + Sync + 'static,
    end: impl Fn(&S) + Send + Sync + 'static,
) {
    let executions = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&executions);
    explore(name, threads as u64, preemptions, &executions, move || {
        counted.fetch_add(1, Ordering::Relaxed);
        let shared = make();
        let others: Vec<_> = (1..threads)
            .map(|number| {
                let shared = loom::sync::Arc::clone(&shared);
                loom::thread::spawn(move || run(&shared, number))
            })
            .collect();
        run(&shared, 0);
        for other in others {
            other.join().unwrap();
        }
        end(&shared);
    });
}

fn explore(
    name: &str,
    threads: u64,
    preemptions: Option<usize>,
    executions: &AtomicU64,
    body: impl Fn() + Sync + Send + 'static,
) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = preemptions;
    builder.check(move || {
        sync::SPINS_LEFT.with(|left| left.set(SPINS));
        body();
    });
    let bound = preemptions.map_or("none".into(), |bound| bound.to_string());
    let executions = executions.load(Ordering::Relaxed);
    println!(
        "loom | {name} | threads {threads} | preemption bound {bound} | executions {executions}"
    );
    assert!(executions > 1, "nothing was explored");
}
