//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use harness::placement::{Placement, ThreadCounts};
use harness::simulated::MAX_CORES;
use harness::workload::{Memory, Workload};

/// The version with the commit and the compiler.
const VERSION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    " (commit ",
    env!("MANYCORE_COMMIT"),
    ", ",
    env!("MANYCORE_RUSTC"),
    ")"
);

const EXIT_CODES: &str = "\
Exit codes: 0 done, 1 failed, 2 usage, 3 regression, 4 inconclusive, 5 unfit host,
130 interrupted (what was measured is kept)";

/// Measures which lock, queue, counter or allocator, how many threads, placed where.
#[derive(Debug, Parser)]
#[command(
    name = "manycore",
    version = VERSION,
    after_help = EXIT_CODES,
    subcommand_required = true,
    arg_required_else_help = true,
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show packages, nodes, last-level groups, cores, distances and quotas
    #[command(after_help = crate::topology_command::HELP)]
    Topology(crate::topology_command::TopologyArgs),
    /// Say what about this host spoils measurements, and what to do; set it and put it back
    #[command(after_help = crate::doctor_command::HELP)]
    Doctor(crate::doctor_command::DoctorArgs),
    /// List the variants of every primitive with their properties
    #[command(after_help = "\
Examples:
  manycore list
  manycore list --primitive locks,queues
  manycore list --json")]
    List(ListArgs),
    /// Measure variants × threads × placements
    #[command(
        args_override_self = true,
        after_help = "\
Examples:
  manycore sweep
      every variant of every primitive at 1, 2, 4 … threads and at the borders of this machine
  manycore sweep --primitive locks --variant 'tas*,mcs' --threads 1,2 --critical-ns 50
      some locks, with 50 ns of work inside the critical section
  manycore sweep --primitive queues --producers 1 --consumers 1 --threads 2 --capacity 64
      one producer and one consumer over small queues
  manycore sweep --budget 3m --out results.jsonl --resume
      what results.jsonl does not hold yet, in about three minutes
  manycore sweep --engine simulated --threads 1..128*2 --primitive locks
      the locks on 128 cores of a machine that is not here
  manycore sweep --primitive locks --threads 2 --latency open --rate 2000000
      how long an acquisition takes when two million a second are asked for
  manycore sweep --engine simulated --primitive alloc-arena --memory local,remote \
      --arena-bytes 8388608 --threads 2
      arenas that no cache holds: from which node lines come, and what that costs
  manycore sweep --dry-run
      the points and the time they take, without measuring

Thread counts: 1,2,8  4..8 (each)  4..64*2 (doubling)  4..64+4 (steps)  auto
A flag that is given twice counts as given last.
Exit codes: 0 done, 1 failed or the budget ended first, 2 usage, 130 interrupted (what was measured
is kept)"
    )]
    Sweep(Box<SweepArgs>),
    /// Show which lines of a simulated point are hot, who touches which bytes, and what sharing that is
    #[command(after_help = crate::lines_command::HELP)]
    Lines(Box<crate::lines_command::LinesArgs>),
    /// Show a phenomenon of big machines, before and after, beside field reports' figures
    #[command(after_help = crate::scenario_command::HELP)]
    Scenario(Box<crate::scenario_command::ScenarioArgs>),
    /// Check that what different threads write lies on lines of its own, and pages as asked
    #[command(after_help = crate::place_command::HELP)]
    Place(crate::place_command::PlaceArgs),
    /// Measure what a line costs from each CPU to each other
    #[command(after_help = crate::c2c_command::HELP)]
    C2c(Box<crate::c2c_command::C2cArgs>),
    /// Measure variants in turn and say which is faster
    #[command(after_help = crate::ab_command::HELP)]
    Ab(Box<crate::ab_command::AbArgs>),
    /// Compare two files of records, point by point, with an exit code for CI
    #[command(after_help = crate::compare_command::HELP)]
    Compare(crate::compare_command::CompareArgs),
    /// Make a page with plots and verdicts from files of records
    #[command(after_help = crate::report_command::HELP)]
    Report(crate::report_command::ReportArgs),
    /// Say what a metric means, its formula, and how it is measured
    #[command(after_help = crate::explain_command::HELP)]
    Explain(crate::explain_command::ExplainArgs),
    /// Count instructions and locked operations exactly, by callgrind and by the simulator
    #[command(after_help = "\
