//! Parts of tests that run in processes of their own: this test binary again, with one test.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// The variable that says what the child does.
const PART: &str = "SIMULATOR_TEST_PART";

/// Gives what this process is to do, if it is a child.
pub(crate) fn part() -> Option<String> {
    std::env::var(PART).ok()
}

/// A command that runs the test `test` of the program at `path` alone, with a part to do, and
/// without address randomisation where the system allows that.
pub(crate) fn command(path: &Path, test: &str, part: &str) -> Command {
    let mut command = Command::new(path);
    command
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(PART, part)
        .env_remove("RUST_BACKTRACE");
    // SAFETY: between fork and exec it makes one system call.
    unsafe { command.pre_exec(keep_addresses) };
    command
}

/// Switches address randomisation off for what is executed next; where that is refused, so be it.
fn keep_addresses() -> std::io::Result<()> {
    // SAFETY: changes a flag of this process.
    unsafe { libc::personality(libc::ADDR_NO_RANDOMIZE as libc::c_ulong) };
    Ok(())
}
