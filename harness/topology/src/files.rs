//! Where the files of a tree come from: directories on disk, or an archive in memory.

use std::fs::{self, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use crate::archive::{Archive, Node};

/// What lies at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Directory,
    File,
    Link,
    Other,
}

/// The files of a tree. Paths are real ones: the tree has followed their links.
pub(crate) enum Files {
    Disk,
    Archive(Archive),
}

impl Files {
    /// Says what lies at a path; a link is a link.
    pub(crate) fn kind(&self, path: &Path) -> io::Result<Kind> {
        match self {
            Files::Disk => fs::symlink_metadata(path).map(|meta| kind(meta.file_type())),
            Files::Archive(archive) => archive.at(path).map(Node::kind),
        }
    }

    /// Says whether a directory lies at a path. On disk, links are followed: a live machine's
    /// lead where they please.
    pub(crate) fn is_dir(&self, path: &Path) -> bool {
        match self {
            Files::Disk => fs::metadata(path).is_ok_and(|meta| meta.is_dir()),
            Files::Archive(archive) => {
                archive.at(path).is_ok_and(|node| node.kind() == Kind::Directory)
            }
        }
    }

    /// Gives where a link leads.
    pub(crate) fn target(&self, path: &Path) -> io::Result<PathBuf> {
        match self {
            Files::Disk => fs::read_link(path),
            Files::Archive(archive) => match archive.at(path)? {
                Node::Link(target) => Ok(target.clone()),
                _ => Err(io::ErrorKind::InvalidInput.into()),
            },
        }
    }

    /// Lists the names in a directory.
    pub(crate) fn names(&self, path: &Path) -> io::Result<Vec<String>> {
        match self {
            Files::Disk => {
                let entries = fs::read_dir(path)?;
                let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
                Ok(names.collect())
            }
            Files::Archive(archive) => match archive.at(path)? {
                Node::Directory(entries) => Ok(entries.keys().cloned().collect()),
                _ => Err(io::ErrorKind::NotADirectory.into()),
            },
        }
    }

    /// Reads at most one byte more than `most`, and only of a regular file: opening a FIFO would
    /// wait for its writer, and opening a device may do anything. `follow` says whether a link on
    /// disk is followed in the end.
    pub(crate) fn bytes(&self, path: &Path, most: u64, follow: bool) -> io::Result<Vec<u8>> {
        match self {
            Files::Disk => from_disk(path, most, follow),
            Files::Archive(archive) => match archive.at(path)? {
                Node::File(bytes) => {
                    let most = usize::try_from(most + 1).unwrap_or(usize::MAX);
                    Ok(bytes[..bytes.len().min(most)].to_vec())
                }
                Node::Directory(_) => Err(io::Error::from_raw_os_error(libc::EISDIR)),
                _ => Err(io::Error::other("not a regular file")),
            },
        }
    }
}

fn kind(kind: fs::FileType) -> Kind {
    if kind.is_symlink() {
        Kind::Link
    } else if kind.is_dir() {
        Kind::Directory
    } else if kind.is_file() {
        Kind::File
    } else {
        Kind::Other
    }
}

fn from_disk(path: &Path, most: u64, follow: bool) -> io::Result<Vec<u8>> {
    match kind(fs::metadata(path)?.file_type()) {
        Kind::File => {}
        Kind::Directory => return Err(io::Error::from_raw_os_error(libc::EISDIR)),
        _ => return Err(io::Error::other("not a regular file")),
    }
    let stay = if follow { 0 } else { libc::O_NOFOLLOW };
    let flags = libc::O_NONBLOCK | libc::O_CLOEXEC | stay;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}
