//! Simulated time.

/// A moment or a span of simulated time, in picoseconds: 2^64 of them are 213 days.
pub(crate) type Time = u64;

/// Picoseconds of a nanosecond.
pub(crate) const NANOSECOND: Time = 1_000;
