//! Mappings are real, and where they go is decided here.

use std::ops::Range;
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::super::placement::Memory;
use super::{Effect, Guest, error};

/// A region that no run places anything in.
const REGION: Range<u64> = 0x1f00_0000_0000..0x2000_0000_0000;
const PAGE: u64 = 4096;
const HUGE: u64 = 2 << 20;
const ANONYMOUS: u64 = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as u64;
const USABLE: u64 = (libc::PROT_READ | libc::PROT_WRITE) as u64;
const NO_FILE: u64 = u64::MAX;

/// Tests of one process share its address space, so that only one at a time can say where
/// mappings go.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A guest that unmaps what it has mapped.
struct Mapper {
    guest: Guest,
    mapped: Vec<(u64, u64)>,
    _alone: MutexGuard<'static, ()>,
}

impl Mapper {
    fn new() -> Mapper {
        Mapper::within(alone())
    }

    fn within(alone: MutexGuard<'static, ()>) -> Mapper {
        let mut guest = Guest::new(2);
        guest.kernel.memory = Memory::new(REGION);
        Mapper { guest, mapped: Vec::new(), _alone: alone }
    }

    #[track_caller]
    fn map(&mut self, bytes: u64) -> u64 {
        self.map_with(0, bytes, ANONYMOUS)
    }

    #[track_caller]
    fn map_with(&mut self, hint: u64, bytes: u64, flags: u64) -> u64 {
        let arguments = [hint, bytes, USABLE, flags, NO_FILE, 0];
        let start = self.guest.result(libc::SYS_mmap, &arguments);
        assert!(start > 0, "{start}");
        self.mapped.push((start as u64, bytes));
        start as u64
    }

    #[track_caller]
    fn unmap(&mut self, start: u64, bytes: u64) {
        assert_eq!(self.guest.result(libc::SYS_munmap, &[start, bytes]), 0);
    }

    fn remap(&mut self, old: u64, old_bytes: u64, bytes: u64, flags: i32, target: u64) -> i64 {
        let arguments = [old, old_bytes, bytes, flags as u64, target];
        let start = self.guest.result(libc::SYS_mremap, &arguments);
        if start > 0 {
            self.mapped.push((start as u64, bytes));
        }
        start
    }
}

impl Drop for Mapper {
    fn drop(&mut self) {
        for (start, bytes) in std::mem::take(&mut self.mapped) {
            self.guest.result(libc::SYS_munmap, &[start, bytes]);
        }
    }
}

/// Writes a byte of a mapping that the test has made.
fn poke(address: u64, byte: u8) {
    // SAFETY: the tests give addresses of pages that they have mapped for reading and writing.
    unsafe { ptr::with_exposed_provenance_mut::<u8>(address as usize).write_volatile(byte) };
}

fn peek(address: u64) -> u8 {
    // SAFETY: as for `poke`.
    unsafe { ptr::with_exposed_provenance::<u8>(address as usize).read_volatile() }
}

#[test]
fn mappings_go_to_the_lowest_free_place() {
    let mut mapper = Mapper::new();
    let first = mapper.map(PAGE);
    assert_eq!(first, REGION.start);
    assert_eq!(mapper.map(3 * PAGE), first + PAGE);
    assert_eq!(mapper.map(1), first + 4 * PAGE);
    assert_eq!(mapper.map(HUGE), REGION.start + HUGE);
    assert_eq!(mapper.map(HUGE + 1), REGION.start + 2 * HUGE);
    assert_eq!(mapper.map(PAGE), first + 5 * PAGE);
    poke(first, 7);
    assert_eq!(peek(first), 7);
}

#[test]
fn two_runs_map_at_the_same_addresses() {
    let addresses = || {
        let mut mapper = Mapper::new();
        let kept: Vec<u64> = (1..40).map(|pages| mapper.map(pages * 7 % 13 * PAGE + 1)).collect();
        mapper.unmap(kept[3], PAGE);
        kept.into_iter().chain([mapper.map(PAGE)]).collect::<Vec<u64>>()
    };
    assert_eq!(addresses(), addresses());
}

