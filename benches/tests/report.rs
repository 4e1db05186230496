//! `manycore report` and `manycore explain` as a user runs them.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use harness::glossary;
use serde_json::{Value, json};

const PAGE_MOST: u64 = 2_000_000;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn manycore_in(directory: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_manycore"))
        .args(arguments)
        .current_dir(directory)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[track_caller]
fn assert_refused(output: &Output, code: i32, words: &[&str]) {
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{error}");
    for word in words {
        assert!(error.contains(word), "`{word}` is not in: {error}");
    }
    assert!(!error.contains("panicked"), "{error}");
}

fn header(name: &str) -> Value {
    json!({"record": "run", "schema": 1, "run": format!("run-{name}"), "argv": ["manycore", "sweep"],
        "host": {"name": name, "cpu": "Some CPU", "cpus_allowed": "0-127", "nodes": [0, 1],
            "governor": {"unavailable": "no_cpufreq"}, "commit": "0123456789ab",
            "date": "2026-11-30T12:00:00Z", "colour": "blue"},
        "doctor": [{"check": "load", "message": "the load is high"}]})
}

fn point(run: &str, variant: &str, threads: usize) -> Value {
    let ns = 10.0 + threads as f64;
    json!({
        "record": "point", "run": format!("run-{run}"), "engine": "native", "machine": "this-host",
        "primitive": "locks", "variant": variant,
        "workload": {"think_ns": 0, "critical_ns": 0, "memory": "local"}, "threads": threads,
        "placement": "compact", "cpus": (0..threads).collect::<Vec<_>>(), "seed": 1, "repeat": 5,
        "status": "ok", "reasons": [],
        "metrics": {
            "ops": {"value": 1000},
            "ns_per_op": {"value": ns, "low": ns * 0.9, "high": ns * 1.1},
            "ops_per_s": {"value": 1e9 / ns, "low": 0.9e9 / ns, "high": 1.1e9 / ns},
            "fairness_jain": {"value": 0.98}, "syscalls_per_op": {"value": 0.0},
            "instructions_per_op": {"unavailable": "no_pmu", "detail": "not here"},
        },
        "per_thread": {"ops": vec![1000; threads]},
    })
}

fn lines(records: &[Value]) -> String {
    records.iter().map(|record| format!("{record}\n")).collect()
}

/// Writes the records into a new directory and makes a report of them.
fn report(records: &str, more: &[&str]) -> (tempfile::TempDir, Output) {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("r.jsonl"), records).unwrap();
    let output = manycore_in(directory.path(), &[&["report", "r.jsonl"], more].concat());
    (directory, output)
}

