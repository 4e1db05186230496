//! What the ratios look like: two modes, or a drift.

use crate::stats::median;

/// What is odd about the ratios.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Flags {
    /// The medians of the two modes, if there are two.
    pub modes: Option<(f64, f64)>,
    /// The medians of the first and of the last third, if the ratios drift.
    pub drift: Option<(f64, f64)>,
}

/// Fewer samples show no shape.
const LEAST: usize = 12;

/// Looks at logarithms of ratios in the order in which they were measured. Drifts smaller than
/// `margin` do not matter.
pub(super) fn flags(samples: &[f64], margin: f64) -> Flags {
    if samples.len() < LEAST {
        return Flags::default();
    }
    Flags { modes: modes(samples), drift: drift(samples, margin) }
}

/// Distance of two modes, in their common spread, from which on they are two (Ashman's D). The
/// halves of a normal distribution are 2.6 apart, those of a uniform one 3.5.
const APART: f64 = 5.0;
/// Share of the samples that a mode has at the least; less are outliers.
const SHARE: f64 = 0.15;

/// Cuts the sorted samples where the halves are farthest apart for their spread.
fn modes(samples: &[f64]) -> Option<(f64, f64)> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    let least = ((n as f64 * SHARE).ceil() as usize).max(3);
    let (mut sums, mut squares) = (vec![0.0], vec![0.0]);
    // Around the median: squares of small differences of large numbers would drown.
    let middle = median(&sorted)?;
    for &x in &sorted {
        let x = x - middle;
        sums.push(sums[sums.len() - 1] + x);
        squares.push(squares[squares.len() - 1] + x * x);
    }
    let moments = |from: usize, to: usize| {
        let (count, sum) = ((to - from) as f64, sums[to] - sums[from]);
        let mean = sum / count;
        let variance = ((squares[to] - squares[from]) / count - mean * mean).max(0.0);
        (mean, variance)
    };
    let distance = |cut: usize| {
        let ((a, spread_a), (b, spread_b)) = (moments(0, cut), moments(cut, n));
        let gap = b - a;
        if gap <= 0.0 { 0.0 } else { std::f64::consts::SQRT_2 * gap / (spread_a + spread_b).sqrt() }
    };
    // Constant samples have differences of rounding only.
    if sorted[n - 1] - sorted[0] <= 1e-9 {
        return None;
    }
    let cut = (least..=n - least).max_by(|&a, &b| distance(a).total_cmp(&distance(b)))?;
    if distance(cut) < APART {
        return None;
    }
    Some((median(&sorted[..cut])?, median(&sorted[cut..])?))
}

/// Mann and Kendall's test of a trend; the p below which it is one is 0.001.
const TREND: f64 = 3.29;

fn drift(samples: &[f64], margin: f64) -> Option<(f64, f64)> {
    let n = samples.len();
    let mut rising = 0.0;
    for (at, a) in samples.iter().enumerate() {
        for b in &samples[at + 1..] {
            rising += match b.total_cmp(a) {
                std::cmp::Ordering::Greater => 1.0,
                std::cmp::Ordering::Less => -1.0,
                std::cmp::Ordering::Equal => 0.0,
            };
        }
    }
    let count = n as f64;
    let spread = (count * (count - 1.0) * (2.0 * count + 5.0) / 18.0).sqrt();
    let third = n / 3;
    let (first, last) = (median(&samples[..third])?, median(&samples[n - third..])?);
    (f64::abs(rising) > TREND * spread && (last - first).abs() > margin).then_some((first, last))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::SplitMix;

    fn uniform(random: &mut SplitMix) -> f64 {
        random.below(1 << 30) as f64 / f64::from(1 << 30)
    }

    fn normal(random: &mut SplitMix) -> f64 {
        (0..12).map(|_| uniform(random)).sum::<f64>() - 6.0
    }

    #[test]
    fn two_modes_are_seen_and_one_is_not_taken_for_two() {
        let mut random = SplitMix(5);
        let (mut seen, mut false_alarms) = (0, [0; 3]);
        for _ in 0..500 {
            let two: Vec<f64> = (0..48)
                .map(|at| normal(&mut random) + if at % 3 == 0 { 8.0 } else { 0.0 })
                .collect();
            seen += usize::from(modes(&two).is_some());
            let one: Vec<f64> = (0..48).map(|_| normal(&mut random)).collect();
            let flat: Vec<f64> = (0..48).map(|_| uniform(&mut random)).collect();
            // A ratio of normal numbers has tails without bound.
            let heavy: Vec<f64> =
                (0..48).map(|_| normal(&mut random) / normal(&mut random)).collect();
            for (count, samples) in false_alarms.iter_mut().zip([one, flat, heavy]) {
                *count += usize::from(modes(&samples).is_some());
            }
        }
        println!("{seen} of 500 seen, false alarms {false_alarms:?}");
        assert!(seen >= 490, "{seen}");
        assert!(false_alarms.iter().all(|&alarms| alarms <= 5), "{false_alarms:?}");
        let (low, high) = modes(&[[0.0; 10].as_slice(), &[1.0; 6]].concat()).unwrap();
        assert_eq!((low, high), (0.0, 1.0));
        assert_eq!(modes(&[0.25; 20]), None);
    }

    #[test]
    fn a_drift_is_seen_and_chance_is_not_taken_for_one() {
        let mut random = SplitMix(9);
        let (mut seen, mut false_alarms) = (0, 0);
        for _ in 0..500 {
            let still: Vec<f64> = (0..48).map(|_| normal(&mut random)).collect();
            let drifting: Vec<f64> =
                (0..48).map(|at| normal(&mut random) + f64::from(at) * 0.1).collect();
            seen += u32::from(drift(&drifting, 0.1).is_some());
            false_alarms += u32::from(drift(&still, 0.0).is_some());
        }
        assert!(seen >= 495 && false_alarms <= 4, "{seen} seen, {false_alarms} false");
        assert_eq!(drift(&[1.0; 30], 0.0), None);
    }
}
