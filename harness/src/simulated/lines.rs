//! A point whose lines are watched: which are hot, who touches which bytes, and what it would cost
//! if some bytes lay elsewhere.

use serde::{Deserialize, Serialize};

use super::figures::Measured;
use super::point::{on_a_fresh_stack, simulate};
use super::{Apart, LineReport, Request};
use crate::native::{Failure, Make};

/// What to watch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Watch {
    /// Bytes that shall count as if they lay on lines of their own.
    pub apart: Vec<Apart>,
    /// How many waits of cores to keep, and in which calls threads waited for lines.
    pub trace: Option<usize>,
}

/// A point, and what was seen of its lines.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Watched {
    /// Its figures, as they are without a watch.
    pub measured: Measured,
    /// The lines of its longest round, from the beginning to the end of that.
    pub lines: LineReport,
}

/// Simulates one point like [`measure`](super::measure), and watches its lines.
///
/// # Errors
/// When the experiment cannot be made or simulated here, or is broken.
pub fn watch(make: Make, request: &Request<'_>, watch: &Watch) -> Result<Watched, Failure> {
    on_a_fresh_stack(|| {
        let (measured, lines) = simulate(make, request, Some(watch))?;
        let lines = lines.ok_or_else(|| Failure::Broken("no line was watched".into()))?;
        Ok(Watched { measured, lines })
    })
}
