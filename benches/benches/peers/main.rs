//! What ours costs beside what other crates and the standard library offer for the same job.
//!
//! `cargo bench -p manycore --bench peers [-- FILTER] [--list] [--quick] [--only PART] [--write FILE]`
//!
//! Each job (`jobs.rs`) is done by the same loop around each candidate. Three parts: exact
//! instructions and RMWs of one thread, by the simulator; time on this host, in windows of all in
//! turn, with a verdict against the fastest of the others' (`paired.rs`); time on machines that are
//! not here (`simulated.rs`). `page.rs` writes all of it as `docs/prices.md`.

mod exact;
mod flags;
mod jobs;
mod lines;
mod notes;
mod page;
mod paired;
mod processes;
mod simulated;
mod targets;

use std::fs;
use std::process::ExitCode;

use clap::Parser;

use flags::{Flags, Part};
use jobs::{Candidate, Job};
use processes::print_line;

/// Whoever simulates allocates apart from whom it simulates; for everybody else this is the
/// system's allocator behind one test of a thread-local flag.
#[global_allocator]
static HEAP: harness::simulated::EngineHeap = harness::simulated::EngineHeap;

/// What was found out about one job, by candidate.
pub(crate) struct Priced {
    pub(crate) job: Job,
    pub(crate) exact: Vec<Result<exact::Exact, String>>,
    pub(crate) paired: Option<Result<paired::Paired, String>>,
    pub(crate) simulated: Vec<simulated::Point>,
}

impl Priced {
    /// Gives the candidates with their places.
    pub(crate) fn candidates(&self) -> impl Iterator<Item = (usize, &Candidate)> {
        self.job.candidates.iter().enumerate()
    }

    /// Gives what one operation of a candidate costs.
    pub(crate) fn exact_of(&self, id: &str) -> Option<&exact::Exact> {
        self.exact.get(self.place(id)?)?.as_ref().ok()
    }

    /// Gives what a candidate came to on so many cores of a machine.
    pub(crate) fn simulated_of(
        &self,
        id: &str,
        machine: &str,
        cores: usize,
    ) -> Option<&simulated::Figures> {
        let candidate = self.place(id)?;
        let mut points = self.simulated.iter();
        let point = points.find(|point| {
            (point.candidate, point.machine, point.cores) == (candidate, machine, cores)
        });
        point?.figures.as_ref().ok()
    }

    fn place(&self, id: &str) -> Option<usize> {
        self.job.candidates.iter().position(|candidate| candidate.id == id)
    }
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let Some(code) = processes::if_asked(&words) {
        return code;
    }
    let flags = Flags::parse();
    let mut jobs = jobs::all();
    flags.select(&mut jobs);
    if flags.list {
        for job in &jobs {
            let name = |candidate: &Candidate| print_line(&format!("{}/{}", job.id, candidate.id));
            job.candidates.iter().for_each(name);
        }
        return ExitCode::SUCCESS;
    }
    if jobs.is_empty() {
        eprintln!("the filter leaves nothing; --list shows the names");
        return ExitCode::from(2);
    }
    match price(jobs, &flags) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn price(jobs: Vec<Job>, flags: &Flags) -> Result<(), String> {
    let blank = |job| Priced { job, exact: Vec::new(), paired: None, simulated: Vec::new() };
    let mut all: Vec<Priced> = jobs.into_iter().map(blank).collect();
    if flags.wants(Part::Exact) {
        exact::count(&mut all)?;
    }
    let mut duels = Vec::new();
    if flags.wants(Part::Paired) {
        duels = paired::measure(&mut all, flags)?;
    }
    if flags.wants(Part::Simulated) {
        simulated::simulate(&mut all, flags)?;
    }
    if flags.json {
        lines::print(&all);
        return Ok(());
    }
    let page = page::page(&all, &duels, flags);
    match &flags.write {
        Some(file) => fs::write(file, page).map_err(|error| format!("{}: {error}", file.display())),
        None => {
            print_line(&page);
            Ok(())
        }
    }
}
