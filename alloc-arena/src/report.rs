//! The report where a region lies: from the kernel, where this build can ask it.

use core::ptr::NonNull;

use super::placement::{Fallbacks, Placement, Unknown};
use super::request::Request;

impl Placement {
    /// Asks the kernel where `region` lies, touching none of it. The report names `request` and
    /// the `fallbacks` that a backing took to meet it. Any region may be asked about, with
    /// `page_bytes` where its pages have not the usual size.
    ///
    /// ```
    /// use alloc_arena::{Fallbacks, Placement, Request};
    /// let numbers = [1_u64; 4096];
    /// let region = core::ptr::NonNull::from(numbers.as_slice().first().unwrap()).cast::<u8>();
    /// let region = core::ptr::NonNull::slice_from_raw_parts(region, size_of_val(&numbers));
    /// let placement = Placement::of_region(region, None, &Request::new(), Fallbacks::default());
    /// match placement.pages {
    ///     Ok(pages) => assert!(pages.present() > 0),
    ///     Err(unknown) => println!("{unknown}"),
    /// }
    /// ```
    pub fn of_region(
        region: NonNull<[u8]>,
        page_bytes: Option<usize>,
        request: &Request,
        fallbacks: Fallbacks,
    ) -> Self {
        #[cfg(all(feature = "memmap2", target_os = "linux"))]
        let (policy, pages, huge_bytes) = {
            use super::kernel;
            let step = page_bytes.filter(|step| step.is_power_of_two());
            let step = step.map_or_else(kernel::page_bytes, Ok);
            (
                kernel::policy_at(region.addr().get()).map_err(Unknown::Refused),
                step.and_then(|step| kernel::count(region, step)).map_err(Unknown::Refused),
                kernel::huge_bytes(region),
            )
        };
        #[cfg(not(all(feature = "memmap2", target_os = "linux")))]
        let (policy, pages, huge_bytes) = {
            let _ = (region, page_bytes);
            (Err(Unknown::CannotAsk), Err(Unknown::CannotAsk), Err(Unknown::CannotAsk))
        };
        Self::judge(request.wanted(), policy, pages, huge_bytes, fallbacks)
    }
}
