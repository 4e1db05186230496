//! What is missing, damaged or contradictory in a tree, without making it unreadable.

use std::cell::RefCell;
use std::fmt;

use serde::Serialize;

/// Sorts findings by what they mean for the reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FindingKind {
    /// A source is not there, what it would say is `None`.
    Missing,
    /// A file is there and cannot be read: permission, a directory in its place, an I/O error.
    Unreadable,
    /// A file was read and makes no sense: garbage, absurd numbers, the wrong width, too long.
    Damaged,
    /// Two sources say different things; the message says which one was believed.
    Contradictory,
    /// Legal, and unusual enough that a placement should know.
    Suspect,
    /// A symbolic link leads out of the root or in a circle and was not followed.
    Escapes,
}

impl FindingKind {
    /// Gives the word that also stands in the JSON form.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            FindingKind::Missing => "missing",
            FindingKind::Unreadable => "unreadable",
            FindingKind::Damaged => "damaged",
            FindingKind::Contradictory => "contradictory",
            FindingKind::Suspect => "suspect",
            FindingKind::Escapes => "escapes",
        }
    }
}

/// Names one thing that is missing, damaged or contradictory.
///
/// Findings of the same kind in files that differ only in numbers (the same file of every CPU) are
/// one finding with a count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What it means for the reader.
    pub kind: FindingKind,
    /// The first file or directory concerned, from the root on.
    pub path: String,
    /// What is wrong with it and what was done.
    pub message: String,
    /// How many more files alike.
    pub more: u32,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.kind.word(), self.path, self.message)?;
        match self.more {
            0 => Ok(()),
            more => write!(f, " (and {more} more alike)"),
        }
    }
}

/// Collects findings while a tree is read.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    list: RefCell<Vec<(String, Finding)>>,
}

impl Findings {
    /// Notes one finding, or counts it to one alike.
    pub(crate) fn note(&self, kind: FindingKind, path: &str, message: impl Into<String>) {
        let alike = alike(path);
        let mut list = self.list.borrow_mut();
        let old = list.iter_mut().find(|(key, old)| old.kind == kind && *key == alike);
        let message = message.into();
        match old {
            Some((_, old)) if old.path == path && old.message == message => {}
            Some((_, old)) => old.more = old.more.saturating_add(1),
            None => list.push((alike, Finding { kind, path: path.to_owned(), message, more: 0 })),
        }
    }

    /// Gives what was noted, in the order of reading.
    pub(crate) fn into_list(self) -> Vec<Finding> {
        self.list.into_inner().into_iter().map(|(_, finding)| finding).collect()
    }
}

/// Replaces each run of digits, so that `cpu7/online` and `cpu8/online` are alike.
fn alike(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for c in path.chars() {
        match c {
            '0'..='9' if out.ends_with('#') => {}
            '0'..='9' => out.push('#'),
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{FindingKind, Findings};

    #[test]
    fn findings_alike_are_counted() {
        let findings = Findings::default();
        for cpu in 8..12 {
            findings.note(FindingKind::Damaged, &format!("/cpu{cpu}/online"), "no number");
        }
        findings.note(FindingKind::Damaged, "/cpu8/online", "no number");
        findings.note(FindingKind::Missing, "/cpu8/online", "gone");
        let list = findings.into_list();
        assert_eq!(list.len(), 2);
        assert_eq!(list[0].to_string(), "damaged: /cpu8/online: no number (and 3 more alike)");
        assert_eq!(list[1].to_string(), "missing: /cpu8/online: gone");
    }
}
