//! This crate's table as the front door wants it.

use harness::front_door::Benches;
use harness::sweep::Row;

use crate::case;

macro_rules! rows {
    ($($id:ident => $arena:ty, $kind:ident;)*) => { vec![$(Row {
        primitive: "alloc-arena",
        id: stringify!($id),
        kind: stringify!($kind),
        make: case::experiment::<$arena>,
    }),*] };
}

macro_rules! pool_rows {
    ($($id:ident => $pool:ty, $kind:ident;)*) => { [$(Row {
        primitive: "alloc-arena",
        id: stringify!($id),
        kind: stringify!($kind),
        make: case::pools::experiment::<$pool>,
    }),*] };
}

/// Gives every row to the bench target `target`.
pub(crate) fn benches(target: &'static str) -> Benches {
    let mut rows: Vec<Row> = alloc_arena::for_each_arena!(rows);
    rows.extend(alloc_arena::for_each_pool!(pool_rows));
    Benches {
        package: env!("CARGO_PKG_NAME"),
        target,
        rows,
        features: &[("alloc", cfg!(feature = "alloc")), ("memmap2", cfg!(feature = "memmap2"))],
    }
}
