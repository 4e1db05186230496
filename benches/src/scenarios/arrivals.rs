//! Requests that arrive by themselves, whether or not somebody is ready for them.

use harness::stats::SplitMix;

use super::job::Round;
use super::turn::Turn;
use super::zipf::unit;

/// When requests arrive: at random, a rate on average, and now and then many at once.
#[derive(Debug, Clone)]
pub(crate) struct Arrivals {
    gap_ns: f64,
    random: SplitMix,
    burst: u64,
    next: f64,
    /// Requests so far.
    count: u64,
}

/// Of so many requests per one of a burst, one is in a burst.
const BETWEEN_BURSTS: u64 = 10;

impl Arrivals {
    /// Begins at the start of a round, with `per_s` requests a second.
    pub(crate) fn new(per_s: f64, round: &Round, seed: u64) -> Self {
        let (gap_ns, next) = (1e9 / per_s, round.start as f64);
        Self { gap_ns, random: SplitMix(seed), burst: 0, next, count: 0 }
    }

    /// Lets so many requests come at once, each time that ten times as many came one by one.
    pub(crate) fn bursts(self, burst: u64) -> Self {
        Self { burst, ..self }
    }

    /// Counts the requests that come at once, of so many with bursts of `burst`.
    pub(crate) fn in_bursts(burst: u64, requests: u64) -> u64 {
        let (alone, cycle) = (burst * BETWEEN_BURSTS, burst * (BETWEEN_BURSTS + 1));
        if burst < 2 {
            return 0;
        }
        requests / cycle * burst + (requests % cycle).saturating_sub(alone)
    }

    /// Gives the time of the next request.
    pub(crate) fn next(&mut self) -> u64 {
        let cycle = self.burst * (BETWEEN_BURSTS + 1);
        // The first request of a burst waits its time, the others do not.
        let at_once = self.burst > 1 && self.count % cycle.max(1) > self.burst * BETWEEN_BURSTS;
        self.count += 1;
        if !at_once {
            self.next -= self.gap_ns * (1.0 - unit(&mut self.random)).ln();
        }
        self.next as u64
    }
}

/// Hands out `count` requests when they arrive, each with its time.
pub(crate) fn generate(
    turn: &mut Turn<'_>,
    arrivals: &mut Arrivals,
    count: u64,
    mut hand_out: impl FnMut(&mut Turn<'_>, u64),
) {
    turn.stands_apart();
    super::clock::sleep_exactly();
    for _ in 0..count {
        let then = arrivals.next();
        turn.clock.sleep_until(then);
        hand_out(turn, then);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_come_as_the_rate_says() {
        let round = Round { ops: 0, start: 500 };
        let mut arrivals = Arrivals::new(1e6, &round, 1);
        let times: Vec<u64> = (0..10_000).map(|_| arrivals.next()).collect();
        assert!(times.is_sorted() && times[0] >= 500);
        let mean = (times[9999] - 500) as f64 / 1e4;
        assert!((950.0..1050.0).contains(&mean), "{mean}");
    }

    #[test]
    fn bursts_come_at_once() {
        let round = Round { ops: 0, start: 0 };
        let mut arrivals = Arrivals::new(1e6, &round, 1).bursts(100);
        let times: Vec<u64> = (0..2200).map(|_| arrivals.next()).collect();
        let same = times.windows(2).filter(|pair| pair[0] == pair[1]).count();
        assert!((198..=210).contains(&same), "{same}");
    }
}
