//! This crate's table as the front door wants it.

use harness::front_door::Benches;
use harness::native::{Conditions, Experiment};
use harness::sweep::Row;
use harness::unavailable::Unavailable;

use crate::case::{self, Element};

macro_rules! rows {
    ($($id:ident => $queue:ty, $kind:ident;)*) => { vec![$({
        /// Chooses the element's size.
        fn make(conditions: &Conditions) -> Result<Experiment, Unavailable> {
            match conditions.workload.element_bytes {
                8 => { type T = Element<1>; case::experiment::<1, $queue>(conditions) }
                64 => { type T = Element<8>; case::experiment::<8, $queue>(conditions) }
                256 => { type T = Element<32>; case::experiment::<32, $queue>(conditions) }
                bytes => Err(Unavailable::because("element_bytes", format!("{bytes} bytes"))),
            }
        }
        Row { primitive: "queues", id: stringify!($id), kind: stringify!($kind), make }
    }),*] };
}

/// Gives every row to the bench target `target`.
pub(crate) fn benches(target: &'static str) -> Benches {
    Benches {
        package: env!("CARGO_PKG_NAME"),
        target,
        rows: queues::for_each_queue!(rows),
        features: &[("alloc", cfg!(feature = "alloc"))],
    }
}
