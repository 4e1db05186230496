//! Reads files of records of any length in little memory: what a point is keyed by is read from
//! every line, its figures only from the lines that are kept.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::{Map, Value};

use crate::light::{Key, Light, Unread};
use crate::line_records::Lines;
use crate::records::{self, Point, Record, Run, Skipped};
use crate::report::error::ReportError;

/// Up to so many points are all shown; of more, the newest of each key.
pub const ALL_SHOWN: usize = 5_000;
/// So many different points are kept; further ones are counted.
const KEYS_MOST: usize = 20_000;
/// So many bytes of lines are kept.
const BYTES_MOST: usize = 96 << 20;
/// So many skipped lines of a file are listed; further ones are counted.
const SKIPPED_LISTED: usize = 50;
/// So many records of lines are kept, the newest of each point.
const LINES_MOST: usize = 200;
/// So many run headers are kept in full.
const RUNS_MOST: usize = 500;

/// What a file of records held.
#[derive(Debug)]
pub struct Input {
    /// The file.
    pub path: PathBuf,
    /// Run headers.
    pub runs: u64,
    /// Points.
    pub points: u64,
    /// Records of watched lines.
    pub lines: u64,
    /// Lines that were not understood, the first of them.
    pub skipped: Vec<Skipped>,
    /// How many lines were not understood.
    pub skipped_lines: u64,
}

/// A point, its file, and the header that stood before it.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) input: usize,
    pub(crate) header: Option<usize>,
    pub(crate) point: Point,
}

/// Watched lines, and the header that stood before them.
#[derive(Debug)]
pub(crate) struct FoundLines {
    pub(crate) header: Option<usize>,
    /// What tells hosts apart.
    host: u64,
    pub(crate) lines: Lines,
}

/// What the files held.
#[derive(Debug)]
pub(crate) struct Scan {
    pub(crate) inputs: Vec<Input>,
    pub(crate) headers: Vec<Run>,
    pub(crate) points: Vec<Found>,
    pub(crate) lines: Vec<FoundLines>,
    /// Points with figures that their status forbids.
    pub(crate) withheld: u64,
    /// Points replaced by a newer one of the same key.
    pub(crate) folded: u64,
    /// Points of keys beyond the most that are kept.
    pub(crate) left_out: u64,
}

/// A line that is kept.
struct Kept {
    input: usize,
    line: u64,
    header: Option<usize>,
    key: u64,
    bytes: Vec<u8>,
}

struct Scanner {
    inputs: Vec<Input>,
    headers: Vec<Run>,
    /// By file and run.
    header_of: HashMap<(usize, String), usize>,
    kept: Vec<Kept>,
    lines: Vec<FoundLines>,
    kept_bytes: usize,
    /// Where the point of a key is kept, once there are too many to keep all.
    at: Option<HashMap<u64, usize>>,
    folded: u64,
    left_out: u64,
}

/// Reads the files.
///
/// # Errors
/// When one cannot be read, or there is no point in any of them.
pub(crate) fn scan(paths: &[PathBuf]) -> Result<Scan, ReportError> {
    let mut scanner = Scanner {
        inputs: Vec::new(),
        headers: Vec::new(),
        header_of: HashMap::new(),
        kept: Vec::new(),
        lines: Vec::new(),
        kept_bytes: 0,
        at: None,
        folded: 0,
        left_out: 0,
    };
    for path in paths {
        scanner.file(path)?;
    }
    scanner.finish()
}

impl Scanner {
    fn file(&mut self, path: &Path) -> Result<(), ReportError> {
        let input = self.inputs.len();
        self.inputs.push(Input {
            path: path.into(),
            runs: 0,
            points: 0,
            lines: 0,
            skipped: Vec::new(),
            skipped_lines: 0,
        });
        let mut newer_runs = BTreeSet::new();
        let each = |line, bytes: &[u8]| self.line(input, line, bytes, &mut newer_runs);
        records::lines(path, each).map_err(|error| ReportError::Read(path.into(), error))
    }

