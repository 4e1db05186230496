//! Copies, fills, comparisons and searches of the C library; allocation; stacks; system calls.

use std::alloc::{Layout, alloc, alloc_zeroed, dealloc};
use std::ffi::{CStr, CString, c_int};
use std::hint::black_box;
use std::mem::MaybeUninit;

use super::{Random, mix, mix_bytes};

/// Pages of bytes: their alignment, which decides the paths of the C library, never varies.
#[repr(C, align(4096))]
struct Pages<const SIZE: usize>([u8; SIZE]);

impl<const SIZE: usize> Pages<SIZE> {
    fn boxed() -> Box<Self> {
        let mut pages = Box::<Self>::new(Self([0; SIZE]));
        for (place, byte) in pages.0.iter_mut().enumerate() {
            *byte = (place * 7 % 251) as u8 + 1;
        }
        pages
    }
}

/// 0, 1, 2, 3, then steps that meet odd sizes up to a page.
fn sizes() -> impl Iterator<Item = usize> {
    (0..=64).chain((65..256).step_by(13)).chain((257..4096).step_by(211)).chain([4095, 4096])
}

#[inline(never)]
pub(crate) fn copy_sizes(ops: u64) -> u64 {
    let (from, mut to) = (Pages::<8192>::boxed(), Pages::<8192>::boxed());
    let mut sum = 0;
    for round in 0..ops {
        for size in sizes() {
            let (source, target) = ((round * 3 % 64) as usize, (round * 5 % 64) as usize);
            to.0[target..target + size].copy_from_slice(&black_box(&from.0)[source..source + size]);
            sum = mix(sum, u64::from(black_box(&to.0)[target + size / 2]));
        }
    }
    black_box(sum)
}

#[inline(never)]
pub(crate) fn copy_large(ops: u64) -> u64 {
    let (from, mut to) = (Pages::<{ 68 << 10 }>::boxed(), Pages::<{ 68 << 10 }>::boxed());
    let mut sum = 0;
    for round in 0..ops {
        let (start, size) = ((round % 37) as usize, black_box(64 << 10));
        to.0[..size].copy_from_slice(&black_box(&from.0)[start..start + size]);
        sum = mix(sum, u64::from(black_box(&to.0)[size - 1]));
        to.0[1..20_000].copy_from_slice(&black_box(&from.0)[start..start + 19_999]);
        sum = mix(sum, u64::from(black_box(&to.0)[19_999]));
    }
    black_box(sum)
}

#[inline(never)]
pub(crate) fn move_overlapping(ops: u64) -> u64 {
    let mut bytes = Pages::<8192>::boxed();
    let mut sum = 0;
    for round in 0..ops {
        let shift = 1 + (round * 11 % 100) as usize;
        for size in [3, 17, 31, 64, 100, 129, 255, 300, 1000, 3000] {
            black_box(&mut bytes.0).copy_within(0..size, shift);
            sum = mix(sum, u64::from(bytes.0[shift + size / 2]));
            black_box(&mut bytes.0).copy_within(shift..shift + size, 2);
            sum = mix(sum, u64::from(bytes.0[2 + size / 2]));
        }
    }
    black_box(sum)
}

#[inline(never)]
pub(crate) fn fill_sizes(ops: u64) -> u64 {
    let mut bytes = Pages::<{ 64 << 10 }>::boxed();
    let mut sum = 0;
    for round in 0..ops {
        let start = (round % 64) as usize;
        for size in sizes() {
            black_box(&mut bytes.0)[start..start + size].fill(size as u8);
            sum = mix(sum, u64::from(bytes.0[start + size / 2]));
        }
        black_box(&mut bytes.0).fill(round as u8);
        sum = mix(sum, u64::from(bytes.0[40_000]));
    }
    black_box(sum)
}

#[inline(never)]
pub(crate) fn compare_sizes(ops: u64) -> u64 {
    let (one, mut two) = (Pages::<4096>::boxed(), Pages::<4096>::boxed());
    let mut sum = 0;
    for round in 0..ops {
        for size in sizes() {
            let (a, b) = (black_box(&one.0[..size]), black_box(&two.0[..size]));
            sum = mix(sum, u64::from(a == b) + a.cmp(b) as u64);
        }
        let place = (round * 97 % 4096) as usize;
        two.0[place] ^= 1;
        for size in sizes().skip(round as usize % 3) {
            let (a, b) = (black_box(&one.0[..size]), black_box(&two.0[..size]));
            sum = mix(sum, u64::from(a == b) + a.cmp(b) as u64);
        }
        two.0[place] ^= 1;
    }
    black_box(sum)
}

