//! Placement policies: which CPU each thread gets.

use std::fmt;
use std::str::FromStr;

use topology::{CpuSet, Pu, Topology};

use crate::unavailable::Unavailable;

/// Where threads go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Placement {
    /// As near together as possible: SMT siblings, then cores of one L3 group, node, package.
    Compact,
    /// As far apart as possible: another package, node, L3 group and core for each next thread.
    Scatter,
    /// As near together as possible, but one thread a core until all cores have one.
    SmtLast,
    /// All under one last-level cache.
    SameL3,
    /// In turn under the last-level caches of one package.
    CrossL3,
    /// In turn on each NUMA node.
    CrossNode,
    /// On these CPUs, in this order.
    Cpus(Vec<u32>),
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Compact => f.write_str("compact"),
            Self::Scatter => f.write_str("scatter"),
            Self::SmtLast => f.write_str("smt-last"),
            Self::SameL3 => f.write_str("same-l3"),
            Self::CrossL3 => f.write_str("cross-l3"),
            Self::CrossNode => f.write_str("cross-node"),
            Self::Cpus(cpus) => {
                let list: Vec<String> = cpus.iter().map(u32::to_string).collect();
                write!(f, "cpus={}", list.join(","))
            }
        }
    }
}

impl FromStr for Placement {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        Ok(match word {
            "compact" => Self::Compact,
            "scatter" => Self::Scatter,
            "smt-last" => Self::SmtLast,
            "same-l3" => Self::SameL3,
            "cross-l3" => Self::CrossL3,
            "cross-node" => Self::CrossNode,
            _ => match word.strip_prefix("cpus=") {
                Some(list) => Self::Cpus(parse_cpus(list)?),
                None => {
                    return Err(format!(
                        "unknown placement `{word}`; one of compact, scatter, smt-last, same-l3, \
                         cross-l3, cross-node, cpus=0,3,5"
                    ));
                }
            },
        })
    }
}

/// Parses CPUs in the order given; a range counts up.
fn parse_cpus(list: &str) -> Result<Vec<u32>, String> {
    let mut cpus = Vec::new();
    for part in list.split(',') {
        let set = CpuSet::parse_list(part).map_err(|error| format!("cpus={list}: {error}"))?;
        if set.is_empty() {
            return Err(format!("cpus={list}: an empty place in the list"));
        }
        cpus.extend(set.iter());
    }
    let distinct = cpus.iter().collect::<std::collections::BTreeSet<_>>().len();
    if distinct != cpus.len() {
        return Err(format!("cpus={list}: a CPU is named twice"));
    }
    Ok(cpus)
}

impl Placement {
    /// Gives a CPU to each of `threads` threads, beginning again from the first CPU when threads
    /// outnumber the CPUs that the policy may use.
    ///
    /// # Errors
    /// When the machine lacks what the policy needs (`one_l3`, `one_node`), or a CPU of the list
    /// may not be used (`cpu_not_usable`).
    pub fn cpus(&self, topology: &Topology, threads: usize) -> Result<Vec<u32>, Unavailable> {
        let order = self.order(topology)?;
        Ok((0..threads).map(|thread| order[thread % order.len()]).collect())
    }

    /// Gives all CPUs that the policy may use, in the order in which threads get them; never
    /// empty.
    ///
    /// # Errors
    /// As for [`cpus`](Self::cpus).
    pub fn order(&self, topology: &Topology) -> Result<Vec<u32>, Unavailable> {
        self.order_of(topology.pus())
    }

    /// As [`order`](Self::order), over any CPUs of which it is known where they are.
    ///
    /// # Errors
    /// As for [`cpus`](Self::cpus).
    pub fn order_of(&self, mut pus: Vec<Pu>) -> Result<Vec<u32>, Unavailable> {
        let order = match self {
            Self::Compact => {
                pus.sort_by_key(near);
                pus
            }
            Self::SmtLast => {
                pus.sort_by_key(|pu| (pu.smt_rank, near(pu)));
                pus
            }
            Self::Scatter => in_turn(
                pus,
                &[
                    |pu| pu.package.map(|at| at as u64),
                    |pu| pu.node.map(u64::from),
                    |pu| pu.l3_group.map(|at| at as u64),
                    |pu| pu.smt_rank.map(|rank| rank as u64),
                ],
            ),
            Self::SameL3 => same_l3(pus)?,
            Self::CrossL3 => cross_l3(pus)?,
            Self::CrossNode => cross_node(pus)?,
            Self::Cpus(cpus) => return listed(cpus, &pus),
        };
        if order.is_empty() {
            return Err(Unavailable::because("no_cpus", "this process may use no online CPU"));
        }
        Ok(order.iter().map(|pu| pu.cpu).collect())
    }
}

type Near = (Option<usize>, Option<u32>, Option<usize>, Option<usize>, Option<usize>, u32);

/// CPUs that compare next to each other are near each other.
fn near(pu: &Pu) -> Near {
    (pu.package, pu.node, pu.l3_group, pu.core, pu.smt_rank, pu.cpu)
}

type Level = fn(&Pu) -> Option<u64>;

