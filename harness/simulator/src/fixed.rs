//! Memory at addresses of our own choice.

use core::ptr;
use std::io;

/// Maps memory to read and write at a fixed address; pages are made when they are touched, and
/// counted by nobody before that.
///
/// # Errors
/// What the operating system said; that something is there already, among others.
pub(crate) fn map(address: usize, bytes: usize) -> io::Result<*mut libc::c_void> {
    // SAFETY: a new anonymous mapping, at an address where nothing is mapped or not at all.
    let mapped = unsafe {
        libc::mmap(
            ptr::without_provenance_mut(address),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE
                | libc::MAP_ANONYMOUS
                | libc::MAP_NORESERVE
                | libc::MAP_FIXED_NOREPLACE,
            -1,
            0,
        )
    };
    if mapped == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    if mapped.addr() != address {
        // A kernel before 4.17 takes the address for a hint.
        // SAFETY: mapped just now, used by nobody.
        unsafe { libc::munmap(mapped, bytes) };
        return Err(io::ErrorKind::AddrInUse.into());
    }
    mapped.expose_provenance();
    Ok(mapped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_where_it_was_asked_for_and_never_over_other_memory() {
        const PLACE: usize = 0x0380_0000_0000;
        let mapped = map(PLACE, 8192).unwrap();
        assert_eq!(mapped.addr(), PLACE);
        assert!(map(PLACE, 4096).is_err(), "it is taken");
        assert!(map(PLACE - 4096, 8192).is_err(), "half of it is taken");
        // SAFETY: mapped above.
        unsafe { libc::munmap(mapped, 8192) };
    }
}
