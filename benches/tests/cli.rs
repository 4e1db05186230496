//! The program as a user runs it: what it says to good and to bad input.

use std::fs;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

fn manycore(arguments: &[&str]) -> Output {
    manycore_in(Path::new("."), arguments)
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

/// A sweep of a blink: two repetitions of a few milliseconds.
const BLINK: [&str; 7] = ["sweep", "--seconds", "0.004", "--repeat", "2", "--threads", "1"];

fn blink(more: &[&str]) -> Vec<String> {
    BLINK.iter().chain(more).map(|&word| word.to_owned()).collect()
}

fn sweep(directory: &Path, more: &[&str]) -> Output {
    let words = blink(more);
    manycore_in(directory, &words.iter().map(String::as_str).collect::<Vec<_>>())
}

fn lines(file: &Path) -> Vec<Value> {
    fs::read_to_string(file)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Asserts the exit code and that standard error holds each of the words.
fn assert_refused(output: &Output, code: i32, words: &[&str]) {
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{error}");
    for word in words {
        assert!(error.contains(word), "`{word}` is not in: {error}");
    }
}

#[test]
fn usage_errors_exit_2_and_say_what_to_do() {
    let cases: [(&[&str], &[&str]); 49] = [
        (&["--primitive", "lock"], &["no primitive matches `lock`", "locks"]),
        (&["--primitive", "locks", "--variant", "tickt"], &["no variant matches", "ticket"]),
        (&["--primitive", "locks", "--variant", "spsc*"], &["no variant matches"]),
        (&["--engine", "simulatd"], &["unknown engine", "simulated"]),
        (&["--machine", "graviton2"], &["--engine simulated"]),
        (&["--cores", "4"], &["--engine simulated"]),
        (&["--ops", "4"], &["--engine simulated"]),
        (&["--engine", "simulated", "--machine", "epyc-7724"], &["epyc-7742-2s", "graviton2"]),
        (&["--engine", "simulated", "--machine", "./no.toml"], &["./no.toml", "cannot read"]),
        (&["--engine", "simulated", "--machine", "/etc/passwd"], &["/etc/passwd", "TOML"]),
        (&["--engine", "simulated", "--cores", "5000"], &["more than 1024"]),
        (&["--engine", "simulated", "--threads", "257"], &["257 threads on 256", "epyc-7742-2s"]),
        (
            &["--engine", "simulated", "--cores", "8", "--threads", "9"],
            &["9 threads on 8", "--oversubscribe"],
        ),
        (&["--engine", "simulated", "--placement", "cpus=256"], &["CPU 256"]),
        (&["--engine", "simulated", "--ops", "0"], &["cannot be less than 1"]),
        (&["--engine", "simulated", "--timeout", "x"], &["90s"]),
        (&["--timeout", "5m"], &["--timeout is for --engine simulated"]),
        (&["--engine", "simulated", "--seconds", "1"], &["--seconds is for --engine native"]),
        (&["--engine", "simulated", "--repeat", "5"], &["--repeat is for --engine native"]),
        (&["--engine", "callgrind", "--placement", "compact"], &["native or simulated"]),
        (&["--engine", "callgrind", "--memory", "local"], &["native or simulated"]),
        (&["--primitive", "counters", "--capacity", "8"], &["is for queues", "of counters"]),
        (&["--primitive", "locks,queues", "--alloc-bytes", "64"], &["is for alloc-arena"]),
        (&["--primitive", "queues", "--read-percent", "0"], &["is for counters and locks"]),
        (&["--threads", "0"], &["0 threads"]),
        (&["--threads", "1,0"], &["0 threads"]),
        (&["--threads", "8..4"], &["backwards"]),
        (&["--threads", "-3"], &["not a number of threads"]),
        (&["--threads", "99999999999999999999999"], &["not a number of threads"]),
        (&["--threads", "1..18446744073709551615"], &["threads"]),
        (&["--threads", "1..60000"], &["more than 4096 thread counts"]),
        (&["--threads", "two"], &["1,2,4..16"]),
        (&["--threads", "5000"], &["5000 threads", "--oversubscribe"]),
        (&["--placement", "compakt"], &["unknown placement", "compact"]),
        (&["--placement", "cpus="], &["cpus="]),
        (&["--placement", "cpus=0,x"], &["cpus=0,x"]),
        (&["--memory", "far"], &["unknown memory", "remote"]),
        (&["--memory", "node=-1"], &["unknown memory"]),
        (&["--critical-ns", "-5"], &["cannot be less than 0"]),
        (&["--think-ns", "1e9"], &["whole number"]),
        (&["--read-percent", "101"], &["cannot be more than 100"]),
        (&["--capacity", "0"], &["cannot be less than 1"]),
        (&["--capacity", "18446744073709551616"], &["cannot be more than"]),
        (&["--element-bytes", "7"], &["8, 64 or 256"]),
        (&["--seconds", "-1"], &["cannot be negative"]),
        (&["--seconds", "nan"], &["0.001"]),
        (&["--repeat", "0"], &["cannot be less than 1"]),
        (&["--budget", "1s"], &["at the least"]),
        (&["--budget", "-5m"], &["cannot be negative"]),
    ];
    for (arguments, words) in cases {
        // Placed last, so that it overrides nothing that a case sets.
        let all: Vec<&str> = ["sweep", "--dry-run"].iter().chain(arguments).copied().collect();
        assert_refused(&manycore(&all), 2, words);
    }
    for (command, words) in [
        (
            &["count", "--primitive", "locks", "--capacity", "8"] as &[&str],
            "--capacity is for queues",
        ),
        (&["lines", "locks/tas", "--alloc-bytes", "8"], "--alloc-bytes is for alloc-arena"),
        (
            &["ab", "queues/mutex_ring", "queues/mpmc_ticket", "--read-percent", "1"],
            "is for counters",
        ),
        (&["c2c", "--engine", "simulated", "--repeat", "3"], "--repeat is for --engine native"),
    ] {
        assert_refused(&manycore(command), 2, &[words]);
    }
    assert_refused(&manycore(&["list", "--primitive", "quues"]), 2, &["queues"]);
    assert_refused(&manycore(&["swep"]), 2, &["sweep"]);
    assert_refused(&manycore(&["sweep", "--resume"]), 2, &["--out"]);
    assert_refused(&manycore(&[]), 2, &["Usage"]);
}

#[test]
fn help_has_examples_and_version_has_the_commit() {
    let machines = text(&manycore(&["machines"]).stdout);
    let known = |name: &&str| machines.lines().any(|line| line.trim().starts_with(*name));
    let all = text(&manycore(&["--help"]).stdout);
    let commands = all.lines().skip_while(|line| *line != "Commands:").skip(1);
    let commands = commands.take_while(|line| !line.is_empty());
    let commands = commands.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    let commands = commands.filter(|command| !command.is_empty());
    let commands: Vec<&str> = commands.filter(|command| *command != "help").collect();
    assert!(commands.len() > 15, "{all}");
    for command in commands {
        let help = text(&manycore(&[command, "--help"]).stdout);
        assert!(
            help.contains("Examples:") && help.contains(&format!("manycore {command}")),
            "{help}"
        );
        let examples = help.lines().filter(|line| line.trim().starts_with("manycore "));
        let words: Vec<&str> = examples.flat_map(str::split_whitespace).collect();
        for named in words.windows(2).filter(|pair| pair[0] == "--machine").map(|pair| pair[1]) {
            assert!(named.ends_with(".toml") || known(&named), "{command}: no machine {named}");
        }
    }
    let version = text(&manycore(&["--version"]).stdout);
    assert!(version.contains("commit ") && version.contains("rustc 1."), "{version}");
}

#[test]
fn lists_every_variant_as_text_and_json() {
    let table = text(&manycore(&["list"]).stdout);
    let json = text(&manycore(&["list", "--json"]).stdout);
    assert!(json.lines().count() >= 20, "{json}");
    for line in json.lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        assert!(table.contains(row["variant"].as_str().unwrap()), "{line}");
        assert!(row["properties"].as_object().is_some_and(|properties| properties.len() >= 5));
        assert!(["baseline", "variant", "control"].contains(&row["kind"].as_str().unwrap()));
    }
    let locks = text(&manycore(&["list", "--primitive", "locks"]).stdout);
    assert!(locks.contains("mcs") && !locks.contains("spsc"), "{locks}");
}

#[test]
fn topology_reads_this_host_and_trees() {
    let host: Value = serde_json::from_slice(&manycore(&["topology", "--json"]).stdout).unwrap();
    assert_eq!(host["this_host"], true);
    assert!(text(&manycore(&["topology"]).stdout).contains("NUMA node"));
    let empty = tempfile::tempdir().unwrap();
    let root = empty.path().to_str().unwrap();
    assert_refused(&manycore(&["topology", "--root", root]), 1, &[root]);
    assert_refused(&manycore(&["topology", "--root", "/no/such/tree"]), 1, &["/no/such/tree"]);
    let file = empty.path().join("file");
    fs::write(&file, "").unwrap();
    assert_refused(
        &manycore(&["topology", "--root", file.to_str().unwrap()]),
        1,
        &["file", "empty"],
    );
}

#[test]
fn a_sweep_writes_records_by_the_schema() {
    let schema: Value =
        serde_json::from_str(include_str!("../../docs/records.schema.json")).unwrap();
    let schema = jsonschema::validator_for(&schema).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let output =
        sweep(directory.path(), &["--placement", "compact+cross-node", "--out", "r.jsonl"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let records = lines(&directory.path().join("r.jsonl"));
    for record in &records {
        let errors: Vec<String> =
            schema.iter_errors(record).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{errors:?}\n{record}");
    }
    let rows = text(&manycore(&["list", "--json"]).stdout).lines().count();
    let points = |status: &[&str]| {
        records.iter().filter(|r| status.iter().any(|status| r["status"] == **status)).count()
    };
    assert_eq!(points(&["ok", "noisy"]) + points(&["unavailable"]), records.len() - 1);
    assert!(points(&["ok", "noisy"]) >= rows, "every row is measured");
    assert_eq!(records[0]["record"], "run");
    assert!(records[1..].iter().all(|point| point["run"] == records[0]["run"]));
    let printed = text(&output.stdout);
    for verdict in ["→ counters:", "→ locks:", "→ queues:", "→ alloc-arena:"] {
        assert!(printed.contains(verdict), "{printed}");
    }
}

#[test]
fn spinning_locks_make_no_system_call_and_controls_are_labelled() {
    let directory = tempfile::tempdir().unwrap();
    let output = sweep(directory.path(), &["--primitive", "locks", "--json", "--quiet"]);
    let records: Vec<Value> =
        text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0, "--json alone writes no file");
    for point in &records[1..] {
        let calls = &point["metrics"]["syscalls_per_op"];
        if let Some(reason) = calls.get("unavailable") {
            println!("SKIPPED: {reason}");
            continue;
        }
        assert_eq!(calls["value"], 0.0, "{point}");
    }
}

#[test]
fn resume_measures_only_what_is_missing() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("r.jsonl");
    let counters = ["--primitive", "counters", "--out", "r.jsonl"];
    assert!(sweep(directory.path(), &counters).status.success());
    let before = fs::read_to_string(&file).unwrap();
    let points = before.lines().count() - 1;
    // The last point is lost, a line is damaged, and one is of the future.
    let cut = before.lines().take(points).collect::<Vec<_>>().join("\n");
    let future = r#"{"record":"run","schema":99,"run":"later","argv":[],"host":{}}"#;
    fs::write(&file, format!("{cut}\n{{\"record\":\"po\n{future}\n")).unwrap();
    let resumed = sweep(directory.path(), &[&counters[..], &["--resume"]].concat());
    let said = text(&resumed.stderr);
    assert!(resumed.status.success(), "{said}");
    let left_out = points - 1;
    assert!(said.contains(&format!("{left_out} points in the file already")), "{said}");
    assert!(said.contains("1 point in"), "{said}");
    assert!(said.contains("newer") && said.contains("not a whole record"), "{said}");
    let after = fs::read_to_string(&file).unwrap();
    assert!(after.starts_with(&cut), "nothing was lost");
    assert_eq!(after.lines().count(), points + 2 + 2);
}

#[test]
fn files_that_cannot_be_written_are_an_error_with_a_remedy() {
    let directory = tempfile::tempdir().unwrap();
    let counters = |out| sweep(directory.path(), &["--primitive", "counters", "--out", out]);
    assert_refused(&counters("/dev/full"), 1, &["/dev/full", "cannot add a record"]);
    assert_refused(&counters("/proc/nothing/r.jsonl"), 1, &["/proc/nothing/r.jsonl", "--out"]);
    assert_refused(&counters("."), 1, &["--out"]);
}

#[test]
fn a_closed_standard_output_is_no_panic() {
    for arguments in [vec!["list"], vec!["topology", "--json"]] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_manycore"))
            .args(&arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    }
    // Records on standard output are the result: losing the reader is a failure, said once.
    let mut child = Command::new(env!("CARGO_BIN_EXE_manycore"))
        .args(blink(&["--primitive", "counters", "--json"]))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_refused(&output, 1, &["standard output"]);
    assert!(!text(&output.stderr).contains("panicked"));
}

#[test]
fn an_interrupt_keeps_what_was_measured() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("r.jsonl");
    let child = Command::new(env!("CARGO_BIN_EXE_manycore"))
        .args([
            "sweep",
            "--primitive",
            "locks",
            "--threads",
            "1",
            "--seconds",
            "3",
            "--repeat",
            "5",
        ])
        .arg("--out")
        .arg(&file)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Two repetitions of some rows pass in the time in which one row's five would not.
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(7) {
        std::thread::sleep(Duration::from_millis(50));
    }
    let pid = i32::try_from(child.id()).unwrap();
    // SAFETY: sends a signal to the child made above, which has not been waited for.
    unsafe { libc::kill(pid, libc::SIGINT) };
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.signal(), None);
    assert_refused(&output, 130, &["interrupted; kept"]);
    let records = lines(&file);
    assert!(records.len() > 1, "{records:?}");
    for point in &records[1..] {
        assert_eq!(point["status"], "noisy");
        let reasons = point["reasons"].to_string();
        assert!(reasons.contains("interrupted after"), "{reasons}");
        assert!(point["metrics"]["ns_per_op"]["value"].as_f64().unwrap() > 0.0);
    }
}

