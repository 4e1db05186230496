//! Whether this host can execute what is simulated.

use crate::enter;
use crate::error::Error;

/// What the engine uses of this host.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Host {
    /// Components of vector state.
    pub(crate) vector_mask: u64,
}

impl Host {
    /// What an engine would use is not asked for: there is none.
    pub(crate) fn unchecked() -> Self {
        Self { vector_mask: 0 }
    }

    /// Looks what the processor and the kernel allow.
    ///
    /// # Errors
    /// What is lacking.
    pub(crate) fn check() -> Result<Self, Error> {
        // Asked of the processor, not of the standard library: that remembers, and simulated code
        // shall find out for itself.
        const XSAVE_IN_USE: u32 = 1 << 27;
        const AVX: u32 = 1 << 28;
        if core::arch::x86_64::__cpuid(1).ecx & (XSAVE_IN_USE | AVX) != XSAVE_IN_USE | AVX {
            return Err(Error::Processor("AVX and XSAVE"));
        }
        if !enter::may_set_bases() {
            return Err(Error::Processor("FSGSBASE (Linux 5.9 and a processor of 2013)"));
        }
        Ok(Self { vector_mask: enter::vector_mask() })
    }
}
