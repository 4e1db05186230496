//! Where memory shall lie, and how much it matters.

use super::map_error::MapError;
use super::placement::{Asked, Fallbacks};

/// A wish where the memory of a backing lies.
///
/// ```
/// use alloc_arena::{Mode, Request};
/// let request = Request::on_node(1).strict().locked();
/// assert_eq!(request.node, Some(1));
/// assert_eq!(request.mode, Mode::Strict);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Request {
    /// NUMA node, by the kernel's number; `None` has no wish.
    pub node: Option<u32>,
    /// What happens when a wish cannot be met.
    pub mode: Mode,
    /// Whether the pages shall be locked in memory.
    pub lock: bool,
}

/// What happens when a wish cannot be met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// It is an error.
    Strict,
    /// The backing does without it and records why.
    #[default]
    Advisory,
    /// The node is not asked for: pages lie where they are first touched. Other wishes are
    /// treated as in `Advisory`.
    Off,
}

impl Request {
    /// Wishes nothing.
    pub const fn new() -> Self {
        Self { node: None, mode: Mode::Advisory, lock: false }
    }

    /// Wishes memory on `node`, in [`Mode::Advisory`].
    pub const fn on_node(node: u32) -> Self {
        Self { node: Some(node), ..Self::new() }
    }

    /// Makes every unmet wish an error.
    pub const fn strict(self) -> Self {
        Self { mode: Mode::Strict, ..self }
    }

    /// Asks for no node.
    pub const fn off(self) -> Self {
        Self { mode: Mode::Off, ..self }
    }

    /// Wishes the pages locked in memory.
    pub const fn locked(self) -> Self {
        Self { lock: true, ..self }
    }

    /// Returns the node that the kernel is to be asked for: none in [`Mode::Off`].
    pub const fn wanted_node(&self) -> Option<u32> {
        match self.mode {
            Mode::Off => None,
            Mode::Strict | Mode::Advisory => self.node,
        }
    }

    /// Settles an unmet wish: an error in [`Mode::Strict`], otherwise a note in `fallbacks`.
    ///
    /// # Errors
    /// `because`, in [`Mode::Strict`].
    pub fn settle(
        &self,
        asked: Asked,
        because: MapError,
        fallbacks: &mut Fallbacks,
    ) -> Result<(), MapError> {
        if self.mode == Mode::Strict {
            return Err(because);
        }
        fallbacks.record(asked, because);
        Ok(())
    }

    /// Settles the wishes for a node and for locked pages at a backing that can meet neither.
    ///
    /// # Errors
    /// [`MapError::Unsupported`] in [`Mode::Strict`], if there was a wish.
    pub fn settle_without_kernel(&self) -> Result<Fallbacks, MapError> {
        let mut fallbacks = Fallbacks::default();
        if self.wanted_node().is_some() {
            self.settle(Asked::Node, MapError::Unsupported, &mut fallbacks)?;
        }
        if self.lock {
            self.settle(Asked::Lock, MapError::Unsupported, &mut fallbacks)?;
        }
        Ok(fallbacks)
    }
}
