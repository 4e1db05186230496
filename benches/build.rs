//! Tells the program which compiler and which commit built it.

use std::process::Command;

fn main() {
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    let version = output(&rustc, &["--version"]).unwrap_or_else(|| "unknown".into());
    println!("cargo::rustc-env=MANYCORE_RUSTC={version}");
    let mut commit = output("git", &["rev-parse", "--short=12", "HEAD"]);
    // What is not committed may change what is built.
    if let Some(hash) = &mut commit
        && output("git", &["status", "--porcelain", "--untracked-files=no"]).is_some()
    {
        hash.push_str("-modified");
    }
    println!("cargo::rustc-env=MANYCORE_COMMIT={}", commit.as_deref().unwrap_or("unknown"));
    for path in ["HEAD", "logs/HEAD", "index"] {
        if let Some(file) = output("git", &["rev-parse", "--git-path", path]) {
            println!("cargo::rerun-if-changed={file}");
        }
    }
    println!("cargo::rerun-if-changed=src");
}

/// What a command prints, if it succeeds and prints something.
fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !text.is_empty()).then_some(text)
}
