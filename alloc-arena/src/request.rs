//! Where memory shall lie, and how much it matters.

use super::map_error::MapError;
use super::placement::{Asked, Fallbacks};

/// A wish where the memory of a backing lies.
///
/// ```
/// use alloc_arena::{Mode, Place, Request};
/// let request = Request::on_node(1).strict().locked();
/// assert_eq!(request.place, Place::Node(1));
/// assert_eq!(request.mode, Mode::Strict);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Request {
    /// Where the pages shall lie.
    pub place: Place,
    /// What happens when a wish cannot be met.
    pub mode: Mode,
    /// Whether the pages shall be locked in memory.
    pub lock: bool,
}

/// Where pages shall lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Place {
    /// Anywhere: where they are first touched.
    #[default]
    Anywhere,
    /// On this NUMA node, by the kernel's number.
    Node(u32),
    /// On the node of the thread that maps, wherever it runs later and whoever touches them.
    Local,
    /// In turn on every node that has memory and that the process may use.
    Interleaved,
}

/// What happens when a wish cannot be met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// It is an error.
    Strict,
    /// The backing does without it and records why.
    #[default]
    Advisory,
    /// The place is not asked for: pages lie where they are first touched. Other wishes are
    /// treated as in `Advisory`.
    Off,
}

impl Request {
    /// Wishes nothing.
    pub const fn new() -> Self {
        Self { place: Place::Anywhere, mode: Mode::Advisory, lock: false }
    }

    /// Wishes memory on `node`, in [`Mode::Advisory`].
    pub const fn on_node(node: u32) -> Self {
        Self { place: Place::Node(node), ..Self::new() }
    }

    /// Wishes memory on the node of the thread that maps it, in [`Mode::Advisory`].
    pub const fn local() -> Self {
        Self { place: Place::Local, ..Self::new() }
    }

    /// Wishes memory on all nodes in turn, in [`Mode::Advisory`].
    pub const fn interleaved() -> Self {
        Self { place: Place::Interleaved, ..Self::new() }
    }

    /// Makes every unmet wish an error.
    pub const fn strict(self) -> Self {
        Self { mode: Mode::Strict, ..self }
    }

    /// Asks for no place.
    pub const fn off(self) -> Self {
        Self { mode: Mode::Off, ..self }
    }

    /// Wishes the pages locked in memory.
    pub const fn locked(self) -> Self {
        Self { lock: true, ..self }
    }

    /// Returns the place that the kernel is to be asked for: anywhere in [`Mode::Off`].
    pub const fn wanted(&self) -> Place {
        match self.mode {
            Mode::Off => Place::Anywhere,
            Mode::Strict | Mode::Advisory => self.place,
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

    /// Settles the wishes for a place and for locked pages at a backing that can meet neither.
    ///
    /// # Errors
    /// [`MapError::Unsupported`] in [`Mode::Strict`], if there was a wish.
    pub fn settle_without_kernel(&self) -> Result<Fallbacks, MapError> {
        let mut fallbacks = Fallbacks::default();
        if self.wanted() != Place::Anywhere {
            self.settle(Asked::Node, MapError::Unsupported, &mut fallbacks)?;
        }
        if self.lock {
            self.settle(Asked::Lock, MapError::Unsupported, &mut fallbacks)?;
        }
        Ok(fallbacks)
    }
}
