//! Measures this host into a machine file of the simulator.
//!
//! Everything is measured on pinned threads, several times, and given as the median with the least
//! and the most. What this host cannot tell (one node, one CPU, a virtual machine) is taken from
//! the known machine that is nearest to it, and says so.

mod bandwidth;
mod chase;
mod file;
mod kernel;
mod pairs;
mod sample;
mod shape;
mod single;

use std::collections::BTreeMap;
use std::fmt;

use simulator::machine::{Confidence, FigureValue, Machine, MachineError};
use topology::Topology;

pub use sample::Sample;

use crate::clock::Clock;
use crate::doctor::{Finding, Subject, Verdict, examine};
use crate::team::{Team, TeamError};
use crate::unavailable::Unavailable;
use shape::Shape;

/// How long calibration takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// Two or three seconds: three repetitions, a few pairs of CPUs, 128 MiB of memory.
    Quick,
    /// About ten seconds, more on large machines: nine repetitions, more pairs, 512 MiB.
    Full,
}

impl Effort {
    fn repetitions(self) -> usize {
        match self {
            Self::Quick => 3,
            Self::Full => 9,
        }
    }

    /// The pairs of CPUs that are measured at each distance.
    fn pairs(self) -> usize {
        match self {
            Self::Quick => 2,
            Self::Full => 16,
        }
    }

    /// The most memory that a chase goes through.
    fn memory_bytes(self) -> usize {
        match self {
            Self::Quick => 128 << 20,
            Self::Full => 512 << 20,
        }
    }
}

/// Why a host could not be measured.
#[derive(Debug)]
pub enum CalibrateError {
    /// A thread could not be made or pinned.
    Team(TeamError),
    /// No memory to measure.
    Memory(Unavailable),
    /// This process may use no CPU.
    NoCpu,
    /// The figures do not make a machine.
    Machine(MachineError),
}

impl fmt::Display for CalibrateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Team(error) => error.fmt(f),
            Self::Memory(reason) => {
                write!(f, "no memory to measure: {reason}; free some, or use --quick")
            }
            Self::NoCpu => f.write_str(
                "this process may use no CPU; `manycore topology` shows which there are",
            ),
            Self::Machine(error) => {
                write!(f, "what was measured makes no machine: {error}; measure again without load")
            }
        }
    }
}

impl std::error::Error for CalibrateError {}

impl From<TeamError> for CalibrateError {
    fn from(error: TeamError) -> Self {
        Self::Team(error)
    }
}

impl From<Unavailable> for CalibrateError {
    fn from(reason: Unavailable) -> Self {
        Self::Memory(reason)
    }
}

/// One figure of the machine file.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// Table and key.
    pub field: &'static str,
    /// The value.
    pub value: FigureValue,
    /// Where it comes from, the spread included.
    pub source: String,
    /// How much it is to be trusted.
    pub confidence: Confidence,
}

/// The transfer of a line between two CPUs.
#[derive(Debug, Clone)]
pub struct Pair {
    /// The two CPUs.
    pub cpus: (u32, u32),
    /// The nanoseconds of a transfer, one way.
    pub transfer_ns: Sample,
}

/// A host, measured.
#[derive(Debug, Clone)]
pub struct Calibration {
    /// The figures, in the order of docs/machines.md.
    pub figures: Vec<Figure>,
    /// The pairs of CPUs that were measured.
    pub pairs: Vec<Pair>,
    /// What cannot be known here, and what disturbed.
    pub notes: Vec<String>,
    /// The machine file.
    pub text: String,
}

/// What measures: the clock, the workers, and how much of everything.
struct Bench {
    clock: Clock,
    team: Team,
    effort: Effort,
}

impl Bench {
    /// Repeats a measurement on a CPU.
    fn on<F>(&mut self, cpu: u32, measure: F) -> Result<Sample, TeamError>
    where
        F: Fn(&Clock) -> f64 + Send + 'static,
    {
        let (clock, repetitions) = (self.clock.clone(), self.effort.repetitions());
        let job = move || (0..repetitions).map(|_| measure(&clock)).collect::<Vec<f64>>();
        Ok(Sample::new(self.team.run(&[cpu], vec![job])?.concat()))
    }
}

