//! Which cores of a simulated machine threads get.

use std::collections::BTreeMap;

use simulator::machine::Machine;
use topology::Pu;

use crate::placement::Placement;
use crate::sweep::Ground;
use crate::unavailable::Unavailable;

/// The cores of a simulated machine, as ground for a sweep.
///
/// `compact` is in the order of the cores' numbers: through an L3 group, a socket, the next one;
/// second hardware threads come last, when every core has its first.
#[derive(Debug, Clone)]
pub struct Cores {
    name: String,
    pus: Vec<Pu>,
    /// Cores that share no core with another.
    physical: usize,
}

impl Cores {
    /// Gives the cores of `machine`.
    pub fn of(machine: &Machine) -> Self {
        let mut ranks = BTreeMap::new();
        let cores = u32::try_from(machine.cores()).unwrap_or(u32::MAX);
        let place = |cpu: u32| {
            let core = machine.physical_core_of(cpu);
            let rank = ranks.entry(core).or_insert(0_usize);
            *rank += 1;
            Pu {
                cpu,
                core: Some(core),
                package: Some(machine.socket_of(cpu)),
                node: u32::try_from(machine.node_of(cpu)).ok(),
                l3_group: Some(machine.l3_of(cpu)),
                smt_rank: Some(*rank - 1),
            }
        };
        Self {
            name: machine.name().into(),
            pus: (0..cores).map(place).collect(),
            physical: machine.physical_cores(),
        }
    }
}

impl Cores {
    /// Gives where each core is.
    pub fn places(&self) -> &[Pu] {
        &self.pus
    }
}

impl Ground for Cores {
    fn most(&self) -> usize {
        self.pus.len()
    }

    /// Powers of two and the sizes of an L3 group, a node, a socket, up to the number of cores that
    /// share no core: what is simulated needs no points to the left and the right of a border, as
    /// it has no noise.
    fn auto_threads(&self) -> Vec<usize> {
        let of_first = |key: fn(&Pu) -> Option<u64>| {
            let first = self.pus.first().and_then(key);
            self.pus[..self.physical].iter().filter(|pu| key(pu) == first).count()
        };
        let borders = [
            of_first(|pu| pu.l3_group.map(|at| at as u64)),
            of_first(|pu| pu.node.map(u64::from)),
            of_first(|pu| pu.package.map(|at| at as u64)),
            self.physical,
        ];
        let powers = (0..).map(|power| 1_usize << power).take_while(|&count| count < self.physical);
        let mut counts: Vec<usize> = powers.chain(borders).collect();
        counts.sort_unstable();
        counts.dedup();
        counts
    }

    fn order(&self, placement: &Placement) -> Result<Vec<u32>, Unavailable> {
        match placement {
            Placement::Compact => Ok(self.pus.iter().map(|pu| pu.cpu).collect()),
            other => other.order_of(self.pus.clone()),
        }
    }

    fn limit(&self) -> String {
        format!("machine {}", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cores(name: &str) -> Cores {
        Cores::of(&Machine::named(name).unwrap())
    }

    fn begin(cores: &Cores, placement: &str, count: usize) -> Vec<u32> {
        let mut order = cores.order(&placement.parse().unwrap()).unwrap();
        order.truncate(count);
        order
    }

    #[test]
    fn placements_on_two_sockets_of_sixteen_groups() {
        let epyc = cores("epyc-7742-2s");
        assert_eq!(epyc.most(), 256);
        assert_eq!(begin(&epyc, "compact", 5), [0, 1, 2, 3, 4]);
        assert_eq!(begin(&epyc, "smt-last", 256), begin(&epyc, "compact", 256));
        // Another socket each time, there another L3 group.
        assert_eq!(begin(&epyc, "scatter", 6), [0, 64, 4, 68, 8, 72]);
        assert_eq!(begin(&epyc, "scatter", 256)[127..130], [127, 128, 192]);
        assert_eq!(begin(&epyc, "same-l3", 9), [0, 1, 2, 3, 128, 129, 130, 131]);
        assert_eq!(begin(&epyc, "cross-l3", 3), [0, 4, 8]);
        assert_eq!(begin(&epyc, "cross-node", 3), [0, 64, 1]);
        assert_eq!(begin(&epyc, "cpus=7,3", 9), [7, 3]);
        let absent = epyc.order(&"cpus=256".parse().unwrap()).unwrap_err();
        assert_eq!(absent.code, "cpu_not_usable");
        assert!(absent.to_string().contains("0-255"), "{absent}");
    }

    #[test]
    fn thread_counts_end_with_the_cores() {
        assert_eq!(cores("epyc-7742-2s").auto_threads(), [1, 2, 4, 8, 16, 32, 64, 128]);
        let one = Machine::named("epyc-7742-2s").unwrap().with_cores(1).unwrap();
        assert_eq!(Cores::of(&one).auto_threads(), [1]);
        let six = Machine::named("epyc-7742-2s").unwrap().with_cores(6).unwrap();
        assert_eq!(Cores::of(&six).auto_threads(), [1, 2, 4, 6]);
    }

    #[test]
    fn what_a_machine_lacks_is_a_reason() {
        for name in Machine::names() {
            let cores = cores(name);
            for placement in ["compact", "scatter", "smt-last", "same-l3", "cross-l3", "cross-node"]
            {
                match cores.order(&placement.parse().unwrap()) {
                    Ok(order) => assert!(!order.is_empty(), "{name} {placement}"),
                    Err(reason) => assert!(
                        ["one_l3", "one_node"].contains(&reason.code.as_str()),
                        "{name} {placement}: {reason}"
                    ),
                }
            }
        }
    }
}
