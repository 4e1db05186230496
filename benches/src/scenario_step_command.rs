//! The hidden command that runs one step of a scenario and answers in JSON.

use std::collections::BTreeMap;

use clap::Args;
use harness::simulated::Machine;
use topology::Topology;

use crate::exit::Failure;
use crate::scenario_command::{named, values};
use crate::scenarios::{self, Scenario, Setting, Where};
use crate::simulated_command::answer;

/// The flags.
#[derive(Debug, Args)]
pub(crate) struct ScenarioStepArgs {
    #[arg(long)]
    scenario: String,
    #[arg(long)]
    step: usize,
    /// The machine; this host without it.
    #[arg(long)]
    machine: Option<String>,
    #[arg(long)]
    cores: Option<usize>,
    #[arg(long)]
    threads: usize,
    #[arg(long)]
    ops: u64,
    #[arg(long)]
    seed: u64,
    #[arg(long)]
    watch: bool,
    /// Parameters of the scenario, name=value.
    #[arg(long)]
    set: Vec<String>,
}

/// Writes the command line for a step.
pub(crate) fn words(
    scenario: &Scenario,
    setting: &Setting,
    machine: Option<&str>,
    (step, watch): (usize, bool),
) -> Vec<String> {
    let mut words = vec!["scenario-step".to_owned()];
    let mut pair = |word: &str, value: String| words.extend([word.to_owned(), value]);
    pair("--scenario", scenario.name.into());
    pair("--step", step.to_string());
    if let (Some(name), Some(machine)) = (machine, setting.machine()) {
        pair("--machine", name.into());
        pair("--cores", machine.cores().to_string());
    }
    pair("--threads", setting.threads.to_string());
    pair("--ops", setting.ops.to_string());
    pair("--seed", setting.seed.to_string());
    for (name, value) in &setting.values {
        pair("--set", format!("{name}={value}"));
    }
    words.extend(watch.then(|| "--watch".to_owned()));
    words
}

/// Runs the command.
///
/// # Errors
/// When the command line names what does not exist.
pub(crate) fn run(arguments: &ScenarioStepArgs) -> Result<(), Failure> {
    let scenario = named(&arguments.scenario)?;
    let place = match &arguments.machine {
        Some(name) => {
            let machine = Machine::find(name)
                .and_then(|machine| machine.with_cores(arguments.cores.unwrap_or(machine.cores())));
            Where::Machine(Box::new(machine.map_err(|error| Failure::Usage(error.to_string()))?))
        }
        None => {
            let host = Topology::this_host().map_err(|error| Failure::Failed(error.to_string()))?;
            Where::Host(Box::new(host))
        }
    };
    let given: BTreeMap<&str, &str> =
        arguments.set.iter().filter_map(|pair| pair.split_once('=')).collect();
    let given: Vec<(&str, &str)> = given.into_iter().collect();
    let setting = Setting {
        place,
        threads: arguments.threads,
        ops: arguments.ops,
        seed: arguments.seed,
        values: values(scenario, &given, false)?,
    };
    let steps = (scenario.steps)(&setting).map_err(Failure::Usage)?;
    let step = steps
        .get(arguments.step)
        .ok_or_else(|| Failure::Usage(format!("{} has no such step", scenario.name)))?;
    answer(scenarios::run(scenario, &setting, step, arguments.watch))
}
