//! What the steps of a scenario have to show, beside what was reported.

use super::measured::Measured;
use super::scenario::Step;

/// A step with what came of it.
pub(crate) struct Done<'a> {
    /// The step.
    pub(crate) step: &'a Step,
    /// Its figures, if there are any.
    pub(crate) measured: Option<&'a Measured>,
    /// By which factor its times may be wrong.
    pub(crate) factor: f64,
}

/// A figure of a step.
pub(crate) type Figure = fn(&Measured) -> Option<f64>;

/// A figure that the scenario is about.
#[derive(Debug, Clone)]
pub(crate) struct Effect {
    /// What it is.
    pub(crate) what: String,
    /// Ours, if all its steps have figures.
    pub(crate) ours: Option<f64>,
    /// How far the model may be off, as a factor; 1 if it is counted.
    pub(crate) factor: f64,
    /// The field reports' figure, if there is one.
    pub(crate) reported: Option<f64>,
    /// The least that shows the effect.
    pub(crate) at_least: f64,
    /// Why it may not appear.
    pub(crate) otherwise: &'static str,
}

impl Effect {
    /// Whether it appears; `None` without a figure.
    pub(crate) fn shows(&self) -> Option<bool> {
        self.ours.map(|ours| ours >= self.at_least)
    }

    /// Gives the lower and the upper end of the model's band.
    pub(crate) fn band(&self) -> Option<(f64, f64)> {
        self.ours.map(|ours| (ours / self.factor, ours * self.factor))
    }

    /// Sets the field reports' figure.
    pub(crate) fn reported(self, reported: f64) -> Self {
        Self { reported: Some(reported), ..self }
    }

    /// Says what shows the effect, and why it may not.
    pub(crate) fn shown_by(self, at_least: f64, otherwise: &'static str) -> Self {
        Self { at_least, otherwise, ..self }
    }
}

/// Finds a step by its name.
pub(crate) fn find<'a, 'b>(done: &'b [Done<'a>], id: &str) -> Option<&'b Done<'a>> {
    done.iter().find(|one| one.step.id == id)
}

/// A figure of one step over that of another.
pub(crate) fn ratio(
    what: impl Into<String>,
    done: &[Done<'_>],
    figure: Figure,
    (of, over): (&str, &str),
) -> Effect {
    let (of, over) = (find(done, of), find(done, over));
    let value = |one: Option<&Done<'_>>| one.and_then(|one| figure(one.measured?));
    let factor = [of, over].iter().flatten().map(|one| one.factor).fold(1.0, f64::max);
    let ours = value(of).zip(value(over)).filter(|(_, over)| *over > 0.0);
    Effect {
        what: what.into(),
        ours: ours.map(|(of, over)| of / over),
        factor,
        reported: None,
        at_least: 1.0,
        otherwise: "",
    }
}

/// A counted figure of one step.
pub(crate) fn counted(
    what: impl Into<String>,
    done: &[Done<'_>],
    of: &str,
    figure: Figure,
) -> Effect {
    Effect {
        what: what.into(),
        ours: find(done, of).and_then(|one| figure(one.measured?)),
        factor: 1.0,
        reported: None,
        at_least: 0.0,
        otherwise: "",
    }
}
