//! Anonymous mappings on Linux: mapped, bound in one call, populated, locked, verified, in that
//! order. The backings `Mmap`, `Huge`, `Numa` and `FirstTouch` are this with different plans.
//!
//! A mapping of usual pages is longer than its region: the pages before and after are closed, so
//! that an access beyond the region is a fault, and so that the kernel keeps figures for the region
//! alone (it merges neighbouring mappings that look alike). Huge pages from the pool need none of
//! this: their mappings are never merged.

use alloc::boxed::Box;
use core::ptr::NonNull;

use memmap2::{MmapMut, MmapOptions};

use super::kernel;
use super::kernel::Wanted;
use super::map_error::MapError;
use super::placement::{Asked, Fallbacks, Placement};
use super::request::{Mode, Place, Request};

/// The huge pages that are asked of the pool: 2 MiB.
const HUGETLB_BITS: u8 = 21;

/// What a backing does with its mapping.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    /// Tries huge pages, of the pool and then transparent ones.
    pub(crate) huge: bool,
    /// Meets the request for a place.
    pub(crate) bind: bool,
    /// Makes the pages present.
    pub(crate) populate: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Small,
    Transparent { huge_bytes: usize },
    HugeTlb,
}

/// A region of pages of its own.
#[derive(Debug)]
pub(crate) struct Mapping {
    region: NonNull<[u8]>,
    /// Size of the pages that the kernel counts.
    page_bytes: usize,
    told: Box<(Request, Fallbacks)>,
    /// Unmaps; the memory is reached through `region` only.
    _map: MmapMut,
}

