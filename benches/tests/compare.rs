//! `manycore compare` as a user and as CI runs it.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};

fn manycore_in(directory: &Path, arguments: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_manycore");
    Command::new(program).args(arguments).current_dir(directory).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn header(run: &str, changes: &[(&str, Value)]) -> Value {
    let mut host = json!({"name": "box", "cpu": "Some CPU", "microcode": "0x1", "kernel": "6.18",
        "cpus_allowed": "0-7", "quota_cpus": null, "nodes": [0], "governor": "performance",
        "smt": "off", "thp": "madvise", "aslr": "2", "hypervisor": null, "arch": "x86_64",
        "profile": "release", "rustc": "rustc 1.95.0", "commit": "0123456789ab",
        "date": "2026-11-30T12:00:00Z"});
    for (field, value) in changes {
        host[*field] = value.clone();
    }
    json!({"record": "run", "schema": 1, "run": run, "argv": ["manycore"], "host": host,
        "doctor": []})
}

/// A point with these metrics; `of` is `engine primitive/variant threads`.
fn point(run: &str, of: &str, metrics: &Value) -> Value {
    let words: Vec<&str> = of.split([' ', '/']).collect();
    let [engine, primitive, variant, threads] = words[..] else { panic!("{of}") };
    let machine = if engine == "simulated" { "epyc-7742-2s" } else { "this-host" };
    json!({"record": "point", "run": run, "engine": engine, "machine": machine,
        "primitive": primitive, "variant": variant,
        "workload": {"think_ns": 0, "memory": "local"}, "threads": threads.parse::<u64>().unwrap(),
        "placement": "compact", "cpus": [0], "seed": 1, "repeat": 5, "status": "ok", "reasons": [],
        "metrics": metrics, "per_thread": {"ops": [1]}})
}

fn ns(value: f64) -> Value {
    json!({"ns_per_op": {"value": value, "low": value * 0.99, "high": value * 1.01}})
}

fn counts(instructions: f64) -> Value {
    json!({"instructions_per_op": {"value": instructions}, "rmw_per_op": {"value": 1.0}})
}

struct Compared {
    directory: tempfile::TempDir,
    output: Output,
}

impl Compared {
    fn texts(old: &str, new: &str, more: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("old.jsonl"), old).unwrap();
        fs::write(directory.path().join("new.jsonl"), new).unwrap();
        let words = [&["compare", "old.jsonl", "new.jsonl"], more].concat();
        let output = manycore_in(directory.path(), &words);
        Self { directory, output }
    }

    fn of(old: &[Value], new: &[Value], more: &[&str]) -> Self {
        let lines =
            |records: &[Value]| records.iter().map(|r| format!("{r}\n")).collect::<String>();
        Self::texts(&lines(old), &lines(new), more)
    }

    /// Checks the exit code and that these words are printed, and gives what was printed.
    #[track_caller]
    fn says(&self, code: i32, words: &[&str]) -> String {
        let said = text(&self.output.stdout) + &text(&self.output.stderr);
        assert_eq!(self.output.status.code(), Some(code), "{said}");
        for word in words {
            assert!(said.contains(word), "`{word}` is not in: {said}");
        }
        assert!(!said.contains("panicked"), "{said}");
        said
    }

    fn file(&self, name: &str) -> String {
        fs::read_to_string(self.directory.path().join(name)).unwrap()
    }

    /// The last line of `--json`.
    fn sum(&self) -> Value {
        serde_json::from_str(text(&self.output.stdout).lines().last().unwrap()).unwrap()
    }
}

const COUNTED: &str = "callgrind locks/tas 1";
const TIMED: &str = "native locks/tas 2";

#[test]
fn a_file_is_equal_to_itself_whatever_it_holds() {
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/sample/results.jsonl");
    let sample = sample.to_str().unwrap();
    let output = manycore_in(Path::new("."), &["compare", sample, sample]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stdout).starts_with("equal: 66 pairs of points: 66 equal"));
    let mut broken = point("r", COUNTED, &json!({}));
    broken["status"] = json!("broken");
    let mut once = point("r", TIMED, &ns(5.0));
    once["repeat"] = json!(1);
    let none =
        point("r", "native queues/null 4", &json!({"llc_misses": {"unavailable": "no_pmu"}}));
    let all = [broken, once, point("r", "simulated locks/mcs 64", &ns(70.0))];
    Compared::of(&all, &all, &[]).says(0, &["2 equal", "1 without figures"]);
    let none = std::slice::from_ref(&none);
    Compared::of(none, none, &[]).says(4, &["no figure to compare"]);
}

