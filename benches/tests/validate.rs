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
    assert_eq!(held, rows.len());
}

/// Numbers of a row of a table in Markdown.
fn numbers(row: &str) -> Vec<f64> {
    row.split('|').filter_map(|cell| cell.trim().parse().ok()).collect()
}

#[test]
fn four_of_five_times_hold_and_loops_keep_their_order() {
    let directory = tempfile::tempdir().unwrap();
    let (page, errors) = (directory.path().join("page.md"), directory.path().join("errors.csv"));
    let arguments = ["--out", page.to_str().unwrap(), "--errors", errors.to_str().unwrap()];
    let (code, _, error) = validate(&arguments);
    assert_eq!(code, 0, "{error}");
    let page = std::fs::read_to_string(page).unwrap();
    let held = page.matches("| yes |").count();
    let all = held + page.matches("| no |").count();
    assert!(held * 5 >= all * 4 && all == 55, "{held} of {all}");
    let (_, ranks) = page.split_once("## Order of the loops").unwrap();
    let ranks: Vec<Vec<f64>> =
        ranks.lines().map(numbers).filter(|numbers| numbers.len() == 3).collect();
    assert_eq!(ranks.iter().map(|row| row[0]).collect::<Vec<_>>(), [8.0, 12.0, 16.0]);
    assert!(ranks.iter().all(|row| row[2] >= 0.9), "{ranks:?}");

    // The bands of simulated times are those that these values make, as far as the compiler's
    // choices leave them.
    let table = |text: &str| -> Vec<(String, f64)> {
        let rows = text.lines().skip(1).map(|row| row.rsplit_once(',').unwrap());
        rows.map(|(group, factor)| (group.to_owned(), factor.parse().unwrap())).collect()
    };
    let now = table(&std::fs::read_to_string(errors).unwrap());
    let kept = table(include_str!("../../harness/src/simulated/errors.csv"));
    assert_eq!(now.len(), kept.len());
    for ((group, now), (known, kept)) in now.iter().zip(&kept) {
        assert_eq!(group, known);
        assert!((now / kept - 1.0).abs() < 0.25, "{group}: {now} now, {kept} in errors.csv");
    }
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
    let (code, _, error) = validate(&["--this-host", "--machine", "graviton2"]);
    assert_eq!(code, 2);
    assert!(error.contains("--machine"), "{error}");
    let (code, _, error) = validate(&["--machine", "graviton2", "--out", "/nonexistent/page.md"]);
    assert_eq!(code, 1);
    assert!(error.contains("/nonexistent/page.md"), "{error}");
}
