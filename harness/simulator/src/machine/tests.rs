//! Good and bad machine files, and what comes of them.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use super::fields::{FIELDS, TABLES};
use super::{Atomics, Cache, Confidence, Distance, FigureValue, HomeVisits, Machine, MachineError};

const DOCUMENTATION: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/machines.md"));

/// A small machine in which everything is given: 2 sockets, 2 nodes, 4 groups, 3 cores, 2 threads;
/// the last node has no memory, and there is one without CPUs.
fn lines() -> Vec<(String, String)> {
    let value = |field: &str| match field {
        "topology.sockets" | "topology.nodes_per_socket" | "topology.threads_per_core" => "2",
        "topology.l3_groups_per_socket" => "4",
        "topology.cores_per_l3_group" => "3",
        "topology.memory_only_nodes" | "topology.memoryless_nodes" => "1",
        "cache.line_bytes" => "64",
        "cache.adjacent_line_prefetch" => "true",
        "transfer.smt_ns" => "8.5",
        "transfer.same_l3_ns" => "25",
        "transfer.same_socket_ns" => "130",
        "transfer.cross_socket_ns" => "260",
        "memory.local_ns" => "100",
        "memory.remote_ns" => "200",
        "memory.memory_only_ns" => "150",
        "memory.memory_only_gb_per_s" => "20",
        "core.store_buffer_entries" => "60",
        "core.smt_share" => "0.75",
        "cache.l1_kib" => "48",
        "cache.l1_ways" => "12",
        "cache.l2_kib" => "1280",
        "cache.l2_ways" => "20",
        "cache.l2_hit_ns" => "4.25",
        "cache.l3_kib" => "4096",
        "cache.l3_ways" => "16",
        "cache.l3_hit_ns" => "12.5",
        "cache.l3_inclusive" => "true",
        "line.rmw_queue_ratio" => "0.5",
        "line.near_grants" => "16",
        "home.visits" => "\"always\"",
        "home.atomics" => "\"far\"",
        "memory.node_gb_per_s" => "120",
        "memory.link_gb_per_s" => "50",
        "memory.core_gb_per_s" => "12.5",
        _ => "2.5",
    };
    FIELDS.iter().map(|field| (field.name.into(), value(field.name).into())).collect()
}

fn figure(value: &str) -> String {
    format!("{{ value = {value}, source = \"a test\", confidence = \"assumed\" }}")
}

/// The text of a file of these figures, each written as it stands.
fn text_of(figures: &[(String, String)]) -> String {
    let mut text = String::from("name = \"test\"\ntitle = \"A test\"\narchitecture = \"x86-64\"\n");
    for table in TABLES {
        writeln!(text, "[{table}]").expect("a text grows");
        for (field, figure) in figures {
            if let Some(key) = field.strip_prefix(table).and_then(|key| key.strip_prefix('.')) {
                writeln!(text, "{key} = {figure}").expect("a text grows");
            }
        }
    }
    text
}

fn good() -> Vec<(String, String)> {
    lines().into_iter().map(|(field, value)| (field, figure(&value))).collect()
}

fn parse(text: &str) -> Result<Machine, MachineError> {
    Machine::from_toml(text, "test.toml")
}

fn machine() -> Machine {
    parse(&text_of(&good())).expect("the test machine is good")
}

/// The error of the good file with one figure written differently (`None`: left out).
fn error_with(field: &str, written: Option<&str>) -> MachineError {
    error_with_all(&[(field, written)])
}

fn error_with_all(changes: &[(&str, Option<&str>)]) -> MachineError {
    let mut figures = good();
    for (field, written) in changes {
        figures.retain(|(name, _)| name != field);
        if let Some(written) = written {
            figures.push((field.to_string(), written.to_string()));
        }
    }
    parse(&text_of(&figures)).expect_err("the file is bad")
}

#[track_caller]
fn says(error: &MachineError, parts: &[&str]) {
    let text = error.to_string();
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in {text:?}");
    }
}

#[test]
fn every_named_machine_is_good() {
    assert!(Machine::names().is_sorted());
    for name in Machine::names() {
        let machine = Machine::named(name).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(machine.name(), name);
        assert!(machine.cores() >= machine.physical_cores());
        assert!(machine.figures().all(|figure| figure.source.len() > 4), "{name}");
        let measured = machine.figures().any(|figure| figure.confidence == Confidence::Measured);
        assert!(measured || machine.title().contains("extrapolated"), "{name}");
        assert!(!machine.figures().any(|figure| figure.by_default), "{name} says everything");
        assert!(!machine.is_grown());
    }
}

