//! Whether this process runs under valgrind, which lies about the CPU.

/// Tells whether valgrind executes this process.
#[cfg(target_arch = "x86_64")]
pub fn is_running() -> bool {
    const RUNNING_ON_VALGRIND: u64 = 0x1001;
    let request: [u64; 6] = [RUNNING_ON_VALGRIND, 0, 0, 0, 0, 0];
    let mut answer = 0_u64;
    // SAFETY: outside valgrind the rotations add up to 128 and the exchange is with itself, so
    // nothing changes; under valgrind `rdx` receives the answer and nothing else changes.
    unsafe {
        core::arch::asm!(
            "rol rdi, 3", "rol rdi, 13", "rol rdi, 61", "rol rdi, 51", "xchg rbx, rbx",
            in("rax") request.as_ptr(),
            inout("rdx") answer,
            inout("rdi") 0_u64 => _,
        );
    }
    answer != 0
}

/// Tells whether valgrind executes this process; its request exists here for x86-64 only.
#[cfg(not(target_arch = "x86_64"))]
pub fn is_running() -> bool {
    false
}
