//! Drawings: what lies in what, what is told instead of drawn, and what no text can do to them.

use topology::{CoreTile, CpuSet, Drawing, Part, PartKind, Plan, SvgStyle, Topology};

use crate::builder::{CPU, Root};

fn draw(topology: &Topology) -> Drawing {
    topology.plan().nest()
}

/// Two packages of two cores with two PUs each.
fn two_packages() -> Root {
    let root = Root::new();
    root.file(&format!("{CPU}/online"), "0-7\n");
    for cpu in 0..8_u32 {
        let (package, core) = (cpu / 2 % 2, cpu % 4);
        root.cpu(cpu, i64::from(package), core, &format!("{core},{}", core + 4));
        root.cache(cpu, 0, 1, "Data", "32K", &format!("{core},{}", core + 4));
        let l3 = if package == 0 { "0-1,4-5" } else { "2-3,6-7" };
        root.cache(cpu, 1, 3, "Unified", "8M", l3);
    }
    root.node(0, "0-1,4-5", 1 << 20, "10 21");
    root.node(1, "2-3,6-7", 2 << 20, "21 10");
    root
}

#[test]
fn boxes_of_text() {
    let text = draw(&two_packages().read()).text(80);
    let lines: Vec<&str> = text.lines().skip(1).collect();
    assert_eq!(
        lines,
        [
            "┌ package 0 · node 0, 1 GiB · L3 8 MiB ─┐",
            "│ [0 4] [1 5]                           │",
            "└───────────────────────────────────────┘",
            "┌ package 1 · node 1, 2 GiB · L3 8 MiB ─┐",
            "│ [2 6] [3 7]                           │",
            "└───────────────────────────────────────┘",
            "[ ]: a core with its PUs",
            "each core: L1d 32 KiB",
        ]
    );
    let wide = draw(&two_packages().read()).text(100);
    assert!(wide.contains("│ [0 4] [1 5]                           │ │ [2 6] [3 7] "), "{wide}");
    let narrow = draw(&two_packages().read()).text(1);
    assert!(narrow.lines().all(|line| line.chars().count() <= 41), "{narrow}");
    assert!(narrow.contains("[3 7]"), "{narrow}");
}

#[test]
fn each_pu_is_drawn_once() {
    let svg = draw(&two_packages().read()).svg(SvgStyle::Alone);
    for cpu in 0..8 {
        assert_eq!(svg.matches(&format!(">{cpu}</text>")).count(), 1, "{cpu}");
    }
    assert_eq!(svg.matches("class=\"m-package\"").count(), 2);
    assert!(svg.contains("L1d 32 KiB") && svg.contains("prefers-color-scheme:dark"));
    assert!(!draw(&two_packages().read()).svg(SvgStyle::InPage).contains("<style>"));
}

#[test]
fn an_l3_around_two_nodes_and_a_node_without_cpus() {
    let root = Root::flat(4);
    (0..4).for_each(|cpu| root.cache(cpu, 0, 3, "Unified", "8M", "0-3"));
    root.node(0, "0-1", 100, "10 20 30");
    root.node(1, "2-3", 100, "20 10 30");
    root.node(2, "", 5 << 20, "30 30 10");
    let text = draw(&root.read()).text(80);
    let order =
        ["package 0 · L3 8 MiB", "node 0, 100 KiB", "node 1, 100 KiB", "node 2, 5 GiB, no CPUs"];
    let places: Vec<usize> = order.iter().map(|word| text.find(word).expect(word)).collect();
    assert!(places.is_sorted(), "{text}");
}

#[test]
fn what_cuts_across_is_told() {
    let part = |kind, name: &str, cpus: &str| Part {
        kind,
        name: name.to_owned(),
        detail: String::new(),
        cpus: CpuSet::parse_list(cpus).unwrap(),
    };
    let plan = Plan {
        parts: vec![
            part(PartKind::Package, "package 0", "0-3"),
            part(PartKind::Package, "package 1", "4-7"),
            part(PartKind::Node, "node 0", "2-5"),
            part(PartKind::Node, "node 1", "6-7"),
        ],
        ..Plan::default()
    };
    let text = plan.nest().text(80);
    assert!(text.contains("node 0 (CPUs 2-5) cuts across other parts and is not drawn"), "{text}");
    assert!(text.contains("┌ node 1"), "{text}");
}

