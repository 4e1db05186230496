//! Reading of small files under a root, without leaving it, hanging or running out of memory.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::path::{Component, Path, PathBuf};

use crate::archive::Archive;
use crate::cpuset::{CpuSet, MAX_CPU};
use crate::error::TopologyError;
use crate::files::{Files, Kind};
use crate::finding::{FindingKind, Findings};

/// Most bytes read of a file.
const SMALL_BYTES: u64 = 1 << 20;

/// Most bytes read of a file that grows with CPUs or mounts: `cpuinfo` and the mount tables.
const LARGE_BYTES: u64 = 16 << 20;

/// Most symbolic links followed for one path, as in the kernel.
const MOST_LINKS: u32 = 40;

/// Says why there is no text; whatever is more than missing has been noted as a finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Unread {
    Missing,
    Broken(String),
}

/// A directory read as if it were `/`. Paths are relative to it: `sys/devices/system/cpu/online`.
pub(crate) struct Tree {
    files: Files,
    base: PathBuf,
    pub(crate) this_host: bool,
    pub(crate) findings: Findings,
    /// Where a directory really is, so that its links are followed once.
    located: RefCell<HashMap<String, Result<PathBuf, Unread>>>,
}

impl Tree {
    /// Opens a root: a directory, or an archive of one. Links in the root's own path are followed,
    /// those below never out of it.
    pub(crate) fn open(root: &Path) -> Result<Tree, TopologyError> {
        let failed = |error: io::Error| TopologyError::Root {
            root: root.to_owned(),
            errno: error.raw_os_error().unwrap_or(libc::EINVAL),
        };
        let base = fs::canonicalize(root).map_err(failed)?;
        let kind = fs::metadata(&base).map_err(failed)?;
        if kind.is_file() {
            return Tree::packed(root, File::open(&base).map_err(failed)?);
        }
        if !kind.is_dir() {
            return Err(TopologyError::RootNotADirectory { root: root.to_owned() });
        }
        fs::read_dir(&base).map_err(failed)?;
        let this_host = base == Path::new("/");
        let (files, findings) = (Files::Disk, Findings::default());
        Ok(Tree { files, base, this_host, findings, located: RefCell::default() })
    }

    fn packed(root: &Path, file: File) -> Result<Tree, TopologyError> {
        let archive = Archive::read(file)
            .map_err(|problem| TopologyError::Archive { archive: root.to_owned(), problem })?;
        let findings = Findings::default();
        for ignored in &archive.ignored {
            findings.note(ignored.kind, &rooted(&ignored.path), &ignored.message);
        }
        let (base, located) = (archive.root(), RefCell::default());
        Ok(Tree { files: Files::Archive(archive), base, this_host: false, findings, located })
    }

    /// Reads a small text file.
    pub(crate) fn read(&self, path: &str) -> Result<String, Unread> {
        self.read_up_to(path, SMALL_BYTES)
    }

    /// Reads a text file that grows with the machine.
    pub(crate) fn read_large(&self, path: &str) -> Result<String, Unread> {
        self.read_up_to(path, LARGE_BYTES)
    }

    /// Reads one value: the file without the white space and NULs around it.
    pub(crate) fn value(&self, path: &str) -> Option<String> {
        let text = self.read(path).ok()?;
        Some(text.trim_matches(|c: char| c.is_ascii_whitespace() || c == '\0').to_owned())
    }

    /// Reads a decimal number; anything else is noted as damaged.
    pub(crate) fn number(&self, path: &str) -> Option<u64> {
        let text = self.value(path)?;
        match text.parse() {
            Ok(number) => Some(number),
            Err(_) => {
                self.damaged(path, format!("{:?} is no number", shorten(&text)));
                None
            }
        }
    }

    /// Reads a set in list form.
    pub(crate) fn list(&self, path: &str) -> Result<CpuSet, Unread> {
        self.parsed(path, CpuSet::parse_list)
    }

    /// Reads a set in mask form.
    pub(crate) fn mask(&self, path: &str) -> Result<CpuSet, Unread> {
        self.parsed(path, CpuSet::parse_mask)
    }

    /// Reads the group that a CPU is in, online part only, from its list, else from its mask.
    pub(crate) fn group_of(
        &self,
        cpu: u32,
        list: &str,
        mask: &str,
        online: &CpuSet,
    ) -> Option<CpuSet> {
        let own = |path: &str, set: CpuSet| {
            if !set.contains(cpu) {
                self.damaged(path, "does not contain its own CPU; not used");
                return None;
            }
            Some(set.intersection(online))
        };
        let by_list = self.list(list).ok().and_then(|set| own(list, set));
        by_list.or_else(|| self.mask(mask).ok().and_then(|set| own(mask, set)))
    }

