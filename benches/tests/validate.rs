//! Simulated times against published ones, as far as they hold today: a change that loses some must
//! say so here.

use std::process::Command;

use serde_json::Value;

fn validate(arguments: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_manycore"))
        .arg("validate")
        .args(arguments)
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn streams_of_read_modify_writes_hold_on_eight_sockets() {
    let (code, out, error) = validate(&["--machine", "xeon-8176-8s", "--json"]);
    assert_eq!(code, 0, "{error}");
    let rows: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), 19);
    let held = rows.iter().filter(|row| row["holds"] == true).count();
    for row in &rows {
        println!(
            "{} threads: {} published, {}",
            row["threads"], row["published_ns"], row["simulated_ns"]
        );
    }
    assert!(held * 10 >= rows.len() * 8, "{held} of {}", rows.len());
}

#[test]
fn the_page_says_what_holds_and_what_may_be_lacking() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("page.md");
    let (code, out, error) = validate(&["--machine", "graviton2", "--out", path.to_str().unwrap()]);
    assert_eq!(code, 0, "{error}");
    let page = std::fs::read_to_string(path).unwrap();
    assert_eq!(page.trim_end(), out.trim_end());
    for words in ["of 36 values hold", "## graviton2: ticket", "What may be lacking:", "Spearman"] {
        assert!(page.contains(words), "`{words}` is not in: {page}");
    }
}

#[test]
fn unknown_machines_and_bad_places_are_refused() {
    let (code, _, error) = validate(&["--machine", "pdp-11"]);
    assert_eq!(code, 2);
    assert!(error.contains("graviton2") && error.contains("xeon-8176-8s"), "{error}");
    let (code, _, error) = validate(&["--machine", "graviton2", "--out", "/nonexistent/page.md"]);
    assert_eq!(code, 1);
    assert!(error.contains("/nonexistent/page.md"), "{error}");
}