Examples:
  manycore count
  manycore count --primitive queues --functions
  manycore count --check goldens.json        any difference fails
  manycore count --approve goldens.json      after a look at the differences

  manycore count --engine simulated          without valgrind
  manycore count --out base.jsonl            for `manycore compare`

One thread, nobody contends. Both engines run the same command of this program and must agree to
the instruction; a row about which they do not is broken. Instructions per operation are (I(2n) - I(n)) / n of the same loop
that `manycore sweep` times; the null row is the loop without the primitive.
Exit codes: 0 done, 1 failed or counts differ, 2 usage")]
    Count(Box<CountArgs>),
    /// List the machines that can be simulated, show one with its sources, check a file
    #[command(after_help = crate::machines_command::HELP)]
    Machines(crate::machines_command::MachinesArgs),
    /// Measure this host into a machine file that can be simulated
    #[command(after_help = crate::calibrate_command::HELP)]
    Calibrate(crate::calibrate_command::CalibrateArgs),
    /// Compare simulated times with published measurements that set no figure of a machine
    #[command(after_help = crate::validate_command::HELP)]
    Validate(crate::validate_command::ValidateArgs),
    #[command(hide = true)]
    AbWindows(Box<crate::ab_arms::WindowsArgs>),
    #[command(hide = true)]
    ScenarioStep(Box<crate::scenario_step_command::ScenarioStepArgs>),
    #[command(hide = true)]
    Measured(Box<MeasuredArgs>),
    #[command(hide = true)]
    Simulated(Box<SimulatedArgs>),
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Only these: counters, locks, queues, alloc-arena
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) primitive: Vec<String>,
    /// Print JSON, one variant a line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SweepArgs {
    /// Only these: counters, locks, queues, alloc-arena
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) primitive: Vec<String>,
    /// Only these variants; `*` and `?` are wild
    #[arg(long, value_name = "GLOBS", value_delimiter = ',')]
    pub(crate) variant: Vec<String>,
    /// What measures: native; callgrind for exact counts of one thread; simulated for the cores of
    /// another machine
    #[arg(long, value_name = "ENGINE", default_value = "native")]
    pub(crate) engine: String,
    /// Simulated: the machine, by the name of one that is known here or by its file [default:
    /// epyc-7742-2s]
    #[arg(long, value_name = "NAME|FILE")]
    pub(crate) machine: Option<String>,
    /// Simulated: cut or grow the machine to so many cores
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = cores)]
    pub(crate) cores: Option<usize>,
    /// Simulated: operations of each thread [default: 1024]; callgrind: of the shorter run
    /// [default: 4096]
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = ops)]
    pub(crate) ops: Option<u64>,
    /// Simulated: give a point up after this much real time
    #[arg(long, value_name = "TIME", default_value = "10m", allow_hyphen_values = true, value_parser = budget)]
    pub(crate) timeout: Duration,
    /// Numbers of threads
    #[arg(long, value_name = "LIST", default_value = "auto", allow_hyphen_values = true)]
    pub(crate) threads: ThreadCounts,
    /// Where threads go: compact, scatter, smt-last, same-l3, cross-l3, cross-node; several
    /// with `+`; or CPUs in order, cpus=0,3,5
    #[arg(long, value_name = "POLICY", default_value = "compact", value_parser = placements)]
    pub(crate) placement: Vec<Placements>,
    /// Where pages lie, seen from the thread: local, remote, interleave, node=N
    #[arg(long, value_name = "WHERE", default_value = "local", value_delimiter = ',')]
    pub(crate) memory: Vec<Memory>,
    #[command(flatten)]
    pub(crate) workload: WorkloadArgs,
    /// Time single operations too: closed (asked for when the last one is done and thought has been
    /// given to it, exponentially long) or open (asked for at --rate, come what may)
    #[arg(long, value_name = "LOOP", value_enum)]
    pub(crate) latency: Option<Loop>,
    /// Operations a second that all threads together ask for in the open loop
    #[arg(long, value_name = "OPS", allow_hyphen_values = true, value_parser = rate)]
    pub(crate) rate: Option<u64>,
    /// Measured seconds of a point, all repetitions together
    #[arg(long, value_name = "S", default_value = "0.5", allow_hyphen_values = true, value_parser = seconds)]
    pub(crate) seconds: Duration,
    /// Repetitions of a point, 5 or more for an interval worth the name
    #[arg(long, value_name = "R", default_value_t = 5, allow_hyphen_values = true, value_parser = repeat)]
    pub(crate) repeat: u64,
    /// Shorten points so that the sweep takes about this long: 90s, 10m, 1h
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = budget)]
    pub(crate) budget: Option<Duration>,
    /// Seed of everything drawn at random
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Let threads outnumber CPUs
    #[arg(long)]
    pub(crate) oversubscribe: bool,
    /// Append the records to this file [default: results/HOST/DATE-sweep.jsonl]
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Leave out the points that --out holds already from this host and build, whole and with as
    /// many repetitions, however long they were
    #[arg(long, requires = "out")]
    pub(crate) resume: bool,
    /// Show the points and the time they take, and measure nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print records to standard output, everything else to standard error; without --out no
    /// file is written
    #[arg(long)]
    pub(crate) json: bool,
    /// Print no progress
    #[arg(long)]
    pub(crate) quiet: bool,
}

