//! Memory for what threads share: huge where granted, populated, locked, on a chosen node; with
//! typed reasons where the system refused.

use std::alloc::Layout;
use std::fmt;
use std::io;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use memmap2::{Advice, MmapMut, MmapOptions};

use crate::unavailable::Unavailable;

/// A huge page of x86-64 and of Arm with 4 KiB pages, in bytes.
const HUGE_BYTES: usize = 2 << 20;

/// On which nodes the pages of shared objects shall lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Policy {
    /// Where the kernel puts them: the node of the thread that touches them first.
    FirstTouch,
    /// On one node if the system lets us; a refusal is part of what was granted.
    Prefer(u32),
    /// On one node only.
    Node(u32),
    /// In turn on each of these nodes.
    Interleave(Vec<u32>),
}

/// What was granted of what was asked for.
#[derive(Debug, Clone)]
pub struct Granted {
    /// Bytes on huge pages, as the kernel reports them.
    pub huge_bytes: Result<u64, Unavailable>,
    /// Whether all pages were made before the first measurement.
    pub populated: Result<(), Unavailable>,
    /// Whether the pages cannot be swapped out.
    pub locked: Result<(), Unavailable>,
    /// Whether the policy is in force, confirmed by `move_pages`.
    pub policy: Result<(), Unavailable>,
}

/// Whether regions are plain pages of which the host is asked nothing.
static PLAIN: AtomicBool = AtomicBool::new(false);

/// Makes all further regions plain pages: none huge, none locked, and none looked up in the host's
/// books. A simulated thread must not depend on what the host grants.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub(crate) fn make_plain() {
    PLAIN.store(true, Ordering::Relaxed);
}

/// A region of pages.
pub struct Region {
    pages: MmapMut,
    granted: Granted,
}

impl fmt::Debug for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Region")
            .field("bytes", &self.pages.len())
            .field("granted", &self.granted)
            .finish()
    }
}

impl Region {
    /// Maps at least `bytes` bytes under `policy`.
    ///
    /// Huge pages, population, locking and [`Policy::Prefer`] are wishes: their refusal is part
    /// of [`granted`](Self::granted). The other policies are demands.
    ///
    /// # Errors
    /// When no memory can be mapped, or a demand cannot be put in force and confirmed.
    pub fn map(bytes: usize, policy: &Policy) -> Result<Self, Unavailable> {
        let length = bytes
            .max(1)
            .checked_next_multiple_of(HUGE_BYTES)
            .ok_or_else(|| Unavailable::because("out_of_memory", "the size overflows"))?;
        if PLAIN.load(Ordering::Relaxed) {
            return Self::plain(length, policy);
        }
        let (mut pages, on_huge_pages) = map_pages(length)?;
        let bound = bind(&pages, policy);
        let populated = populate(&mut pages);
        let locked = pages
            .lock()
            .map_err(|error| Unavailable::syscall("not_locked", "mlock (see ulimit -l)", &error));
        let in_force = bound.and_then(|()| confirm(&pages, policy));
        if !matches!(policy, Policy::Prefer(_)) {
            in_force.clone()?;
        }
        let huge_bytes = match on_huge_pages {
            true => Ok(length as u64),
            false => transparent_huge_bytes(&pages),
        };
        Ok(Self { pages, granted: Granted { huge_bytes, populated, locked, policy: in_force } })
    }

    fn plain(length: usize, policy: &Policy) -> Result<Self, Unavailable> {
        let mut pages = MmapOptions::new()
            .len(length)
            .map_anon()
            .map_err(|error| Unavailable::syscall("out_of_memory", "mmap", &error))?;
        bind(&pages, policy)?;
        let populated = populate(&mut pages);
        confirm(&pages, policy)?;
        let unasked = || Unavailable::new("simulated");
        let (huge_bytes, locked) = (Err(unasked()), Err(unasked()));
        Ok(Self { pages, granted: Granted { huge_bytes, populated, locked, policy: Ok(()) } })
    }

    /// Tells what was granted.
    pub fn granted(&self) -> &Granted {
        &self.granted
    }

    /// Gives the bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.pages
    }

    /// Gives the bytes to be written.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.pages
    }
}

/// Maps explicit huge pages if some are free, else ordinary ones with advice to make them huge.
fn map_pages(length: usize) -> Result<(MmapMut, bool), Unavailable> {
    if let Ok(pages) = MmapOptions::new().len(length).huge(Some(21)).map_anon() {
        return Ok((pages, true));
    }
    let pages = MmapOptions::new()
        .len(length)
        .map_anon()
        .map_err(|error| Unavailable::syscall("out_of_memory", "mmap", &error))?;
    // Advice that is not taken shows in `huge_bytes`.
    let _ = pages.advise(Advice::HugePage);
    Ok((pages, false))
}

