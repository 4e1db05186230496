//! What `manycore ab` measures, and where: in this process or in fresh ones.

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::Args;
use harness::native::{self, Conditions, Make, Native};
use harness::paired::windows::{Windows, measure};
use harness::placement::Placement;
use harness::stats::SplitMix;
use harness::workload::{Memory, Workload};
use topology::Topology;

use crate::cli::{WorkloadArgs, size, workload_words};
use crate::exit::Failure;
use crate::rows::Variant;
use crate::simulated_command::only;
use crate::stdout;

/// The variants, and under which conditions.
#[derive(Debug, Clone, Args)]
pub(crate) struct ArmsArgs {
    /// The variant to compare with, as `locks/ticket`
    #[arg(value_name = "A")]
    pub(crate) a: String,
    /// The variants that are compared with it
    #[arg(value_name = "B", required = true)]
    pub(crate) b: Vec<String>,
    /// Number of threads [default: 2, on one CPU 1]
    #[arg(long, value_name = "N", value_parser = threads, allow_hyphen_values = true)]
    pub(crate) threads: Option<usize>,
    /// Where threads go: compact, scatter, smt-last, same-l3, cross-l3, cross-node, cpus=0,3,5
    #[arg(long, value_name = "POLICY", default_value = "compact")]
    pub(crate) placement: Placement,
    /// Where pages lie, seen from the thread: local, remote, interleave, node=N
    #[arg(long, value_name = "WHERE", default_value = "local")]
    pub(crate) memory: Memory,
    #[command(flatten)]
    pub(crate) workload: WorkloadArgs,
    /// Milliseconds of a window
    #[arg(long, value_name = "MS", default_value = "1", value_parser = window, allow_hyphen_values = true)]
    pub(crate) window: Duration,
    /// Seed of everything drawn at random
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub(crate) seed: u64,
}

/// What a fresh process measures; not for people.
#[derive(Debug, Args)]
pub(crate) struct WindowsArgs {
    #[command(flatten)]
    arms: ArmsArgs,
    #[arg(long)]
    first: usize,
    #[arg(long)]
    rounds: usize,
}

fn threads(text: &str) -> Result<usize, String> {
    size(text, "a number of threads", 4096)
}

fn window(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(ms) if (0.5..=10_000.0).contains(&ms) => Ok(Duration::from_secs_f64(ms / 1e3)),
        _ => Err("a window takes from 0.5 to 10000 milliseconds".into()),
    }
}

/// The variants ready to be measured.
pub(crate) struct Arms {
    pub(crate) arguments: ArmsArgs,
    pub(crate) names: Vec<String>,
    pub(crate) primitive: &'static str,
    makes: Vec<Make>,
    pub(crate) conditions: Conditions,
    pub(crate) native: Native,
}

impl Arms {
    /// Finds the variants, and CPUs for the threads.
    ///
    /// # Errors
    /// When a variant is unknown, they are of several primitives, or the CPUs do not suffice.
    pub(crate) fn new(arguments: ArmsArgs) -> Result<Self, Failure> {
        let named = std::iter::once(&arguments.a).chain(&arguments.b);
        let variants = named.map(|name| find(name)).collect::<Result<Vec<Variant>, _>>()?;
        let primitive = variants[0].row.primitive;
        if let Some(other) = variants.iter().find(|other| other.row.primitive != primitive) {
            return Err(Failure::Usage(format!(
                "{}/{} and {primitive}/{} do different things: compare variants of one primitive",
                other.row.primitive, other.row.id, variants[0].row.id
            )));
        }
        let topology = Topology::this_host().map_err(|error| Failure::Failed(error.to_string()))?;
        let threads = arguments.threads.unwrap_or(topology.parallelism().min(2));
        let cpus = arguments.placement.cpus(&topology, threads);
        let cpus =
            cpus.map_err(|reason| Failure::Usage(format!("--threads {threads}: {reason}")))?;
        if threads > topology.parallelism() || threads > cpus.len() {
            return Err(Failure::Usage(format!(
                "--threads {threads}: there are {} CPUs",
                topology.parallelism().min(cpus.len())
            )));
        }
        let workload = Workload { memory: arguments.memory, ..arguments.workload.workload() };
        let native = Native::new(topology);
        let conditions = native
            .conditions(&cpus, &workload, arguments.seed)
            .map_err(|reason| Failure::Failed(reason.to_string()))?;
        let names = variants.iter().map(|v| format!("{primitive}/{}", v.row.id)).collect();
        let makes = variants.iter().map(|variant| variant.row.make).collect();
        Ok(Self { arguments, names, primitive, makes, conditions, native })
    }

