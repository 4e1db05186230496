//! What can go wrong with a comparison.

use std::fmt;
use std::io;
use std::path::PathBuf;

use super::reader::Input;

/// Why there is no comparison.
#[derive(Debug)]
pub enum CompareError {
    /// A file of records cannot be read.
    Read(PathBuf, io::Error),
    /// A file holds no points.
    NoPoints(Box<Input>),
}

impl fmt::Display for CompareError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(path, error) => write!(f, "cannot read {}: {error}", path.display()),
            Self::NoPoints(input) => {
                write!(f, "{} holds no points", input.path.display())?;
                if let Some(first) = input.skipped.first() {
                    let (lines, line, reason) = (input.skipped_lines, first.line, &first.reason);
                    write!(f, ": {lines} lines were not understood; line {line}: {reason}")?;
                }
                f.write_str("; `manycore sweep --out FILE` writes files that can be compared")
            }
        }
    }
}

impl std::error::Error for CompareError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Read(_, error) => Some(error),
            Self::NoPoints(_) => None,
        }
    }
}