#[test]
fn the_default_machine_is_the_published_one() {
    let machine = Machine::named("epyc-7742-2s").expect("it is there");
    assert_eq!((machine.physical_cores(), machine.cores()), (128, 256));
    assert_eq!((machine.sockets(), machine.nodes(), machine.l3_groups()), (2, 2, 32));
    assert_eq!(machine.transfer_ps(Distance::SameL3), 25_300);
    assert_eq!(machine.transfer_ps(Distance::CrossSocket), 266_600);
    assert_eq!(machine.transfer_ps(Distance::Same), 0);
    assert_eq!(machine.line_bytes(), 64);
    assert!(!machine.adjacent_line_prefetch());
    assert_eq!(machine.l1_hit_ps(), 1_176);
    assert_eq!(machine.architecture(), "x86-64");
    let figure = machine.figures().find(|figure| figure.field == "transfer.same_l3_ns");
    assert_eq!(figure.map(|figure| figure.value), Some(FigureValue::Number(25.3)));
}

#[test]
fn the_other_named_machines_have_the_sizes_of_their_parts() {
    for (name, physical, threads) in [
        ("epyc-9654-2s", 192, 384),
        ("xeon-8275cl-2s", 48, 96),
        ("xeon-8375c-2s", 64, 128),
        ("graviton2", 64, 64),
        ("graviton3", 64, 64),
        ("altra-max-128", 128, 128),
        ("epyc-7763-2s", 128, 256),
        ("epyc-9754", 128, 256),
        ("xeon-8176-8s", 224, 448),
    ] {
        let machine = Machine::named(name).expect("it is there");
        assert_eq!((machine.physical_cores(), machine.cores()), (physical, threads), "{name}");
    }
    let graviton = Machine::named("graviton2").expect("it is there");
    assert_eq!(graviton.memory_remote_ps(), graviton.memory_local_ps());
    assert_eq!(graviton.architecture(), "arm64");
}

#[test]
fn cores_are_numbered_by_socket_group_and_core_and_siblings_come_last() {
    let machine = machine();
    assert_eq!((machine.physical_cores(), machine.cores(), machine.nodes()), (24, 48, 5));
    let places: Vec<_> = [0, 2, 3, 5, 6, 11, 12, 23, 24, 47]
        .map(|cpu| (machine.socket_of(cpu), machine.node_of(cpu), machine.l3_of(cpu)))
        .into();
    assert_eq!(
        places,
        [
            (0, 0, 0),
            (0, 0, 0),
            (0, 0, 1),
            (0, 0, 1),
            (0, 1, 2),
            (0, 1, 3),
            (1, 2, 4),
            (1, 3, 7),
            (0, 0, 0),
            (1, 3, 7)
        ]
    );
    assert_eq!(machine.physical_core_of(24), 0);
    assert_eq!(machine.socket_of_node(3), 1);
}

#[test]
fn distances_rise_with_what_is_shared_less() {
    let machine = machine();
    for (a, b, distance) in [
        (0, 0, Distance::Same),
        (0, 24, Distance::Smt),
        (24, 0, Distance::Smt),
        (0, 25, Distance::SameL3),
        (0, 1, Distance::SameL3),
        (0, 3, Distance::SameSocket),
        (0, 11, Distance::SameSocket),
        (0, 12, Distance::CrossSocket),
        (11, 36, Distance::CrossSocket),
    ] {
        assert_eq!(machine.distance(a, b), distance, "{a} {b}");
        assert_eq!(machine.distance(b, a), distance, "{b} {a}");
    }
    let transfers = Distance::ALL.map(|distance| machine.transfer_ps(distance));
    assert_eq!(transfers, [0, 8_500, 25_000, 130_000, 260_000]);
}

