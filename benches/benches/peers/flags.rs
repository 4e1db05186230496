//! The command line.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};

use crate::jobs::Job;

/// A part of the prices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    /// Instructions and RMWs of one thread.
    Exact,
    /// Time on this host.
    Paired,
    /// Throughput on simulated machines.
    Simulated,
}

/// Prices ours and what others offer for the same job.
#[derive(Debug, Parser)]
#[command(name = "cargo bench -p manycore --bench peers --")]
pub(crate) struct Flags {
    /// Keep candidates whose job/name contains this
    filter: Option<String>,
    /// Print names, and measure nothing
    #[arg(long)]
    pub(crate) list: bool,
    /// Few pairs of short windows, and two numbers of cores
    #[arg(long)]
    pub(crate) quick: bool,
    /// Only these parts
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Part>,
    /// Write Markdown to this file, seen from the package's folder
    #[arg(long, value_name = "FILE")]
    pub(crate) write: Option<PathBuf>,
    /// Print counts and simulated times as JSON, one a line; without --only the counts alone
    #[arg(long)]
    pub(crate) json: bool,
    /// Says that cargo runs it
    #[arg(long, hide = true)]
    bench: bool,
}

impl Flags {
    /// Tells whether a part is asked for. JSON has no times of this host.
    pub(crate) fn wants(&self, part: Part) -> bool {
        match (self.json, self.only.is_empty()) {
            (true, true) => part == Part::Exact,
            (true, false) => part != Part::Paired && self.only.contains(&part),
            (false, none) => none || self.only.contains(&part),
        }
    }

    /// Leaves out what the filter does not select.
    pub(crate) fn select(&self, jobs: &mut Vec<Job>) {
        let Some(filter) = &self.filter else { return };
        for job in jobs.iter_mut() {
            let id = job.id;
            job.candidates.retain(|one| format!("{id}/{}", one.id).contains(filter));
        }
        jobs.retain(|job| !job.candidates.is_empty());
    }
}
