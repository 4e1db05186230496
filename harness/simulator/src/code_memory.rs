//! Memory for generated code: written through one view, executed through another.
//!
//! No page is writable and executable at once, so it works where the kernel refuses such pages.

use core::ptr;
use std::io;
use std::os::fd::FromRawFd;

use memmap2::{MmapMut, MmapOptions, MmapRaw};

/// Room for generated code. A full cache is emptied and filled anew.
pub(crate) const CODE_BYTES: usize = 256 << 20;

/// The two views.
#[derive(Debug)]
pub(crate) struct CodeMemory {
    write: MmapMut,
    execute: Execute,
    used: usize,
}

#[derive(Debug)]
enum Execute {
    /// Near the program, so that its data can be reached relative to the instruction pointer.
    Near(*mut libc::c_void),
    Anywhere(MmapRaw),
}

impl CodeMemory {
    /// Maps both views.
    ///
    /// # Errors
    /// What the operating system said; a refusal of executable memory among others.
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: a constant name with its terminator.
        let file = unsafe { libc::memfd_create(c"simulated code".as_ptr(), libc::MFD_CLOEXEC) };
        if file < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a fresh descriptor that nobody else owns.
        let file = unsafe { std::fs::File::from_raw_fd(file) };
        file.set_len(CODE_BYTES as u64)?;
        // SAFETY: the file is anonymous: nobody else can change or shorten it.
        let write = unsafe { MmapOptions::new().len(CODE_BYTES).map_mut(&file)? };
        let execute = match Self::near(&file) {
            Some(view) => Execute::Near(view),
            // SAFETY: as above.
            None => Execute::Anywhere(MmapRaw::from(unsafe {
                MmapOptions::new().len(CODE_BYTES).map_exec(&file)?
            })),
        };
        Ok(Self { write, execute, used: 0 })
    }

    /// Tries to map the executable view within reach of this library's own code.
    fn near(file: &std::fs::File) -> Option<*mut libc::c_void> {
        use std::os::fd::AsRawFd;
        let here = (Self::near as *const ()).addr() & !0x3fff_ffff;
        // Below the program is nothing but what was asked for; above it lies its heap.
        (1..=1_usize).find_map(|gigabytes| {
            let address = here.checked_sub(gigabytes << 30)?;
            // SAFETY: a new mapping at an address where nothing is mapped.
            let view = unsafe {
                libc::mmap(
                    ptr::without_provenance_mut(address),
                    CODE_BYTES,
                    libc::PROT_READ | libc::PROT_EXEC,
                    libc::MAP_SHARED | libc::MAP_FIXED_NOREPLACE,
                    file.as_raw_fd(),
                    0,
                )
            };
            (view.addr() == address).then_some(view)
        })
    }

    /// Gives the address at which the next byte will be executed.
    pub(crate) fn here(&self) -> u64 {
        self.base() + self.used as u64
    }

    /// Gives the address of the first byte.
    pub(crate) fn base(&self) -> u64 {
        match &self.execute {
            Execute::Near(view) => view.addr() as u64,
            Execute::Anywhere(view) => view.as_ptr().addr() as u64,
        }
    }

    /// Gives the bytes that are left.
    pub(crate) fn room(&self) -> usize {
        CODE_BYTES - self.used
    }

    /// Appends code.
    pub(crate) fn append(&mut self, code: &[u8]) {
        self.write[self.used..self.used + code.len()].copy_from_slice(code);
        self.used += code.len();
    }

    /// Overwrites four bytes at an executed address: the distance of a jump.
    pub(crate) fn patch(&mut self, address: u64, distance: i32) {
        let at = (address - self.base()) as usize;
        self.write[at..at + 4].copy_from_slice(&distance.to_le_bytes());
    }

    /// Forgets all code after `keep` bytes.
    pub(crate) fn truncate(&mut self, keep: usize) {
        self.used = keep;
    }
}

impl Drop for CodeMemory {
    fn drop(&mut self) {
        if let Execute::Near(view) = self.execute {
            // SAFETY: mapped by `near` with this length; no code of it runs any more.
            unsafe { libc::munmap(view, CODE_BYTES) };
        }
    }
}
