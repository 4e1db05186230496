//! What is wrong with a layout, and what to do about it.

use std::fmt;

use serde::{Serialize, Serializer};

use super::{Field, Object, Role, Sharing};

/// What is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Two fields that different threads use share a line.
    Line,
    /// Two fields that different threads use share a pair of lines.
    Pair,
    /// Two objects touch.
    Neighbours,
    /// Not aligned as claimed.
    Misaligned,
    /// On two lines, though one would do.
    Straddles,
    /// Declared together, and is not.
    NotTogether,
    /// Declared together without a reason.
    NoReason,
}

/// A field, or a whole object, in a finding.
#[derive(Debug, Clone, Serialize)]
pub struct Spot {
    /// The object's name.
    pub object: String,
    /// The field's name with its index; none for the whole object.
    pub field: Option<String>,
    /// Bytes from the object's start; none where it lies elsewhere.
    pub offset: Option<usize>,
    /// Number of bytes.
    pub bytes: usize,
    /// Address of the first byte.
    #[serde(serialize_with = "hexadecimal")]
    pub address: usize,
    /// Address of the object's first byte.
    #[serde(skip)]
    pub object_at: usize,
    /// Who writes it.
    pub writers: String,
    /// Who reads it, besides its writers.
    pub readers: String,
    /// What it was declared together for, or claimed.
    pub claim: Option<String>,
}

/// One thing that is wrong.
#[derive(Debug, Clone)]
pub struct Finding {
    /// What.
    pub kind: Kind,
    /// The field, or the earlier one of two.
    pub first: Spot,
    /// The later one.
    pub second: Option<Spot>,
    /// Address of the line or pair, or of the aligned block that was claimed.
    pub block: usize,
    /// Its bytes.
    pub block_bytes: usize,
}

fn hexadecimal<S: Serializer>(address: &usize, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{address:#x}"))
}

impl Kind {
    /// Gives the word of records and of the command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::Line => "line",
            Self::Pair => "pair",
            Self::Neighbours => "neighbours",
            Self::Misaligned => "misaligned",
            Self::Straddles => "straddles",
            Self::NotTogether => "not_together",
            Self::NoReason => "no_reason",
        }
    }
}

impl Spot {
    pub(super) fn of(object: &Object, field: &Field) -> Self {
        let offset = field.start.checked_sub(object.start).filter(|&offset| offset < object.bytes);
        let index = field.index.map_or_else(String::new, |index| format!("[{index}]"));
        let claim = match &field.sharing {
            Sharing::Apart if field.align > 1 => Some(format!("aligned to {}", field.align)),
            Sharing::Apart => None,
            Sharing::OneLine(together) => Some(format!("one line of `{}`", together.group)),
            Sharing::SideBySide(together) => Some(format!("side by side in `{}`", together.group)),
        };
        Self {
            object: object.name.to_string(),
            field: Some(format!("{}{index}", field.name)),
            offset,
            bytes: field.bytes,
            address: field.start,
            object_at: object.start,
            writers: field.writers.to_string(),
            readers: field.readers.to_string(),
            claim,
        }
    }

    pub(super) fn whole(object: &Object) -> Self {
        Self {
            object: object.name.to_string(),
            field: None,
            offset: Some(0),
            bytes: object.bytes,
            address: object.start,
            object_at: object.start,
            writers: Role::Nobody.to_string(),
            readers: Role::Nobody.to_string(),
            claim: object.alone.then(|| "alone on its lines".to_owned()),
        }
    }
}

impl Finding {
    /// Says in a sentence what to do.
    pub fn remedy(&self) -> String {
        let bytes = self.block_bytes;
        match self.kind {
            Kind::Line => format!(
                "put each into a wrapper aligned to {bytes} (CachePadded), or declare them together \
                 with the reason"
            ),
            Kind::Pair => format!(
                "pad to pairs: align each to {bytes} instead of to a line, or declare them together \
                 with the reason"
            ),
            Kind::Neighbours => format!(
                "align the objects to {bytes} and make their size a multiple of {bytes}, or keep \
                 each in CachePadded"
            ),
            Kind::Misaligned => format!(
                "align the type with #[repr(align({bytes}))] and allocate it with its own layout, \
                 or claim less"
            ),
            Kind::Straddles => format!(
                "align it to its size, so that it lies inside one line of {bytes} bytes"
            ),
            Kind::NotTogether => {
                "move them next to one another (repr(C), aligned to a line), or do not declare them \
                 together"
                    .to_owned()
            }
            Kind::NoReason => "say why they share lines, or give them lines of their own".to_owned(),
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nobody => f.write_str("nobody"),
            Self::Named { name, nth: None } => f.write_str(name),
            Self::Named { name, nth: Some(nth) } => write!(f, "{name} {nth}"),
            Self::Anybody => f.write_str("anybody"),
        }
    }
}

impl fmt::Display for Spot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { object, bytes, .. } = self;
        let Some(field) = &self.field else {
            return write!(f, "{object} ({bytes} bytes at {:#x})", self.address);
        };
        write!(f, "{object}.{field} (")?;
        match self.offset {
            Some(offset) => write!(f, "bytes {offset}..{}", offset + bytes)?,
            None => write!(f, "{bytes} bytes at {:#x}", self.address)?,
        }
        write!(f, ", written by {}, read by {})", self.writers, self.readers)
    }
}

impl fmt::Display for Finding {
    /// What is wrong, where, and what to do.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { first, block, block_bytes, .. } = self;
        match (self.kind, &self.second) {
            (Kind::Misaligned, _) => {
                write!(f, "{first} at {:#x} is not aligned to {block_bytes}", first.address)?;
            }
            (Kind::Straddles, _) => {
                write!(f, "{first} at {:#x} lies on two lines of {block_bytes}", first.address)?;
            }
            (Kind::NoReason, _) => write!(f, "{first} is declared together without a reason")?,
            (Kind::NotTogether, Some(second)) => {
                let claim = first.claim.as_deref().unwrap_or("together");
                write!(f, "{first} and {second} are declared `{claim}` and are not")?;
            }
            (kind, second) => {
                write!(f, "{first}")?;
                if let Some(second) = second {
                    write!(f, " and {second}")?;
                }
                let what = if kind == Kind::Pair { "pair" } else { "block" };
                let what = if kind == Kind::Line { "line" } else { what };
                write!(f, " share the {what} of {block_bytes} bytes at {block:#x}")?;
            }
        }
        write!(f, "; {}", self.remedy())
    }
}
