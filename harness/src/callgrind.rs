//! The callgrind engine: exact instructions and locked read-modify-writes of an operation.
//!
//! The program runs itself under valgrind on a hidden command that performs n and then 2n
//! operations of a never-inlined loop, each inside client requests that collect and dump. What
//! one operation costs is (I(2n) − I(n)) / n: everything that does not grow with n cancels.

use std::fs;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::unavailable::Unavailable;

/// How to get valgrind.
const INSTALL: &str = "install it: apt-get install valgrind";

/// The oldest valgrind whose output and client requests are as expected here.
const OLDEST: (u32, u32) = (3, 15);

/// A valgrind that is there and new enough.
#[derive(Debug, Clone)]
pub struct Callgrind {
    valgrind: PathBuf,
    /// Its version as it prints it, `valgrind-3.19.0` say.
    pub version: String,
}

/// What one operation costs.
#[derive(Debug, Clone, PartialEq)]
pub struct Counts {
    /// Operations of the shorter of the two runs.
    pub ops: u64,
    /// Instructions of an operation.
    pub instructions_per_op: f64,
    /// Locked instructions and exchanges of an operation.
    pub rmw_per_op: f64,
    /// Instructions of the longer run by object file and function, the largest first.
    pub functions: Vec<Cost>,
}

/// Instructions of one function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cost {
    /// The file that its code is in.
    pub object: String,
    /// Its name.
    pub function: String,
    /// Instructions in it, without those of functions it calls.
    pub instructions: u64,
}

impl Callgrind {
    /// Finds valgrind on the path and asks for its version.
    ///
    /// # Errors
    /// `no_valgrind` or `valgrind_too_old`, with the command that installs it.
    pub fn find() -> Result<Self, Unavailable> {
        // Found here and not by the child, which gets a path of its own.
        let path = std::env::var_os("PATH").unwrap_or_default();
        let places = std::env::split_paths(&path).map(|place| place.join("valgrind"));
        match places.into_iter().find(|place| place.is_file()) {
            Some(valgrind) => Self::at(&valgrind),
            None => Err(Unavailable::because("no_valgrind", format!("not on the path; {INSTALL}"))),
        }
    }

    /// Uses the valgrind at `path`.
    ///
    /// # Errors
    /// As for [`find`](Self::find).
    pub fn at(path: &Path) -> Result<Self, Unavailable> {
        let output = Command::new(path).arg("--version").output().map_err(|error| {
            Unavailable::because("no_valgrind", format!("{}: {error}; {INSTALL}", path.display()))
        })?;
        let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        match parse_version(&version) {
            Some(found) if found >= OLDEST => Ok(Self { valgrind: path.into(), version }),
            Some(_) => Err(Unavailable::because(
                "valgrind_too_old",
                format!("{version} is older than {}.{}; {INSTALL}", OLDEST.0, OLDEST.1),
            )),
            None => Err(Unavailable::because(
                "no_valgrind",
                format!("`{} --version` says `{version}`; {INSTALL}", path.display()),
            )),
        }
    }

    /// Runs `program` with `arguments`, which must lead it to [`measured`] with `ops`.
    ///
    /// # Errors
    /// When valgrind fails, is killed, or its output is not understood; or what the program itself
    /// gave as reason (its exit code is [`UNAVAILABLE`]).
    pub fn count(
        &self,
        program: &Path,
        arguments: &[String],
        ops: u64,
    ) -> Result<Counts, Unavailable> {
        let directory = Scratch::new()?;
        let out = directory.0.join("out");
        let mut command = Command::new(&self.valgrind);
        command
            .args(["--tool=callgrind", "--collect-atstart=no", "--collect-bus=yes"])
            .arg(format!("--callgrind-out-file={}", out.display()))
            .arg(program)
            .args(arguments)
            // Nothing of the caller's environment may move a count.
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("GLIBC_TUNABLES", "glibc.pthread.rseq=0");
        // SAFETY: the function makes one system call, which needs no memory and no lock.
        unsafe { command.pre_exec(keep_addresses) };
        let output = command
            .output()
            .map_err(|error| Unavailable::syscall("no_valgrind", "running valgrind", &error))?;
        judge(&output)?;
        let dump = |part: u32| {
            let file = directory.0.join(format!("out.{part}"));
            let text = fs::read_to_string(&file).map_err(|error| {
                Unavailable::syscall("callgrind_output", &file.display().to_string(), &error)
            })?;
            Dump::parse(&text)
        };
        let (once, twice) = (dump(1)?, dump(2)?);
        let per_op = |once: u64, twice: u64| {
            twice.checked_sub(once).map(|added| added as f64 / ops as f64).ok_or_else(|| {
                Unavailable::because("callgrind_output", format!("{twice} for 2n, {once} for n"))
            })
        };
        Ok(Counts {
            ops,
            instructions_per_op: per_op(once.instructions, twice.instructions)?,
            rmw_per_op: per_op(once.rmw, twice.rmw)?,
            functions: twice.functions,
        })
    }
}