#[test]
fn what_was_freed_is_used_again() {
    let mut mapper = Mapper::new();
    let start = mapper.map(8 * PAGE);
    poke(start + 2 * PAGE, 9);
    mapper.unmap(start + 2 * PAGE, 3 * PAGE);
    assert_eq!(mapper.map(4 * PAGE), start + 8 * PAGE);
    assert_eq!(mapper.map(2 * PAGE), start + 2 * PAGE);
    assert_eq!(peek(start + 2 * PAGE), 0);
    assert_eq!(mapper.map(PAGE), start + 4 * PAGE);
}

#[test]
fn what_others_have_mapped_is_left_alone() {
    let alone = alone();
    let new_only = ANONYMOUS | libc::MAP_FIXED_NOREPLACE as u64;
    let foreign = REGION.start + PAGE;
    let arguments = [foreign, PAGE, USABLE, new_only, NO_FILE, 0];
    assert_eq!(super::super::perform(libc::SYS_mmap, &arguments), Ok(foreign as i64));
    let mut mapper = Mapper::within(alone);
    assert_eq!(mapper.map(2 * PAGE), REGION.start + 2 * PAGE);
    assert_eq!(mapper.map(PAGE), REGION.start);
    // Somebody comes while the run goes on.
    let late = REGION.start + 4 * PAGE;
    let arguments = [late, PAGE, USABLE, new_only, NO_FILE, 0];
    assert_eq!(super::super::perform(libc::SYS_mmap, &arguments), Ok(late as i64));
    assert_eq!(mapper.map(2 * PAGE), late + PAGE);
    for start in [foreign, late] {
        mapper.mapped.push((start, PAGE));
    }
}

#[test]
fn hints_are_taken_inside_of_the_region_only() {
    let mut mapper = Mapper::new();
    let wanted = REGION.start + 100 * PAGE;
    assert_eq!(mapper.map_with(wanted + 5, PAGE, ANONYMOUS), wanted);
    assert_eq!(mapper.map_with(wanted, PAGE, ANONYMOUS), REGION.start);
    assert_eq!(mapper.map_with(0x5000_0000_0000, PAGE, ANONYMOUS), REGION.start + PAGE);
    assert_eq!(mapper.map_with(u64::MAX - 5, PAGE, ANONYMOUS), REGION.start + 2 * PAGE);
}

#[test]
fn fixed_mappings_stay_where_they_are_asked_for() {
    let mut mapper = Mapper::new();
    let start = mapper.map(4 * PAGE);
    poke(start + PAGE, 5);
    let fixed = ANONYMOUS | libc::MAP_FIXED as u64;
    assert_eq!(mapper.map_with(start + PAGE, PAGE, fixed), start + PAGE);
    assert_eq!(peek(start + PAGE), 0);
    let new_only = ANONYMOUS | libc::MAP_FIXED_NOREPLACE as u64;
    let arguments = [start, PAGE, USABLE, new_only, NO_FILE, 0];
    assert_eq!(mapper.guest.result(libc::SYS_mmap, &arguments), error(libc::EEXIST));
    let above = start + 64 * PAGE;
    assert_eq!(mapper.map_with(above, PAGE, new_only), above);
    assert_eq!(mapper.map(60 * PAGE), start + 4 * PAGE);
}

#[test]
fn mappings_that_cannot_be_are_errors() {
    let mut mapper = Mapper::new();
    let mut map = |bytes, flags, file| {
        mapper.guest.result(libc::SYS_mmap, &[0, bytes, USABLE, flags, file, 0])
    };
    assert_eq!(map(0, ANONYMOUS, NO_FILE), error(libc::EINVAL));
    assert_eq!(map(u64::MAX, ANONYMOUS, NO_FILE), error(libc::ENOMEM));
    assert_eq!(map(1 << 46, ANONYMOUS, NO_FILE), error(libc::ENOMEM));
    assert_eq!(map(PAGE, libc::MAP_PRIVATE as u64, NO_FILE), error(libc::EBADF));
    assert_eq!(map(PAGE, libc::MAP_ANONYMOUS as u64, NO_FILE), error(libc::EINVAL));
    assert_eq!(mapper.guest.result(libc::SYS_munmap, &[1, PAGE]), error(libc::EINVAL));
    assert_eq!(mapper.guest.result(libc::SYS_munmap, &[REGION.start, 0]), error(libc::EINVAL));
    // A failed attempt takes no place.
    assert_eq!(mapper.map(PAGE), REGION.start);
}

