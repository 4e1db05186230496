//! Functions that a simulated closure may not call: stopped at their first instruction, before
//! they take locks that this process needs to go on.

/// A function that ends the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Forbidden {
    /// Ends the process with the status in the first argument.
    Exit,
    /// Ends the process by a signal.
    Abort,
    /// Starts a thread.
    Thread,
    /// Ends the thread.
    ThreadExit,
    /// Starts a process.
    Process,
    /// Becomes another program.
    Program,
}

/// Gives the addresses of these functions.
pub(crate) fn functions() -> Vec<(u64, Forbidden)> {
    let address = |function: *const ()| function.addr() as u64;
    vec![
        (address(std::process::exit as *const ()), Forbidden::Exit),
        (address(std::process::abort as *const ()), Forbidden::Abort),
        (address(libc::exit as *const ()), Forbidden::Exit),
        (address(libc::_exit as *const ()), Forbidden::Exit),
        (address(libc::abort as *const ()), Forbidden::Abort),
        (address(libc::pthread_create as *const ()), Forbidden::Thread),
        (address(libc::pthread_exit as *const ()), Forbidden::ThreadExit),
        (address(libc::fork as *const ()), Forbidden::Process),
        (address(libc::posix_spawn as *const ()), Forbidden::Process),
        (address(libc::posix_spawnp as *const ()), Forbidden::Process),
        (address(libc::execve as *const ()), Forbidden::Program),
        (address(libc::execvp as *const ()), Forbidden::Program),
    ]
}

impl Forbidden {
    /// Says what was called and what may be done instead.
    pub(crate) fn explanation(self) -> &'static str {
        match self {
            Self::Exit => "ended the process (exit)",
            Self::Abort => {
                "aborted the process (a second panic while one unwinds, a failed check, or abort)"
            }
            Self::Thread => {
                "started a thread, and a simulated closure may not: the number of threads is an \
                 argument of the run"
            }
            Self::ThreadExit => "ended itself without returning (pthread_exit)",
            Self::Process => "started a process, and a simulated closure may not",
            Self::Program => "asked for another program, and a simulated closure may not",
        }
    }
}