#[test]
fn costs_are_in_picoseconds() {
    let machine = machine();
    assert_eq!(machine.clock_ghz(), 2.5);
    assert_eq!(machine.cycles_ps(10.0), 4_000);
    assert_eq!((machine.l1_hit_ps(), machine.pause_ps()), (1_000, 1_000));
    assert_eq!((machine.rmw_owned_ps(), machine.fence_ps()), (2_500, 2_500));
    assert_eq!(machine.instructions_ps(1_000), 160_000);
    assert_eq!(machine.memory_ps(0, 0), 100_000);
    assert_eq!(machine.memory_ps(0, 1), 100_000);
    assert_eq!(machine.memory_ps(0, 2), 200_000);
    assert_eq!((machine.memory_ps(0, 4), machine.memory_ps(12, 4)), (150_000, 250_000));
    for cost in [
        machine.syscall_ps(),
        machine.futex_wake_ps(),
        machine.wake_latency_ps(),
        machine.context_switch_ps(),
        machine.page_fault_ps(),
        machine.time_slice_ps(),
        machine.timer_slack_ps(),
        machine.interrupt_ps(),
    ] {
        assert_eq!(cost, 2_500);
    }
}

#[test]
fn nodes_may_have_no_cpus_or_no_memory() {
    let machine = machine();
    assert_eq!((machine.nodes(), machine.cpu_nodes()), (5, 4));
    assert_eq!(
        [0, 2, 3, 4, 5].map(|node| machine.has_memory(node)),
        [true, true, false, true, false]
    );
    assert_eq!(machine.socket_of_node(4), 0);
    assert_eq!(machine.memory_only_gb_per_s(), Some(20.0));
    let nearest = |cpu, asked: fn(usize) -> bool| machine.nearest_memory(cpu, asked);
    assert_eq!(nearest(23, |_| true), Some(2), "its own node has none");
    assert_eq!(nearest(0, |node| node >= 3), Some(4));
    assert_eq!(nearest(0, |node| node == 3), None);
    let nodes = |memoryless: &'static str, only: &'static str| {
        let (memoryless, only) = (figure(memoryless), figure(only));
        error_with_all(&[
            ("topology.memoryless_nodes", Some(&memoryless)),
            ("topology.memory_only_nodes", Some(&only)),
            ("memory.memory_only_ns", None),
            ("memory.memory_only_gb_per_s", None),
        ])
    };
    says(&nodes("4", "0"), &["topology.memoryless_nodes", "no node would have memory"]);
    says(&nodes("5", "1"), &["topology.memoryless_nodes", "more than the 4 nodes with CPUs"]);
    says(&nodes("1", "1"), &["memory.memory_only_ns", "is missing"]);
    let near = error_with("memory.memory_only_ns", Some(&figure("50")));
    says(&near, &["memory.local_ns", "100 is more than the 50 of `memory.memory_only_ns`"]);
}

#[test]
fn caches_lines_homes_and_bandwidth_are_those_of_the_file() {
    let machine = machine();
    assert_eq!(machine.l1(), Cache { bytes: 48 << 10, ways: 12, hit_ps: 1_000 });
    assert_eq!(machine.l2(), Cache { bytes: 1280 << 10, ways: 20, hit_ps: 4_250 });
    assert_eq!(machine.l3(), Cache { bytes: 4 << 20, ways: 16, hit_ps: 12_500 });
    assert!(machine.l3_inclusive());
    assert_eq!((machine.store_buffer_entries(), machine.near_grants()), (60, 16));
    assert_eq!((machine.smt_share(), machine.rmw_queue_ratio()), (0.75, 0.5));
    assert_eq!((machine.hold_ps(), machine.read_group_ps()), (2_500, 2_500));
    assert_eq!((machine.invalidate_ps(), machine.jitter_percent()), (2_500, 2.5));
    assert_eq!(machine.home_visits(), HomeVisits::Always);
    assert_eq!(machine.atomics(), Atomics::Far);
    assert_eq!((machine.node_gb_per_s(), machine.core_gb_per_s()), (120.0, 12.5));
    assert_eq!(machine.link_gb_per_s(), Some(50.0));
}

