//! Axes: which figure lies where, and which figures are written at the axis.

use crate::report::number::short;

/// Where figures lie between the two ends of an axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Scale {
    /// From 0, in proportion.
    Linear {
        /// The figure at the far end.
        high: f64,
    },
    /// By the logarithm: equal ratios are equally far apart.
    Log {
        /// The figure at the near end.
        low: f64,
        /// The figure at the far end.
        high: f64,
    },
}

/// From this ratio of the largest to the smallest figure on, small ones would vanish on a linear
/// axis.
const LOG_FROM: f64 = 15.0;

impl Scale {
    /// Chooses a scale for figures, or `None` without a finite one.
    pub(crate) fn fit(figures: impl Iterator<Item = f64>) -> Option<Self> {
        let (mut low, mut high, mut any) = (f64::INFINITY, 0.0_f64, false);
        for figure in figures.filter(|figure| figure.is_finite() && *figure >= 0.0) {
            any = true;
            high = high.max(figure);
            if figure > 0.0 {
                low = low.min(figure);
            }
        }
        if !any {
            return None;
        }
        if high == 0.0 {
            return Some(Self::Linear { high: 1.0 });
        }
        // Figures of more than this many decades are cut at the low end.
        let low = low.max(high / 1e12);
        if high / low < LOG_FROM {
            return Some(Self::Linear { high: high * 1.04 });
        }
        Some(Self::Log { low: low / 1.3, high: high * 1.3 })
    }

    /// Gives the share of the axis at which a figure lies, within 0 and 1.
    pub(crate) fn at(self, figure: f64) -> f64 {
        let share = match self {
            Self::Linear { high } => figure / high,
            Self::Log { low, high } => (figure.max(low) / low).log10() / (high / low).log10(),
        };
        if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 }
    }

    /// Tells whether a figure lies between the ends.
    pub(crate) fn holds(self, figure: f64) -> bool {
        match self {
            Self::Linear { high } => (0.0..=high).contains(&figure),
            Self::Log { low, high } => (low..=high).contains(&figure),
        }
    }

    /// Tells whether it is logarithmic.
    pub(crate) fn is_log(self) -> bool {
        matches!(self, Self::Log { .. })
    }

    /// Gives the figures to be written at the axis, `most` or a few more.
    pub(crate) fn ticks(self, most: usize) -> Vec<(f64, String)> {
        let most = most.max(2);
        let ticks = match self {
            Self::Linear { high } => {
                let step = nice(high / most as f64);
                let count = (high / step + 1e-9).floor() as usize;
                (0..=count.min(20)).map(|n| n as f64 * step).collect()
            }
            Self::Log { low, high } => log_ticks(low, high, most),
        };
        ticks.into_iter().map(|tick| (tick, label(tick))).collect()
    }
}

/// The least of 1, 2, 5, 10 … that is no smaller than `step`.
fn nice(step: f64) -> f64 {
    let magnitude = 10_f64.powf(step.log10().floor());
    let lead = step / magnitude;
    magnitude * [1.0, 2.0, 5.0].into_iter().find(|nice| lead <= nice + 1e-9).unwrap_or(10.0)
}

fn log_ticks(low: f64, high: f64, most: usize) -> Vec<f64> {
    let decades = low.log10().floor() as i32..=high.log10().ceil() as i32;
    let within = |leads: &[f64]| -> Vec<f64> {
        let each = decades.clone().flat_map(|d| leads.iter().map(move |l| l * 10_f64.powi(d)));
        each.filter(|tick| (low..=high).contains(tick)).collect()
    };
    let mut ticks = within(&[1.0, 2.0, 5.0]);
    if ticks.len() > most {
        ticks = within(&[1.0, 3.0]);
    }
    if ticks.len() > most {
        ticks = within(&[1.0]);
    }
    if ticks.len() > most {
        let every = ticks.len().div_ceil(most);
        ticks = ticks.into_iter().step_by(every).collect();
    }
    ticks
}

