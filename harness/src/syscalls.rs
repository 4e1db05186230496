//! Exact system-call counts of a thread, by syscall user dispatch (Linux 5.11, x86-64).
//!
//! While the window is armed, each system call of the thread raises SIGSYS instead of entering the
//! kernel; the handler counts it and makes it on the thread's behalf from a stretch of code that
//! is exempt. The count costs a signal a call, so it is taken in a pass of its own.

use crate::unavailable::Unavailable;

/// Runs `work` and counts the system calls that the calling thread makes in it.
///
/// # Errors
/// `no_syscall_dispatch` where the kernel or the architecture does not offer it.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub fn count_in<T>(work: impl FnOnce() -> T) -> Result<(T, u64), Unavailable> {
    imp::count_in(work)
}

/// Runs `work` and counts the system calls that the calling thread makes in it.
///
/// # Errors
/// Always: this build's architecture or system has no implementation.
#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
pub fn count_in<T>(_work: impl FnOnce() -> T) -> Result<(T, u64), Unavailable> {
    Err(Unavailable::because("no_syscall_dispatch", "implemented for x86-64 Linux"))
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod imp {
    use std::arch::global_asm;
    use std::cell::{Cell, UnsafeCell};
    use std::ffi::c_void;
    use std::io;
    use std::ptr;
    use std::sync::OnceLock;

    use crate::unavailable::Unavailable;

    const PR_SET_SYSCALL_USER_DISPATCH: i32 = 59;
    const DISPATCH_OFF: u64 = 0;
    const DISPATCH_ON: u64 = 1;
    const FILTER_ALLOW: u8 = 0;
    const FILTER_BLOCK: u8 = 1;
    const SA_RESTORER: u64 = 0x0400_0000;

    // The exempt stretch: the return from the handler, and one system call with the registers of
    // a C function call.
    global_asm!(
        ".pushsection .text.manycore_dispatch, \"ax\", @progbits",
        ".p2align 4",
        ".globl manycore_dispatch_begin",
        "manycore_dispatch_begin:",
        ".globl manycore_dispatch_return",
        "manycore_dispatch_return:",
        "mov eax, 15",
        "syscall",
        ".globl manycore_dispatch_call",
        "manycore_dispatch_call:",
        "mov rax, rdi",
        "mov rdi, rsi",
        "mov rsi, rdx",
        "mov rdx, rcx",
        "mov r10, r8",
        "mov r8, r9",
        "mov r9, [rsp + 8]",
        "syscall",
        "ret",
        ".globl manycore_dispatch_end",
        "manycore_dispatch_end:",
        ".popsection",
    );

    unsafe extern "C" {
        static manycore_dispatch_begin: u8;
        static manycore_dispatch_end: u8;
        fn manycore_dispatch_return();
        fn manycore_dispatch_call(
            number: i64,
            a: i64,
            b: i64,
            c: i64,
            d: i64,
            e: i64,
            f: i64,
        ) -> i64;
    }

    /// What the kernel's `rt_sigaction` takes; glibc would put its own return stub in, which is
    /// not exempt.
    #[repr(C)]
    struct KernelSigaction {
        handler: unsafe extern "C" fn(i32, *mut libc::siginfo_t, *mut c_void),
        flags: u64,
        restorer: unsafe extern "C" fn(),
        mask: u64,
    }

    thread_local! {
        /// Read by the kernel at each system call of the thread.
        static SELECTOR: UnsafeCell<u8> = const { UnsafeCell::new(FILTER_ALLOW) };
        static CALLS: Cell<u64> = const { Cell::new(0) };
    }

    fn set_selector(value: u8) {
        // SAFETY: the byte is this thread's; volatile, since the kernel reads it at system calls
        // that the compiler does not see.
        SELECTOR.with(|selector| unsafe { selector.get().write_volatile(value) });
    }

    /// Counts the call and makes it.
    unsafe extern "C" fn on_sigsys(_: i32, _: *mut libc::siginfo_t, context: *mut c_void) {
        CALLS.with(|calls| calls.set(calls.get() + 1));
        // SAFETY: the kernel passes the interrupted thread's context, which is ours until return.
        let registers = unsafe { &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs };
        let register = |index: i32| registers[index as usize];
        // SAFETY: the same call with the same arguments that the thread was about to make. The
        // stub is exempt from dispatch, so this one enters the kernel.
        let result = unsafe {
            manycore_dispatch_call(
                register(libc::REG_RAX),
                register(libc::REG_RDI),
                register(libc::REG_RSI),
                register(libc::REG_RDX),
                register(libc::REG_R10),
                register(libc::REG_R8),
                register(libc::REG_R9),
            )
        };
        registers[libc::REG_RAX as usize] = result;
    }

    fn install_handler() -> Result<(), i32> {
        static INSTALLED: OnceLock<Result<(), i32>> = OnceLock::new();
        *INSTALLED.get_or_init(|| {
            const SA_FLAGS: u64 = libc::SA_SIGINFO as u64 | SA_RESTORER;
            let action = KernelSigaction {
                handler: on_sigsys,
                flags: SA_FLAGS,
                restorer: manycore_dispatch_return,
                mask: 0,
            };
            // SAFETY: the structure is the kernel's for x86-64; handler and restorer live as long
            // as the program; the mask is 8 bytes long, as the last argument says.
            let refused = unsafe {
                libc::syscall(
                    libc::SYS_rt_sigaction,
                    libc::SIGSYS,
                    &raw const action,
                    ptr::null_mut::<c_void>(),
                    8_usize,
                )
            };
            match refused {
                0 => Ok(()),
                _ => Err(io::Error::last_os_error().raw_os_error().unwrap_or(0)),
            }
        })
    }

    fn dispatch(mode: u64) -> Result<(), Unavailable> {
        let begin = (&raw const manycore_dispatch_begin).addr() as u64;
        let end = (&raw const manycore_dispatch_end).addr() as u64;
        let selector = SELECTOR.with(|selector| selector.get().addr()) as u64;
        let (offset, length, selector) = match mode {
            DISPATCH_ON => (begin, end - begin, selector),
            _ => (0, 0, 0),
        };
        // SAFETY: the stretch is code of ours, the selector a live byte of this thread.
        let refused =
            unsafe { libc::prctl(PR_SET_SYSCALL_USER_DISPATCH, mode, offset, length, selector) };
        if refused == 0 {
            return Ok(());
        }
        Err(Unavailable::syscall(
            "no_syscall_dispatch",
            "prctl(PR_SET_SYSCALL_USER_DISPATCH), Linux 5.11 or newer",
            &io::Error::last_os_error(),
        ))
    }

    /// Keeps other signals off the thread: their handlers return by a system call from outside of
    /// the exempt stretch, which must not be dispatched. Gives the mask to go back to.
    fn hold_signals() -> libc::sigset_t {
        const NOT_HELD: [i32; 6] =
            [libc::SIGSYS, libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP];
        // SAFETY: all-zero bytes are a valid set.
        let mut held = unsafe { std::mem::zeroed::<libc::sigset_t>() };
        let mut before = held;
        // SAFETY: writes one set.
        unsafe { libc::sigfillset(&raw mut held) };
        for signal in NOT_HELD {
            // SAFETY: changes one set.
            unsafe { libc::sigdelset(&raw mut held, signal) };
        }
        // SAFETY: reads one set and writes another.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const held, &raw mut before) };
        before
    }

    /// Lets system calls and signals through again, also when the work unwinds.
    struct Disarm {
        signals: libc::sigset_t,
    }

    impl Drop for Disarm {
        fn drop(&mut self) {
            set_selector(FILTER_ALLOW);
            // Off cannot be refused where on was accepted.
            let _ = dispatch(DISPATCH_OFF);
            // SAFETY: reads one set, the one that was in force before.
            unsafe {
                libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.signals, ptr::null_mut())
            };
        }
    }

    pub(super) fn count_in<T>(work: impl FnOnce() -> T) -> Result<(T, u64), Unavailable> {
        if topology::running_under_valgrind() {
            return Err(Unavailable::because("no_syscall_dispatch", "running under valgrind"));
        }
        install_handler().map_err(|errno| {
            let error = io::Error::from_raw_os_error(errno);
            Unavailable::syscall("no_syscall_dispatch", "rt_sigaction", &error)
        })?;
        dispatch(DISPATCH_ON)?;
        let disarm = Disarm { signals: hold_signals() };
        CALLS.with(|calls| calls.set(0));
        set_selector(FILTER_BLOCK);
        let result = work();
        set_selector(FILTER_ALLOW);
        let calls = CALLS.with(Cell::get);
        drop(disarm);
        Ok((result, calls))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted<T>(work: impl FnOnce() -> T) -> Option<(T, u64)> {
        match count_in(work) {
            Ok(counted) => Some(counted),
            Err(reason) => {
                println!("SKIPPED: {reason}");
                None
            }
        }
    }

    #[test]
    fn counts_each_call_and_passes_its_result_on() {
        let Some((pid, calls)) = counted(|| {
            // SAFETY: asks for a number.
            (0..1000).map(|_| unsafe { libc::syscall(libc::SYS_getpid) }).max()
        }) else {
            return;
        };
        assert_eq!(calls, 1000);
        assert_eq!(pid, Some(i64::from(std::process::id())));
    }

    #[test]
    fn counts_nothing_in_pure_computation_and_nothing_outside() {
        let Some((_, calls)) = counted(|| crate::spin::chain(1000)) else { return };
        assert_eq!(calls, 0);
        std::thread::yield_now(); // would be killed by SIGSYS if the window were still armed
    }

    #[test]
    fn failures_arrive_as_errno() {
        // SAFETY: closes a descriptor that does not exist.
        let Some((result, calls)) = counted(|| unsafe { libc::close(-1) }) else { return };
        assert_eq!((result, calls), (-1, 1));
        assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(libc::EBADF));
    }

    #[test]
    fn a_signal_in_the_window_is_handled_after_it() {
        use std::sync::atomic::{AtomicBool, Ordering};
        static HANDLED: AtomicBool = AtomicBool::new(false);
        extern "C" fn handle(_: i32) {
            HANDLED.store(true, Ordering::Relaxed);
        }
        let handler = handle as extern "C" fn(i32);
        // SAFETY: the handler only stores to an atomic.
        unsafe { libc::signal(libc::SIGUSR2, handler as libc::sighandler_t) };
        let inside = counted(|| {
            // SAFETY: sends this thread a signal that has a handler.
            unsafe { libc::raise(libc::SIGUSR2) };
            HANDLED.load(Ordering::Relaxed)
        });
        if let Some((handled_inside, calls)) = inside {
            assert!(!handled_inside);
            assert!(calls >= 1);
            assert!(HANDLED.load(Ordering::Relaxed));
        }
    }

    #[test]
    fn threads_count_for_themselves_also_while_blocked() {
        let (send, receive) = std::sync::mpsc::channel::<()>();
        let waiter = std::thread::spawn(move || counted(|| receive.recv().is_ok()));
        std::thread::sleep(std::time::Duration::from_millis(50));
        send.send(()).unwrap();
        if let Some((received, calls)) = waiter.join().unwrap() {
            assert!(received);
            assert!(calls >= 1, "a blocked receive enters the kernel");
        }
    }
}
