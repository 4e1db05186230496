//! Counts of Callgrind, taken of a program in a fixed environment.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Makes the C library choose the same functions and thresholds on the machine and under Valgrind.
///
/// Valgrind's CPU has neither AVX-512 nor RTM, other cache sizes and no "fast short rep mov"; the
/// C library picks its string functions accordingly. Here both are told to do without, neither
/// uses `rep movsb` on its own, and the sizes its thresholds derive from are given. Restartable
/// sequences are unknown to Valgrind.
pub(crate) const TUNABLES: &str = "glibc.pthread.rseq=0:\
    glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX512BW,-AVX512DQ,-AVX512CD,-RTM,-ERMS,\
    -Prefer_No_VZEROUPPER:\
    glibc.cpu.x86_non_temporal_threshold=0xc0000:\
    glibc.cpu.x86_rep_movsb_threshold=0x2000:\
    glibc.cpu.x86_rep_stosb_threshold=0x800:\
    glibc.cpu.x86_data_cache_size=0x8000:\
    glibc.cpu.x86_shared_cache_size=0x100000";

/// The function whose calls are counted, instructions of its own included.
pub(crate) const MEASURED: &str = "corpus_measured";

/// What Callgrind saw.
pub(crate) struct Run {
    /// Instructions between entry and exit of [`MEASURED`].
    pub(crate) instructions: u64,
    /// What the program printed.
    pub(crate) output: String,
}

/// The environment of every run, native or not: nothing but these.
pub(crate) fn environment() -> [(&'static str, &'static str); 2] {
    [("GLIBC_TUNABLES", TUNABLES), ("LD_BIND_NOW", "1")]
}

/// Turns off the randomization of addresses for what the calling process executes next.
fn fix_addresses() -> std::io::Result<()> {
    // SAFETY: changes an attribute of the process, no memory.
    match unsafe { libc::personality(libc::ADDR_NO_RANDOMIZE as libc::c_ulong) } {
        -1 => Err(std::io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Clears the environment but for [`environment`] and fixes where memory is mapped.
pub(crate) fn settle(command: &mut Command) {
    command.env_clear().envs(environment());
    // SAFETY: between fork and exec only one system call, which allocates nothing.
    unsafe { command.pre_exec(fix_addresses) };
}

/// Where Valgrind is installed.
pub(crate) fn valgrind() -> Result<PathBuf, String> {
    let path = std::env::var_os("PATH").ok_or("no PATH to find valgrind in")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join("valgrind"))
        .find(|file| file.is_file())
        .ok_or_else(|| "valgrind is not installed".to_owned())
}

/// Runs `program` under Callgrind and returns the count and the output.
pub(crate) fn callgrind_counts(program: &Path, arguments: &[&str]) -> Result<Run, String> {
    let mut command = Command::new(valgrind()?);
    command
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "--vgdb=no"])
        .arg("--collect-atstart=no")
        .arg(format!("--toggle-collect={MEASURED}"))
        .arg(program)
        .args(arguments);
    settle(&mut command);
    let ran = command.output().map_err(|error| format!("{}: {error}", program.display()))?;
    let messages = String::from_utf8_lossy(&ran.stderr);
    if !ran.status.success() {
        return Err(format!("{} {arguments:?}: {}: {messages}", program.display(), ran.status));
    }
    let instructions = messages
        .lines()
        .find_map(|line| line.split_once("Collected :")?.1.trim().parse().ok())
        .filter(|&count| count > 0)
        .ok_or_else(|| format!("{arguments:?}: no count in: {messages}"))?;
    let output = String::from_utf8_lossy(&ran.stdout).trim().to_owned();
    Ok(Run { instructions, output })
}
