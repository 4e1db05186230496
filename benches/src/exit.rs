//! Exit codes, one table for all commands.

use std::fmt;

/// How a command ended, when not well.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Something failed; exit code 1.
    Failed(String),
    /// The command line asks for what cannot be; exit code 2.
    Usage(String),
    /// Something got worse; exit code 3.
    Regressed(String),
    /// The figures do not tell; exit code 4.
    Inconclusive(String),
    /// The host is unfit for measurements; exit code 5.
    Unfit(String),
    /// A command that was run ended so; its exit code.
    Command {
        /// The exit code.
        code: u8,
        /// What happened.
        message: String,
    },
    /// Interrupted, what was measured is kept; exit code 130.
    Interrupted(String),
}

impl Failure {
    /// Gives the exit code.
    pub(crate) fn code(&self) -> u8 {
        match self {
            Self::Failed(_) => 1,
            Self::Usage(_) => 2,
            Self::Regressed(_) => 3,
            Self::Inconclusive(_) => 4,
            Self::Unfit(_) => 5,
            Self::Command { code, .. } => *code,
            Self::Interrupted(_) => 130,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(message)
            | Self::Unfit(message)
            | Self::Interrupted(message)
            | Self::Command { message, .. } => write!(f, "error: {message}"),
            Self::Regressed(message) | Self::Inconclusive(message) => f.write_str(message),
            Self::Usage(message) => {
                write!(f, "error: {message}\n\nFor more information, try '--help'.")
            }
        }
    }
}