#[inline(never)]
pub(crate) fn c_string_length(ops: u64) -> u64 {
    let mut bytes = Pages::<4096>::boxed();
    let mut sum = 0;
    for round in 0..ops {
        for length in [0, 1, 15, 31, 32, 63, 100, 130, 257, 1000] {
            let start = (round * 9 % 70) as usize;
            let kept = std::mem::replace(&mut bytes.0[start + length], 0);
            let text = black_box(&bytes.0[start..]);
            // SAFETY: the byte at `start + length` is zero.
            let measured = unsafe { CStr::from_ptr(text.as_ptr().cast()) };
            sum = mix(sum, measured.count_bytes() as u64);
            sum = mix(sum, CStr::from_bytes_until_nul(text).map_or(0, |c| c.count_bytes() as u64));
            bytes.0[start + length] = kept;
        }
    }
    black_box(sum)
}

#[inline(never)]
pub(crate) fn c_string_search(ops: u64) -> u64 {
    let text = "key=value; another=thing; path=/usr/share/some/where; end of the line";
    let text = CString::new(text).unwrap_or_default();
    let wanted = c"path=";
    let (haystack, needle) = (text.as_ptr(), wanted.as_ptr());
    let mut sum = 0;
    for round in 0..ops * 2 {
        for byte in [b'=', b';', b'/', b'#', b'l'] {
            // SAFETY: `haystack` points to a C string.
            let first = unsafe { libc::strchr(black_box(haystack), c_int::from(byte)) };
            // SAFETY: as above.
            let last = unsafe { libc::strrchr(black_box(haystack), c_int::from(byte)) };
            for found in [first, last] {
                sum = mix(sum, (found as usize).saturating_sub(haystack as usize) as u64 + round);
            }
        }
        // SAFETY: both point to C strings.
        let found = unsafe { libc::strstr(black_box(haystack), needle) };
        sum = mix(sum, (found as usize).saturating_sub(haystack as usize) as u64);
        // SAFETY: both point to C strings.
        let order = unsafe { libc::strcmp(black_box(haystack), needle) };
        // SAFETY: both point to C strings.
        let start = unsafe { libc::strncmp(black_box(haystack).wrapping_add(26), needle, 5) };
        sum = mix(sum, u64::from(order < 0) + u64::from(start == 0) * 2);
        // SAFETY: both point to C strings.
        let span = unsafe { libc::strcspn(black_box(haystack), needle) };
        sum = mix(sum, span as u64);
    }
    black_box(sum)
}

#[inline(never)]
pub(crate) fn byte_search(ops: u64) -> u64 {
    let mut bytes = Pages::<4096>::boxed();
    let mut sum = 0;
    for round in 0..ops {
        for place in [0, 5, 31, 32, 100, 255, 700, 4000] {
            let kept = std::mem::replace(&mut bytes.0[place], 0);
            let slice = black_box(&bytes.0[(round % 5) as usize * 16..]);
            // SAFETY: the slice is as long as said.
            let first = unsafe { libc::memchr(slice.as_ptr().cast(), 0, slice.len()) };
            // SAFETY: the slice is as long as said.
            let last = unsafe { libc::memrchr(slice.as_ptr().cast(), 0, slice.len()) };
            for found in [first, last] {
                sum = mix(sum, (found as usize).saturating_sub(slice.as_ptr() as usize) as u64);
            }
            sum = mix(sum, slice.contains(&0).into());
            sum = mix(sum, slice.iter().position(|&byte| byte == 0).unwrap_or(1) as u64);
            bytes.0[place] = kept;
        }
    }
    black_box(sum)
}

#[inline(never)]
pub(crate) fn boxes(ops: u64) -> u64 {
    let mut sum = 0;
    for round in 0..ops {
        let small: Vec<Box<u64>> = (0..20).map(|value| Box::new(value * round)).collect();
        let arrays: Vec<Box<[u64; 17]>> = (0..10).map(|value| Box::new([value; 17])).collect();
        sum = small.iter().rev().fold(sum, |sum, value| mix(sum, **value));
        sum = arrays.iter().fold(sum, |sum, array| mix(sum, array[3]));
        drop(small);
        let again = black_box(Box::new([round; 40]));
        sum = mix(sum, again[39]);
    }
    black_box(sum)
}

#[inline(never)]
pub(crate) fn reallocation(ops: u64) -> u64 {
    let mut sum = 0;
    for round in 0..ops {
        let (mut one, mut two) = (Vec::<u32>::new(), Vec::<u32>::new());
        for turn in 0..200_u32 {
            one.push(turn);
            if turn % 2 == 0 {
                two.push(turn ^ round as u32);
            }
        }
        one.truncate(33);
        one.shrink_to_fit();
        two.reserve_exact(1000);
        sum = mix(sum, black_box(&one).iter().map(|&value| u64::from(value)).sum());
        sum = mix(sum, black_box(&two).iter().map(|&value| u64::from(value)).sum());
    }
    black_box(sum)
}

