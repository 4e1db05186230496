//! Two files of records, paired by point: a verdict for each pair and one in sum.
//!
//! What is counted is compared exactly, or to within a stated tolerance; what is timed by the
//! intervals of its repetitions, corrected for how many times are compared (Holm); simulated times
//! by the model's band. Files are read once and line by line: of the older one the compared figures
//! are kept, of the newer one what differs.
//!
//! ```
//! use harness::compare::{Settings, Verdict, compare};
//! # let directory = tempfile::tempdir()?;
//! # let (old, new) = (directory.path().join("old.jsonl"), directory.path().join("new.jsonl"));
//! # let point = |instructions: u64| format!("{{\"record\":\"point\",\"run\":\"r\",\
//! #     \"engine\":\"callgrind\",\"machine\":\"this-host\",\"primitive\":\"locks\",\
//! #     \"variant\":\"mine\",\"workload\":{{}},\"threads\":1,\"placement\":\"none\",\"cpus\":[],\
//! #     \"seed\":1,\"repeat\":1,\"status\":\"ok\",\"reasons\":[],\
//! #     \"metrics\":{{\"instructions_per_op\":{{\"value\":{instructions}}}}},\"per_thread\":{{}}}}");
//! # std::fs::write(&old, point(9))?;
//! # std::fs::write(&new, point(10))?;
//! let comparison = compare(&old, &new, &Settings::default())?;
//! assert_eq!(comparison.verdict(false), Verdict::Regressed);
//! assert_eq!(comparison.pairs[0].findings[0].metric, "instructions_per_op");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod error;
mod figures;
mod judge;
pub mod junit;
pub mod lines;
pub mod markdown;
mod names;
mod pairs;
mod reader;
pub mod rows;
mod rules;

use std::path::Path;

pub use error::CompareError;
pub use figures::Figure;
pub use judge::{Finding, Settings, Verdict};
pub use names::Name;
pub use reader::Input;
pub use rules::{Better, How, RULES, Rule};

use crate::light::Light;
use figures::Figures;
use names::Names;
use pairs::{Known, Pairing};
use reader::{Origin, Reader};

/// A pair of points, or what stands for it.
#[derive(Debug, Clone)]
pub struct Pair {
    /// Which point.
    pub name: Name,
    /// The verdict: the worst of its figures'.
    pub verdict: Verdict,
    /// What the verdict stands on where no figures were compared.
    pub why: String,
    /// Metrics that were compared.
    pub compared: u32,
    /// Figures that differ.
    pub findings: Vec<Finding>,
}

/// Points that only one of the files has.
#[derive(Debug, Clone, Default)]
pub struct Alone {
    /// How many.
    pub points: u64,
    /// The first of them.
    pub names: Vec<Name>,
}

/// How many pairs got which verdict.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "named as the verdicts are")]
pub struct Tally {
    pub equal: u64,
    pub improved: u64,
    pub regressed: u64,
    pub inconclusive: u64,
    pub unmeasured: u64,
}

impl Tally {
    /// Gives the number of pairs.
    pub fn pairs(&self) -> u64 {
        self.equal + self.improved + self.regressed + self.inconclusive + self.unmeasured
    }

    fn count(&mut self, verdict: Verdict) {
        *match verdict {
            Verdict::Equal => &mut self.equal,
            Verdict::Improved => &mut self.improved,
            Verdict::Regressed => &mut self.regressed,
            Verdict::Inconclusive => &mut self.inconclusive,
            Verdict::Unmeasured => &mut self.unmeasured,
        } += 1;
    }
}

/// What a comparison came to.
#[derive(Debug, Clone)]
pub struct Comparison {
    /// The older file.
    pub old: Input,
    /// The newer file.
    pub new: Input,
    /// How many pairs got which verdict.
    pub tally: Tally,
    /// The pairs, in the order of the newer file: all that differ, and of the equal ones the first.
    pub pairs: Vec<Pair>,
    /// Pairs that are not in `pairs`.
    pub left_out: u64,
    /// Points that only the older file has.
    pub only_old: Alone,
    /// Points that only the newer file has.
    pub only_new: Alone,
    /// Times that were put to a test; the chance of a false alarm among all of them together is
    /// the one that was asked for.
    pub tests: u64,
    /// Figures that were not compared, since hosts, machines or builds do not allow it.
    pub refused: u64,
    /// What a person should know of hosts and builds.
    pub notes: Vec<String>,
}

impl Comparison {
    /// Gives the verdict in sum. Points that the newer file lacks leave it open, and so do lines of
    /// either file that may have held some, unless `ignore_missing`.
    pub fn verdict(&self, ignore_missing: bool) -> Verdict {
        let damaged = self.old.lost_lines + self.new.lost_lines > 0;
        let lost = (damaged || self.only_old.points > 0) && !ignore_missing;
        if self.tally.regressed > 0 {
            Verdict::Regressed
        } else if self.tally.inconclusive > 0 || lost || self.tally.pairs() == 0 {
            Verdict::Inconclusive
        } else if self.tally.improved > 0 {
            Verdict::Improved
        } else {
            Verdict::Equal
        }
    }
}

/// Compares two files.
///
/// # Errors
/// When one cannot be read or holds no points.
pub fn compare(old: &Path, new: &Path, settings: &Settings) -> Result<Comparison, CompareError> {
    let mut names = Names::default();
    let mut known = Known::default();
    let mut each = |light: &Light<Figures>, origin: Option<(u32, &Origin)>| {
        known.put(names.identity(light), light, origin)
    };
    let old = Reader::read(old, &mut each)?;
    holds_points(&old)?;
    let mut pairing = Pairing::new(names, known, &old.origins, settings);
    let new = Reader::read(new, &mut |light, origin| pairing.take(light, origin))?;
    holds_points(&new)?;
    Ok(pairing.finish(old.input.clone(), new.input))
}

fn holds_points(reader: &Reader) -> Result<(), CompareError> {
    if reader.input.points > 0 {
        return Ok(());
    }
    Err(CompareError::NoPoints(Box::new(reader.input.clone())))
}
