//! Every point as one row of comma-separated values (RFC 4180). Nothing is folded or left out:
//! the records are read twice, for the columns and for the rows.

use std::collections::{BTreeSet, HashMap};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::records::{self, Metric, Point, Record};
use crate::report::error::ReportError;
use crate::report::escape::Csv;
use crate::report::model::told;
use crate::report::scan::{self, Keys, Names};
use crate::report::verdict::Kinds;

const FIXED: [&str; 17] = [
    "file",
    "host",
    "cpu",
    "date",
    "commit",
    "run",
    "engine",
    "machine",
    "primitive",
    "variant",
    "kind",
    "threads",
    "placement",
    "cpus",
    "seed",
    "repeat",
    "status",
];

/// Which columns the records need besides those of every point.
#[derive(Debug, Default)]
pub struct Columns {
    words: BTreeSet<String>,
    metrics: BTreeSet<String>,
    per_thread: BTreeSet<String>,
    points: u64,
    skipped: u64,
}

impl Columns {
    /// Reads the files for their columns.
    ///
    /// # Errors
    /// When a file cannot be read, cannot be read twice, or no point is in any.
    pub fn of(paths: &[PathBuf]) -> Result<Self, ReportError> {
        let mut columns = Self::default();
        let (mut runs, mut lines, mut first) = (0, 0, None);
        for path in paths {
            let failed = |error| ReportError::Read(path.clone(), error);
            if !std::fs::metadata(path).map_err(failed)?.is_file() {
                return Err(ReportError::NotAFile(path.clone()));
            }
            let mut newer_runs = BTreeSet::new();
            let each = |line, bytes: &[u8]| {
                if newer_runs.is_empty()
                    && let Some(names) = scan::names(bytes)
                {
                    return columns.add(&names);
                }
                match records::parse(bytes, &mut newer_runs) {
                    Ok(Record::Run(_)) => runs += 1,
                    Ok(Record::Lines(_)) => {}
                    Ok(Record::Point(point)) => columns.add(&Names::from(&*point)),
                    Err(unread) => {
                        lines += 1;
                        first.get_or_insert_with(|| (unread.at(line), path.clone()));
                    }
                }
            };
            records::lines(path, each).map_err(failed)?;
        }
        columns.skipped = lines;
        match first {
            _ if columns.points > 0 => Ok(columns),
            Some((first, path)) if runs == 0 => Err(ReportError::Damaged { lines, first, path }),
            None if runs == 0 => Err(ReportError::Empty(paths.to_vec())),
            _ => Err(ReportError::NoPoints { runs, skipped: lines }),
        }
    }

    /// Counts the points.
    pub fn points(&self) -> u64 {
        self.points
    }

    /// Counts the lines that were not understood.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    fn add(&mut self, names: &Names<'_>) {
        self.points += 1;
        let missing = |known: &mut BTreeSet<String>, names: &Keys<'_>| {
            for name in &names.0 {
                if !known.contains(name.as_ref()) {
                    known.insert(name.as_ref().to_owned());
                }
            }
        };
        missing(&mut self.words, &names.workload);
        missing(&mut self.metrics, &names.metrics);
        missing(&mut self.per_thread, &names.per_thread);
    }

    fn header(&self) -> Vec<String> {
        let mut header: Vec<String> = FIXED.map(str::to_owned).to_vec();
        header.extend(self.words.iter().map(|word| format!("workload.{word}")));
        for metric in &self.metrics {
            header.extend(["", ".low", ".high", ".missing"].map(|end| format!("{metric}{end}")));
        }
        header.extend(self.per_thread.iter().map(|name| format!("per_thread.{name}")));
        header.push("reasons".into());
        header
    }

    fn row(&self, point: &Point, file: &Path, run: [&str; 4], kinds: &Kinds) -> Vec<String> {
        let kind = kinds.of(&point.primitive, &point.variant);
        let mut row = vec![file.display().to_string()];
        row.extend(run.map(str::to_owned));
        row.extend([&point.run, &point.engine, &point.machine].map(String::clone));
        row.extend([point.primitive.clone(), point.variant.clone(), kind.to_string()]);
        row.extend([point.threads.to_string(), point.placement.clone(), listed(&point.cpus)]);
        row.extend([point.seed.to_string(), point.repeat.to_string(), point.status.to_string()]);
        let word = |word| point.workload.get(word).map_or_else(String::new, told);
        row.extend(self.words.iter().map(word));
        for metric in &self.metrics {
            row.extend(figure(point.metrics.get(metric)));
        }
        let figures = |name| point.per_thread.get(name).map_or_else(String::new, |all| listed(all));
        row.extend(self.per_thread.iter().map(figures));
        row.push(point.reasons.join("; "));
        row
    }
}