#[test]
fn what_a_file_leaves_out_has_the_documented_default() {
    let needed: Vec<_> = good()
        .into_iter()
        .filter(|(name, _)| FIELDS.iter().any(|f| f.name == name && f.absent.is_none()))
        .filter(|(name, _)| name != "memory.memory_only_ns") // there are no such nodes
        .collect();
    let machine = parse(&text_of(&needed)).expect("the rest may be absent");
    assert_eq!(machine.l1(), Cache { bytes: 32 << 10, ways: 8, hit_ps: 1_000 });
    assert_eq!(machine.l2(), Cache { bytes: 512 << 10, ways: 8, hit_ps: 3_500 });
    assert_eq!(machine.l3(), Cache { bytes: 6 << 20, ways: 16, hit_ps: 15_000 });
    assert!(!machine.l3_inclusive());
    assert_eq!((machine.store_buffer_entries(), machine.near_grants()), (56, 12));
    assert_eq!((machine.smt_share(), machine.rmw_queue_ratio()), (0.6, 0.6));
    assert_eq!((machine.hold_ps(), machine.read_group_ps()), (0, 15_000));
    assert_eq!((machine.invalidate_ps(), machine.jitter_percent()), (7_000, 5.0));
    assert_eq!((machine.home_visits(), machine.atomics()), (HomeVisits::Always, Atomics::Near));
    assert_eq!((machine.node_gb_per_s(), machine.core_gb_per_s()), (100.0, 15.0));
    assert_eq!(machine.link_gb_per_s(), Some(50.0));
    assert_eq!((machine.nodes(), machine.memory_only_gb_per_s()), (4, None));
    let absent = FIELDS.len() - needed.len() - 2;
    let by_default = machine.figures().filter(|figure| figure.by_default);
    assert_eq!(by_default.filter(|figure| figure.source.contains("default")).count(), absent);
}

#[test]
fn fewer_cores_are_the_first_ones() {
    let machine = Machine::named("epyc-7742-2s").expect("it is there");
    for cores in [1, 2, 5, 64, 65, 128, 129, 256] {
        let cut = machine.with_cores(cores).expect("it can be cut");
        assert_eq!(cut.cores(), cores);
        assert_eq!(cut.physical_cores(), cores.min(128));
        assert!(!cut.is_grown());
        for cpu in 0..cores as u32 {
            assert_eq!(cut.distance(0, cpu), machine.distance(0, cpu));
        }
    }
}

#[test]
fn more_cores_are_more_groups_in_each_socket() {
    let machine = Machine::named("epyc-7742-2s").expect("it is there");
    let grown = machine.with_cores(512).expect("it can be grown");
    assert_eq!((grown.cores(), grown.physical_cores(), grown.l3_groups()), (512, 256, 64));
    assert_eq!(grown.distance(0, 4), Distance::SameSocket);
    assert_eq!(grown.distance(0, 128), Distance::CrossSocket);
    assert_eq!(grown.distance(0, 256), Distance::Smt);
    assert!(grown.is_grown());
    let odd = machine.with_cores(257).expect("it can be grown");
    assert_eq!((odd.cores(), odd.l3_groups()), (257, 34));
    assert_eq!(grown.with_cores(8).expect("and cut again").cores(), 8);
}

#[test]
fn a_socket_of_one_group_grows_by_cores() {
    let machine = Machine::named("graviton2").expect("it is there");
    let grown = machine.with_cores(128).expect("it can be grown");
    assert_eq!((grown.cores(), grown.l3_groups()), (128, 1));
    assert_eq!(grown.distance(0, 127), Distance::SameL3);
}

#[test]
fn nodes_stay_whole_when_a_machine_grows() {
    let grown = machine().with_cores(49).expect("it can be grown");
    assert_eq!((grown.l3_groups(), grown.nodes()), (12, 5));
    assert_eq!((grown.node_of(0), grown.node_of(8), grown.node_of(9)), (0, 0, 1));
}

#[test]
fn impossible_core_counts_are_refused_with_the_reason() {
    let machine = machine();
    says(&machine.with_cores(0).expect_err("none"), &["test cannot have 0 cores", "at least one"]);
    says(&machine.with_cores(1025).expect_err("many"), &["1025", "the limit is 1024"]);
    let error = machine.with_cores(1024).expect_err("whole groups do not fit");
    says(&error, &["whole L3 groups", "limit is 1024"]);
}

#[test]
fn an_unknown_name_lists_the_known_ones_and_the_nearest() {
    let error = Machine::named("epyc-7724-2s").expect_err("no such machine");
    says(&error, &["`epyc-7724-2s`", "is `epyc-7742-2s` meant?", "graviton2", "xeon-8375c-2s"]);
    let error = Machine::find("toaster").expect_err("no such machine");
    assert!(!error.to_string().contains("meant?"), "{error}");
    says(&Machine::named("").expect_err("no name"), &["``", "Known are"]);
}

