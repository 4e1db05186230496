//! What holds for a figure that a file may leave out, and does.

use super::figure::{FigureValue, Figures};
use super::shape::Shape;

/// How the value of an absent figure is found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Absent {
    Count(usize),
    Number(f64),
    Flag(bool),
    Word(&'static str),
    /// 3.5 times the L1, or the memory if that is nearer.
    L2Hit,
    /// 2048 for each core of the group.
    L3Kib,
    /// 0.6 of a transfer in the group, not below the L2 and not above the memory.
    L3Hit,
    /// `always` where a socket has several L3 groups, else `across_sockets`.
    HomeVisits,
    /// The time for which a queued read-modify-write occupies a line of the same L3 group.
    FarAtomic,
    /// 15, or all that the node gives if that is less.
    CoreBandwidth,
}

impl Absent {
    /// Finds the value; `figures` holds what the file gives, and the defaults of the
    /// fields above.
    pub(super) fn value(self, figures: &Figures, shape: &Shape) -> FigureValue {
        let number = |field: &str| figures.number(field);
        match self {
            Absent::Count(count) => FigureValue::Count(count),
            Absent::Number(number) => FigureValue::Number(number),
            Absent::Flag(flag) => FigureValue::Flag(flag),
            Absent::Word(word) => FigureValue::Word(word),
            Absent::L2Hit => {
                let l1_ns = number("cache.l1_hit_cycles") / number("clock.core_ghz");
                FigureValue::Number((3.5 * l1_ns).min(number("memory.local_ns")))
            }
            Absent::L3Kib => FigureValue::Count(2048 * shape.cores_per_l3_group),
            Absent::L3Hit => {
                let usual = 0.6 * number("transfer.same_l3_ns");
                let at_least = usual.max(number("cache.l2_hit_ns"));
                FigureValue::Number(at_least.min(number("memory.local_ns")))
            }
            Absent::HomeVisits if shape.l3_groups_per_socket > 1 => FigureValue::Word("always"),
            Absent::HomeVisits => FigureValue::Word("across_sockets"),
            Absent::FarAtomic => {
                let queued = number("line.rmw_queue_ratio") * number("transfer.same_l3_ns");
                FigureValue::Number(queued.max(0.001))
            }
            Absent::CoreBandwidth => FigureValue::Number(number("memory.node_gb_per_s").min(15.0)),
        }
    }
}
