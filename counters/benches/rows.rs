//! This crate's table as the front door wants it.

use harness::front_door::Benches;
use harness::sweep::Row;

use crate::case;

macro_rules! rows {
    ($($id:ident => $counter:ty, $kind:ident;)*) => { vec![$(Row {
        primitive: "counters",
        id: stringify!($id),
        kind: stringify!($kind),
        make: case::experiment::<$counter>,
    }),*] };
}

/// Gives every row to the bench target `target`.
pub(crate) fn benches(target: &'static str) -> Benches {
    Benches {
        package: env!("CARGO_PKG_NAME"),
        target,
        rows: counters::for_each_counter!(rows),
        features: &[("std", cfg!(feature = "std"))],
    }
}
