//! Poisoning: a mutex that remembers that somebody panicked inside.

use core::fmt;

use crate::contract::{ConstInit, RawLock};
use crate::mutex::Mutex;

/// Somebody panicked inside a [`PoisonMutex`]: its value may be half changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Poisoned;

impl fmt::Display for Poisoned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "a thread panicked while it changed the value; \
             put it right with `heal`, or give it up",
        )
    }
}

impl core::error::Error for Poisoned {}

/// A [`Mutex`] that refuses its value after a panic inside, until it is [healed](Self::heal).
///
/// ```
/// use locks::{McsLock, PoisonMutex, Poisoned};
/// let total = PoisonMutex::<u64, McsLock>::new(0);
/// let panicked = std::panic::catch_unwind(|| total.with(|_| panic!("inside")));
/// assert!(panicked.is_err());
/// assert_eq!(total.with(|total| *total), Err(Poisoned));
/// total.heal(|total| *total = 0);
/// assert_eq!(total.with(|total| *total), Ok(0));
/// ```
#[derive(Debug)]
pub struct PoisonMutex<T, L: RawLock> {
    mutex: Mutex<State<T>, L>,
}

#[derive(Debug, Default)]
struct State<T> {
    poisoned: bool,
    value: T,
}

// A panic leaves a mark, so nobody sees half a change by accident.
impl<T, L: RawLock> core::panic::UnwindSafe for PoisonMutex<T, L> {}
impl<T, L: RawLock> core::panic::RefUnwindSafe for PoisonMutex<T, L> {}

impl<T, L: RawLock + ConstInit> PoisonMutex<T, L> {
    /// Wraps `value`; unlocked.
    pub const fn new(value: T) -> Self {
        Self { mutex: Mutex::new(State { poisoned: false, value }) }
    }
}

impl<T, L: RawLock> PoisonMutex<T, L> {
    /// Runs `f` on the value while holding the lock. A panic of `f` lets go, and poisons.
    ///
    /// # Errors
    /// When somebody panicked before; `f` is not called.
    pub fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> Result<R, Poisoned> {
        self.mutex.with(|state| {
            if state.poisoned {
                return Err(Poisoned);
            }
            state.poisoned = true; // unless `f` returns
            let result = f(&mut state.value);
            state.poisoned = false;
            Ok(result)
        })
    }

    /// Runs `f` on the value, poisoned or not, which it is not any more when `f` has returned.
    pub fn heal<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        self.mutex.with(|state| {
            state.poisoned = true;
            let result = f(&mut state.value);
            state.poisoned = false;
            result
        })
    }

    /// Gives the value back.
    ///
    /// # Errors
    /// The value too, when somebody panicked.
    pub fn into_inner(self) -> Result<T, (Poisoned, T)> {
        let State { poisoned, value } = self.mutex.into_inner();
        if poisoned { Err((Poisoned, value)) } else { Ok(value) }
    }
}
