//! Every row of the four tables, ready to be listed and measured.

use core::marker::PhantomData;

use harness::native::{Conditions, Experiment, Make};
use harness::report::verdict::Kinds;
use harness::sweep::Row;
use harness::unavailable::Unavailable;

use crate::place::{self, Examine};

#[path = "../../alloc-arena/benches/case.rs"]
mod arena_case;
#[path = "../../counters/benches/case.rs"]
mod counter_case;
#[path = "../../locks/benches/case.rs"]
mod lock_case;
#[path = "../../queues/benches/case.rs"]
mod queue_case;

use lock_case::{Exclusive as _, ReaderWriter as _};

/// The names of the primitives, in the order in which they are listed.
pub(crate) const PRIMITIVES: [&str; 4] = ["counters", "locks", "queues", "alloc-arena"];

/// A row with what its type says about itself.
pub(crate) struct Variant {
    /// What the sweep needs.
    pub(crate) row: Row,
    /// The properties as the type states them, name and value.
    pub(crate) properties: Vec<(&'static str, String)>,
    /// Looks where objects of the type lie.
    pub(crate) examine: Examine,
}

fn variant(
    primitive: &'static str,
    id: &'static str,
    kind: &'static str,
    make: Make,
    properties: Vec<(&'static str, String)>,
    examine: Examine,
) -> Variant {
    Variant { row: Row { primitive, id, kind, make }, properties, examine }
}

macro_rules! counter_rows {
    ($($id:ident => $counter:ty, $kind:ident;)*) => { vec![$(variant(
        "counters",
        stringify!($id),
        stringify!($kind),
        counter_case::experiment::<$counter>,
        counter_case::properties::<$counter>(),
        |ask| place::counter::<$counter>(ask, place::family(stringify!($id))),
    )),*] };
}

macro_rules! lock_rows {
    ($($id:ident => $lock:ty, $kind:ident;)*) => { vec![$(variant(
        "locks",
        stringify!($id),
        stringify!($kind),
        (&lock_case::Of::<$lock>(PhantomData)).make(),
        lock_case::properties::<$lock>(),
        place::lock::<$lock>,
    )),*] };
}

macro_rules! queue_rows {
    ($($id:ident => $queue:ty, $kind:ident;)*) => { vec![$({
        /// Chooses the element's size.
        fn make(conditions: &Conditions) -> Result<Experiment, Unavailable> {
            match conditions.workload.element_bytes {
                8 => { type T = queue_case::Element<1>; queue_case::experiment::<1, $queue>(conditions) }
                64 => { type T = queue_case::Element<8>; queue_case::experiment::<8, $queue>(conditions) }
                256 => { type T = queue_case::Element<32>; queue_case::experiment::<32, $queue>(conditions) }
                bytes => Err(Unavailable::because("element_bytes", format!("{bytes} bytes"))),
            }
        }
        type T = queue_case::Element<1>;
        let properties = queue_case::properties::<T, $queue>();
        let (id, kind) = (stringify!($id), stringify!($kind));
        variant("queues", id, kind, make, properties, place::queue::<$queue>)
    }),*] };
}

macro_rules! arena_rows {
    ($($id:ident => $arena:ty, $kind:ident;)*) => { vec![$(variant(
        "alloc-arena",
        stringify!($id),
        stringify!($kind),
        arena_case::experiment::<$arena>,
        arena_case::properties::<$arena>(),
        place::arena::<$arena>,
    )),*] };
}

macro_rules! pool_rows {
    ($($id:ident => $pool:ty, $kind:ident;)*) => { [$(variant(
        "alloc-arena",
        stringify!($id),
        stringify!($kind),
        arena_case::pools::experiment::<$pool>,
        arena_case::pools::properties::<$pool>(),
        place::pool::<$pool>,
    )),*] };
}

/// Every variant of every primitive.
pub(crate) fn all() -> Vec<Variant> {
    let mut all = counters::for_each_counter!(counter_rows);
    all.extend::<Vec<_>>(locks::for_each_lock!(lock_rows));
    all.extend(queues::for_each_queue!(queue_rows));
    all.extend::<Vec<_>>(alloc_arena::for_each_arena!(arena_rows));
    all.extend(alloc_arena::for_each_pool!(pool_rows));
    all
}

/// What each row is for.
pub(crate) fn kinds() -> Kinds {
    Kinds::new(
        all().iter().map(|variant| (variant.row.primitive, variant.row.id, variant.row.kind)),
    )
}
