//! A step as a record.

use harness::native::Failure as Broken;
use harness::records::{Point, Status};
use serde_json::{Map, Value, json};

use super::scenario::{Scenario, Setting};
use super::text::why;
use crate::scenario_run::Outcome;

/// Makes the record of a step of the run with this name.
pub(crate) fn point(
    scenario: &Scenario,
    setting: &Setting,
    outcome: &Outcome,
    run: &str,
    machine: Option<&str>,
) -> Point {
    let step = &outcome.step;
    let order = setting.order(&step.placement).unwrap_or_default();
    let on = step.on.unwrap_or(step.threads).min(order.len());
    let cpus = order[..on].iter().copied().cycle().take(step.threads).collect();
    let mut workload: Map<String, Value> = Map::new();
    workload.insert("scenario".into(), json!(scenario.name));
    workload.insert("ops".into(), json!(step.ops.unwrap_or(setting.ops)));
    workload.extend(setting.values.iter().map(|(name, value)| ((*name).to_owned(), json!(value))));
    let (status, reasons) = match &outcome.measured {
        Some(Ok(_)) => (Status::Ok, Vec::new()),
        Some(Err(broken @ Broken::Broken(_))) => (Status::Broken, vec![why(broken)]),
        Some(Err(broken)) => (Status::Unavailable, vec![why(broken)]),
        None => (Status::Unavailable, vec!["not run".into()]),
    };
    let measured = outcome.measured.as_ref().and_then(|measured| measured.as_ref().ok());
    let ops = measured.map(|measured| ("ops".to_owned(), measured.ops.clone()));
    Point {
        record: "point".into(),
        run: run.into(),
        engine: setting.engine().name().into(),
        machine: machine.unwrap_or("this-host").into(),
        primitive: "scenarios".into(),
        variant: step.id.clone(),
        workload,
        threads: step.threads,
        placement: step.placement.to_string(),
        cpus,
        seed: setting.seed,
        repeat: 1,
        status,
        reasons,
        metrics: measured.map(|measured| measured.metrics(outcome.factor)).unwrap_or_default(),
        per_thread: ops.into_iter().collect(),
        other: Map::new(),
    }
}
