//! The Linux futex as a [`Parker`].

use core::time::Duration;

use super::parker::{Parker, TimedParker};
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

// SAFETY: as for `Parker`; the kernel takes a sleeper whose time is over out of its queue before it
// returns `ETIMEDOUT`, and gives the wake-up to another.
unsafe impl TimedParker for LinuxFutex {
    type Instant = libc::timespec;

    fn after(patience: Duration) -> Option<libc::timespec> {
        const SECOND: u32 = 1_000_000_000;
        let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: writes to a local.
        let failed = unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) } != 0;
        let nanoseconds = u32::try_from(now.tv_nsec).ok()? + patience.subsec_nanos();
        let carry = if nanoseconds >= SECOND { 1 } else { 0 };
        let seconds = patience.as_secs().checked_add(carry)?.try_into().ok()?;
        let tv_sec = now.tv_sec.checked_add(seconds)?;
        let tv_nsec = (nanoseconds % SECOND) as libc::c_long;
        (!failed).then_some(libc::timespec { tv_sec, tv_nsec })
    }

    fn park_until(word: &AtomicU32, expected: u32, end: libc::timespec) -> bool {
        // SAFETY: `word` is a live, aligned 32-bit word, `end` a point of the monotonic clock; the
        // second word is not used by this operation.
        let slept = unsafe {
            libc::syscall(
                libc::SYS_futex,
                word.as_ptr(),
                libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG,
                expected,
                &raw const end,
                core::ptr::null::<u32>(),
                libc::FUTEX_BITSET_MATCH_ANY,
            )
        };
        if slept == 0 {
            return false;
        }
        // SAFETY: always gives the address of this thread's error number.
        let error = unsafe { libc::__errno_location() };
        // SAFETY: as the line above; nobody else uses it.
        unsafe { *error == libc::ETIMEDOUT }
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