fn populate(pages: &mut MmapMut) -> Result<(), Unavailable> {
    if pages.advise(Advice::PopulateWrite).is_ok() {
        return Ok(());
    }
    // Kernels before 5.14 do not know the advice: write to every page.
    let step = page_bytes();
    for byte in pages.iter_mut().step_by(step) {
        // SAFETY: the reference is a valid place for one byte; volatile, so that the store stays.
        unsafe { std::ptr::from_mut(byte).write_volatile(0) };
    }
    Ok(())
}

/// Gives the page size of this system in bytes.
pub fn page_bytes() -> usize {
    // SAFETY: asks for a constant.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).ok().filter(|&bytes| bytes > 0).unwrap_or(4096)
}

fn bind(pages: &MmapMut, policy: &Policy) -> Result<(), Unavailable> {
    let (mode, nodes) = match policy {
        Policy::FirstTouch => return Ok(()),
        Policy::Prefer(node) | Policy::Node(node) => (libc::MPOL_BIND, &[*node][..]),
        Policy::Interleave(nodes) => (libc::MPOL_INTERLEAVE, &nodes[..]),
    };
    let words = nodes.iter().max().map_or(1, |&most| most as usize / 64 + 1);
    let mut mask = vec![0_u64; words];
    for &node in nodes {
        mask[node as usize / 64] |= 1 << (node % 64);
    }
    // The kernel takes one from the number of bits, hence the one more.
    let bits = words * 64 + 1;
    // SAFETY: the range is a mapping of ours; the mask covers `bits - 1` bits and is only read.
    let refused = unsafe {
        libc::syscall(
            libc::SYS_mbind,
            pages.as_ptr(),
            pages.len(),
            mode,
            mask.as_ptr(),
            bits,
            0_u32,
        )
    };
    if refused == 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    let code = match error.raw_os_error() {
        Some(libc::EPERM) => "mbind_not_permitted",
        Some(libc::EINVAL) => "node_absent",
        _ => "not_bound",
    };
    Err(Unavailable::syscall(code, "mbind", &error))
}

/// Asks the kernel where the pages lie.
fn confirm(pages: &MmapMut, policy: &Policy) -> Result<(), Unavailable> {
    let wanted = match policy {
        Policy::FirstTouch => return Ok(()),
        Policy::Prefer(node) | Policy::Node(node) => &[*node][..],
        Policy::Interleave(nodes) => &nodes[..],
    };
    let nodes = nodes_of_pages(pages)?;
    let elsewhere = |node: i32| u32::try_from(node).map_or(true, |node| !wanted.contains(&node));
    let wrong = nodes.iter().filter(|&&node| elsewhere(node)).count();
    if wrong == 0 {
        return Ok(());
    }
    Err(Unavailable::because(
        "wrong_node",
        format!("{wrong} of {} pages lie elsewhere", nodes.len()),
    ))
}

fn nodes_of_pages(pages: &MmapMut) -> Result<Vec<i32>, Unavailable> {
    let step = page_bytes();
    let addresses: Vec<*const u8> =
        (0..pages.len()).step_by(step).map(|offset| pages.as_ptr().wrapping_add(offset)).collect();
    let mut status = vec![i32::MIN; addresses.len()];
    // SAFETY: both arrays hold `len` elements; without target nodes the call moves nothing and
    // writes one status a page.
    let refused = unsafe {
        libc::syscall(
            libc::SYS_move_pages,
            0,
            addresses.len(),
            addresses.as_ptr(),
            std::ptr::null::<i32>(),
            status.as_mut_ptr(),
            0,
        )
    };
    if refused == 0 {
        return Ok(status);
    }
    Err(Unavailable::syscall("placement_unverified", "move_pages", &io::Error::last_os_error()))
}

/// Reads from `/proc/self/smaps` how much of the region lies on transparent huge pages.
fn transparent_huge_bytes(pages: &MmapMut) -> Result<u64, Unavailable> {
    let smaps = std::fs::read_to_string("/proc/self/smaps")
        .map_err(|error| Unavailable::syscall("huge_pages_unknown", "/proc/self/smaps", &error))?;
    let start = pages.as_ptr().addr();
    let mut inside = false;
    for line in smaps.lines() {
        if let Some((low, high)) = address_range(line) {
            inside = (low..high).contains(&start);
        } else if inside && let Some(rest) = line.strip_prefix("AnonHugePages:") {
            let kilobytes = rest.trim().trim_end_matches(" kB").parse::<u64>().unwrap_or(0);
            return match kilobytes {
                0 => Err(Unavailable::because(
                    "no_huge_pages",
                    "none reserved (vm.nr_hugepages) and none made transparently",
                )),
                some => Ok(some * 1024),
            };
        }
    }
    Err(Unavailable::because("huge_pages_unknown", "the region is not in /proc/self/smaps"))
}

