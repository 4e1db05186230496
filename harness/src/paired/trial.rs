//! The decision. Pure: ratios come in, verdicts come out.

use super::order::{median_interval, sign_test};
use super::shape::{Flags, flags};
use crate::stats::{Estimate, SplitMix, holm, median};
use crate::student;

/// What is known of B in relation to A.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// B takes less time.
    Faster,
    /// They differ by less than the margin.
    Equal,
    /// B takes more time.
    Slower,
    /// The ratios do not tell.
    Inconclusive,
}

impl Verdict {
    /// Gives the word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Faster => "faster",
            Self::Equal => "equal",
            Self::Slower => "slower",
            Self::Inconclusive => "inconclusive",
        }
    }
}

/// How sure a verdict must be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// Part of A's time by which B may differ and be called equal.
    pub margin: f64,
    /// Probability of calling any variant faster or slower that is neither.
    pub alpha: f64,
    /// How often the ratios are looked at.
    pub looks: u32,
    /// Part of A's time by which A differs from itself: smaller changes are not believed.
    pub floor: f64,
}

impl Default for Settings {
    fn default() -> Self {
        Self { margin: 0.03, alpha: 0.05, looks: 4, floor: 0.0 }
    }
}

/// What is known of one variant.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Finding {
    /// The verdict, once there is one.
    pub verdict: Option<Verdict>,
    /// The median ratio of B's time to A's.
    pub ratio: f64,
    /// Lower end of the interval that decided: at the level of one look at one variant.
    pub low: f64,
    /// Upper end of it.
    pub high: f64,
    /// The sign test's p, corrected for looks and variants.
    pub p: f64,
    /// Pairs that it stands on.
    pub pairs: usize,
    /// What is odd about the ratios.
    pub flags: Flags,
}

/// The ratios of one variant, as logarithms.
#[derive(Debug, Default)]
struct Variant {
    /// By process.
    processes: Vec<Vec<f64>>,
    /// In the order in which they came.
    all: Vec<f64>,
    /// The least p of the looks so far.
    p: f64,
    finding: Option<Finding>,
}

/// Variants that are compared with A, and what is known of them so far.
#[derive(Debug)]
pub struct Trial {
    settings: Settings,
    looks: u32,
    variants: Vec<Variant>,
}

impl Trial {
    /// Begins a trial of so many variants.
    pub fn new(variants: usize, settings: Settings) -> Self {
        let new = |_| Variant { p: 1.0, ..Variant::default() };
        Self { settings, looks: 0, variants: (0..variants).map(new).collect() }
    }

    /// Takes ratios of a variant's times to A's, measured in the process of this number. What is
    /// not above 0 and finite is no ratio and is left out.
    pub fn add(&mut self, variant: usize, process: usize, ratios: impl IntoIterator<Item = f64>) {
        let variant = &mut self.variants[variant];
        if variant.processes.len() <= process {
            variant.processes.resize_with(process + 1, Vec::new);
        }
        for ratio in ratios.into_iter().map(f64::ln).filter(|ratio| ratio.is_finite()) {
            variant.processes[process].push(ratio);
            variant.all.push(ratio);
        }
    }

    /// Whether nothing is known of a variant yet.
    pub fn open(&self, variant: usize) -> bool {
        self.finding(variant).verdict.is_none()
    }

    /// Looks at the ratios; `true` ends the trial. The last look leaves no variant without a
    /// verdict, and further ones change nothing.
    pub fn look(&mut self) -> bool {
        if self.looks >= self.settings.looks {
            return true;
        }
        self.looks += 1;
        let (looks, count) = (f64::from(self.settings.looks), self.variants.len());
        for variant in &mut self.variants {
            variant.p = variant.p.min(variant.p_now() * looks);
        }
        let ps: Vec<f64> = self.variants.iter().map(|variant| variant.p).collect();
        let last = self.looks == self.settings.looks;
        let level = self.settings.alpha / looks / count as f64;
        for (variant, p) in self.variants.iter_mut().zip(holm(&ps, count as u64)) {
            let decided = variant.finding.is_some_and(|finding| finding.verdict.is_some());
            if !decided {
                variant.finding = Some(variant.judge(p, level, last, &self.settings));
            }
        }
        last || (0..count).all(|variant| !self.open(variant))
    }

    /// Gives what the last look found.
    pub fn finding(&self, variant: usize) -> Finding {
        self.variants[variant].finding.unwrap_or(Finding {
            verdict: None,
            ratio: f64::NAN,
            low: 0.0,
            high: f64::INFINITY,
            p: 1.0,
            pairs: 0,
            flags: Flags::default(),
        })
    }

