//! What was found out about one thing: a verdict, what was seen, what it does, and the remedy.

use std::fmt;

use serde_json::{Map, Value, json};

use crate::unavailable::Unavailable;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Nothing to complain about.
    Ok,
    /// It could not be found out.
    Unknown,
    /// Figures are worse for it: wider intervals, or another cost than on a quiet machine.
    Warn,
    /// Figures of this host say little.
    Unfit,
}

impl Verdict {
    /// Gives the word of records.
    pub fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Unknown => "unknown",
            Self::Warn => "warn",
            Self::Unfit => "unfit",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

/// What a look at one thing gave.
#[derive(Debug, Clone)]
pub(super) struct Outcome {
    verdict: Verdict,
    seen: String,
    remedy: Option<String>,
    details: Option<Value>,
}

/// A look that failed is `unknown`, with the reason.
pub(super) type Looked = Result<Outcome, Unavailable>;

impl Outcome {
    pub(super) fn ok(seen: impl Into<String>) -> Self {
        Self { verdict: Verdict::Ok, seen: seen.into(), remedy: None, details: None }
    }

    pub(super) fn warn(seen: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { verdict: Verdict::Warn, remedy: Some(remedy.into()), ..Self::ok(seen) }
    }

    pub(super) fn unfit(seen: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { verdict: Verdict::Unfit, ..Self::warn(seen, remedy) }
    }

    /// Gives the outcome that fits a figure and its two thresholds.
    pub(super) fn by_figure(
        figure: f64,
        [warn, unfit]: [f64; 2],
        seen: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        match figure {
            figure if figure >= unfit => Self::unfit(seen, remedy),
            figure if figure >= warn => Self::warn(seen, remedy),
            _ => Self::ok(seen),
        }
    }

    pub(super) fn with_details(self, details: Value) -> Self {
        Self { details: Some(details), ..self }
    }
}

/// What was found out about one thing.
#[derive(Debug, Clone)]
pub struct Finding {
    /// The name of the check.
    pub check: &'static str,
    /// How bad it is.
    pub verdict: Verdict,
    /// What was seen; empty where nothing could be.
    pub seen: String,
    /// What it does to a measurement.
    pub effect: &'static str,
    /// What to do about it.
    pub remedy: Option<String>,
    /// Why it is unknown.
    pub reason: Option<Unavailable>,
    /// Figures behind it.
    pub details: Option<Value>,
}

impl Finding {
    pub(super) fn new(check: &'static str, effect: &'static str, looked: Looked) -> Self {
        match looked {
            Ok(Outcome { verdict, seen, remedy, details }) => {
                Self { check, verdict, seen, effect, remedy, reason: None, details }
            }
            Err(reason) => Self {
                check,
                verdict: Verdict::Unknown,
                seen: String::new(),
                effect,
                remedy: remedy_of(&reason).map(str::to_owned),
                reason: Some(reason),
                details: None,
            },
        }
    }

    /// Says what was seen and, where it is bad, what it does.
    pub fn message(&self) -> String {
        match (&self.reason, self.verdict) {
            (Some(reason), _) => format!("not known: {reason}"),
            (None, Verdict::Ok) => self.seen.clone(),
            (None, _) => format!("{}: {}", self.seen, self.effect),
        }
    }

    /// Gives the finding as records have it.
    pub fn to_json(&self) -> Value {
        let mut fields = Map::new();
        fields.insert("check".into(), json!(self.check));
        fields.insert("verdict".into(), json!(self.verdict.word()));
        fields.insert("message".into(), json!(self.message()));
        fields.insert("effect".into(), json!(self.effect));
        let remedy = self.remedy.as_ref().map(|remedy| ("remedy", json!(remedy)));
        let reason = self.reason.as_ref().map(|reason| ("reason", json!(reason)));
        let details = self.details.as_ref().map(|details| ("details", details.clone()));
        let more = [remedy, reason, details].into_iter().flatten();
        fields.extend(more.map(|(key, value)| (key.to_owned(), value)));
        Value::Object(fields)
    }
}

fn remedy_of(reason: &Unavailable) -> Option<&'static str> {
    match reason.code.as_str() {
        "not_permitted" => Some("ask again as root, or as a user who may read it"),
        "not_this_host" => Some("run `manycore doctor` on the host itself"),
        _ => None,
    }
}
