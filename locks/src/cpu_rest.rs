//! Relax policies that put the CPU to rest between two looks, where it has an instruction for that.
//!
//! | policy | instruction | asked by | where it is missing |
//! |---|---|---|---|
//! | [`Tpause`] | `tpause` for so many cycles of the time-stamp counter, in the lighter state C0.1 | CPUID 7, ECX bit 5 (WAITPKG) | one hint |
//! | [`Mwaitx`] | `monitorx` on a byte of its own stack, `mwaitx` with a timer | CPUID 8000_0001, ECX bit 29 (MONITORX) | one hint |
//! | [`Wfe`] | `wfe` | AArch64, which has it always | one hint |
//!
//! A policy does not know which word its waiter waits for, so each rests for a time, not until a line
//! changes: a hand-off waits for half of it on average. `umwait` would need the word, and without
//! it does what `tpause` does. `wfe` ends at the next event: under Linux that of the timer's event
//! stream, each 100 µs or so, which suits long waits only. A hypervisor may take `tpause` and
//! `mwaitx` from its guests, and CPUID then says so. What CPUID says is asked once and kept.

use crate::relax::Relax;
use crate::sync::spin_loop;

/// Rests for about `CYCLES` of the time-stamp counter by `tpause`, or gives one hint.
///
/// ```
/// use locks::{Mutex, Tpause, TtasLock};
/// static TOTAL: Mutex<u64, TtasLock<Tpause<500>>> = Mutex::new(0);
/// *TOTAL.lock() += 1;
/// assert_eq!(*TOTAL.lock(), 1);
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct Tpause<const CYCLES: u32 = 1000>;

/// Rests for about `CYCLES` of the time-stamp counter by `mwaitx`, or gives one hint.
#[derive(Debug, Clone, Copy, Default)]
pub struct Mwaitx<const CYCLES: u32 = 1000>;

/// Rests until the next event by `wfe`, or gives one hint.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wfe;

impl<const CYCLES: u32> Tpause<CYCLES> {
    /// Whether this CPU has the instruction.
    pub fn is_available() -> bool {
        instructions::has_tpause()
    }
}

impl<const CYCLES: u32> Mwaitx<CYCLES> {
    /// Whether this CPU has the instruction.
    pub fn is_available() -> bool {
        instructions::has_mwaitx()
    }
}

impl Wfe {
    /// Whether this CPU has the instruction.
    pub const fn is_available() -> bool {
        cfg!(all(target_arch = "aarch64", not(miri)))
    }
}

impl<const CYCLES: u32> Relax for Tpause<CYCLES> {
    #[inline(always)]
    fn new() -> Self {
        Self
    }

    #[inline]
    fn relax(&mut self) {
        if Self::is_available() {
            instructions::tpause(CYCLES);
        } else {
            spin_loop();
        }
    }
}

impl<const CYCLES: u32> Relax for Mwaitx<CYCLES> {
    #[inline(always)]
    fn new() -> Self {
        Self
    }

    #[inline]
    fn relax(&mut self) {
        if Self::is_available() {
            instructions::mwaitx(CYCLES);
        } else {
            spin_loop();
        }
    }
}

impl Relax for Wfe {
    #[inline(always)]
    fn new() -> Self {
        Self
    }

    #[inline]
    fn relax(&mut self) {
        #[cfg(all(target_arch = "aarch64", not(miri)))]
        // SAFETY: the instruction waits for an event, and touches neither memory nor registers.
        unsafe {
            core::arch::asm!("wfe", options(nomem, nostack, preserves_flags))
        };
        #[cfg(not(all(target_arch = "aarch64", not(miri))))]
        spin_loop();
    }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod instructions {
    use core::arch::asm;
    use core::arch::x86_64::{__cpuid, __cpuid_count, _rdtsc};

    use crate::sync::atomic::{AtomicU8, Ordering};

    /// What CPUID has said: nothing yet, or bits, of which this one says that it was asked.
    static SAID: AtomicU8 = AtomicU8::new(0);
    const ASKED: u8 = 1;
    const TPAUSE: u8 = 2;
    const MWAITX: u8 = 4;

    const WAITPKG: u32 = 1 << 5;
    const MONITORX: u32 = 1 << 29;

    pub(super) fn has_tpause() -> bool {
        said() & TPAUSE != 0
    }

    pub(super) fn has_mwaitx() -> bool {
        said() & MWAITX != 0
    }

    #[inline]
    fn said() -> u8 {
        // ORDERING: Relaxed - whoever asks gets the same answer.
        match SAID.load(Ordering::Relaxed) {
            0 => ask(),
            said => said,
        }
    }

    #[cold]
    fn ask() -> u8 {
        let leaves = __cpuid(0).eax;
        let extended = __cpuid(0x8000_0000).eax;
        let mut said = ASKED;
        if leaves >= 7 && __cpuid_count(7, 0).ecx & WAITPKG != 0 {
            said |= TPAUSE;
        }
        if extended >= 0x8000_0001 && __cpuid(0x8000_0001).ecx & MONITORX != 0 {
            said |= MWAITX;
        }
        // ORDERING: Relaxed - as in `said`.
        SAID.store(said, Ordering::Relaxed);
        said
    }

    /// Rests; only where `has_tpause`.
    #[inline]
    pub(super) fn tpause(cycles: u32) {
        // SAFETY: reads a counter.
        let end = unsafe { _rdtsc() }.wrapping_add(cycles.into());
        // SAFETY: CPUID has the instruction. It waits until the counter has reached `edx:eax` or
        // something comes between, and changes the flags only; 1 asks for the state C0.1.
        unsafe {
            asm!(
                "tpause ecx",
                in("ecx") 1,
                in("eax") end as u32,
                in("edx") (end >> 32) as u32,
                options(nomem, nostack),
            );
        }
    }

    /// Rests; only where `has_mwaitx`.
    #[inline]
    pub(super) fn mwaitx(cycles: u32) {
        let watched = 0_u8;
        // SAFETY: CPUID has the instruction; it marks a line of our own stack as watched.
        unsafe {
            asm!(
                "monitorx",
                in("rax") &raw const watched,
                in("ecx") 0,
                in("edx") 0,
                options(readonly, nostack, preserves_flags),
            );
        }
        // SAFETY: as above; it waits for a write to that line, for the timer that bit 1 of `ecx` asks
        // for with the cycles in `ebx`, or for an interrupt, in the lightest state (`eax`). `rbx` is
        // the compiler's, and gets its value back.
        unsafe {
            asm!(
                "xchg {cycles}, rbx",
                "mwaitx",
                "xchg {cycles}, rbx",
                cycles = inout(reg) u64::from(cycles) => _,
                in("eax") 0xf0,
                in("ecx") 2,
                options(nomem, nostack, preserves_flags),
            );
        }
    }
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
mod instructions {
    pub(super) fn has_tpause() -> bool {
        false
    }

    pub(super) fn has_mwaitx() -> bool {
        false
    }

    pub(super) fn tpause(_cycles: u32) {}

    pub(super) fn mwaitx(_cycles: u32) {}
}
