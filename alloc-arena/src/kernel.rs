//! What Linux is asked: policies, pages, limits. Every function says which call failed and why.

use alloc::string::String;
use core::ffi::{c_int, c_long, c_ulong, c_void};
use core::ptr::{self, NonNull};
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};

use super::map_error::MapError;
use super::node_set::{MOST_NODES, NodeSet, Nodes};
use super::placement::{Pages, Policy, Unknown};
use super::procfs;

const MPOL_F_ADDR: c_ulong = 1 << 1;
const MPOL_F_MEMS_ALLOWED: c_ulong = 1 << 2;

/// What stands where the kernel has not answered: a sandbox may answer "done" and do nothing.
const NO_ANSWER: c_int = c_int::MIN;

/// Pages asked about in one call.
const BATCH: usize = 512;

/// Size of a page of the usual kind.
pub(crate) fn page_bytes() -> Result<usize, MapError> {
    // SAFETY: reads a constant of the system.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    match usize::try_from(bytes) {
        Ok(bytes) if bytes.is_power_of_two() => Ok(bytes),
        _ => Err(MapError::Os { syscall: "sysconf", errno: errno() }),
    }
}

pub(crate) fn errno() -> i32 {
    io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

/// Turns the error number of `syscall` into its reason.
pub(crate) fn reason(syscall: &'static str, errno: i32) -> MapError {
    match errno {
        libc::EPERM | libc::EACCES => MapError::PermissionDenied { syscall },
        libc::ENOSYS => MapError::Unsupported,
        libc::ENOMEM => no_memory(),
        errno => MapError::Os { syscall, errno },
    }
}

fn result(syscall: &'static str, returned: c_long) -> Result<(), MapError> {
    if returned == 0 { Ok(()) } else { Err(reason(syscall, errno())) }
}

/// `ENOMEM` has two meanings: no memory, or one mapping too many.
fn no_memory() -> MapError {
    let most = fs::read_to_string("/proc/sys/vm/max_map_count")
        .ok()
        .and_then(|text| text.trim().parse::<usize>().ok());
    // Streamed: where no mapping is left, a large buffer could not be had either. Splitting a
    // mapping takes up to two more, and the list shows one that is not counted.
    let mappings =
        File::open("/proc/self/maps").map(|maps| BufReader::new(maps).split(b'\n').count());
    match (most, mappings) {
        (Some(most), Ok(mappings)) if mappings + 3 > most => MapError::VmaLimit,
        _ => MapError::OutOfMemory,
    }
}

/// Collects what is known about nodes.
pub(crate) fn nodes() -> Result<Nodes, MapError> {
    let list = |name: &str| {
        let mut path = String::from("/sys/devices/system/node/");
        path.push_str(name);
        fs::read_to_string(path).ok().and_then(|text| NodeSet::parse(&text))
    };
    let status = fs::read_to_string("/proc/thread-self/status")
        .or_else(|_| fs::read_to_string("/proc/self/status"))
        .unwrap_or_default();
    let allowed = match procfs::field(&status, "Mems_allowed_list").and_then(NodeSet::parse) {
        Some(allowed) => allowed,
        None => policy(0, MPOL_F_MEMS_ALLOWED)?.1,
    };
    Ok(Nodes { online: list("online"), with_memory: list("has_memory"), allowed })
}

/// Asks for a policy and its nodes, with a mask that grows until the kernel's nodes fit in.
fn policy(address: usize, flags: c_ulong) -> Result<(c_int, NodeSet), MapError> {
    let mut room = 1024;
    loop {
        let mut mode = NO_ANSWER;
        let mut nodes = NodeSet::with_room(room);
        let maxnode = nodes.maxnode();
        // SAFETY: `mode` and `maxnode` - 1 bits of `nodes` are there to be written; the address is
        // only looked up.
        let returned = unsafe {
            libc::syscall(
                libc::SYS_get_mempolicy,
                &raw mut mode,
                nodes.as_mut_ptr(),
                maxnode,
                address,
                flags,
            )
        };
        match result("get_mempolicy", returned) {
            Ok(()) => return Ok((mode, nodes)),
            Err(MapError::Os { errno: libc::EINVAL, .. }) if room < MOST_NODES => room *= 2,
            Err(error) => return Err(error),
        }
    }
}

/// Reads back the policy of the mapping at `address`.
pub(crate) fn policy_at(address: usize) -> Result<Policy, MapError> {
    let (mode, nodes) = policy(address, MPOL_F_ADDR)?;
    Ok(match (mode, nodes.only()) {
        (libc::MPOL_DEFAULT, _) => Policy::FirstTouch,
        (libc::MPOL_BIND, Some(node)) => Policy::Bind(node),
        (libc::MPOL_PREFERRED, Some(node)) => Policy::Preferred(node),
        (libc::MPOL_INTERLEAVE, _) => Policy::Interleaved { nodes: nodes.len() },
        (mode, _) => Policy::Other(mode),
    })
}

/// A policy that the kernel is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// On this node or nowhere.
    Bind(u32),
    /// On this node while it has room.
    Preferred(u32),
    /// In turn on these nodes.
    Interleaved(NodeSet),
}