#[test]
fn counts_decide_exactly_or_with_the_tolerance_that_is_stated() {
    let old = [header("a", &[]), point("a", COUNTED, &counts(100.0))];
    let new = |instructions| [header("b", &[]), point("b", COUNTED, &counts(instructions))];
    Compared::of(&old, &new(100.0), &[]).says(0, &["equal: 1 pair"]);
    let worse = ["regressed", "instructions_per_op", "+0.5 %", "100  100.5", "locks/tas 1 thread"];
    Compared::of(&old, &new(100.5), &[]).says(3, &worse);
    Compared::of(&old, &new(99.0), &[]).says(0, &["improved", "-1.0 %"]);
    for good in ["1", "instructions_per_op=1", "rmw_per_op=0,instructions_per_op=0.5"] {
        Compared::of(&old, &new(100.5), &["--tolerance", good]).says(0, &["1 equal"]);
    }
    Compared::of(&old, &new(102.0), &["--tolerance", "1"]).says(3, &["1 % allowed"]);
    Compared::of(&old, &new(100.5), &["--tolerance", "rmw_per_op=50"]).says(3, &[]);
}

#[test]
fn times_decide_by_their_intervals() {
    let old = [header("a", &[]), point("a", TIMED, &ns(10.0))];
    let new = |value: f64| [header("b", &[]), point("b", TIMED, &ns(value))];
    Compared::of(&old, &new(10.1), &[]).says(0, &["1 equal"]);
    Compared::of(&old, &new(12.0), &[]).says(3, &["ns_per_op", "+20.0 %", "95 % interval"]);
    Compared::of(&old, &new(8.0), &[]).says(0, &["improved"]);
    Compared::of(&old, &new(10.5), &[]).says(4, &["inconclusive"]);
    Compared::of(&old, &new(12.0), &["--margin", "30"]).says(0, &["1 equal"]);
    Compared::of(&old, &new(12.0), &["--counts-only"]).says(4, &["no figure to compare"]);
}

/// Of 400 comparisons one has p = 0.006: alone it is a change, among 400 it is chance.
#[test]
fn one_of_many_tests_must_be_surer_than_one_alone() {
    let wide = |value: f64, half: f64| json!({"ns_per_op": {"value": value, "low": value * (1.0 - half), "high": value * (1.0 + half)}});
    let points = |run: &str, first: f64, count: usize| -> Vec<Value> {
        let of = |at| format!("native locks/tas {at}");
        let value = |at| if at == 1 { first } else { 10.0 };
        let points = (1..=count).map(|at| {
            point(run, &of(at), &wide(value(at), 0.02 + 1e-9 * (run == "b") as u8 as f64))
        });
        [header(run, &[])].into_iter().chain(points).collect()
    };
    let alone = Compared::of(&points("a", 10.0, 1), &points("b", 10.8, 1), &[]);
    alone.says(3, &["1 regressed"]);
    let many = Compared::of(&points("a", 10.0, 400), &points("b", 10.8, 400), &[]);
    many.says(4, &["one of 400 tests", "Holm", "399 equal", "1 inconclusive"]);
}

#[test]
fn points_of_one_file_alone_are_named() {
    let two = [
        header("a", &[]),
        point("a", COUNTED, &counts(9.0)),
        point("a", "callgrind locks/mcs 1", &counts(7.0)),
    ];
    let gone = Compared::of(&two, &two[..2], &[]);
    gone.says(4, &["only in OLD: locks/mcs 1 thread", "1 only in OLD"]);
    Compared::of(&two, &two[..2], &["--ignore-missing"]).says(0, &["only in OLD: locks/mcs"]);
    Compared::of(&two[..2], &two, &[]).says(0, &["only in NEW: locks/mcs"]);
    let other = [header("b", &[]), point("b", "callgrind queues/null 1", &counts(1.0))];
    Compared::of(&two, &other, &["--ignore-missing"]).says(4, &["no point is in both files"]);
}