fn page(records: &[Value]) -> String {
    let (directory, output) = report(&lines(records), &[]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    fs::read_to_string(directory.path().join("r.html")).unwrap()
}

#[test]
fn the_sample_makes_a_page_markdown_and_values() {
    let directory = tempfile::tempdir().unwrap();
    let sample = root().join("docs/sample/results.jsonl");
    assert!(fs::metadata(&sample).unwrap().len() < 200_000);
    let sample = sample.to_str().unwrap();
    for (format, file) in [("html", "out.html"), ("markdown", "out.md"), ("csv", "out.csv")] {
        let output =
            manycore_in(directory.path(), &["report", sample, "--format", format, "--out", file]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        assert_eq!(text(&output.stdout).trim(), file);
    }
    let page = fs::read_to_string(directory.path().join("out.html")).unwrap();
    assert!((page.len() as u64) < PAGE_MOST);
    let markdown = fs::read_to_string(directory.path().join("out.md")).unwrap();
    let csv = fs::read_to_string(directory.path().join("out.csv")).unwrap();
    let points = fs::read_to_string(sample).unwrap().matches("\"record\":\"point\"").count();
    assert_eq!(csv.matches("\r\n").count(), points + 1);
    assert_eq!(page.matches("<tr class=").count(), points);
    for primitive in ["counters", "locks", "queues", "alloc-arena"] {
        assert!(page.contains(&format!("<h4>{primitive}</h4>")), "{primitive}");
        assert!(markdown.contains(&format!("#### {}", primitive.replace('_', "\\_"))));
    }
    assert!(page.matches("<svg").count() >= 8);
    // Nothing is loaded from anywhere.
    for word in ["http:", "https:", "src=", "@import", "url(", "<link"] {
        assert!(!page.contains(word), "{word}");
    }
}

#[test]
fn the_verdict_is_that_of_the_terminal() {
    let directory = tempfile::tempdir().unwrap();
    let sweep = ["sweep", "--primitive", "locks", "--seconds", "0.01", "--repeat", "2"];
    let more = ["--threads", "1", "--out", "r.jsonl", "--quiet"];
    let swept = manycore_in(directory.path(), &[&sweep[..], &more[..]].concat());
    assert_eq!(swept.status.code(), Some(0), "{}", text(&swept.stderr));
    let printed = text(&swept.stdout);
    let verdict = printed.lines().find_map(|line| line.strip_prefix("→ locks: ")).unwrap();
    let output = manycore_in(directory.path(), &["report", "r.jsonl"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let page = fs::read_to_string(directory.path().join("r.html")).unwrap();
    assert!(page.contains(&format!("<p class=\"verdict\">{verdict}</p>")), "{verdict}");
}

#[test]
fn hostile_strings_stay_text() {
    let hostile = "</script><img src=x onerror=alert(1)>\"'`${1}\u{202e}\0";
    let mut run = header("h");
    run["host"]["name"] = json!(hostile);
    run["host"]["governor"] = json!({"unavailable": hostile, "detail": hostile});
    run["host"][hostile] = json!(hostile);
    run["doctor"] = json!([{"check": hostile, "message": hostile}, hostile, 5]);
    run["argv"] = json!([hostile]);
    run[hostile] = json!(hostile);
    let mut bad = point("h", hostile, 2);
    for key in ["primitive", "engine", "machine", "placement"] {
        bad[key] = json!(hostile);
    }
    bad["reasons"] = json!([hostile]);
    bad["status"] = json!("noisy");
    bad["workload"] = json!({hostile: hostile, "memory": {"a": [hostile]}});
    bad["metrics"][hostile] = json!({"value": 3.5});
    bad["metrics"]["latency_ns.p99"] = json!({"unavailable": hostile, "detail": hostile});
    bad[hostile] = json!({hostile: hostile});
    let records = [run, bad, point("h", "tas", 1), json!({"record": hostile})];
    let page = page(&records);
    assert!(page.contains("&lt;/script&gt;&lt;img"), "the string is shown");
    assert!(!page.contains("<img") && !page.contains('\u{202e}') && !page.contains('\0'));
    assert_eq!(page.matches("</script>").count(), 1, "the page's own");
    assert!(!page.contains("onerror=alert(1)>"));
    let (_directory, output) = report(&lines(&records), &["--format", "markdown", "--out", "-"]);
    assert!(!text(&output.stdout).contains("<img"));
    let (_directory, output) = report(&lines(&records), &["--format", "csv", "--out", "-"]);
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn what_is_unknown_is_shown_and_what_is_missing_has_its_reason() {
    let mut strange = point("h", "tas", 2);
    strange["engine"] = json!("quantum");
    strange["machine"] = json!("cat-in-box");
    strange["later"] = json!(7);
    strange["metrics"]["entanglement"] = json!({"value": 4.25});
    strange["metrics"]["tensor"] = json!([1, 2]);
    let mut counted = point("h", "tas", 1);
    counted["engine"] = json!("callgrind");
    counted["metrics"] =
        json!({"instructions_per_op": {"value": 23.0}, "rmw_per_op": {"value": 1.0}});
    counted["per_thread"] = json!({});
    let mut simulated = point("h", "mcs", 128);
    simulated["engine"] = json!("simulated");
    simulated["machine"] = json!("epyc-7742-2s");
    let mut broken = point("h", "mcs", 4);
    broken["status"] = json!("broken");
    broken["reasons"] = json!(["3 updates were lost"]);
    broken["metrics"] = json!({});
    let page = page(&[header("h"), point("h", "tas", 2), strange, counted, simulated, broken]);
    for word in [
        "quantum",
        "cat-in-box",
        "entanglement",
        "4.25",
        "point.later",
        "[1,2]",
        "Not measured",
        "epyc-7742-2s",
        "<b>23</b>",
        "instructions_per_op</code> unavailable: no_pmu (not here)",
        "3 updates were lost",
        "class=\"badge simulated\"",
        "no_cpufreq",
        "the load is high",
        "tas is first at 1 thread (23 instructions/op)",
    ] {
        assert!(page.contains(word), "`{word}` is not on the page");
    }
}

#[test]
fn hosts_are_never_mixed() {
    let directory = tempfile::tempdir().unwrap();
    let write = |file: &str, records: &[Value]| {
        fs::write(directory.path().join(file), lines(records)).unwrap();
    };
    write(
        "a.jsonl",
        &[header("first"), point("first", "tas", 1), header("third"), point("third", "mcs", 1)],
    );
    write("b.jsonl", &[header("second"), point("second", "ticket", 1), point("lost", "futex", 1)]);
    let output = manycore_in(
        directory.path(),
        &["report", "a.jsonl", "b.jsonl", "./a.jsonl", "--out", "all.html"],
    );
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("named twice"));
    let page = fs::read_to_string(directory.path().join("all.html")).unwrap();
    let sections: Vec<&str> = page.split("<section class=\"host\"").skip(1).collect();
    assert_eq!(sections.len(), 4);
    for (section, variant) in sections.iter().zip(["tas", "mcs", "ticket", "futex"]) {
        let verdict = section.split("<p class=\"verdict\">").nth(1).unwrap();
        assert!(verdict.starts_with(variant), "{variant}");
    }
    assert!(sections[3].contains("nothing is known about where"), "no header");
}

#[test]
fn files_without_points_are_errors_that_say_what_is_there() {
    let refused = |records: &str, words: &[&str]| {
        for format in ["html", "csv", "markdown"] {
            let (directory, output) = report(records, &["--format", format]);
            assert_refused(&output, 1, words);
            assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "nothing is written");
        }
    };
    refused("", &["no records in r.jsonl", "manycore sweep"]);
    refused("\n\n", &["no records"]);
    refused("{\"record\":\nrubbish\n", &["none of the 2 lines", "line 1"]);
    refused(&lines(&[header("h")]), &["no measured points", "(1)"]);
    let directory = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| manycore_in(directory.path(), arguments);
    assert_refused(&run(&["report", "none.jsonl"]), 1, &["cannot read none.jsonl", "No such file"]);
    assert_refused(&run(&["report", "."]), 1, &["cannot read ."]);
    assert_refused(&run(&["report", "/dev/null", "--format", "csv"]), 1, &["not a regular file"]);
    assert_refused(&run(&["report"]), 2, &["FILE"]);
    assert_refused(&run(&["report", "x", "--format", "pdf"]), 2, &["html", "csv", "markdown"]);
}

#[test]
fn damaged_lines_are_listed_and_the_rest_is_shown() {
    let mut records = lines(&[header("h"), point("h", "tas", 1)]);
    records.push_str("{\"record\":\"po\n{\"record\":\"tree\"}\n");
    records.push_str(&lines(&[point("h", "mcs", 1)]));
    let (directory, output) = report(&records, &[]);
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stderr).contains("2 points, 2 lines skipped"), "{}", text(&output.stderr));
    let page = fs::read_to_string(directory.path().join("r.html")).unwrap();
    assert!(page.contains("unknown kind of record `tree`") && page.contains("id=\"skipped\""));
}

#[test]
fn places_that_cannot_be_written_are_errors_and_nothing_is_half_written() {
    let records = lines(&[header("h"), point("h", "tas", 1)]);
    for (out, words) in [
        (".", "is a directory"),
        ("/dev/full", "No space left"),
        ("/proc/nothing/r.html", "/proc/nothing/r.html"),
        ("no/such/r.html", "--out"),
        ("r.jsonl", "overwrite the records"),
        ("r.jsonl/x", "--out"),
    ] {
        let (directory, output) = report(&records, &["--out", out]);
        assert_refused(&output, 1, &[words]);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "{out}");
        assert_eq!(fs::read_to_string(directory.path().join("r.jsonl")).unwrap(), records);
    }
    assert!(!fs::symlink_metadata("/dev/full").unwrap().is_file(), "the device is still one");
}

