//! The border between the engine and the thread that it executes.
//!
//! While a thread runs, its registers are in the processor's registers of the same names, GS
//! points to its core's [`Context`], and FS stays the engine's own: generated code adds the
//! thread's FS base where the thread names FS. So the engine's handlers and thread-locals work
//! whenever it gets to run.

use core::arch::{asm, global_asm};
use core::mem::offset_of;

use crate::context::Context;

global_asm!(
    // fn simulator_enter(): runs generated code from `resume` until it leaves.
    ".pushsection .text.simulator_enter,\"ax\",@progbits",
    ".p2align 6",
    ".globl simulator_enter",
    ".hidden simulator_enter",
    "simulator_enter:",
    "push rbx",
    "push rbp",
    "push r12",
    "push r13",
    "push r14",
    "push r15",
    "mov gs:[{engine_stack}], rsp",
    "cmp qword ptr gs:[{vector_loaded}], 0",
    "je 2f",
    "mov eax, gs:[{vector_mask}]",
    "mov edx, gs:[{vector_mask} + 4]",
    "mov rcx, gs:[{itself}]",
    "xrstor [rcx + {vector}]",
    "2:",
    "mov rax, gs:[{flags}]",
    // Direction, trap and other flags beside the six of arithmetic go the slow way.
    "test eax, 0x40500",
    "jnz 3f",
    "xor ecx, ecx",
    "bt eax, 11",
    "setc cl",
    "mov ah, al",
    "add cl, 127", // overflows if OF was set
    "sahf",
    "4:",
    "mov rax, gs:[{registers}]",
    "mov rcx, gs:[{registers} + 8]",
    "mov rdx, gs:[{registers} + 16]",
    "mov rbx, gs:[{registers} + 24]",
    "mov rsp, gs:[{registers} + 32]",
    "mov rbp, gs:[{registers} + 40]",
    "mov rsi, gs:[{registers} + 48]",
    "mov rdi, gs:[{registers} + 56]",
    "mov r8, gs:[{registers} + 64]",
    "mov r9, gs:[{registers} + 72]",
    "mov r10, gs:[{registers} + 80]",
    "mov r11, gs:[{registers} + 88]",
    "mov r12, gs:[{registers} + 96]",
    "mov r13, gs:[{registers} + 104]",
    "mov r14, gs:[{registers} + 112]",
    "mov r15, gs:[{registers} + 120]",
    "jmp qword ptr gs:[{resume}]",
    "3:",
    "and eax, 0x40ed5", // never the trap flag
    "push rax",
    "popfq",
    "jmp 4b",
    // Where generated code leaves: all registers are the thread's.
    ".p2align 6",
    ".globl simulator_leave",
    ".hidden simulator_leave",
    "simulator_leave:",
    "mov gs:[{registers}], rax",
    "mov gs:[{registers} + 8], rcx",
    "mov gs:[{registers} + 16], rdx",
    "mov gs:[{registers} + 24], rbx",
    "mov gs:[{registers} + 32], rsp",
    "mov gs:[{registers} + 40], rbp",
    "mov gs:[{registers} + 48], rsi",
    "mov gs:[{registers} + 56], rdi",
    "mov gs:[{registers} + 64], r8",
    "mov gs:[{registers} + 72], r9",
    "mov gs:[{registers} + 80], r10",
    "mov gs:[{registers} + 88], r11",
    "mov gs:[{registers} + 96], r12",
    "mov gs:[{registers} + 104], r13",
    "mov gs:[{registers} + 112], r14",
    "mov gs:[{registers} + 120], r15",
    "mov rsp, gs:[{engine_stack}]",
    "pushfq",
    "pop rax",
    "mov gs:[{flags}], rax",
    "cld",
    // With alignment checks or single steps on, the engine must not run.
    "test eax, 0x40100",
    "jz 6f",
    "push 2",
    "popfq",
    "6:",
    "cmp qword ptr gs:[{vector_loaded}], 0",
    "je 5f",
    "mov eax, gs:[{vector_mask}]",
    "mov edx, gs:[{vector_mask} + 4]",
    "mov rcx, gs:[{itself}]",
    "xsave [rcx + {vector}]",
    "vzeroupper",
    "push 0x1f80",
    "ldmxcsr [rsp]",
    "pop rax",
    "cmp qword ptr gs:[{x87_used}], 0",
    "je 5f",
    "fninit",
    "5:",
    "pop r15",
    "pop r14",
    "pop r13",
    "pop r12",
    "pop rbp",
    "pop rbx",
    "ret",
    // Where a fault in generated code is led to.
    ".globl simulator_leave_fault",
    ".hidden simulator_leave_fault",
    "simulator_leave_fault:",
    "mov dword ptr gs:[{exit}], {fault}",
    "jmp simulator_leave",
    // fn simulator_rehearse(registers: rdi, code: rsi, address: rdx) -> eax
    ".p2align 6",
    ".globl simulator_rehearse",
    ".hidden simulator_rehearse",
    "simulator_rehearse:",
    "push rbx",
    "push rbp",
    "push r12",
    "push r13",
    "push r14",
    "push r15",
    ".globl simulator_rehearse_may_fault",
    ".hidden simulator_rehearse_may_fault",
    "simulator_rehearse_may_fault:",
    "mov al, [rdx]",
    "call rsi",
    "7:",
    "pop r15",
    "pop r14",
    "pop r13",
    "pop r12",
    "pop rbp",
    "pop rbx",
    "ret",
    ".globl simulator_rehearse_failed",
    ".hidden simulator_rehearse_failed",
    "simulator_rehearse_failed:",
    "xor eax, eax",
    "jmp 7b",
    // The return address of every thread's first function: never executed.
    ".globl simulator_end",
    ".hidden simulator_end",
    "simulator_end:",
    "ud2",
    "ud2",
    ".popsection",
    registers = const offset_of!(Context, registers),
    flags = const offset_of!(Context, flags),
    resume = const offset_of!(Context, resume),
    engine_stack = const offset_of!(Context, engine_stack),
    vector_loaded = const offset_of!(Context, vector_loaded),
    vector_mask = const offset_of!(Context, vector_mask),
    x87_used = const offset_of!(Context, x87_used),
    vector = const offset_of!(Context, vector),
    itself = const offset_of!(Context, itself),
    exit = const offset_of!(Context, exit),
    fault = const FAULT_EXIT,
);

