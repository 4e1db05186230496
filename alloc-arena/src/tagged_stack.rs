//! Tagged stack: numbers that threads push and pop by a CAS of one word.
//!
//! `head` holds the number of the top in its low bits, and above it a tag of `TAG_BITS` bits that
//! grows with each pop, so that a CAS fails which was prepared before the top was popped and pushed
//! again (the ABA problem). What lies below a number is its link, which its pusher writes and a
//! popper may read too late: its CAS fails then.
//!
//! - I1: a number that was pushed and not popped since is in the stack once; pushing it is the
//!   right of the one who popped it.
//! - I2: links of numbers in the stack are what their pushers wrote.
//!
//! | edge | release side | acquire side | publishes |
//! |---|---|---|---|
//! | T1 | the CAS of `push` | the load or failed CAS of `head` in `pop` that found the number, through the CASes after it | the link, and what the pusher did with what the number names |

use super::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

/// The top, and tags.
#[derive(Debug)]
pub(crate) struct TaggedStack<const TAG_BITS: u32> {
    head: AtomicUsize,
}

impl<const TAG_BITS: u32> TaggedStack<TAG_BITS> {
    /// The bits of `head` that are a number.
    const MASK: usize = {
        assert!(TAG_BITS < usize::BITS, "some bits are left for a number");
        usize::MAX >> TAG_BITS
    };

    /// What a pop adds to the tag.
    const ONE: usize = !Self::MASK & Self::MASK.wrapping_add(1);

    /// The number that is none; those below it are numbers. Fits a link.
    pub(crate) const NONE: usize =
        if Self::MASK < u32::MAX as usize { Self::MASK } else { u32::MAX as usize };

    /// Makes a stack whose top is `top`, on links that are there.
    pub(crate) fn new(top: Option<u32>) -> Self {
        Self { head: AtomicUsize::new(top.map_or(Self::NONE, |top| top as usize)) }
    }

    /// Pops a number; `link(number)` is the number's link.
    #[inline]
    pub(crate) fn pop<'a>(&self, link: impl Fn(usize) -> &'a AtomicU32) -> Option<usize> {
        // ORDERING: Acquire, T1 - the top's link is what its pusher wrote.
        let mut head = self.head.load(Ordering::Acquire);
        loop {
            let top = head & Self::MASK;
            if top == Self::NONE {
                return None;
            }
            // ORDERING: Relaxed - with T1 behind us; a link that is newer belongs to a push after a
            // pop of the top, and then the CAS fails by the tag.
            let below = link(top).load(Ordering::Relaxed) as usize;
            let tag = (head & !Self::MASK).wrapping_add(Self::ONE);
            // ORDERING: Relaxed on success - the word is the one that was acquired; Acquire on
            // failure, T1 - as above.
            match self.head.compare_exchange_weak(
                head,
                tag | below,
                Ordering::Relaxed,
                Ordering::Acquire,
            ) {
                Ok(_) => return Some(top),
                Err(newer) => head = newer,
            }
        }
    }

    /// Pushes a number that the caller popped, or that was never in the stack.
    #[inline]
    pub(crate) fn push(&self, number: usize, link: &AtomicU32) {
        // ORDERING: Relaxed - the CAS decides.
        let mut head = self.head.load(Ordering::Relaxed);
        loop {
            // ORDERING: Relaxed - T1 publishes it.
            link.store((head & Self::MASK) as u32, Ordering::Relaxed);
            // ORDERING: Release on success, T1 - hands the link and what the number names to its
            // popper; Relaxed on failure - it looks again.
            match self.head.compare_exchange_weak(
                head,
                head & !Self::MASK | number,
                Ordering::Release,
                Ordering::Relaxed,
            ) {
                Ok(_) => return,
                Err(newer) => head = newer,
            }
        }
    }
}
