//! What a line costs from each CPU to each other: a matrix, the groups in it, and whether they are
//! those that the system claims.
//!
//! Two CPUs hand a line to each other, nobody else does anything. Of more pairs than were asked for
//! some are measured, spread over all distances.

mod groups;
mod native;
pub mod picture;
mod shapes;
mod simulated;

use std::fmt;

use topology::Pu;

use crate::distance::{self, APART};
use crate::stats::Estimate;

pub use groups::{Agreement, Claim, claims, clusters};
pub use native::measure;
pub use shapes::cas;
pub use simulated::simulate;

/// How two CPUs hand a line to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Both change one line by compare-and-swap.
    Cas,
    /// Each writes a line of its own, which the other reads.
    Flags,
}

impl Shape {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Cas, Self::Flags];

    /// Gives the word for it, as records have it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Cas => "cas",
            Self::Flags => "flags",
        }
    }
}

/// Which side of a pair touches the lines first, so that they are at home on its node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Home {
    /// The first CPU of the pair.
    First,
    /// The second.
    Second,
}

impl fmt::Display for Home {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::First => "first",
            Self::Second => "second",
        })
    }
}

/// What to measure.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// How a line is handed over.
    pub shape: Shape,
    /// Where it is at home.
    pub home: Home,
    /// Repetitions of a pair.
    pub repeat: u64,
    /// The seed of intervals, and of a simulation.
    pub seed: u64,
}

/// Round trips of a repetition.
pub const TRIPS: u64 = 1_000;

/// A pair of CPUs, and nanoseconds of one way.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cell {
    /// One CPU.
    pub one: Pu,
    /// The other.
    pub other: Pu,
    /// Nanoseconds for which a line travels; a simulated one has no interval.
    pub ns: Estimate,
}

/// The pairs that are measured: all, or about `most`, as many of each distance as there are, or
/// spread evenly over them.
pub fn pairs(places: &[Pu], most: usize) -> Vec<(Pu, Pu)> {
    let mut by_distance: [Vec<(Pu, Pu)>; 4] = Default::default();
    for (at, one) in places.iter().enumerate() {
        for other in &places[at + 1..] {
            let distance = distance::position(distance::between(one, other));
            by_distance[distance].push((*one, *other));
        }
    }
    // The fewest first: what they leave is for the others.
    let mut order: Vec<usize> = (0..APART.len()).collect();
    order.sort_by_key(|&distance| by_distance[distance].len());
    let mut left = most;
    let mut chosen = Vec::new();
    for (turn, distance) in order.into_iter().enumerate() {
        let all = &by_distance[distance];
        let share = (left / (APART.len() - turn)).min(all.len());
        left -= share;
        chosen.extend((0..share).map(|at| all[at * all.len() / share]));
    }
    chosen.sort_by_key(|(one, other)| (one.cpu, other.cpu));
    chosen
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn places(cpus: u32, cores: u32, groups: u32, packages: u32) -> Vec<Pu> {
        let place = |cpu: u32| {
            let of = |count: u32| Some((cpu / (cpus / count)) as usize);
            Pu {
                cpu,
                core: of(cores),
                package: of(packages),
                node: Some(cpu / (cpus / packages)),
                l3_group: of(groups),
                smt_rank: Some(0),
            }
        };
        (0..cpus).map(place).collect()
    }

    #[test]
    fn few_pairs_are_all_measured_and_of_many_some_of_each_distance() {
        let host = places(16, 8, 4, 2);
        assert_eq!(pairs(&host, 1000).len(), 16 * 15 / 2);
        let some = pairs(&host, 40);
        assert_eq!(some.len(), 40);
        for (at, _) in APART.iter().enumerate() {
            let of =
                |pair: &&(Pu, Pu)| distance::position(distance::between(&pair.0, &pair.1)) == at;
            assert!(some.iter().filter(of).count() >= 8, "{at}");
        }
        let mut once = some.clone();
        once.dedup();
        assert_eq!(once, some);
        assert_eq!(pairs(&host[..1], 10), []);
        assert_eq!(pairs(&places(4, 4, 1, 1), 3).len(), 3);
    }
}