#[test]
fn changes_are_told_and_charged() {
    let mut mapper = Mapper::new();
    let arguments = [0, PAGE + 1, USABLE, ANONYMOUS, NO_FILE, 0];
    let answer = mapper.guest.answer(0, 0, libc::SYS_mmap, &arguments);
    let machine = mapper.guest.machine.clone();
    assert_eq!(answer.cost, machine.syscall_ps() + machine.page_fault_ps());
    let start = REGION.start;
    let changed = Effect::Remapped { address: start, bytes: 2 * PAGE };
    assert_eq!(mapper.guest.effects(), [changed]);
    mapper.guest.result(libc::SYS_mprotect, &[start, PAGE, 1]);
    assert_eq!(mapper.guest.effects(), [Effect::Remapped { address: start, bytes: PAGE }]);
    assert_eq!(mapper.guest.result(libc::SYS_mprotect, &[start + 1, PAGE, 1]), error(libc::EINVAL));
    assert_eq!(mapper.guest.effects(), []);
    mapper.unmap(start, 2 * PAGE);
    assert_eq!(mapper.guest.effects(), [changed]);
}

#[test]
fn growing_stays_in_place_where_there_is_room() {
    let mut mapper = Mapper::new();
    let start = mapper.map(2 * PAGE);
    poke(start + PAGE, 3);
    assert_eq!(mapper.remap(start, 2 * PAGE, 5 * PAGE, 0, 0), start as i64);
    assert_eq!((peek(start + PAGE), peek(start + 4 * PAGE)), (3, 0));
    assert_eq!(mapper.map(PAGE), start + 5 * PAGE);
    assert_eq!(mapper.remap(start, 5 * PAGE, 6 * PAGE, 0, 0), error(libc::ENOMEM));
    assert_eq!(mapper.remap(start, 5 * PAGE, 2 * PAGE, 0, 0), start as i64);
    assert_eq!(mapper.map(3 * PAGE), start + 2 * PAGE);
}

#[test]
fn growing_moves_with_the_data_where_there_is_none() {
    let mut mapper = Mapper::new();
    let start = mapper.map(2 * PAGE);
    let next = mapper.map(PAGE);
    poke(start, 1);
    poke(start + PAGE, 2);
    mapper.guest.kernel.touch(start / PAGE, 0, 0);
    mapper.guest.kernel.touch(start / PAGE + 1, 0, 100);
    let moved = mapper.remap(start, 2 * PAGE, 4 * PAGE, libc::MREMAP_MAYMOVE, 0) as u64;
    assert_eq!(moved, next + PAGE);
    assert_eq!((peek(moved), peek(moved + PAGE), peek(moved + 3 * PAGE)), (1, 2, 0));
    let home = |page| mapper.guest.kernel.home_of(page);
    let page = moved / PAGE;
    assert_eq!([home(page), home(page + 1), home(page + 2)], [Some(0), Some(1), None]);
    assert_eq!([home(start / PAGE), home(start / PAGE + 1)], [None, None]);
    assert_eq!(mapper.map(2 * PAGE), start);
}

#[test]
fn memory_of_the_host_grows_into_the_region() {
    let arguments = [0, PAGE, USABLE, ANONYMOUS, NO_FILE, 0];
    let mut mapper = Mapper::new();
    let outside = super::super::perform(libc::SYS_mmap, &arguments).expect("memory") as u64;
    poke(outside, 8);
    let moved = mapper.remap(outside, PAGE, 2 * PAGE, libc::MREMAP_MAYMOVE, 0);
    assert_eq!(moved as u64, REGION.start);
    assert_eq!(peek(REGION.start), 8);
}

