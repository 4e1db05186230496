//! What a report shows: hosts, their runs, and the points by engine, primitive and conditions.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

use serde_json::{Map, Value};

use crate::line_records::Lines;
use crate::records::{Point, Run};
use crate::report::error::ReportError;
use crate::report::scan::{self, FoundLines, Input};
use crate::report::verdict::{Kind, Kinds, Verdict, verdict};

/// Everything that a report shows.
#[derive(Debug)]
pub struct Model {
    /// The files read.
    pub inputs: Vec<Input>,
    /// The hosts, in the order in which they appear.
    pub hosts: Vec<Host>,
    /// The points, in the order of the files.
    pub points: Vec<Shown>,
    /// Watched lines, in the order of the files.
    pub lines: Vec<ShownLines>,
    /// Points whose records held figures that their status forbids.
    pub withheld: u64,
    /// Points replaced by a newer one of the same key.
    pub folded: u64,
    /// Points of keys beyond the most that are kept.
    pub left_out: u64,
    /// Keys that this version does not know: how often, and an example.
    pub unknown: BTreeMap<String, (u64, String)>,
    /// What the rows are for.
    pub kinds: Kinds,
}

/// A host, by its name and its processor.
#[derive(Debug)]
pub struct Host {
    /// Its name, or why there is none.
    pub name: String,
    /// Its processor, or why it is not known.
    pub cpu: String,
    /// Its run headers; none when its points name a run whose header is nowhere.
    pub runs: Vec<Run>,
}

/// A point with what the report knows about it.
#[derive(Debug)]
pub struct Shown {
    /// Index of its host.
    pub host: usize,
    /// Index of its run among the host's, if its header is there.
    pub run: Option<usize>,
    /// Index of its file.
    pub input: usize,
    /// What its row is for.
    pub kind: Kind,
    /// Of which colour its row is, counted among the rows of the primitive.
    pub colour: usize,
    /// The record.
    pub point: Point,
}

/// Watched lines with what the report knows about them.
#[derive(Debug)]
pub struct ShownLines {
    /// Index of their host.
    pub host: usize,
    /// Index of their run among the host's, if its header is there.
    pub run: Option<usize>,
    /// The record.
    pub lines: Lines,
}

/// Reads the files and arranges what they hold.
///
/// # Errors
/// When a file cannot be read or there is no point in any of them.
pub fn load(paths: &[PathBuf], kinds: Kinds) -> Result<Model, ReportError> {
    let scan = scan::scan(paths)?;
    let others = (scan.headers.iter().map(|header| ("run", &header.other)))
        .chain(scan.points.iter().map(|found| ("point", &found.point.other)))
        .chain(scan.lines.iter().map(|found| ("lines", &found.lines.other)));
    let unknown = scan::unknown_keys(others);
    let mut hosts = Hosts::default();
    let mut by_id: HashMap<String, usize> = HashMap::new();
    let mut headers: Vec<(usize, usize)> = Vec::new();
    for (at, header) in scan.headers.into_iter().enumerate() {
        by_id.insert(header.run.clone(), at);
        headers.push(hosts.add(header));
    }
    let place_of = |header: Option<usize>, run: &str, hosts: &mut Hosts| {
        // A header in another file will do.
        let header = header.or_else(|| by_id.get(run).copied());
        let place = header.map(|header| headers[header]);
        place.map_or_else(|| (hosts.unknown(), None), |(host, run)| (host, Some(run)))
    };
    let mut colours = Colours::default();
    let points = scan
        .points
        .into_iter()
        .map(|found| {
            let (host, run) = place_of(found.header, &found.point.run, &mut hosts);
            let kind = kinds.of(&found.point.primitive, &found.point.variant);
            let colour = colours.of(&found.point, kind);
            Shown { host, run, input: found.input, kind, colour, point: found.point }
        })
        .collect();
    let shown = |found: FoundLines| {
        let (host, run) = place_of(found.header, &found.lines.run, &mut hosts);
        ShownLines { host, run, lines: found.lines }
    };
    let lines = scan.lines.into_iter().map(shown).collect();
    let (folded, left_out, withheld) = (scan.folded, scan.left_out, scan.withheld);
    let (inputs, hosts) = (scan.inputs, hosts.hosts);
    Ok(Model { inputs, hosts, points, lines, withheld, folded, left_out, unknown, kinds })
}