#[test]
fn files_are_found_by_path() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("mine.toml");
    fs::write(&path, text_of(&good())).expect("it is written");
    let machine = Machine::find(path.to_str().expect("plain path")).expect("it is good");
    assert_eq!(machine.name(), "test");
    says(&Machine::find("./none.toml").expect_err("not there"), &["./none.toml", "give the path"]);
    says(&Machine::find("none.toml").expect_err("not there"), &["cannot read", "none.toml"]);
    let error = Machine::read(folder.path()).expect_err("a folder is no file");
    says(&error, &["cannot read", &folder.path().display().to_string()]);
}

#[test]
fn what_is_no_machine_file_at_all_is_said_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let read = |content: &[u8]| {
        let path = folder.path().join("bad.toml");
        fs::write(&path, content).expect("it is written");
        Machine::read(&path).expect_err("it is bad")
    };
    says(&read(b""), &["bad.toml is empty", "docs/machines.md"]);
    says(&read(b" \n\t\n"), &["is empty"]);
    says(&read(&[0xff, 0xfe, 0, 1, 2]), &["not UTF-8"]);
    says(&read(b"name = \"a\"\0"), &["not UTF-8"]);
    says(&read(b"\x7fELF\x02\x01\x01\0\0"), &["no machine file"]);
    says(&read(&vec![b'#'; 1_000_001]), &["larger than 1 MB"]);
    says(&read(&vec![b'#'; 999_999]), &["`name` is missing"]);
    says(&read("[".repeat(100_000).as_bytes()), &["not valid TOML"]);
    says(&read(format!("name = {}", "[".repeat(100_000)).as_bytes()), &["not valid TOML"]);
    says(&Machine::read(Path::new("/dev/zero")).expect_err("endless"), &["larger than 1 MB"]);
    says(&parse(&"#".repeat(2_000_000)).expect_err("long"), &["larger than 1 MB"]);
}

#[test]
fn what_is_no_toml_is_said_with_its_place() {
    for bad in ["name", "name = ", "[topology", "name = \"a", "= 3", "a = 1\na = 2", "{\"a\": 1}"] {
        let error = parse(bad).expect_err("no TOML");
        assert!(matches!(error, MachineError::Syntax { .. }), "{bad}: {error:?}");
        says(&error, &["test.toml is not valid TOML", "line"]);
    }
}

#[test]
fn every_missing_field_is_named() {
    for field in FIELDS.iter().filter(|field| field.absent.is_none()) {
        let error = error_with(field.name, None);
        says(&error, &["test.toml", &format!("`{}` is missing", field.name), field.about]);
    }
}

#[test]
fn missing_texts_are_named() {
    let text = text_of(&good());
    for key in ["name", "title", "architecture"] {
        let start = text.find(&format!("{key} = ")).expect("it is there");
        let end = start + text[start..].find('\n').expect("a line ends");
        let without = format!("{}{}", &text[..start], &text[end..]);
        says(&parse(&without).expect_err("it is missing"), &[&format!("`{key}` is missing")]);
        let with = |written: &str| {
            let text = format!("{}{key} = {written}{}", &text[..start], &text[end..]);
            parse(&text).expect_err("it is bad")
        };
        says(&with("\"\""), &[&format!("`{key}` is empty")]);
        says(&with("3"), &[&format!("`{key}` must be a text in quotes and is integer (3)")]);
        says(&with("[1]"), &["is an array"]);
    }
    let error = parse(&text.replace("\"x86-64\"", "\"riscv\"")).expect_err("unknown");
    says(&error, &["`architecture`", "\"riscv\"", "\"x86-64\" or \"arm64\""]);
    let error = parse(&text.replace("\"test\"", "\"a b/c\"")).expect_err("no name");
    says(&error, &["`name`", "letters, digits"]);
}

#[test]
fn unknown_fields_are_named_with_the_nearest_known_one() {
    says(
        &error_with("transfer.same_13_ns", Some("1")),
        &["`transfer.same_13_ns` is no field", "is `same_l3_ns` meant?"],
    );
    says(&error_with("cache.colour", Some("1")), &["`cache.colour`", "line_bytes"]);
    let text = text_of(&good());
    let error = parse(&format!("{text}[topolgy]\n")).expect_err("unknown table");
    says(&error, &["`topolgy` is no field", "is `topology` meant?"]);
    let error = parse(&format!("cores = 5\n{text}")).expect_err("unknown key");
    says(&error, &["`cores` is no field"]);
    let written = "{ value = 1, source = \"s\", confidence = \"assumed\", unit = \"ns\" }";
    says(&error_with("atomic.fence_ns", Some(written)), &["`atomic.fence_ns.unit` is no field"]);
}