/// What `--latency` names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Loop {
    /// Asks again when it has been served
    Closed,
    /// Asks at times drawn beforehand, and counts from them
    Open,
}

/// What the threads do.
#[derive(Debug, Clone, Args)]
pub(crate) struct WorkloadArgs {
    /// Locks: nanoseconds of work in the critical section
    #[arg(long, value_name = "NS", default_value_t = 0, allow_hyphen_values = true, value_parser = nanoseconds)]
    pub(crate) critical_ns: u64,
    /// Nanoseconds of work between two operations
    #[arg(long, value_name = "NS", default_value_t = 0, allow_hyphen_values = true, value_parser = nanoseconds)]
    pub(crate) think_ns: u64,
    /// Counters: of 100 operations, how many read the sum; locks: how many only read, together if
    /// the lock is a reader-writer lock
    #[arg(long, value_name = "N", default_value_t = 0, allow_hyphen_values = true, value_parser = percent)]
    pub(crate) read_percent: u64,
    /// Queues: threads that push
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = side)]
    pub(crate) producers: Option<usize>,
    /// Queues: threads that pop
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = side)]
    pub(crate) consumers: Option<usize>,
    /// Queues: slots
    #[arg(long, value_name = "N", default_value_t = 1024, allow_hyphen_values = true, value_parser = capacity)]
    pub(crate) capacity: usize,
    /// Queues: bytes of an element, 8, 64 or 256
    #[arg(long, value_name = "BYTES", default_value_t = 8, allow_hyphen_values = true, value_parser = element_bytes)]
    pub(crate) element_bytes: usize,
    /// Arenas: bytes of an allocation
    #[arg(long, value_name = "BYTES", default_value_t = 64, allow_hyphen_values = true, value_parser = alloc_bytes)]
    pub(crate) alloc_bytes: usize,
    /// Arenas: bytes of each thread's arena; more than the caches hold comes from memory
    #[arg(long, value_name = "BYTES", default_value_t = 64 << 10, allow_hyphen_values = true, value_parser = arena_bytes)]
    pub(crate) arena_bytes: usize,
}

impl WorkloadArgs {
    /// Gives the workload, with memory as by default.
    pub(crate) fn workload(&self) -> Workload {
        Workload {
            critical_ns: self.critical_ns,
            think_ns: self.think_ns,
            read_percent: self.read_percent,
            producers: self.producers,
            consumers: self.consumers,
            capacity: self.capacity,
            element_bytes: self.element_bytes,
            alloc_bytes: self.alloc_bytes,
            arena_bytes: self.arena_bytes,
            ..Workload::default()
        }
    }
}

