//! Hot fields: which bytes of an object threads fight for, who writes them and who reads them.
//!
//! A variant implements [`HotFields`] in its own file; a checker takes the real addresses of real
//! objects and finds what shares a line and should not. Sharing that is meant is said, with its
//! reason, never guessed. The four primitive crates carry identical copies of this file; a test
//! compares them byte for byte.
//!
//! An implementation takes `self` apart without `..`, so that a field that is added later must be
//! described before the crate compiles again:
//!
//! ```text
//! let Self { head, tail, relax: _ } = self;
//! visit(HotField::of("head", &**head).written_by(Role::One("consumer")).padded_in(head));
//! visit(HotField::of("tail", &**tail).written_by(Role::One("producer")).padded_in(tail));
//! ```

use core::fmt;

/// Who does something with a field. Equal roles of one object are the same threads, which visit
/// all that they write together; different roles are different threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// No thread, from when the object is shared until it is taken apart.
    Nobody,
    /// One thread, always the same; but `holder` is whoever holds the object at the time.
    One(&'static str),
    /// One of several alike, each alone in its role: `Nth("shard", 3)`.
    Nth(&'static str, usize),
    /// Several threads at once.
    Many(&'static str),
    /// Any thread at any time; never the same as anybody else, not even as itself.
    Anybody,
}

/// Whether a field may lie with others on one line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    /// It may not, unless all are written and read by one and the same role.
    Apart,
    /// All fields of the group lie on one line.
    OneLine {
        /// Names the group.
        group: &'static str,
        /// Why the threads of different roles share the line.
        because: &'static str,
    },
    /// The elements of the group follow one another without an unused line between them, and may
    /// share lines with one another and with nothing else.
    SideBySide {
        /// Names the group.
        group: &'static str,
        /// Why the elements have no lines of their own.
        because: &'static str,
    },
}

/// A range of bytes of an object, or of memory that it owns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HotField {
    /// Its name in the source.
    pub name: &'static str,
    /// Which element of an array; 0 for what is none.
    pub index: usize,
    /// Address of the first byte.
    pub start: usize,
    /// Number of bytes.
    pub bytes: usize,
    /// What the address is claimed to be a multiple of.
    pub align: usize,
    /// First address of the bytes and of the padding that is kept for them.
    pub span_start: usize,
    /// Number of bytes with that padding.
    pub span_bytes: usize,
    /// Who writes it in an operation.
    pub writers: Role,
    /// Who reads it in an operation, besides its writers.
    pub readers: Role,
    /// Whether it may lie with others on one line.
    pub sharing: Sharing,
}

/// What a type says about the bytes that threads fight for.
pub trait HotFields {
    /// What the address of each object is claimed to be a multiple of, in bytes.
    const ALIGNMENT: usize;

    /// Whether objects that stand side by side are claimed to share no line and no pair of lines.
    /// Where not, whoever keeps the object gives it lines of its own.
    const ALONE: bool;

    /// Visits every byte of the object, as a field, cold or padding, and what it owns elsewhere.
    fn hot_fields(&self, visit: &mut dyn FnMut(HotField));
}

impl HotField {
    /// Describes a field that nobody writes or reads in an operation; the other functions say
    /// more.
    pub fn of<T: ?Sized>(name: &'static str, field: &T) -> Self {
        Self::at(name, core::ptr::from_ref(field).addr(), size_of_val(field))
    }

    /// Describes `bytes` bytes from the address `start` on.
    pub const fn at(name: &'static str, start: usize, bytes: usize) -> Self {
        Self {
            name,
            index: 0,
            start,
            bytes,
            align: 1,
            span_start: start,
            span_bytes: bytes,
            writers: Role::Nobody,
            readers: Role::Nobody,
            sharing: Sharing::Apart,
        }
    }

    /// Describes the padding between the field `before` and the field `after` it.
    pub fn between<A: ?Sized, B: ?Sized>(before: &A, after: &B) -> Self {
        let from = core::ptr::from_ref(before).addr() + size_of_val(before);
        Self::at("padding", from, core::ptr::from_ref(after).addr().saturating_sub(from))
    }

    /// Describes the padding between the last field of `object` and its end.
    pub fn rest<C, A: ?Sized>(object: &C, last: &A) -> Self {
        let from = core::ptr::from_ref(last).addr() + size_of_val(last);
        let end = core::ptr::from_ref(object).addr() + size_of::<C>();
        Self::at("padding", from, end.saturating_sub(from))
    }

    /// Says which element of an array it is.
    pub const fn nth(self, index: usize) -> Self {
        Self { index, ..self }
    }

    /// Says who writes it.
    pub const fn written_by(self, writers: Role) -> Self {
        Self { writers, ..self }
    }

    /// Says who reads it, besides its writers.
    pub const fn read_by(self, readers: Role) -> Self {
        Self { readers, ..self }
    }

    /// Claims that the address is a multiple of `align`.
    pub const fn aligned(self, align: usize) -> Self {
        Self { align, ..self }
    }

    /// Says that the rest of `padded` is kept free for it, and claims the alignment of that.
    pub fn padded_in<C>(self, padded: &C) -> Self {
        Self {
            align: if self.start == core::ptr::from_ref(padded).addr() {
                align_of::<C>()
            } else {
                self.align
            },
            span_start: core::ptr::from_ref(padded).addr(),
            span_bytes: size_of::<C>(),
            ..self
        }
    }

    /// Says that it lies on one line with the others of `group`, on purpose; of elements of an
    /// array, those with the same index.
    pub const fn one_line(self, group: &'static str, because: &'static str) -> Self {
        Self { sharing: Sharing::OneLine { group, because }, ..self }
    }

    /// Says that it and the others of `group` follow one another, on purpose.
    pub const fn side_by_side(self, group: &'static str, because: &'static str) -> Self {
        Self { sharing: Sharing::SideBySide { group, because }, ..self }
    }

    /// Whether no operation touches it.
    pub fn is_cold(&self) -> bool {
        self.writers == Role::Nobody && self.readers == Role::Nobody
    }
}

/// What a waiter brings that needs nothing.
impl HotFields for () {
    const ALIGNMENT: usize = 1;
    const ALONE: bool = false;

    fn hot_fields(&self, _visit: &mut dyn FnMut(HotField)) {}
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nobody => f.pad("nobody"),
            Self::One(name) | Self::Many(name) => f.pad(name),
            Self::Nth(name, index) => write!(f, "{name} {index}"),
            Self::Anybody => f.pad("anybody"),
        }
    }
}
