//! A host's `/proc` and `/sys`, or a saved copy below any directory: what stands in a file, or why it
//! could not be read.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::unavailable::Unavailable;

/// Most bytes that are read of a file.
const MOST_BYTES: u64 = 16 << 20;

/// A directory that is read as if it were `/`. Paths are relative to it: `proc/loadavg`.
#[derive(Debug, Clone)]
pub struct Tree {
    base: PathBuf,
}

impl Tree {
    /// Opens a root; `/` is this host.
    ///
    /// # Errors
    /// When it is no directory that can be read.
    pub fn open(root: &Path) -> io::Result<Self> {
        let base = fs::canonicalize(root)?;
        fs::read_dir(&base)?;
        Ok(Self { base })
    }

    /// Tells whether the root is this host's own.
    pub fn is_this_host(&self) -> bool {
        self.base == Path::new("/")
    }

    /// Gives the path as this process sees it, links not followed.
    pub fn seen(&self, path: &str) -> PathBuf {
        self.base.join(path)
    }

    /// Reads a text.
    ///
    /// # Errors
    /// `not_there`, `not_permitted`, `not_readable` or `not_understood`, with the path.
    pub fn text(&self, path: &str) -> Result<String, Unavailable> {
        let real = self.locate(path)?;
        let failed = |error: io::Error| why(path, &error);
        // Opening a FIFO would wait for whoever writes to it.
        if !fs::metadata(&real).map_err(failed)?.is_file() {
            return Err(Unavailable::because("not_readable", format!("/{path} is no file")));
        }
        let mut bytes = Vec::new();
        let file = File::open(&real).map_err(failed)?;
        file.take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
        if bytes.len() as u64 > MOST_BYTES {
            return Err(Unavailable::because("not_readable", format!("/{path} is too long")));
        }
        String::from_utf8(bytes).map_err(|_| misread(path, "it is not UTF-8"))
    }

    /// Reads the first line.
    ///
    /// # Errors
    /// As for [`text`](Self::text), and when the line is empty.
    pub fn word(&self, path: &str) -> Result<String, Unavailable> {
        let text = self.text(path)?;
        match text.lines().next().map(str::trim) {
            Some(line) if !line.is_empty() => Ok(line.to_owned()),
            _ => Err(misread(path, "it is empty")),
        }
    }

    /// Reads a number.
    ///
    /// # Errors
    /// As for [`word`](Self::word), and when the line is no number.
    pub fn number(&self, path: &str) -> Result<i64, Unavailable> {
        let word = self.word(path)?;
        word.parse().map_err(|_| misread(path, &format!("{:?} is no number", cut(&word))))
    }

    /// Reads the word in brackets of a file that lists its choices; the line itself where no word is
    /// in brackets.
    ///
    /// # Errors
    /// As for [`word`](Self::word).
    pub fn chosen(&self, path: &str) -> Result<String, Unavailable> {
        let line = self.word(path)?;
        let bracketed = line.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
        Ok(bracketed.map_or(line.as_str(), |(chosen, _)| chosen).to_owned())
    }

    /// Takes what was read of a file that a kernel without the feature does not have: `None` on a
    /// host that runs without it. A saved tree may just not hold the file.
    ///
    /// # Errors
    /// What was read, if it is another error.
    pub fn feature<T>(&self, read: Result<T, Unavailable>) -> Result<Option<T>, Unavailable> {
        match read {
            Err(reason) if reason.code == "not_there" && self.is_this_host() => Ok(None),
            other => other.map(Some),
        }
    }

    /// Reads the number in KiB, or without a unit, that stands behind `key` in `proc/meminfo`.
    ///
    /// # Errors
    /// As for [`number`](Self::number).
    pub fn meminfo(&self, key: &str) -> Result<u64, Unavailable> {
        const PATH: &str = "proc/meminfo";
        let text = self.text(PATH)?;
        let value = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
        let value = value.ok_or_else(|| misread(PATH, &format!("it has no {key}")))?;
        let number = value.split_whitespace().next().unwrap_or_default();
        number.parse().map_err(|_| misread(PATH, &format!("{key} is no number")))
    }

    /// Lists the names in a directory, sorted.
    ///
    /// # Errors
    /// As for [`text`](Self::text).
    pub fn names(&self, path: &str) -> Result<Vec<String>, Unavailable> {
        let entries = fs::read_dir(self.locate(path)?).map_err(|error| why(path, &error))?;
        let mut names: Vec<String> =
            entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
        names.sort();
        Ok(names)
    }

    /// Finds where a path really is, inside the root.
    ///
    /// # Errors
    /// As for [`text`](Self::text).
    pub(super) fn locate(&self, path: &str) -> Result<PathBuf, Unavailable> {
        let real = fs::canonicalize(self.base.join(path)).map_err(|error| why(path, &error))?;
        if real.starts_with(&self.base) {
            return Ok(real);
        }
        Err(Unavailable::because("not_readable", format!("/{path} leads out of the root")))
    }
}

/// Names the reason for which a path could not be read.
fn why(path: &str, error: &io::Error) -> Unavailable {
    let code = match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => "not_there",
        io::ErrorKind::PermissionDenied => "not_permitted",
        _ => "not_readable",
    };
    Unavailable::because(code, format!("/{path}: {error}"))
}

/// Says that a file was read and makes no sense.
pub(super) fn misread(path: &str, what: &str) -> Unavailable {
    Unavailable::because("not_understood", format!("/{path}: {what}"))
}

fn cut(text: &str) -> String {
    text.chars().take(40).collect()
}
