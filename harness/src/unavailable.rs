//! Why a figure is missing: a typed reason in its place, never a zero.

use std::fmt;
use std::io;

use serde::{Deserialize, Serialize};

/// A reason for which something could not be measured or granted.
///
/// The code is what records carry and scripts compare; the detail is for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unavailable {
    /// A short stable word, `no_pmu` say.
    #[serde(rename = "unavailable")]
    pub code: String,
    /// What the system said and what to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

impl Unavailable {
    /// Gives the reason `code` without detail.
    pub fn new(code: &str) -> Self {
        Self { code: code.into(), detail: None }
    }

    /// Gives the reason `code` with what a person should know.
    pub fn because(code: &str, detail: impl Into<String>) -> Self {
        Self { code: code.into(), detail: Some(detail.into()) }
    }

    /// Gives the reason `code` for a system call that failed, with its errno.
    pub fn syscall(code: &str, call: &str, error: &io::Error) -> Self {
        Self::because(code, format!("{call}: {error}"))
    }
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.detail {
            Some(detail) => write!(f, "{} ({detail})", self.code),
            None => f.write_str(&self.code),
        }
    }
}

impl std::error::Error for Unavailable {}
