//! Reads and writes what a guest's pointer names, without trusting it.

use core::mem::MaybeUninit;
use core::ptr;

use crate::faults::copy;

/// Reads a value at a guest's address; `None` where nothing is mapped.
pub(crate) fn read<T: Copy>(address: u64) -> Option<T> {
    let mut value = MaybeUninit::<T>::uninit();
    let from = ptr::with_exposed_provenance(address as usize);
    if !copy(value.as_mut_ptr().cast(), from, size_of::<T>()) {
        return None;
    }
    // SAFETY: all bytes were copied, and callers read plain numbers and arrays of them.
    Some(unsafe { value.assume_init() })
}

/// Writes a value at a guest's address; `None` where nothing may be written.
pub(crate) fn write<T: Copy>(address: u64, value: T) -> Option<()> {
    let to = ptr::with_exposed_provenance_mut(address as usize);
    copy(to, (&raw const value).cast(), size_of::<T>()).then_some(())
}

/// Copies bytes at a guest's address; whether all of them could be read.
pub(crate) fn copy_out(address: u64, into: &mut [u8]) -> bool {
    copy(into.as_mut_ptr(), ptr::with_exposed_provenance(address as usize), into.len())
}

/// Copies bytes to a guest's address; whether all of them could be written.
pub(crate) fn copy_in(address: u64, bytes: &[u8]) -> bool {
    copy(ptr::with_exposed_provenance_mut(address as usize), bytes.as_ptr(), bytes.len())
}
