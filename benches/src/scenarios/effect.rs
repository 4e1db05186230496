//! What the steps of a scenario have to show, beside what was reported.

use super::measured::Measured;
use super::scenario::{Setting, Step};

/// A step with what came of it.
pub(crate) struct Done<'a> {
    /// What was asked for.
    pub(crate) setting: &'a Setting,
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
    /// Why it does not appear, as far as the figures tell.
    pub(crate) otherwise: String,
    /// Why there is no verdict, if there is none.
    pub(crate) void: Option<String>,
    /// What is told instead of a figure.
    pub(crate) said: Option<String>,
    /// Whether its steps are among those that were asked for.
    pub(crate) planned: bool,
}

impl Effect {
    /// Something to be told of steps that is more than one figure.
    pub(crate) fn said(what: impl Into<String>, said: impl Into<String>) -> Self {
        Self { said: Some(said.into()), ..Self::of(what.into(), None) }
    }

    fn of(what: String, ours: Option<f64>) -> Self {
        Self {
            what,
            ours,
            factor: 1.0,
            reported: None,
            at_least: 0.0,
            otherwise: String::new(),
            void: None,
            said: None,
            planned: true,
        }
    }

    /// Whether it appears; `None` without a figure that can be relied on.
    pub(crate) fn shows(&self) -> Option<bool> {
        self.ours.filter(|_| self.void.is_none()).map(|ours| ours >= self.at_least)
    }

    /// Gives the lower and the upper end of the model's band.
    pub(crate) fn band(&self) -> Option<(f64, f64)> {
        self.ours.map(|ours| (ours / self.factor, ours * self.factor))
    }

    /// Sets the field reports' figure.
    pub(crate) fn reported(self, reported: f64) -> Self {
        Self { reported: Some(reported), ..self }
    }

    /// Says what shows the effect, and why it does not appear if it does not.
    pub(crate) fn shown_by(self, at_least: f64, otherwise: impl Into<String>) -> Self {
        Self { at_least, otherwise: otherwise.into(), ..self }
    }

    /// Gives no verdict where there is a reason for none.
    pub(crate) fn void_if(self, why: Option<String>) -> Self {
        Self { void: self.void.or(why), ..self }
    }
}

/// Finds a step by its name.
pub(crate) fn find<'a, 'b>(done: &'b [Done<'a>], id: &str) -> Option<&'b Done<'a>> {
    done.iter().find(|one| one.step.id == id)
}

/// Says why a step's figures are no ground for a verdict.
fn void(steps: &[Option<&Done<'_>>]) -> Option<String> {
    let disturbed = |one: &&Done<'_>| one.measured.and_then(Measured::disturbed).is_some();
    steps.iter().flatten().find(|one| disturbed(one)).map(|one| match one.setting.machine() {
        Some(_) => format!("as the window of {} was too short", one.step.id),
        None => format!("as {} was disturbed", one.step.id),
    })
}

/// A figure of one step over that of another.
pub(crate) fn ratio(
    what: impl Into<String>,
    done: &[Done<'_>],
    figure: Figure,
    (of, over): (&str, &str),
) -> Effect {
    let steps = [find(done, of), find(done, over)];
    let value = |one: Option<&Done<'_>>| one.and_then(|one| figure(one.measured?));
    let ours = value(steps[0]).zip(value(steps[1])).filter(|(_, over)| *over > 0.0);
    Effect {
        factor: steps.iter().flatten().map(|one| one.factor).fold(1.0, f64::max),
        at_least: 1.0,
        void: void(&steps),
        planned: steps.iter().all(Option::is_some),
        ..Effect::of(what.into(), ours.map(|(of, over)| of / over))
    }
}

/// A counted figure of one step.
pub(crate) fn counted(
    what: impl Into<String>,
    done: &[Done<'_>],
    of: &str,
    figure: Figure,
) -> Effect {
    let step = find(done, of);
    let ours = step.and_then(|one| figure(one.measured?));
    Effect { void: void(&[step]), planned: step.is_some(), ..Effect::of(what.into(), ours) }
}