#[test]
fn remapping_to_a_fixed_place_goes_there() {
    let mut mapper = Mapper::new();
    let start = mapper.map(PAGE);
    let target = mapper.map(2 * PAGE);
    poke(start, 4);
    let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
    assert_eq!(mapper.remap(start, PAGE, PAGE, flags, target), target as i64);
    assert_eq!(peek(target), 4);
    assert_eq!(mapper.map(PAGE), start);
}

#[test]
fn an_old_mapping_can_be_kept() {
    let mut mapper = Mapper::new();
    let start = mapper.map(PAGE);
    poke(start, 4);
    let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_DONTUNMAP;
    let moved = mapper.remap(start, PAGE, PAGE, flags, 0);
    assert_eq!(moved as u64, start + PAGE);
    assert_eq!((peek(start), peek(moved as u64)), (0, 4));
    assert_eq!(mapper.map(PAGE), start + 2 * PAGE);
}

#[test]
fn remaps_that_cannot_be_are_errors() {
    let mut mapper = Mapper::new();
    let start = mapper.map(2 * PAGE);
    let may = libc::MREMAP_MAYMOVE;
    let invalid = error(libc::EINVAL);
    assert_eq!(mapper.remap(start + 1, PAGE, PAGE, may, 0), invalid);
    assert_eq!(mapper.remap(start, PAGE, 0, may, 0), invalid);
    assert_eq!(mapper.remap(start, PAGE, PAGE, 8, 0), invalid);
    assert_eq!(mapper.remap(start, PAGE, PAGE, libc::MREMAP_FIXED, start), invalid);
    assert_eq!(mapper.remap(start, 2 * PAGE, 1 << 46, may, 0), error(libc::ENOMEM));
    let nothing = REGION.start + (1 << 30);
    assert_eq!(mapper.remap(nothing, PAGE, 2 * PAGE, may, 0), error(libc::EFAULT));
    // The place that was taken for the attempt is free again.
    assert_eq!(mapper.map(PAGE), start + 2 * PAGE);
}

#[test]
fn populated_pages_are_touched_and_dropped_ones_are_not() {
    let mut mapper = Mapper::new();
    let start = mapper.map_with(0, 3 * PAGE, ANONYMOUS | libc::MAP_POPULATE as u64);
    let page = start / PAGE;
    let homes = |mapper: &Mapper| [0, 1, 2].map(|index| mapper.guest.kernel.home_of(page + index));
    assert_eq!(homes(&mapper), [Some(0); 3]);
    poke(start + PAGE, 1);
    let dropped = [start + PAGE, PAGE, libc::MADV_DONTNEED as u64];
    assert_eq!(mapper.guest.result(libc::SYS_madvise, &dropped), 0);
    assert_eq!(homes(&mapper), [Some(0), None, Some(0)]);
    assert_eq!(peek(start + PAGE), 0);
    let populate = [start, 3 * PAGE, libc::MADV_POPULATE_WRITE as u64];
    assert_eq!(mapper.guest.result_of(1, libc::SYS_madvise, &populate), 0);
    assert_eq!(homes(&mapper), [Some(0); 3]);
    assert_eq!(mapper.guest.result(libc::SYS_madvise, &[start, PAGE, 9_999]), error(libc::EINVAL));
    mapper.unmap(start, 3 * PAGE);
    assert_eq!(homes(&mapper), [None; 3]);
}

#[test]
fn the_break_is_the_real_one() {
    let mut mapper = Mapper::new();
    let now = mapper.guest.result(libc::SYS_brk, &[0]);
    assert!(now > 0);
    assert_eq!(mapper.guest.result(libc::SYS_brk, &[1]), now);
}

#[test]
fn residency_is_the_real_one() {
    let mut mapper = Mapper::new();
    let start = mapper.map(2 * PAGE);
    poke(start, 1);
    let mut resident = [9_u8; 2];
    let arguments = [start, 2 * PAGE, super::at(&mut resident)];
    assert_eq!(mapper.guest.result(libc::SYS_mincore, &arguments), 0);
    assert_eq!(resident.map(|byte| byte & 1), [1, 0]);
}
