//! Whether the time-stamp counters of two CPUs agree: threads hand a turn to and fro, and each
//! compares its own reading with the one that came with the turn.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crossbeam_utils::CachePadded;

use crate::clock::Clock;
use crate::team::Team;
use crate::unavailable::Unavailable;

/// Hand-overs in each direction for a pair of CPUs.
const ROUNDS: u64 = 500;

/// What a pair may take.
const LONGEST: Duration = Duration::from_millis(200);

/// How the counters of this host's CPUs stand to each other.
#[derive(Debug, Clone, PartialEq)]
pub struct Warp {
    /// CPUs that were compared with the first one, that one included.
    pub cpus: usize,
    /// Times that a reading was earlier than one that was made before it.
    pub backwards: u64,
    /// By how much at most.
    pub worst_ns: f64,
    /// The largest offset between two counters, by the shortest ways there and back.
    pub offset_ns: f64,
    /// What is not known about that offset: half of the way there and back.
    pub bound_ns: f64,
    /// Ticks of the counter in a nanosecond, by the kernel's clock.
    pub ticks_per_ns: f64,
}

/// What one side of a pair saw of the other's readings.
#[derive(Debug, Clone, Copy)]
struct Seen {
    backwards: u64,
    worst: u64,
    /// The least that a reading was later than the one handed over; signed, since counters differ.
    least: i64,
    rounds: u64,
}

/// Compares the first CPU with each of the others.
pub(super) fn between(team: &mut Team, clock: &Clock, cpus: &[u32]) -> Result<Warp, Unavailable> {
    if let Some(reason) = &clock.not_tsc {
        return Err(reason.clone());
    }
    let mut warp = Warp::of_one(clock);
    let Some((&first, others)) = cpus.split_first() else {
        return Err(Unavailable::new("no_cpu"));
    };
    for &other in others {
        let turn = Arc::new(Turn::default());
        let jobs = (0..2)
            .map(|side| {
                let (clock, turn) = (clock.clone(), turn.clone());
                move || turn.play(side, &clock)
            })
            .collect();
        let seen = team
            .run(&[first, other], jobs)
            .map_err(|error| Unavailable::because("not_pinned", error.to_string()))?;
        if seen.iter().any(|side| side.rounds == 0) {
            return Err(Unavailable::because(
                "no_turn",
                format!("CPUs {first} and {other} did not run together; something else runs there"),
            ));
        }
        warp.add(clock, &seen);
    }
    Ok(warp)
}

impl Warp {
    fn of_one(clock: &Clock) -> Self {
        let ticks_per_ns = clock.ticks_per_ns;
        Self { cpus: 1, backwards: 0, worst_ns: 0.0, offset_ns: 0.0, bound_ns: 0.0, ticks_per_ns }
    }

    fn add(&mut self, clock: &Clock, seen: &[Seen]) {
        let [one, other] = seen else { return };
        self.cpus += 1;
        self.backwards += one.backwards + other.backwards;
        self.worst_ns = self.worst_ns.max(clock.ns(one.worst.max(other.worst) as f64));
        let half = |ticks: i64| clock.ns(ticks as f64 / 2.0);
        let offset = half(one.least - other.least).abs();
        if offset >= self.offset_ns {
            self.offset_ns = offset;
            self.bound_ns = half(one.least.saturating_add(other.least)).abs();
        }
    }
}

/// The turn, and the reading that comes with it.
#[derive(Debug, Default)]
struct Turn {
    number: CachePadded<AtomicU64>,
    reading: AtomicU64,
}

impl Turn {
    /// Plays one side: even turns belong to side 0.
    fn play(&self, side: u64, clock: &Clock) -> Seen {
        let mut seen = Seen { backwards: 0, worst: 0, least: i64::MAX, rounds: 0 };
        let mut began = None;
        for round in 0..ROUNDS {
            let mine = round * 2 + side;
            let mut looks = 0_u32;
            // ORDERING: Acquire, pairs with the Release below - the reading is that of this turn.
            while self.number.load(Ordering::Acquire) != mine {
                looks += 1;
                if looks.is_multiple_of(10_000) {
                    let began = *began.get_or_insert_with(|| clock.now());
                    if clock.now().saturating_sub(began) > clock.ticks(LONGEST) {
                        return seen;
                    }
                    std::thread::yield_now(); // the other side may need this CPU
                }
                std::hint::spin_loop();
            }
            // ORDERING: Relaxed - the turn's Acquire has made it visible.
            let before = self.reading.load(Ordering::Relaxed);
            let now = clock.now();
            if mine > 0 {
                seen.look(before, now);
            }
            // ORDERING: Relaxed - published by the Release below.
            self.reading.store(now, Ordering::Relaxed);
            // ORDERING: Release - hands the reading over with the turn.
            self.number.store(mine + 1, Ordering::Release);
        }
        seen
    }
}

impl Seen {
    fn look(&mut self, before: u64, now: u64) {
        self.rounds += 1;
        let later = now.wrapping_sub(before) as i64;
        self.least = self.least.min(later);
        if later < 0 {
            self.backwards += 1;
            self.worst = self.worst.max(later.unsigned_abs());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(readings: &[(u64, u64)]) -> Seen {
        let mut seen = Seen { backwards: 0, worst: 0, least: i64::MAX, rounds: 0 };
        readings.iter().for_each(|&(before, now)| seen.look(before, now));
        seen
    }

    #[test]
    fn readings_that_run_backwards_are_counted() {
        let bad = seen(&[(100, 150), (200, 170), (300, 290)]);
        assert_eq!((bad.backwards, bad.worst, bad.least, bad.rounds), (2, 30, -30, 3));
        let good = seen(&[(100, 150), (200, 220)]);
        assert_eq!((good.backwards, good.worst, good.least), (0, 0, 20));
    }

    /// Ways of 60 ticks each; the second counter is 40 ticks ahead.
    #[test]
    fn the_offset_is_half_of_the_difference_of_both_ways() {
        let host = topology::Topology::this_host().unwrap();
        let mut clock = Clock::calibrated(&host.cpuid);
        clock.ticks_per_ns = 1.0;
        let mut warp = Warp::of_one(&clock);
        warp.add(&clock, &[seen(&[(1040, 1060)]), seen(&[(1000, 1100)])]);
        assert_eq!((warp.cpus, warp.offset_ns, warp.bound_ns), (2, 40.0, 60.0));
    }
}
