//! Records: JSON Lines, one run header and then its points; see `docs/records.md`.
//!
//! A reader skips what it does not understand and says so; it never stops and never drops a line.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value};

use crate::line_records::Lines;
use crate::stats::Estimate;
use crate::unavailable::Unavailable;

/// The version of the format that this program writes.
pub const SCHEMA: u64 = 1;

/// The header of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The word `run`.
    pub record: String,
    /// The version of the format.
    pub schema: u64,
    /// The name by which points refer to this header.
    pub run: String,
    /// The command line.
    pub argv: Vec<String>,
    /// The host's fingerprint.
    pub host: Map<String, Value>,
    /// What about the host spoils measurements.
    #[serde(default)]
    pub doctor: Vec<Value>,
    /// Keys of later versions.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl Run {
    /// Gives the findings that spoil measurements; those of other programs have no verdict.
    pub fn spoilers(&self) -> impl Iterator<Item = &Value> {
        let harmless =
            |finding: &&Value| matches!(finding["verdict"].as_str(), Some("ok" | "unknown"));
        self.doctor.iter().filter(move |finding| !harmless(finding))
    }
}

/// One measured point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// The word `point`.
    pub record: String,
    /// The run it belongs to.
    pub run: String,
    /// What measured it: `native`, `callgrind`, `simulated`.
    pub engine: String,
    /// On which machine: `this-host` or a model's name.
    pub machine: String,
    /// counters, locks, queues or alloc-arena.
    pub primitive: String,
    /// The row of the primitive's table.
    pub variant: String,
    /// What each thread did.
    pub workload: Map<String, Value>,
    /// Number of threads.
    pub threads: usize,
    /// The placement policy.
    pub placement: String,
    /// The CPU of each thread.
    pub cpus: Vec<u32>,
    /// The seed of everything drawn at random.
    pub seed: u64,
    /// Repetitions that the figures summarise.
    pub repeat: u64,
    /// Whether the figures can be believed.
    pub status: Status,
    /// Why not, if not.
    pub reasons: Vec<String>,
    /// The figures.
    pub metrics: BTreeMap<String, Metric>,
    /// Figures by thread, in the order of `cpus`.
    pub per_thread: BTreeMap<String, Vec<u64>>,
    /// Keys of later versions.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl Point {
    /// Takes away the figures of a broken or unavailable point, which has none unless somebody
    /// changed the record. Says whether there were any.
    pub fn withhold(&mut self) -> bool {
        let forbidden = matches!(self.status, Status::Broken | Status::Unavailable);
        let any = forbidden && !(self.metrics.is_empty() && self.per_thread.is_empty());
        if any {
            self.metrics.clear();
            self.per_thread.clear();
        }
        any
    }
}

/// Whether a point's figures can be believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Undisturbed.
    Ok,
    /// Disturbed; the reasons say by what.
    Noisy,
    /// The primitive or the measurement broke a promise; there are no figures.
    Broken,
    /// Could not be measured; the reasons say why.
    Unavailable,
}

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Ok => "ok",
            Self::Noisy => "noisy",
            Self::Broken => "broken",
            Self::Unavailable => "unavailable",
        })
    }
}

/// A figure, or why there is none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged, from = "Form")]
pub enum Metric {
    /// Why there is none.
    Missing(Unavailable),
    /// A count that was not estimated.
    Count {
        /// The count.
        value: u64,
    },
    /// A derived figure, with its interval if it has one.
    Figure {
        /// The figure.
        value: f64,
        /// Lower end of its interval.
        #[serde(skip_serializing_if = "Option::is_none")]
        low: Option<f64>,
        /// Upper end of its interval.
        #[serde(skip_serializing_if = "Option::is_none")]
        high: Option<f64>,
    },
    /// A form of a later version.
    Other(Value),
}

/// A metric as it is written. A whole number with an interval is a figure, not a count.
#[derive(Deserialize)]
#[serde(untagged)]
enum Form {
    Missing(Unavailable),
    Number { value: Number, low: Option<f64>, high: Option<f64> },
    Other(Value),
}

impl From<Form> for Metric {
    fn from(form: Form) -> Self {
        match form {
            Form::Missing(reason) => Self::Missing(reason),
            Form::Other(value) => Self::Other(value),
            Form::Number { value, low, high } => match (value.as_u64(), low, high) {
                (Some(value), None, None) => Self::Count { value },
                // Without arbitrary precision every number is one of 64 bits.
                _ => Self::Figure { value: value.as_f64().unwrap_or(f64::NAN), low, high },
            },
        }
    }
}

impl Metric {
    /// Makes a figure without interval.
    pub fn figure(value: f64) -> Self {
        Self::Figure { value, low: None, high: None }
    }

