//! Exact counts of a row, as a record.

use std::collections::BTreeMap;

use harness::callgrind::{Callgrind, Cost};
use harness::records::{Metric, Point, Status};
use harness::sweep::Row;
use harness::unavailable::Unavailable;
use harness::workload::Workload;
use serde_json::Map;

use crate::cli::workload_words;

/// Counts one row with one thread. What cannot be counted is a record with the reason.
pub(crate) fn point(
    callgrind: &Callgrind,
    row: &Row,
    workload: &Workload,
    ops: u64,
    run: &str,
) -> (Point, Vec<Cost>) {
    let mut point = blank(row, workload, run);
    match count(callgrind, row, workload, ops) {
        Ok(counts) => {
            point.metrics.insert("ops".into(), Metric::Count { value: counts.ops });
            let figures = [
                ("instructions_per_op", counts.instructions_per_op),
                ("rmw_per_op", counts.rmw_per_op),
            ];
            for (name, value) in figures {
                point.metrics.insert(name.into(), Metric::figure(value));
            }
            (point, counts.functions)
        }
        Err(reason) => {
            point.status = Status::Unavailable;
            point.reasons.push(reason.to_string());
            (point, Vec::new())
        }
    }
}

/// The record of a row before it is counted.
pub(crate) fn blank(row: &Row, workload: &Workload, run: &str) -> Point {
    Point {
        record: "point".into(),
        run: run.into(),
        engine: "callgrind".into(),
        machine: "this-host".into(),
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

fn count(
    callgrind: &Callgrind,
    row: &Row,
    workload: &Workload,
    ops: u64,
) -> Result<harness::callgrind::Counts, Unavailable> {
    let program = std::env::current_exe()
        .map_err(|error| Unavailable::syscall("no_program", "finding this program", &error))?;
    let mut arguments: Vec<String> =
        ["measured", "--primitive", row.primitive, "--variant", row.id, "--ops"]
            .into_iter()
            .map(str::to_owned)
            .collect();
    arguments.push(ops.to_string());
    arguments.extend(workload_words(workload));
    callgrind.count(&program, &arguments, ops)
}
