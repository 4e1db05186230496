//! Threads of the operating system that lend a guest its identity: thread-local storage, stack,
//! thread id. They sleep while the engine executes their code.

use core::ptr;
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::io;

use crate::{enter, fixed};

/// Where stacks lie, with thread-local storage at their upper ends: fixed, so that no address of a
/// guest depends on the process's environment.
const STACKS: usize = 0x0400_0000_0000;

/// From one stack to the next.
const STRIDE: usize = 16 << 20;

/// Where the stacks of all sessions end.
const END: usize = STACKS + (1 << 42);

/// Stacks that can never be used again, below all others: those of sessions that were stopped.
static ABANDONED: AtomicUsize = AtomicUsize::new(0);

/// Whether an address lies on a stack of a simulated thread.
pub(crate) fn is_stack(address: u64) -> bool {
    (STACKS as u64..END as u64).contains(&address)
}

/// Bytes of a stack. The page below is never mapped.
const BYTES: usize = 8 << 20;

/// What the lender's own frames need, and some room to spare.
const LENDER_BYTES: u64 = 16 << 10;

const ASLEEP: u32 = 1;
const CALLED: u32 = 2;
const RELEASED: u32 = 3;

/// A sleeping thread and what it lends.
#[derive(Debug)]
pub(crate) struct Lender {
    shared: Box<Shared>,
    thread: libc::pthread_t,
    stack: usize,
    /// Its thread id.
    pub(crate) tid: i32,
    /// Its FS base.
    pub(crate) fs_base: u64,
    /// Where the guest's stack begins, aligned to 16 bytes.
    pub(crate) top: u64,
}

#[derive(Debug, Default)]
struct Shared {
    state: AtomicU32,
    tid: AtomicU32,
    fs_base: AtomicU64,
    stack: AtomicU64,
    /// What to call natively: a function and its two arguments.
    call: [AtomicU64; 3],
}

impl Lender {
    /// Creates the thread with this index and waits until it sleeps.
    ///
    /// # Errors
    /// When the stack cannot be mapped at its place, or the thread cannot be created.
    pub(crate) fn new(index: usize) -> io::Result<Self> {
        let stack = STACKS + (ABANDONED.load(Ordering::Relaxed) + index) * STRIDE;
        let mapped = fixed::map(stack, BYTES)?;
        let shared = Box::new(Shared::default());
        let thread = match spawn(mapped, &raw const *shared) {
            Ok(thread) => thread,
            Err(error) => {
                // SAFETY: mapped above, used by nobody.
                unsafe { libc::munmap(mapped, BYTES) };
                return Err(error);
            }
        };
        while shared.state.load(Ordering::Acquire) != ASLEEP {
            std::thread::yield_now();
        }
        let top = top_below(shared.stack.load(Ordering::Relaxed));
        Ok(Self {
            thread,
            stack,
            tid: shared.tid.load(Ordering::Relaxed).cast_signed(),
            fs_base: shared.fs_base.load(Ordering::Relaxed),
            top,
            shared,
        })
    }

    /// Gives the thread's area for restartable sequences, if the C library registered one.
    pub(crate) fn rseq(&self) -> Option<u64> {
        let symbol = |name: &core::ffi::CStr| {
            // SAFETY: a name with its terminator; the default scope needs no handle.
            let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
            (!address.is_null()).then_some(address)
        };
        let (offset, size) = (symbol(c"__rseq_offset")?, symbol(c"__rseq_size")?);
        // SAFETY: the C library declares this symbol as `unsigned int`.
        let size = unsafe { size.cast::<u32>().read() };
        // SAFETY: the C library declares this symbol as `ptrdiff_t`.
        let offset = unsafe { offset.cast::<i64>().read() };
        (size > 0).then(|| self.fs_base.wrapping_add_signed(offset))
    }

    /// Gives where thread-local storage begins, or lower: what lies above the thread's first frames.
    pub(crate) fn storage(&self) -> u64 {
        self.shared.stack.load(Ordering::Relaxed)
    }

    /// Gives the addresses of the stack.
    pub(crate) fn stack(&self) -> core::ops::Range<u64> {
        self.stack as u64..(self.stack + BYTES) as u64
    }

    /// Lets the thread call a function itself, on the stack that a guest has.
    pub(crate) fn call(&self, entry: u64, first: u64, second: u64) {
        for (place, value) in self.shared.call.iter().zip([entry, first, second]) {
            place.store(value, Ordering::Relaxed);
        }
        // Release: the call is there when the state is seen.
        self.shared.state.store(CALLED, Ordering::Release);
        futex(&self.shared.state, libc::FUTEX_WAKE, 1);
    }

    /// Waits until the thread sleeps again.
    pub(crate) fn wait(&self) {
        // Acquire: what the call wrote is seen.
        while self.shared.state.load(Ordering::Acquire) != ASLEEP {
            futex(&self.shared.state, libc::FUTEX_WAIT, CALLED);
        }
    }

