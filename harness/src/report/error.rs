//! What can go wrong with a report.

use std::fmt;
use std::io;
use std::path::PathBuf;

use crate::records::Skipped;

/// Why there is no report.
#[derive(Debug)]
pub enum ReportError {
    /// A file of records cannot be read.
    Read(PathBuf, io::Error),
    /// A file cannot be read twice, as values in columns demand.
    NotAFile(PathBuf),
    /// The files hold no records at all.
    Empty(Vec<PathBuf>),
    /// Not a single line was understood.
    Damaged {
        /// How many lines there are.
        lines: u64,
        /// The first of them.
        first: Skipped,
        /// Where it is.
        path: PathBuf,
    },
    /// There are run headers, and no points.
    NoPoints {
        /// How many headers.
        runs: u64,
        /// How many lines were not understood.
        skipped: u64,
    },
    /// The report cannot be written.
    Write(PathBuf, io::Error),
    /// The report's place is a directory.
    Directory(PathBuf),
    /// The report would overwrite the records that it is made from.
    Input(PathBuf),
}

impl fmt::Display for ReportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(path, error) => write!(f, "cannot read {}: {error}", path.display()),
            Self::NotAFile(path) => write!(
                f,
                "{} is not a regular file; comma-separated values need to read the records twice: \
                 save them to a file first",
                path.display()
            ),
            Self::Empty(paths) => {
                let paths: Vec<String> = paths.iter().map(|p| p.display().to_string()).collect();
                write!(
                    f,
                    "no records in {}; `manycore sweep --out FILE` writes them",
                    paths.join(", ")
                )
            }
            Self::Damaged { lines, first, path } => write!(
                f,
                "none of the {lines} lines is a record of this version; {} line {}: {}",
                path.display(),
                first.line,
                first.reason
            ),
            Self::NoPoints { runs, skipped } => write!(
                f,
                "no measured points: only run headers ({runs}) and lines that were skipped \
                 ({skipped})"
            ),
            Self::Write(path, error) => write!(
                f,
                "cannot write the report to {}: {error}; choose another file with --out",
                path.display()
            ),
            Self::Directory(path) => write!(
                f,
                "cannot write the report to {}: it is a directory; name a file with --out",
                path.display()
            ),
            Self::Input(path) => write!(
                f,
                "the report would overwrite the records in {}; choose another file with --out",
                path.display()
            ),
        }
    }
}

impl std::error::Error for ReportError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Read(_, error) | Self::Write(_, error) => Some(error),
            _ => None,
        }
    }
}