/// Makes a child that may write no file longer than `bytes`, as on a full disk.
fn with_limit(directory: &Path, bytes: u64, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_manycore"));
    command.args(arguments).current_dir(directory);
    let limit = move || {
        // SAFETY: sets how this process treats a signal, to a constant.
        unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
        let limit = libc::rlimit { rlim_cur: bytes, rlim_max: bytes };
        // SAFETY: reads one structure.
        match unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit) } {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        }
    };
    // SAFETY: the closure makes two system calls and allocates nothing.
    unsafe { command.pre_exec(limit) };
    command.output().unwrap()
}

#[test]
fn a_disk_that_fills_leaves_the_old_report() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("r.jsonl"), lines(&[header("h"), point("h", "tas", 1)]))
        .unwrap();
    fs::write(directory.path().join("r.html"), "old").unwrap();
    let output = with_limit(directory.path(), 4096, &["report", "r.jsonl"]);
    assert_refused(&output, 1, &["cannot write the report to r.html"]);
    assert_eq!(fs::read_to_string(directory.path().join("r.html")).unwrap(), "old");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2, "no part is left");
}

#[test]
fn a_directory_without_permission_is_an_error() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("r.jsonl"), lines(&[header("h"), point("h", "tas", 1)]))
        .unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o555)).unwrap();
    if fs::write(directory.path().join("try"), "").is_ok() {
        println!("SKIPPED: this user may write into any directory");
        return;
    }
    let output = manycore_in(directory.path(), &["report", "r.jsonl"]);
    assert_refused(&output, 1, &["cannot write the report to r.html", "--out"]);
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_closed_standard_output_is_no_panic() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("r.jsonl"), lines(&[header("h"), point("h", "tas", 1)]))
        .unwrap();
    for arguments in [
        vec!["report", "r.jsonl"],
        vec!["report", "r.jsonl", "--out", "-"],
        vec!["report", "r.jsonl", "--out", "-", "--format", "csv"],
        vec!["explain"],
        vec!["explain", "--markdown"],
    ] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_manycore"))
            .args(&arguments)
            .current_dir(directory.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", text(&output.stderr));
    }
}

