//! Why a run stopped before its threads ended: as the engine knows it, without names and lines.

use crate::forbidden::Forbidden;
use crate::translate::Special;

/// What stopped the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Halt {
    /// Somebody asked for it.
    Interrupted,
    /// Simulated time is used up.
    Budget,
    /// No thread can go on.
    Stuck,
    /// Generated code does not fit.
    TooMuchCode,
    /// The processor refused an instruction of a thread's.
    Fault {
        /// The core.
        core: usize,
        /// The instruction.
        rip: u64,
        /// The signal.
        signal: i32,
        /// The address that the signal names; none for a general protection fault.
        address: Option<u64>,
    },
    /// An instruction that ends the run.
    Instruction {
        /// The core.
        core: usize,
        /// The instruction.
        rip: u64,
        /// What it is.
        special: Special,
    },
    /// A thread called what it may not.
    Forbidden {
        /// The core.
        core: usize,
        /// The function's address.
        rip: u64,
        /// What it is.
        function: Forbidden,
    },
    /// A thread ended itself without returning.
    ThreadExit {
        /// The core.
        core: usize,
    },
    /// The simulated kernel does not do what a thread asked for.
    Refused {
        /// The core.
        core: usize,
        /// What it says.
        reason: String,
    },
    /// A thread ended the process.
    Exit {
        /// The core.
        core: usize,
        /// The status.
        status: i32,
    },
}

/// Stops the run. The reason is boxed, so that results without one fit into registers.
pub(crate) fn stop<T>(halt: Halt) -> Result<T, Box<Halt>> {
    Err(Box::new(halt))
}

impl Halt {
    /// Gives the core whose thread stopped the run, if one did.
    pub(crate) fn core(&self) -> Option<usize> {
        match self {
            Self::Fault { core, .. }
            | Self::Instruction { core, .. }
            | Self::Forbidden { core, .. }
            | Self::ThreadExit { core }
            | Self::Refused { core, .. }
            | Self::Exit { core, .. } => Some(*core),
            Self::Interrupted | Self::Budget | Self::Stuck | Self::TooMuchCode => None,
        }
    }
}
