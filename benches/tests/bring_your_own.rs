//! Locks and counters of somebody else, outside of the tables, under the exported suites.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

/// A test-and-test-and-set lock as a user might write it.
#[derive(Default)]
struct TheirLock(AtomicBool);

// SAFETY: one exchange from `false` succeeds at a time; its acquire pairs with the release store.
unsafe impl locks::RawLock for TheirLock {
    type Slot = ();
    const PROPERTIES: locks::Properties = locks::Properties {
        fairness: locks::Fairness::None,
        waiting: locks::Waiting::Spins,
        numa_aware: false,
    };

    unsafe fn lock(&self, _slot: &()) {
        while self.0.swap(true, Ordering::Acquire) {
            while self.0.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        }
    }

    unsafe fn unlock(&self, _slot: &()) {
        self.0.store(false, Ordering::Release);
    }
}

locks::conformance!(TheirLock);

/// A counter as a user might write it.
#[derive(Default)]
struct TheirCounter(AtomicI64);

impl counters::Counter for TheirCounter {
    const PROPERTIES: counters::Properties = counters::Properties {
        progress: counters::Progress::LockFree,
        exact: true,
        linearizable: true,
        shards: 1,
    };

    fn add(&self, n: i64) {
        // A loop instead of `fetch_add`, so that it is not the crate's own.
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |value| {
            Some(value.wrapping_add(n))
        });
    }

    fn sum(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

mod their_counter {
    use super::TheirCounter;

    counters::conformance!(TheirCounter);
}