// SAFETY: the pages are owned and belong to the process, not to a thread.
unsafe impl Send for Mapping {}
// SAFETY: a shared reference tells where the pages are and reports about them, no more.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps at least `bytes` bytes.
    pub(crate) fn new(plan: Plan, bytes: usize, request: &Request) -> Result<Self, MapError> {
        if bytes == 0 {
            return Err(MapError::Zero);
        }
        let mut fallbacks = Fallbacks::default();
        let (request, wanted) = Self::to_bind(plan, *request, &mut fallbacks)?;
        let (request, wanted) = (&request, wanted.as_ref());
        if plan.huge {
            match Self::attempt(Kind::HugeTlb, plan, bytes, wanted, request, fallbacks) {
                Ok(mapping) => return Ok(mapping),
                Err(error) => request.settle(Asked::HugeTlb, error, &mut fallbacks)?,
            }
            let attempt =
                kernel::transparent_bytes().ok_or(MapError::Unsupported).and_then(|size| {
                    let kind = Kind::Transparent { huge_bytes: size };
                    Self::attempt(kind, plan, bytes, wanted, request, fallbacks)
                });
            match attempt {
                Ok(mapping) => return Ok(mapping),
                Err(error) => request.settle(Asked::Transparent, error, &mut fallbacks)?,
            }
        }
        Self::attempt(Kind::Small, plan, bytes, wanted, request, fallbacks)
    }

    /// Decides what the kernel is asked for, and what is noted as the request: a local one names
    /// the node that it was made on.
    fn to_bind(
        plan: Plan,
        request: Request,
        fallbacks: &mut Fallbacks,
    ) -> Result<(Request, Option<Wanted>), MapError> {
        let place = request.wanted();
        let decided = match place {
            Place::Anywhere => return Ok((request, None)),
            _ if !plan.bind => Err(MapError::Unsupported),
            Place::Node(node) => Ok(Place::Node(node)),
            Place::Local => kernel::current_node().map(Place::Node),
            Place::Interleaved => Ok(Place::Interleaved),
        };
        let request = Request { place: decided.unwrap_or(place), ..request };
        let wanted = decided.and_then(|place| {
            let nodes = kernel::nodes()?;
            match (place, request.mode) {
                (Place::Node(node), Mode::Strict) => nodes.check(node).map(|()| Wanted::Bind(node)),
                (Place::Node(node), _) => nodes.check(node).map(|()| Wanted::Preferred(node)),
                _ => nodes.usable().map(Wanted::Interleaved),
            }
        });
        match wanted {
            Ok(wanted) => Ok((request, Some(wanted))),
            Err(error) => request.settle(Asked::Node, error, fallbacks).map(|()| (request, None)),
        }
    }

    /// Maps pages of one kind and does all that the plan says. What fails beyond recovery drops
    /// the mapping and with it its notes.
    fn attempt(
        kind: Kind,
        plan: Plan,
        bytes: usize,
        wanted: Option<&Wanted>,
        request: &Request,
        fallbacks: Fallbacks,
    ) -> Result<Self, MapError> {
        let mut mapping = Self::map(kind, bytes, request, fallbacks)?;
        if let Some(policy) = wanted
            && let Err(error) = kernel::bind(mapping.region, policy)
        {
            mapping.settle(Asked::Node, error)?;
        }
        if matches!(kind, Kind::Transparent { .. }) {
            kernel::advise_transparent(mapping.region)?;
        }
        if plan.populate {
            mapping.populate(kind)?;
        }
        if request.lock
            && let Err(error) = kernel::lock(mapping.region, !plan.populate)
        {
            mapping.settle(Asked::Lock, error)?;
        }
        mapping.verify(kind, wanted)?;
        Ok(mapping)
    }

    /// Maps at least `bytes` bytes of `kind`, with closed pages around usual ones.
    fn map(
        kind: Kind,
        bytes: usize,
        request: &Request,
        fallbacks: Fallbacks,
    ) -> Result<Self, MapError> {
        let page = kernel::page_bytes()?;
        let (unit, closed) = match kind {
            Kind::Small => (page, 2 * page),
            Kind::Transparent { huge_bytes } => (huge_bytes, huge_bytes + page),
            Kind::HugeTlb => (1 << HUGETLB_BITS, 0),
        };
        // Whole pages, or unmapping fails; of a length that pointer arithmetic allows.
        let length = bytes.checked_next_multiple_of(unit).ok_or(MapError::LayoutOverflow)?;
        let total = length.checked_add(closed).ok_or(MapError::LayoutOverflow)?;
        if isize::try_from(total).is_err() {
            return Err(MapError::LayoutOverflow);
        }
        let mut options = MmapOptions::new();
        options.len(total);
        if kind == Kind::HugeTlb {
            options.huge(Some(HUGETLB_BITS));
        }
        let mut map = options.map_anon().map_err(|error| {
            match (kind, error.raw_os_error().unwrap_or(0)) {
                (Kind::HugeTlb, libc::ENOMEM) => MapError::NoHugePages { bytes: length },
                (Kind::HugeTlb, libc::EINVAL) => MapError::Unsupported,
                (_, errno) => kernel::reason("mmap", errno),
            }
        })?;
        let whole = NonNull::from(&mut map[..]);
        let region =
            if closed == 0 { whole } else { Self::close_around(whole, length, unit, page)? };
        let page_bytes = if kind == Kind::HugeTlb { unit } else { page };
        Ok(Self { region, page_bytes, told: Box::new((*request, fallbacks)), _map: map })
    }

    /// Closes the pages of `whole` before and after the first `length` bytes that start at a
    /// multiple of `unit` with at least one page before them.
    fn close_around(
        whole: NonNull<[u8]>,
        length: usize,
        unit: usize,
        page: usize,
    ) -> Result<NonNull<[u8]>, MapError> {
        let start = whole.addr().get();
        let before = (start + page).next_multiple_of(unit) - start;
        let part = |offset: usize, length: usize| {
            // SAFETY: `whole` has room for the closed pages, `length` and the rounding to `unit`.
            let first = unsafe { whole.cast::<u8>().add(offset) };
            NonNull::slice_from_raw_parts(first, length)
        };
        let after = before + length;
        for closed in [part(0, before), part(after, whole.len() - after)] {
            if !closed.is_empty() {
                // SAFETY: the mapping is new and nobody has used these pages.
                unsafe { kernel::guard(closed) }?;
            }
        }
        Ok(part(before, length))
    }

    /// Makes every page present, where the policy says.
    fn populate(&self, kind: Kind) -> Result<(), MapError> {
        let lacking = MapError::NoHugePages { bytes: self.region.len() };
        match (kernel::populate(self.region), kind) {
            (Ok(()), _) => Ok(()),
            (Err(libc::EFAULT), Kind::HugeTlb) => Err(lacking),
            // An old kernel; to write would be a fatal signal where huge pages are lacking.
            (Err(libc::EINVAL), Kind::HugeTlb) => Err(MapError::Unsupported),
            (Err(libc::EINVAL | libc::EPERM), _) => {
                // SAFETY: the region is new; its zeros stay zeros.
                unsafe { kernel::touch(self.region, self.page_bytes) };
                Ok(())
            }
            (Err(errno), _) => Err(kernel::reason("madvise", errno)),
        }
    }

    /// Notes that `asked` is given up, or fails.
    fn settle(&mut self, asked: Asked, because: MapError) -> Result<(), MapError> {
        let (request, fallbacks) = &mut *self.told;
        request.settle(asked, because, fallbacks)
    }

    /// Looks whether the pages are what and where they should be.
    fn verify(&mut self, kind: Kind, wanted: Option<&Wanted>) -> Result<(), MapError> {
        if matches!(kind, Kind::Transparent { .. }) {
            let huge = kernel::huge_bytes(self.region).unwrap_or(0) as usize;
            let lacking = self.region.len().saturating_sub(huge);
            if lacking > 0 {
                self.settle(Asked::Transparent, MapError::NoHugePages { bytes: lacking })?;
            }
        }
        // In the other modes the report says it, each time anew.
        let (Some(wanted), Mode::Strict) = (wanted, self.told.0.mode) else { return Ok(()) };
        let pages = kernel::count(self.region, self.page_bytes)?;
        let all = (self.region.len() / self.page_bytes) as u64;
        match *wanted {
            Wanted::Bind(node) | Wanted::Preferred(node) if pages.on(node) < all => {
                Err(MapError::NotOnNode { node, pages: all - pages.on(node) })
            }
            Wanted::Interleaved(ref nodes) => {
                let huge_bytes = kernel::huge_bytes(self.region).unwrap_or(0);
                let (most, least) = pages.extremes(nodes.len());
                let even = pages.present() == all && pages.is_even(nodes.len(), huge_bytes);
                if even { Ok(()) } else { Err(MapError::NotEven { most, least }) }
            }
            _ => Ok(()),
        }
    }

    #[inline(always)]
    pub(crate) fn region(&self) -> NonNull<[u8]> {
        self.region
    }

    pub(crate) fn placement(&self) -> Placement {
        let (request, fallbacks) = &*self.told;
        Placement::of_region(self.region, Some(self.page_bytes), request, *fallbacks)
    }
}
