//! Counts, simulated times and targets as JSON, one a line.

use serde_json::{Map, Value, json};

use crate::Priced;
use crate::processes::print_line;
use crate::targets::{self, Target};

/// Prints all that was found.
pub(crate) fn print(all: &[Priced]) {
    for priced in all {
        for ((_, candidate), found) in priced.candidates().zip(&priced.exact) {
            let figures = found.as_ref().map(|found| {
                let bytes = (candidate.bytes)();
                json!({
                    "instructions_per_op": found.instructions, "rmw_per_op": found.rmw,
                    "bytes": bytes.map(|bytes| bytes.object),
                    "bytes_each": bytes.and_then(|bytes| bytes.each),
                })
            });
            line("price", priced, candidate.id, figures);
        }
        for point in &priced.simulated {
            let figures = point.figures.as_ref().map(|figures| {
                json!({
                    "machine": point.machine, "cores": point.cores,
                    "ns_per_op": figures.ns_per_op, "band": figures.band,
                    "fairness_jain": figures.fairness,
                })
            });
            line("simulated", priced, priced.job.candidates[point.candidate].id, figures);
        }
    }
    for Target { what, found, met } in targets::judge(all, &[]) {
        let line = json!({"record": "target", "what": what, "found": found, "met": met});
        print_line(&line.to_string());
    }
}

fn line(record: &str, priced: &Priced, candidate: &str, figures: Result<Value, &String>) {
    let figures = figures.unwrap_or_else(|reason| json!({ "unavailable": reason }));
    let whose = [("record", record), ("job", priced.job.id), ("candidate", candidate)];
    let whose = whose.map(|(name, value)| (name.to_owned(), json!(value)));
    let figures = figures.as_object().cloned().unwrap_or_default();
    let line: Map<String, Value> = whose.into_iter().chain(figures).collect();
    print_line(&Value::Object(line).to_string());
}
