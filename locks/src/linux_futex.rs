//! The Linux futex as a [`Parker`].

use super::parker::Parker;
use super::sync::atomic::AtomicU32;

/// Sleeps in `FUTEX_WAIT`, wakes with `FUTEX_WAKE`, both private to the process.
#[derive(Debug, Clone, Copy, Default)]
pub struct LinuxFutex;

// SAFETY: the kernel compares the word and queues the sleeper under one lock, which `FUTEX_WAKE`
// takes too; the wake uses the address only as a key. Every return of the wait (woken, `EAGAIN`,
// `EINTR`) is a spurious return to the caller, as the trait allows.
unsafe impl Parker for LinuxFutex {
    fn park(word: &AtomicU32, expected: u32) {
        // SAFETY: `word` is a live, aligned 32-bit word; a null timeout means no timeout.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                word.as_ptr(),
                libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
                expected,
                core::ptr::null::<libc::timespec>(),
            )
        };
    }

    #[cold]
    fn unpark_one(word: *const AtomicU32) {
        wake(word, 1);
    }

    #[cold]
    fn unpark_all(word: *const AtomicU32) {
        wake(word, i32::MAX);
    }
}

fn wake(word: *const AtomicU32, at_most: i32) {
    // SAFETY: a wake only looks the address up among the sleepers and never reads it; an
    // address that is no longer mapped wakes nobody.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.addr(),
            libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
            at_most,
        )
    };
}