#[test]
fn of_large_machines_boxes_alike_are_told() {
    let part = |kind, name: String, detail: &str, from: u32, count: u32| Part {
        kind,
        name,
        detail: detail.to_owned(),
        cpus: CpuSet::from_ids(from..from + count).unwrap(),
    };
    let package = |at: u32| part(PartKind::Package, format!("package {at}"), "", at * 256, 256);
    let group = |at: u32| part(PartKind::Cache, String::new(), "L3 16 MiB", at * 16, 16);
    let core = |cpu| CoreTile { name: format!("core {cpu}"), cpus: vec![cpu], caches: Vec::new() };
    let plan = Plan {
        parts: (0..8).map(package).chain((0..128).map(group)).collect(),
        cores: (0..2048).map(core).collect(),
        ..Plan::default()
    };
    let drawing = plan.nest();
    let text = drawing.text(80);
    assert!(text.lines().count() <= 60, "{text}");
    assert!(text.contains("15 more L3 16 MiB alike, PUs 16-31 | 32-47"), "{text}");
    assert!(text.contains("7 more alike, PUs of package 1: 256-511"), "{text}");
    let svg = drawing.svg(SvgStyle::Alone);
    assert_eq!(svg.matches("class=\"m-pu\"").count(), 16);
    assert!(svg.contains("and 7 alike, with"));
}

#[test]
fn machines_that_say_little_are_drawn_as_far_as_they_are_known() {
    let root = Root::new();
    root.file("proc/cpuinfo", "processor : 0\n\nprocessor : 1\n");
    let topology = root.read();
    let text = draw(&topology).text(80);
    assert!(text.contains("NUMA nodes unknown") && text.contains("caches unknown"), "{text}");
    assert!(text.contains("[0]") && text.contains("[1]"), "{text}");
    let many = Root::new();
    many.file(&format!("{CPU}/online"), "0-99999");
    many.dir(&format!("{CPU}/cpu0"));
    let (text, svg) = (draw(&many.read()).text(80), draw(&many.read()).svg(SvgStyle::Alone));
    assert!(text.contains("more cores") && svg.contains("more cores"), "{text}");
    assert!(text.len() < 100_000 && svg.len() < 1_000_000, "{} {}", text.len(), svg.len());
}

#[test]
fn pus_that_cannot_be_used_are_marked_and_offline_ones_told() {
    let root = Root::flat(3);
    root.file(&format!("{CPU}/possible"), "0-3");
    root.file(&format!("{CPU}/present"), "0-3");
    root.dir(&format!("{CPU}/cpu3"));
    root.file("proc/self/status", "Cpus_allowed_list:\t0,2\n");
    let drawing = draw(&root.read());
    let text = drawing.text(80);
    assert!(text.contains("[(1)]") && text.contains("may not use"), "{text}");
    assert!(text.contains("offline, not drawn: CPUs 3"), "{text}");
    assert_eq!(drawing.svg(SvgStyle::Alone).matches("class=\"m-pu m-off\"").count(), 1);
}

#[test]
fn hostile_names_stay_text() {
    let hostile = "</title><script>alert(1)</script>&\"\u{202e}\u{7}\u{1b}[31m";
    let plan = Plan {
        title: hostile.to_owned(),
        parts: vec![Part {
            kind: PartKind::Package,
            name: hostile.to_owned(),
            detail: hostile.to_owned(),
            cpus: CpuSet::from_ids([0]).unwrap(),
        }],
        ..Plan::default()
    };
    let (text, svg) = (plan.clone().nest().text(80), plan.nest().svg(SvgStyle::Alone));
    assert!(!svg.contains("<script>") && svg.contains("&lt;script&gt;"), "{svg}");
    assert_eq!(svg.matches("</title>").count(), 1);
    assert!(!text.contains('\u{1b}') && !text.contains('\u{202e}'), "{text:?}");
    assert!(!svg.contains('\u{1b}') && !svg.contains('\u{202e}'), "{svg:?}");
}
