//! A comparison as JSON Lines: one object a pair, and one for the sum at the end.

use serde_json::{Map, Value, json};

use super::{Alone, Comparison, Figure, Finding, Name, Pair, Tally};

/// Gives the lines. Each says by `record` what it is: `pair`, `only_old`, `only_new`, `comparison`.
pub fn lines(comparison: &Comparison, ignore_missing: bool) -> Vec<String> {
    let mut lines: Vec<String> = comparison.pairs.iter().map(|p| pair(p).to_string()).collect();
    for (record, alone) in [("only_old", &comparison.only_old), ("only_new", &comparison.only_new)]
    {
        let line = |n: &Name| Value::Object(name(record, n)).to_string();
        lines.extend(alone.names.iter().map(line));
    }
    lines.push(sum(comparison, ignore_missing).to_string());
    lines
}

fn name(record: &str, name: &Name) -> Map<String, Value> {
    let Name { engine, machine, primitive, variant, placement, workload, threads, seed } = name;
    let words = [
        ("record", record),
        ("primitive", primitive),
        ("variant", variant),
        ("engine", engine),
        ("machine", machine),
        ("placement", placement),
        ("workload", workload),
    ];
    let mut map: Map<String, Value> =
        words.into_iter().map(|(key, word)| (key.to_owned(), json!(word))).collect();
    map.insert("threads".into(), json!(threads));
    map.insert("seed".into(), json!(seed));
    map
}

fn pair(pair: &Pair) -> Value {
    let mut map = name("pair", &pair.name);
    map.insert("verdict".into(), json!(pair.verdict.word()));
    if !pair.why.is_empty() {
        map.insert("why".into(), json!(pair.why));
    }
    map.insert("compared".into(), json!(pair.compared));
    map.insert("findings".into(), pair.findings.iter().map(finding).collect());
    Value::Object(map)
}

fn finding(finding: &Finding) -> Value {
    let Finding { metric, old, new, verdict, p, why } = finding;
    let mut map = json!({
        "metric": metric, "verdict": verdict.word(), "old": figure(*old), "new": figure(*new),
        "why": why,
    });
    if let Some(p) = p {
        map["p"] = json!(p);
    }
    map
}

fn figure(figure: Option<Figure>) -> Value {
    match figure {
        None => Value::Null,
        Some(Figure { value, interval: false, .. }) => json!({"value": value}),
        Some(Figure { value, low, high, .. }) => json!({"value": value, "low": low, "high": high}),
    }
}

fn sum(comparison: &Comparison, ignore_missing: bool) -> Value {
    let Tally { equal, improved, regressed, inconclusive, unmeasured } = comparison.tally;
    let points = |alone: &Alone| alone.points;
    json!({
        "record": "comparison",
        "verdict": comparison.verdict(ignore_missing).word(),
        "old": comparison.old.path, "new": comparison.new.path,
        "pairs": comparison.tally.pairs(),
        "equal": equal, "improved": improved, "regressed": regressed,
        "inconclusive": inconclusive, "unmeasured": unmeasured,
        "only_old": points(&comparison.only_old), "only_new": points(&comparison.only_new),
        "tests": comparison.tests, "refused": comparison.refused,
        "skipped_lines": comparison.old.skipped_lines + comparison.new.skipped_lines,
        "notes": super::rows::notes(comparison),
    })
}
