//! Reads one file of a comparison line by line: run headers are kept, points are handed on.

use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::error::CompareError;
use super::figures::Figures;
use super::judge::Barriers;
use crate::light::Light;
use crate::records::{self, Record, Run, Skipped};
use crate::report::model::told;

/// So many lines that were not understood are listed; further ones are counted.
const SKIPPED_LISTED: usize = 20;

/// What one of the files held.
#[derive(Debug, Clone)]
pub struct Input {
    /// The file.
    pub path: PathBuf,
    /// Points, those among them that were measured again later.
    pub points: u64,
    /// Points of which a later one of the same kind stands in the file.
    pub replaced: u64,
    /// Lines that were not understood, the first of them.
    pub skipped: Vec<Skipped>,
    /// How many lines were not understood.
    pub skipped_lines: u64,
    /// Those of them that may have held points.
    pub lost_lines: u64,
}

/// What a run header says of where its points were measured.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Origin {
    host: Map<String, Value>,
    machine: Option<Value>,
    /// Whose points these are: those of two hosts in one file are different points.
    pub(super) whose: u64,
}

impl Origin {
    fn new(host: Map<String, Value>, machine: Option<Value>) -> Self {
        let mut hasher = DefaultHasher::new();
        let text = |key| host.get(key).map(Value::to_string);
        (text("name"), text("cpu")).hash(&mut hasher);
        Self { host, machine, whose: hasher.finish() }
    }
}

/// A file while it is read.
pub(super) struct Reader {
    pub(super) input: Input,
    /// The different origins of its runs.
    pub(super) origins: Vec<Origin>,
    /// Where origins of the same hash stand.
    known: HashMap<u64, Vec<u32>>,
    by_run: HashMap<String, u32>,
    /// The run that was asked for last: points of a run stand together.
    last: (String, Option<u32>),
}

/// A point as it is handed on, with its run's origin and its number, if its header was there.
pub(super) type Each<'e> = dyn FnMut(&Light<Figures>, Option<(u32, &Origin)>) -> Taken + 'e;

/// What became of a point.
pub(super) enum Taken {
    /// It is the first of its kind.
    First,
    /// It took the place of an earlier one.
    Again,
}

impl Reader {
    /// Reads the file and hands each point to `each`.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(super) fn read(path: &Path, each: &mut Each) -> Result<Self, CompareError> {
        let input = Input {
            path: path.into(),
            points: 0,
            replaced: 0,
            skipped: Vec::new(),
            skipped_lines: 0,
            lost_lines: 0,
        };
        let mut reader = Self {
            input,
            origins: Vec::new(),
            known: HashMap::new(),
            by_run: HashMap::new(),
            last: (String::new(), None),
        };
        let mut newer_runs = BTreeSet::new();
        let mut batch = Batch::default();
        let mut of_batch = |batch: &Batch| {
            for ((line, bytes), light) in batch.lines().zip(batch.read()) {
                reader.line((line, bytes), light, &mut newer_runs, each);
            }
        };
        let each_line = |line, bytes: &[u8]| {
            batch.add(line, bytes);
            if batch.bytes.len() >= BATCH {
                of_batch(&batch);
                batch.clear();
            }
        };
        let read = records::lines(path, each_line);
        of_batch(&batch);
        read.map_err(|error| CompareError::Read(path.into(), error))?;
        Ok(reader)
    }

    /// Takes a line, which the short way understood or did not. Behind runs of a newer schema only
    /// the long way tells whose a point is.
    fn line(
        &mut self,
        (line, bytes): (u64, &[u8]),
        light: Option<Light<Figures>>,
        newer: &mut BTreeSet<String>,
        each: &mut Each,
    ) {
        if let Some(light) = light.filter(|_| newer.is_empty()) {
            return self.point(&light, each);
        }
        match records::parse(bytes, newer) {
            Ok(Record::Run(run)) => self.run(*run),
            Ok(Record::Point(point)) => {
                let figures = Figures::from_metrics(&point.metrics);
                self.point(&Light::of(&point, figures), each);
            }
            Ok(Record::Lines(_)) => {}
            Err(unread) => {
                let skipped: Skipped = unread.at(line);
                self.input.skipped_lines += 1;
                self.input.lost_lines += u64::from(skipped.may_hold_a_point);
                if self.input.skipped.len() < SKIPPED_LISTED {
                    self.input.skipped.push(skipped);
                }
            }
        }
    }

    fn point(&mut self, light: &Light<Figures>, each: &mut Each) {
        self.input.points += 1;
        if self.last.0 != light.run {
            self.last = (light.run.to_string(), self.by_run.get(&*light.run).copied());
        }
        let origin = self.last.1.map(|at| (at, &self.origins[at as usize]));
        if let Taken::Again = each(light, origin) {
            self.input.replaced += 1;
        }
    }

    /// Runs of one host and build have one origin.
    fn run(&mut self, mut run: Run) {
        run.host.remove("date");
        let origin = Origin::new(run.host, run.other.remove("machine"));
        let mut hasher = DefaultHasher::new();
        origin.hash(&mut hasher);
        let alike = self.known.entry(hasher.finish()).or_default();
        let known = alike.iter().copied().find(|&at| self.origins[at as usize] == origin);
        let at = known.unwrap_or_else(|| {
            alike.push(self.origins.len() as u32);
            self.origins.push(origin);
            self.origins.len() as u32 - 1
        });
        self.by_run.insert(run.run, at);
        self.last = (String::new(), None);
    }
}

