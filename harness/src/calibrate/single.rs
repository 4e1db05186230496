//! What one core does by itself: clock rate, spin-wait hint, owned atomics, fence.

use std::cell::Cell;
use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicU64, Ordering, fence};

use crossbeam_utils::CachePadded;

use super::{Bench, CalibrateError, Found, chase};
use crate::clock::Clock;
use crate::spin::chain;

/// What no operation falls short of: a picosecond, the least that a machine file can say.
const LEAST_NS: f64 = 0.001;
/// Bytes that every first-level cache holds.
const FIRST_LEVEL: usize = 8 << 10;

pub(super) fn measure(
    bench: &mut Bench,
    cpu: u32,
    found: &mut Found,
) -> Result<(), CalibrateError> {
    let ghz = bench.on(cpu, |clock| {
        // Carried on from round to round, or rounds would overlap.
        let sum = Cell::new(1);
        1.0 / per_op(clock, 100, || sum.set(hundred_additions(sum.get())), 1_000)
    })?;
    let rate = ghz.median();
    found.sample("clock.core_ghz", &ghz, "a chain of additions, one cycle each");
    enter_instructions(bench, cpu, rate, found)?;
    let hint = bench.on(cpu, |clock| per_op(clock, 1, spin_loop, 2_000))?.times(rate);
    found.sample(
        "core.pause_cycles",
        &hint,
        "a loop of spin-wait hints, at the measured clock rate",
    );
    let first = bench.chase(cpu, FIRST_LEVEL, chase::region(FIRST_LEVEL)?)?.times(rate);
    found.sample(
        "cache.l1_hit_cycles",
        &first,
        "pointer chase through 8 KiB, at the measured clock rate",
    );
    let owned = bench.on(cpu, |clock| {
        let word = CachePadded::new(AtomicU64::new(0));
        per_op(
            clock,
            1,
            || {
                word.fetch_add(1, Ordering::SeqCst);
            },
            20_000,
        )
    })?;
    found.sample("atomic.rmw_owned_ns", &owned, "fetch_add of one thread on a line of its own");
    // Of fences with nothing between them the compiler keeps one; an empty chain is something.
    let fenced = bench.on(cpu, |clock| {
        let body = || {
            fence(Ordering::SeqCst);
            chain(0);
        };
        per_op(clock, 1, body, 5_000)
    })?;
    found.sample("atomic.fence_ns", &fenced, "a loop of sequentially consistent fences");
    Ok(())
}

/// Instructions of a round of [`mixed_rounds`].
const MIXED: f64 = 7.0;
/// Rounds of it at a time.
const ROUNDS: u64 = 1_000;

/// What the core sustains where nothing stalls it.
fn enter_instructions(
    bench: &mut Bench,
    cpu: u32,
    rate: f64,
    found: &mut Found,
) -> Result<(), CalibrateError> {
    const FIELD: &str = "core.instructions_per_cycle";
    if cfg!(not(any(target_arch = "x86_64", target_arch = "aarch64"))) {
        found.missing(&[FIELD], "the loop is not written for this architecture");
        return Ok(());
    }
    let rounds = bench.on(cpu, |clock| {
        let mut words = [0_u64; 64];
        let words = Cell::from_mut(&mut words);
        MIXED / per_op(clock, ROUNDS, || mixed_rounds(words), 20)
    })?;
    let how = "a loop of 7 instructions: load, addition, store, a chain of two, count and branch";
    found.sample(FIELD, &rounds.times(1.0 / rate), how);
    Ok(())
}

/// Loads, adds, stores; goes on to the next of the words; counts and branches.
fn mixed_rounds(words: &Cell<[u64; 64]>) {
    let words = words.as_ptr();
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the index stays below 64, and nothing else refers to the words meanwhile.
    unsafe {
        core::arch::asm!(
            ".p2align 4", "2:",
            "mov {t}, [{words} + {i} * 8]", "add {t}, {n}", "mov [{words} + {i} * 8], {t}",
            "inc {i}", "and {i}, 63", "dec {n}", "jnz 2b",
            t = out(reg) _, i = inout(reg) 0_u64 => _, n = inout(reg) ROUNDS => _,
            words = in(reg) words, options(nostack)
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: the index stays below 64, and nothing else refers to the words meanwhile.
    unsafe {
        core::arch::asm!(
            ".p2align 4", "2:",
            "ldr {t}, [{words}, {i}, lsl 3]", "add {t}, {t}, {n}", "str {t}, [{words}, {i}, lsl 3]",
            "add {i}, {i}, 1", "and {i}, {i}, 63", "subs {n}, {n}, 1", "b.ne 2b",
            t = out(reg) _, i = inout(reg) 0_u64 => _, n = inout(reg) ROUNDS => _,
            words = in(reg) words, options(nostack)
        );
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    black_box(words);
}

/// Nanoseconds of each of the `each` operations that `body` does, over `rounds` rounds.
pub(super) fn per_op(clock: &Clock, each: u64, body: impl Fn(), rounds: u64) -> f64 {
    let once = || {
        let began = clock.now();
        (0..rounds).for_each(|_| body());
        clock.now() - began
    };
    once(); // warms up code and clock rate
    // The less of two: a thread that lost its CPU meanwhile does not count.
    let ticks = once().min(once()).saturating_sub(clock.reading_ticks);
    (clock.ns(ticks as f64) / (rounds * each) as f64).max(LEAST_NS)
}

/// A hundred additions of two registers, each of which needs the last one's result. Additions of a
/// constant would not do: some cores make them when they rename registers, at no time.
fn hundred_additions(mut sum: u64) -> u64 {
    let step = black_box(3_u64);
    #[cfg(target_arch = "x86_64")]
    // SAFETY: changes only `sum` and flags.
    unsafe {
        core::arch::asm!(".rept 100", "add {0}, {1}", ".endr", inout(reg) sum, in(reg) step, options(nomem, nostack));
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: changes only `sum`.
    unsafe {
        core::arch::asm!(".rept 100", "add {0}, {0}, {1}", ".endr", inout(reg) sum, in(reg) step, options(nomem, nostack));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    for _ in 0..100 {
        sum = black_box(sum.wrapping_add(step));
    }
    sum
}
