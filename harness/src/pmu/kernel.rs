//! The kernel's interface: `perf_event_open`, the page that it shares with each counter, `rdpmc`.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, RawFd};

use memmap2::{Mmap, MmapOptions};

use super::{Attributes, OneReading, Perf, Reading};

/// Bytes of the first version of `perf_event_attr`.
const ATTRIBUTES_BYTES: u64 = 64;

/// Exclude the kernel and the hypervisor: what an ordinary user may count.
const USER_ONLY: u64 = 1 << 5 | 1 << 6;

/// Give both times, and all counters of a group in one reading.
const TIMES_AND_GROUP: u64 = 1 | 1 << 1 | 1 << 3;

/// Bytes of the page that is shared with the kernel.
const PAGE_BYTES: usize = 4096;

/// This host's kernel.
#[derive(Debug, Clone, Copy)]
pub struct Kernel;

/// An open counter.
#[derive(Debug)]
pub struct Counter {
    file: File,
    /// `None` where the kernel does not share it.
    page: Option<Mmap>,
}

impl Perf for Kernel {
    type Counter = Counter;

    fn open(&self, attributes: Attributes, leader: Option<&Counter>) -> io::Result<Counter> {
        const CLOSE_ON_EXEC: u64 = 1 << 3;
        const THIS_THREAD: i32 = 0;
        const ANY_CPU: i32 = -1;
        let Attributes { kind, config } = attributes;
        let words = [
            u64::from(kind) | ATTRIBUTES_BYTES << 32,
            config,
            0,
            0,
            TIMES_AND_GROUP,
            USER_ONLY,
            0,
            0,
        ];
        let group: RawFd = leader.map_or(-1, |leader| leader.file.as_raw_fd());
        // SAFETY: the attributes are as many bytes as their size field says, and are only read.
        let descriptor = unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                words.as_ptr(),
                THIS_THREAD,
                ANY_CPU,
                group,
                CLOSE_ON_EXEC,
            )
        };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        let descriptor = RawFd::try_from(descriptor).map_err(io::Error::other)?;
        // SAFETY: the kernel has just made the descriptor, and nobody else has it.
        let file = unsafe { File::from_raw_fd(descriptor) };
        // SAFETY: the page is the kernel's and is read as words that may change, see `at`.
        let page = unsafe { MmapOptions::new().len(PAGE_BYTES).map(&file) };
        Ok(Counter { file, page: page.ok() })
    }

    fn read(&self, leader: &Counter, counters: usize) -> io::Result<Reading> {
        const HEAD: usize = 3;
        let mut bytes = vec![0_u8; (HEAD + counters) * 8];
        let got = (&leader.file).read(&mut bytes)?;
        let words: Vec<u64> = bytes[..got]
            .chunks_exact(8)
            .map(|word| u64::from_ne_bytes(word.try_into().unwrap_or_default()))
            .collect();
        match words.as_slice() {
            [_, enabled_ns, running_ns, values @ ..] => Ok(Reading {
                enabled_ns: *enabled_ns,
                running_ns: *running_ns,
                values: values.to_vec(),
            }),
            _ => Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
        }
    }

    fn read_in_user_space(&self, counter: &Counter) -> Option<OneReading> {
        let page = counter.page.as_ref()?;
        // The kernel changes the page on this CPU only, while this thread does not run.
        for _ in 0..100 {
            let lock = at::<u32>(page, LOCK)?;
            let reading = read_page(page)?;
            if at::<u32>(page, LOCK)? == lock {
                return Some(reading);
            }
        }
        None
    }

    fn device(&self, path: &str) -> Option<String> {
        fs::read_to_string(format!("/sys/bus/event_source/devices/{path}")).ok()
    }

    fn cpuinfo(&self) -> String {
        fs::read_to_string("/proc/cpuinfo").unwrap_or_default()
    }
}

// Where the fields of `perf_event_mmap_page` stand.
const LOCK: usize = 8;
const INDEX: usize = 12;
const OFFSET: usize = 16;
const ENABLED: usize = 24;
const RUNNING: usize = 32;
const CAPABILITIES: usize = 40;
const WIDTH: usize = 48;