    /// Measures rounds of the variants at these positions in this process.
    pub(crate) fn here(
        &mut self,
        at: &[usize],
        rounds: (usize, usize),
        interrupted: &AtomicBool,
    ) -> Result<Windows, Failure> {
        let makes: Vec<Make> = at.iter().map(|&at| self.makes[at]).collect();
        let stop = || interrupted.load(Ordering::Relaxed);
        let window = self.arguments.window;
        measure(&mut self.native, &self.conditions, &makes, rounds, window, stop)
            .map_err(|(arm, failure)| told(&self.names[at[arm]], failure))
    }

    /// Measures rounds in a fresh process, in which memory lies elsewhere.
    pub(crate) fn elsewhere(
        &self,
        at: &[usize],
        (first, rounds): (usize, usize),
        random: &mut SplitMix,
    ) -> Result<Windows, Failure> {
        let program = std::env::current_exe()
            .map_err(|error| Failure::Failed(format!("cannot find this program: {error}")))?;
        let failed = |error: &dyn std::fmt::Display| {
            Failure::Failed(format!("a process that measures failed: {error}"))
        };
        let output = Command::new(program)
            .arg("ab-windows")
            .args(at.iter().map(|&at| &self.names[at]))
            .args(self.words())
            .args(["--first", &first.to_string(), "--rounds", &rounds.to_string()])
            // The environment lies above the stack: its length moves what lies there.
            .env("MANYCORE_STACK_SHIFT", "x".repeat(random.below(4096)))
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output()
            .map_err(|error| failed(&error))?;
        if !output.status.success() {
            return Err(failed(&output.status));
        }
        serde_json::from_slice(&output.stdout).map_err(|error| failed(&error))
    }

    /// The conditions as the command line has them.
    fn words(&self) -> Vec<String> {
        let arguments = &self.arguments;
        let mut words = vec![
            format!("--threads={}", self.conditions.threads()),
            format!("--placement={}", arguments.placement),
            format!("--memory={}", arguments.memory),
            format!("--window={}", arguments.window.as_secs_f64() * 1e3),
            format!("--seed={}", arguments.seed),
        ];
        words.extend(workload_words(&self.conditions.workload));
        words
    }
}

fn find(name: &str) -> Result<Variant, Failure> {
    match name.split_once('/') {
        Some((primitive, variant)) if !variant.contains(['*', '?']) => only(primitive, variant),
        _ => Err(Failure::Usage(format!(
            "`{name}` is no primitive/variant, locks/ticket say; `manycore list` shows them"
        ))),
    }
}

fn told(name: &str, failure: native::Failure) -> Failure {
    Failure::Failed(match failure {
        native::Failure::Unavailable(reason) => format!("{name} is unavailable: {reason}"),
        native::Failure::Broken(reason) => format!("{name} is broken: {reason}"),
    })
}

/// Runs the hidden command.
///
/// # Errors
/// When something cannot be measured.
pub(crate) fn run_windows(arguments: &WindowsArgs) -> Result<(), Failure> {
    let mut arms = Arms::new(arguments.arms.clone())?;
    let at: Vec<usize> = (0..arms.names.len()).collect();
    let rounds = (arguments.first, arguments.rounds);
    let windows = arms.here(&at, rounds, &AtomicBool::new(false))?;
    let line = serde_json::to_string(&windows);
    stdout::print(&line.map_err(|error| Failure::Failed(error.to_string()))?)
}
