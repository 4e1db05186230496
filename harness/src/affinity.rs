//! Pinning: one thread on one CPU, read back.
//!
//! `core_affinity` sets masks of 1024 CPUs; for larger machines the mask grows here. Every
//! refusal carries the CPU and the kernel's reason.

use std::fmt;
use std::io;

/// CPUs that a `cpu_set_t` of the C library can name.
const FIXED_MASK_CPUS: u32 = 1024;

/// The largest mask that is tried, in CPUs.
const MOST_CPUS: usize = 1 << 20;

/// Why a thread is not where it should be.
#[derive(Debug)]
pub enum PinError {
    /// The kernel refused the mask: the CPU is offline, absent, or outside the cpuset.
    Refused {
        /// The CPU that was asked for.
        cpu: u32,
        /// What the kernel said.
        error: io::Error,
    },
    /// The mask was accepted, and reading it back showed another one.
    NotInForce {
        /// The CPU that was asked for.
        cpu: u32,
        /// The CPUs in force instead.
        allowed: Vec<u32>,
    },
    /// The mask in force could not be read.
    Unreadable(io::Error),
}

impl fmt::Display for PinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused { cpu, error } => write!(
                f,
                "cannot pin a thread to CPU {cpu}: sched_setaffinity: {error}; `manycore topology` \
                 lists the CPUs that this process may use"
            ),
            Self::NotInForce { cpu, allowed } => {
                write!(f, "pinned a thread to CPU {cpu}, but the kernel reports {allowed:?}")
            }
            Self::Unreadable(error) => {
                write!(f, "cannot read CPU masks: sched_getaffinity: {error}")
            }
        }
    }
}

impl std::error::Error for PinError {}

/// Pins the calling thread to `cpu` and reads the mask back.
///
/// # Errors
/// When the kernel refuses the mask, or another one is in force afterwards.
pub fn pin_to(cpu: u32) -> Result<(), PinError> {
    let accepted = if cpu < FIXED_MASK_CPUS {
        core_affinity::set_for_current(core_affinity::CoreId { id: cpu as usize })
    } else {
        set_grown_mask(cpu)
    };
    if !accepted {
        return Err(PinError::Refused { cpu, error: io::Error::last_os_error() });
    }
    let allowed = allowed_cpus().map_err(PinError::Unreadable)?;
    if allowed == [cpu] { Ok(()) } else { Err(PinError::NotInForce { cpu, allowed }) }
}

/// Sets a mask as long as `cpu` needs; `false` leaves the reason in errno.
fn set_grown_mask(cpu: u32) -> bool {
    let mut mask = vec![0_u64; cpu as usize / 64 + 1];
    mask[cpu as usize / 64] |= 1 << (cpu % 64);
    let bytes = size_of_val(mask.as_slice());
    // SAFETY: the pointer covers `bytes` bytes for the length of the call; the kernel only reads.
    unsafe { libc::sched_setaffinity(0, bytes, mask.as_ptr().cast()) == 0 }
}

/// Lists the CPUs on which the calling thread may run, in ascending order.
///
/// # Errors
/// When the kernel cannot be asked.
pub fn allowed_cpus() -> io::Result<Vec<u32>> {
    let mut words = FIXED_MASK_CPUS as usize / 64;
    loop {
        let mut mask = vec![0_u64; words];
        let bytes = size_of_val(mask.as_slice());
        // SAFETY: the pointer covers `bytes` writable bytes. The system call is used rather than
        // glibc's wrapper because it tells how many bytes it wrote.
        let wrote =
            unsafe { libc::syscall(libc::SYS_sched_getaffinity, 0, bytes, mask.as_mut_ptr()) };
        if wrote >= 0 {
            return Ok(bits_of(&mask));
        }
        let error = io::Error::last_os_error();
        if error.raw_os_error() != Some(libc::EINVAL) || words * 64 >= MOST_CPUS {
            return Err(error);
        }
        words *= 2;
    }
}

fn bits_of(mask: &[u64]) -> Vec<u32> {
    let mut cpus = Vec::new();
    for (index, &word) in (0_u32..).zip(mask) {
        cpus.extend((0..64).filter(|bit| word >> bit & 1 == 1).map(|bit| index * 64 + bit));
    }
    cpus
}

/// Tells on which CPU the calling thread runs just now.
pub fn current_cpu() -> Option<u32> {
    // SAFETY: takes nothing and touches nothing.
    u32::try_from(unsafe { libc::sched_getcpu() }).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pins_to_every_allowed_cpu_and_reads_it_back() {
        let allowed = allowed_cpus().unwrap();
        for cpu in allowed.clone() {
            std::thread::spawn(move || {
                pin_to(cpu).unwrap();
                assert_eq!(current_cpu(), Some(cpu));
            })
            .join()
            .unwrap();
        }
        assert_eq!(allowed_cpus().unwrap(), allowed, "the pins were the other threads'");
    }

    #[test]
    fn refuses_absent_cpus_with_errno_on_both_sides_of_the_fixed_mask() {
        for cpu in [1000, 1023, 1024, 5000, 70_000] {
            if allowed_cpus().unwrap().contains(&cpu) {
                println!("SKIPPED {cpu}: this machine has it");
                continue;
            }
            let refused = std::thread::spawn(move || pin_to(cpu)).join().unwrap();
            match refused {
                Err(PinError::Refused { cpu: named, error }) => {
                    assert_eq!(named, cpu);
                    assert_eq!(error.raw_os_error(), Some(libc::EINVAL), "{error}");
                }
                other => panic!("CPU {cpu}: {other:?}"),
            }
        }
    }

    #[test]
    fn reads_bits_beyond_the_first_word() {
        assert_eq!(bits_of(&[1, 0, 1 << 63]), [0, 191]);
    }
}
