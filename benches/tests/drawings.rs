//! `--draw` and `--svg` of `manycore topology` and `manycore machines` as a user runs them.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn manycore(directory: &Path, arguments: &[&str]) -> Output {
    let mut program = Command::new(env!("CARGO_BIN_EXE_manycore"));
    program.args(arguments).current_dir(directory).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[track_caller]
fn said(directory: &Path, arguments: &[&str]) -> String {
    let output = manycore(directory, arguments);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    text(&output.stdout)
}

#[track_caller]
fn refused(directory: &Path, arguments: &[&str], code: i32, words: &[&str]) {
    let output = manycore(directory, arguments);
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {error}");
    for word in words {
        assert!(error.contains(word), "`{word}` is not in: {error}");
    }
    assert!(!error.contains("panicked") && output.stdout.is_empty(), "{error}");
}

/// Numbers in the text that begin as a core does.
fn cores(drawing: &str) -> usize {
    drawing.lines().filter(|line| line.starts_with('│')).map(|line| line.matches('[').count()).sum()
}

#[test]
fn this_host_is_drawn_with_every_core() {
    let directory = tempfile::tempdir().unwrap();
    let host: Value =
        serde_json::from_str(&said(directory.path(), &["topology", "--json"])).unwrap();
    let count = host["cores"].as_array().unwrap().len();
    let drawing = said(directory.path(), &["topology", "--draw"]);
    assert!(drawing.lines().all(|line| line.chars().count() <= 80), "{drawing}");
    if !drawing.contains("alike") {
        assert_eq!(cores(&drawing), count, "{drawing}");
    }
    assert_eq!(said(directory.path(), &["topology", "--svg", "here.svg"]).trim(), "here.svg");
    let svg = fs::read_to_string(directory.path().join("here.svg")).unwrap();
    assert_eq!(svg, said(directory.path(), &["topology", "--svg", "-"]));
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
    for word in ["href", "src=", "url(", "@import", "<script"] {
        assert!(!svg.contains(word), "{word}");
    }
}

#[test]
fn machines_are_drawn_and_large_ones_stay_small() {
    let directory = tempfile::tempdir().unwrap();
    let whole = said(directory.path(), &["machines", "xeon-8176-8s", "--draw", "--svg", "m.svg"]);
    assert_eq!(cores(&whole), 224, "{whole}");
    assert!(whole.contains("[223 447]") && whole.contains("socket 7 · node 7 · L3 38.5 MiB"));
    let svg = fs::read_to_string(directory.path().join("m.svg")).unwrap();
    assert_eq!(svg.matches("class=\"m-pu\"").count(), 448);
    let alike = said(directory.path(), &["machines", "epyc-7742-2s", "--draw"]);
    assert!(alike.lines().count() <= 60, "{alike}");
    assert!(alike.contains("15 more L3 16 MiB alike, PUs 4-7,132-135"), "{alike}");
}

#[test]
fn what_cannot_be_drawn_or_written_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    refused(here, &["machines", "--draw"], 2, &["one machine", "epyc-7742-2s --draw"]);
    refused(here, &["machines", "epyc", "--draw"], 2, &["epyc-7742-2s"]);
    refused(here, &["machines", "epyc-7742-2s", "--draw", "--json"], 2, &["--json"]);
    refused(here, &["topology", "--draw", "--json"], 2, &["--json"]);
    refused(here, &["topology", "--svg", "."], 1, &["directory", "--svg"]);
    refused(here, &["topology", "--svg", "no/such/m.svg"], 1, &["no/such/m.svg", "--svg"]);
    refused(here, &["topology", "--svg", "/dev/full"], 1, &["No space left"]);
    refused(here, &["topology", "--svg"], 2, &["--svg"]);
    fs::write(here.join("bad.toml"), "name = 5").unwrap();
    refused(here, &["machines", "bad.toml", "--svg", "m.svg"], 2, &["bad.toml"]);
    assert_eq!(fs::read_dir(here).unwrap().count(), 1, "nothing is written");
}

#[test]
fn archives_are_read_as_they_are() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let cpu = here.join("tree/sys/devices/system/cpu");
    fs::create_dir_all(&cpu).unwrap();
    fs::write(cpu.join("online"), "0-2\n").unwrap();
    let tar = |arguments: &[&str]| {
        let status = Command::new("tar").args(arguments).current_dir(here).status().unwrap();
        assert!(status.success());
    };
    tar(&["czf", "tree.tar.gz", "-C", "tree", "sys"]);
    tar(&["cf", "inside.tar", "tree"]);
    for root in ["tree", "tree.tar.gz", "inside.tar"] {
        let json: Value =
            serde_json::from_str(&said(here, &["topology", "--root", root, "--json"])).unwrap();
        assert_eq!(json["cpus"]["online"], "0-2", "{root}");
        assert_eq!(json["root"], root);
    }
    let packed = fs::read(here.join("tree.tar.gz")).unwrap();
    fs::write(here.join("cut.tar.gz"), &packed[..packed.len() - 9]).unwrap();
    refused(here, &["topology", "--root", "cut.tar.gz"], 1, &["cut.tar.gz", "copy it again"]);
    fs::write(here.join("text.tar.gz"), "no archive").unwrap();
    refused(here, &["topology", "--root", "text.tar.gz"], 1, &["text.tar.gz", "save-topology"]);
    refused(here, &["topology", "--root", "/dev/null"], 1, &["/dev/null", "neither"]);
}

#[test]
fn what_the_script_saves_of_this_host_is_this_host() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/save-topology.sh");
    let saved = Command::new(script).arg("here.tar.gz").current_dir(here).output().unwrap();
    assert!(saved.status.success(), "{}", text(&saved.stderr));
    let json = |arguments: &[&str]| -> Value {
        serde_json::from_str(&said(here, &[&["topology", "--json"], arguments].concat())).unwrap()
    };
    let (live, saved) = (json(&[]), json(&["--root", "here.tar.gz"]));
    for field in ["packages", "cores", "dies", "caches", "node_sets", "distances", "kinds"] {
        assert_eq!(saved[field], live[field], "{field}");
    }
    assert_eq!(saved["cpus"]["online"], live["cpus"]["online"]);
    assert_eq!(saved["cgroup"]["quota"], live["cgroup"]["quota"]);
    assert_eq!(saved["this_host"], false);
}
