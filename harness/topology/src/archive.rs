//! Archives of trees, read into memory: nothing of them is ever written anywhere.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

use tar::EntryType;

use crate::files::Kind;
use crate::finding::FindingKind;
use crate::sysfs::shorten;

/// Most bytes that an archive may unpack to.
const UNPACKED_MOST: u64 = 256 << 20;

/// Most bytes of all its files together, those included that sparse files stand for.
const KEPT_MOST: u64 = 256 << 20;

/// Most bytes kept of a file: one more than is ever read of one.
const FILE_MOST: u64 = (16 << 20) + 1;

/// Longest name and link target, and deepest directory.
const NAME_MOST: usize = 1024;
const DEPTH_MOST: usize = 64;

/// So many entries that are ignored are named, and the rest counted.
const NAMED: u64 = 8;

/// Says why an archive cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ArchiveProblem {
    /// The file has no bytes.
    Empty,
    /// It begins as something else does.
    NoArchive {
        /// What it seems to be, where that can be told.
        looks_like: Option<&'static str>,
    },
    /// It ends in the middle.
    Truncated,
    /// A checksum or a length is wrong.
    Damaged {
        /// What the reader said.
        reason: String,
    },
    /// It unpacks to more than is ever read.
    TooLarge {
        /// The most bytes.
        most: u64,
    },
    /// It is an archive of nothing.
    NoEntries,
}

impl fmt::Display for ArchiveProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MAKE: &str = "give a directory, or an archive made by scripts/save-topology.sh";
        match self {
            ArchiveProblem::Empty => write!(f, "the file is empty; {MAKE}"),
            ArchiveProblem::NoArchive { looks_like: Some(what) } => {
                write!(f, "it is {what} and no .tar.gz or .tar; {MAKE}")
            }
            ArchiveProblem::NoArchive { looks_like: None } => {
                write!(f, "it is no .tar.gz or .tar; {MAKE}")
            }
            ArchiveProblem::Truncated => {
                f.write_str("the archive ends in the middle; copy it again")
            }
            ArchiveProblem::Damaged { reason } => {
                write!(f, "the archive is damaged ({reason}); copy it again")
            }
            ArchiveProblem::TooLarge { most } => write!(
                f,
                "the archive unpacks to more than {} MiB; pack only what docs/topology.md lists",
                most >> 20
            ),
            ArchiveProblem::NoEntries => write!(f, "the archive holds nothing; {MAKE}"),
        }
    }
}

/// What lies in an archive.
pub(crate) enum Node {
    Directory(BTreeMap<String, Node>),
    File(Rc<[u8]>),
    Link(PathBuf),
    /// A device, a FIFO.
    Other,
}

impl Node {
    pub(crate) fn kind(&self) -> Kind {
        match self {
            Node::Directory(_) => Kind::Directory,
            Node::File(_) => Kind::File,
            Node::Link(_) => Kind::Link,
            Node::Other => Kind::Other,
        }
    }
}

/// An entry that was ignored, with the reason.
pub(crate) struct Ignored {
    pub(crate) kind: FindingKind,
    pub(crate) path: String,
    pub(crate) message: String,
}

/// Holds the files of an archive.
pub(crate) struct Archive {
    top: Node,
    pub(crate) ignored: Vec<Ignored>,
}

impl Archive {
    /// Reads a whole archive: compressed or not, as its first bytes say.
    pub(crate) fn read(file: File) -> Result<Archive, ArchiveProblem> {
        let mut file = BufReader::new(file);
        let mut start = Vec::new();
        let read = file.by_ref().take(512).read_to_end(&mut start);
        read.map_err(|error| ArchiveProblem::Damaged { reason: error.to_string() })?;
        let whole = io::Cursor::new(start.clone()).chain(file);
        let reader: Box<dyn Read> = match start.as_slice() {
            [] => return Err(ArchiveProblem::Empty),
            [0x1f, 0x8b, ..] => Box::new(flate2::read::MultiGzDecoder::new(whole)),
            _ if start.get(257..262) == Some(b"ustar") => Box::new(whole),
            _ => return Err(ArchiveProblem::NoArchive { looks_like: looks_like(&start) }),
        };
        let exceeded = Cell::new(false);
        let mut reader = Limited { reader, left: UNPACKED_MOST, exceeded: &exceeded };
        let mut reading = Reading::default();
        let result = reading.entries(&mut reader);
        // What follows the last entry is read too: there the compression has its checksum.
        let result = result.and_then(|()| io::copy(&mut reader, &mut io::sink()));
        if exceeded.get() || reading.too_much {
            return Err(ArchiveProblem::TooLarge { most: UNPACKED_MOST });
        }
        result.map_err(|error| reading.problem(&error))?;
        match reading.entries {
            0 => Err(ArchiveProblem::NoEntries),
            _ => Ok(reading.end()),
        }
    }

