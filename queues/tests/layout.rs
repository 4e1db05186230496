//! The Shape table of every variant's documentation, asserted; and the table of the crate's page
//! against the code.

use crossbeam_utils::CachePadded;
use queues::{
    DequeChaseLev, DequePackedFifo, Inline, MpmcMichaelScott, MpmcRingRte, MpmcRingVyukov, MpmcScq,
    MpmcTicket, MutexRing, Queue, SpscFastForward, SpscLamport, SpscRingCached, SpscRingUnpadded,
};

/// A pair of lines where the machine prefetches pairs, else a line.
const PAIR: usize = align_of::<CachePadded<u8>>();

/// Size and alignment of a queue, size of a slot, and size of either endpoint, in bytes.
fn shape<Q: Queue<u64> + 'static>() -> [usize; 5] {
    let endpoints = [size_of::<Q::Producer<'static>>(), size_of::<Q::Consumer<'static>>()];
    [size_of::<Q>(), align_of::<Q>(), Q::BYTES_PER_SLOT, endpoints[0], endpoints[1]]
}

#[test]
fn shapes_are_as_documented() {
    let word = size_of::<usize>();
    let ends = [4 * word, 4 * word];
    assert_eq!(shape::<queues::NullQueue<u64>>(), [word, word, 0, word, word]);
    #[cfg(feature = "alloc")]
    {
        use queues::Boxed;
        let spsc = [3 * PAIR, PAIR, 8, ends[0], ends[1]];
        assert_eq!(shape::<SpscRingCached<u64, Boxed>>(), spsc);
        assert_eq!(shape::<SpscLamport<u64, Boxed>>(), spsc);
        let flagged = 8 + align_of::<u64>();
        let forward = [3 * PAIR, PAIR, flagged, 3 * word, 3 * word];
        assert_eq!(shape::<SpscFastForward<u64, Boxed>>(), forward);
        let deque = [3 * PAIR, PAIR, flagged, word, word];
        assert_eq!(shape::<DequeChaseLev<u64, Boxed>>(), deque);
        assert_eq!(shape::<queues::DequeChaseLevGrowing<u64>>(), deque);
        assert_eq!(shape::<queues::MpmcSegmented<u64>>(), [3 * PAIR, PAIR, flagged, word, word]);
        assert_eq!(shape::<queues::SpscUnbounded<u64>>(), [2 * PAIR, PAIR, 8, word, word]);
        let (head, tail) = queues::SpscUnbounded::<u64>::OFFSETS;
        assert_eq!(head.abs_diff(tail), PAIR);
        let node = 8 + align_of::<u64>().max(word);
        assert_eq!(shape::<queues::MpscUnbounded<u64>>(), [2 * PAIR, PAIR, node, word, word]);
        let (head, tail) = queues::MpscUnbounded::<u64>::OFFSETS;
        assert_eq!(head.abs_diff(tail), PAIR);
        let packed = [3 * PAIR, PAIR, 8, word, word];
        assert_eq!(shape::<DequePackedFifo<u64, Boxed>>(), packed);
        let ticket = [5 * PAIR, PAIR, 8 + align_of::<u64>().max(word), word, word];
        assert_eq!(shape::<MpmcTicket<u64, Boxed>>(), ticket);
        assert_eq!(shape::<MpmcRingRte<u64, Boxed>>(), [3 * PAIR, PAIR, 8, word, word]);
        let scq = [7 * PAIR, PAIR, 8 + 4 * word, word, word];
        assert_eq!(shape::<MpmcScq<u64, Boxed>>(), scq);
        let list = [5 * PAIR, PAIR, 8 + 2 * word, word, word];
        assert_eq!(shape::<MpmcMichaelScott<u64, Boxed>>(), list);
        let vyukov = [3 * PAIR, PAIR, 8 + align_of::<u64>().max(word), word, word];
        assert_eq!(shape::<MpmcRingVyukov<u64, Boxed>>(), vyukov);
        assert_eq!(shape::<MutexRing<u64, Boxed>>(), [2 * PAIR, PAIR, 8, word, word]);
        assert_eq!(shape::<SpscRingUnpadded<u64, Boxed>>(), [64, 64, 8, ends[0], ends[1]]);
    }
    // The slots inside: what is in front of them keeps its lines, and they begin on their own.
    let slots = |bytes: usize| PAIR + bytes.next_multiple_of(PAIR);
    let spsc = [2 * PAIR + slots(8 * 24), PAIR, 8, ends[0], ends[1]];
    assert_eq!(shape::<SpscRingCached<u64, Inline<24>>>(), spsc);
    let vyukov = [3 * PAIR + slots(16 * 24), PAIR, 16, word, word];
    if word == 8 {
        assert_eq!(shape::<MpmcRingVyukov<u64, Inline<24>>>(), vyukov);
    }
    if cfg!(target_arch = "x86_64") {
        assert_eq!(PAIR, 128, "a pair of lines on x86-64");
    }
}

