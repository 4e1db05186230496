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
    /// Looks what the processor and the kernel allow.
    ///
    /// # Errors
    /// What is lacking.
    pub(crate) fn check() -> Result<Self, Error> {
        if !std::arch::is_x86_feature_detected!("avx") {
            return Err(Error::Processor("AVX and XSAVE"));
        }
        if !enter::may_set_bases() {
            return Err(Error::Processor("FSGSBASE (Linux 5.9 and a processor of 2013)"));
        }
        Ok(Self { vector_mask: enter::vector_mask() })
    }
}
