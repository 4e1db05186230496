//! The sign test and its interval: exact for whatever distribution.

/// Probability that of `n` fair coins at most `k` show heads.
fn at_most(k: usize, n: usize) -> f64 {
    // In logarithms: 2^-n is too small for a float from 1075 coins on.
    let mut ln_term = -(n as f64) * std::f64::consts::LN_2;
    let mut sum = 0.0;
    for heads in 0..=k.min(n) {
        sum += ln_term.exp();
        ln_term += ((n - heads) as f64 / (heads + 1) as f64).ln();
    }
    sum.min(1.0)
}

/// Gives the two-sided p of the median being 0. Zeros speak for that.
pub(super) fn sign_test(samples: &[f64]) -> f64 {
    let above = samples.iter().filter(|&&x| x > 0.0).count();
    let below = samples.iter().filter(|&&x| x < 0.0).count();
    let fewer = samples.len() - above.max(below);
    (2.0 * at_most(fewer, samples.len())).min(1.0)
}

/// Gives the interval of order statistics that holds the median with a probability of `1 - alpha`
/// or more; `None` of too few samples.
pub(super) fn median_interval(sorted: &[f64], alpha: f64) -> Option<(f64, f64)> {
    let n = sorted.len();
    // Outside of the d-th smallest and largest with probability 2 P(at most d - 1 heads).
    let outside = |d: usize| 2.0 * at_most(d - 1, n);
    let d = (1..=n.div_ceil(2)).take_while(|&d| outside(d) <= alpha).last()?;
    Some((sorted[d - 1], sorted[n - d]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_are_those_of_coins() {
        assert!((at_most(0, 3) - 0.125).abs() < 1e-12);
        assert!((at_most(1, 3) - 0.5).abs() < 1e-12);
        assert!((at_most(5, 10) - 638.0 / 1024.0).abs() < 1e-12);
        assert!((at_most(10, 10) - 1.0).abs() < 1e-12);
        assert!((at_most(5000, 10_000) - 0.503_989).abs() < 1e-5);
    }

    #[test]
    fn intervals_are_those_of_tables() {
        let sorted: Vec<f64> = (1..=20).map(f64::from).collect();
        // n = 20: the 6th to the 15th hold the median with 95.86 %.
        assert_eq!(median_interval(&sorted, 0.05), Some((6.0, 15.0)));
        assert_eq!(median_interval(&sorted[..5], 0.05), None);
        assert_eq!(median_interval(&sorted[..6], 0.05), Some((1.0, 6.0)));
        assert_eq!(median_interval(&[], 0.05), None);
    }

    #[test]
    fn signs() {
        assert_eq!(sign_test(&[]), 1.0);
        assert_eq!(sign_test(&[0.0; 8]), 1.0);
        assert!((sign_test(&[1.0; 8]) - 2.0 / 256.0).abs() < 1e-12);
        assert!((sign_test(&[1.0, 1.0, 1.0, 0.0]) - 2.0 * 5.0 / 16.0).abs() < 1e-12);
    }
}