/// What was measured, by field, and why the rest was not.
#[derive(Debug, Default)]
struct Found {
    figures: BTreeMap<&'static str, Figure>,
    missing: BTreeMap<&'static str, String>,
}

impl Found {
    fn put(&mut self, field: &'static str, value: FigureValue, how: &str, trust: Confidence) {
        let source = how.to_owned();
        self.figures.insert(field, Figure { field, value, source, confidence: trust });
    }

    /// Enters the median of a sample, with its spread in the source.
    fn sample(&mut self, field: &'static str, sample: &Sample, how: &str) {
        self.put(field, sample.figure(), &format!("{how}; {sample}"), Confidence::Measured);
    }

    /// Enters what was computed from measured figures, or is not quite what the field says.
    fn derived(&mut self, field: &'static str, value: f64, how: &str) {
        self.put(field, FigureValue::Number(value), how, Confidence::Derived);
    }

    fn missing(&mut self, fields: &[&'static str], why: &str) {
        self.missing.extend(fields.iter().map(|&field| (field, why.to_owned())));
    }

    fn number(&self, field: &str) -> Option<f64> {
        match self.figures.get(field)?.value {
            FigureValue::Number(number) => Some(number),
            _ => None,
        }
    }
}

/// Measures a host; `step` hears what is measured next. With `like`, the machine is arranged like
/// that known one: as many sockets, groups, cores and caches, with this host's times where it has
/// measured them.
///
/// # Errors
/// When threads cannot be pinned, there is no memory, or the figures contradict each other.
pub fn calibrate(
    host: &Topology,
    effort: Effort,
    like: Option<&Machine>,
    step: &mut dyn FnMut(&str),
) -> Result<Calibration, CalibrateError> {
    let first = host.usable().first().ok_or(CalibrateError::NoCpu)?;
    let shape = Shape::of(host);
    let mut bench = Bench { clock: Clock::calibrated(&host.cpuid), team: Team::new(), effort };
    let mut found = Found::default();
    shape.enter(host, &mut found);
    step("one core");
    single::measure(&mut bench, first, &mut found)?;
    step("transfers between cores");
    let pairs = pairs::measure(&mut bench, host, &mut found)?;
    step("caches and memory");
    chase::measure(&mut bench, host, first, &mut found)?;
    step("bandwidth");
    bandwidth::measure(&mut bench, host, first, &mut found)?;
    step("the kernel");
    kernel::measure(&mut bench, host, first, &mut found)?;
    let figures = file::figures(host, &shape, found, like);
    let text = file::text(host, &figures, like);
    file::check(&text)?;
    Ok(Calibration { figures, pairs, notes: notes(host), text })
}

/// What a reader of the figures must know about this host.
fn notes(host: &Topology) -> Vec<String> {
    let live = Err(Unavailable::because("not_measured", "`manycore doctor` measures it"));
    let findings = Subject::new(host, live).map(|subject| examine(&subject)).unwrap_or_default();
    let bad = findings.iter().filter(|finding| finding.verdict >= Verdict::Warn);
    let mut notes: Vec<String> = bad.map(Finding::message).collect();
    if is_virtual(host) {
        notes.push(
            "in a virtual machine it cannot be known which cores the CPUs are, whether two are \
             threads of one core, how much of the L3 is ours, nor what other guests take of it"
                .into(),
        );
    }
    if host.usable().len() == 1 {
        notes.push("one CPU: nothing between two cores can be measured".into());
    }
    if host.numa_nodes.len() < 2 {
        notes.push("one node: remote memory cannot be measured".into());
    }
    notes
}

fn is_virtual(host: &Topology) -> bool {
    host.cpuid.facts().is_some_and(|facts| facts.hypervisor.is_some())
}