#[test]
fn times_of_other_hosts_are_refused_and_counts_are_not() {
    let points =
        |run: &str, value: f64| [point(run, COUNTED, &counts(9.0)), point(run, TIMED, &ns(value))];
    let with = |header: Value, points: [Value; 2]| [vec![header], points.to_vec()].concat();
    let old = with(header("a", &[]), points("a", 10.0));
    let other = |changes: &[(&str, Value)]| with(header("b", changes), points("b", 20.0));
    for (field, value) in [
        ("cpu", json!("Other CPU")),
        ("name", json!("other")),
        ("kernel", json!("7.0")),
        ("governor", json!({"unavailable": "no_cpufreq"})),
        ("quota_cpus", json!(1.5)),
    ] {
        let compared = Compared::of(&old, &other(&[(field, value)]), &[]);
        let said =
            compared.says(4, &[field, "--allow-different-hosts", "1 equal", "1 inconclusive"]);
        assert!(!said.contains("ns_per_op"), "{said}");
    }
    let differs = other(&[("cpu", json!("Other CPU"))]);
    Compared::of(&old, &differs, &["--allow-different-hosts"]).says(3, &["+100.0 %"]);
    Compared::of(&old, &differs, &["--counts-only"]).says(4, &["no figure to compare"]);
    Compared::of(&old[..2], &differs[..2], &[]).says(0, &["1 equal"]);
    // Another compiler and commit are told; another architecture is other code.
    let told = [("rustc", json!("rustc 1.96.0")), ("commit", json!("fff-modified"))];
    Compared::of(&old, &other(&told), &[]).says(3, &["rustc rustc 1.95.0 → rustc 1.96.0"]);
    for (field, value) in [("arch", json!("aarch64")), ("profile", json!("debug"))] {
        let mut new = other(&[(field, value)]);
        new[1]["metrics"] = counts(50.0);
        Compared::of(&old, &new, &["--allow-different-hosts"]).says(4, &[field, "other code"]);
    }
    // Without a header nobody knows the host.
    Compared::of(&old, &points("x", 20.0), &[]).says(4, &["header is missing"]);
}

#[test]
fn simulated_machines_must_be_described_alike() {
    let file = |run: &str, figure: &str, value: f64| {
        let mut header = header(run, &[("cpu", json!(format!("host of {run}")))]);
        header["machine"] = json!({"name": "epyc-7742-2s", "figures": {"clock_ghz": figure}});
        [header, point(run, "simulated locks/tas 64", &counts(value))]
    };
    Compared::of(&file("a", "2.25", 9.0), &file("b", "2.25", 9.0), &[]).says(0, &["1 equal"]);
    Compared::of(&file("a", "2.25", 9.0), &file("b", "2.25", 10.0), &[]).says(3, &["+11.1 %"]);
    let described = Compared::of(&file("a", "2.25", 9.0), &file("b", "3", 10.0), &[]);
    described.says(4, &["described differently"]);
}

#[test]
fn states_are_changes_too() {
    let with = |status: &str| {
        let mut point = point("r", COUNTED, &counts(9.0));
        point["status"] = json!(status);
        vec![header("r", &[]), point]
    };
    for (old, new, code, word) in [
        ("ok", "broken", 3, "broken now"),
        ("broken", "ok", 0, "was broken"),
        ("ok", "unavailable", 4, "unavailable now"),
        ("unavailable", "broken", 3, "broken now"),
        ("unavailable", "ok", 0, "was unavailable"),
        ("broken", "broken", 0, "1 without figures"),
    ] {
        Compared::of(&with(old), &with(new), &[]).says(code, &[word]);
    }
    let mut lost = with("ok");
    lost[1]["metrics"]["rmw_per_op"] = json!({"unavailable": "no_valgrind"});
    Compared::of(&with("ok"), &lost, &[]).says(4, &["the new figure is missing"]);
    Compared::of(&lost, &with("ok"), &[]).says(0, &["1 equal"]);
}

#[test]
fn files_of_thousands_of_commits_are_compared_and_told_in_few_lines() {
    let runs = |shift: usize| -> Vec<Value> {
        let of = |at: usize| {
            let run = format!("r{at}");
            let commit = format!("{:012x}", at + shift);
            let mut point = point(&run, COUNTED, &counts(9.0));
            point["seed"] = json!(at);
            [header(&run, &[("commit", json!(commit))]), point]
        };
        (0..3000).flat_map(of).collect()
    };
    let said = Compared::of(&runs(0), &runs(1), &[]).says(0, &["3000 equal"]);
    assert!(said.contains("2980 more differences between hosts and builds"), "{said}");
    assert!(said.lines().count() < 40, "{said}");
}

