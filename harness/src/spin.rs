//! Work of a chosen length: what a thread does inside and outside of its critical section.

use std::hint::black_box;

use crate::clock::Clock;

/// Steps of a chain in which each step needs the last one's result.
///
/// Also with no steps at all the compiler cannot see through the call, so that a loop around it
/// runs as often as it says: that of a baseline would otherwise be folded into one expression.
#[inline(always)]
pub fn chain(steps: u64) -> u64 {
    // SAFETY: no instruction at all; registers, flags and memory stay as they are.
    unsafe { core::arch::asm!("", options(nomem, nostack, preserves_flags)) };
    let mut value = 1_u64;
    for _ in 0..steps {
        value = black_box(value.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 1);
    }
    value
}

/// Gives the ticks of one step: the least of several short runs, so that a preempted one does not
/// count.
pub fn ticks_per_step(clock: &Clock) -> f64 {
    const STEPS: u64 = 4000;
    let fastest = (0..9)
        .map(|_| {
            let began = clock.now();
            black_box(chain(black_box(STEPS)));
            clock.now() - began
        })
        .min();
    fastest.unwrap_or(0).saturating_sub(clock.reading_ticks) as f64 / STEPS as f64
}

/// How many steps of [`chain`] fill a given time on this machine, now.
#[derive(Debug, Clone, Copy)]
pub struct StepRate {
    /// Nanoseconds of one step.
    pub ns_per_step: f64,
}

impl StepRate {
    /// Measures the rate.
    pub fn measured(clock: &Clock) -> Self {
        Self { ns_per_step: clock.ns(ticks_per_step(clock)) }
    }

    /// Steps that last `ns` nanoseconds, rounded.
    pub fn steps(&self, ns: u64) -> u64 {
        if self.ns_per_step > 0.0 { (ns as f64 / self.ns_per_step).round() as u64 } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twice_the_steps_take_about_twice_as_long() {
        let clock = Clock::calibrated(&topology::Topology::this_host().unwrap().cpuid);
        let time = |steps: u64| {
            let began = clock.now();
            black_box(chain(black_box(steps)));
            clock.now() - began
        };
        // Others use the CPUs too; an undisturbed pair is enough.
        let ratios = (0..400).map(|_| time(20_000) as f64 / time(10_000) as f64);
        let nearest = ratios.min_by(|a, b| (a - 2.0).abs().total_cmp(&(b - 2.0).abs()));
        let nearest = nearest.unwrap();
        assert!((1.9..2.1).contains(&nearest), "{nearest}");
    }
}
