//! Why something cannot be simulated, or stopped before its end.

use core::fmt;
use std::io;

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
use crate::heap::HeapError;
use crate::line_report::ApartError;

/// Why a session cannot begin, or what stopped its run.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// No thread, or no core, was asked for.
    NoThreads,
    /// More cores than the machine has.
    TooManyCores {
        /// The number asked for.
        asked: usize,
        /// The machine.
        machine: String,
        /// The number that it has.
        available: usize,
    },
    /// A core that the machine does not have.
    NoSuchCore {
        /// The core.
        core: u32,
        /// The machine.
        machine: String,
        /// The number that it has.
        available: usize,
    },
    /// A core was named twice.
    CoreTwice(u32),
    /// Bytes cannot be put on lines of their own as asked.
    Apart(ApartError),
    /// This thread has a session already.
    SecondSession,
    /// The program does not declare [`EngineHeap`](crate::EngineHeap).
    NoEngineHeap,
    /// The addresses for the engine's heap cannot be had.
    NoAddressSpace,
    /// Executable memory is refused.
    NoExecutableMemory(io::Error),
    /// A thread cannot be created at its place.
    Thread(io::Error),
    /// The processor or the kernel lacks something.
    Processor(&'static str),
    /// The program was built for another processor or operating system.
    Architecture,
    /// The engine's thread ended by itself.
    Engine,
    /// The run stopped.
    Stopped(Stopped),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoThreads => f.write_str("no threads to simulate; ask for one at least"),
            Self::TooManyCores { asked, machine, available } => write!(
                f,
                "{asked} cores asked for, and {machine} has {available}; ask for fewer, take a \
                 larger machine or let threads share cores"
            ),
            Self::NoSuchCore { core, machine, available } => write!(
                f,
                "{machine} has no core {core}; its cores are 0 to {}",
                available.saturating_sub(1)
            ),
            Self::CoreTwice(core) => write!(f, "core {core} is named twice"),
            Self::Apart(error) => error.fmt(f),
            Self::SecondSession => f.write_str(
                "this thread has a session already, and a process has one at a time; drop it first",
            ),
            Self::NoEngineHeap => f.write_str(
                "the program does not declare the engine's heap, and an engine that shared one \
                 with its guests would wait for locks that they hold; add to the program:\n\
                 #[global_allocator]\nstatic HEAP: simulator::EngineHeap = simulator::EngineHeap;",
            ),
            Self::NoAddressSpace => f.write_str(
                "32 GiB of address space for the engine's heap cannot be reserved; raise the limit \
                 (ulimit -v unlimited)",
            ),
            Self::NoExecutableMemory(error) => write!(
                f,
                "executable memory is refused ({error}), and simulated code cannot run without; \
                 look for a seccomp filter or a policy against it (SELinux: execmem)"
            ),
            Self::Thread(error) => {
                write!(f, "cannot create a thread for a simulated core: {error}")
            }
            Self::Processor(lacking) => {
                write!(f, "this host cannot simulate: it lacks {lacking}")
            }
            Self::Architecture => f.write_str(
                "machine code is simulated on x86-64 Linux only, and this is another build; machine \
                 files can be read everywhere",
            ),
            Self::Engine => f.write_str("the engine's thread ended by itself"),
            Self::Stopped(stopped) => stopped.fmt(f),
        }
    }
}

impl std::error::Error for Error {}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
impl From<HeapError> for Error {
    fn from(error: HeapError) -> Self {
        match error {
            HeapError::NotDeclared => Self::NoEngineHeap,
            HeapError::NoAddressSpace => Self::NoAddressSpace,
        }
    }
}

impl From<Stopped> for Error {
    fn from(stopped: Stopped) -> Self {
        Self::Stopped(stopped)
    }
}

/// What stopped a run, and where every thread was.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Stopped {
    /// What happened.
    pub reason: Reason,
    /// In words, with source lines.
    pub message: String,
}

/// What stopped a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// A closure panicked.
    Panicked,
    /// No thread can ever go on: all that are left wait for each other.
    Blocked,
    /// The budget of simulated time is used up.
    Budget,
    /// The flag was set.
    Interrupted,
    /// An instruction faulted: a null pointer, a division by zero, a full stack, `ud2`.
    Fault,
    /// A thread asked the kernel for what is not simulated.
    Refused,
    /// A thread ended the process.
    Exit,
    /// The code does not fit into the engine's memory for it.
    TooMuchCode,
    /// There is no memory for the closure and its results.
    Memory,
    /// A run of this session stopped before.
    Over,
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Stopped {}

impl Stopped {
    pub(crate) fn over() -> Self {
        Self {
            reason: Reason::Over,
            message: "a run of this session stopped before; start another session".into(),
        }
    }

    pub(crate) fn no_memory(error: &io::Error) -> Self {
        Self {
            reason: Reason::Memory,
            message: format!("no memory for the closure and its results: {error}"),
        }
    }

    pub(crate) fn panicked(thread: usize, message: &str) -> Self {
        Self { reason: Reason::Panicked, message: format!("thread {thread} panicked: {message}") }
    }
}
