//! Sequence lock: readers copy words without writing anything, and copy again if a writer came.
//! # Algorithm
//! A writer takes the lock `L` of the writers, makes `sequence` odd, stores the words, and makes it
//! even. A reader waits for an even `sequence`, loads the words one by one, and is done if
//! `sequence` is what it was; otherwise it begins anew.
//! # Why
//! Against reader-writer locks it removes the readers' writes: any number of readers share the
//! lines as copies. It adds reads in vain, and takes words only: nothing with pointers to free.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `SeqLock` | `L`, 8, and 8 a word | 8 | as they fall | writers |
//! # Cost
//! Read: 2 loads and 1 a word, 2 fences that are free on x86-64. Write: that of `L`, 2 stores and 1
//! a word.
//! # Progress
//! Readers are lock-free only while writers pause: a stopped writer stops readers, and busy writers
//! starve them. Writers never wait for readers.
//! # Invariants
//! - I1: `sequence` and the words are written by the holder of `L` only.
//! - I2: `sequence` is odd while the words change.
//! # Synchronization
//! | edge | release side | acquire side | publishes |
//! |---|---|---|---|
//! | E1 | store of the even `sequence` | a reader's first load | the words |
//! | E2 | fence before the words are stored | a reader's fence after it has loaded them | the odd `sequence`: a reader that saw a new word sees it |
//! # Errors and limits
//! `sequence` wraps: a reader that sleeps over exactly 2⁶³ writes (2³¹ on 32-bit targets) is fooled.
//! # References
//! H.-J. Boehm, "Can Seqlocks Get Along with Programming Language Memory Models?", MSPC 2012,
//! section 4 (relaxed atomic words, fences).

use super::array::array_of;
use super::contract::{ConstInit, RawLock};
use super::relax::{Relax, Spin};
use super::sync::atomic::{AtomicUsize, Ordering, fence};
use super::sync::const_fn;

/// `WORDS` words that are read together, and written together under the lock `L`.
///
/// ```
/// use locks::{SeqLock, TicketLock};
/// static POSITION: SeqLock<TicketLock, 2> = SeqLock::new([3, 4]);
/// POSITION.update(|[x, y]| [x + 1, y + 1]);
/// assert_eq!(POSITION.read(), [4, 5]);
/// ```
#[derive(Debug)]
pub struct SeqLock<L, const WORDS: usize, R = Spin> {
    sequence: AtomicUsize,
    words: [AtomicUsize; WORDS],
    writers: L,
    relax: core::marker::PhantomData<fn() -> R>,
}

impl<L: ConstInit, const WORDS: usize, R> SeqLock<L, WORDS, R> {
    const_fn! {
        /// Wraps the words.
        pub fn new(words: [usize; WORDS]) -> Self {
            Self::with_lock(L::INIT, words)
        }
    }
}

impl<L, const WORDS: usize, R> SeqLock<L, WORDS, R> {
    const_fn! {
        /// Wraps the words; `writers` is made by the caller, and nobody holds it.
        pub fn with_lock(writers: L, words: [usize; WORDS]) -> Self {
            let mut cells = array_of![AtomicUsize::new(0); WORDS];
            let mut nth = 0;
            while nth < WORDS {
                cells[nth] = AtomicUsize::new(words[nth]);
                nth += 1;
            }
            Self {
                sequence: AtomicUsize::new(0),
                words: cells,
                writers,
                relax: core::marker::PhantomData,
            }
        }
    }
}

impl<L: RawLock, const WORDS: usize, R: Relax> SeqLock<L, WORDS, R> {
    /// Copies the words, as one writer left them.
    #[inline]
    pub fn read(&self) -> [usize; WORDS] {
        let mut relax = R::new();
        loop {
            if let Some(words) = self.try_read() {
                return words;
            }
            relax.relax();
        }
    }

    /// Copies the words, unless a writer was there meanwhile.
    #[inline]
    pub fn try_read(&self) -> Option<[usize; WORDS]> {
        // ORDERING: Acquire, E1 - the words are no older than the sequence.
        let before = self.sequence.load(Ordering::Acquire);
        if before % 2 == 1 {
            return None;
        }
        let words = self.copy();
        // ORDERING: Acquire, E2 - if a word was newer than the sequence, the load below sees that
        // writer's odd one.
        fence(Ordering::Acquire);
        // ORDERING: Relaxed - the fence orders it.
        (self.sequence.load(Ordering::Relaxed) == before).then_some(words)
    }

    /// Changes the words to what `f` makes of them.
    ///
    /// If `f` panics nothing has changed.
    pub fn update(&self, f: impl FnOnce([usize; WORDS]) -> [usize; WORDS]) {
        struct Unlock<'a, L: RawLock>(&'a L, &'a L::Slot);
        impl<L: RawLock> Drop for Unlock<'_, L> {
            fn drop(&mut self) {
                // SAFETY: made below, right after the lock was taken with this slot.
                unsafe { self.0.unlock(self.1) };
            }
        }
        let slot = L::Slot::default();
        // SAFETY: the slot is a local that is neither moved nor passed on; the `Unlock` below is
        // dropped before it, whichever way this function is left.
        unsafe { self.writers.lock(&slot) };
        let _unlock = Unlock(&self.writers, &slot);
        let words = f(self.copy());
        // ORDERING: Relaxed - by I1 ours alone.
        let sequence = self.sequence.load(Ordering::Relaxed);
        // ORDERING: Relaxed - the fence orders it.
        self.sequence.store(sequence.wrapping_add(1), Ordering::Relaxed);
        // ORDERING: Release, E2 - whoever sees one of our words sees the odd sequence.
        fence(Ordering::Release);
        for (cell, word) in self.words.iter().zip(words) {
            // ORDERING: Relaxed - the fence before and the store below order it.
            cell.store(word, Ordering::Relaxed);
        }
        // ORDERING: Release, E1 - whoever sees the even sequence sees our words.
        self.sequence.store(sequence.wrapping_add(2), Ordering::Release);
    }

    fn copy(&self) -> [usize; WORDS] {
        // ORDERING: Relaxed - ordered by what is around the call, or by the writers' lock.
        core::array::from_fn(|nth| self.words[nth].load(Ordering::Relaxed))
    }
}
