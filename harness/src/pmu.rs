//! Hardware counters: why they are not read.

use std::io;

use crate::unavailable::Unavailable;

/// Tells why hardware counters are not read: none, not permitted, or not part of this version.
pub(crate) fn why_unavailable() -> Unavailable {
    match can_count() {
        Err(reason) => reason,
        Ok(()) => {
            Unavailable::because("pmu_not_read", "this version does not read hardware counters")
        }
    }
}

/// Tries to open a hardware counter of this thread's user space.
pub(crate) fn can_count() -> Result<(), Unavailable> {
    const PERF_TYPE_HARDWARE: u32 = 0;
    const PERF_COUNT_HW_INSTRUCTIONS: u64 = 1;
    const EXCLUDE_KERNEL_AND_HV: u64 = 1 << 5 | 1 << 6;
    // The first version of `perf_event_attr`: 64 bytes.
    let mut attributes = [0_u64; 8];
    attributes[0] = u64::from(PERF_TYPE_HARDWARE) | 64 << 32;
    attributes[1] = PERF_COUNT_HW_INSTRUCTIONS;
    attributes[5] = EXCLUDE_KERNEL_AND_HV;
    // SAFETY: the attributes are 64 bytes, as their size field says, and are only read.
    let descriptor =
        unsafe { libc::syscall(libc::SYS_perf_event_open, attributes.as_ptr(), 0, -1, -1, 0_u64) };
    if descriptor < 0 {
        let error = io::Error::last_os_error();
        let code = match error.raw_os_error() {
            Some(libc::EACCES | libc::EPERM) => "pmu_not_permitted",
            _ => "no_pmu",
        };
        return Err(Unavailable::syscall(code, "perf_event_open", &error));
    }
    // SAFETY: closes the descriptor opened above.
    unsafe { libc::close(descriptor as i32) };
    Ok(())
}