#[derive(Default)]
struct Hosts {
    hosts: Vec<Host>,
    at: HashMap<(String, String), usize>,
    unknown: Option<usize>,
}

impl Hosts {
    /// Gives the host's index and the run's among the host's.
    fn add(&mut self, run: Run) -> (usize, usize) {
        let name = run.host.get("name").map_or_else(|| "unnamed host".into(), told);
        let cpu = run.host.get("cpu").map_or_else(|| "unknown processor".into(), told);
        let host = *self.at.entry((name.clone(), cpu.clone())).or_insert_with(|| {
            self.hosts.push(Host { name, cpu, runs: Vec::new() });
            self.hosts.len() - 1
        });
        self.hosts[host].runs.push(run);
        (host, self.hosts[host].runs.len() - 1)
    }

    fn unknown(&mut self) -> usize {
        *self.unknown.get_or_insert_with(|| {
            let name = "unknown host (the run header is missing)".into();
            self.hosts.push(Host { name, cpu: "unknown processor".into(), runs: Vec::new() });
            self.hosts.len() - 1
        })
    }
}

/// The same row has the same colour wherever it is drawn.
#[derive(Default)]
struct Colours(HashMap<String, Vec<String>>);

impl Colours {
    fn of(&mut self, point: &Point, kind: Kind) -> usize {
        if kind == Kind::Baseline {
            return 0;
        }
        let rows = self.0.entry(point.primitive.clone()).or_default();
        if let Some(at) = rows.iter().position(|row| *row == point.variant) {
            return at;
        }
        if rows.len() < 1000 {
            rows.push(point.variant.clone());
        }
        rows.len() - 1
    }
}

/// Tells a value of a header as a person would: text without quotes, a typed reason as such.
pub fn told(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "none".into(),
        Value::Object(map) if map.contains_key("unavailable") => {
            let word = |key| map.get(key).and_then(Value::as_str);
            match (word("unavailable"), word("detail")) {
                (Some(code), Some(detail)) => format!("unavailable: {code} ({detail})"),
                (Some(code), None) => format!("unavailable: {code}"),
                _ => value.to_string(),
            }
        }
        Value::Array(items) if !items.is_empty() => {
            items.iter().map(told).collect::<Vec<_>>().join(", ")
        }
        other => other.to_string(),
    }
}

/// What one engine measured of one host, on one machine.
#[derive(Debug)]
pub struct Section<'a> {
    /// The engine.
    pub engine: &'a str,
    /// The machine.
    pub machine: &'a str,
    /// The primitives.
    pub families: Vec<Family<'a>>,
    /// Watched lines.
    pub lines: Vec<&'a Lines>,
}

/// The points of one primitive in a section.
#[derive(Debug)]
pub struct Family<'a> {
    /// The primitive.
    pub primitive: &'a str,
    /// One for each placement and workload.
    pub panels: Vec<Panel<'a>>,
}

/// Points that differ in variant and threads only.
#[derive(Debug, Clone)]
pub struct Panel<'a> {
    /// What each thread did.
    pub workload: &'a Map<String, Value>,
    /// The placement policy.
    pub placement: &'a str,
    /// One for each variant.
    pub series: Vec<Series<'a>>,
}

/// The newest points of one variant, by threads.
#[derive(Debug, Clone)]
pub struct Series<'a> {
    /// The variant.
    pub variant: &'a str,
    /// What it is for.
    pub kind: Kind,
    /// Its colour.
    pub colour: usize,
    /// Its points, by threads.
    pub points: BTreeMap<usize, &'a Point>,
}

