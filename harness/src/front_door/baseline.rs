//! Saved counts: one file a crate and baseline, `<target>/manycore-counts/<crate>/<name>.json`.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::measured::OPS;
use super::target_directory;

/// The format of the file.
const SCHEMA: u64 = 1;

/// What one operation of a row costs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct Saved {
    /// Instructions of an operation.
    pub(super) instructions_per_op: f64,
    /// Locked instructions and exchanges of an operation.
    pub(super) rmw_per_op: f64,
}

/// Counts under one name, by row.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Baseline {
    schema: u64,
    /// The compiler that the counts are of; another one makes other code.
    pub(super) rustc: String,
    /// Operations of the shorter of the two runs.
    ops: u64,
    /// Counts by row, `locks/ticket` say.
    pub(super) counts: BTreeMap<String, Saved>,
}

impl Baseline {
    /// Makes one without counts.
    pub(super) fn new(rustc: String) -> Self {
        Self { schema: SCHEMA, rustc, ops: OPS, counts: BTreeMap::new() }
    }

    /// Reads a baseline; `None` when it was never saved.
    ///
    /// # Errors
    /// When it cannot be read or is no baseline.
    pub(super) fn read(package: &str, name: &str) -> Result<Option<Self>, String> {
        let file = file(package, name);
        let text = match fs::read_to_string(&file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            text => text.map_err(|error| format!("{}: {error}", file.display()))?,
        };
        match serde_json::from_str::<Self>(&text) {
            Ok(baseline) if baseline.schema == SCHEMA && baseline.ops == OPS => Ok(Some(baseline)),
            Ok(_) => Err(format!("{}: of another version of this program", file.display())),
            Err(error) => Err(format!("{}: {error}", file.display())),
        }
    }

    /// Saves the counts; rows that were not counted now keep what was saved for them.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(super) fn save(mut self, package: &str, name: &str) -> Result<(), String> {
        if let Ok(Some(before)) = Self::read(package, name)
            && before.rustc == self.rustc
        {
            for (row, counts) in before.counts {
                self.counts.entry(row).or_insert(counts);
            }
        }
        let file = file(package, name);
        let named = |error: io::Error| format!("{}: {error}", file.display());
        fs::create_dir_all(file.with_file_name("")).map_err(named)?;
        let text = serde_json::to_string_pretty(&self).map_err(|error| error.to_string())?;
        // In one step, so that a reader never sees half of it.
        let unfinished = file.with_extension("json.new");
        fs::write(&unfinished, text + "\n").map_err(named)?;
        fs::rename(&unfinished, &file).map_err(named)
    }
}

fn file(package: &str, name: &str) -> PathBuf {
    let target = target_directory().unwrap_or_default();
    target.join("manycore-counts").join(package).join(format!("{name}.json"))
}

/// Says how a count compares with a saved one.
pub(super) fn change(now: f64, before: Option<f64>) -> String {
    match before {
        None => "new".into(),
        Some(before) if before == now => "unchanged".into(),
        Some(before) if before == 0.0 => format!("was {before}"),
        Some(before) => format!("was {before}, {:+.2} %", (now - before) * 100.0 / before),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes() {
        assert_eq!(change(5.0, None), "new");
        assert_eq!(change(5.0, Some(5.0)), "unchanged");
        assert_eq!(change(5.0, Some(4.0)), "was 4, +25.00 %");
        assert_eq!(change(1.0, Some(0.0)), "was 0");
    }

    #[test]
    fn what_is_saved_is_read() {
        let package = format!("test-{}", std::process::id());
        let counts = |value| Saved { instructions_per_op: value, rmw_per_op: 1.0 };
        assert!(Baseline::read(&package, "a").unwrap().is_none());
        for (row, value) in [("x", 1.5), ("y", 2.0)] {
            let mut baseline = Baseline::new("rustc 1".into());
            baseline.counts.insert(row.into(), counts(value));
            baseline.save(&package, "a").unwrap();
        }
        let read = Baseline::read(&package, "a").unwrap().unwrap();
        assert_eq!(read.counts, [("x".into(), counts(1.5)), ("y".into(), counts(2.0))].into());
        // Another compiler's counts are not mixed in.
        Baseline::new("rustc 2".into()).save(&package, "a").unwrap();
        assert!(Baseline::read(&package, "a").unwrap().unwrap().counts.is_empty());
        fs::write(file(&package, "a"), "{}").unwrap();
        assert!(Baseline::read(&package, "a").is_err());
        fs::remove_dir_all(file(&package, "a").parent().unwrap()).unwrap();
    }
}
