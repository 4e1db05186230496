//! `manycore scenario`: a phenomenon of big machines, before and after.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use harness::simulated::MAX_CORES;
use topology::Topology;

use crate::cli;
use crate::exit::Failure;
use crate::scenario_run::{Plan, Wanted, follow};
use crate::scenarios::{ALL, Engine, Scenario, Setting, Where, text};
use crate::select::unknown;
use crate::stdout::{self, note};
use crate::target::Target;

pub(crate) const HELP: &str = "\
Examples:
  manycore scenario --list
      the scenarios, with their parameters
  manycore scenario false-sharing
      on 4 simulated cores: packed, then padded, and the line at fault
  manycore scenario global-lru --machine xeon-8375c-2s --threads 64 --shards 16
  manycore scenario false-sharing --engine native --threads 2
      the same code on this host's cores
  manycore scenario --all --out scenarios.jsonl
  manycore scenario --all --markdown docs/phenomena.md
      the page with tables, plots and explanations

Each step runs in a process of its own. Simulated times have a band: they may be off by as much as
those of counters and locks are off of published ones on that machine (docs/validation.md; where
nothing was published, by a factor of 1.5 in a socket and of 2 across); counts are exact. Figures of
the field reports are of other machines, and show direction and order of magnitude.
Exit codes: 0 done, 1 a step failed, 2 usage, 130 interrupted (what was measured is kept)";

/// The flags.
#[derive(Debug, Args)]
pub(crate) struct ScenarioArgs {
    /// The scenario, by its name
    #[arg(value_name = "NAME", conflicts_with = "all")]
    name: Option<String>,
    /// Tell the scenarios and their parameters, or those of one
    #[arg(long, conflicts_with = "all")]
    list: bool,
    /// Run every scenario
    #[arg(long)]
    all: bool,
    /// What executes: simulated, or native for this host's cores
    #[arg(long, value_name = "ENGINE", default_value = "simulated")]
    engine: String,
    /// Simulated: the machine, by the name of one that is known here or by its file [default:
    /// epyc-7742-2s]
    #[arg(long, value_name = "NAME|FILE")]
    machine: Option<String>,
    /// Simulated: cut or grow the machine to so many cores
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = cli::cores)]
    cores: Option<usize>,
    /// Number of threads [default: the scenario's, as far as there are cores]
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = threads)]
    threads: Option<usize>,
    /// Operations of each thread [default: the scenario's]
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = cli::ops)]
    ops: Option<u64>,
    /// Seed of everything drawn at random
    #[arg(long, value_name = "S", default_value_t = 1, allow_hyphen_values = true, value_parser = seed)]
    seed: u64,
    /// Give a step up after this much real time
    #[arg(long, value_name = "TIME", default_value = "10m", allow_hyphen_values = true, value_parser = cli::budget)]
    timeout: Duration,
    /// Add the records to this file
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Write a page in Markdown, with plots beside it
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Print records to standard output, everything else to standard error
    #[arg(long)]
    json: bool,
    /// Print no progress
    #[arg(long)]
    quiet: bool,
    #[command(flatten)]
    own: OwnArgs,
}

macro_rules! own {
    ($($field:ident $flag:literal $what:literal),* $(,)?) => {
        /// Parameters that scenarios have; each knows which of them.
        #[derive(Debug, Args)]
        #[command(next_help_heading = "Parameters of scenarios, told by --list")]
        pub(crate) struct OwnArgs {
            $(#[doc = $what]
            #[arg(long = $flag, value_name = "N", allow_hyphen_values = true)]
            $field: Option<String>,)*
        }

        impl OwnArgs {
            /// Those that were given.
            fn given(&self) -> Vec<(&'static str, &str)> {
                let all = [$(($flag, self.$field.as_deref())),*];
                all.into_iter().filter_map(|(name, word)| Some((name, word?))).collect()
            }
        }
    };
}

own! {
    keys "keys" "Keys that requests ask for",
    shards "shards" "Parts that a lock, a counter or a queue is split into",
    capacity "capacity" "Slots of a queue",
    rate "rate" "Arrivals in a second",
    service_ns "service-ns" "Nanoseconds of work for a request",
    think_ns "think-ns" "Nanoseconds of work between two requests",
    burst "burst" "Arrivals that come at once",
    zipf "zipf" "Exponent of Zipf's law",
    pool "pool" "Workers of a pool",
    wait_us "wait-us" "Microseconds that a request waits for somebody else",
    batch "batch" "Items of a batch",
    mib "mib" "Mebibytes of each thread",
}

fn threads(text: &str) -> Result<usize, String> {
    cli::size(text, "a number of threads", MAX_CORES as u64)
}

fn seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("a seed is a whole number from 0 to {}", u64::MAX))
}

