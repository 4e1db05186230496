//! Models of what stands beside the locks, each in a module with the name of its file.

use loom::cell::UnsafeCell;
use loom::sync::Arc;

use crate::contract::RawLock;
use crate::drivers::explore_alike;
use crate::{Futex, ModelFutex};

/// A value that loom watches, and what protects it.
type Watched<S> = (S, UnsafeCell<u64>);

fn watched<S>(what: S) -> Arc<Watched<S>> {
    Arc::new((what, UnsafeCell::new(0)))
}

fn add<S>(shared: &Watched<S>) {
    // SAFETY: the caller is alone; loom checks that claim.
    shared.1.with_mut(|value| unsafe { *value += 1 });
}

fn read<S>(shared: &Watched<S>) -> u64 {
    // SAFETY: nobody writes; loom checks that claim.
    shared.1.with(|value| unsafe { *value })
}

mod condvar {
    use super::*;
    use crate::condvar::Condvar;

    type Shared = Watched<(Futex, Condvar<ModelFutex>)>;

    fn locked<R>(shared: &Shared, f: impl FnOnce() -> R) -> R {
        // SAFETY: the slot is empty; unlocked below.
        unsafe { shared.0.0.lock(&()) };
        let result = f();
        // SAFETY: taken above.
        unsafe { shared.0.0.unlock(&()) };
        result
    }

    fn wait_for_it(shared: &Shared) {
        let (mutex, changed) = &shared.0;
        // SAFETY: the slot is empty; unlocked below.
        unsafe { mutex.lock(&()) };
        while read(shared) == 0 {
            // SAFETY: taken above, or below.
            changed.sleep(|| unsafe { mutex.unlock(&()) });
            // SAFETY: as above.
            unsafe { mutex.lock(&()) };
        }
        // SAFETY: taken above.
        unsafe { mutex.unlock(&()) };
    }

    #[test]
    fn nobody_sleeps_through_a_notification() {
        for all in [false, true] {
            let waiters = if all { 2 } else { 1 };
            explore_alike(
                "condvar",
                waiters + 1,
                Some(if all { 2 } else { 4 }),
                || watched((Futex::new(), Condvar::new())),
                move |shared, number| {
                    if number > 0 {
                        return wait_for_it(shared);
                    }
                    locked(shared, || add(shared));
                    if all { shared.0.1.notify_all() } else { shared.0.1.notify_one() }
                },
                |_| {},
            );
        }
    }
}

mod semaphore {
    use super::*;
    use crate::semaphore::Semaphore;

    #[test]
    fn one_permit_excludes() {
        explore_alike(
            "semaphore",
            3,
            Some(3),
            || watched(Semaphore::<ModelFutex>::new(1)),
            |shared, _| {
                shared.0.acquire();
                add(shared);
                shared.0.release().unwrap();
            },
            |shared| assert_eq!((read(shared), shared.0.permits()), (3, 1)),
        );
    }
}

mod barrier {
    use super::*;
    use crate::barrier::SpinBarrier;

    #[test]
    fn what_was_done_before_is_seen_after() {
        for threads in [2, 3] {
            explore_alike(
                "barrier",
                threads,
                Some(4),
                move || {
                    let barrier = <SpinBarrier>::new(threads as u32);
                    Arc::new((barrier, [0; 3].map(UnsafeCell::new)))
                },
                move |shared, number| {
                    for round in 1..=2_u64 {
                        // SAFETY: each thread writes its own, between two waits.
                        shared.1[number].with_mut(|value| unsafe { *value = round });
                        shared.0.wait();
                        for other in 0..threads {
                            // SAFETY: all have written, and nobody writes before the next wait.
                            let seen = shared.1[other].with(|value| unsafe { *value });
                            assert_eq!(seen, round);
                        }
                        if threads == 3 {
                            break;
                        }
                        shared.0.wait();
                    }
                },
                |_| {},
            );
        }
    }
}

mod barrier_dissemination {
    use super::*;
    use crate::barrier_dissemination::DisseminationBarrier;

    fn what_was_done_before_is_seen_after<const THREADS: usize>(rounds: u64) {
        explore_alike(
            "dissemination barrier",
            THREADS,
            Some(2),
            || {
                let barrier = <DisseminationBarrier<THREADS>>::new();
                Arc::new((barrier, [0; THREADS].map(UnsafeCell::new)))
            },
            move |shared, number| {
                let mut party = shared.0.join().unwrap();
                for round in 1..=rounds {
                    // SAFETY: each thread writes its own, between two waits.
                    shared.1[number].with_mut(|value| unsafe { *value = round });
                    party.wait();
                    for other in 0..THREADS {
                        // SAFETY: all have written, and nobody writes before the next wait.
                        let seen = shared.1[other].with(|value| unsafe { *value });
                        assert_eq!(seen, round);
                    }
                    if rounds > 1 {
                        party.wait();
                    }
                }
            },
            |shared| assert!(shared.0.join().is_none()),
        );
    }

    #[test]
    fn two_threads_twice() {
        what_was_done_before_is_seen_after::<2>(2);
    }

    #[test]
    fn three_threads() {
        what_was_done_before_is_seen_after::<3>(1);
    }
}

mod once {
    use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

    use super::*;
    use crate::once::OnceValue;

    #[test]
    fn one_makes_and_all_see() {
        explore_alike(
            "once",
            3,
            Some(3),
            || watched(OnceValue::<UnsafeCell<u64>, ModelFutex>::new()),
            |shared, _| {
                let value = shared.0.get_or_make(|| {
                    add(shared);
                    UnsafeCell::new(7)
                });
                // SAFETY: nobody writes once it is made; loom checks that claim.
                assert_eq!(value.with(|value| unsafe { *value }), 7);
            },
            |shared| assert_eq!(read(shared), 1),
        );
    }

    #[test]
    fn the_next_makes_what_one_failed_to_make() {
        explore_alike(
            "once, failing",
            2,
            Some(4),
            || watched(OnceValue::<u64, ModelFutex>::new()),
            |shared, number| {
                let make = || {
                    add(shared);
                    if number == 0 {
                        resume_unwind(Box::new(())); // a panic that prints nothing
                    }
                    7
                };
                let made = catch_unwind(AssertUnwindSafe(|| *shared.0.get_or_make(make)));
                assert!(made.is_err() || made.is_ok_and(|value| value == 7));
            },
            |shared| {
                assert_eq!(shared.0.get(), Some(&7));
                assert!((1..=2).contains(&read(shared)), "made {} times", read(shared));
            },
        );
    }
}