unsafe extern "C" {
    fn simulator_enter();
    fn simulator_leave();
    fn simulator_leave_fault();
    fn simulator_end();
    fn simulator_rehearse(registers: *const [u64; 16], code: u64, address: u64) -> u32;
    fn simulator_rehearse_may_fault();
    fn simulator_rehearse_failed();
}

/// The exit that a fault in generated code takes.
pub(crate) const FAULT_EXIT: u32 = 0;

/// Gives the address at which generated code leaves.
pub(crate) fn leave_address() -> u64 {
    (simulator_leave as *const ()).addr() as u64
}

/// Gives the address to which a fault in generated code is led.
pub(crate) fn fault_address() -> u64 {
    (simulator_leave_fault as *const ()).addr() as u64
}

/// Whether an address lies in the code of this border.
pub(crate) fn contains(address: u64) -> bool {
    ((simulator_enter as *const ()).addr() as u64..end_address()).contains(&address)
}

/// Gives the address to which a thread's first function returns.
pub(crate) fn end_address() -> u64 {
    (simulator_end as *const ()).addr() as u64
}

/// Runs the thread on the core that GS points to, until generated code leaves.
///
/// # Safety
/// GS points to a [`Context`] whose `resume` is the address of generated code, made for the state
/// that its registers are in.
#[inline]
pub(crate) unsafe fn enter() {
    // SAFETY: by the caller. Generated code keeps to the registers of the thread, which are saved
    // and loaded here; what it does to memory is what the thread does.
    unsafe {
        asm!(
            "call {enter}",
            enter = sym simulator_enter,
            clobber_abi("C"),
        );
    }
}

/// Lets a round of a loop run, of which nobody sees anything; whether it comes back to where it
/// began. It does not if there is no memory at `address`.
///
/// # Safety
/// `code` was made for it, reads what is at `address` and nothing else, and returns whether the
/// round does so with these registers.
#[inline]
pub(crate) unsafe fn rehearse(registers: &[u64; 16], code: u64, address: u64) -> bool {
    // SAFETY: by the caller; the registers that a function must keep are kept here.
    unsafe { simulator_rehearse(registers, code, address) != 0 }
}

/// Gives the place in [`rehearse`] that may fault, and where it goes on then.
pub(crate) fn rehearsal_places() -> (u64, u64) {
    let address = |function: unsafe extern "C" fn()| (function as *const ()).addr() as u64;
    (address(simulator_rehearse_may_fault), address(simulator_rehearse_failed))
}

/// Points GS to a core.
///
/// # Safety
/// The context stays in place while GS points to it. `FSGSBASE` instructions are allowed.
#[inline]
pub(crate) unsafe fn point_to(context: *const Context) {
    // SAFETY: nothing else on this thread uses GS.
    unsafe { asm!("wrgsbase {}", in(reg) context, options(nostack, preserves_flags)) };
}

/// Whether the processor and the kernel let programs set segment bases (`AT_HWCAP2`, bit 1).
pub(crate) fn may_set_bases() -> bool {
    // SAFETY: reads the auxiliary vector.
    unsafe { libc::getauxval(libc::AT_HWCAP2) & 2 != 0 }
}

/// Gives the calling thread's FS base.
pub(crate) fn fs_base() -> u64 {
    let base: u64;
    // SAFETY: the psABI has the thread pointer at FS:0.
    unsafe { asm!("mov {}, fs:[0]", out(reg) base, options(nostack, preserves_flags, readonly)) };
    base
}

/// Gives the components of vector state that this processor has and that are saved: x87, SSE,
/// AVX, AVX-512.
pub(crate) fn vector_mask() -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: the operating system has switched XSAVE on, else no AVX program would run; the
    // caller checked for it.
    unsafe {
        asm!("xgetbv", in("ecx") 0, out("eax") low, out("edx") high, options(nomem, nostack));
    }
    (u64::from(high) << 32 | u64::from(low)) & 0xe7
}
