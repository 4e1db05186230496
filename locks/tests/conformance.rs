//! The exported suite over every row of the table, and over locks that are broken.
#![cfg(feature = "std")]

use locks::conformance::{mutual_exclusion, try_lock_takes_free_locks_only};

macro_rules! row {
    ($id:ident, $lock:ty, baseline) => {};
    ($id:ident, $lock:ty, $kind:ident) => {
        mod $id {
            locks::conformance!($lock);
            locks::conformance_try_lock!($lock);
        }
    };
}

macro_rules! rows {
    ($($id:ident => $lock:ty, $kind:ident;)*) => { $( row!($id, $lock, $kind); )* };
}

locks::for_each_lock!(rows);

/// Adapters around rows.
mod adapters {
    type Pooled = locks::Pooled<locks::McsLock, 1>;
    type Checked = locks::Checked<locks::ClhLock>;
    locks::conformance!(pooled: Pooled);
    locks::conformance_try_lock!(pooled_tries: Pooled);
    type Tls = locks::Tls<locks::McsLock>;
    locks::conformance!(tls: Tls);
    locks::conformance_try_lock!(tls_tries: Tls);
    locks::conformance!(checked: Checked);
    locks::conformance_try_lock!(checked_tries: Checked);
}

#[test]
fn the_suite_catches_a_lock_that_is_none() {
    let caught = (0..50).any(|_| mutual_exclusion::<locks::NullLock>(2, 20_000).is_err());
    assert!(caught, "two threads without a lock never disturbed one another");
}

/// Excludes, but its `try_lock` takes the lock from its holder.
#[derive(Default)]
struct Robber(locks::TasLock);

// SAFETY: passes everything on to a lock that keeps the contract.
unsafe impl locks::RawLock for Robber {
    type Slot = ();
    const PROPERTIES: locks::Properties = <locks::TasLock as locks::RawLock>::PROPERTIES;
    unsafe fn lock(&self, slot: &()) {
        // SAFETY: the caller's promise, passed on.
        unsafe { self.0.lock(slot) }
    }
    unsafe fn unlock(&self, slot: &()) {
        // SAFETY: the caller's promise, passed on.
        unsafe { self.0.unlock(slot) }
    }
}

// SAFETY: broken on purpose; only the suite sees it.
unsafe impl locks::TryLock for Robber {
    unsafe fn try_lock(&self, _slot: &()) -> bool {
        true
    }
}

#[test]
fn the_suite_catches_a_try_lock_that_always_succeeds() {
    let violation = try_lock_takes_free_locks_only::<Robber>(10).unwrap_err();
    assert!(violation.to_string().contains("held lock"), "{violation}");
}

#[test]
fn the_suite_catches_a_lock_that_is_not_fifo() {
    // Last come, first served: a Vec of waiting tickets under a std mutex.
    #[derive(Default)]
    struct Lifo {
        state: std::sync::Mutex<(bool, Vec<u64>, u64)>,
        changed: std::sync::Condvar,
    }
    // SAFETY: `held` is checked and set under the mutex.
    unsafe impl locks::RawLock for Lifo {
        type Slot = ();
        const PROPERTIES: locks::Properties = locks::Properties {
            fairness: locks::Fairness::Fifo,
            waiting: locks::Waiting::Blocks,
            numa_aware: false,
        };
        unsafe fn lock(&self, _slot: &()) {
            let mut state = self.state.lock().unwrap();
            state.2 += 1;
            let ticket = state.2;
            state.1.push(ticket);
            while state.0 || state.1.last() != Some(&ticket) {
                state = self.changed.wait(state).unwrap();
            }
            state.1.pop();
            state.0 = true;
        }
        unsafe fn unlock(&self, _slot: &()) {
            self.state.lock().unwrap().0 = false;
            self.changed.notify_all();
        }
    }
    mutual_exclusion::<Lifo>(2, 100).unwrap();
    locks::conformance::first_come_first_served::<Lifo>().unwrap_err();
}
