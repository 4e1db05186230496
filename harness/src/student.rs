//! Student's t distribution, for means and medians of few repetitions.

/// Gives the probability that |t| exceeds `t` with so many degrees of freedom.
///
/// ```
/// let p = harness::student::two_sided(2.776_445, 4.0);
/// assert!((p - 0.05).abs() < 1e-6);
/// ```
pub fn two_sided(t: f64, freedom: f64) -> f64 {
    if t.is_infinite() { 0.0 } else { beta(freedom / 2.0, 0.5, freedom / (freedom + t * t)) }
}

/// Gives the t that |t| exceeds with the probability `p`, above 0 and at most 1.
pub fn quantile(p: f64, freedom: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    while two_sided(high, freedom) > p && high < 1e12 {
        high *= 2.0;
    }
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if two_sided(middle, freedom) > p {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

/// The regularised incomplete beta function (Numerical Recipes, 3rd edition, section 6.4).
fn beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    let front = ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (1.0 - x).ln();
    if x < (a + 1.0) / (a + b + 2.0) {
        front.exp() * fraction(a, b, x) / a
    } else {
        1.0 - front.exp() * fraction(b, a, 1.0 - x) / b
    }
}

/// The continued fraction of the incomplete beta function, by Lentz's method.
fn fraction(a: f64, b: f64, x: f64) -> f64 {
    let away = |value: f64| if value.abs() < 1e-300 { 1e-300 } else { value };
    let (mut c, mut d) = (1.0, 1.0 / away(1.0 - (a + b) * x / (a + 1.0)));
    let mut h = d;
    for m in 1..400 {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut last = 1.0;
        for term in [even, odd] {
            d = 1.0 / away(1.0 + term * d);
            c = away(1.0 + term / c);
            last = d * c;
            h *= last;
        }
        if (last - 1.0).abs() < 1e-14 {
            break;
        }
    }
    h
}

/// Logarithm of the gamma function (Lanczos), for positive arguments.
fn ln_gamma(x: f64) -> f64 {
    const TERMS: [f64; 6] = [
        76.180_091_729_471_46,
        -86.505_320_329_416_77,
        24.014_098_240_830_91,
        -1.231_739_572_450_155,
        0.120_865_097_386_617_9e-2,
        -0.539_523_938_495_3e-5,
    ];
    let base = x + 5.5;
    let series: f64 = (1..).zip(TERMS).map(|(at, term)| term / (x + f64::from(at))).sum();
    (x + 0.5) * base.ln() - base
        + (2.506_628_274_631_000_5 * (1.000_000_000_190_015 + series) / x).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Quantiles as tables of the distribution have them.
    #[test]
    fn agrees_with_tables() {
        for (p, freedom, t) in [
            (0.05, 1.0, 12.706_2),
            (0.05, 2.0, 4.302_65),
            (0.05, 4.0, 2.776_45),
            (0.01, 9.0, 3.249_84),
            (0.05, 30.0, 2.042_27),
            (0.001, 100.0, 3.390_49),
            (0.05, 1e6, 1.959_97),
        ] {
            let got = quantile(p, freedom);
            assert!((got / t - 1.0).abs() < 1e-4, "{p} {freedom}: {got} for {t}");
            assert!((two_sided(t, freedom) / p - 1.0).abs() < 1e-3, "{p} {freedom}");
        }
    }

    #[test]
    fn ends_are_ends() {
        assert_eq!(two_sided(0.0, 5.0), 1.0);
        assert_eq!(two_sided(f64::INFINITY, 5.0), 0.0);
        assert!(two_sided(1e6, 3.0) < 1e-12);
        assert!(quantile(1.0, 3.0) < 1e-6);
    }
}