#[test]
fn a_figure_needs_its_source_and_confidence() {
    let with = |written: &str| error_with("atomic.fence_ns", Some(written));
    says(&with("5.0"), &["`atomic.fence_ns` must be { value", "is float (5.0)"]);
    says(
        &with("{ source = \"s\", confidence = \"assumed\" }"),
        &["`atomic.fence_ns.value` is missing"],
    );
    says(
        &with("{ value = 1, confidence = \"assumed\" }"),
        &["`atomic.fence_ns.source` is missing"],
    );
    says(&with("{ value = 1, source = \"s\" }"), &["`atomic.fence_ns.confidence` is missing"]);
    says(
        &with("{ value = 1, source = \" \", confidence = \"assumed\" }"),
        &["fence_ns.source` is empty"],
    );
    says(
        &with("{ value = 1, source = 7, confidence = \"assumed\" }"),
        &["fence_ns.source` must be a text"],
    );
    says(
        &with("{ value = 1, source = \"s\", confidence = \"sure\" }"),
        &["\"sure\"", "measured, specified, derived, assumed"],
    );
    says(
        &with("{ value = 1, source = \"s\", confidence = true }"),
        &["confidence` must be a text"],
    );
}

#[test]
fn impossible_values_are_named() {
    for (field, value, part) in [
        ("atomic.fence_ns", "0", "is 0 and must be from 0.001"),
        ("atomic.fence_ns", "0.0", "from 0.001"),
        ("atomic.fence_ns", "-1.5", "is -1.5"),
        ("atomic.fence_ns", "nan", "is NaN"),
        ("atomic.fence_ns", "-nan", "NaN"),
        ("atomic.fence_ns", "inf", "is inf"),
        ("atomic.fence_ns", "-inf", "is -inf"),
        ("atomic.fence_ns", "1e300", "to 1000000000"),
        ("atomic.fence_ns", "1e-9", "from 0.001"),
        ("atomic.fence_ns", "\"5\"", "must be a number and is a text"),
        ("atomic.fence_ns", "true", "must be a number and is boolean (true)"),
        ("atomic.fence_ns", "[5]", "is an array"),
        ("atomic.fence_ns", "2026-01-01", "is datetime"),
        ("clock.core_ghz", "3400", "to 10"),
        ("clock.core_ghz", "0", "from 0.1"),
        ("core.instructions_per_cycle", "0", "from 0.1"),
        ("core.pause_cycles", "-65", "is -65"),
        ("topology.sockets", "0", "from 1 to 64"),
        ("topology.sockets", "-2", "from 1 to 64"),
        ("topology.sockets", "2.0", "must be a whole number and is float"),
        ("topology.sockets", "9223372036854775807", "from 1 to 64"),
        ("topology.cores_per_l3_group", "1025", "from 1 to 1024"),
        ("topology.threads_per_core", "9", "from 1 to 8"),
        ("topology.threads_per_core", "\"two\"", "is a text"),
        ("cache.line_bytes", "48", "a power of two"),
        ("cache.line_bytes", "8", "from 16 to 1024"),
        ("cache.line_bytes", "64.0", "a whole number"),
        ("cache.adjacent_line_prefetch", "1", "must be true or false"),
        ("cache.adjacent_line_prefetch", "\"no\"", "must be true or false"),
        ("kernel.time_slice_ns", "3e9", "to 1000000000"),
        ("line.rmw_queue_ratio", "1.5", "from 0 to 1"),
        ("line.hold_ns", "-1", "from 0 to"),
        ("line.near_grants", "0", "from 1 to"),
        ("core.smt_share", "0.4", "from 0.5 to 1"),
        ("home.visits", "\"never\"", "\"never\" and must be \"always\" or \"across_sockets\""),
        ("home.atomics", "1", "must be a text in quotes"),
        ("memory.node_gb_per_s", "0", "from 0.001"),
        ("cache.l3_ways", "257", "from 1 to 256"),
    ] {
        let error = error_with(field, Some(&figure(value)));
        says(&error, &["test.toml", &format!("`{field}.value`"), part]);
    }
}