    /// Gives the median ratio with its 95 % bootstrap interval; `None` without ratios.
    pub fn estimate(&self, variant: usize, seed: u64) -> Option<Estimate> {
        interval(&self.variants[variant].processes, seed).map(|ln| Estimate {
            value: ln.value.exp(),
            low: ln.low.exp(),
            high: ln.high.exp(),
        })
    }
}

impl Variant {
    /// Medians of the processes; layout of memory shows between at least two.
    fn medians(&self) -> Vec<f64> {
        self.processes.iter().filter_map(|process| median(process)).collect()
    }

    /// The p of this look alone: the sign test's, and that of the processes' medians.
    fn p_now(&self) -> f64 {
        let signs = sign_test(&self.all);
        match between(&self.medians()) {
            None => signs,
            Some((0.0, _, _)) => 1.0,
            Some((mean, error, freedom)) => {
                signs.max(student::two_sided((mean / error).abs(), freedom))
            }
        }
    }

    fn judge(&self, p: f64, level: f64, last: bool, settings: &Settings) -> Finding {
        let mut sorted = self.all.clone();
        sorted.sort_by(f64::total_cmp);
        let change = median(&sorted).unwrap_or(f64::NAN);
        let (mut low, mut high) =
            median_interval(&sorted, level).unwrap_or((f64::NEG_INFINITY, f64::INFINITY));
        if let Some((mean, error, freedom)) = between(&self.medians()) {
            let reach = student::quantile(level, freedom) * error;
            (low, high) = (low.min(mean - reach), high.max(mean + reach));
        }
        let margin = settings.margin.ln_1p();
        let believed = margin.max(settings.floor.ln_1p());
        let flags = flags(&self.all, margin);
        let side = |change: f64| match change {
            slower if slower > believed => Verdict::Slower,
            faster if faster < -believed => Verdict::Faster,
            small if small.abs() <= margin => Verdict::Equal,
            _ => Verdict::Inconclusive,
        };
        let sure = match side(change) {
            verdict @ (Verdict::Slower | Verdict::Faster) if p <= settings.alpha => Some(verdict),
            _ if low >= -margin && high <= margin => Some(Verdict::Equal),
            _ => None,
        };
        // Parts that would get another verdict each are not summed up in one.
        let parts = [flags.modes, flags.drift];
        let agrees = |verdict: Verdict| {
            let parts = parts.into_iter().flatten();
            parts.flat_map(|(a, b)| [a, b]).all(|part| side(part) == verdict)
        };
        let verdict = match sure.filter(|&verdict| agrees(verdict)) {
            None if last => Some(Verdict::Inconclusive),
            other => other,
        };
        Finding {
            verdict,
            ratio: change.exp(),
            low: low.exp(),
            high: high.exp(),
            p,
            pairs: self.all.len(),
            flags,
        }
    }
}

/// Mean, standard error and degrees of freedom of two medians or more.
fn between(medians: &[f64]) -> Option<(f64, f64, f64)> {
    let count = medians.len() as f64;
    if medians.len() < 2 {
        return None;
    }
    let mean = medians.iter().sum::<f64>() / count;
    let squares: f64 = medians.iter().map(|x| (x - mean).powi(2)).sum();
    Some((mean, (squares / (count - 1.0) / count).sqrt(), count - 1.0))
}

/// Resamples of the bootstrap.
const RESAMPLES: usize = 2000;

/// Gives the median of all and its 95 % percentile-bootstrap interval: of several processes some are
/// drawn, and then samples of each.
pub fn interval(processes: &[Vec<f64>], seed: u64) -> Option<Estimate> {
    let filled: Vec<&Vec<f64>> = processes.iter().filter(|process| !process.is_empty()).collect();
    let value = median(&filled.iter().flat_map(|p| p.iter().copied()).collect::<Vec<_>>())?;
    let mut random = SplitMix(seed);
    let mut resampled = Vec::new();
    let mut medians: Vec<f64> = (0..RESAMPLES)
        .filter_map(|_| {
            resampled.clear();
            for _ in 0..filled.len() {
                let process = filled[random.below(filled.len())];
                resampled.extend((0..process.len()).map(|_| process[random.below(process.len())]));
            }
            median(&resampled)
        })
        .collect();
    medians.sort_by(f64::total_cmp);
    let at = |share: f64| medians[((medians.len() - 1) as f64 * share).round() as usize];
    Some(Estimate { value, low: at(0.025), high: at(0.975) })
}

#[cfg(test)]
mod tests;