/// Writes a workload as the command line has it, for a program that is run with it.
pub(crate) fn workload_words(workload: &Workload) -> Vec<String> {
    let words = [
        ("--critical-ns", workload.critical_ns),
        ("--think-ns", workload.think_ns),
        ("--read-percent", workload.read_percent),
        ("--capacity", workload.capacity as u64),
        ("--element-bytes", workload.element_bytes as u64),
        ("--alloc-bytes", workload.alloc_bytes as u64),
        ("--arena-bytes", workload.arena_bytes as u64),
    ];
    let sides = [("--producers", workload.producers), ("--consumers", workload.consumers)];
    let sides = sides.into_iter().filter_map(|(word, threads)| Some((word, threads? as u64)));
    let words = words.into_iter().chain(sides);
    words.flat_map(|(word, value)| [word.to_owned(), value.to_string()]).collect()
}

#[derive(Debug, Args)]
pub(crate) struct CountArgs {
    /// Only these: counters, locks, queues, alloc-arena
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) primitive: Vec<String>,
    /// Only these variants; `*` and `?` are wild
    #[arg(long, value_name = "GLOBS", value_delimiter = ',')]
    pub(crate) variant: Vec<String>,
    /// Who counts: callgrind, simulated; both if not said
    #[arg(long, value_name = "ENGINES", value_delimiter = ',')]
    pub(crate) engine: Vec<String>,
    #[command(flatten)]
    pub(crate) workload: WorkloadArgs,
    /// Operations of the shorter run; the longer one makes twice as many
    #[arg(long, value_name = "N", default_value_t = OPS, allow_hyphen_values = true, value_parser = ops)]
    pub(crate) ops: u64,
    /// Compare with the counts approved in this file; any difference fails
    #[arg(long, value_name = "FILE", conflicts_with = "approve")]
    pub(crate) check: Option<PathBuf>,
    /// Write the counts to this file as approved
    #[arg(long, value_name = "FILE")]
    pub(crate) approve: Option<PathBuf>,
    /// Show the functions that the instructions are in
    #[arg(long)]
    pub(crate) functions: bool,
    /// Append the records to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Print records to standard output, everything else to standard error
    #[arg(long)]
    pub(crate) json: bool,
}

/// Operations of the shorter run of a count: whole rounds of a default queue and arena.
pub(crate) const OPS: u64 = 4096;

/// What the program runs under an engine that watches it; not for people.
#[derive(Debug, Args)]
pub(crate) struct MeasuredArgs {
    #[arg(long)]
    pub(crate) primitive: String,
    #[arg(long)]
    pub(crate) variant: String,
    #[arg(long, value_parser = ops)]
    pub(crate) ops: u64,
    #[command(flatten)]
    pub(crate) workload: WorkloadArgs,
}

/// One point that this process simulates; not for people.
#[derive(Debug, Args)]
pub(crate) struct SimulatedArgs {
    #[arg(long)]
    pub(crate) primitive: String,
    #[arg(long)]
    pub(crate) variant: String,
    #[arg(long)]
    pub(crate) machine: String,
    #[arg(long)]
    pub(crate) cores: usize,
    #[arg(long)]
    pub(crate) threads: usize,
    #[arg(long)]
    pub(crate) placement: Placement,
    #[arg(long, default_value = "local")]
    pub(crate) memory: Memory,
    #[arg(long)]
    pub(crate) ops: u64,
    #[arg(long)]
    pub(crate) seed: u64,
    /// Watch lines, and put apart what this JSON lists.
    #[arg(long)]
    pub(crate) watch: Option<String>,
    /// Compare who touches which byte with what objects declare.
    #[arg(long, conflicts_with = "watch")]
    pub(crate) place: bool,
    /// Keep so many waits of cores.
    #[arg(long, requires = "watch")]
    pub(crate) trace: Option<usize>,
    #[command(flatten)]
    pub(crate) workload: WorkloadArgs,
}

/// What one `--placement` names.
#[derive(Debug, Clone)]
pub(crate) struct Placements(pub(crate) Vec<Placement>);

