//! Machine files: made from their table, listed, shown, checked.

use std::path::Path;
use std::process::{Command, Output};

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