    /// Makes a figure with interval, or the reason when there is no estimate.
    pub fn estimate(estimate: Option<Estimate>, otherwise: &str) -> Self {
        match estimate {
            Some(Estimate { value, low, high }) => {
                Self::Figure { value, low: Some(low), high: Some(high) }
            }
            None => Self::Missing(Unavailable::new(otherwise)),
        }
    }

    /// Gives the value if there is one.
    pub fn value(&self) -> Option<f64> {
        match self {
            Self::Count { value } => Some(*value as f64),
            Self::Figure { value, .. } => Some(*value),
            Self::Missing(_) | Self::Other(_) => None,
        }
    }
}

/// A line of a file of records.
#[derive(Debug, Clone, PartialEq)]
pub enum Record {
    /// A run header.
    Run(Box<Run>),
    /// A point.
    Point(Box<Point>),
    /// Watched lines of a simulated point.
    Lines(Box<Lines>),
}

/// A line that was not understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// Its number in the file, from 1.
    pub line: u64,
    /// What is wrong with it.
    pub reason: String,
    /// Whether it may have held a point: it is damaged or of a newer schema, and not just of a kind
    /// that this program does not know.
    pub may_hold_a_point: bool,
}

/// The longest line that is read, in bytes.
const LONGEST_LINE: u64 = 16 << 20;
/// What some programs put before the first line of a text.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
/// Bytes read at once.
const READ_AT_ONCE: usize = 256 << 10;

/// Reads a file line by line. `each` gets what was understood, `skipped` the rest.
///
/// # Errors
/// When the file cannot be opened or read.
pub fn read(
    path: &Path,
    mut each: impl FnMut(Record),
    mut skipped: impl FnMut(Skipped),
) -> io::Result<()> {
    let mut newer_runs = BTreeSet::new();
    lines(path, |line, bytes| match parse(bytes, &mut newer_runs) {
        Ok(record) => each(record),
        Err(unread) => skipped(unread.at(line)),
    })
}

/// Gives each line that is not blank, with its number from 1 and its end.
///
/// # Errors
/// When the file cannot be opened or read.
pub(crate) fn lines(path: &Path, mut each: impl FnMut(u64, &[u8])) -> io::Result<()> {
    let mut reader = BufReader::with_capacity(READ_AT_ONCE, File::open(path)?);
    let mut bytes = Vec::new();
    for line in 1.. {
        bytes.clear();
        reader.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut bytes)?;
        if bytes.is_empty() {
            break;
        }
        let bare = if line == 1 { bytes.strip_prefix(BYTE_ORDER_MARK) } else { None };
        let bytes = bare.unwrap_or(&bytes);
        if !bytes.iter().all(u8::is_ascii_whitespace) {
            each(line, bytes);
        }
    }
    Ok(())
}

/// What is wrong with a line.
#[derive(Debug)]
pub(crate) enum NotUnderstood {
    /// It is damaged, or of a newer schema.
    Damaged(String),
    /// It is a whole record of a kind that is not known.
    Other(String),
}

impl NotUnderstood {
    /// Gives it the line's number.
    pub(crate) fn at(self, line: u64) -> Skipped {
        let may_hold_a_point = matches!(self, Self::Damaged(_));
        let (Self::Damaged(reason) | Self::Other(reason)) = self;
        Skipped { line, reason, may_hold_a_point }
    }
}

/// Understands one line, or says what is wrong with it. `newer_runs` remembers the runs whose
/// points are of a newer schema.
pub(crate) fn parse(
    bytes: &[u8],
    newer_runs: &mut BTreeSet<String>,
) -> Result<Record, NotUnderstood> {
    // Most lines are whole points of this schema. What is not goes the long way, which tells why.
    if newer_runs.is_empty()
        && let Ok(point) = serde_json::from_slice::<Point>(bytes)
        && point.record == "point"
        && point.other.get("schema").is_none()
    {
        return Ok(Record::Point(Box::new(point)));
    }
    // Without its end, so that a line that was cut short is told as one.
    let value: Value = serde_json::from_slice(bytes.trim_ascii_end())
        .map_err(|error| NotUnderstood::Damaged(format!("not a whole record: {error}")))?;
    let schema = value.get("schema").and_then(Value::as_u64).unwrap_or(SCHEMA);
    let run = value.get("run").and_then(Value::as_str).unwrap_or_default();
    if schema > SCHEMA {
        newer_runs.insert(run.into());
        let reason = format!("schema {schema} is newer than {SCHEMA}, which this program reads");
        return Err(NotUnderstood::Damaged(reason));
    }
    if newer_runs.contains(run) {
        return Err(NotUnderstood::Damaged(format!("belongs to the run {run} of a newer schema")));
    }
    let record = value.get("record").and_then(Value::as_str).map(str::to_owned);
    let parsed = match record.as_deref() {
        Some("run") => serde_json::from_value(value).map(|run| Record::Run(Box::new(run))),
        Some("point") => serde_json::from_value(value).map(|point| Record::Point(Box::new(point))),
        Some("lines") => serde_json::from_value(value).map(|lines| Record::Lines(Box::new(lines))),
        Some(other) => {
            let other: String = other.chars().flat_map(char::escape_debug).collect();
            return Err(NotUnderstood::Other(format!("unknown kind of record `{other}`")));
        }
        None => return Err(NotUnderstood::Damaged("no kind of record".into())),
    };
    parsed.map_err(|error| NotUnderstood::Damaged(error.to_string()))
}