/// The addresses in the first line of a mapping's entry.
fn address_range(line: &str) -> Option<(usize, usize)> {
    let (low, high) = line.split_whitespace().next()?.split_once('-')?;
    Some((usize::from_str_radix(low, 16).ok()?, usize::from_str_radix(high, 16).ok()?))
}

/// A value in a [`Region`] of its own, shared by the threads of an experiment.
pub struct Shared<T>(Arc<Placed<T>>);

struct Placed<T> {
    value: NonNull<T>,
    region: Region,
}

// SAFETY: a `Placed` owns its value as a box does and only hands out `&T`.
unsafe impl<T: Send + Sync> Send for Placed<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for Placed<T> {}

impl<T> Shared<T> {
    /// Moves `value` to the beginning of a region mapped for it.
    ///
    /// # Errors
    /// As for [`Region::map`].
    pub fn place(value: T, policy: &Policy) -> Result<Self, Unavailable> {
        let layout = Layout::new::<T>();
        let mut region = Region::map(layout.size(), policy)?;
        let address = region.pages.as_mut_ptr();
        // An ordinary mapping is aligned to a page at least.
        if !address.addr().is_multiple_of(layout.align()) {
            return Err(Unavailable::because("misaligned", "the type wants more than a page"));
        }
        let Some(place) = NonNull::new(address.cast::<T>()) else {
            return Err(Unavailable::new("out_of_memory"));
        };
        // SAFETY: the region is larger than the value, aligned for it (checked above), and ours.
        unsafe { place.write(value) };
        Ok(Self(Arc::new(Placed { value: place, region })))
    }

    /// Tells what was granted to the region.
    pub fn granted(&self) -> &Granted {
        self.0.region.granted()
    }

    /// Gives exclusive access if nobody else shares the value.
    pub fn get_mut(&mut self) -> Option<&mut T> {
        let placed = Arc::get_mut(&mut self.0)?;
        // SAFETY: written in `place`; the exclusive borrow of the only owner is passed on.
        Some(unsafe { placed.value.as_mut() })
    }
}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: written in `place`, dropped with the last owner.
        unsafe { self.0.value.as_ref() }
    }
}

impl<T> Drop for Placed<T> {
    fn drop(&mut self) {
        // SAFETY: written in `place`; this is the last owner; the region is unmapped afterwards.
        unsafe { self.value.drop_in_place() };
    }
}

impl<T> fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Shared").field(&self.0.region).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn drops_the_value_once_with_its_last_owner() {
        static DROPS: AtomicUsize = AtomicUsize::new(0);
        struct Counted;
        impl Drop for Counted {
            fn drop(&mut self) {
                DROPS.fetch_add(1, Ordering::Relaxed);
            }
        }
        let shared = Shared::place(Counted, &Policy::FirstTouch).unwrap();
        let second = shared.clone();
        drop(shared);
        assert_eq!(DROPS.load(Ordering::Relaxed), 0);
        drop(second);
        assert_eq!(DROPS.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn binds_to_a_node_or_says_why_not() {
        match Shared::place(7_u64, &Policy::Node(0)) {
            Ok(shared) => {
                assert_eq!(*shared, 7);
                assert!(shared.granted().policy.is_ok());
            }
            Err(reason) => println!("SKIPPED: {reason}"),
        }
    }

    #[test]
    fn refuses_absent_nodes_with_a_reason() {
        let absent = ["node_absent", "mbind_not_permitted"];
        for policy in [Policy::Node(63), Policy::Node(1000), Policy::Interleave(vec![63, 64])] {
            let reason = Shared::place(7_u64, &policy).unwrap_err();
            assert!(absent.contains(&reason.code.as_str()), "{reason}");
        }
        let shared = Shared::place(7_u64, &Policy::Prefer(1000)).unwrap();
        let refused = shared.granted().policy.clone().unwrap_err();
        assert!(absent.contains(&refused.code.as_str()), "{refused}");
    }

    #[test]
    fn huge_bytes_are_a_size_or_a_reason_never_zero() {
        let region = Region::map(5 << 20, &Policy::FirstTouch).unwrap();
        match &region.granted().huge_bytes {
            Ok(bytes) => assert!((HUGE_BYTES as u64..=6 << 20).contains(bytes), "{bytes}"),
            Err(reason) => assert!(!reason.code.is_empty()),
        }
    }

    #[test]
    fn sizes_that_overflow_are_refused() {
        assert_eq!(Region::map(usize::MAX, &Policy::FirstTouch).unwrap_err().code, "out_of_memory");
        assert_eq!(Region::map(1 << 60, &Policy::FirstTouch).unwrap_err().code, "out_of_memory");
    }
}
