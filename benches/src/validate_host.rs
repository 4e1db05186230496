//! `manycore validate --this-host`: what this host measures beside what is simulated of it.
//!
//! The host is calibrated, its rows are measured natively and simulated on what calibration gave,
//! each by the command that a user would type. No native time of a row sets a figure of the machine.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use harness::records::{self, Metric, Point, Record, Run};
use harness::report::number::short;
use serde_json::{Value, json};

use crate::exit::Failure;
use crate::stdout::note;

/// By which factor a simulated time may be off, either way.
const MARK: f64 = 1.5;

/// A native time with the simulated one.
#[derive(Debug)]
struct Beside {
    primitive: String,
    variant: String,
    threads: usize,
    /// The median and its interval, nanoseconds of a thread for an operation.
    native: [f64; 3],
    simulated: f64,
}

impl Beside {
    fn ratio(&self) -> f64 {
        self.simulated / self.native[0]
    }

    fn holds(&self) -> bool {
        (1.0 / MARK..=MARK).contains(&self.ratio())
    }

    fn json(&self) -> Value {
        let [value, low, high] = self.native;
        json!({
            "primitive": self.primitive,
            "variant": self.variant,
            "threads": self.threads,
            "native_ns": {"value": value, "low": low, "high": high},
            "simulated_ns": self.simulated,
            "ratio": self.ratio(),
            "holds": self.holds(),
        })
    }
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct Host {
    run: Option<Run>,
    rows: Vec<Beside>,
}

/// Measures and simulates this host's rows with one thread and two.
///
/// # Errors
/// When a command fails, or a file cannot be written or read.
pub(crate) fn run(seconds: f64) -> Result<Host, Failure> {
    let folder = std::env::temp_dir().join(format!("manycore-validate-{}", std::process::id()));
    let failed = |error: std::io::Error| Failure::Failed(format!("{}: {error}", folder.display()));
    std::fs::create_dir_all(&folder).map_err(failed)?;
    let host = measured(&folder, seconds);
    // What is left behind there does no harm.
    let _ = std::fs::remove_dir_all(&folder);
    host
}

fn measured(folder: &Path, seconds: f64) -> Result<Host, Failure> {
    let file = |name: &str| folder.join(name).display().to_string();
    let (machine, native, simulated) =
        (file("this-host.toml"), file("native.jsonl"), file("simulated.jsonl"));
    note("calibrating this host");
    manycore(&["calibrate", "--out", &machine])?;
    note("measuring each row with one thread and two");
    let seconds = seconds.to_string();
    let both = ["--threads", "1,2", "--quiet"];
    let sweep = ["sweep", "--seconds", &seconds, "--out", &native];
    manycore(&[&sweep[..], &both].concat())?;
    note("simulating the same");
    let sweep = ["sweep", "--engine", "simulated", "--machine", &machine, "--out", &simulated];
    manycore(&[&sweep[..], &both].concat())?;
    let (run, native) = points(Path::new(&native))?;
    let (_, simulated) = points(Path::new(&simulated))?;
    let rows = native.iter().filter_map(|(key, point)| beside(point, simulated.get(key)?));
    Ok(Host { run, rows: rows.collect() })
}

/// Runs a command of this program; what it prints is of no interest unless it fails.
fn manycore(arguments: &[&str]) -> Result<(), Failure> {
    let failed = |text: String| Failure::Failed(format!("{}: {text}", arguments[0]));
    let program = std::env::current_exe().map_err(|error| failed(error.to_string()))?;
    let output = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| failed(error.to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    if output.status.code() == Some(130) {
        return Err(Failure::Interrupted("interrupted".into()));
    }
    Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()))
}

/// What has to be the same of two points beside the engine.
type Key = (String, String, usize);

fn points(path: &Path) -> Result<(Option<Run>, BTreeMap<Key, Point>), Failure> {
    let (mut run, mut found) = (None, BTreeMap::new());
    let each = |record| match record {
        Record::Run(header) => run = Some(*header),
        Record::Point(point) => {
            let key = (point.primitive.clone(), point.variant.clone(), point.threads);
            found.insert(key, *point);
        }
        Record::Lines(_) => {}
    };
    records::read(path, each, |_| ())
        .map_err(|error| Failure::Failed(format!("{}: {error}", path.display())))?;
    Ok((run, found))
}

/// Both times of a point, if both were had.
fn beside(native: &Point, simulated: &Point) -> Option<Beside> {
    let Metric::Figure { value, low, high } = *native.metrics.get("ns_per_op")? else {
        return None;
    };
    Some(Beside {
        primitive: native.primitive.clone(),
        variant: native.variant.clone(),
        threads: native.threads,
        native: [value, low.unwrap_or(value), high.unwrap_or(value)],
        simulated: simulated.metrics.get("ns_per_op")?.value()?,
    })
}

impl Host {
    /// One JSON object a line.
    pub(crate) fn json_lines(&self) -> String {
        let lines: Vec<String> = self.rows.iter().map(|row| row.json().to_string()).collect();
        lines.join("\n")
    }

    /// The page.
    pub(crate) fn page(&self) -> String {
        let of = |key: &str| {
            let value = self.run.as_ref().and_then(|run| run.host.get(key));
            value.and_then(Value::as_str).unwrap_or("unknown").to_owned()
        };
        let held = self.rows.iter().filter(|row| row.holds()).count();
        let mut page = format!(
            "# This host, measured and simulated\n\n\
             Written by `manycore validate --this-host` on {}, {} ({}), {}, commit {}. Times are \
             nanoseconds of a thread for an operation, natively the median with its 95 % interval. \
             No native time of a row set a figure of the machine, which `manycore calibrate` \
             measured in the same run. A time holds within a factor of {MARK}.\n\n\
             {held} of {} times hold.\n\n\
             | primitive | variant | threads | native | interval | simulated | ratio | holds |\n\
             |---|---|---:|---:|---:|---:|---:|---|\n",
            of("date"),
            of("cpu"),
            of("hypervisor"),
            of("rustc"),
            of("commit"),
            self.rows.len(),
        );
        for row in &self.rows {
            let [value, low, high] = row.native;
            let _ = writeln!(
                page,
                "| {} | {} | {} | {} | {} to {} | {} | {:.2} | {} |",
                row.primitive,
                row.variant,
                row.threads,
                short(value),
                short(low),
                short(high),
                short(row.simulated),
                row.ratio(),
                if row.holds() { "yes" } else { "no" },
            );
        }
        page
    }
}
