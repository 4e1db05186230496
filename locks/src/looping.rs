//! The relax policy that does nothing.

use crate::relax::Relax;

/// Looks again at once, without a hint.
#[derive(Debug, Clone, Copy, Default)]
pub struct Loop;

impl Relax for Loop {
    #[inline(always)]
    fn new() -> Self {
        Self
    }

    #[inline(always)]
    fn relax(&mut self) {}
}