    fn parsed<E: std::fmt::Display>(
        &self,
        path: &str,
        parse: impl Fn(&str) -> Result<CpuSet, E>,
    ) -> Result<CpuSet, Unread> {
        parse(&self.read(path)?).map_err(|error| {
            self.damaged(path, error.to_string());
            Unread::Broken(error.to_string())
        })
    }

    /// Lists the numbers N for which the directory has an entry `<prefix>N`.
    pub(crate) fn numbered(&self, path: &str, prefix: &str) -> CpuSet {
        let mut numbers = CpuSet::new();
        for name in self.names(path) {
            let Some(digits) = name.strip_prefix(prefix) else { continue };
            if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
                continue;
            }
            let canonical = digits == "0" || !digits.starts_with('0');
            let fits = digits.parse().is_ok_and(|number| numbers.insert(number).is_ok());
            if !canonical || !fits {
                let entry = format!("{path}/{}", shorten(&name));
                self.damaged(&entry, format!("no number from 0 to {MAX_CPU}; ignored"));
            }
        }
        numbers
    }

    /// Says whether the path leads to a directory.
    pub(crate) fn is_dir(&self, path: &str) -> bool {
        self.locate(path).is_ok_and(|real| self.files.is_dir(&real))
    }

    /// Notes that a file makes no sense.
    pub(crate) fn damaged(&self, path: &str, message: impl Into<String>) {
        self.note(FindingKind::Damaged, path, message);
    }

    /// Notes a finding about a path of this tree.
    pub(crate) fn note(&self, kind: FindingKind, path: &str, message: impl Into<String>) {
        self.findings.note(kind, &rooted(path), message);
    }

    fn names(&self, path: &str) -> Vec<String> {
        let Ok(real) = self.locate(path) else { return Vec::new() };
        self.files.names(&real).unwrap_or_else(|error| {
            self.failed(path, &error);
            Vec::new()
        })
    }

    fn read_up_to(&self, path: &str, most: u64) -> Result<String, Unread> {
        let real = self.locate(path)?;
        let bytes = self.files.bytes(&real, most, self.this_host);
        let bytes = bytes.map_err(|error| self.failed(path, &error))?;
        if bytes.len() as u64 > most {
            let message = format!("longer than {most} bytes; not read");
            self.damaged(path, &message);
            return Err(Unread::Broken(message));
        }
        String::from_utf8(bytes).map_err(|_| {
            self.damaged(path, "not UTF-8; not used");
            Unread::Broken("not UTF-8".to_owned())
        })
    }

    /// Turns an I/O error into its meaning; whatever is more than missing is noted.
    fn failed(&self, path: &str, error: &io::Error) -> Unread {
        match error.kind() {
            io::ErrorKind::NotFound
            | io::ErrorKind::NotADirectory
            | io::ErrorKind::InvalidInput => Unread::Missing,
            _ => {
                self.note(FindingKind::Unreadable, path, error.to_string());
                Unread::Broken(error.to_string())
            }
        }
    }

    /// Finds where a path really is, inside the root.
    fn locate(&self, path: &str) -> Result<PathBuf, Unread> {
        if self.this_host {
            return Ok(self.base.join(path.trim_start_matches('/')));
        }
        let path = path.trim_matches('/');
        let (parent, leaf) = path.rsplit_once('/').unwrap_or(("", path));
        let known = self.located.borrow().get(parent).cloned();
        let parent_at = match known {
            Some(known) => known?,
            None => {
                let found = self.walk(self.base.clone(), Path::new(parent), path, &mut 0);
                self.located.borrow_mut().insert(parent.to_owned(), found.clone());
                found?
            }
        };
        self.walk(parent_at, Path::new(leaf), path, &mut 0)
    }

    /// Goes from a real directory along a path whose parts may be links.
    fn walk(
        &self,
        mut at: PathBuf,
        along: &Path,
        path: &str,
        links: &mut u32,
    ) -> Result<PathBuf, Unread> {
        for part in along.components() {
            match part {
                Component::CurDir => {}
                Component::Normal(name) => at = self.step(at, name, path, links)?,
                Component::ParentDir if at != self.base => {
                    at.pop();
                }
                _ => return Err(self.escapes(path, "leads out of the root; not followed")),
            }
        }
        Ok(at)
    }

    fn step(
        &self,
        at: PathBuf,
        name: &OsStr,
        path: &str,
        links: &mut u32,
    ) -> Result<PathBuf, Unread> {
        let next = at.join(name);
        let kind = self.files.kind(&next).map_err(|error| self.failed(path, &error))?;
        if kind != Kind::Link {
            return Ok(next);
        }
        *links += 1;
        if *links > MOST_LINKS {
            return Err(self
                .escapes(path, "symbolic links in a circle, or too many in a row; not followed"));
        }
        let target = self.files.target(&next).map_err(|error| self.failed(path, &error))?;
        self.walk(at, &target, path, links)
    }

    fn escapes(&self, path: &str, message: &str) -> Unread {
        self.note(FindingKind::Escapes, path, message);
        Unread::Broken(message.to_owned())
    }
}