#[test]
fn oversubscription_is_asked_for() {
    let directory = tempfile::tempdir().unwrap();
    let more = |extra: &[&str]| {
        let base = ["sweep", "--primitive", "locks", "--variant", "futex,null", "--repeat", "2"];
        let rest = ["--seconds", "0.02", "--placement", "compact", "--out", "r.jsonl", "--threads"];
        let cpus = std::thread::available_parallelism().unwrap().get() + 1;
        let threads = cpus.to_string();
        let words = [&base[..], &rest[..], &[threads.as_str()], extra].concat();
        manycore_in(directory.path(), &words)
    };
    assert_refused(&more(&[]), 2, &["--oversubscribe"]);
    let output = more(&["--oversubscribe"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(lines(&directory.path().join("r.jsonl")).len(), 3);
}

#[test]
fn globs_choose_variants_and_unknown_names_get_the_nearest() {
    let directory = tempfile::tempdir().unwrap();
    let asked = |more: &[&str]| sweep(directory.path(), &[&["--dry-run", "--json"], more].concat());
    let chosen = |more: &[&str]| -> Vec<String> {
        let output = text(&asked(more).stdout);
        let points = output.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        points.map(|point| point["variant"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(chosen(&["--primitive", "locks", "--variant", "m?s"]), ["mcs"]);
    assert_eq!(chosen(&["--primitive", "locks", "--variant", "tas*"]), ["tas", "tas_neighbour"]);
    assert_eq!(chosen(&["--variant", "null"]).len(), 4);
    for (more, word) in [
        (&["--variant", "tickt"][..], "nearest: ticket"),
        (&["--primitive", "locks", "--variant", "zzz"], "there are null, tas"),
        (&["--primitive", "queues", "--variant", "ticket"], "no variant matches"),
        (&["--primitive", ""], "no primitive"),
        (&["--variant", ""], "no variant"),
    ] {
        assert_refused(&asked(more), 2, &[word]);
    }
}

#[test]
fn dry_run_measures_nothing_and_names_every_point() {
    let directory = tempfile::tempdir().unwrap();
    let output = sweep(directory.path(), &["--dry-run", "--json"]);
    assert!(output.status.success());
    let rows = text(&manycore(&["list", "--json"]).stdout).lines().count();
    let points = text(&output.stdout);
    assert_eq!(points.lines().count(), rows);
    for line in points.lines() {
        let point: Value = serde_json::from_str(line).unwrap();
        assert_eq!(point["threads"], 1);
    }
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn what_this_machine_lacks_is_unavailable_with_a_reason_and_never_a_number() {
    let directory = tempfile::tempdir().unwrap();
    let arena = ["--primitive", "alloc-arena", "--out", "r.jsonl"];
    let output = sweep(directory.path(), &[&arena[..], &["--memory", "node=63"]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let records = lines(&directory.path().join("r.jsonl"));
    for point in &records[1..] {
        assert_eq!(point["status"], "unavailable", "{point}");
        assert_eq!(point["metrics"].as_object().unwrap().len(), 0);
        assert!(!point["reasons"][0].as_str().unwrap().is_empty());
    }
}

/// Makes the kernel refuse certain calls of this process with EPERM, as container runtimes do.
fn deny(calls: &[i64]) -> std::io::Result<()> {
    let statement =
        |code: u32, jt: u8, k: u32| libc::sock_filter { code: code as u16, jt, jf: 0, k };
    let load_number = statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0);
    let mut program = vec![load_number];
    for (at, &call) in calls.iter().enumerate() {
        // On a match jump over the remaining comparisons and the permission.
        let over = (calls.len() - at) as u8;
        program.push(statement(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, over, call as u32));
    }
    program.push(statement(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ALLOW));
    let refusal = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
    program.push(statement(libc::BPF_RET | libc::BPF_K, 0, refusal));
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: lowers this process's own rights.
    let lowered = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
    let mode = libc::SECCOMP_MODE_FILTER;
    // SAFETY: the program is alive during the call, which copies it.
    let filtered = unsafe { libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const filter) };
    if lowered == 0 && filtered == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

#[test]
fn without_permission_to_bind_memory_points_are_measured_and_say_so() {
    use std::os::unix::process::CommandExt;
    let sweep = |memory: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_manycore"));
        command.args(blink(&["--json", "--variant", "tas,bump_numa", "--memory", memory]));
        // SAFETY: the closure makes two system calls and one small allocation between fork and
        // exec; the parent's other threads hold no lock that it needs but the allocator's, which
        // glibc hands over at fork.
        unsafe { command.pre_exec(|| deny(&[libc::SYS_mbind, libc::SYS_move_pages])) };
        let output = command.output().unwrap();
        let records: Vec<Value> =
            text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        records
    };
    let local = sweep("local");
    let (lock, arena) = (&local[1]["metrics"], &local[2]["metrics"]);
    assert!(lock["ns_per_op"]["value"].as_f64().unwrap() > 0.0);
    assert_eq!(lock["memory_on_node"]["unavailable"], "mbind_not_permitted");
    assert_eq!(arena["arenas_verified"]["unavailable"], "placement_unverified");
    assert!(arena["arenas_verified"]["detail"].to_string().contains("mbind"), "{arena}");
    // What was asked for by number is a demand.
    for point in &sweep("node=0")[1..] {
        assert_eq!(point["status"], "unavailable");
        assert!(point["reasons"].to_string().contains("mbind"), "{point}");
    }
}

#[test]
fn a_cpuset_without_cpu_0_is_used_as_it_is() {
    use std::os::unix::process::CommandExt;
    let host: Value = serde_json::from_slice(&manycore(&["topology", "--json"]).stdout).unwrap();
    let usable = host["cpus"]["usable"].as_str().unwrap().to_owned();
    let last: usize = usable.rsplit([',', '-']).next().unwrap().parse().unwrap();
    if last == 0 || last >= 1024 {
        println!("SKIPPED: the usable CPUs are {usable}");
        return;
    }
    let restricted = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_manycore"));
        command.args(arguments);
        let restrict = move || {
            // SAFETY: all-zero bytes are an empty mask.
            let mut mask = unsafe { std::mem::zeroed::<libc::cpu_set_t>() };
            // SAFETY: the CPU is below the mask's 1024.
            unsafe { libc::CPU_SET(last, &mut mask) };
            // SAFETY: reads one mask.
            match unsafe { libc::sched_setaffinity(0, size_of_val(&mask), &raw const mask) } {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            }
        };
        // SAFETY: the closure makes one system call.
        unsafe { command.pre_exec(restrict) };
        command.output().unwrap()
    };
    let output = restricted(&[&BLINK[..], &["--json", "--variant", "ticket"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let point: Value = serde_json::from_str(text(&output.stdout).lines().nth(1).unwrap()).unwrap();
    assert_eq!(point["cpus"], serde_json::json!([last]));
    let refused = restricted(&["sweep", "--dry-run", "--threads", "2"]);
    assert_refused(&refused, 2, &["1 CPU ", "--oversubscribe"]);
    let refused = restricted(&["sweep", "--dry-run", "--threads", "1", "--placement", "cpus=0"]);
    assert_refused(&refused, 2, &["CPU 0 is not among the usable"]);
}

/// Other people's lines in the same file are neither read as ours nor harmed.
#[test]
fn a_damaged_file_is_added_to() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("r.jsonl");
    let damage = b"\xff\xfe{not json\n{\"record\":\"run\",\"schema\":1".to_vec();
    fs::File::create(&file).unwrap().write_all(&damage).unwrap();
    let output =
        sweep(directory.path(), &["--primitive", "counters", "--out", "r.jsonl", "--resume"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let after = fs::read(&file).unwrap();
    assert!(after.starts_with(&damage));
    assert_eq!(after[damage.len()], b'\n');
}