/// A file of records that is only ever added to.
#[derive(Debug)]
pub struct Appender {
    path: PathBuf,
    file: File,
}

impl Appender {
    /// Opens `path` for adding, and makes the directories to it.
    ///
    /// # Errors
    /// When a directory or the file cannot be made or written; nothing has been changed then but
    /// for directories made.
    pub fn open(path: &Path) -> io::Result<Self> {
        if let Some(directory) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            std::fs::create_dir_all(directory)?;
        }
        let file = OpenOptions::new().read(true).append(true).create(true).open(path)?;
        Ok(Self { path: path.into(), file })
    }

    /// Tells which file it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds one record as one line, whole or not at all: what a full disk cut short is taken back.
    ///
    /// A line that an earlier crash left without its end is ended first, so that it stays in the
    /// file as a damaged line of its own.
    ///
    /// # Errors
    /// When the line could not be written; the file is then as it was.
    pub fn append(&mut self, record: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(record)?;
        line.push(b'\n');
        // Others may add to the same file; a file system without locks is taken as it is.
        let locked = self.file.lock().is_ok();
        let result = self.append_line(&line);
        if locked {
            let _ = self.file.unlock();
        }
        result
    }

    fn append_line(&mut self, line: &[u8]) -> io::Result<()> {
        let length = self.file.metadata()?.len();
        let torn = length > 0 && !self.ends_with_newline(length).unwrap_or(true);
        let mut bytes = if torn { vec![b'\n'] } else { Vec::new() };
        bytes.extend_from_slice(line);
        self.file.write_all(&bytes).inspect_err(|_| {
            // Fails on what is no regular file; there is nothing to take back there.
            let _ = self.file.set_len(length);
        })
    }

    fn ends_with_newline(&mut self, length: u64) -> io::Result<bool> {
        let mut last = [0];
        self.file.seek(SeekFrom::Start(length - 1))?;
        self.file.read_exact(&mut last)?;
        Ok(last == [b'\n'])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn point() -> Value {
        json!({
            "record": "point", "run": "r1", "engine": "native", "machine": "this-host",
            "primitive": "locks", "variant": "tas", "workload": {"critical_ns": 5}, "threads": 2,
            "placement": "compact", "cpus": [0, 1], "seed": 1, "repeat": 5, "status": "ok",
            "reasons": [],
            "metrics": {
                "ops": {"value": 10}, "ns_per_op": {"value": 1.5, "low": 1.0, "high": 2.0},
                "llc_misses": {"unavailable": "no_pmu"}, "later": [1, 2],
            },
            "per_thread": {"ops": [5, 5]}, "colour": "blue",
        })
    }

    fn read_all(bytes: &[u8]) -> (Vec<Record>, Vec<Skipped>) {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        let (mut records, mut skipped) = (Vec::new(), Vec::new());
        read(file.path(), |record| records.push(record), |line| skipped.push(line)).unwrap();
        (records, skipped)
    }

    #[test]
    fn unknown_keys_and_metrics_survive() {
        let (records, skipped) = read_all(format!("{}\n", point()).as_bytes());
        assert_eq!(skipped, []);
        let Record::Point(read) = &records[0] else { panic!("{records:?}") };
        assert_eq!(read.metrics["ops"], Metric::Count { value: 10 });
        assert_eq!(read.metrics["ns_per_op"].value(), Some(1.5));
        assert_eq!(read.metrics["llc_misses"], Metric::Missing(Unavailable::new("no_pmu")));
        assert_eq!(serde_json::to_value(read).unwrap(), point());
    }

    #[test]
    fn whole_numbers_keep_their_intervals() {
        let read = |text: &str| serde_json::from_str::<Metric>(text).unwrap();
        let figure = |value, low, high| Metric::Figure { value, low, high };
        assert_eq!(
            read(r#"{"value":3,"low":2,"high":4.5}"#),
            figure(3.0, Some(2.0), Some(4.5)),
            "not a count"
        );
        assert_eq!(read(r#"{"value":3,"low":2}"#), figure(3.0, Some(2.0), None));
        assert_eq!(read(r#"{"value":3,"high":4}"#), figure(3.0, None, Some(4.0)));
        assert_eq!(read(r#"{"value":3.0}"#), figure(3.0, None, None));
        assert_eq!(read(r#"{"value":-3}"#), figure(-3.0, None, None));
        let most = r#"{"value":18446744073709551615}"#;
        assert_eq!(read(most), Metric::Count { value: u64::MAX });
        assert_eq!(read(r#"{"value":7,"low":null,"unit":"x"}"#), Metric::Count { value: 7 });
        let other = r#"{"value":"seven"}"#;
        assert_eq!(read(other), Metric::Other(serde_json::from_str(other).unwrap()));
        for text in [r#"{"value":3.0,"low":2.0,"high":4.5}"#, most, r#"{"unavailable":"no_pmu"}"#] {
            assert_eq!(serde_json::to_string(&read(text)).unwrap(), text);
        }
    }

    #[test]
    fn damage_is_reported_by_line_and_the_rest_is_read() {
        let good = point().to_string();
        let newer = r#"{"record":"run","schema":2,"run":"r9","argv":[],"host":{}}"#;
        let of_newer = good.replace("r1", "r9");
        let mut file = format!(
            "{good}\n{{\"record\":\"point\",\n\n[1]\n{{\"record\":\"tree\"}}\n{newer}\n{of_newer}\n"
        )
        .into_bytes();
        file.extend([0xff, 0xfe, b'\n']);
        file.extend(good.replace("\"threads\":2", "\"threads\":\"two\"").bytes());
        file.push(b'\n');
        file.extend(good.bytes()); // no newline at the end
        let (records, skipped) = read_all(&file);
        assert_eq!(records.len(), 2);
        let lines: Vec<u64> = skipped.iter().map(|skipped| skipped.line).collect();
        assert_eq!(lines, [2, 4, 5, 6, 7, 8, 9], "{skipped:?}");
        assert!(skipped[3].reason.contains("newer"), "{skipped:?}");
    }

    #[test]
    fn a_byte_order_mark_hides_no_record() {
        let (records, skipped) = read_all(format!("\u{feff}{0}\n{0}\n", point()).as_bytes());
        assert_eq!((records.len(), skipped.len()), (2, 0));
        let (records, skipped) = read_all(format!("{0}\n\u{feff}{0}\n", point()).as_bytes());
        assert_eq!((records.len(), skipped.len()), (1, 1), "it means nothing further down");
        assert_eq!(read_all("\u{feff}".as_bytes()), (vec![], vec![]));
    }

    #[test]
    fn figures_that_the_status_forbids_are_taken_away() {
        for (status, kept) in
            [("ok", true), ("noisy", true), ("broken", false), ("unavailable", false)]
        {
            let mut value = point();
            value["status"] = json!(status);
            let mut point: Point = serde_json::from_value(value).unwrap();
            assert_eq!(point.withhold(), !kept, "{status}");
            assert_eq!((point.metrics.is_empty(), point.per_thread.is_empty()), (!kept, !kept));
            assert!(!point.withhold(), "once");
        }
    }

    #[test]
    fn a_torn_line_is_ended_and_kept() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a/b/records.jsonl");
        Appender::open(&path).unwrap().append(&point()).unwrap();
        let whole = std::fs::read(&path).unwrap();
        let torn = &whole[..whole.len() / 2];
        std::fs::write(&path, torn).unwrap();
        Appender::open(&path).unwrap().append(&point()).unwrap();
        let now = std::fs::read(&path).unwrap();
        assert_eq!(now, [torn, b"\n", &whole].concat());
    }

    #[test]
    fn what_does_not_fit_is_taken_back() {
        // A limit on the file's size stands in for a full disk: the write is cut short.
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("records.jsonl");
        Appender::open(&path).unwrap().append(&point()).unwrap();
        let before = std::fs::read(&path).unwrap();
        let limit = before.len() + 100;
        // In a child, since the limit is the process's.
        // SAFETY: the child only makes system calls and allocates before it exits; this test
        // process has other threads, but none of them is needed by the child.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let limit = libc::rlimit { rlim_cur: limit as u64, rlim_max: limit as u64 };
            // SAFETY: ignores a signal and lowers a limit of this child.
            unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
            // SAFETY: reads one `rlimit`.
            unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit) };
            let failed = Appender::open(&path).and_then(|mut file| file.append(&point())).is_err();
            // SAFETY: leaves without running the test harness's exit handlers.
            unsafe { libc::_exit(i32::from(!failed)) };
        }
        let mut status = 0;
        // SAFETY: waits for the child made above and writes one status.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!(status, 0, "the append had to fail");
        assert_eq!(std::fs::read(&path).unwrap(), before);
        let full =
            Appender::open(Path::new("/dev/full")).and_then(|mut file| file.append(&point()));
        assert_eq!(full.unwrap_err().kind(), io::ErrorKind::StorageFull);
    }
}