fn label(tick: f64) -> String {
    let size = tick.abs();
    // Sums of steps are a little off.
    let whole = (tick - tick.round()).abs() < 1e-9 * size.max(1.0);
    match size {
        0.0 => "0".into(),
        size if size >= 1e9 => format!("{tick:.0e}"),
        size if size >= 1e4 && whole => format!("{}k", short(tick / 1e3).trim_end_matches(".0")),
        _ if whole => format!("{}", tick.round()),
        size if size < 0.001 => format!("{tick:.0e}"),
        _ => {
            let text = format!("{tick:.3}");
            text.trim_end_matches('0').to_owned()
        }
    }
}

/// Where numbers of threads lie on an axis, as shares of it: in proportion, or from a ratio of 8
/// on by the logarithm.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Threads {
    least: f64,
    most: f64,
    log: bool,
}

impl Threads {
    pub(crate) fn fit(counts: &[usize]) -> Self {
        let least = counts.iter().min().map_or(1.0, |&n| n.max(1) as f64);
        let most = counts.iter().max().map_or(1.0, |&n| n.max(1) as f64);
        Self { least, most, log: most / least >= 8.0 }
    }

    pub(crate) fn at(self, threads: usize) -> f64 {
        let threads = threads.max(1) as f64;
        if self.most <= self.least {
            return 0.5;
        }
        if self.log {
            (threads / self.least).ln() / (self.most / self.least).ln()
        } else {
            (threads - self.least) / (self.most - self.least)
        }
    }

    pub(crate) fn is_log(self) -> bool {
        self.log
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(scale: Scale, most: usize) -> Vec<String> {
        scale.ticks(most).into_iter().map(|(_, label)| label).collect()
    }

    #[test]
    fn a_scale_fits_its_figures() {
        assert_eq!(Scale::fit(std::iter::empty()), None);
        assert_eq!(Scale::fit([f64::NAN, -1.0].into_iter()), None);
        assert!(!Scale::fit([1.0, 9.0].into_iter()).unwrap().is_log());
        let log = Scale::fit([1.0, 900.0].into_iter()).unwrap();
        assert!(log.is_log() && log.at(1.0) < log.at(30.0) && log.at(30.0) < log.at(900.0));
        for odd in [0.0, -5.0, f64::NAN, f64::INFINITY, 1e300] {
            assert!((0.0..=1.0).contains(&log.at(odd)), "{odd}");
        }
        assert!(Scale::fit([0.0, 0.0].into_iter()).unwrap().at(0.0) == 0.0);
        assert!(Scale::fit([5e-324, 1e308].into_iter()).unwrap().ticks(6).len() < 20);
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!(labels(Scale::Linear { high: 104.0 }, 5), ["0", "50", "100"]);
        assert_eq!(labels(Scale::Linear { high: 1.05 }, 5), ["0", "0.5", "1"]);
        assert_eq!(labels(Scale::Log { low: 0.9, high: 110.0 }, 4), ["1", "10", "100"]);
        assert_eq!(labels(Scale::Log { low: 5.0, high: 120.0 }, 6), ["5", "10", "20", "50", "100"]);
        assert_eq!(labels(Scale::Linear { high: 41_000.0 }, 4), ["0", "20k", "40k"]);
    }

    #[test]
    fn threads_spread_by_the_logarithm_when_far_apart() {
        let few = Threads::fit(&[1, 2, 4]);
        assert!(!few.is_log() && few.at(2) > 0.3 && few.at(2) < 0.34);
        let many = Threads::fit(&[1, 2, 128]);
        assert!(many.is_log() && (many.at(2) - 1.0 / 7.0).abs() < 1e-9);
        assert_eq!(Threads::fit(&[3]).at(3), 0.5);
        assert_eq!(Threads::fit(&[0, usize::MAX]).at(0), 0.0);
    }
}
