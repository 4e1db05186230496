//! Signals that the processor raises while the engine or a thread of its runs.
//!
//! A fault in generated code is the thread's: it ends the run with a report. A fault in the copy
//! routine of `guest_memory` means that a pointer of the thread's leads nowhere, and one in a
//! rehearsal that the thread itself shall find it out. Every other fault goes to the handler that
//! was there before.

use core::arch::global_asm;
use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::ptr;
use core::sync::atomic::{AtomicU64, Ordering};

use crate::enter;

global_asm!(
    // fn simulator_copy(to: rdi, from: rsi, bytes: rdx) -> eax: 0, or 1 if it could not
    ".pushsection .text.simulator_copy,\"ax\",@progbits",
    ".globl simulator_copy",
    ".hidden simulator_copy",
    "simulator_copy:",
    "mov rcx, rdx",
    ".globl simulator_copy_may_fault",
    ".hidden simulator_copy_may_fault",
    "simulator_copy_may_fault:",
    "rep movsb",
    "xor eax, eax",
    "ret",
    ".globl simulator_copy_failed",
    ".hidden simulator_copy_failed",
    "simulator_copy_failed:",
    "mov eax, 1",
    "ret",
    ".popsection",
);

unsafe extern "C" {
    fn simulator_copy(to: *mut u8, from: *const u8, bytes: usize) -> u32;
    fn simulator_copy_may_fault();
    fn simulator_copy_failed();
}

/// Copies bytes between a guest's memory and ours; whether it could.
pub(crate) fn copy(to: *mut u8, from: *const u8, bytes: usize) -> bool {
    install();
    // SAFETY: one side is ours and large enough; if the other is not mapped, the routine ends with
    // 1, and a guest whose pointer names memory of ours would overwrite it natively too.
    unsafe { simulator_copy(to, from, bytes) == 0 }
}

/// What faulted in generated code.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Fault {
    /// The signal's number.
    pub(crate) signal: i32,
    /// The address that it names.
    pub(crate) address: u64,
    /// The address in generated code.
    pub(crate) place: u64,
    /// Whether the processor gave no address: a general protection fault.
    pub(crate) no_address: bool,
}

static CODE_START: AtomicU64 = AtomicU64::new(0);
static CODE_END: AtomicU64 = AtomicU64::new(0);
static SIGNAL: AtomicU64 = AtomicU64::new(0);
static ADDRESS: AtomicU64 = AtomicU64::new(0);
static PLACE: AtomicU64 = AtomicU64::new(0);
static CODE: AtomicU64 = AtomicU64::new(0);

/// The code of a signal that the kernel raises without more details.
const SI_KERNEL: i32 = 0x80;

/// Flags of the thread's with which no other code must run: trap, direction, alignment check.
const FOREIGN_FLAGS: i64 = 0x100 | 0x400 | 0x4_0000;

const SIGNALS: [i32; 5] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGTRAP];

struct Previous(UnsafeCell<[MaybeUninit<libc::sigaction>; SIGNALS.len()]>);

// SAFETY: written once, before the handler that reads it is installed.
unsafe impl Sync for Previous {}

static PREVIOUS: Previous =
    Previous(UnsafeCell::new([const { MaybeUninit::zeroed() }; SIGNALS.len()]));

/// Says where generated code lies.
pub(crate) fn watch(code: core::ops::Range<u64>) {
    install();
    CODE_START.store(code.start, Ordering::Relaxed);
    CODE_END.store(code.end, Ordering::Relaxed);
}

/// Gives the fault that led out of generated code.
pub(crate) fn last() -> Fault {
    Fault {
        signal: SIGNAL.load(Ordering::Relaxed) as i32,
        address: ADDRESS.load(Ordering::Relaxed),
        place: PLACE.load(Ordering::Relaxed),
        no_address: CODE.load(Ordering::Relaxed) == SI_KERNEL as u64,
    }
}

/// Installs the handlers once.
fn install() {
    static STATE: AtomicU64 = AtomicU64::new(0);
    const DONE: u64 = 2;
    if STATE.load(Ordering::Acquire) == DONE {
        return;
    }
    if STATE.compare_exchange(0, 1, Ordering::Acquire, Ordering::Acquire).is_ok() {
        for (i, signal) in SIGNALS.into_iter().enumerate() {
            // SAFETY: all zeroes is a valid `sigaction`.
            let mut action: libc::sigaction = unsafe { core::mem::zeroed() };
            action.sa_sigaction = (handler as *const ()).addr();
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER;
            // SAFETY: only this thread is in state 1, and index i is in bounds.
            let previous = unsafe { &mut (*PREVIOUS.0.get())[i] };
            // SAFETY: both point to a `sigaction`; the handler keeps to what handlers may do.
            unsafe { libc::sigaction(signal, &raw const action, previous.as_mut_ptr()) };
        }
        STATE.store(DONE, Ordering::Release);
    }
    while STATE.load(Ordering::Acquire) != DONE {
        core::hint::spin_loop();
    }
}