    /// Lets the thread end, which runs its thread-local destructors, and unmaps its stack.
    pub(crate) fn release(self) {
        self.shared.state.store(RELEASED, Ordering::Release);
        futex(&self.shared.state, libc::FUTEX_WAKE, 1);
        // SAFETY: created by `new` and joined once.
        unsafe { libc::pthread_join(self.thread, ptr::null_mut()) };
        // SAFETY: nobody runs on it any more.
        unsafe { libc::munmap(ptr::with_exposed_provenance_mut(self.stack), BYTES) };
    }

    /// Leaves threads asleep for ever: what they were doing was not finished.
    pub(crate) fn abandon(lenders: Vec<Self>) {
        ABANDONED.fetch_add(lenders.len(), Ordering::Relaxed);
        lenders.into_iter().for_each(|lender| {
            Box::leak(lender.shared);
        });
    }
}

fn spawn(stack: *mut libc::c_void, shared: *const Shared) -> io::Result<libc::pthread_t> {
    // SAFETY: all zeroes is a valid value to be overwritten.
    let mut attributes: libc::pthread_attr_t = unsafe { core::mem::zeroed() };
    // SAFETY: a place for attributes.
    unsafe { libc::pthread_attr_init(&raw mut attributes) };
    // SAFETY: initialised attributes, and a stack of so many bytes.
    let mut result = unsafe { libc::pthread_attr_setstack(&raw mut attributes, stack, BYTES) };
    let mut thread = 0;
    if result == 0 {
        // SAFETY: `sleep` takes a `Shared`, which lives until the thread is joined or for ever.
        result = unsafe {
            libc::pthread_create(
                &raw mut thread,
                &raw const attributes,
                sleep,
                shared.cast_mut().cast(),
            )
        };
    }
    // SAFETY: initialised above.
    unsafe { libc::pthread_attr_destroy(&raw mut attributes) };
    if result == 0 { Ok(thread) } else { Err(io::Error::from_raw_os_error(result)) }
}

extern "C" fn sleep(shared: *mut libc::c_void) -> *mut libc::c_void {
    // SAFETY: `Lender::new` gave a `Shared` that outlives this thread's waiting.
    let shared = unsafe { &*shared.cast::<Shared>() };
    let here = 0_u8;
    // SAFETY: asks for this thread's id.
    let tid = unsafe { libc::syscall(libc::SYS_gettid) };
    shared.tid.store(tid as u32, Ordering::Relaxed);
    shared.fs_base.store(enter::fs_base(), Ordering::Relaxed);
    shared.stack.store((&raw const here).addr() as u64, Ordering::Relaxed);
    // Release: what is stored above is read after this is seen.
    shared.state.store(ASLEEP, Ordering::Release);
    loop {
        match shared.state.load(Ordering::Acquire) {
            RELEASED => return ptr::null_mut(),
            CALLED => {
                let [entry, first, second] =
                    [0, 1, 2].map(|i| shared.call[i].load(Ordering::Relaxed));
                let top = top_below(shared.stack.load(Ordering::Relaxed));
                // SAFETY: `Lender::call` was given an `extern "C"` function with its arguments.
                unsafe { call_on(top, entry, first, second) };
                shared.state.store(ASLEEP, Ordering::Release);
                futex(&shared.state, libc::FUTEX_WAKE, 1);
            }
            _ => futex(&shared.state, libc::FUTEX_WAIT, ASLEEP),
        }
    }
}

/// Gives where a guest's stack begins, below the lender's frames.
fn top_below(frame: u64) -> u64 {
    (frame - LENDER_BYTES) & !15
}

/// Calls a function on another part of the stack: where a guest would run it.
///
/// # Safety
/// `entry` is an `extern "C"` function of two arguments that returns, and nothing is in use below
/// `top` but what the function uses.
unsafe fn call_on(top: u64, entry: u64, first: u64, second: u64) {
    // SAFETY: by the caller; the stack pointer is put back.
    unsafe {
        core::arch::asm!(
            "mov r12, rsp",
            "mov rsp, {top}",
            "call {entry}",
            "mov rsp, r12",
            top = in(reg) top,
            entry = in(reg) entry,
            in("rdi") first,
            in("rsi") second,
            out("r12") _,
            clobber_abi("C"),
        );
    }
}

/// Calls the kernel without the C library's frames and `errno`, which are the guest's now.
fn futex(word: &AtomicU32, operation: i32, value: u32) {
    // SAFETY: waits at, or wakes, a word that lives; the kernel changes no other register.
    unsafe {
        core::arch::asm!(
            "syscall",
            inlateout("rax") libc::SYS_futex => _,
            in("rdi") word.as_ptr(),
            in("rsi") operation | libc::FUTEX_PRIVATE_FLAG,
            in("rdx") u64::from(value),
            in("r10") 0_u64,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
}
