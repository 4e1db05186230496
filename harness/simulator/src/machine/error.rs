//! What makes a machine unusable.

use std::fmt;
use std::path::PathBuf;

/// Says why there is no such machine, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum MachineError {
    /// No machine of this name comes with the simulator.
    Unknown {
        /// What was asked for.
        name: String,
        /// The known name that looks most like it.
        nearest: Option<&'static str>,
        /// All known names.
        known: Vec<&'static str>,
    },
    /// The file cannot be read.
    Unreadable {
        /// Its path.
        path: PathBuf,
        /// What the system says.
        error: String,
    },
    /// The file is too large to be a machine file.
    TooLarge {
        /// Its path or name.
        origin: String,
    },
    /// The file holds no text.
    NotText {
        /// Its path or name.
        origin: String,
    },
    /// The file holds nothing.
    Empty {
        /// Its path or name.
        origin: String,
    },
    /// The text is no TOML.
    Syntax {
        /// The file's path or name.
        origin: String,
        /// Where and what, in several lines.
        message: String,
    },
    /// Something is wrong with one field.
    Field {
        /// The file's path or name.
        origin: String,
        /// Table and key.
        field: String,
        /// What is wrong with it.
        problem: FieldProblem,
    },
    /// Two fields exclude each other.
    Contradiction {
        /// The file's path or name.
        origin: String,
        /// The field that is judged.
        field: String,
        /// What contradicts it.
        reason: String,
    },
    /// The machine cannot have so many cores.
    Cores {
        /// The machine's name.
        machine: String,
        /// How many were asked for.
        asked: usize,
        /// Why not.
        reason: String,
    },
}

/// Says what is wrong with a field of a machine file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FieldProblem {
    /// It is not there.
    Missing {
        /// What to put there.
        about: String,
    },
    /// No such field exists.
    Unknown {
        /// What may stand there instead.
        expected: String,
    },
    /// It is of another type.
    Type {
        /// What it must be.
        expected: String,
        /// What it is.
        found: String,
    },
    /// It is not a number, infinite, zero, negative, too small or too large.
    Range {
        /// What it is.
        found: String,
        /// What it must be.
        expected: String,
    },
}

impl fmt::Display for FieldProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FieldProblem::Missing { about } => write!(f, "is missing; add it: {about}"),
            FieldProblem::Unknown { expected } => write!(f, "is no field; {expected}"),
            FieldProblem::Type { expected, found } => {
                write!(f, "must be {expected} and is {found}; write {expected}")
            }
            FieldProblem::Range { found, expected } => {
                write!(f, "is {found} and must be {expected}; correct it")
            }
        }
    }
}

impl fmt::Display for MachineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MachineError::Unknown { name, nearest, known } => {
                write!(f, "no machine is called `{name}`")?;
                match nearest {
                    Some(nearest) => write!(f, "; is `{nearest}` meant?")?,
                    None => f.write_str(".")?,
                }
                write!(f, " Known are {}", known.join(", "))?;
                write!(f, "; a file of your own is given by its path, as in ./my.toml")
            }
            MachineError::Unreadable { path, error } => {
                write!(f, "cannot read the machine file {}: {error}", path.display())?;
                write!(f, "; give the path of a TOML file, or the name of a known machine")
            }
            MachineError::TooLarge { origin } => write!(
                f,
                "{origin} is larger than 1 MB and no machine file; docs/machines.md shows one"
            ),
            MachineError::NotText { origin } => write!(
                f,
                "{origin} is not UTF-8 text and no machine file; docs/machines.md shows one"
            ),
            MachineError::Empty { origin } => {
                write!(f, "{origin} is empty; start from the example in docs/machines.md")
            }
            MachineError::Syntax { origin, message } => {
                write!(f, "{origin} is not valid TOML; correct this place:\n{message}")
            }
            MachineError::Field { origin, field, problem } => {
                write!(f, "{origin}: `{field}` {problem}")
            }
            MachineError::Contradiction { origin, field, reason } => {
                write!(f, "{origin}: `{field}` cannot be: {reason}; correct one of them")
            }
            MachineError::Cores { machine, asked, reason } => {
                write!(f, "{machine} cannot have {asked} cores: {reason}; ask for another number")
            }
        }
    }
}

impl std::error::Error for MachineError {}
