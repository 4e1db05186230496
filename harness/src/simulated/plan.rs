//! The plan of a described machine, to be drawn like one that was read.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;
use topology::{CoreTile, CpuSet, Part, PartKind, Plan};

use super::Machine;
use crate::report::number::cut;

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

/// Describes the machine that a run header of the simulated engine describes.
///
/// # Errors
/// What is missing in the description or cannot be.
pub fn recorded_plan(description: &Value) -> Result<Plan, String> {
    let text = |key: &str| description.get(key).and_then(Value::as_str);
    let missing = |key: &str| format!("its description has no `{key}`");
    let figures = description.get("figures").and_then(Value::as_object);
    let figures = figures.ok_or_else(|| missing("figures"))?;
    let mut tables: BTreeMap<&str, String> = BTreeMap::new();
    for (field, value) in figures {
        let plain = |text: &str| text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        let value = value.as_str().unwrap_or_default();
        let (table, key) = field.split_once('.').unwrap_or_default();
        let number = value.parse::<f64>().is_ok_and(f64::is_finite);
        if table.is_empty() || !plain(table) || !plain(key) || !number && !plain(value) {
            return Err(format!("`{}` is no figure of a machine", cut(field, 60)));
        }
        let quote = if number || value == "true" || value == "false" { "" } else { "\"" };
        // Writing to a String cannot fail.
        let _ = writeln!(
            tables.entry(table).or_default(),
            "{key} = {{ value = {quote}{value}{quote}, source = \"a record\", confidence = \
             \"assumed\" }}"
        );
    }
    let mut file =
        "name = \"recorded\"\ntitle = \"recorded\"\narchitecture = \"x86-64\"\n".to_owned();
    tables.iter().for_each(|(table, lines)| {
        let _ = write!(file, "[{table}]\n{lines}");
    });
    let machine =
        Machine::from_toml(&file, "its description").map_err(|error| error.to_string())?;
    let cores = description.get("cores").and_then(Value::as_u64);
    let cores = cores.ok_or_else(|| missing("cores"))?;
    let cores = usize::try_from(cores).map_err(|error| error.to_string())?;
    let machine = machine.with_cores(cores).map_err(|error| error.to_string())?;
    let name = text("name").ok_or_else(|| missing("name"))?;
    let title = format!("{name}: {}", text("title").unwrap_or("no title"));
    Ok(Plan { title, ..plan(&machine) })
}

/// The machine's PUs by their place, in the order of places.
fn gathered(machine: &Machine, place: &dyn Fn(u32) -> usize) -> Vec<(usize, CpuSet)> {
    let mut sets: BTreeMap<usize, CpuSet> = BTreeMap::new();
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

    /// What a run header says of a machine.
    fn recorded(machine: &Machine) -> Value {
        let figures = machine.figures();
        let figures = figures.map(|one| (one.field.to_owned(), one.value.to_string().into()));
        serde_json::json!({
            "name": machine.name(), "title": machine.title(), "cores": machine.cores(),
            "figures": Value::Object(figures.collect()),
        })
    }

    #[test]
    fn what_a_record_says_is_drawn_like_the_machine() {
        for name in Machine::names() {
            let machine = Machine::named(name).unwrap();
            for machine in [machine.clone(), machine.with_cores(5).unwrap()] {
                assert_eq!(recorded_plan(&recorded(&machine)).unwrap(), plan(&machine), "{name}");
            }
        }
        let grown = Machine::named("graviton3").unwrap().with_cores(200).unwrap();
        assert_eq!(recorded_plan(&recorded(&grown)).unwrap(), plan(&grown));
    }

    #[test]
    fn records_that_describe_no_machine_are_refused() {
        let good = recorded(&Machine::named("epyc-7742-2s").unwrap());
        let with = |pointer: &str, value: Value| {
            let mut bad = good.clone();
            *bad.pointer_mut(pointer).unwrap() = value;
            recorded_plan(&bad)
        };
        for (pointer, value) in [
            ("/figures", Value::Null),
            ("/cores", (-1).into()),
            ("/cores", 0.into()),
            ("/cores", u64::MAX.into()),
            ("/name", 5.into()),
            ("/figures/topology.sockets", "1e9".into()),
            ("/figures/topology.sockets", "-1".into()),
            ("/figures/topology.sockets", "2\n[evil]".into()),
            ("/figures/topology.sockets", 2.into()),
            ("/figures/cache.l1_kib", "nan".into()),
        ] {
            let refused = with(pointer, value.clone());
            assert!(refused.is_err(), "{pointer} {value}: {refused:?}");
        }
        assert!(recorded_plan(&Value::Null).is_err());
        let hostile = serde_json::json!({"figures": {"a].b\n": "1"}});
        assert!(recorded_plan(&hostile).unwrap_err().contains("no figure"));
    }

    #[test]
    fn a_cut_machine_has_the_cores_that_are_left() {
        let machine = Machine::named("epyc-7742-2s").unwrap().with_cores(6).unwrap();
        let text = plan(&machine).nest().text(80);
        assert!(text.contains("[0] [1] [2] [3]") && text.contains("[4] [5]"), "{text}");
        assert!(!text.contains("socket 1") && text.contains("L3 16 MiB"), "{text}");
    }
}