    /// Finds what lies at a path; no link is followed.
    pub(crate) fn at(&self, path: &Path) -> io::Result<&Node> {
        let mut at = &self.top;
        for part in path.components() {
            let Component::Normal(name) = part else { continue };
            let Node::Directory(entries) = at else {
                return Err(io::ErrorKind::NotADirectory.into());
            };
            let found = name.to_str().and_then(|name| entries.get(name));
            at = found.ok_or(io::ErrorKind::NotFound)?;
        }
        Ok(at)
    }

    /// Finds the root of the tree: the top, or the only directory there that holds `sys` or `proc`.
    pub(crate) fn root(&self) -> PathBuf {
        let Node::Directory(top) = &self.top else { return PathBuf::new() };
        let is_root = |entries: &BTreeMap<String, Node>| {
            entries.contains_key("sys") || entries.contains_key("proc")
        };
        let mut inner = top.iter().filter_map(|(name, node)| match node {
            Node::Directory(entries) if is_root(entries) => Some(name),
            _ => None,
        });
        match (is_root(top), inner.next(), inner.next()) {
            (false, Some(name), None) => PathBuf::from(name),
            _ => PathBuf::new(),
        }
    }
}

fn looks_like(start: &[u8]) -> Option<&'static str> {
    match start {
        [0xfd, b'7', b'z', b'X', b'Z', ..] => Some("compressed by xz"),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Some("compressed by zstd"),
        [b'B', b'Z', b'h', ..] => Some("compressed by bzip2"),
        [b'P', b'K', 3, 4, ..] => Some("a zip archive"),
        [b'{' | b'[', ..] => Some("JSON"),
        _ => None,
    }
}

/// Stops where more comes than is ever wanted.
struct Limited<'a> {
    reader: Box<dyn Read>,
    left: u64,
    exceeded: &'a Cell<bool>,
}

impl Read for Limited<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            self.exceeded.set(true);
            return Err(io::Error::other("too large"));
        }
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        let read = self.reader.read(&mut buffer[..most])?;
        self.left -= read as u64;
        Ok(read)
    }
}

/// What was read so far.
#[derive(Default)]
struct Reading {
    top: BTreeMap<String, Node>,
    entries: u64,
    kept: u64,
    too_much: bool,
    ignored: Vec<Ignored>,
    uncounted: u64,
}

impl Reading {
    fn entries(&mut self, reader: &mut Limited<'_>) -> io::Result<()> {
        let mut archive = tar::Archive::new(reader);
        for entry in archive.entries()? {
            let mut entry = entry?;
            self.entries += 1;
            self.entry(&mut entry)?;
            if self.too_much {
                break;
            }
        }
        Ok(())
    }

    fn entry<R: Read>(&mut self, entry: &mut tar::Entry<'_, R>) -> io::Result<()> {
        let name = entry.path_bytes().into_owned();
        let kind = entry.header().entry_type();
        if kind == EntryType::XGlobalHeader {
            return Ok(());
        }
        let shown = shorten(&String::from_utf8_lossy(&name));
        let parts = match parts(&name) {
            Ok(parts) => parts,
            Err((kind, message)) => {
                self.ignore(kind, &shown, message);
                return Ok(());
            }
        };
        let node = match kind {
            EntryType::Directory => Node::Directory(BTreeMap::new()),
            EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => {
                let mut bytes = Vec::new();
                entry.by_ref().take(FILE_MOST).read_to_end(&mut bytes)?;
                self.kept += bytes.len() as u64;
                self.too_much = self.kept > KEPT_MOST;
                Node::File(bytes.into())
            }
            EntryType::Symlink => match target(entry) {
                Some(target) => Node::Link(target),
                None => {
                    self.ignore(FindingKind::Damaged, &shown, "a link to nowhere; ignored");
                    return Ok(());
                }
            },
            EntryType::Link => match target(entry).and_then(|target| self.same(&target)) {
                Some(bytes) => Node::File(bytes),
                None => {
                    let message = "a hard link to no file before it; ignored";
                    self.ignore(FindingKind::Damaged, &shown, message);
                    return Ok(());
                }
            },
            _ => {
                let message = "a device, a FIFO or of unknown kind; not read";
                self.ignore(FindingKind::Unreadable, &shown, message);
                Node::Other
            }
        };
        if !self.insert(&parts, node) {
            self.ignore(FindingKind::Damaged, &shown, "lies below what is no directory; ignored");
        }
        Ok(())
    }