/// The node of the CPU on which the caller runs.
pub(crate) fn current_node() -> Result<u32, MapError> {
    let (mut cpu, mut node) = (0_u32, u32::MAX);
    let nothing = ptr::null_mut::<c_void>();
    // SAFETY: `cpu` and `node` are there to be written.
    let returned = unsafe { libc::syscall(libc::SYS_getcpu, &raw mut cpu, &raw mut node, nothing) };
    result("getcpu", returned).map(|()| node)
}

/// Gives all of `region` one policy, in one call, and reads it back at both ends.
///
/// The region begins and ends with a page and belongs to the caller.
pub(crate) fn bind(region: NonNull<[u8]>, policy: &Wanted) -> Result<(), MapError> {
    let (mode, nodes) = match policy {
        Wanted::Bind(node) => (libc::MPOL_BIND, NodeSet::of(*node)),
        Wanted::Preferred(node) => (libc::MPOL_PREFERRED, NodeSet::of(*node)),
        Wanted::Interleaved(nodes) => (libc::MPOL_INTERLEAVE, nodes.clone()),
    };
    // SAFETY: a policy changes no contents; `maxnode` - 1 bits of `nodes` are there to be read.
    let returned = unsafe {
        libc::syscall(
            libc::SYS_mbind,
            region.as_ptr().cast::<c_void>(),
            region.len(),
            mode,
            nodes.as_ptr(),
            nodes.maxnode(),
            0_u32,
        )
    };
    result("mbind", returned)?;
    let first = region.addr().get();
    for address in [first, first + region.len() - 1] {
        let (kept, on) = self::policy(address, MPOL_F_ADDR)?;
        if kept != mode || !on.holds_as(&nodes) {
            return Err(match policy {
                Wanted::Bind(node) | Wanted::Preferred(node) => MapError::PolicyNotKept(*node),
                Wanted::Interleaved(_) => MapError::InterleaveNotKept,
            });
        }
    }
    Ok(())
}

/// Asks where each page of `region` lies, without touching one. `step` is the size of a page.
pub(crate) fn count(region: NonNull<[u8]>, step: usize) -> Result<Pages, MapError> {
    let mut pages = Pages::new(step);
    let end = region.addr().get() + region.len();
    let mut next = region.addr().get() & !(step - 1);
    while next < end {
        let mut addresses = [ptr::null::<c_void>(); BATCH];
        let mut answers = [NO_ANSWER; BATCH];
        let mut asked = 0;
        while asked < BATCH && next < end {
            addresses[asked] = ptr::without_provenance(next);
            asked += 1;
            next += step;
        }
        // SAFETY: `asked` addresses and as many answers are in the arrays; without target nodes
        // the call only looks.
        let returned = unsafe {
            libc::syscall(
                libc::SYS_move_pages,
                0 as c_int,
                asked as c_ulong,
                addresses.as_ptr(),
                ptr::null::<c_int>(),
                answers.as_mut_ptr(),
                0 as c_int,
            )
        };
        result("move_pages", returned)?;
        for &answer in &answers[..asked] {
            match u32::try_from(answer) {
                Ok(node) => pages.add(node),
                Err(_) if answer == -libc::ENOENT => pages.absent_pages += 1,
                Err(_) if answer == -libc::EFAULT => pages.zero_pages += 1,
                Err(_) => pages.other_pages += 1,
            }
        }
    }
    Ok(pages)
}

