//! Why ours is slower, or a target is missed: what the machine code says.

/// A job and what is to be said below its table.
pub(crate) const NOTES: [(&str, &str); 0] = [];
