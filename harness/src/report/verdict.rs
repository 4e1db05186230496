//! The verdict on a primitive, in one line: who is first at the most threads, who ties with it,
//! and what is cheapest alone. The terminal's table and the report say it by the same rules.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::records::{Metric, Point, Status};
use crate::report::number::{exact, short};

/// What a row of a primitive's table is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The loop without the primitive.
    Baseline,
    /// An algorithm to choose.
    Variant,
    /// Built wrongly on purpose; must look bad.
    Control,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Baseline => "baseline",
            Self::Variant => "variant",
            Self::Control => "control",
        })
    }
}

/// The kinds of the rows that the program knows. Records do not say them.
#[derive(Debug, Clone, Default)]
pub struct Kinds(BTreeMap<(String, String), Kind>);

impl Kinds {
    /// Takes primitive, variant and kind of each row.
    pub fn new<'a>(rows: impl IntoIterator<Item = (&'a str, &'a str, &'a str)>) -> Self {
        let kind = |word| match word {
            "baseline" => Kind::Baseline,
            "control" => Kind::Control,
            _ => Kind::Variant,
        };
        Self(rows.into_iter().map(|(p, v, k)| ((p.to_owned(), v.to_owned()), kind(k))).collect())
    }

    /// Gives the kind of a row; a row that the program does not know is a variant of its user's.
    pub fn of(&self, primitive: &str, variant: &str) -> Kind {
        // The map is small and asked once a point.
        let key = (primitive.to_owned(), variant.to_owned());
        self.0.get(&key).copied().unwrap_or(Kind::Variant)
    }
}

/// What decides who is first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// The most operations a second.
    Throughput,
    /// The fewest instructions an operation, where no time was measured.
    Instructions,
}

impl By {
    fn metric(self) -> &'static str {
        match self {
            Self::Throughput => "ops_per_s",
            Self::Instructions => "instructions_per_op",
        }
    }
}

/// Who is first at one number of threads.
#[derive(Debug, Clone, PartialEq)]
pub struct Place {
    /// The number of threads.
    pub threads: usize,
    /// The variant that is first.
    pub best: String,
    /// Placement and memory of its point, when the points differ in them.
    pub whereabouts: Option<String>,
    /// What decided.
    pub by: By,
    /// Its figure.
    pub value: f64,
    /// How evenly its threads were served; `None` with one thread or without the figure.
    pub fairness: Option<f64>,
    /// Variants whose interval reaches that of the first.
    pub ties: Vec<String>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { threads, best, value, .. } = self;
        let plural = if *threads == 1 { "" } else { "s" };
        write!(f, "{best} is first at {threads} thread{plural}")?;
        if let Some(whereabouts) = &self.whereabouts {
            write!(f, ", {whereabouts}")?;
        }
        match self.by {
            By::Throughput => write!(f, " ({} Mops/s", short(value / 1e6))?,
            By::Instructions => write!(f, " ({} instructions/op", exact(*value))?,
        }
        if let Some(fairness) = self.fairness {
            write!(f, ", fairness {fairness:.2}")?;
        }
        write!(f, ")")?;
        if !self.ties.is_empty() {
            write!(f, ", tied with {}", self.ties.join(", "))?;
        }
        Ok(())
    }
}

/// The verdict on one primitive.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// The primitive.
    pub primitive: String,
    /// Who is first at the most threads, and at the fewest when these are others.
    pub places: Vec<Place>,
    /// Points that decided.
    pub points: usize,
    /// Points among them that were disturbed.
    pub noisy: usize,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.primitive, self.sentence())
    }
}

impl Verdict {
    /// Gives the verdict without the primitive's name.
    pub fn sentence(&self) -> String {
        if self.places.is_empty() {
            return "no variant gave a figure".into();
        }
        let places: Vec<String> = self.places.iter().map(Place::to_string).collect();
        let noisy = match self.noisy {
            0 => String::new(),
            noisy => format!(" ({noisy} of {} points noisy)", self.points),
        };
        places.join("; ") + &noisy
    }
}

/// Judges the points of one primitive, measured by one engine on one machine. Baselines and
/// controls do not compete; broken and unavailable points have no figure to compete with.
pub fn verdict(primitive: &str, points: &[&Point], kinds: &Kinds) -> Verdict {
    let competes = |by: By| -> Vec<&Point> {
        points
            .iter()
            .copied()
            .filter(|p| matches!(p.status, Status::Ok | Status::Noisy))
            .filter(|p| kinds.of(primitive, &p.variant) == Kind::Variant)
            .filter(|p| interval(p, by.metric()).is_some())
            .collect()
    };
    let (mut by, mut measured) = (By::Throughput, competes(By::Throughput));
    if measured.is_empty() {
        (by, measured) = (By::Instructions, competes(By::Instructions));
    }
    let most = measured.iter().map(|point| point.threads).max();
    let least = measured.iter().map(|point| point.threads).min();
    let mut ends: Vec<usize> = most.into_iter().chain(least).collect();
    ends.dedup();
    let places = ends.into_iter().filter_map(|threads| first_place(&measured, threads, by));
    Verdict {
        primitive: primitive.into(),
        places: places.collect(),
        points: measured.len(),
        noisy: measured.iter().filter(|point| point.status == Status::Noisy).count(),
    }
}

