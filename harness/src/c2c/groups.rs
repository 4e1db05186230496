//! Groups of CPUs that are near each other, and whether the system says the same.

use std::collections::BTreeMap;
use std::fmt;

use topology::Pu;

use super::Cell;
use crate::stats::median;

/// Across a border a line takes this much longer at the least, or there is no border.
const BORDER: f64 = 1.15;
/// Two neighbours in the order of times that are this far apart are of two kinds.
const GAP: f64 = 1.25;
/// Part of the pairs that may be on the wrong side of a border.
const MISPLACED: f64 = 0.05;

/// Whether times show what the system claims.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Agreement {
    /// There is one group: nothing to be shown.
    OneGroup,
    /// Pairs across groups are slower, hardly one excepted.
    Agrees,
    /// They are slower by the medians, and too many pairs are not.
    Partly,
    /// They are not slower.
    Disagrees,
    /// No pair within or across was measured.
    Unknown,
}

impl fmt::Display for Agreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OneGroup => "one group, nothing to be seen",
            Self::Agrees => "agrees",
            Self::Partly => "agrees by the medians, with many exceptions",
            Self::Disagrees => "disagrees: pairs across are no slower",
            Self::Unknown => "unknown: too few pairs",
        })
    }
}

/// What the system says about groups of one kind, and what the times say to that.
#[derive(Debug, Clone, PartialEq)]
pub struct Claim {
    /// `L3 groups`, `packages`, `NUMA nodes`.
    pub what: &'static str,
    /// How many there are.
    pub groups: usize,
    /// Median nanoseconds of pairs within a group, threads of one core excepted.
    pub within: Option<f64>,
    /// Median nanoseconds of pairs across groups.
    pub across: Option<f64>,
    /// What comes of it.
    pub agreement: Agreement,
}

type Key = fn(&Pu) -> Option<usize>;

/// The kinds of groups that a system names.
const KINDS: [(&str, Key); 3] = [
    ("L3 groups", |pu| pu.l3_group),
    ("packages", |pu| pu.package),
    ("NUMA nodes", |pu| pu.node.map(|node| node as usize)),
];

/// Compares what the system claims with the times.
pub fn claims(places: &[Pu], cells: &[Cell]) -> Vec<Claim> {
    KINDS.into_iter().map(|(what, key)| claim(what, key, places, cells)).collect()
}

fn claim(what: &'static str, key: Key, places: &[Pu], cells: &[Cell]) -> Claim {
    let mut groups: Vec<Option<usize>> = places.iter().map(key).collect();
    groups.sort_unstable();
    groups.dedup();
    let one_core = |cell: &&Cell| cell.one.core.is_some() && cell.one.core == cell.other.core;
    let apart = cells.iter().filter(|cell| !one_core(cell));
    let (within, across): (Vec<&Cell>, Vec<&Cell>) =
        apart.partition(|cell| key(&cell.one) == key(&cell.other));
    let times = |cells: &[&Cell]| cells.iter().map(|cell| cell.ns.value).collect::<Vec<f64>>();
    let (inner, outer) = (times(&within), times(&across));
    let (within, across) = (median(&inner), median(&outer));
    let agreement = match (within, across) {
        _ if groups.len() < 2 => Agreement::OneGroup,
        (Some(within), Some(across)) if across <= within * BORDER => Agreement::Disagrees,
        (Some(within), Some(across)) => {
            let border = (within * across).sqrt();
            let wrong = inner.iter().filter(|&&ns| ns > border).count()
                + outer.iter().filter(|&&ns| ns < border).count();
            let most = (inner.len() + outer.len()) as f64 * MISPLACED;
            if wrong as f64 <= most { Agreement::Agrees } else { Agreement::Partly }
        }
        _ => Agreement::Unknown,
    };
    Claim { what, groups: groups.len(), within, across, agreement }
}

/// Finds groups by the times alone: CPUs that are joined by pairs below the widest gap in the order
/// of times. Gives the border in nanoseconds and the groups; `None` when no two times are far enough
/// apart, or not every pair was measured.
pub fn clusters(places: &[Pu], cells: &[Cell]) -> Option<(f64, Vec<Vec<u32>>)> {
    if places.len() < 3 || cells.len() < places.len() * (places.len() - 1) / 2 {
        return None;
    }
    let mut times: Vec<f64> = cells.iter().map(|cell| cell.ns.value).collect();
    times.sort_by(f64::total_cmp);
    let (ratio, border) = times
        .windows(2)
        .map(|pair| (pair[1] / pair[0], (pair[0] * pair[1]).sqrt()))
        .max_by(|a, b| a.0.total_cmp(&b.0))?;
    if ratio < GAP {
        return None;
    }
    let mut group: BTreeMap<u32, u32> = places.iter().map(|pu| (pu.cpu, pu.cpu)).collect();
    for cell in cells.iter().filter(|cell| cell.ns.value < border) {
        let (a, b) = (group[&cell.one.cpu], group[&cell.other.cpu]);
        let (low, high) = (a.min(b), a.max(b));
        group.values_mut().filter(|of| **of == high).for_each(|of| *of = low);
    }
    let mut groups: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for (cpu, of) in group {
        groups.entry(of).or_default().push(cpu);
    }
    Some((border, groups.into_values().collect()))
}

#[cfg(test)]
mod tests {
    use super::super::{pairs, tests::places};
    use super::*;
    use crate::stats::Estimate;

    fn cells(host: &[Pu], ns: impl Fn(&Pu, &Pu) -> f64) -> Vec<Cell> {
        let cell = |(one, other): (Pu, Pu)| {
            let value = ns(&one, &other);
            Cell { one, other, ns: Estimate { value, low: value, high: value } }
        };
        pairs(host, usize::MAX).into_iter().map(cell).collect()
    }

    #[test]
    fn groups_are_found_and_compared_with_what_is_claimed() {
        let host = places(16, 16, 4, 2);
        let by_l3 = cells(&host, |a, b| if a.l3_group == b.l3_group { 25.0 } else { 90.0 });
        let (border, found) = clusters(&host, &by_l3).unwrap();
        assert!(border > 25.0 && border < 90.0);
        assert_eq!(found.len(), 4);
        assert_eq!(found[1], [4, 5, 6, 7]);
        let said: Vec<Agreement> =
            claims(&host, &by_l3).iter().map(|claim| claim.agreement).collect();
        assert_eq!(said[0], Agreement::Agrees);
        // Most pairs within a package are across L3 groups: as slow as those across packages.
        assert_eq!(said[1], Agreement::Disagrees);
        let flat = cells(&host, |a, b| 50.0 + f64::from((a.cpu + b.cpu) % 5));
        assert_eq!(clusters(&host, &flat), None);
        assert!(claims(&host, &flat).iter().all(|c| c.agreement == Agreement::Disagrees));
        let one = places(4, 4, 1, 1);
        let alike = cells(&one, |_, _| 30.0);
        assert!(claims(&one, &alike).iter().all(|c| c.agreement == Agreement::OneGroup));
        assert_eq!(claims(&host, &[])[0].agreement, Agreement::Unknown);
    }

    #[test]
    fn exceptions_are_not_hidden() {
        let host = places(16, 16, 2, 2);
        // A fifth of the pairs within a group are as slow as those across.
        let some = cells(&host, |a, b| match a.l3_group == b.l3_group {
            true if (a.cpu + 3 * b.cpu) % 5 != 0 => 25.0,
            _ => 90.0,
        });
        assert_eq!(claims(&host, &some)[0].agreement, Agreement::Partly);
    }
}
