//! Numbers by Zipf's law: the k-th is drawn in proportion to k to the power of minus the exponent.

use harness::stats::SplitMix;

/// A distribution over 0 to a number less 1; 0 is drawn most often.
#[derive(Debug)]
pub(crate) struct Zipf(Vec<f64>);

impl Zipf {
    /// Makes the distribution of so many numbers. Exponent 0 draws all alike.
    pub(crate) fn new(numbers: usize, exponent: f64) -> Self {
        let mut sum = 0.0;
        let weights = (1..=numbers).map(|rank| (rank as f64).powf(-exponent));
        let mut sums: Vec<f64> = weights
            .map(|weight| {
                sum += weight;
                sum
            })
            .collect();
        sums.iter_mut().for_each(|part| *part /= sum);
        Self(sums)
    }

    /// Draws a number.
    pub(crate) fn draw(&self, random: &mut SplitMix) -> usize {
        let point = unit(random);
        self.0.partition_point(|&sum| sum < point).min(self.0.len().saturating_sub(1))
    }
}

/// Draws a number from 0 to 1, 1 excluded.
pub(crate) fn unit(random: &mut SplitMix) -> f64 {
    (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_follow_the_law() {
        let (zipf, mut random) = (Zipf::new(100, 1.0), SplitMix(1));
        let mut drawn = [0_u64; 100];
        (0..200_000).for_each(|_| drawn[zipf.draw(&mut random)] += 1);
        for rank in [2, 4, 8] {
            let ratio = drawn[0] as f64 / drawn[rank - 1] as f64;
            assert!((ratio / rank as f64 - 1.0).abs() < 0.1, "{rank}: {ratio}");
        }
        let (flat, mut random) = (Zipf::new(10, 0.0), SplitMix(1));
        assert!((0..1000).map(|_| flat.draw(&mut random)).all(|number| number < 10));
        assert_eq!(Zipf::new(1, 1.2).draw(&mut random), 0);
    }
}