/// So many bytes of lines are understood at once, by several threads.
const BATCH: usize = 4 << 20;
/// More threads would wait for the one that reads.
const THREADS: usize = 4;

/// Lines with their numbers.
#[derive(Default)]
struct Batch {
    bytes: Vec<u8>,
    /// Number and end of each line.
    ends: Vec<(u64, usize)>,
}

impl Batch {
    fn add(&mut self, line: u64, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.ends.push((line, self.bytes.len()));
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    fn lines(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let begins = std::iter::once(0).chain(self.ends.iter().map(|&(_, end)| end));
        begins.zip(&self.ends).map(|(begin, &(line, end))| (line, &self.bytes[begin..end]))
    }

    /// Reads the lines the short way, in order.
    fn read(&self) -> Vec<Option<Light<'_, Figures>>> {
        let lines: Vec<&[u8]> = self.lines().map(|(_, bytes)| bytes).collect();
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(THREADS);
        if threads == 1 || lines.len() < 100 {
            return read_all(&lines);
        }
        std::thread::scope(|scope| {
            let parts = lines.chunks(lines.len().div_ceil(threads));
            let parts: Vec<_> = parts.map(|part| scope.spawn(|| read_all(part))).collect();
            let joined = parts
                .into_iter()
                .map(|part| part.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            joined.flatten().collect()
        })
    }
}

fn read_all<'b>(lines: &[&'b [u8]]) -> Vec<Option<Light<'b, Figures>>> {
    lines.iter().map(|line| Light::read(line)).collect()
}

/// What makes code another code: counts of one say nothing about the other.
const CODE: [&str; 2] = ["arch", "profile"];
/// What is expected to change, and told.
const BUILD: [&str; 2] = ["rustc", "commit"];

/// Compares two origins: what must not be compared, and what a person should know.
pub(super) fn barriers(
    old: Option<&Origin>,
    new: Option<&Origin>,
    allowed: bool,
) -> (Barriers, Vec<String>) {
    let (Some(old), Some(new)) = (old, new) else {
        let note = "a run header is missing: times are of an unknown host and are not compared; \
                    --allow-different-hosts compares them";
        let barriers = Barriers { times: !allowed, ..Barriers::default() };
        return (barriers, vec![note.into()]);
    };
    let mut names: Vec<&String> = old.host.keys().collect();
    names.extend(new.host.keys().filter(|name| !old.host.contains_key(*name)));
    let (mut code, mut build, mut host) = (Vec::new(), Vec::new(), Vec::new());
    for name in names {
        let (a, b) = (old.host.get(name), new.host.get(name));
        if a == b {
            continue;
        }
        let said = |value: Option<&Value>| value.map_or_else(|| "not said".into(), told);
        let text = format!("{name} {} → {}", said(a), said(b));
        match name.as_str() {
            // Files of earlier versions do not say them.
            name if CODE.contains(&name) && (a.is_none() || b.is_none()) => {}
            name if CODE.contains(&name) => code.push(text),
            name if BUILD.contains(&name) => build.push(text),
            _ => host.push(text),
        }
    }
    let machine = old.machine != new.machine && old.machine.is_some() && new.machine.is_some();
    let mut notes = Vec::new();
    let mut note = |what: &[String], then: &str| {
        if !what.is_empty() {
            notes.push(format!("{}{then}", what.join("; ")));
        }
    };
    note(&build, "");
    let refused = match allowed {
        true => " (compared nevertheless, as asked for)",
        false => {
            ": other hosts or conditions; measured times are not compared; \
             --allow-different-hosts compares them"
        }
    };
    note(&host, refused);
    note(&code, ": other code; nothing of it is compared");
    if machine {
        let then = if allowed { "" } else { "; its figures are not compared" };
        notes.push(format!("the simulated machine is described differently{then}"));
    }
    let barriers = Barriers {
        times: !code.is_empty() || !host.is_empty() && !allowed,
        counts: !code.is_empty(),
        machine: machine && !allowed,
    };
    (barriers, notes)
}
