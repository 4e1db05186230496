//! This crate's table as the front door wants it.

use core::marker::PhantomData;

use harness::front_door::Benches;
use harness::sweep::Row;

use crate::case::{Exclusive as _, Of, ReaderWriter as _};

macro_rules! rows {
    ($($id:ident => $lock:ty, $kind:ident;)*) => { vec![$(Row {
        primitive: "locks",
        id: stringify!($id),
        kind: stringify!($kind),
        make: (&Of::<$lock>(PhantomData)).make(),
    }),*] };
}

/// Gives every row to the bench target `target`.
pub(crate) fn benches(target: &'static str) -> Benches {
    Benches {
        package: env!("CARGO_PKG_NAME"),
        target,
        rows: locks::for_each_lock!(rows),
        features: &[("libc", cfg!(feature = "libc"))],
    }
}
