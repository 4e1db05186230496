//! Where a sweep's records go, and which are there already.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use harness::host;
use harness::records::{Appender, Record, Run, Skipped, Status, read};
use harness::sweep;
use serde::Serialize;

use crate::cli::SweepArgs;
use crate::exit::Failure;
use crate::stdout::note;

/// What must be equal for points of another run to be as good as those of this one.
fn sameness(run: &Run) -> Vec<Option<&serde_json::Value>> {
    let of_host: &[&str] = match run.other.contains_key(MACHINE) {
        // What is simulated does not depend on the host.
        true => &["commit", "rustc"],
        false => &["name", "cpu", "cpus_allowed", "commit", "rustc"],
    };
    let of_host = of_host.iter().map(|&field| run.host.get(field));
    of_host.chain([run.other.get(MACHINE)]).collect()
}

/// The key of a header that describes the simulated machine.
pub(crate) const MACHINE: &str = "machine";

/// The key of a header that describes the host, for drawings.
pub(crate) const TOPOLOGY: &str = "topology";

/// Gives the keys of the points that `path` holds, measured on this host or the same simulated
/// machine by this build.
fn measured_already(path: &Path, header: &Run) -> Result<BTreeSet<String>, Failure> {
    let mut same_build = BTreeSet::new();
    let mut keys = BTreeSet::new();
    let mut others = 0_u64;
    let each = |record| match record {
        Record::Run(run) => {
            if sameness(&run) == sameness(header) {
                same_build.insert(run.run);
            }
        }
        Record::Point(point) if same_build.contains(&point.run) => {
            if point.status != Status::Broken {
                keys.insert(sweep::key(&point));
            }
        }
        Record::Point(_) => others += 1,
        Record::Lines(_) => {}
    };
    let skipped = |Skipped { line, reason, .. }| {
        note(&format!("note: {} line {line} skipped: {reason}", path.display()));
    };
    read(path, each, skipped)
        .map_err(|error| Failure::Failed(format!("cannot read {}: {error}", path.display())))?;
    if others > 0 {
        note(&format!(
            "note: {others} points of other hosts, machines or builds are measured again"
        ));
    }
    Ok(keys)
}

/// Where records go.
pub(crate) struct Records {
    pub(crate) file: Option<Appender>,
    to_stdout: bool,
}

impl Records {
    /// Opens what the arguments name.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(crate) fn open(arguments: &SweepArgs) -> Result<Self, Failure> {
        let path = match &arguments.out {
            Some(path) if path.as_os_str() == "-" => {
                return Err(Failure::Usage(
                    "--out -: records go to standard output with --json".into(),
                ));
            }
            Some(path) => Some(path.clone()),
            None if arguments.json => None,
            None => Some(default_path("sweep")),
        };
        Self::at(path, arguments.json)
    }

    /// Opens a file, if one is named, and standard output if it is wanted.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(crate) fn at(path: Option<PathBuf>, to_stdout: bool) -> Result<Self, Failure> {
        let open = |path: PathBuf| {
            Appender::open(&path).map_err(|error| {
                Failure::Failed(format!(
                    "cannot write records to {}: {error}; choose another file with --out",
                    path.display()
                ))
            })
        };
        Ok(Self { file: path.map(open).transpose()?, to_stdout })
    }

    /// With --resume, the keys of the points that the file holds.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(crate) fn measured_already(
        &self,
        arguments: &SweepArgs,
        header: &Run,
    ) -> Result<BTreeSet<String>, Failure> {
        match &self.file {
            Some(file) if arguments.resume => measured_already(file.path(), header),
            _ => Ok(BTreeSet::new()),
        }
    }

    /// Writes a record.
    ///
    /// # Errors
    /// When it could not be written.
    pub(crate) fn write(&mut self, record: &impl Serialize) -> Result<(), Failure> {
        if let Some(file) = &mut self.file {
            file.append(record).map_err(|error| {
                Failure::Failed(format!(
                    "cannot add a record to {}: {error}; the records before it are whole, and \
                     --resume goes on from there",
                    file.path().display()
                ))
            })?;
        }
        if self.to_stdout {
            self.print(record)?;
        }
        Ok(())
    }

    /// Records on standard output are the result: whoever reads them going away ends the sweep.
    fn print(&self, record: &impl Serialize) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        let line = serde_json::to_string(record).map_err(io::Error::from);
        line.and_then(|line| writeln!(out, "{line}")).and_then(|()| out.flush()).map_err(|error| {
            Failure::Failed(format!("cannot write records to standard output: {error}"))
        })
    }
}

/// Where the records of a command go if nothing is said.
pub(crate) fn default_path(command: &str) -> PathBuf {
    let host: String = host::host_name()
        .unwrap_or_else(|| "host".into())
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' })
        .collect();
    let date = host::date("%Y-%m-%dT%H%M%SZ");
    Path::new("results").join(host).join(format!("{date}-{command}.jsonl"))
}