/// Numbers in one field, with spaces between.
fn listed<N: ToString>(numbers: &[N]) -> String {
    numbers.iter().map(N::to_string).collect::<Vec<_>>().join(" ")
}

/// Value, low, high, and the reason why there is none.
fn figure(metric: Option<&Metric>) -> [String; 4] {
    let empty = String::new;
    let end = |end: &Option<f64>| end.map_or_else(String::new, |end| end.to_string());
    match metric {
        None => [empty(), empty(), empty(), empty()],
        Some(Metric::Count { value }) => [value.to_string(), empty(), empty(), empty()],
        Some(Metric::Figure { value, low, high }) => {
            [value.to_string(), end(low), end(high), empty()]
        }
        Some(Metric::Missing(reason)) => [empty(), empty(), empty(), reason.to_string()],
        Some(Metric::Other(value)) => [empty(), empty(), empty(), format!("unknown form: {value}")],
    }
}

/// Writes the header and a row for every point.
///
/// # Errors
/// When `out` cannot be written, or a file not be read again.
pub fn write(
    out: &mut dyn Write,
    paths: &[PathBuf],
    columns: &Columns,
    kinds: &Kinds,
) -> io::Result<()> {
    line(out, &columns.header())?;
    let mut runs: HashMap<String, [String; 4]> = HashMap::new();
    for path in paths {
        let mut outcome = Ok(());
        let each = |record| match record {
            Record::Run(run) => {
                let field = |name| run.host.get(name).map_or_else(String::new, told);
                runs.insert(run.run.clone(), ["name", "cpu", "date", "commit"].map(field));
            }
            Record::Point(mut point) if outcome.is_ok() => {
                point.withhold();
                let run = runs.get(&point.run).map_or([""; 4], |run| {
                    let [name, cpu, date, commit] = run;
                    [name, cpu, date, commit]
                });
                outcome = line(out, &columns.row(&point, path, run, kinds));
            }
            Record::Point(_) | Record::Lines(_) => {}
        };
        records::read(path, each, |_| {})?;
        outcome?;
    }
    Ok(())
}

fn line(out: &mut dyn Write, fields: &[String]) -> io::Result<()> {
    for (at, field) in fields.iter().enumerate() {
        write!(out, "{}{}", if at > 0 { "," } else { "" }, Csv(field))?;
    }
    out.write_all(b"\r\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn one_row_a_point_with_reasons_in_columns_of_their_own() {
        let run = json!({"record": "run", "schema": 1, "run": "r", "argv": [],
            "host": {"name": "a,b", "cpu": "C \"9\""}});
        let point = json!({
            "record": "point", "run": "r", "engine": "native", "machine": "this-host",
            "primitive": "locks", "variant": "tas", "workload": {"critical_ns": 5}, "threads": 2,
            "placement": "compact", "cpus": [0, 1], "seed": 1, "repeat": 5, "status": "noisy",
            "reasons": ["one", "two"], "per_thread": {"ops": [5, 6]},
            "metrics": {"ns_per_op": {"value": 1.5, "low": 1.0, "high": 2.0},
                "llc_misses": {"unavailable": "no_pmu"}, "later": [1, 2]},
        });
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), format!("{run}\n{point}\nbad\n")).unwrap();
        let paths = [file.path().to_owned()];
        let columns = Columns::of(&paths).unwrap();
        let mut out = Vec::new();
        write(&mut out, &paths, &columns, &Kinds::default()).unwrap();
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<&str> = text.split("\r\n").collect();
        assert_eq!(lines.len(), 3, "{text}");
        assert!(lines[0].ends_with(
            "status,workload.critical_ns,later,later.low,later.high,later.missing,llc_misses,\
             llc_misses.low,llc_misses.high,llc_misses.missing,ns_per_op,ns_per_op.low,\
             ns_per_op.high,ns_per_op.missing,per_thread.ops,reasons"
        ));
        assert!(
            lines[1].contains(",\"a,b\",\"C \"\"9\"\"\",,,r,native,this-host,locks,tas,variant,")
        );
        assert!(
            lines[1]
                .ends_with("noisy,5,,,,\"unknown form: [1,2]\",,,,no_pmu,1.5,1,2,,5 6,one; two")
        );
    }
}
