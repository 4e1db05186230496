//! The Shape table of every variant's documentation, asserted; and the table of the crate's page
//! against the code.

use core::mem::{align_of, size_of};
use locks::RawLock;

/// Size and alignment of a lock and of its slot, in bytes.
fn shape<L: RawLock>() -> [usize; 4] {
    [size_of::<L>(), align_of::<L>(), size_of::<L::Slot>(), align_of::<L::Slot>()]
}

#[test]
fn shapes_are_as_documented() {
    assert_eq!(shape::<locks::NullLock>(), [0, 1, 0, 1]);
    assert_eq!(shape::<locks::TasLock>(), [1, 1, 0, 1]);
    assert_eq!(shape::<locks::TtasLock>(), [1, 1, 0, 1]);
    assert_eq!(shape::<locks::TicketLock>(), [8, 4, 0, 1]);
    assert_eq!(shape::<locks::ProportionalTicketLock>(), [8, 4, 0, 1]);
    let pair = align_of::<crossbeam_utils::CachePadded<u8>>();
    let pointer = size_of::<usize>();
    assert_eq!(shape::<locks::McsLock>(), [pointer, pointer, pair, pair]);
    assert_eq!(shape::<locks::McsTryLock>(), [pointer, pointer, pair, pair]);
    assert_eq!(shape::<locks::TwoLineTicketLock>(), [2 * pair, pair, 0, 1]);
    assert_eq!(shape::<locks::AndersonLock<8>>(), [(2 + 8) * pair, pair, 0, 1]);
    assert_eq!(shape::<locks::K42Lock>(), [2 * pointer, pointer, 0, 1]);
    #[cfg(feature = "std")]
    assert_eq!(shape::<locks::ClhLock>(), [pointer, pointer, 2 * pointer, pointer]);
    type Ticket = locks::TicketLock;
    assert_eq!(shape::<locks::RwSpinLock>(), [4, 4, 0, 1]);
    assert_eq!(shape::<locks::RwPhaseFairLock>(), [16, 4, 0, 1]);
    type BigReader = locks::RwBigReaderLock<Ticket, locks::OneGroup, 5>;
    assert_eq!(shape::<BigReader>(), [(2 + 5) * pair, pair, 0, 1]);
    assert_eq!(size_of::<locks::ReaderPlace>(), pointer);
    assert_eq!(size_of::<locks::SeqLock<Ticket, 3>>(), 4 * size_of::<usize>() + 8);
    type Cohort<L> = locks::CohortLock<Ticket, L, locks::OneGroup, 4>;
    type Telling = locks::Telling<Ticket>;
    assert_eq!(shape::<Telling>(), [12, 4, 0, 1]);
    assert_eq!(shape::<Cohort<Telling>>(), [(1 + 4) * pair, pair, pointer, pointer]);
    assert_eq!(shape::<Cohort<locks::McsLock>>(), [(1 + 4) * pair, pair, 2 * pair, pair]);
    type Hmcs = locks::HmcsLock<locks::OneGroup, 2, 5>;
    assert_eq!(shape::<Hmcs>(), [(1 + 3 * 5 * 2) * pair, pair, 2 * pair, pair]);
    assert_eq!(shape::<locks::QSpinLock<locks::ProcessNodes>>(), [4, 4, 0, 1]);
    assert_eq!([size_of::<locks::QueueNode>(), align_of::<locks::QueueNode>()], [pair, pair]);
    assert_eq!(size_of::<locks::DisseminationBarrier<5>>(), (1 + 5) * pair);
    assert_eq!(size_of::<locks::Party<'_, 5>>(), pointer + 8);
    assert_eq!(shape::<locks::TasNeighbourLock>(), [2 * pointer, pointer, 0, 1]);
    #[cfg(all(feature = "libc", target_os = "linux"))]
    assert_eq!(shape::<locks::FutexLock<locks::LinuxFutex>>(), [4, 4, 0, 1]);
    #[cfg(all(feature = "libc", target_os = "linux"))]
    assert_eq!(shape::<locks::TicketParkLock<locks::LinuxFutex, 16>>(), [8 + 16 * 4, 4, 0, 1]);
    #[cfg(all(feature = "libc", target_os = "linux"))]
    assert_eq!(shape::<locks::RwFutexLock<locks::LinuxFutex>>(), [8, 4, 0, 1]);
    #[cfg(all(feature = "libc", target_os = "linux"))]
    assert_eq!(shape::<locks::ParkingLock<locks::LinuxLot>>(), [1, 1, 0, 1]);
    #[cfg(all(feature = "libc", target_os = "linux"))]
    assert_eq!(shape::<locks::McsParkLock<locks::LinuxFutex>>(), [pointer, pointer, pair, pair]);
    if cfg!(target_arch = "x86_64") {
        assert_eq!(pair, 128, "a pair of lines on x86-64");
    }
}

#[test]
fn slots_in_an_array_do_not_touch() {
    let slots: [locks::McsSlot; 4] = Default::default();
    for two in slots.windows(2) {
        let distance = (&raw const two[1]).addr() - (&raw const two[0]).addr();
        assert!(distance >= 128, "neighbouring slots are {distance} bytes apart");
        assert_eq!((&raw const two[0]).addr() % 128, 0);
    }
}

#[test]
fn the_control_shares_a_line_and_says_so() {
    let (waiters, holder) = locks::TasNeighbourLock::<locks::Spin>::OFFSETS;
    let lock = crossbeam_utils::CachePadded::new(<locks::TasNeighbourLock>::new());
    let base = core::ptr::from_ref(&*lock).addr();
    assert_eq!((base + waiters) / 64, (base + holder) / 64, "it must be a bad example");
}

#[cfg(all(feature = "libc", feature = "std", target_arch = "x86_64"))]
macro_rules! table {
    ($($id:ident => $lock:ty, $kind:ident;)*) => {
        [$((
            stringify!($id),
            <$lock as RawLock>::PROPERTIES,
            size_of::<$lock>(),
            size_of::<<$lock as RawLock>::Slot>(),
            stringify!($kind),
        )),*]
    };
}

#[test]
#[cfg(all(feature = "libc", feature = "std", target_arch = "x86_64"))]
fn the_documented_table_is_the_table() {
    let page = include_str!("../src/lib.rs");
    let documented: Vec<String> = page
        .lines()
        .filter_map(|line| line.strip_prefix("//! | `"))
        .map(|row| row.split('|').map(str::trim).collect::<Vec<_>>().join("|"))
        .collect();
    let rows: Vec<String> = locks::for_each_lock!(table)
        .iter()
        .map(|(id, properties, bytes, slot, kind)| {
            let numa = if properties.numa_aware { "yes" } else { "no" };
            let link = documented
                .iter()
                .find(|row| row.starts_with(&format!("{id}`|")))
                .and_then(|row| row.split('|').nth(1))
                .unwrap_or("no row in lib.rs");
            let (fairness, waiting) = (properties.fairness, properties.waiting);
            format!("{id}`|{link}|{fairness}|{waiting}|{numa}|{bytes}|{slot}|{kind}|")
        })
        .collect();
    let (mut documented, mut rows) = (documented, rows);
    documented.sort();
    rows.sort();
    assert_eq!(documented, rows, "left: lib.rs, right: the table and the constants");
    for row in rows {
        let cells = row.replace(['[', ']'], "").replace('|', " | ");
        let line = format!("| `{}", cells.trim_end());
        assert!(include_str!("../README.md").contains(&line), "README.md has no row {line}");
    }
}
