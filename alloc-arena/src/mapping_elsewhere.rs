//! Kernel backings where there is no kernel for them: none can be made.

use core::ptr::NonNull;

use super::map_error::MapError;
use super::placement::Placement;
use super::request::Request;

/// What a backing would do with its mapping.
#[derive(Debug, Clone, Copy)]
#[expect(dead_code, reason = "read on Linux only")]
pub(crate) struct Plan {
    pub(crate) huge: bool,
    pub(crate) bind: bool,
    pub(crate) populate: bool,
}

/// A mapping that does not exist.
#[derive(Debug)]
pub(crate) enum Mapping {}

impl Mapping {
    pub(crate) fn new(_plan: Plan, _bytes: usize, _request: &Request) -> Result<Self, MapError> {
        Err(MapError::Unsupported)
    }

    pub(crate) fn region(&self) -> NonNull<[u8]> {
        match *self {}
    }

    pub(crate) fn placement(&self) -> Placement {
        match *self {}
    }
}
