//! Points that are simulated, each by this very program in a process of its own.

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

use harness::native::{Failure, Make};
use harness::placement::Placement;
use harness::simulated::child::{Answer, Ended, Follow, Pool};
use harness::simulated::{Cores, DEFAULT_MACHINE, Machine, Request, measure, measured};
use harness::sweep::Ground;
use harness::workload::Workload;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::jobs;

/// The first argument of the hidden commands.
pub(crate) const EXACT: &str = "--exact-point";
pub(crate) const SIMULATED: &str = "--simulated-point";

/// How long a point may take.
const LIMIT: Duration = Duration::from_secs(600);

/// Runs a hidden command, if the command line is one.
pub(crate) fn if_asked(words: &[String]) -> Option<ExitCode> {
    let number = |text: &String| text.parse::<u64>().ok();
    match words {
        [word, job, candidate, ops] if word == EXACT => {
            let ((make, workload), ops) = (find(job, candidate)?, number(ops)?);
            let machine = Machine::named(DEFAULT_MACHINE).ok()?;
            answer(measured(&machine, make, &workload, ops))
        }
        [word, job, candidate, machine, cores, ops] if word == SIMULATED => {
            let (make, workload) = find(job, candidate)?;
            let machine = Machine::named(machine).ok()?;
            let (threads, ops) = (number(cores)?, number(ops)?);
            let cores = Cores::of(&machine).order(&Placement::Compact);
            answer(cores.map_err(Failure::Unavailable).and_then(|mut cores| {
                cores.truncate(threads as usize);
                let (machine, cores, workload) = (&machine, &cores[..], &workload);
                measure(make, &Request { machine, cores, ops, seed: 1, workload })
            }))
        }
        _ => None,
    }
}

fn find(job: &str, candidate: &str) -> Option<(Make, Workload)> {
    let job = jobs::all().into_iter().find(|one| one.id == job)?;
    Some((job.candidate(candidate)?.make, job.workload))
}

/// Answers and ends: after a run that was stopped, threads of it stand where they were for ever.
fn answer<T: Serialize>(outcome: Result<T, Failure>) -> Option<ExitCode> {
    print_line(&serde_json::to_string(&Answer::new(outcome)).unwrap_or_default());
    std::process::exit(0)
}

/// Prints to standard output; a reader that has gone has seen enough.
pub(crate) fn print_line(text: &str) {
    let _ = writeln!(io::stdout(), "{text}");
}

/// Runs a process for each list of words and gives what they found out, in order.
pub(crate) fn run<T: DeserializeOwned>(
    what: &str,
    jobs: Vec<Vec<String>>,
) -> Result<Vec<Result<T, String>>, String> {
    let program = std::env::current_exe().map_err(|error| format!("this program: {error}"))?;
    let all = jobs.len();
    let jobs: Vec<Option<Vec<String>>> = jobs.into_iter().map(Some).collect();
    let mut collected = Collect { what, all, ended: 0, results: Vec::new() };
    let pool = Pool::new(&program, None, LIMIT);
    pool.run(&jobs, &mut collected).map_err(|error| error.to_string())?;
    Ok(collected.results)
}

struct Collect<'a, T> {
    what: &'a str,
    all: usize,
    ended: usize,
    results: Vec<Result<T, String>>,
}

impl<T: DeserializeOwned> Follow for Collect<'_, T> {
    fn stop(&mut self) -> bool {
        false
    }

    fn ended(&mut self, _: usize) {
        self.ended += 1;
        let (ended, all) = (self.ended, self.all);
        if ended.is_multiple_of(50) || ended == all || io::stderr().is_terminal() {
            eprintln!("{}: {ended} of {all} points", self.what);
        }
    }

    fn result(&mut self, _: usize, ended: Ended) -> io::Result<()> {
        let outcome = match ended {
            Ended::Answered(text) => Answer::<T>::parse(&text).and_then(|answer| {
                answer.outcome().map_err(|failure| match failure {
                    Failure::Broken(reason) => format!("broken: {reason}"),
                    Failure::Unavailable(reason) => reason.to_string(),
                })
            }),
            Ended::Failed(reason) => Err(reason),
            Ended::Killed | Ended::Nothing => Err("not simulated".into()),
        };
        self.results.push(outcome);
        Ok(())
    }
}