/// Deals CPUs out in turn over the groups of the first level, inside each over those of the next.
fn in_turn(mut pus: Vec<Pu>, levels: &[Level]) -> Vec<Pu> {
    pus.sort_by_key(near);
    let Some((level, rest)) = levels.split_first() else { return pus };
    let mut groups: Vec<(Option<u64>, Vec<Pu>)> = Vec::new();
    for pu in pus {
        match groups.iter_mut().find(|(key, _)| *key == level(&pu)) {
            Some((_, group)) => group.push(pu),
            None => groups.push((level(&pu), vec![pu])),
        }
    }
    // SMT ranks are not places to spread over: the second thread of a core comes last.
    if rest.is_empty() {
        groups.sort_by_key(|(rank, _)| *rank);
        return groups.into_iter().flat_map(|(_, group)| group).collect();
    }
    let mut dealt: Vec<_> =
        groups.into_iter().map(|(_, group)| in_turn(group, rest).into_iter()).collect();
    let mut order = Vec::new();
    loop {
        let before = order.len();
        order.extend(dealt.iter_mut().filter_map(Iterator::next));
        if order.len() == before {
            return order;
        }
    }
}

/// The largest group, the first of the largest ones.
fn same_l3(pus: Vec<Pu>) -> Result<Vec<Pu>, Unavailable> {
    let mut groups = by_key(pus, |pu| pu.l3_group)?;
    let most = groups.iter().map(Vec::len).max().unwrap_or(0);
    let at = groups.iter().position(|group| group.len() == most).unwrap_or(0);
    let mut group = groups.swap_remove(at);
    group.sort_by_key(|pu| (pu.smt_rank, near(pu)));
    Ok(group)
}

fn cross_l3(pus: Vec<Pu>) -> Result<Vec<Pu>, Unavailable> {
    let packages = by_key(pus, |pu| pu.package)?;
    for package in packages {
        let groups = by_key(package.clone(), |pu| pu.l3_group)?;
        if groups.len() > 1 {
            return Ok(in_turn(
                package,
                &[|pu| pu.l3_group.map(|at| at as u64), |pu| pu.smt_rank.map(|rank| rank as u64)],
            ));
        }
    }
    Err(Unavailable::because("one_l3", "no package has usable CPUs under two last-level caches"))
}

fn cross_node(pus: Vec<Pu>) -> Result<Vec<Pu>, Unavailable> {
    let nodes: std::collections::BTreeSet<_> = pus.iter().filter_map(|pu| pu.node).collect();
    if nodes.len() < 2 {
        return Err(Unavailable::because("one_node", "the usable CPUs lie in one NUMA node"));
    }
    let placed = pus.into_iter().filter(|pu| pu.node.is_some()).collect();
    Ok(in_turn(placed, &[|pu| pu.node.map(u64::from), |pu| pu.smt_rank.map(|rank| rank as u64)]))
}

/// Splits into groups of equal keys, in the order of the keys.
fn by_key(pus: Vec<Pu>, key: impl Fn(&Pu) -> Option<usize>) -> Result<Vec<Vec<Pu>>, Unavailable> {
    let mut groups = std::collections::BTreeMap::<usize, Vec<Pu>>::new();
    for pu in pus {
        if let Some(at) = key(&pu) {
            groups.entry(at).or_default().push(pu);
        }
    }
    if groups.is_empty() {
        return Err(Unavailable::because("topology_unknown", "the kernel does not say who shares"));
    }
    Ok(groups.into_values().collect())
}

fn listed(cpus: &[u32], pus: &[Pu]) -> Result<Vec<u32>, Unavailable> {
    match cpus.iter().find(|&&cpu| pus.iter().all(|pu| pu.cpu != cpu)) {
        None => Ok(cpus.to_vec()),
        Some(cpu) => {
            let usable = CpuSet::from_ids(pus.iter().map(|pu| pu.cpu)).unwrap_or_default();
            Err(Unavailable::because(
                "cpu_not_usable",
                format!("CPU {cpu} is not among the usable CPUs {usable}"),
            ))
        }
    }
}

/// Gives thread counts at which something changes: powers of two, and one below, at and above
/// each border of an L3 group, node, package, all cores, and `most`.
pub fn auto_threads(topology: &Topology, most: usize) -> Vec<usize> {
    let mut counts: Vec<usize> =
        (0..).map(|power| 1_usize << power).take_while(|&count| count <= most).collect();
    let pus = topology.pus();
    let first_of = |key: fn(&Pu) -> Option<u64>| {
        let first = pus.iter().find_map(key);
        first.map_or(0, |first| pus.iter().filter(|pu| key(pu) == Some(first)).count())
    };
    let cores = pus.iter().filter(|pu| pu.smt_rank == Some(0)).count();
    let borders = [
        first_of(|pu| pu.l3_group.map(|at| at as u64)),
        first_of(|pu| pu.node.map(u64::from)),
        first_of(|pu| pu.package.map(|at| at as u64)),
        cores,
        most,
    ];
    for border in borders.into_iter().filter(|&border| border > 0) {
        counts.extend([border - 1, border, border + 1]);
    }
    counts.retain(|count| (1..=most).contains(count));
    counts.sort_unstable();
    counts.dedup();
    counts
}