/// Adds up the bytes of `region` on huge pages.
pub(crate) fn huge_bytes(region: NonNull<[u8]>) -> Result<u64, Unknown> {
    let refused = |error: io::Error| {
        Unknown::Refused(reason("read /proc/self/smaps", error.raw_os_error().unwrap_or(0)))
    };
    let mut smaps = String::new();
    File::open("/proc/self/smaps")
        .and_then(|mut file| file.read_to_string(&mut smaps))
        .map_err(refused)?;
    let start = region.addr().get();
    procfs::huge_bytes(smaps.lines(), start, start + region.len())
}

/// Size of a transparent huge page; `None` where there are none.
pub(crate) fn transparent_bytes() -> Option<usize> {
    let text = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size").ok()?;
    text.trim().parse().ok().filter(|bytes: &usize| bytes.is_power_of_two())
}

/// Forbids all access to the pages of `region`.
///
/// # Safety
/// Nobody accesses them any more.
pub(crate) unsafe fn guard(region: NonNull<[u8]>) -> Result<(), MapError> {
    // SAFETY: the caller's promise.
    let returned = unsafe { libc::mprotect(region.as_ptr().cast(), region.len(), libc::PROT_NONE) };
    result("mprotect", returned.into())
}

/// Lets the kernel use transparent huge pages for `region`.
pub(crate) fn advise_transparent(region: NonNull<[u8]>) -> Result<(), MapError> {
    // SAFETY: the advice changes no contents.
    let returned =
        unsafe { libc::madvise(region.as_ptr().cast(), region.len(), libc::MADV_HUGEPAGE) };
    result("madvise", returned.into())
}

/// Makes every page of `region` present, as if written to. Kernels before 5.14 cannot
/// (`EINVAL`); huge pages that are lacking give `EFAULT`, never a signal.
pub(crate) fn populate(region: NonNull<[u8]>) -> Result<(), i32> {
    loop {
        // SAFETY: makes pages present and changes no contents.
        let returned = unsafe {
            libc::madvise(region.as_ptr().cast(), region.len(), libc::MADV_POPULATE_WRITE)
        };
        match errno() {
            _ if returned == 0 => return Ok(()),
            // What was done stays done, so each turn goes further.
            libc::EINTR => {}
            errno => return Err(errno),
        }
    }
}

/// Writes a zero to each page of `region`.
///
/// # Safety
/// The region is valid for writes, nobody else uses it, and its contents do not matter.
pub(crate) unsafe fn touch(region: NonNull<[u8]>, step: usize) {
    for offset in (0..region.len()).step_by(step) {
        // SAFETY: the offset is inside the region.
        let byte = unsafe { region.as_ptr().cast::<u8>().add(offset) };
        // SAFETY: the caller's promise.
        unsafe { byte.write_volatile(0) };
    }
}

/// Locks the pages of `region` in memory: now, or each when it is touched.
pub(crate) fn lock(region: NonNull<[u8]>, on_fault: bool) -> Result<(), MapError> {
    let flags = if on_fault { libc::MLOCK_ONFAULT } else { 0 };
    // SAFETY: locking changes no contents.
    let returned = unsafe {
        libc::syscall(
            libc::SYS_mlock2,
            region.as_ptr().cast::<c_void>(),
            region.len(),
            flags as c_int,
        )
    };
    if returned == 0 {
        return Ok(());
    }
    let errno = errno();
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is there to be written.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_MEMLOCK, &raw mut limit) } == 0;
    let limited = match errno {
        libc::EPERM => known && limit.rlim_cur == 0,
        libc::ENOMEM => known && limit.rlim_cur != libc::RLIM_INFINITY,
        libc::EAGAIN => known,
        _ => false,
    };
    if limited {
        let (limit_bytes, wanted_bytes) = (limit.rlim_cur, region.len() as u64);
        Err(MapError::MemlockLimit { limit_bytes, wanted_bytes })
    } else {
        Err(reason("mlock2", errno))
    }
}