#[test]
fn the_two_sides_are_a_pair_apart() {
    macro_rules! apart {
        ($($ring:ty),*) => { $(
            let (head, tail) = <$ring>::OFFSETS;
            assert!(head.abs_diff(tail) >= PAIR, "{} and {tail}: {}", head, stringify!($ring));
            assert_eq!((head % PAIR, tail % PAIR), (0, 0), "{}", stringify!($ring));
            assert!(head.max(tail) + PAIR < size_of::<$ring>(), "what they read is elsewhere");
        )* };
    }
    apart!(SpscRingCached<u64, Inline<3>>, MpmcRingVyukov<u64, Inline<3>>);
    apart!(SpscLamport<u64, Inline<3>>, SpscFastForward<u64, Inline<3>>);
    apart!(DequeChaseLev<u64, Inline<3>>, MpmcTicket<u64, Inline<4>>);
    apart!(MpmcMichaelScott<u64, Inline<3>>, DequePackedFifo<u64, Inline<4>>);
    apart!(MpmcScq<u64, Inline<4>>, MpmcRingRte<u64, Inline<4>>);
    #[cfg(feature = "alloc")]
    apart!(queues::DequeChaseLevGrowing<u64>, queues::MpmcSegmented<u64>);
    #[cfg(feature = "alloc")]
    apart!(SpscRingCached<u8, queues::Boxed>, MpmcRingVyukov<u8, queues::Boxed>);
}

#[test]
fn the_control_shares_a_line_and_says_so() {
    let ring = SpscRingUnpadded::<u64, Inline<3>>::new();
    let (head, tail) = SpscRingUnpadded::<u64, Inline<3>>::OFFSETS;
    let base = (&raw const ring).addr();
    let end = 2 * size_of::<usize>(); // a position and what its owner has seen of the other one
    let lines = [head, head + end - 1, tail, tail + end - 1].map(|offset| (base + offset) / 64);
    assert!(lines.iter().all(|&line| line == lines[0]), "it must be a bad example");
    let (head, tail) = MutexRing::<u64, Inline<3>>::OFFSETS;
    assert_eq!(head, tail, "one line for both sides");
}

/// An element that knows where it must lie.
#[repr(align(256))]
#[derive(Default)]
struct Wide(u8);

#[test]
fn slots_of_aligned_elements_are_aligned() {
    // A misplaced slot is an unaligned write, which debug assertions catch; the sizes say the rest.
    assert_eq!(<SpscRingCached<Wide, Inline<2>> as Queue<Wide>>::BYTES_PER_SLOT, 256);
    assert_eq!(<MpmcRingVyukov<Wide, Inline<2>> as Queue<Wide>>::BYTES_PER_SLOT, 512);
    assert_eq!(align_of::<SpscRingCached<Wide, Inline<2>>>(), 256);
    let ring = MpmcRingVyukov::<Wide, Inline<2>>::new();
    for round in 0..5 {
        assert!(ring.try_push(Wide(round)).is_ok());
        assert_eq!(ring.try_pop().map(|wide| wide.0), Some(round));
    }
}

#[cfg(all(feature = "alloc", target_arch = "x86_64"))]
macro_rules! table {
    ($($id:ident => $queue:ty, $kind:ident;)*) => {
        [$({
            type Row<T> = $queue;
            (
                stringify!($id),
                <Row<u64> as Queue<u64>>::PROPERTIES,
                size_of::<Row<u64>>(),
                <Row<u64> as Queue<u64>>::BYTES_PER_SLOT,
                stringify!($kind),
            )
        }),*]
    };
}

#[test]
#[cfg(all(feature = "alloc", target_arch = "x86_64"))]
fn the_documented_table_is_the_table() {
    let page = include_str!("../src/lib.rs");
    let documented: Vec<String> = page
        .lines()
        .filter_map(|line| line.strip_prefix("//! | `"))
        .map(|row| row.split('|').map(str::trim).collect::<Vec<_>>().join("|"))
        .collect();
    let rows: Vec<String> = queues::for_each_queue!(table)
        .iter()
        .map(|(id, properties, bytes, slot, kind)| {
            let link = documented
                .iter()
                .find(|row| row.starts_with(&format!("{id}`|")))
                .and_then(|row| row.split('|').nth(1))
                .unwrap_or("no row in lib.rs");
            let queues::Properties { producers, consumers, order, progress, .. } = properties;
            let linearizable = if properties.linearizable { "yes" } else { "no" };
            format!(
                "{id}`|{link}|{producers}|{consumers}|{order}|{progress}|{linearizable}|{bytes}|{slot}|{kind}|"
            )
        })
        .collect();
    let (mut documented, mut rows) = (documented, rows);
    documented.sort();
    rows.sort();
    assert_eq!(documented, rows, "left: lib.rs, right: the table and the constants");
}

#[test]
fn the_readme_has_the_table_of_the_page() {
    fn rows(text: &str, prefix: &str) -> Vec<Vec<String>> {
        let lines = text.lines().filter_map(|line| line.strip_prefix(prefix));
        lines.map(|line| line.split('|').map(|cell| cell.trim().to_owned()).collect()).collect()
    }
    let mut page = rows(include_str!("../src/lib.rs"), "//! | `");
    for row in &mut page {
        row.remove(1); // the type
    }
    let readme = rows(include_str!("../README.md"), "| `");
    assert!(readme.len() > 5);
    assert_eq!(readme, page, "left: README.md, right: src/lib.rs");
}