/// Gives the place of the first that `is` the one, or of a new one.
fn place<T>(all: &mut Vec<T>, is: impl Fn(&T) -> bool, new: impl FnOnce() -> T) -> &mut T {
    let at = all.iter().position(is).unwrap_or_else(|| {
        all.push(new());
        all.len() - 1
    });
    &mut all[at]
}

/// Gives the place of the section of an engine on a machine, a new one if need be.
fn section_of<'a>(sections: &mut Vec<Section<'a>>, engine: &'a str, machine: &'a str) -> usize {
    let at = sections.iter().position(|s| s.engine == engine && s.machine == machine);
    at.unwrap_or_else(|| {
        sections.push(Section { engine, machine, families: Vec::new(), lines: Vec::new() });
        sections.len() - 1
    })
}

impl Model {
    /// Arranges the points of a host. Native comes first, then callgrind, then simulated.
    pub fn sections(&self, host: usize) -> Vec<Section<'_>> {
        let mut sections: Vec<Section> = Vec::new();
        // Conditions are compared as text once a point.
        let mut panels: HashMap<(usize, usize, String), usize> = HashMap::new();
        for shown in self.points.iter().filter(|shown| shown.host == host) {
            let point = &shown.point;
            let section_at = section_of(&mut sections, &point.engine, &point.machine);
            let families = &mut sections[section_at].families;
            let family_at = families
                .iter()
                .position(|family| family.primitive == point.primitive)
                .unwrap_or(families.len());
            if family_at == families.len() {
                families.push(Family { primitive: &point.primitive, panels: Vec::new() });
            }
            let family = &mut families[family_at];
            let conditions = format!("{} {}", point.placement, words(&point.workload));
            let panel_at =
                *panels.entry((section_at, family_at, conditions)).or_insert_with(|| {
                    let (workload, placement) = (&point.workload, point.placement.as_str());
                    family.panels.push(Panel { workload, placement, series: Vec::new() });
                    family.panels.len() - 1
                });
            let series = &mut family.panels[panel_at].series;
            let new = || Series {
                variant: &point.variant,
                kind: shown.kind,
                colour: shown.colour,
                points: BTreeMap::new(),
            };
            let series = place(series, |series| series.variant == point.variant, new);
            series.points.insert(point.threads, point);
        }
        for shown in self.lines.iter().filter(|shown| shown.host == host) {
            let at = section_of(&mut sections, &shown.lines.engine, &shown.lines.machine);
            sections[at].lines.push(&shown.lines);
        }
        let rank =
            |engine: &str| ["native", "callgrind", "simulated"].iter().position(|e| *e == engine);
        sections.sort_by_key(|section| rank(section.engine).unwrap_or(usize::MAX));
        sections
    }
}

impl Family<'_> {
    /// Gives the verdicts, one for each workload, as the terminal does: placements and memories
    /// of one workload compete.
    pub fn verdicts(&self, kinds: &Kinds) -> Vec<(Map<String, Value>, Verdict)> {
        let mut groups: Vec<(Map<String, Value>, Vec<&Point>)> = Vec::new();
        for panel in &self.panels {
            let mut workload = panel.workload.clone();
            workload.remove("memory");
            let points = panel.series.iter().flat_map(|series| series.points.values().copied());
            let new = || (workload.clone(), Vec::new());
            place(&mut groups, |(other, _)| *other == workload, new).1.extend(points);
        }
        groups
            .into_iter()
            .map(|(workload, points)| (workload, verdict(self.primitive, &points, kinds)))
            .collect()
    }
}

/// Tells a workload in one line: `critical 50 ns, memory local`.
pub fn words(workload: &Map<String, Value>) -> String {
    let word = |(key, value): (&String, &Value)| {
        let (name, unit) = match key.rsplit_once('_') {
            Some((name, "ns")) => (name, " ns"),
            Some((name, "percent")) => (name, " %"),
            Some((name, "bytes")) => (name, " bytes"),
            _ => (key.as_str(), ""),
        };
        format!("{} {}{unit}", name.replace('_', " "), told(value))
    };
    workload.iter().map(word).collect::<Vec<_>>().join(", ")
}
