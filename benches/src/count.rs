//! Exact counts of a row by callgrind, by the simulator, or by both, as records.
//!
//! Both engines run this very program on the same hidden command with the same arguments.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use harness::callgrind::{Callgrind, Cost};
use harness::records::{Metric, Point, Status};
use harness::simulated::{self, DEFAULT_MACHINE};
use harness::sweep::Row;
use harness::unavailable::Unavailable;
use harness::workload::Workload;
use serde_json::Map;

use crate::cli::workload_words;

/// How long a simulated count may take.
const LIMIT: Duration = Duration::from_secs(600);

/// Who counts.
#[derive(Debug, Clone, Default)]
pub(crate) struct Engines {
    /// Valgrind's tool.
    pub(crate) callgrind: Option<Callgrind>,
    /// Whether the simulator counts.
    pub(crate) simulator: bool,
}

/// What became of a row.
#[derive(Debug)]
pub(crate) struct Counted {
    /// A record of each engine.
    pub(crate) points: Vec<Point>,
    /// The functions that hold the instructions, as callgrind knows them.
    pub(crate) functions: Vec<Cost>,
}

impl Counted {
    /// Gives the record of an engine.
    pub(crate) fn by(&self, engine: &str) -> Option<&Point> {
        self.points.iter().find(|point| point.engine == engine)
    }

    /// Tells whether two engines came to the same figures; `None` without two of them.
    pub(crate) fn agreement(&self) -> Option<bool> {
        let [one, other] = &self.points[..] else { return None };
        match (one.status, other.status) {
            (Status::Ok, Status::Ok) => Some(true),
            (Status::Broken, Status::Broken) => Some(false),
            _ => None,
        }
    }
}

/// What one engine found out.
struct Figures {
    ops: u64,
    instructions_per_op: f64,
    rmw_per_op: f64,
}

/// Counts one row with one thread. What cannot be counted is a record with the reason; where two
/// engines disagree, both records are broken and say both figures.
pub(crate) fn row(
    engines: &Engines,
    row: &Row,
    workload: &Workload,
    ops: u64,
    run: &str,
) -> Counted {
    let mut counted = Counted { points: Vec::new(), functions: Vec::new() };
    if let Some(callgrind) = &engines.callgrind {
        let counts = program()
            .and_then(|program| callgrind.count(&program, &arguments(row, workload, ops), ops));
        let counts = counts.map(|counts| {
            counted.functions = counts.functions;
            Figures {
                ops: counts.ops,
                instructions_per_op: counts.instructions_per_op,
                rmw_per_op: counts.rmw_per_op,
            }
        });
        counted.points.push(filled(blank("callgrind", row, workload, run), counts));
    }
    if engines.simulator {
        let counts = program().and_then(|program| {
            simulated::count(&program, &arguments(row, workload, ops), ops, LIMIT)
        });
        let counts = counts.map(|counts| Figures {
            ops: counts.ops,
            instructions_per_op: counts.instructions_per_op,
            rmw_per_op: counts.rmw_per_op,
        });
        counted.points.push(filled(blank("simulated", row, workload, run), counts));
    }
    compare(&mut counted.points);
    counted
}

/// The record of a row before it is counted.
pub(crate) fn blank(engine: &str, row: &Row, workload: &Workload, run: &str) -> Point {
    let simulated = engine == "simulated";
    Point {
        record: "point".into(),
        run: run.into(),
        engine: engine.into(),
        machine: if simulated { DEFAULT_MACHINE } else { "this-host" }.into(),
        primitive: row.primitive.into(),
        variant: row.id.into(),
        workload: workload.words(row.primitive),
        threads: 1,
        placement: "none".into(),
        cpus: Vec::new(),
        seed: 1,
        repeat: 1,
        status: Status::Ok,
        reasons: Vec::new(),
        metrics: BTreeMap::new(),
        per_thread: BTreeMap::new(),
        other: Map::new(),
    }
}

fn filled(mut point: Point, counts: Result<Figures, Unavailable>) -> Point {
    match counts {
        Ok(counts) => {
            point.metrics.insert("ops".into(), Metric::Count { value: counts.ops });
            let figures = [
                ("instructions_per_op", counts.instructions_per_op),
                ("rmw_per_op", counts.rmw_per_op),
            ];
            for (name, value) in figures {
                point.metrics.insert(name.into(), Metric::figure(value));
            }
        }
        Err(reason) => {
            point.status = Status::Unavailable;
            point.reasons.push(reason.to_string());
        }
    }
    point
}

/// Two counts of the same code that differ are both wrong until somebody knows which.
fn compare(points: &mut [Point]) {
    let [one, other] = points else { return };
    if one.status != Status::Ok || other.status != Status::Ok || one.metrics == other.metrics {
        return;
    }
    let said = |point: &Point| {
        let value = |name: &str| point.metrics.get(name).and_then(Metric::value).unwrap_or(0.0);
        let (instructions, rmw) = (value("instructions_per_op"), value("rmw_per_op"));
        format!("{} counts {instructions} instructions and {rmw} RMWs", point.engine)
    };
    let reason = format!("{}, {}", said(one), said(other));
    for point in points {
        point.status = Status::Broken;
        point.reasons.push(reason.clone());
        point.metrics.clear();
    }
}

fn program() -> Result<PathBuf, Unavailable> {
    std::env::current_exe()
        .map_err(|error| Unavailable::syscall("no_program", "finding this program", &error))
}

fn arguments(row: &Row, workload: &Workload, ops: u64) -> Vec<String> {
    let mut arguments: Vec<String> =
        ["measured", "--primitive", row.primitive, "--variant", row.id, "--ops"]
            .into_iter()
            .map(str::to_owned)
            .collect();
    arguments.push(ops.to_string());
    arguments.extend(workload_words(workload));
    arguments
}

#[cfg(test)]
mod tests {
    use harness::native::Conditions;

    use super::*;

    fn points(callgrind: f64, simulated: f64) -> Vec<Point> {
        let make = |_: &Conditions| Err(Unavailable::new("nothing"));
        let row = &Row { primitive: "locks", id: "mine", kind: "variant", make };
        let of = |engine, instructions_per_op| {
            let figures = Figures { ops: 8, instructions_per_op, rmw_per_op: 1.0 };
            filled(blank(engine, row, &Workload::default(), "r"), Ok(figures))
        };
        vec![of("callgrind", callgrind), of("simulated", simulated)]
    }

    #[test]
    fn what_two_engines_count_differently_is_broken_and_says_both() {
        let agreement = |points: Vec<Point>| {
            let mut counted = Counted { points, functions: Vec::new() };
            compare(&mut counted.points);
            (counted.agreement(), counted.points)
        };
        assert_eq!(agreement(points(7.0, 7.0)).0, Some(true));
        let (agree, broken) = agreement(points(7.0, 8.5));
        assert_eq!(agree, Some(false));
        for point in broken {
            assert_eq!((point.status, point.metrics.len()), (Status::Broken, 0));
            let reason = &point.reasons[0];
            assert!(reason.contains("callgrind counts 7 instructions and 1 RMWs"), "{reason}");
            assert!(reason.contains("simulated counts 8.5 instructions"), "{reason}");
        }
        let mut missing = points(7.0, 7.0);
        missing[0] = filled(missing[0].clone(), Err(Unavailable::new("callgrind_failed")));
        let (agree, kept) = agreement(missing);
        assert_eq!((agree, kept[1].status), (None, Status::Ok));
    }
}