/// Runs `manycore` and gives what it said and the most memory it took, in kB.
#[expect(clippy::zombie_processes, reason = "wait4 waits for it, and tells the memory as well")]
fn measured(directory: &Path, arguments: &[&str]) -> (Output, i64) {
    let timed = Command::new(env!("CARGO_BIN_EXE_manycore"))
        .args(arguments)
        .current_dir(directory)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let pid = i32::try_from(timed.id()).unwrap();
    let mut status = 0;
    // SAFETY: all-zero bytes are an empty usage.
    let mut usage = unsafe { std::mem::zeroed::<libc::rusage>() };
    // SAFETY: waits for the child made above, which nobody else waits for.
    let waited = unsafe { libc::wait4(pid, &raw mut status, 0, &raw mut usage) };
    assert_eq!(waited, pid);
    let status = std::os::unix::process::ExitStatusExt::from_raw(status);
    (Output { status, stdout: Vec::new(), stderr: Vec::new() }, usage.ru_maxrss)
}

/// Writes `count` points, of as many different keys as asked for.
fn many(path: &Path, count: usize, keys: usize) {
    let mut file = std::io::BufWriter::new(fs::File::create(path).unwrap());
    writeln!(file, "{}", header("h")).unwrap();
    let variants: Vec<String> = (0..keys.div_ceil(100)).map(|n| format!("lock_{n}")).collect();
    for n in 0..count {
        let key = n % keys;
        let record = point("h", &variants[key / 100], 1 + key % 100);
        writeln!(file, "{record}").unwrap();
    }
}