/// Runs the command.
///
/// # Errors
/// When the command line asks for what cannot be, a step fails, or somebody interrupts.
pub(crate) fn run(arguments: &ScenarioArgs) -> Result<(), Failure> {
    let chosen = chosen(arguments)?;
    if arguments.list {
        return stdout::print(&text::list(&chosen, arguments.json));
    }
    check_values(&chosen, &arguments.own.given())?;
    let engine = engine(arguments)?;
    let target = match engine {
        Engine::Simulated => Some(Target::of(arguments.machine.as_deref(), arguments.cores)?),
        Engine::Native => None,
    };
    let host =
        Topology::this_host().map_err(|error| Failure::Failed(format!("this host: {error}")))?;
    let mut plans = Vec::new();
    for scenario in chosen {
        let place = match &target {
            Some(target) => Where::Machine(Box::new(target.machine.clone())),
            None => Where::Host(Box::new(host.clone())),
        };
        match plan(scenario, arguments, place) {
            Ok(plan) => plans.push(plan),
            // What one scenario cannot do keeps nobody from the others.
            Err(Failure::Usage(error)) if arguments.all => note(&format!("left out: {error}")),
            Err(failure) => return Err(failure),
        }
    }
    if plans.is_empty() {
        return Err(Failure::Usage("no scenario can be run so".into()));
    }
    let wanted = Wanted {
        target: target.as_ref(),
        host: &host,
        timeout: arguments.timeout,
        out: arguments.out.as_deref(),
        markdown: arguments.markdown.as_deref(),
        json: arguments.json,
        quiet: arguments.quiet,
    };
    follow(plans, &wanted)
}

fn plan(
    scenario: &'static Scenario,
    arguments: &ScenarioArgs,
    place: Where,
) -> Result<Plan, Failure> {
    let setting = setting(scenario, arguments, place)?;
    let steps = (scenario.steps)(&setting)
        .and_then(|steps| setting.check_rate(&steps).map(|()| steps))
        .map_err(|error| Failure::Usage(format!("{}: {error}", scenario.name)))?;
    Ok(Plan::new(scenario, setting, steps))
}

fn chosen(arguments: &ScenarioArgs) -> Result<Vec<&'static Scenario>, Failure> {
    if arguments.all || arguments.list && arguments.name.is_none() {
        return Ok(ALL.to_vec());
    }
    let Some(name) = &arguments.name else {
        return Err(Failure::Usage(
            "which scenario? Name one, or say --all; --list tells them".into(),
        ));
    };
    named(name).map(|scenario| vec![scenario])
}

/// Finds a scenario.
///
/// # Errors
/// Lists the nearest names.
pub(crate) fn named(name: &str) -> Result<&'static Scenario, Failure> {
    let names = ALL.map(|scenario| scenario.name);
    let found = ALL.into_iter().find(|scenario| scenario.name == name);
    found.ok_or_else(|| unknown("scenario", name, &names))
}

fn engine(arguments: &ScenarioArgs) -> Result<Engine, Failure> {
    match arguments.engine.as_str() {
        "simulated" => Ok(Engine::Simulated),
        "native" if arguments.machine.is_some() || arguments.cores.is_some() => {
            Err(Failure::Usage("--machine and --cores are for --engine simulated".into()))
        }
        "native" => Ok(Engine::Native),
        other => {
            Err(Failure::Usage(format!("unknown engine `{other}`; there are simulated, native")))
        }
    }
}

fn setting(
    scenario: &'static Scenario,
    arguments: &ScenarioArgs,
    place: Where,
) -> Result<Setting, Failure> {
    let values = values(scenario, &arguments.own.given(), arguments.all)?;
    let ops = match place {
        Where::Host(_) => scenario.native_ops,
        Where::Machine(_) => scenario.ops,
    };
    let mut setting = Setting {
        place,
        threads: 0,
        ops: arguments.ops.unwrap_or(ops),
        seed: arguments.seed,
        values,
    };
    setting.threads = arguments.threads.unwrap_or(scenario.threads.min(setting.cores()));
    setting
        .check_threads(setting.threads)
        .map_err(|error| Failure::Usage(format!("{}: {error}", scenario.name)))?;
    Ok(setting)
}

/// Refuses what is no value for any of the scenarios that know the parameter.
fn check_values(chosen: &[&Scenario], given: &[(&str, &str)]) -> Result<(), Failure> {
    for (name, word) in given {
        let known = chosen.iter().flat_map(|scenario| scenario.parameters);
        let mut tried = known.filter(|own| own.name == *name).map(|own| own.parse(word));
        let Some(first) = tried.next() else { continue };
        if let (Err(error), true) = (first, tried.all(|other| other.is_err())) {
            return Err(Failure::Usage(error));
        }
    }
    Ok(())
}

/// The values of a scenario's parameters. Of all scenarios at once, each takes what it knows.
pub(crate) fn values(
    scenario: &'static Scenario,
    given: &[(&str, &str)],
    all: bool,
) -> Result<BTreeMap<&'static str, f64>, Failure> {
    let own = scenario.parameters;
    let mut values: BTreeMap<&'static str, f64> =
        own.iter().map(|parameter| (parameter.name, parameter.default)).collect();
    for (name, word) in given {
        let anybody = ALL.iter().any(|one| one.parameters.iter().any(|own| own.name == *name));
        match own.iter().find(|parameter| parameter.name == *name) {
            Some(parameter) => {
                let value = parameter.parse(word);
                let named = |error| match all {
                    true => format!("{}: {error}", scenario.name),
                    false => error,
                };
                values.insert(parameter.name, value.map_err(|error| Failure::Usage(named(error)))?);
            }
            None if all && anybody => {}
            None => {
                let flags: Vec<String> = own.iter().map(|own| format!("--{}", own.name)).collect();
                let has = match flags.is_empty() {
                    true => "no parameter of its own".to_owned(),
                    false => flags.join(", "),
                };
                return Err(Failure::Usage(format!(
                    "{} has no --{name}; it has {has}",
                    scenario.name
                )));
            }
        }
    }
    Ok(values)
}