#[test]
fn figures_that_cannot_be_prove_nothing() {
    let of =
        |figure: Value| vec![header("r", &[]), point("r", TIMED, &json!({"ns_per_op": figure}))];
    let good = of(json!({"value": 39.5, "low": 39.0, "high": 40.0}));
    for bad in [
        json!({"value": 0.0, "low": 39.0, "high": 39.5}),
        json!({"value": -1.0, "low": -2.0, "high": 3.0}),
        json!({"value": 30.0, "low": 50.0, "high": 10.0}),
    ] {
        Compared::of(&good, &of(bad.clone()), &[]).says(4, &["no such figure can be"]);
        Compared::of(&of(bad), &good, &[]).says(4, &["no such figure can be"]);
    }
    let counted = |count: f64| vec![header("r", &[]), point("r", COUNTED, &counts(count))];
    Compared::of(&counted(9.0), &counted(-5.0), &[]).says(4, &["no such figure can be"]);
}

#[test]
fn damage_is_told_and_the_rest_is_compared() {
    let good = format!("{}\n{}\n", header("a", &[]), point("a", COUNTED, &counts(9.0)));
    let newer = good.replace("\"schema\":1", "\"schema\":7");
    let worse = good.replace("\"value\":9.0", "\"value\":10.0");
    let torn = &good[..good.len() - 40];
    let cases = [
        format!("{good}{{\"record\":\n[]\n\n"),
        format!("{good}{torn}"),
        format!("{good}{}", good.replace("9.0", "1e999")),
        format!("{good}{}", good.replace("\"threads\":1", "\"threads\":-1")),
        format!("{newer}{}", good.replace("\"run\":\"a\"", "\"run\":\"b\"")),
    ];
    for (at, case) in cases.iter().enumerate() {
        // Each line may have held a point, in either file.
        let told = ["skipped", "1 equal", "of NEW not understood"];
        Compared::texts(&good, case, &[]).says(4, &told);
        Compared::texts(case, &good, &[]).says(4, &["skipped", "1 equal", "of OLD not understood"]);
        Compared::texts(&good, case, &["--ignore-missing"]).says(0, &told);
        println!("case {at} holds");
    }
    // Other programs' records hold none.
    let other = format!("{good}{{\"record\":\"weather\\u001b[2J\"}}\n");
    let said = Compared::texts(&good, &other, &[]).says(0, &["skipped: unknown kind", "1 equal"]);
    assert!(!said.contains('\u{1b}'), "{said:?}");
    let marked = format!("\u{feff}{good}");
    let said = Compared::texts(&good, &marked, &[]).says(0, &["1 equal"]);
    assert!(!said.contains("skipped"), "a byte order mark hides nothing: {said}");
    let mut bytes = good.clone().into_bytes();
    bytes.extend([0xff, 0xfe, 0, b'\n']);
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("a"), &bytes).unwrap();
    let output = manycore_in(directory.path(), &["compare", "a", "a"]);
    assert_eq!(output.status.code(), Some(4));
    // The last of two measurements of a point counts.
    let twice = format!("{worse}{good}");
    Compared::texts(&good, &twice, &[]).says(0, &["1 equal", "measured again later"]);
    Compared::texts(&twice, &worse, &[]).says(3, &["measured again later"]);
}

