//! A comparison as JUnit XML, which every CI shows: a suite for each primitive and engine, a test
//! for each pair of points.

use std::collections::BTreeMap;
use std::fmt::{self, Write};

use super::rows::{change, sentence};
use super::{Comparison, Finding, Name, Pair, Verdict};
use crate::report::escape::Html as Xml;

/// A test of a suite: its point, and what JUnit has for its verdict.
struct Case<'a> {
    name: &'a Name,
    element: Option<(&'static str, String, String)>,
}

/// Gives the XML.
pub fn xml(comparison: &Comparison, ignore_missing: bool) -> String {
    let mut suites: BTreeMap<(&str, &str), Vec<Case>> = BTreeMap::new();
    for pair in &comparison.pairs {
        let case = Case { name: &pair.name, element: element(pair) };
        suites.entry((&pair.name.primitive, &pair.name.engine)).or_default().push(case);
    }
    let alone = [
        (&comparison.only_old, if ignore_missing { "skipped" } else { "error" }, "only in OLD"),
        (&comparison.only_new, "skipped", "only in NEW"),
    ];
    for (alone, kind, message) in alone {
        for name in &alone.names {
            let element = Some((kind, message.to_owned(), String::new()));
            let suite = suites.entry((&name.primitive, &name.engine)).or_default();
            suite.push(Case { name, element });
        }
    }
    let all = || suites.values().flatten();
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(text, "<testsuites name=\"manycore compare\" {}>", Counts::of(all()));
    for ((primitive, engine), cases) in &suites {
        let name = format!("{primitive} ({engine})");
        let _ =
            writeln!(text, "  <testsuite name=\"{}\" {}>", Xml(&name), Counts::of(cases.iter()));
        cases.iter().for_each(|case| write_case(&mut text, case));
        text.push_str("  </testsuite>\n");
    }
    let sentence = sentence(comparison, ignore_missing);
    let _ = writeln!(text, "  <system-out>{}</system-out>\n</testsuites>", Xml(&sentence));
    text
}

fn element(pair: &Pair) -> Option<(&'static str, String, String)> {
    let kind = match pair.verdict {
        Verdict::Regressed => "failure",
        Verdict::Inconclusive | Verdict::Unmeasured => "skipped",
        Verdict::Equal | Verdict::Improved => return None,
    };
    let of = |finding: &&Finding| finding.verdict == pair.verdict;
    let mut lines: Vec<String> = pair.findings.iter().filter(of).map(line).collect();
    if !pair.why.is_empty() {
        lines.insert(0, pair.why.clone());
    }
    let message = lines.first().cloned().unwrap_or_else(|| pair.verdict.word().to_owned());
    let word = if kind == "skipped" { format!("{}: ", pair.verdict.word()) } else { String::new() };
    Some((kind, word + &message, lines.join("\n")))
}

fn line(finding: &Finding) -> String {
    let value = |figure: Option<super::Figure>| {
        figure.map_or_else(|| "none".to_owned(), |figure| figure.value.to_string())
    };
    let (old, new) = (value(finding.old), value(finding.new));
    let change = change(finding.old, finding.new);
    format!("{} {old} → {new} {change} ({})", finding.metric, finding.why)
}

fn write_case(text: &mut String, case: &Case) {
    let Name { primitive, variant, .. } = case.name;
    let class = format!("{primitive}.{variant}");
    let name = format!("{} ({})", case.name.conditions(), case.name.engine_and_machine());
    let _ = write!(text, "    <testcase classname=\"{}\" name=\"{}\"", Xml(&class), Xml(&name));
    let Some((kind, message, body)) = &case.element else {
        text.push_str("/>\n");
        return;
    };
    let _ = write!(text, "><{kind} message=\"{}\">{}</{kind}>", Xml(message), Xml(body));
    text.push_str("</testcase>\n");
}

/// How many tests a suite has of each kind, as attributes.
#[derive(Default)]
struct Counts {
    tests: u64,
    failure: u64,
    error: u64,
    skipped: u64,
}

impl Counts {
    fn of<'a>(cases: impl Iterator<Item = &'a Case<'a>>) -> Self {
        let mut counts = Self::default();
        for case in cases {
            counts.tests += 1;
            match case.element {
                Some(("failure", ..)) => counts.failure += 1,
                Some(("error", ..)) => counts.error += 1,
                Some(_) => counts.skipped += 1,
                None => {}
            }
        }
        counts
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tests, failure, error, skipped } = self;
        write!(
            f,
            "tests=\"{tests}\" failures=\"{failure}\" errors=\"{error}\" skipped=\"{skipped}\""
        )
    }
}
