//! The list of behaviours that peers' suites check names tests that exist.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// What stands between single back quotes.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// Whether a file of tests has a function of this name under `#[test]`, or in a macro that has.
fn has(file: &Path, test: &str) -> bool {
    let Ok(text) = fs::read_to_string(file) else { return false };
    let mut tested = false;
    text.lines().map(str::trim).any(|line| {
        let found = tested && line.starts_with(&format!("fn {test}("));
        tested = line == "#[test]" || (tested && line.starts_with("#["));
        found
    })
}

#[test]
fn each_named_test_exists() {
    let list = fs::read_to_string(root().join("benches/tests/peers.md")).unwrap();
    let (mut rows, mut missing) = (0, Vec::new());
    for line in list.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| peer")) {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let &[_, _, theirs, ours] = &cells[..] else { panic!("not four cells: {line}") };
        rows += 1;
        assert!(theirs.contains('`'), "no test of theirs: {line}");
        let named: Vec<(&str, &str)> =
            quoted(ours).filter_map(|words| words.split_once(".rs: ")).collect();
        assert!(!named.is_empty() || ours.starts_with("no: "), "neither test nor reason: {line}");
        for (file, test) in named {
            if !has(&root().join(format!("{file}.rs")), test) {
                missing.push(format!("{file}.rs has no test {test}"));
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
    assert!(rows >= 60, "{rows} rows");
    assert!(!has(Path::new(file!()), "has"), "a function is no test");
}
