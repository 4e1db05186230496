//! Wait policies: what a thread does until a queue lets it go on.
//!
//! The queues themselves never wait for room or for an element; [`Blocking`](crate::Blocking) does,
//! by a policy that is a type parameter.

use crate::sync::spin_loop;

/// A place where threads wait for something that others announce.
pub trait Wait: Send + Sync {
    /// Makes a place where nobody waits.
    fn new() -> Self;

    /// Calls `attempt` until it succeeds; between two calls the thread waits as the policy says.
    fn until<R>(&self, attempt: impl FnMut() -> Option<R>) -> R;

    /// Announces that an attempt may succeed now. Is called after the change that makes it so.
    fn notify(&self);
}

/// Never leaves the CPU: for threads that have one each.
#[derive(Debug, Clone, Copy, Default)]
pub struct SpinWait;

impl Wait for SpinWait {
    fn new() -> Self {
        Self
    }

    #[inline]
    fn until<R>(&self, mut attempt: impl FnMut() -> Option<R>) -> R {
        loop {
            if let Some(result) = attempt() {
                return result;
            }
            spin_loop();
        }
    }

    #[inline(always)]
    fn notify(&self) {}
}