/// Writes a path of the tree as seen from its root.
pub(crate) fn rooted(path: &str) -> String {
    format!("/{}", path.trim_start_matches('/'))
}

/// Cuts a text for a message.
pub(crate) fn shorten(text: &str) -> String {
    const KEEP: usize = 40;
    let mut short: String = text.chars().take(KEEP).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::{Tree, Unread};

    fn tree() -> (tempfile::TempDir, Tree) {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("root/a/b")).unwrap();
        fs::write(dir.path().join("outside"), "7").unwrap();
        fs::write(dir.path().join("root/a/b/inside"), "5\n").unwrap();
        let tree = Tree::open(&dir.path().join("root")).unwrap();
        (dir, tree)
    }

    #[test]
    fn links_inside_are_followed() {
        let (dir, tree) = tree();
        let root = dir.path().join("root");
        symlink("a/b", root.join("short")).unwrap();
        symlink("../a/b/../b/inside", root.join("a/file")).unwrap();
        assert_eq!(tree.number("short/inside"), Some(5));
        assert_eq!(tree.number("a/file"), Some(5));
        assert_eq!(tree.number("/a/../a/b/inside"), Some(5));
        assert!(tree.findings.into_list().is_empty());
    }

    #[test]
    fn links_outside_are_not() {
        let (dir, tree) = tree();
        let root = dir.path().join("root");
        symlink("../outside", root.join("relative")).unwrap();
        symlink(dir.path().join("outside"), root.join("absolute")).unwrap();
        symlink("../..", root.join("a/up")).unwrap();
        for path in ["relative", "absolute", "a/up/outside", "../outside", "a/../../outside"] {
            assert!(matches!(tree.read(path), Err(Unread::Broken(_))), "{path}");
        }
        assert_eq!(tree.findings.into_list().len(), 5);
    }

    #[test]
    fn circles_end() {
        let (dir, tree) = tree();
        let root = dir.path().join("root");
        symlink("two", root.join("one")).unwrap();
        symlink("one", root.join("two")).unwrap();
        symlink(".", root.join("a/self")).unwrap();
        assert!(matches!(tree.read("one"), Err(Unread::Broken(_))));
        assert!(matches!(tree.read("two/x/y"), Err(Unread::Broken(_))));
        assert_eq!(tree.number("a/self/self/self/b/inside"), Some(5));
    }

    #[test]
    fn what_is_no_file_is_not_read() {
        let (dir, tree) = tree();
        let fifo = dir.path().join("root/fifo");
        let made = std::process::Command::new("mkfifo").arg(&fifo).status().unwrap();
        assert!(made.success());
        for path in ["fifo", "a/b"] {
            assert!(matches!(tree.read(path), Err(Unread::Broken(_))), "{path}");
        }
        assert_eq!(tree.read("a/none"), Err(Unread::Missing));
        assert_eq!(tree.read("a/b/inside/none"), Err(Unread::Missing));
        assert_eq!(tree.read("a/\0"), Err(Unread::Missing));
    }

    #[test]
    fn lengths_are_capped() {
        let (dir, tree) = tree();
        let root = dir.path().join("root");
        fs::write(root.join("fits"), vec![b' '; 1 << 20]).unwrap();
        fs::write(root.join("long"), vec![b' '; (1 << 20) + 1]).unwrap();
        assert!(tree.read("fits").is_ok());
        assert!(matches!(tree.read("long"), Err(Unread::Broken(_))));
        assert!(tree.read_large("long").is_ok());
    }

    #[test]
    fn numbered_entries() {
        let (dir, tree) = tree();
        for name in ["cpu0", "cpu10", "cpu1030", "cpufreq", "cpu", "cpu4294967295", "cpu-1"] {
            fs::create_dir(dir.path().join("root/a").join(name)).unwrap();
        }
        assert_eq!(tree.numbered("a", "cpu").to_string(), "0,10,1030");
        assert_eq!(tree.findings.into_list().len(), 1);
    }
}
