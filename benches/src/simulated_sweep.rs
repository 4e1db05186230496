//! `manycore sweep --engine simulated`: the points on a machine that is not here, each in a process
//! of its own.

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use harness::simulated::child::{Pool, text_file};
use harness::simulated::{self, Cores, DEFAULT_MACHINE, Machine};
use harness::sweep::{self, Block, Row, Settings};
use serde_json::{Value, json};
use topology::Topology;

use crate::cli::{SweepArgs, workload_words};
use crate::exit::Failure;
use crate::stdout::note;
use crate::sweep_command::{catch_signals, header, list_points, points, report_same_as_before};
use crate::sweep_follower::Follower;
use crate::sweep_records::{MACHINE, Records};

/// Operations of each thread.
pub(crate) const OPS: u64 = 1024;

/// Runs the sweep.
///
/// # Errors
/// As `sweep_command::run`, and when the machine is unknown or its file is bad.
pub(crate) fn run(
    arguments: &SweepArgs,
    settings: Settings,
    host: &Topology,
) -> Result<(), Failure> {
    let target = Target::of(arguments)?;
    let settings = Settings { repeat: 1, ..settings };
    let plan = sweep::plan(&Cores::of(&target.machine), &settings)
        .map_err(|error| Failure::Usage(error.to_string()))?;
    let ops = arguments.ops.unwrap_or(OPS);
    if arguments.dry_run {
        list_points(&plan, arguments.json)?;
        let all = points(plan.points());
        note(&format!("{all} on {}, {ops} operations of each thread", target.name()));
        report_same_as_before(&plan);
        return Ok(());
    }
    let interrupted = Arc::new(AtomicBool::new(false));
    catch_signals(&interrupted)?;
    let mut header = header(host);
    header.other.insert(MACHINE.into(), target.description());
    // Nothing about this host spoils what is simulated.
    header.doctor.clear();
    let mut records = Records::open(arguments)?;
    let skip = records.measured_already(arguments, &header)?;
    records.write(&header)?;
    let mut follower = Follower::new(arguments, &plan, (1, None), records, interrupted);
    let program = std::env::current_exe()
        .map_err(|error| Failure::Failed(format!("cannot find this program: {error}")))?;
    let pool = Pool::new(&program, target.stdin()?, arguments.timeout);
    let point = |block: &Block, row: &Row| words(&target, block, row, ops, settings.seed);
    let simulated = simulated::Settings {
        machine: &target.machine,
        machine_name: &target.name(),
        ops,
        sweep: &settings,
        arguments: &point,
    };
    let outcome = simulated::run(&pool, &plan, &simulated, &header.run, &skip, &mut follower);
    follower.finish(outcome, &plan)
}

/// The hidden command for one point.
fn words(target: &Target, block: &Block, row: &Row, ops: u64, seed: u64) -> Vec<String> {
    let words = [
        ("--machine", target.for_children().to_owned()),
        ("--cores", target.machine.cores().to_string()),
        ("--primitive", row.primitive.to_owned()),
        ("--variant", row.id.to_owned()),
        ("--threads", block.threads.to_string()),
        ("--placement", block.placement.to_string()),
        ("--ops", ops.to_string()),
        ("--seed", seed.to_string()),
    ];
    let words = words.into_iter().flat_map(|(word, value)| [word.to_owned(), value]);
    ["simulated".to_owned()]
        .into_iter()
        .chain(words)
        .chain(workload_words(&block.workload))
        .collect()
}

/// The machine, and how children get it.
struct Target {
    machine: Machine,
    /// Whether it has as many cores as its file says.
    whole: bool,
    /// The text of its file, if it is none of those that are known by name.
    text: Option<String>,
}

impl Target {
    fn of(arguments: &SweepArgs) -> Result<Self, Failure> {
        let named = arguments.machine.as_deref().unwrap_or(DEFAULT_MACHINE);
        let usage = |error: &dyn std::fmt::Display| Failure::Usage(format!("--machine: {error}"));
        let machine = Machine::find(named).map_err(|error| usage(&error))?;
        let is_file = named.contains('/') || named.ends_with(".toml");
        let text = is_file.then(|| std::fs::read_to_string(named)).transpose();
        let text = text.map_err(|error| usage(&format!("{named}: {error}")))?;
        let cores = arguments.cores.unwrap_or(machine.cores());
        let whole = cores == machine.cores();
        let machine = machine
            .with_cores(cores)
            .map_err(|error| Failure::Usage(format!("--cores: {error}")))?;
        Ok(Self { machine, whole, text })
    }

    /// Its name in records; with the number of cores where that is another than the file's.
    fn name(&self) -> String {
        let name = self.machine.name();
        if self.whole { name.to_owned() } else { format!("{name}/{}", self.machine.cores()) }
    }

    /// What it was, for those who read the records later, and for `--resume`.
    fn description(&self) -> Value {
        let figures = self.machine.figures();
        let figures =
            figures.map(|figure| (figure.field.to_owned(), Value::from(figure.value.to_string())));
        json!({
            "name": self.machine.name(), "title": self.machine.title(),
            "architecture": self.machine.architecture(), "cores": self.machine.cores(),
            "grown": self.machine.is_grown(),
            "figures": Value::Object(figures.collect()),
        })
    }

    fn for_children(&self) -> &str {
        if self.text.is_some() { "/dev/stdin" } else { self.machine.name() }
    }

    fn stdin(&self) -> Result<Option<File>, Failure> {
        let file = self.text.as_deref().map(text_file).transpose();
        file.map_err(|error| Failure::Failed(format!("cannot hand the machine file on: {error}")))
    }
}