extern "C" fn handler(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel hands over a `ucontext_t`, which is ours to change.
    let context = unsafe { &mut *context.cast::<libc::ucontext_t>() };
    let rip = &mut context.uc_mcontext.gregs[libc::REG_RIP as usize];
    let at = rip.cast_unsigned();
    if at == (simulator_copy_may_fault as *const ()).addr() as u64 {
        *rip = ((simulator_copy_failed as *const ()).addr() as u64).cast_signed();
        return;
    }
    let (may_fault, failed) = enter::rehearsal_places();
    if at == may_fault {
        *rip = failed.cast_signed();
        return;
    }
    let code = CODE_START.load(Ordering::Relaxed)..CODE_END.load(Ordering::Relaxed);
    if code.contains(&at) {
        // SAFETY: the kernel hands over a `siginfo_t`.
        let info = unsafe { &*info };
        // SAFETY: these signals carry an address.
        let address = unsafe { info.si_addr() };
        SIGNAL.store(signal as u64, Ordering::Relaxed);
        ADDRESS.store(address.addr() as u64, Ordering::Relaxed);
        PLACE.store(at, Ordering::Relaxed);
        CODE.store(info.si_code as u64, Ordering::Relaxed);
        *rip = enter::fault_address().cast_signed();
        context.uc_mcontext.gregs[libc::REG_EFL as usize] &= !FOREIGN_FLAGS;
        return;
    }
    if signal == libc::SIGTRAP && enter::contains(at) {
        // A thread has set its trap flag; it is not simulated.
        context.uc_mcontext.gregs[libc::REG_EFL as usize] &= !FOREIGN_FLAGS;
        return;
    }
    chain(signal, info, ptr::from_mut(context).cast());
}

/// Calls the handler that was there before; without one, the signal does what it does.
fn chain(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let Some(i) = SIGNALS.iter().position(|&one| one == signal) else { return };
    // SAFETY: written before this handler was installed, and never after that.
    let previous = unsafe { &(*PREVIOUS.0.get())[i] };
    // SAFETY: as above; it began as zeroes, which are valid too.
    let previous = unsafe { previous.assume_init_ref() };
    match previous.sa_sigaction {
        libc::SIG_DFL | libc::SIG_IGN => {
            // SAFETY: gives the signal its former action; the instruction faults again.
            unsafe { libc::sigaction(signal, previous, ptr::null_mut()) };
        }
        action if previous.sa_flags & libc::SA_SIGINFO != 0 => {
            // SAFETY: a handler of this form, by its flags.
            let action: extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void) =
                unsafe { core::mem::transmute(action) };
            action(signal, info, context);
        }
        action => {
            // SAFETY: a handler of this form, by its flags.
            let action: extern "C" fn(i32) = unsafe { core::mem::transmute(action) };
            action(signal);
        }
    }
}

/// A stack for the handlers of this thread, while it lives: the thread's own may be what faulted.
#[derive(Debug)]
pub(crate) struct HandlerStack {
    memory: memmap2::MmapMut,
    previous: libc::stack_t,
}

impl HandlerStack {
    const BYTES: usize = 128 << 10;

    /// Gives this thread a stack for handlers.
    ///
    /// # Errors
    /// What the operating system said.
    pub(crate) fn new() -> std::io::Result<Self> {
        let mut memory = memmap2::MmapMut::map_anon(Self::BYTES)?;
        let stack =
            libc::stack_t { ss_sp: memory.as_mut_ptr().cast(), ss_flags: 0, ss_size: Self::BYTES };
        // SAFETY: all zeroes is a valid `stack_t`.
        let mut previous: libc::stack_t = unsafe { core::mem::zeroed() };
        // SAFETY: the memory lives until the previous stack is back.
        if unsafe { libc::sigaltstack(&raw const stack, &raw mut previous) } != 0 {
            return Err(std::io::Error::last_os_error());
        }
        Ok(Self { memory, previous })
    }
}

impl Drop for HandlerStack {
    fn drop(&mut self) {
        // SAFETY: what the kernel gave as the stack before.
        unsafe { libc::sigaltstack(&raw const self.previous, ptr::null_mut()) };
        let _ = &self.memory; // unmapped now that nobody uses it
    }
}

/// Blocks all signals on this thread but those of faults, while it lives.
#[derive(Debug)]
pub(crate) struct NoSignals {
    previous: libc::sigset_t,
}

impl NoSignals {
    /// Blocks signals on this thread.
    pub(crate) fn new() -> Self {
        // SAFETY: all zeroes is a valid set.
        let mut set: libc::sigset_t = unsafe { core::mem::zeroed() };
        // SAFETY: as above.
        let mut previous: libc::sigset_t = unsafe { core::mem::zeroed() };
        // SAFETY: a valid set.
        unsafe { libc::sigfillset(&raw mut set) };
        for signal in SIGNALS {
            // SAFETY: a valid set and signal.
            unsafe { libc::sigdelset(&raw mut set, signal) };
        }
        // SAFETY: two valid sets.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const set, &raw mut previous) };
        Self { previous }
    }
}

impl Drop for NoSignals {
    fn drop(&mut self) {
        // SAFETY: the set that was in force before.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.previous, ptr::null_mut());
        }
    }
}
