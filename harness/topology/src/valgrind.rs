//! Asks whether valgrind runs this process: its CPUID is made up.

/// The client request `RUNNING_ON_VALGRIND`.
#[cfg(target_arch = "x86_64")]
const RUNNING_ON_VALGRIND: u64 = 0x1001;

/// Says whether this process runs under valgrind. On a bare CPU the question costs a few cycles.
#[cfg(target_arch = "x86_64")]
#[must_use]
pub fn running_under_valgrind() -> bool {
    let request: [u64; 6] = [RUNNING_ON_VALGRIND, 0, 0, 0, 0, 0];
    let mut answer: u64 = 0;
    // SAFETY: the four rotations add up to 128 bits, so rdi keeps its value, and the exchange of
    // rbx with itself does nothing: on a CPU the block only changes flags. Valgrind recognises the
    // sequence, reads the six words at rax, which live until after the block, and writes rdx.
    unsafe {
        core::arch::asm!(
            "rol rdi, 3",
            "rol rdi, 13",
            "rol rdi, 61",
            "rol rdi, 51",
            "xchg rbx, rbx",
            in("rax") request.as_ptr(),
            inout("rdx") answer,
            inout("rdi") 0_u64 => _,
            options(nostack),
        );
    }
    answer != 0
}

/// Says whether this process runs under valgrind; asked on x86-64 only, elsewhere `false`.
#[cfg(not(target_arch = "x86_64"))]
#[must_use]
pub fn running_under_valgrind() -> bool {
    false
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    #[test]
    fn agrees_with_what_valgrind_preloads() {
        // Valgrind loads its core library into the process that it runs.
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        assert_eq!(super::running_under_valgrind(), maps.contains("/vgpreload_"));
    }
}
