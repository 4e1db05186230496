//! A primitive crate's default features are empty, and rows may need some: `cargo bench -p locks`
//! hands over to itself with all of them, so that the whole table is measured.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};

use super::flags::Flags;
use super::{Benches, note, skipped};

/// Keeps a build as it is when it is `as-built`.
const VARIABLE: &str = "MANYCORE_BENCH_FEATURES";

/// Runs `cargo bench` again with every feature that rows depend on, unless this build has them,
/// the caller forbids it, or this is no `cargo bench` that could be repeated; then says what is
/// missing. Gives an exit code when cargo could not be run.
pub(super) fn with_all(benches: &Benches, flags: &Flags) -> Option<ExitCode> {
    let missing = benches.features.iter().filter(|(_, built)| !built);
    let missing: Vec<&str> = missing.map(|(feature, _)| *feature).collect();
    if missing.is_empty() {
        return None;
    }
    let missing = missing.join(",");
    let keep = std::env::var(VARIABLE).is_ok_and(|word| word == "as-built");
    let cargo = std::env::var_os("CARGO").filter(|_| flags.bench && !keep);
    let (Some(cargo), Some(target)) = (cargo, plain_target_directory()) else {
        let (package, keep) = (benches.package, format!("--features {missing}"));
        skipped(
            &format!("rows that need the features {missing}"),
            &format!("not in this build; `cargo bench -p {package} {keep}` has them"),
        );
        return None;
    };
    if !flags.quiet {
        note(&format!("again with --features {missing}, for the whole table"));
    }
    let error = Command::new(cargo)
        .args(["bench", "--package", benches.package, "--bench", benches.target])
        .args(["--features", &missing, "--"])
        .args(std::env::args_os().skip(1).filter(|word| word != "--bench"))
        .env("CARGO_TARGET_DIR", target)
        .env(VARIABLE, "as-built")
        .exec();
    Some(super::refuse(super::FAILED, &format!("running cargo: {error}")))
}

/// The target directory, if this program was built for the host in the profile of `cargo bench`.
fn plain_target_directory() -> Option<std::path::PathBuf> {
    let program = std::env::current_exe().ok()?;
    let profile = program.parent().and_then(Path::parent)?;
    let target = profile.parent()?;
    let plain = profile.ends_with("release") && target.join("CACHEDIR.TAG").exists();
    plain.then(|| target.to_owned())
}
