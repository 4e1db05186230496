//! `manycore compare` on more records than a person looks at: verdicts, memory, time.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Instant;

/// One record in so many is slower in the newer file.
const SLOWER: usize = 1_000;

/// A record of a sweep, split where synthetic ones differ: at its seed and its `ns_per_op`.
struct Template {
    to_seed: String,
    to_figure: String,
    rest: String,
}

/// The header of the sample sweep in `docs/`, and the points that have times.
fn templates() -> (String, Vec<Template>) {
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/sample/results.jsonl");
    let sample = fs::read_to_string(sample).unwrap();
    let template = |line: &str| {
        let (to_seed, rest) = line.split_once(r#""seed":1,"#)?;
        let (to_figure, rest) = rest.split_once(r#""ns_per_op":{"value":"#)?;
        let (_, rest) = rest.split_once('}')?;
        line.contains(r#""status":"ok""#).then(|| Template {
            to_seed: format!("{to_seed}\"seed\":"),
            to_figure: format!(",{to_figure}\"ns_per_op\":{{\"value\":"),
            rest: format!("}}{rest}"),
        })
    };
    let templates: Vec<Template> = sample.lines().filter_map(template).collect();
    assert!(templates.len() > 20, "{}", templates.len());
    (sample.lines().next().unwrap().to_owned(), templates)
}

/// Writes `count` records of different seeds with full-length figures.
fn write(path: &Path, count: usize, newer: bool) {
    let (header, templates) = templates();
    let mut file = BufWriter::with_capacity(1 << 20, File::create(path).unwrap());
    writeln!(file, "{header}").unwrap();
    for n in 0..count {
        let Template { to_seed, to_figure, rest } = &templates[n % templates.len()];
        let slower = if newer && n % SLOWER == 0 { 1.5 } else { 1.0 };
        let value = slower * (10.0 + (n % 977) as f64 / 3.0) * if newer { 1.000_3 } else { 1.0 };
        let (low, high) = (value * 0.999, value * 1.001);
        let figure = format!("{value},\"low\":{low},\"high\":{high}");
        writeln!(file, "{to_seed}{n}{to_figure}{figure}{rest}").unwrap();
    }
    file.flush().unwrap();
}

struct Measured {
    status: ExitStatus,
    kilobytes: i64,
    cpu_seconds: f64,
    seconds: f64,
}

/// Runs `manycore` without showing what it prints.
#[expect(clippy::zombie_processes, reason = "wait4 waits for it, and tells what it took as well")]
fn measured(directory: &Path, arguments: &[&str]) -> Measured {
    let began = Instant::now();
    let child = Command::new(env!("CARGO_BIN_EXE_manycore"))
        .args(arguments)
        .current_dir(directory)
        .stdout(File::create(directory.join("stdout")).unwrap())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let pid = i32::try_from(child.id()).unwrap();
    let mut status = 0;
    // SAFETY: all-zero bytes are an empty usage.
    let mut usage = unsafe { std::mem::zeroed::<libc::rusage>() };
    // SAFETY: waits for the child made above, which nobody else waits for.
    let waited = unsafe { libc::wait4(pid, &raw mut status, 0, &raw mut usage) };
    assert_eq!(waited, pid);
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 * 1e-6;
    Measured {
        status: std::os::unix::process::ExitStatusExt::from_raw(status),
        kilobytes: usage.ru_maxrss,
        cpu_seconds: seconds(usage.ru_utime) + seconds(usage.ru_stime),
        seconds: began.elapsed().as_secs_f64(),
    }
}

/// Compares two files of `count` records each, and checks verdicts and memory.
fn compare(count: usize, kilobytes_most: i64) {
    let directory = tempfile::tempdir().unwrap();
    write(&directory.path().join("old.jsonl"), count, false);
    write(&directory.path().join("new.jsonl"), count, true);
    let run = measured(directory.path(), &["compare", "old.jsonl", "new.jsonl", "--json"]);
    println!(
        "2 × {count} records: {:.1} s, {:.1} s of CPUs, {} MB",
        run.seconds,
        run.cpu_seconds,
        run.kilobytes / 1024
    );
    assert_eq!(run.status.code(), Some(3));
    let printed = fs::read_to_string(directory.path().join("stdout")).unwrap();
    let sum: serde_json::Value = serde_json::from_str(printed.lines().last().unwrap()).unwrap();
    let slower = count.div_ceil(SLOWER);
    assert_eq!(sum["regressed"], slower, "{sum}");
    assert_eq!(sum["equal"], count - slower, "{sum}");
    assert_eq!(sum["skipped_lines"], 0, "{sum}");
    assert!(run.kilobytes < kilobytes_most, "{} kB", run.kilobytes);
}

#[test]
fn many_records_are_compared_in_little_memory() {
    compare(10_000, 60 << 10);
}

/// Needs 3.5 GB in the temporary directory, and an optimised program to say anything of time.
#[test]
#[ignore = "takes long: scripts/nightly.sh runs it"]
fn a_million_records_each_are_compared_in_little_memory() {
    compare(500_000, 500 << 10);
    compare(1_000_000, 500 << 10);
}