    fn line(&mut self, input: usize, line: u64, bytes: &[u8], newer_runs: &mut BTreeSet<String>) {
        // The short way for whole points; everything else goes the long way, which also says
        // what is wrong.
        if newer_runs.is_empty()
            && let Some(light) = Light::<Unread>::read(bytes)
        {
            let header = self.header(input, &light.run);
            let key = key(&light, self.host_key(header, &light.run));
            self.point(Kept { input, line, header, key, bytes: Vec::new() }, bytes);
            return;
        }
        match records::parse(bytes, newer_runs) {
            Ok(Record::Run(run)) => self.run(input, *run),
            Ok(Record::Point(point)) => {
                let header = self.header(input, &point.run);
                let light = Light::of(&point, Unread::default());
                let key = key(&light, self.host_key(header, &point.run));
                self.point(Kept { input, line, header, key, bytes: Vec::new() }, bytes);
            }
            Ok(Record::Lines(lines)) => self.watched(input, *lines),
            Err(unread) => self.skip(input, unread.at(line)),
        }
    }

    /// Keeps the newest lines of each point.
    fn watched(&mut self, input: usize, lines: Lines) {
        self.inputs[input].lines += 1;
        let header = self.header(input, &lines.run);
        let host = self.host_key(header, &lines.run);
        let same = |older: &FoundLines| {
            let other = &older.lines;
            older.host == host
                && other.machine == lines.machine
                && (&other.primitive, &other.variant) == (&lines.primitive, &lines.variant)
                && (other.threads, other.seed) == (lines.threads, lines.seed)
                && (&other.placement, &other.workload) == (&lines.placement, &lines.workload)
        };
        let at = self.lines.iter().position(same);
        let found = FoundLines { header, host, lines };
        match at {
            Some(at) => self.lines[at] = found,
            None if self.lines.len() < LINES_MOST => self.lines.push(found),
            None => self.left_out += 1,
        }
    }

    fn skip(&mut self, input: usize, skipped: Skipped) {
        self.inputs[input].skipped_lines += 1;
        if self.inputs[input].skipped.len() < SKIPPED_LISTED {
            self.inputs[input].skipped.push(skipped);
        }
    }

    fn run(&mut self, input: usize, mut run: Run) {
        self.inputs[input].runs += 1;
        let place = (input, run.run.clone());
        if self.headers.len() >= RUNS_MOST {
            // What identifies the host is kept, the rest is like that of the runs before.
            run.argv.clear();
            run.doctor.clear();
            run.other.clear();
            run.host.retain(|key, _| ["name", "cpu", "commit", "date"].contains(&key.as_str()));
        }
        self.header_of.insert(place, self.headers.len());
        self.headers.push(run);
    }

    fn header(&self, input: usize, run: &str) -> Option<usize> {
        self.header_of.get(&(input, run.to_owned())).copied()
    }

    /// Points of different hosts have different keys.
    fn host_key(&self, header: Option<usize>, run: &str) -> u64 {
        let mut hasher = DefaultHasher::new();
        match header {
            Some(header) => {
                let host = &self.headers[header].host;
                let text = |key| host.get(key).map(Value::to_string);
                (text("name"), text("cpu")).hash(&mut hasher);
            }
            None => run.hash(&mut hasher),
        }
        hasher.finish()
    }

    fn point(&mut self, mut kept: Kept, bytes: &[u8]) {
        self.inputs[kept.input].points += 1;
        if self.at.is_none() && self.kept.len() >= ALL_SHOWN {
            self.fold();
        }
        if let Some(at) = &mut self.at {
            if let Some(&older) = at.get(&kept.key) {
                self.folded += 1;
                let older = &mut self.kept[older];
                self.kept_bytes = self.kept_bytes + bytes.len() - older.bytes.len();
                // The line's memory is used again.
                kept.bytes = std::mem::take(&mut older.bytes);
                kept.bytes.clear();
                kept.bytes.extend_from_slice(bytes);
                *older = kept;
                return;
            }
            if self.kept.len() >= KEYS_MOST || self.kept_bytes + bytes.len() > BYTES_MOST {
                self.left_out += 1;
                return;
            }
            at.insert(kept.key, self.kept.len());
        } else if self.kept_bytes + bytes.len() > BYTES_MOST {
            self.left_out += 1;
            return;
        }
        self.kept_bytes += bytes.len();
        kept.bytes = bytes.to_vec();
        self.kept.push(kept);
    }