#[inline(never)]
pub(crate) fn aligned_allocation(ops: u64) -> u64 {
    let mut sum = 0;
    for round in 0..ops * 3 {
        for (size, align) in [(24, 8), (100, 64), (4096, 4096), (1, 128), (300, 256)] {
            let Ok(layout) = Layout::from_size_align(size, align) else { continue };
            // SAFETY: no size is zero.
            let plain = unsafe { alloc(layout) };
            // SAFETY: no size is zero.
            let zeroed = unsafe { alloc_zeroed(layout) };
            if plain.is_null() || zeroed.is_null() {
                std::alloc::handle_alloc_error(layout);
            }
            // SAFETY: allocated above, at least one byte long.
            unsafe { plain.write_volatile(round as u8) };
            // SAFETY: the last byte of what was allocated and zeroed above.
            let zero = unsafe { zeroed.wrapping_add(size - 1).read_volatile() };
            sum = mix(sum, u64::from(zero) + u64::from((plain as usize).is_multiple_of(align)));
            // SAFETY: allocated above with this layout.
            unsafe { dealloc(plain, layout) };
            // SAFETY: allocated above with this layout.
            unsafe { dealloc(zeroed, layout) };
        }
    }
    black_box(sum)
}

#[inline(never)]
pub(crate) fn mixed_allocation(ops: u64) -> u64 {
    let mut random = Random::new(77);
    let mut held: Vec<Vec<u8>> = (0..32).map(|_| Vec::new()).collect();
    let mut sum = 0;
    for _ in 0..ops * 10 {
        let place = random.below(32) as usize;
        let bound = if random.below(8) == 0 { 5000 } else { 200 };
        let size = random.below(bound) as usize;
        sum = mix(sum, held[place].len() as u64);
        held[place] = Vec::with_capacity(size);
        held[place].resize(size.min(20), size as u8);
    }
    black_box(held.iter().fold(sum, |sum, bytes| mix_bytes(sum, bytes)))
}

#[inline(never)]
pub(crate) fn large_allocation(ops: u64) -> u64 {
    let mut sum = 0;
    for round in 0..ops {
        // Far above the threshold of the C library: mapped, and unmapped at once.
        let mut bytes = black_box(vec![0_u8; 64 << 20]);
        bytes[(round * 4096) as usize] = 3;
        sum = mix(sum, u64::from(bytes[4096]) + u64::from(bytes[0]));
    }
    black_box(sum)
}

#[inline(never)]
pub(crate) fn large_stack_array(ops: u64) -> u64 {
    let mut sum = 0;
    for round in 0..ops * 5 {
        let mut array = MaybeUninit::<[u64; 5000]>::uninit();
        let values = black_box(array.as_mut_ptr().cast::<u64>());
        for place in [0, 100, 2500, 4999] {
            // SAFETY: within the array.
            let cell = unsafe { values.add(place) };
            // SAFETY: within the array; a volatile store is not removed.
            unsafe { cell.write_volatile(round + place as u64) };
            // SAFETY: written above.
            sum = mix(sum, unsafe { cell.read_volatile() });
        }
        sum = mix(sum, black_box([round; 120])[77]);
    }
    black_box(sum)
}

#[inline(never)]
fn descend(depth: u64) -> u64 {
    let frame = black_box([depth; 64]);
    if depth == 0 { 1 } else { descend(depth - 1).wrapping_mul(3) + frame[(depth % 64) as usize] }
}

#[inline(never)]
pub(crate) fn deep_stack(ops: u64) -> u64 {
    let mut sum = 0;
    for round in 0..ops {
        sum = mix(sum, descend(60 + round % 3));
    }
    black_box(sum)
}

#[inline(never)]
pub(crate) fn system_calls(ops: u64) -> u64 {
    let mut sum = 0;
    for round in 0..ops * 3 {
        std::thread::yield_now();
        // SAFETY: takes nothing and never fails.
        let same = unsafe { libc::getppid() } == unsafe { libc::getppid() };
        // SAFETY: an unknown descriptor is an error, not a danger.
        let failed = unsafe { libc::fsync(-1) };
        let code = std::io::Error::last_os_error().raw_os_error().unwrap_or(0);
        sum = mix(sum, round + u64::from(same) + u64::from(failed == -1) + code as u64);
    }
    black_box(sum)
}
