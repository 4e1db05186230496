//! Split once: a queue in a `static` whose two sides are given out to whoever comes first.

use core::fmt;

use super::contract::Queue;
use super::sync::atomic::{AtomicBool, Ordering};
use super::sync::cell::UnsafeCell;
use super::sync::const_fn;

/// Holds a queue for single sides in a `static`, and gives its sides out once.
///
/// `split` of a queue borrows it exclusively, which a `static` cannot be; here a flag proves that
/// there is one pair of endpoints. All slots are usable: `Inline<8>` takes 8 elements.
///
/// ```
/// use queues::{Inline, SplitOnce, SpscRingCached};
/// static EVENTS: SplitOnce<SpscRingCached<u64, Inline<8>>> =
///     SplitOnce::new(SpscRingCached::new());
/// let (mut producer, mut consumer) = EVENTS.split().expect("nobody was here before");
/// assert!(EVENTS.split().is_none());
/// let other = std::thread::spawn(move || producer.try_push(7));
/// other.join().unwrap().unwrap();
/// assert_eq!(consumer.try_pop(), Some(7));
/// ```
pub struct SplitOnce<Q> {
    queue: UnsafeCell<Q>,
    given_out: AtomicBool,
}

// SAFETY: through `&self` one caller gets endpoints of the queue, whichever thread it is in, and
// nobody else reaches it.
unsafe impl<Q: Send + Sync> Sync for SplitOnce<Q> {}

impl<Q> SplitOnce<Q> {
    const_fn! {
        /// Holds `queue`, whose sides are still to be given out.
        pub fn new(queue: Q) -> Self {
            Self { queue: UnsafeCell::new(queue), given_out: AtomicBool::new(false) }
        }
    }

    /// Gives out both sides, to the first caller only.
    pub fn split<T: Send>(&'static self) -> Option<(Q::Producer<'static>, Q::Consumer<'static>)>
    where
        Q: Queue<T>,
    {
        // ORDERING: Relaxed - atomicity decides who is first; the queue was made before it was
        // shared.
        if self.given_out.swap(true, Ordering::Relaxed) {
            return None;
        }
        // SAFETY: the flag was false, so this is the first call and the last that comes here; the
        // queue is borrowed by nobody else, now or ever.
        self.queue.with_mut(|queue| Some(unsafe { &mut *queue }.split()))
    }
}

impl<Q> fmt::Debug for SplitOnce<Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SplitOnce").finish_non_exhaustive()
    }
}
