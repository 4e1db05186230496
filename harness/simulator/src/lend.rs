//! Threads of the operating system that lend a guest its identity: thread-local storage, stack,
//! thread id. They sleep while the engine executes their code.

use core::ptr;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::io;

use crate::enter;

/// Where stacks lie, with thread-local storage at their upper ends: fixed, so that no address of a
/// guest depends on the process's environment.
const STACKS: usize = 0x1000_0000_0000;

/// From one stack to the next.
const STRIDE: usize = 16 << 20;

/// Bytes of a stack. The page below is never mapped.
const BYTES: usize = 8 << 20;

/// What the lender's own frames need, and some room to spare.
const LENDER_BYTES: u64 = 16 << 10;

const ASLEEP: u32 = 1;
const RELEASED: u32 = 2;

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
}

impl Lender {
    /// Creates the thread with this index and waits until it sleeps.
    ///
    /// # Errors
    /// When the stack cannot be mapped at its place, or the thread cannot be created.
    pub(crate) fn new(index: usize) -> io::Result<Self> {
        let stack = STACKS + index * STRIDE;
        // SAFETY: a new mapping at an address where nothing is mapped.
        let mapped = unsafe {
            libc::mmap(
                ptr::without_provenance_mut(stack),
                BYTES,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE
                    | libc::MAP_ANONYMOUS
                    | libc::MAP_NORESERVE
                    | libc::MAP_FIXED_NOREPLACE,
                -1,
                0,
            )
        };
        if mapped == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        mapped.expose_provenance();
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
        let top = (shared.stack.load(Ordering::Relaxed) - LENDER_BYTES) & !15;
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

    /// Gives the addresses of the stack.
    pub(crate) fn stack(&self) -> core::ops::Range<u64> {
        self.stack as u64..(self.stack + BYTES) as u64
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

    /// Leaves the thread asleep for ever: what it was doing was not finished.
    pub(crate) fn abandon(self) {
        Box::leak(self.shared);
    }
}

fn spawn(stack: *mut libc::c_void, shared: *const Shared) -> io::Result<libc::pthread_t> {
    // SAFETY: all zeroes is a valid value to be overwritten.
    let mut attributes: libc::pthread_attr_t = unsafe { core::mem::zeroed() };
    // SAFETY: a place for attributes.
    unsafe { libc::pthread_attr_init(&raw mut attributes) };
    // SAFETY: initialised attributes, and a stack of so many bytes.
    let mut result =
        unsafe { libc::pthread_attr_setstack(&raw mut attributes, stack, BYTES) };
    let mut thread = 0;
    if result == 0 {
        // SAFETY: `sleep` takes a `Shared`, which lives until the thread is joined or for ever.
        result = unsafe {
            libc::pthread_create(&raw mut thread, &raw const attributes, sleep, shared.cast_mut().cast())
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
    while shared.state.load(Ordering::Acquire) != RELEASED {
        futex(&shared.state, libc::FUTEX_WAIT, ASLEEP);
    }
    ptr::null_mut()
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
