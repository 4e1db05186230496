//! Two cores and one line: the transfer, and two streams of atomic additions.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_utils::CachePadded;
use topology::{Pu, Topology};

use super::{Bench, Found, Pair, Sample};
use crate::c2c::cas;
use crate::clock::Clock;
use crate::distance;
use crate::team::TeamError;

/// Round trips of a repetition.
const TRIPS: u64 = 4_000;
/// Additions of each thread in a repetition.
const ADDITIONS: u64 = 40_000;

/// The fields of [`distance::APART`].
const DISTANCES: [(&str, &str); 4] = [
    ("transfer.smt_ns", "two threads of a core"),
    ("transfer.same_l3_ns", "two cores on one L3"),
    ("transfer.same_socket_ns", "two L3 groups of a socket"),
    ("transfer.cross_socket_ns", "two sockets"),
];

/// A line that two threads hand to each other.
type Line = Arc<CachePadded<AtomicU64>>;

pub(super) fn measure(
    bench: &mut Bench,
    host: &Topology,
    found: &mut Found,
) -> Result<Vec<Pair>, TeamError> {
    let chosen = chosen(&host.pus(), bench.effort.pairs());
    let mut pairs = Vec::new();
    for (distance, (field, between)) in DISTANCES.into_iter().enumerate() {
        let Some(cpus) = chosen.get(&distance) else {
            found.missing(&[field], "no two CPUs of this process are so far apart");
            continue;
        };
        let mut all = Vec::new();
        for &cpus in cpus {
            let transfer_ns = bench.both(cpus, bounce)?;
            all.push(transfer_ns.median());
            pairs.push(Pair { cpus, transfer_ns });
        }
        let sample = match (all.len(), pairs.last()) {
            (1, Some(only)) => only.transfer_ns.clone(),
            _ => Sample::new(all),
        };
        let how = format!(
            "compare-and-swap ping-pong, one way, {between}, pairs of CPUs: {}",
            cpus.len()
        );
        found.sample(field, &sample, &how);
    }
    queued_additions(bench, &chosen, found)?;
    Ok(pairs)
}

/// The share of a transfer for which a queued addition occupies the line, and how long its core keeps
/// it.
fn queued_additions(
    bench: &mut Bench,
    chosen: &BTreeMap<usize, Vec<(u32, u32)>>,
    found: &mut Found,
) -> Result<(), TeamError> {
    let fields = ["line.rmw_queue_ratio", "line.hold_ns"];
    // The nearest two cores that are not threads of one.
    let nearest = (1..DISTANCES.len()).find_map(|distance| {
        Some((found.number(DISTANCES[distance].0)?, *chosen.get(&distance)?.first()?))
    });
    let Some((transfer, cpus)) = nearest else {
        found.missing(&fields, "there are no two cores");
        return Ok(());
    };
    let between = bench.both(cpus, add)?;
    let how = format!(
        "two threads on CPUs {} and {} that do nothing but fetch_add: ns between operations, {between}, over \
         the transfer of {transfer:.1} ns",
        cpus.0, cpus.1
    );
    let share = (between.median() / transfer).min(1.0);
    found.derived(fields[0], share, &how);
    // A transfer serves so many operations; the first comes with it.
    let owned = found.number("atomic.rmw_owned_ns").unwrap_or(0.0);
    let how = format!("{how}: the time of those that a transfer serves beyond the first");
    found.derived(fields[1], (1.0 / share - 1.0) * owned, &how);
    Ok(())
}

/// At each distance some pairs, spread over those that there are.
fn chosen(places: &[Pu], most: usize) -> BTreeMap<usize, Vec<(u32, u32)>> {
    let mut all: BTreeMap<usize, Vec<(u32, u32)>> = BTreeMap::new();
    for (at, one) in places.iter().enumerate() {
        for other in &places[at + 1..] {
            all.entry(distance::position(distance::between(one, other)))
                .or_default()
                .push((one.cpu, other.cpu));
        }
    }
    for pairs in all.values_mut() {
        let step = pairs.len().div_ceil(most);
        *pairs = pairs.iter().copied().step_by(step).collect();
    }
    all
}

impl Bench {
    /// Repeats a measurement by two threads, which each get the line and their rank.
    fn both(
        &mut self,
        (one, other): (u32, u32),
        measure: fn(&Clock, &Line, u64) -> f64,
    ) -> Result<Sample, TeamError> {
        let mut values = Vec::new();
        for _ in 0..self.effort.repetitions() {
            let line = Line::default();
            let jobs = (0..2).map(|rank| {
                let (line, clock) = (line.clone(), self.clock.clone());
                move || measure(&clock, &line, rank)
            });
            let both = self.team.run(&[one, other], jobs.collect())?;
            values.push(both[0].max(both[1]));
        }
        Ok(Sample::new(values))
    }
}

/// Nanoseconds of a transfer: one thread makes the number odd, the other even.
fn bounce(clock: &Clock, line: &Line, rank: u64) -> f64 {
    let warm = TRIPS / 10;
    cas(line, rank, 0..warm);
    let began = clock.now(); // both are there by now
    cas(line, rank, warm..warm + TRIPS);
    let ticks = clock.now() - began;
    clock.ns(ticks as f64) / (2 * TRIPS) as f64
}

/// Nanoseconds between two additions, whoever made them. Both begin when both are there.
fn add(clock: &Clock, line: &Line, _rank: u64) -> f64 {
    line.fetch_add(1, Ordering::AcqRel);
    while line.load(Ordering::Acquire) < 2 {}
    let began = clock.now();
    for _ in 0..ADDITIONS {
        line.fetch_add(1, Ordering::AcqRel);
    }
    clock.ns((clock.now() - began) as f64) / (2 * ADDITIONS) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(cpu: u32, core: usize, package: usize, group: usize) -> Pu {
        let (core, package, l3_group) = (Some(core), Some(package), Some(group));
        Pu { cpu, core, package, node: None, l3_group, smt_rank: None }
    }

    #[test]
    fn pairs_are_sorted_by_distance_and_limited() {
        let places: Vec<Pu> = (0..16)
            .map(|cpu| place(cpu, cpu as usize / 2, cpu as usize / 8, cpu as usize / 4))
            .collect();
        let chosen = chosen(&places, 3);
        assert_eq!(chosen.keys().copied().collect::<Vec<_>>(), [0, 1, 2, 3]);
        assert_eq!(chosen[&0], [(0, 1), (6, 7), (12, 13)]);
        assert!(chosen.values().all(|pairs| pairs.len() <= 3));
        assert_eq!(chosen[&3][0], (0, 8));
    }
}
