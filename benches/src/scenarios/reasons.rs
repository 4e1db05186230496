//! Why an effect does not appear: what the figures of its steps say, and no more.

use harness::report::number::short;

use super::effect::{Done, find};
use super::measured::{Load, Measured};
use super::text::{percent, rate, time};

/// Waiting for locks that is hardly any: a part of all threads' time.
pub(crate) const HARDLY: f64 = 0.05;

/// Waiting for locks that is much.
pub(crate) const MUCH: f64 = 0.2;

impl Done<'_> {
    /// Gives the part of all threads' time in which they waited for locks.
    pub(crate) fn waiting(&self) -> f64 {
        self.measured.map_or(0.0, Measured::waiting)
    }

    /// Whether it certainly cannot carry the load that it was offered.
    pub(crate) fn is_exceeded(&self) -> bool {
        self.measured.and_then(Measured::load) == Some(Load::Exceeded)
    }

    /// Whether it carries its load.
    pub(crate) fn is_carried(&self) -> bool {
        self.measured.and_then(Measured::load) == Some(Load::Carried)
    }

    /// Says what was offered and what was served.
    pub(crate) fn served(&self) -> String {
        let figures = self
            .measured
            .and_then(|measured| Some((measured.fact("offered_per_s")?, measured.throughput()?)));
        let Some((offered, served)) = figures else { return "nothing".into() };
        format!("{}/s of {}/s", rate(served), rate(offered))
    }

    /// Gives a figure, 0 without one.
    pub(crate) fn figure(&self, figure: impl Fn(&Measured) -> Option<f64>) -> f64 {
        self.measured.and_then(figure).unwrap_or(0.0)
    }

    /// Says what an operation of it costs.
    fn costs(&self) -> Option<String> {
        let measured = self.measured?;
        let mut words = vec![match measured.fact("offered_per_s") {
            Some(_) => format!("{} {} served", self.step.id, self.served()),
            None => format!("{} {} an operation", self.step.id, time(measured.ns_per_op()?)),
        }];
        words.extend(measured.p99().map(|p99| format!("P99 {}", time(p99))));
        words.extend(
            measured.transfers().map(|lines| format!("{} lines from other cores", short(lines))),
        );
        let waiting = measured.waiting();
        words.extend(
            (waiting > 0.0).then(|| format!("{} of the time waiting for locks", percent(waiting))),
        );
        Some(words.join(", "))
    }
}

/// Gives the first reason that holds, and without one the figures of the steps.
pub(crate) fn reason(
    done: &[Done<'_>],
    steps: &[&str],
    cases: impl IntoIterator<Item = (bool, String)>,
) -> String {
    let first = cases.into_iter().find(|(holds, _)| *holds).map(|(_, text)| text);
    first.unwrap_or_else(|| {
        let steps = steps.iter().filter_map(|id| find(done, id)?.costs());
        steps.collect::<Vec<_>>().join("; ")
    })
}

/// Gives a step's figure, 0 without one.
pub(crate) fn figure(
    done: &[Done<'_>],
    id: &str,
    figure: impl Fn(&Measured) -> Option<f64>,
) -> f64 {
    find(done, id).map_or(0.0, |one| one.figure(figure))
}

/// Gives the part of a step's time in which its threads waited for locks.
pub(crate) fn waiting(done: &[Done<'_>], id: &str) -> f64 {
    find(done, id).map_or(0.0, Done::waiting)
}

/// Gives the number of threads of a step.
pub(crate) fn threads(done: &[Done<'_>], id: &str) -> usize {
    find(done, id).map_or(0, |one| one.step.threads)
}

/// Gives a parameter of the scenario.
pub(crate) fn parameter(done: &[Done<'_>], name: &str) -> f64 {
    done.first().map_or(0.0, |one| one.setting.value(name))
}

/// Whether a step carries its load.
pub(crate) fn is_carried(done: &[Done<'_>], id: &str) -> bool {
    find(done, id).is_some_and(Done::is_carried)
}

/// Whether a step certainly cannot carry its load.
pub(crate) fn is_exceeded(done: &[Done<'_>], id: &str) -> bool {
    find(done, id).is_some_and(Done::is_exceeded)
}

/// Says what was offered to a step and what it served.
pub(crate) fn served(done: &[Done<'_>], id: &str) -> String {
    find(done, id).map_or_else(String::new, Done::served)
}
