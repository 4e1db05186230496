//! The points of a sweep, each simulated by a process of its own.

use std::collections::BTreeSet;
use std::io;

use simulator::machine::Machine;

use super::band::{Border, band};
use super::child::{Answer, Ended, Follow, Pool, RANDOMISED};
use super::figures::{Measured, metrics};
use crate::native::Failure;
use crate::records::{Point, Status};
use crate::sweep::{self, Block, Observer, Plan, Row, blank_of, without_figures};
use crate::unavailable::Unavailable;

/// What the points of a sweep have in common.
pub struct Settings<'a> {
    /// The machine.
    pub machine: &'a Machine,
    /// Its name in records.
    pub machine_name: &'a str,
    /// Operations of each thread.
    pub ops: u64,
    /// What else the sweep is about.
    pub sweep: &'a sweep::Settings,
    /// Gives the arguments that lead the program to [`measure`](super::measure) for a point.
    pub arguments: &'a dyn Fn(&Block, &Row) -> Vec<String>,
}

impl std::fmt::Debug for Settings<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Settings").field("ops", &self.ops).finish_non_exhaustive()
    }
}

/// A point on its way.
struct Job<'a> {
    block: &'a Block,
    row: &'a Row,
    /// Its record, without figures yet.
    blank: Point,
    /// Why it needs no simulation.
    impossible: Option<Unavailable>,
}

/// Simulates the points, several at once, and records them in the order of the plan. `skip` says
/// which need no simulation, by their keys.
///
/// Gives whether the observer ended it early.
///
/// # Errors
/// What the observer's `record` returned.
pub fn run(
    pool: &Pool,
    plan: &Plan,
    settings: &Settings<'_>,
    run_id: &str,
    skip: &BTreeSet<String>,
    observer: &mut dyn Observer,
) -> io::Result<bool> {
    let mut jobs = Vec::new();
    for block in &plan.blocks {
        for row in &block.rows {
            let blank = blank(block, row, settings, run_id);
            if skip.contains(&sweep::key(&blank)) {
                observer.left_out(block, row);
            } else {
                let impossible = block.cpus.as_ref().err().cloned();
                jobs.push(Job { block, row, blank, impossible });
            }
        }
    }
    let arguments = |job: &Job<'_>| match job.impossible {
        None => Some((settings.arguments)(job.block, job.row)),
        Some(_) => None,
    };
    let arguments: Vec<Option<Vec<String>>> = jobs.iter().map(arguments).collect();
    pool.run(&arguments, &mut Rest { jobs: &jobs, settings, observer })
}

/// The record of a point before it is simulated.
fn blank(block: &Block, row: &Row, settings: &Settings<'_>, run_id: &str) -> Point {
    let names = ("simulated", settings.machine_name);
    let mut point = blank_of(names, block, row, settings.sweep, run_id);
    point.workload.insert("ops".into(), settings.ops.into());
    point.repeat = 1;
    point
}

struct Rest<'a, 'b> {
    jobs: &'a [Job<'a>],
    settings: &'a Settings<'a>,
    observer: &'b mut dyn Observer,
}

impl Follow for Rest<'_, '_> {
    fn stop(&mut self) -> bool {
        self.observer.stop()
    }

    fn ended(&mut self, job: usize) {
        self.observer.progress(self.jobs[job].block, self.jobs[job].row);
    }

    fn result(&mut self, job: usize, ended: Ended) -> io::Result<()> {
        let Job { blank, impossible, .. } = &self.jobs[job];
        let blank = blank.clone();
        self.observer.record(match impossible {
            Some(reason) => without_figures(blank, Status::Unavailable, reason.to_string()),
            None => finished(blank, ended, self.settings.machine),
        })
    }
}

/// Makes a point's record from what its process said.
fn finished(mut point: Point, ended: Ended, machine: &Machine) -> Point {
    let answer: Result<Answer<Measured>, String> = match ended {
        Ended::Answered(text) => Answer::parse(&text),
        Ended::Failed(reason) => Err(reason),
        Ended::Killed | Ended::Nothing => Err("not simulated".into()),
    };
    let answer = match answer {
        Ok(answer) => answer,
        Err(reason) => return without_figures(point, Status::Broken, reason),
    };
    if !answer.fixed_addresses {
        point.status = Status::Noisy;
        point.reasons.push(RANDOMISED.into());
    }
    match answer.outcome() {
        Ok(measured) => {
            let band = band(&point.machine, &point.primitive, Border::of(machine, &point.cpus));
            point.metrics = metrics(&measured, machine, band);
            let reasons = measured.latency.into_iter().flat_map(|latency| latency.reasons);
            point.reasons.extend(reasons);
            if !point.reasons.is_empty() {
                point.status = Status::Noisy;
            }
            point.per_thread.insert("ops".into(), measured.ops);
            point
        }
        Err(Failure::Broken(reason)) => without_figures(point, Status::Broken, reason),
        Err(Failure::Unavailable(reason)) => {
            without_figures(point, Status::Unavailable, reason.to_string())
        }
    }
}