fn first_place(measured: &[&Point], threads: usize, by: By) -> Option<Place> {
    let at: Vec<&Point> = measured.iter().copied().filter(|p| p.threads == threads).collect();
    let figure = |point: &Point| interval(point, by.metric()).unwrap_or_default();
    // The first of equals is the first in the table.
    let best = *at.iter().reduce(|a, b| {
        let better = match by {
            By::Throughput => figure(b).1 > figure(a).1,
            By::Instructions => figure(b).1 < figure(a).1,
        };
        if better { b } else { a }
    })?;
    let (low, value, high) = figure(best);
    let reaches = |point: &Point| match by {
        By::Throughput => figure(point).2 >= low,
        By::Instructions => figure(point).0 <= high,
    };
    let mut named = BTreeSet::from([best.variant.as_str()]);
    let ties = at
        .iter()
        .filter(|p| reaches(p) && named.insert(&p.variant))
        .map(|p| p.variant.clone())
        .collect();
    let differ = at.iter().any(|p| whereabouts(p) != whereabouts(best));
    let fairness = best.metrics.get("fairness_jain").and_then(Metric::value);
    Some(Place {
        threads,
        best: best.variant.clone(),
        whereabouts: differ.then(|| whereabouts(best)),
        by,
        value,
        fairness: fairness.filter(|_| threads > 1),
        ties,
    })
}

fn whereabouts(point: &Point) -> String {
    match point.workload.get("memory").and_then(serde_json::Value::as_str) {
        Some(memory) => format!("{} with memory {memory}", point.placement),
        None => point.placement.clone(),
    }
}

/// Gives low end, value and high end of a figure or a count; the ends are the value itself where
/// it has no interval.
pub fn interval(point: &Point, metric: &str) -> Option<(f64, f64, f64)> {
    match point.metrics.get(metric)? {
        Metric::Figure { value, low, high } => {
            Some((low.unwrap_or(*value), *value, high.unwrap_or(*value)))
        }
        Metric::Count { value } => Some((*value as f64, *value as f64, *value as f64)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn point(variant: &str, threads: usize, metrics: &serde_json::Value) -> Point {
        serde_json::from_value(json!({
            "record": "point", "run": "r", "engine": "native", "machine": "this-host",
            "primitive": "locks", "variant": variant, "workload": {"memory": "local"},
            "threads": threads, "placement": "compact", "cpus": [], "seed": 1, "repeat": 5,
            "status": "ok", "reasons": [], "metrics": metrics, "per_thread": {},
        }))
        .unwrap()
    }

    fn fast(variant: &str, threads: usize, mops: f64) -> Point {
        let [low, value, high] = [0.95, 1.0, 1.05].map(|share| share * mops * 1e6);
        let ops = json!({"value": value, "low": low, "high": high});
        point(variant, threads, &json!({"ops_per_s": ops, "fairness_jain": {"value": 0.5}}))
    }

    fn judged(points: &[Point]) -> String {
        let kinds = Kinds::new([("locks", "null", "baseline"), ("locks", "bad", "control")]);
        verdict("locks", &points.iter().collect::<Vec<_>>(), &kinds).to_string()
    }

    #[test]
    fn the_first_is_a_variant_and_ties_are_named() {
        let points = [
            fast("null", 2, 900.0),
            fast("bad", 2, 99.0),
            fast("tas", 2, 50.0),
            fast("mcs", 2, 48.0),
            fast("futex", 2, 20.0),
            fast("mcs", 1, 70.0),
        ];
        assert_eq!(
            judged(&points),
            "locks: tas is first at 2 threads (50.0 Mops/s, fairness 0.50), tied with mcs; mcs is \
             first at 1 thread (70.0 Mops/s)"
        );
    }

    #[test]
    fn disturbed_points_are_counted_and_broken_ones_do_not_compete() {
        let (mut noisy, mut broken) = (fast("tas", 1, 5.0), fast("mcs", 1, 9.0));
        noisy.status = Status::Noisy;
        broken.status = Status::Broken;
        assert_eq!(
            judged(&[noisy, broken.clone()]),
            "locks: tas is first at 1 thread (5.00 Mops/s) (1 of 1 points noisy)"
        );
        assert_eq!(judged(&[broken]), "locks: no variant gave a figure");
    }

    #[test]
    fn where_points_differ_in_placement_the_first_says_its_own() {
        let mut far = fast("mcs", 2, 9.0);
        far.placement = "scatter".into();
        let said = judged(&[fast("tas", 2, 5.0), far]);
        assert!(said.contains("mcs is first at 2 threads, scatter with memory local"), "{said}");
    }

    #[test]
    fn without_time_the_fewest_instructions_decide() {
        let counted =
            |variant, n: f64| point(variant, 1, &json!({"instructions_per_op": {"value": n}}));
        assert_eq!(
            judged(&[counted("mcs", 22.0), counted("tas", 9.0), counted("ticket", 9.0)]),
            "locks: tas is first at 1 thread (9 instructions/op), tied with ticket"
        );
    }
}