    /// Puts an entry into its place. The later of two of one name holds, as for `tar`.
    fn insert(&mut self, parts: &[String], node: Node) -> bool {
        let Some((name, above)) = parts.split_last() else { return true };
        let mut at = &mut self.top;
        for part in above {
            let next = at.entry(part.clone()).or_insert_with(|| Node::Directory(BTreeMap::new()));
            let Node::Directory(entries) = next else { return false };
            at = entries;
        }
        let again =
            matches!(node, Node::Directory(_)) && matches!(at.get(name), Some(Node::Directory(_)));
        if !again {
            at.insert(name.clone(), node);
        }
        true
    }

    /// Finds the file that a hard link names.
    fn same(&self, target: &Path) -> Option<Rc<[u8]>> {
        let parts = parts(target.to_str()?.as_bytes()).ok()?;
        let (name, above) = parts.split_last()?;
        let mut at = &self.top;
        for part in above {
            let Some(Node::Directory(entries)) = at.get(part) else { return None };
            at = entries;
        }
        match at.get(name) {
            Some(Node::File(bytes)) => Some(Rc::clone(bytes)),
            _ => None,
        }
    }

    fn ignore(&mut self, kind: FindingKind, path: &str, message: &str) {
        if self.ignored.len() as u64 >= NAMED {
            self.uncounted += 1;
            return;
        }
        let (path, message) = (path.to_owned(), message.to_owned());
        self.ignored.push(Ignored { kind, path, message });
    }

    fn problem(&self, error: &io::Error) -> ArchiveProblem {
        let reason = error.to_string();
        if error.kind() == io::ErrorKind::UnexpectedEof || reason.contains("EOF") {
            ArchiveProblem::Truncated
        } else if self.entries == 0 && !["deflate", "gzip"].iter().any(|word| reason.contains(word))
        {
            ArchiveProblem::NoArchive { looks_like: Some("a file without a tar archive in it") }
        } else {
            ArchiveProblem::Damaged { reason }
        }
    }

    fn end(mut self) -> Archive {
        if self.uncounted > 0 {
            let message = format!("{} more entries that are ignored", self.uncounted);
            let kind = FindingKind::Damaged;
            self.ignored.push(Ignored { kind, path: "archive".to_owned(), message });
        }
        Archive { top: Node::Directory(self.top), ignored: self.ignored }
    }
}

fn target<R: Read>(entry: &tar::Entry<'_, R>) -> Option<PathBuf> {
    let bytes = entry.link_name_bytes()?;
    let text = str::from_utf8(&bytes).ok()?;
    (!text.is_empty() && text.len() <= NAME_MOST).then(|| PathBuf::from(text))
}

/// Splits a name into the directories from the top on, or says why it is none of this tree.
fn parts(name: &[u8]) -> Result<Vec<String>, (FindingKind, &'static str)> {
    let damaged = |message| Err((FindingKind::Damaged, message));
    let Ok(name) = str::from_utf8(name) else { return damaged("not UTF-8; ignored") };
    if name.len() > NAME_MOST {
        return damaged("longer than a path can be; ignored");
    }
    if name.starts_with('/') {
        return Err((FindingKind::Escapes, "an absolute path; ignored"));
    }
    let parts: Vec<String> = name
        .split('/')
        .filter(|part| !part.is_empty() && *part != ".")
        .map(str::to_owned)
        .collect();
    if parts.iter().any(|part| part == "..") {
        return Err((FindingKind::Escapes, "leads out of the archive; ignored"));
    }
    if parts.len() > DEPTH_MOST {
        return damaged("deeper than any tree; ignored");
    }
    Ok(parts)
}