#[test]
fn nothing_to_compare_is_an_error_that_says_why() {
    let good = format!("{}\n{}\n", header("a", &[]), point("a", COUNTED, &counts(9.0)));
    let empty = format!("{}\n", header("a", &[]));
    for (bad, word) in [
        ("", "holds no points"),
        ("\n \n", "holds no points"),
        (empty.as_str(), "holds no points"),
        ("not json\n", "line 1: not a whole record"),
        ("[1,2]\n{}\n", "2 lines were not understood"),
        (&good.replace("\"schema\":1", "\"schema\":2"), "newer"),
    ] {
        Compared::texts(&good, bad, &[]).says(1, &["error: new.jsonl", word]);
        Compared::texts(bad, &good, &[]).says(1, &["error: old.jsonl", word]);
    }
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("a"), &good).unwrap();
    for (words, code, word) in [
        (&["a", "missing"] as &[&str], 1, "cannot read missing"),
        (&[".", "a"], 1, "cannot read ."),
        (&["a"], 2, "NEW"),
        (&["a", "a", "a"], 2, "unexpected"),
        (&["a", "a", "--tolerance", "-1"], 2, "per cent"),
        (&["a", "a", "--tolerance", "instruction_per_op=1"], 2, "nearest: instructions_per_op"),
        (&["a", "a", "--tolerance", "ops=1"], 2, "compared metric"),
        (&["a", "a", "--margin", "nan"], 2, "per cent"),
        (&["a", "a", "--alpha", "0"], 2, "probability"),
        (&["a", "a", "--model-factor", "0.5"], 2, "factor"),
        (&["a", "a", "--junit", "a"], 2, "holds the records"),
        (&["a", "a", "--markdown", "./a"], 2, "holds the records"),
        (&["a", "a", "--junit", "no/such/folder.xml"], 1, "cannot write no/such/folder.xml"),
    ] {
        let output = manycore_in(directory.path(), &[&["compare"], words].concat());
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{words:?}: {error}");
        assert!(error.contains(word), "{words:?}: {error}");
    }
    assert_eq!(fs::read_to_string(directory.path().join("a")).unwrap(), good);
}

#[test]
fn junit_markdown_and_json_say_the_same() {
    let files = |run: &str, instructions: f64, nanoseconds: f64| {
        vec![
            header(run, &[]),
            point(run, COUNTED, &counts(instructions)),
            point(run, "callgrind locks/<mcs>&\"|\u{1}`x` 1", &counts(1.0)),
            point(run, TIMED, &ns(nanoseconds)),
        ]
    };
    let (old, mut new) = (files("a", 9.0, 10.0), files("b", 10.0, 10.5));
    new.push(point("b", "callgrind queues/null 1", &counts(3.0)));
    let more = ["--junit", "j.xml", "--markdown", "m.md", "--json"];
    let compared = Compared::of(&old, &new, &more);
    compared.says(3, &["1 regressed"]);
    let sum = compared.sum();
    let figures = ["pairs", "regressed", "inconclusive", "equal", "only_new", "tests"];
    let figures: Vec<u64> = figures.iter().map(|key| sum[*key].as_u64().unwrap()).collect();
    assert_eq!((sum["verdict"].as_str(), figures), (Some("regressed"), vec![3, 1, 1, 1, 1, 1]));
    let said = text(&compared.output.stdout);
    let first: Value = serde_json::from_str(said.lines().next().unwrap()).unwrap();
    assert_eq!(first["findings"][0]["metric"], "instructions_per_op");
    assert_eq!(first["findings"][0]["new"]["value"], 10.0);
    let junit = compared.file("j.xml");
    assert!(junit.contains("tests=\"4\" failures=\"1\" errors=\"0\" skipped=\"2\""), "{junit}");
    assert!(junit.contains("<failure message=\"instructions_per_op 9 → 10 +11.1 %"), "{junit}");
    assert!(junit.contains("locks.&lt;mcs&gt;&amp;&quot;|"), "{junit}");
    assert!(!junit.contains('\u{1}'));
    let markdown = compared.file("m.md");
    assert!(markdown.starts_with("## ❌ regressed: 3 pairs of points"), "{markdown}");
    assert!(markdown.contains("| regressed | locks/tas 1 thread"), "{markdown}");
    assert!(markdown.contains("- only in NEW: queues/null"), "{markdown}");
}

#[test]
fn counting_twice_is_equal_and_another_workload_is_another_point() {
    let directory = tempfile::tempdir().unwrap();
    let count = |out: &str, more: &[&str]| {
        let words = ["count", "--engine", "simulated", "--variant", "tas,ticket", "--out", out];
        let output = manycore_in(directory.path(), &[&words, more].concat());
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    };
    count("a.jsonl", &[]);
    count("b.jsonl", &[]);
    count("c.jsonl", &["--think-ns", "9"]);
    let equal = manycore_in(directory.path(), &["compare", "a.jsonl", "b.jsonl", "--counts-only"]);
    assert_eq!(equal.status.code(), Some(0), "{}", text(&equal.stderr));
    assert!(text(&equal.stdout).contains("equal: 2 pairs of points: 2 equal"));
    let other = manycore_in(directory.path(), &["compare", "a.jsonl", "c.jsonl"]);
    assert_eq!(other.status.code(), Some(4), "{}", text(&other.stdout));
}
