//! Machine files: made from their table, listed, shown, checked.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn machines(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_manycore"));
    command.arg("machines").args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn the_files_are_what_the_script_makes() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let output: Output =
        Command::new(root.join("scripts/machine-files.sh")).arg("--check").output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout), "10 machine files are what figures.csv makes\n");
}

#[test]
fn all_are_listed_with_their_sizes_and_transfers() {
    let table = text(&machines(&[]).stdout);
    let row = table.lines().find(|line| line.contains("epyc-7742-2s")).unwrap();
    let last: Vec<&str> = row.split_once("Rome)").unwrap().1.split_whitespace().collect();
    assert_eq!(last[..8], ["128", "256", "2", "32", "8.00", "25.3", "132", "267"], "{row}");
    let listed = text(&machines(&["--json"]).stdout);
    let lines: Vec<Value> = listed.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(lines.len(), 10);
    let graviton = lines.iter().find(|line| line["name"] == "graviton2").unwrap();
    assert_eq!(graviton["hardware_threads"], 64);
    assert_eq!(graviton["transfer_ns"]["same_l3"], 47.2);
    assert_eq!(graviton["transfer_ns"]["cross_socket"], Value::Null);
    assert!(lines.iter().all(|line| table.contains(line["name"].as_str().unwrap())));
}

#[test]
fn one_is_shown_with_every_source() {
    let shown = text(&machines(&["xeon-8275cl-2s"]).stdout);
    let ratio = shown.lines().find(|line| line.contains("line.rmw_queue_ratio")).unwrap();
    assert!(ratio.contains("0.685") && ratio.contains("perfbook@4c69e891"), "{ratio}");
    assert!(ratio.contains("derived"), "{ratio}");
    let json: Value =
        serde_json::from_slice(&machines(&["xeon-8275cl-2s", "--json"]).stdout).unwrap();
    for figure in json["figures"].as_array().unwrap() {
        assert!(shown.contains(figure["source"].as_str().unwrap()), "{figure}");
        assert_eq!(figure["by_default"], false);
    }
}

#[test]
fn a_file_is_checked_and_what_is_wrong_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let known =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../harness/simulator/machines/graviton2.toml");
    let good = fs::read_to_string(known).unwrap();
    let path = folder.path().join("mine.toml");
    let checked = |text: String| {
        fs::write(&path, text).unwrap();
        machines(&[path.to_str().unwrap()])
    };
    assert_eq!(checked(good.clone()).status.code(), Some(0));
    let without: String =
        good.lines().filter(|l| !l.starts_with("hold_ns")).map(|l| format!("{l}\n")).collect();
    let shown = text(&checked(without).stdout);
    let hold = shown.lines().find(|line| line.contains("line.hold_ns")).unwrap();
    assert!(hold.contains("the default"), "{hold}");
    for (from, to, words) in [
        ("l1_ways = { value = 4", "l1_ways = { value = 7", ["`cache.l1_kib`", "sets"]),
        (
            "nodes_per_socket = { value = 1",
            "nodes_per_socket = { value = 99",
            ["`topology.nodes_per_socket.value`", "64"],
        ),
        (
            "nodes_per_socket = { value = 1",
            "nodes_per_socket = { value = 3",
            ["64 cores", "3 nodes"],
        ),
        ("l3_hit_ns = { value = 28.8", "l3_hit_ns = { value = 288", ["`cache.l3_hit_ns`", "95"]),
        ("[line]", "[lines]", ["`lines` is no field", "`line` meant?"]),
    ] {
        let changed = good.replace(from, to);
        assert_ne!(changed, good, "{from}");
        let output = checked(changed);
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(words.iter().all(|word| error.contains(word)), "{words:?} in {error}");
    }
    let output = machines(&["epyc-7724-2s"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("is `epyc-7742-2s` meant?"), "{output:?}");
    let output = machines(&["./none.toml"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("./none.toml"), "{output:?}");
}