/// The most thread counts that one list may name.
const MOST_COUNTS: usize = 4096;

/// The most threads that one count may ask for.
const MOST_THREADS: usize = 65_536;

/// Thread counts as a user writes them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ThreadCounts {
    /// What [`auto_threads`] gives.
    Auto,
    /// These, ascending and distinct.
    These(Vec<usize>),
}

impl FromStr for ThreadCounts {
    type Err = String;

    /// Parses `auto`, or a list of counts and ranges: `1,2,4..8` is 1, 2, 4, 5, 6, 7, 8;
    /// `4..64*2` doubles, `4..64+4` adds 4.
    fn from_str(text: &str) -> Result<Self, String> {
        if text == "auto" {
            return Ok(Self::Auto);
        }
        let mut counts = Vec::new();
        for part in text.split(',') {
            extend_with_range(&mut counts, part.trim())?;
            if counts.len() > MOST_COUNTS {
                return Err(format!("`{text}` names more than {MOST_COUNTS} thread counts"));
            }
        }
        counts.sort_unstable();
        counts.dedup();
        Ok(Self::These(counts))
    }
}

fn extend_with_range(counts: &mut Vec<usize>, part: &str) -> Result<(), String> {
    let Some((first, rest)) = part.split_once("..") else {
        counts.push(count(part)?);
        return Ok(());
    };
    let step_at = rest.find(['+', '*']);
    let (last, step) = step_at.map_or((rest, "+1"), |at| rest.split_at(at));
    let (first, last) = (count(first)?, count(last)?);
    if last < first {
        return Err(format!("the range `{part}` runs backwards"));
    }
    let (kind, step) = step.split_at(1);
    let step = count(step).map_err(|error| format!("in the range `{part}`: {error}"))?;
    if kind == "*" && step < 2 {
        return Err(format!("the range `{part}` never ends: multiply by 2 or more"));
    }
    let mut next = first;
    while next <= last && counts.len() <= MOST_COUNTS {
        counts.push(next);
        next = if kind == "*" { next * step } else { next + step };
    }
    Ok(())
}

fn count(text: &str) -> Result<usize, String> {
    match text.parse::<usize>() {
        Ok(0) => Err("0 threads do nothing; begin with 1".into()),
        Ok(some) if some <= MOST_THREADS => Ok(some),
        Ok(more) => Err(format!("{more} is more than {MOST_THREADS} threads")),
        Err(_) => {
            Err(format!("`{text}` is not a number of threads; write 1,2,4..16 or 4..64*2 or auto"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placements_print_as_they_parse() {
        for word in
            ["compact", "scatter", "smt-last", "same-l3", "cross-l3", "cross-node", "cpus=3,0,5"]
        {
            assert_eq!(word.parse::<Placement>().unwrap().to_string(), word);
        }
        assert_eq!("cpus=4-6,1".parse(), Ok(Placement::Cpus(vec![4, 5, 6, 1])));
        for bad in [
            "",
            "Compact",
            "cpus=",
            "cpus=1,,2",
            "cpus=1,1",
            "cpus=x",
            "cpus=-1",
            "cpus=0-4294967295",
        ] {
            assert!(bad.parse::<Placement>().is_err(), "{bad}");
        }
    }

    #[test]
    fn thread_counts() {
        let these = |text: &str| match text.parse() {
            Ok(ThreadCounts::These(counts)) => counts,
            other => panic!("{text}: {other:?}"),
        };
        assert_eq!("auto".parse(), Ok(ThreadCounts::Auto));
        assert_eq!(these("1,2,4..8"), [1, 2, 4, 5, 6, 7, 8]);
        assert_eq!(these("8,1,8"), [1, 8]);
        assert_eq!(these("1..64*2"), [1, 2, 4, 8, 16, 32, 64]);
        assert_eq!(these("4..16+4"), [4, 8, 12, 16]);
        for bad in [
            "",
            "0",
            "1,0",
            "8..4",
            "-1",
            "1..",
            "..4",
            "x",
            "1.5",
            "1..9*1",
            "1..9*0",
            "1..9+0",
            "99999999999999999999",
            "1..18446744073709551615",
            "1,,2",
            "70000",
        ] {
            assert!(bad.parse::<ThreadCounts>().is_err(), "{bad}");
        }
    }

    #[test]
    fn this_host() {
        let host = Topology::this_host().unwrap();
        let all = host.usable().len();
        for placement in [Placement::Compact, Placement::Scatter, Placement::SmtLast] {
            let mut order = placement.order(&host).unwrap();
            assert_eq!(placement.cpus(&host, all * 2).unwrap()[..all], order[..]);
            order.sort_unstable();
            assert_eq!(order, host.usable().iter().collect::<Vec<_>>(), "{placement}");
        }
        let absent = Placement::Cpus(vec![99_999]).order(&host).unwrap_err();
        assert_eq!(absent.code, "cpu_not_usable");
        let counts = auto_threads(&host, all);
        assert_eq!((counts.first(), counts.last()), (Some(&1), Some(&all)));
    }
}