#[test]
fn many_points_fold_into_a_small_page_in_little_memory() {
    let directory = tempfile::tempdir().unwrap();
    let cases = [(200_000, 60, Some(60)), (5_000, 5_000, Some(5_000)), (60_000, 30_000, None)];
    for (count, keys, rows) in cases {
        many(&directory.path().join("r.jsonl"), count, keys);
        let began = std::time::Instant::now();
        let (output, kilobytes) = measured(directory.path(), &["report", "r.jsonl"]);
        assert!(output.status.success());
        let page = fs::read_to_string(directory.path().join("r.html")).unwrap();
        println!(
            "{count} points of {keys} conditions: {:.1} s, {} MB, page {} kB",
            began.elapsed().as_secs_f64(),
            kilobytes / 1024,
            page.len() / 1000
        );
        assert!((page.len() as u64) < PAGE_MOST, "{} bytes", page.len());
        assert!(kilobytes < 500 * 1024, "{kilobytes} kB");
        if let Some(rows) = rows {
            assert_eq!(page.matches("<tr class=ok>").count(), rows);
        }
        assert_eq!(page.contains("are folded into it"), count > 5_000);
        assert_eq!(page.contains("of further conditions left out"), keys > 20_000);
    }
}

#[test]
fn values_hold_every_point_even_where_the_page_folds() {
    let directory = tempfile::tempdir().unwrap();
    many(&directory.path().join("r.jsonl"), 6_000, 10);
    let output = manycore_in(directory.path(), &["report", "r.jsonl", "--format", "csv"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let csv = fs::read_to_string(directory.path().join("r.csv")).unwrap();
    assert_eq!(csv.matches("\r\n").count(), 6_001);
    let columns = csv.lines().next().unwrap().split(',').count();
    assert!(csv.lines().all(|line| line.split(',').count() == columns), "no field needs quotes");
    assert!(csv.lines().nth(1).unwrap().contains("no_pmu (not here)"));
}

#[test]
fn explain_knows_every_metric_that_a_sweep_emits() {
    let directory = tempfile::tempdir().unwrap();
    let sweep = ["sweep", "--seconds", "0.004", "--repeat", "2", "--threads", "1", "--json"];
    let output = manycore_in(directory.path(), &sweep);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let mut metrics = BTreeSet::new();
    for line in text(&output.stdout).lines() {
        let record: Value = serde_json::from_str(line).unwrap();
        metrics.extend(record["metrics"].as_object().into_iter().flatten().map(|(k, _)| k.clone()));
    }
    assert!(metrics.len() >= 20, "{metrics:?}");
    let unknown: Vec<&String> =
        metrics.iter().filter(|metric| glossary::entry(metric).is_none()).collect();
    assert!(unknown.is_empty(), "harness/src/glossary/table.rs has no entry for {unknown:?}");
}

#[test]
fn explain_lists_explains_and_helps_with_names() {
    let run = |arguments: &[&str]| manycore_in(Path::new("."), arguments);
    let list = text(&run(&["explain"]).stdout);
    assert!(glossary::TABLE.iter().all(|entry| list.contains(entry.name)));
    let one = text(&run(&["explain", "fairness_jain"]).stdout);
    assert!(one.contains("(Σx)² ÷ (n Σx²)") && one.contains("native") && one.contains("beware"));
    assert!(text(&run(&["explain", "latency_ns.p99"]).stdout).contains("latency_ns.*"));
    assert_refused(&run(&["explain", "fairnes"]), 2, &["no metric", "fairness_jain"]);
    assert_refused(&run(&["explain", ""]), 2, &["no metric"]);
    for line in text(&run(&["explain", "--json"]).stdout).lines() {
        assert!(serde_json::from_str::<Value>(line).unwrap()["formula"].is_string());
    }
    for command in ["report", "explain"] {
        let help = text(&run(&[command, "--help"]).stdout);
        assert!(help.contains("Examples:") && help.contains(&format!("manycore {command}")));
    }
}

#[test]
fn the_glossary_is_up_to_date() {
    let printed = text(&manycore_in(Path::new("."), &["explain", "--markdown"]).stdout);
    let kept = fs::read_to_string(root().join("docs/glossary.md")).unwrap();
    assert!(kept == printed, "run: manycore explain --markdown > docs/glossary.md");
}
