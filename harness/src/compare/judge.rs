//! The verdict on one metric of one pair of points. Pure: nothing is read or kept here.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{LazyLock, Mutex};

use super::figures::{Figure, Figures};
use super::rules::{Better, How, RULES, how};
use crate::glossary;
use crate::records::Status;
use crate::student;

/// What a comparison says, the worst last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Neither side has figures.
    Unmeasured,
    /// The same, to within what was asked for.
    Equal,
    /// Better than before.
    Improved,
    /// The figures do not tell.
    Inconclusive,
    /// Worse than before.
    Regressed,
}

impl Verdict {
    /// Gives the word for it, in tables and in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Unmeasured => "unmeasured",
            Self::Equal => "equal",
            Self::Improved => "improved",
            Self::Inconclusive => "inconclusive",
            Self::Regressed => "regressed",
        }
    }
}

/// What counts as a change.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Part of a count by which it may differ, by metric or family; other counts must be the same.
    pub tolerances: BTreeMap<String, f64>,
    /// The same for counts that are not named.
    pub tolerance: f64,
    /// Part by which times may differ and be called equal.
    pub margin: f64,
    /// Probability of any false alarm among all times that are compared.
    pub alpha: f64,
    /// By which factor simulated times that carry no band may differ.
    pub model_factor: f64,
    /// Whether times of different hosts are compared.
    pub allow_different_hosts: bool,
    /// Whether times are compared at all.
    pub times: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            tolerances: BTreeMap::new(),
            tolerance: 0.0,
            margin: 0.05,
            alpha: 0.05,
            model_factor: 1.5,
            allow_different_hosts: false,
            times: true,
        }
    }
}

impl Settings {
    fn tolerance_of(&self, metric: &str) -> f64 {
        let family = || self.tolerances.get(glossary::entry(metric)?.name);
        self.tolerances.get(metric).or_else(family).copied().unwrap_or(self.tolerance)
    }
}

/// One side of a pair.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Side<'f> {
    pub(super) status: Status,
    pub(super) repeat: u64,
    pub(super) figures: Cow<'f, Figures>,
}

/// Why figures of the two runs must not be compared, where they must not.
#[derive(Debug, Clone, Default)]
pub(super) struct Barriers {
    pub(super) times: bool,
    pub(super) counts: bool,
    pub(super) machine: bool,
}

/// What was found about one metric.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// The metric.
    pub metric: &'static str,
    /// What it was; `None` where there was no figure.
    pub old: Option<Figure>,
    /// What it is.
    pub new: Option<Figure>,
    /// The verdict.
    pub verdict: Verdict,
    /// How likely a difference like this would be without a change, where that was asked.
    pub p: Option<f64>,
    /// What the verdict stands on.
    pub why: Cow<'static, str>,
}

/// What was found about a pair.
#[derive(Debug, Clone, Default)]
pub(super) struct Findings {
    /// All but equal figures.
    pub(super) different: Vec<Finding>,
    /// Metrics that were compared.
    pub(super) compared: u32,
    /// Times that were put to a test.
    pub(super) tests: u32,
    /// Figures that were not compared because of a barrier.
    pub(super) refused: u32,
}

/// Judges a pair of points of one engine and one number of threads.
pub(super) fn pair(
    old: &Side<'_>,
    new: &Side<'_>,
    (engine, threads): (&str, usize),
    barriers: &Barriers,
    settings: &Settings,
) -> Findings {
    let mut findings = Findings::default();
    let noisy = match (old.status == Status::Noisy, new.status == Status::Noisy) {
        (false, false) => None,
        (true, false) => Some("the old point was disturbed"),
        (false, true) => Some("the new point was disturbed"),
        (true, true) => Some("both points were disturbed"),
    };
    let repeat = old.repeat.min(new.repeat);
    for (at, before, after) in old.figures.of_either(&new.figures) {
        let rule = &RULES[at];
        let Some(how) = how(rule, engine, threads) else { continue };
        if matches!(how, How::Timed(_)) && !settings.times {
            continue;
        }
        let barred = match how {
            How::Layout => barriers.counts,
            How::Counted => barriers.counts || barriers.machine,
            How::Timed(_) if engine == "native" => barriers.times,
            How::Timed(_) => barriers.counts || barriers.machine,
        };
        let judged = match (before, after) {
            (Some(a), Some(b)) if !(a.is_sound() && b.is_sound()) => Judged::because(
                Verdict::Inconclusive,
                "no such figure can be: the record is damaged",
            ),
            (Some(a), Some(b)) if a == b => Judged::from(Verdict::Equal),
            (Some(_), Some(_)) if barred => {
                findings.refused += 1;
                continue;
            }
            (Some(a), Some(b)) => match how {
                How::Layout | How::Counted => count(a, b, settings.tolerance_of(rule.metric)),
                How::Timed(better) if engine == "simulated" => {
                    band(a, b, better, settings.model_factor)
                }
                How::Timed(better) => {
                    findings.tests += 1;
                    let finest = if is_of_a_histogram(rule.metric) { WHOLE_NS } else { 0.0 };
                    time((a, b, finest), better, repeat, noisy, settings)
                }
            },
            // A figure that only one program knows is no change; one that could not be had is.
            (Some(_), None) => Judged::because(Verdict::Inconclusive, "the new figure is missing"),
            (None, _) => continue,
        };
        findings.compared += 1;
        if judged.verdict != Verdict::Equal {
            let (old, new) = (before, after);
            let Judged { verdict, p, why } = judged;
            findings.different.push(Finding { metric: rule.metric, old, new, verdict, p, why });
        }
    }
    findings
}

