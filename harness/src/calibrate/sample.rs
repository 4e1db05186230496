//! Repetitions of one measurement.

use std::fmt;

use simulator::machine::FigureValue;

use crate::report::number::short;
use crate::stats::median;

/// Repetitions, at least one.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// Each repetition.
    pub values: Vec<f64>,
}

impl Sample {
    pub(super) fn new(values: Vec<f64>) -> Self {
        Self { values }
    }

    /// Gives the middle one.
    pub fn median(&self) -> f64 {
        median(&self.values).unwrap_or(f64::NAN)
    }

    /// Gives the least.
    pub fn least(&self) -> f64 {
        self.values.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// Gives the most.
    pub fn most(&self) -> f64 {
        self.values.iter().copied().fold(0.0, f64::max)
    }

    /// The sample of another unit.
    pub(super) fn times(&self, factor: f64) -> Self {
        Self { values: self.values.iter().map(|value| value * factor).collect() }
    }

    pub(super) fn figure(&self) -> FigureValue {
        FigureValue::Number(self.median())
    }
}

impl fmt::Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (least, most) = (short(self.least()), short(self.most()));
        write!(f, "median of {}, {least} to {most}", self.values.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_its_spread() {
        let sample = Sample::new(vec![3.0, 1.0, 2.5]);
        assert_eq!(sample.to_string(), "median of 3, 1.00 to 3.00");
        assert_eq!(sample.figure(), FigureValue::Number(2.5));
        assert_eq!(sample.times(2.0).median(), 5.0);
    }
}