/// Reads a field that the kernel may change at any time.
fn at<T: Copy>(page: &Mmap, offset: usize) -> Option<T> {
    let field = page.get(offset..offset + size_of::<T>())?;
    // SAFETY: the bytes lie inside the page and are aligned for it, as all its fields are; any bit
    // pattern is a number. Volatile, because the kernel writes there.
    Some(unsafe { field.as_ptr().cast::<T>().read_volatile() })
}

/// Reads a counter once; `None` where it is not on the hardware or may not be read.
fn read_page(page: &Mmap) -> Option<OneReading> {
    const MAY_BE_READ: u64 = 1 << 2;
    let (index, offset) = (at::<u32>(page, INDEX)?, at::<u64>(page, OFFSET)?);
    let (enabled_ns, running_ns) = (at::<u64>(page, ENABLED)?, at::<u64>(page, RUNNING)?);
    let (capabilities, width) = (at::<u64>(page, CAPABILITIES)?, at::<u16>(page, WIDTH)?);
    if index == 0 || capabilities & MAY_BE_READ == 0 {
        return None;
    }
    let value = offset.wrapping_add(extended(hardware_counter(index - 1)?, width)?);
    Some(OneReading { enabled_ns, running_ns, value })
}

/// Extends the sign of a counter of so many bits.
fn extended(raw: u64, width: u16) -> Option<u64> {
    let shift = 64_u32.checked_sub(u32::from(width)).filter(|&shift| shift < 64)?;
    Some((((raw << shift) as i64) >> shift) as u64)
}

#[cfg(target_arch = "x86_64")]
fn hardware_counter(index: u32) -> Option<u64> {
    let (low, high): (u32, u32);
    // SAFETY: reads a counter; the kernel has just said, on this thread's page, that it may be read.
    unsafe {
        core::arch::asm!(
            "rdpmc",
            in("ecx") index,
            out("eax") low,
            out("edx") high,
            options(nostack),
        );
    }
    Some(u64::from(high) << 32 | u64::from(low))
}

#[cfg(not(target_arch = "x86_64"))]
fn hardware_counter(_index: u32) -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_are_extended() {
        assert_eq!(extended(0x7fff_ffff_ffff, 48), Some(0x7fff_ffff_ffff));
        assert_eq!(extended(0x8000_0000_0000, 48), Some(0xffff_8000_0000_0000));
        assert_eq!(extended(5, 64), Some(5));
        assert_eq!((extended(5, 0), extended(5, 65)), (None, None));
    }

    /// Counts of the kernel's own events need no hardware: the system calls, the group's format and
    /// the times are the same.
    #[test]
    fn a_group_of_software_events_counts_page_faults() {
        const SOFTWARE: u32 = 1;
        const PAGE_FAULTS: u64 = 2;
        const MINOR_FAULTS: u64 = 5;
        let open = |config, leader| Kernel.open(Attributes { kind: SOFTWARE, config }, leader);
        let leader = match open(PAGE_FAULTS, None) {
            Ok(leader) => leader,
            Err(error) => {
                println!("SKIPPED: perf_event_open: {error}");
                return;
            }
        };
        let _second = open(MINOR_FAULTS, Some(&leader)).unwrap();
        let before = Kernel.read(&leader, 2).unwrap();
        let pages = 64;
        let mut memory = MmapOptions::new().len(pages * PAGE_BYTES).map_anon().unwrap();
        let advised = memory.advise(memmap2::Advice::NoHugePage);
        println!("no huge pages: {advised:?}");
        (0..pages).for_each(|page| memory[page * PAGE_BYTES] = 1);
        let after = Kernel.read(&leader, 2).unwrap();
        assert_eq!(after.values.len(), 2);
        assert!(after.values[0] - before.values[0] >= pages as u64, "{before:?} {after:?}");
        assert!(after.enabled_ns > before.enabled_ns);
        assert_eq!(after.enabled_ns - before.enabled_ns, after.running_ns - before.running_ns);
        assert_eq!(Kernel.read_in_user_space(&leader), None, "software events have no register");
    }
}
