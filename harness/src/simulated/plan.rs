//! The plan of a described machine, to be drawn like one that was read.

use topology::{CoreTile, CpuSet, Part, PartKind, Plan};

use super::Machine;

/// Describes a machine for a drawing: sockets, NUMA nodes, L3 groups, cores with their caches.
/// Machine files do not say how much memory a node has.
#[must_use]
pub fn plan(machine: &Machine) -> Plan {
    let kib = |bytes: usize| match bytes / 1024 {
        kib if kib >= 1024 && kib.is_multiple_of(1024) => format!("{} MiB", kib / 1024),
        kib if kib >= 1024 => format!("{:.1} MiB", kib as f64 / 1024.0),
        kib => format!("{kib} KiB"),
    };
    let l3 = format!("L3 {}", kib(machine.l3().bytes));
    let own = [("L1d", machine.l1()), ("L2", machine.l2())];
    let own = own.map(|(name, cache)| format!("{name} {}", kib(cache.bytes)));
    let mut parts = Vec::new();
    let mut of = |kind, detail: &str, place: &dyn Fn(u32) -> usize| {
        for (at, cpus) in gathered(machine, place) {
            let name = match kind {
                PartKind::Package => format!("socket {at}"),
                PartKind::Node => format!("node {at}"),
                _ => String::new(),
            };
            parts.push(Part { kind, name, detail: detail.to_owned(), cpus });
        }
    };
    of(PartKind::Package, "", &|cpu| machine.socket_of(cpu));
    of(PartKind::Node, "", &|cpu| machine.node_of(cpu));
    of(PartKind::Cache, &l3, &|cpu| machine.l3_of(cpu));
    let cores = gathered(machine, &|cpu| machine.physical_core_of(cpu)).into_iter();
    let cores = cores.map(|(at, cpus)| CoreTile {
        name: format!("core {at}"),
        cpus: cpus.iter().collect(),
        caches: own.to_vec(),
    });
    let mut notes = vec!["a described machine: its PUs are what the simulator has".to_owned()];
    if machine.is_grown() {
        notes.push("grown beyond what its file describes".to_owned());
    }
    Plan {
        title: format!("{}: {}", machine.name(), machine.title()),
        parts,
        cores: cores.collect(),
        unusable: CpuSet::new(),
        notes,
    }
}

/// The machine's PUs by their place, in the order of places.
fn gathered(machine: &Machine, place: &dyn Fn(u32) -> usize) -> Vec<(usize, CpuSet)> {
    let mut sets: std::collections::BTreeMap<usize, CpuSet> = std::collections::BTreeMap::new();
    for cpu in 0..machine.cores() as u32 {
        // A machine has at most 1024 PUs, and all of them fit into a set.
        let _ = sets.entry(place(cpu)).or_default().insert(cpu);
    }
    sets.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_machine_is_drawn_whole() {
        for name in Machine::names() {
            let machine = Machine::named(name).unwrap();
            let plan = plan(&machine);
            let count = |kind| plan.parts.iter().filter(|part| part.kind == kind).count();
            assert_eq!(count(PartKind::Package), machine.sockets(), "{name}");
            assert_eq!(count(PartKind::Node), machine.nodes(), "{name}");
            assert_eq!(count(PartKind::Cache), machine.l3_groups(), "{name}");
            assert_eq!(plan.cores.len(), machine.physical_cores(), "{name}");
            let svg = plan.nest().svg(topology::SvgStyle::Alone);
            assert_eq!(svg.matches("class=\"m-pu\"").count(), machine.cores(), "{name}");
            assert_eq!(svg.matches("class=\"m-core").count(), machine.physical_cores(), "{name}");
        }
    }

    #[test]
    fn a_cut_machine_has_the_cores_that_are_left() {
        let machine = Machine::named("epyc-7742-2s").unwrap().with_cores(6).unwrap();
        let text = plan(&machine).nest().text(80);
        assert!(text.contains("[0] [1] [2] [3]") && text.contains("[4] [5]"), "{text}");
        assert!(!text.contains("socket 1") && text.contains("L3 16 MiB"), "{text}");
    }
}