/// Histograms hold whole nanoseconds: what is told as 5 is anything from 4.5 to 5.5.
const WHOLE_NS: f64 = 1.0;

fn is_of_a_histogram(metric: &str) -> bool {
    ["acquire_ns.", "handoff_ns.", "latency_ns."].iter().any(|family| metric.starts_with(family))
}

struct Judged {
    verdict: Verdict,
    p: Option<f64>,
    why: Cow<'static, str>,
}

impl Judged {
    fn because(verdict: Verdict, why: impl Into<Cow<'static, str>>) -> Self {
        Self { verdict, p: None, why: why.into() }
    }
}

impl From<Verdict> for Judged {
    fn from(verdict: Verdict) -> Self {
        Self::because(verdict, "")
    }
}

/// Counts are costs: more of them is worse.
fn count(old: Figure, new: Figure, tolerance: f64) -> Judged {
    let difference = new.value - old.value;
    if difference.abs() <= tolerance * old.value.abs() {
        Judged::from(Verdict::Equal)
    } else if tolerance > 0.0 {
        let why = format!("counts, {} % allowed", tolerance * 100.0);
        Judged::because(worse_if(difference > 0.0), why)
    } else {
        Judged::because(worse_if(difference > 0.0), "counts repeat exactly")
    }
}

fn worse_if(worse: bool) -> Verdict {
    if worse { Verdict::Regressed } else { Verdict::Improved }
}

/// Simulated times: inside the model's band nobody knows.
fn band(old: Figure, new: Figure, better: Better, factor: f64) -> Judged {
    let worse = worse_if((new.value > old.value) == (better == Better::Less));
    if old.interval && new.interval {
        let apart = new.low > old.high || old.low > new.high;
        let why = "outside the model's band";
        return if apart { Judged::because(worse, why) } else { Judged::from(Verdict::Equal) };
    }
    let ratio = new.value / old.value;
    let inside = ratio <= factor && ratio >= 1.0 / factor;
    if inside {
        return Judged::from(Verdict::Equal);
    }
    Judged::because(worse, format!("simulated, beyond the model's factor of {factor}"))
}

/// Times of which one may be nothing at all: there is no ratio.
fn near_zero(old: Figure, new: Figure, better: Better, finest: f64) -> Judged {
    let worse = worse_if((new.value > old.value) == (better == Better::Less));
    if (old.value - new.value).abs() <= finest {
        Judged::from(Verdict::Equal)
    } else if old.high < new.low || new.high < old.low {
        Judged::because(worse, format!("one is below the {finest} ns that are told apart"))
    } else {
        Judged::because(Verdict::Inconclusive, "near 0, where no ratio can be told")
    }
}

/// Times: the test of the ratio of two medians on a logarithmic scale, from their intervals, each
/// as wide at least as what is not told apart. The p that comes back is corrected for the other tests later.
fn time(
    (old, new, finest): (Figure, Figure, f64),
    better: Better,
    repeat: u64,
    noisy: Option<&'static str>,
    settings: &Settings,
) -> Judged {
    let unclear = |why: Cow<'static, str>| Judged::because(Verdict::Inconclusive, why);
    if !old.interval || !new.interval {
        return unclear("without intervals".into());
    }
    if repeat < 2 {
        return unclear("one repetition has no spread".into());
    }
    let (old, new) = (old.widened(finest), new.widened(finest));
    if old.low <= 0.0 || new.low <= 0.0 {
        return match noisy {
            _ if finest == 0.0 => unclear("not above 0: no ratio can be told".into()),
            Some(noisy) => unclear(noisy.into()),
            None => near_zero(old, new, better, finest),
        };
    }
    let freedom = (repeat - 1) as f64;
    // The bootstrap's interval of a normal median is as wide as 2 × 1.96 standard errors.
    let error = |figure: Figure| (figure.high / figure.low).ln() / (2.0 * 1.959_964);
    let error = error(old).hypot(error(new));
    let change = (new.value / old.value).ln();
    let reach = quantile(freedom) * error;
    let percent = |change: f64| (change.exp() - 1.0) * 100.0;
    let between = || {
        format!(
            "95 % interval of the change {:+.1} … {:+.1} %",
            percent(change - reach),
            percent(change + reach)
        )
    };
    let margin = (1.0 + settings.margin).ln();
    if change.abs() + reach <= margin {
        return Judged::from(Verdict::Equal);
    }
    let p = student::two_sided(change.abs() / error, freedom);
    if change.abs() <= margin || p > settings.alpha {
        return Judged { verdict: Verdict::Inconclusive, p: Some(p), why: between().into() };
    }
    if let Some(noisy) = noisy {
        let why = format!("{noisy}; {}", between());
        return Judged { verdict: Verdict::Inconclusive, p: Some(p), why: why.into() };
    }
    let verdict = worse_if((change > 0.0) == (better == Better::Less));
    Judged { verdict, p: Some(p), why: between().into() }
}

/// The 97.5 % quantile, which takes long to compute, once for each number of repetitions.
fn quantile(freedom: f64) -> f64 {
    static KNOWN: LazyLock<Mutex<BTreeMap<u64, f64>>> = LazyLock::new(Mutex::default);
    let mut known = KNOWN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    *known.entry(freedom.to_bits()).or_insert_with(|| student::quantile(0.05, freedom))
}

#[cfg(test)]
mod tests;
