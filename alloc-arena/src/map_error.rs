//! Why memory could not be had as asked.

use core::error::Error;
use core::fmt;

/// Why memory could not be had as asked; the text says what to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum MapError {
    /// This backing, operating system or build cannot do it.
    Unsupported,
    /// The kernel, or a filter before it, forbids the call.
    PermissionDenied {
        /// Name of the call.
        syscall: &'static str,
    },
    /// The machine has no such node.
    NodeAbsent(u32),
    /// The node is not among the memory nodes of this process (cpuset).
    NodeNotAllowed(u32),
    /// The node has CPUs but no memory.
    NodeWithoutMemory(u32),
    /// The kernel accepted the policy and reads another one back.
    PolicyNotKept(u32),
    /// The kernel accepted that pages lie on all nodes in turn and reads another policy back.
    InterleaveNotKept,
    /// Pages do not lie on all nodes in turn although the policy was accepted.
    NotEven {
        /// Pages on the node that has most.
        most: u64,
        /// Pages on the node that has fewest.
        least: u64,
    },
    /// Pages are not on the node although the policy was accepted.
    NotOnNode {
        /// The node.
        node: u32,
        /// Pages elsewhere or nowhere.
        pages: u64,
    },
    /// The kernel has too few free huge pages.
    NoHugePages {
        /// Bytes of huge pages that are lacking.
        bytes: usize,
    },
    /// The limit on locked memory is too low.
    MemlockLimit {
        /// `RLIMIT_MEMLOCK` in bytes.
        limit_bytes: u64,
        /// Bytes to be locked.
        wanted_bytes: u64,
    },
    /// The process has as many mappings as the kernel allows.
    VmaLimit,
    /// There is not so much memory or address space.
    OutOfMemory,
    /// The size, rounded up, does not fit the address space.
    LayoutOverflow,
    /// The size is larger than the type of the backing can be.
    TooLarge {
        /// The largest size in bytes.
        most_bytes: usize,
    },
    /// The size is zero.
    Zero,
    /// Another error of the operating system.
    Os {
        /// Name of the call.
        syscall: &'static str,
        /// `errno`.
        errno: i32,
    },
}

impl fmt::Display for MapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Unsupported => f.write_str(
                "not supported by this backing or build; use a kernel backing (feature memmap2, \
                 on Linux), or Mode::Advisory",
            ),
            Self::PermissionDenied { syscall } => write!(
                f,
                "{syscall} is forbidden; give the process or container CAP_SYS_NICE or a seccomp \
                 profile that allows it, or use Mode::Advisory"
            ),
            Self::NodeAbsent(node) => write!(
                f,
                "node {node} does not exist; /sys/devices/system/node/online lists those that do"
            ),
            Self::NodeNotAllowed(node) => write!(
                f,
                "node {node} is outside this process's cpuset; see Mems_allowed_list in \
                 /proc/self/status and widen cpuset.mems"
            ),
            Self::NodeWithoutMemory(node) => write!(
                f,
                "node {node} has no memory; /sys/devices/system/node/has_memory lists those that do"
            ),
            Self::PolicyNotKept(node) => write!(
                f,
                "the kernel took the policy for node {node} but shows another; look for a cpuset \
                 change or a sandbox that answers for the kernel"
            ),
            Self::InterleaveNotKept => f.write_str(
                "the kernel took the policy for all nodes in turn but shows another; look for a \
                 cpuset change or a sandbox that answers for the kernel",
            ),
            Self::NotEven { most, least } => write!(
                f,
                "one node has {most} pages, another {least}; free memory there, or use \
                 Mode::Advisory"
            ),
            Self::NotOnNode { node, pages } => write!(
                f,
                "{pages} pages are not on node {node}; free memory there, or use Mode::Advisory"
            ),
            Self::NoHugePages { bytes } => write!(
                f,
                "{bytes} bytes of huge pages are lacking; raise vm.nr_hugepages or set \
                 /sys/kernel/mm/transparent_hugepage/enabled to madvise, or use Mode::Advisory"
            ),
            Self::MemlockLimit { limit_bytes, wanted_bytes } => write!(
                f,
                "cannot lock {wanted_bytes} bytes under a limit of {limit_bytes}; raise ulimit -l \
                 (LimitMEMLOCK) or do not ask for locked pages"
            ),
            Self::VmaLimit => f.write_str(
                "the process has too many mappings; raise vm.max_map_count or make fewer arenas",
            ),
            Self::OutOfMemory => f.write_str(
                "not enough memory or address space; make a smaller arena or raise ulimit -v or \
                 the memory limit",
            ),
            Self::LayoutOverflow => {
                f.write_str("the size does not fit the address space; ask for less")
            }
            Self::TooLarge { most_bytes } => {
                write!(f, "this backing holds at most {most_bytes} bytes; ask for less")
            }
            Self::Zero => f.write_str("the size is zero; ask for at least one byte"),
            Self::Os { syscall, errno } => {
                write!(f, "{syscall} failed with errno {errno}; see its manual page")
            }
        }
    }
}

impl Error for MapError {}
