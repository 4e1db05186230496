//! Memory mappings: really performed, at addresses that do not depend on the host process.
//!
//! What the guest leaves to the kernel goes to the lowest free place of a region of ours; what it
//! fixes stays where it says. A change of the mappings costs a system call and, for want of a
//! figure of its own, as much as a page fault.

use libc::c_long;

use super::{Call, Caller, Effect, Errno, Handler, Kernel, PAGE_BYTES, Reply, perform, value};

const FIXED: u64 = libc::MAP_FIXED as u64;
const FIXED_NOREPLACE: u64 = libc::MAP_FIXED_NOREPLACE as u64;
const LOW: u64 = libc::MAP_32BIT as u64;
const POPULATE: u64 = (libc::MAP_POPULATE | libc::MAP_LOCKED) as u64;
const HUGE: u64 = libc::MAP_HUGETLB as u64;
const HUGE_SHIFT: u32 = 26;
const HUGE_BYTES: u64 = 2 << 20;
/// How often a place is looked for again after somebody else was faster.
const ATTEMPTS: usize = 16;

const MOVE: u64 = libc::MREMAP_MAYMOVE as u64;
const MOVE_FIXED: u64 = libc::MREMAP_FIXED as u64;
const KEEP_OLD: u64 = libc::MREMAP_DONTUNMAP as u64;

pub(super) fn handler(number: c_long) -> Option<Handler> {
    Some(match number {
        libc::SYS_mmap => mmap,
        libc::SYS_munmap => munmap,
        libc::SYS_mremap => mremap,
        libc::SYS_madvise => madvise,
        libc::SYS_mprotect | libc::SYS_pkey_mprotect => |kernel, _, call| {
            let [start, bytes, ..] = call.arguments;
            let result = perform(call.number as c_long, &call.arguments)?;
            kernel.remapped(start, round_up(bytes)?);
            value(result)
        },
        libc::SYS_brk => |kernel, _, call| {
            // The C library and the other threads of the process share the real break.
            let before = perform(libc::SYS_brk, &[0; 6])? as u64;
            let after = perform(libc::SYS_brk, &call.arguments)? as u64;
            if after < before {
                kernel.memory.leave(round_up(after)?, round_up(before)?);
                kernel.remapped(after, before - after);
            }
            value(after as i64)
        },
        libc::SYS_mlock | libc::SYS_mlock2 => |kernel, caller, call| {
            let [start, bytes, ..] = call.arguments;
            let result = perform(call.number as c_long, &call.arguments)?;
            kernel.touch_all(caller, start, start.saturating_add(bytes));
            value(result)
        },
        libc::SYS_munlock | libc::SYS_msync => {
            |_, _, call| value(perform(call.number as c_long, &call.arguments)?)
        }
        libc::SYS_mincore => |kernel, _, call| {
            let [_, bytes, vector, ..] = call.arguments;
            let result = perform(libc::SYS_mincore, &call.arguments)?;
            kernel.wrote(vector, bytes.div_ceil(PAGE_BYTES));
            value(result)
        },
        _ => return None,
    })
}

fn round_up(bytes: u64) -> Result<u64, Errno> {
    bytes.checked_next_multiple_of(PAGE_BYTES).ok_or(Errno(libc::ENOMEM))
}

fn mmap(kernel: &mut Kernel, caller: Caller, call: &Call) -> Reply {
    let [hint, bytes, _, flags, ..] = call.arguments;
    if bytes == 0 {
        return Err(Errno(libc::EINVAL));
    }
    let alignment = match flags & HUGE != 0 {
        true => match flags >> HUGE_SHIFT & 63 {
            0 => HUGE_BYTES,
            shift => 1 << shift,
        },
        // As Linux does, so that huge pages can be used.
        false if bytes >= HUGE_BYTES => HUGE_BYTES,
        false => PAGE_BYTES,
    };
    let unit = if flags & HUGE != 0 { alignment } else { PAGE_BYTES };
    let size = bytes.checked_next_multiple_of(unit).ok_or(Errno(libc::ENOMEM))?;
    let start = if flags & (FIXED | FIXED_NOREPLACE | LOW) != 0 {
        perform(libc::SYS_mmap, &call.arguments)? as u64
    } else {
        kernel.map_free(hint, size, alignment, call)?
    };
    let end = start + size;
    kernel.memory.enter(start, end);
    kernel.remapped(start, size);
    if flags & POPULATE != 0 {
        kernel.touch_all(caller, start, end);
    }
    value(start as i64)
}

fn munmap(kernel: &mut Kernel, _: Caller, call: &Call) -> Reply {
    let [start, bytes, ..] = call.arguments;
    let result = perform(libc::SYS_munmap, &call.arguments)?;
    let size = round_up(bytes)?;
    kernel.memory.leave(start, start + size);
    kernel.remapped(start, size);
    value(result)
}

