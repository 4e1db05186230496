//! Where each CPU is: what a placement policy asks.

use serde::Serialize;

use crate::topology::Topology;

/// Holds where one PU (logical CPU) is. What is not known is `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct Pu {
    /// The CPU's number.
    pub cpu: u32,
    /// The position of its core in [`Topology::cores`].
    pub core: Option<usize>,
    /// The position of its package in [`Topology::packages`].
    pub package: Option<usize>,
    /// The kernel's number of its NUMA node.
    pub node: Option<u32>,
    /// The position of its group in [`Topology::l3_groups`].
    pub l3_group: Option<usize>,
    /// Its rank among the online CPUs of its core: 0 for the first, 1 for the first SMT sibling.
    pub smt_rank: Option<usize>,
}

impl Topology {
    /// Places every usable CPU, in rising order.
    ///
    /// ```
    /// let host = topology::Topology::this_host()?;
    /// // One thread for each core before any second one.
    /// let mut order = host.pus();
    /// order.sort_by_key(|pu| (pu.smt_rank, pu.l3_group, pu.cpu));
    /// assert_eq!(order.len(), host.usable().len());
    /// # Ok::<(), topology::TopologyError>(())
    /// ```
    #[must_use]
    pub fn pus(&self) -> Vec<Pu> {
        self.place_all().into_iter().filter(|pu| self.cpus.usable.contains(pu.cpu)).collect()
    }

    /// Places one online CPU; `None` for a CPU that is not online.
    #[must_use]
    pub fn pu(&self, cpu: u32) -> Option<Pu> {
        self.place_all().into_iter().find(|pu| pu.cpu == cpu)
    }

    /// Goes once over each group, so that many CPUs in many groups stay cheap.
    fn place_all(&self) -> Vec<Pu> {
        let bare =
            |cpu| Pu { cpu, core: None, package: None, node: None, l3_group: None, smt_rank: None };
        let mut pus: Vec<Pu> = self.cpus.online.iter().map(bare).collect();
        let mut set = |cpu: u32, change: &dyn Fn(&mut Pu)| {
            if let Ok(at) = pus.binary_search_by_key(&cpu, |pu| pu.cpu) {
                change(&mut pus[at]);
            }
        };
        for (at, package) in self.packages.iter().enumerate() {
            package.cpus.iter().for_each(|cpu| set(cpu, &|pu| pu.package = Some(at)));
        }
        for (at, core) in self.cores.iter().enumerate() {
            for (rank, cpu) in core.cpus.iter().enumerate() {
                set(cpu, &|pu| (pu.core, pu.smt_rank) = (Some(at), Some(rank)));
            }
        }
        for node in &self.numa_nodes {
            for cpu in node.cpus.iter().flatten() {
                // A CPU that two nodes claim belongs to the lower one.
                set(cpu, &|pu| pu.node = pu.node.or(Some(node.id)));
            }
        }
        let groups = self.l3_groups();
        let place_of = |cache: usize| {
            groups.iter().position(|group| std::ptr::eq(*group, &raw const self.caches[cache]))
        };
        let places: Vec<Option<usize>> = (0..self.caches.len()).map(place_of).collect();
        for (cpu, cache) in self.last_levels() {
            set(cpu, &|pu| pu.l3_group = places[cache]);
        }
        pus
    }
}