/// Switches address randomisation off for what is executed next; where that is refused, counts
/// that depend on addresses may vary.
fn keep_addresses() -> std::io::Result<()> {
    // SAFETY: changes a flag of this process.
    unsafe { libc::personality(libc::ADDR_NO_RANDOMIZE as libc::c_ulong) };
    Ok(())
}

/// Exit code with which the measured program says that it cannot do what was asked; its standard
/// output holds the [`Unavailable`] as JSON.
pub const UNAVAILABLE: i32 = 7;

fn judge(output: &Output) -> Result<(), Unavailable> {
    let said = || {
        let text = String::from_utf8_lossy(&output.stderr);
        let last: Vec<&str> = text.lines().rev().take(3).collect();
        last.into_iter().rev().collect::<Vec<_>>().join(" / ")
    };
    match (output.status.code(), output.status.signal()) {
        (Some(0), _) => Ok(()),
        (Some(UNAVAILABLE), _) => Err(serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|_| Unavailable::because("callgrind_failed", said()))),
        (Some(code), _) => Err(Unavailable::because(
            "callgrind_failed",
            format!("valgrind ended with exit code {code}: {}", said()),
        )),
        (None, signal) => Err(Unavailable::because(
            "callgrind_killed",
            format!("valgrind was killed by signal {}: {}", signal.unwrap_or(0), said()),
        )),
    }
}

