//! What makes a topology unreadable.

use std::fmt;
use std::io;
use std::path::PathBuf;

use crate::archive::ArchiveProblem;

/// Says why no topology could be established, and what to do.
///
/// Everything less is a [`Finding`](crate::Finding) of the topology that could be read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TopologyError {
    /// The root directory cannot be opened.
    Root {
        /// The root that was asked for.
        root: PathBuf,
        /// The error number of the system call.
        errno: i32,
    },
    /// The archive cannot be read.
    Archive {
        /// The archive that was asked for.
        archive: PathBuf,
        /// What is wrong with it.
        problem: ArchiveProblem,
    },
    /// The root is neither a directory nor a file that could be an archive.
    RootNotADirectory {
        /// The root that was asked for.
        root: PathBuf,
    },
    /// The root holds neither `sys/devices/system/cpu` nor `proc/cpuinfo`.
    RootEmpty {
        /// The root that was asked for.
        root: PathBuf,
    },
    /// No source of the online CPUs could be read: without them there is no topology.
    NoOnlineCpus {
        /// The root that was read.
        root: PathBuf,
        /// Each source that was tried, with what is wrong with it.
        tried: Vec<String>,
    },
    /// `sched_getaffinity` failed.
    Affinity {
        /// The error number of the system call.
        errno: i32,
    },
}

impl TopologyError {
    /// Gives the error number of the system call that failed, where one did.
    #[must_use]
    pub fn errno(&self) -> Option<i32> {
        match self {
            TopologyError::Root { errno, .. } | TopologyError::Affinity { errno } => Some(*errno),
            _ => None,
        }
    }
}

impl fmt::Display for TopologyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TopologyError::Root { root, errno } => write!(
                f,
                "cannot open the root {}: {}; give the directory that holds sys/ and proc/",
                root.display(),
                describe(*errno)
            ),
            TopologyError::Archive { archive, problem } => {
                write!(f, "cannot read {}: {problem}", archive.display())
            }
            TopologyError::RootNotADirectory { root } => write!(
                f,
                "the root {} is neither a directory nor an archive; give the directory that holds \
                 sys/ and proc/, or a .tar.gz of it",
                root.display()
            ),
            TopologyError::RootEmpty { root } => write!(
                f,
                "the root {} holds neither sys/devices/system/cpu nor proc/cpuinfo; give the \
                 directory above sys/ and proc/, and on a live machine mount both",
                root.display()
            ),
            TopologyError::NoOnlineCpus { root, tried } => write!(
                f,
                "no online CPU can be established under {}: {}; repair \
                 sys/devices/system/cpu/online or save the tree again",
                root.display(),
                tried.join("; ")
            ),
            TopologyError::Affinity { errno } => write!(
                f,
                "sched_getaffinity failed: {}; a seccomp filter may forbid it: allow it, or read \
                 a saved tree instead of this host",
                describe(*errno)
            ),
        }
    }
}

impl std::error::Error for TopologyError {}

/// Names an error number as the C library does.
pub(crate) fn describe(errno: i32) -> io::Error {
    io::Error::from_raw_os_error(errno)
}