fn mremap(kernel: &mut Kernel, _: Caller, call: &Call) -> Reply {
    let [old, old_bytes, new_bytes, flags, ..] = call.arguments;
    let (old_size, new_size) = (round_up(old_bytes)?, round_up(new_bytes)?);
    let old_end = old.checked_add(old_size).ok_or(Errno(libc::EINVAL))?;
    let needs_move = flags & (MOVE_FIXED | KEEP_OLD) != 0 || old_size == 0;
    if !old.is_multiple_of(PAGE_BYTES)
        || new_size == 0
        || flags & !(MOVE | MOVE_FIXED | KEEP_OLD) != 0
        || needs_move && flags & MOVE == 0
    {
        return Err(Errno(libc::EINVAL));
    }
    // Within a mapping that shrinks or stays, and on into free pages of the region, nothing moves.
    let grown_end = old.checked_add(new_size).ok_or(Errno(libc::EINVAL))?;
    let grows_here = kernel.memory.places(old) && kernel.memory.is_free(old_end, grown_end);
    let mut in_place = [old, old_bytes, new_bytes, 0, 0, 0];
    if !needs_move && (new_size <= old_size || grows_here || flags & MOVE == 0) {
        match perform(libc::SYS_mremap, &in_place) {
            Ok(result) => {
                if new_size <= old_size {
                    kernel.memory.leave(grown_end, old_end);
                } else {
                    kernel.memory.relocate((old, old_end), (old, grown_end));
                }
                kernel.remapped(old, old_size.max(new_size));
                return value(result);
            }
            Err(error) if flags & MOVE == 0 || error != Errno(libc::ENOMEM) => return Err(error),
            Err(_) => {}
        }
    }
    let new = if flags & MOVE_FIXED != 0 {
        perform(libc::SYS_mremap, &call.arguments)? as u64
    } else {
        let alignment = if new_size >= HUGE_BYTES { HUGE_BYTES } else { PAGE_BYTES };
        let place = kernel.reserve(new_size, alignment)?;
        in_place[3] = flags | MOVE_FIXED;
        in_place[4] = place;
        match perform(libc::SYS_mremap, &in_place) {
            Ok(result) => result as u64,
            Err(error) => {
                perform(libc::SYS_munmap, &[place, new_size, 0, 0, 0, 0])?;
                return Err(error);
            }
        }
    };
    kernel.memory.relocate((old, old_end), (new, new + new_size));
    if flags & KEEP_OLD != 0 {
        kernel.memory.enter(old, old_end);
    }
    kernel.remapped(old, old_size);
    kernel.remapped(new, new_size);
    value(new as i64)
}

fn madvise(kernel: &mut Kernel, caller: Caller, call: &Call) -> Reply {
    let [start, bytes, advice, ..] = call.arguments;
    let result = perform(libc::SYS_madvise, &call.arguments)?;
    let size = round_up(bytes)?;
    match advice as i32 {
        libc::MADV_DONTNEED | libc::MADV_REMOVE => {
            kernel.memory.forget(start, start + size);
            kernel.remapped(start, size);
        }
        libc::MADV_POPULATE_READ | libc::MADV_POPULATE_WRITE => {
            kernel.touch_all(caller, start, start + size);
        }
        _ => {}
    }
    value(result)
}

impl Kernel {
    /// Notes and charges a change of the mappings.
    fn remapped(&mut self, address: u64, bytes: u64) {
        if bytes > 0 {
            self.charge += self.machine.page_fault_ps();
            self.effects.push_back(Effect::Remapped { address, bytes });
        }
    }

    /// Makes a mapping at the guest's hint if that is free and in the region, else at a place of
    /// ours.
    fn map_free(
        &mut self,
        hint: u64,
        size: u64,
        alignment: u64,
        call: &Call,
    ) -> Result<u64, Errno> {
        let hint = hint / PAGE_BYTES * PAGE_BYTES;
        let end = hint.saturating_add(size);
        let mut hinted = self.memory.is_free(hint, end) && hint.is_multiple_of(alignment);
        for _ in 0..ATTEMPTS {
            let place = match hinted {
                true => Some(hint),
                false => self.memory.place(size, alignment),
            };
            let mut arguments = call.arguments;
            arguments[0] = place.ok_or(Errno(libc::ENOMEM))?;
            arguments[3] |= FIXED_NOREPLACE;
            match perform(libc::SYS_mmap, &arguments) {
                Err(Errno(libc::EEXIST)) => {
                    hinted = false;
                    self.memory.look_around();
                }
                other => return other.map(|start| start as u64),
            }
        }
        Err(Errno(libc::ENOMEM))
    }

    /// Takes a free place with pages that cannot be used yet.
    fn reserve(&mut self, size: u64, alignment: u64) -> Result<u64, Errno> {
        let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE) as u64;
        let protection = libc::PROT_NONE as u64;
        let arguments = [0, size, protection, flags, u64::MAX, 0];
        let call = Call { number: libc::SYS_mmap as u64, arguments };
        self.map_free(0, size, alignment, &call)
    }

    /// Touches and charges all pages of a range.
    fn touch_all(&mut self, caller: Caller, start: u64, end: u64) {
        for page in start / PAGE_BYTES..end.div_ceil(PAGE_BYTES) {
            if self.memory.home(page).is_none() {
                self.touch(page, caller.thread, caller.cpu);
                self.charge += self.machine.page_fault_ps();
            }
        }
    }
}