fn parse_version(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.strip_prefix("valgrind-")?.split(['.', '-']);
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// What one dump says.
#[derive(Debug, PartialEq)]
struct Dump {
    instructions: u64,
    rmw: u64,
    functions: Vec<Cost>,
}

impl Dump {
    fn parse(text: &str) -> Result<Self, Unavailable> {
        let bad = |what: &str| Unavailable::because("callgrind_output", format!("no {what} in it"));
        let line = |key: &str| text.lines().find_map(|line| line.strip_prefix(key));
        let events: Vec<&str> =
            line("events:").ok_or_else(|| bad("events"))?.split_whitespace().collect();
        let at = |event: &str| events.iter().position(|name| *name == event);
        let instructions_at = at("Ir").ok_or_else(|| bad("event Ir"))?;
        let rmw_at = at("Ge").ok_or_else(|| bad("event Ge (valgrind without --collect-bus)"))?;
        let totals = line("totals:").or_else(|| line("summary:")).ok_or_else(|| bad("totals"))?;
        let totals: Vec<u64> = totals
            .split_whitespace()
            .map(|number| number.parse().map_err(|_| bad("number in the totals")))
            .collect::<Result<_, _>>()?;
        // Trailing zeros are left out.
        let total = |at: usize| totals.get(at).copied().unwrap_or(0);
        Ok(Self {
            instructions: total(instructions_at),
            rmw: total(rmw_at),
            functions: functions(text, instructions_at),
        })
    }
}

/// Sums the cost lines by function. Names are given in full once and by number after that; a line
/// after `calls=` is the cost of the called function, which has lines of its own.
fn functions(text: &str, event: usize) -> Vec<Cost> {
    let mut names = std::collections::HashMap::new();
    let mut sums = std::collections::BTreeMap::<(String, String), u64>::new();
    let (mut object, mut function, mut after_calls) = (String::new(), String::new(), false);
    for line in text.lines() {
        if let Some((key, value)) = line.split_once('=') {
            match key {
                "ob" => object = full_name(&mut names, "ob", value),
                "fn" => function = full_name(&mut names, "fn", value),
                "cob" => drop(full_name(&mut names, "ob", value)),
                "cfn" => drop(full_name(&mut names, "fn", value)),
                "calls" => after_calls = true,
                _ => {}
            }
        } else if line.starts_with(|c: char| c.is_ascii_digit() || "+-*".contains(c)) {
            let cost = line.split_whitespace().nth(event + 1).and_then(|cost| cost.parse().ok());
            if !std::mem::take(&mut after_calls) {
                *sums.entry((object.clone(), function.clone())).or_default() +=
                    cost.unwrap_or(0_u64);
            }
        }
    }
    let mut costs: Vec<Cost> = sums
        .into_iter()
        .filter(|(_, instructions)| *instructions > 0)
        .map(|((object, function), instructions)| Cost { object, function, instructions })
        .collect();
    costs.sort_by_key(|cost| std::cmp::Reverse(cost.instructions));
    costs
}

/// Resolves `(7) name` and `(7)`.
fn full_name(
    names: &mut std::collections::HashMap<(&'static str, String), String>,
    kind: &'static str,
    value: &str,
) -> String {
    let Some((number, rest)) = value.split_once(')') else { return value.to_owned() };
    let name = rest.trim();
    let key = (kind, number.to_owned());
    if !name.is_empty() {
        names.insert(key.clone(), name.to_owned());
    }
    names.get(&key).cloned().unwrap_or_default()
}

/// A directory that is removed when it is no longer needed.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Self, Unavailable> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("manycore-{}-{number}", std::process::id()));
        fs::create_dir(&path).map_err(|error| {
            Unavailable::syscall("no_scratch_directory", &path.display().to_string(), &error)
        })?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Runs `batch` with n and with 2n operations, collecting each, and dumps the two apart. Outside
/// of valgrind it only runs them.
pub fn measured(ops: u64, mut batch: impl FnMut(u64)) {
    // What is touched or initialised on first use is outside.
    batch(ops);
    collected(ops, &mut batch);
    collected(ops * 2, &mut batch);
}

/// Not inlined, so that what is collected around the batch is the same both times.
#[inline(never)]
fn collected(ops: u64, batch: &mut dyn FnMut(u64)) {
    request(Request::Zero);
    request(Request::ToggleCollect);
    batch(ops);
    request(Request::ToggleCollect);
    request(Request::Dump);
}

/// Callgrind's client requests, by their numbers ('C', 'T' and an index).
#[derive(Debug, Clone, Copy)]
#[repr(u64)]
enum Request {
    Dump = 0x4354_0000,
    Zero = 0x4354_0001,
    ToggleCollect = 0x4354_0002,
}

#[cfg(target_arch = "x86_64")]
fn request(request: Request) {
    let arguments: [u64; 6] = [request as u64, 0, 0, 0, 0, 0];
    // SAFETY: outside valgrind the rotations add up to 128 bits and the exchange is with itself;
    // under valgrind `rdx` receives an answer that nobody reads.
    unsafe {
        core::arch::asm!(
            "rol rdi, 3", "rol rdi, 13", "rol rdi, 61", "rol rdi, 51", "xchg rbx, rbx",
            in("rax") arguments.as_ptr(),
            inout("rdx") 0_u64 => _,
            inout("rdi") 0_u64 => _,
        );
    }
}

/// The requests' instruction sequence exists here for x86-64 only: elsewhere nothing is dumped, and
/// the count says so.
#[cfg(not(target_arch = "x86_64"))]
fn request(_: Request) {}

#[cfg(test)]
mod tests {
    use super::*;

    const DUMP: &str = "version: 1\nevents: Ir Ge\nfl=(1) a.rs\nob=(1) /bin/program\nfn=(1) outer\n\
                        10 7 1\n+1 3\ncob=(2) /lib/libc.so.6\ncfn=(2) memcpy\ncalls=4 5\n12 400\n\
                        ob=(2)\nfn=(2)\n20 400\nfn=(1)\n* 5\ntotals: 415 1\n";

    #[test]
    fn totals_and_functions() {
        let dump = Dump::parse(DUMP).unwrap();
        assert_eq!((dump.instructions, dump.rmw), (415, 1));
        let costs: Vec<(&str, &str, u64)> = dump
            .functions
            .iter()
            .map(|cost| (cost.object.as_str(), cost.function.as_str(), cost.instructions))
            .collect();
        let expected = [
            ("/lib/libc.so.6", "memcpy", 400),
            ("/bin/program", "outer", 10),
            ("/lib/libc.so.6", "outer", 5),
        ];
        assert_eq!(costs, expected);
    }

    #[test]
    fn output_that_is_not_understood_is_a_reason() {
        for text in ["", "events: Ir\ntotals: 1\n", "events: Ir Ge\n", "events: Ir Ge\ntotals: x\n"]
        {
            assert_eq!(Dump::parse(text).unwrap_err().code, "callgrind_output", "{text}");
        }
        assert_eq!(Dump::parse("events: Ir Ge\ntotals: 5\n").unwrap().rmw, 0);
    }

    #[test]
    fn versions() {
        assert_eq!(parse_version("valgrind-3.19.0"), Some((3, 19)));
        assert_eq!(parse_version("valgrind-3.25.1-rc2"), Some((3, 25)));
        assert_eq!(parse_version("3.19"), None);
        let missing = Callgrind::at(Path::new("/no/such/valgrind")).unwrap_err();
        assert_eq!(missing.code, "no_valgrind");
        assert!(missing.to_string().contains("apt-get install valgrind"));
        assert_eq!(Callgrind::at(Path::new("/bin/true")).unwrap_err().code, "no_valgrind");
    }
}
