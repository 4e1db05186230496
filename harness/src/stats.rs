//! Medians, bootstrap intervals, fairness.

/// A figure with the interval in which its repetitions put it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The median of the repetitions.
    pub value: f64,
    /// Lower end of the 95 % bootstrap interval of the median.
    pub low: f64,
    /// Upper end of the 95 % bootstrap interval of the median.
    pub high: f64,
}

impl Estimate {
    /// Width of the interval relative to the value; infinite when the value is 0 and the
    /// interval is not.
    pub fn relative_width(&self) -> f64 {
        let width = self.high - self.low;
        if width == 0.0 { 0.0 } else { width / self.value.abs() }
    }
}

/// Resamples of the percentile bootstrap.
const RESAMPLES: usize = 2000;

/// Gives the median of `samples` and its 95 % percentile-bootstrap interval; `None` without
/// samples. The same samples and seed give the same interval. One sample has no spread to show:
/// its interval is the value itself.
pub fn median_with_interval(samples: &[f64], seed: u64) -> Option<Estimate> {
    let value = median(samples)?;
    let mut random = SplitMix(seed);
    let mut medians: Vec<f64> = (0..RESAMPLES)
        .filter_map(|_| {
            let resample: Vec<f64> =
                samples.iter().map(|_| samples[random.below(samples.len())]).collect();
            median(&resample)
        })
        .collect();
    medians.sort_by(f64::total_cmp);
    let at = |share: f64| medians[((RESAMPLES - 1) as f64 * share).round() as usize];
    Some(Estimate { value, low: at(0.025), high: at(0.975) })
}

/// Gives the middle of `samples` (the mean of the two middle ones if they are even in number).
pub fn median(samples: &[f64]) -> Option<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(sorted[middle]),
        _ => Some(f64::midpoint(sorted[middle - 1], sorted[middle])),
    }
}

/// Gives Jain's fairness index of the shares: 1 when all are equal, 1/n when one has everything.
/// `None` without shares or when all are 0.
pub fn jain(shares: &[u64]) -> Option<f64> {
    let sum: f64 = shares.iter().map(|&share| share as f64).sum();
    let squares: f64 = shares.iter().map(|&share| (share as f64).powi(2)).sum();
    (squares > 0.0).then(|| sum * sum / (shares.len() as f64 * squares))
}

/// Corrects probabilities for how many tests were made (Holm 1979): whoever then takes those below
/// α for real is wrong about any of them with a probability of α at the most. `ps` are the smallest
/// of `tests` probabilities, in any order; what comes back is in theirs.
///
/// ```
/// assert_eq!(harness::stats::holm(&[0.04, 0.01, 0.03], 3), [0.06, 0.03, 0.06]);
/// ```
pub fn holm(ps: &[f64], tests: u64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..ps.len()).collect();
    order.sort_by(|&a, &b| ps[a].total_cmp(&ps[b]));
    let mut corrected = vec![1.0; ps.len()];
    let mut least = 0.0_f64;
    for (rank, at) in order.into_iter().enumerate() {
        let left = tests.saturating_sub(rank as u64).max(1);
        least = least.max((ps[at] * left as f64).min(1.0));
        corrected[at] = least;
    }
    corrected
}

/// SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): small, seeded, the same everywhere.
#[derive(Debug, Clone)]
pub struct SplitMix(pub u64);

impl SplitMix {
    /// Gives the next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Gives a number below `bound`, which is not 0.
    pub fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.next_u64()) * bound as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{prop, prop_assert, proptest};

    #[test]
    fn medians() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0]), Some(3.0));
        assert_eq!(median(&[5.0, 1.0, 3.0]), Some(3.0));
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), Some(2.5));
    }

    #[test]
    fn fairness() {
        assert_eq!(jain(&[]), None);
        assert_eq!(jain(&[0, 0]), None);
        assert_eq!(jain(&[7, 7, 7]), Some(1.0));
        assert_eq!(jain(&[9, 0, 0]), Some(1.0 / 3.0));
    }

    #[test]
    fn intervals_repeat_with_their_seed_and_differ_with_another() {
        let samples: Vec<f64> = (0..31).map(|i| f64::from(i * i % 17)).collect();
        let once = median_with_interval(&samples, 1);
        assert_eq!(once, median_with_interval(&samples, 1));
        assert_eq!(
            median_with_interval(&[2.0], 1),
            Some(Estimate { value: 2.0, low: 2.0, high: 2.0 })
        );
    }

    #[test]
    fn intervals_cover_the_true_median_about_as_often_as_they_say() {
        let mut random = SplitMix(42);
        let covered = (0..300)
            .filter(|&round| {
                let samples: Vec<f64> = (0..25).map(|_| random.below(1_000_001) as f64).collect();
                let estimate = median_with_interval(&samples, round).unwrap();
                (estimate.low..=estimate.high).contains(&500_000.0)
            })
            .count();
        assert!((270..=300).contains(&covered), "{covered} of 300 at a nominal 95 %");
    }

    proptest! {
        #[test]
        fn the_interval_holds_the_value(samples in prop::collection::vec(-1e9_f64..1e9, 1..40)) {
            let estimate = median_with_interval(&samples, 7).unwrap();
            prop_assert!(estimate.low <= estimate.value && estimate.value <= estimate.high);
        }
    }
}
