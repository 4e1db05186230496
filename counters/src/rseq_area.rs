//! The area that the C library shares with the kernel for restartable sequences, one a thread.
//!
//! `struct rseq` begins with the words `cpu_id_start` and `cpu_id` and, at 8, the address of the
//! sequence that the thread is in. The kernel sends a thread that it preempts, moves or hands a
//! signal while it is between a sequence's first instruction and its last to the abort handler.

use core::arch::asm;
use core::ffi::CStr;

use crate::per_cpu::CpuRow;
use crate::sync::atomic::AtomicI64;

/// Bytes up to the end of the field for the sequence.
const LEAST_BYTES: u32 = 16;

const _: () = assert!(size_of::<CpuRow>() == 128 && size_of::<AtomicI64>() == 8);

fn symbol(name: &CStr) -> Option<*mut libc::c_void> {
    // SAFETY: a name with its terminator; the default scope needs no handle.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!address.is_null()).then_some(address)
}

/// Finds the area's offset from the thread pointer, a multiple of 8 and not 0; `None` if the C
/// library registered none.
pub(crate) fn offset() -> Option<isize> {
    let (offset, size) = (symbol(c"__rseq_offset")?, symbol(c"__rseq_size")?);
    // SAFETY: the C library declares this symbol as `const unsigned int`.
    let size = unsafe { size.cast::<u32>().read() };
    // SAFETY: the C library declares this symbol as `const ptrdiff_t`.
    let offset = unsafe { offset.cast::<isize>().read() };
    (size >= LEAST_BYTES && offset != 0 && offset % 8 == 0).then_some(offset)
}

/// Reads the field `cpu_id`, which is negative in a thread that is not registered. `offset` is
/// what [`offset`] found.
#[inline(always)]
pub(crate) fn cpu(offset: isize) -> Option<usize> {
    let cpu: i32;
    // SAFETY: `offset` came from the C library, which keeps the area in each thread that it
    // started, at that distance from the thread pointer; `cpu_id` is its second word.
    unsafe {
        asm!(
            "mov {cpu:e}, dword ptr fs:[{offset} + 4]",
            offset = in(reg) offset,
            cpu = lateout(reg) cpu,
            options(nostack, readonly, preserves_flags),
        );
    }
    usize::try_from(cpu).ok()
}

/// Adds `n` to the first word of the row of this CPU, in a restartable sequence; `false`, and
/// nothing was added, if the kernel interrupted it, the thread is not registered, or there is no
/// such row. `offset` is what [`offset`] found.
#[inline(always)]
pub(crate) fn add(offset: isize, rows: &[CpuRow], n: i64) -> bool {
    // The sequence is what lies between 2 and 3: it asks for the CPU and ends with the one
    // instruction that adds, so that whoever executes this has been on the row's CPU all along, and
    // whoever does not has added nothing. A negative number is a large one without its sign. At 4,
    // after the signature that the kernel wants to find there, the sequence is over; its address
    // does not stay in the area, since the code may be unloaded one day.
    //
    // SAFETY: `offset` as in `cpu`; the word that is written is a row's, since the CPU's number is
    // below theirs, and atomic, so that others may read it meanwhile: an aligned `add` to memory is
    // a relaxed load and a relaxed store.
    unsafe {
        asm!(
            "lea {at}, [rip + 5f]",
            "mov qword ptr fs:[{offset} + 8], {at}",
            "2:",
            "mov {at:e}, dword ptr fs:[{offset} + 4]",
            "cmp {at}, {cpus}",
            "jae 4f",
            "shl {at}, 7",
            "add qword ptr [{rows} + {at}], {n}",
            "3:",
            "mov qword ptr fs:[{offset} + 8], 0",
            ".pushsection __rseq_cs, \"aw\"",
            ".balign 32",
            "5:",
            ".long 0, 0", // version, flags
            ".quad 2b, 3b - 2b, 4f",
            ".popsection",
            ".pushsection __rseq_failure, \"ax\"",
            ".byte 0x0f, 0xb9, 0x3d", // makes `ud1` of the signature
            ".long 0x53053053",
            "4:",
            "mov qword ptr fs:[{offset} + 8], 0",
            "jmp {elsewhere}",
            ".popsection",
            offset = in(reg) offset,
            rows = in(reg) rows.as_ptr(),
            cpus = in(reg) rows.len(),
            n = in(reg) n,
            at = out(reg) _,
            elsewhere = label { return false },
            options(nostack),
        );
    }
    true
}
