//! Follows a sweep: shows progress, keeps the points for the table, and writes them down.

use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use harness::records::{Point, Status};
use harness::report::verdict::Kinds;
use harness::sweep::{Block, Observer, Plan, Row};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::cli::SweepArgs;
use crate::exit::Failure;
use crate::stdout::{self, note};
use crate::sweep_command::{points, report_same_as_before};
use crate::sweep_records::Records;
use crate::{rows, table};

/// Shows progress, keeps the points for the table, and writes them down.
pub(crate) struct Follower {
    records: Records,
    points: Vec<Point>,
    kinds: Kinds,
    bar: ProgressBar,
    interrupted: Arc<AtomicBool>,
    deadline: Option<Instant>,
    out_of_budget: bool,
    failure: Option<Failure>,
    left_out: usize,
    repeat: u64,
    json: bool,
}

/// How far a sweep may exceed its budget before it is ended.
const BUDGET_SLACK: f64 = 1.25;

impl Follower {
    /// Begins to follow; `repeat` are the repetitions of a point, `about` how long all may take.
    pub(crate) fn new(
        arguments: &SweepArgs,
        plan: &Plan,
        (repeat, about): (u64, Option<Duration>),
        records: Records,
        interrupted: Arc<AtomicBool>,
    ) -> Self {
        let shown = !arguments.quiet && io::stderr().is_terminal();
        let target =
            if shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(plan.points() as u64 * repeat), target);
        if let Ok(style) =
            ProgressStyle::with_template("{bar:30} {percent:>3}% {eta:>5} left  {msg}")
        {
            bar.set_style(style);
        }
        if !arguments.quiet && !shown {
            let about = about.map(|time| format!(", about {}", table::duration(time)));
            let all = points(plan.points());
            note(&format!("measuring {all}{}", about.unwrap_or_default()));
        }
        Self {
            records,
            points: Vec::new(),
            kinds: rows::kinds(),
            bar,
            interrupted,
            deadline: arguments.budget.map(|budget| Instant::now() + budget.mul_f64(BUDGET_SLACK)),
            out_of_budget: false,
            failure: None,
            left_out: 0,
            repeat,
            json: arguments.json,
        }
    }

    /// Prints the table, and says how it ended.
    ///
    /// # Errors
    /// When a point is broken, the budget was used up, somebody interrupted, or a record could not
    /// be written.
    pub(crate) fn finish(mut self, outcome: io::Result<bool>, plan: &Plan) -> Result<(), Failure> {
        self.bar.finish_and_clear();
        report_same_as_before(plan);
        let text = table::text(&self.points, &self.kinds);
        if self.json {
            note(&text);
        } else {
            stdout::print(&text)?;
        }
        if self.left_out > 0 {
            let left_out = points(self.left_out);
            note(&format!("{left_out} in the file already, not measured again"));
        }
        let kept = match &self.records.file {
            Some(file) => format!("{} in {}", points(self.points.len()), file.path().display()),
            None => points(self.points.len()),
        };
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        match outcome {
            Err(error) => Err(Failure::Failed(error.to_string())),
            Ok(true) if self.out_of_budget => Err(Failure::Failed(format!(
                "the budget is used up; kept {kept}; --resume with the same --out measures the rest"
            ))),
            Ok(true) => Err(Failure::Interrupted(format!("interrupted; kept {kept}"))),
            Ok(false) => {
                note(&kept);
                self.judge()
            }
        }
    }

    /// A broken point is a failure of what was measured, and the exit code says so.
    fn judge(&self) -> Result<(), Failure> {
        let broken: Vec<String> = self
            .points
            .iter()
            .filter(|point| point.status == Status::Broken)
            .map(|point| format!("{} at {} threads", point.variant, point.threads))
            .collect();
        if broken.is_empty() {
            return Ok(());
        }
        Err(Failure::Failed(format!("broken points: {}", broken.join(", "))))
    }
}

impl Observer for Follower {
    fn stop(&mut self) -> bool {
        self.out_of_budget |= self.deadline.is_some_and(|deadline| Instant::now() > deadline);
        self.out_of_budget || self.interrupted.load(Ordering::Relaxed)
    }

    fn progress(&mut self, block: &Block, row: &Row) {
        self.bar.set_message(format!("{} {} × {}", block.primitive, row.id, block.threads));
        self.bar.inc(1);
    }

    fn left_out(&mut self, _: &Block, _: &Row) {
        self.left_out += 1;
        self.bar.inc(self.repeat);
    }

    fn record(&mut self, point: Point) -> io::Result<()> {
        let written = self.records.write(&point);
        self.points.push(point);
        written.map_err(|failure| {
            let error = io::Error::other(failure.to_string());
            self.failure = Some(failure);
            error
        })
    }
}
