//! Memory through which a closure and its results pass between the program and its guests: at a
//! fixed address, so that nothing that a guest touches there depends on the program's own memory.

use std::io;

use crate::fixed;

/// Where it lies.
const BASE: usize = 0x03f0_0000_0000;

/// Where it ends at the latest.
const END: usize = BASE + (1 << 36);

/// Whether an address lies there.
pub(crate) fn contains(address: u64) -> bool {
    (BASE as u64..END as u64).contains(&address)
}

/// Results lie apart from each other, so that threads do not share their lines.
const APART: usize = 128;

/// A closure and a place for each thread's result.
#[derive(Debug)]
pub(crate) struct Exchange<F, R> {
    bytes: usize,
    closure: *mut F,
    results: *mut R,
    stride: usize,
    threads: usize,
}

impl<F, R> Exchange<F, R> {
    /// Puts a closure there, and an empty result for each thread.
    ///
    /// # Errors
    /// When the memory cannot be had.
    pub(crate) fn new(closure: F, threads: usize, empty: impl Fn() -> R) -> io::Result<Self> {
        let align = align_of::<F>().max(align_of::<R>()).max(APART);
        let first = size_of::<F>().next_multiple_of(align);
        let stride = size_of::<R>().max(1).next_multiple_of(align);
        let bytes = (first + stride * threads).next_multiple_of(4096);
        if align > 4096 {
            return Err(io::Error::other("a result or closure with an alignment above 4096"));
        }
        let mapped = fixed::map(BASE, bytes)?;
        let this = Self {
            bytes,
            closure: mapped.cast(),
            results: mapped.wrapping_byte_add(first).cast(),
            stride,
            threads,
        };
        // SAFETY: the mapping begins with room for it, aligned to a page.
        unsafe { this.closure.write(closure) };
        for thread in 0..threads {
            // SAFETY: there is room for each, aligned as it wants.
            unsafe { this.place(thread).write(empty()) };
        }
        Ok(this)
    }

    /// Gives the closure's place.
    pub(crate) fn closure(&self) -> *const F {
        self.closure
    }

    /// Gives the closure, before any thread has it.
    pub(crate) fn closure_mut(&mut self) -> &mut F {
        // SAFETY: written by `new`; nobody else refers to it.
        unsafe { &mut *self.closure }
    }

    /// Gives the place of the first result, and the distance from one to the next.
    pub(crate) fn results(&self) -> (*mut R, usize) {
        (self.results, self.stride)
    }

    fn place(&self, thread: usize) -> *mut R {
        self.results.wrapping_byte_add(thread * self.stride)
    }

    /// Takes the results out.
    pub(crate) fn take(self) -> Vec<R> {
        // SAFETY: written by `new`, and every thread has ended that could write to it.
        let take = |thread| unsafe { self.place(thread).read() };
        let results = (0..self.threads).map(take).collect();
        // SAFETY: written by `new`, and every thread has ended that could use it.
        unsafe { self.closure.drop_in_place() };
        // SAFETY: mapped by `new` with this size; nothing refers to it any more.
        unsafe { libc::munmap(self.closure.cast(), self.bytes) };
        results
    }

    /// Gives the memory back while threads are in the middle of the closure: they never go on. What
    /// the closure owns is not dropped, as they may have borrowed it.
    pub(crate) fn abandon(self) {
        // SAFETY: mapped by `new` with this size; the threads that refer to it are stopped.
        unsafe { libc::munmap(self.closure.cast(), self.bytes) };
    }
}
