//! The time that threads read, and waiting by it: simulated time on simulated cores.

use std::hint::black_box;
use std::time::{Duration, Instant};

use harness::spin::StepRate;

/// A clock that counts nanoseconds since the step began.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    began: Instant,
    rate: StepRate,
}

/// Steps that tell how long one is.
const STEPS: u64 = 500;

/// Multiplications of a step: so many that simulating the branch behind them costs little.
const MULTIPLICATIONS: u32 = 16;

/// Computes in registers; each multiplication needs the last one's result.
#[inline(never)]
fn compute(steps: u64) {
    let mut value = steps | 1;
    for _ in 0..steps {
        for _ in 0..MULTIPLICATIONS {
            value = value.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 1;
        }
    }
    black_box(value);
}

impl Clock {
    /// Begins now, and measures how long work takes here.
    pub(crate) fn new() -> Self {
        let mut clock = Self { began: Instant::now(), rate: StepRate { ns_per_step: 0.0 } };
        let run = |steps: u64| {
            let began = clock.now();
            compute(black_box(steps));
            clock.now() - began
        };
        // Twice as many less once as many: reading the clock is in neither. The least of several,
        // so that a preempted run does not count.
        let least = |steps: u64| (0..5).map(|_| run(steps)).min().unwrap_or(0);
        let (once, twice) = (least(STEPS), least(2 * STEPS));
        clock.rate.ns_per_step = twice.saturating_sub(once) as f64 / STEPS as f64;
        clock
    }

    /// Gives the nanoseconds since the clock was made.
    #[inline]
    pub(crate) fn now(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }

    /// Computes for so long.
    #[inline]
    pub(crate) fn work(&self, ns: u64) {
        compute(self.rate.steps(ns));
    }

    /// Sleeps until a time. Who comes late does not sleep.
    pub(crate) fn sleep_until(&self, then: u64) {
        let now = self.now();
        if then > now {
            std::thread::sleep(Duration::from_nanos(then - now));
        }
    }
}

/// Lets the calling thread's sleeps end when they shall, not up to 50 µs later.
pub(crate) fn sleep_exactly() {
    // SAFETY: sets a figure of the calling thread; where it is refused sleeps end later.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_usize) };
}
