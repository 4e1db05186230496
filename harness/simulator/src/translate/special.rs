//! Instructions and functions that the engine interprets.

use crate::forbidden::Forbidden;

/// An instruction that the engine interprets. Its `resume` is the address of the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Special {
    /// A system call.
    Syscall,
    /// `cpuid`.
    Cpuid,
    /// `rdtsc`, or `rdtscp` if the flag is set.
    Rdtsc {
        /// Whether the core's number is wanted too.
        core: bool,
    },
    /// `rdpid` into this register.
    Rdpid(u8),
    /// `rdrand` or `rdseed` into this register of this many bytes.
    Random {
        /// The register's number.
        register: u8,
        /// Its size.
        bytes: u8,
    },
    /// `umwait` or `tpause`: waits for the time-stamp in `edx:eax`.
    TimedWait,
    /// `monitorx`, `mwaitx`, `umonitor`: answered as if the wait were over at once.
    Monitor,
    /// `xbegin`: aborts, to this address.
    Xbegin(u64),
    /// `xtest`: no transaction.
    Xtest,
    /// The thread's first function has returned.
    End,
    /// Entry of a function that must not be called.
    Forbidden(Forbidden),
    /// Entry of a function of the kernel's that user code calls without a system call.
    Vdso(Vdso),
    /// `int3`.
    Breakpoint,
    /// An instruction that no processor executes.
    Illegal,
    /// Nothing is there that may be executed.
    Unmapped,
    /// An instruction that cannot be simulated.
    Unsupported,
}

/// A function of the vDSO, by the kernel's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Vdso {
    ClockGettime,
    ClockGetres,
    Gettimeofday,
    Time,
    Getcpu,
    Getrandom,
}