#[test]
fn contradictions_are_named() {
    let with = |field: &str, value: &str| error_with(field, Some(&figure(value)));
    says(
        &with("transfer.same_l3_ns", "300"),
        &["`transfer.same_l3_ns`", "`transfer.same_socket_ns`", "correct one"],
    );
    says(&with("transfer.same_socket_ns", "261"), &["261", "260", "`transfer.cross_socket_ns`"]);
    says(&with("transfer.smt_ns", "26"), &["`transfer.smt_ns`"]);
    says(&with("memory.local_ns", "201"), &["`memory.local_ns`", "`memory.remote_ns`"]);
    says(
        &with("cache.l1_hit_cycles", "100"),
        &["`cache.l1_hit_cycles`", "40 ns", "transfer.smt_ns"],
    );
    says(&with("cache.l2_hit_ns", "13"), &["`cache.l2_hit_ns`", "12.5 of `cache.l3_hit_ns`"]);
    says(&with("cache.l3_hit_ns", "101"), &["`cache.l3_hit_ns`", "100 of `memory.local_ns`"]);
    says(&with("cache.l2_hit_ns", "0.5"), &["`cache.l1_hit_cycles`", "0.5 of `cache.l2_hit_ns`"]);
    says(&with("cache.l2_kib", "1"), &["less than a line of 64 bytes", "`cache.l2_ways` = 20"]);
    says(&with("cache.l2_kib", "101"), &["`cache.l2_kib`", "no whole number of sets"]);
    says(&with("cache.l2_kib", "40"), &["`cache.l2_kib`", "48 of `cache.l1_kib`"]);
    says(&with("cache.l3_kib", "2048"), &["`cache.l3_inclusive`", "3 times the 1280 KiB"]);
    says(&with("memory.core_gb_per_s", "121"), &["120 of `memory.node_gb_per_s`"]);
    says(&with("topology.nodes_per_socket", "16"), &["leave 4 of 16 nodes without CPUs"]);
    says(&with("topology.nodes_per_socket", "5"), &["12 cores of a socket", "5 nodes"]);
    says(&with("topology.nodes_per_socket", "3"), &["4 L3 groups of a socket", "3 nodes"]);
    says(&with("topology.cores_per_l3_group", "1000"), &["16000 hardware threads", "1024"]);
    says(&with("topology.threads_per_core", "1"), &["`core.smt_share`", "per_core is 1"]);
    says(&with("topology.sockets", "1"), &["`transfer.cross_socket_ns`", "sockets is 1"]);
    let one_group = [
        ("topology.l3_groups_per_socket", Some(figure("1"))),
        ("topology.cores_per_l3_group", Some(figure("12"))),
    ];
    let changes = one_group.each_ref().map(|(field, written)| (*field, written.as_deref()));
    says(&error_with_all(&changes), &["`transfer.same_socket_ns`", "l3_groups_per_socket is 1"]);
}

#[test]
fn a_table_that_is_none_is_named() {
    let text = text_of(&good());
    let start = text.find("[clock]").expect("it is there");
    let end = text.find("[core]").expect("it is there");
    let text = format!("clock = 3\n{}{}", &text[..start], &text[end..]);
    says(&parse(&text).expect_err("no table"), &["`clock` must be a table and is integer (3)"]);
}

#[test]
fn the_documented_example_is_a_machine() {
    let start = DOCUMENTATION.find("```toml\n").expect("there is an example") + "```toml\n".len();
    let end = start + DOCUMENTATION[start..].find("```").expect("the example ends");
    let machine = parse(&DOCUMENTATION[start..end]).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((machine.name(), machine.cores()), ("my-server", 32));
}

#[test]
fn every_field_and_every_machine_is_documented() {
    for field in &FIELDS {
        let row = format!("| `{}` |", field.name);
        assert!(DOCUMENTATION.contains(&row), "{row}");
    }
    let rows = FIELDS.iter().map(|field| DOCUMENTATION.find(&format!("| `{}` |", field.name)));
    assert!(rows.is_sorted(), "the documentation has another order");
    for name in Machine::names() {
        assert!(DOCUMENTATION.contains(&format!("`{name}`")), "{name}");
    }
}
