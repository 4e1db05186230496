//! `manycore scenario` as a user runs it: what each phenomenon has to show, on simulated cores, and
//! bad input.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_manycore"));
    command.arg("scenario");
    command
}

fn run(arguments: &[&str]) -> Output {
    program().args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Each line of the source that is named has a word, and is no brace alone.
fn statements(told: &str) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let places = told.split([' ', ',', ';', '\n']).filter(|word| word.starts_with("benches/src/"));
    for place in places {
        let place = place.trim_end_matches(':');
        let (file, line) = place.rsplit_once(':').unwrap_or_else(|| panic!("{place}: no line"));
        let source = fs::read_to_string(root.join(file)).unwrap();
        let statement = source.lines().nth(line.parse::<usize>().unwrap() - 1).unwrap();
        assert!(statement.contains(char::is_alphanumeric), "{place}: `{statement}`");
    }
}

/// The points of a scenario by step, and what was told.
struct Ran {
    points: BTreeMap<String, Value>,
    told: String,
}

impl Ran {
    fn of(arguments: &[&str]) -> Self {
        let output = run(&[arguments, &["--json"]].concat());
        let told = text(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{told}");
        statements(&told);
        let out = text(&output.stdout);
        let records = out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let points = records.filter(|record| record["record"] == "point");
        let points = points.map(|point| (point["variant"].as_str().unwrap().to_owned(), point));
        Self { points: points.collect(), told }
    }

    fn figure(&self, step: &str, metric: &str) -> f64 {
        let point = &self.points[step];
        let value = &point["metrics"][metric]["value"];
        value.as_f64().unwrap_or_else(|| panic!("{step} has no {metric}: {point}"))
    }

    /// A line, a lock or a condition is named, or it is said that there is none.
    fn names_what_is_at_fault(&self) {
        let words = ["the line at fault: ", "the hottest line: ", " was waited for ", ": no line "];
        assert!(words.iter().any(|words| self.told.contains(words)), "{}", self.told);
    }

    /// What is told of an effect.
    fn effect(&self, begin: &str) -> &str {
        let begin = format!("→ {begin}");
        let line = self.told.lines().find(|line| line.starts_with(&begin));
        line.unwrap_or_else(|| panic!("no `{begin}` in {}", self.told))
    }

    /// A figure of one step over that of another.
    fn ratio(&self, metric: &str, of: &str, over: &str) -> f64 {
        let ratio = self.figure(of, metric) / self.figure(over, metric);
        println!("{metric}, {of} over {over}: {ratio:.3}");
        ratio
    }
}

#[test]
fn false_sharing_costs_five_times_on_four_cores_and_its_line_is_named() {
    let ran = Ran::of(&["false-sharing"]);
    assert!(ran.ratio("ops_per_s", "padded_64", "packed") >= 5.0, "{}", ran.told);
    assert!(ran.ratio("ops_per_s", "padded_128", "packed") >= 5.0, "{}", ran.told);
    let fault = "packed: the line at fault: false sharing, 4 cores";
    assert!(ran.told.contains(fault), "{}", ran.told);
    assert!(ran.told.contains("counters/src/packed.rs:"), "{}", ran.told);
    assert!(ran.told.contains("field report 5.04: appears"), "{}", ran.told);
    // The band is the model's: 1.5 in a socket.
    let time = &ran.points["packed"]["metrics"]["ns_per_op"];
    let [value, low, high] = ["value", "low", "high"].map(|key| time[key].as_f64().unwrap());
    assert!((value / low - 1.5).abs() < 1e-9 && (high / value - 1.5).abs() < 1e-9, "{time}");
}

#[test]
fn sharding_a_counter_pays_thirty_times_at_128() {
    let ran = Ran::of(&["atomic-vs-sharded"]);
    assert!(ran.ratio("ops_per_s", "sharded", "atomic") >= 30.0, "{}", ran.told);
    ran.names_what_is_at_fault();
    // Across sockets.
    let time = &ran.points["atomic"]["metrics"]["ns_per_op"];
    let [value, high] = ["value", "high"].map(|key| time[key].as_f64().unwrap());
    assert!((high / value - 2.0).abs() < 1e-9, "{time}");
}

#[test]
fn only_the_racy_increment_loses_updates() {
    let ran = Ran::of(&["barrier-cost", "--ops", "1024"]);
    assert!(ran.figure("racy", "scenario.lost_updates") > 0.0, "{}", ran.told);
    for step in ["atomic", "fenced"] {
        assert_eq!(ran.figure(step, "scenario.lost_updates"), 0.0, "{step}");
    }
    // A median is at most twice the mean.
    for step in ["racy", "atomic", "fenced"] {
        let (median, mean) = (ran.figure(step, "latency_ns.p50"), ran.figure(step, "ns_per_op"));
        assert!(median <= 2.0 * mean, "{step}: {median} {mean}");
    }
    ran.names_what_is_at_fault();
}

#[test]
fn one_lock_is_slower_on_128_cores_than_on_8_and_shards_mend_it() {
    let ran = Ran::of(&["global-lru", "--ops", "120"]);
    assert!(ran.ratio("ops_per_s", "one", "one_few") < 1.0, "{}", ran.told);
    assert!(ran.ratio("ops_per_s", "sharded", "one") >= 10.0, "{}", ran.told);
    assert!(ran.told.contains("one: the lock at benches/src/scenarios/global_lru.rs:"));
    ran.names_what_is_at_fault();
}

#[test]
fn bursts_spike_behind_one_queue() {
    let ran = Ran::of(&["shared-queue-spike"]);
    let spike =
        ran.figure("one_queue", "latency_ns.p99") / ran.figure("one_queue", "latency_ns.p50");
    assert!(spike >= 10.0, "{spike}");
    assert!(ran.ratio("latency_ns.p99", "one_queue", "sharded") > 1.0, "{}", ran.told);
    // What bursts bring without the lock is told beside it; who hands out is not counted.
    assert!(ran.effect("P99 over P50 sharded: ").len() > 24, "{}", ran.told);
    assert!(ran.figure("one_queue", "fairness_jain") > 0.99, "{}", ran.told);
    ran.names_what_is_at_fault();
}

#[test]
fn idle_time_spreads_with_uneven_tasks_and_stealing_evens_it_out() {
    let ran = Ran::of(&["steal-zipf", "--ops", "48"]);
    assert!(
        ran.ratio("scenario.idle_spread", "zipf_static", "uniform_static") >= 5.0,
        "{}",
        ran.told
    );
    assert!(
        ran.ratio("scenario.idle_spread", "zipf_static", "zipf_stealing") > 1.0,
        "{}",
        ran.told
    );
    ran.names_what_is_at_fault();
}

#[test]
fn each_halving_of_a_double_queue_makes_it_slower() {
    let ran = Ran::of(&["double-queue"]);
    let steps = ["cores_8_connections_128", "cores_4_connections_64", "cores_4_connections_32"];
    let p95 = steps.map(|step| ran.figure(step, "latency_ns.p95"));
    assert!(p95.is_sorted_by(|a, b| a < b), "{p95:?}");
    ran.names_what_is_at_fault();
}

#[test]
fn the_best_number_of_workers_lies_inside_the_range() {
    let ran = Ran::of(&["thread-cap", "--ops", "64"]);
    let workers = [2, 4, 8, 16, 32, 64, 128];
    let served = workers.map(|workers| ran.figure(&format!("workers_{workers}"), "ops_per_s"));
    let best = (0..workers.len()).max_by(|&a, &b| served[a].total_cmp(&served[b])).unwrap();
    assert!((1..workers.len() - 1).contains(&best), "{served:?}");
    ran.names_what_is_at_fault();
}

/// A figure of the machine file.
fn of_machine(name: &str) -> f64 {
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../harness/simulator/machines/epyc-7742-2s.toml");
    let file = fs::read_to_string(file).unwrap();
    let line = file.lines().find(|line| line.starts_with(&format!("{name} ="))).unwrap();
    let value = line.split("value = ").nth(1).unwrap().split(',').next().unwrap();
    value.parse().unwrap()
}

/// How far a ratio is from another one.
fn off(ratio: f64, expected: f64) -> f64 {
    (ratio / expected - 1.0).abs()
}

#[test]
fn distances_are_those_of_the_machine_file() {
    let ran = Ran::of(&["l3-domain", "--ops", "1024"]);
    let near = of_machine("same_l3_ns");
    for (step, far) in [("cross_l3", "same_socket_ns"), ("cross_socket", "cross_socket_ns")] {
        let ratio = ran.ratio("ns_per_op", step, "same_l3");
        assert!(off(ratio, of_machine(far) / near) <= 0.25, "{step}: {ratio}");
    }
    ran.names_what_is_at_fault();
    let ran = Ran::of(&["numa-local", "--ops", "1024"]);
    ran.names_what_is_at_fault();
    let ratio = ran.ratio("ns_per_op", "remote", "local");
    assert!(off(ratio, of_machine("remote_ns") / of_machine("local_ns")) <= 0.25, "{ratio}");
}

#[test]
fn batches_serve_more_and_pools_need_as_many_workers_as_their_load() {
    let ran = Ran::of(&["batching", "--ops", "6"]);
    assert!(ran.ratio("ops_per_s", "batched", "single") >= 2.0, "{}", ran.told);
    assert!(
        ran.ratio("scenario.first_item_in_service_ns", "batched", "single") >= 2.0,
        "{}",
        ran.told
    );
    assert!(ran.told.contains("the condition at benches/src/scenarios/batching.rs:"));
    let ran = Ran::of(&["pool-oversize", "--ops", "40", "--pool", "20"]);
    ran.names_what_is_at_fault();
    assert!(ran.ratio("latency_ns.p99", "per_core", "by_load") >= 2.0, "{}", ran.told);
    assert!(ran.told.contains("per_core: it cannot carry this load: 20.0 k/s offered"));
}

#[test]
fn reasons_say_what_the_figures_say() {
    let cases: &[(&[&str], &str, &str)] = &[
        (&["gateway", "--threads", "2"], "cannot carry this load", "carry this load as well"),
        (&["global-lru", "--keys", "1", "--threads", "12", "--ops", "160"], "one key", "time only"),
        (
            &["global-lru", "--think-ns", "50000", "--threads", "12", "--ops", "8"],
            "time only",
            "waited for as well",
        ),
        (&["global-lru", "--threads", "7", "--ops", "100"], "one of 7 threads", "few threads over"),
        (
            &["shared-queue-spike", "--burst", "1000", "--ops", "20", "--threads", "9"],
            "no burst came",
            "with a queue each P99",
        ),
        (
            &["shared-queue-spike", "--rate", "100000000", "--ops", "20", "--threads", "9"],
            "one queue cannot carry this load",
            "no burst",
        ),
        (
            &["batching", "--threads", "2", "--ops", "4"],
            "tasks had 1.00 items on average, of 1 client",
            "the end of a task takes",
        ),
        (&["l3-domain", "--ops", "1"], "no verdict", "the machine file has 267 ns one way, and"),
        (&["false-sharing", "--threads", "1", "--ops", "64"], "one thread has its line", "nearer"),
        (
            &["atomic-vs-sharded", "--threads", "256", "--ops", "256"],
            "had done nothing when the window closed: --ops is too small",
            "does not appear",
        ),
        (
            &[
                "double-queue",
                "--threads",
                "2",
                "--pool",
                "8",
                "--rate",
                "40000",
                "--service-ns",
                "20000",
                "--ops",
                "8",
            ],
            "no verdict, as cores_2_connections_8 cannot carry this load",
            ": appears",
        ),
        (
            &["pool-oversize", "--pool", "1", "--ops", "10"],
            "no verdict, as 8 workers",
            "oversized cannot",
        ),
    ];
    for (arguments, words, contrary) in cases {
        let told = Ran::of(arguments).told;
        assert!(told.contains(words), "{arguments:?} lacks `{words}`: {told}");
        assert!(!told.contains(contrary), "{arguments:?} has `{contrary}`: {told}");
    }
}

#[test]
fn a_run_that_is_short_is_not_said_to_be_too_slow() {
    let ran = Ran::of(&["gateway", "--ops", "1", "--threads", "40"]);
    assert!(!ran.told.contains("isolated: it cannot carry"), "{}", ran.told);
    let ran = Ran::of(&["pool-oversize", "--ops", "10", "--pool", "4"]);
    assert!(!ran.told.contains("by_load: it cannot carry"), "{}", ran.told);
}

#[test]
fn what_a_machine_lacks_is_a_reason_and_no_failure() {
    let ran = Ran::of(&["l3-domain", "--machine", "graviton2", "--ops", "64"]);
    assert_eq!(ran.points["cross_socket"]["status"], "unavailable");
    assert!(ran.told.contains("cross_socket: one_node"), "{}", ran.told);
    assert!(ran.figure("same_l3", "ops_per_s") > 0.0);
}

#[test]
fn records_repeat_and_are_valid() {
    let records = || {
        let output = run(&["false-sharing", "--ops", "256", "--json"]);
        let out = text(&output.stdout);
        let mut records: Vec<Value> =
            out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        records.iter_mut().for_each(|record| record["run"] = "r".into());
        records
    };
    let (once, again) = (records(), records());
    assert_eq!(once[1..], again[1..]);
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/records.schema.json");
    let schema: Value = serde_json::from_str(&fs::read_to_string(schema).unwrap()).unwrap();
    let schema = jsonschema::validator_for(&schema).unwrap();
    for record in &once {
        let errors: Vec<String> = schema.iter_errors(record).map(|e| e.to_string()).collect();
        assert!(errors.is_empty(), "{errors:?}: {record}");
    }
}

#[test]
fn scenarios_have_names_of_their_own_three_sentences_and_defaults_in_range() {
    let listed = text(&run(&["--list", "--json"]).stdout);
    let all: Vec<Value> = listed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let names: BTreeSet<&str> = all.iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert!(names.len() == all.len() && all.len() >= 13, "{listed}");
    for one in &all {
        let what = one["what"].as_str().unwrap();
        assert_eq!(what.split_inclusive(". ").count(), 3, "{what}");
        for own in one["parameters"].as_array().unwrap() {
            let [default, least, most] =
                ["default", "least", "most"].map(|figure| own[figure].as_f64().unwrap());
            assert!((least..=most).contains(&default), "{own}");
        }
    }
}

#[test]
fn what_cannot_be_is_refused_with_what_can() {
    let cases: &[(&[&str], &str)] = &[
        (&[], "which scenario?"),
        (&["false-shareing"], "nearest: false-sharing"),
        (&["zzz"], "there are false-sharing"),
        (&["false-sharing", "--all"], "--all"),
        (&["global-lru", "--keys", "0"], "--keys is a whole number from 1 to 1000000, not `0`"),
        (&["global-lru", "--keys", "-1"], "not `-1`"),
        (&["global-lru", "--keys", "many"], "not `many`"),
        (&["global-lru", "--keys", "1.5"], "a whole number"),
        (&["global-lru", "--shards", "0"], "--shards is a whole number from 1"),
        (&["global-lru", "--zipf", "nan"], "--zipf is a number from 0 to 4"),
        (&["global-lru", "--batch", "2"], "global-lru has no --batch; it has --keys, --shards"),
        (&["false-sharing", "--keys", "2"], "it has no parameter of its own"),
        (&["false-sharing", "--threads", "0"], "cannot be less than 1"),
        (&["false-sharing", "--threads", "257"], "257 threads on the 256 cores of machine"),
        (&["false-sharing", "--machine", "pdp-11"], "--machine"),
        (&["false-sharing", "--engine", "quantum"], "there are simulated, native"),
        (&["false-sharing", "--engine", "native", "--machine", "graviton2"], "--engine simulated"),
        (&["false-sharing", "--engine", "native", "--threads", "1024"], "cores of this host"),
        (&["false-sharing", "--ops", "0"], "cannot be less than 1"),
        (&["shared-queue-spike", "--rate", "0"], "--rate is a whole number from 1"),
        (&["shared-queue-spike", "--threads", "1"], "a producer and a worker"),
        (&["l3-domain", "--threads", "3"], "two threads take turns"),
        (&["numa-local", "--mib", "3"], "a power of two"),
        (&["numa-local", "--ops", "1000000"], "choose fewer --ops or more --mib"),
        (&["steal-zipf", "--threads", "1"], "nobody to steal from"),
        (&["thread-cap", "--threads", "2"], "at least 4 threads"),
        (&["pool-oversize", "--rate", "10000000"], "choose fewer with"),
        (&["gateway", "--threads", "1"], "at least 2 threads"),
        (&["gateway", "--rate", "1", "--ops", "2"], "s to arrive"),
        (&["shared-queue-spike", "--rate", "1"], "s to arrive"),
        (&["false-sharing", "--seed", "-1"], "a seed is a whole number"),
        (&["--all", "--keys", "0"], "--keys is a whole number from 1"),
    ];
    for (arguments, words) in cases {
        let output = run(arguments);
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
        assert!(error.contains(words), "{arguments:?}: {error}");
    }
    let output = run(&["false-sharing", "--ops", "64", "--out", "/proc/x/y.jsonl"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let output = run(&["false-sharing", "--ops", "64", "--out", "/dev/full"]);
    let error = text(&output.stderr);
    assert!(!error.contains("--resume") && error.matches("error:").count() == 1, "{error}");
}

#[test]
fn a_run_that_is_cut_short_keeps_what_was_measured() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("scenarios.jsonl");
    let mut child = program()
        .args(["--all", "--out", out.to_str().unwrap()])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let points = || {
        let text = fs::read_to_string(&out).unwrap_or_default();
        text.lines().filter(|line| line.contains("\"record\":\"point\"")).count()
    };
    let began = Instant::now();
    while points() < 2 && began.elapsed() < Duration::from_secs(120) {
        std::thread::sleep(Duration::from_millis(20));
    }
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let mut error = String::new();
    std::io::Read::read_to_string(child.stderr.as_mut().unwrap(), &mut error).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{error}");
    assert!(error.contains("interrupted; kept "), "{error}");
    let kept = fs::read_to_string(&out).unwrap();
    assert!(points() >= 2 && kept.ends_with('\n'), "{kept}");
    kept.lines().for_each(|line| drop(serde_json::from_str::<Value>(line).unwrap()));
}

#[test]
fn natively_the_same_code_runs_on_this_host() {
    let ran = Ran::of(&["false-sharing", "--engine", "native", "--threads", "1", "--ops", "65536"]);
    for step in ["packed", "padded_64", "padded_128"] {
        assert_eq!(ran.points[step]["engine"], "native");
        assert!(ran.figure(step, "ops_per_s") > 0.0);
        let counted = &ran.points[step]["metrics"]["instructions_per_op"];
        assert_eq!(counted["unavailable"], "not_simulated");
    }
}

/// The names of a section's steps, from its table.
fn steps_of(section: &str) -> Vec<&str> {
    let rows = section.lines().skip_while(|line| !line.starts_with("|---|")).skip(1);
    let rows = rows.take_while(|line| line.starts_with("| "));
    rows.map(|row| row.split('|').nth(1).unwrap().trim()).collect()
}

/// A page's section of this name.
fn section<'a>(page: &'a str, name: &str) -> &'a str {
    let begin = page.find(&format!("\n## {name}\n")).unwrap_or_else(|| panic!("no section {name}"));
    let rest = &page[begin + 1..];
    rest.find("\n## ").map_or(rest, |end| &rest[..end])
}