    /// Keeps the newest point of each key, in the place of the first.
    fn fold(&mut self) {
        let mut at: HashMap<u64, usize> = HashMap::new();
        let mut folded: Vec<Kept> = Vec::new();
        for kept in self.kept.drain(..) {
            match at.get(&kept.key) {
                Some(&older) => {
                    self.folded += 1;
                    self.kept_bytes -= folded[older].bytes.len();
                    folded[older] = kept;
                }
                None => {
                    at.insert(kept.key, folded.len());
                    folded.push(kept);
                }
            }
        }
        self.kept = folded;
        self.at = Some(at);
    }

    fn finish(mut self) -> Result<Scan, ReportError> {
        let mut points = Vec::with_capacity(self.kept.len());
        let mut withheld = 0;
        for kept in std::mem::take(&mut self.kept) {
            match records::parse(&kept.bytes, &mut BTreeSet::new()) {
                Ok(Record::Point(mut point)) => {
                    withheld += u64::from(point.withhold());
                    points.push(Found { input: kept.input, header: kept.header, point: *point });
                }
                Ok(Record::Run(_) | Record::Lines(_)) => {}
                Err(unread) => self.skip(kept.input, unread.at(kept.line)),
            }
        }
        if points.is_empty() && self.lines.is_empty() {
            return Err(self.nothing());
        }
        let Self { inputs, headers, lines, folded, left_out, .. } = self;
        Ok(Scan { inputs, headers, points, lines, withheld, folded, left_out })
    }

    fn nothing(self) -> ReportError {
        let runs = self.inputs.iter().map(|input| input.runs).sum();
        let skipped = self.inputs.iter().map(|input| input.skipped_lines).sum();
        let paths = self.inputs.iter().map(|input| input.path.clone()).collect();
        let first = self
            .inputs
            .into_iter()
            .find_map(|input| Some((input.skipped.into_iter().next()?, input.path)));
        match first {
            None if runs == 0 => ReportError::Empty(paths),
            Some((first, path)) if runs == 0 => {
                ReportError::Damaged { lines: skipped, first, path }
            }
            _ => ReportError::NoPoints { runs, skipped },
        }
    }
}

/// The same words that [`sweep::key`](crate::sweep::key) makes a key of, and the host.
fn key(light: &Light<Unread>, host: u64) -> u64 {
    let mut hasher = DefaultHasher::new();
    let names = [&light.engine, &light.machine, &light.primitive, &light.variant, &light.placement];
    names.hash(&mut hasher);
    for (word, value) in light.workload.iter() {
        (word, value.to_string()).hash(&mut hasher);
    }
    (light.threads, &light.cpus, light.seed, light.repeat, host).hash(&mut hasher);
    hasher.finish()
}

/// The names that a point's row has figures for.
#[derive(Deserialize)]
pub(crate) struct Names<'a> {
    #[serde(borrow)]
    pub(crate) workload: Keys<'a>,
    #[serde(borrow)]
    pub(crate) metrics: Keys<'a>,
    #[serde(borrow)]
    pub(crate) per_thread: Keys<'a>,
}

impl<'a> From<&'a Point> for Names<'a> {
    fn from(point: &'a Point) -> Self {
        let keys = |key: &'a String| Cow::Borrowed(key.as_str());
        Self {
            workload: Keys(point.workload.keys().map(keys).collect()),
            metrics: Keys(point.metrics.keys().map(keys).collect()),
            per_thread: Keys(point.per_thread.keys().map(keys).collect()),
        }
    }
}

/// The keys of a map.
pub(crate) struct Keys<'a>(pub(crate) Vec<Cow<'a, str>>);

impl<'de: 'a, 'a> Deserialize<'de> for Keys<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Each;
        impl<'de> Visitor<'de> for Each {
            type Value = Keys<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut keys = Vec::with_capacity(32);
                while let Some((Key(key), IgnoredAny)) = map.next_entry()? {
                    keys.push(key);
                }
                Ok(Keys(keys))
            }
        }
        deserializer.deserialize_map(Each)
    }
}