fn placements(text: &str) -> Result<Placements, String> {
    text.split('+').map(str::parse).collect::<Result<_, _>>().map(Placements)
}

/// Parses a whole number within bounds, and says what is wrong in terms of `what`.
fn whole(text: &str, what: &str, least: u64, most: u64) -> Result<u64, String> {
    match text.parse::<i128>() {
        Ok(value) if value < i128::from(least) => {
            Err(format!("{what} cannot be less than {least}"))
        }
        Ok(value) if value > i128::from(most) => Err(format!("{what} cannot be more than {most}")),
        Ok(value) => u64::try_from(value).map_err(|error| error.to_string()),
        Err(_) => Err(format!("{what} is a whole number from {least} to {most}")),
    }
}

fn nanoseconds(text: &str) -> Result<u64, String> {
    whole(text, "a time in nanoseconds", 0, 100_000_000)
}

fn percent(text: &str) -> Result<u64, String> {
    whole(text, "a percentage", 0, 100)
}

fn repeat(text: &str) -> Result<u64, String> {
    whole(text, "the number of repetitions", 1, 1000)
}

pub(crate) fn size(text: &str, what: &str, most: u64) -> Result<usize, String> {
    usize::try_from(whole(text, what, 1, most)?).map_err(|error| error.to_string())
}

pub(crate) fn ops(text: &str) -> Result<u64, String> {
    whole(text, "a number of operations", 1, 1 << 30)
}

pub(crate) fn cores(text: &str) -> Result<usize, String> {
    size(text, "a number of cores", MAX_CORES as u64)
}

fn rate(text: &str) -> Result<u64, String> {
    whole(text, "a rate in operations a second", 1, 1_000_000_000_000)
}

fn side(text: &str) -> Result<usize, String> {
    size(text, "a number of producers or consumers", 65_536)
}

fn capacity(text: &str) -> Result<usize, String> {
    size(text, "a queue's capacity", 1 << 30)
}

fn alloc_bytes(text: &str) -> Result<usize, String> {
    size(text, "an allocation's size in bytes", 1 << 20)
}

fn arena_bytes(text: &str) -> Result<usize, String> {
    size(text, "an arena's size in bytes", 1 << 30)
}

fn element_bytes(text: &str) -> Result<usize, String> {
    match text {
        "8" | "64" | "256" => size(text, "an element's size", 256),
        _ => Err("an element has 8, 64 or 256 bytes".into()),
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds, 0.5 say".to_owned())?;
    if seconds < 0.0 {
        return Err("a time cannot be negative".into());
    }
    if !(0.001..=3600.0).contains(&seconds) {
        return Err("a point takes from 0.001 to 3600 seconds".into());
    }
    Ok(Duration::from_secs_f64(seconds))
}

pub(crate) fn budget(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "s" | "" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        other => return Err(format!("unknown unit `{other}`; write 90s, 10m or 1h")),
    };
    let value: f64 = digits.parse().map_err(|_| "write 90s, 10m or 1h".to_owned())?;
    let seconds = value * unit;
    if seconds < 0.0 {
        return Err("a time cannot be negative".into());
    }
    if !(1.0..=7.0 * 86_400.0).contains(&seconds) {
        return Err("a budget is from one second to seven days".into());
    }
    Ok(Duration::from_secs_f64(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn times() {
        assert_eq!(budget("10m"), Ok(Duration::from_secs(600)));
        assert_eq!(budget("90"), Ok(Duration::from_secs(90)));
        assert_eq!(budget("1.5h"), Ok(Duration::from_secs(5400)));
        for bad in ["", "m", "-5m", "10d", "1e99h", "nan", "inf", "0s"] {
            assert!(budget(bad).is_err(), "{bad}");
        }
        for bad in ["", "-1", "nan", "inf", "0", "4000", "1s"] {
            assert!(seconds(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn numbers() {
        assert_eq!(nanoseconds("50"), Ok(50));
        for bad in ["-1", "", "x", "1.5", "99999999999999999999999999999999999999999", "100000001"]
        {
            assert!(nanoseconds(bad).is_err(), "{bad}");
        }
    }
}