const AGAIN: &str = "run: manycore scenario --all --markdown docs/phenomena.md";

#[test]
fn the_page_has_what_the_program_has() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    let page = fs::read_to_string(docs.join("phenomena.md")).unwrap();
    let listed = text(&run(&["--list", "--json"]).stdout);
    let scenarios: Vec<Value> =
        listed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(scenarios.len(), 13);
    assert_eq!(page.matches("\n## ").count(), scenarios.len(), "{AGAIN}");
    for scenario in &scenarios {
        let word = |key: &str| scenario[key].as_str().unwrap();
        let (name, section) = (word("name"), section(&page, word("name")));
        let figure = format!("phenomena/{name}.svg");
        let reported = format!("Field report: {}.", word("reported"));
        for wanted in [word("title"), word("what"), &reported, &figure, "\n- "] {
            assert!(section.contains(wanted), "{name} lacks `{wanted}`; {AGAIN}");
        }
        assert!(steps_of(section).len() >= 2, "{name}: {AGAIN}");
        let plot = fs::read_to_string(docs.join(figure)).unwrap();
        assert!(plot.starts_with("<svg") && plot.contains(word("title")), "{name}: {AGAIN}");
        for step in steps_of(section) {
            assert!(plot.contains(&format!(">{step}</text>")), "{name} {step}: {AGAIN}");
        }
    }
    // One of them made anew: the same steps, columns and effects.
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("phenomena.md");
    let output = run(&["false-sharing", "--ops", "256", "--markdown", path.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let made = fs::read_to_string(path).unwrap();
    let (made, kept) = (section(&made, "false-sharing"), section(&page, "false-sharing"));
    assert_eq!(steps_of(made), steps_of(kept), "{AGAIN}");
    let head = |section: &str| {
        let head = section.lines().find(|line| line.starts_with("| step")).unwrap();
        head.to_owned()
    };
    assert_eq!(head(made), head(kept), "{AGAIN}");
    let effects = |section: &str| {
        let all = section.lines().skip_while(|line| !line.starts_with("Field report:"));
        let all = all.filter_map(|line| line.strip_prefix("- ")?.split(": ").next());
        all.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(effects(made), effects(kept), "{AGAIN}");
}

/// Cells of a table's rows, without its head.
fn rows(text: &str, head: &str) -> Vec<Vec<String>> {
    let rows = text.lines().skip_while(|line| !line.starts_with(head)).skip(2);
    let rows = rows.take_while(|line| line.starts_with('|'));
    let cells =
        |row: &str| row.trim_matches('|').split(" | ").map(|cell| cell.trim().to_owned()).collect();
    rows.map(cells).collect()
}

#[test]
fn the_readme_shows_the_gateway_of_the_page() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    let page = fs::read_to_string(docs.join("phenomena.md")).unwrap();
    let readme = fs::read_to_string(docs.join("../README.md")).unwrap();
    let page = rows(section(&page, "gateway"), "| step | threads |");
    let readme = rows(&readme, "| step | requests/s |");
    assert_eq!((page.len(), readme.len()), (8, 8));
    for (of_page, of_readme) in page.iter().zip(&readme) {
        // Requests, P50, P99, CPU time, waiting for locks.
        assert_eq!(of_page[2..6], of_readme[1..5], "{AGAIN}");
        assert_eq!(of_page[12], of_readme[5], "{AGAIN}");
    }
}

#[test]
fn a_gateway_with_every_flaw_serves_less_on_more_cores_and_mended_it_serves_more() {
    let ran = Ran::of(&["gateway", "--ops", "24"]);
    assert!(ran.ratio("ops_per_s", "before", "before_few") < 1.0, "{}", ran.told);
    assert!(ran.ratio("latency_ns.p99", "before", "before_few") > 1.0, "{}", ran.told);
    assert!(ran.ratio("ops_per_s", "isolated", "before_few") > 1.0, "{}", ran.told);
    assert!(ran.ratio("latency_ns.p99", "isolated", "before_few") < 1.0, "{}", ran.told);
    assert!(ran.told.contains("before: it cannot carry this load:"), "{}", ran.told);
    // Each worker's counters have lines of their own: fewer come from the other socket.
    let far = "transfers_per_op.cross_socket";
    assert!(ran.ratio(far, "padded", "bounded") < 1.0, "{}", ran.told);
    let steps = ["before", "sharded", "bounded", "padded", "capped", "local", "isolated"];
    for pair in steps.windows(2) {
        let told = ran.effect(&format!("{} against {}: served ", pair[1], pair[0]));
        assert!(told.contains("; ") && told.contains("load"), "{told}");
    }
    ran.names_what_is_at_fault();
}
