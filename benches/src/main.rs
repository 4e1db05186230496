//! The program `manycore`: parses, calls the library, prints, sets the exit code.

mod ab_arms;
mod ab_command;
mod ab_records;
mod c2c_command;
mod calibrate_command;
mod cli;
mod compare_command;
mod count;
mod count_command;
mod doctor_command;
mod doctor_settings;
mod drawing_flags;
mod exit;
mod explain_command;
mod line_files;
mod lines_command;
mod lines_report;
mod list;
mod machines_command;
mod measured_command;
mod place;
mod place_command;
mod place_seen;
mod report_command;
mod rows;
mod scenario_command;
mod scenario_run;
mod scenario_step_command;
mod scenarios;
mod select;
mod simulated_command;
mod simulated_sweep;
mod simulated_words;
mod stdout;
mod sweep_command;
mod sweep_follower;
mod sweep_records;
mod table;
mod target;
mod topology_command;
mod validate_command;
mod validate_host;
mod validation_loops;
mod workload_args;
mod written;

use std::process::ExitCode;

use clap::Parser;

use crate::cli::{Cli, Command};

/// Whoever simulates allocates apart from whom it simulates; for everybody else this is the
/// system's allocator behind one test of a thread-local flag.
#[global_allocator]
static HEAP: harness::simulated::EngineHeap = harness::simulated::EngineHeap;

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Topology(arguments) => topology_command::run(&arguments),
        Command::Doctor(arguments) => doctor_command::run(&arguments),
        Command::List(arguments) => list::run(&arguments),
        Command::Machines(arguments) => machines_command::run(&arguments),
        Command::Calibrate(arguments) => calibrate_command::run(&arguments),
        Command::Validate(arguments) => validate_command::run(&arguments),
        Command::Count(arguments) => count_command::run(&arguments),
        Command::Measured(arguments) => measured_command::run(&arguments),
        Command::Simulated(arguments) => simulated_command::run(&arguments),
        Command::Lines(arguments) => lines_command::run(&arguments),
        Command::Place(arguments) => place_command::run(&arguments),
        Command::C2c(arguments) => c2c_command::run(&arguments),
        Command::Ab(arguments) => ab_command::run(&arguments),
        Command::AbWindows(arguments) => ab_arms::run_windows(&arguments),
        Command::Compare(arguments) => compare_command::run(&arguments),
        Command::Report(arguments) => report_command::run(&arguments),
        Command::Explain(arguments) => explain_command::run(&arguments),
        Command::Scenario(arguments) => scenario_command::run(&arguments),
        Command::ScenarioStep(arguments) => scenario_step_command::run(&arguments),
        Command::Sweep(arguments) => sweep_command::run(*arguments),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            stdout::note(&failure.to_string());
            ExitCode::from(failure.code())
        }
    }
}