/// Gives the names of a line that is a whole point of this schema; `None` for all others, among
/// which there may be points that only [`records::parse`] understands.
pub(crate) fn names(bytes: &[u8]) -> Option<Names<'_>> {
    Light::<Unread>::read(bytes)?;
    serde_json::from_slice(bytes).ok()
}

/// Keys of run headers that describe machines, for their drawings.
const DESCRIPTIONS: [&str; 2] = ["run.machine", "run.topology"];

/// Counts keys that this version does not know, with an example of each.
pub(crate) fn unknown_keys<'a>(
    others: impl Iterator<Item = (&'static str, &'a Map<String, Value>)>,
) -> BTreeMap<String, (u64, String)> {
    let mut unknown: BTreeMap<String, (u64, String)> = BTreeMap::new();
    for (record, other) in others {
        for (key, value) in other {
            let name = format!("{record}.{key}");
            if DESCRIPTIONS.contains(&name.as_str()) {
                continue;
            }
            if let Some((count, _)) = unknown.get_mut(&name) {
                *count += 1;
            } else if unknown.len() < 100 {
                unknown.insert(name, (1, value.to_string()));
            }
        }
    }
    unknown
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn point(variant: &str, value: u64) -> String {
        json!({
            "record": "point", "run": "r", "engine": "native", "machine": "this-host",
            "primitive": "locks", "variant": variant, "workload": {"critical_ns": 0}, "threads": 1,
            "placement": "compact", "cpus": [0], "seed": 1, "repeat": 5, "status": "ok",
            "reasons": [], "metrics": {"ops": {"value": value}}, "per_thread": {"ops": [value]},
            "later": true,
        })
        .to_string()
    }

    fn scan_text(text: &str) -> Result<Scan, ReportError> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        scan(&[file.path().to_owned()])
    }

    #[test]
    fn few_points_are_all_kept_and_of_many_the_newest() {
        let lines = |count: u64| -> String { (0..count).map(|n| point("tas", n) + "\n").collect() };
        let few = scan_text(&lines(ALL_SHOWN as u64)).unwrap();
        assert_eq!((few.points.len(), few.folded), (ALL_SHOWN, 0));
        let many = ALL_SHOWN as u64 + 700;
        let scan = scan_text(&(lines(many) + &point("mcs", 1))).unwrap();
        assert_eq!((scan.points.len(), scan.folded), (2, many - 1));
        assert_eq!(scan.points[0].point.metrics["ops"].value(), Some((many - 1) as f64));
        assert_eq!(scan.inputs[0].points, many + 1);
    }

    #[test]
    fn the_short_way_refuses_what_the_long_way_refuses() {
        let good = point("tas", 1);
        let bad = [
            good.replace("\"threads\":1", "\"threads\":-1"),
            good.replace("\"status\":\"ok\"", "\"status\":\"fine\""),
            good.replace("\"metrics\":{", "\"metrics\":[{").replace("},\"per", "}],\"per"),
            good.replace("\"ops\":[1]", "\"ops\":[\"1\"]"),
            good.replace("\"cpus\":[0]", "\"cpus\":[-1]"),
            good.replace("\"value\":1", "\"value\":1e999"),
            good.replace("\"reasons\":[]", "\"reasons\":[5]"),
        ];
        let scan = scan_text(&format!("{good}\n{}\n", bad.join("\n"))).unwrap();
        assert_eq!((scan.points.len(), scan.inputs[0].skipped_lines), (1, bad.len() as u64));
        for (skipped, bad) in scan.inputs[0].skipped.iter().zip(&bad) {
            assert!(records::parse(bad.as_bytes(), &mut BTreeSet::new()).is_err());
            assert!(!skipped.reason.is_empty());
        }
    }

    #[test]
    fn nothing_to_show_is_an_error_that_says_what_there_was() {
        let error = |text: &str| scan_text(text).unwrap_err().to_string();
        assert!(error("").contains("no records in"));
        assert!(error("\n  \n").contains("no records in"));
        assert!(error("{\n[]\n").contains("none of the 2 lines"));
        let header = r#"{"record":"run","schema":1,"run":"r","argv":[],"host":{}}"#;
        assert!(error(header).contains("only run headers (1)"));
        assert!(scan(&["/no/such/file".into()]).unwrap_err().to_string().contains("/no/such/file"));
    }
}
